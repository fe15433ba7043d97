//! Invalid UTF-8 and escapes: bytes that are not UTF-8, invalid escape sequences, unpaired surrogates.
//!
//! They make an answer malformed; the error names the byte of the first one. Alternatively, on request, each is
//! replaced by U+FFFD and counted.

use std::borrow::Cow;

/// Replacement for an invalid character.
const REPLACEMENT: &str = "\u{fffd}";

/// Replaces every flaw of a body, and returns the text and the number of flaws. A body without flaws is borrowed
/// unchanged.
pub(super) fn mend(body: &[u8]) -> (Cow<'_, str>, u64) {
    let mut count = 0;
    let text = match std::str::from_utf8(body) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut mended = String::with_capacity(body.len());
            for chunk in body.utf8_chunks() {
                mended.push_str(chunk.valid());
                if !chunk.invalid().is_empty() {
                    mended.push_str(REPLACEMENT);
                    count += 1;
                }
            }
            Cow::Owned(mended)
        }
    };
    let mut flaws = Flaws::of(&text).peekable();
    if flaws.peek().is_none() {
        return (text, count);
    }
    let mut mended = String::with_capacity(text.len());
    let mut from = 0;
    for (at, length) in flaws {
        mended.push_str(&text[from..at]);
        mended.push_str(REPLACEMENT);
        (from, count) = (at + length, count + 1);
    }
    mended.push_str(&text[from..]);
    (Cow::Owned(mended), count)
}

/// Byte position of the first flaw of a body.
pub(super) fn first_flaw(body: &[u8]) -> Option<usize> {
    match std::str::from_utf8(body) {
        Ok(text) => Flaws::of(text).next().map(|(at, _)| at),
        Err(error) => Some(error.valid_up_to()),
    }
}

/// Invalid characters and escapes in JSON strings: position and length in bytes.
struct Flaws<'t> {
    bytes: &'t [u8],
    at: usize,
    inside: bool,
}

impl<'t> Flaws<'t> {
    fn of(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), at: 0, inside: false }
    }

    /// The code unit of the `\u` escape that begins here, if there is one.
    fn unit(&self, at: usize) -> Option<u16> {
        let digits = self.bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        u16::from_str_radix(digits, 16).ok()
    }
}

impl Iterator for Flaws<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        while let Some(byte) = self.bytes.get(self.at) {
            let at = self.at;
            let (length, fine) = match byte {
                b'"' => {
                    self.inside = !self.inside;
                    (1, true)
                }
                b'\\' if self.inside => match (self.bytes.get(at + 1), self.unit(at)) {
                    (Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'), _) => (2, true),
                    (Some(b'u'), Some(0xd800..=0xdbff)) => match self.unit(at + 6) {
                        Some(0xdc00..=0xdfff) => (12, true),
                        _ => (6, false),
                    },
                    (Some(b'u'), Some(0xdc00..=0xdfff)) => (6, false),
                    (Some(b'u'), Some(_)) => (6, true),
                    _ => (1, false),
                },
                // Control characters must be escaped.
                0..0x20 if self.inside => (1, false),
                _ => (1, true),
            };
            self.at += length;
            if !fine {
                return Some((at, length));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cases::each;

    #[test]
    fn what_says_no_character_is_replaced_and_all_else_stays() {
        let cases = [
            (&b"{\"a\":\"b\\n\\u00e9\\ud83d\\ude80\"}"[..], "{\"a\":\"b\\n\\u00e9\\ud83d\\ude80\"}", 0),
            (b"{\"a\":\"\\ud83d!\"}", "{\"a\":\"\u{fffd}!\"}", 1),
            (b"{\"a\":\"\\ude80\\q\"}", "{\"a\":\"\u{fffd}\u{fffd}q\"}", 2),
            (b"{\"a\":\"\xff\xfe\"}", "{\"a\":\"\u{fffd}\u{fffd}\"}", 2),
            (b"{\"a\":\"\\u12\"}", "{\"a\":\"\u{fffd}u12\"}", 1),
            (b"{\"a\":\"x\ny\"}\n", "{\"a\":\"x\u{fffd}y\"}\n", 1),
        ];
        each(cases, |(body, mended, count)| {
            let (text, n) = mend(body);
            assert_eq!((text.as_ref(), n), (mended, count));
            assert_eq!(first_flaw(body).is_some(), count > 0);
        });
        assert_eq!(first_flaw(b"{\"a\":\"b\\ud83d\"}"), Some(7));
    }

    proptest! {
        #[test]
        fn mended_json_is_json(text: String, spoilt in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8), 0..4)) {
            let mut body = serde_json::json!({"a": text, "b": [text]}).to_string().into_bytes();
            for (at, what) in spoilt {
                // Only inside the strings.
                let (start, end) = (6, 6 + text.len().min(3));
                let at = start + at.index(end - start + 1);
                let what: &[u8] = [&b"\\ud800"[..], b"\\x", b"\xc3", b"\x01"][usize::from(what)];
                if body.is_char_boundary_at(at) {
                    body.splice(at..at, what.iter().copied());
                }
            }
            let (text, _) = mend(&body);
            prop_assert!(first_flaw(text.as_bytes()).is_none());
        }
    }

    trait Boundary {
        fn is_char_boundary_at(&self, at: usize) -> bool;
    }

    impl Boundary for Vec<u8> {
        fn is_char_boundary_at(&self, at: usize) -> bool {
            self.get(at).is_some_and(|byte| byte & 0xc0 != 0x80)
        }
    }
}
