//! The envelope of an answer: echoes, totals, answer-level values, and the sections that hold rows.

use std::borrow::Cow;

use super::evidence::Evidence;
use super::json::{Json, Raw};
use super::pointer_tree::Tree;
use super::record::Rows;
use super::{Capture, Decoder};
use crate::error::Result;
use crate::profile::{Pointer, SectionSpec, Shape};

/// Values of an answer outside its rows.
#[derive(Debug)]
pub(super) struct Envelope<'t> {
    values: Vec<Option<Raw<'t>>>,
    /// For each section, set if it was present.
    pub(super) sections: Vec<bool>,
    /// Number of sections that were null.
    pub(super) nulls: usize,
    /// Number of rows of each section.
    pub(super) entries: Vec<u64>,
    /// Evidence of the response about itself.
    pub(super) evidence: Evidence,
    /// The response with the JSON that a string held in its place; nothing else was read then.
    pub(super) opened: Option<String>,
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
    let sections = decoder.table.sections.len();
    let answer = Envelope {
        values: vec![None; decoder.captures],
        sections: vec![false; sections],
        nulls: 0,
        entries: vec![0; sections],
        evidence: decoder.evidence(),
        opened: None,
    };
    let mut walk = Walk { decoder, answer, rows, within: Vec::new(), inner: None };
    let mut json = Json::new(text);
    walk.value(&mut json, &decoder.envelope)?;
    json.end()?;
    if let Some((raw, inner)) = walk.inner {
        // The string is a part of the text.
        let at = raw.text.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        let end = at + raw.text.len();
        let whole = [text.get(..at).unwrap_or_default(), &inner, text.get(end..).unwrap_or_default()].concat();
        walk.answer.opened = Some(whole);
    }
    Ok(walk.answer)
}

/// Groups inside of groups that are read at most.
const DEEPEST: usize = 32;

/// The value at a pointer into another value; `None` if there is none.
fn below<'t>(value: Raw<'t>, at: &Pointer) -> Result<Option<Json<'t>>> {
    let mut json = Json::new(value.text);
    for step in at.steps() {
        if json.peek()? != b'{' {
            return Ok(None);
        }
        json.enter();
        let mut first = true;
        loop {
            let Some(name) = json.member(&mut first)? else { return Ok(None) };
            if name.unquoted()? == *step {
                break;
            }
            json.value()?;
        }
    }
    Ok(Some(json))
}

/// The array at a place in a value, which begins where the JSON is; `None` if there is none.
fn array_below<'t>(value: Raw<'t>, at: &Pointer) -> Result<Option<Json<'t>>> {
    let Some(mut json) = below(value, at)? else { return Ok(None) };
    // This skips the white space before it.
    Ok((json.peek()? == b'[').then_some(json))
}

/// Walks down to the wanted values.
struct Walk<'a, 'r, 't> {
    decoder: &'a Decoder,
    answer: Envelope<'t>,
    rows: &'a mut Rows<'r, 't>,
    /// Names of the objects around the value.
    within: Vec<String>,
    /// A string where an object is declared, and the JSON that it holds.
    inner: Option<(Raw<'t>, String)>,
}

impl<'t> Walk<'_, '_, 't> {
    /// Reads a value whose targets are at and below `tree`.
    fn value(&mut self, json: &mut Json<'t>, tree: &Tree<Capture>) -> Result<()> {
        let begins = json.peek()?;
        let start = json.clone();
        let enters = begins == b'{' || (begins == b'[' && tree.positions);
        let (foreign, mut read) = (tree.here.contains(&Capture::Foreign), false);
        for capture in tree.here.iter().filter(|capture| **capture != Capture::Foreign) {
            // Rarely, a value has several targets: it is read for each of them.
            *json = start.clone();
            read = true;
            match capture {
                Capture::Section(section) => self.section(json, *section)?,
                Capture::Value(slot) => self.answer.values[*slot] = Some(json.value()?),
                Capture::Foreign => {}
            }
        }
        if tree.members.is_empty() || !enters {
            match (read, begins) {
                (true, _) => return Ok(()),
                // A null object has none of the wanted values; missing ones are reported at the end.
                (false, b'n') => return json.value().map(drop),
                (false, _) if foreign => return json.value().map(drop),
                (false, b'"') => {
                    let raw = json.value()?;
                    let inner = raw.unquoted()?;
                    if !inner.trim_start().starts_with(['{', '[']) {
                        return Err(start.clone().mismatch("an object"));
                    }
                    self.inner = Some((raw, inner.into_owned()));
                    return Ok(());
                }
                (false, _) if !enters => return Err(json.mismatch("an object")),
                (false, _) => {}
            }
        }
        *json = start;
        if begins == b'[' { self.items(json, tree) } else { self.members(json, tree, foreign) }
    }

    /// Reads the members of an object. Those without a target are evidence, unless the object is `foreign`: its members are
    /// named by its content.
    fn members(&mut self, json: &mut Json<'t>, tree: &Tree<Capture>, foreign: bool) -> Result<()> {
        json.enter();
        let (mut first, mut others) = (true, Vec::new());
        while let Some(name) = json.member(&mut first)? {
            let name = name.unquoted()?;
            match tree.find(&name) {
                Some(at) => {
                    self.within.push(name.into_owned());
                    self.value(json, &tree.members[at].1)?;
                    self.within.pop();
                }
                None => {
                    let value = json.value()?;
                    others.extend((!foreign).then_some((name, value)));
                }
            }
        }
        self.answer.evidence.object(&mut self.within, &others)
    }

    /// Reads the items of an array that pointers enter by position.
    fn items(&mut self, json: &mut Json<'t>, tree: &Tree<Capture>) -> Result<()> {
        json.enter();
        let (mut first, mut at) = (true, 0_usize);
        while json.item(&mut first)? {
            match tree.find(&at.to_string()) {
                Some(known) => self.value(json, &tree.members[known].1)?,
                None => drop(json.value()?),
            }
            at += 1;
        }
        Ok(())
    }

    /// Reads the rows of a section.
    fn section(&mut self, json: &mut Json<'t>, section: usize) -> Result<()> {
        let spec = &self.decoder.table.sections[section];
        let before = self.rows.count;
        match (json.peek()?, spec.shape, &spec.key, &spec.value) {
            // Null means no rows. Whether that is right is decided when all sections are known.
            (b'n', ..) => {
                self.answer.nulls += 1;
                json.value()?;
            }
            (b'[', Shape::Records, ..) if let Some(inside) = &spec.inside => {
                self.groups(json, spec, inside, DEEPEST)?;
            }
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
        self.answer.entries[section] += (self.rows.count - before) as u64;
        Ok(())
    }

    /// Reads the rows in the records of a section, and in the records inside of these.
    fn groups(&mut self, json: &mut Json<'t>, spec: &SectionSpec, inside: &Pointer, depth: usize) -> Result<()> {
        json.enter();
        let mut first = true;
        while json.item(&mut first)? {
            let group = json.value()?;
            if let Some(mut rows) = array_below(group, inside)? {
                rows.enter();
                let (mut first, mut position) = (true, 0);
                while rows.item(&mut first)? {
                    self.rows.record(&mut rows, &spec.label, position)?;
                    position += 1;
                }
            }
            let Some(deeper) = &spec.deeper else { continue };
            if let Some(mut groups) = array_below(group, deeper)? {
                if depth == 0 {
                    return Err(json.mismatch("fewer groups inside of groups"));
                }
                self.groups(&mut groups, spec, inside, depth - 1)?;
            }
        }
        Ok(())
    }
}
