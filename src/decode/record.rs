//! Reads a record into the column builders, and the fields that no column takes into `extra`.

use std::borrow::Cow;

use arrow::array::ArrayRef;

use super::json::{Json, Raw, plain};
use super::pointer_tree::Tree;
use super::value::{Column, ColumnBuilder, Fit};
use crate::error::{Error, ErrorKind, Result};

/// Members of an object that are remembered.
const REMEMBERED: usize = 256;

/// A member of the object that was read last at a node of the tree, in the order of the text.
#[derive(Debug, Clone, Copy)]
struct Seen<'j> {
    /// Its name in quotes, and the colon.
    name: &'j str,
    /// Its position among the known members.
    known: Option<usize>,
}

/// The rows of a page that is being read.
#[derive(Debug)]
pub(super) struct Rows<'t, 'j> {
    tree: &'t Tree<usize>,
    /// For each object of the tree, the members of the last one. Records usually repeat them, and then no name is looked up.
    seen: Vec<Vec<Seen<'j>>>,
    columns: &'t [Column],
    builders: Vec<ColumnBuilder>,
    /// Characters of the string that is being converted.
    buffer: Vec<u8>,
    /// For each builder, set if it has a value in the current row.
    filled: Vec<bool>,
    /// For each builder, the number of rows in which it got a value.
    present: Vec<u64>,
    label: Option<usize>,
    rank: Option<usize>,
    extra_slot: Option<usize>,
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

impl<'t, 'j> Rows<'t, 'j> {
    pub(super) fn new(
        (tree, objects): (&'t Tree<usize>, usize),
        columns: &'t [Column],
        [label, rank, extra_slot]: [Option<usize>; 3],
        most: usize,
    ) -> Self {
        let (filled, present) = (vec![false; columns.len()], vec![0; columns.len()]);
        Self {
            tree,
            seen: vec![Vec::new(); objects],
            columns,
            builders: columns.iter().map(Column::builder).collect(),
            buffer: Vec::new(),
            filled,
            present,
            label,
            rank,
            extra_slot,
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
        let fit = self.builders[slot].append(raw, &mut self.buffer)?;
        self.conflicts += u64::from(fit == Fit::Conflict);
        Ok(fit)
    }

    /// Completes the current row.
    fn end_row(&mut self, label: &str, position: usize, extra: &str) {
        for (slot, text) in [(self.label, label), (self.extra_slot, extra)] {
            if let Some(slot) = slot {
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
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub(super) fn entry(&mut self, label: &str, position: usize, values: [(&[String], Raw<'_>); 2]) -> Result<()> {
        self.check_count()?;
        for (steps, raw) in values {
            let wanted = steps.iter().try_fold(self.tree, |tree, step| Some(&tree.members[tree.find(step)?].1));
            for slot in wanted.iter().flat_map(|wanted| &wanted.here) {
                self.set(*slot, raw)?;
            }
        }
        self.end_row(label, position, "{}");
        Ok(())
    }

    /// Reads a record into the next row.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] for too many records, and errors of the text.
    pub(super) fn record(&mut self, json: &mut Json<'j>, label: &str, position: usize) -> Result<()> {
        self.check_count()?;
        let tree = self.tree;
        let extra = match json.peek()? {
            b'{' => self.members(json, tree)?,
            b'[' if tree.positions => self.items(json, tree)?,
            _ => return Err(json.mismatch("a record")),
        };
        let extra = extra.map(Extra::close);
        self.end_row(label, position, extra.as_deref().unwrap_or("{}"));
        Ok(())
    }

    /// Refuses a row more than allowed.
    fn check_count(&self) -> Result<()> {
        if self.count < self.most {
            return Ok(());
        }
        let message = format!("the response has more than {} records", self.most);
        Err(Error::new(ErrorKind::TooLarge, message).advice("the service ignores the page size"))
    }

    /// Reads the members of an object; returns those that no column took.
    fn members(&mut self, json: &mut Json<'j>, tree: &Tree<usize>) -> Result<Option<Extra>> {
        json.enter();
        let (mut first, mut extra) = (true, None);
        let mut seen = std::mem::take(&mut self.seen[tree.number]);
        for at in 0.. {
            let (name, known) = match seen.get(at) {
                Some(Seen { name, known }) if json.repeats(&mut first, name) => {
                    (Cow::Borrowed(&name[1..name.len() - 2]), *known)
                }
                _ => {
                    let Some(name) = json.member(&mut first)? else { break };
                    let text = name.unquoted()?;
                    let known = tree.find(&text);
                    if let Some(named) = json.named(name).filter(|_| !name.escaped && at < REMEMBERED) {
                        seen.truncate(at);
                        seen.push(Seen { name: named, known });
                    }
                    (text, known)
                }
            };
            let left = match known {
                Some(known) => self.member(json, &tree.members[known].1)?,
                None => self.left(json.value()?),
            };
            if let Some(left) = left {
                Extra::add(&mut extra, &name, &left);
            }
        }
        self.seen[tree.number] = seen;
        Ok(extra)
    }

    /// Reads an array whose items are addressed by position, such as `[name, number]`; returns those that no column took.
    fn items(&mut self, json: &mut Json<'j>, tree: &Tree<usize>) -> Result<Option<Extra>> {
        json.enter();
        let (mut first, mut extra, mut at) = (true, None, 0_usize);
        while json.item(&mut first)? {
            let name = at.to_string();
            let left = match tree.find(&name) {
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
    fn member(&mut self, json: &mut Json<'j>, member: &Tree<usize>) -> Result<Option<Cow<'j, str>>> {
        if member.members.is_empty() {
            // The most frequent values: a string for one column of texts is searched and converted in one pass.
            if let [slot] = member.here[..]
                && let (false, ColumnBuilder::Utf8(builder)) = (self.filled[slot], &mut self.builders[slot])
                && json.peek()? == b'"'
            {
                builder.append_value(json.characters(&mut self.buffer)?);
                self.filled[slot] = true;
                return Ok(None);
            }
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
    fn set_all(&mut self, slots: &[usize], raw: Raw<'j>) -> Result<Option<Cow<'j, str>>> {
        let mut left = None;
        for slot in slots {
            if self.set(*slot, raw)? == Fit::Conflict {
                left = self.left(raw);
            }
        }
        Ok(left)
    }

    /// A value that no column takes, if `extra` is wanted.
    fn left(&self, raw: Raw<'j>) -> Option<Cow<'j, str>> {
        self.extra_slot.map(|_| Cow::Borrowed(raw.text))
    }
}

/// A JSON object under construction.
struct Extra(String);

impl Extra {
    fn add(extra: &mut Option<Self>, name: &str, raw: &str) {
        let Self(text) = extra.get_or_insert_with(|| Self(String::new()));
        text.push(if text.is_empty() { '{' } else { ',' });
        match plain(name.as_bytes()) == name.len() {
            true => text.extend(["\"", name, "\""]),
            false => text.push_str(&serde_json::Value::from(name).to_string()),
        }
        text.extend([":", raw]);
    }

    fn close(self) -> String {
        self.0 + "}"
    }
}
