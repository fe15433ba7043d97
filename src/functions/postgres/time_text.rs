//! `time_text(text, type)`: the text of a time or an interval in the form that the engine reads as PostgreSQL reads it.
//!
//! | type | text | result |
//! | --- | --- | --- |
//! | `timestamp` | `2026-06-25 12:00:00+02`, `2026-06-25 12:00 Europe/Berlin` | without the zone, which the engine would apply |
//! | `timestamp` | `2026-06-25Z`, `2026-06-25 +02` | the day |
//! | `timestamptz` | `2026-06-25Z`, `2026-06-25 +02` | midnight there |
//! | `timestamptz` | `2026-06-25 12:00+02` | with its seconds |
//! | `time` | `120000`, `1200` | `12:00:00`, which the engine would read as nanoseconds |
//! | `time` | other integers | an error |
//! | `interval` | `5`, `3 days 5` | `5 seconds`, `3 days 5 seconds`, which the engine would read as months |
//!
//! Other texts stay as they are, for the engine to read or to refuse.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::functions::time_texts::{complete_time, interval_with_unit, midnight_of, without_zone};

/// The function.
pub(crate) fn time_text() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(TimeText { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeText {
    signature: Signature,
}

impl ScalarUDFImpl for TimeText {
    fn name(&self) -> &'static str {
        "time_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [DataType::Dictionary(_, text), _] if text.is_string() => Ok(vec![DataType::Utf8, DataType::Utf8]),
            [text, _] if text.is_string() || text.is_null() => Ok(vec![DataType::Utf8, DataType::Utf8]),
            _ => plan_err!("time_text takes a text and the name of a type"),
        }
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [texts, ColumnarValue::Scalar(data_type)] = arguments.args.as_slice() else {
            return plan_err!("time_text takes a text and the name of a type");
        };
        let read: fn(&str) -> Result<String, ArrowError> = match data_type.try_as_str().flatten() {
            Some("timestamp") => |text: &str| Ok(local(text)),
            Some("timestamptz") => |text: &str| Ok(instant(text)),
            Some("time") => clock,
            Some("interval") => |text: &str| Ok(interval_with_unit(text).unwrap_or_else(|| text.to_owned())),
            _ => return plan_err!("time_text takes a text and the name of a type"),
        };
        let constant = matches!(texts, ColumnarValue::Scalar(_));
        let texts = texts.to_array(if constant { 1 } else { arguments.number_rows })?;
        let texts = texts.as_string::<i32>().iter().map(|text| text.map(read).transpose());
        let texts: ArrayRef = Arc::new(texts.collect::<Result<StringArray, ArrowError>>()?);
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&texts, 0)?)),
            false => Ok(ColumnarValue::Array(texts)),
        }
    }
}

/// A local time without its zone, and with its seconds; of a day with a zone, the day.
fn local(text: &str) -> String {
    with_seconds(without_zone(text).unwrap_or(text))
}

/// An instant with its seconds; of a day with a zone, its midnight there.
fn instant(text: &str) -> String {
    midnight_of(text).unwrap_or_else(|| with_seconds(text))
}

fn with_seconds(text: &str) -> String {
    let complete = complete_time(text).filter(|_| text.contains(':'));
    complete.unwrap_or_else(|| text.to_owned())
}

/// A clock time of four or six digits with colons.
fn clock(text: &str) -> Result<String, ArrowError> {
    let digits = text.trim();
    match digits.len() {
        4 | 6 if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let second = if digits.len() == 6 { &digits[4..] } else { "00" };
            Ok(format!("{}:{}:{second}", &digits[..2], &digits[2..4]))
        }
        _ if !digits.is_empty() && digits.trim_start_matches(['-', '+']).bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(ArrowError::ParseError(format!("invalid input syntax for type time: \"{text}\"")))
        }
        _ => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn texts_of_times_have_a_form_that_the_engine_reads() {
        let cases = [
            ("2026-06-25 12:00:00+02", "2026-06-25 12:00:00"),
            ("2026-06-25T12:00:00.5Z", "2026-06-25T12:00:00.5"),
            ("2026-06-25 12:00 -05:30", "2026-06-25 12:00:00"),
            ("2026-06-25 23:00 America/New_York", "2026-06-25 23:00:00"),
            ("2026-06-25 11:00:00 PM", "2026-06-25 11:00:00 PM"),
            ("2026-06-25 12:00:00 Nowhere/Land", "2026-06-25 12:00:00 Nowhere/Land"),
            ("2026-06", "2026-06"),
            ("2026-06-25", "2026-06-25"),
            ("2026-06-25Z", "2026-06-25"),
            ("2026-06-25 -05:30", "2026-06-25"),
        ];
        each(cases, |(text, expected)| {
            assert_eq!(local(text), expected);
        });
        let instants = [
            ("2026-06-25Z", "2026-06-25 00:00:00+00:00"),
            ("2026-06-25 -05:30", "2026-06-25 00:00:00-05:30"),
            ("2026-06-25 12:00+02", "2026-06-25 12:00:00+02"),
            ("2026-06-25 12:00:00", "2026-06-25 12:00:00"),
            ("2026-06", "2026-06"),
            ("2026-06-25", "2026-06-25"),
        ];
        each(instants, |(text, expected)| {
            assert_eq!(instant(text), expected);
        });
        each(
            [("120000", "12:00:00"), ("2026", "20:26:00"), (" 0405 ", "04:05:00"), ("04:05", "04:05")],
            |(text, time)| {
                assert_eq!(clock(text).expect(text), time);
            },
        );
        each(["-1", "1", "12000", "+120000", "-"], |text| {
            clock(text).expect_err(text);
        });
    }
}
