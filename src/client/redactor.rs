//! Search for keys in texts, and texts without them.
//!
//! ```text
//! key ──▶ its forms ──▶ places in a text ──▶ Clean
//! ```
//!
//! Whatever is kept in the log, written to a recording or shown to a client is a [`Clean`] text, which nothing else makes.
//!
//! Invariant: the places of all keys are looked for in the text as it came, so no replacement hides a key from the next one.

use std::fmt;
use std::ops::{Deref, Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use data_encoding::BASE32_NOPAD;
use http::HeaderName;
use memchr::memmem;
use serde::Serialize;

use super::auth::{Secret, base64};

/// Shortest key that values are searched for, in characters. A shorter one may be a word, or the number of a mention.
const LONG: usize = 16;

/// Shortest base64 or base32 match that is not a coincidence, in characters.
const LEAST: usize = 6;

/// Text without the keys that it was searched for.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Clean(String);

impl Clean {
    /// Redacts every form of these keys in a text.
    pub(super) fn of<'k>(text: &str, keys: impl IntoIterator<Item = &'k Secret>) -> Self {
        let mut places = Vec::new();
        keys.into_iter().for_each(|key| key.find(text, &mut places));
        places.sort_unstable_by_key(|place| place.start);
        let mut clean = String::with_capacity(text.len());
        let mut from = 0;
        for place in merged(places) {
            clean.push_str(&text[from..place.start]);
            clean.push_str(Secret::REDACTED);
            from = place.end;
        }
        clean.push_str(&text[from..]);
        Self(clean)
    }

    /// The text, shortened to its beginning and its length if it has more bytes than this.
    pub(super) fn shortened(self, most: usize) -> Self {
        match self.0.len() {
            long if long > most => Self(format!("{} … ({long} bytes)", &self.0[..self.0.floor_char_boundary(most)])),
            _ => self,
        }
    }

    /// The value of a header, after its name.
    pub(super) fn of_header(self, name: &HeaderName) -> Self {
        Self(format!("{name}: {}", self.0))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Places that overlap become one; `places` are sorted by their beginning.
fn merged(places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(places.len());
    for place in places {
        match merged.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => merged.push(place),
        }
    }
    merged
}

impl Deref for Clean {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Clean> for String {
    fn from(clean: Clean) -> Self {
        clean.0
    }
}

impl PartialEq<str> for Clean {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Clean {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// The places at which a text has a form of a key: in any letter case, in clear text, percent-encoded once or twice, JSON-escaped,
/// in hexadecimal, or inside data encoded in base64 or base32. Some may overlap.
///
/// Nothing is kept between two calls: servers hold the keys of their clients, whose forms would take far more memory than the keys.
pub(super) fn places(key: &str, text: &str) -> Vec<Range<usize>> {
    // Letters of ASCII have the same size in both cases.
    let text = text.to_ascii_lowercase();
    let found = automaton(key, &text);
    found.iter().flat_map(|forms| forms.find_overlapping_iter(&text)).map(|found| found.range()).collect()
}

/// True if a text has a form of the key.
pub(super) fn is_in(key: &str, text: &str) -> bool {
    !found_forms(key, &text.to_ascii_lowercase()).is_empty()
}

/// True if the body of a response has the key as a service repeats it. A short key is not looked for.
pub(super) fn is_in_body(key: &str, body: &[u8]) -> bool {
    key.len() >= LONG && forms_in_bodies(key).iter().any(|form| memmem::find(body, form.as_bytes()).is_some())
}

/// The forms of a key that a text in lower case has.
fn found_forms(key: &str, text: &str) -> Vec<String> {
    // No form is shorter than the key.
    if text.len() < key.len() {
        return Vec::new();
    }
    forms(key).into_iter().filter(|form| memmem::find(text.as_bytes(), form.as_bytes()).is_some()).collect()
}

/// Search for all places of the forms that a text in lower case has; `None` if it has none. Occurrences that overlap take no longer
/// than others.
fn automaton(key: &str, text: &str) -> Option<AhoCorasick> {
    let found = Some(found_forms(key, text)).filter(|found| !found.is_empty())?;
    // A table of all states would take a megabyte.
    let mut builder = AhoCorasick::builder();
    builder.kind(Some(AhoCorasickKind::ContiguousNFA));
    Some(builder.build(found).expect("a key is shorter than the gigabytes that would be too much"))
}

fn forms_in_bodies(key: &str) -> Vec<String> {
    let query: String = url::form_urlencoded::byte_serialize(key.as_bytes()).collect();
    let mut forms = vec![key.to_owned(), key.replace('/', "\\/"), query];
    forms.dedup();
    forms
}

fn forms(key: &str) -> Vec<String> {
    let query: String = url::form_urlencoded::byte_serialize(key.as_bytes()).collect();
    let percent: String = key.bytes().map(|byte| format!("%{byte:02x}")).collect();
    // JSON-escaped, with and without escaped slashes.
    let json = serde_json::to_string(key).unwrap_or_default();
    let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned();
    let slashes = json.replace('/', "\\/");
    let twice = |once: &str| once.replace('%', "%25");
    let escaped: String = key.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let hexadecimal: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![key.to_owned(), base64(key), BASE64_STANDARD.encode(key), twice(&query), twice(&percent)];
    forms.extend([query, percent, json, slashes, escaped, hexadecimal]);
    // Five bytes encode to eight characters.
    for before in 0..5 {
        let encoded = BASE32_NOPAD.encode(&[&vec![0; before], key.as_bytes()].concat());
        let inner = encoded.get((before * 8).div_ceil(5)..(before + key.len()) * 8 / 5).unwrap_or_default();
        forms.extend((inner.len() >= LEAST).then(|| inner.to_owned()));
    }
    // Three bytes encode to four characters, so the same bytes have three encodings, depending on their offset.
    for before in 0..3 {
        let encoded = BASE64_STANDARD_NO_PAD.encode([&vec![0; before], key.as_bytes()].concat());
        let inner = encoded.get((before * 8).div_ceil(6)..(before + key.len()) * 8 / 6).unwrap_or_default();
        if inner.len() >= LEAST {
            forms.extend([inner.to_owned(), inner.replace('+', "-").replace('/', "_")]);
        }
    }
    forms.iter_mut().for_each(|form| form.make_ascii_lowercase());
    forms.sort_unstable();
    forms.dedup();
    forms.retain(|form| !form.is_empty());
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Secret {
        Secret::new(text).expect("valid key")
    }

    #[test]
    fn a_key_that_is_part_of_the_replacement_is_replaced_once() {
        assert_eq!(key("red").redact("a red key"), "a <redacted> key");
        assert_eq!(Clean::of("no key", [&key("key"), &key("act")]), "no <redacted>");
    }

    #[test]
    fn keys_that_overlap_leave_no_rest() {
        let keys = [key("first-key"), key("-key-second")];
        for keys in [[&keys[0], &keys[1]], [&keys[1], &keys[0]]] {
            assert_eq!(Clean::of("(first-key-second)", keys), "(<redacted>)");
        }
        assert_eq!(Clean::of("first-key-key-second", &keys), "<redacted><redacted>");
        assert_eq!(key("abab").redact("xababay"), "x<redacted>ay");
        assert_eq!(
            key("abab").redact("xabababy"),
            "x<redacted>y",
            "no rest of an occurrence that begins in another one"
        );
    }

    #[test]
    fn a_shortened_text_keeps_its_beginning_and_length() {
        let clean = key("hidden").redact("é of hidden");
        assert_eq!(clean.clone().shortened(1_000), "é of <redacted>");
        assert_eq!(clean.shortened(1), " … (16 bytes)", "cut before a character that does not fit");
    }

    #[test]
    fn bodies_are_searched_for_long_keys_only() {
        let key = "a/key+of+many+letters";
        assert!(is_in_body(key, br#"{"next":"a\/key+of+many+letters"}"#));
        assert!(is_in_body(key, b"?key=a%2Fkey%2Bof%2Bmany%2Bletters&page=2"));
        assert!(!is_in_body("fifteen-letters", b"fifteen-letters"));
    }

    #[test]
    fn no_form_is_shorter_than_its_key() {
        for length in 1..=70 {
            // Capital letters of base32, signs and digits.
            for key in ["k".repeat(length), "/".repeat(length), "7Z".repeat(length.div_ceil(2))] {
                assert!(forms(&key).iter().all(|form| form.len() >= key.len()), "{key}: {:?}", forms(&key));
            }
        }
    }

    /// A server holds a key for each of its clients, who choose it.
    #[test]
    fn the_longest_key_takes_little_memory() {
        let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
        let mut state = 1_u32;
        let random = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(letters[(state >> 26) as usize])
        });
        let key: String = random.take(4_096).collect();
        assert!(automaton(&key, &"no key ".repeat(10_000)).is_none(), "nothing is compiled");
        let text = format!("Bearer {key}").to_ascii_lowercase();
        let compiled = automaton(&key, &text).expect("the key is found").memory_usage();
        assert!(compiled < 64 * key.len(), "{compiled} bytes");
        assert_eq!(places(&key, &text), vec![7..7 + key.len(); 1]);
    }
}
