//! `percentile_cont`, which replaces the engine's function of this name in a session.
//!
//! The value between two neighbours is `low + (high - low) * fraction`. The engine cuts the fraction after six digits: the 0.9
//! percentile of 1 to 10 is 9.099999. The functions that collect the values are those of the engine. Its accumulator merges only the
//! first of several states, which those of a group are if its rows come from several partitions.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::percentile_cont::percentile_cont_udaf;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator};
use datafusion::physical_expr::expressions::Literal;

use super::wrapper::{wrapped_aggregate_methods, wrapped_order_methods};

pub(super) fn percentile_cont() -> Arc<AggregateUDF> {
    Arc::new(percentile(&percentile_cont_udaf()))
}

fn percentile(function: &AggregateUDF) -> AggregateUDF {
    AggregateUDF::new_from_impl(Percentile(function.clone()))
}

/// The engine's function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Percentile(AggregateUDF);

impl Percentile {
    fn function(&self) -> &Arc<dyn AggregateUDFImpl> {
        self.0.inner()
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl AggregateUDFImpl for Percentile {
    wrapped_aggregate_methods!();
    wrapped_order_methods!(percentile);

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        false
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (at, to) = (place_of(&args), args.return_field.data_type().clone());
        let values = self.function().accumulator(args)?;
        Ok(match at {
            Some(at) => Box::new(Interpolated { values, at, to }),
            None => values,
        })
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.function().create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.accumulator(args)
    }
}

/// The percentile, from 0 to 1 in ascending order; `None` for values without a type, which are all NULL.
fn place_of(args: &AccumulatorArgs) -> Option<f64> {
    if args.expr_fields.first()?.data_type().is_null() {
        return None;
    }
    let ScalarValue::Float64(Some(at)) =
        args.exprs.get(1)?.downcast_ref::<Literal>()?.value().cast_to(&DataType::Float64).ok()?
    else {
        return None;
    };
    let descending = args.order_bys.first().is_some_and(|sort| sort.options.descending);
    Some(if descending { 1.0 - at } else { at })
}

/// The engine's accumulator, whose state is the list of its values.
#[derive(Debug)]
struct Interpolated {
    values: Box<dyn Accumulator>,
    at: f64,
    to: DataType,
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl Accumulator for Interpolated {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.values.state()?;
        let lists = state.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
        let mut numbers: Vec<f64> = Vec::new();
        for list in lists.iter().filter_map(|list| list.as_list_opt::<i32>()) {
            let items = cast(list.values(), &DataType::Float64)?;
            numbers.extend(items.as_primitive::<Float64Type>().iter().flatten());
        }
        // The state was moved out of the accumulator, which a window asks again.
        self.values.merge_batch(&lists)?;
        ScalarValue::Float64(interpolated(&mut numbers, self.at)).cast_to(&self.to)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.values.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        // One state at a time: the engine's accumulator merges only the first one of a batch.
        let length = states.first().map_or(0, |states| states.len());
        (0..length).try_for_each(|row| {
            let state: Vec<ArrayRef> = states.iter().map(|states| states.slice(row, 1)).collect();
            self.values.merge_batch(&state)
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.values.supports_retract_batch()
    }
}

/// The value at a place from 0 to 1 among the sorted numbers.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places in memory"
)]
fn interpolated(numbers: &mut [f64], at: f64) -> Option<f64> {
    let row = at * (numbers.len().checked_sub(1)? as f64);
    let (below, above) = (row.floor() as usize, row.ceil() as usize);
    let (_, low, rest) = numbers.select_nth_unstable_by(below, f64::total_cmp);
    let low = *low;
    if below == above {
        return Some(low);
    }
    let high = rest.iter().copied().min_by(f64::total_cmp)?;
    Some(low + (high - low) * (row - row.floor()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn values_lie_between_their_neighbours() {
        let ten = || (1..=10).map(f64::from).rev().collect::<Vec<_>>();
        each([(0.0, 1.0), (0.9, 9.1), (0.5, 5.5), (1.0, 10.0), (0.25, 3.25)], |(at, value)| {
            assert_eq!(interpolated(&mut ten(), at), Some(value), "{at}");
        });
        assert_eq!(interpolated(&mut [], 0.5), None);
        assert_eq!(interpolated(&mut [3.0], 0.7), Some(3.0));
    }
}
