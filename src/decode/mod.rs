//! Decodes the bytes of an answer into a record batch of the requested columns.
//!
//! ```text
//! body ─ envelope ─▶ echoes, total, answer-level values
//!            └─ sections ─ record ─▶ raw value of each wanted field ─ value ─▶ column builders ─▶ RecordBatch
//! ```
//!
//! The body is read in one pass, also for several tables (`decode_tables`). The text of each value is found once, and that of a
//! wanted one is converted by this module's own rules, so that ids and counts never pass through a float. A value that does not fit
//! its column becomes NULL, is counted, and stays in `extra` if that column is wanted; nothing is rounded or guessed. If an object
//! has a wanted name twice, that is an error, because JSON does not define which value counts.
//!
//! `layout` decides which values are read, `echoes` compares what a response repeats, and `derived` computes what follows from
//! rows.
//!
//! Invariant: a batch is returned only if the entire body is valid JSON, its echoes agree with the request, and every
//! non-nullable column has a value in each row.

mod accuracy;
mod body;
mod columns;
mod derived;
mod echoes;
mod envelope;
mod estimate;
mod evidence;
mod json;
mod layout;
mod list;
mod lossy_utf8;
mod places;
mod pointer_tree;
mod record;
mod schema;
mod value;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

pub(crate) use self::body::decode_tables;
#[cfg(test)]
pub(crate) use self::body::passes;
pub(crate) use self::estimate::{CountPlaces, Estimates, ListPlace};
pub use self::evidence::Rest;
pub(crate) use self::list::{OneRowAnAid, check_aids, entries_of};
pub(crate) use self::schema::in_zone_of;
pub use self::schema::{arrow_schema, data_type};

use self::body::read_body;
use self::columns::{check_days, constant, counts_of, hashes, joined_instants, joined_texts, micros, sum_of};
use self::envelope::{Envelope, Reading};
use self::evidence::{Evidence, count_of};
use self::pointer_tree::Tree;
use self::record::Rows;
use self::value::{Column, InstantForm, Instants};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{
    ColumnType, CompleteField, Origin, Pointer, Profile, Scope, SectionSpec, TableKind, TableSpec, Trust,
};
use crate::request::{Beside, CountedDays, Echo, Hint, PageRequest, Traits};

/// A bucket of a timeline: its start, and its end if the response has it, in microseconds since 1970, and its count of mentions.
pub type CountedBucket = ((i64, Option<i64>), u64);

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
    /// The member that does not call the totals of the response exact, with its value.
    pub inexact: Option<String>,
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
    /// The buckets of that timeline, in order, if their labels are instants.
    pub buckets: Option<Arc<[CountedBucket]>>,
    /// Member of the response that says that more mentions follow, with its value.
    pub more: Option<String>,
    /// Describes the member of the response that may say that it is not complete, if there is one.
    pub doubt: Option<String>,
    /// Cursor of the next page, if the profile says where it is and there is one.
    pub next: Option<String>,
    /// The window that the response reports, and the requested one.
    pub echo: Echo,
    /// First and last instant of the time column that have no zone and are taken for UTC.
    pub assumed: Option<(i64, i64)>,
    /// Traits of mentions that distinguish them apart from their ids, as far as they were requested: time, url and source.
    pub traits: Option<Vec<Traits>>,
}

/// The columns of a response, as they are built.
struct Columns {
    columns: Vec<ArrayRef>,
    /// Values that did not fit their column and became NULL.
    conflicts: u64,
    /// First and last instant of the time column that have no zone and are taken for UTC.
    assumed: Option<(i64, i64)>,
    /// Number of its instants that are days without a time.
    days: usize,
}

/// The days that a timeline counts, and its buckets if their labels are instants.
type Days = (CountedDays, Option<Arc<[CountedBucket]>>);

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
    /// Place in a record of the cursor of the page that follows it.
    last: Option<Pointer>,
    /// Other name of the requested zone that responses use.
    same_zone: OnceLock<String>,
    /// Captured counts beside mentions, with the place of the count in each entry: of the timeline, and of lists.
    timeline: Option<(usize, Option<Pointer>)>,
    /// Start of a bucket in its entry.
    start: Option<(Pointer, InstantForm)>,
    /// End of a bucket, likewise.
    end: Option<(Pointer, InstantForm)>,
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
        match Self::plain(&word).as_str() {
            "eq" | "equal" | "equals" | "equalto" | "exact" | "=" | "==" | "true" => Self::Exact,
            "<" | "<=" | "≤" | "~" | "≈" => Self::About,
            word if ABOUT.contains(&word) => Self::About,
            _ => Self::AtLeast,
        }
    }

    /// True for a word that is known to mean a lower bound.
    fn is_lower_bound(word: &str) -> bool {
        const AT_LEAST: [&str; 9] = ["atleast", "ge", "gt", "gte", "lowerbound", "minimum", ">", ">=", "≥"];
        AT_LEAST.contains(&Self::plain(word).as_str())
    }

    /// A word without the differences of notation.
    fn plain(word: &str) -> String {
        word.to_lowercase().chars().filter(|character| !" _-".contains(*character)).collect()
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

/// Records that an answer may have even if fewer were requested.
const MOST: usize = 100_000;

impl Decoder {
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
        read_body(&[(self, request)], &CountPlaces::default(), body).0.swap_remove(0)
    }

    /// Begins to read the table.
    fn reading<'t>(&self, request: &PageRequest) -> Reading<'_, 't> {
        let most = usize::try_from(request.size).unwrap_or(usize::MAX).saturating_mul(100).max(MOST);
        Reading::new(self, Rows::new((&self.records, self.objects), &self.columns, self.origins, most))
    }

    /// Builds the table from what was read of a text.
    fn build(
        &self,
        request: &PageRequest,
        text: &str,
        answer: Envelope<'_>,
        rows: Rows<'_, '_>,
    ) -> Result<(Decoded, Ends)> {
        let echo = self.check_echoes(request, &answer)?;
        self.check_complete(&answer)?;
        let counted = answer.raw(COUNTED).and_then(count_of);
        let inexact = self.inexact(&answer);
        let exact = inexact.is_none() && Relation::of(answer.text(COUNTED_RELATION)) == Relation::Exact;
        let counted: Option<u64> = counted.filter(|_| exact);
        self.check_sections(request, &answer, counted)?;
        let (total, hint) = self.total_of(request, &answer, inexact.is_some())?;
        let count = rows.count;
        let present = self.fields.iter().map(|(column, slot)| (*column, rows.present(*slot))).collect();
        let Columns { mut columns, conflicts, assumed, days } = self.columns_of(request, &answer, rows)?;
        if days > 0 && days == count && request.row == 0 {
            self.check_time_of_day(text)?;
        }
        let unnamed = self.name(request, text, &mut columns)?;
        if unnamed > 0 && total.is_none() {
            self.check_stand_ins(&columns)?;
        }
        self.check_nulls(&columns, count)?;
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
        let (beside, days) = self.beside(request, &answer, counted);
        let (counted_days, buckets) = days.unzip();
        let (total, hint, beside) = self.unless_of_page(request, count as u64, (total, hint), beside);
        let next = answer.text(NEXT).map(Cow::into_owned).filter(|next| !next.is_empty());
        let cursor = self.cursor_of(&answer, next.as_deref())?;
        let Envelope { entries, evidence, .. } = answer;
        let decoded = Decoded {
            batch,
            ids,
            times,
            keys,
            versions,
            total,
            hint,
            inexact,
            conflicts,
            mended: 0,
            unnamed,
            records: count as u64,
            present,
            unknown,
            beside,
            counted_days,
            buckets: buckets.flatten(),
            more: evidence.more(),
            doubt: evidence.doubt(),
            next: cursor,
            echo,
            assumed,
            traits,
        };
        Ok((decoded, Ends { next, entries, evidence }))
    }

    /// Builds the columns, in their order.
    fn columns_of(&self, request: &PageRequest, answer: &Envelope<'_>, rows: Rows<'_, '_>) -> Result<Columns> {
        let (count, mut conflicts) = (rows.count, rows.conflicts);
        let time = self.time.map(|time| self.sources[time]);
        let (mut assumed, mut days) = match time {
            Some(Source::Row(slot)) => rows.instants(slot),
            _ => (None, 0),
        };
        if let Some((slot, text)) = rows.ambiguous() {
            let column = self.sources.iter().position(|source| *source == Source::Row(slot));
            return Err(ambiguous(column.map(|column| self.schema.field(column).name().as_str()), text));
        }
        let mut built = rows.finish();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.sources.len());
        for (source, field) in self.sources.iter().zip(self.schema.fields()) {
            columns.push(match *source {
                Source::Row(slot) => built.array(slot),
                Source::Joined(pair) => {
                    let ([day, time_of_day], form) = &self.joined[pair];
                    let mut instants = Instants::of(form.clone());
                    let (dates, times) = (built.array(*day), built.array(*time_of_day));
                    let (array, unfit) = joined_instants(&mut instants, &dates, &times);
                    if let Some(text) = &instants.ambiguous {
                        return Err(ambiguous(Some(field.name().as_str()), text));
                    }
                    conflicts += unfit;
                    if time == Some(*source) {
                        (assumed, days) = (instants.assumed, instants.days);
                    }
                    array
                }
                Source::Texts(parts) => {
                    let parts: Vec<ArrayRef> = self.texts[parts].iter().map(|slot| built.array(*slot)).collect();
                    joined_texts(&parts)
                }
                Source::Answer(capture, slot) => {
                    let (array, fits) = self.columns[slot].repeat(answer.raw(capture), count)?;
                    conflicts += u64::from(!fits);
                    array
                }
                Source::Aid => constant(request.plan.aid.as_deref(), count),
                Source::Duration => constant(request.plan.named_window(), count),
                Source::Timezone => constant(request.plan.timezone.as_deref(), count),
                Source::Later => arrow::array::new_null_array(field.data_type(), count),
            });
        }
        Ok(Columns { columns, conflicts, assumed, days })
    }

    /// Checks that columns have no NULL if the profile allows none.
    fn check_nulls(&self, columns: &[ArrayRef], count: usize) -> Result<()> {
        let mut columns = columns.iter().zip(self.schema.fields());
        let Some((column, field)) = columns.find(|(column, field)| !field.is_nullable() && column.null_count() > 0)
        else {
            return Ok(());
        };
        let row = (0..count).find(|row| column.is_null(*row)).unwrap_or_default();
        Err(Error::new(
            ErrorKind::Contradiction,
            format!("record {row} of the response has a missing or invalid `{}`, which must not be NULL", field.name()),
        )
        .advice("check the column's pointer, type and `pattern` in the profile, or set null = true"))
    }

    /// The counts beside the rows, and the days that they count. `overview`: the mentions that the overview counts.
    fn beside(&self, request: &PageRequest, answer: &Envelope<'_>, overview: Option<u64>) -> (Beside, Option<Days>) {
        let timeline = self.timeline.as_ref().and_then(|counts| counts_of(request, answer, counts));
        let in_zone = answer.text(ECHO_TIMEZONE).is_some();
        let counted_days = timeline.as_ref().and_then(|buckets| self.counted_days(buckets, in_zone));
        let timeline = timeline.as_deref().and_then(sum_of);
        let mut sums: Vec<u64> =
            self.lists.iter().filter_map(|counts| sum_of(&counts_of(request, answer, counts)?)).collect();
        sums.sort_unstable();
        let listed = sums.last().copied();
        let lists = sums.windows(2).rev().find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        (Beside { overview, timeline, listed, lists }, counted_days)
    }

    /// The cursor of the next page. `next`: its place, as the response writes it.
    fn cursor_of(&self, answer: &Envelope<'_>, next: Option<&str>) -> Result<Option<String>> {
        let next = next.filter(|_| self.table.kind != TableKind::List);
        let cursor = next.map(|next| self.profile.offset.cursor_of(next)).transpose()?;
        Ok(cursor.or(self.cursor_of_last(answer)?))
    }

    /// Checks that the response has the sections of the table. `counted`: the mentions that it counts.
    fn check_sections(&self, request: &PageRequest, answer: &Envelope<'_>, counted: Option<u64>) -> Result<()> {
        // An overview that stands beside no mentions has none of their sections.
        let apart = self.table.kind == TableKind::Mentions && request.plan.pages.is_none();
        let mut sections = self.table.sections.iter().zip(&answer.sections).filter(|_| !self.continues && !apart);
        if let Some((SectionSpec { at: missing, .. }, _)) = sections.find(|(spec, there)| !spec.optional && !**there) {
            return Err(Error::new(ErrorKind::Contradiction, format!("the response has no `{missing}`"))
                .advice("check the `sections` of this table in the profile, or set optional = true"));
        }
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
        Ok(())
    }

    /// The member that does not call the totals of the response exact, with its value, apart from the declared relations.
    fn inexact(&self, answer: &Envelope<'_>) -> Option<String> {
        let counted = self.profile.counted_total().map(|(total, _)| total);
        let totals: Vec<&Pointer> = self.profile.total.at.iter().chain(&counted).collect();
        answer.evidence.inexact(&totals)
    }

    /// The total of the response, or else the hint that it gives instead. `inexact`: set if the response does not call it exact.
    fn total_of(
        &self,
        request: &PageRequest,
        answer: &Envelope<'_>,
        inexact: bool,
    ) -> Result<(Option<u64>, Option<Hint>)> {
        let told = answer.raw(TOTAL).filter(|raw| !raw.is_null() && request.plan.pages.is_some());
        let relation = if inexact { Relation::About } else { Relation::of(answer.text(RELATION)) };
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
        Ok((total, hint))
    }

    /// The numbers of a response without those that count the rows of its full page: they may be the number of these rows, rather than
    /// of all mentions. A timeline or a list that adds up to as many shows that they are all.
    fn unless_of_page(
        &self,
        request: &PageRequest,
        rows: u64,
        (total, hint): (Option<u64>, Option<Hint>),
        beside: Beside,
    ) -> (Option<u64>, Option<Hint>, Beside) {
        let of_mentions = self.table.kind == TableKind::Mentions && request.plan.pages.is_some();
        let shown = [beside.timeline, beside.listed].contains(&Some(rows));
        if !of_mentions || rows == 0 || rows < request.size || shown {
            return (total, hint, beside);
        }
        let overview = beside.overview.filter(|overview| *overview != rows);
        let hint = if total == Some(rows) { Some(Hint::AtLeast(rows)) } else { hint };
        (total.filter(|total| *total != rows), hint, Beside { overview, ..beside })
    }

    /// The cursor of the page that follows the last record of a response, if records have cursors.
    fn cursor_of_last(&self, answer: &Envelope<'_>) -> Result<Option<String>> {
        let (Some(at), Some(record)) = (&self.last, answer.last) else { return Ok(None) };
        let cursor = envelope::text_below(record, at)?.filter(|cursor| !cursor.is_empty());
        let cursor = cursor.ok_or_else(|| {
            let message = format!("the last record of the response has no `{at}`, which requests the page after it");
            Error::new(ErrorKind::Contradiction, message).advice("check `last` in [offset] of the profile")
        });
        cursor.map(Some)
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
}

/// The error for a time that is another instant in each of the zones that its column may be of.
fn ambiguous(column: Option<&str>, text: &str) -> Error {
    let of = column.map(|column| format!(" of `{column}`")).unwrap_or_default();
    Error::new(
        ErrorKind::Contradiction,
        format!("the time `{text}`{of} has no zone, and the zones that it may be of do not agree on it"),
    )
    .advice("set `zone` of the column in the profile to the zone of the service")
}

#[cfg(test)]
mod tests;
