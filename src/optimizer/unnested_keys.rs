//! Hides the keys of tables from plans that unnest arrays, for the engine's optimizer; [`Relations`](crate::table::Relations) hides
//! them from its planner.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;

use crate::table::without_unnested_keys;

/// Rule for plans with an unnest. See the module's documentation.
#[derive(Debug)]
pub(super) struct UnnestedKeys;

impl AnalyzerRule for UnnestedKeys {
    fn name(&self) -> &str {
        "unnested_keys"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        without_unnested_keys(plan)
    }
}
