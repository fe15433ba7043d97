//! A line of EXPLAIN for each defect of the engine that a statement would meet, below its logical plan.
//!
//! A rule of analysis that changed the plan computes something other than the engine alone would. [`WORKAROUNDS`] has what that is.

use std::sync::Arc;

use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::logical_expr::{Explain, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;

use crate::engine_defects::{WORKAROUNDS, Workaround};

/// The physical plan of a statement, with those lines if the statement is EXPLAIN.
pub(super) fn with_defects(plan: &LogicalPlan, physical: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let (LogicalPlan::Explain(explain), Some(shown)) = (plan, physical.downcast_ref::<ExplainExec>()) else {
        return physical;
    };
    let notes: String = met(explain).map(|met| format!("\nnote: {} ({})", met.note, met.rule)).collect();
    if notes.is_empty() {
        return physical;
    }
    let plans = shown.stringified_plans().iter().map(|plan| match plan.plan_type {
        PlanType::FinalLogicalPlan => {
            StringifiedPlan::new(PlanType::FinalLogicalPlan, format!("{}{notes}", plan.plan.trim_end()))
        }
        _ => plan.clone(),
    });
    Arc::new(ExplainExec::new(shown.schema(), plans.collect(), shown.verbose()))
}

/// The workarounds of those rules that changed the plan.
fn met(explain: &Explain) -> impl Iterator<Item = &'static Workaround> {
    let plans = &explain.stringified_plans;
    let changed = plans.iter().zip(plans.iter().skip(1)).filter_map(|(before, after)| match &after.plan_type {
        PlanType::AnalyzedLogicalPlan { analyzer_name } if before.plan != after.plan => Some(analyzer_name.clone()),
        _ => None,
    });
    let changed: Vec<String> = changed.collect();
    WORKAROUNDS.iter().filter(move |workaround| changed.iter().any(|rule| rule == workaround.rule))
}
