//! Encoding of this crate's operators in the stages that workers receive. Scans of the service cannot be encoded: they run
//! on the server.

use std::sync::Arc;

use datafusion::common::{Result, exec_err, not_impl_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use serde::{Deserialize, Serialize};

use crate::optimizer::{
    hides_order_of_results, hides_properties, is_read_once, is_whole_input, read_once, whole_input,
    without_order_of_results, without_properties,
};
use crate::session::{BoundedInput, bounded_input, bounds_of};

/// An operator with one input.
#[derive(Debug, Serialize, Deserialize)]
enum Operator {
    /// Reports neither order nor constants.
    WithoutProperties,
    /// Reports no order of the results of window functions.
    WithoutOrderOfResults,
    /// Can be executed once.
    ReadOnce,
    /// Makes one batch of all.
    WholeInput,
    /// Limits what the operator above repeats.
    Bounded(BoundedInput),
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct OperatorCodec;

impl PhysicalExtensionCodec for OperatorCodec {
    fn try_decode(
        &self,
        encoded: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        _context: &TaskContext,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = inputs else { return exec_err!("an operator with {} inputs", inputs.len()) };
        match serde_json::from_slice(encoded) {
            Ok(Operator::WithoutProperties) => Ok(without_properties(Arc::clone(input))),
            Ok(Operator::WithoutOrderOfResults) => Ok(without_order_of_results(Arc::clone(input))),
            Ok(Operator::ReadOnce) => Ok(read_once(Arc::clone(input))),
            Ok(Operator::WholeInput) => Ok(whole_input(Arc::clone(input))),
            Ok(Operator::Bounded(bounds)) => Ok(bounded_input(Arc::clone(input), bounds)),
            Err(error) => exec_err!("unknown operator: {error}"),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        encoded: &mut Vec<u8>,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let operator = match bounds_of(node.as_ref()) {
            Some(bounds) => Operator::Bounded(bounds),
            None if hides_properties(node.as_ref()) => Operator::WithoutProperties,
            None if hides_order_of_results(node.as_ref()) => Operator::WithoutOrderOfResults,
            None if is_read_once(node.as_ref()) => Operator::ReadOnce,
            None if is_whole_input(node.as_ref()) => Operator::WholeInput,
            None => return not_impl_err!("{} runs on the server only", node.name()),
        };
        match serde_json::to_writer(encoded, &operator) {
            Ok(()) => Ok(()),
            Err(error) => exec_err!("{error}"),
        }
    }
}
