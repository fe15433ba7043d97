//! Reads a record into the column builders, and the fields that no column takes into `extra`.

use std::borrow::Cow;
use std::ops::Range;

use arrow::array::ArrayRef;

use super::json::{Json, Prefix, Raw, plain};
use super::pointer_tree::Tree;
use super::value::{Column, ColumnBuilder, Fit};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::Pointer;

/// Members of an object that are remembered.
const REMEMBERED: usize = 64;
/// Remembered members that are tried before the name of a member is read.
const TRIED: usize = 4;

/// A member of the objects that were read at a node of the tree.
#[derive(Debug, Clone, Copy)]
struct Seen<'t, 'j> {
    prefix: Prefix<'j>,
    name: &'j str,
    target: Target<'t>,
}

/// Destination of a member's value.
#[derive(Debug, Clone, Copy)]
enum Target<'t> {
    /// No column.
    Nothing,
    /// One column, by the position of its builder.
    Column(usize),
    /// Several columns, or columns of its own members.
    Node(&'t Tree<usize>),
}

impl<'t> Target<'t> {
    fn of(tree: &'t Tree<usize>, name: &str) -> Self {
        let Some(known) = tree.find(name) else { return Self::Nothing };
        let node = &tree.members[known].1;
        match node.here[..] {
            [slot] if node.members.is_empty() && !node.checked => Self::Column(slot),
            _ => Self::Node(node),
        }
    }
}

/// The rows of a page that is being read.
#[derive(Debug)]
pub(super) struct Rows<'t, 'j> {
    tree: &'t Tree<usize>,
    /// For each object of the tree, the members of those read so far, in their order. Records usually repeat them, and then no
    /// name is looked up.
    seen: Vec<Vec<Seen<'t, 'j>>>,
    /// For each object of the tree, the number of the last row in which it was read, counted from 1.
    entered: Vec<usize>,
    /// Builders that the name or the number of the current entry has filled: an object in its value may repeat them.
    named: Vec<usize>,
    columns: &'t [Column],
    builders: Vec<ColumnBuilder>,
    /// Characters of the string that is being converted.
    buffer: Vec<u8>,
    /// For each builder, the number of the last row in which it got a value, counted from 1; the maximum if it gets none.
    filled: Vec<usize>,
    /// For each builder, the number of rows in which it got no value.
    missing: Vec<u64>,
    /// Number of builders that get values.
    fillable: usize,
    /// Number of builders that have a value in the current row.
    filled_now: usize,
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
        let mut filled = vec![usize::MAX; columns.len()];
        tree.each(&mut |slot| filled[*slot] = 0);
        for slot in [label, rank, extra_slot].into_iter().flatten() {
            filled[slot] = 0;
        }
        Self {
            tree,
            seen: vec![Vec::new(); objects],
            entered: vec![0; objects],
            named: Vec::new(),
            columns,
            builders: columns.iter().map(Column::builder).collect(),
            buffer: Vec::new(),
            fillable: filled.iter().filter(|row| **row == 0).count(),
            filled,
            missing: vec![0; columns.len()],
            filled_now: 0,
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
        self.count as u64 - self.missing[slot]
    }

    /// First and last instant of a builder that are UTC as an assumption, and the number of days without a time.
    pub(super) fn instants(&self, slot: usize) -> (Option<(i64, i64)>, usize) {
        match &self.builders[slot] {
            ColumnBuilder::Timestamp(_, instants) => (instants.assumed, instants.days),
            _ => (None, 0),
        }
    }

    /// A time that is another instant in each of the zones that it may be of, and its builder.
    pub(super) fn ambiguous(&self) -> Option<(usize, &str)> {
        self.builders.iter().enumerate().find_map(|(slot, builder)| match builder {
            ColumnBuilder::Timestamp(_, instants) => Some((slot, instants.ambiguous.as_deref()?)),
            _ => None,
        })
    }

    pub(super) fn finish(self) -> Built<'t> {
        Built { arrays: vec![None; self.columns.len()], columns: self.columns, builders: self.builders }
    }

    /// Marks a builder as filled in the current row; false if it was filled already.
    #[inline]
    fn fills(&mut self, slot: usize) -> bool {
        let row = self.count + 1;
        let empty = self.filled[slot] != row;
        if empty {
            self.filled[slot] = row;
            self.filled_now += 1;
        }
        empty
    }

    /// Appends a value to the current row.
    fn set(&mut self, slot: usize, raw: Raw<'_>) -> Result<Fit> {
        let fit = match self.fills(slot) {
            true if self.columns[slot].is_null_word(raw)? => {
                self.builders[slot].append_null();
                Fit::Yes
            }
            true => self.builders[slot].append(raw, &mut self.buffer)?,
            false => Fit::Conflict,
        };
        self.conflicts += u64::from(fit == Fit::Conflict);
        Ok(fit)
    }

    /// Completes the current row.
    fn end_row(&mut self, label: &str, position: usize, extra: &str) {
        for (slot, text) in [(self.label, label), (self.extra_slot, extra)] {
            if let Some(slot) = slot {
                self.builders[slot].append_text(text);
                self.fills(slot);
            }
        }
        if let Some(slot) = self.rank {
            self.builders[slot].append_rank(i64::try_from(position + 1).unwrap_or(i64::MAX));
            self.fills(slot);
        }
        self.count += 1;
        if self.filled_now < self.fillable {
            for ((builder, filled), missing) in self.builders.iter_mut().zip(&self.filled).zip(&mut self.missing) {
                if *filled < self.count {
                    builder.append_null();
                    *missing += 1;
                }
            }
        }
        self.filled_now = 0;
    }

    /// Appends a row for an entry: the values at the section's two pointers.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub(super) fn entry(&mut self, label: &str, position: usize, values: [(&[String], Raw<'j>); 2]) -> Result<()> {
        self.check_count()?;
        let tree = self.tree;
        let mut extra = None;
        self.named.clear();
        for (steps, raw) in values {
            let wanted = steps.iter().try_fold(tree, |tree, step| Some(&tree.members[tree.find(step)?].1));
            let Some(wanted) = wanted else { continue };
            for slot in &wanted.here {
                self.set(*slot, raw)?;
                self.named.push(*slot);
            }
            // The value of an entry may be an object with the fields of the row.
            let enters = raw.first() == b'{' || (raw.first() == b'[' && wanted.positions);
            if enters && !wanted.members.is_empty() {
                let mut json = Json::new(raw.text);
                let left = match raw.first() {
                    b'{' => self.members(&mut json, wanted)?,
                    _ => self.items(&mut json, wanted)?,
                };
                extra = extra.or(self.closed(left)?);
            }
        }
        self.end_row(label, position, extra.as_deref().unwrap_or("{}"));
        Ok(())
    }

    /// Reads a record into the next row.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] for too many records, [`ErrorKind::Contradiction`] for a wanted name that occurs twice, and errors of
    /// the text.
    pub(super) fn record(&mut self, json: &mut Json<'j>, label: &str, position: usize) -> Result<()> {
        self.check_count()?;
        self.named.clear();
        let tree = self.tree;
        let extra = match json.peek()? {
            b'{' => self.members(json, tree)?,
            b'[' if tree.positions => self.items(json, tree)?,
            _ => return Err(json.mismatch("a record")),
        };
        let extra = self.closed(extra)?;
        self.end_row(label, position, extra.as_deref().unwrap_or("{}"));
        Ok(())
    }

    /// Refuses a row more than allowed.
    fn check_count(&self) -> Result<()> {
        if self.count < self.most {
            return Ok(());
        }
        let message = format!("the response has more than {} records", self.most);
        Err(Error::new(ErrorKind::TooLarge, message).advice("the service may ignore the page size; check [page]"))
    }

    /// Reads the members of an object; returns those that no column took.
    fn members(&mut self, json: &mut Json<'j>, tree: &'t Tree<usize>) -> Result<Option<Extra>> {
        let mut seen = std::mem::take(&mut self.seen[tree.number]);
        // The next member is expected to be the one at `at`.
        let (mut at, mut before, mut extra) = (0, b'{', None);
        loop {
            while let Some(Seen { prefix, name, target }) = seen.get(at)
                && json.skips(before, prefix)
            {
                (at, before) = (at + 1, b',');
                if let Some(left) = self.value(json, *target)? {
                    Extra::add(&mut extra, name, &left);
                }
            }
            if before == b',' && json.leaves() {
                break;
            }
            let Some((name, target)) = unexpected(json, tree, before, &mut seen, &mut at)? else { break };
            before = b',';
            if let Some(left) = self.value(json, target)? {
                Extra::add(&mut extra, &name, &left);
            }
        }
        self.seen[tree.number] = seen;
        Ok(extra)
    }

    /// Reads a value into its columns, and returns what no column took if `extra` is wanted.
    #[inline(always)]
    fn value(&mut self, json: &mut Json<'j>, target: Target<'t>) -> Result<Option<Cow<'j, str>>> {
        match target {
            Target::Column(slot) => {
                let unfit = match self.fills(slot) {
                    true => self.builders[slot].read(json, &mut self.buffer)?,
                    false if self.named.contains(&slot) => Some(json.value()?),
                    false => return Err(self.repeated(|node| node.here.contains(&slot))),
                };
                let Some(raw) = unfit else { return Ok(None) };
                self.conflicts += 1;
                Ok(self.left(raw))
            }
            Target::Node(node) => self.node(json, node),
            Target::Nothing => Ok(self.left(json.value()?)),
        }
    }

    /// Reads an array whose items are addressed by position, such as `[name, number]`; returns those that no column took.
    fn items(&mut self, json: &mut Json<'j>, tree: &'t Tree<usize>) -> Result<Option<Extra>> {
        json.enter();
        let (mut first, mut extra, mut at) = (true, None, 0_usize);
        while json.item(&mut first)? {
            let name = at.to_string();
            if let Some(left) = self.value(json, Target::of(tree, &name))? {
                Extra::add(&mut extra, &name, &left);
            }
            at += 1;
        }
        Ok(extra)
    }

    /// Passes a value to the columns at and below a node, and returns its remainder if `extra` is wanted.
    fn node(&mut self, json: &mut Json<'j>, node: &'t Tree<usize>) -> Result<Option<Cow<'j, str>>> {
        let row = self.count + 1;
        if std::mem::replace(&mut self.entered[node.number], row) == row {
            return Err(self.repeated(|other| other.number == node.number));
        }
        if node.members.is_empty() {
            let raw = json.value()?;
            return self.set_all(&node.here, raw);
        }
        // Rarely, both the object and its members are wanted: it is read twice.
        let left = match node.here.is_empty() {
            true => None,
            false => self.set_all(&node.here, json.clone().value()?)?,
        };
        let extra = match json.peek()? {
            b'{' => self.members(json, node)?,
            b'[' if node.positions => self.items(json, node)?,
            _ => {
                let raw = json.value()?;
                if raw.is_null() || !node.here.is_empty() {
                    return Ok(left);
                }
                // A scalar where an object was declared: its columns stay NULL.
                self.conflicts += 1;
                return Ok(self.left(raw));
            }
        };
        Ok(left.or(self.closed(extra)?.map(Cow::Owned)))
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

    /// The text of an object whose fields no column took.
    fn closed(&self, extra: Option<Extra>) -> Result<Option<String>> {
        let Some(mut extra) = extra else { return Ok(None) };
        if let Some(name) = extra.repeated() {
            return Err(twice(&format!("record {} of the response", self.count), name));
        }
        extra.text.push('}');
        Ok(Some(extra.text))
    }

    /// Error for the value at a place of the tree that the current record has twice.
    #[cold]
    fn repeated(&self, is: impl Fn(&Tree<usize>) -> bool) -> Error {
        let steps = self.tree.path_to(&is).unwrap_or_default();
        let at = Pointer::of(steps.iter().map(String::as_str)).to_string();
        twice(&format!("record {} of the response", self.count), &at)
    }

    /// A value that no column takes, if `extra` is wanted.
    fn left(&self, raw: Raw<'j>) -> Option<Cow<'j, str>> {
        self.extra_slot.map(|_| raw.json())
    }
}

/// Reads the name of a member that is not the one expected at `at`, and moves `at` behind it; `None` at the end of the object.
/// `before`: the brace or comma before it.
fn unexpected<'t, 'j>(
    json: &mut Json<'j>,
    tree: &'t Tree<usize>,
    before: u8,
    seen: &mut Vec<Seen<'t, 'j>>,
    at: &mut usize,
) -> Result<Option<(Cow<'j, str>, Target<'t>)>> {
    // Members that others have are often left out.
    let mut ahead = seen.iter().enumerate().skip(*at + 1).take(TRIED);
    if let Some((found, Seen { name, target, .. })) = ahead.find(|(_, seen)| json.skips(before, &seen.prefix)) {
        *at = found + 1;
        return Ok(Some((Cow::Borrowed(*name), *target)));
    }
    let start = json.position();
    let mut first = before == b'{';
    if first {
        json.enter();
    }
    let Some(name) = json.member(&mut first)? else { return Ok(None) };
    let text = name.unquoted()?;
    let target = Target::of(tree, &text);
    if name.escaped {
        return Ok(Some((text, target)));
    }
    let member = Seen { prefix: json.prefix(start)?, name: name.inner(), target };
    match seen.iter().position(|seen| seen.name == member.name) {
        // In another place, or with other white space.
        Some(known) => {
            seen[known] = member;
            *at = known + 1;
        }
        None if seen.len() < REMEMBERED => {
            seen.insert(*at, member);
            *at += 1;
        }
        None => {}
    }
    Ok(Some((text, target)))
}

/// Error for a name that an object has twice: JSON does not define which of its values counts.
#[cold]
pub(super) fn twice(object: &str, name: &str) -> Error {
    let message = format!("{object} has `{name}` twice, and JSON does not define which value counts");
    Error::new(ErrorKind::Contradiction, message)
        .advice("the service has to write each name once (RFC 8259, section 4); until then, do not select its column")
}

/// A JSON object under construction.
#[derive(Default)]
struct Extra {
    text: String,
    /// Places of the names in the text.
    names: Vec<Range<usize>>,
}

impl Extra {
    fn add(extra: &mut Option<Self>, name: &str, raw: &str) {
        let Self { text, names } = extra.get_or_insert_default();
        text.push(if text.is_empty() { '{' } else { ',' });
        let start = text.len();
        match plain(name.as_bytes()) == name.len() {
            true => text.extend(["\"", name, "\""]),
            false => text.push_str(&serde_json::Value::from(name).to_string()),
        }
        // Without the quotes.
        names.push(start + 1..text.len() - 1);
        text.extend([":", raw]);
    }

    /// A name that was added twice.
    fn repeated(&mut self) -> Option<&str> {
        let Self { text, names } = self;
        let text: &str = text;
        let name = |at: &Range<usize>| text.get(at.clone());
        names.sort_unstable_by_key(name);
        names.windows(2).find(|pair| name(&pair[0]) == name(&pair[1])).and_then(|pair| name(&pair[0]))
    }
}
