//! Engine functions of mathematics over arguments for which they have no value.
//!
//! The engine returns NaN for `ln(-1)` and `acos(2)`, and an infinity for `ln(0)`: NaN is greater than all numbers, and NULL in JSON.
//! Here both are errors, as in PostgreSQL and DuckDB, and as the engine's own `sqrt(-1)`. NaN of NaN stays NaN. A result that is
//! too large, as of `exp(1000)`, stays infinite, as sums and products do.
//!
//! Invariant: values and types are those of the engine's function, or an error.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use arrow::util::display::array_value_to_string;
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::functions::math;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, StructFieldMapping,
};

use super::wrapper::wrapped_methods;
use crate::error::{Error, ErrorKind};

/// Functions whose results grow beyond the numbers of their type.
const GROWING: [&str; 5] = ["cosh", "degrees", "exp", "power", "sinh"];

/// Functions that have a value for all numbers.
const TOTAL: [&str; 19] = [
    "abs", "atan", "cbrt", "ceil", "cosh", "degrees", "exp", "floor", "isnan", "iszero", "nanvl", "pi", "radians",
    "random", "round", "signum", "sinh", "tanh", "trunc",
];

/// The engine's functions of mathematics.
static MATHEMATICS: LazyLock<HashSet<String>> =
    LazyLock::new(|| math::functions().iter().map(|function| function.name().to_owned()).collect());

/// True for a function of mathematics that may have no value.
pub(crate) fn has_domain(function: &str) -> bool {
    MATHEMATICS.contains(function) && !TOTAL.contains(&function)
}

/// The function with errors instead of values that do not exist, if it is one of mathematics.
pub(crate) fn in_domain(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match MATHEMATICS.contains(function.name()) {
        true => Arc::new(ScalarUDF::new_from_impl(InDomain { inner: function })),
        false => function,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InDomain {
    inner: Arc<ScalarUDF>,
}

impl InDomain {
    fn function(&self) -> &Arc<dyn ScalarUDFImpl> {
        self.inner.inner()
    }

    /// Refuses a result that is no finite number although the arguments of its row are.
    fn check(&self, args: &[ColumnarValue], rows: usize, result: &ColumnarValue) -> Result<()> {
        let rows = if matches!(result, ColumnarValue::Scalar(_)) { 1 } else { rows };
        let results = result.to_array(rows)?;
        let doubles = |array: &ArrayRef| cast(array, &DataType::Float64);
        let results = doubles(&results)?;
        let results = results.as_primitive::<Float64Type>();
        if results.iter().flatten().all(f64::is_finite) {
            return Ok(());
        }
        let args = args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let floats: Vec<ArrayRef> =
            args.iter().filter(|arg| arg.data_type().is_floating()).map(doubles).collect::<Result<_, _>>()?;
        let grows = GROWING.contains(&self.inner.name());
        for (row, value) in results.iter().enumerate() {
            let Some(value) = value.filter(|value| !value.is_finite()) else { continue };
            let mut known = floats.iter().map(|arg| arg.as_primitive::<Float64Type>().value(row));
            let follows = match value.is_nan() {
                true => known.any(f64::is_nan),
                false => grows || known.any(|arg| !arg.is_finite()),
            };
            if !follows {
                let args = args.iter().map(|arg| array_value_to_string(arg, row)).collect::<Result<Vec<_>, _>>()?;
                let message = format!("{}({}) has no value", self.inner.name(), args.join(", "));
                return Err(Error::new(ErrorKind::Query, message)
                    .advice("leave such rows out, as by WHERE, or make them NULL by CASE")
                    .into());
            }
        }
        Ok(())
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl ScalarUDFImpl for InDomain {
    wrapped_methods!();

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.function().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(Self { inner }))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function().return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if !args.return_field.data_type().is_floating() {
            return self.function().invoke_with_args(args);
        }
        let (given, rows) = (args.args.clone(), args.number_rows);
        let result = self.function().invoke_with_args(args)?;
        self.check(&given, rows, &result)?;
        Ok(result)
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.function().simplify(args, context)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.function().output_ordering(inputs)
    }
}
