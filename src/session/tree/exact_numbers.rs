//! Numbers of a statement that a double cannot hold.
//!
//! The engine reads a number with a fraction, and a whole one of more than 64 bits, as a double. A cast to a decimal type would
//! then be exact for the wrong number: `0.123456789012345678::decimal(18,18)`. Under such a cast, a number is read as text, and a
//! whole number that is too large is a decimal: exact, or an error.

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{CastKind, DataType, ExactNumberInfo, Expr, UnaryOperator, Value, ValueWithSpan};

use crate::session::syntax::{self, Editor};

/// Digits of the engine's decimal types.
const DIGITS: [usize; 2] = [38, 76];

/// Returns a statement whose numbers are those that were written.
pub(in crate::session) fn exact_numbers(mut statement: Statement) -> Statement {
    syntax::edit_statement(&mut statement, &mut ExactNumbers);
    statement
}

struct ExactNumbers;

impl Editor for ExactNumbers {
    fn pre_visit_expr(&mut self, expr: &mut Expr) {
        let Expr::Cast { expr: operand, data_type, .. } = expr else { return };
        if is_decimal(data_type)
            && let Some(digits) = digits_of(operand)
        {
            **operand = Expr::Value(Value::SingleQuotedString(digits).into());
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) {
        let Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) = expr else { return };
        let whole = digits.bytes().all(|byte| byte.is_ascii_digit());
        let precision = DIGITS.into_iter().find(|most| digits.len() <= *most).and_then(|most| u64::try_from(most).ok());
        if whole
            && digits.parse::<u64>().is_err()
            && let Some(precision) = precision
        {
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(Value::SingleQuotedString(digits.clone()).into())),
                data_type: DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, 0)),
                array: false,
                format: None,
            };
        }
    }
}

fn is_decimal(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Decimal(_)
            | DataType::Numeric(_)
            | DataType::Dec(_)
            | DataType::BigDecimal(_)
            | DataType::BigNumeric(_)
    )
}

/// A number as written, with its sign. Without an exponent.
fn digits_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => without_exponent(digits),
        Expr::Nested(inner) => digits_of(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            digits_of(expr).filter(|digits| !digits.starts_with('-')).map(|digits| format!("-{digits}"))
        }
        _ => None,
    }
}

/// The digits of a number that may be written with an exponent: `1.5e3` is `1500`. `None` for other texts, and for more digits than
/// a decimal has.
pub(crate) fn without_exponent(number: &str) -> Option<String> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<isize>().ok()?),
        None => (number, 0),
    };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) || exponent.unsigned_abs() > DIGITS[1] {
        return None;
    }
    if exponent == 0 {
        return Some(format!("{sign}{mantissa}"));
    }
    let point = whole.len().checked_add_signed(exponent);
    Some(match point.filter(|point| *point > 0) {
        None => format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() - whole.len())),
        Some(point) if point < digits.len() => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
        Some(point) => format!("{sign}{digits:0<point$}"),
    })
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;
    use crate::cases::each;

    #[test]
    fn numbers_that_a_double_cannot_hold_are_read_as_text() {
        let cases = [
            ("SELECT 1.005::DECIMAL(10,2)", "SELECT '1.005'::DECIMAL(10,2)"),
            ("SELECT CAST((-7.25) AS NUMERIC(3,1))", "SELECT CAST('-7.25' AS NUMERIC(3,1))"),
            ("SELECT TRY_CAST(0.1 AS DECIMAL(2,1))", "SELECT TRY_CAST('0.1' AS DECIMAL(2,1))"),
            ("SELECT 1e3::DECIMAL(10,2)", "SELECT '1000'::DECIMAL(10,2)"),
            ("SELECT CAST(-1.25E+20 AS NUMERIC)", "SELECT CAST('-125000000000000000000' AS NUMERIC)"),
            ("SELECT 1e99::DECIMAL(10,2)", "SELECT 1e99::DECIMAL(10,2)"),
            (
                "SELECT a FROM t WHERE a < 18446744073709551616",
                "SELECT a FROM t WHERE a < CAST('18446744073709551616' AS DECIMAL(38,0))",
            ),
            ("SELECT 18446744073709551615, 0.1, 1e30", "SELECT 18446744073709551615, 0.1, 1e30"),
        ];
        each(cases, |(sql, expected)| {
            let statement = DFParser::parse_sql(sql).expect("valid syntax").pop_front().expect("a statement");
            assert_eq!(exact_numbers(statement).to_string(), expected);
        });
    }

    #[test]
    fn exponents_move_the_point() {
        let cases = [
            ("12.5", Some("12.5")),
            (".5", Some(".5")),
            ("1e20", Some("100000000000000000000")),
            ("1.25e1", Some("12.5")),
            ("-1.25e2", Some("-125")),
            ("+1.2E-3", Some("0.0012")),
            ("12e-2", Some("0.12")),
            ("123e-2", Some("1.23")),
            (".5e1", Some("5")),
            ("1e100", None),
            ("e5", None),
            ("1e", None),
            ("x", None),
            ("0x1e5", None),
        ];
        each(cases, |(number, digits)| {
            assert_eq!(without_exponent(number).as_deref(), digits, "{number}");
        });
    }
}
