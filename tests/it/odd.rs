//! Services whose responses contradict themselves, or say in passing that they are not everything: the rows are right, or the error
//! is typed. A service is honest but for one change.

mod days;
mod filters;
mod lists;
mod texts;
mod totals;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use datafusion::prelude::SessionContext;
use datafusion_saved_search::client::HttpService;
use datafusion_saved_search::profile::ColumnType;
use datafusion_saved_search::{Clock, Connection, Error, ErrorKind, Profile, Secret, session};
use serde_json::{Value, json};

use crate::support::{Asked, Scripted, ask, each_async, now, ok};

/// Mentions of the service, one in 40 minutes.
const MENTIONS: usize = 600;
/// Three days with 108 mentions, two pages of them.
const THREE_DAYS: &str = "aid = '1' AND published_at >= '2026-06-20' AND published_at < '2026-06-23'";
/// Twelve days with 432 mentions.
const TWELVE_DAYS: &str = "aid = '1' AND published_at >= '2026-06-14' AND published_at < '2026-06-26'";

#[derive(Clone, Copy)]
struct Mention {
    number: usize,
    at: DateTime<Utc>,
    language: &'static str,
    country: &'static str,
    reach: usize,
}

fn corpus() -> Vec<Mention> {
    let first = "2026-06-12T00:03:00Z".parse::<DateTime<Utc>>().unwrap();
    let of = |number: usize| Mention {
        number,
        at: first + TimeDelta::minutes(40 * i64::try_from(number).unwrap()),
        language: ["en", "de", "fr", "en", "es"][number * 7 % 5],
        country: ["DE", "US", "FR"][number / 5 % 3],
        reach: number * 7_919 % 100_003,
    };
    (0..MENTIONS).map(of).collect()
}

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The requested period.
fn period(asked: &Asked) -> (DateTime<Utc>, DateTime<Utc>) {
    match asked.text("duration").split_once("..") {
        Some((from, to)) => (instant(from), instant(to)),
        None => (now() - TimeDelta::days(asked.text("duration").trim_end_matches('d').parse().unwrap()), now()),
    }
}

fn is_any_of(value: &str, values: &str) -> bool {
    values.is_empty() || values.split(',').any(|of| of == value)
}

/// The mentions of a request, in its order.
fn matching(asked: &Asked) -> Vec<Mention> {
    let (from, to) = period(asked);
    let mut all = corpus();
    all.retain(|mention| from <= mention.at && mention.at < to);
    all.retain(|mention| is_any_of(mention.language, asked.text("language")));
    all.retain(|mention| is_any_of(mention.country, asked.text("country")));
    if asked.text("sortBy").starts_with("reach") {
        all.sort_by_key(|mention| mention.reach);
    }
    if asked.text("sortBy").ends_with("_desc") {
        all.reverse();
    }
    all
}

/// A timeline of a period, with these mentions.
fn timeline(of: &[Mention], (from, to): (DateTime<Utc>, DateTime<Utc>)) -> Value {
    let last = (to - TimeDelta::microseconds(1)).date_naive();
    let days = from.date_naive().iter_days().take_while(|day| *day <= last);
    let bucket = |day: chrono::NaiveDate| {
        let count = of.iter().filter(|mention| mention.at.date_naive() == day).count();
        let start = |day: chrono::NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
        json!({"start": start(day), "end": start(day + Days::new(1)), "count": count})
    };
    days.map(bucket).collect()
}

fn listed(of: &[Mention], value: impl Fn(&Mention) -> &'static str) -> Value {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    of.iter().for_each(|mention| *counts.entry(value(mention)).or_default() += 1);
    counts.into_iter().map(|(name, count)| json!({"name": name, "count": count})).collect()
}

/// The overview of these mentions.
fn overview(asked: &Asked, of: &[Mention]) -> Value {
    json!({
        "totalMentions": of.len(), "volume": timeline(of, period(asked)),
        "languages": listed(of, |mention| mention.language), "countries": listed(of, |mention| mention.country),
    })
}

/// The page of these mentions that a request asks for.
fn page(asked: &Asked, of: &[Mention]) -> Value {
    let item = |mention: &Mention| {
        json!({
            "id": mention.number.to_string(), "publishedAt": mention.at, "url": format!("https://x.test/{}", mention.number),
            "language": mention.language, "country": mention.country, "reach": mention.reach,
            "text": format!("text {}", mention.number), "source": {"name": "x.test"},
        })
    };
    let (from, size) = (asked.number("dataFrom"), asked.number("dataSize"));
    let items: Vec<Value> = of.iter().skip(from).take(size).map(item).collect();
    json!({"total": of.len(), "totalRelation": "eq", "from": from, "items": items})
}

/// The response of the honest service.
fn honest(asked: &Asked) -> Value {
    if asked.list {
        return json!({"data": {"savedSearches": [{"aid": "1"}], "teamSavedSearches": [{"aid": "2"}]}});
    }
    let (of, (from, to)) = (matching(asked), period(asked));
    let mut body = json!({
        "search": {"aid": asked.text("aid")}, "window": {"from": from, "to": to, "timezone": asked.text("timezone")},
        "overview": overview(asked, &of),
    });
    if asked.number("dataSize") > 0 {
        body["mentions"] = page(asked, &of);
    }
    body
}

/// The honest service, whose responses `change` alters.
fn changed(change: impl Fn(&Asked, &mut Value) + Send + Sync + 'static) -> Arc<Scripted> {
    Scripted::new(move |asked| {
        let mut body = honest(asked);
        change(asked, &mut body);
        ok(&body)
    })
}

struct Lab {
    service: Arc<Scripted>,
    context: SessionContext,
}

impl Lab {
    fn new(change: impl Fn(&Asked, &mut Value) + Send + Sync + 'static) -> Self {
        Self::with(Profile::v4(), change)
    }

    fn with(profile: Profile, change: impl Fn(&Asked, &mut Value) + Send + Sync + 'static) -> Self {
        let service = changed(change);
        let connection = service.connect(Secret::new("a-key").unwrap(), profile);
        Self { service, context: session(&connection).unwrap() }
    }

    /// The same with a store.
    fn stored(folder: &Path, change: impl Fn(&Asked, &mut Value) + Send + Sync + 'static) -> Self {
        let service = changed(change);
        let builder = Connection::builder("http://odd.test/v4", Secret::new("a-key").unwrap());
        let builder = builder.service(Arc::clone(&service) as Arc<dyn HttpService>).clock(Clock::fixed(now()));
        let connection = builder.profile(Profile::v4()).store(folder).build().unwrap();
        Self { service, context: session(&connection).unwrap() }
    }

    async fn ask(&self, sql: &str) -> Result<Vec<Vec<String>>, Error> {
        ask(&self.context, sql).await
    }

    async fn fails(&self, sql: &str, texts: &[&str]) {
        let error = self.ask(sql).await.expect_err(sql);
        assert!(matches!(error.kind(), ErrorKind::Incomplete | ErrorKind::Contradiction), "{error}");
        for text in texts {
            assert!(error.to_string().contains(text), "{sql}: {error}\ndoes not contain: {text}");
        }
    }
}

/// Another notation of an honest mention's id.
type Notation = fn(&str) -> Value;

fn write_ids(body: &mut Value, notation: Notation) {
    for item in body.pointer_mut("/mentions/items").and_then(Value::as_array_mut).into_iter().flatten() {
        item["id"] = notation(item["id"].as_str().unwrap());
    }
}

/// Rows of an abandoned pass that have other ids in the next one are not deleted mentions.
#[tokio::test(start_paused = true)]
async fn mentions_whose_ids_change_come_once_or_are_an_error() {
    let notations: [Notation; 4] = [
        |id| json!(format!("tw:{id}")),
        |id| json!(format!("{id} ")),
        |id| json!(format!("ID{id}")),
        |id| json!(id.parse::<u64>().unwrap() + 1_000_000),
    ];
    let columns = ["id, text", "id, url, text", "id, published_at"];
    let both = "published_at >= '2026-06-20' AND published_at < '2026-06-23'";
    let mut cases = Vec::new();
    for notation in notations {
        for (filter, count) in [(THREE_DAYS, 108), (TWELVE_DAYS, 432), (both, 216)] {
            for columns in columns {
                cases.push((notation, format!("SELECT {columns} FROM mentions WHERE {filter}"), count));
            }
            cases.push((notation, format!("SELECT id, text FROM mentions WHERE {filter} LIMIT 105"), 105));
        }
    }
    each_async(cases, async |(notation, sql, count)| {
        // In the first responses, and in every second one.
        for (until, alternates) in [(1, false), (2, false), (4, false), (u64::MAX, true)] {
            let lab = Lab::new(move |asked, body| {
                if asked.number <= until && (!alternates || asked.number % 2 == 0) {
                    write_ids(body, notation);
                }
            });
            match lab.ask(&sql).await {
                Ok(rows) => {
                    let same = |row: &Vec<String>| row[1..].join("|");
                    let distinct: std::collections::BTreeSet<String> = rows.iter().map(same).collect();
                    // The mentions of two saved searches are the same ones.
                    let searches = if sql.contains("aid") { 1 } else { 2 };
                    assert_eq!(rows.len(), count, "{sql} {until}");
                    assert!(distinct.len() * searches >= count, "{sql} {until}: {} distinct", distinct.len());
                }
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Incomplete | ErrorKind::Contradiction), "{error}");
                }
            }
        }
    })
    .await;
    // The error names what is wrong.
    let lab = Lab::new(|asked, body| {
        if asked.number == 1 {
            write_ids(body, |id| json!(format!("tw:{id}")));
        }
    });
    lab.fails(
        &format!("SELECT id, url, text FROM mentions WHERE {THREE_DAYS}"),
        &["different ids", "set `id` of [tables.mentions]"],
    )
    .await;
}

/// The first rows of a sort order, in every form.
fn first_rows() -> Vec<String> {
    [
        "SELECT min(published_at) FROM mentions WHERE {}",
        "SELECT max(reach) FROM mentions WHERE {}",
        "SELECT id FROM mentions WHERE {} ORDER BY published_at LIMIT 2",
        "SELECT id FROM mentions WHERE {} ORDER BY published_at LIMIT 130",
        "SELECT reach FROM mentions WHERE {} ORDER BY reach DESC LIMIT 7",
    ]
    .map(|sql| sql.replace("{}", TWELVE_DAYS))
    .to_vec()
}

/// Leaves out the mentions for which `drop` is true, also of the total.
fn without(asked: &Asked, body: &mut Value, drop: fn(&Mention) -> bool) -> Vec<Mention> {
    let mut rest = matching(asked);
    rest.retain(|mention| !drop(mention));
    if body["mentions"].is_object() {
        body["mentions"] = page(asked, &rest);
    }
    rest
}

#[tokio::test(start_paused = true)]
async fn first_rows_are_refused_if_overview_and_timeline_count_more_mentions() {
    let hidden: [fn(&Mention) -> bool; 2] =
        [|mention| mention.number % 3 == 0, |mention| mention.at < instant("2026-06-16T00:00:00Z")];
    for drop in hidden {
        let lab = Lab::new(move |asked, body| {
            without(asked, body, drop);
        });
        for sql in first_rows() {
            lab.fails(&sql, &["overview and timeline both count 432", "trust = \"advisory\""]).await;
        }
    }
    // The overview agrees with the total, and the timeline alone has the first days.
    let lab = Lab::new(|asked, body| {
        let rest = without(asked, body, |mention| mention.at < instant("2026-06-16T00:00:00Z"));
        body["overview"]["totalMentions"] = json!(rest.len());
    });
    for sql in first_rows().iter().filter(|sql| !sql.contains("reach")) {
        lab.fails(sql, &["the timeline counts mentions before 2026-06-15"]).await;
    }
    let honest = Lab::new(|_, _| {});
    for sql in first_rows() {
        assert!(!honest.ask(&sql).await.unwrap().is_empty(), "{sql}");
    }
    assert_eq!(honest.service.requests(), 1 + 1 + 1 + 2 + 1);
}

#[tokio::test(start_paused = true)]
async fn first_rows_are_refused_if_the_timeline_has_days_of_another_window() {
    let (last_week, asked_for) = (instant("2026-06-21T00:00:00Z"), "from 2026-06-14 00:00:00 UTC");
    let lab = Lab::new(move |asked, body| {
        let mut of = corpus();
        of.retain(|mention| mention.at >= last_week);
        if asked.text("sortBy").starts_with("reach") {
            of.sort_by_key(|mention| mention.reach);
        }
        if asked.text("sortBy").ends_with("_desc") {
            of.reverse();
        }
        body["overview"] = overview(asked, &of);
        body["overview"]["volume"] = timeline(&of, (last_week, now()));
        body["mentions"] = page(asked, &of);
    });
    for sql in first_rows().iter().filter(|sql| !sql.contains("DESC")) {
        lab.fails(sql, &["the timeline counts mentions from 2026-06-28", asked_for, "[window]"]).await;
    }
    lab.fails(&format!("SELECT count(*) FROM mentions WHERE {TWELVE_DAYS}"), &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_with_a_member_that_failed_is_not_whole() {
    let lists = ["SELECT aid FROM saved_searches", "SELECT count(*) FROM mentions"];
    let cases = [
        json!({"data": {"savedSearches": [{"aid": "1"}], "teamSavedSearches": null}, "teamError": "upstream timeout"}),
        json!({"data": {"savedSearches": [{"aid": "1"}], "teamSavedSearches": null, "teamError": "upstream timeout"}}),
        json!({"data": {"savedSearches": [{"aid": "1"}], "teamSavedSearches": []}, "errors": {"team": "timeout"}}),
        json!({"data": {"savedSearches": [{"aid": "1"}], "teamSavedSearches": []}, "unavailable": ["team"]}),
        json!({"data": {"savedSearches": [{"aid": "1"}], "teamSavedSearches": []}, "warnings": ["not all searches could be loaded"]}),
    ];
    each_async(cases, async |list| {
        let body = list.clone();
        let lab = Lab::new(move |asked, response| {
            if asked.list {
                response.clone_from(&body);
            }
        });
        for sql in lists {
            lab.fails(sql, &["incomplete", "[complete] fields"]).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_warning_is_harmless_only_if_its_words_are() {
    let beside = |name: &'static str, value: Value| {
        Lab::new(move |asked, body| {
            if !asked.list {
                body[name] = value.clone();
            }
        })
    };
    let statements =
        ["id FROM mentions WHERE {}", "count(*) FROM mentions WHERE {}", "max(reach) FROM mentions WHERE {}"]
            .map(|sql| format!("SELECT {}", sql.replace("{}", THREE_DAYS)));
    let refused = [
        ("warnings", json!([{"code": "PARTIAL_RESULTS"}])),
        ("warnings", json!(["something was left out"])),
        ("meta", json!({"warnings": [{"code": "PARTIAL_RESULTS", "message": "3 of 5 shards failed"}]})),
        ("pending", json!(true)),
        ("unavailable", json!(["reddit"])),
        ("maxReached", json!(true)),
    ];
    each_async(refused, async |(name, value)| {
        for sql in &statements {
            beside(name, value.clone()).fails(sql, &["says that it is incomplete", name]).await;
        }
    })
    .await;
    let accepted = [
        ("warnings", json!(["parameter x is deprecated"]), false),
        ("warnings", json!(["rate limit: 3 of 60 requests left"]), false),
        ("warnings", json!(["see ticket 4711"]), true),
        ("limited", json!(true), true),
        ("cached", json!(true), false),
    ];
    each_async(accepted, async |(name, value, noted)| {
        for sql in &statements {
            let lab = beside(name, value.clone());
            assert!(lab.ask(sql).await.is_ok(), "{sql}");
            let notes = lab.ask("SELECT message FROM system.warnings").await.unwrap().concat().concat();
            assert_eq!(notes.contains("may say that it is not complete"), noted, "{sql}: {notes}");
        }
    })
    .await;
    // In the overview, whose counts are not those of all mentions then.
    each_async(
        [("state", json!("RUNNING")), ("done", json!(false)), ("errorCount", json!(2))],
        async |(name, value)| {
            let lab = Lab::new(move |asked, body| {
                if !asked.list {
                    body["overview"][name] = value.clone();
                }
            });
            lab.fails(&format!("SELECT count(*) FROM mentions WHERE {THREE_DAYS}"), &["/overview/"]).await;
        },
    )
    .await;
}

/// Days behind a limit of the service are not stored as days without mentions.
#[tokio::test]
async fn a_capped_read_takes_no_stored_mentions_away() {
    const MOST: usize = 300;
    let ends = [("2026-06-14", "2026-06-17"), ("2026-06-23", "2026-06-26")].map(|(from, to)| {
        format!("SELECT id FROM mentions WHERE aid = '1' AND published_at >= '{from}' AND published_at < '{to}'")
    });
    let wide = [
        format!("SELECT sum(reach) FROM mentions WHERE {TWELVE_DAYS}"),
        format!("SELECT published_at::date, count(*) FROM mentions WHERE {TWELVE_DAYS} GROUP BY 1"),
    ];
    for before in [true, false] {
        let folder = tempfile::TempDir::new().unwrap();
        let lab = Lab::stored(folder.path(), |asked, body| {
            let mut of = matching(asked);
            of.truncate(MOST);
            body["overview"] = json!({"totalMentions": of.len()});
            if body["mentions"].is_object() {
                body["mentions"] = page(asked, &of);
            }
        });
        if before {
            for sql in &ends {
                assert_eq!(lab.ask(sql).await.unwrap().len(), 108, "{sql}");
            }
        }
        for sql in wide.iter().chain(&wide) {
            let _ = lab.ask(sql).await;
        }
        for sql in ends.iter().chain(&ends) {
            assert_eq!(lab.ask(sql).await.unwrap().len(), 108, "{before} {sql}");
        }
    }
}

/// Filters of which the service answers two in one request with no mentions.
#[tokio::test(start_paused = true)]
async fn no_mentions_for_two_filters_are_proven() {
    let of = |what: &str, filters: &str| format!("SELECT {what} FROM mentions WHERE {TWELVE_DAYS} AND {filters}");
    let several =
        |asked: &Asked| ["language", "country"].iter().filter(|name| !asked.text(name).is_empty()).count() > 1;
    let broken = || {
        Lab::new(move |asked, body| {
            if !asked.list && several(asked) {
                body["overview"] = overview(asked, &[]);
                if body["mentions"].is_object() {
                    body["mentions"] = page(asked, &[]);
                }
            }
        })
    };
    let both = "language = 'en' AND country = 'DE'";
    for what in ["count(*)", "id", "max(reach)", "country, count(*)"] {
        let group = if what.starts_with("country") { " GROUP BY 1" } else { "" };
        for limit in ["", " LIMIT 3"] {
            let lab = broken();
            let sql = of(what, both) + group + limit;
            lab.fails(&sql, &["no mentions for `language` and `country` in one request", "[filters]"]).await;
            assert!(lab.service.requests() <= 3, "{sql}: {} requests", lab.service.requests());
        }
    }
    // Nothing matches both, and the service combines them. It is asked once.
    let honest = Lab::new(|_, _| {});
    let none = of("count(*)", "language = 'en' AND country = 'XX'");
    assert_eq!(honest.ask(&none).await.unwrap(), [["0"]]);
    assert_eq!(honest.service.requests(), 3);
    assert_eq!(honest.ask(&none).await.unwrap(), [["0"]]);
    assert_eq!(honest.ask(&none.replace("count(*)", "id")).await.unwrap(), Vec::<Vec<String>>::new());
    assert_eq!(honest.service.requests(), 5);
    // Nothing matches one of them.
    let honest = Lab::new(|_, _| {});
    assert_eq!(honest.ask(&of("count(*)", "language = 'xx' AND country = 'DE'")).await.unwrap(), [["0"]]);
    assert_eq!(honest.service.requests(), 2);
    assert_eq!(honest.ask(&of("id", both)).await.unwrap().len(), honest_count(both).await);
}

async fn honest_count(filters: &str) -> usize {
    let sql = format!("SELECT id, language, country FROM mentions WHERE {TWELVE_DAYS}");
    let rows = Lab::new(|_, _| {}).ask(&sql).await.unwrap();
    rows.iter().filter(|row| filters == format!("language = '{}' AND country = '{}'", row[1], row[2])).count()
}

/// A filter that matches more than its value, in another notation or another language: the lists agree with it, and mentions do not.
#[tokio::test(start_paused = true)]
async fn a_count_through_a_filter_is_compared_with_a_page_of_mentions() {
    let lab = Lab::new(|asked, body| {
        if asked.list || asked.text("language") != "en" {
            return;
        }
        // Mentions in French are listed as those in English.
        let (from, to) = period(asked);
        let mut of = corpus();
        of.retain(|mention| from <= mention.at && mention.at < to && ["en", "fr"].contains(&mention.language));
        let mut as_english = of.clone();
        as_english.iter_mut().for_each(|mention| mention.language = "en");
        body["overview"] = overview(asked, &as_english);
        if body["mentions"].is_object() {
            body["mentions"] = page(asked, &of);
        }
    });
    let count = format!("SELECT count(*) FROM mentions WHERE {TWELVE_DAYS} AND language = 'en'");
    let right = Lab::new(|_, _| {}).ask(&count).await.unwrap();
    assert_eq!(lab.ask(&count).await.unwrap(), right);
    let honest = Lab::new(|_, _| {});
    honest.ask(&count).await.unwrap();
    assert_eq!(honest.service.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_rounded_total_is_named_with_what_to_set() {
    let lab = Lab::new(|asked, body| {
        let total = matching(asked).len().next_multiple_of(10);
        body["overview"]["totalMentions"] = json!(total);
        body["mentions"]["total"] = json!(total);
    });
    let sql =
        "SELECT id FROM mentions WHERE aid = '1' AND published_at >= '2026-06-20' AND published_at < '2026-06-21'";
    lab.fails(sql, &["trust = \"advisory\""]).await;
    let blanks = Lab::new(|asked, body| body["search"]["aid"] = json!(format!(" {} ", asked.text("aid"))));
    assert_eq!(blanks.ask(sql).await.unwrap().len(), 36);
}
