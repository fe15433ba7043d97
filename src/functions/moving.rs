//! Aggregates over moving frames of windows, such as `avg(x) OVER (ORDER BY d ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)`.
//!
//! When rows leave a frame, the engine subtracts them. A difference of floating-point numbers loses digits: after `1e20` has left,
//! the sum of 1 and 1 is 0, a deviation of equal values is NaN, and a NaN never leaves. Functions that cannot subtract, such as
//! `bool_and`, are refused. Here, nothing is subtracted:
//!
//! ```text
//! rows enter ─▶ back: one state of all of them
//!                └─ if the front is empty ─▶ front: for each row, the state of the rows from it to the last one ─▶ rows leave
//! result: the first state of the front and that of the back, merged
//! ```
//!
//! Each row enters two states, however long the frame is.
//!
//! The same digits are lost by the engine's `corr` of groups, where a state of each group is used instead.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

use super::wrapper::{wrapped_aggregate_methods, wrapped_order_methods};
use crate::memory;

/// Functions of the engine that stay as they are: they subtract exactly, have functions of their own for windows, or a state that
/// is too large to be kept for each row, so that they are refused.
const KEPT: &[&str] = &[
    "any_value",
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "approx_percentile_cont_with_weight",
    "array_agg",
    "count",
    "first_value",
    "grouping",
    "last_value",
    "max",
    "median",
    "min",
    "nth_value",
    "percentile_cont",
    "string_agg",
    "sum",
];

/// The engine's other aggregate functions, with results over moving frames that do not depend on the rows that have left.
pub(super) fn all() -> impl Iterator<Item = Arc<AggregateUDF>> {
    let functions = all_default_aggregate_functions().into_iter();
    functions.filter(|function| !KEPT.contains(&function.name())).map(|function| Arc::new(moving(&function)))
}

fn moving(function: &AggregateUDF) -> AggregateUDF {
    AggregateUDF::new_from_impl(Moving(function.clone()))
}

/// An accumulator of a function for a moving frame.
///
/// # Errors
/// Those of the function.
pub(super) fn sliding(function: Arc<dyn AggregateUDFImpl>, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
    let call = Call {
        function,
        return_field: args.return_field,
        schema: args.schema.clone(),
        expr_fields: args.expr_fields.to_vec(),
        ignore_nulls: args.ignore_nulls,
        order_bys: args.order_bys.to_vec(),
        is_reversed: args.is_reversed,
        name: args.name.to_owned(),
        exprs: args.exprs.to_vec(),
    };
    let state_of_back = call.accumulator()?;
    Ok(Box::new(Halves { call, front: Vec::new(), back: Vec::new(), state_of_back }))
}

/// The engine's function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Moving(AggregateUDF);

impl Moving {
    fn function(&self) -> &Arc<dyn AggregateUDFImpl> {
        self.0.inner()
    }
}

#[warn(clippy::missing_trait_methods)] // It delegates every method.
impl AggregateUDFImpl for Moving {
    wrapped_aggregate_methods!();
    wrapped_order_methods!(moving);

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        // That of `corr` subtracts the squares of sums, which have no digits in common for large numbers.
        self.0.name() != "corr" && self.function().groups_accumulator_supported(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.function().accumulator(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.function().create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match args.is_distinct {
            true => self.function().create_sliding_accumulator(args),
            false => sliding(Arc::clone(self.function()), args),
        }
    }
}

/// A call of a function, from which accumulators are made.
#[derive(Debug)]
struct Call {
    function: Arc<dyn AggregateUDFImpl>,
    return_field: FieldRef,
    schema: Schema,
    expr_fields: Vec<FieldRef>,
    ignore_nulls: bool,
    order_bys: Vec<PhysicalSortExpr>,
    is_reversed: bool,
    name: String,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
}

impl Call {
    fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &self.schema,
            expr_fields: &self.expr_fields,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.order_bys,
            is_reversed: self.is_reversed,
            name: &self.name,
            is_distinct: false,
            exprs: &self.exprs,
        })
    }
}

/// See the module's documentation.
#[derive(Debug)]
struct Halves {
    call: Call,
    /// For each row of the front, the state of the rows from it to the last one of the front. The row that leaves next is the
    /// last entry.
    front: Vec<Vec<ScalarValue>>,
    /// Rows that entered later, as they came.
    back: Vec<Vec<ArrayRef>>,
    state_of_back: Box<dyn Accumulator>,
}

impl Halves {
    /// Makes the back the front.
    fn turn(&mut self) -> Result<()> {
        let rows: usize = self.back.iter().map(|values| length(values)).sum();
        let mut states = self.call.accumulator()?;
        let _room = memory::room((rows * size_of_state(&states.state()?)) as u64)?;
        self.front.reserve(rows);
        for values in std::mem::take(&mut self.back).into_iter().rev() {
            for row in (0..length(&values)).rev() {
                let values: Vec<ArrayRef> = values.iter().map(|values| values.slice(row, 1)).collect();
                states.update_batch(&values)?;
                self.front.push(states.state()?);
            }
        }
        self.state_of_back = self.call.accumulator()?;
        Ok(())
    }

    /// An accumulator of all rows of the frame.
    fn whole(&mut self) -> Result<Box<dyn Accumulator>> {
        let mut whole = self.call.accumulator()?;
        if let Some(state) = self.front.last() {
            whole.merge_batch(&arrays_of(state)?)?;
        }
        if !self.back.is_empty() {
            whole.merge_batch(&arrays_of(&self.state_of_back.state()?)?)?;
        }
        Ok(whole)
    }
}

impl Accumulator for Halves {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if length(values) > 0 {
            self.state_of_back.update_batch(values)?;
            self.back.push(values.to_vec());
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut leaving = length(values);
        while leaving > 0 {
            if self.front.is_empty() {
                self.turn()?;
            }
            if self.front.is_empty() {
                return internal_err!("rows leave a frame that has none");
            }
            let some = leaving.min(self.front.len());
            self.front.truncate(self.front.len() - some);
            leaving -= some;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.whole()?.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.whole()?.state()
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        internal_err!("the state of a moving frame is not merged")
    }

    fn size(&self) -> usize {
        let front = self.front.first().map_or(0, |state| self.front.capacity() * size_of_state(state));
        let back = self.back.iter().flatten().map(|values| values.get_array_memory_size());
        size_of_val(self) + front + back.sum::<usize>() + self.state_of_back.size()
    }
}

fn length(values: &[ArrayRef]) -> usize {
    values.first().map_or(0, |values| values.len())
}

fn arrays_of(state: &[ScalarValue]) -> Result<Vec<ArrayRef>> {
    state.iter().map(ScalarValue::to_array).collect()
}

fn size_of_state(state: &[ScalarValue]) -> usize {
    size_of::<Vec<ScalarValue>>() + state.iter().map(ScalarValue::size).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arrow::array::{AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch};
    use arrow::datatypes::Float64Type;
    use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
    use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
    use datafusion::physical_expr::expressions::{col, lit};

    use super::*;

    /// Values whose differences are not exact, NaN and NULL.
    fn batch() -> RecordBatch {
        let x = [1e20, 1.0, 1.0, -3.0, 1e-9, f64::NAN, 2.0, 2.0, 2.0, f64::INFINITY, 5.0, 0.1, 0.2, 0.1];
        let x: Float64Array = x.into_iter().map(Some).chain([None, Some(4.0), Some(4.0)]).collect();
        let rows = i64::try_from(x.len()).expect("few");
        let y: Float64Array = (0..rows).map(|row| (row % 5 != 3).then_some((row * row % 7) as f64)).collect();
        let i: Int64Array = (0..rows).map(|row| (row % 4 != 2).then_some(row * 37 % 11)).collect();
        let b: BooleanArray = (0..rows).map(|row| (row % 3 != 0).then_some(row % 2 == 0)).collect();
        let columns: [(&str, ArrayRef); 4] =
            [("x", Arc::new(x)), ("y", Arc::new(y)), ("i", Arc::new(i)), ("b", Arc::new(b))];
        RecordBatch::try_from_iter(columns).expect("a batch")
    }

    /// The function's calls over the columns of the batch that it takes.
    fn calls(function: &Arc<AggregateUDF>) -> Vec<AggregateFunctionExpr> {
        let column = |name| col(name, &batch().schema()).expect("a column");
        let arguments = [vec![column("x"), column("y")], vec![column("x")], vec![column("i")], vec![column("b")]];
        arguments.into_iter().filter_map(|args| call(function, args, false)).collect()
    }

    /// A call of the function, if it takes these arguments as they are.
    fn call(
        function: &Arc<AggregateUDF>,
        args: Vec<Arc<dyn PhysicalExpr>>,
        distinct: bool,
    ) -> Option<AggregateFunctionExpr> {
        let schema = batch().schema();
        let types = |fields: &[FieldRef]| fields.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
        let fields = args.iter().map(|arg| arg.return_field(&schema)).collect::<Result<Vec<_>>>().ok()?;
        if types(&fields_with_udf(&fields, function.as_ref()).ok()?) != types(&fields) {
            return None;
        }
        let call = AggregateExprBuilder::new(Arc::clone(function), args).schema(schema).alias("a");
        let call = call.with_distinct(distinct).build().ok()?;
        call.create_accumulator().is_ok().then_some(call)
    }

    /// The values of the call's arguments in the batch.
    fn values_of(call: &AggregateFunctionExpr) -> Vec<ArrayRef> {
        let batch = batch();
        let of =
            |arg: Arc<dyn PhysicalExpr>| arg.evaluate(&batch).and_then(|values| values.into_array(batch.num_rows()));
        call.expressions().into_iter().map(|arg| of(arg).expect("values")).collect()
    }

    fn equal(a: &ScalarValue, b: &ScalarValue) -> bool {
        let number = |value: &ScalarValue| {
            let array = value.to_array().ok()?;
            array.as_primitive_opt::<Float64Type>().and_then(|array| array.iter().next().flatten())
        };
        match (number(a), number(b)) {
            (Some(a), Some(b)) => a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
            _ => a == b,
        }
    }

    /// The results over moving frames are those of new accumulators, also of functions that subtract.
    #[test]
    fn frames_have_the_results_of_their_rows_alone() {
        let exact = ["count", "max", "min", "median", "array_agg"];
        let functions =
            all_default_aggregate_functions().into_iter().filter(|function| exact.contains(&function.name()));
        let mut tried = BTreeSet::new();
        for function in all().chain([super::super::sum_udaf()]).chain(functions) {
            for call in calls(&function) {
                let values = values_of(&call);
                let part = |from: usize, to: usize| -> Vec<ArrayRef> {
                    values.iter().map(|values| values.slice(from, to - from)).collect()
                };
                let Ok(mut sliding) = call.create_sliding_accumulator() else { continue };
                let (mut from, mut to) = (0, 0);
                // Frames that grow, shrink, move by one and by more, and are empty.
                for (enter, leave) in
                    [(3, 0), (1, 1), (1, 1), (4, 2), (0, 3), (1, 1), (2, 0), (1, 5), (0, 0), (3, 2), (1, 2), (0, 0)]
                {
                    sliding.update_batch(&part(to, to + enter)).expect("rows that enter");
                    to += enter;
                    sliding.retract_batch(&part(from, from + leave)).expect("rows that leave");
                    from += leave;
                    let mut alone = call.create_accumulator().expect("an accumulator");
                    alone.update_batch(&part(from, to)).expect("the rows of the frame");
                    let (found, right) = (sliding.evaluate().expect("a value"), alone.evaluate().expect("a value"));
                    assert!(
                        equal(&found, &right),
                        "{} of rows {from} to {to}: {found}, {right} expected",
                        call.fun().name()
                    );
                }
                assert_eq!(to, batch().num_rows());
                tried.insert(call.fun().name().to_owned());
            }
        }
        let all: BTreeSet<String> = all().map(|function| function.name().to_owned()).collect();
        assert!(all.is_subset(&tried), "{:?} not tried", all.difference(&tried));
    }

    /// Several states that come in one batch are all merged, as those of a group whose rows come from several partitions.
    #[test]
    fn several_states_of_one_batch_are_all_merged() {
        let own = super::super::aggregates();
        let replaced: BTreeSet<String> = own.iter().map(|function| function.name().to_owned()).collect();
        let engine = all_default_aggregate_functions().into_iter();
        let engine = engine.filter(|function| !replaced.contains(function.name()));
        let mut tried = BTreeSet::new();
        // Approximations depend on how rows are divided.
        for function in own.iter().cloned().chain(engine).filter(|function| !function.name().starts_with("approx_")) {
            let column = |name| col(name, &batch().schema()).expect("a column");
            let arguments = match function.name() {
                "percentile_cont" => vec![vec![column("x"), lit(0.5_f64)]],
                _ => vec![vec![column("x"), column("y")], vec![column("x")], vec![column("i")], vec![column("b")]],
            };
            let calls = arguments.into_iter().flat_map(|args| {
                // Distinct values of an array have no order.
                let distinct = if function.name() == "array_agg" { None } else { call(&function, args.clone(), true) };
                call(&function, args, false).into_iter().chain(distinct)
            });
            for call in calls {
                let values = values_of(&call);
                let accumulator = || call.create_accumulator().expect("an accumulator");
                let mut states: Vec<Vec<ScalarValue>> = Vec::new();
                for (from, to) in [(0, 4), (4, 4), (4, 9), (9, 10), (10, length(&values))] {
                    let mut part = accumulator();
                    let rows: Vec<ArrayRef> = values.iter().map(|values| values.slice(from, to - from)).collect();
                    part.update_batch(&rows).expect("rows of a part");
                    states.push(part.state().expect("a state"));
                }
                let column_of = |at: usize| ScalarValue::iter_to_array(states.iter().map(|state| state[at].clone()));
                let columns: Vec<ArrayRef> =
                    (0..states[0].len()).map(|at| column_of(at).expect("states of one type")).collect();
                let (mut merged, mut whole) = (accumulator(), accumulator());
                merged.merge_batch(&columns).expect("states");
                whole.update_batch(&values).expect("all rows");
                let (found, right) = (merged.evaluate().expect("a value"), whole.evaluate().expect("a value"));
                assert!(equal(&found, &right), "{}: {found}, {right} expected", call.fun().name());
                tried.insert(call.fun().name().to_owned());
            }
        }
        for name in ["percentile_cont", "median", "count", "sum", "corr", "array_agg", "first_value", "stddev", "max"] {
            assert!(tried.contains(name), "{name} not tried");
        }
    }
}
