//! Requests to the service as plain values.
//!
//! ```text
//! pushdown ──▶ RequestPlan ──▶ PageRequest ──▶ parameters ──▶ client
//! ```
//!
//! A [`RequestPlan`] describes everything about reading one table of one saved search; it is serializable, and EXPLAIN
//! prints it. A [`PageRequest`] is one HTTP request of a plan. Neither ever contains the service's key.

mod window;

use std::fmt;
use std::sync::Arc;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

pub use self::window::Echo;
pub(crate) use self::window::{Clocks, RequestedWindow, length_of};
use crate::profile::{Profile, RequestedBy, Several, Zone};

/// Tolerated difference between the service's clock and ours (a range that ends "now" must not lose its newest rows).
pub(crate) const CLOCK_SKEW: TimeDelta = TimeDelta::minutes(10);

/// The endpoint of a request (API description, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Endpoint {
    /// `GET {base_url}/list`.
    List,
    /// `GET {base_url}/search`.
    Search,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list",
            Self::Search => "search",
        })
    }
}

/// The complete description of reading one table of one saved search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPlan {
    /// Endpoint of all requests.
    pub endpoint: Endpoint,
    /// Saved search; `None` for the list, and for a template that is not yet bound to one.
    pub aid: Option<String>,
    /// Time window as the service writes it, always sent with a search.
    pub duration: Option<String>,
    /// The relative period that a query names, if the window is sent as instants.
    pub named: Option<String>,
    /// Zone, always sent with a search.
    pub timezone: Option<String>,
    /// Filters; a record matches a filter if it has any of its values.
    pub filters: Vec<FilterTerm>,
    /// Value of the sort parameter.
    pub sort: Option<String>,
    /// Pages of mention records; `None` requests the overview alone.
    pub pages: Option<Pages>,
}

/// One filter parameter with the values that match.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FilterTerm {
    /// Parameter name.
    pub parameter: String,
    /// Values, any of which matches.
    pub values: Vec<String>,
}

/// The range of mention records that a plan reads, and its page size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// Page size, at least 1.
    pub size: u64,
    /// Rows to skip at the beginning. Set only if every row of a page counts.
    pub skip: u64,
    /// Maximum number of rows needed; `None`: no limit. Set only if every row of a page counts.
    pub fetch: Option<u64>,
    /// Set if rows are needed in the order of the sort parameter, so that no second pass can add to them.
    pub ordered: bool,
}

/// One HTTP request of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The plan of the request.
    pub plan: Arc<RequestPlan>,
    /// First row, 0-based.
    pub row: u64,
    /// Number of rows requested; 0 if no records are.
    pub size: u64,
    /// The plan's window as instants, once the service has reported them, so that it does not move while pages are
    /// read.
    pub frozen: Option<String>,
    /// The place of the page as the page before names it, if rows are not counted: its cursor. Of the list: a link to it as well.
    pub cursor: Option<String>,
}

impl RequestPlan {
    /// Returns the plan of the list.
    pub fn list() -> Self {
        Self { endpoint: Endpoint::List, ..Self::search() }
    }

    /// Returns a search without parameters.
    pub fn search() -> Self {
        Self {
            endpoint: Endpoint::Search,
            aid: None,
            duration: None,
            named: None,
            timezone: None,
            filters: Vec::new(),
            sort: None,
            pages: None,
        }
    }

    /// The window as a query names it: the value of the column `duration`.
    pub(crate) fn named_window(&self) -> Option<&str> {
        self.named.as_deref().or(self.duration.as_deref())
    }

    /// Returns the plan with a maximum number of rows.
    #[must_use]
    pub fn with_fetch(self, fetch: Option<u64>) -> Self {
        Self { pages: self.pages.map(|pages| Pages { fetch, ..pages }), ..self }
    }
}

impl RequestPlan {
    /// Returns the zone that windows refer to.
    pub fn zone(&self, profile: &Profile) -> Zone {
        // Zone names are checked when a plan is made.
        self.timezone.as_deref().and_then(|name| profile.timezone.zone_of(name).ok()).unwrap_or(Zone::UTC)
    }
}

/// Counts of the mentions of a window in one response, beside its total. They confirm an end, but prove none on their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beside {
    /// Count of the overview, if the profile calls it exact.
    pub overview: Option<u64>,
    /// Sum of the timeline of a first page, likewise.
    pub timeline: Option<u64>,
    /// Largest sum of a list of a first page: there are at least as many.
    pub listed: Option<u64>,
    /// Largest sum that two lists share: each mention has one value in each of them.
    pub lists: Option<u64>,
}

/// Number of matching mentions in a response, if it is not an exact total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// There are at least as many.
    AtLeast(u64),
    /// There are about as many.
    About(u64),
}

impl Hint {
    /// The lower bound, if it is one.
    pub(crate) fn at_least(self) -> Option<u64> {
        match self {
            Self::AtLeast(number) => Some(number),
            Self::About(_) => None,
        }
    }
}

/// Ends of the buckets of a timeline that count mentions, as they are labelled, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedDays {
    /// End of the first one, if another bucket follows.
    pub first_end: Option<i64>,
    /// Start of the last one.
    pub last_start: i64,
    /// Set if the labels are instants, not days or local times, and the response repeats their zone.
    pub instants: bool,
}

/// Traits of a mention that distinguish it from others apart from its id: its time, and hashes of its url and source. In eight
/// bytes, since a scan remembers them for each mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits(u64);

impl Traits {
    /// Bits of a hash; 0 is none.
    const HASH: u32 = 15;

    /// Packs the time, in microseconds since 1970, and the hashes of what is known.
    pub fn new(micros: i64, url: Option<u64>, source: Option<u64>) -> Self {
        let hash = |hash: Option<u64>| hash.map_or(0, |hash| hash % ((1 << Self::HASH) - 1) + 1);
        // Seconds from the year 1698 to 2242, in 34 bits.
        let seconds = micros.div_euclid(1_000_000).clamp(-(1 << 33), (1 << 33) - 1) + (1 << 33);
        Self(seconds.unsigned_abs() << (2 * Self::HASH) | hash(url) << Self::HASH | hash(source))
    }

    /// True if both may be those of one mention. Services write times with and without fractions of a second.
    pub fn may_be(self, other: Self) -> bool {
        let part = |traits: Self, at: u32| (traits.0 >> (at * Self::HASH)) & ((1 << Self::HASH) - 1);
        let agree = |at: u32| part(self, at) == 0 || part(other, at) == 0 || part(self, at) == part(other, at);
        self.seconds().abs_diff(other.seconds()) <= 1 && agree(0) && agree(1)
    }

    /// True if both have the same url, as far as its hash shows.
    pub fn shares_url(self, other: Self) -> bool {
        let url = |traits: Self| (traits.0 >> Self::HASH) & ((1 << Self::HASH) - 1);
        url(self) != 0 && url(self) == url(other)
    }

    /// Time in seconds since 1970.
    pub fn seconds(self) -> i64 {
        (self.0 >> (2 * Self::HASH)).cast_signed() - (1 << 33)
    }
}

/// Identity of a request: its path and parameters. Requests with equal keys have the same response at any given time,
/// so responses are shared, kept, recorded and counted by key. The service's address and key are not part of it:
/// everything that holds responses belongs to one client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    path: Arc<str>,
    parameters: Arc<[(String, String)]>,
}

impl RequestKey {
    /// Creates the key of a request to a path below the base URL with these query parameters.
    pub fn new(path: &str, parameters: Vec<(String, String)>) -> Self {
        Self { path: path.trim_start_matches('/').into(), parameters: parameters.into() }
    }

    /// Returns the path below the base URL, without a leading slash.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the query parameters in the order in which they are sent, decoded.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }
}

/// The parameters in readable form, decoded.
impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.parameters.iter().enumerate() {
            write!(f, "{}{name}={value}", if at == 0 { "" } else { "&" })?;
        }
        Ok(())
    }
}

impl PageRequest {
    /// Returns the request for the list.
    pub fn list() -> Self {
        Self::first(Arc::new(RequestPlan::list()))
    }

    /// Returns the request for the page of the list that begins at `place`, in the profile's unit, or at the place that the
    /// page before names.
    pub fn list_from(place: u64, next: Option<String>) -> Self {
        Self { row: place, cursor: next, ..Self::list() }
    }

    /// Returns the request for the first page of a plan, without a size.
    pub fn first(plan: Arc<RequestPlan>) -> Self {
        Self { plan, row: 0, size: 0, frozen: None, cursor: None }
    }

    /// Returns the request for an overview. If it costs nothing, a mention is requested with it, to confirm its counts.
    pub fn overview(plan: RequestPlan) -> Self {
        Self::first(Arc::new(RequestPlan { pages: None, sort: None, ..plan }))
    }

    /// The window as the request names it to the service.
    pub(crate) fn duration(&self) -> Option<&str> {
        self.frozen.as_deref().or(self.plan.duration.as_deref())
    }

    /// Returns the identity of the request.
    pub fn key(&self, profile: &Profile) -> RequestKey {
        let path = match self.plan.endpoint {
            Endpoint::List => &profile.list.path,
            Endpoint::Search => &profile.search.path,
        };
        RequestKey::new(path, self.parameters(profile))
    }

    /// Returns the query parameters, in a fixed order. Every control is sent explicitly, as the API description
    /// (section 4.2) recommends.
    pub fn parameters(&self, profile: &Profile) -> Vec<(String, String)> {
        let RequestPlan { endpoint, aid, duration: _, named: _, timezone, filters, sort, pages } = self.plan.as_ref();
        let mut sent = Vec::new();
        if *endpoint == Endpoint::List {
            let pages = profile.list.pages.as_ref();
            sent.extend(pages.iter().flat_map(|pages| pages.parameters(self.row, self.cursor.as_deref())));
            let with = profile.list.with.iter().map(|(name, value)| (name.clone(), value.clone()));
            // A link to the next page repeats them.
            let with: Vec<_> = with.filter(|(name, _)| sent.iter().all(|(known, _)| known != name)).collect();
            sent.extend(with);
            return sent;
        }
        sent.extend(aid.iter().map(|aid| (profile.search.aid.clone(), aid.clone())));
        if let Some(words) = self.duration() {
            sent.extend(profile.window.parameters(words));
        }
        sent.extend(profile.timezone.parameter.iter().cloned().zip(timezone.clone()));
        for FilterTerm { parameter, values } in filters {
            match profile.filters.several {
                Several::Separated => sent.push((parameter.clone(), values.join(&profile.filters.separator))),
                Several::Repeat | Several::None => {
                    sent.extend(values.iter().map(|value| (parameter.clone(), value.clone())));
                }
            }
        }
        sent.extend(sort.iter().map(|value| (profile.sort.parameter.clone(), value.clone())));
        if pages.is_some()
            && profile.mentions.requested_by == RequestedBy::Flag
            && let Some(flag) = &profile.mentions.flag
        {
            sent.push((flag.parameter.clone(), flag.value.clone()));
        }
        let size = match profile.mentions.requested_by {
            // The service always returns mentions: request as few as possible.
            RequestedBy::Always => Some(profile.page.accepted(self.size)),
            RequestedBy::Size => {
                let size = if pages.is_none() { self.size.max(profile.beside_overview()) } else { self.size };
                Some(if size == 0 { 0 } else { profile.page.accepted(size) })
            }
            RequestedBy::Flag => pages.map(|_| profile.page.accepted(self.size)),
        };
        sent.extend(profile.search.with.iter().map(|(name, value)| (name.clone(), value.clone())));
        if let Some(size) = size {
            let offset = profile.offset.of(self.row, self.size).map(|offset| offset.to_string());
            sent.extend(offset.or_else(|| self.cursor.clone()).map(|place| (profile.offset.parameter.clone(), place)));
            sent.push((profile.page.parameter.clone(), size.to_string()));
        }
        sent
    }
}

impl fmt::Display for RequestPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.endpoint)?;
        if let Some(aid) = &self.aid {
            write!(f, " aid={aid}")?;
        }
        if let Some(duration) = &self.duration {
            write!(f, " duration={duration}")?;
        }
        if let Some(timezone) = &self.timezone {
            write!(f, " timezone={timezone}")?;
        }
        for FilterTerm { parameter, values } in &self.filters {
            write!(f, " {parameter}={}", values.join("|"))?;
        }
        if let Some(sort) = &self.sort {
            write!(f, " sort={sort}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::OffsetUnit;

    fn plan() -> RequestPlan {
        RequestPlan {
            endpoint: Endpoint::Search,
            aid: Some("7".into()),
            duration: Some("7d".into()),
            named: None,
            timezone: Some("UTC".into()),
            filters: vec![FilterTerm { parameter: "language".into(), values: vec!["en".into(), "de".into()] }],
            sort: Some("date_asc".into()),
            pages: Some(Pages { size: 50, skip: 0, fetch: None, ordered: false }),
        }
    }

    fn sent(profile: &Profile, row: u64) -> String {
        let request = PageRequest { plan: Arc::new(plan()), row, size: 50, frozen: None, cursor: None };
        request.parameters(profile).iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join("&")
    }

    #[test]
    fn every_control_is_explicit() {
        assert_eq!(
            sent(&Profile::v4(), 100),
            "aid=7&duration=7d&timezone=UTC&language=en,de&sortBy=date_asc&dataFrom=100&dataSize=50"
        );
    }

    #[test]
    fn pages_counted_from_one_and_repeated_filters_are_said_as_the_profile_says() {
        let mut profile = Profile::v4();
        profile.offset.unit = OffsetUnit::Page;
        profile.offset.first = 1;
        profile.filters.several = Several::Repeat;
        let sent = sent(&profile, 100);
        assert!(sent.contains("language=en&language=de") && sent.contains("dataFrom=3"), "{sent}");
    }

    #[test]
    fn cursors_and_zones_are_sent_if_the_profile_has_parameters_for_them() {
        let mut profile = Profile::v4();
        profile.timezone.parameter = None;
        profile.offset.unit = OffsetUnit::Cursor;
        let of = |cursor: Option<&str>| {
            let (plan, cursor) = (Arc::new(plan()), cursor.map(str::to_owned));
            let sent = PageRequest { plan, row: 50, size: 50, frozen: None, cursor }.parameters(&profile);
            let names = sent.into_iter().map(|(name, value)| format!("{name}={value}"));
            names.skip(2).collect::<Vec<_>>().join("&")
        };
        assert_eq!(of(None), "language=en,de&sortBy=date_asc&dataSize=50");
        assert_eq!(of(Some("x/9")), "language=en,de&sortBy=date_asc&dataFrom=x/9&dataSize=50");
    }

    #[test]
    fn mentions_are_told_apart_by_what_is_known_of_both() {
        let at = |seconds: i64| seconds * 1_000_000;
        let one = Traits::new(at(1_795_615_332), Some(7), None);
        assert_eq!(one.seconds(), 1_795_615_332);
        assert_eq!(Traits::new(at(-5), None, None).seconds(), -5);
        assert!(one.may_be(Traits::new(at(1_795_615_332) + 900_000, Some(7), Some(3))), "a fraction, and a source");
        assert!(one.may_be(Traits::new(at(1_795_615_333), None, None)), "rounded");
        assert!(!one.may_be(Traits::new(at(1_795_615_334), Some(7), None)), "another time");
        assert!(!one.may_be(Traits::new(at(1_795_615_332), Some(8), None)), "another url");
        assert!(
            one.shares_url(Traits::new(at(0), Some(7), Some(3))) && !one.shares_url(Traits::new(at(0), Some(8), None))
        );
        let unknown = Traits::new(at(0), None, None);
        assert!(!unknown.shares_url(unknown));
    }

    #[test]
    fn a_plan_travels_as_json() {
        let json = serde_json::to_string(&plan()).expect("plan should serialize");
        assert_eq!(serde_json::from_str::<RequestPlan>(&json).expect("plan should deserialize"), plan());
        assert_eq!(plan().to_string(), "search aid=7 duration=7d timezone=UTC language=en|de sort=date_asc");
    }
}
