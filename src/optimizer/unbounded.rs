//! Refuses joins that compare the time of mentions with what they know, while the default window is read.
//!
//! `… JOIN p ON m.published_at >= p.start` says when, and only the join can tell: the scan would read the profile's
//! default window, and what lies outside would be missing without a word. Comparisons of the times of two such scans
//! are another matter, since both have that window.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::error::{Error, ErrorKind, Place};
use crate::table::ApiTable;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct RefuseUnbounded;

impl OptimizerRule for RefuseUnbounded {
    fn name(&self) -> &'static str {
        "savedsearch_unbounded"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(Join { left, right, on, filter, .. }) = &plan else { return Ok(Transformed::no(plan)) };
        let mut times = times_of(left, config);
        times.extend(times_of(right, config));
        let pairs = on.iter().map(|(left, right)| vec![left, right]);
        let conditions = pairs.chain(filter.iter().flat_map(split_conjunction).map(|conjunct| vec![conjunct]));
        for sides in conditions {
            let columns = || sides.iter().flat_map(|side: &&Expr| side.column_refs());
            let time = columns().find_map(|column| times.iter().find(|(time, _)| time == column));
            let all = columns().all(|column| times.iter().any(|(time, _)| time == column));
            if let Some((Column { name, .. }, table)) = time.filter(|_| !all) {
                let message =
                    format!("a join compares `{name}` with what it knows, and nothing bounds the time to read");
                let place = Place { table: Some((*table).to_owned()), ..Place::default() };
                return Err(Error::new(ErrorKind::Query, message)
                    .advice(format!("add {name} >= … with a literal or a subquery, or duration = '…'"))
                    .at(place)
                    .into());
            }
        }
        Ok(Transformed::no(plan))
    }
}

/// The columns of a plan that are the times of scans which read the default window, with their tables.
fn times_of(plan: &LogicalPlan, config: &dyn OptimizerConfig) -> Vec<(Column, &'static str)> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let Ok(provider) = source_as_provider(&scan.source) else { return Vec::new() };
            let Some(table) = provider.downcast_ref::<ApiTable>() else { return Vec::new() };
            let time = table.table().spec(table.connection().profile()).time.clone();
            let default =
                table.plan(&config.options(), &scan.filters).is_ok_and(|plan| plan.default_window || plan.is_open());
            let time = time.filter(|_| default).map(|time| Column::new(Some(scan.table_name.clone()), time));
            time.map(|time| (time, table.table().name())).into_iter().collect()
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let of = |(time, table): (Column, _)| (Column::new(Some(alias.alias.clone()), time.name), table);
            times_of(&alias.input, config).into_iter().map(of).collect()
        }
        LogicalPlan::Projection(projection) => {
            let times = times_of(&projection.input, config);
            let outputs = projection.expr.iter().zip(projection.schema.iter());
            let passed = outputs.filter_map(|(expr, field)| {
                let from = match expr {
                    Expr::Alias(alias) => alias.expr.as_ref(),
                    expr => expr,
                };
                let Expr::Column(column) = from else { return None };
                let (_, table) = times.iter().find(|(time, _)| time == column)?;
                Some((Column::from(field), *table))
            });
            passed.collect()
        }
        LogicalPlan::Filter(_) | LogicalPlan::Join(_) | LogicalPlan::Sort(_) => {
            plan.inputs().into_iter().flat_map(|input| times_of(input, config)).collect()
        }
        _ => Vec::new(),
    }
}
