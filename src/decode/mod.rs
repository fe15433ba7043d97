//! Decodes the bytes of an answer into a record batch of the requested columns.
//!
//! ```text
//! body ─ envelope ─▶ echoes, total, answer-level values
//!            └─ sections ─ record ─▶ raw value of each wanted field ─ value ─▶ column builders ─▶ RecordBatch
//! ```
//!
//! The body is read in one pass. The text of each value is found once, and that of a wanted one is converted by this module's
//! own rules, so that ids and counts never pass through a float. A value that does not fit its column becomes NULL, is
//! counted, and stays in `extra` if that column is wanted; nothing is rounded or guessed.
//!
//! Invariant: a batch is returned only if the entire body is valid JSON, its echoes agree with the request, and every
//! non-nullable column has a value in each row.

mod envelope;
mod estimate;
mod evidence;
mod json;
mod list;
mod lossy_utf8;
mod places;
mod pointer_tree;
mod record;
mod schema;
mod value;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef, TimestampMicrosecondType};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

pub(crate) use self::estimate::{estimated_list, estimated_total};
pub use self::evidence::Rest;
pub(crate) use self::list::{OneRowAnAid, check_aids, entries_of};
pub(crate) use self::schema::in_zone_of;
pub use self::schema::{arrow_schema, data_type};

use self::envelope::Envelope;
use self::evidence::{Evidence, count_of};
use self::pointer_tree::Tree;
use self::record::Rows;
use self::schema::decoded_schema;
use self::value::{Column, InstantForm, Instants, integer_of, joined};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{
    ColumnType, CompleteField, Direction, Nulls, Origin, Pointer, Profile, Scope, SectionSpec, Shape, TableKind,
    TableSpec, Trust, Zone,
};
use crate::request::{Beside, CountedDays, Hint, PageRequest, Traits};

/// A decoded answer.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The requested columns, in the requested order.
    pub batch: RecordBatch,
    /// Hashes of the id column, if the table has one and it was requested.
    pub ids: Option<Vec<u64>>,
    /// Instants of the time column in microseconds since 1970, likewise.
    pub times: Option<Vec<i64>>,
    /// Sort keys of the rows as numbers in the requested order, if it is by another column, a number or a time, and that
    /// was requested.
    pub keys: Option<Vec<i64>>,
    /// Instants of the version column (last change), likewise; `i64::MIN` for NULL.
    pub versions: Option<Vec<i64>>,
    /// Total number of records, if the answer states it and the profile trusts it.
    pub total: Option<u64>,
    /// Approximate total, if the answer states one and it is not exact or not trusted by the profile.
    pub hint: Option<Hint>,
    /// Values that did not fit their column and became NULL.
    pub conflicts: u64,
    /// Invalid characters and escapes in strings that were replaced.
    pub mended: u64,
    /// Rows without an id, which got one derived from other columns.
    pub unnamed: u64,
    /// Number of records in the answer.
    pub records: u64,
    /// For each column that is a field of the record, by its position: the number of records with the field, NULL or
    /// not.
    pub present: Vec<(usize, u64)>,
    /// The fields in `extra` as JSON pointers, if that column is wanted, each with the number of records that have it.
    pub unknown: Vec<(String, u64)>,
    /// Counts of matching mentions in the same answer.
    pub beside: Beside,
    /// Instants between which its timeline counts mentions, if its buckets have instants.
    pub counted_days: Option<CountedDays>,
    /// Member of the response that says that more mentions follow, with its value.
    pub more: Option<String>,
    /// Cursor of the next page, if the profile says where it is and there is one.
    pub next: Option<String>,
    /// The window that the service resolved the request to, [from, to).
    pub window: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// Instant up to which the service's data was complete, if the response states it.
    pub as_of: Option<DateTime<Utc>>,
    /// First and last instant of the time column that have no zone and are taken for UTC.
    pub assumed: Option<(i64, i64)>,
    /// Traits of mentions that distinguish them apart from their ids, as far as they were requested: time, url and source.
    pub traits: Option<Vec<Traits>>,
}

/// A url without its query and fragment, which may be signed anew for each response; all of it if nothing else distinguishes it from
/// others of its host.
fn place_of(url: &str) -> &str {
    let place = url.split(['?', '#']).next().unwrap_or(url);
    let path = place.split_once("://").map_or(place, |(_, rest)| rest).split_once('/').map_or("", |(_, path)| path);
    if path.is_empty() { url } else { place }
}

/// Evidence of a response about the end of a list.
struct Ends {
    next: Option<String>,
    entries: Vec<u64>,
    evidence: Evidence,
}

/// Evidence of the pages of a list about those after them.
#[derive(Debug)]
pub struct ListEnd {
    /// Place of the next page, as the service writes it, if the profile says where it is.
    pub next: Option<String>,
    table: Arc<TableSpec>,
    entries: Vec<u64>,
    /// Entries of the last page.
    last: Vec<u64>,
    evidence: Evidence,
    /// Number of all entries, as the first page states it.
    total: Option<u64>,
    /// The totals of the first page and of another one, if they differ.
    pub changed: Option<(u64, u64)>,
}

impl ListEnd {
    /// Judges the rest of the list by this page and those before it. `pages`: how many were read, and the number of the first one, if
    /// the profile declares pages.
    pub fn rest(&self, pages: Option<(u64, u64)>) -> Rest {
        self.evidence.rest(&self.table, &self.entries, pages.map(|pages| (&*self.last, pages)))
    }

    /// The end of the pages up to `next`.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let entries = self.entries.iter().zip(&next.entries).map(|(before, entries)| before + entries).collect();
        let changed = self.total.zip(next.total).filter(|(first, now)| first != now);
        Self { entries, total: self.total, changed: self.changed.or(changed), ..next }
    }

    /// Number of entries of the last page.
    pub fn last_entries(&self) -> u64 {
        self.last.iter().sum()
    }

    /// Number of entries of the pages.
    pub fn entries(&self) -> u64 {
        self.entries.iter().sum()
    }
}

/// Decoder for the answers of one table and a fixed set of columns. Built once per scan, used for every page.
#[derive(Debug)]
pub struct Decoder {
    profile: Arc<Profile>,
    table: Arc<TableSpec>,
    schema: SchemaRef,
    /// Source of each output column.
    sources: Vec<Source>,
    /// Columns to build, some of which are needed for `extra` only.
    columns: Vec<Column>,
    records: Tree<usize>,
    /// Number of objects in `records`.
    objects: usize,
    envelope: Tree<Capture>,
    captures: usize,
    id: Option<usize>,
    time: Option<usize>,
    version: Option<usize>,
    /// Builders of the columns that [`Rows`] fills itself: section label, rank, extra.
    origins: [Option<usize>; 3],
    /// Columns that are a field of the record: position, and builder.
    fields: Vec<(usize, usize)>,
    /// Position of the column `extra`, if it is wanted.
    extra: Option<usize>,
    lossy: bool,
    /// Set if an answer must have a section of the table.
    needs_section: bool,
    /// Set for a page of the list after the first one, which may lack sections.
    continues: bool,
    /// Values that the profile's `[complete]` judges, with its fields.
    complete: Vec<(usize, CompleteField)>,
    /// Columns with the day and the time of day of instants, with their form.
    joined: Vec<([usize; 2], InstantForm)>,
    /// Columns with the parts of texts.
    texts: Vec<Vec<usize>>,
    /// Other name of the requested zone that responses use.
    same_zone: OnceLock<String>,
    /// Captured counts beside mentions, with the place of the count in each entry: of the timeline, and of lists.
    timeline: Option<(usize, Option<Pointer>)>,
    /// Start of a bucket in its entry.
    start: Option<(Pointer, InstantForm)>,
    lists: Vec<(usize, Option<Pointer>)>,
}

/// Relation of a total to the number of mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Exact,
    AtLeast,
    /// An estimate, or an upper bound.
    About,
}

impl Relation {
    /// Reads the word of a response; none means exact. An unknown one is a bound, which a scan has to reach.
    fn of(word: Option<Cow<'_, str>>) -> Self {
        const ABOUT: [&str; 11] = [
            "about",
            "approx",
            "approximate",
            "approximately",
            "atmost",
            "estimate",
            "estimated",
            "le",
            "lt",
            "lte",
            "upperbound",
        ];
        let Some(word) = word else { return Self::Exact };
        let word: String = word.to_lowercase().chars().filter(|character| !" _-".contains(*character)).collect();
        match word.as_str() {
            "eq" | "equal" | "equals" | "equalto" | "exact" | "=" | "==" | "true" => Self::Exact,
            "<" | "<=" | "≤" | "~" | "≈" => Self::About,
            word if ABOUT.contains(&word) => Self::About,
            _ => Self::AtLeast,
        }
    }
}

/// Source of the values of an output column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The built column with this index.
    Row(usize),
    /// The instants of this pair of columns, with a day and a time of day.
    Joined(usize),
    /// The texts that consist of these columns.
    Texts(usize),
    /// The captured value with this index, the same for each row, and the column for its type.
    Answer(usize, usize),
    Aid,
    Duration,
    Timezone,
    /// NULL: a reader fills it in.
    Later,
}

/// Target of a pointer into the envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capture {
    Section(usize),
    Value(usize),
    /// Rows of another table, whose members are not named by the service.
    Foreign,
}

/// Slots of the values captured from every answer; those of columns follow.
const TOTAL: usize = 0;
const RELATION: usize = 1;
const ECHO_AID: usize = 2;
const ECHO_TIMEZONE: usize = 3;
const ECHO_OFFSET: usize = 4;
const WINDOW_FROM: usize = 5;
const WINDOW_TO: usize = 6;
const COUNTED: usize = 7;
const COUNTED_RELATION: usize = 8;
const NEXT: usize = 9;
const AS_OF: usize = 10;
const FIRST_COLUMN: usize = 11;

/// Beginning of an id that is derived from other columns.
const DERIVED: &str = "~";

/// Records that an answer may have even if fewer were requested.
const MOST: usize = 100_000;

impl Decoder {
    /// Creates a decoder for the columns at these positions of the table.
    pub fn new(profile: Arc<Profile>, table: Arc<TableSpec>, columns: &[usize]) -> Self {
        let full = decoded_schema(&table);
        // `project` fails only for positions out of bounds.
        let schema = Arc::new(full.project(columns).expect("column positions are within the table"));
        let of_origin = |origin: &Origin| columns.iter().position(|column| table.columns[*column].origin == *origin);
        let extra_at = of_origin(&Origin::Extra);
        let extra = extra_at.is_some();

        let mut records = Tree::default();
        let mut envelope = Tree::default();
        let mut built = Vec::new();
        let mut sources = vec![None; table.columns.len()];
        let (mut captures, mut joined, mut texts) = (FIRST_COLUMN, Vec::new(), Vec::<Vec<usize>>::new());
        for (index, column) in table.columns.iter().enumerate() {
            let wanted = columns.contains(&index);
            let form = InstantForm::of(column);
            // Numbers in identifiers are compared with those in other notations.
            let identifies =
                Some(&column.name) == table.id.as_ref() || column.name == "aid" || column.name.ends_with("_id");
            let build = |built: &mut Vec<Column>| {
                let nulls = &column.nulls;
                built.push(Column::new(column.kind, form.clone()).identifying(identifies).with_nulls(nulls));
                built.len() - 1
            };
            let source = match &column.origin {
                Origin::Field(at, Scope::Record)
                    if let Some(time_at) = column.time_at.as_ref().filter(|_| wanted || extra) =>
                {
                    let slots = [at, time_at].map(|at| {
                        built.push(Column::new(ColumnType::Utf8, InstantForm::default()));
                        records.insert(at.steps(), built.len() - 1);
                        built.len() - 1
                    });
                    joined.push((slots, form));
                    Source::Joined(joined.len() - 1)
                }
                // `extra` must not repeat values of other columns, so these are converted even if not wanted
                // themselves.
                Origin::Field(at, Scope::Record) if !column.joined_with.is_empty() && (wanted || extra) => {
                    let parts = [at].into_iter().chain(&column.joined_with).map(|at| {
                        let slot = build(&mut built);
                        records.insert_checked(at.steps(), slot);
                        slot
                    });
                    texts.push(parts.collect());
                    Source::Texts(texts.len() - 1)
                }
                Origin::Field(at, Scope::Record) if wanted || extra => {
                    let slot = build(&mut built);
                    match column.nulls.is_empty() {
                        true => records.insert(at.steps(), slot),
                        false => records.insert_checked(at.steps(), slot),
                    }
                    Source::Row(slot)
                }
                Origin::Field(at, Scope::Answer) if wanted => {
                    envelope.insert(at.steps(), Capture::Value(captures));
                    captures += 1;
                    Source::Answer(captures - 1, build(&mut built))
                }
                Origin::Aid => Source::Aid,
                Origin::Duration => Source::Duration,
                Origin::Timezone => Source::Timezone,
                Origin::AsOf | Origin::Kinds => Source::Later,
                Origin::Section | Origin::Rank | Origin::Extra if wanted => Source::Row(build(&mut built)),
                _ => continue,
            };
            sources[index] = Some(source);
        }
        for pointer in &table.ignore {
            records.ignore(pointer.steps());
        }
        for (index, section) in table.sections.iter().enumerate() {
            envelope.insert(section.at.steps(), Capture::Section(index));
        }
        let own = |at: &Pointer| table.sections.iter().any(|section| section.at == *at);
        let others = profile.tables.all().filter(|other| other.kind.is_search() == table.kind.is_search());
        let others = others.flat_map(|other| &other.sections).filter(|section| !own(&section.at));
        for section in others {
            envelope.insert(section.at.steps(), Capture::Foreign);
        }
        let mut complete = Vec::new();
        for field in &profile.complete.fields {
            envelope.insert(field.at.steps(), Capture::Value(captures));
            complete.push((captures, field.clone()));
            captures += 1;
        }
        // Inside a record that is read anyway, the total would be read twice.
        let counted = profile.counted_total();
        let counted = counted.filter(|_| !table.sections.iter().any(|section| section.shape == Shape::Record));
        let (counted, counted_relation) = counted.map_or((None, None), |(at, relation)| (Some(at), relation));
        let next = match table.kind {
            TableKind::List => profile.list.pages.as_ref().and_then(|pages| pages.next.clone()),
            TableKind::Mentions => profile.offset.next.clone(),
            _ => None,
        };
        let summed = profile.summed_counts().filter(|_| table.kind == TableKind::Mentions);
        let mut capture = |(at, count): (Pointer, Option<Pointer>)| {
            envelope.insert(at.steps(), Capture::Value(captures));
            captures += 1;
            (captures - 1, count)
        };
        let start = summed.as_ref().and_then(|summed| summed.start.as_ref()).and_then(|start| match &start.origin {
            Origin::Field(at, Scope::Record) if start.time_at.is_none() => Some((at.clone(), InstantForm::of(start))),
            _ => None,
        });
        let (timeline, lists) = match summed {
            Some(summed) => (summed.timeline.map(&mut capture), summed.lists.into_iter().map(&mut capture).collect()),
            None => (None, Vec::new()),
        };
        let known = [
            (COUNTED, &counted),
            (COUNTED_RELATION, &counted_relation),
            (TOTAL, &profile.total.at),
            (RELATION, &profile.total.relation),
            (ECHO_AID, &profile.echo.aid),
            (ECHO_TIMEZONE, &profile.echo.timezone),
            (ECHO_OFFSET, &profile.echo.offset),
            (WINDOW_FROM, &profile.echo.from),
            (WINDOW_TO, &profile.echo.to),
            (NEXT, &next),
            (AS_OF, &profile.complete.as_of),
        ];
        for (slot, pointer) in known {
            if let Some(pointer) = pointer {
                envelope.insert(pointer.steps(), Capture::Value(slot));
            }
        }
        let position = |name: &Option<String>| {
            columns.iter().position(|column| Some(&table.columns[*column].name) == name.as_ref())
        };
        let (id, time, version) = (position(&table.id), position(&table.time), position(&table.version));
        let sources: Vec<Source> =
            columns.iter().map(|column| sources[*column].expect("every wanted column has a source")).collect();
        let slot = |source: &Source| match source {
            Source::Row(slot) => Some(*slot),
            Source::Joined(pair) => joined.get(*pair).map(|([day, _], _): &([usize; 2], InstantForm)| *day),
            Source::Texts(parts) => texts.get(*parts).and_then(|parts| parts.first()).copied(),
            _ => None,
        };
        let origins = [Origin::Section, Origin::Rank, Origin::Extra];
        let origins = origins.map(|origin| of_origin(&origin).and_then(|at| slot(&sources[at])));
        let is_field = |at: &usize| matches!(table.columns[columns[*at]].origin, Origin::Field(_, Scope::Record));
        let fields = (0..columns.len()).filter(is_field);
        let fields = fields.filter_map(|at| Some((at, slot(&sources[at])?))).collect();
        Self {
            profile,
            table,
            schema,
            sources,
            columns: built,
            objects: records.numbered(0),
            records,
            envelope,
            captures,
            id,
            time,
            version,
            origins,
            fields,
            extra: extra_at,
            lossy: false,
            needs_section: false,
            continues: false,
            complete,
            joined,
            texts,
            same_zone: OnceLock::new(),
            timeline,
            start,
            lists,
        }
    }

    /// Evidence of a response, with nothing read yet.
    fn evidence(&self) -> Evidence {
        let error = &self.profile.error;
        let stated = [&error.code, &error.message, &error.field].into_iter().flatten();
        let stated = stated.filter(|at| at.steps().len() > 1).filter_map(|at| at.steps().first().cloned());
        Evidence::new(self.table.kind == TableKind::List, stated.collect())
    }

    /// Requires a section of the table in each answer: one without any is an error and not an empty table, unless its
    /// total or its overview counts no mentions.
    #[must_use]
    pub fn of_table(self) -> Self {
        Self { needs_section: true, ..self }
    }

    /// Accepts a page of the list that lacks sections, since others have them.
    #[must_use]
    pub fn continuing(self) -> Self {
        Self { continues: true, needs_section: false, ..self }
    }

    /// Sets replacement of invalid characters and escapes in strings.
    #[must_use]
    pub fn lossy(self, lossy: bool) -> Self {
        Self { lossy, ..self }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Origin of the values of a column.
    pub fn origin(&self, column: &str) -> Option<&Origin> {
        self.table.column(column).map(|column| &column.origin)
    }

    /// True if a column has texts.
    pub fn is_text(&self, column: &str) -> bool {
        self.table.column(column).is_some_and(|column| column.kind == ColumnType::Utf8)
    }

    /// Decodes one body.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for invalid JSON, [`ErrorKind::Contradiction`] for valid JSON that disagrees with the
    /// profile or the request.
    pub fn decode(&self, request: &PageRequest, body: &[u8]) -> Result<Decoded> {
        self.decode_body(request, body).map(|(decoded, _)| decoded)
    }

    /// Decodes a page of the list.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_list(&self, body: &[u8]) -> Result<(Decoded, ListEnd)> {
        let (rows, Ends { next, entries, evidence }) = self.decode_body(&PageRequest::list(), body)?;
        let (table, last, total) = (Arc::clone(&self.table), entries.clone(), evidence.total());
        Ok((rows, ListEnd { next, table, last, entries, evidence, total, changed: None }))
    }

    fn decode_body(&self, request: &PageRequest, body: &[u8]) -> Result<(Decoded, Ends)> {
        let decoded = match simdutf8::basic::from_utf8(body) {
            // Some services prepend a byte order mark.
            Ok(text) => self.decode_text(request, text.trim_start_matches('\u{feff}')),
            Err(_) => Err(Error::new(ErrorKind::Malformed, "the response is not UTF-8")),
        };
        match decoded {
            Err(error) if error.kind() == ErrorKind::Malformed => {
                let Some(at) = lossy_utf8::first_flaw(body) else { return Err(error) };
                if self.lossy {
                    let (text, mended) = lossy_utf8::mend(body);
                    let text = text.trim_start_matches('\u{feff}');
                    let (decoded, ends) = self.decode_text(request, text)?;
                    return Ok((Decoded { mended, ..decoded }, ends));
                }
                let message = format!("invalid UTF-8 or escape at byte {at} of the response: {}", error.message());
                Err(Error::new(ErrorKind::Malformed, message)
                    .advice("use SET savedsearch.lossy_text = on to replace and count invalid characters"))
            }
            decoded => decoded,
        }
    }

    fn decode_text(&self, request: &PageRequest, text: &str) -> Result<(Decoded, Ends)> {
        let most = usize::try_from(request.size).unwrap_or(usize::MAX).saturating_mul(100).max(MOST);
        let mut rows = Rows::new((&self.records, self.objects), &self.columns, self.origins, most);
        let mut answer = envelope::read(self, text, &mut rows)?;
        if let Some(opened) = answer.opened.take() {
            return self.decode_text(request, &opened);
        }
        self.check_echoes(request, &answer)?;
        self.check_complete(&answer)?;
        // An overview that stands beside no mentions has none of their sections.
        let apart = self.table.kind == TableKind::Mentions && request.plan.pages.is_none();
        let mut sections = self.table.sections.iter().zip(&answer.sections).filter(|_| !self.continues && !apart);
        if let Some((SectionSpec { at: missing, .. }, _)) = sections.find(|(spec, there)| !spec.optional && !**there) {
            return Err(Error::new(ErrorKind::Contradiction, format!("the response has no `{missing}`"))
                .advice("check the `sections` of this table in the profile, or set optional = true"));
        }
        let counted = answer.raw(COUNTED).and_then(count_of);
        let counted: Option<u64> = counted.filter(|_| Relation::of(answer.text(COUNTED_RELATION)) == Relation::Exact);
        let total = answer.raw(TOTAL).filter(|raw| !raw.is_null());
        // What has no entries is empty; what is null was not read. Mentions have a total for that.
        let there = answer.sections.iter().filter(|there| **there).count();
        let mut needed = self.table.sections.iter().zip(&answer.sections);
        let needed = self.needs_section && needed.any(|(spec, there)| *there && !spec.optional);
        let is_null = match self.table.kind {
            TableKind::List | TableKind::History => true,
            TableKind::Overview | TableKind::Volume | TableKind::Breakdowns => needed,
            _ => false,
        };
        let is_null = is_null && there > 0 && answer.nulls == there;
        let zero = counted == Some(0) || total.and_then(count_of) == Some(0);
        if is_null && !self.continues && !zero {
            let what = match self.table.kind {
                TableKind::List | TableKind::History => {
                    "all sections of the list of saved searches are null".to_owned()
                }
                _ => {
                    let places = self.table.sections.iter().map(|section| format!("`{}`", section.at)).take(3);
                    format!("the sections of this table are null: {}", places.collect::<Vec<_>>().join(", "))
                }
            };
            return Err(Error::new(ErrorKind::Contradiction, what)
                .advice("check the `sections` of this table in the profile, or set optional = true")
                .passing());
        }
        let paged = request.plan.pages.is_some() && total.is_some();
        let nothing =
            !answer.sections.contains(&true) && !paged && total.and_then(count_of) != Some(0) && counted != Some(0);
        if self.needs_section && nothing && !apart {
            let places: Vec<String> =
                self.table.sections.iter().map(|section| format!("`{}`", section.at)).take(3).collect();
            let message = format!("the response has no section of this table, such as {}", places.join(", "));
            return Err(Error::new(ErrorKind::Contradiction, message).advice(
                "check the `sections` of this table in the profile; if it is an error with a success status, set [error]",
            ));
        }
        let relation = match self.profile.total.at.as_ref().is_some_and(|at| answer.evidence.calls_estimate(at)) {
            true => Relation::About,
            false => Relation::of(answer.text(RELATION)),
        };
        let told = total.filter(|_| request.plan.pages.is_some());
        let total = match (&self.profile.total.trust, told, relation, request.plan.pages) {
            (Trust::Exact, Some(told), Relation::Exact, _) => Some(count_of(told).ok_or_else(|| {
                Error::new(
                    ErrorKind::Contradiction,
                    format!("invalid total `{}` in the response", evidence::shown(told)),
                )
                .advice("check [total] in the profile, or set trust = \"advisory\" to read until a page is empty")
            })?),
            // Some services count the mentions for the first page only.
            (Trust::Exact, None, _, Some(pages)) if request.row <= pages.skip => {
                return Err(Error::new(ErrorKind::Contradiction, "the response has no total")
                    .advice("check [total] in the profile, or set trust = \"absent\" to read without a total"));
            }
            _ => None,
        };
        let hint = told.filter(|_| total.is_none()).and_then(count_of);
        let hint = hint.map(match (&self.profile.total.trust, relation) {
            (Trust::Exact, Relation::AtLeast) => Hint::AtLeast,
            _ => Hint::About,
        });
        let count = rows.count;
        let present = self.fields.iter().map(|(column, slot)| (*column, rows.present(*slot))).collect();
        let mut conflicts = rows.conflicts;
        let time = self.time.map(|time| self.sources[time]);
        let mut read = match time {
            Some(Source::Row(slot)) => rows.instants(slot),
            _ => (None, 0),
        };
        let mut built = rows.finish();
        let mut columns: Vec<ArrayRef> = self
            .sources
            .iter()
            .zip(self.schema.fields())
            .map(|(source, field)| match *source {
                Source::Row(slot) => Ok(built.array(slot)),
                Source::Joined(pair) => {
                    let ([day, time_of_day], form) = &self.joined[pair];
                    let mut instants = Instants::of(form.clone());
                    let (days, times) = (built.array(*day), built.array(*time_of_day));
                    let (array, unfit) = joined_instants(&mut instants, &days, &times);
                    conflicts += unfit;
                    if time == Some(*source) {
                        read = (instants.assumed, instants.days);
                    }
                    Ok(array)
                }
                Source::Texts(parts) => {
                    let parts: Vec<ArrayRef> = self.texts[parts].iter().map(|slot| built.array(*slot)).collect();
                    Ok(joined_texts(&parts))
                }
                Source::Answer(capture, slot) => {
                    let (array, fits) = self.columns[slot].repeat(answer.raw(capture), count)?;
                    conflicts += u64::from(!fits);
                    Ok(array)
                }
                Source::Aid => Ok(constant(request.plan.aid.as_deref(), count)),
                Source::Duration => Ok(constant(request.plan.named_window(), count)),
                Source::Timezone => Ok(constant(request.plan.timezone.as_deref(), count)),
                Source::Later => Ok(arrow::array::new_null_array(field.data_type(), count)),
            })
            .collect::<Result<_>>()?;
        let (assumed, days) = read;
        if days > 0 && days == count && request.row == 0 {
            self.check_time_of_day(text)?;
        }
        let unnamed = self.name(request, text, &mut columns)?;
        if unnamed > 0 && total.is_none() {
            self.check_stand_ins(&columns)?;
        }
        for (column, field) in columns.iter().zip(self.schema.fields()) {
            if !field.is_nullable() && column.null_count() > 0 {
                let row = (0..count).find(|row| column.is_null(*row)).unwrap_or_default();
                return Err(Error::new(
                    ErrorKind::Contradiction,
                    format!(
                        "record {row} of the response has a missing or invalid `{}`, which must not be NULL",
                        field.name()
                    ),
                )
                .advice("check the column's pointer, type and `pattern` in the profile, or set null = true"));
            }
        }
        let ids = self.id.map(|id| hashes(&columns[id]));
        let times = self.time.map(|time| micros(&columns[time]));
        if let Some(starts) = times.as_ref().filter(|_| self.needs_section && self.table.kind == TableKind::Volume) {
            check_days(starts)?;
        }
        let keys = self.sort_keys(request, &columns);
        let versions = self.version.map(|version| micros(&columns[version]));
        let traits = ids.as_ref().and(times.as_ref()).map(|times| self.traits(times, &columns));
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| Error::new(ErrorKind::Contradiction, format!("cannot build the record batch: {error}")))?;
        let unknown = self.unknown(&batch);
        let window = self.window(&answer, request)?.filter(|(from, to)| from < to);
        let as_of = self.instant(&answer, request, AS_OF, "`as_of` in [complete]")?;
        let timeline = self.timeline.as_ref().and_then(|counts| counts_of(request, &answer, counts));
        let in_zone = answer.text(ECHO_TIMEZONE).is_some();
        let counted_days = timeline.as_ref().and_then(|buckets| self.counted_days(buckets, in_zone));
        let timeline = timeline.as_deref().and_then(sum_of);
        let mut sums: Vec<u64> =
            self.lists.iter().filter_map(|counts| sum_of(&counts_of(request, &answer, counts)?)).collect();
        sums.sort_unstable();
        let listed = sums.last().copied();
        let lists = sums.windows(2).rev().find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let next = answer.text(NEXT).map(Cow::into_owned).filter(|next| !next.is_empty());
        let is_list = self.table.kind == TableKind::List;
        let cursor =
            next.as_deref().filter(|_| !is_list).map(|next| self.profile.offset.cursor_of(next)).transpose()?;
        let Envelope { entries, evidence, .. } = answer;
        let decoded = Decoded {
            batch,
            ids,
            times,
            keys,
            versions,
            total,
            hint,
            conflicts,
            mended: 0,
            unnamed,
            records: count as u64,
            present,
            unknown,
            beside: Beside { overview: counted, timeline, listed, lists },
            counted_days,
            as_of,
            more: evidence.more(),
            next: cursor,
            window,
            assumed,
            traits,
        };
        Ok((decoded, Ends { next, entries, evidence }))
    }

    /// Checks that the records of a response whose instants are days have no field with the time of day.
    fn check_time_of_day(&self, text: &str) -> Result<()> {
        let (Some(section), Ok(body)) = (self.table.sections.first(), serde_json::from_str::<serde_json::Value>(text))
        else {
            return Ok(());
        };
        let Some(record) = body.pointer(&section.at.to_string()).and_then(|records| records.get(0)) else {
            return Ok(());
        };
        let declared = self.table.columns.iter().filter_map(|column| match &column.origin {
            Origin::Field(at, Scope::Record) => Some(at.to_string()),
            _ => None,
        });
        let declared: Vec<String> = declared.collect();
        // `10:12`, or digits under a name that says so. A length looks like a time.
        let is_time = |at: &str, value: &serde_json::Value| {
            let (at, text) = (at.to_lowercase(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let clock = text.split_once(':').is_some_and(|(hour, rest)| {
                let minute = rest.get(..2).unwrap_or_default();
                let below = |text: &str, bound: u8| text.parse::<u8>().is_ok_and(|number| number < bound);
                below(hour, 24) && minute.len() == 2 && below(minute, 60)
            });
            let length = ["duration", "length", "runtime", "offset"].iter().any(|word| at.contains(word));
            !length && (clock || (at.contains("time") && digits(&text) && (4..=6).contains(&text.len())))
        };
        let mut fields = Vec::new();
        for (name, value) in record.as_object().into_iter().flatten() {
            let at = Pointer::of([name.as_str()]);
            let inner = value.as_object().into_iter().flatten();
            fields.extend(inner.map(|(name, value)| (at.join(&Pointer::of([name.as_str()])).to_string(), value)));
            fields.push((at.to_string(), value));
        }
        let Some((at, value)) = fields.iter().find(|(at, value)| is_time(at, value) && !declared.contains(at)) else {
            return Ok(());
        };
        let time = self.table.time.as_deref().unwrap_or_default();
        let message = format!(
            "`{time}` is a day without a time, and the field `{at}` of the records has a time, such as {value}"
        );
        Err(Error::new(ErrorKind::Contradiction, message).advice(format!(
            "add time_at = \"{at}\" to the column `{time}` in the profile, or a column for that field if it is another time"
        )))
    }

    /// Checks that nothing in a response says that it is incomplete.
    fn check_complete(&self, answer: &Envelope<'_>) -> Result<()> {
        for (slot, CompleteField { at, values }) in &self.complete {
            let Some(value) = answer.raw(*slot).filter(|raw| !raw.is_null()) else { continue };
            let text = value.unquoted()?;
            if values.as_ref().is_some_and(|values| !values.iter().any(|known| *known == *text)) {
                return Err(evidence::incomplete(&at.to_string(), &evidence::shown(value)));
            }
        }
        answer.evidence.check()
    }

    /// The fields in the column `extra`, each with the number of records that have it.
    fn unknown(&self, batch: &RecordBatch) -> Vec<(String, u64)> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let texts = self.extra.and_then(|extra| batch.column(extra).as_string_opt::<i32>());
        for text in texts.into_iter().flatten().flatten().filter(|text| *text != "{}") {
            places::each(text, |at| *found.entry(at.to_owned()).or_default() += 1);
        }
        found.into_iter().collect()
    }

    /// Derives an id from the `stand_in` columns for rows without one, and returns the number of such rows.
    fn name(&self, request: &PageRequest, text: &str, columns: &mut [ArrayRef]) -> Result<u64> {
        let Some(at) = self.id.filter(|id| columns[*id].null_count() > 0 && !self.table.stand_in.is_empty()) else {
            return Ok(0);
        };
        let stand_in: Vec<usize> = (0..self.table.columns.len())
            .filter(|c| self.table.stand_in.contains(&self.table.columns[*c].name))
            .collect();
        let table =
            TableSpec { id: None, time: None, version: None, stand_in: Vec::new(), ..self.table.as_ref().clone() };
        let decoder = Self::new(Arc::clone(&self.profile), Arc::new(table), &stand_in);
        let parts = decoder.decode_text(request, text)?.0.batch;
        let parts: Vec<ArrayRef> = parts
            .columns()
            .iter()
            .map(|part| arrow::compute::cast(part, &DataType::Utf8))
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| {
                Error::new(ErrorKind::Profile, format!("cannot cast the `stand_in` columns to text: {error}"))
            })?;
        let known = columns[at].as_string::<i32>();
        let named = |row: usize| {
            if known.is_valid(row) {
                return Some(known.value(row).to_owned());
            }
            let mut digest = Sha256::new();
            for part in &parts {
                let part = part.as_string::<i32>();
                let part = part.is_valid(row).then(|| part.value(row));
                digest.update(part.map_or(u64::MAX, |part| part.len() as u64).to_le_bytes());
                digest.update(part.unwrap_or_default());
            }
            let any = parts.iter().any(|part| part.is_valid(row));
            any.then(|| digest.finalize()[..12].iter().fold(DERIVED.to_owned(), |id, byte| format!("{id}{byte:02x}")))
        };
        let ids: StringArray = (0..known.len()).map(named).collect();
        let unnamed = known.null_count() - ids.null_count();
        columns[at] = Arc::new(ids);
        Ok(unnamed as u64)
    }

    /// Checks that no two rows have the same derived id, where no total shows if they are one mention or two.
    fn check_stand_ins(&self, columns: &[ArrayRef]) -> Result<()> {
        let ids = self.id.and_then(|id| columns[id].as_string_opt::<i32>());
        let mut seen = HashSet::new();
        let mut derived = ids.into_iter().flatten().flatten().filter(|id| id.starts_with(DERIVED));
        if derived.all(|id| seen.insert(id)) {
            return Ok(());
        }
        let columns = self.table.stand_in.join("`, `");
        let message = format!(
            "two mentions of a response have no id and are equal in `{columns}`: they may be one or two, and no total is exact"
        );
        Err(Error::new(ErrorKind::Contradiction, message)
            .advice("add columns in which they differ to `stand_in` in the profile, or declare [total]"))
    }

    /// Traits that distinguish mentions apart from their ids.
    fn traits<'c>(&self, times: &[i64], columns: &'c [ArrayRef]) -> Vec<Traits> {
        let column =
            |name: &str| self.schema.index_of(name).ok().and_then(|at| columns.get(at)?.as_string_opt::<i32>());
        let texts = [column("url"), column("source")];
        let of = |row: usize| {
            let text = |column: Option<&'c StringArray>| {
                column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
            };
            let hashed = |text: &str| {
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                hasher.finish()
            };
            let [url, source] = texts.map(text);
            let (url, source) = (url.map(|url| hashed(place_of(url))), source.map(hashed));
            Traits::new(times[row], url, source)
        };
        (0..times.len()).map(of).collect()
    }

    /// The ends of the buckets that count mentions. `in_zone`: set if the response repeats the zone of its days.
    fn counted_days(&self, buckets: &[(serde_json::Value, u64)], in_zone: bool) -> Option<CountedDays> {
        let (at, form) = self.start.as_ref()?;
        let mut instants = Instants::of(form.clone());
        let starts = buckets.iter().map(|(bucket, count)| {
            let start = match at.member_of(bucket)? {
                serde_json::Value::String(text) => instants.read(text),
                serde_json::Value::Number(number) => instants.read(&number.to_string()),
                _ => None,
            };
            Some((start?, *count))
        });
        let mut starts = starts.collect::<Option<Vec<(i64, u64)>>>()?;
        starts.sort_unstable();
        let counting = |(_, count): &(i64, u64)| *count > 0;
        let first = starts.iter().position(counting)?;
        let last = starts.iter().rposition(counting)?;
        let first_end = starts.get(first + 1).map(|(start, _)| *start);
        let zoned = in_zone && instants.assumed.is_none() && instants.days == 0;
        Some(CountedDays { first_end, last_start: starts[last].0, instants: zoned })
    }

    /// Numbers in the order in which the service sorts the rows, if that is by another column than the time.
    fn sort_keys(&self, request: &PageRequest, columns: &[ArrayRef]) -> Option<Vec<i64>> {
        let sort = self.profile.sort.values.iter().find(|sort| Some(&sort.value) == request.plan.sort.as_ref())?;
        let at = self.schema.index_of(&sort.column).ok().filter(|_| Some(&sort.column) != self.table.time.as_ref())?;
        let column = columns.get(at)?;
        let null = match (sort.direction, sort.nulls) {
            (Direction::Asc, Nulls::First) | (Direction::Desc, Nulls::Last) => i64::MIN,
            (Direction::Asc, Nulls::Last) | (Direction::Desc, Nulls::First) => i64::MAX,
        };
        Some(match column.data_type() {
            DataType::Int64 => column.as_primitive::<Int64Type>().iter().map(|key| key.unwrap_or(null)).collect(),
            DataType::Float64 => {
                // The bits of floats, as IEEE 754 orders them.
                let number = |key: f64| {
                    let bits = (key + 0.0).to_bits().cast_signed();
                    if bits < 0 { bits ^ i64::MAX } else { bits }
                };
                column.as_primitive::<Float64Type>().iter().map(|key| key.map_or(null, number)).collect()
            }
            DataType::Timestamp(..) => {
                column.as_primitive::<TimestampMicrosecondType>().iter().map(|key| key.unwrap_or(null)).collect()
            }
            _ => return None,
        })
    }

    /// True if a response repeats the offset rounded down to a multiple of the page size.
    fn is_rounded(&self, request: &PageRequest, echoed: &str) -> bool {
        let rounded = request.row - request.row % request.size.max(1);
        let further = request.plan.pages.is_some_and(|pages| request.row > pages.skip);
        further
            && self.profile.offset.reaches_any_row()
            && self.profile.offset.of(rounded, request.size).is_some_and(|offset| Ok(offset) == echoed.parse())
    }

    /// The window that the response reports; `None` if one of its ends is no instant ([`instant`](Self::instant)).
    fn window(&self, answer: &Envelope<'_>, request: &PageRequest) -> Result<Option<(DateTime<Utc>, DateTime<Utc>)>> {
        let end = |slot| self.instant(answer, request, slot, "`from` and `to` in [echo]");
        Ok(end(WINDOW_FROM)?.zip(end(WINDOW_TO)?))
    }

    /// An instant outside the records. Local times are those of the column with the time of mentions, or else of UTC. `None` if
    /// it is absent, if its zone is not known, or if it is a day, which a window may include or not. `entry`: the profile's entry
    /// for it.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] for a value that is no instant: what the response covers would not be noticed.
    fn instant(
        &self,
        answer: &Envelope<'_>,
        request: &PageRequest,
        slot: usize,
        entry: &str,
    ) -> Result<Option<DateTime<Utc>>> {
        /// Instants before 1973, in seconds: numbers that are something else.
        const EARLY: i64 = 100_000_000;
        let mentions = &self.profile.tables.mentions;
        let of_time = mentions.time.as_ref().and_then(|time| mentions.column(time)).and_then(|column| column.zone);
        let requested = request.plan.zone(&self.profile);
        let Some(text) = answer.text(slot) else { return Ok(None) };
        let mut instants = Instants::of(InstantForm { pattern: None, zone: of_time });
        match instants.read(&text) {
            Some(_) if instants.days > 0 => Ok(None),
            // It may be a time of UTC or of the requested zone.
            Some(_) if instants.assumed.is_some() && requested != Zone::UTC => Ok(None),
            Some(at) => Ok(Some(at).filter(|at| *at > EARLY * 1_000_000).and_then(DateTime::from_timestamp_micros)),
            // The words that were requested, such as `now`.
            None if !(text.len() >= 8 && text.starts_with(|first: char| first.is_ascii_digit())) => Ok(None),
            None => {
                let value: String = text.chars().take(100).collect();
                let message = format!("a time that the response reports cannot be read: `{value}` is no instant");
                Err(Error::new(ErrorKind::Contradiction, message)
                    .advice(format!("correct or remove {entry} of the profile")))
            }
        }
    }

    /// True if a response names the requested zone otherwise.
    fn is_same_zone(&self, asked: &str, echoed: &str) -> bool {
        if self.same_zone.get().is_some_and(|known| known == echoed) {
            return true;
        }
        let (Ok(asked), Some(other)) = (asked.parse::<Zone>(), Zone::named_otherwise(echoed)) else { return false };
        let same = asked.has_rules_of(other);
        if same {
            self.same_zone.get_or_init(|| echoed.to_owned());
        }
        same
    }

    fn check_echoes(&self, request: &PageRequest, answer: &Envelope<'_>) -> Result<()> {
        let plan = request.plan.as_ref();
        let offset = plan.pages.and_then(|_| self.profile.offset.of(request.row, request.size));
        let offset = offset.map(|offset| offset.to_string());
        for (slot, asked, what) in [
            (ECHO_AID, plan.aid.as_deref(), "aid"),
            (ECHO_TIMEZONE, plan.timezone.as_deref(), "timezone"),
            (ECHO_OFFSET, offset.as_deref(), "offset"),
        ] {
            // A JSON number may be written as `100.0`; the text `0100` is the key of another saved search.
            let is_number = answer.raw(slot).is_some_and(|raw| matches!(raw.first(), b'0'..=b'9' | b'-'));
            let number = |text: &str| integer_of(text).filter(|_| is_number || slot == ECHO_OFFSET);
            let plain = |text: &str| number(text).filter(|number| slot == ECHO_OFFSET || number.to_string() == text);
            if let (Some(asked), Some(echoed)) = (asked, answer.text(slot))
                && *asked != *echoed
                && (slot == ECHO_TIMEZONE || plain(asked).is_none() || plain(asked) != number(&echoed))
                && !(slot == ECHO_TIMEZONE && self.is_same_zone(asked, &echoed))
                // An offset that was rounded down shows in the rows.
                && !(slot == ECHO_OFFSET && self.is_rounded(request, &echoed))
            {
                return Err(Error::new(
                    ErrorKind::Contradiction,
                    format!("requested {what} `{asked}`, but the response is for `{}`", echoed),
                )
                .advice("the service ignores the parameter or uses another name for it; check the profile")
                .passing());
            }
        }
        let words = request.frozen.as_deref().or(plan.duration.as_deref());
        let asked = words.and_then(|words| self.profile.window.span_of(words, plan.zone(&self.profile)));
        match (asked, self.window(answer, request)?) {
            // A window without any instant: the service has no data for what was requested.
            (_, Some((since, until))) if until <= since => Err(Error::new(
                ErrorKind::Contradiction,
                match asked {
                    Some((from, to)) => {
                        format!("requested {from} to {to}, but the response covers nothing of it: {since} to {until}")
                    }
                    None => format!("the response covers an empty window: {since} to {until}"),
                },
            )
            .advice(
                "the service may keep mentions for a shorter time: check [window] in the profile, whose `earliest` is the \
                 beginning of the data",
            )),
            // A service may clip a window to its data, at the beginning and at the current time.
            (Some((from, to)), Some((since, until))) if until <= from || to <= since => Err(Error::new(
                ErrorKind::Contradiction,
                format!("requested {from} to {to}, but the response is for {since} to {until}"),
            )
            .advice("the service ignores the time window or interprets it differently; check [window] in the profile")
            .passing()),
            _ => Ok(()),
        }
    }
}

/// Texts that consist of the values of several columns, with `:` between them; NULL if one of them is.
fn joined_texts(parts: &[ArrayRef]) -> ArrayRef {
    let parts: Vec<&StringArray> = parts.iter().filter_map(|part| part.as_string_opt::<i32>()).collect();
    let rows = parts.first().map_or(0, |part| part.len());
    let text = |row: usize| {
        let values = parts.iter().map(|part| part.is_valid(row).then(|| part.value(row)));
        values.collect::<Option<Vec<&str>>>().map(|values| values.join(":"))
    };
    Arc::new((0..rows).map(text).collect::<StringArray>())
}

/// Joins days and times of day, and counts those that are none.
fn joined_instants(instants: &mut Instants, days: &ArrayRef, times: &ArrayRef) -> (ArrayRef, u64) {
    let (mut builder, mut unfit) = (TimestampMicrosecondBuilder::new().with_timezone("UTC"), 0);
    for (day, time) in days.as_string::<i32>().iter().zip(times.as_string::<i32>()) {
        let instant = match (day, time) {
            (Some(day), Some(time)) => joined(instants, day, time),
            (Some(day), None) => instants.read(day),
            (None, _) => None,
        };
        unfit += u64::from(instant.is_none() && day.is_some());
        builder.append_option(instant);
    }
    (Arc::new(builder.finish()), unfit)
}

/// Captured counts beside the first page, each with its entry; `None` if they have other values than counts.
fn counts_of(
    request: &PageRequest,
    answer: &Envelope<'_>,
    (slot, count): &(usize, Option<Pointer>),
) -> Option<Vec<(serde_json::Value, u64)>> {
    // One response is enough, and further pages are decoded faster without.
    let first = request.row <= request.plan.pages.map_or(0, |pages| pages.skip);
    let entries = answer.raw(*slot).filter(|_| first)?;
    let entries = match serde_json::from_str(entries.text).ok()? {
        serde_json::Value::Array(entries) => entries,
        serde_json::Value::Object(entries) => entries.into_iter().map(|(_, entry)| entry).collect(),
        _ => return None,
    };
    let counted = entries.into_iter().map(|entry| {
        let number = count.as_ref().map_or(Some(&entry), |count| count.member_of(&entry))?.as_u64()?;
        Some((entry, number))
    });
    counted.collect()
}

fn sum_of(counts: &[(serde_json::Value, u64)]) -> Option<u64> {
    counts.iter().try_fold(0, |sum: u64, (_, count)| sum.checked_add(*count))
}

fn constant(value: Option<&str>, count: usize) -> ArrayRef {
    Arc::new(match value {
        Some(value) => StringArray::new_repeated(value, count),
        None => StringArray::new_null(count),
    })
}

/// Microseconds of a timestamp column; `i64::MIN` for NULL.
fn micros(column: &ArrayRef) -> Vec<i64> {
    let column = column.as_primitive::<TimestampMicrosecondType>();
    match column.null_count() {
        0 => column.values().to_vec(),
        _ => column.iter().map(|at| at.unwrap_or(i64::MIN)).collect(),
    }
}

/// Checks that entries of a timeline, given by their starts in microseconds, can be days. The first one may be the part of a day in
/// which the window begins, and days without mentions may be missing.
///
/// # Errors
/// [`ErrorKind::Contradiction`] if entries are hours apart, or all by the same number of days.
fn check_days(starts: &[i64]) -> Result<()> {
    const HOUR: i64 = 3_600_000_000;
    let mut starts: Vec<i64> = starts.iter().copied().filter(|start| *start != i64::MIN).collect();
    starts.sort_unstable();
    starts.dedup();
    let apart: Vec<i64> = starts.windows(2).skip(1).map(|pair| (pair[1] - pair[0] + HOUR / 2) / HOUR).collect();
    let (Some(least), Some(most)) = (apart.iter().min(), apart.iter().max()) else { return Ok(()) };
    let what = match apart.len() {
        // Clocks are changed by two hours at most.
        _ if *least < 22 => format!("{least} h"),
        3.. if *least > 26 && most - least <= 2 => format!("{} days", (least + 2) / 24),
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::Contradiction, format!("the entries of the timeline are {what} apart, and are no days"))
        .advice("count mentions by day: SELECT published_at::date, count(*) FROM mentions … GROUP BY 1"))
}

/// A hash of each value. The hasher's keys are fixed, so equal ids have equal hashes on every page.
fn hashes(column: &ArrayRef) -> Vec<u64> {
    let hash = |value: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        value(&mut hasher);
        hasher.finish()
    };
    match column.data_type() {
        DataType::Int64 => {
            column.as_primitive::<Int64Type>().values().iter().map(|id| hash(&|hasher| id.hash(hasher))).collect()
        }
        // The profile allows strings and integers as ids.
        _ => column.as_string::<i32>().iter().map(|id| hash(&|hasher| id.hash(hasher))).collect(),
    }
}

#[cfg(test)]
mod tests;
