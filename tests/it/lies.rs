//! A service that fails, throttles or lies: the result has every mention once, or is a typed error that names the
//! cause.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datafusion::prelude::SessionContext;
use datafusion_saved_search::{Connection, Error, ErrorKind, Profile, Secret, session};
use serde_json::json;

use crate::support::{Answer, Asked, Scripted, each_async, now, rows};

/// A key that must not appear in any output.
const CANARY: &str = "canary-7f3a-key";

/// The misbehaviour of the service for one request.
#[derive(Debug, Clone)]
enum Trick {
    /// A correct response.
    None,
    /// A response with this status, these headers and this body.
    Answer(u16, Vec<(&'static str, &'static str)>, &'static str),
    /// The connection breaks.
    Reset,
    /// The first bytes of the correct body.
    Cut(usize),
    /// The first rows of the correct page.
    Short(usize),
}

/// A service with `rows` mentions in pages, and a trick for each of the first requests.
struct Liar {
    rows: usize,
    tricks: Mutex<VecDeque<Trick>>,
    /// Misbehaviour on every page.
    warp: Warp,
    totals: Mutex<VecDeque<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Warp {
    No,
    OffsetIgnored,
    Backwards,
    OtherAid,
    LanguageIgnored,
    MissingRow(usize),
    Clamped(usize),
    /// A mention is published between any two pages.
    Growing,
}

impl Liar {
    fn page(&self, asked: &Asked, most: usize) -> String {
        let parameter = |name: &str| asked.text(name).to_owned();
        let (from, size): (usize, usize) =
            (parameter("dataFrom").parse().unwrap(), parameter("dataSize").parse().unwrap());
        let start = if self.warp == Warp::OffsetIgnored { 0 } else { from };
        let most = if let Warp::Clamped(page) = self.warp { page.min(most) } else { most };
        let end = (start + size.min(most)).min(self.rows);
        let descending = parameter("sortBy") == "date_desc" && self.warp != Warp::Backwards;
        let item = |row: usize| {
            let row = if descending { self.rows - 1 - row } else { row };
            let id = if self.warp == Warp::MissingRow(row) { row - 1 } else { row };
            let language = if row % 2 == 0 { "en" } else { "de" };
            let language = if self.warp == Warp::LanguageIgnored { language } else { "en" };
            let at = now() - chrono::Duration::seconds(10_000) + chrono::Duration::seconds(i64::try_from(row).unwrap());
            json!({"id": id.to_string(), "publishedAt": at.to_rfc3339(), "language": language, "text": "text"})
        };
        let aid = if self.warp == Warp::OtherAid { "other".to_owned() } else { parameter("aid") };
        let held = parameter("duration") == "2026-06-24T12:00:00Z..2026-07-01T12:00:00Z";
        let more = usize::try_from(asked.arrived).unwrap();
        let now_there = if self.warp == Warp::Growing && !held { self.rows + more - 1 } else { self.rows };
        let total = self.totals.lock().unwrap().pop_front().unwrap_or(now_there);
        json!({
            "search": {"aid": aid},
            "window": {"timezone": parameter("timezone"), "from": "2026-06-24T12:00:00Z", "to": "2026-07-01T12:00:00Z"},
            "mentions": {"total": total, "from": from, "items": (start..end.max(start)).map(item).collect::<Vec<_>>()},
        })
        .to_string()
    }

    fn answer(&self, asked: &Asked) -> Answer {
        match self.tricks.lock().unwrap().pop_front().unwrap_or(Trick::None) {
            Trick::None => Answer::text(200, self.page(asked, usize::MAX)),
            Trick::Short(rows) => Answer::text(200, self.page(asked, rows)),
            Trick::Cut(bytes) => Answer::text(200, &self.page(asked, usize::MAX)[..bytes]),
            // Echoes the key.
            Trick::Answer(status, headers, body) => headers
                .into_iter()
                .fold(Answer::text(status, body.replace("{key}", &asked.key)), |answer, (name, value)| {
                    answer.with(name, value)
                }),
            Trick::Reset => Answer::broken(),
        }
    }
}

struct Lab {
    liar: Arc<Liar>,
    service: Arc<Scripted>,
    context: SessionContext,
}

impl Lab {
    fn new(rows: usize, warp: Warp, tricks: Vec<Trick>) -> Self {
        Self::with(rows, warp, tricks, Profile::v4())
    }

    fn with(rows: usize, warp: Warp, tricks: Vec<Trick>, profile: Profile) -> Self {
        let liar = Arc::new(Liar { rows, tricks: Mutex::new(tricks.into()), warp, totals: Mutex::default() });
        let answers = Arc::clone(&liar);
        // Latency, so that requests are in flight concurrently.
        let service = Scripted::delayed(Duration::from_millis(10), move |asked| answers.answer(asked));
        let connection = service.connect(Secret::new(CANARY).unwrap(), profile);
        Self { liar, service, context: session(&connection).unwrap() }
    }

    fn requests(&self) -> u64 {
        self.service.requests()
    }

    async fn ask(&self, sql: &str) -> Result<Vec<Vec<String>>, Error> {
        let result = match self.context.sql(sql).await {
            Ok(frame) => frame.collect().await,
            Err(error) => Err(error),
        };
        result.map(|batches| rows(&batches)).map_err(|error| {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(CANARY), "the error contains the key: {shown}");
            Error::find(&error).unwrap_or_else(|| panic!("untyped error: {error}")).clone()
        })
    }

    async fn scan(&self) -> Result<usize, Error> {
        let rows = self.ask("SELECT id FROM mentions WHERE aid = '1'").await?;
        let distinct: std::collections::HashSet<_> = rows.iter().collect();
        assert_eq!(distinct.len(), rows.len(), "duplicate mentions");
        Ok(rows.len())
    }
}

fn answer(status: u16, body: &'static str) -> Trick {
    Trick::Answer(status, Vec::new(), body)
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_again_and_nothing_is_lost_or_doubled() {
    let throttled = Trick::Answer(429, vec![("retry-after", "7")], "{}");
    each_async(
        [
            vec![throttled.clone(), throttled.clone()],
            vec![answer(429, "slow down")],
            vec![Trick::None, answer(503, ""), answer(500, "oops"), answer(502, "<html>")],
            vec![Trick::None, Trick::Cut(100), Trick::Cut(0)],
            vec![Trick::Reset, Trick::None, Trick::Reset],
            vec![answer(200, "<html>please wait</html>"), Trick::None],
            vec![Trick::None, Trick::Short(40), Trick::Short(1)],
            vec![Trick::None, Trick::Short(0), Trick::Short(0)],
        ],
        async |tricks| {
            let lab = Lab::new(350, Warp::No, tricks.clone());
            assert_eq!(lab.scan().await.unwrap_or_else(|error| panic!("{error}")), 350);
            assert!(lab.requests() > 4);
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_named_wait_is_kept() {
    let lab = Lab::new(1, Warp::No, vec![Trick::Answer(429, vec![("retry-after", "30")], "")]);
    let begun = tokio::time::Instant::now();
    assert_eq!(lab.scan().await.unwrap(), 1);
    assert!(begun.elapsed() >= Duration::from_secs(30));
    assert!(begun.elapsed() < Duration::from_secs(40));
}

/// Four pages are requested together: ten attempts of each are 40.
#[tokio::test(start_paused = true)]
async fn a_service_that_throttles_for_ever_is_given_up_for_all_requests_together() {
    let answered = [vec![Trick::None], vec![answer(429, r#"{"error":{"code":"busy"}}"#); 99]].concat();
    let lab = Lab::new(2_000, Warp::No, answered);
    let error = lab.scan().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Throttled, "{error}");
    assert!((10..=30).contains(&lab.requests()), "{} requests", lab.requests());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_throttled_with_401_waits() {
    let lab = Lab::new(1, Warp::No, vec![Trick::Answer(401, vec![("retry-after", "2")], "throttled")]);
    assert_eq!(lab.scan().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_is_a_typed_error_that_says_what_and_what_to_do() {
    let down = vec![answer(503, r#"{"error":{"code":"busy","message":"try later"}}"#); 9];
    each_async(
        [
            (down, ErrorKind::Unavailable, 5, "answered 503 Service Unavailable busy: try later (after 5 attempts"),
            (vec![Trick::Reset; 9], ErrorKind::Connect, 5, "check that http://scripted"),
            (vec![answer(200, "<!doctype html>"); 9], ErrorKind::Malformed, 2, "a web page, not JSON"),
            (vec![answer(200, "{\"mentions\":"); 9], ErrorKind::Malformed, 2, "not valid JSON"),
            (vec![answer(429, ""); 20], ErrorKind::Throttled, 10, "429 Too Many Requests"),
            (
                vec![answer(429, r#"{"error":{"code":"MONTHLY_QUOTA","message":"quota of your plan used up"}}"#)],
                ErrorKind::Quota,
                1,
                "the quota of the API key is used up",
            ),
            (
                vec![answer(403, r#"{"error":{"code":"QUOTA_EXCEEDED","message":"no searches left"}}"#)],
                ErrorKind::Quota,
                1,
                "the quota of the API key is used up",
            ),
            (vec![answer(401, "bad key {key}")], ErrorKind::Unauthorized, 1, "bad key <redacted>; check the API key"),
            (vec![answer(302, "")], ErrorKind::Redirect, 1, "redirects are not followed"),
            (
                vec![answer(400, r#"{"error":{"code":"validation_error","message":"at most 50","field":"dataSize"}}"#)],
                ErrorKind::Rejected,
                1,
                "400 Bad Request validation_error (parameter `dataSize`): at most 50",
            ),
            (vec![answer(200, r#"{"data":[]}"#)], ErrorKind::Contradiction, 1, "the response has no `/mentions/items`"),
            (vec![answer(200, "[]")], ErrorKind::Contradiction, 1, "does not match the profile"),
            (
                vec![answer(200, r#"{"search":{"aid":"{key}"},"mentions":{"total":0,"items":[]}}"#); 9],
                ErrorKind::Contradiction,
                2,
                "requested aid `1`, but the response is for `<redacted>`",
            ),
            (
                vec![answer(200, r#"{"mentions":{"total":1,"items":"{key}"}}"#)],
                ErrorKind::Contradiction,
                1,
                "expected an array at `/mentions/items`, found a string",
            ),
            (
                vec![Trick::Answer(429, vec![("retry-after", "315360000")], "")],
                ErrorKind::Throttled,
                1,
                "a wait of more than a year, longer than the query may take",
            ),
        ],
        async |(tricks, kind, attempts, text)| {
            let lab = Lab::new(10, Warp::No, tricks);
            let begun = tokio::time::Instant::now();
            let error = lab.scan().await.expect_err(text);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(text), "{error}\ndoes not contain: {text}");
            assert_eq!(error.attempts(), attempts, "{error}");
            assert_eq!(error.place().aid.as_deref(), Some("1"), "{error}");
            assert!(begun.elapsed() < Duration::from_secs(900), "{error}: {:?}", begun.elapsed());
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lie_is_a_typed_error_never_a_wrong_answer() {
    let newest = "SELECT id FROM mentions WHERE aid = '1' ORDER BY published_at DESC LIMIT 5";
    let newest_one = "SELECT id FROM mentions WHERE aid = '1' ORDER BY published_at DESC LIMIT 1";
    let all = "SELECT id FROM mentions WHERE aid = '1'";
    let english = "SELECT id FROM mentions WHERE aid = '1' AND language = 'en' LIMIT 60";
    each_async(
        [
            (Warp::OffsetIgnored, all, ErrorKind::Contradiction, "the offset seems to have no effect"),
            (
                Warp::Backwards,
                newest,
                ErrorKind::Contradiction,
                "does not keep the requested sort order `date_desc` by `published_at`",
            ),
            (
                Warp::Backwards,
                newest_one,
                ErrorKind::Contradiction,
                "does not keep the requested sort order `date_desc`",
            ),
            (Warp::OtherAid, all, ErrorKind::Contradiction, "requested aid `1`, but the response is for `other`"),
            (Warp::LanguageIgnored, english, ErrorKind::Contradiction, "do not match the requested filters"),
            (
                Warp::MissingRow(120),
                all,
                ErrorKind::Incomplete,
                "349 distinct mentions received in 3 passes, expected 350",
            ),
        ],
        async |(warp, sql, kind, text)| {
            let error = Lab::new(350, warp, Vec::new()).ask(sql).await.expect_err(text);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(text), "{error}\ndoes not contain: {text}");
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_period_that_the_service_shortens_or_ignores_is_an_error() {
    let month =
        "SELECT id FROM mentions WHERE aid = '1' AND published_at >= '2026-06-01' AND published_at < '2026-07-02'";
    let before =
        "SELECT id FROM mentions WHERE aid = '1' AND published_at >= '2026-05-01' AND published_at < '2026-05-08'";
    let relative = "SELECT id FROM mentions WHERE aid = '1' AND duration = '30d'";
    // The service always returns the same seven days, and says so.
    for sql in [month, relative] {
        let error = Lab::new(350, Warp::No, Vec::new()).ask(sql).await.expect_err(sql);
        assert_eq!(error.kind(), ErrorKind::Contradiction, "{error}");
        assert!(error.to_string().contains("but the response covers only 2026-06-24 12:00:00 UTC to"), "{error}");
    }
    // It does not say so.
    let silent = |longest: Option<&str>| {
        let mut profile = Profile::v4();
        (profile.echo.from, profile.echo.to) = (None, None);
        profile.window.longest = longest.map(|longest| longest.to_owned().try_into().unwrap());
        profile
    };
    for (sql, longest) in [(before, None), (month, Some("10d"))] {
        let error = Lab::with(350, Warp::No, Vec::new(), silent(longest)).ask(sql).await.expect_err(sql);
        assert_eq!(error.kind(), ErrorKind::Contradiction, "{error}");
        assert!(error.to_string().contains("mentions outside the requested period"), "{error}");
    }
    let week =
        "SELECT id FROM mentions WHERE aid = '1' AND published_at >= '2026-06-24' AND published_at < '2026-07-02'";
    assert_eq!(Lab::with(350, Warp::No, Vec::new(), silent(None)).ask(week).await.unwrap().len(), 350);
}

#[tokio::test(start_paused = true)]
async fn an_error_beside_the_data_is_no_result() {
    let empty =
        r#"{"error":{"code":"shard_down","message":"no"},"search":{"aid":"1"},"mentions":{"total":0,"items":[]}}"#;
    let counted = r#"{"error":{"message":"down"},"search":{"aid":"1"},"overview":{"totalMentions":0}}"#;
    each_async(
        [
            (empty, "SELECT id FROM mentions WHERE aid = '1'"),
            (counted, "SELECT count(*) FROM mentions WHERE aid = '1'"),
            (r#"{"error":{"code":"down"},"data":{"savedSearches":[{"aid":"1"}]}}"#, "SELECT aid FROM saved_searches"),
        ],
        async |(body, sql)| {
            let error = Lab::new(10, Warp::No, vec![answer(200, body); 9]).ask(sql).await.expect_err(sql);
            assert_eq!((error.kind(), error.attempts()), (ErrorKind::Unavailable, 2), "{error}");
            assert_eq!(Lab::new(10, Warp::No, vec![answer(200, empty)]).scan().await.unwrap(), 10, "it passes");
        },
    )
    .await;
    for none in ["null", r#"{"code":0,"message":"ok"}"#, r#"{"code":null,"message":""}"#] {
        let body = format!(r#"{{"error":{none},"search":{{"aid":"1"}},"mentions":{{"total":0,"items":[]}}}}"#);
        let lab = Lab::new(10, Warp::No, vec![answer(200, body.leak())]);
        assert_eq!(lab.scan().await.unwrap(), 0, "{none}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_cannot_pass_is_repeated_once() {
    let shard = r#"{"error":{"code":"shard_down","message":"no"}}"#;
    let mut inside = Profile::v4();
    inside.error.inside_success = true;
    let mut mapped = inside.clone();
    mapped.error.statuses.insert("shard_down".to_owned(), 503);
    let other_aid = r#"{"search":{"aid":"2"},"mentions":{"total":0,"items":[]}}"#;
    let other_zone = r#"{"search":{"aid":"1"},"window":{"timezone":"Asia/Tokyo"},"mentions":{"total":0,"items":[]}}"#;
    each_async(
        vec![
            (Profile::v4(), shard, 2),
            (inside.clone(), shard, 2),
            (inside, r#"{"error":{"message":"no"}}"#, 2),
            (mapped, shard, 5),
            (Profile::v4(), "no", 2),
            (Profile::v4(), "<html>no</html>", 2),
            (Profile::v4(), r#"{"search":{"aid":"1"},"mentions":{"total":0,"items":["#, 2),
            (Profile::v4(), other_aid, 2),
            (Profile::v4(), other_zone, 2),
        ],
        async |(profile, body, attempts)| {
            let lab = Lab::with(10, Warp::No, vec![answer(200, body); 9], profile.clone());
            let sql = "SELECT id FROM mentions WHERE aid = '1' AND timezone = 'Europe/Berlin'";
            let error = lab.ask(sql).await.expect_err(body);
            assert_eq!((error.attempts(), lab.requests()), (attempts, attempts.into()), "{body}: {error}");
            let lab = Lab::with(10, Warp::No, vec![answer(200, body)], profile);
            assert_eq!(lab.scan().await.unwrap(), 10, "{body}: it passes");
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_error_inside_a_success_that_names_a_parameter_is_not_repeated() {
    let body = r#"{"error":{"code":"bad","message":"dataFrom is not supported for this search"}}"#;
    let mut inside = Profile::v4();
    inside.error.inside_success = true;
    let lab = Lab::with(10, Warp::No, vec![answer(200, body); 9], inside);
    let error = lab.ask("SELECT id FROM mentions WHERE aid = '1'").await.expect_err(body);
    assert_eq!((error.kind(), error.attempts(), lab.requests()), (ErrorKind::Rejected, 1, 1), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_comes_back_as_an_aid_or_a_value_is_shown_nowhere() {
    let list = r#"{"data":{"savedSearches":[{"aid":"canary-7f3a-key"}],"teamSavedSearches":[]}}"#;
    let lab = Lab::new(0, Warp::No, vec![answer(200, list), answer(404, "no {key}")]);
    let error = lab.ask("SELECT id FROM mentions").await.expect_err("unknown saved search");
    assert_eq!(error.place().aid.as_deref(), Some("<redacted>"), "{error}");
    let calls = lab.ask("SELECT parameters, error FROM system.requests").await.unwrap().concat().concat();
    assert!(!calls.contains(CANARY) && calls.contains("aid=<redacted>"), "{calls}");
    let counted = r#"{"search":{"aid":"1"},"overview":{"totalMentions":1,"languages":[{"name":"CANARY-7F3A-KEY","count":1}]},
        "mentions":{"total":1,"items":[{"id":"1","publishedAt":"2026-06-30T12:00:00Z","language":"de"}]}}"#;
    let lab = Lab::new(0, Warp::No, vec![answer(200, counted); 9]);
    let sql = "SELECT count(*) FROM mentions WHERE aid = '1' AND language = 'de'";
    let error = lab.ask(sql).await.map_or_else(|error| error.to_string(), |_| String::new());
    let notes = lab.ask("SELECT message FROM system.warnings").await.unwrap().concat().concat();
    assert!(notes.contains("<redacted>") && !format!("{notes}{error}").contains("CANARY"), "{notes} {error}");
}

#[tokio::test(start_paused = true)]
async fn an_escaped_echo_is_the_same_echo() {
    let body = r#"{"search":{"aid":"1"},"window":{"timezone":"Europe\/Berlin"},"mentions":{"total":0,"items":[]}}"#;
    let lab = Lab::new(0, Warp::No, vec![answer(200, body)]);
    let sql = "SELECT id FROM mentions WHERE aid = '1' AND timezone = 'Europe/Berlin'";
    assert!(lab.ask(sql).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_pauses_keeps_nobody_else_waiting() {
    use futures::StreamExt;
    let lab = Lab::new(10_000, Warp::No, Vec::new());
    let frame = lab.context.sql("SELECT id FROM mentions WHERE aid IN ('1', '2', '3')").await.unwrap();
    let mut paused = frame.execute_stream().await.unwrap();
    paused.next().await.unwrap().unwrap();
    for _ in 0..5 {
        assert_eq!(lab.ask("SELECT id FROM mentions WHERE aid = '4' LIMIT 500").await.unwrap().len(), 500);
    }
}

#[tokio::test(start_paused = true)]
async fn filters_that_the_service_ignores_are_applied_here() {
    let lab = Lab::new(350, Warp::LanguageIgnored, Vec::new());
    let rows = lab.ask("SELECT id FROM mentions WHERE aid = '1' AND language = 'en'").await.unwrap();
    assert_eq!(rows.len(), 175);
}

#[tokio::test(start_paused = true)]
async fn clamped_pages_are_read_to_the_end() {
    let lab = Lab::new(350, Warp::Clamped(40), Vec::new());
    assert_eq!(lab.scan().await.unwrap(), 350);
    let mut profile = Profile::v4();
    profile.page.beyond = datafusion_saved_search::profile::Oversize::Clamped;
    let lab = Lab::with(350, Warp::Clamped(40), Vec::new(), profile);
    assert_eq!(lab.scan().await.unwrap(), 350);
    assert_eq!(lab.requests(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_total_that_changes_is_not_believed_until_a_pass_agrees_with_it() {
    let mut profile = Profile::v4();
    profile.window.absolute = None;
    let lab = Lab::with(350, Warp::No, Vec::new(), profile);
    lab.liar.totals.lock().unwrap().extend([351; 7]);
    let sql = "EXPLAIN ANALYZE SELECT id FROM mentions WHERE aid = '1'";
    let shown = lab.ask(sql).await.unwrap().concat().concat();
    let all = ["output_rows=350", "passes_repeated=1"];
    assert!(all.iter().all(|part| shown.contains(part)), "{shown}");
    let asked = lab.requests();
    let sql = "SELECT verdict FROM system.requests WHERE verdict IS NOT NULL";
    assert_eq!(lab.ask(sql).await.unwrap(), [["repaired: the total changed, 1 further pass; 350 of 350 (total)"]]);
    // Four pages, three more because of the larger total, and four again.
    assert_eq!(asked, 11);
}

#[tokio::test(start_paused = true)]
async fn a_total_that_is_too_low_shows_on_the_last_page() {
    let lab = Lab::new(350, Warp::No, Vec::new());
    lab.liar.totals.lock().unwrap().extend([310; 40]);
    assert_eq!(lab.scan().await.expect_err("the total is too low").kind(), ErrorKind::Incomplete);
}

#[tokio::test(start_paused = true)]
async fn a_total_that_ends_with_a_full_page_is_not_the_end() {
    // Once, on the first page; and on all pages, as from a service that caps its totals.
    for (total, pages) in [(100, 1), (199, 2), (199, 40)] {
        let mut profile = Profile::v4();
        profile.window.absolute = None;
        let lab = Lab::with(350, Warp::No, Vec::new(), profile);
        lab.liar.totals.lock().unwrap().extend(vec![total; pages]);
        match lab.scan().await {
            Ok(rows) => assert_eq!(rows, 350),
            Err(error) => assert_eq!((error.kind(), pages), (ErrorKind::Incomplete, 40), "{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_relative_period_is_held_after_the_first_page() {
    let lab = Lab::new(350, Warp::Growing, Vec::new());
    assert_eq!(lab.scan().await.unwrap(), 350);
    assert_eq!(lab.requests(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_declared_depth_is_not_overrun() {
    let mut profile = Profile::v4();
    profile.depth.rows = Some(300);
    // A window cannot be cut if the service supports only relative periods.
    profile.window.absolute = None;
    let lab = Lab::with(350, Warp::No, Vec::new(), profile);
    let error = lab.scan().await.expect_err("too deep");
    assert_eq!(error.kind(), ErrorKind::TooDeep, "{error}");
    assert!(error.to_string().contains("350 mentions match, but paging reaches only 300"), "{error}");
    // The second request looks for values to split by.
    assert_eq!(lab.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_service_without_totals_is_read_until_a_page_is_empty() {
    let text = include_str!("../../src/profile/builtin/v4.toml")
        .replace("trust = \"exact\"", "trust = \"advisory\"")
        .replace("relation = \"/mentions/totalRelation\"", "# relation");
    let mut profile = Profile::parse(&text, "test").unwrap();
    // This service ignores the window.
    let lab = Lab::with(350, Warp::No, Vec::new(), profile.clone());
    let error = lab.scan().await.expect_err("mentions from outside the cut window");
    assert!(error.to_string().contains("the response contains mentions outside the requested period"), "{error}");
    profile.window.absolute = None;
    let lab = Lab::with(350, Warp::No, Vec::new(), profile);
    assert_eq!(lab.scan().await.unwrap(), 350);
    // Four pages, and two with only the last row.
    assert_eq!(lab.requests(), 6);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_query_holds() {
    let lab = Lab::new(350, Warp::No, vec![answer(503, ""); 99]);
    lab.context.sql("SET savedsearch.query_deadline = 1").await.unwrap();
    let begun = tokio::time::Instant::now();
    lab.scan().await.expect_err("deadline exceeded");
    assert!(begun.elapsed() <= Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn dropping_a_result_ends_its_requests() {
    use futures::StreamExt;
    let lab = Lab::new(10_000, Warp::No, Vec::new());
    let frame = lab.context.sql("SELECT id FROM mentions WHERE aid = '1'").await.unwrap();
    let mut stream = frame.execute_stream().await.unwrap();
    stream.next().await.unwrap().unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    let asked = lab.requests();
    assert!(asked <= 9, "{asked} requests for two pages");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(lab.requests(), asked);
}

/// Serves the same response to every request. If `hangs`, the body stops half-way and the connection stays open.
async fn raw_service(encoding: &'static str, body: Vec<u8>, hangs: bool) -> SessionContext {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 4096]).await;
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: {encoding}\r\n\
                 Content-Length: {}\r\n\r\n",
                body.len()
            );
            let sent = if hangs { body.len() / 2 } else { body.len() };
            let _ = socket.write_all(head.as_bytes()).await;
            let _ = socket.write_all(&body[..sent]).await;
            if hangs {
                std::future::pending::<()>().await;
            }
        }
    });
    let connection = Connection::builder(format!("http://{address}/v4"), Secret::new(CANARY).unwrap()).build().unwrap();
    session(&connection).unwrap()
}

async fn list_error(context: &SessionContext) -> Error {
    let frame = context.sql("SELECT aid FROM saved_searches").await.unwrap();
    Error::find(&frame.collect().await.expect_err("the query fails")).unwrap().clone()
}

#[tokio::test]
async fn a_body_that_unpacks_to_gigabytes_is_refused() {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..200 {
        packed.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    let error = list_error(&raw_service("gzip", packed.finish().unwrap(), false).await).await;
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(error.to_string().contains("exceeds 128 MiB after decompression"), "{error}");
    let error = list_error(&raw_service("identity", vec![b' '; 33 << 20], false).await).await;
    assert!(error.to_string().contains("exceeds 32 MiB on the wire"), "{error}");
}

#[tokio::test]
async fn every_encoding_is_unpacked() {
    use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZstdEncoder};
    use tokio::io::AsyncWriteExt;
    let body = br#"{"data":{"savedSearches":[{"aid":"1"},{"aid":"2"}],"teamSavedSearches":null}}"#;
    let mut gzip = GzipEncoder::new(Vec::new());
    let mut brotli = BrotliEncoder::new(Vec::new());
    let mut zstd = ZstdEncoder::new(Vec::new());
    for encoder in [&mut gzip as &mut (dyn tokio::io::AsyncWrite + Unpin), &mut brotli, &mut zstd] {
        encoder.write_all(body).await.unwrap();
        encoder.shutdown().await.unwrap();
    }
    // A body that was compressed in two pieces.
    let half = body.len() / 2;
    let mut pieces = [Vec::new(), Vec::new()];
    for part in [&body[..half], &body[half..]] {
        let (mut gzip, mut zstd) = (GzipEncoder::new(Vec::new()), ZstdEncoder::new(Vec::new()));
        for encoder in [&mut gzip as &mut (dyn tokio::io::AsyncWrite + Unpin), &mut zstd] {
            encoder.write_all(part).await.unwrap();
            encoder.shutdown().await.unwrap();
        }
        pieces[0].extend(gzip.into_inner());
        pieces[1].extend(zstd.into_inner());
    }
    let [gzips, zstds] = pieces;
    let cases = [
        ("identity", body.to_vec()),
        ("gzip", gzip.into_inner()),
        ("br", brotli.into_inner()),
        ("zstd", zstd.into_inner()),
        ("gzip", gzips),
        ("zstd", zstds),
    ];
    each_async(cases, async |(encoding, packed)| {
        let context = raw_service(encoding, packed, false).await;
        let batches = context.sql("SELECT aid FROM saved_searches").await.unwrap().collect().await.unwrap();
        assert_eq!(rows(&batches), [["1"], ["2"]], "{encoding}");
    })
    .await;
    let error = list_error(&raw_service("compress", body.to_vec(), false).await).await;
    assert!(error.to_string().contains("unsupported content encoding `compress`"), "{error}");
}

#[tokio::test]
async fn a_body_that_never_ends_is_timed_out() {
    let context = raw_service("identity", vec![b' '; 1000], true).await;
    context.sql("SET savedsearch.request_timeout = 1").await.unwrap();
    context.sql("SET savedsearch.query_deadline = 2").await.unwrap();
    let error = list_error(&context).await;
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}

/// A self-signed certificate with its key, made for this test only.
const SELF_SIGNED: &[u8] = include_bytes!("../fixtures/self_signed.pem");

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused_at_once() {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificates = CertificateDer::pem_slice_iter(SELF_SIGNED).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(SELF_SIGNED).unwrap();
    let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tried, agreed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (accepted, shaken) = (Arc::clone(&tried), Arc::clone(&agreed));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            accepted.fetch_add(1, Ordering::Relaxed);
            shaken.fetch_add(u64::from(acceptor.accept(socket).await.is_ok()), Ordering::Relaxed);
        }
    });
    let connection =
        Connection::builder(format!("https://localhost:{}/v4", address.port()), Secret::new(CANARY).unwrap());
    let error = list_error(&session(&connection.build().unwrap()).unwrap()).await;
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Tls, 1), "{error}");
    assert_eq!((tried.load(Ordering::Relaxed), agreed.load(Ordering::Relaxed)), (1, 0), "{error}");
}

/// To another host or another scheme: the key is not sent there.
#[tokio::test]
async fn no_redirect_is_followed_wherever_it_leads() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let elsewhere = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let reached = Arc::new(AtomicU64::new(0));
    let address = elsewhere.local_addr().unwrap();
    let count = Arc::clone(&reached);
    tokio::spawn(async move {
        while elsewhere.accept().await.is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    each_async(["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"], async |status| {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v4", listener.local_addr().unwrap());
        let answer = format!("HTTP/1.1 {status}\r\nLocation: http://{address}/v4/list\r\nContent-Length: 0\r\n\r\n");
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let _ = socket.read(&mut [0; 4096]).await;
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        });
        let connection = Connection::builder(base, Secret::new(CANARY).unwrap()).build().unwrap();
        let error = list_error(&session(&connection).unwrap()).await;
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::Redirect, 1), "{error}");
    })
    .await;
    assert_eq!(reached.load(Ordering::Relaxed), 0);
}

/// A lone surrogate in a name that the query does not select.
#[tokio::test(start_paused = true)]
async fn a_broken_name_in_the_list_keeps_nobody_from_the_aids() {
    let list = r#"{"data": {"savedSearches": [{"aid": "1", "name": "whole"}, {"aid": "2", "name": "half \ud83d"}],
        "teamSavedSearches": []}}"#;
    let lab = Lab::new(0, Warp::No, vec![Trick::Answer(200, vec![], list)]);
    let aids = lab.context.sql("SELECT aid FROM saved_searches ORDER BY 1").await.unwrap().collect().await.unwrap();
    assert_eq!(rows(&aids), [["1"], ["2"]]);
}
