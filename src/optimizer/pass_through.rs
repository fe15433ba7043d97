//! Shared implementation of plan nodes that pass rows on.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter_pushdown::{ChildFilterDescription, FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// Behaviour of a node that passes rows on.
pub(crate) trait Pass: Clone + fmt::Debug + Send + Sync + 'static {
    /// Name of the node in plans.
    const NAME: &'static str;
    /// Set if the node reports the sort order of its input.
    const KEEPS_ORDER: bool;

    /// Returns the properties that the node reports.
    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties>;

    /// Returns the order that the input must have.
    fn required_order(&self) -> Option<OrderingRequirements> {
        None
    }

    /// Returns the distribution that the input must have.
    fn required_distribution(&self) -> Distribution {
        Distribution::UnspecifiedDistribution
    }

    /// Returns whether filters on a column of this name may pass the node.
    fn accepts(&self, _column: &str) -> bool {
        true
    }

    /// Returns the effect on the number of rows. The engine moves limits below nodes with the effect `Equal`. The default keeps
    /// limits above the node.
    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Unknown
    }

    /// Prepares the execution of a partition.
    ///
    /// # Errors
    /// Those of the node, if it must not be executed.
    fn begin(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the rows of a partition.
    fn rows(&self, input: SendableRecordBatchStream, context: &TaskContext) -> SendableRecordBatchStream;
}

/// A node that passes rows on.
#[derive(Debug)]
pub(crate) struct PassThroughExec<P> {
    input: Arc<dyn ExecutionPlan>,
    pass: P,
    properties: Arc<PlanProperties>,
}

impl<P> PassThroughExec<P> {
    /// Returns the node's operation on its rows.
    #[cfg(feature = "distributed")]
    pub(crate) fn pass(&self) -> &P {
        &self.pass
    }
}

impl<P: Pass> PassThroughExec<P> {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, pass: P) -> Self {
        let properties = pass.properties(input.as_ref());
        Self { input, pass, properties }
    }

    /// Returns the node below.
    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }
}

impl<P: Pass> DisplayAs for PassThroughExec<P> {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(P::NAME)
    }
}

impl<P: Pass> ExecutionPlan for PassThroughExec<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(input, self.pass.clone()))),
            _ => internal_err!("{} has one child", P::NAME),
        }
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.pass.required_order()]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![self.pass.required_distribution()]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![P::KEEPS_ORDER]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.pass.cardinality_effect()
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        // The engine looks columns up by name: one that is not the first of its name would become another.
        let schema = self.input.schema();
        let fields = schema.fields().iter().enumerate();
        let passing = fields.filter(|(index, field)| {
            self.pass.accepts(field.name()) && schema.index_of(field.name()).is_ok_and(|first| first == *index)
        });
        let passing = passing.map(|(index, _)| index).collect();
        let child = ChildFilterDescription::from_child_with_allowed_indices(&parent_filters, passing, &self.input)?;
        Ok(FilterDescription::new().with_child(child))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.pass.begin()?;
        let input = self.input.execute(partition, Arc::clone(&context))?;
        Ok(self.pass.rows(input, &context))
    }
}
