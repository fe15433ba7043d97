//! `LIKE … ESCAPE` and `SIMILAR TO`, in the patterns that the engine matches correctly. See [`functions`](crate::functions).
//!
//! A regular expression of a literal text becomes LIKE in the engine, which takes a backslash of that text for an escape. One that may
//! have a backslash gets an empty group, which matches anywhere, and stays a regular expression.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Like, LogicalPlan, Operator, ScalarUDF, binary_expr, lit};
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
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_regex(op) && may_match_backslash(&right) => {
            Transformed::yes(binary_expr(*left, op, grouped(*right)))
        }
        // The engine makes an operator of it.
        Expr::ScalarFunction(ScalarFunction { func, mut args })
            if func.name() == "regexp_like" && args.get(1).is_some_and(may_match_backslash) =>
        {
            let pattern = std::mem::replace(&mut args[1], lit(""));
            args[1] = grouped(pattern);
            Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args }))
        }
        other => Transformed::no(other),
    })
}

/// An empty group, which matches anywhere.
const GROUP: &str = "()";

fn is_regex(op: Operator) -> bool {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    matches!(op, RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch)
}

/// True for a pattern that may match a backslash: one that is written, has a code, or is left in a class by an operator of classes. A
/// computed pattern may be such a one once it is known.
fn may_match_backslash(pattern: &Expr) -> bool {
    match pattern {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_) => false,
        Expr::Cast(Cast { expr, .. }) => may_match_backslash(expr),
        Expr::Literal(value, _) => value.try_as_str().flatten().is_some_and(|text| {
            let parts = ["\\\\", "\\x", "\\u", "\\U", "&&", "--", "~~"];
            !text.starts_with(GROUP) && parts.iter().any(|part| text.contains(part))
        }),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, .. }) => **left != lit(GROUP),
        _ => true,
    }
}

fn grouped(pattern: Expr) -> Expr {
    match &pattern {
        Expr::Literal(value, _) if let Some(Some(text)) = value.try_as_str() => lit(format!("{GROUP}{text}")),
        _ => binary_expr(lit(GROUP), Operator::StringConcat, pattern),
    }
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
