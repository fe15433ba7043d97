//! Aggregates that keep many of their values, with accumulators that ask for memory before they grow.
//!
//! Operators register the memory of an accumulator in the pool after a batch, when it has been allocated. A string or a list doubles
//! while it grows, and a result is a copy of it. So an accumulator asks for as much as it holds, and as much as a batch has, before
//! each batch and before its result.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator};

use crate::functions::{wrapped_aggregate_methods, wrapped_order_methods};
use crate::memory::{self, Room};

/// The function with accumulators that ask for memory.
pub(super) fn asking(function: &AggregateUDF) -> AggregateUDF {
    AggregateUDF::new_from_impl(Asking(function.clone()))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Asking(AggregateUDF);

impl Asking {
    fn function(&self) -> &Arc<dyn AggregateUDFImpl> {
        self.0.inner()
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl AggregateUDFImpl for Asking {
    wrapped_aggregate_methods!();
    wrapped_order_methods!(asking);

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.function().groups_accumulator_supported(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(AskingAccumulator(self.function().accumulator(args)?)))
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(AskingGroups(self.function().create_groups_accumulator(args)?)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(AskingAccumulator(self.function().create_sliding_accumulator(args)?)))
    }
}

/// Asks for as much as an accumulator holds, and as much as arrays hold.
fn room(held: usize, arrays: &[ArrayRef]) -> Result<Room> {
    let added: usize = arrays.iter().map(|array| array.get_buffer_memory_size()).sum();
    Ok(memory::room(held.saturating_add(added) as u64)?)
}

#[derive(Debug)]
struct AskingAccumulator(Box<dyn Accumulator>);

#[warn(clippy::missing_trait_methods)]
impl Accumulator for AskingAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let _room = room(self.0.size(), values)?;
        self.0.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let _room = room(self.0.size(), &[])?;
        self.0.evaluate()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let _room = room(self.0.size(), &[])?;
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let _room = room(self.0.size(), states)?;
        self.0.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }
}

struct AskingGroups(Box<dyn GroupsAccumulator>);

#[warn(clippy::missing_trait_methods)]
impl GroupsAccumulator for AskingGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let _room = room(self.0.size(), values)?;
        self.0.update_batch(values, groups, filter, total)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let _room = room(self.0.size(), &[])?;
        self.0.evaluate(emit)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let _room = room(self.0.size(), &[])?;
        self.0.state(emit)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        let _room = room(self.0.size(), states)?;
        self.0.merge_batch(states, groups, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let _room = room(self.0.size(), values)?;
        self.0.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}
