//! Reads a record into the column builders, and the fields that no column takes into `extra`.

use std::borrow::Cow;
use std::fmt::Write;

use arrow::array::ArrayRef;

use super::json::{Json, Raw};
use super::pointer_tree::Tree;
use super::value::{Column, ColumnBuilder, Fit};
use crate::error::{Error, ErrorKind, Result};

/// The rows of a page that is being read.
#[derive(Debug)]
pub(super) struct Rows<'t> {
    tree: &'t Tree<usize>,
    columns: &'t [Column],
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
}

/// The columns of a page.
pub(super) struct Built<'t> {
    arrays: Vec<Option<ArrayRef>>,
    columns: &'t [Column],
    builders: Vec<ColumnBuilder>,
}

impl Built<'_> {
    pub(super) fn array(&mut self, slot: usize) -> ArrayRef {
        let Self { arrays, columns, builders } = self;
        let array = arrays[slot].get_or_insert_with(|| columns[slot].finish(&mut builders[slot]));
        ArrayRef::clone(array)
    }
}

impl<'t> Rows<'t> {
    pub(super) fn new(
        tree: &'t Tree<usize>,
        columns: &'t [Column],
        extra: bool,
        [label, rank, extra_slot]: [Option<usize>; 3],
        most: usize,
    ) -> Self {
        let (filled, present) = (vec![false; columns.len()], vec![0; columns.len()]);
        Self {
            tree,
            columns,
            builders: columns.iter().map(Column::builder).collect(),
            filled,
            present,
            label,
            rank,
            extra_slot,
            extra,
            count: 0,
            most,
            conflicts: 0,
        }
    }

    /// Rows so far in which the builder got a value, NULL or not.
    pub(super) fn present(&self, slot: usize) -> u64 {
        self.present[slot]
    }

    pub(super) fn finish(self) -> Built<'t> {
        Built { arrays: vec![None; self.columns.len()], columns: self.columns, builders: self.builders }
    }

    /// Appends a value to the current row. Of two members with the same name the first counts; the second is a
    /// conflict.
    fn set(&mut self, slot: usize, raw: Raw<'_>) -> Result<Fit> {
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
    pub(super) fn entry(&mut self, label: &str, position: usize, values: [(&[String], Raw<'_>); 2]) -> Result<()> {
        for (steps, raw) in values {
            let mut tree = self.tree;
            for step in steps {
                let Some(at) = tree.find(step, 0) else { break };
                tree = &tree.members[at].1;
            }
            for slot in &tree.here {
                self.set(*slot, raw)?;
            }
        }
        self.end_row(label, position, self.extra.then_some("{}"));
        Ok(())
    }

    /// Reads a record into the next row.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] for too many records, and errors of the text.
    pub(super) fn record(&mut self, json: &mut Json<'_>, label: &str, position: usize) -> Result<()> {
        if self.count >= self.most {
            let message = format!("the response has more than {} records", self.most);
            return Err(Error::new(ErrorKind::TooLarge, message).advice("the service ignores the page size"));
        }
        let tree = self.tree;
        let extra = match json.peek()? {
            b'{' => self.members(json, tree)?,
            b'[' if tree.positions => self.items(json, tree)?,
            _ => return Err(json.mismatch("a record")),
        };
        let extra = extra.map(Extra::close);
        self.end_row(label, position, self.extra.then(|| extra.as_deref().unwrap_or("{}")));
        Ok(())
    }

    /// Reads the members of an object; returns those that no column took.
    fn members(&mut self, json: &mut Json<'_>, tree: &Tree<usize>) -> Result<Option<Extra>> {
        json.enter();
        let (mut first, mut extra, mut last) = (true, None, 0);
        while let Some(name) = json.member(&mut first)? {
            let name = name.unquoted()?;
            let left = match tree.find(&name, last) {
                Some(at) => {
                    last = at + 1;
                    self.member(json, &tree.members[at].1)?
                }
                None => self.left(json.value()?),
            };
            if let Some(left) = left {
                Extra::add(&mut extra, &name, &left);
            }
        }
        Ok(extra)
    }

    /// Reads an array whose items are addressed by position, such as `[name, number]`; returns those that no column took.
    fn items(&mut self, json: &mut Json<'_>, tree: &Tree<usize>) -> Result<Option<Extra>> {
        json.enter();
        let (mut first, mut extra, mut at) = (true, None, 0_usize);
        while json.item(&mut first)? {
            let name = at.to_string();
            let left = match tree.find(&name, 0) {
                Some(member) => self.member(json, &tree.members[member].1)?,
                None => self.left(json.value()?),
            };
            if let Some(left) = left {
                Extra::add(&mut extra, &name, &left);
            }
            at += 1;
        }
        Ok(extra)
    }

    /// Passes a value to the columns at and below a member, and returns its remainder if `extra` is wanted.
    fn member<'j>(&mut self, json: &mut Json<'j>, member: &Tree<usize>) -> Result<Option<Cow<'j, str>>> {
        if member.members.is_empty() {
            let raw = json.value()?;
            return self.set_all(&member.here, raw);
        }
        // Rarely, both the object and its members are wanted: it is read twice.
        let left = match member.here.is_empty() {
            true => None,
            false => self.set_all(&member.here, json.clone().value()?)?,
        };
        let extra = match json.peek()? {
            b'{' => self.members(json, member)?,
            b'[' if member.positions => self.items(json, member)?,
            _ => {
                let raw = json.value()?;
                if raw.is_null() || !member.here.is_empty() {
                    return Ok(left);
                }
                // A scalar where an object was declared: its columns stay NULL.
                self.conflicts += 1;
                return Ok(self.left(raw));
            }
        };
        Ok(left.or(extra.map(|extra| Cow::Owned(extra.close()))))
    }

    /// Appends a value to these columns, and returns it if it did not fit one of them and `extra` is wanted.
    fn set_all<'j>(&mut self, slots: &[usize], raw: Raw<'j>) -> Result<Option<Cow<'j, str>>> {
        let mut left = None;
        for slot in slots {
            if self.set(*slot, raw)? == Fit::Conflict {
                left = self.left(raw);
            }
        }
        Ok(left)
    }

    /// A value that no column takes, if `extra` is wanted.
    fn left<'j>(&self, raw: Raw<'j>) -> Option<Cow<'j, str>> {
        self.extra.then_some(Cow::Borrowed(raw.text))
    }
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
