//! Arrays in PostgreSQL's text form, such as `{a,"b c",NULL}` (PostgreSQL documentation, "Array Input and Output Syntax").

use std::fmt;

/// Reason why a text is not an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAnArray {
    Malformed,
    /// An array of arrays, or an array with explicit bounds.
    Nested,
}

impl NotAnArray {
    /// The line for a client.
    pub(crate) fn line(self, text: &str) -> String {
        format!("{self}: \"{text}\"")
    }
}

impl fmt::Display for NotAnArray {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Malformed => "malformed array literal",
            Self::Nested => "arrays of arrays and arrays with bounds are not supported",
        })
    }
}

impl std::error::Error for NotAnArray {}

/// Returns the items of an array; `None` for a missing one.
///
/// # Errors
/// [`NotAnArray`].
pub(crate) fn items(text: &str) -> Result<Vec<Option<String>>, NotAnArray> {
    use NotAnArray::{Malformed, Nested};
    let text = text.trim();
    if text.starts_with('[') && text.contains("={") {
        return Err(Nested);
    }
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or(Malformed)?;
    let (mut items, mut rest) = (Vec::new(), inner.chars().peekable());
    if inner.trim().is_empty() {
        return Ok(items);
    }
    loop {
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        let (mut item, mut quoted) = (String::new(), false);
        if rest.next_if_eq(&'"').is_some() {
            quoted = true;
            loop {
                match rest.next().ok_or(Malformed)? {
                    '"' => break,
                    '\\' => item.push(rest.next().ok_or(Malformed)?),
                    c => item.push(c),
                }
            }
            while rest.next_if(|c| c.is_whitespace()).is_some() {}
        } else {
            // Blanks at the end do not count, unless they are escaped.
            let mut end = 0;
            while let Some(c) = rest.next_if(|c| *c != ',') {
                match c {
                    '\\' => {
                        item.push(rest.next().ok_or(Malformed)?);
                        (end, quoted) = (item.len(), true);
                    }
                    '{' => return Err(Nested),
                    '}' | '"' => return Err(Malformed),
                    c => {
                        item.push(c);
                        end = if c.is_whitespace() { end } else { item.len() };
                    }
                }
            }
            item.truncate(end);
            if item.is_empty() {
                return Err(Malformed);
            }
        }
        let missing = !quoted && item.eq_ignore_ascii_case("null");
        items.push((!missing).then_some(item));
        match rest.next() {
            None => return Ok(items),
            Some(',') => {}
            Some(_) => return Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    #[test]
    fn arrays_are_read_as_postgres_reads_them() {
        let read =
            |text| items(text).map(|items| items.iter().map(Option::is_some).zip(items.clone()).collect::<Vec<_>>());
        let some = |text: &str| (true, Some(text.to_owned()));
        assert_eq!(read("{en,de}"), Ok(vec![some("en"), some("de")]));
        assert_eq!(read(" { en , de } "), Ok(vec![some("en"), some("de")]));
        let quoted = read(r#"{"a,b",NULL,"NULL","c\"d",n\ ,"",a b,"{}"}"#);
        let expected =
            [some("a,b"), (false, None), some("NULL"), some("c\"d"), some("n "), some(""), some("a b"), some("{}")];
        assert_eq!(quoted, Ok(expected.to_vec()));
        assert_eq!(read("{}"), Ok(Vec::new()));
        each(["", "en", "{a,,b}", "{a,}", "{,}", "{\"a\"b}", "{a\"b\"}", "{\"a}", "{a}}", "{a\\}"], |malformed| {
            assert_eq!(read(malformed), Err(NotAnArray::Malformed), "{malformed}");
        });
        for nested in ["{{a},{b}}", "{a,{b}}", "[0:1]={a,b}"] {
            assert_eq!(read(nested), Err(NotAnArray::Nested), "{nested}");
        }
    }
}
