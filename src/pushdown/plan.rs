//! Request planning for one scan.

use std::collections::{BTreeMap, BTreeSet};

use arrow::compute::SortOptions;
use chrono::{DateTime, TimeDelta, Utc};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::split_conjunction;

use super::interval_set::{Range, Ranges};
use super::predicate::{always, bounds_nothing, implied_values, looks_at, looks_only_at, never, values};
use super::sort::{ServiceOrder, service_order};
use super::time_predicate::{TimeColumn, cut_day, first_midnight, ranges};
use super::window::{Piece, Windows, windows_of};
use crate::error::{Error, ErrorKind, Phrase, Result, Setting, nearest_name, shortened};
use crate::profile::{
    ColumnSpec, ColumnType, FilterParameter, Origin, Profile, Scope, Several, TableKind, TableSpec, Zone,
};
use crate::request::{FilterTerm, Pages, RequestPlan};

/// The saved searches that a scan requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Aids {
    /// No aid: the table comes from the list itself.
    NotNeeded,
    /// These aids. Empty: the conjuncts contradict each other, and no request is sent.
    Given(Vec<String>),
    /// The aids that the list names when the scan starts.
    Listed,
}

/// The requests of one scan.
#[derive(Debug, Clone)]
pub(crate) struct ScanPlan {
    /// The requests, without an aid and a window.
    pub template: RequestPlan,
    /// The aids of the requests.
    pub aids: Aids,
    /// The windows of the requests, disjoint and in order of time; empty for the list.
    pub windows: Vec<String>,
    /// The windows split into pieces. For a whole one the service returns exactly the rows that satisfy all conjuncts. Set
    /// if bounds within a second are all that prevents the plan from being [`exact`](Self::exact).
    pub(super) pieces: Option<Vec<Piece>>,
    /// The earliest wanted time of a mention, if the window begins earlier because the service accepts no other.
    /// Mentions are then read in this sort order, newest first, until one is older.
    pub until: Option<(ServiceOrder, DateTime<Utc>)>,
    /// The instants that the window has to cover, if it is a relative period that stands for a range; without the second one, up
    /// to now.
    pub reach: Option<(DateTime<Utc>, Option<DateTime<Utc>>)>,
    /// Set if the service returns exactly the rows that satisfy all conjuncts, so that a limit can be sent to it.
    pub exact: bool,
    /// The time range that the conjuncts allow, if it determines the windows: `None` if they have no time filter, or
    /// give the window itself.
    pub(super) range: Option<Ranges>,
    /// The error that ends the scan because its time range has no beginning, unless one becomes known at run time.
    pub(super) unbounded: Option<Error>,
    /// Set if the range is open at the end: it then ends a little after now, by the clock it was planned with.
    pub ends_open: bool,
    /// Conjuncts that are not sent to the service, as text.
    pub kept: Vec<String>,
    /// One of those conjuncts, a list of values that is too long for one request, in parts that fit.
    pub value_parts: Vec<FilterTerm>,
    /// Set if the window is the profile's default because the query has no time filter.
    pub default_window: bool,
    /// Columns that repeat part of the request, such as `duration`, and that the conjuncts set to a value.
    pub chosen: BTreeSet<String>,
    /// Notes to the author of the query about what is read.
    pub notes: Vec<String>,
    /// Values by column, of which one is required; of the list, only names of saved searches.
    pub compared: BTreeMap<String, BTreeSet<String>>,
}

/// Plans the scan of a table under these conjuncts. `timezone` is the session's zone; empty: the profile's default.
///
/// # Errors
/// [`ErrorKind::Query`] for requests that the service does not support: several windows or zones, an unknown window or
/// zone, a range that is too long. A range that is open to the past yields an [unbounded](ScanPlan::unbounded) plan.
pub(super) fn plan_scan(
    profile: &Profile,
    table: &TableSpec,
    conjuncts: &[Expr],
    timezone: &str,
    now: DateTime<Utc>,
) -> Result<ScanPlan> {
    refuse_unsupported(table)?;
    if !table.kind.is_search() {
        return Ok(ScanPlan::of_list(table, conjuncts));
    }
    let columns = QuestionColumns::of(table);
    let mut known = Known::read(conjuncts, &columns);
    let aids = known.aids(columns.aid);
    let mut chosen = BTreeSet::new();
    let named = known.choose(columns.timezone, &mut chosen)?;
    let zone_name = named.clone().unwrap_or_else(|| zone_of_session(profile, timezone));
    let zone = zone_named(profile, &zone_name)?;
    let period = known.choose(columns.duration, &mut chosen)?;
    // An explicit window takes precedence; a time range then only filters its rows.
    let range = known.range.as_ref().filter(|_| period.is_none()).map(|range| without_far_end(range, now));
    let default_window = period.is_none() && range.is_none();
    let apart = period.as_deref().zip(known.range.as_ref()).zip(columns.time);
    let apart = apart.and_then(|((words, range), time)| period_apart(profile, words, range, time, zone, now));
    let one = |words| {
        let (windows, named) = one_window(profile, words, known.range.is_none(), zone, now)?;
        Ok::<_, Error>((windows, None, named))
    };
    let (windows, unbounded, named_window) = match (period, range.as_ref().zip(columns.time)) {
        (Some(words), _) => one(words)?,
        (None, Some((range, time))) => {
            let (windows, unbounded) = bounded_windows(profile, table, range, time, zone, now)?;
            (windows, unbounded, None)
        }
        (None, None) => one(profile.window.default.clone())?,
    };
    refuse_conditions_on_the_question(table, conjuncts, default_window)?;
    if default_window {
        refuse_times_without_window(table, conjuncts)?;
    }
    let mut notes = if default_window { other_times(profile, table, conjuncts) } else { Vec::new() };
    notes.extend(apart);
    notes.extend(unknown_label(table, &known.values));
    if table.kind == TableKind::Mentions {
        let near = known.range.as_ref().map(|range| without_far_end(range, now));
        notes.extend(near.zip(columns.instants).and_then(|(range, time)| at_midnight(&range, time)));
        notes.extend(other_midnights(table, conjuncts, now));
    }
    if named.is_none() {
        notes.extend(other_days(table, &zone_name, timezone));
    }
    let has_pages = table.kind == TableKind::Mentions;
    let mut compared = known.values.clone();
    if let Some(label) = table.column_from(&Origin::Section) {
        // It has a note of its own.
        compared.remove(label);
    }
    let (filters, value_parts) = if has_pages { known.filters(profile) } else { (Vec::new(), Vec::new()) };
    let contradiction = known.contradicts() || filters.iter().any(|filter| filter.values.is_empty());
    let mut kept = known.kept();
    let native = kept.is_empty();
    let exact = windows.exact && native;
    if native && !exact && windows.pieces.is_none() {
        kept.extend(columns.time.map(|time| format!("the exact range of {time}")));
    }
    let pages = has_pages.then_some(Pages { size: profile.page.max, skip: 0, fetch: None, ordered: false });
    let ends_open = named_window.is_some() || range.as_ref().is_some_and(ends_open);
    let template =
        RequestPlan { named: named_window, timezone: Some(zone_name), filters, pages, ..RequestPlan::search() };
    let plan = ScanPlan {
        exact,
        ends_open,
        range,
        unbounded,
        kept,
        value_parts,
        default_window,
        chosen,
        notes,
        compared,
        ..ScanPlan::new(template, if contradiction { Aids::Given(Vec::new()) } else { aids })
    };
    Ok(plan.with_windows(profile, columns.time, windows, native))
}

/// Returns the windows of a range, and an error if the range has no beginning, unless one becomes known at run time.
fn bounded_windows(
    profile: &Profile,
    table: &TableSpec,
    range: &Ranges,
    time: &str,
    zone: Zone,
    now: DateTime<Utc>,
) -> Result<(Windows, Option<Error>)> {
    match windows_of(&profile.window, range, time, zone, table.kind == TableKind::Volume, now) {
        Err(error) if range.spans().first().is_some_and(|first| first.start().is_none()) => {
            Ok((Windows { words: Vec::new(), exact: false, pieces: None, since: None }, Some(error)))
        }
        windows => Ok((windows?, None)),
    }
}

impl ScanPlan {
    /// Creates a plan without a window.
    fn new(template: RequestPlan, aids: Aids) -> Self {
        Self {
            template,
            aids,
            windows: Vec::new(),
            pieces: None,
            until: None,
            reach: None,
            exact: false,
            range: None,
            unbounded: None,
            ends_open: false,
            kept: Vec::new(),
            value_parts: Vec::new(),
            default_window: false,
            chosen: BTreeSet::new(),
            notes: Vec::new(),
            compared: BTreeMap::new(),
        }
    }

    /// Creates the plan of the list, which takes no parameters.
    fn of_list(table: &TableSpec, conjuncts: &[Expr]) -> Self {
        let contradiction = conjuncts.iter().any(never);
        let aids = if contradiction { Aids::Given(Vec::new()) } else { Aids::NotNeeded };
        let mut known = Known::read(conjuncts, &QuestionColumns::of(table));
        let compared = known.values.remove_entry("name").into_iter().collect();
        Self { exact: conjuncts.iter().all(always), compared, ..Self::new(RequestPlan::list(), aids) }
    }

    /// True if the service returns exactly the rows that satisfy all conjuncts, except for bounds within a second.
    pub(crate) fn countable(&self) -> bool {
        self.exact || self.pieces.is_some()
    }

    /// Drops the pieces and the exactness: a conjunct was added that the service cannot evaluate.
    pub(crate) fn no_longer_exact(&mut self) {
        (self.exact, self.pieces) = (false, None);
    }

    /// The error that ends the scan unless the beginning of its range becomes known at run time.
    pub(crate) fn unbounded(&self) -> Option<&Error> {
        self.unbounded.as_ref()
    }

    /// Restricts the plan by conjuncts that became known only at run time: on the time of mentions, and on the window
    /// and the zone to request. They replace the default window.
    ///
    /// `unread`: set if there are other conjuncts on the time that cannot be interpreted.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] if the range still has no beginning, or for requests that the service does not support.
    pub(crate) fn bounded_by(
        self,
        profile: &Profile,
        table: &TableSpec,
        conjuncts: &[Expr],
        unread: bool,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        let nothing = Aids::Given(Vec::new());
        if conjuncts.iter().any(never) {
            return Ok(Self { aids: nothing, unbounded: None, ..self });
        }
        refuse_conditions_on_the_question(table, conjuncts, false)?;
        let columns = QuestionColumns::of(table);
        let mut known = Known::of_question(conjuncts, &columns);
        let countable = self.countable();
        let mut plan = Self { pieces: None, unbounded: None, ..self };
        if let Some(zone) = known.one_of(columns.timezone)? {
            plan.template.timezone = Some(zone);
        }
        let zone = plan.template.timezone.as_deref().map(|zone| zone_named(profile, zone)).transpose()?;
        let zone = zone.unwrap_or(Zone::UTC);
        let period = known.one_of(columns.duration)?;
        if known.contradicts() {
            return Ok(Self { aids: nothing, ..plan });
        }
        let later = later_range(conjuncts, columns.instants, unread);
        let native = countable && later.is_none();
        plan.range = match (plan.range.take(), later) {
            (Some(range), Some(later)) => Some(range.and(&later)),
            (range, later) => range.or(later),
        };
        let windows = match (period, &plan.range) {
            (Some(words), range) => {
                // The window may differ from the range.
                let (windows, named) = one_window(profile, words, range.is_none(), zone, now)?;
                (plan.default_window, plan.ends_open) = (false, named.is_some());
                plan.template.named = named;
                windows
            }
            (None, Some(range)) => {
                (plan.default_window, plan.ends_open) = (false, ends_open(range));
                plan.template.named = None;
                let whole_days = table.kind == TableKind::Volume;
                windows_of(&profile.window, range, columns.time.unwrap_or_default(), zone, whole_days, now)?
            }
            // Only the zone is given: the windows stay as they are.
            (None, None) => Windows {
                words: plan.windows.clone(),
                exact: true,
                pieces: None,
                since: plan.reach.take().map(|(at, _)| at),
            },
        };
        plan.exact = native && windows.exact;
        let Windows { words, exact, pieces, since } = windows;
        // Pieces that can no longer be counted exactly are read.
        let pieces = pieces.or_else(|| (!exact).then(|| words.iter().cloned().map(Piece::read).collect()));
        let windows = Windows { words, exact, pieces, since };
        let empty = windows.words.is_empty();
        let plan = plan.with_windows(profile, columns.time, windows, native);
        Ok(if empty { Self { aids: nothing, ..plan } } else { plan })
    }

    fn with_windows(mut self, profile: &Profile, time: Option<&str>, windows: Windows, native: bool) -> Self {
        let by_time = |descending| {
            let options = SortOptions { descending, nulls_first: false };
            self.template.pages.and(time).and_then(|time| service_order(profile, time, options))
        };
        let end = self.range.as_ref().and_then(|range| range.spans().last()?.end());
        let end = end.and_then(DateTime::from_timestamp_micros);
        self.reach = windows.since.map(|since| (since, end));
        let until = windows.since.and_then(|since| Some((by_time(true)?, since)));
        // Oldest first, so that mentions that arrive during the scan come at the end.
        let sort = until.as_ref().map(|(order, _)| order.clone()).or_else(|| by_time(false));
        self.template.sort = sort.map(|order| order.value);
        self.windows = windows.words;
        self.pieces = windows.pieces.filter(|_| native);
        self.until = until;
        self
    }
}

/// Returns a single window, written as the service expects it. The second value is the relative period that was named, if it is
/// sent as instants: those from its beginning on, as for a range with an open end. It begins where windows can.
fn one_window(
    profile: &Profile,
    words: String,
    exact: bool,
    zone: Zone,
    now: DateTime<Utc>,
) -> Result<(Windows, Option<String>)> {
    let spec = &profile.window;
    spec.check_words(&words).map_err(|message| Error::new(ErrorKind::Query, message))?;
    let Some(length) = spec.length_in_instants(&words) else {
        return Ok((Windows { words: vec![words], exact, pieces: None, since: None }, None));
    };
    // Whole seconds, which all notations of instants can write.
    let start = now.checked_sub_signed(length).and_then(|start| DateTime::from_timestamp(start.timestamp(), 0));
    let start = start.ok_or_else(|| Error::new(ErrorKind::Query, format!("period `{words}` is too long")))?;
    let from = spec.grid(zone).floor(start.timestamp_micros());
    let range = Ranges::of([Range { from, to: Range::OPEN.to }], exact);
    let time = profile.tables.mentions.time.as_deref().unwrap_or("time");
    Ok((windows_of(spec, &range, time, zone, false, now)?, Some(words)))
}

/// Returns the zone to request for a session with this one, which may be empty: the profile's default if the service does
/// not take it.
fn zone_of_session(profile: &Profile, timezone: &str) -> String {
    let default = || profile.timezone.default.clone();
    let Ok(zone) = timezone.parse::<Zone>() else {
        // Refused where it is read.
        return if timezone.is_empty() { default() } else { timezone.to_owned() };
    };
    let same = zone.in_database().map(|zone| zone.name().to_owned());
    let mut known = [Some(timezone.to_owned()), profile.timezone.words_of(zone), same].into_iter().flatten();
    known.find(|name| profile.timezone.zone_of(name).is_ok()).unwrap_or_else(default)
}

fn zone_named(profile: &Profile, name: &str) -> Result<Zone> {
    profile.timezone.zone_of(name).map_err(|message| {
        let advice = Phrase::from("check timezone = '…'") + Setting::Timezone.any().after(" and ");
        Error::new(ErrorKind::Query, message).advice(advice)
    })
}

/// Returns notes on conditions that compare a time of mentions other than the one that windows refer to: they do not
/// extend the default window.
fn other_times(profile: &Profile, spec: &TableSpec, conjuncts: &[Expr]) -> Vec<String> {
    let Some(time) = &spec.time else { return Vec::new() };
    let other = |column: &&ColumnSpec| {
        column.kind == ColumnType::Timestamp && column.name != *time && matches!(column.origin, Origin::Field(..))
    };
    let compared = spec.columns.iter().filter(other).filter(|column| {
        conjuncts.iter().any(|conjunct| {
            looks_at(conjunct, &column.name) && ranges(conjunct, TimeColumn::named(spec, &column.name)).is_some()
        })
    });
    let (default, table) = (&profile.window.default, &spec.name);
    compared
        .map(|column| {
            format!(
                "`{}` does not extend the default window of {table} (`{default}`), which refers to `{time}`; add a filter on \
                 `{time}`",
                column.name
            )
        })
        .collect()
}

/// Refuses a table that the profile does not describe completely.
fn refuse_unsupported(table: &TableSpec) -> Result<()> {
    let Some(why) = &table.unsupported else { return Ok(()) };
    let advice = format!("complete [tables.{}] in the profile, and remove `unsupported` from it", table.name);
    Err(Error::new(ErrorKind::Query, format!("the table cannot be read: {why}")).advice(advice))
}

/// Returns a note on rows that are days of another zone than the session's. Days of mentions are computed here.
fn other_days(table: &TableSpec, zone: &str, session: &str) -> Option<String> {
    let in_database = |name: &str| name.parse::<Zone>().ok().and_then(Zone::in_database);
    let other = !session.is_empty() && in_database(zone) != in_database(session);
    let table = Some(&table.name).filter(|_| table.kind == TableKind::Volume && other)?;
    Some(format!("the rows of {table} are days of {zone}: the service cannot count those of {session}"))
}

/// Returns a note on a value that no section has as its label: no row has it.
fn unknown_label(spec: &TableSpec, values: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    let column = spec.column_from(&Origin::Section)?;
    let labels: Vec<&str> = spec.sections.iter().map(|section| section.label.as_str()).collect();
    let unknown = values.get(column)?.iter().find(|value| !labels.contains(&value.as_str()))?;
    let advice = match nearest_name(unknown, &labels) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("its values are {}", labels.join(", ")),
    };
    Some(shortened(format!("no row of {} has the {column} `{unknown}`; {advice}", spec.name)))
}

/// Returns a note on a time that must be midnight, as for `published_at = '2026-06-20'`: few mentions are of that instant. Likewise
/// on a last day of which nothing but midnight is left, as for `published_at <= '2026-06-20'`.
fn at_midnight(range: &Ranges, time: TimeColumn<'_>) -> Option<String> {
    let name = time.name();
    if let Some(day) = first_midnight(range, time) {
        return Some(format!(
            "the conditions on {name} leave one instant, midnight of {day}; for the whole day, use \
             {name}::date = '{day}'"
        ));
    }
    let day = cut_day(range, time)?;
    let next = day.succ_opt()?;
    Some(format!(
        "the conditions on {name} end with the first instant of {day}; for the whole day, use {name} < '{next}' or \
         {name}::date <= '{day}'"
    ))
}

/// Returns such notes on the times of mentions that windows do not refer to.
fn other_midnights(spec: &TableSpec, conjuncts: &[Expr], now: DateTime<Utc>) -> Vec<String> {
    let is_other =
        |column: &&ColumnSpec| column.kind == ColumnType::Timestamp && spec.time.as_ref() != Some(&column.name);
    let note = |column: &ColumnSpec| {
        let time = TimeColumn::named(spec, &column.name);
        among(conjuncts.iter(), time, now)
    };
    spec.columns.iter().filter(is_other).filter_map(note).collect()
}

/// Returns such a note on a condition that no scan evaluates.
pub(crate) fn instant_of_day(condition: &Expr, time: TimeColumn<'_>, now: DateTime<Utc>) -> Option<String> {
    among(split_conjunction(condition).into_iter(), time, now)
}

/// Returns such a note on the conjuncts that bound a time.
fn among<'e>(conjuncts: impl Iterator<Item = &'e Expr>, time: TimeColumn<'_>, now: DateTime<Utc>) -> Option<String> {
    let allowed = conjuncts.filter_map(|conjunct| ranges(conjunct, time)).reduce(|one, other| one.and(&other))?;
    at_midnight(&without_far_end(&allowed, now), time)
}

/// Returns a note on a period that contains none of the times of a range, such as `duration = '7d'` beside times of last year.
fn period_apart(
    profile: &Profile,
    words: &str,
    range: &Ranges,
    time: &str,
    zone: Zone,
    now: DateTime<Utc>,
) -> Option<String> {
    /// Services may begin and end a period at midnight, and rows of days begin before it.
    const MARGIN: TimeDelta = TimeDelta::days(1);
    let spec = &profile.window;
    let relative = || Some((now.checked_sub_signed(spec.length_of(words)?)?, now));
    let (from, to) = spec.span_of(words, zone).or_else(relative)?;
    let (from, to) = (from.checked_sub_signed(MARGIN)?, to.checked_add_signed(MARGIN)?);
    let period = Ranges::of([Range { from: from.timestamp_micros(), to: to.timestamp_micros() }], true);
    let apart = !range.spans().is_empty() && range.and(&period).spans().is_empty();
    apart.then(|| format!("the period `{words}` has none of the times that the conditions on {time} allow"))
}

/// A range without an end that no mention reaches. Tools write `9999-12-31` for it, which no service accepts in a period.
fn without_far_end(range: &Ranges, now: DateTime<Utc>) -> Ranges {
    /// Ten years.
    const FAR: TimeDelta = TimeDelta::days(3_652);
    let far = (now + FAR).timestamp_micros();
    range.map(range.exact, |span| if span.to >= far { Range { to: Range::OPEN.to, ..span } } else { span })
}

fn ends_open(bounds: &Ranges) -> bool {
    bounds.spans().last().is_some_and(|last| last.end().is_none())
}

/// Refuses conditions on request parameters, or on values derived from them, that do not determine the request: they
/// would filter the response to a different request.
fn refuse_conditions_on_the_question(spec: &TableSpec, conjuncts: &[Expr], default_window: bool) -> Result<()> {
    for column in &spec.columns {
        let sent = matches!(column.origin, Origin::Duration | Origin::Timezone);
        let resolved = matches!(column.origin, Origin::Field(_, Scope::Answer)) && default_window;
        let chooses = |conjunct: &Expr| sent && values(conjunct).is_some();
        if (sent || resolved) && conjuncts.iter().any(|c| looks_at(c, &column.name) && !chooses(c)) {
            let name = &column.name;
            return Err(Error::new(
                ErrorKind::Query,
                format!("a condition on `{name}` cannot set the time window or zone"),
            )
            .advice("use duration = '…' or timezone = '…' with a single value"));
        }
    }
    Ok(())
}

/// Refuses conditions on a time of mentions from which no window follows: rows outside the default window would be missing.
fn refuse_times_without_window(spec: &TableSpec, conjuncts: &[Expr]) -> Result<()> {
    let compared = |name: &str| {
        let is_present = |conjunct: &Expr| matches!(conjunct, Expr::IsNotNull(_) | Expr::IsNull(_));
        let bounds =
            |conjunct: &&Expr| looks_at(conjunct, name) && !is_present(conjunct) && !bounds_nothing(conjunct, name);
        conjuncts.iter().any(|conjunct| bounds(&conjunct))
    };
    let no_time = spec.kind == TableKind::Mentions && spec.time.is_none();
    for ColumnSpec { name, kind, is_unzoned, .. } in &spec.columns {
        let why = match kind {
            _ if *is_unzoned && compared(name) => "it is a text, because the form or the zone of its times is unknown",
            ColumnType::Timestamp if no_time && compared(name) => {
                "the profile does not say which time of a mention windows refer to"
            }
            _ => continue,
        };
        let message = format!("a condition on `{name}` cannot set the time window: {why}");
        return Err(Error::new(ErrorKind::Query, message).advice(
            "give the window by duration = '…', or complete the columns and `time` of [tables.mentions] in the profile",
        ));
    }
    Ok(())
}

/// Returns the time range allowed by conditions that became known at run time; `None` if none concerns the time. A
/// condition that uses the time without bounding it is not satisfied by the default window.
fn later_range(conjuncts: &[Expr], time: Option<TimeColumn<'_>>, unread: bool) -> Option<Ranges> {
    let about_time = conjuncts.iter().filter_map(|conjunct| {
        let time = time.filter(|time| looks_at(conjunct, time.name()))?;
        Some(ranges(conjunct, time).unwrap_or_else(Ranges::all))
    });
    let together = about_time.chain(unread.then(Ranges::all)).reduce(|a, b| a.and(&b));
    together.map(|range| range.widened())
}

/// The columns of a table that determine the request, by their values or their ranges.
struct QuestionColumns<'t> {
    aid: Option<&'t str>,
    duration: Option<&'t str>,
    timezone: Option<&'t str>,
    time: Option<&'t str>,
    /// The time with the zone of the session.
    instants: Option<TimeColumn<'t>>,
}

impl<'t> QuestionColumns<'t> {
    fn of(table: &'t TableSpec) -> Self {
        Self {
            aid: table.column_from(&Origin::Aid),
            duration: table.column_from(&Origin::Duration),
            timezone: table.column_from(&Origin::Timezone),
            time: table.time.as_deref(),
            instants: TimeColumn::of(table),
        }
    }
}

/// The combined constraints of conjuncts.
#[derive(Default)]
struct Known {
    /// Allowed values by column.
    values: BTreeMap<String, BTreeSet<String>>,
    /// The instants that they allow; `None` if none uses the time.
    range: Option<Ranges>,
    /// Set if one of the conjuncts is never true.
    never: bool,
    /// All other conjuncts, as text.
    others: Vec<String>,
}

impl Known {
    fn read(conjuncts: &[Expr], columns: &QuestionColumns<'_>) -> Self {
        let mut known = Self { never: conjuncts.iter().any(never), ..Self::default() };
        for conjunct in conjuncts.iter().filter(|conjunct| !always(conjunct)) {
            if let Some((aid, any_of)) = columns.aid.and_then(|aid| Some((aid, implied_values(conjunct, aid)?))) {
                // The conjunct may require more, so it is also read below.
                known.restrict(aid, any_of);
            }
            if let Some((column, any_of)) = values(conjunct).filter(|(column, _)| Some(*column) != columns.time) {
                known.restrict(column, any_of);
            } else if let Some(allowed) = columns.instants.and_then(|time| ranges(conjunct, time)) {
                known.bound(&allowed);
            } else if columns.aid.is_some_and(|aid| looks_only_at(conjunct, aid)) {
                // Evaluated over the aids: it keeps or drops a saved search as a whole.
            } else {
                // The default window must not stand in for a conjunct that uses the time column without bounding it.
                if columns.time.is_some_and(|time| looks_at(conjunct, time) && !bounds_nothing(conjunct, time)) {
                    known.bound(&Ranges::all());
                }
                known.others.push(conjunct.human_display().to_string());
            }
        }
        known
    }

    /// Reads only what conjuncts say about the window and the zone.
    fn of_question(conjuncts: &[Expr], columns: &QuestionColumns<'_>) -> Self {
        let mut known = Self::default();
        let asked = |column: &str| Some(column) == columns.duration || Some(column) == columns.timezone;
        for (column, any_of) in conjuncts.iter().filter_map(values).filter(|(column, _)| asked(column)) {
            known.restrict(column, any_of);
        }
        known
    }

    fn restrict(&mut self, column: &str, any_of: BTreeSet<String>) {
        match self.values.get_mut(column) {
            Some(known) => known.retain(|value| any_of.contains(value)),
            None => {
                self.values.insert(column.to_owned(), any_of);
            }
        }
    }

    fn bound(&mut self, allowed: &Ranges) {
        self.range = Some(match self.range.take() {
            Some(known) => known.and(allowed),
            None => Ranges::all().and(allowed),
        });
    }

    fn aids(&mut self, aid: Option<&str>) -> Aids {
        match aid.and_then(|aid| self.values.remove(aid)) {
            Some(aids) => Aids::Given(aids.into_iter().collect()),
            None => Aids::Listed,
        }
    }

    /// Returns the value of a column that takes a single value, and records in `chosen` that it is given.
    fn choose(&mut self, column: Option<&str>, chosen: &mut BTreeSet<String>) -> Result<Option<String>> {
        let value = self.one_of(column)?;
        chosen.extend(column.filter(|_| value.is_some()).map(str::to_owned));
        Ok(value)
    }

    /// Returns the value of a column that takes a single value. An empty set of values is a contradiction, which the
    /// caller detects later.
    fn one_of(&mut self, column: Option<&str>) -> Result<Option<String>> {
        let Some(column) = column else { return Ok(None) };
        match self.values.get(column) {
            Some(values) if values.len() > 1 => {
                let values: Vec<_> = values.iter().map(String::as_str).collect();
                Err(Error::new(
                    ErrorKind::Query,
                    format!("`{column}` takes a single value, not {}", values.join(" and ")),
                )
                .advice("use one query per value, combined with UNION ALL"))
            }
            Some(values) if values.is_empty() => Ok(None),
            _ => Ok(self.values.remove(column).and_then(|values| values.into_iter().next())),
        }
    }

    /// Takes out the filters that can be sent to the service. Also returns the first list of values that is too long, in parts that
    /// can be sent beside them.
    fn filters(&mut self, profile: &Profile) -> (Vec<FilterTerm>, Vec<FilterTerm>) {
        let spec = &profile.filters;
        let can_be_sent = |value: &String| {
            !value.is_empty() && (spec.several != Several::Separated || !value.contains(&spec.separator))
        };
        // Each value with its separator, or its parameter.
        let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).map(str::len).sum::<usize>();
        let length = |parameter: &str, value: &str| {
            let between = if spec.several == Several::Separated { &spec.separator } else { parameter };
            encoded(value) + encoded(between) + 2
        };
        let (mut left, mut long) = (spec.longest, None);
        let taken = spec.parameters.iter().filter_map(|FilterParameter { parameter, column }| {
            let values = self.values.get(column)?;
            let one = spec.several != Several::None || values.len() == 1;
            if !one || !values.iter().all(can_be_sent) {
                return None;
            }
            let Some(rest) = left.checked_sub(values.iter().map(|value| length(parameter, value)).sum()) else {
                long = long.take().or(Some((parameter, values.clone())));
                return None;
            };
            left = rest;
            let values = self.values.remove(column).unwrap_or_default();
            Some(FilterTerm { parameter: parameter.clone(), values: values.into_iter().collect() })
        });
        let taken: Vec<FilterTerm> = taken.collect();
        let mut parts: Vec<FilterTerm> = Vec::new();
        if let Some((parameter, values)) = long {
            let mut free = 0;
            for value in values {
                let length = length(parameter, &value);
                match parts.last_mut().filter(|_| length <= free) {
                    Some(part) => part.values.push(value),
                    None => {
                        parts.push(FilterTerm { parameter: parameter.clone(), values: vec![value] });
                        free = left;
                    }
                }
                free = free.saturating_sub(length);
            }
        }
        (taken, parts)
    }

    /// True if no row satisfies the conjuncts.
    fn contradicts(&self) -> bool {
        let no_instant = self.range.as_ref().is_some_and(|range| range.spans().is_empty());
        self.never || no_instant || self.values.values().any(BTreeSet::is_empty)
    }

    /// The conjuncts that are not sent to the service, as text.
    fn kept(self) -> Vec<String> {
        let values = self.values.into_keys().map(|column| format!("the condition on {column}"));
        self.others.into_iter().chain(values).collect()
    }
}

#[cfg(test)]
mod tests;
