//! The envelope of an answer: echoes, totals, answer-level values, and the sections that hold rows.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::pointer_tree::Tree;
use super::record::{RecordSeed, Rows};
use super::value::unescape;
use super::{Capture, Decoder};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::Shape;

/// Values of an answer outside its rows.
#[derive(Debug)]
pub(super) struct Envelope {
    values: Vec<Option<String>>,
    /// For each section, set if it was present.
    pub(super) sections: Vec<bool>,
}

impl Envelope {
    /// A captured value as raw JSON.
    pub(super) fn raw(&self, slot: usize) -> Option<&str> {
        self.values[slot].as_deref()
    }

    /// A captured value as text; `None` for NULL.
    pub(super) fn text(&self, slot: usize) -> Option<Cow<'_, str>> {
        let raw = self.raw(slot).filter(|raw| *raw != "null")?;
        Some(if raw.starts_with('"') { unescape(raw).unwrap_or(Cow::Borrowed(raw)) } else { Cow::Borrowed(raw) })
    }
}

/// Reads a complete body.
pub(super) fn read(decoder: &Decoder, text: &str, rows: &mut Rows<'_>) -> Result<Envelope> {
    let mut answer =
        Envelope { values: vec![None; decoder.captures], sections: vec![false; decoder.table.sections.len()] };
    let mut json = serde_json::Deserializer::from_str(text);
    let walk = Walk { decoder, tree: &decoder.envelope, answer: &mut answer, rows };
    let read = walk.deserialize(&mut json).and_then(|()| json.end());
    match read {
        Ok(()) => Ok(answer),
        Err(_) if rows.failure.is_some() => Err(rows.failure.take().unwrap_or_else(|| unreachable!("checked above"))),
        Err(error) if error.is_data() => {
            Err(Error::new(ErrorKind::Contradiction, format!("the response does not match the profile: {error}"))
                .advice("check the pointers of this table in the profile"))
        }
        Err(error) => Err(Error::new(ErrorKind::Malformed, format!("the response is not valid JSON: {error}"))),
    }
}

/// Walks down to the wanted values.
struct Walk<'a, 'r, 't> {
    decoder: &'a Decoder,
    tree: &'a Tree<Capture>,
    answer: &'a mut Envelope,
    rows: &'r mut Rows<'t>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Self { decoder, tree, answer, rows } = self;
        let section = tree.here.iter().find_map(|capture| match capture {
            Capture::Section(section) => Some(*section),
            Capture::Value(_) => None,
        });
        if let Some(section) = section
            && tree.members.is_empty()
        {
            let present = deserializer.deserialize_any(Section { decoder, section, rows })?;
            answer.sections[section] |= present;
            return Ok(());
        }
        if !tree.here.is_empty() {
            let raw = <&RawValue as serde::Deserialize>::deserialize(deserializer)?.get();
            for capture in &tree.here {
                if let Capture::Value(slot) = capture {
                    answer.values[*slot] = Some(raw.to_owned());
                }
            }
            // Rarely, values below are wanted as well: the text is parsed once more for them.
            let again = || serde_json::Deserializer::from_str(raw);
            if let Some(section) = section {
                let present = again().deserialize_any(Section { decoder, section, rows }).map_err(D::Error::custom)?;
                answer.sections[section] |= present;
            }
            if raw.starts_with('{') && !tree.members.is_empty() {
                again().deserialize_any(Self { decoder, tree, answer, rows }).map_err(D::Error::custom)?;
            }
            return Ok(());
        }
        deserializer.deserialize_any(Self { decoder, tree, answer, rows })
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { decoder, tree, answer, rows } = self;
        while let Some(name) = members.next_key::<String>()? {
            match tree.find(&name, 0) {
                Some(at) => {
                    members.next_value_seed(Walk { decoder, tree: &tree.members[at].1, answer, rows })?;
                }
                None => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    /// A null object has none of the wanted values; missing ones are reported at the end.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Reads the rows of a section; returns true if the section was present.
struct Section<'a, 'r, 't> {
    decoder: &'a Decoder,
    section: usize,
    rows: &'r mut Rows<'t>,
}

impl<'de> Visitor<'de> for Section<'_, '_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = &self.decoder.table.sections[self.section].at;
        match self.decoder.shape(self.section) {
            Shape::Records => write!(f, "an array at `{at}`"),
            Shape::Record | Shape::Entries => write!(f, "an object at `{at}`"),
        }
    }

    /// Null means no rows.
    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let Self { decoder, section, rows } = self;
        if decoder.shape(section) != Shape::Records {
            return Err(A::Error::custom(format!("expected {}", Expecting(&Section { decoder, section, rows }))));
        }
        let label = &decoder.table.sections[section].label;
        let mut position = 0;
        while items.next_element_seed(RecordSeed { rows, label, position })?.is_some() {
            position += 1;
        }
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let Self { decoder, section, rows } = self;
        let spec = &decoder.table.sections[section];
        match (spec.shape, &spec.key, &spec.value) {
            (Shape::Record, ..) => {
                let seed = RecordSeed { rows, label: &spec.label, position: 0 };
                seed.deserialize(serde::de::value::MapAccessDeserializer::new(members))?;
            }
            (Shape::Entries, Some(key), Some(value)) => {
                let mut position = 0;
                while let Some(name) = members.next_key::<&RawValue>()? {
                    let raw = members.next_value::<&RawValue>()?.get();
                    let values = [(key.steps(), name.get()), (value.steps(), raw)];
                    if let Err(error) = rows.entry(&spec.label, position, values) {
                        let text = error.to_string();
                        rows.failure = Some(error);
                        return Err(A::Error::custom(text));
                    }
                    position += 1;
                }
            }
            _ => return Err(A::Error::custom(format!("expected {}", Expecting(&Section { decoder, section, rows })))),
        }
        Ok(true)
    }
}

/// Displays a visitor's expectation.
struct Expecting<'a, V>(&'a V);

impl<'de, V: Visitor<'de>> fmt::Display for Expecting<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }
}
