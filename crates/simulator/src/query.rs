//! Search requests: validates parameters, resolves the window, selects and sorts mentions.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

use super::dataset::{Facts, Mention, SavedSearch};
use super::dialect::{Absolute, Dialect, MentionsSwitch, Several, ZoneForm};
use super::fault_injection::{EstimateSign, List, Nulls};
use super::zone::Zone;

/// A validated request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Query {
    pub(super) aid: String,
    /// The window that is used.
    pub(super) from: DateTime<Utc>,
    pub(super) to: DateTime<Utc>,
    /// The window that was requested.
    pub(super) asked: (DateTime<Utc>, DateTime<Utc>),
    pub(super) timezone: Zone,
    /// The zone as given in the request.
    pub(super) said: String,
    pub(super) filters: Vec<(Filter, Vec<String>)>,
    pub(super) sort: Order,
    pub(super) data_from: u64,
    pub(super) data_size: u64,
    pub(super) variant: Variant,
}

/// Deviations from the contract.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Variant {
    /// Filters select mentions without a value too.
    pub(super) wider_filters: bool,
    /// Filters select values that begin with this many equal letters.
    pub(super) similar_letters: Option<u64>,
    /// The window does not contain the instant that it begins with.
    pub(super) start_excluded: bool,
    /// The window contains the instant that it ends with.
    pub(super) end_included: bool,
    /// Place of missing values.
    pub(super) nulls: Option<Nulls>,
    /// The response reports the requested window; the numbers count it.
    pub(super) echo_asked: bool,
    pub(super) counts_asked: bool,
    /// Percentage of mentions that are missing from everything.
    pub(super) left_out: u64,
    /// The overview ignores the filters.
    pub(super) overview_of_all: bool,
    /// Errors of the overview's total, of a day of its timeline, and of an entry of a list.
    pub(super) overview_off: i64,
    pub(super) timeline_off: i64,
    pub(super) list_off: Option<(List, i64)>,
    /// The days of the timeline have no starts.
    pub(super) no_starts: bool,
    /// The copy that answers has no later mentions.
    pub(super) copied_at: Option<DateTime<Utc>>,
    /// Mentions that lists count with another value, and the sign of an estimate that they have.
    pub(super) estimated: Option<(i64, EstimateSign)>,
    /// The mentions of the newest day follow all others.
    pub(super) newest_last: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Filter {
    Language,
    Country,
    Source,
    Sentiment,
    Type,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Order {
    key: Key,
    descending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Date,
    Reach,
    Engagement,
}

/// An invalid parameter: its name and the reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Invalid {
    pub(super) field: String,
    pub(super) message: String,
}

fn invalid(field: &str, message: impl Into<String>) -> Invalid {
    Invalid { field: field.to_owned(), message: message.into() }
}

impl Query {
    /// Validates the parameters of a request that arrives at `now`. `largest` overrides the dialect's maximum page
    /// size.
    pub(super) fn parse(
        parameters: &[(String, String)],
        now: DateTime<Utc>,
        dialect: &Dialect,
        largest: Option<u64>,
    ) -> Result<Self, Invalid> {
        let mut given = Given(parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect());
        let aid = given.take("aid")?.filter(|aid| !aid.is_empty()).ok_or_else(|| invalid("aid", "is required"))?;
        let (timezone, said) = zone(dialect.zone, given.take("timezone")?)?;
        let (from, to) = period(dialect, &mut given, timezone, now)?;
        let sort = order(dialect, given.take("sortBy")?)?;
        let wanted = match dialect.asked {
            MentionsSwitch::Size | MentionsSwitch::Always => true,
            MentionsSwitch::Flag(name, value) => given.take(name)? == Some(value),
        };
        let offset = number("dataFrom", given.take("dataFrom")?)?;
        let size = number("dataSize", given.take("dataSize")?)?;
        let (data_from, data_size) =
            if wanted { rows(dialect, offset, size, largest.unwrap_or(dialect.largest))? } else { (0, 0) };
        let mut filters = Vec::new();
        for (name, filter) in dialect.filters {
            let values = match dialect.several {
                Several::Separated(separator) => given.take(name)?.map(|values| values.split(separator).collect()),
                Several::One => given.take(name)?.map(|value| vec![value]),
                Several::Repeated => Some(given.take_all(name)).filter(|values| !values.is_empty()),
            };
            let Some(values) = values else { continue };
            if values.contains(&"") {
                return Err(invalid(name, "has an empty value"));
            }
            filters.push((*filter, values.into_iter().map(str::to_owned).collect()));
        }
        if let Some((name, _)) = given.0.first().filter(|_| dialect.strict) {
            return Err(invalid(name, "is not a parameter of search"));
        }
        let (aid, variant) = (aid.to_owned(), Variant::default());
        let asked = (from, to);
        Ok(Self { aid, from, to, asked, timezone, said, filters, sort, data_from, data_size, variant })
    }

    /// The positions of the matching mentions, by time of publication.
    pub(super) fn matching(&self, search: &SavedSearch) -> Vec<u32> {
        let mentions = &search.mentions;
        let before = |mention: &Arc<Mention>| {
            mention.facts.published < self.from || (self.variant.start_excluded && mention.facts.published == self.from)
        };
        let start = mentions.partition_point(before);
        let within = |mention: &Arc<Mention>| {
            mention.facts.published < self.to || (self.variant.end_included && mention.facts.published == self.to)
        };
        let end = mentions.partition_point(within).max(start);
        let positions = (start..end).filter(|at| self.takes(&mentions[*at].facts));
        let positions = positions.filter(|at| !is_chosen(&mentions[*at].facts.id, self.variant.left_out));
        let copied =
            |at: &usize| self.variant.copied_at.is_none_or(|copied_at| mentions[*at].facts.published < copied_at);
        let positions = positions.filter(copied);
        positions.map(|at| u32::try_from(at).unwrap_or(u32::MAX)).collect()
    }

    /// The query whose mentions the numbers of the response count.
    pub(super) fn counted(&self) -> Self {
        let (from, to) = if self.variant.counts_asked { self.asked } else { (self.from, self.to) };
        Self { from, to, ..self.clone() }
    }

    /// The window that the response reports.
    pub(super) fn echoed(&self) -> (DateTime<Utc>, DateTime<Utc>) {
        if self.variant.echo_asked { self.asked } else { (self.from, self.to) }
    }

    fn takes(&self, facts: &Facts) -> bool {
        self.filters.iter().all(|(filter, values)| {
            let value = match filter {
                Filter::Language => &facts.language,
                Filter::Country => &facts.country,
                Filter::Source => &facts.source,
                Filter::Sentiment => &facts.sentiment,
                Filter::Type => &facts.kind,
            };
            let found =
                |value: &Arc<str>| values.iter().any(|wanted| **wanted == **value || self.is_similar(wanted, value));
            value.as_ref().map_or(self.variant.wider_filters, found)
        })
    }

    /// True if both values begin with the letters by which filters select.
    fn is_similar(&self, wanted: &str, value: &str) -> bool {
        let Some(letters) = self.variant.similar_letters else { return false };
        let letters = usize::try_from(letters).unwrap_or(usize::MAX);
        wanted.chars().take(letters).eq(value.chars().take(letters))
    }

    /// Replaces the requested sentiments with the labels that mentions have.
    pub(super) fn label(&mut self, labels: impl Fn(&str) -> BTreeSet<String>) {
        for (filter, values) in &mut self.filters {
            if *filter == Filter::Sentiment {
                *values = values.iter().flat_map(|value| labels(value)).collect();
            }
        }
    }

    /// Shuffles positions into a fixed but arbitrary order.
    pub(super) fn shuffle(search: &SavedSearch, positions: &mut [u32]) {
        positions.sort_by_cached_key(|at| {
            let mut hasher = DefaultHasher::new();
            search.mentions[*at as usize].facts.id.hash(&mut hasher);
            hasher.finish()
        });
    }

    /// Sorts positions as requested, missing values last or as the variant places them. Ties keep the order of publication, or come in an order
    /// specific to this request if `shuffle` is given.
    pub(super) fn sort(&self, search: &SavedSearch, positions: &mut [u32], shuffle: Option<u64>) {
        let Order { key, descending } = self.sort;
        let nulls = self.variant.nulls;
        let nulls_first = match nulls {
            Some(Nulls::First) => true,
            Some(Nulls::Smallest) => !descending,
            Some(Nulls::Largest) => descending,
            Some(Nulls::Zero) | None => false,
        };
        let value = |at: u32| {
            let facts = &search.mentions[at as usize].facts;
            let value = match key {
                Key::Date => Some(facts.published.timestamp_micros()),
                Key::Reach => facts.reach,
                Key::Engagement => facts.engagement,
            };
            value.or((nulls == Some(Nulls::Zero)).then_some(0))
        };
        let tie = |at: u32| {
            shuffle.map_or(u64::from(at), |salt| {
                let mut hasher = DefaultHasher::new();
                (salt, at).hash(&mut hasher);
                hasher.finish()
            })
        };
        positions.sort_by(|a, b| {
            let order = match (value(*a), value(*b)) {
                (Some(a), Some(b)) if descending => b.cmp(&a),
                (Some(a), Some(b)) => a.cmp(&b),
                (None, None) => Ordering::Equal,
                (None, Some(_)) if nulls_first => Ordering::Less,
                (Some(_), None) if nulls_first => Ordering::Greater,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
            };
            order.then_with(|| tie(*a).cmp(&tie(*b)))
        });
        let day = |at: u32| search.mentions[at as usize].facts.published.date_naive();
        if self.variant.newest_last
            && let Some(newest) = positions.iter().map(|at| day(*at)).max()
        {
            positions.sort_by_key(|at| day(*at) == newest);
        }
    }
}

/// True for a share of the mentions, the same in every response.
pub(super) fn is_chosen(id: &str, percent: u64) -> bool {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish() % 100 < percent
}

/// Parameters that have not been read yet.
struct Given<'p>(Vec<(&'p str, &'p str)>);

impl<'p> Given<'p> {
    /// Takes the value of a parameter that may be given only once.
    fn take(&mut self, name: &str) -> Result<Option<&'p str>, Invalid> {
        let values = self.take_all(name);
        if values.len() > 1 {
            return Err(invalid(name, "given twice"));
        }
        Ok(values.first().copied())
    }

    fn take_all(&mut self, name: &str) -> Vec<&'p str> {
        let values = self.0.iter().filter(|(known, _)| *known == name).map(|(_, value)| *value).collect();
        self.0.retain(|(known, _)| *known != name);
        values
    }
}

fn number(name: &str, value: Option<&str>) -> Result<Option<u64>, Invalid> {
    let Some(value) = value else { return Ok(None) };
    let plain = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|_| plain);
    number.map(Some).ok_or_else(|| invalid(name, format!("`{value}` is not a non-negative integer")))
}

/// The first record of a page, from 0, and the count of records.
fn rows(dialect: &Dialect, offset: Option<u64>, size: Option<u64>, largest: u64) -> Result<(u64, u64), Invalid> {
    let size = size.unwrap_or(dialect.usual);
    if size > largest && !dialect.clamped {
        return Err(invalid("dataSize", format!("at most {largest}")));
    }
    if size == 0 && dialect.asked == MentionsSwitch::Always {
        return Err(invalid("dataSize", "at least 1"));
    }
    let size = size.min(largest);
    let offset = match offset {
        Some(offset) if offset < dialect.first && dialect.strict => {
            return Err(invalid("dataFrom", format!("starts at {}", dialect.first)));
        }
        offset => offset.unwrap_or_default().saturating_sub(dialect.first),
    };
    Ok((if dialect.pages { offset.saturating_mul(size) } else { offset }, size))
}

fn order(dialect: &Dialect, value: Option<&str>) -> Result<Order, Invalid> {
    let usual = dialect.orders.first().filter(|_| value.is_none() || dialect.lenient);
    let found = dialect.orders.iter().find(|(name, ..)| Some(*name) == value).or(usual);
    let found = found.map(|(_, key, descending)| Order { key: *key, descending: *descending });
    found.ok_or_else(|| {
        let names: Vec<_> = dialect.orders.iter().map(|(name, ..)| *name).collect();
        invalid("sortBy", format!("`{}` is not a valid order: {}", value.unwrap_or_default(), names.join(", ")))
    })
}

/// The zone, and the text that names it.
fn zone(form: ZoneForm, value: Option<&str>) -> Result<(Zone, String), Invalid> {
    let bad = || invalid("timezone", format!("`{}` is not a known zone", value.unwrap_or_default()));
    let zone = match form {
        ZoneForm::Iana(usual) => Zone::Named(value.unwrap_or(usual).parse().map_err(|_| bad())?),
        ZoneForm::Distance => Zone::distance(value.unwrap_or("+00:00")).ok_or_else(bad)?,
        ZoneForm::Ignored => Zone::UTC,
    };
    Ok((zone, value.map_or_else(|| zone.name(), str::to_owned)))
}

fn period(
    dialect: &Dialect,
    given: &mut Given<'_>,
    zone: Zone,
    now: DateTime<Utc>,
) -> Result<(DateTime<Utc>, DateTime<Utc>), Invalid> {
    let now = DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now);
    let said = given.take("duration")?;
    let ends = match dialect.absolute {
        Absolute::Milliseconds(since, until) => {
            let at = |name: &str, value: Option<&str>| {
                let millis =
                    value.map(|value| value.parse().map_err(|_| invalid(name, "is not a number of milliseconds")));
                Ok(millis.transpose()?.and_then(DateTime::from_timestamp_millis))
            };
            let (from, to) = (at(since, given.take(since)?)?, at(until, given.take(until)?)?);
            from.map(|from| (from, to.unwrap_or(now)))
        }
        Absolute::Instants(between) => {
            let ends = said.and_then(|said| said.split_once(between));
            ends.and_then(|(from, to)| Some((instant(from, zone)?, instant(to, zone)?)))
        }
        Absolute::Days(between) => {
            let ends = said.and_then(|said| said.split_once(between));
            let days = ends.and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
            days.and_then(|(from, to)| Some((zone.start_of(from)?.to_utc(), zone.end_of(to)?.to_utc())))
        }
        Absolute::Never => None,
    };
    let relative = |said: &str| {
        let hours = match dialect.names.iter().find(|(name, _)| *name == said) {
            Some((_, hours)) => *hours,
            None => hours(said, dialect.units)?,
        };
        Some((now.checked_sub_signed(TimeDelta::try_hours(hours)?)?, now))
    };
    let usual = Some(dialect.usual_period).filter(|_| said.is_none() || dialect.lenient);
    let (from, to) = ends.or_else(|| relative(said?)).or_else(|| relative(usual?)).ok_or_else(|| {
        invalid("duration", format!("`{}` is not a valid period: {}", said.unwrap_or_default(), forms(dialect)))
    })?;
    if from >= to {
        return Err(invalid("duration", "ends before it starts"));
    }
    if let Some(days) = dialect.longest.filter(|days| to - from > TimeDelta::days(*days) + TimeDelta::hours(1)) {
        return Err(invalid("duration", format!("is longer than {days} days")));
    }
    let first = dialect.earliest.and_then(|day| day.parse().ok()).and_then(|day| zone.start_of(day));
    if let (Some(first), Some(day)) = (first, dialect.earliest)
        && from < first.to_utc()
    {
        return Err(invalid("duration", format!("begins before {day}")));
    }
    // Earlier dates cannot be written in RFC 3339.
    Some((from, to))
        .filter(|(from, _)| from.timestamp() > -30_000_000_000)
        .ok_or_else(|| invalid("duration", "is too long"))
}

/// Parses the hours of `<n><unit>`.
fn hours(said: &str, units: &str) -> Option<i64> {
    let (digits, unit) = said.split_at_checked(said.len().checked_sub(1)?)?;
    let n: u32 = digits.parse().ok().filter(|n| *n > 0 && digits.bytes().all(|b| b.is_ascii_digit()))?;
    let hours = match unit {
        "h" => 1,
        "d" => 24,
        "w" => 168,
        _ => return None,
    };
    units.contains(unit).then(|| i64::from(n) * hours)
}

/// The accepted forms of a period, for error messages.
fn forms(dialect: &Dialect) -> String {
    let mut forms: Vec<String> = dialect.units.chars().map(|unit| format!("<n>{unit}")).collect();
    forms.extend(dialect.names.iter().map(|(name, _)| (*name).to_owned()));
    match dialect.absolute {
        Absolute::Instants(between) => forms.push(format!("FROM{between}TO")),
        Absolute::Days(between) => forms.push(format!("YYYY-MM-DD{between}YYYY-MM-DD")),
        Absolute::Milliseconds(..) | Absolute::Never => {}
    }
    forms.join(", ")
}

/// Parses an RFC 3339 instant, or a local time in the zone: the earlier one if the clock was set back, `None` if it was set
/// forward.
fn instant(text: &str, zone: Zone) -> Option<DateTime<Utc>> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.with_timezone(&Utc));
    }
    let local: NaiveDateTime = text.parse().ok()?;
    zone.earliest(local).map(|at| at.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preset;
    use crate::cases::each;

    fn parse(pairs: &[(&str, &str)]) -> Result<Query, Invalid> {
        let now = "2026-07-01T12:00:00.5Z".parse().expect("an instant");
        let mut all = vec![("aid".to_owned(), "1".to_owned())];
        all.extend(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
        Query::parse(&all, now, Preset::V4.dialect(), None)
    }

    #[test]
    fn windows_are_half_open_and_in_whole_seconds() {
        let query = parse(&[("duration", "2d")]).expect("a query");
        assert_eq!(query.from.to_string(), "2026-06-29 12:00:00 UTC");
        assert_eq!(query.to.to_string(), "2026-07-01 12:00:00 UTC");
        let berlin = [("timezone", "Europe/Berlin"), ("duration", "2026-03-29T00:00:00..2026-03-30T00:00:00")];
        let query = parse(&berlin).expect("a query");
        assert_eq!((query.to - query.from).num_hours(), 23);
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        let cases = [
            ("duration", "7 days"),
            ("duration", "0d"),
            ("duration", "é"),
            ("duration", ""),
            ("duration", "4294967295w"),
            ("duration", "2026-01-02T00:00:00Z..2026-01-01T00:00:00Z"),
            ("timezone", "Mars/Olympus"),
            ("dataFrom", "-1"),
            ("dataSize", "101"),
            ("sortBy", "date"),
            ("language", "en,"),
            ("colour", "red"),
        ];
        each(cases, |(name, value)| {
            assert_eq!(parse(&[(name, value)]).expect_err(value).field, name);
        });
        assert_eq!(parse(&[("aid", "2")]).expect_err("twice").message, "given twice");
    }
}
