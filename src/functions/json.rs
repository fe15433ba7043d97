//! Functions and operators on JSON text, such as the column `extra`, by the crate `datafusion-functions-json`.
//!
//! Only functions whose results have a type of SQL: `->` returns JSON text, as in PostgreSQL, and not the crate's union. Those of
//! numbers and truth values are NULL for a text such as `"1"`, which the crate would read.

use std::sync::Arc;

use arrow::compute::{is_not_null, nullif};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, StructFieldMapping, lit,
};
use datafusion_functions_json::udfs;

use super::wrapper::wrapped_methods;

/// The functions of sessions.
pub(super) fn all() -> [Arc<ScalarUDF>; 10] {
    [
        udfs::json_as_text_udf(),
        udfs::json_contains_udf(),
        udfs::json_get_array_udf(),
        NoText::over(udfs::json_get_bool_udf()),
        NoText::over(udfs::json_get_float_udf()),
        NoText::over(udfs::json_get_int_udf()),
        udfs::json_get_json_udf(),
        udfs::json_get_str_udf(),
        udfs::json_length_udf(),
        udfs::json_object_keys_udf(),
    ]
}

/// The call that an operator on JSON text stands for; `None` for other operators, and for a path that is no constant.
///
/// `->` and `->>` take a key or an index, `#>` and `#>>` a path such as `'{a,0}'`, and `?` a key.
pub(crate) fn json_operator(op: &BinaryOperator, left: &Expr, right: &Expr) -> Option<Expr> {
    let (function, path) = match op {
        BinaryOperator::Arrow => (udfs::json_get_json_udf(), vec![right.clone()]),
        BinaryOperator::LongArrow => (udfs::json_as_text_udf(), vec![right.clone()]),
        BinaryOperator::Question => (udfs::json_contains_udf(), vec![right.clone()]),
        BinaryOperator::HashArrow => (udfs::json_get_json_udf(), steps(right)?),
        BinaryOperator::HashLongArrow => (udfs::json_as_text_udf(), steps(right)?),
        _ => return None,
    };
    Some(function.call([vec![left.clone()], path].concat()))
}

/// Keys and indexes of a path such as `'{a,0,b}'`. A number is an index.
fn steps(path: &Expr) -> Option<Vec<Expr>> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) = path else { return None };
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let step = |step: &str| step.parse::<i64>().map_or_else(|_| lit(step.trim_matches('"')), lit);
    Some(inner.split(',').map(str::trim).filter(|part| !part.is_empty()).map(step).collect())
}

/// A function of values that are no text: NULL if the field is a text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NoText {
    inner: Arc<ScalarUDF>,
}

impl NoText {
    fn over(inner: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(Self { inner }))
    }

    fn function(&self) -> &Arc<dyn ScalarUDFImpl> {
        self.inner.inner()
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl ScalarUDFImpl for NoText {
    wrapped_methods!();

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.function().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(Self { inner }))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function().return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let texts = udfs::json_get_str_udf().inner().invoke_with_args(args.clone())?;
        let values = self.function().invoke_with_args(args)?;
        match (values, texts) {
            (ColumnarValue::Scalar(value), ColumnarValue::Scalar(text)) => {
                Ok(ColumnarValue::Scalar(match text.is_null() {
                    true => value,
                    false => ScalarValue::try_from(&value.data_type())?,
                }))
            }
            (values, texts) => {
                let are_texts = is_not_null(&texts.to_array(rows)?)?;
                Ok(ColumnarValue::Array(nullif(&values.to_array(rows)?, &are_texts)?))
            }
        }
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.function().simplify(args, context)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.function().output_ordering(inputs)
    }
}
