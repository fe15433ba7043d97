//! Reads a record into the column builders, and the fields that no column takes into `extra`.

use std::fmt;
use std::fmt::Write;

use arrow::array::ArrayRef;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::pointer_tree::Tree;
use super::value::{ColumnBuilder, Fit};
use crate::error::{Error, ErrorKind};

/// The rows of a page that is being read.
#[derive(Debug)]
pub(super) struct Rows<'t> {
    tree: &'t Tree<usize>,
    builders: Vec<ColumnBuilder>,
    /// For each builder, set if it has a value in the current row.
    filled: Vec<bool>,
    /// For each builder, the number of rows in which it got a value.
    present: Vec<u64>,
    label: Option<usize>,
    rank: Option<usize>,
    extra_slot: Option<usize>,
    /// Set if `extra` is wanted.
    extra: bool,
    /// Rows read.
    pub(super) count: usize,
    /// Rows allowed.
    most: usize,
    /// Values that did not fit.
    pub(super) conflicts: u64,
    /// The error behind a failure of the JSON reader, whose own errors carry only text.
    pub(super) failure: Option<Error>,
}

/// The columns of a page.
pub(super) struct Built(Vec<Option<ArrayRef>>, Vec<ColumnBuilder>);

impl Built {
    pub(super) fn array(&mut self, slot: usize) -> ArrayRef {
        let Self(arrays, builders) = self;
        let array = arrays[slot].get_or_insert_with(|| builders[slot].finish());
        ArrayRef::clone(array)
    }
}

impl<'t> Rows<'t> {
    pub(super) fn new(
        tree: &'t Tree<usize>,
        builders: Vec<ColumnBuilder>,
        extra: bool,
        [label, rank, extra_slot]: [Option<usize>; 3],
        most: usize,
    ) -> Self {
        let (filled, present) = (vec![false; builders.len()], vec![0; builders.len()]);
        Self {
            tree,
            builders,
            filled,
            present,
            label,
            rank,
            extra_slot,
            extra,
            count: 0,
            most,
            conflicts: 0,
            failure: None,
        }
    }

    /// Rows so far in which the builder got a value, NULL or not.
    pub(super) fn present(&self, slot: usize) -> u64 {
        self.present[slot]
    }

    pub(super) fn finish(self) -> Built {
        Built(vec![None; self.builders.len()], self.builders)
    }

    /// Appends a value to the current row. Of two members with the same name the first counts; the second is a
    /// conflict.
    fn set(&mut self, slot: usize, raw: &str) -> Result<Fit, Error> {
        if std::mem::replace(&mut self.filled[slot], true) {
            self.conflicts += 1;
            return Ok(Fit::Conflict);
        }
        let fit = self.builders[slot].append(raw)?;
        self.conflicts += u64::from(fit == Fit::Conflict);
        Ok(fit)
    }

    /// Completes the current row.
    fn end_row(&mut self, label: &str, position: usize, extra: Option<&str>) {
        for (slot, text) in [(self.label, Some(label)), (self.extra_slot, extra)] {
            if let (Some(slot), Some(text)) = (slot, text) {
                self.builders[slot].append_text(text);
                self.filled[slot] = true;
            }
        }
        if let Some(slot) = self.rank {
            self.builders[slot].append_rank(i64::try_from(position + 1).unwrap_or(i64::MAX));
            self.filled[slot] = true;
        }
        for ((builder, filled), present) in self.builders.iter_mut().zip(&mut self.filled).zip(&mut self.present) {
            match std::mem::replace(filled, false) {
                true => *present += 1,
                false => builder.append_null(),
            }
        }
        self.count += 1;
    }

    /// Appends a row for an entry: the values at the section's two pointers.
    pub(super) fn entry(&mut self, label: &str, position: usize, values: [(&[String], &str); 2]) -> Result<(), Error> {
        for (steps, raw) in values {
            let mut tree = self.tree;
            for step in steps {
                let Some(at) = tree.find(step, 0) else { break };
                tree = &tree.members[at].1;
            }
            for slot in tree.here.clone() {
                self.set(slot, raw)?;
            }
        }
        self.end_row(label, position, self.extra.then_some("{}"));
        Ok(())
    }
}

/// Reads one record into the next row.
pub(super) struct RecordSeed<'r, 't> {
    pub(super) rows: &'r mut Rows<'t>,
    pub(super) label: &'r str,
    pub(super) position: usize,
}

impl<'de> DeserializeSeed<'de> for RecordSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Self { rows, label, position } = self;
        let tree = rows.tree;
        if rows.count >= rows.most {
            let message = format!("the response has more than {} records", rows.most);
            rows.failure = Some(Error::new(ErrorKind::TooLarge, message).advice("the service ignores the page size"));
            return Err(D::Error::custom("too many records"));
        }
        let extra = deserializer.deserialize_any(Members { rows, tree })?;
        let extra = rows.extra.then(|| extra.map_or_else(|| "{}".to_owned(), Extra::close));
        rows.end_row(label, position, extra.as_deref());
        Ok(())
    }
}

/// Visits the members of an object; returns those that no column took.
struct Members<'r, 't, 'm> {
    rows: &'r mut Rows<'t>,
    tree: &'m Tree<usize>,
}

impl<'de> Visitor<'de> for Members<'_, '_, '_> {
    type Value = Option<Extra>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Option<Extra>, A::Error> {
        let Self { rows, tree } = self;
        let mut extra = None;
        let mut last = 0;
        while let Some(key) = members.next_key_seed(Key { tree, after: last, keep: rows.extra })? {
            match key {
                Found::Known(at) => {
                    last = at + 1;
                    let (name, member) = &tree.members[at];
                    if member.ignored && member.here.is_empty() && member.members.is_empty() {
                        members.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    let raw = members.next_value::<&RawValue>()?.get();
                    if let Some(left) = member_value(rows, member, raw).map_err(A::Error::custom)? {
                        Extra::add(&mut extra, name, &left);
                    }
                }
                Found::Unknown(Some(name)) => {
                    Extra::add(&mut extra, &name, members.next_value::<&RawValue>()?.get());
                }
                Found::Unknown(None) => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(extra)
    }

    /// An array whose items are addressed by position, such as `[name, number]`.
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Option<Extra>, A::Error> {
        let Self { rows, tree } = self;
        if !has_positions(tree) {
            return Err(A::Error::invalid_type(Unexpected::Seq, &"a record"));
        }
        let mut extra = None;
        for at in 0_usize.. {
            let Some(raw) = items.next_element::<&RawValue>()?.map(RawValue::get) else { break };
            let name = at.to_string();
            let left = match tree.find(&name, 0) {
                Some(member) => member_value(rows, &tree.members[member].1, raw).map_err(A::Error::custom)?,
                None => rows.extra.then(|| raw.to_owned()),
            };
            if let Some(left) = left {
                Extra::add(&mut extra, &name, &left);
            }
        }
        Ok(extra)
    }
}

/// True if items of an array are wanted by their positions.
fn has_positions(tree: &Tree<usize>) -> bool {
    tree.members.iter().any(|(name, _)| name.parse::<usize>().is_ok())
}

/// Passes a value to the columns at and below a member, and returns its remainder if `extra` is wanted.
fn member_value(rows: &mut Rows<'_>, member: &Tree<usize>, raw: &str) -> Result<Option<String>, String> {
    let mut left = None;
    for slot in &member.here {
        match rows.set(*slot, raw) {
            Ok(Fit::Yes) => {}
            Ok(Fit::Conflict) => left = rows.extra.then(|| raw.to_owned()),
            Err(error) => {
                let text = error.to_string();
                rows.failure = Some(error);
                return Err(text);
            }
        }
    }
    if member.members.is_empty() {
        return Ok(left);
    }
    if raw.starts_with('{') || (raw.starts_with('[') && has_positions(member)) {
        let mut nested = serde_json::Deserializer::from_str(raw);
        let extra = nested.deserialize_any(Members { rows, tree: member }).map_err(|error| error.to_string())?;
        return Ok(left.or(extra.map(Extra::close)));
    }
    if raw != "null" && member.here.is_empty() {
        // A scalar where an object was declared: its columns stay NULL.
        rows.conflicts += 1;
        left = rows.extra.then(|| raw.to_owned());
    }
    Ok(left)
}

/// A JSON object under construction.
struct Extra(String);

impl Extra {
    fn add(extra: &mut Option<Self>, name: &str, raw: &str) {
        let Self(text) = extra.get_or_insert_with(|| Self(String::new()));
        text.push(if text.is_empty() { '{' } else { ',' });
        // serde_json escapes the name; writing to a string cannot fail.
        let _ = write!(text, "{}:{raw}", serde_json::Value::from(name));
    }

    fn close(self) -> String {
        self.0 + "}"
    }
}

/// Looks up the name of a member while it is still borrowed.
struct Key<'t> {
    tree: &'t Tree<usize>,
    after: usize,
    keep: bool,
}

enum Found {
    Known(usize),
    Unknown(Option<String>),
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Found, E> {
        Ok(match self.tree.find(name, self.after) {
            Some(at) => Found::Known(at),
            None => Found::Unknown(self.keep.then(|| name.to_owned())),
        })
    }
}
