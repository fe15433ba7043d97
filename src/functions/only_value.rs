//! `only_value(value, rows)`: the value of the only row of a group, NULL for an empty group, and an error for several rows.
//!
//! It is the value of a correlated scalar subquery that is not an aggregate, such as `(SELECT name FROM t WHERE t.k = o.k)`.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// See the module's documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct OnlyValue(Signature);

impl OnlyValue {
    /// The function.
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(Self(Signature::any(2, Volatility::Immutable))))
    }

    /// True for the function.
    pub(crate) fn is(function: &ScalarUDF) -> bool {
        function.name() == "only_value"
    }
}

impl ScalarUDFImpl for OnlyValue {
    fn name(&self) -> &str {
        "only_value"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.args[1].to_array(args.number_rows)?;
        if rows.as_primitive::<Int64Type>().iter().flatten().any(|rows| rows > 1) {
            // The engine's words for subqueries that are not correlated.
            return exec_err!("Scalar subquery returned more than one row");
        }
        Ok(args.args[0].clone())
    }
}
