//! Counts from the overview are used only if they add up and the response is to the request that was sent.

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use datafusion_saved_search::{Error, ErrorKind, Profile, Secret, session};
use serde_json::{Value, json};

use crate::support::{Answer, Asked, Scripted, now, ok, rows};

/// A service with 250 mentions, one per minute, whose responses a test may alter. Languages are en, de and none in
/// turn, sources s0 to s12.
struct Service {
    bend: fn(&mut Value),
    /// Set to sort mentions in the reverse of the requested order.
    backwards: bool,
}

const MENTIONS: usize = 250;

fn language(row: usize) -> Option<&'static str> {
    [Some("en"), Some("de"), None][row % 3]
}

fn source(row: usize) -> String {
    format!("s{}", row % 13)
}

fn published(row: usize) -> chrono::DateTime<chrono::Utc> {
    now() - chrono::Duration::minutes(2_000) + chrono::Duration::minutes(i64::try_from(row).unwrap())
}

fn named(of: impl Fn(usize) -> Option<String>) -> Vec<Value> {
    let mut counts = std::collections::BTreeMap::new();
    (0..MENTIONS).filter_map(of).for_each(|name| *counts.entry(name).or_insert(0) += 1);
    counts.into_iter().map(|(name, count)| json!({"name": name, "count": count})).collect()
}

impl Service {
    fn answer(&self, asked: &Asked) -> Answer {
        let asked = &asked.parameters;
        let number = |name: &str| asked[name].parse::<usize>().unwrap();
        let (from, size) = (number("dataFrom"), number("dataSize"));
        let descending = asked.get("sortBy").is_some_and(|sort| sort == "date_desc") != self.backwards;
        let item = |at: usize| {
            let row = if descending { MENTIONS - 1 - at } else { at };
            json!({"id": row.to_string(), "publishedAt": published(row), "language": language(row),
                "source": {"name": source(row)}, "sentiment": {"label": "neutral"}})
        };
        let (start, end) = match asked["duration"].split_once("..") {
            Some((from, to)) => (from.to_owned(), to.to_owned()),
            None => ("2026-06-24T12:00:00Z".to_owned(), "2026-07-01T12:00:00Z".to_owned()),
        };
        let sources = named(|row| Some(source(row)));
        let mut body = json!({
            "search": {"aid": asked["aid"]},
            "window": {"timezone": asked["timezone"], "from": start, "to": end},
            "overview": {
                "totalMentions": MENTIONS,
                "sentiment": {"positive": 0, "neutral": MENTIONS, "negative": 0, "unknown": 0},
                "languages": named(|row| language(row).map(str::to_owned)),
                "countries": [],
                "topSources": sources[..10],
                "otherCount": sources[10..].iter().map(|entry| entry["count"].as_u64().unwrap()).sum::<u64>(),
                "volume": [{"start": "2026-06-30T00:00:00Z", "end": "2026-07-01T00:00:00Z", "count": MENTIONS}],
            },
        });
        if size > 0 {
            let items: Vec<_> = (from..(from + size).min(MENTIONS)).map(item).collect();
            body["mentions"] = json!({"total": MENTIONS, "from": from, "items": items});
        }
        (self.bend)(&mut body);
        ok(&body)
    }
}

struct Lab(Arc<Scripted>, SessionContext);

impl Lab {
    fn new(bend: fn(&mut Value)) -> Self {
        Self::with(bend, false, Profile::v4())
    }

    fn with(bend: fn(&mut Value), backwards: bool, profile: Profile) -> Self {
        let service = Scripted::new(move |asked| Service { bend, backwards }.answer(asked));
        let context = session(&service.connect(Secret::new("key").unwrap(), profile)).unwrap();
        Self(service, context)
    }

    async fn ask(&self, sql: &str) -> Result<(Vec<Vec<String>>, u64), Error> {
        let before = self.0.requests();
        let batches = self.1.sql(sql).await.unwrap().collect().await;
        let batches = batches.map_err(|error| Error::find(&error).unwrap_or_else(|| panic!("{error}")).clone())?;
        Ok((rows(&batches), self.0.requests() - before))
    }
}

const COUNT: &str = "SELECT count(*) FROM mentions WHERE aid = '1'";
const LANGUAGES: &str = "SELECT language, count(*) FROM mentions WHERE aid = '1' GROUP BY 1 ORDER BY 1";
const SOURCES: &str =
    "SELECT count(*), sum(n) FROM (SELECT source, count(*) n FROM mentions WHERE aid = '1' GROUP BY source)";
const DAYS: &str = "SELECT published_at::date, count(*) FROM mentions WHERE aid = '1' GROUP BY 1";

fn table(rows: &[&[&str]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
}

#[tokio::test]
async fn numbers_that_add_up_take_one_request() {
    let lab = Lab::new(|_| ());
    assert_eq!(lab.ask(COUNT).await.unwrap(), (table(&[&["250"]]), 1));
    let languages = table(&[&["de", "83"], &["en", "84"], &["NULL", "83"]]);
    // Mentions missing from the list may have any language, or none: they are read, starting with the page that came
    // with the list.
    assert_eq!(lab.ask(LANGUAGES).await.unwrap(), (languages, 3));
    let whole =
        Lab::new(|body| body["overview"]["languages"].as_array_mut().unwrap().push(json!({"name": "fr", "count": 83})));
    let sql = format!("{} HAVING language <> 'x'", LANGUAGES.replace(" ORDER BY 1", ""));
    let (rows, _) = whole.ask(&sql).await.unwrap();
    assert!(rows.iter().all(|row| row[0] != "fr"), "the page disproves the list: {rows:?}");
    assert_eq!(lab.ask(DAYS).await.unwrap(), (table(&[&["2026-06-30", "250"]]), 1));
}

/// Days are counted in the session's zone, whatever zone the query requests, and a note says so.
#[tokio::test]
async fn days_are_counted_beside_another_zone_of_the_request() {
    let lab = Lab::new(|_| ());
    let sql = DAYS.replace(" GROUP BY", " AND timezone = 'Asia/Tokyo' GROUP BY");
    assert_eq!(lab.ask(&sql).await.unwrap(), (table(&[&["2026-06-30", "250"]]), 1));
    let notes = lab.ask("SELECT message FROM system.warnings").await.unwrap().0.concat().concat();
    assert!(notes.contains("published_at AT TIME ZONE 'Asia/Tokyo'"), "{notes}");
    assert!(!notes.contains("one by one"), "{notes}");
}

/// The engine checks that a column without NULL stays one.
#[tokio::test]
async fn counted_days_may_be_united_and_aggregated_again() {
    let lab = Lab::new(|_| ());
    let sql = format!("SELECT day, sum(n) FROM ({DAYS} UNION ALL {DAYS}) AS d (day, n) GROUP BY day");
    assert_eq!(lab.ask(&sql).await.unwrap(), (table(&[&["2026-06-30", "500"]]), 1));
}

#[tokio::test]
async fn a_list_that_leaves_some_out_costs_no_more_than_reading() {
    let lab = Lab::new(|_| ());
    // Ten of thirteen sources are listed. The list came with the first page, which is not requested again.
    assert_eq!(lab.ask(SOURCES).await.unwrap(), (table(&[&["13", "250"]]), 3));
}

#[tokio::test]
async fn numbers_that_do_not_add_up_are_not_believed() {
    let relation: fn(&mut Value) = |body| body["overview"]["totalRelation"] = json!("gte");
    let total: fn(&mut Value) = |body| body["overview"]["totalMentions"] = json!(null);
    let languages: fn(&mut Value) = |body| body["overview"]["languages"][0]["count"] = json!(300);
    let volume: fn(&mut Value) = |body| body["overview"]["volume"][0]["count"] = json!(249);
    let three = table(&[&["de", "83"], &["en", "84"], &["NULL", "83"]]);
    for (bend, sql, right) in [
        (relation, COUNT, table(&[&["250"]])),
        (total, COUNT, table(&[&["250"]])),
        (volume, DAYS, table(&[&["2026-06-30", "250"]])),
    ] {
        // One request whose counts are rejected, and three pages.
        assert_eq!(Lab::new(bend).ask(sql).await.unwrap(), (right, 4), "{sql}");
    }
    // A list comes with the first page.
    assert_eq!(Lab::new(languages).ask(LANGUAGES).await.unwrap(), (three, 3));
    let lab = Lab::new(relation);
    lab.1.sql("SET savedsearch.count_from_overview = 'always'").await.unwrap();
    assert_eq!(lab.ask(COUNT).await.unwrap().1, 1, "approximate counts are allowed");
    lab.1.sql("SET savedsearch.count_from_overview = 'never'").await.unwrap();
    assert_eq!(lab.ask(COUNT).await.unwrap().1, 3, "counted from mentions");
}

#[tokio::test]
async fn an_answer_to_another_question_is_an_error_that_names_the_profile() {
    // Lists that count other values prove nothing, so that the mentions are read. The first page has others, so that they are read
    // without the filter.
    let ignored = Lab::new(|_| ()).ask(&format!("{COUNT} AND language = 'en'")).await.unwrap();
    assert_eq!(ignored, (table(&[&["84"]]), 4));
    let window = Lab::new(|body| body["window"]["from"] = json!("2026-01-01T00:00:00Z"));
    let sql = format!("{COUNT} AND published_at >= '2026-06-01'");
    let window = window.ask(&sql).await.expect_err("the window was ignored");
    assert!(window.to_string().contains("[window]") && window.kind() == ErrorKind::Contradiction, "{window}");
    let backwards = Lab::with(|_| (), true, Profile::v4());
    let sql = "SELECT max(published_at) FROM mentions WHERE aid = '1'";
    let backwards = backwards.ask(sql).await.expect_err("the sort order was ignored");
    assert!(backwards.to_string().contains("[sort]") && backwards.kind() == ErrorKind::Contradiction, "{backwards}");
}

#[tokio::test]
async fn the_first_mention_in_an_order_is_one_request_and_tells_the_number() {
    let lab = Lab::new(|_| ());
    let last = published(MENTIONS - 1).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let sql = "SELECT max(published_at), count(*) FROM mentions WHERE aid = '1'";
    assert_eq!(lab.ask(sql).await.unwrap(), (table(&[&[&last, "250"]]), 1));
    // Without totals in the responses, the mentions are read.
    let mut profile = Profile::v4();
    profile.total.trust = datafusion_saved_search::profile::Trust::Advisory;
    // This service ignores the window.
    profile.window.absolute = None;
    let lab = Lab::with(|_| (), false, profile);
    let (answer, requests) = lab.ask(sql).await.unwrap();
    assert_eq!(answer, table(&[&[&last, "250"]]));
    assert!(requests > 3, "{requests} requests are too few to read all mentions");
}

#[tokio::test]
async fn the_entry_of_a_list_for_mentions_without_a_value_stands_for_null() {
    let lab = Lab::new(|body| {
        body["overview"]["sentiment"] = json!({"positive": 0, "neutral": 200, "negative": 0, "unknown": 50});
    });
    let sql = "SELECT sentiment, count(*) FROM mentions WHERE aid = '1' GROUP BY 1 ORDER BY 1";
    assert_eq!(lab.ask(sql).await.unwrap(), (table(&[&["neutral", "200"], &["NULL", "50"]]), 1));
}
