//! Zeros and NaN without a sign. See [`functions`](crate::functions).
//!
//! Products, quotients, functions and text have negative zeros, and so have tables that are not those of a service, such as files.
//! Other values that are passed on have none: tables of services are read without them.
//!
//! The function also hides such a column from the statistics and Bloom filters of Parquet files, by which the engine would skip
//! rows: most programs leave NaN, the greatest number, out of the largest value, and a Bloom filter has one of the two zeros.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Projection, TableScan, TryCast, WriteOp,
};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_values;
use crate::functions::{TypeIn, positive_zero};
use crate::table::ApiTable;

/// Functions that return one of their arguments.
const PASSED_ON: [&str; 8] = ["coalesce", "greatest", "ifnull", "least", "nullif", "nvl", "nvl2", "opaque"];

/// See the module's documentation. Runs once operands have the type of the result.
#[derive(Debug)]
pub(super) struct PositiveZero;

impl AnalyzerRule for PositiveZero {
    fn name(&self) -> &str {
        "savedsearch_positive_zero"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        with_positive_tables(rewrite_values(plan, |expr, schema| Ok(positive(expr, schema)))?)
    }
}

/// The plan with such columns of tables, except for those of services.
fn with_positive_tables(plan: LogicalPlan) -> Result<LogicalPlan> {
    let done = |node| Transformed::new(node, false, TreeNodeRecursion::Jump);
    plan.transform_down_with_subqueries(|node| match node {
        // A plan may be analyzed twice.
        LogicalPlan::Projection(projection) if is_positive(&projection) => {
            Ok(done(LogicalPlan::Projection(projection)))
        }
        // The engine reads the changes of a table from these plans.
        LogicalPlan::Dml(dml) if !matches!(dml.op, WriteOp::Insert(_) | WriteOp::Ctas) => {
            Ok(done(LogicalPlan::Dml(dml)))
        }
        LogicalPlan::TableScan(scan) if ApiTable::of(&scan).is_none() => positive_table(scan),
        other => Ok(Transformed::no(other)),
    })
    .data()
}

/// True for a projection such as [`positive_table`] makes.
fn is_positive(projection: &Projection) -> bool {
    let schema = projection.input.schema();
    let is_positive = |expr: &Expr| match expr {
        Expr::Alias(alias) => match alias.expr.as_ref() {
            Expr::ScalarFunction(call) => {
                call.func.name() == positive_zero().name() && matches!(call.args.as_slice(), [Expr::Column(_)])
            }
            _ => false,
        },
        Expr::Column(_) => expr.type_in(schema.as_ref()).is_ok_and(|data_type| !has_sign(&data_type)),
        _ => false,
    };
    matches!(projection.input.as_ref(), LogicalPlan::TableScan(_)) && projection.expr.iter().all(is_positive)
}

fn positive_table(scan: TableScan) -> Result<Transformed<LogicalPlan>> {
    if !scan.projected_schema.fields().iter().any(|field| has_sign(field.data_type())) {
        return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
    }
    let columns = scan.projected_schema.iter().map(|(qualifier, field)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        match has_sign(field.data_type()) {
            true => positive_zero().call(vec![column]).alias_qualified(qualifier.cloned(), field.name()),
            false => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(LogicalPlan::TableScan(scan)).project(columns)?.build()?;
    Ok(Transformed::new(plan, true, TreeNodeRecursion::Jump))
}

fn has_sign(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

fn positive(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    // A plan may be analyzed twice.
    if let Expr::ScalarFunction(call) = &expr
        && call.func.name() == positive_zero().name()
        && let [inner @ Expr::ScalarFunction(again)] = call.args.as_slice()
        && again.func.name() == call.func.name()
    {
        return Transformed::yes(inner.clone());
    }
    let signed = match &expr {
        Expr::Literal(ScalarValue::Float64(Some(number)), metadata) if *number == 0.0 && number.is_sign_negative() => {
            return Transformed::yes(Expr::Literal(ScalarValue::Float64(Some(0.0)), metadata.clone()));
        }
        Expr::Negative(_)
        | Expr::BinaryExpr(BinaryExpr { op: Operator::Multiply | Operator::Divide | Operator::Modulo, .. }) => true,
        Expr::ScalarFunction(call) => {
            call.func.name() != positive_zero().name() && !PASSED_ON.contains(&call.func.name())
        }
        // A double may be too small for another type.
        Expr::Cast(Cast { expr: text, .. }) | Expr::TryCast(TryCast { expr: text, .. }) => {
            text.type_in(schema).is_ok_and(|data_type| data_type.is_string() || data_type.is_floating())
        }
        _ => false,
    };
    match signed && matches!(expr.type_in(schema), Ok(DataType::Float32 | DataType::Float64)) {
        true => Transformed::yes(positive_zero().call(vec![expr])),
        false => Transformed::no(expr),
    }
}
