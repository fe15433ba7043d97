//! Distances of frames by RANGE: those that the engine would round, take for months or compute wrongly near a change of clocks.
//!
//! | frame | the engine | here |
//! | --- | --- | --- |
//! | `ORDER BY n RANGE 0.005 PRECEDING` of `decimal(10, 2)` | rounds to 0.01 | the key has as many digits as the distance |
//! | `ORDER BY d RANGE 1 PRECEDING` of a date or a time | takes a month | refused |
//! | hours or less of a date, `RANGE '36 hours' PRECEDING` | drops hours | sorted by the time at which the day begins |
//! | a part of a second of a time with fewer digits | rounds down | sorted by a time with as many digits |
//! | days or months of an instant in a zone with changes of clocks | ends the frame with the partition | sorted by [`frame_key`] |
//! | a distance of texts, clock times, intervals and the like | no distance, or an internal error | refused |
//! | a negative interval | exchanges the bounds | refused |

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, LogicalPlan, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, cast, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::expressions::rewrite_expressions;
use crate::error::{Error, ErrorKind};
use crate::functions::{TypeIn, frame_key};

/// See the module's documentation. Runs before the engine gives distances the type of the key.
#[derive(Debug)]
pub(super) struct RangeFrames;

impl AnalyzerRule for RangeFrames {
    fn name(&self) -> &str {
        "savedsearch_range_frames"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, |expr, _| Ok(Transformed::no(expr)), with_key)
    }
}

/// A window whose functions are sorted by the key that their distances need. The functions of one operator have one order, so all of
/// them get it.
fn with_key(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Window(window) = &plan else { return Ok(Transformed::no(plan)) };
    let (mut sort, mut distances) = (None, Vec::new());
    for function in window.window_expr.iter().filter_map(function_of) {
        let own = distances_of(&function.params.window_frame);
        // The engine refuses a distance beside several keys, or none.
        if let ([of_function], false) = (function.params.order_by.as_slice(), own.is_empty()) {
            sort = Some(of_function.clone());
            distances.extend(own);
        }
    }
    let Some(SortExpr { expr: key, asc, .. }) = sort else { return Ok(Transformed::no(plan)) };
    let Ok(of_key) = key.type_in(window.input.schema()) else { return Ok(Transformed::no(plan)) };
    let Some(changed) = key_of(&key, asc, &of_key, &distances)? else { return Ok(Transformed::no(plan)) };
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let expr = expr.transform_down(|part| {
            let Expr::WindowFunction(mut function) = part else { return Ok(Transformed::no(part)) };
            let params = &mut function.params;
            let sorted = params.order_by.iter_mut().map(|sort| &mut sort.expr);
            for part in sorted.chain(&mut params.partition_by).filter(|part| **part == key) {
                *part = changed.clone();
            }
            Ok(Transformed::new(Expr::WindowFunction(function), true, TreeNodeRecursion::Jump))
        })?;
        Ok(expr.update_data(|expr| name.restore(expr)))
    })
}

/// The function of an expression of a window.
fn function_of(expr: &Expr) -> Option<&WindowFunction> {
    match expr {
        Expr::WindowFunction(function) => Some(function.as_ref()),
        Expr::Alias(alias) => function_of(&alias.expr),
        _ => None,
    }
}

/// A distance of a frame.
struct Distance {
    /// The text of the statement.
    text: String,
    preceding: bool,
}

/// The distances of a frame by RANGE, as they are written.
fn distances_of(frame: &WindowFrame) -> Vec<Distance> {
    if frame.units != WindowFrameUnits::Range {
        return Vec::new();
    }
    let distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(ScalarValue::Utf8(Some(text))) => {
            Some(Distance { text: text.clone(), preceding: true })
        }
        WindowFrameBound::Following(ScalarValue::Utf8(Some(text))) => {
            Some(Distance { text: text.clone(), preceding: false })
        }
        // Unbounded, or of the type of the key already.
        _ => None,
    };
    [&frame.start_bound, &frame.end_bound].into_iter().filter_map(distance).collect()
}

/// Another key with the same order, of which the engine computes the distances correctly; `None` if it does so of this one.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a distance that keys of this type do not have.
fn key_of(key: &Expr, asc: bool, of_key: &DataType, distances: &[Distance]) -> Result<Option<Expr>> {
    match of_key {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let spans = distances.iter().map(span).collect::<Result<Vec<_>, Error>>()?;
            let changes = |zone: &str| !["", "UTC"].contains(&zone) && !zone.starts_with(['+', '-', 'Z']);
            let exact = with_digits(key, of_key, &spans);
            let calendar = spans.iter().any(|span| span.months != 0 || span.days != 0);
            if !calendar || !matches!(of_key, DataType::Timestamp(_, Some(zone)) if changes(zone)) {
                return Ok(exact);
            }
            let signed = spans.iter().zip(distances).map(|(span, distance)| {
                let past = distance.preceding == asc;
                lit(ScalarValue::IntervalMonthDayNano(Some(if past { negated(*span) } else { *span })))
            });
            let key = exact.unwrap_or_else(|| key.clone());
            Ok(Some(frame_key().call([key].into_iter().chain(signed).collect())))
        }
        DataType::Decimal128(precision, scale) => {
            let written = distances.iter().map(|distance| digits_of(&distance.text)).max().unwrap_or(0);
            let known = usize::try_from(*scale).unwrap_or(0);
            if written <= known {
                return Ok(None);
            }
            let more = u8::try_from(written - known).unwrap_or(u8::MAX);
            let precision = precision.saturating_add(more).min(DECIMAL128_MAX_PRECISION);
            match i8::try_from(written).ok().filter(|scale| *scale <= DECIMAL128_MAX_PRECISION.cast_signed()) {
                Some(scale) => Ok(Some(cast(key.clone(), DataType::Decimal128(precision, scale)))),
                None => {
                    Err(refused("the distance of a frame by RANGE has more than 38 digits", "write fewer digits")
                        .into())
                }
            }
        }
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal256(_, scale)
            if distances.iter().any(|distance| digits_of(&distance.text) > usize::try_from(*scale).unwrap_or(0)) =>
        {
            Err(refused(
                "the distance of a frame by RANGE has more digits than its key",
                "cast the key, as in x::decimal(38, 6)",
            )
            .into())
        }
        DataType::Dictionary(_, value) => key_of(key, asc, value, distances),
        of_number if of_number.is_numeric() => {
            let whole = of_number.is_integer();
            match distances.iter().find(|distance| whole && digits_of(&distance.text) > 0) {
                Some(Distance { text, .. }) => {
                    let message =
                        format!("the distance {text} of a frame by RANGE has a fraction, but its key has none");
                    Err(refused(message, "sort by a number with a fraction, as in ORDER BY x::decimal(20, 3)").into())
                }
                None => Ok(None),
            }
        }
        DataType::Null => Ok(None),
        other => {
            let what = match other {
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "texts",
                DataType::Time32(_) | DataType::Time64(_) => "times of day",
                DataType::Interval(_) | DataType::Duration(_) => "intervals",
                DataType::Boolean => "booleans",
                _ => "values of this type",
            };
            let advice = "sort by a number, such as extract(epoch FROM …), or use ROWS or GROUPS";
            Err(refused(format!("a frame by RANGE with a distance cannot be sorted by {what}"), advice).into())
        }
    }
}

/// A date or a time as one with the digits of a second that its distances have; `None` if it has them.
fn with_digits(key: &Expr, of_key: &DataType, spans: &[IntervalMonthDayNano]) -> Option<Expr> {
    let fits = |step: i64| spans.iter().all(|span| span.nanoseconds % step == 0);
    let (step, zone) = match of_key {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => return None,
        DataType::Timestamp(TimeUnit::Microsecond, zone) => (1_000, zone.clone()),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => (1_000_000, zone.clone()),
        DataType::Timestamp(TimeUnit::Second, zone) => (1_000_000_000, zone.clone()),
        _ => (86_400_000_000_000, None),
    };
    if fits(step) {
        return None;
    }
    let unit = if fits(1_000) { TimeUnit::Microsecond } else { TimeUnit::Nanosecond };
    Some(cast(key.clone(), DataType::Timestamp(unit, zone)))
}

/// Digits after the point of a number, without zeros at the end.
fn digits_of(number: &str) -> usize {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let fraction = mantissa.split_once('.').map_or("", |(_, fraction)| fraction).trim_end_matches('0');
    let digits = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    usize::try_from(digits.saturating_sub(exponent.parse().unwrap_or(0))).unwrap_or(0)
}

/// A distance between times.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a number, and for a negative interval.
fn span(distance: &Distance) -> Result<IntervalMonthDayNano, Error> {
    const ADVICE: &str = "write an interval, as in INTERVAL '1 day'";
    let text = distance.text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'+' | b'-')) {
        return Err(refused("the distance of a frame by RANGE over dates or times is a number", ADVICE));
    }
    let to = DataType::Interval(IntervalUnit::MonthDayNano);
    let Ok(ScalarValue::IntervalMonthDayNano(Some(span))) = ScalarValue::try_from_string(text.to_owned(), &to) else {
        return Err(refused(format!("the distance of a frame by RANGE is not an interval: '{text}'"), ADVICE));
    };
    let days = i128::from(span.months) * 30 + i128::from(span.days);
    if days * 86_400_000_000_000 + i128::from(span.nanoseconds) < 0 {
        return Err(refused("the distance of a frame by RANGE is negative", "exchange PRECEDING and FOLLOWING"));
    }
    Ok(span)
}

fn negated(span: IntervalMonthDayNano) -> IntervalMonthDayNano {
    // There is no literal with the smallest number.
    IntervalMonthDayNano::new(
        span.months.saturating_neg(),
        span.days.saturating_neg(),
        span.nanoseconds.saturating_neg(),
    )
}

fn refused(message: impl Into<String>, advice: &'static str) -> Error {
    Error::new(ErrorKind::Unsupported, message).advice(advice)
}
