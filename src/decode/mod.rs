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
mod json;
mod list;
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
use arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef, TimestampMicrosecondType};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

pub(crate) use self::list::{OneRowAnAid, check_aids, entries_of};
pub(crate) use self::schema::in_zone_of;
pub use self::schema::{arrow_schema, data_type};

use self::envelope::Envelope;
use self::pointer_tree::Tree;
use self::record::Rows;
use self::schema::decoded_schema;
use self::value::Column;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{
    Direction, Nulls, Origin, Pointer, Profile, Scope, SectionSpec, Shape, TableKind, TableSpec, Trust,
};
use crate::request::PageRequest;

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
    pub hint: Option<u64>,
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
    /// Total of matching mentions, if the overview in the same answer states it and the profile declares it exact.
    pub counted: Option<u64>,
    /// Sum of the timeline in the same answer, if the answer is a first page and the profile declares its counts exact.
    pub timeline: Option<u64>,
    /// Largest sum of a list in the same answer, likewise: there are at least as many mentions.
    pub listed: Option<u64>,
    /// The window that the service resolved the request to, [from, to).
    pub window: Option<(DateTime<Utc>, DateTime<Utc>)>,
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
    /// Captured counts beside mentions, with the place of the count in each entry: of the timeline, and of lists.
    timeline: Option<(usize, Option<Pointer>)>,
    lists: Vec<(usize, Option<Pointer>)>,
}

/// Source of the values of an output column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The built column with this index.
    Row(usize),
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
const FIRST_COLUMN: usize = 9;

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
        let mut captures = FIRST_COLUMN;
        for (index, column) in table.columns.iter().enumerate() {
            let wanted = columns.contains(&index);
            let build = |built: &mut Vec<Column>| {
                built.push(Column::new(column.kind, column.pattern.clone()));
                built.len() - 1
            };
            let source = match &column.origin {
                // `extra` must not repeat values of other columns, so these are converted even if not wanted
                // themselves.
                Origin::Field(at, Scope::Record) if wanted || extra => {
                    let slot = build(&mut built);
                    records.insert(at.steps(), slot);
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
        // Inside a record that is read anyway, the total would be read twice.
        let counted = profile.counted_total();
        let counted = counted.filter(|_| !table.sections.iter().any(|section| section.shape == Shape::Record));
        let (counted, counted_relation) = counted.map_or((None, None), |(at, relation)| (Some(at), relation));
        let summed = profile.summed_counts().filter(|_| table.kind == TableKind::Mentions);
        let mut capture = |(at, count): (Pointer, Option<Pointer>)| {
            envelope.insert(at.steps(), Capture::Value(captures));
            captures += 1;
            (captures - 1, count)
        };
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
            timeline,
            lists,
        }
    }

    /// Requires a section of the table in each answer: one without any is an error and not an empty table, unless its
    /// total or its overview counts no mentions.
    #[must_use]
    pub fn of_table(self) -> Self {
        Self { needs_section: true, ..self }
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

    /// Decodes one body.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for invalid JSON, [`ErrorKind::Contradiction`] for valid JSON that disagrees with the
    /// profile or the request.
    pub fn decode(&self, request: &PageRequest, body: &[u8]) -> Result<Decoded> {
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
                    return Ok(Decoded { mended, ..self.decode_text(request, text)? });
                }
                let message = format!("invalid UTF-8 or escape at byte {at} of the response: {}", error.message());
                Err(Error::new(ErrorKind::Malformed, message)
                    .advice("use SET savedsearch.lossy_text = on to replace and count invalid characters"))
            }
            decoded => decoded,
        }
    }

    fn decode_text(&self, request: &PageRequest, text: &str) -> Result<Decoded> {
        let most = usize::try_from(request.size).unwrap_or(usize::MAX).saturating_mul(100).max(MOST);
        let mut rows = Rows::new((&self.records, self.objects), &self.columns, self.origins, most);
        let answer = envelope::read(self, text, &mut rows)?;
        self.check_echoes(request, &answer)?;
        let mut sections = self.table.sections.iter().zip(&answer.sections);
        if let Some((SectionSpec { at: missing, .. }, _)) = sections.find(|(spec, there)| !spec.optional && !**there) {
            return Err(Error::new(ErrorKind::Contradiction, format!("the response has no `{missing}`"))
                .advice("check the `sections` of this table in the profile, or set optional = true"));
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
            let message = format!("the response has no section of this table, such as {}", places.join(", "));
            return Err(Error::new(ErrorKind::Contradiction, message).advice(
                "check the `sections` of this table in the profile; if it is an error with a success status, set [error]",
            ));
        }
        let relation = answer.text(RELATION);
        let total = match (&self.profile.total.trust, answer.text(TOTAL), relation.as_deref()) {
            (Trust::Exact, Some(total), None | Some("eq")) if request.plan.pages.is_some() => {
                Some(total.parse().map_err(|_| {
                    Error::new(ErrorKind::Contradiction, format!("invalid total `{}` in the response", total))
                })?)
            }
            (Trust::Exact, None, _) if request.plan.pages.is_some() => {
                return Err(Error::new(ErrorKind::Contradiction, "the response has no total")
                    .advice("check [total] in the profile, or set trust = \"absent\" to read without a total"));
            }
            _ => None,
        };

        let told = answer.text(TOTAL).filter(|_| total.is_none() && request.plan.pages.is_some());
        let hint = told.and_then(|told| told.parse().ok());
        let count = rows.count;
        let present = self.fields.iter().map(|(column, slot)| (*column, rows.present(*slot))).collect();
        let mut conflicts = rows.conflicts;
        let mut built = rows.finish();
        let mut columns: Vec<ArrayRef> = self
            .sources
            .iter()
            .zip(self.schema.fields())
            .map(|(source, field)| match *source {
                Source::Row(slot) => Ok(built.array(slot)),
                Source::Answer(capture, slot) => {
                    let (array, fits) = self.columns[slot].repeat(answer.raw(capture), count)?;
                    conflicts += u64::from(!fits);
                    Ok(array)
                }
                Source::Aid => Ok(constant(request.plan.aid.as_deref(), count)),
                Source::Duration => Ok(constant(request.plan.duration.as_deref(), count)),
                Source::Timezone => Ok(constant(request.plan.timezone.as_deref(), count)),
                Source::Later => Ok(arrow::array::new_null_array(field.data_type(), count)),
            })
            .collect::<Result<_>>()?;
        let unnamed = self.name(request, text, &mut columns)?;
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
                .advice("check the column's pointer and type in the profile, or set null = true"));
            }
        }
        let ids = self.id.map(|id| hashes(&columns[id]));
        let times = self.time.map(|time| micros(&columns[time]));
        let keys = self.sort_keys(request, &columns);
        let versions = self.version.map(|version| micros(&columns[version]));
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| Error::new(ErrorKind::Contradiction, format!("cannot build the record batch: {error}")))?;
        let unknown = self.unknown(&batch);
        Ok(Decoded {
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
            counted,
            timeline: self.timeline.as_ref().and_then(|counts| sum_of(request, &answer, counts)),
            listed: self.lists.iter().filter_map(|counts| sum_of(request, &answer, counts)).max(),
            window: window(&answer).filter(|(from, to)| from < to),
        })
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
        let parts = decoder.decode_text(request, text)?.batch;
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
            any.then(|| digest.finalize()[..12].iter().fold("~".to_owned(), |id, byte| format!("{id}{byte:02x}")))
        };
        let ids: StringArray = (0..known.len()).map(named).collect();
        let unnamed = known.null_count() - ids.null_count();
        columns[at] = Arc::new(ids);
        Ok(unnamed as u64)
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

    fn check_echoes(&self, request: &PageRequest, answer: &Envelope<'_>) -> Result<()> {
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
                    format!("requested {what} `{asked}`, but the response is for `{}`", echoed),
                )
                .advice("the service ignores the parameter or uses another name for it; check the profile")
                .passing());
            }
        }
        let words = request.frozen.as_deref().or(plan.duration.as_deref());
        let asked = words.and_then(|words| self.profile.window.span_of(words, plan.zone(&self.profile)));
        match (asked, window(answer)) {
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

/// Sum of captured counts beside the first page; `None` if they have other values than counts.
fn sum_of(request: &PageRequest, answer: &Envelope<'_>, (slot, count): &(usize, Option<Pointer>)) -> Option<u64> {
    // One response is enough, and further pages are decoded faster without.
    let entries = answer.raw(*slot).filter(|_| request.row == 0)?;
    let number = |entry: &serde_json::Value| {
        let mut steps = count.iter().flat_map(|count| count.steps());
        steps.try_fold(entry, |value, step| value.get(step.as_str()))?.as_u64()
    };
    let add = |sum: u64, entry: &serde_json::Value| sum.checked_add(number(entry)?);
    match serde_json::from_str(entries.text).ok()? {
        serde_json::Value::Array(entries) => entries.iter().try_fold(0, add),
        serde_json::Value::Object(entries) => entries.values().try_fold(0, add),
        _ => None,
    }
}

/// The window stated in an answer.
fn window(answer: &Envelope<'_>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    let instant = |slot| DateTime::parse_from_rfc3339(&answer.text(slot)?).ok().map(|at| at.to_utc());
    Some((instant(WINDOW_FROM)?, instant(WINDOW_TO)?))
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
