//! `max` and `min`, which replace the engine's functions of these names in a session.
//!
//! With GROUP BY, the engine's largest number begins at the smallest finite one, and its smallest number at the largest finite one:
//! the largest of `-Infinity` is `-1.8e308`, and the smallest of `Infinity` is `1.8e308`. NaN replaces any number, and any number
//! replaces NaN. Here, groups compare the ranks of numbers, which are integers: NaN is the greatest number, as it is without GROUP BY.
//! Other types stay as they are.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type, Int32Type, Int64Type};
use datafusion::common::{Result, internal_err};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator};

use super::wrapper::{wrapped_aggregate_methods, wrapped_order_methods};

/// Both functions: `max`, then `min`.
pub(crate) fn float_extremes() -> [Arc<AggregateUDF>; 2] {
    static FUNCTIONS: LazyLock<[Arc<AggregateUDF>; 2]> =
        LazyLock::new(|| [max_udaf(), min_udaf()].map(|function| Arc::new(extreme(&function))));
    FUNCTIONS.clone()
}

fn extreme(function: &AggregateUDF) -> AggregateUDF {
    AggregateUDF::new_from_impl(Extreme(function.clone()))
}

/// The engine's function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme(AggregateUDF);

impl Extreme {
    fn function(&self) -> &Arc<dyn AggregateUDFImpl> {
        self.0.inner()
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl AggregateUDFImpl for Extreme {
    wrapped_aggregate_methods!();
    wrapped_order_methods!(extreme);

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        // Rare enough for one accumulator for each group.
        *args.return_field.data_type() != DataType::Float16 && self.function().groups_accumulator_supported(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.function().accumulator(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let of_ranks = match args.return_field.data_type() {
            DataType::Float32 => DataType::Int32,
            DataType::Float64 => DataType::Int64,
            _ => return self.function().create_groups_accumulator(args),
        };
        let return_field = Arc::new(args.return_field.as_ref().clone().with_data_type(of_ranks));
        let of_ranks = self.function().create_groups_accumulator(AccumulatorArgs { return_field, ..args })?;
        Ok(Box::new(OfRanks(of_ranks)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.function().create_sliding_accumulator(args)
    }
}

/// An accumulator of the ranks of numbers.
struct OfRanks(Box<dyn GroupsAccumulator>);

impl GroupsAccumulator for OfRanks {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.0.update_batch(&each(values, ranks)?, groups, filter, total)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        numbers(&self.0.evaluate(emit)?)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        each(&self.0.state(emit)?, numbers)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.0.merge_batch(&each(states, ranks)?, groups, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        each(&self.0.convert_to_state(&each(values, ranks)?, filter)?, numbers)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }
}

fn each(arrays: &[ArrayRef], of: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<Vec<ArrayRef>> {
    arrays.iter().map(of).collect()
}

/// Integers with the order of numbers, in which NaN is the greatest one.
fn ranks(numbers: &ArrayRef) -> Result<ArrayRef> {
    Ok(match numbers.data_type() {
        DataType::Float32 => Arc::new(
            numbers
                .as_primitive::<Float32Type>()
                .unary::<_, Int32Type>(|number| flipped32(number.to_bits().cast_signed())),
        ),
        DataType::Float64 => Arc::new(
            numbers
                .as_primitive::<Float64Type>()
                .unary::<_, Int64Type>(|number| flipped64(number.to_bits().cast_signed())),
        ),
        other => return internal_err!("ranks are those of floating-point numbers, not of {other}"),
    })
}

/// The numbers of ranks.
fn numbers(ranks: &ArrayRef) -> Result<ArrayRef> {
    Ok(match ranks.data_type() {
        DataType::Int32 => Arc::new(
            ranks
                .as_primitive::<Int32Type>()
                .unary::<_, Float32Type>(|rank| f32::from_bits(flipped32(rank).cast_unsigned())),
        ),
        DataType::Int64 => Arc::new(
            ranks
                .as_primitive::<Int64Type>()
                .unary::<_, Float64Type>(|rank| f64::from_bits(flipped64(rank).cast_unsigned())),
        ),
        other => return internal_err!("ranks are integers, not {other}"),
    })
}

/// The bits of a number as its rank, or back: negative numbers are stored by their size.
fn flipped64(bits: i64) -> i64 {
    bits ^ ((bits >> 63) & i64::MAX)
}

/// As [`flipped64`].
fn flipped32(bits: i32) -> i32 {
    bits ^ ((bits >> 31) & i32::MAX)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, Float32Array, Float64Array};

    use super::*;

    #[test]
    fn ranks_have_the_order_of_numbers_and_become_them_again() {
        let doubles = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -f64::MIN_POSITIVE,
            0.0,
            1e-300,
            1.5,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        let reals = [f32::NEG_INFINITY, f32::MIN, -1.5, 0.0, 1e-30, f32::MAX, f32::INFINITY, f32::NAN];
        let doubles: ArrayRef = Arc::new(Float64Array::from_iter_values(doubles));
        let reals: ArrayRef = Arc::new(Float32Array::from_iter_values(reals));
        let (of_doubles, of_reals) = (ranks(&doubles).expect("ranks"), ranks(&reals).expect("ranks"));
        assert!(of_doubles.as_primitive::<Int64Type>().values().is_sorted_by(|a, b| a < b));
        assert!(of_reals.as_primitive::<Int32Type>().values().is_sorted_by(|a, b| a < b));
        assert_eq!(&numbers(&of_doubles).expect("numbers"), &doubles);
        assert_eq!(&numbers(&of_reals).expect("numbers"), &reals);
        let missing: ArrayRef = Arc::new(Float64Array::from(vec![None, Some(1.0)]));
        assert!(ranks(&missing).expect("ranks").is_null(0));
    }
}
