//! Numbers of a statement that a double cannot hold.
//!
//! The engine reads a number with a fraction, and a whole one of more than 64 bits, as a double. A cast to a decimal type would
//! then be exact for the wrong number: `0.123456789012345678::decimal(18,18)`. Under such a cast, a number is read as text, and a
//! whole number that is too large is a decimal: exact, or an error.

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{CastKind, DataType, ExactNumberInfo, Expr, UnaryOperator, Value, ValueWithSpan};

use super::syntax::{self, Editor};

/// Digits of the engine's decimal types.
const DIGITS: [usize; 2] = [38, 76];

/// Returns a statement whose numbers are those that were written.
pub(super) fn exact_numbers(mut statement: Statement) -> Statement {
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

/// A number as written, with its sign. Exponents stay numbers.
fn digits_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
            digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then(|| digits.clone())
        }
        Expr::Nested(inner) => digits_of(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            digits_of(expr).filter(|digits| !digits.starts_with('-')).map(|digits| format!("-{digits}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    #[test]
    fn numbers_that_a_double_cannot_hold_are_read_as_text() {
        for (sql, expected) in [
            ("SELECT 1.005::DECIMAL(10,2)", "SELECT '1.005'::DECIMAL(10,2)"),
            ("SELECT CAST((-7.25) AS NUMERIC(3,1))", "SELECT CAST('-7.25' AS NUMERIC(3,1))"),
            ("SELECT TRY_CAST(0.1 AS DECIMAL(2,1))", "SELECT TRY_CAST('0.1' AS DECIMAL(2,1))"),
            ("SELECT 1e3::DECIMAL(10,2)", "SELECT 1e3::DECIMAL(10,2)"),
            (
                "SELECT a FROM t WHERE a < 18446744073709551616",
                "SELECT a FROM t WHERE a < CAST('18446744073709551616' AS DECIMAL(38,0))",
            ),
            ("SELECT 18446744073709551615, 0.1, 1e30", "SELECT 18446744073709551615, 0.1, 1e30"),
        ] {
            let statement = DFParser::parse_sql(sql).expect("valid syntax").pop_front().expect("a statement");
            assert_eq!(exact_numbers(statement).to_string(), expected);
        }
    }
}
