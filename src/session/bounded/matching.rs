//! The operators LIKE, ILIKE, `~` and `~*` as functions, so that they are limited as functions are.
//!
//! Rules of the optimizer look for the operators, and so do tables in their filters. So the operators become functions
//! when the plan is optimized, and those in filters of tables remain as they are: a table evaluates them for a page at a
//! time.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, exec_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Like, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr as Comparison, Column, Literal};

use super::demand::Calls;
use super::function::bounded;
use crate::functions::{TypeIn, field_of};

/// The operator of a plan with functions in place of operators on texts. The plan is optimized.
///
/// # Errors
/// None in practice: results keep their types.
pub(in crate::session) fn with_functions(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if matches!(plan, LogicalPlan::TableScan(_) | LogicalPlan::Extension(_)) || !has_matching(&plan)? {
        return Ok(Transformed::no(plan));
    }
    let schema = merge_schema(&plan.inputs());
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(|part| Ok(as_function(part, &schema)))?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })
}

fn has_matching(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found |= expr.exists(|part| Ok(is_matching(part)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// True for one of the operators.
pub(super) fn is_matching(expr: &Expr) -> bool {
    match expr {
        Expr::Like(_) => true,
        Expr::BinaryExpr(BinaryExpr { op, .. }) => is_regex(*op),
        _ => false,
    }
}

/// True for an operator that matches a text with a regular expression.
pub(super) fn is_regex(op: Operator) -> bool {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    matches!(op, RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch)
}

/// The function for an operator on texts. Other expressions are not changed, nor is a comparison with the beginning of
/// a text, which files have statistics for.
pub(super) fn as_function(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let op = match &expr {
        Expr::Like(Like { negated, case_insensitive, escape_char: None | Some('\\'), .. }) => {
            match (negated, case_insensitive) {
                (false, false) => Operator::LikeMatch,
                (true, false) => Operator::NotLikeMatch,
                (false, true) => Operator::ILikeMatch,
                (true, true) => Operator::NotILikeMatch,
            }
        }
        Expr::BinaryExpr(BinaryExpr { op, .. }) if is_regex(*op) => *op,
        _ => return Transformed::no(expr),
    };
    match expr {
        Expr::Like(Like { expr: text, pattern, .. })
        | Expr::BinaryExpr(BinaryExpr { left: text, right: pattern, .. })
            if are_texts(&text, &pattern, schema) && !is_beginning(op, &pattern) =>
        {
            Transformed::yes(function(op).call(vec![*text, *pattern]))
        }
        other => Transformed::no(other),
    }
}

fn are_texts(text: &Expr, pattern: &Expr, schema: &DFSchema) -> bool {
    match (text.type_in(schema), pattern.type_in(schema)) {
        (Ok(text), Ok(pattern)) => text == pattern && text.is_string(),
        _ => false,
    }
}

/// True for a pattern such as `'abc%'`.
fn is_beginning(op: Operator, pattern: &Expr) -> bool {
    let text = match pattern {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    };
    matches!(op, Operator::LikeMatch | Operator::NotLikeMatch)
        && text.is_some_and(|text| !text.strip_suffix('%').unwrap_or(text).contains(['%', '_', '\\']))
}

/// All functions.
pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    use Operator::{
        ILikeMatch, LikeMatch, NotILikeMatch, NotLikeMatch, RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch,
    };
    let like = [LikeMatch, ILikeMatch, NotLikeMatch, NotILikeMatch];
    like.into_iter().chain([RegexMatch, RegexIMatch, RegexNotMatch, RegexNotIMatch]).map(function)
}

fn function(op: Operator) -> ScalarUDF {
    let matching = ScalarUDF::new_from_impl(Matching { op, signature: Signature::string(2, Volatility::Immutable) });
    bounded(&matching, Calls::ONE).unwrap_or(matching)
}

/// An operator on a text and a pattern of the same type; NULL if either is NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Matching {
    op: Operator,
    signature: Signature,
}

impl ScalarUDFImpl for Matching {
    fn name(&self) -> &'static str {
        match self.op {
            Operator::LikeMatch => "LIKE",
            Operator::NotLikeMatch => "NOT LIKE",
            Operator::ILikeMatch => "ILIKE",
            Operator::NotILikeMatch => "NOT ILIKE",
            Operator::RegexIMatch => "~*",
            Operator::RegexNotMatch => "!~",
            Operator::RegexNotIMatch => "!~*",
            _ => "~",
        }
    }

    // Displayed like the operator, since names of results are derived from it.
    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let args: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(args.join(&format!(" {} ", self.name())))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        field_of(self, &args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (mut fields, mut columns, mut operands) = (Vec::new(), Vec::new(), Vec::new());
        for arg in args.args {
            let operand: Arc<dyn PhysicalExpr> = match arg {
                ColumnarValue::Scalar(value) => Arc::new(Literal::new(value)),
                ColumnarValue::Array(array) => {
                    let operand = Column::new("operand", columns.len());
                    fields.push(Field::new("operand", array.data_type().clone(), true));
                    columns.push(array);
                    Arc::new(operand)
                }
            };
            operands.push(operand);
        }
        let rows = if columns.is_empty() { 1 } else { args.number_rows };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?;
        match operands.as_slice() {
            [text, pattern] => Comparison::new(Arc::clone(text), self.op, Arc::clone(pattern)).evaluate(&batch),
            _ => exec_err!("{} expects a text and a pattern", self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{binary_expr, col, lit};
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::cases::each;
    use crate::session::bounded_session;

    #[test]
    fn comparisons_with_a_beginning_remain_operators() {
        let schema = Schema::new(vec![Field::new("t", DataType::Utf8, true), Field::new("n", DataType::Int64, true)]);
        let schema = DFSchema::try_from(schema).expect("a schema");
        let regex = binary_expr(col("t"), Operator::RegexMatch, lit("a*b"));
        let cases = [
            (col("t").like(lit("abc%")), false),
            (col("t").like(lit("abc")), false),
            (col("t").like(lit("%abc%")), true),
            (col("t").like(lit("a\\%%")), true),
            (col("t").like(col("t")), true),
            (col("t").not_like(lit("a_c")), true),
            (col("t").ilike(lit("abc%")), true),
            (regex, true),
            (col("n").eq(lit(1_i64)), false),
        ];
        each(cases, |(expr, changes)| {
            let name = expr.schema_name().to_string();
            let changed = as_function(expr, &schema);
            assert_eq!(changed.transformed, changes, "{name}");
            assert_eq!(changed.data.schema_name().to_string(), name);
        });
    }

    #[tokio::test]
    async fn functions_return_what_the_operators_do() {
        let plain = SessionContext::new();
        let bounded = bounded_session(&plain).expect("a session");
        let conditions = [
            "t LIKE '%b_'",
            "t NOT LIKE 'a%c'",
            "t ILIKE 'A%C'",
            "t NOT ILIKE '%B%'",
            "t LIKE p",
            "t ~ 'b.'",
            "t ~* 'B'",
            "t !~ '^a'",
            "t !~* 'C$'",
            "'abc' LIKE '%b_'",
            "'abc' ~ 'b' AND t ~ ''",
        ];
        let values = "(VALUES ('abc', '%c'), ('', ''), (NULL, '%'), ('xBy', NULL)) AS v(t, p)";
        for sql in [
            format!("SELECT {} FROM {values} WHERE t !~ 'q' OR t IS NULL ORDER BY t", conditions.join(", ")),
            format!("SELECT t LIKE '%b%' AS k, count(*) FILTER (WHERE t ~ 'c') FROM {values} GROUP BY 1 ORDER BY 1"),
            format!("SELECT count(*) FROM {values} GROUP BY ROLLUP (t LIKE '%b%') ORDER BY 1"),
        ] {
            let rows = async |context: &SessionContext| {
                let rows = context.sql(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
                rows.to_string().await.unwrap_or_else(|error| panic!("{sql}: {error}"))
            };
            assert_eq!(rows(&bounded).await, rows(&plain).await, "{sql}");
        }
    }
}
