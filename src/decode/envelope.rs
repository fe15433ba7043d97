//! The envelope of an answer: echoes, totals, answer-level values, and the sections that hold rows.
//!
//! Several tables of an answer are read in one walk over its text. Each has its own places in it, its own evidence, and its own
//! error: a table that the answer does not have as the profile declares it leaves the others as they are.

use std::borrow::Cow;
use std::collections::HashSet;

use super::estimate::{CountPlaces, Estimates, Said};
use super::evidence::{Evidence, Member};
use super::json::{Json, Raw};
use super::pointer_tree::Tree;
use super::record::{Rows, twice};
use super::{Capture, Decoder};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Only, Pointer, SectionSpec, Shape};

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
    /// The last record of the rows, if the decoder needs it.
    pub(super) last: Option<Raw<'t>>,
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

/// A table of an answer that is being read.
#[derive(Debug)]
pub(super) struct Reading<'a, 't> {
    decoder: &'a Decoder,
    pub(super) answer: Envelope<'t>,
    pub(super) rows: Rows<'a, 't>,
    /// A string where an object is declared, and the JSON that it holds.
    inner: Option<(Raw<'t>, String)>,
    /// The first error of the table: [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for invalid JSON,
    /// [`ErrorKind::Contradiction`](crate::ErrorKind::Contradiction) for values whose type differs from the profile.
    pub(super) failed: Option<Error>,
}

/// Reads tables of a complete body, and what it says of the counts at some places.
pub(super) fn read<'a, 't>(
    readings: &mut [Reading<'a, 't>],
    places: &'a CountPlaces,
    text: &'t str,
) -> Option<Estimates> {
    #[cfg(test)]
    super::body::count_pass();
    let top: Vec<Known<'a>> = readings.iter().enumerate().map(|(at, table)| (at, &table.decoder.envelope)).collect();
    let mut walk = Walk { readings, said: Said::new(places), within: Vec::new() };
    let mut json = Json::new(text);
    let whole = walk.value(&mut json, &top, places.tree()).and_then(|()| json.end());
    let Walk { readings, said, .. } = walk;
    for reading in readings {
        if let Err(error) = &whole {
            reading.fail(error.clone());
        }
        if let Some((raw, inner)) = reading.inner.take() {
            // The string is a part of the text.
            let at = raw.text.as_ptr().addr().saturating_sub(text.as_ptr().addr());
            let end = at + raw.text.len();
            let parts = [text.get(..at).unwrap_or_default(), &inner, text.get(end..).unwrap_or_default()];
            reading.answer.opened = Some(parts.concat());
        }
    }
    whole.is_ok().then(|| said.estimates(places))
}

/// Groups inside of groups that are read at most.
const DEEPEST: usize = 32;

/// The value at a pointer into another value; `None` if there is none.
///
/// # Errors
/// [`ErrorKind::Contradiction`] if there are two; errors of the text.
pub(super) fn below<'t>(value: Raw<'t>, at: &Pointer) -> Result<Option<Json<'t>>> {
    let mut json = Json::new(value.text);
    for step in at.steps() {
        if json.peek()? != b'{' {
            return Ok(None);
        }
        json.enter();
        let (mut first, mut found) = (true, None);
        while let Some(name) = json.member(&mut first)? {
            if name.unquoted().is_ok_and(|name| name == *step) && found.replace(json.clone()).is_some() {
                return Err(twice("an object of the response", step));
            }
            json.value()?;
        }
        let Some(inner) = found else { return Ok(None) };
        json = inner;
    }
    Ok(Some(json))
}

/// The array at a place in a value, which begins where the JSON is; `None` if there is none.
fn array_below<'t>(value: Raw<'t>, at: &Pointer) -> Result<Option<Json<'t>>> {
    let Some(mut json) = below(value, at)? else { return Ok(None) };
    // This skips the white space before it.
    Ok((json.peek()? == b'[').then_some(json))
}

/// The value at a pointer into another value, as text; `None` for NULL, and if there is none.
pub(super) fn text_below(value: Raw<'_>, at: &Pointer) -> Result<Option<String>> {
    let Some(mut json) = below(value, at)? else { return Ok(None) };
    let text = json.value()?;
    Ok((!text.is_null()).then(|| text.unquoted()).transpose()?.map(Cow::into_owned))
}

/// True if a record is the one of a section whose rows are wanted.
pub(super) fn is_wanted(record: Raw<'_>, only: &Only) -> Result<bool> {
    let Some(mut json) = below(record, &only.at)? else { return Ok(false) };
    let value = json.value()?;
    Ok(!value.is_null() && value.unquoted()? == only.is)
}

/// A value that was read as text, and the position after it.
type Text<'t> = (Raw<'t>, Json<'t>);

/// The text of the value that begins at a position, which is found once.
fn text_of<'t>(start: &Json<'t>, found: &mut Option<Text<'t>>) -> Result<Raw<'t>> {
    if let Some((raw, _)) = found {
        return Ok(*raw);
    }
    let mut json = start.clone();
    let raw = json.value()?;
    *found = Some((raw, json));
    Ok(raw)
}

/// A table that knows a value, and the targets at and below the value.
type Known<'a> = (usize, &'a Tree<Capture>);

/// True if a value has the rows of another table, whose members are not named by the service.
fn is_foreign(tree: &Tree<Capture>) -> bool {
    tree.here.contains(&Capture::Foreign)
}

/// True if a value, or one below it, is wanted by the table itself.
fn has_wanted(tree: &Tree<Capture>) -> bool {
    let mut wanted = false;
    tree.each(&mut |capture| wanted |= *capture != Capture::Foreign);
    wanted
}

/// Walks down to the wanted values.
struct Walk<'w, 'a, 't> {
    readings: &'w mut [Reading<'a, 't>],
    said: Said<'t>,
    /// Names of the objects around the value.
    within: Vec<String>,
}

impl<'a, 't> Walk<'_, 'a, 't> {
    /// Reads a value for the tables that know it. `watched`: the places of counts at and below it.
    ///
    /// # Errors
    /// Errors of the text. Those of one table end the reading of that table.
    fn value(&mut self, json: &mut Json<'t>, known: &[Known<'a>], watched: Option<&'a Tree<usize>>) -> Result<()> {
        let begins = json.peek()?;
        let start = json.clone();
        let (mut text, mut after, mut deeper) = (None, None, Vec::new());
        for (at, tree) in known {
            let reading = &mut self.readings[*at];
            let enters = begins == b'{' || (begins == b'[' && tree.positions);
            let mut read = false;
            for capture in tree.here.iter().filter(|capture| **capture != Capture::Foreign) {
                // Rarely, a value has several targets: it is read for each of them.
                read = true;
                let done = match capture {
                    Capture::Section(section) => {
                        let mut json = start.clone();
                        reading.section(&mut json, *section).map(|()| after = Some(json))
                    }
                    Capture::Value(slot) => {
                        text_of(&start, &mut text).map(|raw| reading.answer.values[*slot] = Some(raw))
                    }
                    Capture::Foreign => Ok(()),
                };
                if let Err(error) = done {
                    reading.fail(error);
                    break;
                }
            }
            if reading.failed.is_some() {
                continue;
            }
            if tree.members.is_empty() || !enters {
                match (read, begins) {
                    // A null object has none of the wanted values; missing ones are reported at the end.
                    (true, _) | (false, b'n') => continue,
                    (false, _) if is_foreign(tree) => continue,
                    (false, b'"') => {
                        reading.open(&start, &mut text);
                        continue;
                    }
                    (false, _) if !enters => {
                        reading.fail(start.clone().mismatch("an object"));
                        continue;
                    }
                    (false, _) => {}
                }
            }
            deeper.push((*at, *tree));
        }
        for list in watched.iter().flat_map(|watched| &watched.here) {
            if let Ok(raw) = text_of(&start, &mut text) {
                self.said.list(*list, raw);
            }
        }
        let watched = watched.filter(|watched| begins == b'{' && !watched.members.is_empty());
        if !deeper.is_empty() || watched.is_some() {
            *json = start;
            return match begins {
                b'[' => self.items(json, &deeper),
                _ => self.members(json, &deeper, watched),
            };
        }
        match after.or_else(|| text.map(|(_, after)| after)) {
            Some(after) => *json = after,
            None => drop(json.value()?),
        }
        Ok(())
    }

    /// Reads the members of an object. Those without a target of a table are evidence for it, unless the object is foreign: its
    /// members are named by its content.
    fn members(&mut self, json: &mut Json<'t>, known: &[Known<'a>], watched: Option<&'a Tree<usize>>) -> Result<()> {
        json.enter();
        let mut others: Vec<Vec<Member<'t>>> = known.iter().map(|_| Vec::new()).collect();
        let (mut first, mut found) = (true, Vec::new());
        while let Some(name) = json.member(&mut first)? {
            let name = name.unquoted()?;
            let (start, mut text) = (json.clone(), None);
            let inner: Vec<Known<'a>> = known
                .iter()
                .filter(|(at, _)| self.readings[*at].failed.is_none())
                .filter_map(|(at, tree)| Some((*at, &tree.members[tree.find(&name)?].1)))
                .collect();
            let watches = watched.and_then(|watched| Some(&watched.members[watched.find(&name)?].1));
            if found.contains(&name) {
                self.refuse(&name, &inner);
            }
            if inner.is_empty() && watches.is_none() {
                text_of(&start, &mut text)?;
            } else {
                found.push(name.clone());
                self.within.push(name.clone().into_owned());
                self.value(json, &inner, watches)?;
                self.within.pop();
            }
            for ((_, tree), others) in known.iter().zip(&mut others) {
                if tree.find(&name).is_none() && !is_foreign(tree) {
                    others.push((name.clone(), text_of(&start, &mut text)?));
                }
            }
            if watched.is_some() && !matches!(start.clone().peek()?, b'{' | b'[') {
                self.said.member(&self.within, &name, text_of(&start, &mut text)?);
            }
            if inner.is_empty()
                && watches.is_none()
                && let Some((_, after)) = text
            {
                *json = after;
            }
        }
        for ((at, _), others) in known.iter().zip(&others) {
            let reading = &mut self.readings[*at];
            if reading.failed.is_none()
                && let Err(error) = reading.answer.evidence.object(&mut self.within, others)
            {
                reading.fail(error);
            }
        }
        Ok(())
    }

    /// Ends the reading of the tables that want a value whose name its object has twice.
    #[cold]
    fn refuse(&mut self, name: &str, known: &[Known<'a>]) {
        let at = Pointer::of(self.within.iter().map(String::as_str).chain([name])).to_string();
        for (table, _) in known.iter().filter(|(_, tree)| has_wanted(tree)) {
            self.readings[*table].fail(twice("the response", &at));
        }
    }

    /// Reads the items of an array that pointers enter by position.
    fn items(&mut self, json: &mut Json<'t>, known: &[Known<'a>]) -> Result<()> {
        json.enter();
        let (mut first, mut position) = (true, 0_usize);
        while json.item(&mut first)? {
            let step = position.to_string();
            let inner: Vec<Known<'a>> =
                known.iter().filter_map(|(at, tree)| Some((*at, &tree.members[tree.find(&step)?].1))).collect();
            match inner.is_empty() {
                true => drop(json.value()?),
                false => self.value(json, &inner, None)?,
            }
            position += 1;
        }
        Ok(())
    }
}

impl<'a, 't> Reading<'a, 't> {
    /// Begins to read a table into its rows.
    pub(super) fn new(decoder: &'a Decoder, rows: Rows<'a, 't>) -> Self {
        let sections = decoder.table.sections.len();
        let answer = Envelope {
            values: vec![None; decoder.captures],
            sections: vec![false; sections],
            nulls: 0,
            entries: vec![0; sections],
            evidence: decoder.evidence(),
            last: None,
            opened: None,
        };
        Self { decoder, answer, rows, inner: None, failed: None }
    }

    /// Ends the reading of the table with an error, unless it has ended with another one before.
    fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    /// Takes a string where an object is declared for the object, if it holds one.
    fn open(&mut self, start: &Json<'t>, text: &mut Option<Text<'t>>) {
        match text_of(start, text).and_then(|raw| Ok((raw, raw.unquoted()?))) {
            Ok((raw, inner)) if inner.trim_start().starts_with(['{', '[']) => {
                self.inner = Some((raw, inner.into_owned()));
            }
            Ok(_) => self.fail(start.clone().mismatch("an object")),
            Err(error) => self.fail(error),
        }
    }

    /// Reads the rows of a section.
    fn section(&mut self, json: &mut Json<'t>, section: usize) -> Result<()> {
        let spec = &self.decoder.table.sections[section];
        let (before, mut is_there) = (self.rows.count, true);
        match json.peek()? {
            // Null means no rows. Whether that is right is decided when all sections are known.
            b'n' => {
                self.answer.nulls += 1;
                json.value()?;
            }
            b'[' if let Some(inside) = &spec.inside => {
                let read = self.groups(json, spec, inside, DEEPEST)?;
                is_there = read > 0 || spec.only.is_none();
            }
            _ => self.read_rows(json, spec)?,
        }
        self.answer.sections[section] |= is_there;
        self.answer.entries[section] += (self.rows.count - before) as u64;
        Ok(())
    }

    /// Reads the rows of a section, which begin where the JSON is.
    fn read_rows(&mut self, json: &mut Json<'t>, spec: &SectionSpec) -> Result<()> {
        match (json.peek()?, spec.shape, &spec.key, &spec.value) {
            (b'[', Shape::Records, ..) => {
                json.enter();
                let (mut first, mut position, mut last) = (true, 0, None);
                while json.item(&mut first)? {
                    last = self.decoder.last.as_ref().map(|_| json.clone());
                    self.rows.record(json, &spec.label, position)?;
                    position += 1;
                }
                if let Some(mut last) = last {
                    self.answer.last = Some(last.value()?);
                }
            }
            (b'{', Shape::Record, ..) => self.rows.record(json, &spec.label, 0)?,
            (b'{', Shape::Entries, Some(key), Some(value)) => {
                json.enter();
                let (mut first, mut position, mut names) = (true, 0, HashSet::new());
                while let Some(name) = json.member(&mut first)? {
                    let text = name.unquoted().unwrap_or(Cow::Borrowed(name.text));
                    if let Some(name) = names.replace(text) {
                        return Err(twice(&format!("the object at `{}`", place_of(spec)), &name));
                    }
                    let values = [(key.steps(), name), (value.steps(), json.value()?)];
                    self.rows.entry(&spec.label, position, values)?;
                    position += 1;
                }
            }
            (_, Shape::Records, ..) => return Err(json.mismatch(&format!("an array at `{}`", place_of(spec)))),
            _ => return Err(json.mismatch(&format!("an object at `{}`", place_of(spec)))),
        }
        Ok(())
    }

    /// Reads the rows in the records of a section, and in the records inside of these. Returns the number of records whose rows were
    /// read.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] if several records are the only one whose rows are wanted.
    fn groups(&mut self, json: &mut Json<'t>, spec: &SectionSpec, inside: &Pointer, depth: usize) -> Result<usize> {
        json.enter();
        let (mut first, mut read) = (true, 0);
        while json.item(&mut first)? {
            let group = json.value()?;
            if let Some(only) = &spec.only {
                if !is_wanted(group, only)? {
                    continue;
                }
                if read > 0 {
                    let message = format!("several records at `{}` have `{}` at `{}`", spec.at, only.is, only.at);
                    return Err(Error::new(ErrorKind::Contradiction, message)
                        .advice("check `only` of this section in the profile"));
                }
            }
            read += 1;
            if let Some(mut rows) = below(group, inside)?
                && rows.peek()? != b'n'
            {
                self.read_rows(&mut rows, spec)?;
            }
            let Some(deeper) = &spec.deeper else { continue };
            if let Some(mut groups) = array_below(group, deeper)? {
                if depth == 0 {
                    return Err(json.mismatch("fewer groups inside of groups"));
                }
                read += self.groups(&mut groups, spec, inside, depth - 1)?;
            }
        }
        Ok(read)
    }
}

/// The place of the rows of a section in messages.
fn place_of(spec: &SectionSpec) -> Pointer {
    spec.inside.as_ref().map_or_else(|| spec.at.clone(), |inside| spec.at.join(inside))
}
