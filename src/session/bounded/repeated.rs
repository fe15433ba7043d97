//! Values that an operator writes more than once. A join and UNNEST copy a long string into each of their output rows, a
//! window function into each row of a partition, a projection into each of its columns. They allocate before any memory pool
//! is consulted. So the size is estimated from their input, and the input is rejected or passed on in smaller batches.
//!
//! Operators that keep rows allocate before they register it: a hash table doubles, a sort copies what it holds. So each operator
//! that is not known to pass rows on asks for as much as its statement holds before it gets a batch.
//!
//! Such an operator may compute for hours from input that is there at once. It pauses between batches, so that it can be ended.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::{partition, take_record_batch};
use arrow::datatypes::DataType;
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::window::{PlainAggregateWindowExpr, SlidingAggregateWindowExpr, WindowExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode, PhysicalGroupBy};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::unnest::{ListUnnest, UnnestExec};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, InputOrderMode, PlanProperties, ReplaceChildrenOptions,
};
use futures::future::ready;
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::demand::{bytes_of, item_sums, leaves_of};
use crate::error::{Error, ErrorKind};
use crate::memory;
use crate::optimizer::{Pass, PassThroughExec};

/// Maximum bytes that an operator may write at once.
const AT_ONCE: u128 = 512 << 20;
/// Maximum bytes that UNNEST may write at once.
const UNNESTED_AT_ONCE: u128 = 64 << 20;
/// Bytes that the expressions of an operator may read at once, unless a single row has more.
const READ_AT_ONCE: u128 = 8 << 20;
/// Minimum size of a literal that counts, in bytes: it may be written into each row.
const LONG: usize = 256;
/// Operators that hold no more rows than a batch of their input. All others may keep rows.
const PASSING_ON: &[&str] = &[
    "AboveOffsetExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "FetchExec",
    "GlobalLimitExec",
    "InOrderExec",
    "LocalLimitExec",
    "OwnNamesExec",
    "ProjectionExec",
    "ReadOnceExec",
    "UnionExec",
    "UnorderedExec",
    "WindowOrderExec",
];

/// Limits the inputs of operators that repeat values. Runs after the rules that look for such operators.
#[derive(Debug)]
pub(super) struct BoundedRepetition;

impl PhysicalOptimizerRule for BoundedRepetition {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(repetition) = Repetition::of(plan.as_ref())?.filter(|_| !plan.children().is_empty()) else {
                return Ok(Transformed::no(plan));
            };
            let bounded = plan.children().into_iter().map(|input| -> Arc<dyn ExecutionPlan> {
                Arc::new(PassThroughExec::new(Arc::clone(input), repetition.clone().of_input(input.as_ref())))
            });
            let bounded = bounded.collect();
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            let plan = plan.replace_children(bounded, options)?;
            Ok(if multiplies(plan.as_ref()) { pausing(plan) } else { Transformed::yes(plan) })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "savedsearch_bounded_repetition"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// True for an operator that may compute long from few rows.
fn multiplies(plan: &dyn ExecutionPlan) -> bool {
    is_join(plan) || plan.is::<UnnestExec>() || plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>()
}

fn is_join(plan: &dyn ExecutionPlan) -> bool {
    plan.name().ends_with("JoinExec")
}

/// The operator with pauses between its batches.
fn pausing(plan: Arc<dyn ExecutionPlan>) -> Transformed<Arc<dyn ExecutionPlan>> {
    Transformed::yes(Arc::new(CooperativeExec::new(plan)))
}

/// Repetition of input values by an operator.
#[derive(Debug, Clone)]
enum Repetition {
    /// Each row of an output batch may contain any row of the input.
    Batch,
    /// Each row is written as often as the longest of its lists in these columns has items.
    Lists(Vec<ListUnnest>),
    /// Results are written for the rows of a partition.
    WindowFunctions(WindowFunctions),
    /// Expressions read the values of each row.
    Expressions(Reads),
    /// Nothing is repeated. The operator keeps rows, or gathers some of them.
    Kept,
}

/// Values of a row that an operator reads or copies: the results of functions are about as large as what they read.
#[derive(Debug, Clone, Default)]
struct Reads {
    /// Columns, each with the number of times that it is read.
    columns: BTreeMap<usize, u32>,
    /// Bytes of long literals, and others that do not depend on the row.
    fixed: u64,
    /// Grouping keys that are computed, each with the number of grouping sets that have it.
    keys: Vec<(Arc<dyn PhysicalExpr>, u32)>,
}

/// Limits of an operator's input that another process can apply as well.
#[cfg(feature = "distributed")]
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum BoundedInput {
    /// See [`Repetition::Batch`].
    Batch,
    /// See [`Repetition::Lists`]: columns with their depths.
    Lists(Vec<(usize, usize)>),
    /// See [`Repetition::Expressions`]: columns with the number of reads, and the fixed bytes.
    Expressions(Vec<(usize, u32)>, u64),
    /// See [`Repetition::Kept`].
    Kept,
}

/// The limits that an operator applies to its input; `None` for other operators, and if they depend on a window function or on a
/// computed grouping key.
#[cfg(feature = "distributed")]
pub(crate) fn bounds_of(plan: &dyn ExecutionPlan) -> Option<BoundedInput> {
    match plan.downcast_ref::<PassThroughExec<Repetition>>()?.pass() {
        Repetition::Batch => Some(BoundedInput::Batch),
        Repetition::Lists(lists) => {
            let lists = lists.iter().map(|list| (list.index_in_input_schema, list.depth));
            Some(BoundedInput::Lists(lists.collect()))
        }
        Repetition::Expressions(Reads { columns, fixed, keys }) if keys.is_empty() => {
            Some(BoundedInput::Expressions(columns.iter().map(|(column, times)| (*column, *times)).collect(), *fixed))
        }
        Repetition::WindowFunctions(_) | Repetition::Expressions(_) => None,
        Repetition::Kept => Some(BoundedInput::Kept),
    }
}

/// Returns an operator that applies limits to its input.
#[cfg(feature = "distributed")]
pub(crate) fn bounded_input(input: Arc<dyn ExecutionPlan>, bounds: BoundedInput) -> Arc<dyn ExecutionPlan> {
    let repetition = match bounds {
        BoundedInput::Batch => Repetition::Batch,
        BoundedInput::Lists(lists) => {
            let list = |(index_in_input_schema, depth)| ListUnnest { index_in_input_schema, depth };
            Repetition::Lists(lists.into_iter().map(list).collect())
        }
        BoundedInput::Expressions(columns, fixed) => {
            Repetition::Expressions(Reads { columns: columns.into_iter().collect(), fixed, keys: Vec::new() })
        }
        BoundedInput::Kept => Repetition::Kept,
    };
    Arc::new(PassThroughExec::new(input, repetition))
}

impl Repetition {
    fn of(plan: &dyn ExecutionPlan) -> Result<Option<Self>> {
        let keeps = (!PASSING_ON.contains(&plan.name())).then_some(Self::Kept);
        if let Some(unnest) = plan.downcast_ref::<UnnestExec>() {
            return Ok(Some(Self::Lists(unnest.list_column_indices().to_vec())));
        }
        if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
            let functions = WindowFunctions::of(window.window_expr(), window.partition_keys(), true)?;
            return Ok(functions.map(Self::WindowFunctions).or(keeps));
        }
        if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
            // Interleaved partitions are treated as one.
            let sorted = matches!(window.input_order_mode, InputOrderMode::Sorted);
            let keys = if sorted { window.partition_keys() } else { Vec::new() };
            let functions = WindowFunctions::of(window.window_expr(), keys, false)?;
            return Ok(functions.map(Self::WindowFunctions).or(keeps));
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let expressions = projection.expr().iter().map(|column| Arc::clone(&column.expr));
            return Ok(Reads::of(expressions, plan)?.map(Self::Expressions));
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>()
            && aggregate.mode().input_mode() == AggregateInputMode::Raw
        {
            let keys = aggregate.group_expr().input_exprs();
            let values = aggregate.aggr_expr().iter().flat_map(|function| function.expressions());
            let reads = Reads::of(keys.into_iter().chain(values), plan)?;
            return Ok(Reads::of_sets(reads, aggregate.group_expr()).map(Self::Expressions).or(keeps));
        }
        Ok(if is_join(plan) { Some(Self::Batch) } else { keeps })
    }

    /// The repetition of one of the inputs: without values of variable size, a batch of it is small.
    fn of_input(self, input: &dyn ExecutionPlan) -> Self {
        match self {
            Self::Batch if !input.schema().fields().iter().any(|field| is_copied(field.data_type())) => Self::Kept,
            of_any => of_any,
        }
    }
}

impl Reads {
    /// The reads of the expressions of an operator; `None` if they read nothing of variable size. A column that is passed on as it
    /// is costs nothing.
    fn of(expressions: impl Iterator<Item = Arc<dyn PhysicalExpr>>, plan: &dyn ExecutionPlan) -> Result<Option<Self>> {
        let Some(schema) = plan.children().first().map(|input| input.schema()) else { return Ok(None) };
        let mut reads = Self::default();
        for expression in expressions.filter(|expression| expression.downcast_ref::<Column>().is_none()) {
            expression.apply(|part| {
                if let Some(column) = part.downcast_ref::<Column>()
                    && let data_type = schema.field(column.index()).data_type()
                    && (is_copied(data_type) || is_view(data_type))
                {
                    *reads.columns.entry(column.index()).or_default() += 1;
                }
                if let Some(bytes) = part.downcast_ref::<Literal>().map(|literal| literal.value().size())
                    && bytes >= LONG
                {
                    reads.fixed += bytes as u64;
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok((!reads.columns.is_empty() || reads.fixed > 0).then_some(reads))
    }

    /// The reads with those of grouping sets, each of which has a copy of its keys for each row.
    fn of_sets(reads: Option<Self>, by: &PhysicalGroupBy) -> Option<Self> {
        /// Bytes of a key in a set beside its value, and of a group.
        const BESIDE: u64 = 16;
        if !by.has_grouping_set() {
            return reads;
        }
        let (mut reads, keys) = (reads.unwrap_or_default(), by.input_exprs());
        reads.fixed += by.groups().len() as u64 * (keys.len() as u64 + 3) * BESIDE;
        for (at, key) in keys.into_iter().enumerate() {
            let has = |nulls: &&Vec<bool>| !nulls.get(at).copied().unwrap_or_default();
            let sets = u32::try_from(by.groups().iter().filter(has).count()).unwrap_or(u32::MAX);
            match key.downcast_ref::<Column>().map(Column::index) {
                Some(column) => *reads.columns.entry(column).or_default() += sets,
                None => reads.keys.push((key, sets)),
            }
        }
        Some(reads)
    }

    /// Splits a batch into parts of which an operator reads and copies little at once, each with its bytes.
    fn parts(&self, batch: &RecordBatch) -> Result<Parts> {
        let mut bytes = vec![u128::from(self.fixed); batch.num_rows()];
        let mut add = |values: &ArrayRef, times: u32| {
            bytes.iter_mut().zip(bytes_of(values)).for_each(|(all, own)| *all += own * u128::from(times));
        };
        for (column, times) in &self.columns {
            add(batch.column(*column), *times);
        }
        for (key, times) in &self.keys {
            add(&key.evaluate(batch)?.into_array(batch.num_rows())?, *times);
        }
        let (mut parts, mut first, mut sum) = (Vec::new(), 0, 0);
        for (row, bytes) in bytes.into_iter().enumerate() {
            if sum > 0 && sum + bytes > READ_AT_ONCE {
                parts.push((batch.slice(first, row - first), sum));
                (first, sum) = (row, 0);
            }
            sum += bytes;
        }
        parts.push((batch.slice(first, batch.num_rows() - first), sum));
        Ok(parts)
    }
}

/// Functions of a window whose results are strings or lists.
#[derive(Debug, Clone)]
struct WindowFunctions {
    /// Columns by which the input is sorted and partitioned.
    keys: Vec<Arc<dyn PhysicalExpr>>,
    functions: Vec<(Arc<dyn WindowExpr>, Width)>,
    /// True if the results of all rows are produced at once.
    at_the_end: bool,
}

/// Size of a result.
#[derive(Debug, Clone, Copy)]
enum Width {
    /// One of the values passed to the function.
    Value,
    /// At most this many of the values together.
    Values(u128),
    /// All values of the partition together.
    Partition,
}

impl WindowFunctions {
    fn of(
        functions: &[Arc<dyn WindowExpr>],
        keys: Vec<Arc<dyn PhysicalExpr>>,
        at_the_end: bool,
    ) -> Result<Option<Self>> {
        let mut copied = Vec::new();
        for function in functions {
            if is_copied(function.field()?.data_type()) || is_view(function.field()?.data_type()) {
                copied.push((Arc::clone(function), Width::of(function)));
            }
        }
        Ok((!copied.is_empty()).then_some(Self { keys, functions: copied, at_the_end }))
    }
}

impl Width {
    fn of(function: &Arc<dyn WindowExpr>) -> Self {
        let function_of = function.as_any();
        let aggregate = function_of
            .downcast_ref::<PlainAggregateWindowExpr>()
            .map(PlainAggregateWindowExpr::get_aggregate_expr)
            .or_else(|| {
                function_of
                    .downcast_ref::<SlidingAggregateWindowExpr>()
                    .map(SlidingAggregateWindowExpr::get_aggregate_expr)
            });
        match aggregate.map(|aggregate| aggregate.fun().name()) {
            // `lag`, `first_value` and similar functions, and aggregates that select a value.
            None | Some("min" | "max" | "first_value" | "last_value" | "nth_value" | "any_value") => Self::Value,
            Some(_) => rows_of(function.get_window_frame()).map_or(Self::Partition, Self::Values),
        }
    }
}

/// Maximum number of rows in a frame, if it is fixed.
fn rows_of(frame: &WindowFrame) -> Option<u128> {
    let rows = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => Some(0),
        WindowFrameBound::Preceding(ScalarValue::UInt64(rows))
        | WindowFrameBound::Following(ScalarValue::UInt64(rows)) => rows.map(u128::from),
        _ => None,
    };
    match frame.units {
        WindowFrameUnits::Rows => Some(rows(&frame.start_bound)? + rows(&frame.end_bound)? + 1),
        WindowFrameUnits::Range | WindowFrameUnits::Groups => None,
    }
}

/// True if values of a type are copied in full into each row.
fn is_copied(data_type: &DataType) -> bool {
    use DataType::{Binary, Dictionary, LargeBinary, LargeUtf8, RunEndEncoded, Struct, Union, Utf8};
    match data_type {
        Utf8 | LargeUtf8 | Binary | LargeBinary | Union(..) | RunEndEncoded(..) => true,
        Struct(fields) => fields.iter().any(|field| is_copied(field.data_type())),
        Dictionary(..) => false,
        of => of.is_nested(),
    }
}

fn is_view(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::BinaryView)
}

/// Limits what the operator above repeats.
impl Pass for Repetition {
    const NAME: &'static str = "BoundedInputExec";
    const KEEPS_ORDER: bool = true;

    fn properties(&self, input: &dyn ExecutionPlan) -> Arc<PlanProperties> {
        Arc::clone(input.properties())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn rows(&self, input: SendableRecordBatchStream, context: &TaskContext) -> SendableRecordBatchStream {
        let schema = input.schema();
        let rows = context.session_config().batch_size() as u128;
        let bounded = match self {
            Self::Batch => input.map(move |batch| check_rows(batch?, rows)).boxed(),
            Self::Lists(lists) => {
                let lists = lists.clone();
                let parts = input.map_ok(move |batch| all_parts(in_parts(&batch, &lists)));
                // As for expressions.
                parts.try_flatten().map(|part| part.and_then(|(part, bytes)| ask(bytes).map(|()| part))).boxed()
            }
            Self::Expressions(reads) => {
                let reads = reads.clone();
                let parts = input.map_ok(move |batch| all_parts(reads.parts(&batch)));
                // When the operator asks for a part, it has written those before.
                parts.try_flatten().map(|part| part.and_then(|(part, bytes)| ask(bytes).map(|()| part))).boxed()
            }
            Self::WindowFunctions(windows) => {
                let mut seen = Partitions::new(windows.clone(), rows);
                input.map(move |batch| seen.check(batch?)).boxed()
            }
            Self::Kept => input
                .map(|batch| {
                    let batch = batch?;
                    ask(size_of(&batch))?;
                    Ok(batch)
                })
                .boxed(),
        };
        // When there are no more rows, an operator sorts or copies what it has kept.
        let at_the_end = stream::once(async { ask(0) }).filter_map(|room| ready(room.err().map(Err)));
        let bounded = bounded.chain(at_the_end);
        Box::pin(RecordBatchStreamAdapter::new(schema, bounded))
    }
}

/// Parts of a batch, each with its bytes.
type Parts = Vec<(RecordBatch, u128)>;

/// The parts of a batch one by one, or the error of all.
fn all_parts(parts: Result<Parts>) -> impl Stream<Item = Result<(RecordBatch, u128)>> {
    stream::iter(parts.map_or_else(|error| vec![Err(error)], |parts| parts.into_iter().map(Ok).collect()))
}

/// Rejects a batch if `rows` copies of its widest row exceed the limit.
fn check_rows(batch: RecordBatch, rows: u128) -> Result<RecordBatch> {
    let widest = widths(batch.columns(), batch.num_rows()).into_iter().max().unwrap_or_default();
    match widest.saturating_mul(rows) {
        bytes @ ..=AT_ONCE => {
            ask(bytes)?;
            Ok(batch)
        }
        _ => Err(too_wide(&format!("a join of rows of {widest} bytes"), AT_ONCE, "select fewer wide columns")),
    }
}

/// Splits a batch into parts whose unnested rows stay within the limit, each with their bytes.
fn in_parts(batch: &RecordBatch, lists: &[ListUnnest]) -> Result<Parts> {
    let is_list = |at: &usize| lists.iter().any(|list| list.index_in_input_schema == *at);
    let beside: Vec<ArrayRef> =
        (0..batch.num_columns()).filter(|at| !is_list(at)).map(|at| Arc::clone(batch.column(at))).collect();
    let widths = widths(&beside, batch.num_rows());
    let lengths = lists.iter().map(|list| {
        let column = batch.column(list.index_in_input_schema);
        let items = item_sums(column, |items| vec![1; items.len()]);
        let within = (list.depth > 1).then(|| leaves_of(column));
        (items.unwrap_or_default(), within.unwrap_or_default())
    });
    let lengths: Vec<_> = lengths.collect();
    let (mut parts, mut first, mut bytes) = (Vec::new(), 0, 0_u128);
    for (row, width) in widths.into_iter().enumerate() {
        let length = |of: &[u128]| of.get(row).copied().unwrap_or_default();
        let longest = lengths.iter().map(|(items, within)| length(items) + length(within)).max().unwrap_or_default();
        let of_row = width.saturating_mul(longest);
        if of_row > UNNESTED_AT_ONCE {
            let what = format!("UNNEST of {longest} items with {width} bytes of other columns");
            return Err(too_wide(&what, UNNESTED_AT_ONCE, "select fewer wide columns"));
        }
        if bytes + of_row > UNNESTED_AT_ONCE {
            parts.push((first..row, bytes));
            (first, bytes) = (row, 0);
        }
        bytes += of_row;
    }
    parts.push((first..batch.num_rows(), bytes));
    let parts = parts.into_iter().map(|(rows, bytes)| Ok((rows_of_batch(batch, rows)?, bytes)));
    parts.collect()
}

/// Some rows of a batch with values of their own: the operator would reserve memory for all items of the batch's lists.
fn rows_of_batch(batch: &RecordBatch, rows: Range<usize>) -> Result<RecordBatch> {
    if rows.len() == batch.num_rows() {
        return Ok(batch.clone());
    }
    let rows = UInt64Array::from_iter_values(rows.map(|row| row as u64));
    Ok(take_record_batch(batch, &rows)?)
}

/// Bytes that these columns take in each row when it is copied.
fn widths(columns: &[ArrayRef], rows: usize) -> Vec<u128> {
    let mut widths = vec![0; rows];
    for column in columns {
        if is_view(column.data_type()) {
            // The data of a view is shared.
            widths.iter_mut().for_each(|width| *width += 16);
        } else {
            widths.iter_mut().zip(bytes_of(column)).for_each(|(width, bytes)| *width += bytes);
        }
    }
    widths
}

/// Values passed to a window function within a partition.
#[derive(Debug, Clone, Copy, Default)]
struct Given {
    widest: u128,
    total: u128,
}

/// Consecutive partitions of a sorted input.
#[derive(Debug)]
struct Partitions {
    windows: WindowFunctions,
    batch_rows: u128,
    converter: Option<RowConverter>,
    /// Key of the last row.
    key: Option<OwnedRow>,
    /// Rows of the last row's partition.
    rows: u128,
    given: Vec<Given>,
    /// Bytes of the results of earlier partitions.
    before: u128,
}

impl Partitions {
    fn new(windows: WindowFunctions, batch_rows: u128) -> Self {
        let given = vec![Given::default(); windows.functions.len()];
        Self { windows, batch_rows, converter: None, key: None, rows: 0, given, before: 0 }
    }

    fn check(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        if batch.num_rows() == 0 {
            return Ok(batch);
        }
        let widths = self.windows.functions.iter().map(|(function, _)| {
            let args = function.evaluate_args(&batch)?;
            let mut widths = vec![0_u128; batch.num_rows()];
            args.iter().for_each(|arg| widths.iter_mut().zip(bytes_of(arg)).for_each(|(width, bytes)| *width += bytes));
            Ok(widths)
        });
        let widths = widths.collect::<Result<Vec<_>>>()?;
        for (rows, goes_on) in self.partitions(&batch)? {
            if !goes_on {
                self.before += if self.windows.at_the_end { self.results() } else { 0 };
                self.rows = 0;
                self.given.fill(Given::default());
            }
            self.rows += rows.len() as u128;
            for (given, widths) in self.given.iter_mut().zip(&widths) {
                let widths = widths.get(rows.clone()).unwrap_or_default();
                given.widest = given.widest.max(widths.iter().copied().max().unwrap_or_default());
                given.total += widths.iter().sum::<u128>();
            }
            let bytes = self.before.saturating_add(self.results());
            if bytes > AT_ONCE {
                let what = format!("a window function with {bytes} bytes of results");
                return Err(too_wide(&what, AT_ONCE, "aggregate with GROUP BY, or use a frame of few rows"));
            }
            ask(bytes)?;
        }
        Ok(batch)
    }

    /// Bytes written at once for the rows of the last partition.
    fn results(&self) -> u128 {
        let rows = if self.windows.at_the_end { self.rows } else { self.batch_rows };
        let width = self.windows.functions.iter().zip(&self.given).map(|((_, width), given)| match width {
            Width::Value => given.widest,
            Width::Values(rows) => rows.saturating_mul(given.widest).min(given.total),
            Width::Partition => given.total,
        });
        rows.saturating_mul(width.sum())
    }

    /// Row ranges of the partitions in a batch, each with true if it continues the last partition of the previous
    /// batch.
    fn partitions(&mut self, batch: &RecordBatch) -> Result<Vec<(Range<usize>, bool)>> {
        let rows = batch.num_rows();
        let keys = self.windows.keys.iter().map(|key| key.evaluate(batch)?.into_array(rows));
        let keys = keys.collect::<Result<Vec<ArrayRef>>>()?;
        let fields: Vec<SortField> = keys.iter().map(|key| SortField::new(key.data_type().clone())).collect();
        if keys.is_empty() || !RowConverter::supports_fields(&fields) {
            return Ok(vec![(0..rows, true)]);
        }
        let converter = match &mut self.converter {
            Some(converter) => converter,
            none => none.insert(RowConverter::new(fields)?),
        };
        let ends: Vec<ArrayRef> = keys.iter().map(|key| key.slice(0, 1)).collect();
        let first = converter.convert_columns(&ends)?.row(0).owned();
        let ends: Vec<ArrayRef> = keys.iter().map(|key| key.slice(rows - 1, 1)).collect();
        let last = converter.convert_columns(&ends)?.row(0).owned();
        let goes_on = self.key.replace(last).is_none_or(|key| key == first);
        let ranges = partition(&keys)?.ranges();
        Ok(ranges.into_iter().map(|range| (range.clone(), range.start == 0 && goes_on)).collect())
    }
}

/// Bytes that a copy of a batch would take.
fn size_of(batch: &RecordBatch) -> u128 {
    let sizes = batch.columns().iter().map(|column| {
        let of_rows = column.to_data().get_slice_memory_size();
        of_rows.unwrap_or_else(|_| column.get_buffer_memory_size()) as u128
    });
    sizes.sum()
}

/// Asks for room for what the operator above will write, and for a copy of what the statement holds.
fn ask(bytes: u128) -> Result<()> {
    Ok(memory::room_for_copies(u64::try_from(bytes).unwrap_or(u64::MAX))?)
}

fn too_wide(what: &str, most: u128, advice: &str) -> datafusion::error::DataFusionError {
    let message = format!("{what} would take more than {} MiB", most >> 20);
    Error::new(ErrorKind::TooLarge, message).advice(advice).into()
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListArray, StringArray};
    use arrow::datatypes::Int64Type;
    use datafusion::prelude::SessionContext;

    use super::*;

    #[tokio::test]
    async fn operators_that_keep_rows_ask_before_they_get_a_batch() {
        let context = super::super::bounded_session(&SessionContext::new()).expect("a session");
        let sql = "SELECT value % 7, count(DISTINCT value) FROM generate_series(1, 9) GROUP BY 1 ORDER BY 1";
        let plan = context.sql(sql).await.expect("a statement").create_physical_plan().await.expect("a plan");
        let mut kept = Vec::new();
        plan.apply(|node| {
            for input in node.children() {
                let asks = input.is::<PassThroughExec<Repetition>>();
                let passes_on = PASSING_ON.contains(&node.name()) || node.is::<PassThroughExec<Repetition>>();
                assert_eq!(asks, !passes_on, "{} above {}", node.name(), input.name());
                kept.extend(asks.then(|| node.name().to_owned()));
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .expect("a visit");
        assert!(["AggregateExec", "SortExec"].iter().all(|name| kept.iter().any(|of| of == name)), "{kept:?}");
    }

    #[tokio::test]
    async fn a_batch_is_copied_into_grouping_sets_in_parts() {
        let context = super::super::bounded_session(&SessionContext::new()).expect("a session");
        let reads_of = async |sql: &str| {
            let plan = context.sql(sql).await.expect("a statement").create_physical_plan().await.expect("a plan");
            let mut found = None;
            plan.apply(|node| {
                if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
                    found = Reads::of_sets(None, aggregate.group_expr());
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .expect("a visit");
            found
        };
        let texts = "(SELECT repeat('x', 1000) || value a, value b, value % 3 c FROM generate_series(1, 10))";
        assert!(reads_of(&format!("SELECT a, b, c FROM {texts} GROUP BY a, b, c")).await.is_none());
        let reads = reads_of(&format!("SELECT a, b, c FROM {texts} GROUP BY CUBE (a, b, c)")).await.expect("sets");
        // Each key is in four of the eight sets.
        let times = reads.columns.values().copied().chain(reads.keys.iter().map(|(_, sets)| *sets));
        assert_eq!(times.collect::<Vec<_>>(), [4, 4, 4]);
        let columns: [(&str, ArrayRef); 2] = [
            ("text", Arc::new(StringArray::from(vec!["x".repeat(1 << 20); 6]))),
            ("number", Arc::new(Int64Array::from(vec![1; 6]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let reads = Reads { columns: [(0, 4), (1, 4)].into(), ..reads };
        let parts = reads.parts(&batch).expect("parts");
        // Two rows have more than 8 MiB, with what each group takes beside its keys.
        assert_eq!(parts.iter().map(|(part, _)| part.num_rows()).collect::<Vec<_>>(), [1; 6]);
    }

    #[test]
    fn a_batch_is_unnested_in_parts() {
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>((0..4).map(|_| Some(vec![Some(1); 100])));
        let text = StringArray::from(vec!["x".repeat(200_000); 4]);
        let columns: [(&str, ArrayRef); 2] = [("list", Arc::new(lists)), ("text", Arc::new(text))];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let rows_of = |parts: &[(RecordBatch, u128)]| parts.iter().map(|(part, _)| part.num_rows()).collect::<Vec<_>>();
        let list = |depth| ListUnnest { index_in_input_schema: 0, depth };
        // Each row takes 20 MB.
        let parts = in_parts(&batch, &[list(1)]).expect("parts");
        assert_eq!(rows_of(&parts), [3, 1]);
        // A row unnested at two depths may have as many output rows as both depths have items.
        let parts = in_parts(&batch, &[list(2)]).expect("parts");
        assert_eq!(rows_of(&parts), [1, 1, 1, 1]);
        // Six reads of each row's text, which take 1.2 MB.
        let reads = Reads { columns: [(1, 6)].into(), fixed: 1 << 20, keys: Vec::new() };
        let parts = reads.parts(&batch).expect("parts");
        assert_eq!(rows_of(&parts), [3, 1]);
        assert!(parts.iter().all(|(_, bytes)| *bytes <= READ_AT_ONCE));
        let reads = Reads { fixed: 100 << 20, ..reads };
        assert_eq!(reads.parts(&batch).expect("parts").len(), 4, "a row is not split");
        assert!(check_rows(batch.clone(), 1_024).is_ok());
        check_rows(batch, 4_096).expect_err("rows of 200 KB");
    }
}
