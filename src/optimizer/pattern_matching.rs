//! `LIKE … ESCAPE` and `SIMILAR TO`, in the patterns that the engine matches correctly. See [`functions`](crate::functions).

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, Like, LogicalPlan, Operator, ScalarUDF, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_expressions;
use crate::error::Error;
use crate::functions::{like_pattern, like_pattern_of, regex_of_similar, similar_pattern};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct PatternMatching;

impl AnalyzerRule for PatternMatching {
    fn name(&self) -> &str {
        "savedsearch_pattern_matching"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, |expr, _| rewritten(expr), |plan| Ok(Transformed::no(plan)))
    }
}

fn rewritten(expr: Expr) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::Like(Like { negated, expr, pattern, escape_char: Some(escape), case_insensitive }) if escape != '\\' => {
            let pattern = converted(*pattern, escape, like_pattern_of, &like_pattern())?.into();
            Transformed::yes(Expr::Like(Like { negated, expr, pattern, escape_char: None, case_insensitive }))
        }
        Expr::SimilarTo(Like { negated, expr, pattern, escape_char, .. }) => {
            let regex = converted(*pattern, escape_char.unwrap_or('\\'), regex_of_similar, &similar_pattern())?;
            let operator = if negated { Operator::RegexNotMatch } else { Operator::RegexMatch };
            let text = match *expr {
                Expr::Literal(value, _) if value.is_null() => lit(ScalarValue::Utf8(None)),
                other => other,
            };
            Transformed::yes(binary_expr(text, operator, regex))
        }
        other => Transformed::no(other),
    })
}

/// The pattern in its new form: at once if it is a literal, otherwise by a function.
fn converted(
    pattern: Expr,
    escape: char,
    convert: fn(&str, char) -> Result<String, Error>,
    function: &ScalarUDF,
) -> Result<Expr> {
    match &pattern {
        Expr::Literal(value, _) if value.is_null() => Ok(lit(ScalarValue::Utf8(None))),
        Expr::Literal(value, _) if let Some(Some(text)) = value.try_as_str() => {
            Ok(lit(convert(text, escape).map_err(DataFusionError::from)?))
        }
        _ => Ok(function.call(vec![pattern, lit(escape.to_string())])),
    }
}
