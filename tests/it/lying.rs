//! Generated services that lie: any subset of their numbers, any coverage, any order of NULLs, partial answers, short pages. A
//! query over one gives the right rows, or a typed error, within three times the requests of an honest service.
//!
//! ```text
//! seed, number ─▶ faults of the simulator ─▶ several questions ─▶ rows ─ those of the corpus ─▶ right
//!                                                          │        └ others ─ an answer shows it ─▶ the test fails
//!                                                          │                 └ none does ─▶ excluded, by a rule
//!                                                          └▶ typed error, within three times the honest cost ─▶ refused
//! ```
//!
//! The truth comes from the corpus, and whether an answer shows a lie from the JSON of the simulator: neither uses the client.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use datafusion::prelude::SessionContext;
use datafusion_saved_search::client::{HttpLimits, RetryPolicy};
use datafusion_saved_search::simulator::{Corpus, CorpusSpec, Facts, KEY, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, Error, ErrorKind, Profile, Secret, session};
use futures::StreamExt;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

use crate::support::{BIG, InProcess, knob, now, rows};

/// Rows of a page.
const PAGE: u64 = 20;
/// Requests beyond three times the honest cost: pages that came short once, those that show an end, and a count that is not used.
const SLACK: u64 = 12;
/// Longest run of a query, in virtual time.
const TOO_LONG: Duration = Duration::from_secs(1_000);

fn corpus() -> Arc<Corpus> {
    static CORPUS: LazyLock<Arc<Corpus>> = LazyLock::new(|| {
        let spec = CorpusSpec { seed: 11, searches: 2, mentions: 260, now: now() };
        Arc::new(Corpus::generate(spec).rounded_to(60))
    });
    Arc::clone(&CORPUS)
}

/// The mentions that a question reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// All mentions.
    All,
    /// Numbers that stand for all mentions.
    Numbers,
    /// The first mentions of a sort order, with this parameter.
    First(&'static str),
}

/// A question, and its answer by the corpus.
struct Question {
    /// Columns, and what follows the conditions.
    what: &'static str,
    rest: &'static str,
    /// Rows of the first page, and of all that are wanted, of a question about a sort order.
    first: u64,
    /// Condition in SQL, and as a parameter of a request.
    filter: Option<(&'static str, &'static str)>,
    reads: Reads,
    answer: fn(&[&Facts]) -> Vec<Vec<String>>,
}

/// The period of a question: in SQL, as a parameter, and its instants.
#[derive(Debug, Clone, Copy)]
struct Period {
    sql: &'static str,
    words: &'static str,
    days_ago: Option<i64>,
    between: (&'static str, &'static str),
}

const PERIODS: [Period; 3] = [
    Period {
        sql: "published_at >= '2026-01-01' AND published_at < '2026-07-02'",
        words: "2026-01-01T00:00:00Z..2026-07-02T00:00:00Z",
        days_ago: None,
        between: ("2026-01-01T00:00:00Z", "2026-07-02T00:00:00Z"),
    },
    Period {
        sql: "published_at >= '2026-05-01' AND published_at < '2026-06-20'",
        words: "2026-05-01T00:00:00Z..2026-06-20T00:00:00Z",
        days_ago: None,
        between: ("2026-05-01T00:00:00Z", "2026-06-20T00:00:00Z"),
    },
    Period { sql: "duration = '40d'", words: "40d", days_ago: Some(40), between: ("", "") },
];

impl Period {
    fn instants(&self) -> (DateTime<Utc>, DateTime<Utc>) {
        match self.days_ago {
            Some(days) => (now() - TimeDelta::days(days), now()),
            None => (self.between.0.parse().unwrap(), self.between.1.parse().unwrap()),
        }
    }
}

fn cell(value: Option<&str>) -> String {
    value.unwrap_or("NULL").to_owned()
}

fn number(value: Option<i64>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}

/// Values of a column, largest or smallest first, those that are missing last.
fn sorted(facts: &[&Facts], value: fn(&Facts) -> Option<i64>, descending: bool) -> Vec<Vec<String>> {
    let mut values: Vec<i64> = facts.iter().filter_map(|facts| value(facts)).collect();
    values.sort_unstable();
    if descending {
        values.reverse();
    }
    let missing = facts.len() - values.len();
    let all = values.into_iter().map(Some).chain(std::iter::repeat_n(None, missing));
    all.map(|value| vec![number(value)]).collect()
}

/// Counts of values.
fn groups(facts: &[&Facts], value: impl Fn(&Facts) -> String) -> Vec<Vec<String>> {
    let mut groups: BTreeMap<String, u64> = BTreeMap::new();
    facts.iter().for_each(|facts| *groups.entry(value(facts)).or_default() += 1);
    groups.into_iter().map(|(value, count)| vec![value, count.to_string()]).collect()
}

const QUESTIONS: &[Question] = &[
    Question {
        what: "id",
        rest: "",
        first: 0,
        filter: None,
        reads: Reads::All,
        answer: |facts| facts.iter().map(|facts| vec![facts.id.to_string()]).collect(),
    },
    Question {
        what: "id",
        rest: "",
        first: 0,
        filter: Some(("language = 'en'", "language=en")),
        reads: Reads::All,
        answer: |facts| facts.iter().map(|facts| vec![facts.id.to_string()]).collect(),
    },
    Question {
        what: "count(*)",
        rest: "",
        first: 0,
        filter: None,
        reads: Reads::Numbers,
        answer: |facts| vec![vec![facts.len().to_string()]],
    },
    Question {
        what: "count(*)",
        rest: "",
        first: 0,
        filter: Some(("language = 'en'", "language=en")),
        reads: Reads::Numbers,
        answer: |facts| vec![vec![facts.len().to_string()]],
    },
    Question {
        what: "count(*)",
        rest: "",
        first: 0,
        filter: Some(("source IN ('x.com', 'reddit.com')", "source=x.com,reddit.com")),
        reads: Reads::Numbers,
        answer: |facts| vec![vec![facts.len().to_string()]],
    },
    Question {
        what: "max(reach)",
        rest: "",
        first: 2,
        filter: None,
        reads: Reads::First("reach_desc"),
        answer: |facts| vec![vec![number(facts.iter().filter_map(|facts| facts.reach).max())]],
    },
    Question {
        what: "min(engagement)",
        rest: "",
        first: 2,
        filter: None,
        reads: Reads::First("engagement_asc"),
        answer: |facts| vec![vec![number(facts.iter().filter_map(|facts| facts.engagement).min())]],
    },
    Question {
        what: "reach",
        rest: " ORDER BY reach DESC NULLS LAST LIMIT 7",
        first: 7,
        filter: None,
        reads: Reads::First("reach_desc"),
        answer: |facts| sorted(facts, |facts| facts.reach, true).into_iter().take(7).collect(),
    },
    Question {
        what: "reach",
        rest: " ORDER BY reach ASC NULLS LAST LIMIT 30",
        first: 30,
        filter: None,
        reads: Reads::First("reach_asc"),
        answer: |facts| sorted(facts, |facts| facts.reach, false).into_iter().take(30).collect(),
    },
    Question {
        what: "arrow_cast(published_at, 'Int64')",
        rest: " ORDER BY published_at DESC LIMIT 30",
        first: 30,
        filter: None,
        reads: Reads::First("date_desc"),
        answer: |facts| {
            sorted(facts, |facts| Some(facts.published.timestamp_micros()), true).into_iter().take(30).collect()
        },
    },
    Question {
        what: "sentiment, count(*)",
        rest: " GROUP BY 1",
        first: 0,
        filter: None,
        reads: Reads::Numbers,
        answer: |facts| groups(facts, |facts| cell(facts.sentiment.as_deref())),
    },
    Question {
        what: "country, count(*)",
        rest: " GROUP BY 1",
        first: 0,
        filter: None,
        reads: Reads::Numbers,
        answer: |facts| groups(facts, |facts| cell(facts.country.as_deref())),
    },
    Question {
        what: "date_trunc('day', published_at), count(*)",
        rest: " GROUP BY 1",
        first: 0,
        filter: None,
        reads: Reads::Numbers,
        answer: |facts| groups(facts, |facts| facts.published.format("%Y-%m-%dT00:00:00Z").to_string()),
    },
];

impl Question {
    fn sql(&self, period: &Period) -> String {
        let filter = self.filter.map(|(sql, _)| format!(" AND {sql}")).unwrap_or_default();
        format!("SELECT {} FROM mentions WHERE aid = '{BIG}' AND {}{filter}{}", self.what, period.sql, self.rest)
    }

    fn takes(&self, facts: &Facts) -> bool {
        match self.filter.map(|(_, parameter)| parameter.split_once('=').unwrap()) {
            Some(("language", value)) => facts.language.as_deref() == Some(value),
            Some(("source", values)) => facts.source.as_deref().is_some_and(|own| values.split(',').any(|v| v == own)),
            _ => true,
        }
    }

    fn truth(&self, period: &Period) -> Vec<Vec<String>> {
        let ((from, to), corpus) = (period.instants(), corpus());
        let facts = corpus.search(BIG).unwrap().mentions.iter().map(|mention| &mention.facts);
        let facts: Vec<&Facts> =
            facts.filter(|facts| from <= facts.published && facts.published < to && self.takes(facts)).collect();
        let mut rows = (self.answer)(&facts);
        if !self.rest.contains("ORDER BY") {
            rows.sort();
        }
        rows
    }
}

/// A seeded source of choices.
struct Dice(u64);

impl Dice {
    fn new(seed: u64, case: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ case.wrapping_mul(0xbf58_476d_1ce4_e5b9));
        dice.below(2);
        dice
    }

    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap() % most
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Faults of pages alone, which an honest service may have as well: its cost with them is the one that counts.
fn paging(dice: &mut Dice) -> Vec<String> {
    match dice.below(8) {
        0 => vec![format!("clamp:rows={}", dice.one_of(&[7, 13]))],
        1 | 2 => {
            let answer = dice.one_of(&["empty", "400", "404", "last"]);
            vec![format!("depth:rows={},answer={answer}", dice.one_of(&[40, 60, 100]))]
        }
        _ => Vec::new(),
    }
}

/// The lies of a service.
fn lies(dice: &mut Dice) -> Vec<String> {
    let mut lies = Vec::new();
    let by = |dice: &mut Dice| dice.one_of(&[-40, -7, -1, 1, 25, 300]);
    let shared = by(dice);
    // Numbers, some of which are wrong by the same amount.
    let numbers = dice.chance(60);
    for kind in ["total", "overview", "timeline", "list"] {
        if !numbers || !dice.chance(40) {
            continue;
        }
        let by = if dice.chance(60) { shared } else { by(dice) };
        lies.push(match (kind, dice.below(5)) {
            ("total", 0) => format!("cap-total:rows={}", dice.one_of(&[20, 40, 60, 100])),
            ("total", 1) => format!("total:of={}", dice.one_of(&["unfiltered", "all"])),
            ("total", 2) if dice.chance(30) => "no-total".to_owned(),
            ("overview", 0) => "overview-unfiltered".to_owned(),
            ("list", _) => {
                format!("list:name={},by={by}", dice.one_of(&["languages", "countries", "sources", "sentiment"]))
            }
            _ => format!("{kind}:by={by}"),
        });
    }
    if dice.chance(40) {
        let told = format!("echo={},counts={}", dice.one_of(&["used", "asked"]), dice.one_of(&["used", "asked"]));
        let kind = dice.below(8);
        // Windows (from, to].
        lies.extend((kind == 4).then(|| "end-included".to_owned()));
        lies.push(match kind {
            0 => format!("cut-period:days={},{told}", dice.one_of(&[1, 9, 30])),
            1 => format!("retention:days={},{told}", dice.one_of(&[3, 20, 45])),
            2 => format!("ends-early:hours={},{told}", dice.one_of(&[1, 30, 200])),
            3 => format!("begins-early:hours={},{told}", dice.one_of(&[1, 30, 200])),
            4 | 5 => "start-excluded".to_owned(),
            6 => "end-included".to_owned(),
            _ => "other-window".to_owned(),
        });
    }
    if dice.chance(30) {
        lies.push(format!("nulls:at={}", dice.one_of(&["first", "smallest", "largest", "zero"])));
    }
    if dice.chance(15) {
        let sign = dice.one_of(&["timed-out", "errors", "shards", "status"]);
        let when = dice.one_of(&["", "", "@30%", "@1", "@2-3"]);
        lies.push(format!("partial:percent={},sign={sign}{when}", dice.one_of(&[10, 40, 100])));
    }
    if dice.chance(30) {
        lies.push(match dice.below(8) {
            0 | 1 => format!("hidden:percent={}", dice.one_of(&[2, 5, 40])),
            2 => format!("short:rows={}@{}%", dice.one_of(&[1, 7]), dice.one_of(&[10, 25])),
            3 => format!("empty@{}%", dice.one_of(&[10, 25])),
            4 if dice.chance(50) => format!("values:used={}", dice.one_of(&["first", "last", "two", "none"])),
            4 => "filters-ignored".to_owned(),
            5 => "filters-wider".to_owned(),
            6 => format!("accepted:retry-after=1{}", dice.one_of(&["", "@25%", "@1"])),
            _ => "ties".to_owned(),
        });
    }
    lies
}

/// A generated service, and what is asked of it.
struct Case {
    number: u64,
    paging: Vec<String>,
    lies: Vec<String>,
    questions: Vec<(usize, usize)>,
}

impl Case {
    fn new(seed: u64, number: u64, questions: u64) -> Self {
        let mut dice = Dice::new(seed, number);
        let (paging, lies) = (paging(&mut dice), lies(&mut dice));
        let questions = (0..questions).map(|_| (dice.below(QUESTIONS.len()), dice.below(PERIODS.len()))).collect();
        Self { number, paging, lies, questions }
    }
}

/// A service in this process, and a session over it.
struct World {
    simulator: Simulator,
    context: SessionContext,
    /// Folder of the store, if there is one.
    _folder: Option<tempfile::TempDir>,
}

impl World {
    fn new(faults: &[String], stored: bool) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let clock = Clock::fixed(now());
        let simulator = Simulator::new(
            corpus(),
            Settings { clock: clock.clone(), faults, largest_page: Some(PAGE), ..Settings::default() },
        );
        let mut profile = Profile::v4();
        profile.page.max = PAGE;
        let address = format!("http://lying{}.test/v4", NUMBER.fetch_add(1, Ordering::Relaxed));
        let builder = Connection::builder(address, Secret::new(KEY).unwrap());
        let service = Arc::new(InProcess(simulator.clone(), HttpLimits::default()));
        let builder = builder.service(service).clock(clock).profile(profile);
        let folder = stored.then(|| tempfile::TempDir::new().unwrap());
        let builder = match &folder {
            // A store works in threads of its own, in real time.
            Some(folder) => {
                let mut retry = RetryPolicy::default();
                retry.base = Duration::ZERO;
                builder.store(folder.path()).retry(retry)
            }
            None => builder,
        };
        Self { simulator, context: session(&builder.build().unwrap()).unwrap(), _folder: folder }
    }

    /// Runs a question. Returns its rows in one order, or the error, and the requests it took.
    async fn ask(&self, sql: &str) -> (Result<Vec<Vec<String>>, Error>, u64) {
        let before = self.simulator.requests();
        let result = match self.context.sql(sql).await {
            Ok(frame) => {
                tokio::time::timeout(TOO_LONG, frame.collect()).await.unwrap_or_else(|_| panic!("{sql}: timed out"))
            }
            Err(error) => Err(error),
        };
        let result = result.map(|batches| {
            let mut rows = rows(&batches);
            if !sql.contains("ORDER BY") {
                rows.sort();
            }
            rows
        });
        let typed = |error| Error::find(&error).unwrap_or_else(|| panic!("{sql}: untyped error: {error}")).clone();
        (result.map_err(typed), self.simulator.requests() - before)
    }

    /// Requests sent last, and what their answers showed, for the report of a failure.
    async fn log(&self) -> String {
        let sql = "SELECT parameters, status, attempts, rows, verdict, error FROM system.requests";
        let frame = self.context.sql(sql).await.unwrap();
        let rows = rows(&frame.collect().await.unwrap());
        rows[rows.len().saturating_sub(20)..].iter().map(|row| format!("\n    {}", row.join(" | "))).collect()
    }

    /// The service's answer to a request of a page.
    async fn raw(&self, question: &Question, period: &Period, from: u64, size: u64) -> Value {
        let filter = question.filter.map(|(_, parameter)| format!("&{parameter}")).unwrap_or_default();
        let sort = if let Reads::First(sort) = question.reads { sort } else { "date_asc" };
        let words = period.words;
        let path =
            format!("/v4/search?aid={BIG}&duration={words}&dataFrom={from}&dataSize={size}&sortBy={sort}{filter}");
        let key = HeaderValue::from_str(&format!("Bearer {KEY}")).unwrap();
        let mut body = self.simulator.get(&path, HeaderMap::from_iter([(AUTHORIZATION, key)])).await.into_body();
        let mut bytes = Vec::new();
        while let Some(piece) = body.next().await {
            bytes.extend_from_slice(&piece.unwrap());
        }
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}

/// The reason why wrong rows show in no answer. Rules of docs/guarantees.md, "Remaining gaps".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Unseen {
    /// The window is reported as requested, and either as many mentions come as the total says, or more than any number, and none
    /// beyond, or nothing is read, because total, overview and timeline agree.
    Agreement,
    /// Mentions that never come are missing from the first rows of a sort order, which are in order, on full pages.
    FirstRows,
}

impl Unseen {
    /// The rule by which no answer of these lies shows them. The pages are read as if paging had no limits.
    async fn of(lies: &[String], question: &Question, period: &Period) -> Option<Self> {
        // A response that says that it is a part of the result is requested again, and a fault of some requests does not last.
        let passes = |lie: &&String| lie.starts_with("partial") || lie.contains('@');
        let lasting: Vec<String> = lies.iter().filter(|lie| !passes(lie)).cloned().collect();
        let world = World::new(&lasting, false);
        let size = if question.first > 0 { question.first.min(PAGE) } else { PAGE };
        let first = world.raw(question, period, 0, size).await;
        let items = |page: &Value| page["mentions"]["items"].as_array().cloned().unwrap_or_default();
        let at = |value: &Value| value.as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
        let (from, to) = period.instants();
        // A window that has not ended may be reported until shortly before now.
        let current = |until: DateTime<Utc>| to >= now() && until >= now() - TimeDelta::hours(1);
        let until = at(&first["window"]["to"]);
        if at(&first["window"]["from"]) != Some(from) || !until.is_some_and(|until| until == to || current(until)) {
            return None;
        }
        let within_period = |item: &Value| at(&item["publishedAt"]).is_some_and(|at| from <= at && at < to);
        let own = |item: &Value| {
            let fits = match question.filter {
                Some((_, "language=en")) => item["language"] == "en",
                Some((_, sources)) => item["source"]["name"].as_str().is_some_and(|name| sources.contains(name)),
                None => true,
            };
            within_period(item) && fits
        };
        let total = first["mentions"]["total"].as_u64()?;
        // Requests for the values that are left out show it.
        let several = question.filter.is_some_and(|(_, values)| values.contains(','));
        if several && total > 0 && lies.iter().any(|lie| lie.starts_with("values:") && !lie.ends_with("two")) {
            return None;
        }
        if let Reads::First(sort) = question.reads {
            let (column, descending) = sort.rsplit_once('_').map(|(column, order)| (column, order == "desc")).unwrap();
            let key = |item: &Value| match column {
                "date" => at(&item["publishedAt"]).map(|at| at.timestamp()),
                "engagement" => item["engagement"]["total"].as_i64(),
                _ => item["reach"].as_i64(),
            };
            let mut rows = items(&first);
            if question.first > size {
                rows.extend(items(&world.raw(question, period, size, question.first - size).await));
            }
            let keys: Vec<Option<i64>> = rows.iter().map(key).collect();
            let ordered = keys.windows(2).all(|pair| match (pair[0], pair[1]) {
                (Some(a), Some(b)) if descending => a >= b,
                (Some(a), Some(b)) => a <= b,
                (None, Some(_)) => false,
                (_, None) => true,
            });
            let full = keys.len() as u64 >= total.min(question.first);
            let valued = keys.first().is_none_or(Option::is_some);
            if ordered && full && valued && rows.iter().all(own) {
                return Some(Self::FirstRows);
            }
            // Otherwise all mentions are read.
        }
        let counted = first["overview"]["totalMentions"].as_u64();
        let days = first["overview"]["volume"].as_array().cloned().unwrap_or_default();
        let counts = days.iter().filter_map(|day| day["count"].as_u64());
        // A day of a relative period begins before it.
        let within = |day: &Value| at(&day["start"]).is_some_and(|at| from - TimeDelta::days(1) < at && at < to);
        let of_window = days.iter().filter(|day| day["count"] != 0).all(within);
        let listed = counts.sum::<u64>();
        let agree = counted == Some(total) && listed == total && of_window;
        let agree = agree && items(&first).iter().all(own);
        if question.reads == Reads::Numbers && agree {
            return Some(Self::Agreement);
        }
        let (mut ids, mut row) = (HashSet::new(), 0);
        loop {
            let page = items(&world.raw(question, period, row, PAGE).await);
            // Mentions that a filter should have excluded are dropped here, and count as received.
            if page.is_empty() || !page.iter().all(within_period) {
                break;
            }
            row += PAGE;
            ids.extend(page.iter().map(|item| item["id"].to_string()));
        }
        let came = ids.len() as u64;
        // Numbers that are too small are corrected by the mentions.
        let corrected = total <= came && counted.is_none_or(|counted| counted <= came) && listed <= came;
        (came == total || corrected).then_some(Self::Agreement)
    }
}

/// Outcomes of the questions of all cases.
#[derive(Debug, Default)]
struct Tally {
    right: u64,
    refused: u64,
    unseen: HashMap<Unseen, u64>,
    wrong: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} right, {} refused, excluded {:?}", self.right, self.refused, self.unseen)
    }
}

/// Requests of honest services, by question, period, faults of their pages, and store.
type Honest = HashMap<(usize, usize, Vec<String>, bool), u64>;

/// Requests that an honest service takes for a question, and for its mentions as well, which are read if numbers or first rows
/// prove nothing.
async fn honest(known: &mut Honest, key: (usize, usize, Vec<String>, bool)) -> u64 {
    if let Some(cost) = known.get(&key) {
        return *cost;
    }
    let (question, period, faults, stored) = &key;
    let (question, period) = (&QUESTIONS[*question], &PERIODS[*period]);
    let read = Question { filter: question.filter, ..QUESTIONS[0] };
    let mut cost = 0;
    let also = (question.reads != Reads::All).then(|| read.sql(period));
    for sql in [question.sql(period)].into_iter().chain(also) {
        let (result, requests) = World::new(faults, *stored).ask(&sql).await;
        assert!(result.is_ok() || !faults.is_empty(), "{sql}: {result:?}");
        cost += requests;
    }
    // A service that pages no further than a row may be refused early, even an honest one.
    if !faults.is_empty() {
        cost = cost.max(Box::pin(honest(known, (key.0, key.1, Vec::new(), *stored))).await);
    }
    known.insert(key, cost);
    cost
}

async fn judge(case: &Case, stored: bool, known: &mut Honest, tally: &mut Tally) {
    let faults: Vec<String> = case.paging.iter().chain(&case.lies).cloned().collect();
    let world = World::new(&faults, stored);
    for (question, period) in &case.questions {
        let cost = honest(known, (*question, *period, case.paging.clone(), stored)).await;
        // Rows that were not requested come as well, and what is not ready or comes short is requested again.
        let has = |name: &str| u64::from(faults.iter().any(|fault| fault.starts_with(name)));
        let share = 1 + has("filters-") + has("accepted") + has("partial") + has("short");
        let most = (3 * cost + SLACK) * share;
        let (question, period) = (&QUESTIONS[*question], &PERIODS[*period]);
        let (sql, truth) = (question.sql(period), question.truth(period));
        // With a store, the second answer comes from it.
        for _ in 0..1 + u64::from(stored) {
            let (result, requests) = world.ask(&sql).await;
            let shown = || format!("case {}, {faults:?}\n  {sql}\n  {requests} requests, honest {cost}", case.number);
            if requests > most {
                tally.wrong.push(format!("{}: more than {most}: {result:?}{}", shown(), world.log().await));
                continue;
            }
            match result {
                Ok(rows) if rows == truth => tally.right += 1,
                Ok(rows) => match Unseen::of(&case.lies, question, period).await {
                    Some(rule) => *tally.unseen.entry(rule).or_default() += 1,
                    None => tally.wrong.push(format!(
                        "{}: {} wrong rows such as {:?}, expected {} such as {:?}{}",
                        shown(),
                        rows.len(),
                        rows.iter().find(|row| !truth.contains(row)),
                        truth.len(),
                        truth.iter().find(|row| !rows.contains(row)),
                        world.log().await,
                    )),
                },
                Err(error) if error.kind() == ErrorKind::Budget => {
                    tally.wrong.push(format!("{}: a flood: {error}", shown()));
                }
                Err(_) => tally.refused += 1,
            }
        }
    }
}

/// Judges this many services from the seed on, and asks each this many questions.
async fn judge_all(cases: u64, questions: u64, stored: bool) {
    let (mut known, mut tally) = (Honest::default(), Tally::default());
    let (seed, first) = (knob("LYING_SEED", 1), knob("LYING_FIRST", 0));
    for number in first..first + cases {
        judge(&Case::new(seed, number, questions), stored, &mut known, &mut tally).await;
    }
    assert!(tally.wrong.is_empty(), "{tally}, {} wrong:\n{}", tally.wrong.len(), tally.wrong.join("\n"));
    assert!(tally.right > 0 && tally.refused > 0, "{tally}");
    println!("{cases} services: {tally}");
}

#[tokio::test]
async fn honest_services_give_what_the_corpus_has() {
    for stored in [false, true] {
        let world = World::new(&[], stored);
        for question in QUESTIONS {
            for period in &PERIODS {
                let sql = question.sql(period);
                assert_eq!(world.ask(&sql).await.0.unwrap(), question.truth(period), "{sql}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lying_services_give_right_rows_or_an_error() {
    judge_all(knob("LYING_CASES", 300), knob("LYING_QUESTIONS", 3), false).await;
}

#[tokio::test]
async fn lying_services_give_right_rows_or_an_error_with_a_store() {
    judge_all(knob("LYING_STORED", 30), 2, true).await;
}

/// The total ends with the first page, which is full of NULLs.
#[tokio::test(start_paused = true)]
async fn a_full_page_that_begins_with_null_is_not_all() {
    let faults = ["depth:rows=40,answer=last", "cap-total:rows=20", "nulls:at=first"].map(str::to_owned);
    let world = World::new(&faults, false);
    let sql = format!(
        "SELECT reach FROM mentions WHERE aid = '{BIG}' AND {} ORDER BY reach ASC NULLS LAST LIMIT 30",
        PERIODS[0].sql
    );
    let error = world.ask(&sql).await.0.unwrap_err();
    assert!(
        error.kind() == ErrorKind::Incomplete && error.to_string().contains("the total of the response is 20"),
        "{error}"
    );
}

#[tokio::test]
async fn a_first_page_that_comes_empty_once_does_not_hide_that_nulls_come_first() {
    let faults = ["nulls:at=first", "empty@1"].map(str::to_owned);
    let world = World::new(&faults, false);
    let sql = format!(
        "SELECT reach FROM mentions WHERE aid = '{BIG}' AND {} ORDER BY reach DESC NULLS LAST LIMIT 7",
        PERIODS[1].sql
    );
    let error = world.ask(&sql).await.0.unwrap_err();
    assert!(error.kind() == ErrorKind::Contradiction && error.to_string().contains("`reach_desc`"), "{error}");
}

/// Responses that cover more than the window count the mentions that their pages lack.
#[tokio::test(start_paused = true)]
async fn a_window_that_begins_early_does_not_hide_what_pages_lack() {
    let faults = ["timeline:by=1", "begins-early:hours=1,echo=used,counts=asked", "hidden:percent=5"];
    let world = World::new(&faults.map(str::to_owned), false);
    let sql = format!(
        "SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-01-01' AND published_at < '2026-07-02'"
    );
    let error = world.ask(&sql).await.0.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete, "{error}");
}

/// A service that cuts long periods returns a few mentions of the first window: that is no depth of paging in its parts.
#[tokio::test(start_paused = true)]
async fn a_period_that_is_cut_shows_no_depth_of_paging() {
    let faults = [
        "overview:by=-1",
        "timeline:by=-1",
        "list:name=languages,by=300",
        "cut-period:days=9,echo=asked,counts=asked",
        "nulls:at=smallest",
    ];
    let world = World::new(&faults.map(str::to_owned), false);
    let sql = format!(
        "SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-05-01' AND published_at < '2026-06-20' AND \
         language = 'en'"
    );
    let (result, requests) = world.ask(&sql).await;
    assert!(requests <= 21, "{requests} requests: {result:?}");
}
