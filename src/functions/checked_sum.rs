//! `sum` with an error for sums that do not fit their type. The engine's wraps around.
//!
//! It has the same name as the engine's `sum`, and replaces it in a session. Sums of floating-point numbers are the engine's
//! own.

use std::any::type_name;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowNumericType, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{nullif, sum_checked};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, FieldRef, Int64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, TimeUnit, UInt64Type,
};
use arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

use super::checked_arithmetic::overflow;
use super::moving;
use super::precise::check_digits;

/// The function `sum`.
pub(crate) fn sum_udaf() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::new_from_impl(CheckedSum(Sum::new()))));
    Arc::clone(&FUNCTION)
}

/// Calls a macro with the type of a sum that is checked; `$other` is the value for other types.
macro_rules! with_type_of_sum {
    ($data_type:expr, $with:ident, $other:expr) => {
        match $data_type {
            DataType::Int64 => $with!(Int64Type),
            DataType::UInt64 => $with!(UInt64Type),
            DataType::Decimal32(..) => $with!(Decimal32Type),
            DataType::Decimal64(..) => $with!(Decimal64Type),
            DataType::Decimal128(..) => $with!(Decimal128Type),
            DataType::Decimal256(..) => $with!(Decimal256Type),
            DataType::Duration(TimeUnit::Second) => $with!(DurationSecondType),
            DataType::Duration(TimeUnit::Millisecond) => $with!(DurationMillisecondType),
            DataType::Duration(TimeUnit::Microsecond) => $with!(DurationMicrosecondType),
            DataType::Duration(TimeUnit::Nanosecond) => $with!(DurationNanosecondType),
            DataType::Interval(IntervalUnit::YearMonth) => $with!(IntervalYearMonthType),
            DataType::Interval(IntervalUnit::DayTime) => $with!(IntervalDayTimeType),
            DataType::Interval(IntervalUnit::MonthDayNano) => $with!(IntervalMonthDayNanoType),
            _ => $other,
        }
    };
}

/// The engine's function with accumulators that check.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum(Sum);

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_field.data_type().clone();
        if args.is_distinct {
            macro_rules! distinct {
                ($type:ty) => {
                    Box::new(Distinct::<$type> { inner: self.0.accumulator(args)?, of: of::<$type>(&data_type) })
                };
            }
            return Ok(with_type_of_sum!(data_type, distinct, self.0.accumulator(args)?));
        }
        macro_rules! running {
            ($type:ty) => {
                Box::new(Running::<$type>::new(&data_type))
            };
        }
        Ok(with_type_of_sum!(data_type, running, self.0.accumulator(args)?))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let data_type = args.return_field.data_type().clone();
        macro_rules! groups {
            ($type:ty) => {
                Box::new(Groups::<$type> { sums: Vec::new(), seen: Vec::new(), of: of::<$type>(&data_type) })
            };
        }
        Ok(with_type_of_sum!(data_type, groups, self.0.create_groups_accumulator(args)?))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_field.data_type().clone();
        match (args.is_distinct, &data_type) {
            (true, DataType::Int64) => return Ok(Box::new(SlidingDistinct::default())),
            (true, _) => return self.0.create_sliding_accumulator(args),
            (false, _) => {}
        }
        macro_rules! running {
            ($type:ty) => {
                Box::new(Running::<$type>::new(&data_type))
            };
        }
        // Sums of floating-point numbers.
        Ok(with_type_of_sum!(data_type, running, moving::sliding(Arc::new(Sum::new()), args)?))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.0.set_monotonicity(data_type)
    }

    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        self.0.value_from_stats(args)
    }
}

/// Type of a sum; decimals have a precision and a scale beside their native type.
struct Of<T: ArrowNumericType> {
    data_type: DataType,
    native: PhantomData<fn() -> T>,
}

fn of<T: ArrowNumericType>(data_type: &DataType) -> Of<T> {
    Of { data_type: data_type.clone(), native: PhantomData }
}

impl<T: ArrowNumericType> Of<T> {
    fn added(&self, sum: T::Native, value: T::Native) -> Result<T::Native> {
        sum.add_checked(value).map_err(|error| too_large(&error))
    }

    /// The sum of an array; `None` without values.
    fn total(&self, values: &ArrayRef) -> Result<Option<T::Native>> {
        sum_checked(values.as_primitive::<T>()).map_err(|error| too_large(&error))
    }

    /// The sum of some of the rows, which may have more digits than that of all.
    fn part(&self, sum: Option<T::Native>) -> Result<ScalarValue> {
        ScalarValue::new_primitive::<T>(sum, &self.data_type)
    }

    fn scalar(&self, sum: Option<T::Native>) -> Result<ScalarValue> {
        let sum = self.part(sum)?;
        if self.data_type.is_decimal() {
            check_digits(&sum.to_array()?)?;
        }
        Ok(sum)
    }
}

fn too_large(error: &ArrowError) -> datafusion::error::DataFusionError {
    match error {
        ArrowError::ArithmeticOverflow(happened) => overflow(&format!("sum of values, {}", operation(happened))).into(),
        other => datafusion::error::DataFusionError::Execution(other.to_string()),
    }
}

fn operation(happened: &str) -> &str {
    happened.rsplit_once("happened on: ").map_or(happened, |(_, operation)| operation)
}

/// The sum of all rows, or of the rows of a window frame.
struct Running<T: ArrowNumericType> {
    sum: T::Native,
    /// Number of values that are not NULL.
    count: u64,
    of: Of<T>,
}

impl<T: ArrowNumericType> Running<T> {
    fn new(data_type: &DataType) -> Self {
        Self { sum: T::default_value(), count: 0, of: of(data_type) }
    }

    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        if let Some(total) = self.of.total(values)? {
            self.sum = self.of.added(self.sum, total)?;
        }
        self.count += (values.len() - values.null_count()) as u64;
        Ok(())
    }
}

impl<T: ArrowNumericType> std::fmt::Debug for Running<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Running({})", self.of.data_type)
    }
}

impl<T: ArrowNumericType> Accumulator for Running<T> {
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.of.part((self.count > 0).then_some(self.sum))?])
    }

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.add(&states[0])
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if let Some(total) = self.of.total(&values[0])? {
            self.sum = self.sum.sub_checked(total).map_err(|error| too_large(&error))?;
        }
        self.count -= (values[0].len() - values[0].null_count()) as u64;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.of.scalar((self.count > 0).then_some(self.sum))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// `sum(DISTINCT x)`: the engine collects the values.
struct Distinct<T: ArrowNumericType> {
    inner: Box<dyn Accumulator>,
    of: Of<T>,
}

impl<T: ArrowNumericType> std::fmt::Debug for Distinct<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Distinct({})", self.of.data_type)
    }
}

impl<T: ArrowNumericType> Accumulator for Distinct<T> {
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.inner.state()?.as_slice() {
            [ScalarValue::List(values)] => self.of.scalar(self.of.total(values.values())?),
            _ => exec_err!("unexpected state of sum(DISTINCT) of {}", type_name::<T>()),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}

/// `sum(DISTINCT x)` over the rows of a window frame.
#[derive(Debug, Default)]
struct SlidingDistinct {
    counts: HashMap<i64, usize>,
    sum: i128,
}

impl Accumulator for SlidingDistinct {
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        exec_err!("sum(DISTINCT) of a window frame has no state")
    }

    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Int64Type>().iter().flatten() {
            let count = self.counts.entry(value).or_default();
            *count += 1;
            if *count == 1 {
                self.sum += i128::from(value);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        exec_err!("sum(DISTINCT) of a window frame has no state")
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Int64Type>().iter().flatten() {
            if let Some(count) = self.counts.get_mut(&value) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&value);
                    self.sum -= i128::from(value);
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.counts.is_empty() {
            return Ok(ScalarValue::Int64(None));
        }
        let sum = i64::try_from(self.sum).map_err(|_| overflow(&format!("sum of values, {}", self.sum)))?;
        Ok(ScalarValue::Int64(Some(sum)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(i64, usize)>()
    }
}

/// The sums of many groups.
struct Groups<T: ArrowNumericType> {
    sums: Vec<T::Native>,
    /// True for groups with a value that is not NULL.
    seen: Vec<bool>,
    of: Of<T>,
}

impl<T: ArrowNumericType> GroupsAccumulator for Groups<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        number_of_groups: usize,
    ) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.sums.resize(number_of_groups, T::default_value());
        self.seen.resize(number_of_groups, false);
        if values.null_count() == 0 && filter.is_none() {
            for (value, group) in values.values().iter().zip(groups) {
                self.sums[*group] = self.of.added(self.sums[*group], *value)?;
                self.seen[*group] = true;
            }
            return Ok(());
        }
        for (at, group) in groups.iter().enumerate() {
            let counts = filter.is_none_or(|filter| filter.is_valid(at) && filter.value(at));
            if counts && values.is_valid(at) {
                self.sums[*group] = self.of.added(self.sums[*group], values.value(at))?;
                self.seen[*group] = true;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = self.state(emit_to)?.remove(0);
        check_digits(&sums)?;
        Ok(sums)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let sums = emit_to.take_needed(&mut self.sums);
        let nulls = NullBuffer::from(emit_to.take_needed(&mut self.seen));
        let sums = PrimitiveArray::<T>::try_new(sums.into(), Some(nulls))?;
        Ok(vec![Arc::new(sums.with_data_type(self.of.data_type.clone()))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], number_of_groups: usize) -> Result<()> {
        self.update_batch(states, groups, None, number_of_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = match filter {
            None => Arc::clone(&values[0]),
            Some(filter) => {
                let left_out: BooleanArray = filter.iter().map(|kept| Some(kept != Some(true))).collect();
                nullif(&values[0], &left_out)?
            }
        };
        let values = values.as_primitive::<T>().clone().with_data_type(self.of.data_type.clone());
        Ok(vec![Arc::new(values)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<T::Native>() + self.seen.capacity()
    }
}
