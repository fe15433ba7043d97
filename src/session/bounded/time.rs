//! Time of a function's call, in steps computed from its arguments. A call that takes long is evaluated for a few rows
//! at a time, so that its statement can be ended.
//!
//! A step is a comparison of two characters or items, or a state of a regular expression at a byte of a text: about a
//! nanosecond.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::concat;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::demand::{Calls, Given, Growth, SAME, TEXT, Values, at, check_bytes, is_fixed, product, sum};
use crate::memory;
use crate::session::plan_size::too_large;

/// Maximum number of steps before the next check that the statement goes on, and of comparisons of all its calls per
/// batch.
const STEPS: u128 = 1 << 30;
/// Maximum number of steps for a single row.
const ROW: u128 = 1 << 32;
/// Steps that it takes to compile a byte of a pattern.
const COMPILED: u128 = 1 << 14;
/// Bytes that are compared in one step.
const COMPARED: u128 = 16;
/// Maximum number of wildcards in a pattern of LIKE.
const WILDCARDS: usize = 64;

impl Growth {
    /// Evaluates a function within the limits of its result and its time. `calls` are those in the statement.
    ///
    /// # Errors
    /// Errors of the function; [`TooLarge`](crate::ErrorKind::TooLarge) naming it; that of [`memory::check`].
    pub(super) fn evaluate(
        self,
        name: &str,
        args: ScalarFunctionArgs,
        calls: Calls,
        function: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
    ) -> Result<ColumnarValue> {
        match self {
            Self::Linear => {
                memory::check()?;
                function(args)
            }
            Self::Slow | Self::Unknown => unknown(name, args, calls.growing, function),
            _ => {
                let _room = self.check(name, &args, calls.growing)?;
                let steps = self.steps(name, &args, calls.comparing)?;
                in_slices(args, &slices(&steps, STEPS, usize::MAX), function, |_| Ok(()))
            }
        }
    }

    /// Steps that a call takes for each row; none if its time is linear in the bytes of its arguments and its result.
    /// `calls` is the number of comparing calls in the statement.
    ///
    /// # Errors
    /// [`TooLarge`](crate::ErrorKind::TooLarge) naming the function, for too many comparisons, or steps for a row.
    fn steps(self, function: &str, args: &ScalarFunctionArgs, calls: usize) -> Result<Vec<u128>> {
        let Given { values, rows, .. } = Given::of(args);
        let (steps, advice) = match (self, values.as_slice()) {
            (Self::Compare, [one, other]) => (product(&one.bytes()?, &other.bytes()?, rows), "use shorter strings"),
            (Self::Pairs, [one, other]) => {
                let bytes = other.bytes()?.into_iter();
                let costs: Vec<u128> = other.items()?.into_iter().zip(bytes).map(|(n, b)| n + b / COMPARED).collect();
                (product(&one.items()?, &costs, rows), "use shorter lists")
            }
            (Self::Match | Self::MatchAll | Self::ReplaceMatches, [text, pattern, ..]) => {
                let advice = "use shorter texts, or a pattern without alternatives and repeated groups";
                (self.matching(text, pattern, self.flags(&values), rows)?, advice)
            }
            (Self::Like, [text, pattern]) => {
                check_wildcards(pattern)?;
                // A pattern that differs from that of the row before is compiled.
                let compiled = if pattern.is_same() { 0 } else { COMPILED };
                let (text, pattern) = (text.bytes()?, pattern.bytes()?);
                let row = |row| (at(&text, row) + compiled).saturating_mul(at(&pattern, row));
                ((0..rows).map(row).collect(), "use shorter texts or patterns")
            }
            (Self::Trim, [text, letters]) => {
                (product(&text.bytes()?, &letters.bytes()?, rows), "use fewer characters to trim")
            }
            // One string for all rows is prepared once.
            (Self::Search, [text, sought]) if text.is_same() || !sought.is_same() => {
                let steps = product(&text.bytes()?, &sought.bytes()?, rows);
                (steps.into_iter().map(|steps| steps / COMPARED).collect(), "use shorter strings")
            }
            _ => return Ok(Vec::new()),
        };
        let (many, most, what) = match self {
            Self::Compare | Self::Pairs => (steps.iter().sum::<u128>(), STEPS / calls.max(1) as u128, "comparisons"),
            _ => (steps.iter().max().copied().unwrap_or_default(), ROW, "steps for a single row"),
        };
        match many <= most {
            true => Ok(steps),
            false => Err(too_large(format!("{function} would take {many} {what} (limit {most})"), advice)),
        }
    }

    /// Steps that it takes to match texts with regular expressions.
    fn matching(self, text: &Values<'_>, pattern: &Values<'_>, flags: &[Values<'_>], rows: usize) -> Result<Vec<u128>> {
        let (verbose, all) = (has(flags, 'x')?, self == Self::MatchAll || has(flags, 'g')?);
        let patterns = pattern.texts()?;
        let patterns = patterns.as_string::<i64>().iter();
        let costs: Vec<Cost> = patterns.map(|pattern| Cost::of(pattern.unwrap_or_default(), verbose)).collect();
        let text = text.bytes()?;
        let row = |row| {
            let (text, Cost { states, rereads }) = (at(&text, row), at(&costs, row));
            text.saturating_mul(if all && rereads { states.max(text) } else { states })
        };
        Ok((0..rows).map(row).collect())
    }
}

/// True if flags contain a letter.
fn has(flags: &[Values<'_>], letter: char) -> Result<bool> {
    for flags in flags {
        if flags.texts()?.as_string::<i64>().iter().flatten().any(|flags| flags.contains(letter)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Time that a regular expression takes for each byte of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cost {
    /// Upper bound for the states at a byte: the bytes of the pattern, times the numbers of its repetitions.
    states: u128,
    /// True if the search for a match may read far beyond it, and the search for the next match the same again: in
    /// `a*b|a`, the first alternative reads on after the second one has matched.
    ///
    /// It takes a part that is repeated without limit, and one that may be left out. Without the latter, each match
    /// leaves each repeated part at some place. A search that reads on beyond the next match is in a repeated part at
    /// such a place. It would leave the part there, too, and end where that match ends.
    rereads: bool,
}

impl Cost {
    /// The cost of a pattern; `verbose`: spaces and comments in it are ignored.
    fn of(pattern: &str, verbose: bool) -> Self {
        /// Ends of a group that is repeated or optional, and of a repetition that is repeated.
        const REPEATED: [&str; 10] = [")*", ")+", ")?", "){", "}*", "}+", "}{", "*{", "+{", "?{"];
        let is_flag = |letter: &char| letter.is_ascii_alphabetic() || *letter == '-';
        let sets_x = |part: &str| part.chars().take_while(is_flag).any(|flag| flag == 'x');
        let verbose = verbose || pattern.split("(?").skip(1).any(sets_x);
        let mut unlimited = pattern.contains(['*', '+']);
        let (mut single, mut nested) = (1_u128, 1_u128);
        let mut parts = pattern.split('{');
        let mut before = parts.next().unwrap_or_default();
        for part in parts {
            let counts = part.split_once('}').map_or("", |(counts, _)| counts);
            let count = counts.split(',').filter_map(|count| count.trim().parse::<u128>().ok()).max().unwrap_or(1);
            unlimited |= counts.trim_end().ends_with(',');
            // Of a group, which may contain others, or of a repetition.
            if verbose || before.ends_with([')', '}', '*', '+', '?']) {
                nested = nested.saturating_mul(count.max(1));
            } else {
                single = single.max(count);
            }
            before = part;
        }
        let omits = verbose || pattern.contains('|') || REPEATED.iter().any(|end| pattern.contains(*end));
        let states = (pattern.len() as u128).saturating_mul(single).saturating_mul(nested).max(1);
        Self { states, rereads: unlimited && omits }
    }
}

/// Rejects patterns of LIKE with many wildcards.
fn check_wildcards(patterns: &Values<'_>) -> Result<()> {
    patterns.texts()?.as_string::<i64>().iter().flatten().try_for_each(check_pattern)
}

/// Rejects a pattern of LIKE with many wildcards: in the engine, it is a regular expression that repeats as many parts.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge).
pub(super) fn check_pattern(pattern: &str) -> Result<()> {
    let (mut wildcards, mut within, mut escaped) = (0, false, false);
    for character in pattern.chars() {
        let is_wildcard = !escaped && matches!(character, '%' | '_');
        wildcards += usize::from(is_wildcard && !within);
        (within, escaped) = (is_wildcard, !escaped && character == '\\');
    }
    if wildcards <= WILDCARDS {
        return Ok(());
    }
    let message = format!("a pattern of LIKE with {wildcards} wildcards is not allowed here (limit {WILDCARDS})");
    Err(too_large(message, "use a shorter pattern, or several conditions"))
}

/// Evaluates a function of which nobody knows what it takes for a few rows at a time, and counts their results before
/// the next ones. `calls` is the number of growing calls in the statement.
fn unknown(
    name: &str,
    args: ScalarFunctionArgs,
    calls: usize,
    function: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    /// Rows of a slice, if results have no fixed size.
    const ROWS: usize = 128;
    /// Bytes of the arguments of a slice with more than one row.
    const ARGUMENTS: u128 = 64 << 10;
    memory::check()?;
    let fixed = is_fixed(args.return_type());
    if fixed && args.args.iter().all(|arg| is_fixed(&arg.data_type())) {
        return function(args);
    }
    let Given { values, same, rows } = Given::of(&args);
    let bytes = sum(&values, Values::bytes, rows)?;
    let slices = slices(&bytes, ARGUMENTS, if fixed { usize::MAX } else { ROWS });
    let (most, mut sizes) = (if same { SAME } else { TEXT }, Vec::new());
    in_slices(args, &slices, function, |part| {
        sizes.extend(Values(part).bytes()?);
        check_bytes(name, &sizes, most, calls).map(drop)
    })
}

/// Consecutive rows that cost at most `most` together, or a single one, and are `rows` at most.
fn slices(costs: &[u128], most: u128, rows: usize) -> Vec<Range<usize>> {
    let (mut slices, mut from, mut sum) = (Vec::new(), 0, 0_u128);
    for (row, cost) in costs.iter().enumerate() {
        if row > from && (sum.saturating_add(*cost) > most || row - from >= rows) {
            slices.push(from..row);
            (from, sum) = (row, 0);
        }
        sum = sum.saturating_add(*cost);
    }
    slices.push(from..costs.len());
    slices
}

/// Evaluates a function for slices of its rows, and checks each result before the next one. A single slice has all.
///
/// # Errors
/// Errors of the function, of the check, and that of [`memory::check`].
fn in_slices(
    args: ScalarFunctionArgs,
    slices: &[Range<usize>],
    function: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
    mut check: impl FnMut(&ColumnarValue) -> Result<()>,
) -> Result<ColumnarValue> {
    if slices.len() <= 1 {
        let value = function(args)?;
        check(&value)?;
        return Ok(value);
    }
    let mut parts: Vec<ArrayRef> = Vec::with_capacity(slices.len());
    for rows in slices {
        memory::check()?;
        let slice = |arg: &ColumnarValue| match arg {
            ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(rows.start, rows.len())),
            ColumnarValue::Scalar(value) => ColumnarValue::Scalar(value.clone()),
        };
        let part = function(ScalarFunctionArgs {
            args: args.args.iter().map(slice).collect(),
            arg_fields: args.arg_fields.clone(),
            number_rows: rows.len(),
            return_field: Arc::clone(&args.return_field),
            config_options: Arc::clone(&args.config_options),
        })?;
        let part = part.into_array(rows.len())?;
        check(&ColumnarValue::Array(Arc::clone(&part)))?;
        parts.push(part);
    }
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    Ok(ColumnarValue::Array(concat(&parts)?))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use arrow::array::{Int64Array, ListArray, StringArray};
    use arrow::datatypes::{DataType, Field, Int64Type};
    use datafusion::common::ScalarValue;
    use datafusion::config::ConfigOptions;

    use super::*;
    use crate::cases::each;
    use crate::error::{Error, ErrorKind};

    /// Texts, one per row.
    fn texts(lengths: &[usize]) -> ColumnarValue {
        let texts: StringArray = lengths.iter().map(|length| Some("a".repeat(*length))).collect();
        ColumnarValue::Array(Arc::new(texts))
    }

    fn text(text: &str) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::from(text))
    }

    /// Evaluates a function that returns the number of rows for each of them, and returns the rows of its calls.
    fn rows_of_calls(growth: Growth, args: Vec<ColumnarValue>, calls: Calls) -> Result<Vec<usize>> {
        let number_rows = args.iter().find_map(|arg| match arg {
            ColumnarValue::Array(array) => Some(array.len()),
            ColumnarValue::Scalar(_) => None,
        });
        let arg_fields = args.iter().map(|arg| Arc::new(Field::new("", arg.data_type(), true))).collect();
        let args = ScalarFunctionArgs {
            args,
            arg_fields,
            number_rows: number_rows.unwrap_or(1),
            return_field: Arc::new(Field::new("", DataType::Int64, true)),
            config_options: Arc::new(ConfigOptions::default()),
        };
        let seen = RefCell::new(Vec::new());
        let value = growth.evaluate("f", args, calls, |args| {
            seen.borrow_mut().push(args.number_rows);
            Ok(ColumnarValue::Array(Arc::new(Int64Array::from(vec![1; args.number_rows]))))
        })?;
        let seen = seen.into_inner();
        assert_eq!(value.into_array(1)?.len(), seen.iter().sum::<usize>());
        Ok(seen)
    }

    fn is_refused(rows: Result<Vec<usize>>) -> bool {
        rows.is_err_and(|error| Error::find(&error).is_some_and(|error| error.kind() == ErrorKind::TooLarge))
    }

    #[test]
    fn a_typical_batch_is_evaluated_at_once() {
        let batch = || texts(&[300; 8_192]);
        let cases = [
            (Growth::Linear, vec![batch()]),
            (Growth::Match, vec![batch(), text(r"^(https?|ftp)://[^\s/$.?#].[^\s]*$|battery|recall")]),
            (Growth::MatchAll, vec![batch(), text(r"(\w+\s)+|x")]),
            (Growth::Like, vec![batch(), text("%battery%recall_")]),
            (Growth::Trim, vec![batch(), text(" \t\n.,;")]),
            (Growth::Search, vec![batch(), batch()]),
            (Growth::Compare, vec![batch(), text("kitten")]),
        ];
        each(cases, |(growth, args)| {
            let rows = rows_of_calls(growth, args, Calls::ONE).unwrap_or_else(|error| panic!("{growth:?}: {error}"));
            assert_eq!(rows, [8_192], "{growth:?}");
        });
    }

    #[test]
    fn what_takes_long_is_evaluated_in_slices() {
        let long = || texts(&[60_000; 4]);
        // All matches of a pattern that reads on after each of them.
        assert_eq!(rows_of_calls(Growth::MatchAll, vec![long(), text("a*b|a")], Calls::ONE).expect("rows"), [1; 4]);
        assert_eq!(rows_of_calls(Growth::MatchAll, vec![long(), text("a+b")], Calls::ONE).expect("rows"), [4]);
        assert_eq!(rows_of_calls(Growth::Match, vec![long(), text("a*b|a")], Calls::ONE).expect("rows"), [4]);
        let nested = text("(a{1,100}b?){100}");
        assert_eq!(rows_of_calls(Growth::Match, vec![texts(&[3_000; 4]), nested], Calls::ONE).expect("rows"), [2; 2]);
        // Nobody knows.
        assert_eq!(rows_of_calls(Growth::Slow, vec![long()], Calls::ONE).expect("rows"), [1; 4]);
        let flagged = vec![long(), text("a*b|a"), text(""), text("g")];
        assert_eq!(rows_of_calls(Growth::ReplaceMatches, flagged, Calls::ONE).expect("rows"), [1; 4]);
    }

    #[test]
    fn a_row_that_takes_too_long_is_refused() {
        let long = || texts(&[131_000]);
        assert!(is_refused(rows_of_calls(Growth::MatchAll, vec![long(), text("a*b|a")], Calls::ONE)));
        assert_eq!(rows_of_calls(Growth::MatchAll, vec![long(), text(r"\s+")], Calls::ONE).ok(), Some(vec![1]));
        assert!(is_refused(rows_of_calls(Growth::Match, vec![long(), text("(a{200}){200}")], Calls::ONE)));
        assert!(is_refused(rows_of_calls(Growth::Trim, vec![long(), texts(&[131_000])], Calls::ONE)));
        let wildcards = text(&"%a_b".repeat(70));
        assert!(is_refused(rows_of_calls(Growth::Like, vec![texts(&[10]), wildcards], Calls::ONE)));
    }

    #[test]
    fn comparisons_are_divided_by_the_calls_of_a_statement() {
        let list = |items: usize| -> ColumnarValue {
            let items = (0..3).map(|_| Some(vec![Some(1_i64); items]));
            ColumnarValue::Array(Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(items)))
        };
        let many = Calls { growing: 1, comparing: 200 };
        for (growth, args) in
            [(Growth::Compare, [texts(&[5_000; 3]), texts(&[5_000; 3])]), (Growth::Pairs, [list(5_000), list(5_000)])]
        {
            assert_eq!(rows_of_calls(growth, args.to_vec(), Calls::ONE).expect("few comparisons"), [3], "{growth:?}");
            assert!(is_refused(rows_of_calls(growth, args.to_vec(), many)), "{growth:?}");
        }
        assert!(is_refused(rows_of_calls(Growth::Pairs, vec![list(30_000), list(30_000)], Calls::ONE)));
    }

    #[test]
    fn patterns_that_read_on_after_a_match_are_known() {
        let cases = [
            ("battery", 7, false),
            ("battery|recall", 14, false),
            (r"\s+", 3, false),
            ("<[^>]*>", 7, false),
            (r"https?://\S+", 12, false),
            ("a.*?b", 5, false),
            (r"\d{4}-\d{2}-\d{2}", 17 * 4, false),
            ("(a{2,20}b){3}", 13 * 20 * 3, false),
            ("a*b|a", 5, true),
            ("a(.*b)?", 7, true),
            ("(?:a|b)+", 8, true),
            ("(ab){2,}", 8 * 2, true),
            ("(?x) a (.*b) ?", 14, true),
            ("(?i)a.*b", 8, false),
            ("a{2}{3}*", 8 * 2 * 3, true),
            ("", 1, false),
        ];
        each(cases, |(pattern, states, rereads)| {
            assert_eq!(Cost::of(pattern, false), Cost { states, rereads }, "{pattern}");
        });
        assert!(Cost::of("a (.*b) ?", true).rereads);
    }

    #[test]
    fn slices_have_few_rows() {
        let rows = |costs: &[u128], rows| slices(costs, 10, rows).iter().map(|slice| slice.len()).collect::<Vec<_>>();
        assert_eq!(rows(&[1, 1, 1], 10), [3]);
        assert_eq!(rows(&[4, 4, 4, 20, 1], 10), [2, 1, 1, 1]);
        assert_eq!(rows(&[1, 1, 1], 2), [2, 1]);
        assert_eq!(rows(&[], 2), [0]);
    }

    #[test]
    fn wildcards_are_counted_in_runs() {
        check_pattern(&format!("%{}%", "_".repeat(200))).expect("a single run");
        check_pattern(&r"\%".repeat(200)).expect("escaped");
        check_pattern(&"a%".repeat(64)).expect("few");
        check_pattern(&"a%".repeat(65)).expect_err("many");
    }
}
