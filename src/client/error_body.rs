//! Error details in a response body: code, message and field, read without building the document tree.
//!
//! A body of half a megabyte can hold millions of small values; a tree of them would take thousands of times the
//! memory.

use std::fmt;

use memchr::memmem;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::auth::Secret;
use crate::profile::{ErrorFormat, Pointer, Profile};

/// Bytes of a string that are examined. Keys are redacted in these before the string is cut to the part shown.
const READ: usize = 32 << 10;
/// Characters at the end of a cut string that are not shown: more than a key has in any encoding.
const CUT: usize = 4 << 10;
/// Characters of a string that are shown.
const SHOWN: usize = 300;

/// Contents of an error body: machine-readable code, human-readable message, parameter at fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ErrorBody {
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    pub(super) field: Option<String>,
}

impl ErrorBody {
    /// Reads a body by the profile's pointers; a plain-text body is its own message. The key is redacted.
    pub(super) fn read(profile: &Profile, key: &Secret, body: &[u8]) -> Self {
        let short = |text: &str| {
            let clean = key.redact(start_of(text));
            // The cut may leave part of a key at the end.
            let whole = if text.len() > READ { clean.chars().count().saturating_sub(CUT) } else { usize::MAX };
            clean.chars().take(whole.min(SHOWN)).collect::<String>()
        };
        let pointers = [&profile.error.code, &profile.error.message, &profile.error.field];
        let json = match profile.error.format {
            ErrorFormat::Json => values(body, pointers.map(Option::as_ref)),
            ErrorFormat::Text => None,
        };
        if let Some([code, message, field]) = json {
            let text = |value: Option<String>| value.map(|value| short(&value));
            return Self { code: text(code), message: text(message), field: text(field) };
        }
        // Text in a successful response is not an error; the decoder judges it.
        let text = String::from_utf8_lossy(&body[..body.len().min(READ)]);
        let text = text.trim();
        let plain = !text.is_empty() && !text.starts_with(['<', '{', '[']);
        Self { message: plain.then(|| short(text)), ..Self::default() }
    }

    /// True if the JSON body reports an error.
    pub(super) fn is_error(&self) -> bool {
        self.code.is_some() || self.message.is_some()
    }

    /// True if the JSON body of a success reports an error: not if its code says that there is none.
    pub(super) fn is_failure(&self) -> bool {
        const NONE: [&str; 10] = ["", "0", "200", "none", "ok", "success", "false", "null", "[]", "{}"];
        let stated = self.code.as_ref().or(self.message.as_ref());
        stated.is_some_and(|stated| !NONE.contains(&stated.to_lowercase().as_str()))
    }
}

/// True if the message of an error refuses the request, which is refused again: it names one of these parameters, as `date_from`, and
/// has a word of a refusal. A name that may be a word, such as `to`, shows nothing, and neither does the message of a failure that may
/// pass: taken for a refusal, it could look like the end of paging. `parameters`: as the log has them.
pub(super) fn is_about(message: &str, parameters: &str) -> bool {
    const REFUSES: [&str; 15] = [
        "allowed",
        "at least",
        "at most",
        "between",
        "exceed",
        "expected",
        "greater than",
        "invalid",
        "less than",
        "must",
        "not supported",
        "not valid",
        "one of",
        "required",
        "unsupported",
    ];
    const PASSES: [&str; 13] = [
        "again",
        "busy",
        "fail",
        "internal",
        "later",
        "limit",
        "overload",
        "quota",
        "retry",
        "temporar",
        "time",
        "too many",
        "unavailable",
    ];
    let lower = message.to_lowercase();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_named = |name: &str| {
        message
            .match_indices(name)
            .any(|(at, _)| !message[..at].ends_with(is_part) && !message[at + name.len()..].starts_with(is_part))
    };
    let names = parameters.split(['?', '&', ' ']).filter_map(|pair| Some(pair.split_once('=')?.0));
    let mut names = names.filter(|name| name.len() > 2 && name.contains(|c: char| !c.is_ascii_lowercase()));
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    has(&REFUSES) && !has(&PASSES) && names.any(is_named)
}

/// True if a successful response may report an error in an object of its own. Beside the data, a code or a message may as
/// well be one of success.
pub(super) fn may_report_error(profile: &Profile, body: &[u8]) -> bool {
    let pointers = [&profile.error.code, &profile.error.message];
    // Of an error in an array, the name of the array.
    let named = |steps: &&String| steps.parse::<usize>().is_err();
    let objects = pointers.into_iter().flatten().filter_map(|pointer| pointer.steps().iter().rev().skip(1).find(named));
    profile.error.format == ErrorFormat::Json
        && objects.into_iter().any(|name| memmem::find(body, format!("\"{name}\"").as_bytes()).is_some())
}

/// Returns the first bytes of a string, cut at a character boundary.
fn start_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(READ)]
}

/// Returns the values at these pointers: strings as they are, others as JSON. `None` if the body is not valid JSON.
fn values<const N: usize>(body: &[u8], pointers: [Option<&Pointer>; N]) -> Option<[Option<String>; N]> {
    let text = std::str::from_utf8(body).ok()?;
    let mut found = [const { None }; N];
    let wanted = pointers.iter().enumerate().filter_map(|(slot, pointer)| Some((slot, pointer.as_ref()?.steps())));
    let mut json = serde_json::Deserializer::from_str(text);
    Walk { wanted: wanted.collect(), found: &mut found }.deserialize(&mut json).and_then(|()| json.end()).ok()?;
    Some(found)
}

/// Visitor that descends to the wanted values: slots of `found`, each with the rest of its path.
struct Walk<'w> {
    wanted: Vec<(usize, &'w [String])>,
    found: &'w mut [Option<String>],
}

/// Returns the entries whose paths continue with this step.
fn below<'w>(wanted: &[(usize, &'w [String])], step: &str) -> Vec<(usize, &'w [String])> {
    let below = wanted.iter().filter_map(|(slot, way)| match way.split_first() {
        Some((first, rest)) if first == step => Some((*slot, rest)),
        _ => None,
    });
    below.collect()
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.wanted.iter().any(|(_, way)| way.is_empty()) {
            return deserializer.deserialize_any(self);
        }
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let value = match serde_json::from_str::<String>(raw) {
            Ok(text) => Some(text),
            Err(_) => (raw != "null").then(|| start_of(raw).to_owned()),
        };
        for (slot, _) in self.wanted.iter().filter(|(_, way)| way.is_empty()) {
            self.found[*slot] = value.clone();
        }
        let Self { mut wanted, found } = self;
        wanted.retain(|(_, way)| !way.is_empty());
        match wanted.is_empty() {
            true => Ok(()),
            // A value inside this one is wanted as well, which is rare: the raw text is parsed again.
            false => {
                let inner = serde_json::Deserializer::from_str(raw).deserialize_any(Walk { wanted, found });
                inner.map_err(serde::de::Error::custom)
            }
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<String>()? {
            let wanted = below(&self.wanted, &name);
            if wanted.is_empty() {
                members.next_value::<IgnoredAny>()?;
            } else {
                members.next_value_seed(Walk { wanted, found: self.found })?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for at in 0_usize.. {
            let wanted = below(&self.wanted, &at.to_string());
            let more = if wanted.is_empty() {
                items.next_element::<IgnoredAny>()?.is_some()
            } else {
                items.next_element_seed(Walk { wanted, found: self.found })?.is_some()
            };
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> ErrorBody {
        let mut profile = Profile::v4();
        let pointer = |text: &str| Some(Pointer::try_from(text.to_owned()).expect("valid pointer"));
        profile.error.message = pointer("/errors/1/detail");
        profile.error.field = pointer("/errors/1");
        ErrorBody::read(&profile, &Secret::new("s3cr3t").expect("valid key"), body.as_bytes())
    }

    #[test]
    fn values_are_found_through_objects_and_arrays_wherever_they_stand() {
        let said =
            read(r#"{"x":[1,{"y":null}],"errors":[{"detail":"no"},{"detail":"not s3cr3t"}],"error":{"code":7}}"#);
        assert_eq!(said.code.as_deref(), Some("7"));
        assert_eq!(said.message.as_deref(), Some("not <redacted>"), "also inside a value that is wanted itself");
        assert_eq!(said.field.as_deref(), Some(r#"{"detail":"not <redacted>"}"#));
        assert_eq!(read(r#"{"error":{"code":null},"errors":3}"#), ErrorBody::default());
        assert_eq!(read("slow down").message.as_deref(), Some("slow down"));
        assert_eq!(read(r#"{"error":{"code":"a""#), ErrorBody::default(), "invalid JSON");
    }

    #[test]
    fn a_message_that_names_a_parameter_is_about_the_request() {
        let sent = "search?project_id=7&date_from=2026-01-01&to=2026-06-30&page[size]=10";
        let cases = [
            ("The range from date_from must not exceed 31 days", true),
            ("page[size] must be one of 5, 10", true),
            ("date_from_utc is invalid", false),
            ("date_from: is invalid", true),
            ("date_to is invalid", false),
            // A word, and failures that may pass.
            ("no access to the index", false),
            ("project_id 7: limit of requests reached", false),
            ("date_from: the index timed out", false),
            ("internal error in the search of project_id 7", false),
            ("date_from must be read again", false),
            ("date_from: no answer from shard 3", false),
        ];
        crate::cases::each(cases, |(message, about)| assert_eq!(is_about(message, sent), about, "{message}"));
    }

    #[test]
    fn long_texts_are_cut_and_no_part_of_a_key_is_left() {
        let said = read(&format!(r#"{{"error":{{"code":"{}s3cr3t"}}}}"#, "x".repeat(296)));
        assert_eq!(said.code.map(|code| code.chars().skip(296).collect::<String>()).as_deref(), Some("<red"));
        let said = read(&format!(r#"{{"error":{{"code":"{}"}}}}"#, "é".repeat(1 << 20)));
        assert_eq!(said.code.map(|code| code.chars().count()), Some(SHOWN));
    }
}
