//! What the result of a function takes, reckoned from its arguments before anything is allocated.

use std::iter::repeat_n;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNanoType};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::error::{Error, ErrorKind};

/// Bytes of one text.
const TEXT: u128 = 1 << 20;
/// Bytes of a text that is the same for all rows: it is repeated for each of a batch.
const SAME: u128 = 128 << 10;
/// Bytes of one list.
const LIST: u128 = 64 << 10;
/// Bytes of all values of a batch together.
const BATCH: u128 = 64 << 20;
/// Bytes of all values that the calls of a statement make of a batch each.
const STATEMENT: u128 = 1 << 30;
/// Comparisons of letters for a batch.
const STEPS: u128 = 1 << 30;
/// Regular expressions that are compiled for a batch.
const PATTERNS: usize = 10;

/// How a function multiplies what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Growth {
    /// A text, a number of times.
    Repeat,
    /// A text, filled up to a number of letters.
    Pad,
    /// A value, a number of times.
    ListRepeat,
    /// A list, filled up to a number of items.
    ListResize,
    /// From a number or an instant to another, by steps.
    Range,
    /// A text, each occurrence of another replaced by a third.
    Replace,
    /// A text, each match of a pattern replaced by another.
    ReplaceMatches,
    /// A list, its items replaced by a value.
    ListReplace,
    /// The items of a list with a text between them.
    Join,
    /// All arguments together, as one value.
    All,
    /// All arguments but the first together, as a text, with that one between them.
    AllApart,
    /// All arguments together, as a list.
    Lists,
    /// A text compared with another, letter by letter.
    Compare,
    /// A text matched with patterns.
    Match,
    /// A type whose name is an argument.
    Type,
}

impl Growth {
    /// How the function of this name grows; `None` for one that gives no more than it takes.
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

    /// Whether what it gives may be larger than what it is given.
    pub(super) fn is_growing(self) -> bool {
        !matches!(self, Self::Compare | Self::Match | Self::Type)
    }

    /// Refuses a call whose result would be too large. `calls`: how many of the statement grow.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] naming the function.
    pub(super) fn check(self, function: &str, args: &ScalarFunctionArgs, calls: usize) -> Result<()> {
        let values: Vec<Values<'_>> = args.args.iter().map(Values).collect();
        let same = values.iter().all(|value| matches!(value.0, ColumnarValue::Scalar(_)));
        let rows = if same { 1 } else { args.number_rows };
        let refuse = |what: String| {
            let message = format!("{function} {what}");
            Err(Error::new(ErrorKind::TooLarge, message).advice("ask for a smaller one").into())
        };
        if let (Self::Match | Self::ReplaceMatches, [_, pattern, flags @ ..]) = (self, values.as_slice()) {
            // They are kept by pattern and flags; what else is among the arguments makes no more of them.
            let others = if self == Self::Match { flags } else { flags.get(1..).unwrap_or_default() };
            let many = others.iter().fold(pattern.distinct(), |many, flags| many.saturating_mul(flags.distinct()));
            if many > PATTERNS {
                return refuse(format!("would compile {many} regular expressions, {PATTERNS} are allowed"));
            }
        }
        let (demand, most): (Vec<u128>, u128) = match (self, values.as_slice()) {
            (Self::Repeat, [text, count]) => (product(&text.bytes()?, &count.counts(0)?, rows), TEXT),
            (Self::Pad, [_, letters, fill @ ..]) => {
                // A letter takes four bytes at most.
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
                // Matches do not overlap, so that each group gives the text once at most.
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
                    ..=STEPS => Ok(()),
                    many => refuse(format!("would take {many} steps, {STEPS} are allowed")),
                };
            }
            _ => return Ok(()),
        };
        let most = if same { most.min(SAME) } else { most };
        let (largest, all) = (demand.iter().max().copied().unwrap_or_default(), demand.iter().sum::<u128>());
        let batch = BATCH.min(STATEMENT / calls.max(1) as u128);
        match (largest > most, all > batch) {
            (true, _) => refuse(format!("would make a value of {largest} bytes, {most} are allowed")),
            (_, true) => refuse(format!("would make {all} bytes at once, {batch} are allowed")),
            _ => Ok(()),
        }
    }
}

/// Bytes that two texts take together in the rows of a batch.
///
/// # Errors
/// [`ErrorKind::TooLarge`] beyond the bounds.
pub(super) fn check_joined(args: &ScalarFunctionArgs, calls: usize) -> Result<()> {
    Growth::All.check("||", args, calls)
}

/// Elements of a list of values; one value stands for all rows.
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

/// How often a text is found in another.
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

/// Bytes of what lies between two ends, by steps.
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
        // A step of nothing never ends.
        (Some(_), Some(_), Some(0)) => u128::MAX >> 64,
        (Some(start), Some(stop), Some(step)) => (start.abs_diff(stop) / step.unsigned_abs() + 1).saturating_mul(8),
        _ => 0,
    };
    Ok((0..rows).map(row).collect())
}

/// An argument: one value for all rows, or one a row.
struct Values<'v>(&'v ColumnarValue);

impl Values<'_> {
    fn array(&self) -> Result<ArrayRef> {
        match self.0 {
            ColumnarValue::Array(array) => Ok(Arc::clone(array)),
            ColumnarValue::Scalar(value) => value.to_array(),
        }
    }

    /// Whole numbers, `otherwise` for those that are none or less than zero.
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

    /// Groups of a match that each text names, as `\1`.
    fn groups(&self) -> Result<Vec<u128>> {
        let texts = self.texts()?;
        let names = |text: &str| text.bytes().filter(|byte| matches!(byte, b'\\' | b'$')).count() as u128;
        Ok(texts.as_string::<i64>().iter().map(|text| text.map_or(0, names)).collect())
    }

    /// Bytes of each value as an item of a list.
    fn item_bytes(&self) -> Result<Vec<u128>> {
        Ok(self.bytes()?.into_iter().map(|bytes| bytes.max(8)).collect())
    }

    /// Items of each list.
    fn items(&self) -> Result<Vec<u128>> {
        let array = self.array()?;
        Ok(item_sums(&array, |items| vec![1; items.len()]).unwrap_or_else(|| vec![1; array.len()]))
    }

    /// Items of each list, those of lists within it in their place.
    fn leaves(&self) -> Result<Vec<u128>> {
        Ok(leaves_of(&self.array()?))
    }

    /// Bytes of an item of each list that is NULL, or empty.
    fn width(&self) -> u128 {
        match self.0.data_type() {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                width(item.data_type())
            }
            other => width(&other),
        }
    }

    /// How many values differ.
    fn distinct(&self) -> usize {
        match self.0 {
            ColumnarValue::Scalar(_) => 1,
            ColumnarValue::Array(array) => {
                let rows = (0..array.len()).filter_map(|row| ScalarValue::try_from_array(array, row).ok());
                rows.collect::<std::collections::HashSet<_>>().len()
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
                arrow::datatypes::TimeUnit::Second => 1_000_000_000,
                arrow::datatypes::TimeUnit::Millisecond => 1_000_000,
                arrow::datatypes::TimeUnit::Microsecond => 1_000,
                arrow::datatypes::TimeUnit::Nanosecond => 1,
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

    /// A step: a number, or the shortest that an interval may come to, in nanoseconds.
    fn step(&self) -> Result<Vec<Option<i128>>> {
        /// The shortest month.
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
            // Parts that go both ways may come to nothing.
            let one_way = parts.iter().all(|part| *part >= 0) || parts.iter().all(|part| *part <= 0);
            if one_way { parts.iter().sum() } else { 0 }
        };
        let steps = array.as_primitive::<IntervalMonthDayNanoType>();
        Ok(steps.iter().map(|at| at.map(|at| step(at.months, at.days, at.nanoseconds))).collect())
    }
}

/// Bytes of each value of an array, one that it shares with others counted for each.
pub(super) fn bytes_of(array: &ArrayRef) -> Vec<u128> {
    let lengths =
        |offsets: &mut dyn Iterator<Item = (i64, i64)>| offsets.map(|(from, to)| to.abs_diff(from).into()).collect();
    let narrow = |offsets: &[i32]| lengths(&mut offsets.windows(2).map(|pair| (pair[0].into(), pair[1].into())));
    let wide = |offsets: &[i64]| lengths(&mut offsets.windows(2).map(|pair| (pair[0], pair[1])));
    // The length stands in the lower half of a view's first half.
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
            // A key that is NULL may be any.
            dictionary.normalized_keys().into_iter().map(|key| values.get(key).copied().unwrap_or_default()).collect()
        }
        DataType::Union(..) | DataType::RunEndEncoded(..) | DataType::ListView(_) | DataType::LargeListView(_) => {
            let all = array.get_array_memory_size() as u128;
            vec![all; array.len()]
        }
        of => item_sums(array, bytes_of).unwrap_or_else(|| repeat_n(width(of), array.len()).collect()),
    }
}

/// The items of each list of an array, those of lists within it in their place.
pub(super) fn leaves_of(array: &ArrayRef) -> Vec<u128> {
    item_sums(array, leaves_of).unwrap_or_else(|| vec![1; array.len()])
}

/// For each list of an array, the sum of what is said of its items; `None` for what holds no lists.
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
    // A slice of an array has all items of the whole.
    let (first, last) = (offsets.first().copied().unwrap_or_default(), offsets.last().copied().unwrap_or_default());
    let sizes = of_items(&items.slice(first, last - first));
    let row = |pair: &[usize]| (pair[0]..pair[1]).map(|item| at(&sizes, item - first)).sum();
    Some(offsets.windows(2).map(row).collect())
}

/// Bytes of a value of fixed width, or of what is kept of one that has none.
fn width(of: &DataType) -> u128 {
    match of {
        DataType::FixedSizeBinary(size) => u128::try_from(*size).unwrap_or_default(),
        DataType::FixedSizeList(item, size) => u128::try_from(*size).unwrap_or_default() * width(item.data_type()),
        DataType::Struct(fields) => fields.iter().map(|field| width(field.data_type())).sum(),
        of => of.primitive_width().unwrap_or(16) as u128,
    }
}
