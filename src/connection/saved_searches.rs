//! The list of saved searches, decoded once: aids that queries read by default, and names for completion.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use bytes::Bytes;
use serde_json::Value;

use crate::decode::{Decoder, ListEnd, Rest, check_aids, entries_of};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{ListUnit, Origin, Profile, SectionSpec, TableSpec};
use crate::request::PageRequest;

/// Pages in a row that may have no new entries although they name another page.
const EMPTY_PAGES: usize = 10;
/// Values within values of an entry that are searched for aids.
const DEPTH: usize = 4;

/// Aids within entries that are kept until all pages have come.
const NESTED: usize = 1_000;

/// List of saved searches.
#[derive(Debug)]
pub(crate) struct SavedSearches {
    /// Bodies of its pages, from which the table decodes its own columns.
    pub(crate) pages: Vec<Bytes>,
    /// Evidence of the pages about the rest of the list.
    end: ListEnd,
    /// Entries by label and aid, if the profile declares pages.
    entries: HashSet<(String, String)>,
    /// Entries of the last page that no page before it had.
    new: usize,
    /// Pages since the last one with such entries.
    without_new: usize,
    /// Set if a page had an entry of a page before it.
    repeats: bool,
    /// Places that were followed, as the service wrote them.
    followed: HashSet<String>,
    /// Number of entries.
    pub(super) rows: u64,
    /// Aids that a query without an aid reads, each once, in the order of the list.
    fan_out: Vec<String>,
    /// All aids with their names, each once; `None` if the list has no names.
    pub(super) names: Option<Vec<(String, String)>>,
    /// Aids within entries that no entry of their page has, in the order of the list.
    nested: Vec<String>,
}

impl SavedSearches {
    /// Decodes a page. `first`: set for the first one.
    ///
    /// # Errors
    /// Those of the decoder, and [`ErrorKind::Profile`] if the aids are not strings.
    pub(super) fn decode(profile: &Arc<Profile>, body: Bytes, first: bool) -> Result<Self> {
        let table = &entries_of(&profile.tables.saved_searches);
        let place = |name: &str| table.columns.iter().position(|column| column.name == name);
        let aid = place("aid")
            .ok_or_else(|| Error::new(ErrorKind::Profile, "the profile declares no column `aid` in saved_searches"))?;
        let label = table.columns.iter().position(|column| column.origin == Origin::Section);
        let decoded = |columns: &[usize], lossy: bool| {
            let decoder = Decoder::new(Arc::clone(profile), Arc::new(table.clone()), columns).lossy(lossy);
            let decoder = if first { decoder.of_table() } else { decoder.continuing() };
            decoder.decode_list(&body).map(|(decoded, end)| (decoded.batch, end))
        };
        let of = |columns: [Option<usize>; 3]| columns.into_iter().flatten().collect::<Vec<usize>>();
        let whole = of([Some(aid), place("name"), label]);
        // No query depends on the names.
        let (wanted, (batch, end), names) = match decoded(&whole, false) {
            Ok(page) => (whole, page, None),
            Err(_) => {
                let names = decoded(&of([Some(aid), place("name"), None]), true).ok().map(|(names, _)| names);
                let wanted = of([Some(aid), label, None]);
                let page = decoded(&wanted, false)?;
                (wanted, page, names)
            }
        };
        let column = |at: Option<usize>| wanted.iter().position(|wanted| Some(*wanted) == at);
        let aids = texts(&batch, 0)?;
        if !profile.tables.saved_searches.columns[aid].nullable {
            let kinds = column(label).map(|at| texts(&batch, at)).transpose()?;
            let kind_of =
                |entry| kinds.iter().find(|kinds| kinds.is_valid(entry)).map_or("", |kinds| kinds.value(entry));
            check_aids(&aids, &kind_of)?;
        }
        let names = match (column(place("name")), names) {
            (Some(at), _) => texts(&batch, at).ok().map(|names| named(&aids, &names)),
            (None, Some(names)) if names.num_columns() > 1 => {
                texts(&names, 0).and_then(|aids| Ok(named(&aids, &texts(&names, 1)?))).ok()
            }
            (None, _) => None,
        };
        let fan_out = match column(label).zip(fan_out_labels(table)) {
            Some((at, labels)) => {
                let found = texts(&batch, at)?;
                let of_them = |label: Option<&str>| label.is_some_and(|label| labels.contains(label));
                let chosen = aids.iter().zip(found.iter()).filter(|(_, label)| of_them(*label)).map(|(aid, _)| aid);
                each_once(chosen)
            }
            // Sections cannot be distinguished by label.
            None => {
                let sections = table.sections.iter().filter(|section| section.fan_out).cloned().collect();
                let table = TableSpec { sections, ..table.clone() };
                let decoder = Decoder::new(Arc::clone(profile), Arc::new(table), &[aid]).continuing();
                each_once(texts(&decoder.decode(&PageRequest::list(), &body)?.batch, 0)?.iter())
            }
        };
        let labels = column(label).map(|at| texts(&batch, at)).transpose()?;
        let entry = |(row, aid): (usize, Option<&str>)| {
            let label = labels.as_ref().map_or("", |labels| labels.value(row));
            Some((label.to_owned(), aid?.to_owned()))
        };
        let entries: HashSet<_> = match profile.list.pages {
            Some(_) => aids.iter().enumerate().filter_map(entry).collect(),
            None => HashSet::new(),
        };
        let new = entries.len();
        let (rows, without_new, followed) = (batch.num_rows() as u64, usize::from(new == 0), HashSet::new());
        let (nested, pages) =
            (nested_aids(&profile.tables.saved_searches, &body, &aids).unwrap_or_default(), vec![body]);
        Ok(Self { rows, pages, end, entries, new, without_new, followed, fan_out, names, nested, repeats: false })
    }

    /// The list up to the page `next`.
    pub(super) fn then(mut self, next: Self) -> Self {
        let (known, listed): (HashSet<String>, _) = (self.fan_out.iter().cloned().collect(), next.fan_out.into_iter());
        self.fan_out.extend(listed.filter(|aid| !known.contains(aid)));
        self.names = self.names.zip(next.names).map(|(mut names, more)| {
            let known: HashSet<String> = names.iter().map(|(aid, _)| aid.clone()).collect();
            names.extend(more.into_iter().filter(|(aid, _)| !known.contains(aid)));
            names
        });
        self.pages.extend(next.pages);
        self.nested.extend(next.nested);
        self.nested.truncate(NESTED);
        self.repeats |= next.entries.iter().any(|entry| self.entries.contains(entry));
        let before = self.entries.len();
        self.entries.extend(next.entries);
        let new = self.entries.len() - before;
        let without_new = if new > 0 { 0 } else { self.without_new + 1 };
        self.followed.extend(self.end.next.take());
        Self { rows: self.rows + next.rows, end: self.end.then(next.end), new, without_new, ..self }
    }

    /// Returns the request for the page after those that were read; `None` after the last one.
    ///
    /// # Errors
    /// [`ErrorKind::Incomplete`] if there are more entries than can be read.
    pub(super) fn next(&self, profile: &Profile) -> Result<Option<PageRequest>> {
        let rest = self.rest(profile);
        let Some(pages) = &profile.list.pages else {
            return match rest {
                Rest::More(sign) => {
                    // The sign begins with the place of a member.
                    let at = sign.split('`').nth(1).unwrap_or_default();
                    Err(incomplete(&sign).advice(format!(
                        "declare how the list is paged in the profile: [list] pages = {{ parameter = \"…\", unit = \"row\" }}; \
                         if this value is about something else, declare that: [complete] fields = [{{ at = \"{at}\" }}]"
                    )))
                }
                Rest::None | Rest::Unknown => Ok(None),
            };
        };
        let (read, next) = (self.pages.len() as u64, self.end.next.clone());
        let more = match (pages.unit, &rest) {
            (ListUnit::Cursor, _) => next.is_some(),
            (_, Rest::None) => false,
            (_, Rest::More(_)) => true,
            // A page that is not full is the last one.
            (_, Rest::Unknown) => {
                let size = pages.size.as_ref().map(|size| size.rows);
                self.new > 0 && size.is_none_or(|size| self.end.last_entries() >= size)
            }
        };
        // Filters may leave a page empty that names another one.
        let another = next.as_ref().filter(|next| pages.unit == ListUnit::Cursor && !self.followed.contains(*next));
        let goes_on = more && (self.new > 0 || another.is_some());
        let advice = "check [list] pages in the profile";
        match (rest, another) {
            (_, Some(next)) if self.without_new >= EMPTY_PAGES => {
                let sign =
                    format!("{} pages in a row had no new entries, and the last one names `{next}`", self.without_new);
                return Err(incomplete(&sign).advice(advice));
            }
            (Rest::More(sign), _) if !goes_on => return Err(incomplete(&sign).advice(advice)),
            _ if !goes_on => {
                return match self.end.changed {
                    None => Ok(None),
                    Some((first, now)) => {
                        let line = format!(
                            "the list of saved searches changed while it was read: its total was {first}, then {now}"
                        );
                        Err(Error::new(ErrorKind::Incomplete, line).advice("try again").passing())
                    }
                };
            }
            _ => {}
        }
        // Entries that all pages repeat would make the place of the next one too high.
        if pages.unit == ListUnit::Row && self.repeats {
            return Err(Error::new(ErrorKind::Contradiction, "the pages of the list repeat entries")
                .advice("use unit = \"page\" or \"cursor\" in [list] pages of the profile"));
        }
        let place = if pages.unit == ListUnit::Row { self.end.entries() } else { read };
        Ok(Some(PageRequest::list_from(place, next.filter(|_| pages.unit == ListUnit::Cursor))))
    }

    /// Evidence of the pages about the rest of the list.
    fn rest(&self, profile: &Profile) -> Rest {
        let first = profile.list.pages.as_ref().filter(|pages| pages.unit == ListUnit::Page).map(|pages| pages.first);
        self.end.rest(profile.list.pages.is_some().then_some((self.pages.len() as u64, first.unwrap_or(1))))
    }

    /// Verdict on a list that was read to its end.
    pub(super) fn verdict(&self, profile: &Profile) -> String {
        let sign = match self.rest(profile) {
            Rest::None => "end stated",
            Rest::Unknown | Rest::More(_) => "no sign of more",
        };
        let pages = match self.pages.len() {
            1 => String::new(),
            pages => format!(", in {pages} pages"),
        };
        format!("complete: {} entries ({sign}){pages}", self.end.entries())
    }

    /// The first aid within an entry that no entry of the pages has.
    pub(super) fn unlisted(&self) -> Option<&str> {
        let listed: HashSet<&str> = self.entries.iter().map(|(_, aid)| aid.as_str()).collect();
        self.nested.iter().map(String::as_str).find(|aid| !listed.contains(aid))
    }

    /// Aids that a query without an aid reads.
    pub(super) fn fan_out(&self) -> Vec<String> {
        self.fan_out.clone()
    }
}

/// Error for a list that has more entries than were received.
fn incomplete(sign: &str) -> Error {
    Error::new(ErrorKind::Incomplete, format!("the list of saved searches continues: {sign}"))
}

/// Returns the aids in objects within entries, such as items of `subSearches`, that no entry of the page has, each once. `None` if the
/// field of aids has a name that other objects have as well.
fn nested_aids(table: &TableSpec, body: &[u8], aids: &StringArray) -> Option<Vec<String>> {
    let Origin::Field(at, _) = &table.column("aid")?.origin else { return None };
    let [field] = at.steps() else { return None };
    if field.eq_ignore_ascii_case("id") {
        return None;
    }
    let body: Value = serde_json::from_slice(body).ok()?;
    let listed: HashSet<&str> = aids.iter().flatten().collect();
    let entries = table.sections.iter().filter_map(|section| section.at.member_of(&body)?.as_array()).flatten();
    let within = entries.filter_map(Value::as_object).flat_map(|entry| entry.values());
    let mut known = HashSet::new();
    let nested = within.flat_map(|value| aids_in(value, field, DEPTH));
    let nested = nested.filter(|aid| !listed.contains(aid.as_str()) && known.insert(aid.clone()));
    Some(nested.take(NESTED).collect())
}

/// Values of a field in the objects of a value, down to this depth.
fn aids_in(value: &Value, field: &str, depth: usize) -> Vec<String> {
    let aid = |value: &Value| match value {
        Value::String(aid) => Some(aid.clone()),
        Value::Number(aid) => Some(aid.to_string()),
        _ => None,
    };
    match value {
        _ if depth == 0 => Vec::new(),
        Value::Object(members) => {
            let inner = members.values().flat_map(|value| aids_in(value, field, depth - 1));
            members.get(field).and_then(aid).into_iter().chain(inner).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| aids_in(item, field, depth - 1)).collect(),
        _ => Vec::new(),
    }
}

/// Labels of the sections that a query without an aid reads; `None` if other sections share one of them.
fn fan_out_labels(table: &TableSpec) -> Option<HashSet<&str>> {
    let labels = |fan_out: bool| -> HashSet<&str> {
        let sections = table.sections.iter().filter(|section| section.fan_out == fan_out);
        sections.map(|SectionSpec { label, .. }| label.as_str()).collect()
    };
    let (wanted, others) = (labels(true), labels(false));
    wanted.is_disjoint(&others).then_some(wanted)
}

fn texts(batch: &RecordBatch, at: usize) -> Result<StringArray> {
    let column = arrow::compute::cast(batch.column(at), &DataType::Utf8);
    let column = column.map_err(|error| {
        let name = batch.schema_ref().field(at).name();
        Error::new(
            ErrorKind::Profile,
            format!("column `{name}` of saved_searches has values that are not strings: {error}"),
        )
    })?;
    Ok(column.as_string::<i32>().clone())
}

fn each_once<'a>(aids: impl Iterator<Item = Option<&'a str>>) -> Vec<String> {
    let mut known = HashSet::new();
    aids.flatten().filter(|aid| known.insert(*aid)).map(str::to_owned).collect()
}

fn named(aids: &StringArray, names: &StringArray) -> Vec<(String, String)> {
    let mut known = HashSet::new();
    let pairs = aids.iter().zip(names.iter()).filter_map(|(aid, name)| Some((aid?, name.unwrap_or_default())));
    pairs.filter(|(aid, _)| known.insert(*aid)).map(|(aid, name)| (aid.to_owned(), name.to_owned())).collect()
}
