//! Reads JSON text (RFC 8259) from value to value, each byte once, without building a document.
//!
//! Values are slices of the text. Callers convert those that they need; all others are only validated. Strings are searched in
//! blocks of 64 bytes, whose positions do not depend on what is found in them, so that a processor searches several at once.

use std::borrow::Cow;
use std::ops::Range;

use wide::u8x16;

use crate::error::{Error, ErrorKind, Result};

/// Bytes of a string that are searched at once.
const BLOCK: usize = 64;
/// Bytes that every processor compares at once.
const LANE: usize = 16;

/// Bytes of a prefix that are compared as a number.
const PREFIX: usize = 16;

/// The character of each escape sequence of two bytes, by its second byte; 0 for all other bytes.
const ESCAPED: [u8; 256] = {
    let mut table = [0; 256];
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'/' as usize] = b'/';
    table[b'b' as usize] = 8;
    table[b'f' as usize] = 12;
    table[b'n' as usize] = b'\n';
    table[b'r' as usize] = b'\r';
    table[b't' as usize] = b'\t';
    table
};

/// A position in a text.
#[derive(Debug, Clone)]
pub(super) struct Json<'t> {
    text: &'t str,
    at: usize,
    /// The brackets that are open while a value is skipped.
    open: Vec<u8>,
}

/// The text of a value, without surrounding white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Raw<'t> {
    pub(super) text: &'t str,
    /// Set for a string with escape sequences.
    pub(super) escaped: bool,
}

/// The text of a member between the brace or comma before it and its value: its name, the colon, and any white space.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prefix<'t> {
    text: &'t [u8],
    /// The first bytes of the text as a number, and a mask for them: most names are compared as a number, without a loop.
    start: u128,
    mask: u128,
}

impl<'t> Prefix<'t> {
    fn new(text: &'t [u8]) -> Self {
        let (mut start, mut mask) = ([0; PREFIX], [0; PREFIX]);
        for ((byte, start), mask) in text.iter().zip(&mut start).zip(&mut mask) {
            (*start, *mask) = (*byte, 0xff);
        }
        Self { text, start: u128::from_ne_bytes(start), mask: u128::from_ne_bytes(mask) }
    }

    /// True if the prefix may begin with these bytes: what is longer is not compared.
    #[inline]
    fn begins(&self, bytes: &[u8; PREFIX]) -> bool {
        u128::from_ne_bytes(*bytes) & self.mask == self.start
    }

    /// True if the rest of the prefix is in the text, which begins with the byte before the prefix.
    #[inline]
    fn ends(&self, text: &[u8]) -> bool {
        self.text.len() <= PREFIX || text[1..].starts_with(self.text)
    }
}

impl<'t> Raw<'t> {
    #[cfg(test)]
    pub(super) fn of(text: &'t str) -> Self {
        Self { text, escaped: text.contains('\\') }
    }

    /// First byte of the value, which tells its type.
    pub(super) fn first(self) -> u8 {
        self.text.as_bytes().first().copied().unwrap_or_default()
    }

    pub(super) fn is_null(self) -> bool {
        self.first() == b'n'
    }

    /// The characters of a string; the text of any other value.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for an invalid escape, such as an unpaired surrogate.
    pub(super) fn unquoted(self) -> Result<Cow<'t, str>> {
        if self.first() != b'"' {
            return Ok(Cow::Borrowed(self.text));
        }
        if !self.escaped {
            return Ok(Cow::Borrowed(self.inner()));
        }
        let mut buffer = Vec::new();
        Ok(Cow::Owned(self.characters(&mut buffer)?.to_owned()))
    }

    /// The characters of a string, written into a buffer if it has escape sequences.
    ///
    /// # Errors
    /// As [`unquoted`](Self::unquoted).
    pub(super) fn characters<'b>(self, buffer: &'b mut Vec<u8>) -> Result<&'b str>
    where
        't: 'b,
    {
        if self.escaped { Json::new(self.text).characters(buffer) } else { Ok(self.inner()) }
    }

    /// The text as JSON: numbers that JSON lacks become null.
    pub(super) fn json(self) -> Cow<'t, str> {
        let lacks = |text: &str| memchr::memmem::find(text.as_bytes(), b"NaN").is_some() || text.contains("Infinity");
        match self.first() {
            b'N' | b'I' => Cow::Borrowed("null"),
            b'-' if self.text.ends_with('y') => Cow::Borrowed("null"),
            b'{' | b'[' if lacks(self.text) => Cow::Owned(without_nan(self.text)),
            _ => Cow::Borrowed(self.text),
        }
    }

    /// The text between the quotes of a string.
    pub(super) fn inner(self) -> &'t str {
        self.text.get(1..self.text.len() - 1).unwrap_or_default()
    }
}

/// The character of a `\u` escape, or of a pair of them, at the beginning of a text, and its length there in bytes.
fn unicode(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let first = unit(0)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    let second = unit(6).filter(|second| (0xdc00..0xe000).contains(second))?;
    let high = (0xd800..0xdc00).contains(&first).then(|| first - 0xd800)?;
    char::from_u32(0x1_0000 + (high << 10) + (second - 0xdc00)).map(|character| (character, 12))
}

/// A valid text in which numbers that JSON lacks are null.
fn without_nan(text: &str) -> String {
    let (mut kept, mut rest, mut quoted) = (String::with_capacity(text.len()), text, false);
    while let Some(at) = rest.find(['"', '\\', 'N', '-', 'I']) {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let number = ["NaN", "Infinity", "-Infinity"].into_iter().find(|name| !quoted && from.starts_with(name));
        let length = match (from.as_bytes()[0], number) {
            (_, Some(name)) => name.len(),
            // The character after a backslash may be longer than a byte only if the text is not valid.
            (b'\\', None) => from.len().min(2),
            _ => 1,
        };
        quoted ^= from.starts_with('"');
        let (token, after) = from.split_at(length);
        kept.push_str(if number.is_some() { "null" } else { token });
        rest = after;
    }
    kept + rest
}

#[cold]
fn unpaired() -> Error {
    Error::new(ErrorKind::Malformed, "invalid escape in a string: an unpaired surrogate")
}

impl<'t> Json<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, open: Vec::new() }
    }

    /// First byte of the next value.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] at the end of the text.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<u8> {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if *byte > b' ' => Ok(*byte),
            _ => self.after_space().ok_or_else(|| self.malformed("a value")),
        }
    }

    /// Skips white space, and returns the byte after it.
    #[inline]
    fn after_space(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Enters the object or array that begins here.
    pub(super) fn enter(&mut self) {
        self.at += 1;
    }

    /// Reads the name of the next member of an object up to its value; `None` at the end of the object. `first`: set before the
    /// first member.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for anything else.
    #[inline]
    pub(super) fn member(&mut self, first: &mut bool) -> Result<Option<Raw<'t>>> {
        if !self.next(first, b'}')? {
            return Ok(None);
        }
        if self.after_space() != Some(b'"') {
            return Err(self.malformed("the name of a member"));
        }
        let name = self.string()?;
        if self.after_space() != Some(b':') {
            return Err(self.malformed("`:`"));
        }
        self.at += 1;
        Ok(Some(name))
    }

    /// Advances to the value of the next member if its text up to there is `before`, a brace or a comma, and then `prefix`.
    #[inline]
    pub(super) fn skips(&mut self, before: u8, prefix: &Prefix<'t>) -> bool {
        let rest = self.rest();
        let skips = match rest.first_chunk::<{ 1 + PREFIX }>() {
            Some([first, start @ ..]) => *first == before && prefix.begins(start) && prefix.ends(rest),
            None => rest.first() == Some(&before) && rest[1..].starts_with(prefix.text),
        };
        self.at += if skips { 1 + prefix.text.len() } else { 0 };
        skips
    }

    /// Leaves the object that ends here, if it does.
    #[inline]
    pub(super) fn leaves(&mut self) -> bool {
        let leaves = self.rest().first() == Some(&b'}');
        self.at += usize::from(leaves);
        leaves
    }

    /// Position in the text, in bytes.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The prefix of the value that begins here; `start` is the position of the brace or comma before it.
    pub(super) fn prefix(&mut self, start: usize) -> Result<Prefix<'t>> {
        self.peek()?;
        Ok(Prefix::new(&self.text.as_bytes()[start + 1..self.at]))
    }

    /// The text from here on.
    #[inline]
    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Reads a null, if one begins here.
    #[inline]
    pub(super) fn null(&mut self) -> bool {
        let null = self.rest().first_chunk() == Some(b"null");
        self.at += if null { 4 } else { 0 };
        null
    }

    /// Reads an array without items or white space, if one begins here.
    #[inline]
    pub(super) fn empty_array(&mut self) -> bool {
        let empty = self.rest().first_chunk() == Some(b"[]");
        self.at += if empty { 2 } else { 0 };
        empty
    }

    /// Reads a number that is an integer of at most 18 digits, if one begins here; any other value is left.
    #[inline]
    pub(super) fn short_integer(&mut self) -> Option<i64> {
        let rest = self.rest();
        let negative = rest.first() == Some(&b'-');
        let digits = &rest[usize::from(negative)..];
        let (mut number, mut length) = (0, 0);
        while let Some(digit) = digits.get(length).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
            if length == 18 {
                return None;
            }
            number = number * 10 + i64::from(digit);
            length += 1;
        }
        let ends = matches!(digits.get(length), Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\t' | b'\r'));
        if length == 0 || !ends || (digits[0] == b'0' && length > 1) {
            return None;
        }
        self.at += usize::from(negative) + length;
        Some(if negative { -number } else { number })
    }

    /// Reads a string of `N` plain bytes for which `parse` returns a value, if one begins here; any other value is left.
    #[inline]
    pub(super) fn string_of<const N: usize, T>(&mut self, parse: impl FnOnce(&[u8; N]) -> Option<T>) -> Option<T> {
        let text = self.rest().strip_prefix(b"\"")?;
        let (inner, after) = text.split_first_chunk()?;
        let value = parse(inner).filter(|_| after.first() == Some(&b'"'))?;
        self.at += N + 2;
        Some(value)
    }

    /// Moves to the next item of an array; false at its end. `first`: set before the first item.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for anything else.
    #[inline]
    pub(super) fn item(&mut self, first: &mut bool) -> Result<bool> {
        self.next(first, b']')
    }

    fn next(&mut self, first: &mut bool, end: u8) -> Result<bool> {
        match (std::mem::take(first), self.after_space()) {
            (_, Some(byte)) if byte == end => {
                self.at += 1;
                Ok(false)
            }
            (true, _) => Ok(true),
            (false, Some(b',')) => {
                self.at += 1;
                Ok(true)
            }
            (false, _) => Err(self.malformed(if end == b'}' { "`,` or `}`" } else { "`,` or `]`" })),
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if it is not valid JSON. Invalid escapes of surrogates are found by [`Raw::unquoted`].
    #[inline]
    pub(super) fn value(&mut self) -> Result<Raw<'t>> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => self.container(),
            _ => self.scalar(),
        }
    }

    /// # Errors
    /// [`ErrorKind::Malformed`] if anything but white space follows.
    pub(super) fn end(&mut self) -> Result<()> {
        match self.after_space() {
            None => Ok(()),
            Some(_) => Err(self.malformed("the end of the response")),
        }
    }

    /// Reads a number or a literal.
    fn scalar(&mut self) -> Result<Raw<'t>> {
        let start = self.at;
        match self.text.as_bytes().get(self.at) {
            Some(b't') => self.literal("true")?,
            Some(b'f') => self.literal("false")?,
            Some(b'n') => self.literal("null")?,
            // No JSON, and what encoders write for numbers that JSON lacks. They fit no column.
            Some(b'N') => self.literal("NaN")?,
            Some(b'I') => self.literal("Infinity")?,
            Some(b'-') if self.text.as_bytes().get(self.at + 1) == Some(&b'I') => self.literal("-Infinity")?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => return Err(self.malformed("a value")),
        }
        Ok(Raw { text: &self.text[start..self.at], escaped: false })
    }

    fn literal(&mut self, literal: &'static str) -> Result<()> {
        if self.text.as_bytes()[self.at..].starts_with(literal.as_bytes()) {
            self.at += literal.len();
            return Ok(());
        }
        Err(self.malformed(literal))
    }

    fn number(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        self.at += usize::from(bytes[self.at] == b'-');
        match bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = bytes.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(bytes.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<()> {
        let bytes = &self.text.as_bytes()[self.at..];
        let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count > 0 { Ok(()) } else { Err(self.malformed("a digit")) }
    }

    /// Reads the string that begins here.
    #[inline]
    fn string(&mut self) -> Result<Raw<'t>> {
        match self.short_string() {
            Some(text) => Ok(Raw { text, escaped: false }),
            None => Ok(self.scan::<false>(&mut Vec::new())?.0),
        }
    }

    /// Reads the string that begins here if it has no escape sequence and ends within a block. Returns it with its quotes.
    #[inline]
    fn short_string(&mut self) -> Option<&'t str> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let found = specials(bytes.get(start + 1..)?.first_chunk()?);
        let end = start + 1 + found.trailing_zeros() as usize;
        if found == 0 || bytes.get(end) != Some(&b'"') {
            return None;
        }
        self.at = end + 1;
        self.text.get(start..=end)
    }

    /// Reads the string that begins here, and returns its characters: a slice of the text, or of the buffer if it has escape
    /// sequences.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for an invalid string or an unpaired surrogate.
    #[inline]
    pub(super) fn characters<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Result<&'b str>
    where
        't: 'b,
    {
        match self.short_string() {
            Some(text) => Ok(Raw { text, escaped: false }.inner()),
            None => self.long_characters(buffer),
        }
    }

    fn long_characters<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Result<&'b str>
    where
        't: 'b,
    {
        let (raw, end) = self.scan::<true>(buffer)?;
        if !raw.escaped {
            return Ok(raw.inner());
        }
        simdutf8::basic::from_utf8(&buffer[..end]).map_err(|_| unpaired())
    }

    /// Reads the string that begins here. If `COPY`, the characters of a string with escape sequences are written to the
    /// beginning of the buffer; returns how many bytes they have.
    fn scan<const COPY: bool>(&mut self, buffer: &mut Vec<u8>) -> Result<(Raw<'t>, usize)> {
        let (bytes, start) = (self.text.as_bytes(), self.at);
        // Bytes before `from` have been read.
        let (mut block_at, mut from) = (start + 1, start + 1);
        let (mut escaped, mut end) = (false, 0);
        loop {
            let rest = bytes.get(block_at..).unwrap_or_default();
            let mut found = match rest.first_chunk::<BLOCK>() {
                Some(block) => specials(block),
                None => {
                    let mut block = [b' '; BLOCK];
                    block[..rest.len()].copy_from_slice(rest);
                    specials(&block)
                }
            };
            while found != 0 {
                let at = block_at + found.trailing_zeros() as usize;
                found &= found - 1;
                if at < from {
                    continue;
                }
                self.at = at;
                let special = bytes[at];
                if COPY && (escaped || special == b'\\') {
                    copy(bytes, from..at, buffer, &mut end);
                }
                match special {
                    b'"' => {
                        self.at += 1;
                        return Ok((Raw { text: &self.text[start..self.at], escaped }, end));
                    }
                    b'\\' => {
                        escaped = true;
                        self.escape::<COPY>(buffer, &mut end)?;
                        from = self.at;
                    }
                    _ => return Err(self.malformed("no unescaped control character")),
                }
            }
            if rest.len() < BLOCK {
                self.at = bytes.len();
                return Err(self.malformed("the end of a string"));
            }
            block_at += BLOCK;
        }
    }

    /// Reads the escape sequence that begins here. If `COPY`, its character is written to the buffer at `end`; of two surrogates,
    /// both sequences are read then, and an unpaired one is an error.
    #[inline]
    fn escape<const COPY: bool>(&mut self, buffer: &mut Vec<u8>, end: &mut usize) -> Result<()> {
        let bytes = &self.text.as_bytes()[self.at..];
        let character = bytes.get(1).map_or(0, |second| ESCAPED[usize::from(*second)]);
        if character != 0 {
            if COPY {
                room(buffer, *end)[*end] = character;
                *end += 1;
            }
            self.at += 2;
            return Ok(());
        }
        let digits = bytes.get(..6).and_then(|escape| escape.strip_prefix(b"\\u"));
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            return Err(self.malformed("a valid escape"));
        }
        let mut length = 6;
        if COPY {
            let character;
            (character, length) = unicode(&self.text[self.at..]).ok_or_else(unpaired)?;
            *end += character.encode_utf8(&mut room(buffer, *end)[*end..]).len();
        }
        self.at += length;
        Ok(())
    }

    /// Reads the object or array that begins here, however deep it is.
    fn container(&mut self) -> Result<Raw<'t>> {
        let start = self.at;
        self.open.clear();
        let mut first = true;
        loop {
            // Before a value, or before an item or member of the innermost container.
            let value = match self.open.last().copied() {
                None => true,
                Some(b'{') => self.member(&mut first)?.is_some(),
                Some(_) => self.item(&mut first)?,
            };
            if value {
                match self.peek()? {
                    bracket @ (b'{' | b'[') => {
                        self.at += 1;
                        self.open.push(bracket);
                        first = true;
                        continue;
                    }
                    b'"' => drop(self.string()?),
                    _ => drop(self.scalar()?),
                }
            } else {
                self.open.pop();
                first = false;
            }
            if self.open.is_empty() {
                return Ok(Raw { text: &self.text[start..self.at], escaped: false });
            }
        }
    }

    /// The error that something else was expected here.
    #[cold]
    fn malformed(&self, expected: &str) -> Error {
        let what = match self.at < self.text.len() {
            true => format!("expected {expected} at byte {}", self.at),
            false => format!("unexpected end at byte {}, expected {expected}", self.at),
        };
        Error::new(ErrorKind::Malformed, format!("the response is not valid JSON: {what}"))
    }

    /// The error that the value here has a type other than the profile declares.
    #[cold]
    pub(super) fn mismatch(&mut self, expected: &str) -> Error {
        let at = self.at;
        // A truncated value is malformed, not of another type.
        if let Err(error) = self.value().and_then(Raw::unquoted) {
            return error;
        }
        let what = match self.text.as_bytes()[at] {
            b'{' => "an object",
            b'[' => "an array",
            b'"' => "a string",
            b't' | b'f' => "a boolean",
            b'n' => "null",
            _ => "a number",
        };
        Error::new(
            ErrorKind::Contradiction,
            format!("the response does not match the profile: expected {expected}, found {what} at byte {at}"),
        )
        .advice("check the pointers of this table in the profile")
    }
}

/// True for a quote, a backslash or a control character.
#[inline]
fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// A bit for each byte of a block, set for special ones.
#[inline]
fn specials(block: &[u8; BLOCK]) -> u64 {
    let lanes = block.as_chunks::<LANE>().0.iter().enumerate();
    lanes.fold(0, |found, (at, lane)| found | u64::from(specials_of_lane(lane)) << (at * LANE))
}

#[inline]
fn specials_of_lane(lane: &[u8; LANE]) -> u32 {
    let lane = u8x16::new(*lane);
    let control = lane.min(u8x16::splat(0x1f)).simd_eq(lane);
    (control | lane.simd_eq(u8x16::splat(b'"')) | lane.simd_eq(u8x16::splat(b'\\'))).to_bitmask()
}

/// Number of bytes before the first special one.
#[inline]
pub(super) fn plain(bytes: &[u8]) -> usize {
    let (lanes, rest) = bytes.as_chunks::<LANE>();
    for (at, lane) in lanes.iter().enumerate() {
        let found = specials_of_lane(lane);
        if found != 0 {
            return at * LANE + found.trailing_zeros() as usize;
        }
    }
    let special = rest.iter().position(|byte| is_special(*byte));
    special.map_or(bytes.len(), |special| bytes.len() - rest.len() + special)
}

/// Writes a part of a text to a buffer at `end`.
#[inline]
fn copy(bytes: &[u8], part: Range<usize>, buffer: &mut Vec<u8>, end: &mut usize) {
    let length = part.len();
    let room = room(buffer, *end + length);
    match bytes[part.start..].first_chunk::<BLOCK>() {
        // A copy of a constant size is much faster; what is too much will be overwritten.
        Some(block) if length <= BLOCK => room[*end..*end + BLOCK].copy_from_slice(block),
        _ => room[*end..*end + length].copy_from_slice(&bytes[part]),
    }
    *end += length;
}

/// A buffer with room for a block and a character at `end`.
#[inline]
fn room(buffer: &mut Vec<u8>, end: usize) -> &mut [u8] {
    let needed = end + BLOCK + 4;
    if buffer.len() < needed {
        buffer.resize(2 * needed, 0);
    }
    buffer
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    #[test]
    fn numbers_that_json_lacks_are_read_and_written_as_null() {
        for (text, json) in [
            ("NaN", "null"),
            ("-Infinity", "null"),
            ("-1.5", "-1.5"),
            (
                r#"{"a":[NaN,-Infinity,"NaN \" Infinity"],"NaN":Infinity}"#,
                r#"{"a":[null,null,"NaN \" Infinity"],"NaN":null}"#,
            ),
        ] {
            let mut read = Json::new(text);
            let raw = read.value().expect("a value");
            read.end().expect("nothing follows");
            assert_eq!(raw.json(), json, "{text}");
        }
        for text in ["Nan", "-Inf", "Infinit", "nan"] {
            assert!(Json::new(text).value().is_err(), "{text}");
        }
    }

    use super::*;
    use crate::cases::each;

    /// Reads a text with one value.
    fn read(text: &str) -> Result<Raw<'_>> {
        let mut json = Json::new(text);
        let value = json.value()?;
        json.end()?;
        Ok(value)
    }

    /// Texts of values, most of them valid JSON, with white space in all places.
    fn values() -> impl Strategy<Value = String> {
        let string = prop_oneof![
            any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
            "\"([ -!#-\\[\\]-~é漢🚀]|\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4}|\\\\u[dD][89ab][0-9a-f]{2}\\\\u[dD][c-f]00){0,20}\"",
        ];
        let scalar = prop_oneof![
            string,
            "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?",
            "[-+0-9.eE]{1,6}",
            prop::sample::select(vec!["true", "false", "null", "nul", "True", "", "Na"]).prop_map(str::to_owned),
        ];
        scalar.prop_recursive(5, 40, 4, |value| {
            let spaced = ("[ \n\t\r]{0,2}", value, "[ \n\t\r]{0,2}").prop_map(|(a, value, b)| format!("{a}{value}{b}"));
            let member = ("[ \n]{0,1}", any::<String>(), spaced.clone())
                .prop_map(|(space, name, value)| format!("{space}{}{space}:{value}", serde_json::Value::from(name)));
            prop_oneof![
                prop::collection::vec(spaced, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(","))),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_takes_what_serde_json_takes(text in values(), spoilt in prop::option::of((any::<prop::sample::Index>(), any::<char>()))) {
            let mut text = text;
            if let Some((at, character)) = spoilt {
                let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
                text.insert(*at.get(&places), character);
            }
            let expected = serde_json::from_str::<&RawValue>(&text).ok().map(RawValue::get);
            prop_assert_eq!(read(&text).ok().map(|raw| raw.text), expected, "{}", text);
        }

        #[test]
        fn strings_have_the_characters_that_serde_json_finds(
            // Escape sequences lie across the borders of blocks.
            long in "\"([ -!#-\\[\\]-~é漢🚀]{0,70}(\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4}|\\\\u[dD][89ab][0-9a-f]{2}\\\\u[dD][c-f]00)){0,8}\"",
            any in values(),
            after in "[ -~]{0,80}",
        ) {
            for text in [&long, &any] {
                if let Ok(raw) = read(text) && raw.first() == b'"' {
                    let expected = serde_json::from_str::<String>(raw.text).ok();
                    prop_assert_eq!(raw.unquoted().ok().map(Cow::into_owned), expected.clone());
                    let (text, mut buffer) = (format!("{}{after}", raw.text), vec![b'?'; 100]);
                    let mut json = Json::new(&text);
                    prop_assert_eq!(json.characters(&mut buffer).ok().map(str::to_owned), expected.clone());
                    prop_assert!(expected.is_none() || json.at == raw.text.len());
                }
            }
        }

        #[test]
        fn plain_bytes_end_at_the_first_special_one(
            bytes in prop::collection::vec(prop_oneof![60 => 0x60_u8.., 1 => any::<u8>(), 1 => Just(b'"')], 0..200),
        ) {
            let expected = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            prop_assert_eq!(plain(&bytes), expected.unwrap_or(bytes.len()));
        }

        #[test]
        fn prefixes_are_compared_as_slices_are(text in "[ab]{0,40}", prefix in "[ab]{0,24}", same in any::<bool>()) {
            let prefix = if same { text.get(..prefix.len()).unwrap_or(&prefix) } else { &prefix };
            let (whole, mut expected) = (format!(",{text}"), 0);
            if text.starts_with(prefix) {
                expected = 1 + prefix.len();
            }
            let mut json = Json::new(&whole);
            prop_assert_eq!(json.skips(b',', &Prefix::new(prefix.as_bytes())), expected > 0);
            prop_assert_eq!(json.at, expected);
            prop_assert!(!Json::new(&whole).skips(b'{', &Prefix::new(prefix.as_bytes())), "another byte before it");
        }

        #[test]
        fn short_integers_are_read_as_the_general_parser_reads_them(
            text in prop_oneof!["-?[0-9]{1,20}", "[-+0-9.eE]{1,6}"],
            after in "[,}\\] \n.x]?",
        ) {
            let text = text + &after;
            let mut json = Json::new(&text);
            match json.short_integer() {
                Some(number) => {
                    let mut general = Json::new(&text);
                    let raw = general.value().expect("a number");
                    prop_assert_eq!((raw.text.parse(), general.at), (Ok(number), json.at));
                }
                None => prop_assert_eq!(json.at, 0),
            }
        }
    }

    #[test]
    fn errors_name_the_byte_and_what_is_expected_there() {
        let cases = [
            ("{\"a\":1", "unexpected end at byte 6, expected `,` or `}`"),
            ("[1 2]", "expected `,` or `]` at byte 3"),
            ("[1,]", "expected a value at byte 3"),
            ("{1:2}", "expected the name of a member at byte 1"),
            ("{\"a\" 2}", "expected `:` at byte 5"),
            ("[01]", "expected `,` or `]` at byte 2"),
            ("[1.]", "expected a digit at byte 3"),
            ("\"a\nb\"", "expected no unescaped control character at byte 2"),
            ("\"\\x\"", "expected a valid escape at byte 1"),
            ("\"abc", "unexpected end at byte 4, expected the end of a string"),
            ("{} x", "expected the end of the response at byte 3"),
            ("", "unexpected end at byte 0, expected a value"),
        ];
        each(cases, |(text, message)| {
            let error = read(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Malformed);
            assert!(error.to_string().contains(message), "{text}: {error}");
        });
    }

    #[test]
    fn depth_is_no_limit_for_values_that_are_skipped() {
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        assert_eq!(read(&deep).expect("valid").text, deep);
        read(&deep[1..]).expect_err("one bracket too many");
    }
}
