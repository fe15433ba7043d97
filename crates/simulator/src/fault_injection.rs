//! Scripted faults: what goes wrong, for which requests and saved searches. Equal seeds give equal faults.
//!
//! ```text
//! KIND[:NAME=VALUE,…][@WHEN]      429:retry-after=2@5-8    truncated@3    clamp:rows=40    delete:n=2,at=start@10%
//! ```
//!
//! WHEN selects requests, counted from 1 in the order of arrival: `3`, `5-8`, `5-`, `10%` (a random share that depends on
//! the seed). Without it, the fault applies to all requests. Faults can be combined: each applies to its part of a response,
//! in the given order. [`KINDS`] lists them.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;

/// A fault and its schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub(super) kind: Kind,
    /// The saved search affected; absent: all of them, and the list.
    aid: Option<String>,
    when: When,
    text: String,
}

/// The schedule of a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    /// A range of requests, both ends inclusive.
    Between(u64, u64),
    /// A percentage of requests.
    Percent(u64),
}

/// Values of a list that a filter uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Used {
    First,
    Last,
    /// The first two.
    Two,
    None,
}

impl Used {
    /// Leaves the values that are used. A single value is no list.
    pub(super) fn of(self, values: &mut Vec<String>) {
        if values.len() < 2 {
            return;
        }
        match self {
            Self::First => values.truncate(1),
            Self::Last => drop(values.drain(..values.len() - 1)),
            Self::Two => values.truncate(2),
            Self::None => values.clear(),
        }
    }
}

/// The effect of a fault.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// An error status.
    Status {
        status: u16,
        retry_after: Option<String>,
        reset: Option<String>,
        code: Option<String>,
        body: ErrorBody,
    },
    /// A redirect to this address.
    Redirect(String),
    /// A web page with status 200.
    Html,
    /// An error body with status 200 that echoes the key.
    ErrorBody,
    /// The body ends after this percentage, as if it were complete.
    Truncated(u64),
    /// The connection breaks after this percentage of the body.
    Reset(u64),
    /// The body arrives in pieces with pauses of this many milliseconds.
    Trickle(u64),
    /// The body stops half-way and never ends.
    Stall,
    /// An invalid UTF-8 byte, an invalid escape, or a lone surrogate in the first string.
    Utf8,
    Escape,
    Surrogate,
    /// A page without records.
    Empty,
    /// A page of this many records.
    Short(u64),
    /// The reported total counts these mentions, and is off by this amount.
    Total(Counted, i64),
    /// No total.
    NoTotal,
    /// The total is written in another form, or by the first page only.
    TotalForm(TotalForm),
    /// The offset has no effect.
    OffsetIgnored,
    /// The page size has no effect: a page has all remaining records.
    SizeIgnored,
    /// The offset is rounded down to a multiple of the page size.
    Aligned,
    /// Smaller pages are refused.
    LeastSize(u64),
    /// Longer queries than this, in bytes, are refused with status 414.
    LongUrl(u64),
    /// Pages have at most this many records.
    Clamp(u64),
    /// Paging reaches this many records; the second field is the response beyond.
    Depth(u64, Beyond),
    /// Records with equal keys are in another order in each response.
    Ties,
    /// Records are not sorted.
    SortIgnored,
    /// The filters have no effect.
    FiltersIgnored,
    /// The filters also select mentions without a value.
    FiltersWider,
    /// The filters also select values that begin with this many equal letters.
    FiltersSimilar(u64),
    /// Of a list of values, only some are used.
    Values(Used),
    /// The reported total is at most this number.
    CapTotal(u64),
    /// This percentage of records is left out of pages, but counted.
    Hidden(u64),
    /// Missing values come elsewhere than last.
    Nulls(Nulls),
    /// Windows do not contain the instant that they begin with.
    StartExcluded,
    /// Windows contain the instant that they end with.
    EndIncluded,
    /// Mentions are kept for this many days.
    Retention(u64, ReportedWindow),
    /// Longer periods are cut at their start to this many days.
    CutPeriod(u64, ReportedWindow),
    /// Windows end this many hours early.
    EndsEarly(u64, ReportedWindow),
    /// Windows begin this many hours early.
    BeginsEarly(u64, ReportedWindow),
    /// The overview's total is off by this amount.
    Overview(i64),
    /// A day of the timeline, or an entry of a list, is off by this amount.
    Timeline(i64),
    /// The days of the timeline have no starts.
    NoStarts,
    List(List, i64),
    /// A copy of the data that is this many hours old answers, and says so.
    OldCopy(u64),
    /// Lists count this many mentions with another value, and say that they are estimates.
    Estimated(i64, EstimateSign),
    /// The mentions of the newest day follow all others, whatever the order.
    NewestLast,
    /// This percentage of mentions is missing from every number and page, which a field reports.
    Partial(u64, Sign),
    /// Status 202 and an empty page, with this wait in seconds.
    Accepted(u64),
    /// The overview counts mentions that the filters exclude.
    OverviewUnfiltered,
    /// A page of another saved search, or of another window.
    OtherAid,
    OtherWindow,
    /// A record is repeated in an older version.
    Twice,
    /// A field is missing, null, renamed, of another type, or a number that fits no type.
    Missing(String),
    Null(String),
    Rename(String, String),
    Drift(String),
    Big(String),
    /// NaN, which is not valid JSON, instead of a missing number.
    Nan(String),
    /// Timestamps in another form.
    Times(TimeForm),
    /// Ids are unique among the mentions of a source only.
    SourceIds,
    /// The list of saved searches has this many of each kind, and reports that there are more.
    ListPage(u64, More),
    /// Ids of the list are fractions: `183000.0`.
    AidFraction,
    /// The reported zone has another name.
    ZoneName(ZoneName),
    /// A body compressed in this many parts.
    GzipMembers(u64),
    /// Unknown fields.
    Extra,
    /// A body that decompresses to this many MiB, a string of this many MiB, an array nested this many levels deep.
    Bomb(u64),
    Giant(u64),
    Deep(u64),
    /// The service's clock is this many seconds ahead, or behind if negative.
    Skew(i64),
    /// Mentions are published, deleted or edited.
    Move(Moved, u64, Whereabouts),
}

/// The mentions that a total counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// Those of the window that match the filters.
    Matching,
    /// All of the window.
    Unfiltered,
    /// All of the saved search.
    All,
}

/// The place of missing values in a sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Nulls {
    First,
    Smallest,
    Largest,
    Zero,
}

/// Report of a window that is not the requested one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReportedWindow {
    /// The window is reported as requested.
    pub(super) as_asked: bool,
    /// The numbers count the requested window.
    pub(super) counts_asked: bool,
}

/// A list of the overview.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum List {
    Sentiment,
    Languages,
    Countries,
    Sources,
}

/// The form of a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TotalForm {
    /// `"1234"`
    Text,
    /// `"1,234"`
    Grouped,
    /// `1234.0`
    Fraction,
    /// A number, in the first page only.
    FirstPage,
}

/// The form of timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeForm {
    /// Four forms in turn.
    Mixed,
    /// `20261124120000`
    Compact,
    /// `2026-11-24`
    Date,
    /// The local time of an account at UTC+9, without its zone.
    Local,
}

/// Report that a list has further entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Total,
    Next,
    /// A flag, `hasMore`.
    Flag,
    /// A `Link` header.
    Link,
}

/// Another name of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZoneName {
    /// A name with the same rules.
    Alias,
    /// A distance such as `+00:00`.
    Distance,
}

/// The field by which the entries of a list say that they are estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum EstimateSign {
    Bound,
    Flag,
}

/// The field that reports a partial response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    TimedOut,
    Errors,
    Shards,
    Status,
}

/// The body of an error status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorBody {
    Json,
    Text,
    Html,
    Empty,
    /// Echoes the key.
    Echo,
}

/// The response beyond the reachable depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beyond {
    BadRequest,
    NotFound,
    Empty,
    LastPage,
}

/// The kind of change to the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    Arrive,
    Delete,
    Edit,
}

/// The mentions that change: the oldest, the newest, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whereabouts {
    Start,
    End,
    Any,
}

/// The kinds of faults: name, options with their defaults, and effect.
pub const KINDS: &[(&str, &str, &str)] = &[
    (
        "<status>",
        "retry-after=<seconds>|date+<s>|iso+<s>, reset=epoch+<s>|iso+<s>|<seconds>, code=<text>, body=json|text|html|empty|echo",
        "error response with this status",
    ),
    ("redirect", "to=<address>", "redirect with status 302"),
    ("html", "", "HTML page with status 200"),
    ("error-body", "", "error body with status 200"),
    ("truncated", "at=50", "body ends after this percentage"),
    ("reset", "at=50", "connection breaks after this percentage of the body"),
    ("trickle", "ms=1000", "body arrives in 20 pieces with pauses"),
    ("stall", "", "body stops half-way and never ends"),
    ("utf8", "", "invalid UTF-8 byte"),
    ("escape", "", "invalid JSON escape"),
    ("surrogate", "", "lone surrogate"),
    ("empty", "", "page without records"),
    ("short", "rows=7", "page of this many records"),
    ("total", "by=1, of=matching|unfiltered|all", "total off by this amount, or of other mentions"),
    ("no-total", "", "no total"),
    ("total-form", "as=text|grouped|fraction|first-page", "total in another form, or in the first page only"),
    ("offset-ignored", "", "every page is the first page"),
    ("size-ignored", "", "every page has all records from its offset"),
    ("aligned", "", "offsets rounded down to a multiple of the page size"),
    ("least-size", "rows=10", "smaller pages refused"),
    ("long-url", "bytes=2000", "longer queries refused with status 414"),
    ("clamp", "rows=40", "pages have at most this many records"),
    ("depth", "rows=300, answer=400|404|empty|last", "paging ends at this row"),
    ("ties", "", "order of equal keys differs in every response"),
    ("sort-ignored", "", "records not sorted"),
    ("filters-ignored", "", "records not filtered"),
    ("filters-wider", "", "filters select mentions without a value too"),
    ("filters-similar", "letters=1", "filters select values that begin with the same letters too"),
    ("values", "used=first|last|two|none", "of a list of values, only some are used"),
    ("cap-total", "rows=300", "total of at most this number"),
    ("hidden", "percent=2", "records left out of pages, but counted"),
    ("old-copy", "hours=6", "a copy of this age answers, and says so"),
    ("estimated", "moved=3, sign=bound|flag", "lists with wrong entries, which call themselves estimates"),
    ("newest-last", "", "the newest day after all others, whatever the order"),
    ("nulls", "at=first|smallest|largest|zero", "missing values not sorted last"),
    ("start-excluded", "", "windows without the instant that they begin with"),
    ("end-included", "", "windows with the instant that they end with"),
    ("retention", "days=2, echo=used|asked, counts=used|asked", "no mentions older than this"),
    ("cut-period", "days=2, echo=used|asked, counts=used|asked", "longer periods cut at their start"),
    ("ends-early", "hours=30, echo=used|asked, counts=used|asked", "windows end this much earlier"),
    ("begins-early", "hours=30, echo=used|asked, counts=used|asked", "windows begin this much earlier"),
    ("overview", "by=-10", "total of the overview off by this amount"),
    ("timeline", "by=3", "a day of the timeline off by this amount"),
    ("no-starts", "", "days of the timeline without their starts"),
    ("list", "name=languages|countries|sources|sentiment, by=3", "an entry of a list off by this amount"),
    ("partial", "percent=20, sign=timed-out|errors|shards|status", "mentions missing, which a field reports"),
    ("accepted", "retry-after=1", "status 202 with an empty page"),
    ("overview-unfiltered", "", "overview of all mentions, whatever the filters"),
    ("other-aid", "", "page of another saved search"),
    ("other-window", "", "page of another time window"),
    ("twice", "", "record repeated in an older version"),
    ("missing", "field=reach", "field missing"),
    ("null", "field=reach", "field null"),
    ("rename", "field=reach, to=audience", "field renamed"),
    ("drift", "field=reach", "field of another type"),
    ("big", "field=reach", "number too large for any type"),
    ("nan", "field=reach", "NaN instead of a missing number"),
    ("times", "as=mixed|compact|date|local", "timestamps in another form"),
    ("source-ids", "", "ids unique within a source only"),
    (
        "list-page",
        "rows=1, sign=total|next|has-more|link",
        "list of this many saved searches, which says that there are more",
    ),
    ("aid-fraction", "", "ids of the list as fractions"),
    ("zone-name", "as=alias|distance", "reported zone under another name"),
    ("gzip-members", "count=3", "body compressed in this many parts"),
    ("extra", "", "unknown fields"),
    ("bomb", "mib=200", "body that decompresses to this size"),
    ("giant", "mib=200", "string of this size"),
    ("deep", "levels=100000", "arrays nested this deep"),
    ("skew", "seconds=600", "service clock ahead, or behind if negative"),
    ("arrive", "n=1, at=any|start|end", "mentions published before the response"),
    ("delete", "n=1, at=any|start|end", "mentions deleted before the response"),
    ("edit", "n=1, at=any|start|end", "mentions edited before the response"),
];

impl Fault {
    /// True if it applies to the `n`th request, which queries saved search `aid`.
    pub(super) fn happens(&self, seed: u64, n: u64, aid: Option<&str>) -> bool {
        let concerned = self.aid.is_none() || self.aid.as_deref() == aid;
        concerned
            && match self.when {
                When::Between(first, last) => (first..=last).contains(&n),
                When::Percent(percent) => {
                    let mut hasher = DefaultHasher::new();
                    (seed, n, &self.text).hash(&mut hasher);
                    hasher.finish() % 100 < percent
                }
            }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The error for a fault that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid fault `{text}`: {why}")]
pub struct InvalidFault {
    text: String,
    why: String,
}

impl FromStr for Fault {
    type Err = InvalidFault;

    fn from_str(text: &str) -> Result<Self, InvalidFault> {
        parse(text).map_err(|why| InvalidFault { text: text.to_owned(), why })
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let (what, when) = match text.rsplit_once('@') {
        Some((what, when)) => (what, when.parse()?),
        None => (text, When::Between(1, u64::MAX)),
    };
    let (name, given) = what.split_once(':').unwrap_or((what, ""));
    let mut options = Vec::new();
    for option in given.split(',').filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once('=').ok_or_else(|| format!("expected NAME=VALUE, found `{option}`"))?;
        options.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    let mut options = Options(options);
    let aid = options.text("aid");
    let kind = kind(name, &mut options)?;
    if let Some((unknown, _)) = options.0.first() {
        return Err(format!("`{name}` has no option `{unknown}`"));
    }
    Ok(Fault { kind, aid, when, text: text.to_owned() })
}

fn kind(name: &str, options: &mut Options) -> Result<Kind, String> {
    Ok(match name {
        "redirect" => Kind::Redirect(options.text("to").unwrap_or_else(|| "http://elsewhere.example/v4".to_owned())),
        "html" => Kind::Html,
        "error-body" => Kind::ErrorBody,
        "truncated" => Kind::Truncated(options.number("at", 50)?.min(100)),
        "reset" => Kind::Reset(options.number("at", 50)?.min(100)),
        "trickle" => Kind::Trickle(options.number("ms", 1_000)?),
        "stall" => Kind::Stall,
        "utf8" => Kind::Utf8,
        "escape" => Kind::Escape,
        "surrogate" => Kind::Surrogate,
        "empty" => Kind::Empty,
        "short" => Kind::Short(options.number("rows", 7)?),
        "total" => {
            let of = [("matching", Counted::Matching), ("unfiltered", Counted::Unfiltered), ("all", Counted::All)];
            let of = options.one_of("of", &of)?;
            // A total of other mentions is wrong already.
            Kind::Total(of, options.number("by", i64::from(of == Counted::Matching))?)
        }
        "no-total" => Kind::NoTotal,
        "total-form" => Kind::TotalForm(options.one_of(
            "as",
            &[
                ("text", TotalForm::Text),
                ("grouped", TotalForm::Grouped),
                ("fraction", TotalForm::Fraction),
                ("first-page", TotalForm::FirstPage),
            ],
        )?),
        "offset-ignored" => Kind::OffsetIgnored,
        "size-ignored" => Kind::SizeIgnored,
        "aligned" => Kind::Aligned,
        "least-size" => Kind::LeastSize(options.number("rows", 10)?),
        "long-url" => Kind::LongUrl(options.number("bytes", 2_000)?),
        "clamp" => Kind::Clamp(options.number("rows", 40)?),
        "depth" => {
            let answers = [
                ("400", Beyond::BadRequest),
                ("404", Beyond::NotFound),
                ("empty", Beyond::Empty),
                ("last", Beyond::LastPage),
            ];
            Kind::Depth(options.number("rows", 300)?, options.one_of("answer", &answers)?)
        }
        "ties" => Kind::Ties,
        "sort-ignored" => Kind::SortIgnored,
        "filters-ignored" => Kind::FiltersIgnored,
        "filters-wider" => Kind::FiltersWider,
        "filters-similar" => Kind::FiltersSimilar(options.number("letters", 1)?),
        "values" => {
            let used = [("first", Used::First), ("last", Used::Last), ("two", Used::Two), ("none", Used::None)];
            Kind::Values(options.one_of("used", &used)?)
        }
        "cap-total" => Kind::CapTotal(options.number("rows", 300)?),
        "hidden" => Kind::Hidden(options.number("percent", 2)?),
        "nulls" => {
            let places = [
                ("first", Nulls::First),
                ("smallest", Nulls::Smallest),
                ("largest", Nulls::Largest),
                ("zero", Nulls::Zero),
            ];
            Kind::Nulls(options.one_of("at", &places)?)
        }
        "start-excluded" => Kind::StartExcluded,
        "end-included" => Kind::EndIncluded,
        "retention" => Kind::Retention(options.number("days", 2)?, options.told()?),
        "cut-period" => Kind::CutPeriod(options.number("days", 2)?, options.told()?),
        "ends-early" => Kind::EndsEarly(options.number("hours", 30)?, options.told()?),
        "begins-early" => Kind::BeginsEarly(options.number("hours", 30)?, options.told()?),
        "overview" => Kind::Overview(options.number("by", -10)?),
        "timeline" => Kind::Timeline(options.number("by", 3)?),
        "no-starts" => Kind::NoStarts,
        "list" => {
            let names = [
                ("languages", List::Languages),
                ("countries", List::Countries),
                ("sources", List::Sources),
                ("sentiment", List::Sentiment),
            ];
            Kind::List(options.one_of("name", &names)?, options.number("by", 3)?)
        }
        "old-copy" => Kind::OldCopy(options.number("hours", 6)?),
        "estimated" => {
            let signs = [("bound", EstimateSign::Bound), ("flag", EstimateSign::Flag)];
            Kind::Estimated(options.number("moved", 3)?, options.one_of("sign", &signs)?)
        }
        "newest-last" => Kind::NewestLast,
        "partial" => {
            let signs = [
                ("timed-out", Sign::TimedOut),
                ("errors", Sign::Errors),
                ("shards", Sign::Shards),
                ("status", Sign::Status),
            ];
            Kind::Partial(options.number("percent", 20)?, options.one_of("sign", &signs)?)
        }
        "accepted" => Kind::Accepted(options.number("retry-after", 1)?),
        "overview-unfiltered" => Kind::OverviewUnfiltered,
        "other-aid" => Kind::OtherAid,
        "other-window" => Kind::OtherWindow,
        "twice" => Kind::Twice,
        "missing" => Kind::Missing(options.field()),
        "null" => Kind::Null(options.field()),
        "rename" => Kind::Rename(options.field(), options.text("to").unwrap_or_else(|| "audience".to_owned())),
        "drift" => Kind::Drift(options.field()),
        "big" => Kind::Big(options.field()),
        "nan" => Kind::Nan(options.field()),
        "times" => Kind::Times(options.one_of(
            "as",
            &[
                ("mixed", TimeForm::Mixed),
                ("compact", TimeForm::Compact),
                ("date", TimeForm::Date),
                ("local", TimeForm::Local),
            ],
        )?),
        "source-ids" => Kind::SourceIds,
        "list-page" => {
            let signs = [("total", More::Total), ("next", More::Next), ("has-more", More::Flag), ("link", More::Link)];
            Kind::ListPage(options.number("rows", 1)?, options.one_of("sign", &signs)?)
        }
        "aid-fraction" => Kind::AidFraction,
        "zone-name" => {
            Kind::ZoneName(options.one_of("as", &[("alias", ZoneName::Alias), ("distance", ZoneName::Distance)])?)
        }
        "gzip-members" => Kind::GzipMembers(options.number("count", 3)?),
        "extra" => Kind::Extra,
        "bomb" => Kind::Bomb(options.number("mib", 200)?),
        "giant" => Kind::Giant(options.number("mib", 200)?),
        "deep" => Kind::Deep(options.number("levels", 100_000)?),
        "skew" => Kind::Skew(options.number("seconds", 600)?),
        "arrive" => options.moves(Moved::Arrive)?,
        "delete" => options.moves(Moved::Delete)?,
        "edit" => options.moves(Moved::Edit)?,
        status => {
            let status = status.parse().ok().filter(|status| (400..600).contains(status));
            let bodies = [
                ("json", ErrorBody::Json),
                ("text", ErrorBody::Text),
                ("html", ErrorBody::Html),
                ("empty", ErrorBody::Empty),
                ("echo", ErrorBody::Echo),
            ];
            Kind::Status {
                status: status.ok_or_else(|| {
                    let names: Vec<_> = KINDS.iter().map(|(name, ..)| *name).collect();
                    format!("unknown kind `{name}`; available: {}", names.join(", "))
                })?,
                retry_after: options.text("retry-after"),
                reset: options.text("reset"),
                code: options.text("code"),
                body: options.one_of("body", &bodies)?,
            }
        }
    })
}

/// Options of a fault that have not been read yet.
struct Options(Vec<(String, String)>);

impl Options {
    fn text(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    fn number<T: FromStr>(&mut self, name: &str, default: T) -> Result<T, String> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| format!("`{name}` must be an integer, found `{text}`"))
    }

    fn field(&mut self) -> String {
        self.text("field").unwrap_or_else(|| "reach".to_owned())
    }

    /// Parses an option as one of `values`; the first is the default.
    fn one_of<T: Copy>(&mut self, name: &str, values: &[(&str, T)]) -> Result<T, String> {
        let text = self.text(name).unwrap_or_else(|| values[0].0.to_owned());
        let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
        let found = values.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| format!("`{name}` must be one of {}, found `{text}`", names.join(", ")))
    }

    fn told(&mut self) -> Result<ReportedWindow, String> {
        let which = [("used", false), ("asked", true)];
        Ok(ReportedWindow { as_asked: self.one_of("echo", &which)?, counts_asked: self.one_of("counts", &which)? })
    }

    fn moves(&mut self, moved: Moved) -> Result<Kind, String> {
        let places = [("any", Whereabouts::Any), ("start", Whereabouts::Start), ("end", Whereabouts::End)];
        Ok(Kind::Move(moved, self.number("n", 1)?, self.one_of("at", &places)?))
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("invalid schedule `{text}`: expected N, N-M, N- or P%");
        let number = |text: &str| text.parse::<u64>().ok().filter(|n| *n > 0).ok_or_else(bad);
        if let Some(percent) = text.strip_suffix('%') {
            return number(percent).map(Self::Percent);
        }
        let (first, last) = match text.split_once('-') {
            Some((first, "")) => (number(first)?, u64::MAX),
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(text)?, number(text)?),
        };
        if first > last { Err(bad()) } else { Ok(Self::Between(first, last)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::each;

    fn fault(text: &str) -> Fault {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_kind_is_read_by_its_name() {
        for (name, takes, _) in KINDS {
            let name = if *name == "<status>" { "503" } else { name };
            fault(name);
            for option in takes.split(", ").filter(|option| option.contains('=') && !option.contains('<')) {
                fault(&format!("{name}:{}", option.split('|').next().expect("a value")));
            }
        }
    }

    #[test]
    fn schedules_count_requests_from_one() {
        let at = |text: &str| (1..=9).filter(|n| fault(text).happens(1, *n, None)).collect::<Vec<u64>>();
        assert_eq!(at("html@3"), [3]);
        assert_eq!(at("429:retry-after=2@5-8"), [5, 6, 7, 8]);
        assert_eq!(at("403:aid=7@2-"), Vec::<u64>::new());
        assert_eq!(at("empty").len(), 9);
        let half = fault("empty@50%");
        let happened = (1..=1_000).filter(|n| half.happens(1, *n, None)).count();
        assert!((400..600).contains(&happened), "{happened}");
        assert!(fault("403:aid=7@2-").happens(1, 2, Some("7")));
    }

    #[test]
    fn what_is_no_fault_is_refused_with_what_would_be() {
        let cases = [
            ("slow", "unknown kind `slow`; available: <status>, redirect"),
            ("200", "unknown kind `200`"),
            ("short:rows=many", "`rows` must be an integer"),
            ("short:lines=3", "`short` has no option `lines`"),
            ("short:rows", "expected NAME=VALUE"),
            ("depth:answer=500", "`answer` must be one of 400, 404, empty, last"),
            ("html@0", "invalid schedule `0`"),
            ("html@8-5", "invalid schedule `8-5`"),
        ];
        each(cases, |(text, why)| {
            let error = text.parse::<Fault>().expect_err(text).to_string();
            assert!(error.contains(why), "{error}");
        });
    }
}
