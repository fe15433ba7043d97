//! Decides what is asked of the service for one scan.

use std::collections::{BTreeMap, BTreeSet};

use arrow::compute::SortOptions;
use chrono::{DateTime, Utc};
use datafusion::logical_expr::Expr;

use super::interval_set::Ranges;
use super::predicate::{looks_at, looks_only_at, never, values};
use super::sort::{ServiceOrder, service_order};
use super::time_predicate::ranges;
use super::window::{Windows, windows_of};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{ColumnSpec, ColumnType, Origin, Profile, Scope, Several, TableSpec, Zone};
use crate::request::{Endpoint, FilterTerm, Pages, RequestPlan};

/// A table of the SQL surface that maps to the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// Entries of the list.
    SavedSearches,
    /// Mention records.
    Mentions,
    /// Totals.
    Overview,
    /// The timeline.
    Volume,
    /// The top lists.
    Breakdowns,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::SavedSearches, Self::Mentions, Self::Overview, Self::Volume, Self::Breakdowns];

    /// Name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::SavedSearches => "saved_searches",
            Self::Mentions => "mentions",
            Self::Overview => "overview",
            Self::Volume => "volume",
            Self::Breakdowns => "breakdowns",
        }
    }

    /// Its columns in the profile.
    pub fn spec(self, profile: &Profile) -> &TableSpec {
        match self {
            Self::SavedSearches => &profile.tables.saved_searches,
            Self::Mentions => &profile.tables.mentions,
            Self::Overview => &profile.tables.overview,
            Self::Volume => &profile.tables.volume,
            Self::Breakdowns => &profile.tables.breakdowns,
        }
    }
}

/// The saved searches that a scan asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Aids {
    /// None: the table comes from the list itself.
    NotNeeded,
    /// These. Empty: the conjuncts contradict each other, and nothing is asked.
    Given(Vec<String>),
    /// Those that the list names when the scan starts.
    Listed,
}

/// What is asked of the service for one scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPlan {
    /// The requests, without an aid and a period yet.
    pub template: RequestPlan,
    /// Their aids.
    pub aids: Aids,
    /// Their periods, disjoint and in order of time; none for the list.
    pub windows: Vec<String>,
    /// The periods in pieces, each with whether the service gives just the rows that satisfy all conjuncts for it, where
    /// bounds within a second are all that keeps the whole from being [`exact`](Self::exact).
    pub pieces: Option<Vec<(String, bool)>>,
    /// The first instant that is wanted of each mention's time, where the window begins earlier because the service takes
    /// no other: mentions are read in this order, newest first, until one is older.
    pub until: Option<(ServiceOrder, DateTime<Utc>)>,
    /// Whether the service gives just the rows that satisfy all conjuncts, so that a limit can be told to it.
    pub exact: bool,
    /// The range of time that the conjuncts allow, where it chooses the periods: `None` where they bound no time, or give the
    /// period itself.
    pub(super) range: Option<Ranges>,
    /// Whether nothing says when the range begins. The scan is refused unless that is told later.
    pub(super) open: bool,
    /// Whether nothing says when the range ends: it ends a little after now, by the clock that it was planned by.
    pub ends_open: bool,
    /// Conjuncts that the service is not sent, in words.
    pub kept: Vec<String>,
    /// Whether the window is the profile's default, since the query bounds no time.
    pub default_window: bool,
    /// Columns that repeat what was asked for, such as `duration`, to which the conjuncts give a value.
    pub chosen: BTreeSet<String>,
    /// What the author of the query should know about what is read.
    pub notes: Vec<String>,
}

/// What the conjuncts say together.
#[derive(Default)]
struct Known {
    values: BTreeMap<String, BTreeSet<String>>,
    /// Conjuncts that say something else, in words.
    others: Vec<String>,
}

/// Plans the scan of a table under these conjuncts. `timezone` is the session's zone; empty: the profile's default.
///
/// # Errors
/// [`ErrorKind::Query`] for what the service cannot be asked: several periods or zones at once, words that are none, a
/// range that is too long. One that is open to the past makes a plan that [is open](ScanPlan::is_open).
pub fn plan_scan(
    profile: &Profile,
    table: Table,
    conjuncts: &[Expr],
    timezone: &str,
    now: DateTime<Utc>,
) -> Result<ScanPlan> {
    if table == Table::SavedSearches {
        let contradiction = conjuncts.iter().any(never);
        return Ok(ScanPlan {
            template: RequestPlan::list(),
            aids: if contradiction { Aids::Given(Vec::new()) } else { Aids::NotNeeded },
            windows: Vec::new(),
            pieces: None,
            until: None,
            exact: conjuncts.is_empty(),
            range: None,
            open: false,
            ends_open: false,
            kept: Vec::new(),
            default_window: false,
            chosen: BTreeSet::new(),
            notes: Vec::new(),
        });
    }
    let spec = table.spec(profile);
    let time = spec.time.as_deref();
    let column = |origin: Origin| spec.columns.iter().find(|c| c.origin == origin).map(|c| c.name.as_str());
    let aid = column(Origin::Aid);
    let mut known = Known::default();
    let mut bounds = Ranges::all();
    let mut bounded = false;
    for conjunct in conjuncts {
        if let Some((column, any_of)) = values(conjunct).filter(|(column, _)| Some(*column) != time) {
            known.restrict(column, any_of);
        } else if let Some(allowed) = time.and_then(|time| ranges(conjunct, time)) {
            bounds = bounds.and(&allowed);
            bounded = true;
        } else if aid.is_some_and(|aid| looks_only_at(conjunct, aid)) {
            // It is evaluated over the aids, and chooses saved searches whole.
        } else {
            // A conjunct on the time column that bounds nothing must not be met by the default window.
            bounded |= time.is_some_and(|time| looks_at(conjunct, time));
            known.others.push(conjunct.human_display().to_string());
        }
    }

    let aids = match aid.and_then(|aid| known.values.remove(aid)) {
        Some(aids) => Aids::Given(aids.into_iter().collect()),
        None => Aids::Listed,
    };
    let mut chosen = BTreeSet::new();
    let asked_zone = known.one_of(column(Origin::Timezone))?;
    chosen.extend(column(Origin::Timezone).filter(|_| asked_zone.is_some()).map(str::to_owned));
    let default_zone = if timezone.is_empty() { &profile.timezone.default } else { timezone };
    let zone_name = asked_zone.as_deref().unwrap_or(default_zone);
    let zone = zone_named(profile, zone_name)?;

    let asked_words = known.one_of(column(Origin::Duration))?;
    chosen.extend(column(Origin::Duration).filter(|_| asked_words.is_some()).map(str::to_owned));
    let period_given = asked_words.is_some();
    let mut default_window = false;
    let mut open = false;
    let windows = match (asked_words, time) {
        (Some(words), _) => one_window(profile, words, !bounded)?,
        (None, Some(time)) if bounded => {
            match windows_of(&profile.window, &bounds, time, zone, table == Table::Volume, now) {
                Err(_) if bounds.spans().first().is_some_and(|first| first.start().is_none()) => {
                    open = true;
                    Windows { words: Vec::new(), exact: false, pieces: None, since: None }
                }
                windows => windows?,
            }
        }
        (None, _) => {
            default_window = true;
            one_window(profile, profile.window.default.clone(), true)?
        }
    };

    refuse_conditions_on_the_question(spec, conjuncts, default_window)?;
    let notes = if default_window { other_times(profile, spec, conjuncts) } else { Vec::new() };

    let mut filters = Vec::new();
    if table == Table::Mentions {
        for parameter in &profile.filters.parameters {
            let Some(values) = known.values.get(&parameter.column) else { continue };
            let sayable = |value: &String| {
                !value.is_empty()
                    && (profile.filters.several != Several::Separated || !value.contains(&profile.filters.separator))
            };
            let one = profile.filters.several != Several::None || values.len() == 1;
            if one && values.iter().all(sayable) {
                let values = known.values.remove(&parameter.column).unwrap_or_default();
                filters
                    .push(FilterTerm { parameter: parameter.parameter.clone(), values: values.into_iter().collect() });
            }
        }
    }

    let contradiction = bounds.spans().is_empty()
        || conjuncts.iter().any(never)
        || known.values.values().any(BTreeSet::is_empty)
        || filters.iter().any(|filter| filter.values.is_empty());
    let pages =
        (table == Table::Mentions).then_some(Pages { size: profile.page.max, skip: 0, fetch: None, ordered: false });
    let mut kept = known.others;
    kept.extend(known.values.keys().map(|column| format!("that on {column}")));
    let native = kept.is_empty();
    let exact = windows.exact && native;
    if native && !exact && windows.pieces.is_none() {
        kept.extend(time.map(|time| format!("just the range of {time}")));
    }
    let plan = ScanPlan {
        template: RequestPlan {
            endpoint: Endpoint::Search,
            aid: None,
            duration: None,
            timezone: Some(zone_name.to_owned()),
            filters,
            sort: None,
            pages,
        },
        aids: if contradiction { Aids::Given(Vec::new()) } else { aids },
        windows: Vec::new(),
        pieces: None,
        until: None,
        exact,
        range: (bounded && !period_given).then_some(bounds.clone()),
        open,
        ends_open: bounded && ends_open(&bounds),
        kept,
        default_window,
        chosen,
        notes,
    };
    Ok(plan.with_windows(profile, time, windows, native))
}

impl ScanPlan {
    /// Whether the service gives just the rows that satisfy all conjuncts, bounds within a second apart.
    pub fn countable(&self) -> bool {
        self.exact || self.pieces.is_some()
    }

    /// Whether something has yet to say when the range begins.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// The plan under these conjuncts as well, which were not known when it was made: when its mentions were published, and
    /// the period and the zone to ask for. They take the place of the default window.
    ///
    /// `unread`: whether there are others about the time that cannot be read.
    ///
    /// # Errors
    /// [`ErrorKind::Query`] where they do not say where the range begins, or name what the service cannot be asked.
    pub fn bounded_by(
        self,
        profile: &Profile,
        table: Table,
        conjuncts: &[Expr],
        unread: bool,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        if conjuncts.iter().any(never) {
            return Ok(Self { aids: Aids::Given(Vec::new()), open: false, ..self });
        }
        let spec = table.spec(profile);
        let time = spec.time.as_deref();
        refuse_conditions_on_the_question(spec, conjuncts, false)?;
        let column = |origin: Origin| spec.columns.iter().find(|c| c.origin == origin).map(|c| c.name.as_str());
        let (duration, timezone) = (column(Origin::Duration), column(Origin::Timezone));
        let mut known = Known::default();
        let told = conjuncts.iter().filter_map(values);
        told.filter(|(column, _)| Some(*column) == duration || Some(*column) == timezone)
            .for_each(|(column, any_of)| known.restrict(column, any_of));
        let countable = self.countable();
        let mut plan = Self { pieces: None, ..self };
        if let Some(zone) = known.one_of(timezone)? {
            plan.template.timezone = Some(zone);
        }
        let zone = plan.template.timezone.as_deref().map(|zone| zone_named(profile, zone)).transpose()?;
        let zone = zone.unwrap_or(Zone::UTC);
        let words = known.one_of(duration)?;
        if known.values.values().any(BTreeSet::is_empty) {
            return Ok(Self { aids: Aids::Given(Vec::new()), open: false, ..plan });
        }
        // What was said when the plan was made, and what is said now. One that looks at the time and bounds nothing is not met
        // by the default window.
        let about_time = conjuncts.iter().filter(|conjunct| time.is_some_and(|time| looks_at(conjunct, time)));
        let mut later: Vec<Ranges> =
            about_time.map(|conjunct| ranges(conjunct, time.unwrap_or_default()).unwrap_or_else(Ranges::all)).collect();
        later.extend(unread.then(Ranges::all));
        let native = countable && later.is_empty();
        let later = later.into_iter().reduce(|a, b| a.and(&b)).map(|later| later.widened());
        let bounds = match (plan.range.take(), later) {
            (Some(range), Some(later)) => Some(range.and(&later)),
            (range, later) => range.or(later),
        };
        plan.open = false;
        plan.range = bounds.clone();
        let windows = match (words, bounds) {
            (Some(words), bounds) => {
                (plan.default_window, plan.ends_open) = (false, false);
                // The period need not be the range.
                one_window(profile, words, bounds.is_none())?
            }
            (None, Some(bounds)) => {
                (plan.default_window, plan.ends_open) = (false, ends_open(&bounds));
                windows_of(&profile.window, &bounds, time.unwrap_or_default(), zone, table == Table::Volume, now)?
            }
            // The zone alone: the periods stay as they are.
            (None, None) => Windows {
                words: plan.windows.clone(),
                exact: true,
                pieces: None,
                since: plan.until.take().map(|(_, at)| at),
            },
        };
        plan.exact = native && windows.exact;
        let Windows { words, exact, pieces, since } = windows;
        // What was to be counted, and cannot be, is read.
        let pieces = pieces.or_else(|| (!exact).then(|| words.iter().map(|words| (words.clone(), false)).collect()));
        let windows = Windows { words, exact, pieces, since };
        let empty = windows.words.is_empty();
        let plan = plan.with_windows(profile, time, windows, native);
        Ok(if empty { Self { aids: Aids::Given(Vec::new()), ..plan } } else { plan })
    }

    fn with_windows(mut self, profile: &Profile, time: Option<&str>, windows: Windows, native: bool) -> Self {
        let by_time = |descending| {
            let options = SortOptions { descending, nulls_first: false };
            self.template.pages.and(time).and_then(|time| service_order(profile, time, options))
        };
        let until = windows.since.and_then(|since| Some((by_time(true)?, since)));
        // Oldest first, so that mentions that arrive meanwhile come at the end.
        let sort = until.as_ref().map(|(order, _)| order.clone()).or_else(|| by_time(false));
        self.template.sort = sort.map(|order| order.value);
        self.windows = windows.words;
        self.pieces = windows.pieces.filter(|_| native);
        self.until = until;
        self
    }
}

/// One window in the service's words.
fn one_window(profile: &Profile, words: String, exact: bool) -> Result<Windows> {
    profile.window.check_words(&words).map_err(|message| Error::new(ErrorKind::Query, message))?;
    Ok(Windows { words: vec![words], exact, pieces: None, since: None })
}

fn zone_named(profile: &Profile, name: &str) -> Result<Zone> {
    profile
        .timezone
        .zone_of(name)
        .map_err(|message| Error::new(ErrorKind::Query, message).advice("see timezone, and SET savedsearch.timezone"))
}

/// Notes on conditions that compare an instant of a mention other than the one that windows are about: they do not widen the
/// default window.
fn other_times(profile: &Profile, spec: &TableSpec, conjuncts: &[Expr]) -> Vec<String> {
    let Some(time) = &spec.time else { return Vec::new() };
    let other = |column: &&ColumnSpec| {
        column.kind == ColumnType::Timestamp && column.name != *time && matches!(column.origin, Origin::Field(..))
    };
    let compared = spec.columns.iter().filter(other).filter(|column| {
        conjuncts.iter().any(|conjunct| looks_at(conjunct, &column.name) && ranges(conjunct, &column.name).is_some())
    });
    let (default, table) = (&profile.window.default, Table::Mentions.name());
    compared
        .map(|column| {
            format!(
                "`{}` does not widen what is read: {table} of the last {default} by `{time}`; add a range of `{time}`",
                column.name
            )
        })
        .collect()
}

fn ends_open(bounds: &Ranges) -> bool {
    bounds.spans().last().is_some_and(|last| last.end().is_none())
}

/// Conditions on what is sent, or on what came of it, that do not choose it: they would filter the answer to another
/// question.
fn refuse_conditions_on_the_question(spec: &TableSpec, conjuncts: &[Expr], default_window: bool) -> Result<()> {
    for column in &spec.columns {
        let sent = matches!(column.origin, Origin::Duration | Origin::Timezone);
        let resolved = matches!(column.origin, Origin::Field(_, Scope::Answer)) && default_window;
        let chooses = |conjunct: &Expr| sent && values(conjunct).is_some();
        if (sent || resolved) && conjuncts.iter().any(|c| looks_at(c, &column.name) && !chooses(c)) {
            let name = &column.name;
            return Err(Error::new(
                ErrorKind::Query,
                format!("a condition on `{name}` cannot choose what is asked for"),
            )
            .advice("say it by duration = '…' or timezone = '…', with one value"));
        }
    }
    Ok(())
}

impl Known {
    fn restrict(&mut self, column: &str, any_of: BTreeSet<String>) {
        match self.values.get_mut(column) {
            Some(known) => known.retain(|value| any_of.contains(value)),
            None => {
                self.values.insert(column.to_owned(), any_of);
            }
        }
    }

    /// The value of a column that can have one at a time only. No value at all is a contradiction, which the caller
    /// sees later.
    fn one_of(&mut self, column: Option<&str>) -> Result<Option<String>> {
        let Some(column) = column else { return Ok(None) };
        match self.values.get(column) {
            Some(values) if values.len() > 1 => {
                let values: Vec<_> = values.iter().map(String::as_str).collect();
                Err(Error::new(
                    ErrorKind::Query,
                    format!("`{column}` can have one value at a time, not {}", values.join(" and ")),
                )
                .advice("use one query for each, combined by UNION ALL"))
            }
            Some(values) if values.is_empty() => Ok(None),
            _ => Ok(self.values.remove(column).and_then(|values| values.into_iter().next())),
        }
    }
}

#[cfg(test)]
mod tests;
