//! The service's tables as functions: `mentions(aid => '183772', duration => '7d', sort_by => 'reach_desc')`.
//!
//! An argument is a condition on the column with its name, except `sort_by`, which selects one of the service's sort
//! orders by its value: rows are returned in it, and a LIMIT takes the first ones. Arguments are named, or positional
//! in the order of [`ARGUMENTS`]; all are optional.

use std::sync::Arc;

use datafusion::common::{DFSchema, Result, ScalarValue, plan_datafusion_err, plan_err};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::prelude::ident;
use datafusion::sql::sqlparser::ast::{FunctionArg, FunctionArgExpr, ObjectName, TableFactor, TableFunctionArgs};

use super::ApiTable;
use crate::profile::TableKind;
use crate::pushdown::{ServiceOrder, order_named};

/// The arguments of the functions, in positional order; the last one is accepted by `mentions` only.
pub(crate) const ARGUMENTS: [&str; 4] = ["aid", "duration", "timezone", "sort_by"];

/// Plans table functions: calls of a service's table, in whichever catalog the name resolves to.
#[derive(Debug)]
pub(crate) struct TableFunctions;

impl TableFunctions {
    fn plan(table: ApiTable, given: Vec<(String, Expr)>) -> Result<LogicalPlanBuilder> {
        let name = Arc::clone(&table.spec().name);
        let mut provider = table;
        let mut conditions = Vec::new();
        for (name, value) in given {
            if name == "sort_by" {
                let order = order(&provider, &value)?;
                provider = provider.in_order(order);
                continue;
            }
            let column = ident(&name);
            conditions.push(match value {
                Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "make_array" && name == "aid" => {
                    column.in_list(args.into_iter().map(|value| text(&name, value)).collect::<Result<_>>()?, false)
                }
                value => column.eq(text(&name, value)?),
            });
        }
        let scan = LogicalPlanBuilder::scan(name.as_ref(), provider_as_source(Arc::new(provider)), None)?;
        conditions.into_iter().try_fold(scan, LogicalPlanBuilder::filter)
    }
}

/// Resolves a name to a table of a service; `None` for other tables and for the list, which takes no arguments.
fn table_named(name: &ObjectName, context: &dyn RelationPlannerContext) -> Option<ApiTable> {
    let reference = context.object_name_to_table_reference(name.clone()).ok()?;
    let source = context.context_provider().get_table_source(reference).ok()?;
    let table = source_as_provider(&source).ok()?.downcast_ref::<ApiTable>().cloned()?;
    Some(table).filter(|table| table.spec().kind.is_search())
}

/// Returns the service's sort order with this value.
fn order(table: &ApiTable, value: &Expr) -> Result<ServiceOrder> {
    let profile = table.connection().profile();
    let named = match value {
        Expr::Literal(value, _) => value.try_as_str().flatten().and_then(|value| order_named(profile, value)),
        _ => None,
    };
    named.ok_or_else(|| {
        let known: Vec<&str> = profile.sort.values.iter().map(|known| known.value.as_str()).collect();
        let found = match value {
            Expr::Literal(value, _) => value.to_string(),
            other => other.to_string(),
        };
        plan_datafusion_err!("sort_by must be one of {}, found {found}", known.join(", "))
    })
}

impl RelationPlanner for TableFunctions {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        if let TableFactor::Table { name, sample: Some(_), .. } = &relation {
            // The engine would ignore it silently.
            return plan_err!("TABLESAMPLE of {name} is not supported; use LIMIT, or WHERE random() < 0.01");
        }
        let TableFactor::Table { name, alias, args: Some(TableFunctionArgs { args, .. }), .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let Some(table) = table_named(name, context) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let known = if table.spec().kind == TableKind::Mentions { &ARGUMENTS[..] } else { &ARGUMENTS[..3] };
        let mut given: Vec<(String, Expr)> = Vec::new();
        for (at, argument) in args.iter().enumerate() {
            let (name, value) = match argument {
                FunctionArg::Named { name, arg, .. } => (Some(context.normalize_ident(name.clone())), arg),
                FunctionArg::Unnamed(arg) if given.len() == at && at < known.len() => (Some(known[at].to_owned()), arg),
                _ => (None, argument_value(argument)),
            };
            let name =
                name.filter(|name| known.contains(&name.as_str()) && given.iter().all(|(other, _)| other != name));
            let (Some(name), FunctionArgExpr::Expr(value)) = (name, value) else {
                return plan_err!(
                    "{} accepts {}, each at most once and named as in aid => '…'; found `{argument}`",
                    table.spec().name,
                    known.join(", ")
                );
            };
            given.push((name, context.sql_to_expr(value.clone(), &DFSchema::empty())?));
        }
        let plan = Self::plan(table, given)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

fn argument_value(argument: &FunctionArg) -> &FunctionArgExpr {
    match argument {
        FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg) => arg,
    }
}

/// Returns the value as a string; numbers become the digits they are written with.
fn text(name: &str, value: Expr) -> Result<Expr> {
    match value {
        Expr::Literal(value, _) if value.is_null() => plan_err!("{name} must not be NULL"),
        Expr::Literal(value @ (ScalarValue::Int64(_) | ScalarValue::UInt64(_)), metadata) => {
            Ok(Expr::Literal(ScalarValue::from(value.to_string()), metadata))
        }
        value => Ok(value),
    }
}
