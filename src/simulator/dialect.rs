//! The dialects that the service can speak: four services of one kind that agree on names which are given, and on
//! nothing else.
//!
//! Parameters are called `aid`, `duration`, `timezone`, `dataFrom`, `dataSize` and `sortBy` in all of them. What these
//! mean, how far they reach, how an answer and an error look, and what else there is, differs. [`Dialect`] says how a
//! question is read; `render` how an answer is written.

use std::fmt;
use std::str::FromStr;

use super::fault_injection::Beyond;
use super::query::{Filter, Key};

/// A dialect by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Preset {
    /// What the built-in profile of the client assumes.
    #[default]
    V4,
    /// Mentions come where a flag asks for them, as a bare array: numbered ids, epoch milliseconds, rows from 1.
    Flags,
    /// Mentions always come, in numbered pages: local days, distances from UTC, errors as text.
    Pages,
    /// Periods and orders have names, and errors come with status 200: pages from 0, epoch seconds.
    Names,
}

impl Preset {
    /// All of them.
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
        found.ok_or_else(|| format!("there is no preset `{text}`; there are {names}"))
    }
}

/// How a question is read.
#[derive(Debug)]
pub(super) struct Dialect {
    pub(super) key: KeyForm,
    pub(super) asked: Asked,
    /// What the first row or page is called, and whether pages are counted.
    pub(super) first: u64,
    pub(super) pages: bool,
    /// Records of a page: at most, where nothing is said, and whether more is cut to the most instead of refused.
    pub(super) largest: u64,
    pub(super) usual: u64,
    pub(super) clamped: bool,
    /// Records that paging reaches, and what lies beyond.
    pub(super) depth: Option<(u64, Beyond)>,
    /// Units of relative periods.
    pub(super) units: &'static str,
    /// Names of periods with their hours.
    pub(super) names: &'static [(&'static str, i64)],
    pub(super) absolute: Absolute,
    pub(super) usual_period: &'static str,
    /// Days of the longest period, and the first day of all.
    pub(super) longest: Option<i64>,
    pub(super) earliest: Option<&'static str>,
    pub(super) zone: ZoneForm,
    /// Values of sortBy, the first one where nothing is said: each with its key, and whether the largest comes first.
    pub(super) orders: &'static [(&'static str, Key, bool)],
    pub(super) several: Several,
    pub(super) filters: &'static [(&'static str, Filter)],
    /// Whether a parameter that there is none of is refused; otherwise it has no effect.
    pub(super) strict: bool,
    /// Whether a period or an order that there is none of is taken for the usual one; otherwise it is refused.
    pub(super) lenient: bool,
    pub(super) throttled: Throttled,
}

/// How the key is sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyForm {
    /// The value of `Authorization` behind this word.
    Scheme(&'static str),
    /// The user of HTTP Basic, without a password.
    Basic,
    /// The value of another header.
    Header(&'static str),
}

/// What asks for mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// A page size above 0.
    Size,
    /// A parameter with this value.
    Flag(&'static str, &'static str),
    /// Nothing: they always come.
    Always,
}

/// How a period is said by its ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Absolute {
    /// Not at all.
    Never,
    /// Instants or local times, half-open, in one parameter with this between.
    Instants(&'static str),
    /// Local days, both included, in one parameter with this between.
    Days(&'static str),
    /// Milliseconds since 1970, half-open, in parameters of their own.
    Milliseconds(&'static str, &'static str),
}

/// How zones are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZoneForm {
    /// `Europe/Berlin`; the usual one.
    Iana(&'static str),
    /// `+01:00`.
    Distance,
    /// Days are those of UTC whatever is asked for.
    Ignored,
}

/// How several values of a filter are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Several {
    /// With this between.
    Separated(char),
    /// By the parameter again.
    Repeated,
    /// Not at all.
    One,
}

/// How a request over the limit is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Throttled {
    /// 429, Retry-After in seconds, X-RateLimit headers with an epoch.
    Usual,
    /// 403 with a reason, X-Rate-Limit headers with the seconds left.
    Forbidden,
    /// 429 as text, with RateLimit-Reset as an instant alone.
    Text,
    /// 503 with a code, Retry-After as a date.
    Unavailable,
}

const V4: Dialect = Dialect {
    key: KeyForm::Scheme("Bearer"),
    asked: Asked::Size,
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
    asked: Asked::Flag("mentions", "true"),
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
    asked: Asked::Always,
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
    asked: Asked::Flag("view", "full"),
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
