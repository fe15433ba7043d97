//! Numbers on axes and beside bars.

use crate::numbers::grouped;

/// Maximum number of intervals between the ticks of an axis.
const INTERVALS: f64 = 4.0;

/// Ticks of an axis: 3 to 5 multiples of 1, 2, 2.5 or 5 times a power of ten. The first is at or below the smallest value, the
/// last at or above the largest. The extent includes zero. Ticks are multiples of `unit`, if it is not 0.
pub(in crate::shell) fn ticks((smallest, largest): (f64, f64), unit: f64) -> Vec<f64> {
    let largest = if largest > smallest { largest } else { smallest + 1.0 };
    let span = largest - smallest;
    // Powers of ten beyond these are inexact or infinite.
    if (1e-300..1e300).contains(&span) {
        #[expect(clippy::cast_possible_truncation, reason = "the exponent of a double is below a thousand")]
        let least = span.log10().floor() as i32 - 1;
        let steps = (least..least + 5).flat_map(|power| [1.0, 2.0, 2.5, 5.0].map(|digits| (digits, power)));
        for (digits, power) in steps {
            // A negative power is a divisor, since 10 is exact and 0.1 is not.
            let (by, over) = if power < 0 { (digits, 10_f64.powi(-power)) } else { (digits * 10_f64.powi(power), 1.0) };
            let (mut first, mut last) = ((smallest * over / by).floor(), (largest * over / by).ceil());
            if last - first > INTERVALS || !is_multiple(by / over, unit) {
                continue;
            }
            while last - first < 2.0 {
                if last > 0.0 {
                    last += 1.0;
                } else {
                    first -= 1.0;
                }
            }
            let indexes = std::iter::successors(Some(first), |index| Some(index + 1.0).filter(|index| *index <= last));
            return indexes.map(|index| index * by / over).collect();
        }
    }
    vec![smallest, f64::midpoint(smallest, largest), largest]
}

fn is_multiple(step: f64, unit: f64) -> bool {
    let times = step / unit;
    unit == 0.0 || (times > 0.5 && (times - times.round()).abs() < 1e-6 * times)
}

/// Labels of ticks: with powers of ten if they are wider than `width` otherwise, and none if even these are wider.
pub(super) fn tick_labels(ticks: &[f64], width: usize) -> Vec<String> {
    let plain: Vec<String> = ticks.iter().map(|tick| measured(*tick)).collect();
    let short: Vec<String> = ticks.iter().map(|tick| scientific(*tick)).collect();
    let fit = |labels: &Vec<String>| labels.iter().all(|label| label.len() <= width);
    [plain, short].into_iter().find(fit).unwrap_or_default()
}

/// A number as a place on the axis of the first column, with commas from 10,000 on: 2026 may be a year.
pub(in crate::shell) fn placed(value: f64) -> String {
    with_commas(value, 1e4)
}

/// A number that is drawn, with commas.
pub(in crate::shell) fn measured(value: f64) -> String {
    with_commas(value, 1e3)
}

/// A number with a comma between groups of three digits, from a size on.
fn with_commas(value: f64, least: f64) -> String {
    let text = number(value);
    if !(least..1e15).contains(&value.abs()) {
        return text;
    }
    let (sign, digits) = if value < 0.0 { text.split_at(1) } else { ("", text.as_str()) };
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    match whole.parse::<u64>() {
        Ok(whole) => format!("{sign}{}{rest}", grouped(whole)),
        Err(_) => text,
    }
}

/// A number as text: whole numbers have all digits, others three significant digits or two decimals; tiny and huge ones have
/// a power of ten.
pub(in crate::shell) fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if !(1e-4..1e15).contains(&size) {
        scientific(value)
    } else if value.fract() == 0.0 {
        format!("{value:.0}")
    } else if size >= 1.0 {
        shorter(&format!("{value:.2}")).to_owned()
    } else {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 3 and 6")]
        let digits = (2.0 - size.log10().floor()) as usize;
        shorter(&format!("{value:.digits$}")).to_owned()
    }
}

/// A number with a power of ten; zero has none.
fn scientific(value: f64) -> String {
    let text = format!("{value:.3e}");
    match text.split_once('e') {
        _ if value == 0.0 => "0".to_owned(),
        Some((digits, power)) => format!("{}e{power}", shorter(digits)),
        None => text,
    }
}

/// A decimal number without trailing zeros.
fn shorter(text: &str) -> &str {
    text.trim_end_matches('0').trim_end_matches('.')
}
