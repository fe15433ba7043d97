//! A response with an overview: the tables that a scan uses of it, from one pass over its bytes.
//!
//! ```text
//! body ─ one pass ─▶ totals · timeline · a list of each counted column · the mentions beside them · what calls a count an estimate
//! ```
//!
//! A table that the response does not have as the profile declares it has an error of its own, which ends a query only if that
//! table is needed.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Int64Type;

use crate::decode::{CountPlaces, Decoded, Decoder, ListPlace, decode_tables};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{ColumnSpec, ColumnType, CountList, Counts, Origin, Pointer, Profile, Scope, TableSpec};
use crate::request::{FilterTerm, PageRequest};

/// Tables of a response that are used beside its totals.
#[derive(Debug, Default)]
pub(super) struct AnswerTables {
    /// The count of mentions that a list omits, in the record of the totals.
    pub(super) rest: Option<Pointer>,
    pub(super) timeline: bool,
    pub(super) lists: Vec<CountList>,
    /// The decoder of the mentions in the response, and their request.
    pub(super) page: Option<(Arc<Decoder>, PageRequest)>,
}

impl AnswerTables {
    /// The timeline, if the profile trusts it, and the lists of filtered columns.
    pub(super) fn of(profile: &Profile, filters: &[FilterTerm]) -> Self {
        let timeline = profile.counts.as_ref().is_some_and(|counts| counts.days);
        let lists = filters.iter().filter_map(|term| filtered_list(profile, term)).cloned().collect();
        Self { timeline, lists, ..Self::default() }
    }
}

/// The list that counts the mentions of each value of a filtered column.
pub(super) fn filtered_list<'p>(profile: &'p Profile, term: &FilterTerm) -> Option<&'p CountList> {
    let mut known = profile.filters.parameters.iter();
    let column = &known.find(|known| known.parameter == term.parameter)?.column;
    profile.counts.as_ref()?.lists.iter().find(|list| list.column == *column)
}

/// Decoder of some tables of responses with an overview.
#[derive(Debug)]
pub(super) struct AnswerDecoder {
    /// The totals; `None` if the profile declares no counts.
    totals: Option<Decoder>,
    timeline: Option<Decoder>,
    lists: Vec<ListDecoder>,
    page: Option<(Arc<Decoder>, PageRequest)>,
    places: CountPlaces,
}

/// Decoder of a list.
#[derive(Debug)]
struct ListDecoder {
    dimension: String,
    decoder: Decoder,
    /// Its sections among the places of counts.
    places: Range<usize>,
}

impl AnswerDecoder {
    pub(super) fn new(profile: &Arc<Profile>, lossy: bool, tables: AnswerTables) -> Self {
        let AnswerTables { rest, timeline, lists, page } = tables;
        let of = |table: TableSpec| {
            let columns: Vec<usize> = (0..table.columns.len()).collect();
            // A mention may come along.
            Decoder::new(Arc::clone(profile), Arc::new(table), &columns).lossy(lossy)
        };
        let totals = profile.counts.as_ref().map(|counts| of(totals(counts, rest, &profile.tables.overview)));
        let timeline = timeline.then(|| {
            let volume = &profile.tables.volume;
            of(picked(volume, &[volume.time.as_deref().unwrap_or_default(), "mentions", "bucket_end"]))
        });
        let (mut decoders, mut places) = (Vec::<ListDecoder>::new(), Vec::new());
        for CountList { dimension, .. } in lists {
            if decoders.iter().any(|known| known.dimension == dimension) {
                continue;
            }
            let mut table = picked(&profile.tables.breakdowns, &["name", "mentions"]);
            table.sections.retain(|section| section.label == dimension);
            let before = places.len();
            places.extend(table.sections.iter().map(ListPlace::from));
            decoders.push(ListDecoder { dimension, decoder: of(table), places: before..places.len() });
        }
        let places = CountPlaces::new(profile.counted_total().map(|(total, _)| total), places)
            .beside_mentions(profile.total.at.clone(), profile.total.relation.clone());
        Self { totals, timeline, lists: decoders, page, places }
    }

    /// Decodes the response to a request.
    pub(super) fn decode(&self, request: &PageRequest, body: &[u8]) -> Answer {
        let Self { totals, timeline, lists, page, places } = self;
        let of_lists = lists.iter().map(|list| &list.decoder);
        let counts = totals.iter().chain(timeline).chain(of_lists).map(|decoder| (decoder, request));
        let mentions = page.iter().map(|(decoder, asked)| (decoder.as_ref(), asked));
        let wanted: Vec<(&Decoder, &PageRequest)> = counts.chain(mentions).collect();
        let (tables, estimates) = decode_tables(&wanted, places, body);
        // The tables are in the order in which they were wanted.
        let mut positions = 0..tables.len();
        let totals = totals.as_ref().and_then(|_| positions.next());
        let timeline = timeline.as_ref().and_then(|_| positions.next());
        let mut answered = Vec::with_capacity(lists.len());
        for (list, table) in lists.iter().zip(positions.by_ref()) {
            let estimate = estimates.lists.get(list.places.clone()).into_iter().flatten().flatten().next().cloned();
            answered.push(List { dimension: list.dimension.clone(), table, estimate });
        }
        let page = page.as_ref().and_then(|_| positions.next());
        let inexact = totals.and_then(|totals: usize| tables[totals].as_ref().ok()?.inexact.clone());
        let (request, estimate) = (request.clone(), estimates.total.or(inexact));
        Answer { request, tables, totals, timeline, lists: answered, page, estimate }
    }
}

/// A response with an overview.
#[derive(Debug)]
pub(super) struct Answer {
    /// The request, as it was sent.
    pub(super) request: PageRequest,
    tables: Vec<Result<Decoded>>,
    /// Positions of the tables that were decoded.
    totals: Option<usize>,
    timeline: Option<usize>,
    lists: Vec<List>,
    page: Option<usize>,
    /// The member that calls the total an estimate, with its value.
    estimate: Option<String>,
}

/// A list of a response.
#[derive(Debug)]
struct List {
    dimension: String,
    /// Position of its table.
    table: usize,
    /// The member that calls it an estimate, with its value.
    estimate: Option<String>,
}

impl Answer {
    fn table(&self, position: usize) -> Result<&Decoded> {
        self.tables[position].as_ref().map_err(Clone::clone)
    }

    fn list_of(&self, list: &CountList) -> Option<&List> {
        self.lists.iter().find(|known| known.dimension == list.dimension)
    }

    /// The counts of all mentions.
    ///
    /// # Errors
    /// [`ErrorKind::Profile`] if the profile declares none; errors of the response.
    pub(super) fn totals(&self) -> Result<&Decoded> {
        let Some(totals) = self.totals else {
            return Err(Error::new(ErrorKind::Profile, "the profile declares no [counts]"));
        };
        self.table(totals)
    }

    /// Number of mentions, if the overview states it.
    pub(super) fn total(&self) -> Result<Option<i64>> {
        let total = self.totals()?.batch.column(0).as_primitive_opt::<Int64Type>();
        Ok(total.and_then(|total| total.iter().next().flatten()))
    }

    /// True unless the overview says that its total is not exact.
    pub(super) fn is_exact(&self) -> Result<bool> {
        let relation = self.totals()?.batch.columns().get(2).and_then(|relation| relation.as_string_opt::<i32>());
        Ok(relation.is_none_or(|relation| relation.iter().flatten().all(|relation| relation == "eq")))
    }

    /// The buckets of the timeline: their starts, counts, and ends if the profile has a column of them; `None` if the response has
    /// no timeline, or not the declared one.
    ///
    /// # Errors
    /// Errors of the response, except that it contradicts the profile.
    pub(super) fn timeline(&self) -> Result<Option<&Decoded>> {
        match self.timeline.map(|timeline| self.table(timeline)) {
            Some(Err(error)) if error.kind() == ErrorKind::Contradiction => Ok(None),
            timeline => timeline.transpose(),
        }
    }

    /// The mentions that were decoded with the overview, if they were wanted.
    pub(super) fn page(&self) -> Option<Result<&Decoded>> {
        self.page.map(|page| self.table(page))
    }

    /// Returns the names and counts of a list.
    ///
    /// # Errors
    /// Errors of the response.
    pub(super) fn list(&self, list: &CountList) -> Result<(Vec<Option<String>>, Vec<i64>)> {
        let Some(known) = self.list_of(list) else {
            let message = format!("the list `{}` of the response was not read", list.dimension);
            return Err(Error::new(ErrorKind::Contradiction, message));
        };
        let batch = &self.table(known.table)?.batch;
        let names = batch.column(0).as_string_opt::<i32>().into_iter().flatten();
        Ok((names.map(|name| name.map(str::to_owned)).collect(), weights(batch.column(1))))
    }

    /// The member that calls the total an estimate, with its value.
    pub(super) fn estimate_of_total(&self) -> Option<&str> {
        self.estimate.as_deref()
    }

    /// The member that calls a list an estimate, with its value.
    pub(super) fn estimate_of(&self, list: &CountList) -> Option<&str> {
        self.list_of(list)?.estimate.as_deref()
    }
}

/// Returns the counts in a column; a missing one is 0.
pub(super) fn weights(column: &ArrayRef) -> Vec<i64> {
    column.as_primitive_opt::<Int64Type>().into_iter().flatten().map(Option::unwrap_or_default).collect()
}

/// Returns the table with only these columns, in this order.
fn picked(table: &TableSpec, columns: &[&str]) -> TableSpec {
    let columns = columns.iter().filter_map(|name| table.column(name)).cloned();
    // A missing value makes the counts not add up, which is detected where they are used.
    let columns = columns.map(ColumnSpec::nullable).collect();
    TableSpec { columns, id: None, time: None, version: None, stand_in: Vec::new(), ..table.clone() }
}

/// The table of counts of all mentions: the total, the rest that a list omits, and whether the counts are exact.
fn totals(counts: &Counts, rest: Option<Pointer>, overview: &TableSpec) -> TableSpec {
    let mut table = picked(overview, &[counts.total.as_str()]);
    let number = table.columns.first().cloned();
    table.columns.extend(number.map(|total| {
        let origin = rest.map_or(total.origin, |rest| Origin::Field(rest, Scope::Record));
        ColumnSpec::new("rest", ColumnType::Int64, origin).nullable()
    }));
    table.columns.extend(counts.relation.as_deref().and_then(|relation| overview.column(relation)).cloned());
    table
}
