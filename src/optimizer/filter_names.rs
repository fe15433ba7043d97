//! Keeps filters from moving to another column of the same name.
//!
//! The engine's physical filter pushdown finds the columns of a filter by name in the input of a node. If the output of a
//! projection, or the input of any other node, has two columns of one name, the filter may be applied to the wrong one:
//! `SELECT s.aid, s.kind FROM mentions m RIGHT JOIN saved_searches s … WHERE m.aid IS NULL` then has no rows. While that
//! rule runs, a node above each such place accepts only filters on columns with unique names.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};

use super::pass_through::{Pass, PassThroughExec};

/// The engine's filter pushdown, between the insertion and the removal of those nodes.
#[derive(Debug)]
pub(super) struct FilterNames {
    inner: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl FilterNames {
    /// Name of the engine's rule, in both of its phases.
    pub(super) const INNER: &'static str = "FilterPushdown";

    /// Wraps the engine's rule.
    pub(super) fn over(inner: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { inner }
    }
}

impl PhysicalOptimizerRule for FilterNames {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let guarded = plan.transform_up(|node| {
            let shared = shared_names(node.as_ref());
            if shared.is_empty() {
                return Ok(Transformed::no(node));
            }
            Ok(Transformed::yes(Arc::new(PassThroughExec::new(node, OwnNames { shared: Arc::new(shared) }))))
        })?;
        if !guarded.transformed {
            return self.inner.optimize(guarded.data, config);
        }
        let optimized = self.inner.optimize(guarded.data, config)?;
        optimized
            .transform_up(|node| match node.downcast_ref::<PassThroughExec<OwnNames>>() {
                Some(pass) => Ok(Transformed::yes(Arc::clone(pass.input()))),
                None => Ok(Transformed::no(node)),
            })
            .data()
    }
}

/// Names by which the engine could find another column than that of the filter, when a filter passes this node.
fn shared_names(node: &dyn ExecutionPlan) -> HashSet<String> {
    let mut shared = HashSet::new();
    if node.downcast_ref::<ProjectionExec>().is_some() {
        repeated(&node.schema(), &mut shared);
        return shared;
    }
    for input in node.children() {
        repeated(&input.schema(), &mut shared);
    }
    if node.downcast_ref::<UnionExec>().is_some() {
        // Inputs may call their columns differently.
        let own = node.schema();
        for input in node.children() {
            let other = input.schema();
            let names = own.fields().iter().zip(other.fields()).map(|(own, other)| (own.name(), other.name()));
            shared.extend(names.filter(|(own, other)| own != other).map(|(own, _)| own.clone()));
        }
    }
    shared
}

fn repeated(schema: &Schema, into: &mut HashSet<String>) {
    let mut seen = HashSet::new();
    into.extend(schema.fields().iter().filter(|field| !seen.insert(field.name())).map(|field| field.name().clone()));
}

/// Accepts filters on columns whose name is not shared.
#[derive(Debug, Clone)]
struct OwnNames {
    shared: Arc<HashSet<String>>,
}

impl Pass for OwnNames {
    const NAME: &'static str = "OwnNamesExec";
    const KEEPS_ORDER: bool = true;

    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        Arc::clone(input.properties())
    }

    fn accepts(&self, column: &str) -> bool {
        !self.shared.contains(column)
    }

    fn rows(&self, input: SendableRecordBatchStream, _context: &TaskContext) -> SendableRecordBatchStream {
        input
    }
}
