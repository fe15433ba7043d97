//! Bytes of an answer to a record batch: the columns asked for, and nothing else.
//!
//! ```text
//! body ─ envelope ─▶ echoes, total, values of the whole answer
//!            └─ sections ─ record ─▶ raw value of each wanted field ─ value ─▶ column builders ─▶ RecordBatch
//! ```
//!
//! One pass over the body. Every wanted field is cut out as raw JSON text and converted by this module's own rules, so
//! that ids and counts never pass through a float. A value that does not fit its column becomes NULL, is counted,
//! and stays in `extra` where that column is wanted; nothing is rounded and nothing is guessed.
//!
//! Invariant: a batch leaves only if the whole body was valid JSON, its echoes agree with the question, and every
//! column that may not be NULL has a value in each row.

mod envelope;
mod lossy_utf8;
mod places;
mod pointer_tree;
mod record;
mod schema;
mod value;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{DataType, Int64Type, SchemaRef, TimestampMicrosecondType};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

pub use self::schema::{arrow_schema, data_type};

use self::envelope::Envelope;
use self::pointer_tree::Tree;
use self::record::Rows;
use self::value::ColumnBuilder;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{Origin, Profile, Scope, SectionSpec, Shape, TableSpec, Trust};
use crate::request::PageRequest;

/// A decoded answer.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The columns asked for, in the order asked for.
    pub batch: RecordBatch,
    /// Hashes of the id column, where the table has one and it was asked for.
    pub ids: Option<Vec<u64>>,
    /// The instants of the time column, in microseconds since 1970, likewise.
    pub times: Option<Vec<i64>>,
    /// When rows were last changed, likewise; the least number where a row does not tell.
    pub versions: Option<Vec<i64>>,
    /// Records in the whole, where the answer says so and the profile believes it.
    pub total: Option<u64>,
    /// About how many records there are in the whole, where that is all that the answer says or the profile believes.
    pub hint: Option<u64>,
    /// Values that did not fit their column and became NULL.
    pub conflicts: u64,
    /// Places in texts that say no character and were replaced.
    pub mended: u64,
    /// Rows without an id, which were given one made of other columns.
    pub unnamed: u64,
    /// Records that the answer had.
    pub records: u64,
    /// For each column that is a field of the record, by its position: in how many records the field came, NULL or not.
    pub present: Vec<(usize, u64)>,
    /// The fields in `extra`, as JSON pointers, where that column is wanted: in how many records each came.
    pub unknown: Vec<(String, u64)>,
    /// The number of all mentions that match, where the overview in the same answer has it and the profile calls it exact.
    pub counted: Option<u64>,
    /// The window that the service resolved the period to, [from, to).
    pub window: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

/// Decodes the answers of one table to a fixed set of columns. Built once a scan, used for every page.
#[derive(Debug)]
pub struct Decoder {
    profile: Arc<Profile>,
    table: Arc<TableSpec>,
    schema: SchemaRef,
    /// For each output column, where its values are found.
    sources: Vec<Source>,
    builders: Vec<ColumnBuilder>,
    records: Tree<usize>,
    envelope: Tree<Capture>,
    captures: usize,
    id: Option<usize>,
    time: Option<usize>,
    version: Option<usize>,
    extra: bool,
    lossy: bool,
    /// Whether an answer must have a section of the table.
    needs_section: bool,
}

/// Where the values of an output column are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Builder with this index.
    Row(usize),
    /// Captured value of the answer with this index, the same for each row.
    Answer(usize, usize),
    Aid,
    Duration,
    Timezone,
}

/// What is taken from the envelope at a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capture {
    Section(usize),
    Value(usize),
}

/// The captured values that every answer is asked for, before those of columns.
const TOTAL: usize = 0;
const RELATION: usize = 1;
const ECHO_AID: usize = 2;
const ECHO_TIMEZONE: usize = 3;
const ECHO_OFFSET: usize = 4;
const WINDOW_FROM: usize = 5;
const WINDOW_TO: usize = 6;
const COUNTED: usize = 7;
const COUNTED_RELATION: usize = 8;
const FIRST_COLUMN: usize = 9;

/// Records that an answer may have, however few were asked for.
const MOST: usize = 100_000;

impl Decoder {
    /// A decoder of the columns with these positions in the table.
    pub fn new(profile: Arc<Profile>, table: Arc<TableSpec>, columns: &[usize]) -> Self {
        let full = arrow_schema(&table);
        // `project` fails on positions out of bounds only; positions come from this very schema.
        let schema = Arc::new(full.project(columns).expect("columns are positions in the table"));
        let extra = columns.iter().any(|column| table.columns[*column].origin == Origin::Extra);

        let mut records = Tree::default();
        let mut envelope = Tree::default();
        let mut builders = Vec::new();
        let mut sources = vec![None; table.columns.len()];
        let mut captures = FIRST_COLUMN;
        for (index, column) in table.columns.iter().enumerate() {
            let wanted = columns.contains(&index);
            let builder = |builders: &mut Vec<ColumnBuilder>| {
                builders.push(ColumnBuilder::new(column.kind, column.pattern.clone()));
                builders.len() - 1
            };
            let source = match &column.origin {
                // What `extra` must not repeat has to be known, and tried, even where it is not wanted itself.
                Origin::Field(at, Scope::Record) if wanted || extra => {
                    let slot = builder(&mut builders);
                    records.insert(at.steps(), slot);
                    Source::Row(slot)
                }
                Origin::Field(at, Scope::Answer) if wanted => {
                    envelope.insert(at.steps(), Capture::Value(captures));
                    captures += 1;
                    Source::Answer(captures - 1, builder(&mut builders))
                }
                Origin::Aid => Source::Aid,
                Origin::Duration => Source::Duration,
                Origin::Timezone => Source::Timezone,
                Origin::Section | Origin::Rank | Origin::Extra if wanted => Source::Row(builder(&mut builders)),
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
        // Inside a record that is read anyway, it would be read twice.
        let counted = profile.counted_total();
        let counted = counted.filter(|_| !table.sections.iter().any(|section| section.shape == Shape::Record));
        let (counted, counted_relation) = counted.map_or((None, None), |(at, relation)| (Some(at), relation));
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
        let sources =
            columns.iter().map(|column| sources[*column].expect("every wanted column has a source")).collect();
        Self {
            profile,
            table,
            schema,
            sources,
            builders,
            records,
            envelope,
            captures,
            id,
            time,
            version,
            extra,
            lossy: false,
            needs_section: false,
        }
    }

    /// The same decoder, for the rows of a table: an answer that has none of its sections is no empty table, unless its
    /// overview counts no mentions.
    #[must_use]
    pub fn of_table(self) -> Self {
        Self { needs_section: true, ..self }
    }

    /// The same decoder, which replaces what says no character in texts.
    #[must_use]
    pub fn lossy(self, lossy: bool) -> Self {
        Self { lossy, ..self }
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Where the values of a column come from.
    pub fn origin(&self, column: &str) -> Option<&Origin> {
        self.table.column(column).map(|column| &column.origin)
    }

    /// Decodes one body.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for what is no valid JSON, [`ErrorKind::Contradiction`] for what is and disagrees with
    /// the profile or the question.
    pub fn decode(&self, request: &PageRequest, body: &[u8]) -> Result<Decoded> {
        let decoded = match std::str::from_utf8(body) {
            // Some put a byte order mark in front.
            Ok(text) => self.decode_text(request, text.trim_start_matches('\u{feff}')),
            Err(_) => Err(Error::new(ErrorKind::Malformed, "the answer is no UTF-8")),
        };
        match decoded {
            Err(error) if error.kind() == ErrorKind::Malformed => {
                let Some(at) = lossy_utf8::first_flaw(body) else { return Err(error) };
                if self.lossy {
                    let (text, mended) = lossy_utf8::mend(body);
                    return Ok(Decoded { mended, ..self.decode_text(request, &text)? });
                }
                let message = format!("a text says no character at byte {at} of the answer: {}", error.message());
                Err(Error::new(ErrorKind::Malformed, message)
                    .advice("SET savedsearch.lossy_text = on replaces such characters and counts them"))
            }
            decoded => decoded,
        }
    }

    fn decode_text(&self, request: &PageRequest, text: &str) -> Result<Decoded> {
        let most = usize::try_from(request.size).unwrap_or(usize::MAX).saturating_mul(100).max(MOST);
        let mut rows = Rows::new(&self.records, self.builders.clone(), self.extra, self.origins(), most);
        let answer = envelope::read(self, text, &mut rows)?;
        self.check_echoes(request, &answer)?;
        let mut sections = self.table.sections.iter().zip(&answer.sections);
        if let Some((SectionSpec { at: missing, .. }, _)) = sections.find(|(spec, there)| !spec.optional && !**there) {
            return Err(Error::new(ErrorKind::Contradiction, format!("the answer has no `{missing}`"))
                .advice("check the profile's `sections` of this table, or set optional = true"));
        }
        let counted = answer.text(COUNTED).and_then(|told| told.parse().ok());
        let exact = |relation: Option<Cow<'_, str>>| relation.is_none_or(|relation| relation == "eq");
        let counted: Option<u64> = counted.filter(|_| exact(answer.text(COUNTED_RELATION)));
        let total = answer.text(TOTAL);
        let paged = request.plan.pages.is_some() && total.is_some();
        let nothing = !answer.sections.contains(&true) && !paged && total.as_deref() != Some("0") && counted != Some(0);
        if self.needs_section && nothing {
            let places: Vec<String> =
                self.table.sections.iter().map(|section| format!("`{}`", section.at)).take(3).collect();
            let message = format!("the answer has nothing that the profile knows: no {}", places.join(", no "));
            return Err(Error::new(ErrorKind::Contradiction, message)
                .advice("check the profile's `sections` of this table; for errors with a status of success, [error]"));
        }
        let relation = answer.text(RELATION);
        let total = match (&self.profile.total.trust, answer.text(TOTAL), relation.as_deref()) {
            (Trust::Exact, Some(total), None | Some("eq")) if request.plan.pages.is_some() => {
                Some(total.parse().map_err(|_| {
                    Error::new(ErrorKind::Contradiction, format!("the total `{}` is no number of mentions", total))
                })?)
            }
            (Trust::Exact, None, _) if request.plan.pages.is_some() => {
                return Err(Error::new(ErrorKind::Contradiction, "the answer has no total")
                    .advice("check the profile's [total]; trust = \"absent\" reads without one"));
            }
            _ => None,
        };

        let told = answer.text(TOTAL).filter(|_| total.is_none() && request.plan.pages.is_some());
        let hint = told.and_then(|told| told.parse().ok());
        let count = rows.count;
        let present = self.present(&rows);
        let mut conflicts = rows.conflicts;
        let mut built = rows.finish();
        let mut columns: Vec<ArrayRef> = self
            .sources
            .iter()
            .map(|source| match *source {
                Source::Row(slot) => Ok(built.array(slot)),
                Source::Answer(capture, slot) => {
                    let (array, fits) = self.builders[slot].clone().repeat(answer.raw(capture), count)?;
                    conflicts += u64::from(!fits);
                    Ok(array)
                }
                Source::Aid => Ok(constant(request.plan.aid.as_deref(), count)),
                Source::Duration => Ok(constant(request.plan.duration.as_deref(), count)),
                Source::Timezone => Ok(constant(request.plan.timezone.as_deref(), count)),
            })
            .collect::<Result<_>>()?;
        let unnamed = self.name(request, text, &mut columns)?;
        for (column, field) in columns.iter().zip(self.schema.fields()) {
            if !field.is_nullable() && column.null_count() > 0 {
                let row = (0..count).find(|row| column.is_null(*row)).unwrap_or_default();
                return Err(Error::new(
                    ErrorKind::Contradiction,
                    format!("record {row} of the answer has no usable `{}`, which may not be NULL", field.name()),
                )
                .advice("check the column in the profile: its pointer, its type, or null = true"));
            }
        }
        let ids = self.id.map(|id| hashes(&columns[id]));
        let times = self.time.map(|time| micros(&columns[time]));
        let versions = self.version.map(|version| micros(&columns[version]));
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| Error::new(ErrorKind::Contradiction, format!("the columns do not fit: {error}")))?;
        let unknown = self.unknown(&batch);
        Ok(Decoded {
            batch,
            ids,
            times,
            versions,
            total,
            hint,
            conflicts,
            mended: 0,
            unnamed,
            records: count as u64,
            present,
            unknown,
            counted,
            window: window(&answer),
        })
    }

    /// In how many records the field of each column came.
    fn present(&self, rows: &Rows<'_>) -> Vec<(usize, u64)> {
        let fields = self.schema.fields().iter().zip(&self.sources).enumerate();
        let present = fields.filter_map(|(column, (field, source))| match (self.origin(field.name()), source) {
            (Some(Origin::Field(_, Scope::Record)), Source::Row(slot)) => Some((column, rows.present(*slot))),
            _ => None,
        });
        present.collect()
    }

    /// The fields in the column `extra`, and in how many records each came.
    fn unknown(&self, batch: &RecordBatch) -> Vec<(String, u64)> {
        let extra = self.schema.fields().iter().position(|field| self.origin(field.name()) == Some(&Origin::Extra));
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let texts = extra.and_then(|extra| batch.column(extra).as_string_opt::<i32>());
        for text in texts.into_iter().flatten().flatten().filter(|text| *text != "{}") {
            places::each(text, |at| *found.entry(at.to_owned()).or_default() += 1);
        }
        found.into_iter().collect()
    }

    /// Gives rows without an id one that is made of the columns which stand in for it. Gives their number.
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
        let parts = decoder.decode_text(request, text)?.batch;
        let parts: Vec<ArrayRef> = parts
            .columns()
            .iter()
            .map(|part| arrow::compute::cast(part, &DataType::Utf8))
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| Error::new(ErrorKind::Profile, format!("`stand_in` is no text: {error}")))?;
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
            any.then(|| digest.finalize()[..12].iter().fold("~".to_owned(), |id, byte| format!("{id}{byte:02x}")))
        };
        let ids: StringArray = (0..known.len()).map(named).collect();
        let unnamed = known.null_count() - ids.null_count();
        columns[at] = Arc::new(ids);
        Ok(unnamed as u64)
    }

    /// The builders of a row that are filled by position: label of the section, rank, extra.
    fn origins(&self) -> [Option<usize>; 3] {
        let find = |origin: &Origin| {
            let sources = self.schema.fields().iter().zip(&self.sources);
            sources.into_iter().find_map(|(field, source)| match (self.table.column(field.name()), source) {
                (Some(column), Source::Row(slot)) if column.origin == *origin => Some(*slot),
                _ => None,
            })
        };
        [find(&Origin::Section), find(&Origin::Rank), find(&Origin::Extra)]
    }

    fn check_echoes(&self, request: &PageRequest, answer: &Envelope) -> Result<()> {
        let plan = request.plan.as_ref();
        let offset = plan.pages.map(|_| self.profile.offset.of(request.row, request.size).to_string());
        for (slot, asked, what) in [
            (ECHO_AID, plan.aid.as_deref(), "aid"),
            (ECHO_TIMEZONE, plan.timezone.as_deref(), "timezone"),
            (ECHO_OFFSET, offset.as_deref(), "offset"),
        ] {
            if let (Some(asked), Some(echoed)) = (asked, answer.text(slot))
                && *asked != *echoed
            {
                return Err(Error::new(
                    ErrorKind::Contradiction,
                    format!("asked for {what} `{asked}`, the answer is for `{}`", echoed),
                )
                .advice("the service ignores the parameter or calls it otherwise: check the profile")
                .passing());
            }
        }
        let words = request.frozen.as_deref().or(plan.duration.as_deref());
        let asked = words.and_then(|words| self.profile.window.span_of(words, plan.zone(&self.profile)));
        match (asked, window(answer)) {
            // A service may clip a window to what it has, at its beginning and now.
            (Some((from, to)), Some((since, until))) if until <= from || to <= since => Err(Error::new(
                ErrorKind::Contradiction,
                format!("asked for {from} to {to}, the answer is for {since} to {until}"),
            )
            .advice("the service ignores the period or reads it otherwise: check the profile's [window]")
            .passing()),
            _ => Ok(()),
        }
    }

    fn shape(&self, section: usize) -> Shape {
        self.table.sections[section].shape
    }
}

/// The window that an answer tells.
fn window(answer: &Envelope) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let instant = |slot| DateTime::parse_from_rfc3339(&answer.text(slot)?).ok().map(|at| at.to_utc());
    Some((instant(WINDOW_FROM)?, instant(WINDOW_TO)?)).filter(|(from, to)| from < to)
}

fn constant(value: Option<&str>, count: usize) -> ArrayRef {
    Arc::new((0..count).map(|_| value).collect::<StringArray>())
}

/// The microseconds of a column of instants; the least number for NULL.
fn micros(column: &ArrayRef) -> Vec<i64> {
    column.as_primitive::<TimestampMicrosecondType>().iter().map(|at| at.unwrap_or(i64::MIN)).collect()
}

/// A hash of each value. The hasher's keys are fixed: equal ids hash alike in every page.
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
        // The profile allows texts and integers as ids.
        _ => column.as_string::<i32>().iter().map(|id| hash(&|hasher| id.hash(hasher))).collect(),
    }
}

#[cfg(test)]
mod tests;
