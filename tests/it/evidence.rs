//! Services whose numbers contradict each other: the rows are right, or the error names both numbers, at no more than three
//! times the cost of an honest service.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use datafusion_saved_search::client::HttpLimits;
use datafusion_saved_search::profile::Trust;
use datafusion_saved_search::simulator::{Corpus, CorpusSpec, KEY, Preset, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, Error, ErrorKind, Profile, Secret, session};
use serde_json::json;

use crate::support::{Answer, Asked, BIG, InProcess, Scripted, Virtual, knob, now, ok, rows};

/// Requests beyond three passes, for the ends of windows.
const SLACK: u64 = 8;

fn corpus() -> Arc<Corpus> {
    static CORPUS: LazyLock<Arc<Corpus>> = LazyLock::new(|| {
        let spec = CorpusSpec { seed: 7, searches: 3, mentions: 500, now: now() };
        Arc::new(Corpus::generate(spec).rounded_to(60))
    });
    Arc::clone(&CORPUS)
}

/// Pages of 20 mentions, so that there are many.
fn profile() -> Profile {
    let mut profile = Profile::v4();
    profile.page.max = 20;
    profile
}

fn world(faults: &[&str]) -> Virtual {
    Virtual::new(corpus(), faults, Settings::default(), profile())
}

const SPAN: &str = "published_at >= '2026-01-01' AND published_at < '2026-07-02'";

/// Questions whose answers depend on numbers of the service.
fn questions() -> Vec<String> {
    let of = |what: &str, rest: &str| format!("SELECT {what} FROM mentions WHERE aid = '{BIG}' AND {SPAN}{rest}");
    vec![
        of("id", ""),
        of("id", " AND language = 'en'"),
        of("id", " ORDER BY published_at DESC LIMIT 90"),
        of("reach", " ORDER BY reach DESC LIMIT 7"),
        of("reach", " AND language = 'de' ORDER BY reach LIMIT 7"),
        of("reach", " ORDER BY reach DESC LIMIT 7 OFFSET 11"),
        of("max(reach)", ""),
        of("min(reach), max(reach), count(*)", " AND language = 'en'"),
        of("count(*)", ""),
        of("count(*)", " AND language = 'en'"),
        of("count(*)", " AND type = 'post'"),
        of("count(*)", " AND source IN ('x.com', 'reddit.com')"),
        of("sentiment, count(*)", " GROUP BY 1"),
        of("date_trunc('day', published_at), count(*)", " GROUP BY 1"),
        format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '30d'"),
        format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND duration = '30d'"),
        format!("SELECT total_mentions FROM overview WHERE aid = '{BIG}' AND duration = '30d'"),
        "SELECT aid, name FROM saved_searches".to_owned(),
        format!("SELECT aid, count(*) FROM mentions WHERE {SPAN} GROUP BY 1"),
    ]
}

const LIES: &[&str] = &[
    "cap-total:rows=60",
    "total:by=300",
    "total:by=-7",
    "hidden:percent=5",
    "hidden:percent=40",
    "nulls:at=first",
    "start-excluded",
    "retention:days=20",
    "cut-period:days=9",
    "overview:by=-10",
    "overview:by=25",
    "overview-unfiltered",
    "filters-wider",
    "filters-ignored",
    "values:used=first",
    "values:used=last",
    "values:used=none",
    "depth:rows=60,answer=empty",
    "depth:rows=60,answer=400",
    "depth:rows=60,answer=last",
    "clamp:rows=7",
];

/// Further lies, which are combined with those and with each other.
const MORE_LIES: &[&str] = &[
    "total:of=all",
    "timeline:by=25",
    "list:name=languages,by=3",
    "nulls:at=smallest",
    "nulls:at=largest",
    "nulls:at=zero",
    "end-included",
    "ends-early:hours=30",
    "begins-early:hours=30",
    "partial:percent=40,sign=timed-out",
    "partial:percent=10,sign=shards@30%",
    "accepted:retry-after=1@25%",
    "old-copy:hours=6",
    "old-copy:hours=1000",
    "estimated:moved=3",
    "estimated:moved=2,sign=flag",
    "newest-last",
];

/// Forms and limits of healthy services that the profile does not describe.
const FORMS: &[&str] = &[
    "total-form:as=text",
    "total-form:as=grouped",
    "total-form:as=fraction",
    "total-form:as=first-page",
    "aligned",
    "least-size:rows=15",
    "long-url:bytes=140",
    "filters-similar:letters=1",
    "nan:field=reach",
    "times:as=mixed",
    "times:as=compact",
    "times:as=date",
    "times:as=local",
    "source-ids",
    "list-page:rows=1,sign=total",
    "list-page:rows=1,sign=next",
    "list-page:rows=1,sign=has-more",
    "list-page:rows=1,sign=link",
    "aid-fraction",
    "zone-name:as=alias",
    "zone-name:as=distance",
    "gzip-members",
    "401@3",
    "410@20%",
    "429:retry-after=millis+2@20%",
    "503:retry-after=epoch+2@20%",
];

/// Runs a question. Returns its rows in one order, or the error, and the requests it took.
async fn outcome(world: &Virtual, sql: &str) -> (Result<Vec<Vec<String>>, Error>, u64) {
    let before = world.simulator.requests();
    let result = world.ask(sql).await.map(|mut rows| {
        if !sql.contains("ORDER BY") {
            rows.sort();
        }
        rows
    });
    (result, world.simulator.requests() - before)
}

/// Values of the overview table are shown as the service reports them.
fn shows(sql: &str, faults: &[&str]) -> bool {
    sql.contains("FROM overview") && faults.iter().any(|fault| fault.starts_with("overview:"))
}

async fn judge(sql: &str, faults: &[&str], right: &(Result<Vec<Vec<String>>, Error>, u64)) -> Result<(), String> {
    let (result, requests) = outcome(&world(faults), sql).await;
    // A service that returns less than was requested costs more than one that does not, and so do rows that were not requested.
    let clamped = faults.iter().any(|fault| fault.starts_with("clamp"));
    let has = |name: &str| u64::from(faults.iter().any(|fault| fault.starts_with(name)));
    // What is not ready, or fails, is requested again.
    let share = (if clamped { 4 } else { 1 + has("filters-wider") }) + has("accepted") + has("503");
    let most = 3 * right.1.max(1) * share + SLACK;
    // Where counts prove nothing, the mentions are read.
    let read = 500_u64.div_ceil(if clamped { 6 } else { 19 }) * 3 + SLACK;
    let most = if sql.contains("count(") || sql.contains("reach") { most.max(read) } else { most };
    let shown = format!("{sql}\n{faults:?}: {requests} requests, honest {}", right.1);
    if requests > most {
        return Err(format!("{shown}, more than {most}: {result:?}"));
    }
    match (result, &right.0) {
        (Ok(rows), Ok(right)) if rows != *right && !shows(sql, faults) => {
            Err(format!("{shown}: {} wrong rows, such as {:?}, expected {}", rows.len(), rows.first(), right.len()))
        }
        (Err(error), _) if error.kind() == ErrorKind::Budget => Err(format!("{shown}: {error}")),
        _ => Ok(()),
    }
}

#[tokio::test(start_paused = true)]
async fn contradictory_numbers_give_right_rows_or_an_error() {
    let mut wrong = Vec::new();
    for sql in questions() {
        let right = outcome(&world(&[]), &sql).await;
        assert!(right.0.is_ok(), "{sql}: {:?}", right.0);
        for lie in LIES.iter().chain(MORE_LIES).chain(FORMS) {
            wrong.extend(judge(&sql, &[lie], &right).await.err());
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn other_forms_of_the_same_answer_cost_the_same() {
    let forms = FORMS.iter().filter(|form| {
        let kind = form.split([':', '@']).next().unwrap_or_default();
        ["total-form", "nan", "aid-fraction", "zone-name", "gzip-members"].contains(&kind)
    });
    for form in forms {
        for sql in questions() {
            let right = outcome(&world(&[]), &sql).await;
            let came = outcome(&world(&[form]), &sql).await;
            assert_eq!(
                (came.0.map_err(|error| error.to_string()), came.1),
                (Ok(right.0.unwrap()), right.1),
                "{form}: {sql}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pairs_of_contradictions_give_right_rows_or_an_error() {
    let (mut wrong, mut seed) = (Vec::new(), knob("EVIDENCE_SEED", 1));
    let (questions, lies) = (questions(), [LIES, MORE_LIES, FORMS].concat());
    for _ in 0..knob("EVIDENCE_PAIRS", 60) {
        let mut pick = |most: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(seed >> 33).unwrap() % most
        };
        let (sql, pair) = (&questions[pick(questions.len())], [lies[pick(lies.len())], lies[pick(lies.len())]]);
        let right = outcome(&world(&[]), sql).await;
        wrong.extend(judge(sql, &pair, &right).await.err());
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn errors_name_both_numbers() {
    let all = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {SPAN}");
    let total = world(&[]).rows(&all).await.len();
    for (lie, number) in [("total:by=300", total + 300), ("hidden:percent=40", total)] {
        let error = world(&[lie]).error(&all).await;
        assert_eq!(error.kind(), ErrorKind::Incomplete, "{lie}: {error}");
        let text = error.to_string();
        assert!(text.contains(&number.to_string()) && text.contains("distinct mentions received"), "{lie}: {text}");
    }
    let old = format!(
        "SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-03-01' AND published_at < '2026-03-08'"
    );
    for sql in [old.clone(), old.replace("SELECT id", "SELECT count(*)")] {
        let error = world(&["retention:days=20"]).error(&sql).await;
        assert_eq!(error.kind(), ErrorKind::Contradiction, "{error}");
        assert!(error.to_string().contains("covers nothing of it"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_relative_period_of_the_same_length_is_not_the_requested_one() {
    for what in ["id", "count(*)", "max(reach)"] {
        let sql = format!("SELECT {what} FROM mentions WHERE aid = '{BIG}' AND duration = '30d'");
        let error = world(&["other-window"]).error(&sql).await;
        assert_eq!(error.kind(), ErrorKind::Contradiction, "{what}: {error}");
        assert!(error.to_string().contains("covers only 2026-05-02"), "{what}: {error}");
        // Nor is a longer one.
        let error = world(&["begins-early:hours=200"]).error(&sql).await;
        assert_eq!(error.kind(), ErrorKind::Contradiction, "{what}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_table_has_rows_of_another_window() {
    let columns = "SELECT table_name FROM information_schema.columns WHERE table_schema = 'v4' AND column_name = 'duration' ORDER BY 1";
    let tables = world(&[]).rows(columns).await;
    assert!(tables.len() >= 4, "{tables:?}");
    let of = |what: &str, table: &str, rest: &str| {
        format!("SELECT {what} FROM {table} WHERE aid = '{BIG}' AND duration = '30d'{rest}")
    };
    let counts = [
        of("count(*)", "mentions", ""),
        of("published_at::date, count(*)", "mentions", " GROUP BY 1"),
        of("sentiment, count(*)", "mentions", " GROUP BY 1"),
        of("max(reach)", "mentions", ""),
        of("reach", "mentions", " ORDER BY reach DESC LIMIT 7"),
    ];
    let whole = tables.iter().flatten().map(|table| of("*", table, ""));
    for sql in whole.chain(counts) {
        let error = world(&["other-window"]).error(&sql).await;
        assert_eq!(error.kind(), ErrorKind::Contradiction, "{sql}: {error}");
        assert!(error.to_string().contains("covers only 2026-05-02"), "{sql}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn mentions_from_before_a_reported_relative_period_are_a_contradiction() {
    // The timeline of the first page shows it before the oldest mention does.
    for (what, part) in [("id", "outside the requested period"), ("max(reach)", "the timeline counts mentions before")]
    {
        let sql = format!("SELECT {what} FROM mentions WHERE aid = '{BIG}' AND duration = '30d'");
        let error = world(&["begins-early:hours=900,echo=asked"]).error(&sql).await;
        assert_eq!(error.kind(), ErrorKind::Contradiction, "{what}: {error}");
        assert!(error.to_string().contains(part), "{what}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_copy_of_the_data_is_refused_if_its_window_ends_later() {
    let (old, recent) = ("published_at < '2026-06-01'", "published_at < '2026-07-01T12:00:00Z'");
    for what in ["id", "count(*)", "max(reach)"] {
        let of = |end: &str| {
            format!("SELECT {what} FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-01-01' AND {end}")
        };
        let copy = world(&["old-copy:hours=100"]);
        assert_eq!(copy.rows(&of(old)).await, world(&[]).rows(&of(old)).await, "{what}");
        let relative = format!("SELECT {what} FROM mentions WHERE aid = '{BIG}' AND duration = '30d'");
        for sql in [of(recent), relative] {
            let error = world(&["old-copy:hours=100"]).error(&sql).await;
            assert_eq!(error.kind(), ErrorKind::Contradiction, "{sql}: {error}");
            assert!(error.to_string().contains("has the mentions known at 2026-06-"), "{sql}: {error}");
        }
        // An index is rarely younger than some minutes.
        assert!(world(&["old-copy:hours=0"]).ask(&of(recent)).await.is_ok(), "{what}");
    }
    let sql = format!("SELECT total_mentions FROM overview WHERE aid = '{BIG}' AND duration = '30d'");
    assert_eq!(world(&["old-copy:hours=100"]).error(&sql).await.kind(), ErrorKind::Contradiction);
}

#[tokio::test(start_paused = true)]
async fn lists_that_are_estimates_count_nothing() {
    for lie in ["estimated:moved=3", "estimated:moved=3,sign=flag"] {
        let sql = format!("SELECT source, count(*) FROM mentions WHERE aid = '{BIG}' AND {SPAN} GROUP BY 1 ORDER BY 1");
        let (honest, world) = (world(&[]), world(&[lie]));
        assert_eq!(world.rows(&sql).await, honest.rows(&sql).await, "{lie}");
        assert!(world.simulator.requests() > honest.simulator.requests(), "{lie}: the mentions are read");
    }
}

#[tokio::test(start_paused = true)]
async fn first_rows_that_lack_the_newest_day_are_refused() {
    for zone in ["UTC", "Asia/Kolkata"] {
        let world = world(&["newest-last"]);
        world.rows(&format!("SET savedsearch.timezone = '{zone}'")).await;
        let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {SPAN} ORDER BY published_at DESC LIMIT 5");
        let error = world.error(&sql).await;
        assert_eq!(error.kind(), ErrorKind::Contradiction, "{zone}: {error}");
        assert!(error.to_string().contains("the timeline counts mentions after"), "{zone}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn first_rows_that_lack_a_mention_are_refused() {
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {SPAN} ORDER BY published_at DESC LIMIT 90");
    let error = world(&["hidden:percent=2"]).error(&sql).await;
    assert_eq!(error.kind(), ErrorKind::Incomplete, "{error}");
    assert!(error.to_string().contains("lack mentions that their offsets count"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_capped_total_is_read_on_if_the_overview_counts_more() {
    let all = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {SPAN}");
    let right = outcome(&world(&[]), &all).await.0.unwrap();
    for answer in ["empty", "last", "400"] {
        let depth = format!("depth:rows=60,answer={answer}");
        let rows = outcome(&world(&["cap-total:rows=60", &depth]), &all).await.0;
        assert_eq!(rows.unwrap_or_else(|error| panic!("{answer}: {error}")), right, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_scan_that_exceeds_its_budget_is_refused_after_first_pages() {
    let spec = CorpusSpec { seed: 3, searches: 12, mentions: 6_000, now: now() };
    let corpus = Arc::new(Corpus::generate(spec));
    let sql = "SELECT id FROM mentions WHERE published_at >= '2026-01-01' AND published_at < '2026-07-02'";
    let open = Virtual::new(Arc::clone(&corpus), &[] as &[&str], Settings::default(), profile());
    let all = open.rows(sql).await.len();
    let honest = open.simulator.requests();
    for (most, least) in [(honest * 9 / 10, false), (honest / 2, false), (honest, true)] {
        let world = Virtual::new(Arc::clone(&corpus), &[] as &[&str], Settings::default(), profile());
        world.rows(&format!("SET savedsearch.max_requests = {most}")).await;
        match world.ask(sql).await {
            Ok(rows) => assert!(least && rows.len() == all, "{most}: {} rows", rows.len()),
            Err(error) => {
                assert!(!least && error.kind() == ErrorKind::Budget, "{most}: {error}");
                // The list, and the first pages of some; those that were begun first may have read on.
                let spent = world.simulator.requests();
                assert!(spent <= honest / 3, "{spent} requests of {most}, {honest} needed: {error}");
            }
        }
    }
}

#[tokio::test]
async fn with_a_store_a_scan_is_refused_by_the_totals_of_searches_that_it_lacks() {
    let spec = CorpusSpec { seed: 3, searches: 12, mentions: 6_000, now: now() };
    let corpus = Arc::new(Corpus::generate(spec));
    // The store reads whole days.
    let sql = "SELECT id FROM mentions WHERE published_at >= '2026-01-01T05:00:00Z' AND published_at < '2026-06-20'";
    let ask = async |folder: &std::path::Path, most: u64| {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let simulator =
            Simulator::new(Arc::clone(&corpus), Settings { clock: Clock::fixed(now()), ..Settings::default() });
        let service = Arc::new(InProcess(simulator.clone(), HttpLimits::default()));
        let address = format!("http://budget{}.test/v4", NUMBER.fetch_add(1, Ordering::Relaxed));
        let builder = Connection::builder(address, Secret::new(KEY).unwrap()).service(service).profile(profile());
        let connection = builder.clock(Clock::fixed(now())).store(folder).build().unwrap();
        let context = session(&connection).unwrap();
        context.sql(&format!("SET savedsearch.max_requests = {most}")).await.unwrap();
        let result = context.sql(sql).await.unwrap().collect().await.map(|batches| rows(&batches).len());
        (result.map_err(|error| Error::find(&error).unwrap().kind()), simulator.requests())
    };
    let folder = || tempfile::TempDir::new().unwrap();
    let (all, honest) = ask(folder().path(), 1_000).await;
    assert_eq!(ask(folder().path(), honest).await, (all, honest), "just enough");
    let (refused, spent) = ask(folder().path(), honest / 2).await;
    assert_eq!(refused, Err(ErrorKind::Budget));
    assert!(spent <= honest / 4, "{spent} requests, {honest} needed");
}

#[tokio::test(start_paused = true)]
async fn remembered_totals_decide_which_searches_are_asked_first() {
    let spec = CorpusSpec { seed: 3, searches: 12, mentions: 6_000, now: now() };
    let corpus = Arc::new(Corpus::generate(spec));
    let world = Virtual::new(corpus, &[] as &[&str], Settings::default(), profile());
    let sql = "SELECT id FROM mentions WHERE published_at >= '2026-01-01' AND published_at < '2026-07-02'";
    world.rows(sql).await;
    let honest = world.simulator.requests();
    // What fits by the remembered totals is not asked for.
    world.rows(&format!("SET savedsearch.max_requests = {honest}")).await;
    world.rows(sql).await;
    assert_eq!(world.simulator.requests(), 2 * honest);
    world.rows(&format!("SET savedsearch.max_requests = {}", honest / 2)).await;
    assert_eq!(world.error(sql).await.kind(), ErrorKind::Budget);
    let spent = world.simulator.requests() - 2 * honest;
    assert!(spent <= 20, "{spent} requests, {honest} needed");
}

/// A service of one saved search with a mention every ten minutes, for relative periods only.
struct Plain {
    mentions: usize,
    /// Row at which paging stops.
    stops: usize,
    totals: bool,
    /// Total in a header.
    header: Option<(&'static str, &'static str)>,
}

impl Plain {
    fn answer(&self, asked: &Asked) -> Answer {
        let asked = &asked.parameters;
        let number = |name: &str| asked[name].parse::<usize>().unwrap();
        let (from, size) = (number("dataFrom"), number("dataSize"));
        let end = (from + size).min(self.mentions).min(self.stops);
        let descending = asked.get("sortBy").is_none_or(|sort| sort.ends_with("desc"));
        let item = |row: usize| {
            let row = if descending { row } else { self.mentions - 1 - row };
            let at = now() - chrono::Duration::minutes(10 * i64::try_from(row + 1).unwrap());
            json!({"id": row.to_string(), "publishedAt": at, "text": "text"})
        };
        let mut body = json!({
            "search": {"aid": asked["aid"]},
            "mentions": {"from": from, "items": (from..end.max(from)).map(item).collect::<Vec<_>>()},
        });
        if self.totals {
            body["mentions"]["total"] = self.mentions.into();
        }
        let answer = ok(&body);
        self.header.into_iter().fold(answer, |answer, (name, value)| answer.with(name, value))
    }
}

/// Reads all mentions of a plain service. Returns their number and that of the requests.
async fn read_plain(mentions: usize, stops: usize, totals: bool) -> (Result<usize, Error>, u64) {
    read_with(None, mentions, stops, totals).await
}

async fn read_with(
    header: Option<(&'static str, &'static str)>,
    mentions: usize,
    stops: usize,
    totals: bool,
) -> (Result<usize, Error>, u64) {
    let mut profile = Profile::v4();
    profile.window.absolute = None;
    if !totals {
        (profile.total.trust, profile.total.at, profile.total.relation) = (Trust::Absent, None, None);
    }
    profile.counts = None;
    let service = Scripted::new(move |asked| Plain { mentions, stops, totals, header }.answer(asked));
    let connection = service.connect(Secret::new("key").unwrap(), profile);
    let frame = session(&connection).unwrap().sql("SELECT id FROM mentions WHERE aid = '1' AND duration = '30d'").await;
    let result = frame.unwrap().collect().await.map(|batches| rows(&batches).len());
    let result = result.map_err(|error| Error::find(&error).unwrap_or_else(|| panic!("{error}")).clone());
    (result, service.requests())
}

#[tokio::test(start_paused = true)]
async fn without_a_total_a_round_number_of_rows_is_not_the_end() {
    for stops in [500, 1_000, 1_024] {
        let (result, requests) = read_plain(1_605, stops, false).await;
        assert_eq!(result.expect_err("rows are missing").kind(), ErrorKind::Incomplete, "stops at {stops}");
        assert!(requests <= 3 * 17 + SLACK, "{requests} requests");
    }
    // One request in the opposite order shows that they are all.
    for mentions in [973, 1_000, 1_605] {
        assert_eq!(read_plain(mentions, usize::MAX, false).await.0.unwrap(), mentions);
    }
}

#[tokio::test(start_paused = true)]
async fn a_higher_total_in_a_header_contradicts_that_of_the_body() {
    for header in [("x-total-count", "300"), ("content-range", "items 0-99/300"), ("x-pagination-total", "300")] {
        let (result, requests) = read_with(Some(header), 250, usize::MAX, true).await;
        let error = result.expect_err(header.0);
        assert_eq!((error.kind(), requests), (ErrorKind::Contradiction, 1), "{error}");
        assert!(error.to_string().contains("300") && error.to_string().contains("250"), "{error}");
    }
    for header in [("x-total-count", "250"), ("x-total-pages", "300"), ("x-ratelimit-total", "900")] {
        let (result, requests) = read_with(Some(header), 250, usize::MAX, true).await;
        assert_eq!((result.unwrap(), requests), (250, 3), "{header:?}");
    }
}

/// The overview that confirms such an end has no mentions, so that some services send none of their sections with it.
#[tokio::test(start_paused = true)]
async fn a_round_number_of_rows_is_confirmed_in_dialects_that_send_mentions_on_request() {
    for preset in [Preset::V4, Preset::Flags, Preset::Names] {
        for mentions in [100, 300, 500] {
            let corpus = Corpus::generate(CorpusSpec { seed: 7, searches: 1, mentions, now: now() });
            let profile = Profile::builtin(preset.name()).unwrap();
            let duration = if preset == Preset::Names { "last_year" } else { "365d" };
            let world =
                Virtual::new(Arc::new(corpus), &[] as &[&str], Settings { preset, ..Settings::default() }, profile);
            let rows =
                world.rows(&format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '{duration}'")).await;
            assert_eq!(rows.len(), mentions, "{preset}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_last_page_that_is_cut_is_a_depth_and_not_a_page_size() {
    let (result, requests) = read_plain(1_605, 1_000, true).await;
    let error = result.expect_err("rows are missing");
    assert!(matches!(error.kind(), ErrorKind::Incomplete | ErrorKind::TooDeep), "{error}");
    assert!(error.to_string().contains("1605") || error.to_string().contains("1,605"), "{error}");
    assert!(requests <= 3 * 17 + SLACK, "{requests} requests");
    let (result, requests) = read_plain(1_605, usize::MAX, true).await;
    assert_eq!((result.unwrap(), requests), (1_605, 17));
}

#[tokio::test(start_paused = true)]
async fn a_count_beside_extremes_is_judged_like_any_other() {
    for what in ["count(*), min(published_at), max(published_at)", "count(*), max(reach)"] {
        let sql = format!("SELECT {what} FROM mentions WHERE aid = '{BIG}' AND {SPAN}");
        let right = outcome(&world(&[]), &sql).await;
        for lie in ["cap-total:rows=60", "total:by=-5", "overview:by=25", "timeline:by=25"] {
            assert_eq!(judge(&sql, &[lie], &right).await, Ok(()), "{lie}");
        }
    }
}

/// A page that lacks rows looks like one of a service with smaller pages, until the next one shows the offset of its rows.
#[tokio::test(start_paused = true)]
async fn a_short_page_is_not_the_beginning_of_an_order_until_the_next_one_follows_it() {
    for sql in [
        "id FROM mentions WHERE {OF} AND likes >= 0 ORDER BY published_at DESC LIMIT 5",
        "max(published_at) FROM mentions WHERE {OF} AND likes >= 0",
    ] {
        let sql = format!("SELECT {sql}").replace("{OF}", &format!("aid = '{BIG}' AND {SPAN}"));
        let right = outcome(&world(&[]), &sql).await;
        assert_eq!(judge(&sql, &["hidden:percent=50"], &right).await, Ok(()));
        // A service with smaller pages costs one request more.
        let (rows, requests) = outcome(&world(&["clamp:rows=13"]), &sql).await;
        assert_eq!((rows.unwrap(), requests), (right.0.unwrap(), right.1 + 1), "{sql}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_offset_within_the_first_page_is_skipped_here() {
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {SPAN} ORDER BY published_at LIMIT 5 OFFSET 3");
    let world = world(&[]);
    let all = world.rows(&sql.replace("LIMIT 5 OFFSET 3", "LIMIT 8")).await;
    let before = world.simulator.requests();
    assert_eq!(world.rows(&sql).await, all[3..]);
    assert_eq!(world.simulator.requests() - before, 1);
    // Both queries send the same request, that of the first eight rows.
    let sent = world.rows("SELECT count(DISTINCT parameters), count(*) FROM system.requests").await;
    assert_eq!(sent, [["1", "2"]]);
}
