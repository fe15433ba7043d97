//! Functions and operators on JSON text, such as the column `extra`, by the crate `datafusion-functions-json`.
//!
//! Only functions whose results have a type of SQL: `->` returns JSON text, as in PostgreSQL, and not the crate's union.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Expr, ScalarUDF, lit};
use datafusion_functions_json::udfs;

/// The functions of sessions.
pub(super) fn all() -> [Arc<ScalarUDF>; 10] {
    [
        udfs::json_as_text_udf(),
        udfs::json_contains_udf(),
        udfs::json_get_array_udf(),
        udfs::json_get_bool_udf(),
        udfs::json_get_float_udf(),
        udfs::json_get_int_udf(),
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
