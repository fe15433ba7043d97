//! The service's tables as functions: `mentions(aid => '183772', duration => '7d', sort_by => 'reach_desc')`, mentions with some
//! words: `search('recall OR fire')`, the changes of the store: `changes(since => '2026-11-01')`, and its mentions at an earlier time:
//! `mentions_as_of('2026-11-01')`.
//!
//! An argument of a service's table is a condition on the column with its name, except `sort_by`, which selects one of the
//! service's sort orders by its value: rows are returned in it, and a LIMIT takes the first ones. Arguments are named, or
//! positional in the order of [`ARGUMENTS`]; all are optional.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_datafusion_err, plan_err};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::prelude::ident;
use datafusion::sql::sqlparser::ast::{FunctionArg, FunctionArgExpr, ObjectName, TableFactor, TableFunctionArgs};

use super::ApiTable;
#[cfg(feature = "store")]
use super::changes::{self, CHANGES, ChangesTable};
#[cfg(feature = "store")]
use super::past::{self, MENTIONS_AS_OF, PastTable};
use super::search::{self, SEARCH, SearchTable};
use crate::profile::{SortValue, TableKind};
use crate::pushdown::{ServiceOrder, order_named};

/// The arguments of the service's tables, in positional order; the last one is accepted by `mentions` only.
pub(crate) const ARGUMENTS: [&str; 4] = ["aid", "duration", "timezone", "sort_by"];

/// Plans table functions: calls of a service's table, of a search in its mentions, or of the changes of its store, in whichever
/// catalog the name resolves to.
#[derive(Debug)]
pub(crate) struct TableFunctions;

impl TableFunctions {
    pub(super) fn plan(table: ApiTable, given: Vec<(String, Expr)>) -> Result<LogicalPlanBuilder> {
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

/// Table that is called as a function.
enum Called {
    Service(Box<ApiTable>),
    Search(Box<SearchTable>),
    #[cfg(feature = "store")]
    Changes(ChangesTable),
    #[cfg(feature = "store")]
    Past(PastTable),
}

/// Resolves a name to a table of a service, a search in its mentions, or the changes of its store; `None` for other tables and for
/// the list, which takes no arguments.
fn provider_named(name: &ObjectName, context: &dyn RelationPlannerContext) -> Option<Called> {
    let reference = context.object_name_to_table_reference(name.clone()).ok()?;
    let source = context.context_provider().get_table_source(reference).ok()?;
    let provider = source_as_provider(&source).ok()?;
    if let Some(table) = provider.downcast_ref::<SearchTable>() {
        return Some(Called::Search(Box::new(table.clone())));
    }
    #[cfg(feature = "store")]
    if let Some(table) = provider.downcast_ref::<ChangesTable>() {
        return Some(Called::Changes(table.clone()));
    }
    #[cfg(feature = "store")]
    if let Some(table) = provider.downcast_ref::<PastTable>() {
        return Some(Called::Past(table.clone()));
    }
    let table = provider.downcast_ref::<ApiTable>().cloned()?;
    Some(table).filter(|table| table.spec().kind.is_search()).map(|table| Called::Service(Box::new(table)))
}

/// Returns the service's sort order with this value.
fn order(table: &ApiTable, value: &Expr) -> Result<ServiceOrder> {
    let profile = table.connection().profile();
    let named = match value {
        Expr::Literal(value, _) => value.try_as_str().flatten().and_then(|value| order_named(profile, value)),
        _ => None,
    };
    let order = named.ok_or_else(|| {
        let known: Vec<&str> = profile.sort.values.iter().map(|known| known.value.as_str()).collect();
        let found = match value {
            Expr::Literal(value, _) => value.to_string(),
            other => other.to_string(),
        };
        plan_datafusion_err!("sort_by must be one of {}, found {found}", known.join(", "))
    })?;
    let of_texts = |known: &&SortValue| known.value == order.value && !known.is_ours(&profile.tables.mentions);
    if let Some(SortValue { value, column, .. }) = profile.sort.values.iter().find(of_texts) {
        return plan_err!(
            "sort_by = '{value}' sorts by the text `{column}`, in an order that the profile does not state; use ORDER BY \
             {column}. Only if the service compares bytes, add collation = \"bytes\" to this value in [sort] of the profile"
        );
    }
    Ok(order)
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
        let plan = match provider_named(name, context) {
            Some(Called::Service(table)) => {
                let known = if table.spec().kind == TableKind::Mentions { &ARGUMENTS[..] } else { &ARGUMENTS[..3] };
                let given = arguments(&table.spec().name, known, args, context)?;
                Self::plan(*table, given)?.build()?
            }
            Some(Called::Search(table)) => table.called(arguments(SEARCH, &search::ARGUMENTS, args, context)?)?,
            #[cfg(feature = "store")]
            Some(Called::Changes(table)) => {
                let given = arguments(CHANGES, &changes::ARGUMENTS, args, context)?;
                let (table, filters) = table.called(given, context.context_provider().options())?;
                let source = provider_as_source(Arc::new(table));
                LogicalPlanBuilder::scan_with_filters(CHANGES, source, None, filters)?.build()?
            }
            #[cfg(feature = "store")]
            Some(Called::Past(table)) => {
                let given = arguments(MENTIONS_AS_OF, &past::ARGUMENTS, args, context)?;
                let table = table.called(given, context.context_provider().options())?;
                LogicalPlanBuilder::scan(MENTIONS_AS_OF, provider_as_source(Arc::new(table)), None)?.build()?
            }
            None => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

/// Returns the arguments of a call by name, as expressions.
fn arguments(
    function: &str,
    known: &[&str],
    args: &[FunctionArg],
    context: &mut dyn RelationPlannerContext,
) -> Result<Vec<(String, Expr)>> {
    let mut given: Vec<(String, Expr)> = Vec::new();
    for (at, argument) in args.iter().enumerate() {
        let (name, value) = match argument {
            FunctionArg::Named { name, arg, .. } => (Some(context.normalize_ident(name.clone())), arg),
            FunctionArg::Unnamed(arg) if given.len() == at && at < known.len() => (Some(known[at].to_owned()), arg),
            _ => (None, argument_value(argument)),
        };
        let name = name.filter(|name| known.contains(&name.as_str()) && given.iter().all(|(other, _)| other != name));
        let (Some(name), FunctionArgExpr::Expr(value)) = (name, value) else {
            return plan_err!(
                "{function} accepts {}, each at most once and named as in {} => '…'; found `{argument}`",
                known.join(", "),
                known[0]
            );
        };
        given.push((name, context.sql_to_expr(value.clone(), &DFSchema::empty())?));
    }
    Ok(given)
}

fn argument_value(argument: &FunctionArg) -> &FunctionArgExpr {
    match argument {
        FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg) => arg,
    }
}

/// Returns a parameter as one of texts, unless the client declares its type.
pub(super) fn as_text(Placeholder { id, field }: Placeholder) -> Expr {
    let field = field.unwrap_or_else(|| Arc::new(Field::new(&id, DataType::Utf8, true)));
    Expr::Placeholder(Placeholder::new_with_field(id, Some(field)))
}

/// Returns the value as a string; numbers become the digits they are written with.
fn text(name: &str, value: Expr) -> Result<Expr> {
    match value {
        Expr::Literal(value, _) if value.is_null() => plan_err!("{name} must not be NULL"),
        Expr::Literal(value @ (ScalarValue::Int64(_) | ScalarValue::UInt64(_)), metadata) => {
            Ok(Expr::Literal(ScalarValue::from(value.to_string()), metadata))
        }
        Expr::Placeholder(parameter) => Ok(as_text(parameter)),
        value => Ok(value),
    }
}
