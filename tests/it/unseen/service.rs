//! An unseen service: a seed determines all its properties, from the form of its key to the wording of its refusals. It
//! is independent of the client and of the simulator's dialects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use datafusion_saved_search::client::{HttpFailure, HttpRequest, HttpResponse, HttpService};
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

/// The saved search with the mentions; there is also an empty one, and one with three mentions.
pub(super) const AID: &str = "s-2041";
pub(super) const KEY: &str = "unseen-key-0001";
/// Number of mentions in the saved search.
const ROWS: i64 = 1_600;

/// Random numbers from a seed (splitmix64).
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.roll() % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()].clone()
    }

    /// One of the usual words, or a meaningless one.
    fn word(&mut self, usual: &[&str]) -> String {
        if self.chance(60) { self.one(usual).to_owned() } else { self.nonsense() }
    }

    fn nonsense(&mut self) -> String {
        let syllable = |dice: &mut Self| {
            format!(
                "{}{}",
                dice.one(&["b", "d", "gr", "k", "l", "m", "pl", "v", "z"]),
                dice.one(&["a", "e", "i", "o", "u"])
            )
        };
        (0..3).map(|_| syllable(self)).collect()
    }
}

/// Format of instants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Instants {
    Rfc3339,
    Seconds,
    Millis,
    Micros,
    Zoneless,
    DayFirst,
    /// Without separators.
    Compact,
}

/// A difficulty that a service has besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hard {
    /// A page has one of a few sizes.
    Sizes,
    /// A page has a least size.
    Least,
    /// Counts are texts with separators.
    Texts,
    /// The timeline has running sums.
    Running,
    /// Names of windows have blanks.
    Blanks,
    /// Windows are days of the calendar, today included.
    Calendar,
    /// Windows are a number of days, in words.
    Days,
    /// Two fields identify a mention.
    TwoFields,
    /// Date and time are in fields of their own.
    Apart,
    /// Times have no separators.
    Compact,
    /// The response is in an array.
    Wrapped,
    /// The response is JSON in a string.
    InString,
    /// Entries of lists are objects by name.
    Nested,
    /// The ends of a window need a word in place of the period.
    Custom,
    /// Zones are `UTC+05:30`.
    Prefixed,
    /// Zones are minutes.
    Minutes,
    /// Values of the sort order are numbers, explained in words.
    Explained,
    /// Other parameters contain the words that announce a list.
    Words,
    /// Times are in the requested zone, and ids have a name of their own.
    InZone,
    /// Days are those of a zone of the service's own.
    LocalDays,
    /// A value that is missing is a word.
    NullWords,
    /// The list is an object by aid.
    ListMap,
    /// The list has folders.
    Folders,
    /// The size of the page is repeated under a name like that of a total.
    Repeats,
    /// Times are written without their zone, which has daylight saving time. The list names it.
    Berlin,
    /// The same, and nothing names the zone.
    Silent,
    /// Times are written without their zone, which is half an hour off.
    HalfHour,
    /// Windows and the timeline are of days of a zone with daylight saving time.
    BerlinDays,
    /// Windows and the timeline refer to the time of receipt.
    Received,
    /// Bounds of windows are rounded down to the minute.
    Floored,
    /// The number of authors is the only one that could be a total.
    Authors,
    /// The names in a list of countries are those of languages.
    Countries,
    /// An author has a name and a screen name.
    UserName,
    /// Days of the timeline have no separators.
    CompactDays,
    /// Ids are numbers that JavaScript rounded, beside their texts.
    RoundedIds,
    /// Records are arrays, with the names of their fields beside them.
    Columns,
    /// The lists of all fields are in one array.
    Facets,
    /// The total is in a header only.
    HeaderTotal,
    /// A period that is not understood is ignored.
    Lax,
    /// Records have an id and attributes, numbers are in `meta`, and each page links to the next one.
    JsonApi,
    /// The total is in the first page only.
    FirstPage,
    /// The list comes in pages.
    ListPages,
    /// Names of fields have dots, blanks and letters beyond ASCII.
    Keys,
    /// A page is requested by the id of the mention before it.
    LastId,
    /// The last page links to a next one as well.
    IdleLinks,
    /// Periods that have a name end at the last midnight, and only their mentions show it. Not one of [`ALL`](Self::ALL), whose order is
    /// that of the cases.
    Midnight,
}

impl Hard {
    pub(super) const ALL: [Self; 45] = [
        Self::Sizes,
        Self::Least,
        Self::Texts,
        Self::Running,
        Self::Blanks,
        Self::Calendar,
        Self::Days,
        Self::TwoFields,
        Self::Apart,
        Self::Compact,
        Self::Wrapped,
        Self::InString,
        Self::Nested,
        Self::Custom,
        Self::Prefixed,
        Self::Minutes,
        Self::Explained,
        Self::Words,
        Self::InZone,
        Self::LocalDays,
        Self::NullWords,
        Self::ListMap,
        Self::Folders,
        Self::Repeats,
        Self::Berlin,
        Self::Silent,
        Self::HalfHour,
        Self::BerlinDays,
        Self::Received,
        Self::Floored,
        Self::Authors,
        Self::Countries,
        Self::UserName,
        Self::CompactDays,
        Self::RoundedIds,
        Self::Columns,
        Self::Facets,
        Self::HeaderTotal,
        Self::Lax,
        Self::JsonApi,
        Self::FirstPage,
        Self::ListPages,
        Self::Keys,
        Self::LastId,
        Self::IdleLinks,
    ];
}

/// Layout of the entries of a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Entries {
    Objects,
    Pairs,
    Map,
    Nested,
    None,
}

/// Format of refusals.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Refusals {
    Nested,
    JsonApi,
    Problem,
    Flat,
    Text,
    InsideSuccess,
}

/// Form in which a refusal lists the accepted values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Hints {
    Brackets,
    Quotes,
    Bars,
    Commas,
    Nothing,
}

/// Form of several values in a filter.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Several {
    Commas,
    Bars,
    Repeated,
    One,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Asks {
    Size,
    Flag,
    Always,
}

/// Form of a relative or named window.
#[derive(Debug, Clone, PartialEq)]
enum Periods {
    Units(&'static str),
    Iso,
    Names(Vec<(String, i64)>),
    /// A number and the word `days`.
    Days,
}

/// Form of an absolute window.
#[derive(Debug, Clone, PartialEq)]
enum Ends {
    None,
    /// Instants with this separator, half-open.
    Between(&'static str),
    /// Days with a comma, the last one included.
    Days,
    /// Separate parameters: instants or milliseconds, half-open.
    Apart(String, String, Instants),
    /// Separate parameters: days, the last one included.
    ApartDays(String, String),
}

/// Trouble with the request of this number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Trouble {
    None,
    Broken(u64),
    Throttled(u64),
}

/// Names of a mention's fields; `/` descends into an object.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    pub(super) id: String,
    pub(super) time: String,
    pub(super) text: String,
    pub(super) language: String,
    pub(super) source: String,
    pub(super) reach: String,
    pub(super) seen: String,
    url: String,
}

#[derive(Debug)]
pub(super) struct Unseen {
    pub(super) now: DateTime<Utc>,
    pub(super) trouble: Trouble,
    calls: AtomicU64,
    /// Number of mentions that the header of the next response has; the maximum for none.
    told: AtomicU64,
    key: (String, String),
    list: (Vec<String>, Option<String>),
    pub(super) fields: Fields,
    pub(super) overview: Vec<String>,
    pub(super) total: (Vec<String>, bool),
    pub(super) timeline: (Entries, String, [String; 2], Instants),
    pub(super) lists: (Entries, [String; 2], [String; 2]),
    pub(super) records: (Vec<String>, Option<String>),
    pub(super) instants: Instants,
    numeric_ids: bool,
    asks: Asks,
    flag: (String, String),
    with_overview: bool,
    pages_from: Option<u64>,
    rows_from: u64,
    page: (u64, bool),
    depth: Option<(u64, u16)>,
    periods: Periods,
    ends: Ends,
    zone: u64,
    /// Set if each list of the overview has its own envelope.
    pub(super) buckets: bool,
    sorts: [(String, bool); 2],
    filters: [String; 2],
    several: Several,
    strict: bool,
    refusals: Refusals,
    hints: Hints,
    echoes: bool,
    hard: BTreeSet<Hard>,
}

/// A mention, independent of the format in which the service writes it.
#[derive(Debug, Clone)]
pub(super) struct Mention {
    pub(super) id: String,
    pub(super) at: DateTime<Utc>,
    pub(super) text: String,
    pub(super) language: Option<&'static str>,
    pub(super) source: &'static str,
    pub(super) reach: i64,
    /// Time of receipt.
    pub(super) seen: DateTime<Utc>,
}

impl Unseen {
    pub(super) fn new(seed: u64, now: DateTime<Utc>) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0xA076_1D64_78BD_642F));
        let d = &mut dice;
        let usual_keys = [
            ("Authorization", "Bearer {key}"),
            ("Authorization", "Token {key}"),
            ("Authorization", "{key}"),
            ("X-Api-Key", "{key}"),
            ("Authorization", "Token token={key}"),
            ("X-Auth-Token", "{key}"),
            ("Authorization", "Key {key}"),
        ];
        let key = d.one(&usual_keys);
        let envelope =
            |d: &mut Dice, usual: &[&str]| -> Vec<String> { (0..d.below(3)).map(|_| d.word(usual)).collect() };
        let list_at = [
            envelope(d, &["data", "result"]),
            vec![d.word(&["savedSearches", "searches", "queries", "items", "alerts"])],
        ]
        .concat();
        let nest = |d: &mut Dice, outer: &[&str], inner: &[&str]| match d.chance(30) {
            true => format!("{}/{}", d.word(outer), d.word(inner)),
            false => d.word(inner),
        };
        let fields = Fields {
            id: d.word(&["id", "uuid", "mentionId", "doc_id", "guid", "key"]),
            time: d.word(&["publishedAt", "published", "date", "created_at", "ts", "pubDate", "timestamp"]),
            text: d.word(&["text", "content", "body", "message", "fulltext"]),
            language: nest(d, &["meta", "locale"], &["language", "lang", "languageCode"]),
            source: nest(d, &["source", "site"], &["name", "domain", "host"]),
            reach: nest(d, &["metrics", "stats"], &["reach", "audience", "impressions", "potentialReach"]),
            seen: d.word(&["indexedAt", "crawledAt", "collected"]),
            url: d.word(&["url", "link", "permalink"]),
        };
        let overview =
            [envelope(d, &["data", "response"]), vec![d.word(&["overview", "summary", "stats", "aggregations"])]]
                .concat();
        let records_at = [
            envelope(d, &["data", "result", "hits"]),
            vec![d.word(&["mentions", "items", "hits", "documents", "results"])],
        ]
        .concat();
        let total_word = d.word(&["total", "totalMentions", "count", "numFound", "hits_total"]);
        let total = match d.below(3) {
            0 => ([overview.clone(), vec![total_word]].concat(), true),
            1 => ([overview.clone(), vec![d.word(&["total", "hits"]), "value".to_owned()]].concat(), true),
            _ => ([records_at[..records_at.len() - 1].to_vec(), vec![total_word]].concat(), d.chance(50)),
        };
        let instants = d.one(&[
            Instants::Rfc3339,
            Instants::Rfc3339,
            Instants::Seconds,
            Instants::Millis,
            Instants::Micros,
            Instants::Zoneless,
            Instants::DayFirst,
        ]);
        let timeline = (
            d.one(&[Entries::Objects, Entries::Objects, Entries::Pairs, Entries::Map, Entries::None]),
            d.word(&["volume", "timeline", "histogram", "daily", "series"]),
            [d.word(&["date", "start", "day", "t", "key"]), d.word(&["count", "mentions", "n", "value", "doc_count"])],
            d.one(&[Instants::Rfc3339, Instants::Millis, Instants::Seconds]),
        );
        let lists = (
            d.one(&[Entries::Objects, Entries::Objects, Entries::Pairs, Entries::Map]),
            [
                d.word(&["languages", "byLanguage", "language", "topLanguages"]),
                d.word(&["sources", "topSources", "bySite", "domains"]),
            ],
            [d.word(&["name", "key", "value", "label", "term"]), d.word(&["count", "doc_count", "n", "mentions"])],
        );
        let case = d.below(3);
        let names =
            [("today", 0), ("last 7 days", 7), ("last 30 days", 30), ("last 90 days", 90)].map(|(name, days)| {
                let name = match case {
                    0 => name.to_uppercase().replace(' ', "_"),
                    1 => name.replace(' ', "-"),
                    _ => name.split(' ').map(|part| part[..1].to_uppercase() + &part[1..]).collect(),
                };
                (name, days)
            });
        let periods = match d.below(3) {
            0 => Periods::Units(d.one(&["hdw", "d", "dw", "hd"])),
            1 => Periods::Iso,
            _ => Periods::Names(names.into_iter().collect()),
        };
        let apart = d.one(&[
            ("from", "to"),
            ("since", "until"),
            ("startDate", "endDate"),
            ("dateFrom", "dateTo"),
            ("start", "end"),
        ]);
        let apart = (apart.0.to_owned(), apart.1.to_owned());
        let ends = match d.below(6) {
            0 => Ends::None,
            1 => Ends::Between(d.one(&["..", "/", ","])),
            2 => Ends::Days,
            3 => Ends::Apart(apart.0, apart.1, Instants::Rfc3339),
            4 => Ends::Apart(apart.0, apart.1, Instants::Millis),
            _ => Ends::ApartDays(apart.0, apart.1),
        };
        let sorts = d.one(&[
            ("newest", "oldest"),
            ("-published", "published"),
            ("date:desc", "date:asc"),
            ("DATE_DESC", "DATE_ASC"),
            ("recency", "chronological"),
            ("published_at desc", "published_at asc"),
        ]);
        let last = |path: &str| path.split('/').next_back().unwrap().to_owned();
        let first = |path: &str| path.split('/').next().unwrap().to_owned();
        let filters = match d.below(3) {
            0 => [last(&fields.language), first(&fields.source)],
            1 => [last(&fields.language), last(&fields.source)],
            _ => [d.word(&["lang", "language", "languages"]), d.word(&["source", "site", "domain"])],
        };
        let strict = d.chance(45);
        Self {
            now,
            trouble: Trouble::None,
            calls: AtomicU64::new(0),
            told: AtomicU64::new(u64::MAX),
            key: (key.0.to_owned(), key.1.to_owned()),
            list: (list_at, d.chance(20).then(|| d.word(&["search", "query"]))),
            fields,
            overview,
            total,
            timeline,
            lists,
            records: (records_at, d.chance(25).then(|| d.word(&["doc", "_source", "attributes"]))),
            instants,
            numeric_ids: d.chance(40),
            asks: d.one(&[Asks::Size, Asks::Size, Asks::Flag, Asks::Always]),
            flag: (d.one(&["withData", "mentions", "includeMentions", "view", "data"]).to_owned(), String::new()),
            with_overview: d.chance(75),
            pages_from: d.chance(40).then(|| d.below(2)),
            rows_from: d.below(4) / 3,
            page: (d.one(&[20, 50, 100, 200]), d.chance(40)),
            depth: d.chance(30).then(|| (1_000, d.one(&[400, 404, 200]))),
            periods,
            ends,
            zone: d.below(4),
            buckets: d.chance(20),
            sorts: [(sorts.0.to_owned(), true), (sorts.1.to_owned(), false)],
            filters,
            several: d.one(&[Several::Commas, Several::Bars, Several::Repeated, Several::One]),
            strict,
            refusals: d.one(&[
                Refusals::Nested,
                Refusals::JsonApi,
                Refusals::Problem,
                Refusals::Flat,
                Refusals::Text,
                Refusals::InsideSuccess,
            ]),
            hints: if strict {
                d.one(&[Hints::Brackets, Hints::Quotes, Hints::Bars, Hints::Commas])
            } else {
                d.one(&[Hints::Brackets, Hints::Quotes, Hints::Bars, Hints::Commas, Hints::Nothing])
            },
            echoes: d.chance(50),
            hard: BTreeSet::new(),
        }
        .whole(seed)
    }

    /// A service with these difficulties.
    pub(super) fn hard(seed: u64, now: DateTime<Utc>, hard: &[Hard]) -> Self {
        let mut service = Self::new(seed, now);
        service.hard = hard.iter().copied().collect();
        let names = |names: [&str; 3]| Periods::Names(names.into_iter().map(str::to_owned).zip([7, 30, 90]).collect());
        let days = ["LAST_7_DAYS", "LAST_30_DAYS", "LAST_90_DAYS"];
        for hard in hard {
            match hard {
                Hard::Sizes | Hard::Least => service.page = (100, false),
                Hard::Blanks => {
                    (service.periods, service.ends) = (names(["7 days", "30 days", "3 months"]), Ends::None)
                }
                Hard::Calendar => service.periods = names(days),
                Hard::Midnight => {
                    (service.periods, service.ends) = (names(days), Ends::None);
                    service.timeline.0 = Entries::None;
                }
                Hard::Days => service.periods = Periods::Days,
                Hard::TwoFields => service.fields.id = "docNo".to_owned(),
                Hard::Compact => service.instants = Instants::Compact,
                Hard::Apart => service.instants = Instants::Rfc3339,
                Hard::Nested => service.lists.0 = Entries::Nested,
                Hard::Custom => {
                    service.periods = names(days);
                    service.ends = Ends::Apart("from".to_owned(), "to".to_owned(), Instants::Rfc3339);
                }
                Hard::Prefixed => service.zone = 4,
                Hard::Minutes => service.zone = 5,
                Hard::Explained => service.sorts = [("1".to_owned(), true), ("2".to_owned(), false)],
                Hard::Words => service.strict = true,
                Hard::InZone => {
                    (service.instants, service.zone) = (Instants::Rfc3339, 1);
                    service.fields.id = "uid".to_owned();
                }
                Hard::Berlin | Hard::Silent | Hard::HalfHour => service.instants = Instants::Zoneless,
                Hard::BerlinDays => {
                    service.zone = 2;
                    (service.timeline.0, service.buckets) = (Entries::Objects, false);
                    service.ends = Ends::ApartDays("firstDay".to_owned(), "lastDay".to_owned());
                }
                Hard::Floored => {
                    service.ends = Ends::Apart("from".to_owned(), "to".to_owned(), Instants::Rfc3339);
                }
                Hard::CompactDays => service.timeline.0 = Entries::Map,
                Hard::RoundedIds => (service.numeric_ids, service.fields.id) = (true, "id".to_owned()),
                Hard::LocalDays => {
                    service.zone = 2;
                    service.timeline.0 = Entries::Objects;
                }
                Hard::Keys => {
                    service.fields.text = "conteúdo do texto".to_owned();
                    service.fields.reach = "alcance.total".to_owned();
                    service.fields.url = "endereço".to_owned();
                }
                Hard::JsonApi => {
                    let at = |name: &str| vec![name.to_owned()];
                    (service.list, service.overview) = ((at("data"), None), at("meta"));
                    service.records = (at("data"), Some("attributes".to_owned()));
                    service.total = ([at("meta"), at("total")].concat(), true);
                    service.refusals = Refusals::JsonApi;
                }
                _ => {}
            }
        }
        // A refusal that lists nothing tells nothing about these.
        if service.hints == Hints::Nothing {
            service.hints = Hints::Commas;
        }
        service
    }

    /// A service whose refusals list nothing.
    pub(super) fn silent(seed: u64, now: DateTime<Utc>) -> Self {
        Self { hints: Hints::Nothing, strict: false, ..Self::new(seed, now) }
    }

    /// A search that works, as a person would copy it from a manual.
    pub(super) fn example(&self) -> String {
        let period = match &self.periods {
            Periods::Units(units) if units.contains('d') => "30d".to_owned(),
            Periods::Units(_) => "48h".to_owned(),
            Periods::Iso => "P30D".to_owned(),
            Periods::Names(names) => names[2].0.clone(),
            Periods::Days => "30 days".to_owned(),
        };
        let zone = ["UTC", "+05:30", "UTC", "+00:00", "UTC+00:00", "0"][usize::try_from(self.zone).unwrap()];
        let mut url = url::Url::parse("https://unseen.test/v4/search").unwrap();
        url.query_pairs_mut()
            .append_pair("aid", AID)
            .append_pair("duration", &period)
            .append_pair("timezone", zone)
            .append_pair("dataSize", "20")
            .append_pair("sortBy", &self.sorts[0].0);
        if self.asks == Asks::Flag {
            url.query_pairs_mut().append_pair(&self.flag.0, &self.flag.1);
        }
        format!("curl -sS -H '{}: {}' '{url}'", self.key.0, self.key.1.replace("{key}", "$KEY"))
    }

    pub(super) fn has(&self, hard: Hard) -> bool {
        self.hard.contains(&hard)
    }

    /// A count as it is written.
    fn counted(&self, count: usize) -> Value {
        if !self.has(Hard::Texts) {
            return json!(count);
        }
        let digits = count.to_string();
        let text = digits.char_indices().map(|(at, digit)| {
            let comma = at > 0 && (digits.len() - at).is_multiple_of(3);
            format!("{}{digit}", if comma { "," } else { "" })
        });
        json!(text.collect::<String>())
    }

    /// Makes dependent properties consistent.
    fn whole(mut self, seed: u64) -> Self {
        self.flag.1 =
            if self.flag.0 == "view" { "full" } else { ["true", "1", "yes"][usize::try_from(seed % 3).unwrap()] }
                .to_owned();
        // An overview is always available: in responses without mentions, or with them.
        self.with_overview |= self.asks == Asks::Always;
        if self.records.0 == self.overview
            || self.overview.starts_with(&self.records.0)
            || self.records.0.starts_with(&self.overview)
        {
            self.records.0.push("list".to_owned());
            self.records.0[0].push_str("Page");
        }
        self
    }

    /// The mention at a rank, newest first.
    pub(super) fn mention(&self, row: i64) -> Mention {
        let mut dice = Dice(row.unsigned_abs().wrapping_mul(77) + 5);
        let at = self.now - TimeDelta::minutes(80 * row + 7) - TimeDelta::seconds(60 * dice.below(60).cast_signed());
        let id = 700_000_000_000_000_000 + dice.below(1 << 40).cast_signed() * 4_000 + row;
        let id = if self.numeric_ids { id.to_string() } else { format!("m{id:x}") };
        let language = dice.one(&[Some("en"), Some("en"), Some("en"), Some("de"), Some("fr"), Some("es"), None]);
        let source = dice.one(&["x.com", "x.com", "reddit.com", "news.example", "blog.example", "forum.example"]);
        // Two in a row have one number, so their sources differ.
        let other = self.has(Hard::TwoFields) && row % 2 == 1 && self.mention(row - 1).source == source;
        let source = if other { "odd.example" } else { source };
        let id = if self.has(Hard::TwoFields) { format!("{source}:{}", row / 2) } else { id };
        let subject = dice.one(&["Battery", "Service", "Price", "Design"]);
        let text = format!("{subject} of the new phone, said number {row}: not what was promised");
        let reach = dice.below(50_000).cast_signed();
        // Old ones were received late.
        let late = if self.has(Hard::Received) && row >= 30 { TimeDelta::hours(20) } else { TimeDelta::minutes(90) };
        let late = if self.has(Hard::Received) && row < 30 { TimeDelta::minutes(5) } else { late };
        let at = if self.has(Hard::Floored) { at - TimeDelta::seconds((row * 7) % 60) } else { at };
        Mention { id, at, text, language, source, reach, seen: at + late }
    }

    /// All mentions, newest first.
    pub(super) fn mentions(&self) -> Vec<Mention> {
        (0..ROWS).map(|row| self.mention(row)).collect()
    }

    /// The time of a mention that windows refer to.
    pub(super) fn windowed(&self, mention: &Mention) -> DateTime<Utc> {
        if self.has(Hard::Received) { mention.seen } else { mention.at }
    }

    /// First instant of a day of windows.
    fn day_start(&self, day: NaiveDate) -> DateTime<Utc> {
        let midnight = day.and_time(NaiveTime::MIN);
        match self.has(Hard::BerlinDays) {
            true => midnight.and_local_timezone(chrono_tz::Europe::Berlin).unwrap().to_utc(),
            false => midnight.and_utc(),
        }
    }

    pub(super) fn written(&self, at: DateTime<Utc>, how: Instants) -> Value {
        let zone = match () {
            () if self.has(Hard::Berlin) || self.has(Hard::Silent) => chrono_tz::Europe::Berlin,
            () if self.has(Hard::HalfHour) => chrono_tz::Asia::Kolkata,
            () => chrono_tz::UTC,
        };
        match how {
            Instants::Zoneless => json!(at.with_timezone(&zone).format("%Y-%m-%dT%H:%M:%S").to_string()),
            Instants::Rfc3339 => json!(at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)),
            Instants::Seconds => json!(at.timestamp()),
            Instants::Millis => json!(at.timestamp_millis()),
            Instants::Micros => json!(at.timestamp_micros()),
            Instants::DayFirst => json!(at.format("%d/%m/%Y %H:%M:%S").to_string()),
            Instants::Compact => json!(at.format("%Y%m%dT%H%M%SZ").to_string()),
        }
    }

    fn record(&self, mention: &Mention, shift: i64) -> Value {
        let mut record = json!({});
        let id = match mention.id.split_once(':') {
            Some((_, number)) => json!(number.parse::<i64>().unwrap()),
            None if self.numeric_ids => json!(mention.id.parse::<i64>().unwrap()),
            None => json!(mention.id),
        };
        let zone = chrono::FixedOffset::east_opt(i32::try_from(shift * 60).unwrap()).unwrap();
        let written = |at: DateTime<Utc>| match self.has(Hard::InZone) {
            true => json!(at.with_timezone(&zone).to_rfc3339()),
            false if self.has(Hard::Apart) => json!(at.date_naive().to_string()),
            false => self.written(at, self.instants),
        };
        if self.has(Hard::Apart) {
            record["clock"] = json!(mention.at.format("%H:%M:%S").to_string());
        }
        let language = match mention.language {
            None if self.has(Hard::NullWords) => json!("n/a"),
            language => json!(language),
        };
        // An address of its own would identify a mention as well as the two fields do.
        let page = if self.has(Hard::TwoFields) { "" } else { mention.id.as_str() };
        let url = format!("https://{}/{page}", mention.source);
        let seen = match self.has(Hard::Apart) {
            true => json!(null),
            false => written(mention.seen),
        };
        for (path, value) in [
            (&self.fields.id, id),
            (&self.fields.time, written(mention.at)),
            (&self.fields.text, json!(mention.text)),
            (&self.fields.language, language),
            (&self.fields.source, json!(mention.source)),
            (&self.fields.reach, json!(mention.reach)),
            (&self.fields.seen, seen),
            (&self.fields.url, json!(url)),
        ] {
            put(&mut record, &path.split('/').map(str::to_owned).collect::<Vec<_>>(), value);
        }
        if self.has(Hard::RoundedIds) {
            #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as JavaScript does")]
            let rounded = mention.id.parse::<i64>().unwrap() as f64 as i64;
            (record["id"], record["id_str"]) = (json!(rounded), json!(mention.id));
        }
        if self.has(Hard::UserName) {
            record["user"] = json!({"name": format!("Ann {}", mention.reach % 40), "screen_name": format!("@a{}", mention.reach % 40)});
        }
        if self.has(Hard::Columns) {
            return record;
        }
        match &self.records.1 {
            Some(wrap) if self.has_id_outside() => {
                let id = record.as_object_mut().and_then(|record| record.remove(&self.fields.id));
                json!({"id": id, "type": "mention", wrap: record})
            }
            Some(wrap) => json!({ wrap: record, "score": 1.5 }),
            None => record,
        }
    }

    /// True if the id of a record is beside its attributes.
    fn has_id_outside(&self) -> bool {
        let others = [Hard::TwoFields, Hard::RoundedIds, Hard::Columns];
        self.has(Hard::JsonApi) && !others.iter().any(|hard| self.has(*hard))
    }

    /// The path of a field in a record, by its position if records are arrays.
    pub(super) fn located(&self, path: &str) -> Vec<String> {
        let steps: Vec<String> = path.split('/').map(str::to_owned).collect();
        if self.has_id_outside() && path == self.fields.id {
            return vec!["id".to_owned()];
        }
        if !self.has(Hard::Columns) {
            return self.records.1.iter().cloned().chain(steps).collect();
        }
        let record = self.record(&self.mention(0), 0);
        let at = record.as_object().unwrap().keys().position(|name| *name == steps[0]).unwrap();
        std::iter::once(at.to_string()).chain(steps[1..].iter().cloned()).collect()
    }

    /// The window that a value denotes; the default without a value.
    pub(super) fn period(&self, value: Option<&str>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let midnight = self.now.date_naive().and_time(NaiveTime::MIN).and_utc();
        let back = |hours: i64| Some((self.now - TimeDelta::hours(hours), self.now));
        let Some(value) = value else { return back(7 * 24) };
        let of = |text: &str, units: &str| -> Option<i64> {
            let unit = text.chars().next_back().filter(|unit| units.contains(*unit))?;
            let n: i64 = text[..text.len() - 1].parse().ok().filter(|n| (1..4_000).contains(n))?;
            Some(
                n * match unit {
                    'h' => 1,
                    'd' => 24,
                    _ => 168,
                },
            )
        };
        match (&self.ends, value) {
            (Ends::Between(separator), value) if value.contains(separator) => {
                let (from, to) = value.split_once(separator)?;
                return Some((from.parse().ok()?, to.parse().ok()?));
            }
            (Ends::Days, value) if value.contains(',') => {
                let (from, to) = value.split_once(',')?;
                let day = |text: &str| Some(text.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN).and_utc());
                return Some((day(from)?, day(to)? + TimeDelta::days(1)));
            }
            _ => {}
        }
        match &self.periods {
            Periods::Days => {
                let days: i64 = value.strip_suffix(" days")?.parse().ok().filter(|days| (1..4_000).contains(days))?;
                back(days * 24)
            }
            Periods::Names(names) if self.has(Hard::Calendar) => {
                let days = names.iter().find(|(name, _)| name == value)?.1;
                Some((midnight - TimeDelta::days(days - 1), self.now))
            }
            Periods::Names(names) if self.has(Hard::Midnight) => {
                let days = names.iter().find(|(name, _)| name == value)?.1;
                Some((midnight - TimeDelta::days(days), midnight))
            }
            Periods::Units(units) => of(value, units).and_then(back),
            Periods::Iso => {
                let value = value.strip_prefix('P')?;
                match value.strip_prefix('T') {
                    Some(time) => of(&time.to_lowercase(), "h").and_then(back),
                    None => of(&value.to_lowercase(), "dw").and_then(back),
                }
            }
            Periods::Names(names) => match names.iter().find(|(name, _)| name == value)?.1 {
                0 => Some((midnight, self.now)),
                days => back(days * 24),
            },
        }
    }

    fn refuse(&self, parameter: &str, what: &str, allowed: &[String]) -> (u16, Value) {
        let hint = match self.hints {
            _ if allowed.is_empty() => String::new(),
            Hints::Brackets => format!(", must be one of [{}]", allowed.join(", ")),
            Hints::Quotes => {
                format!(". Allowed values: {}", allowed.iter().map(|a| format!("'{a}'")).collect::<Vec<_>>().join(", "))
            }
            Hints::Bars => format!(", expected {}", allowed.join("|")),
            Hints::Commas => format!("; supported: {}", allowed.join(", ")),
            Hints::Nothing => String::new(),
        };
        self.error(400, parameter, &format!("Invalid value for '{parameter}': {what}{hint}"))
    }

    fn error(&self, status: u16, parameter: &str, message: &str) -> (u16, Value) {
        match self.refusals {
            Refusals::Nested => {
                (status, json!({"error": {"code": "invalid_parameter", "message": message, "field": parameter}}))
            }
            Refusals::JsonApi => (
                status,
                json!({"errors": [{"status": status.to_string(), "title": "Invalid", "detail": message, "source": {"parameter": parameter}}]}),
            ),
            Refusals::Problem => {
                (status, json!({"type": "about:blank", "title": "Bad Request", "status": status, "detail": message}))
            }
            Refusals::Flat => (status, json!({"message": message})),
            Refusals::Text => (status, Value::String(message.to_owned())),
            Refusals::InsideSuccess => (
                200,
                json!({"success": false, "errorCode": if status == 401 { "UNAUTHORIZED" } else { "BAD_REQUEST" }, "errorMessage": message}),
            ),
        }
    }

    fn entries(&self, how: Entries, names: &[String; 2], entries: Vec<(Value, usize)>) -> Value {
        match how {
            Entries::Objects => entries
                .into_iter()
                .map(|(name, count)| json!({&names[0]: name, &names[1]: self.counted(count)}))
                .collect(),
            Entries::Pairs => entries.into_iter().map(|(name, count)| json!([name, self.counted(count)])).collect(),
            Entries::Nested => {
                let entry = |(name, count): (Value, usize)| {
                    (name.as_str().unwrap_or_default().to_owned(), json!({"share": 0.5, "count": self.counted(count)}))
                };
                Value::Object(entries.into_iter().map(entry).collect::<Map<_, _>>())
            }
            Entries::Map | Entries::None => {
                let text = |name: Value| name.as_str().map_or_else(|| name.to_string(), str::to_owned);
                Value::Object(
                    entries.into_iter().map(|(name, count)| (text(name), self.counted(count))).collect::<Map<_, _>>(),
                )
            }
        }
    }

    fn answer(&self, path: &str, headers: &HeaderMap, asked: &[(String, String)]) -> (u16, Value) {
        let sent = headers.get(&self.key.0).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if sent != self.key.1.replace("{key}", KEY) {
            let form = self.key.1.replace("{key}", "<your key>");
            return self.error(401, "", &format!("Authentication failed. Send the header {}: {form}", self.key.0));
        }
        if path.ends_with("/list") {
            let entry = |(aid, name): (&str, &str)| {
                if self.has(Hard::JsonApi) {
                    return json!({"id": aid, "type": "search", "attributes": {"name": name, "created": "2025-01-01T00:00:00Z"}});
                }
                let entry = json!({"aid": aid, "name": name, "created": "2025-01-01T00:00:00Z"});
                self.list.1.as_ref().map_or(entry.clone(), |wrap| json!({ wrap: entry }))
            };
            let searches = [("s-1000", "nothing yet"), ("s-1001", "three"), (AID, "phones")];
            let mut body = json!({});
            if self.has(Hard::ListPages) {
                let page = asked.iter().find(|(name, _)| name == "page").and_then(|(_, page)| page.parse().ok());
                let page: usize = page.unwrap_or(1);
                let entries: Vec<Value> =
                    searches.iter().skip(2 * page.saturating_sub(1)).take(2).copied().map(entry).collect();
                put(&mut body, &self.list.0, json!(entries));
                body["paging"] = json!({"page": page, "total": searches.len()});
                return (200, self.enclosed(body));
            }
            let list = match () {
                () if self.has(Hard::ListMap) => {
                    let entry = |(aid, name): (&str, &str)| {
                        (aid.to_owned(), json!({"name": name, "created": "2025-01-01T00:00:00Z"}))
                    };
                    Value::Object(searches.map(entry).into_iter().collect::<Map<_, _>>())
                }
                () if self.has(Hard::Folders) => {
                    let [one, two, three] = searches.map(entry);
                    json!([
                        {"title": "all", "content": [one], "folders": [{"title": "inner", "content": [two], "folders": []}]},
                        {"title": "more", "content": [three], "folders": []},
                    ])
                }
                () => json!(searches.map(entry)),
            };
            put(&mut body, &self.list.0, list);
            if self.has(Hard::Berlin) || self.has(Hard::BerlinDays) {
                body["account"] = json!({"timezone": "Europe/Berlin"});
            }
            return (200, self.enclosed(body));
        }
        let (status, body) = self.search(asked);
        let refused = status != 200 || body.get("success").is_some();
        (status, if refused { body } else { self.enclosed(body) })
    }

    fn enclosed(&self, body: Value) -> Value {
        let body = if self.has(Hard::InString) { json!({"payload": body.to_string()}) } else { body };
        if self.has(Hard::Wrapped) { json!([body]) } else { body }
    }

    fn search(&self, asked: &[(String, String)]) -> (u16, Value) {
        let get = |name: &str| asked.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let mut known: Vec<String> =
            ["aid", "duration", "timezone", "dataFrom", "dataSize", "sortBy"].map(str::to_owned).to_vec();
        if self.asks == Asks::Flag {
            known.push(self.flag.0.clone());
        }
        if let Ends::Apart(from, to, _) | Ends::ApartDays(from, to) = &self.ends {
            known.extend([from.clone(), to.clone()]);
        }
        known.extend(self.filters.clone());
        if self.has(Hard::Words) {
            known.extend(["country", "user"].map(str::to_owned));
        }
        if self.has(Hard::LastId) {
            known.iter_mut().filter(|name| *name == "dataFrom").for_each(|name| *name = "after".to_owned());
        }
        if let Some((unknown, _)) = asked.iter().find(|(name, _)| !known.contains(name)).filter(|_| self.strict) {
            return self.error(
                400,
                unknown,
                &format!("Unknown parameter '{unknown}'. Parameters: {}", known.join(", ")),
            );
        }
        let count = match get("aid") {
            Some(AID) => ROWS,
            Some("s-1001") => 3,
            Some("s-1000") => 0,
            other => return self.error(404, "aid", &format!("No saved search {}", other.unwrap_or_default())),
        };
        let custom = self.has(Hard::Custom) && get("duration") == Some("custom");
        let lax = self.has(Hard::Lax);
        let period = if custom { None } else { self.period(get("duration")) };
        let period = period.or_else(|| self.period(None).filter(|_| custom || lax));
        let Some((mut from, mut to)) = period else {
            let allowed = match &self.periods {
                Periods::Days => vec!["<n> days".to_owned()],
                Periods::Names(names) if self.has(Hard::Custom) => {
                    names.iter().map(|(name, _)| name.clone()).chain(["custom".to_owned()]).collect()
                }
                Periods::Units(units) => units.chars().map(|unit| format!("<n>{unit}")).collect(),
                Periods::Iso => vec!["P7D".to_owned(), "P30D".to_owned()],
                Periods::Names(names) => names.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(),
            };
            return self.refuse("duration", get("duration").unwrap_or_default(), &allowed);
        };
        let instant = |text: &str, how: Instants| match how {
            Instants::Millis => DateTime::from_timestamp_millis(text.parse().ok()?),
            _ => text.parse().ok(),
        };
        let day = |text: &str| text.parse::<NaiveDate>().ok();
        if custom && (get("from").is_none() || get("to").is_none()) {
            return self.error(400, "duration", "Invalid value for 'duration': custom needs from and to");
        }
        match &self.ends {
            Ends::Apart(..) if self.has(Hard::Custom) && !custom => {}
            Ends::Apart(since, until, how) => {
                for (name, end) in [(since, &mut from), (until, &mut to)] {
                    let Some(text) = get(name) else { continue };
                    let Some(at) = instant(text, *how) else {
                        if lax {
                            continue;
                        }
                        return self.refuse(
                            name,
                            if *how == Instants::Millis {
                                "expected milliseconds since 1970"
                            } else {
                                "expected an instant such as 2026-01-31T00:00:00Z"
                            },
                            &[],
                        );
                    };
                    let floored = at - TimeDelta::seconds(at.timestamp().rem_euclid(60));
                    *end = if self.has(Hard::Floored) { floored } else { at };
                }
            }
            Ends::ApartDays(since, until) => {
                for (name, end, more) in [(since, &mut from, 0), (until, &mut to, 1)] {
                    let Some(text) = get(name) else { continue };
                    let Some(at) = day(text) else {
                        if lax {
                            continue;
                        }
                        return self.refuse(name, "expected a day, YYYY-MM-DD", &[]);
                    };
                    *end = self.day_start(at + TimeDelta::days(more));
                }
            }
            _ => {}
        }
        // Zones: names, UTC offsets, or anything.
        let usual = ["UTC", "UTC", "UTC", "+00:00", "UTC+00:00", "0"];
        let zone = get("timezone").unwrap_or(usual[usize::try_from(self.zone).unwrap()]);
        let shift = match (self.zone, zone) {
            (2, _) if self.has(Hard::LocalDays) => 120,
            (4, "UTC+00:00") | (5, "0") => 0,
            (4, "UTC+05:30") | (5, "330") => 330,
            (4, _) => {
                return self.error(
                    400,
                    "timezone",
                    "Invalid value for 'timezone': expected an offset such as UTC+02:00",
                );
            }
            (5, _) => {
                return self.error(
                    400,
                    "timezone",
                    "Invalid value for 'timezone': expected minutes from UTC, such as 60",
                );
            }
            // UTC offsets, and no names at all.
            (3, "+00:00") => 0,
            (0 | 1, "UTC" | "Z" | "+00:00" | "Etc/UTC") | (2, _) => 0,
            (0, "Asia/Kolkata") | (1 | 3, "+05:30") => 330,
            (1, "-08:00") => -480,
            (0, "America/Phoenix") => -420,
            (0, _) => {
                return self.refuse("timezone", zone, &["UTC".into(), "Europe/Berlin".into(), "Asia/Kolkata".into()]);
            }
            _ => {
                return self.error(
                    400,
                    "timezone",
                    &format!("Invalid value for 'timezone': {zone}, expected an offset such as +05:30"),
                );
            }
        };
        let descending = match get("sortBy") {
            None => true,
            Some(value) => match self.sorts.iter().find(|(known, _)| known == value) {
                Some((_, descending)) => *descending,
                None => {
                    let explained =
                        [" (newest)", " (oldest)"].map(|words| if self.has(Hard::Explained) { words } else { "" });
                    let names = [0, 1].map(|at| format!("{}{}", self.sorts[at].0, explained[at]));
                    return self.refuse("sortBy", value, &names);
                }
            },
        };
        let wanted = |name: &str| -> Option<Vec<String>> {
            let values: Vec<&str> =
                asked.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect();
            let split =
                |separator: char| values.iter().flat_map(|value| value.split(separator)).map(str::to_owned).collect();
            (!values.is_empty()).then(|| match self.several {
                Several::Commas => split(','),
                Several::Bars => split('|'),
                Several::Repeated => values.iter().map(|value| (*value).to_owned()).collect(),
                Several::One => vec![values[0].to_owned()],
            })
        };
        let (languages, sources) = (wanted(&self.filters[0]), wanted(&self.filters[1]));
        let mut found: Vec<Mention> = (0..count).map(|row| self.mention(row)).collect();
        found.retain(|mention| {
            let language = languages
                .as_ref()
                .is_none_or(|wanted| mention.language.is_some_and(|language| wanted.iter().any(|w| w == language)));
            let source = sources.as_ref().is_none_or(|wanted| wanted.iter().any(|w| w == mention.source));
            from <= self.windowed(mention) && self.windowed(mention) < to && language && source
        });
        found.sort_by(|a, b| b.at.cmp(&a.at).then(a.id.cmp(&b.id)));
        if !descending {
            found.reverse();
        }
        let number = |name: &str| get(name).map(str::parse::<u64>);
        let size = match number("dataSize") {
            None => {
                if self.asks == Asks::Size {
                    0
                } else {
                    10
                }
            }
            Some(Ok(size)) if self.has(Hard::Sizes) && size > 0 && ![10, 25, 50, 100].contains(&size) => {
                return self.error(400, "dataSize", "Invalid value for 'dataSize': must be one of 10, 25, 50, 100");
            }
            Some(Ok(size)) if self.has(Hard::Least) && (1..15).contains(&size) => {
                return self.error(400, "dataSize", "Invalid value for 'dataSize': must be at least 15");
            }
            Some(Ok(size)) if size <= self.page.0 => size,
            Some(Ok(_)) if self.page.1 => self.page.0,
            _ => {
                return self.error(
                    400,
                    "dataSize",
                    &format!("Invalid value for 'dataSize': must be between 1 and {}", self.page.0),
                );
            }
        };
        let Ok(offset) = number("dataFrom").unwrap_or(Ok(self.pages_from.unwrap_or(self.rows_from))) else {
            return self.error(400, "dataFrom", "Invalid value for 'dataFrom': must be a number");
        };
        let first = self.pages_from.unwrap_or(self.rows_from);
        let skip = offset.saturating_sub(first) * if self.pages_from.is_some() { size } else { 1 };
        let skip = match (self.has(Hard::LastId), get("after")) {
            (false, _) => skip,
            (true, None) => 0,
            (true, Some(id)) => match found.iter().position(|mention| mention.id == id) {
                Some(at) => at as u64 + 1,
                None => return self.error(400, "after", "Invalid value for 'after': no such mention"),
            },
        };
        let flagged = match self.asks {
            Asks::Size => size > 0,
            Asks::Flag => get(&self.flag.0) == Some(self.flag.1.as_str()),
            Asks::Always => true,
        };
        if let Some((depth, status)) =
            self.depth.filter(|(depth, status)| skip + size > *depth && *status != 200 && flagged)
        {
            return self.error(
                status,
                "dataFrom",
                &format!("Invalid value for 'dataFrom': only the first {depth} results can be paged through"),
            );
        }
        let reached = self.depth.map_or(u64::MAX, |(depth, _)| depth);
        let page: Vec<Value> = found
            .iter()
            .take(usize::try_from(reached).unwrap_or(usize::MAX))
            .skip(usize::try_from(skip).unwrap())
            .take(usize::try_from(size).unwrap())
            .map(|mention| self.record(mention, shift))
            .collect();
        let mut body = json!({});
        if self.with_overview || !flagged {
            self.overview(&mut body, &found, (from, to), shift);
        }
        if flagged {
            match self.has(Hard::Columns) {
                true => {
                    let names: Vec<String> =
                        page.first().and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect();
                    let rows: Vec<Value> =
                        page.iter().map(|row| names.iter().map(|name| row[name].clone()).collect()).collect();
                    let beside = [&self.records.0[..self.records.0.len() - 1], &["fields".to_owned()]].concat();
                    put(&mut body, &beside, json!(names));
                    put(&mut body, &self.records.0, json!(rows));
                }
                false => put(&mut body, &self.records.0, json!(page)),
            }
        }
        // The total is on the first page only, or in an overview that this response has not.
        let is_later = self.has(Hard::FirstPage) && flagged && skip > 0;
        let lacks_total = flagged && !self.with_overview && self.total.0.starts_with(&self.overview);
        if self.has(Hard::Authors) {
            let authors: BTreeSet<i64> = found.iter().map(|mention| mention.reach % 700).collect();
            if self.with_overview || !flagged {
                put(&mut body, &[self.overview.as_slice(), &["authors".to_owned()]].concat(), json!(authors.len()));
            }
        } else if self.has(Hard::HeaderTotal) {
            self.told.store(found.len() as u64, Ordering::Relaxed);
        } else if !is_later && !lacks_total {
            put(&mut body, &self.total.0, self.counted(found.len()));
            if self.total.0.last().is_some_and(|name| name == "value") {
                let beside = [&self.total.0[..self.total.0.len() - 1], &["relation".to_owned()]].concat();
                put(&mut body, &beside, json!("eq"));
            }
        }
        if self.has(Hard::Repeats) {
            body["paging"] =
                json!({"count": size, "totalPages": found.len().div_ceil(usize::try_from(size.max(1)).unwrap())});
        }
        if self.has(Hard::JsonApi) || self.has(Hard::IdleLinks) {
            let link = |offset: u64| {
                let others = asked.iter().filter(|(name, _)| name != "dataFrom" && name != "after");
                let last = usize::try_from(skip + size).ok().and_then(|end| found.get(end.saturating_sub(1)));
                let place = match self.has(Hard::LastId) {
                    true => [("after".to_owned(), last.map(|last| last.id.clone()).unwrap_or_default())],
                    false => [("dataFrom".to_owned(), offset.to_string())],
                };
                let mut query = url::form_urlencoded::Serializer::new(String::new());
                format!("/v4/search?{}", query.extend_pairs(others.chain(&place)).finish())
            };
            let step = if self.pages_from.is_some() { 1 } else { size };
            let more = self.has(Hard::IdleLinks) || skip + size < reached.min(found.len() as u64);
            let goes_on = flagged && more;
            body["links"] = json!({"self": link(offset), "next": goes_on.then(|| link(offset + step))});
        }
        if self.echoes {
            let period = get("duration").unwrap_or("default");
            body["request"] = json!({"aid": get("aid"), "period": period, "sort": get("sortBy").unwrap_or(&self.sorts[0].0), "timezone": zone, "offset": offset});
        }
        (200, body)
    }

    fn overview(&self, body: &mut Value, found: &[Mention], (from, to): (DateTime<Utc>, DateTime<Utc>), shift: i64) {
        let mut languages: BTreeMap<&str, usize> = BTreeMap::new();
        let mut sources: BTreeMap<&str, usize> = BTreeMap::new();
        for mention in found {
            *sources.entry(mention.source).or_default() += 1;
            if let Some(language) = mention.language {
                *languages.entry(language).or_default() += 1;
            }
        }
        let at = |name: &str| {
            let below = [self.overview.as_slice(), &[name.to_owned()]].concat();
            if self.buckets { [below, vec!["buckets".to_owned()]].concat() } else { below }
        };
        let beside = [self.overview.as_slice(), &["influence".to_owned()]].concat();
        let named =
            |counts: BTreeMap<&str, usize>| counts.into_iter().map(|(name, count)| (json!(name), count)).collect();
        let names = self.lists.1.iter().map(String::as_str);
        let mut lists: Vec<(&str, Vec<(Value, usize)>)> = names.zip([languages, sources].map(named)).collect();
        if self.has(Hard::Countries) {
            // Its codes are those of the languages, and its counts are others.
            lists.push(("countries", ["de", "fr", "es"].map(|code| (json!(code), found.len() / 3)).to_vec()));
        }
        let lists = lists.into_iter().map(|(name, counts)| (name, self.entries(self.lists.0, &self.lists.2, counts)));
        match self.has(Hard::Facets) {
            true => {
                let facets: Vec<Value> = lists.map(|(name, values)| json!({"field": name, "values": values})).collect();
                put(body, &at("facets"), json!(facets));
            }
            false => lists.for_each(|(name, entries)| put(body, &at(name), entries)),
        }
        put(body, &beside, json!(found.iter().map(|mention| mention.reach).sum::<i64>()));
        if self.timeline.0 != Entries::None {
            let zone = chrono::FixedOffset::east_opt(i32::try_from(shift * 60).unwrap()).unwrap();
            let day_of = |at: DateTime<Utc>| match self.has(Hard::BerlinDays) {
                true => at.with_timezone(&chrono_tz::Europe::Berlin).date_naive(),
                false => at.with_timezone(&zone).date_naive(),
            };
            let (first, last) = (day_of(from), day_of(to - TimeDelta::milliseconds(1)));
            let days = first.iter_days().take_while(|day| *day <= last).map(|day| {
                let count = found.iter().filter(|mention| day_of(self.windowed(mention)) == day).count();
                let start = day.and_time(NaiveTime::MIN).and_local_timezone(zone).unwrap();
                let start = match (self.timeline.0, self.timeline.3) {
                    _ if self.has(Hard::BerlinDays) => json!(day.to_string()),
                    (Entries::Map, _) if self.has(Hard::CompactDays) => json!(day.format("%Y%m%d").to_string()),
                    (Entries::Map, _) => json!(day.to_string()),
                    (_, Instants::Rfc3339) => json!(start.to_rfc3339()),
                    (_, how) => self.written(start.to_utc(), how),
                };
                (start, count)
            });
            let mut days: Vec<(Value, usize)> = days.collect();
            if self.has(Hard::LocalDays) {
                let labels = first.iter_days().map(|day| json!(day.to_string()));
                days = labels.zip(days).map(|(label, (_, count))| (label, count)).collect();
            }
            if self.has(Hard::Running) {
                let mut sum = 0;
                days.iter_mut().for_each(|(_, count)| {
                    sum += *count;
                    *count = sum;
                });
            }
            put(body, &at(&self.timeline.1), self.entries(self.timeline.0, &self.timeline.2, days));
        }
    }
}

/// Puts a value at a path, creating missing objects.
fn put(body: &mut Value, path: &[String], value: Value) {
    let slot = path.iter().fold(body, |body, step| &mut body[step.as_str()]);
    *slot = value;
}

#[async_trait]
impl HttpService for Unseen {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let asked: Vec<(String, String)> = request.url.query_pairs().into_owned().collect();
        let (status, body) = match self.trouble {
            Trouble::Broken(at) if at == number => (500, json!({"message": "internal error"})),
            Trouble::Throttled(at) if at == number => (429, json!({"message": "too many requests"})),
            _ => self.answer(request.url.path(), &request.headers, &asked),
        };
        let body = match body {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let mut headers =
            HeaderMap::from_iter([(http::header::DATE, httpdate::fmt_http_date(self.now.into()).parse().unwrap())]);
        let told = self.told.swap(u64::MAX, Ordering::Relaxed);
        if told < u64::MAX {
            headers.insert("x-total-count", told.into());
        }
        let (status, wire_bytes) = (StatusCode::from_u16(status).unwrap(), body.len() as u64);
        Ok(HttpResponse { status, headers, body: body.into(), wire_bytes })
    }
}
