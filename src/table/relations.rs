//! Relations of FROM in the form that the engine should see: tables in the time zone of the session, and without a key if
//! the key would mislead the planner.

use std::sync::{Arc, LazyLock};

use datafusion::common::Result;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::{Ident, TableFactor, TableSample, TableSampleKind, TableSampleModifier};

use super::session_zone::in_zone;
use super::unnested_keys::without_unnested_keys;
use crate::config::SessionSettings;

/// Plans tables, table functions, views and subqueries. The engine plans them; this changes the result. A session must not have
/// two of them: each would hand the relation to the other without end.
#[derive(Debug)]
pub(crate) struct Relations;

/// The planner of all sessions. It is recognized by its address, since a planner has no type at run time.
static PLANNER: LazyLock<Arc<dyn RelationPlanner>> = LazyLock::new(|| Arc::new(Relations));

impl Relations {
    /// The planner of all sessions.
    pub(crate) fn planner() -> Arc<dyn RelationPlanner> {
        Arc::clone(&PLANNER)
    }

    /// True if these planners contain this one.
    pub(crate) fn is_among(planners: &[Arc<dyn RelationPlanner>]) -> bool {
        let own = Arc::as_ptr(&Self::planner()).addr();
        planners.iter().any(|planner| Arc::as_ptr(planner).addr() == own)
    }
}

/// Marks a relation that is being planned. The engine ignores partitions of tables, and samples of subqueries.
const MARK: &str = "planned by relations";

impl RelationPlanner for Relations {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let alias = match &mut relation {
            TableFactor::Table { partitions, alias, .. } => {
                if partitions.iter().any(|mark| mark.value == MARK) {
                    partitions.retain(|mark| mark.value != MARK);
                    return Ok(RelationPlanning::Original(Box::new(relation)));
                }
                partitions.push(Ident::new(MARK));
                alias.take()
            }
            TableFactor::Derived { sample, alias, .. } => {
                if sample.as_ref().is_some_and(is_mark) {
                    *sample = None;
                    return Ok(RelationPlanning::Original(Box::new(relation)));
                }
                if sample.is_some() {
                    return Ok(RelationPlanning::Original(Box::new(relation)));
                }
                *sample = Some(mark());
                alias.take()
            }
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        let mut plan = without_unnested_keys(context.plan(relation)?)?;
        let zone = SessionSettings::zone(context.context_provider().options());
        if !zone.is_empty() && zone != "UTC" {
            plan = in_zone(plan, &zone.into())?;
        }
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

fn mark() -> TableSampleKind {
    TableSampleKind::AfterTableAlias(Box::new(TableSample {
        modifier: TableSampleModifier::Sample,
        name: None,
        quantity: None,
        seed: None,
        bucket: None,
        offset: None,
    }))
}

/// True for a sample that no statement can have: one without a size.
fn is_mark(sample: &TableSampleKind) -> bool {
    *sample == mark()
}
