//! Size of a function's result, computed from its arguments before anything is allocated.

use std::collections::HashSet;
use std::iter::repeat_n;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, IntervalMonthDayNanoType, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};

use crate::error::{Error, ErrorKind};
use crate::memory::{self, Room};

/// Maximum bytes of one string.
const TEXT: u128 = 1 << 20;
/// Maximum bytes of a string that is the same for all rows: it is repeated for each row of a batch.
const SAME: u128 = 128 << 10;
/// Maximum bytes of one list.
const LIST: u128 = 64 << 10;
/// Maximum bytes of all values of a batch.
const BATCH: u128 = 64 << 20;
/// Maximum bytes of all values that the calls of a statement produce per batch.
const STATEMENT: u128 = 1 << 30;
/// Maximum number of character comparisons per batch.
const STEPS: u128 = 1 << 30;
/// Maximum number of regular expressions compiled per batch.
const PATTERNS: usize = 10;

/// Growth of a function's result relative to its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Growth {
    /// Repeats a string.
    Repeat,
    /// Pads a string to a length.
    Pad,
    /// Repeats a value, as a list.
    ListRepeat,
    /// Resizes a list.
    ListResize,
    /// Lists the values from one number or instant to another, in steps.
    Range,
    /// Replaces each occurrence of one string in another with a third.
    Replace,
    /// Replaces each match of a pattern in a string with another string.
    ReplaceMatches,
    /// Replaces items of a list with a value.
    ListReplace,
    /// Joins the items of a list with a separator.
    Join,
    /// Combines all arguments into one value.
    All,
    /// Joins all arguments but the first into a string, with the first as the separator.
    AllApart,
    /// Combines all arguments into a list.
    Lists,
    /// Compares two strings, character by character.
    Compare,
    /// Matches a string against patterns.
    Match,
    /// Converts to a type that is named by an argument.
    Type,
    /// Not known to be bounded by the arguments.
    Unknown,
}

/// Functions whose result is a string or a list that is no larger than their arguments, but for a small factor that does not
/// multiply when they are nested, and those whose signature does not show that their result has a fixed size. All others of
/// variable size are evaluated in slices.
pub(super) const BOUNDED: &[&str] = &[
    "array_add",
    "array_any_value",
    "array_compact",
    "array_dims",
    "array_distinct",
    "array_element",
    "array_except",
    "array_has",
    "array_intersect",
    "array_max",
    "array_min",
    "array_normalize",
    "array_pop_back",
    "array_pop_front",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_reverse",
    "array_scale",
    "array_slice",
    "array_sort",
    "array_subtract",
    "arrow_field",
    "arrow_metadata",
    "arrow_typeof",
    "btrim",
    "cast_to_type",
    "chr",
    "coalesce",
    "date_part",
    "flatten",
    "get_field",
    "greatest",
    "initcap",
    "input_file_name",
    "least",
    "left",
    "lower",
    "ltrim",
    "map_entries",
    "map_extract",
    "map_keys",
    "map_values",
    "nullif",
    "nvl",
    "nvl2",
    "regexp_match",
    "reverse",
    "right",
    "rtrim",
    "split_part",
    "string_to_array",
    "substr",
    "substr_index",
    "to_hex",
    "translate",
    "try_cast_to_type",
    "union_extract",
    "union_tag",
    "upper",
    "uuid",
    "version",
    "with_metadata",
];

impl Growth {
    /// Returns the growth of the function of this name; `None` if its result is no larger than its arguments.
    pub(super) fn of(function: &str) -> Option<Self> {
        Some(match function {
            "repeat" => Self::Repeat,
            "lpad" | "rpad" => Self::Pad,
            "array_repeat" => Self::ListRepeat,
            "array_resize" => Self::ListResize,
            "range" | "generate_series" => Self::Range,
            "replace" => Self::Replace,
            "regexp_replace" => Self::ReplaceMatches,
            "array_replace" | "array_replace_all" | "array_replace_n" => Self::ListReplace,
            "array_to_string" => Self::Join,
            "concat" | "overlay" | "struct" | "named_struct" => Self::All,
            "concat_ws" => Self::AllApart,
            "make_array" | "array_concat" | "array_append" | "array_prepend" | "array_union" | "arrays_zip" | "map" => {
                Self::Lists
            }
            "levenshtein" => Self::Compare,
            "regexp_like" | "regexp_match" | "regexp_count" | "regexp_instr" => Self::Match,
            "arrow_cast" | "arrow_try_cast" => Self::Type,
            _ => return None,
        })
    }

    /// Returns the growth of a function; `None` if its result has a fixed size, or is no larger than its arguments.
    pub(super) fn of_function(function: &ScalarUDF) -> Option<Self> {
        /// The engine's functions whose result has a fixed size. Found once: there are sessions by the hundred.
        static FIXED: LazyLock<HashSet<String>> = LazyLock::new(|| {
            let functions = SessionStateDefaults::default_scalar_functions();
            let other = |name: &str| !BOUNDED.contains(&name) && Growth::of(name).is_none();
            let fixed = functions.iter().filter(|function| other(function.name()) && returns_fixed(function));
            fixed.map(|function| function.name().to_owned()).collect()
        });
        let name = function.name();
        let bounded = || BOUNDED.contains(&name) || FIXED.contains(name) || returns_fixed(function);
        Self::of(name).or_else(|| (!bounded()).then_some(Self::Unknown))
    }

    /// True if the result may be larger than the arguments.
    pub(super) fn is_growing(self) -> bool {
        !matches!(self, Self::Compare | Self::Match | Self::Type)
    }

    /// Rejects a call whose result would be too large. `calls` is the number of growing calls in the statement.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] naming the function.
    pub(super) fn check(self, function: &str, args: &ScalarFunctionArgs, calls: usize) -> Result<Room> {
        let values: Vec<Values<'_>> = args.args.iter().map(Values).collect();
        let same = values.iter().all(|value| matches!(value.0, ColumnarValue::Scalar(_)));
        let rows = if same { 1 } else { args.number_rows };
        let refuse = |what: String, advice: &str| {
            let message = format!("{function} {what}");
            Err(Error::new(ErrorKind::TooLarge, message).advice(advice).into())
        };
        if let (Self::Match | Self::ReplaceMatches, [_, pattern, flags @ ..]) = (self, values.as_slice()) {
            // Compiled patterns are cached by pattern and flags; the other arguments do not add to them.
            let others = if self == Self::Match { flags } else { flags.get(1..).unwrap_or_default() };
            let many = others.iter().fold(pattern.distinct(), |many, flags| many.saturating_mul(flags.distinct()));
            if many > PATTERNS {
                return refuse(
                    format!("would compile {many} regular expressions (limit {PATTERNS})"),
                    "use a literal pattern",
                );
            }
        }
        let (demand, most): (Vec<u128>, u128) = match (self, values.as_slice()) {
            (Self::Repeat, [text, count]) => (product(&text.bytes()?, &count.counts(0)?, rows), TEXT),
            (Self::Pad, [_, letters, fill @ ..]) => {
                // A character takes four bytes at most.
                let letter = if fill.is_empty() { 1 } else { 4 };
                (product(&letters.counts(0)?, &[letter], rows), TEXT)
            }
            (Self::ListRepeat, [value, count]) => (product(&value.item_bytes()?, &count.counts(0)?, rows), LIST),
            (Self::ListResize, [list, size, fill @ ..]) => {
                let item = fill.first().map_or_else(|| Ok(vec![list.width()]), Values::item_bytes)?;
                (product(&size.counts(0)?, &item, rows), LIST)
            }
            (Self::Range, ends) => (steps(ends, rows)?, LIST),
            (Self::Replace, [text, from, to, ..]) => {
                let (bytes, found, to) = (text.bytes()?, occurrences(text, from, rows)?, to.bytes()?);
                let row = |row| at(&bytes, row) + at(&found, row) * at(&to, row);
                ((0..rows).map(row).collect(), TEXT)
            }
            (Self::ReplaceMatches, [text, _, to, flags @ ..]) => {
                let (text, to, groups) = (text.bytes()?, to.bytes()?, to.groups()?);
                // Matches do not overlap, so each group contributes the string once at most.
                let matches = |text: u128| if flags.is_empty() { 1 } else { text + 1 };
                let row = |row| {
                    let text = at(&text, row);
                    text + matches(text) * at(&to, row) + text * at(&groups, row)
                };
                ((0..rows).map(row).collect(), TEXT)
            }
            (Self::ListReplace, [list, _, to, ..]) => {
                let (bytes, items, to) = (list.bytes()?, list.items()?, to.item_bytes()?);
                let row = |row| at(&bytes, row) + at(&items, row) * at(&to, row);
                ((0..rows).map(row).collect(), TEXT)
            }
            (Self::Join, [list, between, of_null @ ..]) => {
                let (items, bytes, between) = (list.leaves()?, list.bytes()?, between.bytes()?);
                let of_null = of_null.first().map_or_else(|| Ok(Vec::new()), Values::bytes)?;
                let row = |row| at(&bytes, row) + at(&items, row) * (at(&between, row) + at(&of_null, row).max(24));
                ((0..rows).map(row).collect(), TEXT)
            }
            (Self::All, parts) => (sum(parts, Values::bytes, rows)?, TEXT),
            (Self::AllApart, [between, parts @ ..]) => {
                let (parts_of, between) = (sum(parts, Values::bytes, rows)?, between.bytes()?);
                let row = |row| at(&parts_of, row) + at(&between, row) * parts.len() as u128;
                ((0..rows).map(row).collect(), TEXT)
            }
            (Self::Lists, parts) => (sum(parts, Values::item_bytes, rows)?, TEXT),
            (Self::Compare, [one, other]) => {
                let steps: u128 = product(&one.bytes()?, &other.bytes()?, rows).iter().sum();
                return match steps {
                    ..=STEPS => Ok(memory::room(0)?),
                    many => refuse(format!("would make {many} comparisons (limit {STEPS})"), "use shorter strings"),
                };
            }
            _ => return Ok(memory::room(0)?),
        };
        let most = if same { most.min(SAME) } else { most };
        check_bytes(function, &demand, most, calls)
    }
}

/// Rejects the values of a batch that would be too large, and asks for room for the others.
///
/// # Errors
/// [`ErrorKind::TooLarge`] naming the function; [`ErrorKind::Memory`].
fn check_bytes(function: &str, demand: &[u128], most: u128, calls: usize) -> Result<Room> {
    let (largest, all) = (demand.iter().max().copied().unwrap_or_default(), demand.iter().sum::<u128>());
    let batch = BATCH.min(STATEMENT / calls.max(1) as u128);
    let what = match (largest > most, all > batch) {
        (true, _) => format!("would produce a value of {largest} bytes (limit {most})"),
        (_, true) => format!("would produce {all} bytes per batch (limit {batch})"),
        _ => return Ok(memory::room_for_result(u64::try_from(all).unwrap_or(u64::MAX))?),
    };
    Err(Error::new(ErrorKind::TooLarge, format!("{function} {what}")).advice("use smaller arguments").into())
}

/// Evaluates a function for a few rows at a time, and counts their results before the next ones. `calls` is the number of
/// growing calls in the statement.
///
/// # Errors
/// Errors of the function; [`ErrorKind::TooLarge`] naming it.
pub(super) fn in_slices(
    name: &str,
    args: ScalarFunctionArgs,
    calls: usize,
    evaluate: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    /// Rows of a slice.
    const ROWS: usize = 128;
    /// Bytes of the arguments of a slice with more than one row.
    const ARGUMENTS: u128 = 64 << 10;
    if is_fixed(args.return_type()) {
        return evaluate(args);
    }
    let rows = args.number_rows;
    let same = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    if same || rows <= 1 {
        let value = evaluate(args)?;
        let _room = check_bytes(name, &Values(&value).bytes()?, if same { SAME } else { TEXT }, calls)?;
        return Ok(value);
    }
    let demand = sum(&args.args.iter().map(Values).collect::<Vec<_>>(), Values::bytes, rows)?;
    let (mut parts, mut sizes, mut from): (Vec<ArrayRef>, Vec<u128>, usize) = (Vec::new(), Vec::new(), 0);
    while from < rows {
        let (mut to, mut bytes) = (from + 1, demand[from]);
        while to < rows && to - from < ROWS && bytes + demand[to] <= ARGUMENTS {
            bytes += demand[to];
            to += 1;
        }
        let number_rows = to - from;
        let slice = |arg: &ColumnarValue| match arg {
            ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(from, number_rows)),
            ColumnarValue::Scalar(value) => ColumnarValue::Scalar(value.clone()),
        };
        let part = evaluate(ScalarFunctionArgs {
            args: args.args.iter().map(slice).collect(),
            arg_fields: args.arg_fields.clone(),
            number_rows,
            return_field: Arc::clone(&args.return_field),
            config_options: Arc::clone(&args.config_options),
        })?;
        let part = part.into_array(number_rows)?;
        sizes.extend(bytes_of(&part));
        let _room = check_bytes(name, &sizes, TEXT, calls)?;
        parts.push(part);
        from = to;
    }
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    Ok(ColumnarValue::Array(concat(&parts)?))
}

/// Checks the size of the concatenation of two strings, for all rows of a batch.
///
/// # Errors
/// [`ErrorKind::TooLarge`] beyond the limits.
pub(super) fn check_joined(args: &ScalarFunctionArgs, calls: usize) -> Result<Room> {
    Growth::All.check("||", args, calls)
}

/// True if all results of a function have a fixed size, by the types of its signature or by some types that it takes.
fn returns_fixed(function: &ScalarUDF) -> bool {
    let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
    let tried = [
        DataType::Utf8,
        DataType::Int64,
        DataType::Float64,
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        list(DataType::Int64),
        list(DataType::Utf8),
    ];
    let several = (0..5).flat_map(|count| tried.iter().map(move |of| vec![of.clone(); count]));
    let examples = function.signature().type_signature.get_example_types();
    let mut results = examples.into_iter().chain(several).filter_map(|types| {
        let fields: Vec<FieldRef> = types.into_iter().map(|of| Arc::new(Field::new("", of, true)) as _).collect();
        let fields = fields_with_udf(&fields, function).ok()?;
        let scalar_arguments = vec![None; fields.len()];
        let args = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &scalar_arguments };
        function.return_field_from_args(args).ok()
    });
    let first = results.next().is_some_and(|field| is_fixed(field.data_type()));
    first && results.all(|field| is_fixed(field.data_type()))
}

/// True if all values of a type have the same size.
fn is_fixed(of: &DataType) -> bool {
    of.primitive_width().is_some() || matches!(of, DataType::Boolean | DataType::Null | DataType::FixedSizeBinary(_))
}

/// Value for a row; a single value applies to all rows.
fn at(values: &[u128], row: usize) -> u128 {
    values.get(row).or(values.first()).copied().unwrap_or_default()
}

fn product(a: &[u128], b: &[u128], rows: usize) -> Vec<u128> {
    (0..rows).map(|row| at(a, row).saturating_mul(at(b, row))).collect()
}

fn sum<'v>(parts: &[Values<'v>], bytes: fn(&Values<'v>) -> Result<Vec<u128>>, rows: usize) -> Result<Vec<u128>> {
    let parts = parts.iter().map(bytes).collect::<Result<Vec<_>>>()?;
    Ok((0..rows).map(|row| parts.iter().map(|part| at(part, row)).sum()).collect())
}

/// Number of occurrences of one string in another.
fn occurrences(text: &Values<'_>, from: &Values<'_>, rows: usize) -> Result<Vec<u128>> {
    let (text, from) = (text.texts()?, from.texts()?);
    let (text, from) = (text.as_string::<i64>(), from.as_string::<i64>());
    let value = |texts: &'_ arrow::array::LargeStringArray, row: usize| if texts.len() == 1 { 0 } else { row };
    let row = |row: usize| {
        let (in_text, in_from) = (value(text, row), value(from, row));
        match text.is_null(in_text) || from.is_null(in_from) {
            true => 0,
            false => text.value(in_text).matches(from.value(in_from)).count() as u128,
        }
    };
    Ok((0..rows).map(row).collect())
}

/// Bytes of the values between two bounds, in steps.
fn steps(ends: &[Values<'_>], rows: usize) -> Result<Vec<u128>> {
    let ends_of = |values: &Values<'_>| values.instants();
    let (start, stop) = match ends {
        [stop] => (vec![Some(0)], ends_of(stop)?),
        [start, stop, ..] => (ends_of(start)?, ends_of(stop)?),
        [] => return Ok(Vec::new()),
    };
    let step = ends.get(2).map_or(Ok(vec![Some(1)]), Values::step)?;
    let value = |values: &[Option<i128>], row: usize| values.get(row).or(values.first()).copied().flatten();
    let row = |row: usize| match (value(&start, row), value(&stop, row), value(&step, row)) {
        // A step of zero never ends.
        (Some(_), Some(_), Some(0)) => u128::MAX >> 64,
        (Some(start), Some(stop), Some(step)) => (start.abs_diff(stop) / step.unsigned_abs() + 1).saturating_mul(8),
        _ => 0,
    };
    Ok((0..rows).map(row).collect())
}

/// An argument: one value for all rows, or one per row.
struct Values<'v>(&'v ColumnarValue);

impl Values<'_> {
    fn array(&self) -> Result<ArrayRef> {
        match self.0 {
            ColumnarValue::Array(array) => Ok(Arc::clone(array)),
            ColumnarValue::Scalar(value) => value.to_array(),
        }
    }

    /// Whole numbers; `otherwise` replaces values that are negative or NULL.
    fn counts(&self, otherwise: u128) -> Result<Vec<u128>> {
        Ok(self.integers()?.into_iter().map(|n| n.and_then(|n| n.try_into().ok()).unwrap_or(otherwise)).collect())
    }

    fn integers(&self) -> Result<Vec<Option<i128>>> {
        let array = cast(&self.array()?, &DataType::Int64)?;
        Ok(array.as_primitive::<Int64Type>().iter().map(|n| n.map(i128::from)).collect())
    }

    /// Bytes of each value.
    fn bytes(&self) -> Result<Vec<u128>> {
        Ok(bytes_of(&self.array()?))
    }

    fn texts(&self) -> Result<ArrayRef> {
        Ok(cast(&self.array()?, &DataType::LargeUtf8)?)
    }

    /// Number of match groups that each string refers to, as in `\1`.
    fn groups(&self) -> Result<Vec<u128>> {
        let texts = self.texts()?;
        let names = |text: &str| text.bytes().filter(|byte| matches!(byte, b'\\' | b'$')).count() as u128;
        Ok(texts.as_string::<i64>().iter().map(|text| text.map_or(0, names)).collect())
    }

    /// Bytes of each value as a list item.
    fn item_bytes(&self) -> Result<Vec<u128>> {
        Ok(self.bytes()?.into_iter().map(|bytes| bytes.max(8)).collect())
    }

    /// Items of each list.
    fn items(&self) -> Result<Vec<u128>> {
        let array = self.array()?;
        Ok(item_sums(&array, |items| vec![1; items.len()]).unwrap_or_else(|| vec![1; array.len()]))
    }

    /// Number of items of each list, with nested lists flattened.
    fn leaves(&self) -> Result<Vec<u128>> {
        Ok(leaves_of(&self.array()?))
    }

    /// Bytes of a NULL or empty item of each list.
    fn width(&self) -> u128 {
        match self.0.data_type() {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                width(item.data_type())
            }
            other => width(&other),
        }
    }

    /// Number of distinct values.
    fn distinct(&self) -> usize {
        match self.0 {
            ColumnarValue::Scalar(_) => 1,
            ColumnarValue::Array(array) => {
                let rows = (0..array.len()).filter_map(|row| ScalarValue::try_from_array(array, row).ok());
                rows.collect::<HashSet<_>>().len()
            }
        }
    }

    /// Numbers, or instants in nanoseconds.
    fn instants(&self) -> Result<Vec<Option<i128>>> {
        let array = self.array()?;
        let per_unit: i128 = match array.data_type() {
            DataType::Date32 => 86_400_000_000_000,
            DataType::Date64 => 1_000_000,
            DataType::Timestamp(unit, _) => match unit {
                TimeUnit::Second => 1_000_000_000,
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1_000,
                TimeUnit::Nanosecond => 1,
            },
            _ => 1,
        };
        let array = match array.data_type() {
            DataType::Date32 => cast(&array, &DataType::Int32)?,
            _ => array,
        };
        let numbers = cast(&array, &DataType::Int64)?;
        Ok(numbers.as_primitive::<Int64Type>().iter().map(|n| n.map(|n| i128::from(n) * per_unit)).collect())
    }

    /// A step: a number, or the shortest possible length of an interval in nanoseconds.
    fn step(&self) -> Result<Vec<Option<i128>>> {
        /// Days of the shortest month.
        const MONTH: i128 = 28;
        const DAY: i128 = 86_400_000_000_000;
        let array = self.array()?;
        if !matches!(array.data_type(), DataType::Interval(_)) {
            return self.integers();
        }
        let array = cast(&array, &DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano))?;
        let step = |months: i32, days: i32, nanoseconds: i64| {
            let (months, days, rest) = (i128::from(months), i128::from(days), i128::from(nanoseconds));
            let parts = [months * MONTH * DAY, days * DAY, rest];
            // Parts of opposite sign may cancel out.
            let one_way = parts.iter().all(|part| *part >= 0) || parts.iter().all(|part| *part <= 0);
            if one_way { parts.iter().sum() } else { 0 }
        };
        let steps = array.as_primitive::<IntervalMonthDayNanoType>();
        Ok(steps.iter().map(|at| at.map(|at| step(at.months, at.days, at.nanoseconds))).collect())
    }
}

/// Bytes of each value of an array. A shared value is counted each time.
pub(super) fn bytes_of(array: &ArrayRef) -> Vec<u128> {
    let lengths =
        |offsets: &mut dyn Iterator<Item = (i64, i64)>| offsets.map(|(from, to)| to.abs_diff(from).into()).collect();
    let narrow = |offsets: &[i32]| lengths(&mut offsets.windows(2).map(|pair| (pair[0].into(), pair[1].into())));
    let wide = |offsets: &[i64]| lengths(&mut offsets.windows(2).map(|pair| (pair[0], pair[1])));
    // The length is in the lowest 32 bits of a view.
    let views = |views: &[u128]| views.iter().map(|view| view & u128::from(u32::MAX)).collect();
    match array.data_type() {
        DataType::Utf8 => narrow(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => wide(array.as_string::<i64>().value_offsets()),
        DataType::Binary => narrow(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => wide(array.as_binary::<i64>().value_offsets()),
        DataType::Utf8View => views(array.as_string_view().views()),
        DataType::BinaryView => views(array.as_binary_view().views()),
        DataType::Struct(_) => {
            let columns: Vec<Vec<u128>> = array.as_struct().columns().iter().map(bytes_of).collect();
            (0..array.len()).map(|row| columns.iter().map(|column| at(column, row)).sum()).collect()
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = bytes_of(dictionary.values());
            // The key of a NULL is arbitrary.
            dictionary.normalized_keys().into_iter().map(|key| values.get(key).copied().unwrap_or_default()).collect()
        }
        DataType::Union(..) | DataType::RunEndEncoded(..) | DataType::ListView(_) | DataType::LargeListView(_) => {
            let all = array.get_array_memory_size() as u128;
            vec![all; array.len()]
        }
        of => item_sums(array, bytes_of).unwrap_or_else(|| repeat_n(width(of), array.len()).collect()),
    }
}

/// Number of items of each list of an array, with nested lists flattened.
pub(super) fn leaves_of(array: &ArrayRef) -> Vec<u128> {
    item_sums(array, leaves_of).unwrap_or_else(|| vec![1; array.len()])
}

/// Sums a measure of the items over each list of an array; `None` if the array has no lists.
pub(super) fn item_sums(array: &ArrayRef, of_items: impl FnOnce(&ArrayRef) -> Vec<u128>) -> Option<Vec<u128>> {
    let (items, offsets): (ArrayRef, Vec<usize>) = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (
                Arc::clone(list.values()),
                list.value_offsets().iter().map(|at| usize::try_from(*at).unwrap_or_default()).collect(),
            )
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (
                Arc::clone(list.values()),
                list.value_offsets().iter().map(|at| usize::try_from(*at).unwrap_or_default()).collect(),
            )
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let offsets = map.value_offsets().iter().map(|at| usize::try_from(*at).unwrap_or_default()).collect();
            (make_array(map.entries().to_data()), offsets)
        }
        DataType::FixedSizeList(_, size) => {
            let (list, size) = (array.as_fixed_size_list(), usize::try_from(*size).unwrap_or_default());
            (Arc::clone(list.values()), (0..=array.len()).map(|row| row * size).collect())
        }
        _ => return None,
    };
    // A slice of a list array still holds all items of the original.
    let (first, last) = (offsets.first().copied().unwrap_or_default(), offsets.last().copied().unwrap_or_default());
    let sizes = of_items(&items.slice(first, last - first));
    let row = |pair: &[usize]| (pair[0]..pair[1]).map(|item| at(&sizes, item - first)).sum();
    Some(offsets.windows(2).map(row).collect())
}

/// Bytes of a fixed-width value, or of the fixed part of any other.
fn width(of: &DataType) -> u128 {
    match of {
        DataType::FixedSizeBinary(size) => u128::try_from(*size).unwrap_or_default(),
        DataType::FixedSizeList(item, size) => u128::try_from(*size).unwrap_or_default() * width(item.data_type()),
        DataType::Struct(fields) => fields.iter().map(|field| width(field.data_type())).sum(),
        of => of.primitive_width().unwrap_or(16) as u128,
    }
}
