//! Aggregates that keep many of their values, with accumulators that ask for memory before they grow.
//!
//! Operators register the memory of an accumulator in the pool after a batch, when it has been allocated. A string or a list doubles
//! while it grows, and a result is a copy of it. So an accumulator asks for as much as it holds, and as much as a batch has, before
//! each batch and before its result.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, Expr, GroupsAccumulator, Operator,
    ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs,
};

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
    fn name(&self) -> &str {
        self.function().name()
    }

    fn aliases(&self) -> &[String] {
        self.function().aliases()
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.function().schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.function().human_display(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.function().window_function_schema_name(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.function().display_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.function().window_function_display_name(params)
    }

    fn signature(&self) -> &Signature {
        self.function().signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.function().return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        self.function().return_field(fields)
    }

    fn is_nullable(&self) -> bool {
        self.function().is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(AskingAccumulator(self.function().accumulator(args)?)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.function().state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.function().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(AskingGroups(self.function().create_groups_accumulator(args)?)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(AskingAccumulator(self.function().create_sliding_accumulator(args)?)))
    }

    fn with_beneficial_ordering(self: Arc<Self>, ordering: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let ordered = Arc::clone(self.function()).with_beneficial_ordering(ordering)?;
        Ok(ordered.map(|ordered| Arc::new(Self(AggregateUDF::new_from_shared_impl(ordered))) as _))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.function().order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.function().simplify()
    }

    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        literal: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        self.function().simplify_expr_op_literal(function, arg, op, literal, arg_is_left)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.function().reverse_expr() {
            ReversedUDAF::Reversed(function) => ReversedUDAF::Reversed(Arc::new(asking(&function))),
            other => other,
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.function().coerce_types(types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.function().is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        self.function().value_from_stats(args)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.function().default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.function().supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.function().supports_within_group_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function().documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.function().set_monotonicity(data_type)
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
