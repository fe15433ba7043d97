//! What the service does wrong, when, and to whom: scripted faults, equal for equal seeds.
//!
//! ```text
//! KIND[:NAME=VALUE,…][@WHEN]      429:retry-after=2@5-8    truncated@3    clamp:rows=40    delete:n=2,at=start@10%
//! ```
//!
//! WHEN counts the requests as they come, from 1: `3`, `5-8`, `5-`, `10%` (a share of them, by the seed), or all. Faults
//! combine: each does its part of an answer, in the order in which they are given. [`KINDS`] lists them.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;

/// A fault and its schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub(super) kind: Kind,
    /// The saved search that it concerns; absent: all, and the list.
    aid: Option<String>,
    when: When,
    text: String,
}

/// When a fault happens.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    /// From one request to another, both included.
    Between(u64, u64),
    /// So many of a hundred requests.
    Percent(u64),
}

/// What happens.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Another status.
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
    /// An error body with status 200, which repeats the key.
    ErrorBody,
    /// The body ends after this share of it, as if it were whole.
    Truncated(u64),
    /// The connection breaks after this share of the body.
    Reset(u64),
    /// The body comes in pieces, with so many milliseconds between them.
    Trickle(u64),
    /// The body stops half-way, for ever.
    Stall,
    /// A byte that is no UTF-8; an escape that is none; half of a surrogate pair: each in the first text.
    Utf8,
    Escape,
    Surrogate,
    /// A page without records.
    Empty,
    /// A page of so many records.
    Short(u64),
    /// The total is off by so many.
    Total(i64),
    /// There is no total.
    NoTotal,
    /// The offset has no effect.
    OffsetIgnored,
    /// The page size has no effect: all records come.
    SizeIgnored,
    /// Pages have so many records at most.
    Clamp(u64),
    /// Paging reaches so many records; what lies beyond.
    Depth(u64, Beyond),
    /// Equal keys come in another order each time.
    Ties,
    /// Another order than the one that was asked for.
    SortIgnored,
    /// The filters have no effect.
    FiltersIgnored,
    /// A page of another saved search; of another window.
    OtherAid,
    OtherWindow,
    /// A record comes twice, once in an older version.
    Twice,
    /// A field is not there; is null; is called otherwise; is of another type; holds a number that no type can hold.
    Missing(String),
    Null(String),
    Rename(String, String),
    Drift(String),
    Big(String),
    /// Instants are written in many forms.
    Times,
    /// Fields that nobody knows.
    Extra,
    /// A body that unpacks to so many MiB; a text of so many MiB; an array so many levels deep.
    Bomb(u64),
    Giant(u64),
    Deep(u64),
    /// The service's clock is ahead by so many seconds, or behind.
    Skew(i64),
    /// Mentions are published; deleted; edited.
    Move(Moved, u64, Whereabouts),
}

/// The body of another status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorBody {
    Json,
    Text,
    Html,
    Empty,
    /// Repeats the key.
    Echo,
}

/// What lies beyond the depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beyond {
    BadRequest,
    NotFound,
    Empty,
    LastPage,
}

/// How the corpus changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    Arrive,
    Delete,
    Edit,
}

/// Which mentions change: the oldest, the newest, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whereabouts {
    Start,
    End,
    Any,
}

/// The faults by their names: what each takes, with its default, and what it does.
pub const KINDS: &[(&str, &str, &str)] = &[
    (
        "<status>",
        "retry-after=<seconds>|date+<s>|iso+<s>, reset=epoch+<s>|iso+<s>|<seconds>, code=<text>, body=json|text|html|empty|echo",
        "answers with that status",
    ),
    ("redirect", "to=<address>", "answers 302"),
    ("html", "", "a web page with status 200"),
    ("error-body", "", "an error with status 200"),
    ("truncated", "at=50", "the body ends after that percentage of it"),
    ("reset", "at=50", "the connection breaks after that percentage of the body"),
    ("trickle", "ms=1000", "the body comes in 20 pieces with pauses between"),
    ("stall", "", "the body stops half-way"),
    ("utf8", "", "a byte that is no UTF-8"),
    ("escape", "", "an escape that is none"),
    ("surrogate", "", "half of a surrogate pair"),
    ("empty", "", "a page without records"),
    ("short", "rows=7", "a page of so many records"),
    ("total", "by=1", "the total is off"),
    ("no-total", "", "there is no total"),
    ("offset-ignored", "", "every page is the first one"),
    ("size-ignored", "", "every page has all records from its offset on"),
    ("clamp", "rows=40", "no page has more records"),
    ("depth", "rows=300, answer=400|404|empty|last", "paging reaches no further"),
    ("ties", "", "equal keys come in another order each time"),
    ("sort-ignored", "", "records come in no order"),
    ("filters-ignored", "", "records are not filtered"),
    ("other-aid", "", "the page of another saved search"),
    ("other-window", "", "the page of another window"),
    ("twice", "", "a record comes again in an older version"),
    ("missing", "field=reach", "a field is not there"),
    ("null", "field=reach", "a field is null"),
    ("rename", "field=reach, to=audience", "a field is called otherwise"),
    ("drift", "field=reach", "a field is of another type"),
    ("big", "field=reach", "a number that no type holds"),
    ("times", "", "instants are written in many forms"),
    ("extra", "", "fields that nobody knows"),
    ("bomb", "mib=200", "a body that unpacks to so much"),
    ("giant", "mib=200", "a text of that size"),
    ("deep", "levels=100000", "arrays within arrays"),
    ("skew", "seconds=600", "the service's clock is ahead, or behind"),
    ("arrive", "n=1, at=start|end|any", "mentions are published before the answer"),
    ("delete", "n=1, at=start|end|any", "mentions are deleted before the answer"),
    ("edit", "n=1, at=start|end|any", "mentions are edited before the answer"),
];

impl Fault {
    /// Whether it happens at this request, the `n`th, which asks for this saved search.
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

/// Why a text is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no fault: {why}")]
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
        return Err(format!("`{name}` takes no `{unknown}`"));
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
        "total" => Kind::Total(options.number("by", 1)?),
        "no-total" => Kind::NoTotal,
        "offset-ignored" => Kind::OffsetIgnored,
        "size-ignored" => Kind::SizeIgnored,
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
        "other-aid" => Kind::OtherAid,
        "other-window" => Kind::OtherWindow,
        "twice" => Kind::Twice,
        "missing" => Kind::Missing(options.field()),
        "null" => Kind::Null(options.field()),
        "rename" => Kind::Rename(options.field(), options.text("to").unwrap_or_else(|| "audience".to_owned())),
        "drift" => Kind::Drift(options.field()),
        "big" => Kind::Big(options.field()),
        "times" => Kind::Times,
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
                    format!("there is no kind `{name}`; there are {}", names.join(", "))
                })?,
                retry_after: options.text("retry-after"),
                reset: options.text("reset"),
                code: options.text("code"),
                body: options.one_of("body", &bodies)?,
            }
        }
    })
}

/// The options of a fault that nobody has asked for yet.
struct Options(Vec<(String, String)>);

impl Options {
    fn text(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    fn number<T: FromStr>(&mut self, name: &str, default: T) -> Result<T, String> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| format!("`{name}` takes a whole number, found `{text}`"))
    }

    fn field(&mut self) -> String {
        self.text("field").unwrap_or_else(|| "reach".to_owned())
    }

    /// The value of a name; the first one where it is not given.
    fn one_of<T: Copy>(&mut self, name: &str, values: &[(&str, T)]) -> Result<T, String> {
        let text = self.text(name).unwrap_or_else(|| values[0].0.to_owned());
        let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
        let found = values.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| format!("`{name}` is one of {}, not `{text}`", names.join(", ")))
    }

    fn moves(&mut self, moved: Moved) -> Result<Kind, String> {
        let places = [("any", Whereabouts::Any), ("start", Whereabouts::Start), ("end", Whereabouts::End)];
        Ok(Kind::Move(moved, self.number("n", 1)?, self.one_of("at", &places)?))
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` says no requests: expected N, N-M, N-, or P%");
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
        for (text, why) in [
            ("slow", "there is no kind `slow`; there are <status>, redirect"),
            ("200", "there is no kind `200`"),
            ("short:rows=many", "`rows` takes a whole number"),
            ("short:lines=3", "`short` takes no `lines`"),
            ("short:rows", "expected NAME=VALUE"),
            ("depth:answer=500", "`answer` is one of 400, 404, empty, last"),
            ("html@0", "says no requests"),
            ("html@8-5", "says no requests"),
        ] {
            let error = text.parse::<Fault>().expect_err(text).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
