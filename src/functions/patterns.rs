//! Patterns of LIKE and SIMILAR TO in the forms that the engine matches correctly.
//!
//! In the engine, only the backslash is an escape character of LIKE, and the pattern of SIMILAR TO is a regular expression
//! that may match anywhere in the text. Here, a LIKE pattern gets backslashes, and a pattern of SIMILAR TO becomes an
//! anchored regular expression: `%` any text, `_` any character, `|`, `*`, `+`, `?`, `{…}`, `(…)` and `[…]` keep their
//! meaning, and everything else is literal.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::error::{Error, ErrorKind};

/// The function `like_pattern(pattern, escape)`, for patterns that are not known before the query runs.
pub(crate) fn like_pattern() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Pattern::function("like_pattern", like_pattern_of));
    Arc::clone(&FUNCTION)
}

/// The function `similar_pattern(pattern, escape)`, for patterns that are not known before the query runs.
pub(crate) fn similar_pattern() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Pattern::function("similar_pattern", regex_of_similar));
    Arc::clone(&FUNCTION)
}

/// A pattern of LIKE with another escape character, with backslashes.
pub(crate) fn like_pattern_of(pattern: &str, escape: char) -> Result<String, Error> {
    let mut converted = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let literal = match character {
            _ if character == escape => characters.next().ok_or_else(|| unfinished("LIKE"))?,
            '%' | '_' => {
                converted.push(character);
                continue;
            }
            other => other,
        };
        if matches!(literal, '%' | '_' | '\\') {
            converted.push('\\');
        }
        converted.push(literal);
    }
    Ok(converted)
}

/// The regular expression of a pattern of SIMILAR TO.
pub(crate) fn regex_of_similar(pattern: &str, escape: char) -> Result<String, Error> {
    // A dot is any character, a line break as well.
    let mut regex = String::from("(?s)^(?:");
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            _ if character == escape => {
                push_literal(&mut regex, characters.next().ok_or_else(|| unfinished("SIMILAR TO"))?)
            }
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '(' => regex.push_str("(?:"),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => regex.push(character),
            '[' => {
                regex.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    regex.push('^');
                }
                let mut first = true;
                loop {
                    let Some(character) = characters.next() else {
                        let message = "the pattern of SIMILAR TO has [ without ]";
                        return Err(Error::new(ErrorKind::Query, message).advice("write \\[ for the character"));
                    };
                    match character {
                        ']' if !first => break,
                        _ if character == escape => {
                            push_literal(&mut regex, characters.next().ok_or_else(|| unfinished("SIMILAR TO"))?);
                        }
                        // A class of characters, such as [:alpha:].
                        '[' if characters.peek() == Some(&':') => {
                            regex.push('[');
                            for part in characters.by_ref() {
                                regex.push(part);
                                if part == ']' {
                                    break;
                                }
                            }
                        }
                        '-' => regex.push('-'),
                        other => push_literal(&mut regex, other),
                    }
                    first = false;
                }
                regex.push(']');
            }
            other => push_literal(&mut regex, other),
        }
    }
    regex.push_str(")$");
    Ok(regex)
}

/// Appends a character that stands for itself.
fn push_literal(regex: &mut String, character: char) {
    if r"\.+*?()|[]{}^$#&-~".contains(character) {
        regex.push('\\');
    }
    regex.push(character);
}

fn unfinished(operator: &str) -> Error {
    let message = format!("the pattern of {operator} ends with its escape character");
    Error::new(ErrorKind::Query, message).advice("write it twice to match the character itself")
}

struct Pattern {
    name: &'static str,
    signature: Signature,
    convert: fn(&str, char) -> Result<String, Error>,
}

impl Pattern {
    fn function(name: &'static str, convert: fn(&str, char) -> Result<String, Error>) -> Arc<ScalarUDF> {
        let signature = Signature::exact(vec![DataType::Utf8, DataType::Utf8], Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Self { name, signature, convert }))
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Pattern {}

impl std::hash::Hash for Pattern {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Pattern {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [pattern, ColumnarValue::Scalar(escape)] = args.args.as_slice() else {
            return exec_err!("{} expects a pattern and a constant", self.name);
        };
        let Some(escape) = escape.try_as_str().flatten().and_then(|escape| escape.chars().next()) else {
            return exec_err!("{} expects one character as its second argument", self.name);
        };
        let patterns = pattern.to_array(1)?;
        let convert = |pattern: Option<&str>| pattern.map(|pattern| (self.convert)(pattern, escape)).transpose();
        let converted: StringArray = patterns
            .as_string::<i32>()
            .iter()
            .map(convert)
            .collect::<Result<_, Error>>()
            .map_err(datafusion::error::DataFusionError::from)?;
        let converted: ArrayRef = Arc::new(converted);
        Ok(match pattern {
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&converted, 0)?),
            ColumnarValue::Array(_) => ColumnarValue::Array(converted),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn patterns_of_like_get_backslashes() {
        for (pattern, converted) in [("100/%", "100\\%"), ("/_a//b%", "\\_a/b%"), ("C:\\%", "C:\\\\%"), ("/x_", "x_")] {
            assert_eq!(like_pattern_of(pattern, '/').expect("a pattern"), converted, "{pattern}");
        }
        like_pattern_of("a/", '/').expect_err("nothing to escape");
    }

    #[test]
    fn patterns_of_similar_to_become_regular_expressions() {
        let cases = [
            ("%acme%", ".*acme.*"),
            ("a.b", "a\\.b"),
            ("(ab|c)_+", "(?:ab|c).+"),
            ("\\%x\\\\", "%x\\\\"),
            ("^a$", "\\^a\\$"),
            ("[^a-c.][]x][[:digit:]&&]", "[^a-c\\.][\\]x][[:digit:]\\&\\&]"),
            ("a{2,3}ü", "a{2,3}ü"),
        ];
        each(cases, |(pattern, converted)| {
            assert_eq!(regex_of_similar(pattern, '\\').expect("a pattern"), format!("(?s)^(?:{converted})$"));
        });
        for pattern in ["a\\", "[a", "[]"] {
            regex_of_similar(pattern, '\\').expect_err(pattern);
        }
    }
}
