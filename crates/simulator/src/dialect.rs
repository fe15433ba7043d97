//! The dialects of the simulated service: four services of one kind that share a few parameter names and nothing
//! else.
//!
//! All of them have the parameters `aid`, `duration`, `timezone`, `dataFrom`, `dataSize` and `sortBy`. They differ in
//! their meaning and bounds, in the shape of responses and errors, and in all other parameters. [`Dialect`] defines
//! how a request is read, `render` how a response is written.

use std::fmt;
use std::str::FromStr;

use super::fault_injection::Beyond;
use super::query::{Filter, Key};

/// A dialect, by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Preset {
    /// The dialect of the client's built-in profile.
    #[default]
    V4,
    /// Mentions on request by a flag, as a bare array: numeric ids, epoch milliseconds, rows from 1.
    Flags,
    /// Mentions in every response, in numbered pages: local days, offsets from UTC, errors as text.
    Pages,
    /// Named periods and sort orders, errors with status 200: pages from 0, epoch seconds.
    Names,
}

impl Preset {
    /// All dialects.
    pub const ALL: [Self; 4] = [Self::V4, Self::Flags, Self::Pages, Self::Names];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::Flags => "flags",
            Self::Pages => "pages",
            Self::Names => "names",
        }
    }

    pub(super) fn dialect(self) -> &'static Dialect {
        match self {
            Self::V4 => &V4,
            Self::Flags => &FLAGS,
            Self::Pages => &PAGES,
            Self::Names => &NAMES,
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|preset| preset.name() == text);
        found.ok_or_else(|| format!("unknown preset `{text}`; available: {names}"))
    }
}

/// The rules by which a request is read.
#[derive(Debug)]
pub(super) struct Dialect {
    pub(super) key: KeyForm,
    pub(super) asked: MentionsSwitch,
    /// Number of the first row or page. `pages`: the offset counts pages instead of rows.
    pub(super) first: u64,
    pub(super) pages: bool,
    /// Records in a page: the maximum, and the default. `clamped`: larger sizes are reduced to the maximum instead of
    /// refused.
    pub(super) largest: u64,
    pub(super) usual: u64,
    pub(super) clamped: bool,
    /// Number of records that paging reaches, and the response beyond it.
    pub(super) depth: Option<(u64, Beyond)>,
    /// Units of relative periods.
    pub(super) units: &'static str,
    /// Named periods with their hours.
    pub(super) names: &'static [(&'static str, i64)],
    pub(super) absolute: Absolute,
    pub(super) usual_period: &'static str,
    /// Days of the longest period, and the earliest day that can be queried.
    pub(super) longest: Option<i64>,
    pub(super) earliest: Option<&'static str>,
    pub(super) zone: ZoneForm,
    /// Values of `sortBy`, the default first: each with its key, and true if descending.
    pub(super) orders: &'static [(&'static str, Key, bool)],
    pub(super) several: Several,
    pub(super) filters: &'static [(&'static str, Filter)],
    /// Refuses unknown parameters; otherwise they have no effect.
    pub(super) strict: bool,
    /// Treats unknown periods and sort orders as the default; otherwise they are refused.
    pub(super) lenient: bool,
    pub(super) throttled: Throttled,
}

/// The place of the API key in a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyForm {
    /// `Authorization` with this scheme.
    Scheme(&'static str),
    /// The user name of HTTP Basic, with an empty password.
    Basic,
    /// The value of another header.
    Header(&'static str),
}

/// The condition for mentions in the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MentionsSwitch {
    /// A page size above 0.
    Size,
    /// This parameter with this value.
    Flag(&'static str, &'static str),
    /// None: every response has them.
    Always,
}

/// The form of absolute periods.
#[derive(Debug, Clone, Copy)]
pub(super) enum Absolute {
    /// Not supported.
    Never,
    /// Instants or local times, half-open, in one parameter with this separator.
    Instants(&'static str),
    /// Local days, both inclusive, in one parameter with this separator.
    Days(&'static str),
    /// Milliseconds since 1970, half-open, in two separate parameters.
    Milliseconds(&'static str, &'static str),
}

/// The form of time zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZoneForm {
    /// `Europe/Berlin`; the value is the default.
    Iana(&'static str),
    /// `+01:00`.
    Distance,
    /// Ignored: days are those of UTC.
    Ignored,
}

/// The form of several values of one filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Several {
    /// Joined with this separator.
    Separated(char),
    /// The parameter is repeated.
    Repeated,
    /// Not supported.
    One,
}

/// The response to a request over the rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Throttled {
    /// 429, Retry-After in seconds, X-RateLimit headers with an epoch.
    Usual,
    /// 403 with a code, X-Rate-Limit headers with the remaining seconds.
    Forbidden,
    /// 429 as text, with RateLimit-Reset as an instant and no other header.
    Text,
    /// 503 with a code, Retry-After as a date.
    Unavailable,
}

const V4: Dialect = Dialect {
    key: KeyForm::Scheme("Bearer"),
    asked: MentionsSwitch::Size,
    first: 0,
    pages: false,
    largest: 100,
    usual: 0,
    clamped: false,
    depth: None,
    units: "hdw",
    names: &[],
    absolute: Absolute::Instants(".."),
    usual_period: "7d",
    longest: None,
    earliest: None,
    zone: ZoneForm::Iana("UTC"),
    orders: &[
        ("date_desc", Key::Date, true),
        ("date_asc", Key::Date, false),
        ("reach_desc", Key::Reach, true),
        ("reach_asc", Key::Reach, false),
        ("engagement_desc", Key::Engagement, true),
        ("engagement_asc", Key::Engagement, false),
    ],
    several: Several::Separated(','),
    filters: &[
        ("language", Filter::Language),
        ("country", Filter::Country),
        ("source", Filter::Source),
        ("sentiment", Filter::Sentiment),
        ("type", Filter::Type),
    ],
    strict: true,
    lenient: false,
    throttled: Throttled::Usual,
};

const FLAGS: Dialect = Dialect {
    key: KeyForm::Scheme("Token"),
    asked: MentionsSwitch::Flag("mentions", "true"),
    first: 1,
    pages: false,
    largest: 50,
    usual: 10,
    clamped: true,
    depth: Some((1_000, Beyond::NotFound)),
    units: "hd",
    names: &[],
    absolute: Absolute::Milliseconds("since", "until"),
    usual_period: "30d",
    longest: None,
    earliest: None,
    zone: ZoneForm::Ignored,
    orders: &[
        ("-published", Key::Date, true),
        ("published", Key::Date, false),
        ("-reach", Key::Reach, true),
        ("reach", Key::Reach, false),
    ],
    several: Several::Repeated,
    filters: &[
        ("language", Filter::Language),
        ("country", Filter::Country),
        ("kind", Filter::Type),
        ("sentiment", Filter::Sentiment),
    ],
    strict: false,
    lenient: false,
    throttled: Throttled::Forbidden,
};

const PAGES: Dialect = Dialect {
    key: KeyForm::Header("x-api-key"),
    asked: MentionsSwitch::Always,
    first: 1,
    pages: true,
    largest: 200,
    usual: 20,
    clamped: false,
    depth: Some((2_000, Beyond::LastPage)),
    units: "dw",
    names: &[],
    absolute: Absolute::Days(","),
    usual_period: "1w",
    longest: Some(31),
    earliest: Some("2026-01-01"),
    zone: ZoneForm::Distance,
    orders: &[("newest", Key::Date, true), ("oldest", Key::Date, false)],
    several: Several::One,
    filters: &[("lang", Filter::Language), ("source", Filter::Source), ("sentiment", Filter::Sentiment)],
    strict: true,
    lenient: false,
    throttled: Throttled::Text,
};

const NAMES: Dialect = Dialect {
    key: KeyForm::Basic,
    asked: MentionsSwitch::Flag("view", "full"),
    first: 0,
    pages: true,
    largest: 250,
    usual: 25,
    clamped: true,
    depth: Some((5_000, Beyond::Empty)),
    units: "",
    names: &[("last_day", 24), ("last_week", 168), ("last_month", 720), ("last_quarter", 2_184), ("last_year", 8_760)],
    absolute: Absolute::Never,
    usual_period: "last_month",
    longest: None,
    earliest: None,
    zone: ZoneForm::Iana("Europe/Berlin"),
    orders: &[("recent", Key::Date, true), ("reach", Key::Reach, true), ("engagement", Key::Engagement, true)],
    several: Several::Separated('|'),
    filters: &[("language", Filter::Language), ("country_code", Filter::Country), ("tone", Filter::Sentiment)],
    strict: false,
    lenient: true,
    throttled: Throttled::Unavailable,
};
