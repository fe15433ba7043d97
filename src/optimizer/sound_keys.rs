//! Keys of joins by `IS NOT DISTINCT FROM`, kept apart from keys by `=`.
//!
//! A join of the engine has one meaning of NULL for all its keys. Two of its rules make keys of further equalities, such as
//! `a.y = b.y` of WHERE, for a join whose keys match NULL with NULL: rows that have NULL for `y` then match as well. These
//! equalities stay conditions of the join here.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// A rule of the engine that does not see joins whose keys match NULL. See the module's documentation.
#[derive(Debug)]
pub(super) struct SoundKeys {
    inner: Rule,
}

impl SoundKeys {
    /// Names of the rules that make keys of equalities.
    pub(super) const INNER: [&str; 2] = ["extract_equijoin_predicate", "eliminate_cross_join"];

    /// Wraps a rule.
    pub(super) fn over(inner: Rule) -> Self {
        Self { inner }
    }
}

impl OptimizerRule for SoundKeys {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        // A rule without an order visits all of the plan itself.
        let found = match self.inner.apply_order() {
            Some(_) => matches_null(&plan),
            None => plan.exists(|node| Ok(matches_null(node)))?,
        };
        if found { Ok(Transformed::no(plan)) } else { self.inner.rewrite(plan, config) }
    }
}

/// True for a join whose keys match NULL with NULL.
fn matches_null(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty())
}
