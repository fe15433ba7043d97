//! The envelope of an answer: echoes, totals, answer-level values, and the sections that hold rows.

use std::borrow::Cow;

use super::json::{Json, Raw};
use super::pointer_tree::Tree;
use super::record::Rows;
use super::{Capture, Decoder};
use crate::error::Result;
use crate::profile::Shape;

/// Values of an answer outside its rows.
#[derive(Debug)]
pub(super) struct Envelope<'t> {
    values: Vec<Option<Raw<'t>>>,
    /// For each section, set if it was present.
    pub(super) sections: Vec<bool>,
}

impl<'t> Envelope<'t> {
    /// A captured value.
    pub(super) fn raw(&self, slot: usize) -> Option<Raw<'t>> {
        self.values[slot]
    }

    /// A captured value as text; `None` for NULL.
    pub(super) fn text(&self, slot: usize) -> Option<Cow<'t, str>> {
        let raw = self.raw(slot).filter(|raw| !raw.is_null())?;
        Some(raw.unquoted().unwrap_or(Cow::Borrowed(raw.text)))
    }
}

/// Reads a complete body.
///
/// # Errors
/// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for invalid JSON,
/// [`ErrorKind::Contradiction`](crate::ErrorKind::Contradiction) for values whose type differs from the profile.
pub(super) fn read<'t>(decoder: &Decoder, text: &'t str, rows: &mut Rows<'_, 't>) -> Result<Envelope<'t>> {
    let answer = Envelope { values: vec![None; decoder.captures], sections: vec![false; decoder.table.sections.len()] };
    let mut walk = Walk { decoder, answer, rows };
    let mut json = Json::new(text);
    walk.value(&mut json, &decoder.envelope)?;
    json.end()?;
    Ok(walk.answer)
}

/// Walks down to the wanted values.
struct Walk<'a, 'r, 't> {
    decoder: &'a Decoder,
    answer: Envelope<'t>,
    rows: &'a mut Rows<'r, 't>,
}

impl<'t> Walk<'_, '_, 't> {
    /// Reads a value whose targets are at and below `tree`.
    fn value(&mut self, json: &mut Json<'t>, tree: &Tree<Capture>) -> Result<()> {
        let begins = json.peek()?;
        let start = json.clone();
        for capture in &tree.here {
            // Rarely, a value has several targets: it is read for each of them.
            *json = start.clone();
            match capture {
                Capture::Section(section) => self.section(json, *section)?,
                Capture::Value(slot) => self.answer.values[*slot] = Some(json.value()?),
            }
        }
        if !tree.here.is_empty() && (tree.members.is_empty() || begins != b'{') {
            return Ok(());
        }
        *json = start;
        match begins {
            b'{' => self.members(json, tree),
            // A null object has none of the wanted values; missing ones are reported at the end.
            b'n' => json.value().map(drop),
            _ => Err(json.mismatch("an object")),
        }
    }

    fn members(&mut self, json: &mut Json<'t>, tree: &Tree<Capture>) -> Result<()> {
        json.enter();
        let mut first = true;
        while let Some(name) = json.member(&mut first)? {
            match tree.find(&name.unquoted()?) {
                Some(at) => self.value(json, &tree.members[at].1)?,
                None => drop(json.value()?),
            }
        }
        Ok(())
    }

    /// Reads the rows of a section.
    fn section(&mut self, json: &mut Json<'t>, section: usize) -> Result<()> {
        let spec = &self.decoder.table.sections[section];
        match (json.peek()?, spec.shape, &spec.key, &spec.value) {
            // Null means no rows.
            (b'n', ..) => drop(json.value()?),
            (b'[', Shape::Records, ..) => {
                json.enter();
                let (mut first, mut position) = (true, 0);
                while json.item(&mut first)? {
                    self.rows.record(json, &spec.label, position)?;
                    position += 1;
                }
            }
            (b'{', Shape::Record, ..) => self.rows.record(json, &spec.label, 0)?,
            (b'{', Shape::Entries, Some(key), Some(value)) => {
                json.enter();
                let (mut first, mut position) = (true, 0);
                while let Some(name) = json.member(&mut first)? {
                    let values = [(key.steps(), name), (value.steps(), json.value()?)];
                    self.rows.entry(&spec.label, position, values)?;
                    position += 1;
                }
            }
            (_, Shape::Records, ..) => return Err(json.mismatch(&format!("an array at `{}`", spec.at))),
            _ => return Err(json.mismatch(&format!("an object at `{}`", spec.at))),
        }
        self.answer.sections[section] = true;
        Ok(())
    }
}
