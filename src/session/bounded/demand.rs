//! Growth of functions, and the size of a result, computed from the arguments before anything is allocated.

use std::collections::{HashMap, HashSet};
use std::iter::repeat_n;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, IntervalMonthDayNanoType, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};

use crate::functions;
use crate::memory::{self, Room};
use crate::session::plan_size::too_large;

/// Maximum bytes of one string.
pub(super) const TEXT: u128 = 1 << 20;
/// Maximum bytes of a string that is the same for all rows: it is repeated for each row of a batch.
pub(super) const SAME: u128 = 128 << 10;
/// Maximum bytes of one list.
const LIST: u128 = 64 << 10;
/// Maximum bytes of all values of a batch.
const BATCH: u128 = 64 << 20;
/// Maximum bytes of all values that the calls of a statement produce per batch.
const STATEMENT: u128 = 1 << 30;
/// Maximum number of regular expressions compiled per batch.
const PATTERNS: usize = 10;

/// Growth of a function's result, or of its time, relative to its arguments.
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
    /// Compares the items of two lists, each with each.
    Pairs,
    /// Matches a string against regular expressions.
    Match,
    /// Finds all matches of a regular expression in a string.
    MatchAll,
    /// Matches a string against a pattern of LIKE.
    Like,
    /// Looks up the characters at the ends of a string in another one.
    Trim,
    /// Looks for a string in another one, at each place of the latter.
    Search,
    /// Converts to a type that is named by an argument.
    Type,
    /// Neither result nor time grows beyond the arguments.
    Linear,
    /// A result of a fixed size, in a time that is not known to be bounded by the arguments.
    Slow,
    /// Not known to be bounded by the arguments.
    Unknown,
}

/// Number of calls in a statement that share a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Calls {
    /// Calls whose result may be larger than their arguments.
    pub(super) growing: usize,
    /// Calls that compare each part of an argument with each of another.
    pub(super) comparing: usize,
}

impl Calls {
    /// A single call.
    pub(super) const ONE: Self = Self { growing: 1, comparing: 1 };

    /// Counts a call.
    pub(super) fn add(&mut self, growth: Growth) {
        self.growing += usize::from(growth.is_growing());
        self.comparing += usize::from(growth.is_comparing());
    }
}

/// Functions whose time and result are linear in the bytes of their arguments, but for a small factor that does not
/// multiply when they are nested. All others that take or return values of variable size are evaluated in slices.
pub(super) const LINEAR: &[&str] = &[
    "array_add",
    "array_any_value",
    "array_avg",
    "array_compact",
    "array_dims",
    "array_distance",
    "array_distinct",
    "array_element",
    "array_except",
    "array_has",
    "array_intersect",
    "array_length",
    "array_max",
    "array_min",
    "array_ndims",
    "array_normalize",
    "array_pop_back",
    "array_pop_front",
    "array_position",
    "array_positions",
    "array_product",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_reverse",
    "array_scale",
    "array_slice",
    "array_sort",
    "array_subtract",
    "array_sum",
    "arrow_field",
    "arrow_metadata",
    "arrow_typeof",
    "ascii",
    "bit_length",
    "cardinality",
    "cast_to_type",
    "character_length",
    "chr",
    "coalesce",
    "contains",
    "cosine_distance",
    "empty",
    "ends_with",
    "find_in_set",
    "flatten",
    "from_unixtime",
    "greatest",
    "in_values",
    "initcap",
    "inner_product",
    "input_file_name",
    "json_as_text",
    "json_contains",
    "json_get_array",
    "json_get_bool",
    "json_get_float",
    "json_get_int",
    "json_get_json",
    "json_get_str",
    "json_length",
    "json_object_keys",
    "least",
    "left",
    "lower",
    "map_entries",
    "map_extract",
    "map_keys",
    "map_values",
    "nested_key",
    "nullif",
    "nvl",
    "nvl2",
    "octet_length",
    "reverse",
    "right",
    "split_part",
    "starts_with",
    "string_to_array",
    "substr",
    "substr_index",
    "to_date",
    "to_hex",
    "to_local_time",
    "to_time",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_unixtime",
    "translate",
    "try_cast_to_type",
    "union_extract",
    "union_tag",
    "upper",
    "uuid",
    "version",
    "with_metadata",
];

/// Functions that other code recognizes by their type, or whose time does not depend on their arguments. They are
/// called as they are. Those of words end with their statement by themselves.
const UNCHANGED: &[&str] = &[
    "changes",
    "date_part",
    "date_trunc",
    "get_field",
    "match",
    "match_score",
    "only_value",
    "opaque",
    "savedsearch_stoppable",
];

impl Growth {
    /// Returns the growth of the function of this name; `None` if it is not known to grow.
    fn of(function: &str) -> Option<Self> {
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
            "array_has_all" | "array_has_any" => Self::Pairs,
            "regexp_like" | "regexp_match" | "~" | "~*" | "!~" | "!~*" => Self::Match,
            "regexp_count" | "regexp_instr" => Self::MatchAll,
            "LIKE" | "ILIKE" | "NOT LIKE" | "NOT ILIKE" => Self::Like,
            "btrim" | "ltrim" | "rtrim" => Self::Trim,
            "strpos" => Self::Search,
            "arrow_cast" | "arrow_try_cast" => Self::Type,
            _ => return None,
        })
    }

    /// Returns the growth of a function; `None` if it is called as it is.
    pub(super) fn of_function(function: &ScalarUDF) -> Option<Self> {
        /// Functions of the engine and of this crate. Decided once: there are sessions by the hundred.
        static KNOWN: LazyLock<HashMap<String, Option<Growth>>> = LazyLock::new(|| {
            let known = SessionStateDefaults::default_scalar_functions().into_iter().chain(functions::all());
            known.map(|function| (function.name().to_owned(), Growth::decide(&function))).collect()
        });
        KNOWN.get(function.name()).copied().unwrap_or_else(|| Self::decide(function))
    }

    fn decide(function: &ScalarUDF) -> Option<Self> {
        let name = function.name();
        if let Some(known) = Self::of(name) {
            return Some(known);
        }
        if UNCHANGED.contains(&name) {
            return None;
        }
        let fixed = FixedSizes::of(function);
        match (LINEAR.contains(&name), fixed.returns) {
            (true, _) => (!fixed.takes).then_some(Self::Linear),
            (false, true) => (!fixed.takes).then_some(Self::Slow),
            (false, false) => Some(Self::Unknown),
        }
    }

    /// True if the calls of a statement share its limit.
    pub(super) fn is_shared(self) -> bool {
        self.is_growing() || self.is_comparing()
    }

    /// True if the result may be larger than the arguments.
    fn is_growing(self) -> bool {
        use Growth::{Compare, Like, Linear, Match, MatchAll, Pairs, Search, Slow, Trim, Type};
        !matches!(self, Compare | Like | Linear | Match | MatchAll | Pairs | Search | Slow | Trim | Type)
    }

    /// True if each part of an argument is compared with each of another.
    fn is_comparing(self) -> bool {
        matches!(self, Self::Compare | Self::Pairs)
    }

    /// Flags of a regular expression among the arguments of a function.
    pub(super) fn flags<'a, 'v>(self, values: &'a [Values<'v>]) -> &'a [Values<'v>] {
        let before = if self == Self::ReplaceMatches { 3 } else { 2 };
        values.get(before..).unwrap_or_default()
    }

    /// Rejects a call whose result would be too large. `calls` is the number of growing calls in the statement.
    ///
    /// # Errors
    /// [`TooLarge`](crate::ErrorKind::TooLarge) naming the function.
    pub(super) fn check(self, function: &str, args: &ScalarFunctionArgs, calls: usize) -> Result<Room> {
        let Given { values, same, rows } = Given::of(args);
        if let (Self::Match | Self::MatchAll | Self::ReplaceMatches, [_, pattern, ..]) = (self, values.as_slice()) {
            // Compiled patterns are cached by pattern and flags; the other arguments do not add to them.
            let flags = self.flags(&values).iter();
            let many = flags.fold(pattern.distinct(), |many, flags| many.saturating_mul(flags.distinct()));
            if many > PATTERNS {
                let message = format!("{function} would compile {many} regular expressions (limit {PATTERNS})");
                return Err(too_large(message, "use a literal pattern"));
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
            _ => return Ok(memory::room(0)?),
        };
        let most = if same { most.min(SAME) } else { most };
        check_bytes(function, &demand, most, calls)
    }
}

/// Rejects the values of a batch that would be too large, and asks for room for the others.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge) naming the function; [`Memory`](crate::ErrorKind::Memory).
pub(super) fn check_bytes(function: &str, demand: &[u128], most: u128, calls: usize) -> Result<Room> {
    let (largest, all) = (demand.iter().max().copied().unwrap_or_default(), demand.iter().sum::<u128>());
    let batch = BATCH.min(STATEMENT / calls.max(1) as u128);
    let what = match (largest > most, all > batch) {
        (true, _) => format!("would produce a value of {largest} bytes (limit {most})"),
        (_, true) => format!("would produce {all} bytes per batch (limit {batch})"),
        _ => return Ok(memory::room_for_result(u64::try_from(all).unwrap_or(u64::MAX))?),
    };
    Err(too_large(format!("{function} {what}"), "use smaller arguments"))
}

/// Checks the size of the concatenation of two strings, for all rows of a batch.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge) beyond the limits.
pub(super) fn check_joined(args: &ScalarFunctionArgs, calls: usize) -> Result<Room> {
    Growth::All.check("||", args, calls)
}

/// Values of a function that have a fixed size, by the types of its signature and by some types that it takes.
struct FixedSizes {
    /// All arguments.
    takes: bool,
    /// All results.
    returns: bool,
}

impl FixedSizes {
    fn of(function: &ScalarUDF) -> Self {
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
        let calls = examples.into_iter().chain(several).filter_map(|types| {
            let fields: Vec<FieldRef> = types.into_iter().map(|of| Arc::new(Field::new("", of, true)) as _).collect();
            let fields = fields_with_udf(&fields, function).ok()?;
            let scalar_arguments = vec![None; fields.len()];
            let args = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &scalar_arguments };
            let result = function.return_field_from_args(args).ok()?;
            let takes = fields.iter().all(|field| is_fixed(field.data_type()));
            Some(Self { takes, returns: is_fixed(result.data_type()) })
        });
        let all =
            |one: Self, other: Self| Self { takes: one.takes && other.takes, returns: one.returns && other.returns };
        calls.reduce(all).unwrap_or(Self { takes: false, returns: false })
    }
}

/// True if all values of a type have the same size.
pub(super) fn is_fixed(of: &DataType) -> bool {
    of.primitive_width().is_some() || matches!(of, DataType::Boolean | DataType::Null | DataType::FixedSizeBinary(_))
}

/// Value for a row; a single value applies to all rows.
pub(super) fn at<T: Copy + Default>(values: &[T], row: usize) -> T {
    values.get(row).or(values.first()).copied().unwrap_or_default()
}

pub(super) fn product(a: &[u128], b: &[u128], rows: usize) -> Vec<u128> {
    (0..rows).map(|row| at(a, row).saturating_mul(at(b, row))).collect()
}

pub(super) fn sum<'v>(
    parts: &[Values<'v>],
    bytes: fn(&Values<'v>) -> Result<Vec<u128>>,
    rows: usize,
) -> Result<Vec<u128>> {
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

/// Arguments of a call.
pub(super) struct Given<'v> {
    pub(super) values: Vec<Values<'v>>,
    /// True if they are the same for all rows.
    pub(super) same: bool,
    /// Rows for which the function is computed.
    pub(super) rows: usize,
}

impl<'v> Given<'v> {
    pub(super) fn of(args: &'v ScalarFunctionArgs) -> Self {
        let values: Vec<Values<'v>> = args.args.iter().map(Values).collect();
        let same = values.iter().all(Values::is_same);
        Self { values, same, rows: if same { 1 } else { args.number_rows } }
    }
}

/// An argument: one value for all rows, or one per row.
pub(super) struct Values<'v>(pub(super) &'v ColumnarValue);

impl Values<'_> {
    /// True for one value for all rows.
    pub(super) fn is_same(&self) -> bool {
        matches!(self.0, ColumnarValue::Scalar(_))
    }

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
    pub(super) fn bytes(&self) -> Result<Vec<u128>> {
        Ok(bytes_of(&self.array()?))
    }

    pub(super) fn texts(&self) -> Result<ArrayRef> {
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
    pub(super) fn items(&self) -> Result<Vec<u128>> {
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
