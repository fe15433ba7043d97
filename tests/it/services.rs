//! Services that differ from their profile: each difference that a response shows is read correctly, or is a typed error that names
//! the field, what it says, and what to set. What a profile declares is used, with the fewest requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use datafusion::prelude::SessionContext;
use datafusion_saved_search::{Error, ErrorKind, Profile, Secret, session};
use serde_json::{Value, json};

use crate::support::{Answer, Asked, Scripted, ask, each_async, now, ok, rows, status};

struct Lab {
    service: Arc<Scripted>,
    context: SessionContext,
}

impl Lab {
    fn new(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::with("", script)
    }

    /// With these changes of the built-in profile.
    fn with(changes: &str, script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::keyed(Secret::new("a-key").unwrap(), changes, script)
    }

    fn keyed(key: Secret, changes: &str, script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let profile = Profile::parse(&format!("extends = \"v4\"\nname = \"changed\"\n{changes}"), "changed.toml");
        Self::of(key, profile.unwrap(), script)
    }

    /// With relative periods of days alone.
    fn relative(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let text = include_str!("../../src/profile/builtin/v4.toml").replace("absolute = ", "# absolute = ");
        let text = text.replace("relative = [\"h\", \"d\", \"w\"]", "relative = [\"d\"]");
        Self::of(Secret::new("a-key").unwrap(), Profile::parse(&text, "relative.toml").unwrap(), script)
    }

    fn of(key: Secret, profile: Profile, script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let service = Scripted::new(script);
        let connection = service.connect(key, profile);
        Self { service, context: session(&connection).unwrap() }
    }

    async fn ask(&self, sql: &str) -> Result<Vec<Vec<String>>, Error> {
        ask(&self.context, sql).await
    }

    /// The rows of a query, and the number of its requests.
    async fn count(&self, sql: &str) -> (usize, u64) {
        let before = self.service.requests();
        let rows = self.ask(sql).await.unwrap_or_else(|error| panic!("{error}")).len();
        (rows, self.service.requests() - before)
    }

    /// The error of a query, which must be of this kind and contain these texts.
    async fn fails(&self, sql: &str, kind: ErrorKind, texts: &[&str]) -> Error {
        let error = self.ask(sql).await.expect_err(sql);
        assert_eq!(error.kind(), kind, "{error}");
        for text in texts {
            assert!(error.to_string().contains(text), "{error}\ndoes not contain: {text}");
        }
        error
    }

    fn requests(&self) -> u64 {
        self.service.requests()
    }
}

const ALL: &str = "SELECT id FROM mentions WHERE aid = '1'";

/// The time of a mention: one a minute, the first one the oldest.
fn time_of(number: usize) -> DateTime<Utc> {
    now() - TimeDelta::minutes(5_000) + TimeDelta::minutes(i64::try_from(number).unwrap())
}

fn mention(number: usize) -> Value {
    json!({
        "id": format!("m{number}"), "publishedAt": time_of(number).to_rfc3339(), "url": format!("https://x.test/{number}"),
        "source": {"name": "x.test"}, "language": "en", "text": "text",
    })
}

/// The mentions that a request asks for, all of one saved search.
fn selected(asked: &Asked, mentions: &[Value]) -> Vec<Value> {
    let mut all = mentions.to_vec();
    if asked.text("sortBy") == "date_desc" {
        all.reverse();
    }
    all
}

/// The response of a service as the profile describes it.
fn search(asked: &Asked, mentions: &[Value]) -> Value {
    let all = selected(asked, mentions);
    let (from, size) = (asked.number("dataFrom"), asked.number("dataSize"));
    let page: Vec<Value> = all.iter().skip(from).take(size).cloned().collect();
    let mut body = json!({"search": {"aid": asked.text("aid")}, "overview": {"totalMentions": all.len()}});
    if size > 0 {
        body["mentions"] = json!({"total": all.len(), "from": from, "items": page});
    }
    body
}

fn mentions(count: usize) -> Vec<Value> {
    (0..count).map(mention).collect()
}

fn entry(aid: usize) -> Value {
    json!({"aid": aid.to_string(), "name": format!("Topic {aid}")})
}

/// The entries of a page of the list, and the page itself.
fn list(entries: impl Iterator<Item = usize>) -> Value {
    json!({"data": {"savedSearches": entries.map(entry).collect::<Vec<_>>(), "teamSavedSearches": []}})
}

/// A name, and a value for each number.
type Case<T> = (&'static str, fn(usize) -> T);

#[tokio::test(start_paused = true)]
async fn a_list_that_continues_is_an_error_whatever_says_so() {
    type Change = fn(Value, Answer) -> Answer;
    fn body(mut body: Value, change: impl FnOnce(&mut Value)) -> Answer {
        change(&mut body);
        ok(&body)
    }
    let changes: [(&str, Change); 11] = [
        ("`/data/total` is 30, and 10 entries were received", |list, _| {
            body(list, |list| list["data"]["total"] = json!(30))
        }),
        ("`/totalCount` is \"30\"", |list, _| body(list, |list| list["totalCount"] = json!("30"))),
        ("`/paging/next` is", |list, _| body(list, |list| list["paging"] = json!({"next": "/v4/list?dataFrom=10"}))),
        ("`/data/hasMore` is true", |list, _| body(list, |list| list["data"]["hasMore"] = json!(true))),
        ("`/meta/pages` is 3", |list, _| body(list, |list| list["meta"] = json!({"page": 1, "pages": 3}))),
        ("`/_links/next` is", |list, _| {
            body(list, |list| list["_links"] = json!({"next": {"href": "/v4/list?page=2"}}))
        }),
        ("`/endCursor` is", |list, _| body(list, |list| list["endCursor"] = json!("abc"))),
        ("`/message` is", |list, _| body(list, |list| list["message"] = json!("Showing 10 of 30 saved searches"))),
        ("header `link`", |_, answer| answer.with("link", "<https://x.test/v4/list?page=2>; rel=\"next\"")),
        ("header `x-total-count` says 30", |_, answer| answer.with("x-total-count", "30")),
        ("header `content-range` says 30", |_, answer| answer.with("content-range", "items 0-9/30")),
    ];
    for (says, change) in changes {
        let lab = Lab::new(move |asked| match asked.list {
            true => change(list(0..10), ok(&list(0..10))),
            false => ok(&search(asked, &mentions(3))),
        });
        for sql in ["SELECT aid FROM saved_searches", "SELECT id FROM mentions", "SELECT count(*) FROM mentions"] {
            let error = lab.fails(sql, ErrorKind::Incomplete, &[says, "[list] pages"]).await;
            assert!(error.attempts() <= 1, "{error}");
        }
        assert_eq!(lab.requests(), 3, "{says}: not repeated");
    }
    // Numbers that count something else, and a list that is whole.
    for whole in [
        json!({"total": 10, "limit": 100, "hasMore": false, "next": null}),
        json!({"quota": 5_000, "totalMentions": 900, "perPage": 50, "page": 1, "pages": 1}),
    ] {
        let lab = Lab::new(move |_| {
            let mut list = list(0..10);
            list["meta"] = whole.clone();
            ok(&list).with("link", "<https://x.test/v4/list?page=1>; rel=\"prev\"").with("x-total-count", "10")
        });
        assert_eq!(lab.count("SELECT aid FROM saved_searches").await, (10, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn saved_searches_within_an_entry_are_noted() {
    let notes = "SELECT message FROM system.warnings WHERE message LIKE '%contains aid 7,%'";
    for (within, noted) in [(json!([entry(7)]), 1), (json!([entry(2)]), 0)] {
        let lab = Lab::new(move |_| {
            let mut list = list(1..4);
            list["data"]["savedSearches"][0]["subSearches"] = within.clone();
            ok(&list)
        });
        assert_eq!(lab.count("SELECT aid FROM saved_searches").await, (3, 1));
        assert_eq!(lab.ask(notes).await.unwrap().len(), noted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_saved_search_within_an_entry_may_be_an_entry_of_another_page() {
    let notes = "SELECT message FROM system.warnings WHERE message LIKE '%contains aid %'";
    for (within, noted) in [(12, 0), (2, 0), (77, 1)] {
        let pages = "[list]\npages = { parameter = \"page\", unit = \"page\", first = 1 }\n";
        let lab = Lab::with(pages, move |asked| {
            if !asked.list {
                return ok(&search(asked, &mentions(3)));
            }
            let page = asked.parameters.iter().next().map_or(1, |(_, page)| page.parse::<usize>().unwrap());
            let from = (page - 1) * 10;
            let mut list = list((from..from + 10).take_while(|aid| *aid < 15));
            list["data"]["savedSearches"][0]["subSearches"] = json!([entry(within)]);
            list["paging"] = json!({"hasMore": from < 10});
            ok(&list)
        });
        assert_eq!(lab.count("SELECT aid FROM saved_searches").await, (15, 2));
        assert_eq!(lab.ask(notes).await.unwrap().len(), noted, "{within}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_in_pages_is_read_as_the_profile_says() {
    let read = |pages: &str, next: fn(usize) -> Value| {
        let changes = format!("[list]\npages = {pages}\n");
        Lab::with(&changes, move |asked| {
            if !asked.list {
                return ok(&search(asked, &mentions(3)));
            }
            let from = match asked.parameters.iter().next() {
                Some((name, page)) if name == "page" => (page.parse::<usize>().unwrap() - 1) * 10,
                Some((_, from)) => from.trim_start_matches("at").parse().unwrap(),
                None => 0,
            };
            let mut page = list((from..from + 10).take_while(|aid| *aid < 25));
            page["paging"] = next(from);
            ok(&page)
        })
    };
    let cases: [Case<Value>; 4] = [
        (r#"{ parameter = "from", unit = "row" }"#, |_| json!({"total": 25})),
        (r#"{ parameter = "page", unit = "page", first = 1 }"#, |from| json!({"hasMore": from < 20})),
        (r#"{ parameter = "cursor", unit = "cursor", next = "/paging/next" }"#, |from| match from {
            20 => json!({"total": 25}),
            _ => json!({"next": format!("at{}", from + 10), "total": 25}),
        }),
        (r#"{ parameter = "cursor", unit = "cursor", next = "/paging/next" }"#, |from| match from {
            20 => Value::Null,
            _ => json!({"next": format!("https://x.test/v4/list?cursor=at{}", from + 10)}),
        }),
    ];
    for (pages, next) in cases {
        let lab = read(pages, next);
        assert_eq!(lab.count("SELECT aid FROM saved_searches").await, (25, 3), "{pages}");
        assert_eq!(lab.count("SELECT aid, id FROM mentions").await, (75, 3 + 25), "{pages}");
        assert_eq!(lab.count("SELECT aid FROM saved_searches WHERE name = 'Topic 24'").await, (1, 3), "{pages}");
    }
    // The number of pages, and the number of entries of a page.
    let numbered = r#"{ parameter = "page", unit = "page", first = 1 }"#;
    assert_eq!(read(numbered, |_| json!({"pages": 3})).count("SELECT aid FROM saved_searches").await, (25, 3));
    let own = read(numbered, |from| json!({"count": (25 - from.min(25)).min(10)}));
    assert_eq!(own.count("SELECT aid FROM saved_searches").await, (25, 4));
    // Pages without entries that name the next one.
    let filtered = |last: usize| {
        Lab::with(
            "[list]\npages = { parameter = \"cursor\", unit = \"cursor\", next = \"/paging/next\" }\n",
            move |asked| {
                let page = asked.number("cursor");
                let mut body = if page < 4 { list(0..0) } else { list((page - 4) * 10..(page - 3) * 10) };
                body["paging"]["next"] = if page < last { json!((page + 1).to_string()) } else { Value::Null };
                ok(&body)
            },
        )
    };
    assert_eq!(filtered(6).count("SELECT aid FROM saved_searches").await, (30, 7));
    let endless = Lab::with(
        "[list]\npages = { parameter = \"cursor\", unit = \"cursor\", next = \"/paging/next\" }\n",
        |asked| {
            let mut body = list(0..0);
            body["paging"]["next"] = json!((asked.number("cursor") + 1).to_string());
            ok(&body)
        },
    );
    endless
        .fails("SELECT aid FROM saved_searches", ErrorKind::Incomplete, &["10 pages in a row", "[list] pages"])
        .await;
    assert_eq!(endless.requests(), 10);
    // Nothing says how many there are: another page is requested, and is empty.
    let lab = read(r#"{ parameter = "from", unit = "row" }"#, |_| Value::Null);
    assert_eq!(lab.count("SELECT aid FROM saved_searches").await, (25, 4));
    // The parameter has no effect.
    let lab = Lab::with("[list]\npages = { parameter = \"from\", unit = \"row\" }\n", |_| {
        let mut list = list(0..10);
        list["total"] = json!(25);
        ok(&list)
    });
    lab.fails("SELECT aid FROM saved_searches", ErrorKind::Incomplete, &["`/total` is 25", "check [list] pages"]).await;
    assert_eq!(lab.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn conditions_above_a_total_row_reach_the_other_branches() {
    let lab = Lab::new(|asked| match asked.list {
        true => ok(&list(0..9)),
        false => ok(&search(asked, &mentions(30))),
    });
    let sql = "SELECT * FROM (SELECT aid, count(*) AS n FROM mentions GROUP BY aid UNION ALL \
               SELECT 'all', count(*) FROM mentions WHERE aid = '2') q WHERE aid = '1'";
    assert_eq!(lab.ask(sql).await.unwrap(), [["1", "30"]]);
    let seen = lab.service.seen();
    assert!(seen.iter().all(|asked| ["1", "2"].contains(&asked.get("aid").map_or("", String::as_str))), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_not_ready_is_waited_for() {
    let pending = |until: u64| {
        Lab::new(move |asked| {
            if asked.number <= until {
                let nothing = search(asked, &[]);
                return status(202, &nothing).with("retry-after", "1");
            }
            ok(&search(asked, &mentions(30)))
        })
    };
    let begun = tokio::time::Instant::now();
    assert_eq!(pending(2).count(ALL).await, (30, 3));
    assert!(begun.elapsed().as_secs() >= 2);
    assert_eq!(pending(1).ask("SELECT count(*) FROM mentions WHERE aid = '1'").await.unwrap(), [["30"]]);
    pending(99).fails(ALL, ErrorKind::Unavailable, &["202 Accepted"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_response_that_says_that_it_is_incomplete_is_no_result() {
    let lab = |changes: &str, sign: Value| {
        Lab::with(changes, move |asked| {
            let mut body = if asked.list { list(0..3) } else { search(asked, &mentions(30)) };
            body.as_object_mut().unwrap().extend(sign.as_object().unwrap().clone());
            ok(&body)
        })
    };
    each_async(
        [
            (json!({"errors": [{"code": "SHARD_FAILED"}]}), "`/errors` is [{\"code\":\"SHARD_FAILED\"}]"),
            (json!({"timed_out": true}), "`/timed_out` is true"),
            (json!({"_shards": {"total": 5, "failed": 2, "successful": 3}}), "`/_shards/"),
            (json!({"meta": {"partial": true}}), "`/meta/partial` is true"),
            (json!({"incompleteResults": true}), "`/incompleteResults` is true"),
            (json!({"status": "PARTIAL"}), "`/status` is \"PARTIAL\""),
            (json!({"fault": {"faultstring": "a policy was violated"}}), "`/fault"),
        ],
        async |(sign, text)| {
            let lab = lab("", sign);
            for sql in [ALL, "SELECT count(*) FROM mentions WHERE aid = '1'", "SELECT aid FROM saved_searches"] {
                let error = lab.fails(sql, ErrorKind::Incomplete, &[text, "[complete] fields"]).await;
                assert_eq!(error.attempts(), 3, "{error}");
            }
        },
    )
    .await;
    // Headers say it as well.
    let told = |header, value| Lab::new(move |asked| ok(&search(asked, &mentions(30))).with(header, value));
    for header in ["x-partial-results", "x-search-incomplete"] {
        for sql in [ALL, "SELECT count(*) FROM mentions WHERE aid = '1'"] {
            told(header, "true").fails(sql, ErrorKind::Unavailable, &[header, "a part of the result"]).await;
        }
        assert_eq!(told(header, "false").count(ALL).await, (30, 1));
    }
    let warns = || told("warning", "299 - \"Result incomplete: 2 of 5 shards failed\"");
    let part = || Lab::new(|asked| status(206, &search(asked, &mentions(30))));
    for sql in [ALL, "SELECT count(*) FROM mentions WHERE aid = '1'"] {
        warns().fails(sql, ErrorKind::Unavailable, &["`warning` says 299", "a part of the result"]).await;
        part().fails(sql, ErrorKind::Unavailable, &["206 Partial Content"]).await;
    }
    assert_eq!(told("warning", "299 - \"this version will be unavailable soon\"").count(ALL).await, (30, 1));
    // Some services send each page with the range of its rows.
    let ranged = Lab::new(|asked| status(206, &search(asked, &mentions(30))).with("content-range", "items 0-29/30"));
    assert_eq!(ranged.count(ALL).await, (30, 1));
    // A cache tells how old its response is, and an empty response nothing.
    for sql in [ALL, "SELECT count(*) FROM mentions WHERE aid = '1'"] {
        told("age", "21600").fails(sql, ErrorKind::Unavailable, &["from a cache", "360 min old"]).await;
        let silent = Lab::new(|_| status(204, &Value::Null));
        silent.fails(sql, ErrorKind::Malformed, &["204 (no content)"]).await;
    }
    assert_eq!(told("age", "60").count(ALL).await, (30, 1));
    // The profile says which values mean a complete response.
    let whole = "[complete]\nfields = [{ at = \"/timed_out\", values = [\"false\"] }, { at = \"/partial\" }]\n";
    assert_eq!(lab(whole, json!({"timed_out": false, "partial": true})).count(ALL).await, (30, 1));
    lab(whole, json!({"timed_out": "some"})).fails(ALL, ErrorKind::Incomplete, &["`/timed_out` is \"some\""]).await;
    // Errors of the profile in an array, and a field that stands for them.
    let array = "[error]\ncode = \"/errors/0/code\"\nmessage = \"/errors/0/message\"\n";
    let error = json!({"errors": [{"code": "SHARD_FAILED", "message": "3 of 5"}]});
    lab(array, error.clone()).ask(ALL).await.expect_err("an error beside the data");
    let inside = format!("{array}inside_success = true\n");
    lab(&inside, error).fails(ALL, ErrorKind::Unavailable, &["SHARD_FAILED: 3 of 5"]).await;
    assert_eq!(lab(&inside, json!({"errors": []})).count(ALL).await, (30, 1));
    let flag = "[error]\ncode = \"/timed_out\"\nmessage = \"/timed_out\"\ninside_success = true\n";
    assert_eq!(lab(flag, json!({"timed_out": false})).count(ALL).await, (30, 1));
    lab(flag, json!({"timed_out": true})).ask(ALL).await.expect_err("a failure");
}

#[tokio::test(start_paused = true)]
async fn a_section_that_is_null_was_not_read() {
    let lab = |number: usize, overview: Value| {
        Lab::new(move |asked| {
            let mut body = search(asked, &mentions(number));
            body["overview"] = overview.clone();
            ok(&body)
        })
    };
    each_async(
        [
            (Value::Null, "SELECT total_mentions FROM overview WHERE aid = '1'"),
            (json!({"totalMentions": 30, "volume": null}), "SELECT mentions FROM volume WHERE aid = '1'"),
        ],
        async |(overview, sql)| {
            lab(30, overview).fails(sql, ErrorKind::Contradiction, &["are null"]).await;
        },
    )
    .await;
    // What is optional may be null as well as absent, and a value that is absent is NULL.
    let few = || json!({"totalMentions": 30, "sentiment": null});
    let sentiment = "SELECT mentions FROM breakdowns WHERE aid = '1' AND dimension = 'sentiment'";
    assert_eq!(lab(30, few()).ask(sentiment).await.unwrap().len(), 0);
    let authors = "SELECT unique_authors FROM overview WHERE aid = '1'";
    assert_eq!(lab(30, few()).ask(authors).await.unwrap(), [["NULL"]]);
    // A saved search without mentions has no days.
    let none = json!({"totalMentions": 0, "volume": null});
    assert_eq!(lab(0, none).ask("SELECT mentions FROM volume WHERE aid = '1'").await.unwrap().len(), 0);
}

/// The mentions are the whole body, and their number is in a header.
#[tokio::test(start_paused = true)]
async fn a_total_may_be_in_a_header() {
    const PROFILE: &str = "[search]\nheaders = [\"X-Total-Count\"]\n[total]\nat = \"/headers/X-Total-Count\"\n\
        [counts]\ndays = false\nlists = []\n[tables.mentions]\nsections = [{ at = \"/body\" }]\n\
        [tables.overview]\nsections = [{ at = \"/headers\", shape = \"record\" }]\nignore = []\ncolumns = [\n\
        { name = \"aid\", type = \"utf8\", null = false, from = \"aid\" },\n\
        { name = \"total_mentions\", type = \"int64\", at = \"/X-Total-Count\" },\n\
        { name = \"total_relation\", type = \"utf8\", at = \"/relation\" },\n]\n";
    let page = |asked: &Asked, number: usize| {
        let (from, size) = (asked.number("dataFrom"), asked.number("dataSize"));
        selected(asked, &mentions(number)).into_iter().skip(from).take(size).collect::<Value>()
    };
    let lab = || Lab::with(PROFILE, move |asked| ok(&page(asked, 250)).with("x-total-count", "250"));
    assert_eq!(lab().count(ALL).await, (250, 3));
    for sql in ["SELECT count(*) FROM mentions WHERE aid = '1'", "SELECT total_mentions FROM overview WHERE aid = '1'"]
    {
        assert_eq!(lab().ask(sql).await.unwrap(), [["250"]], "{sql}");
    }
    // Without the header, there is no total, as if the body lacked it.
    let silent = Lab::with(PROFILE, move |asked| ok(&page(asked, 250)));
    silent.fails(ALL, ErrorKind::Contradiction, &["no total"]).await;
    // An error is read as it is.
    let refused = Lab::with(PROFILE, |_| status(400, &json!({"error": {"code": "X1", "message": "not so"}})));
    refused.fails(ALL, ErrorKind::Rejected, &["X1: not so"]).await;
}

/// A header may repeat the address of the request, with the key in it, and a column may read that header.
#[tokio::test(start_paused = true)]
async fn a_header_with_the_key_reaches_no_row() {
    const PROFILE: &str = "[search]\nheaders = [\"X-Total-Count\", \"X-Address\"]\n[total]\nat = \"/headers/X-Total-Count\"\n\
        [counts]\ndays = false\nlists = []\n[tables.mentions]\nsections = [{ at = \"/body\" }]\n\
        [tables.overview]\nsections = [{ at = \"/headers\", shape = \"record\" }]\nignore = []\ncolumns = [\n\
        { name = \"aid\", type = \"utf8\", null = false, from = \"aid\" },\n\
        { name = \"total_mentions\", type = \"int64\", at = \"/X-Total-Count\" },\n\
        { name = \"total_relation\", type = \"utf8\", at = \"/relation\" },\n\
        { name = \"address\", type = \"utf8\", at = \"/X-Address\" },\n]\n";
    let key = "a-key-of-many-letters";
    let lab = Lab::keyed(Secret::new(key).unwrap(), PROFILE, move |asked| {
        let page: Value = selected(asked, &mentions(3)).into_iter().take(asked.number("dataSize")).collect();
        ok(&page).with("x-total-count", "3").with("x-address", &format!("/search?key={key}&aid=1"))
    });
    let address = lab.ask("SELECT address FROM overview WHERE aid = '1'").await.unwrap();
    assert_eq!(address, [["/search?key=<redacted>&aid=1"]]);
}

/// The values of a list that a service uses.
type Used = fn(Vec<&str>) -> Vec<&str>;

fn bilingual(used: Used) -> Lab {
    speaking(&["de", "en", "en"], used)
}

/// A service with mentions in these languages in turn, one a minute, which uses some of the requested values.
fn speaking(names: &'static [&'static str], used: Used) -> Lab {
    Lab::new(move |asked| {
        let languages = asked.parameters.get("language").map(|values| used(values.split(',').collect()));
        let count = if asked.text("duration").starts_with("2020") { 0 } else { 30 };
        let mentions = (0..count).map(|number| {
            let mut mention = mention(number + 4_960);
            mention["language"] = json!(names[number % names.len()]);
            mention
        });
        let takes = |mention: &Value| {
            languages.as_ref().is_none_or(|values| values.iter().any(|value| mention["language"] == **value))
        };
        ok(&search(asked, &mentions.filter(takes).collect::<Vec<_>>()))
    })
}

#[tokio::test(start_paused = true)]
async fn lists_of_values_are_proven_to_be_used_completely() {
    let of = |what: &str, list: &str| format!("SELECT {what} FROM mentions WHERE aid = '1' AND language IN ({list})");
    let partly: [Used; 4] = [
        |values| values[..1].to_vec(),
        |values| values[values.len() - 1..].to_vec(),
        |values| if values.len() > 1 { Vec::new() } else { values },
        |values| values.into_iter().take(2).collect(),
    ];
    for (case, used) in partly.into_iter().enumerate() {
        let list = if case == 3 { "'aa', 'bb', 'de', 'en'" } else { "'de', 'en'" };
        for sql in [of("id", list), of("count(*)", list), of("max(reach)", list), of("id", list) + " LIMIT 3"] {
            bilingual(used)
                .fails(&sql, ErrorKind::Contradiction, &["does not use all values", "`language`", "several"])
                .await;
        }
    }
    // The list that shows it is as long as the first one.
    for what in ["id", "count(*)"] {
        let lab = speaking(&["aa", "bb", "cc", "dd", "ee"], |values| values.into_iter().take(3).collect());
        let sql = of(what, "'aa', 'bb', 'cc', 'dd', 'ee'");
        lab.fails(&sql, ErrorKind::Contradiction, &["does not use all values", "several"]).await;
    }
    // Values at both ends have mentions.
    let lab = bilingual(|values| values);
    assert_eq!(lab.count(&of("id", "'de', 'ee', 'en'")).await, (30, 1));
    // Behind an OFFSET there are none, but the list has some.
    for list in ["'de', 'ee', 'en'", "'de', 'xx'"] {
        let sql = of("id", list) + " ORDER BY published_at DESC OFFSET 40";
        assert!(bilingual(|values| values).ask(&sql).await.unwrap().is_empty(), "{sql}");
    }
    // One end has none: a list that ends with the other one. It is asked for once.
    let lab = bilingual(|values| values);
    assert_eq!(lab.count(&of("id", "'de', 'xx'")).await, (10, 2));
    assert_eq!(lab.count(&of("id", "'en', 'yy'")).await, (20, 1));
    assert_eq!(lab.count(&of("id", "'en', 'yy', 'zz'")).await, (20, 2));
    // A window without mentions proves nothing about the next one.
    let lab = bilingual(|values| values[..1].to_vec());
    let old = of("id", "'de', 'en'") + " AND published_at >= '2020-01-01' AND published_at < '2020-01-02'";
    assert_eq!(lab.ask(&old).await.unwrap().len(), 0);
    lab.fails(&of("id", "'de', 'en'"), ErrorKind::Contradiction, &["does not use all values"]).await;
    // None of the values has: a mention with another one, and a list with that at each end.
    assert_eq!(bilingual(|values| values).count(&of("id", "'xx', 'yy'")).await, (0, 4));
}

/// A profile whose pages of mentions name the next one.
const CURSORS: &str = "[offset]\nparameter = \"after\"\nunit = \"cursor\"\nnext = \"/paging/next\"\n";

/// The page of mentions after a cursor, with that of the next one: pages of these sizes in turn, or as requested.
fn after_cursor(asked: &Asked, mentions: &[Value], sizes: &[usize]) -> Value {
    let all = selected(asked, mentions);
    let from: usize = asked.text("after").trim_start_matches("at").parse().unwrap_or_default();
    let turns = (0..).scan(0, |row, turn: usize| {
        let size = sizes.get(turn % sizes.len().max(1)).copied().unwrap_or(asked.number("dataSize"));
        let first = *row;
        *row += size.min(asked.number("dataSize"));
        Some((first, *row))
    });
    let end = turns.take_while(|(first, _)| *first <= from).last().map_or(all.len(), |(_, end)| end);
    let end = if sizes.is_empty() { from + asked.number("dataSize") } else { end };
    let page: Vec<Value> = all.iter().take(end).skip(from).cloned().collect();
    let next = (end < all.len()).then(|| format!("at{end}"));
    json!({
        "search": {"aid": asked.text("aid")}, "overview": {"totalMentions": all.len()},
        "mentions": {"total": all.len(), "items": page}, "paging": {"next": next},
    })
}

#[tokio::test(start_paused = true)]
async fn pages_that_name_the_next_one_are_followed() {
    let lab = |change: fn(&Asked, &mut Value), sizes: &'static [usize]| {
        Lab::with(CURSORS, move |asked| {
            let mut body = after_cursor(asked, &mentions(250), sizes);
            change(asked, &mut body);
            ok(&body)
        })
    };
    let newest = |limit: usize| {
        format!(
            "SELECT DISTINCT id FROM (SELECT id FROM mentions WHERE aid = '1' ORDER BY published_at DESC LIMIT {limit})"
        )
    };
    let plain = lab(|_, _| {}, &[]);
    assert_eq!(plain.count("SELECT DISTINCT id FROM mentions WHERE aid = '1'").await, (250, 3));
    let sent = plain.service.seen();
    let sent: Vec<&str> = sent.iter().map(|sent| sent.get("after").map_or("", String::as_str)).collect();
    assert_eq!(sent, ["", "at100", "at200"]);
    // A limit reads as many pages as it needs, and an offset is counted here.
    for (limit, requests) in [(5, 1), (100, 1), (101, 2), (900, 3)] {
        let lab = lab(|_, _| {}, &[]);
        assert_eq!(lab.count(&newest(limit)).await, (limit.min(250), requests), "LIMIT {limit}");
    }
    let skipping = lab(|_, _| {}, &[]);
    let second = "SELECT id FROM mentions WHERE aid = '1' ORDER BY published_at DESC LIMIT 1 OFFSET 150";
    assert_eq!((skipping.ask(second).await.unwrap(), skipping.requests()), (vec![vec!["m99".to_owned()]], 2));
    // Of a link, the parameter alone is sent, since a link may have the key.
    let linked = |_: &Asked, body: &mut Value| {
        if let Some(next) = body["paging"]["next"].as_str() {
            body["paging"]["next"] = json!(format!("https://x.test/v4/search?aid=1&apikey=a-key&after={next}"));
        }
    };
    let links = lab(linked, &[]);
    assert_eq!(links.count(ALL).await, (250, 3));
    assert!(links.service.seen().iter().all(|sent| !sent.contains_key("apikey")));
    let nameless = |_: &Asked, body: &mut Value| body["paging"]["next"] = json!("https://x.test/v4/search?page=2");
    lab(nameless, &[]).fails(ALL, ErrorKind::Contradiction, &["no parameter `after`", "[offset]"]).await;
    // Pages of any size: the sum is compared with the total.
    assert_eq!(lab(|_, _| {}, &[100, 30, 1]).count("SELECT DISTINCT id FROM mentions WHERE aid = '1'").await, (250, 5));
    // Without a total, pages are read twice, unless the profile says that nothing moves them.
    let untold = |body: &mut Value| {
        body["mentions"].as_object_mut().unwrap().remove("total");
        body.as_object_mut().unwrap().remove("overview");
    };
    for (sizes, stable, requests) in [(&[] as &[usize], false, 6), (&[70], false, 8), (&[], true, 3), (&[70], true, 4)]
    {
        let profile = format!("{CURSORS}stable = {stable}\n[total]\ntrust = \"advisory\"\n");
        let lab = Lab::with(&profile, move |asked| {
            let mut body = after_cursor(asked, &mentions(250), sizes);
            untold(&mut body);
            ok(&body)
        });
        assert_eq!(lab.count(ALL).await, (250, requests), "{sizes:?}, stable: {stable}");
    }
    // A service that keeps the place, under one cursor.
    let place = AtomicU64::new(0);
    let kept = Lab::with(CURSORS, move |asked| {
        let mut asked = asked.clone();
        let from = if asked.parameters.contains_key("after") { place.load(Ordering::Relaxed) } else { 0 };
        place.store(from + 100, Ordering::Relaxed);
        asked.parameters.insert("after".to_owned(), format!("at{from}"));
        let mut body = after_cursor(&asked, &mentions(250), &[]);
        if body["paging"]["next"].is_string() {
            body["paging"]["next"] = json!("the-same");
        }
        ok(&body)
    });
    assert_eq!(kept.count("SELECT DISTINCT id FROM mentions WHERE aid = '1'").await, (250, 3));
    // A first page without mentions that names the next one.
    let late = Lab::with(CURSORS, move |asked| {
        let mut body = after_cursor(asked, &mentions(250), &[]);
        if asked.text("after").is_empty() {
            body["mentions"]["items"] = json!([]);
            body["paging"]["next"] = json!("at0");
        }
        ok(&body)
    });
    assert_eq!(late.count("SELECT DISTINCT id FROM mentions WHERE aid = '1'").await, (250, 4));
}

#[tokio::test(start_paused = true)]
async fn pages_that_a_filter_left_empty_are_not_the_end() {
    // A page of the service has 20 mentions, of which those from the 100th on match.
    let lab = |stable: bool, last: usize| {
        let profile = format!("{CURSORS}stable = {stable}\n[total]\ntrust = \"advisory\"\n");
        Lab::with(&profile, move |asked| {
            let from: usize = asked.text("after").trim_start_matches("at").parse().unwrap_or_default();
            let page = mentions(140).into_iter().skip(from).take(20).skip(if from < 100 { 20 } else { 0 });
            let mut body =
                json!({"search": {"aid": asked.text("aid")}, "mentions": {"items": page.collect::<Vec<_>>()}});
            body["paging"]["next"] = if from + 20 < last { json!(format!("at{}", from + 20)) } else { Value::Null };
            ok(&body)
        })
    };
    assert_eq!(lab(true, 140).count(ALL).await, (40, 7));
    assert_eq!(lab(false, 140).count(ALL).await.0, 40);
    // Each page names another one, without an end.
    let endless = lab(true, usize::MAX);
    endless.fails(ALL, ErrorKind::Incomplete, &["distinct mentions received"]).await;
    assert!(endless.requests() <= 20, "{}", endless.requests());
}

#[tokio::test(start_paused = true)]
async fn pages_that_name_a_wrong_next_one_are_an_error() {
    let lab = |change: fn(&Asked, &mut Value)| {
        Lab::with(CURSORS, move |asked| {
            let mut body = after_cursor(asked, &mentions(250), &[]);
            change(asked, &mut body);
            ok(&body)
        })
    };
    // Without a total, cursors that end early are seen in a window of the rest.
    for (next, deep) in [("/paging/next", 200), ("/elsewhere", 100)] {
        let profile = CURSORS.replace("/paging/next", next) + "[total]\ntrust = \"advisory\"\n";
        let lab = Lab::with(&profile, move |asked| {
            let within: Vec<Value> = mentions(250).into_iter().filter(|mention| asked.covers(mention)).collect();
            let mut body = after_cursor(asked, &within, &[]);
            body["mentions"].as_object_mut().unwrap().remove("total");
            body.as_object_mut().unwrap().remove("overview");
            if asked.text("after") == format!("at{}", deep - 100) || deep == 100 {
                body["paging"]["next"] = Value::Null;
            }
            ok(&body)
        });
        let range = format!("{ALL} AND published_at >= '{}' AND published_at < '{}'", time_of(0), time_of(250));
        let asked = lab.ask(&range.replace(" UTC", "Z")).await.map(|rows| rows.len());
        assert!(asked.as_ref().map_or(true, |rows| *rows == 250), "{next}: {asked:?}");
        assert!(lab.requests() <= 40, "{}", lab.requests());
    }
    // The chain ends early, a page lacks mentions, or a cursor is that of the first page or of the page itself.
    let early = |asked: &Asked, body: &mut Value| {
        if asked.text("after") == "at100" {
            body["paging"]["next"] = Value::Null;
        }
    };
    lab(early).fails(ALL, ErrorKind::Incomplete, &["200 distinct mentions received", "250"]).await;
    let hidden = |asked: &Asked, body: &mut Value| {
        if asked.text("after") == "at100" {
            body["mentions"]["items"].as_array_mut().unwrap().remove(7);
        }
    };
    lab(hidden).fails(ALL, ErrorKind::Incomplete, &["249 distinct mentions received", "250"]).await;
    let first = |_: &Asked, body: &mut Value| body["paging"]["next"] = json!("at0");
    lab(first).fails(ALL, ErrorKind::Contradiction, &["repeats rows"]).await;
    let same = |asked: &Asked, body: &mut Value| {
        if asked.text("after") == "at100" {
            body["paging"]["next"] = json!("at100");
        }
    };
    let stuck = lab(same);
    stuck.fails(ALL, ErrorKind::Incomplete, &["200 distinct mentions received"]).await;
    assert!(stuck.requests() <= 9, "{}", stuck.requests());
    // All came, and a next page is named: it is asked for.
    let further = |_: &Asked, body: &mut Value| {
        if body["paging"]["next"].is_null() {
            body["paging"]["next"] = json!("at250");
        }
    };
    let further = lab(further);
    let asked = further.ask(ALL).await.map(|rows| rows.len());
    assert!(asked.is_err() || asked.as_ref().is_ok_and(|rows| *rows == 250), "{asked:?}");
    assert!(further.requests() <= 12, "{}", further.requests());
}

#[tokio::test(start_paused = true)]
async fn mentions_that_a_response_says_to_follow_are_looked_for() {
    let lab = |count: usize, more: fn(usize, usize) -> Value| {
        Lab::new(move |asked| {
            let mut body = search(asked, &mentions(count));
            body["mentions"]["hasMore"] = more(asked.number("dataFrom") + asked.number("dataSize"), count);
            ok(&body)
        })
    };
    lab(30, |_, _| json!(true)).fails(ALL, ErrorKind::Incomplete, &["`/mentions/hasMore` is true", "[complete]"]).await;
    // The page behind shows that there are none.
    assert_eq!(lab(30, |_, _| json!(false)).count(ALL).await, (30, 1));
    assert_eq!(lab(100, |end, count| json!(end <= count)).count(ALL).await, (100, 2));
    // A header may be sent with every page. The number of mentions that the service has, of which it tells 30.
    let linked = |has: usize| {
        Lab::new(move |asked| {
            let mut body = search(asked, &mentions(has));
            body["mentions"]["items"].as_array_mut().unwrap().truncate(30);
            body["mentions"]["total"] = json!(30);
            body["overview"]["totalMentions"] = json!(30);
            ok(&body).with("link", "<https://x.test/v4/search?page=2>; rel=\"next\"")
        })
    };
    linked(60).fails(ALL, ErrorKind::Incomplete, &["header `link`", "more come"]).await;
    assert_eq!(linked(30).count(ALL).await, (30, 2));
}

#[tokio::test(start_paused = true)]
async fn a_period_that_the_service_ignores_is_noticed() {
    let lab = |days: i64, dated: bool| {
        Lab::new(move |asked| {
            let mut old = mention(0);
            old["publishedAt"] = json!((now() - TimeDelta::days(days)).to_rfc3339());
            let answer = ok(&search(asked, &[old, mention(4_999)]));
            let date = now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
            if dated { answer.with("date", &date) } else { answer }
        })
    };
    let week = "SELECT id FROM mentions WHERE aid = '1' AND duration = '7d'";
    lab(20, true).fails(week, ErrorKind::Contradiction, &["but `7d` was requested", "[window]"]).await;
    // Periods may begin with a day of any zone. Without a date, the clocks may differ.
    assert_eq!(lab(8, true).count(week).await, (2, 1));
    assert_eq!(lab(20, false).count(week).await, (2, 1));
}

#[tokio::test(start_paused = true)]
async fn windows_that_begin_after_their_first_instant_are_noticed() {
    let lab = |included: bool| {
        Lab::new(move |asked| {
            let (from, to) = asked.text("duration").split_once("..").unwrap();
            let (from, to): (DateTime<Utc>, DateTime<Utc>) = (from.parse().unwrap(), to.parse().unwrap());
            let within = |at: DateTime<Utc>| (from < at || (included && at == from)) && at <= to;
            let mentions = (0..5_000).filter(|number| within(time_of(*number))).map(mention);
            ok(&search(asked, &mentions.collect::<Vec<_>>()))
        })
    };
    let bound = |minutes: i64| (now() - TimeDelta::minutes(minutes)).to_rfc3339();
    let (from, to) = (bound(100), bound(50));
    let sql = format!("SELECT id FROM mentions WHERE aid = '1' AND published_at >= '{from}' AND published_at < '{to}'");
    lab(false).fails(&sql, ErrorKind::Contradiction, &["which should be excluded", "[window]"]).await;
    assert_eq!(lab(true).count(&sql).await, (50, 1));
}

#[tokio::test(start_paused = true)]
async fn overview_and_timeline_together_outweigh_the_total() {
    let lab = Lab::new(|asked| {
        let mut body = search(asked, &mentions(30));
        body["overview"] = json!({"totalMentions": 45, "volume": [{"start": "2026-06-30T00:00:00Z", "count": 45}]});
        ok(&body)
    });
    lab.fails(ALL, ErrorKind::Incomplete, &["30 distinct mentions received", "its timeline counts 45"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_window_is_reported_in_any_notation() {
    let lab = |from: Value, to: Value| {
        Lab::new(move |asked| {
            let mut body = search(asked, &mentions(30));
            body["window"] = json!({"from": from, "to": to});
            ok(&body)
        })
    };
    // One day of thirty: as counts of seconds and milliseconds, as local times, with a space.
    let cut = [
        (json!(1_782_820_800), json!(1_782_907_200)),
        (json!(1_782_820_800_000_i64), json!(1_782_907_200_000_i64)),
        (json!("2026-06-30T12:00:00"), json!("2026-07-01T12:00:00")),
        (json!("2026-06-30 12:00:00"), json!("2026-07-01 12:00:00")),
    ];
    for (from, to) in cut {
        for what in ["id", "count(*)"] {
            let sql = format!("SELECT {what} FROM mentions WHERE aid = '1' AND duration = '30d'");
            lab(from.clone(), to.clone())
                .fails(&sql, ErrorKind::Contradiction, &["requested 30 days", "[window]"])
                .await;
        }
    }
    let month = "SELECT id FROM mentions WHERE aid = '1' AND duration = '30d'";
    assert_eq!(lab(json!("2026-06-01 12:00:00"), json!("2026-07-01 12:00:00")).count(month).await, (30, 1));
    // Days may include the last one or not.
    assert_eq!(lab(json!("2026-06-01"), json!("2026-07-01")).count(month).await, (30, 1));
    // The words that were requested, or numbers of something else.
    assert_eq!(lab(json!("-30d"), json!("now")).count(month).await, (30, 1));
    assert_eq!(lab(json!(0), json!(30)).count(month).await, (30, 1));
    let invalid = lab(json!("2026-13-01T12:00:00"), json!("2026-07-01T12:00:00"));
    invalid.fails(month, ErrorKind::Contradiction, &["`2026-13-01T12:00:00` is no instant", "[echo]"]).await;
}

#[tokio::test(start_paused = true)]
async fn counts_of_another_window_are_refused_in_every_table() {
    let lab = Lab::new(|asked| {
        let mut body = search(asked, &mentions(30));
        body["window"] = json!({"from": "2026-06-24T12:00:00Z", "to": "2026-07-01T12:00:00Z"});
        body["overview"]["volume"] = json!([{"start": "2026-06-30T00:00:00Z", "count": 30}]);
        body["overview"]["topSources"] = json!([{"name": "x.test", "count": 30}]);
        ok(&body)
    });
    let period = "aid = '1' AND duration = '2026-06-28T00:00:00Z..2026-06-29T00:00:00Z'";
    for table in ["overview", "volume", "breakdowns", "mentions"] {
        let sql = format!("SELECT count(*) FROM {table} WHERE {period}");
        lab.fails(&sql, ErrorKind::Contradiction, &["requested 2026-06-28", "2026-06-24"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_pass_is_not_repeated() {
    each_async(
        [
            ("no JSON", ErrorKind::Malformed, 2),
            (r#"{"search":{"aid":"2"},"mentions":{"total":0,"items":[]}}"#, ErrorKind::Contradiction, 2),
            (r#"{"search":{"aid":"1"},"mentions":{"total":0}}"#, ErrorKind::Contradiction, 1),
        ],
        async |(body, kind, requests)| {
            let lab = Lab::new(move |_| Answer::text(200, body));
            lab.fails(ALL, kind, &[]).await;
            assert_eq!(lab.requests(), requests, "{body}");
        },
    )
    .await;
}

/// A service whose mentions have their times written otherwise.
fn written(changes: &str, write: fn(&mut Value, DateTime<Utc>)) -> Lab {
    Lab::with(changes, move |asked| {
        let written = (0..30).map(|number| {
            let mut mention = mention(number + 4_960);
            write(&mut mention, time_of(number + 4_960));
            mention
        });
        ok(&search(asked, &written.collect::<Vec<_>>()))
    })
}

const NEWEST: &str = "SELECT max(published_at) FROM mentions WHERE aid = '1'";

#[tokio::test(start_paused = true)]
async fn times_are_read_as_they_are_meant_or_contradict() {
    let newest = [[time_of(4_989).format("%Y-%m-%dT%H:%M:%SZ").to_string()]];
    let compact =
        |mention: &mut Value, at: DateTime<Utc>| mention["publishedAt"] = json!(at.format("%Y%m%d%H%M%S").to_string());
    assert_eq!(written("", compact).ask(NEWEST).await.unwrap(), newest);
    let number = |mention: &mut Value, at: DateTime<Utc>| {
        mention["publishedAt"] = json!(at.format("%Y%m%d%H%M%S").to_string().parse::<u64>().unwrap());
    };
    assert_eq!(written("", number).ask(NEWEST).await.unwrap(), newest);
    // Local times of Tokyo, without a zone.
    let tokyo = |mention: &mut Value, at: DateTime<Utc>| {
        mention["publishedAt"] = json!((at + TimeDelta::hours(9)).format("%Y-%m-%dT%H:%M:%S").to_string());
    };
    let texts = ["`published_at` has no time zone", "8 h ahead of the service's clock", "set `zone`"];
    written("", tokyo).fails(ALL, ErrorKind::Contradiction, &texts).await;
    let column = |more: &str| {
        format!(
            "[tables.mentions]\ncolumns = [\n{}]\n",
            Profile::builtin_document("v4")
                .unwrap()
                .split_once("[tables.mentions]")
                .unwrap()
                .1
                .split_once("columns = [\n")
                .unwrap()
                .1
                .split_once("\n]")
                .unwrap()
                .0
                .replace("at = \"/publishedAt\" }", &format!("at = \"/publishedAt\", {more} }}"))
                + "\n"
        )
    };
    assert_eq!(written(&column("zone = \"Asia/Tokyo\""), tokyo).ask(NEWEST).await.unwrap(), newest);
    assert_eq!(written(&column("zone = \"+09:00\""), tokyo).ask(NEWEST).await.unwrap(), newest);
    // With a zone in the text, times after the end of the period contradict it, unless the profile declares the zone.
    let ahead = |mention: &mut Value, at: DateTime<Utc>| {
        mention["publishedAt"] = json!((at + TimeDelta::hours(9)).to_rfc3339())
    };
    written("", ahead).fails(ALL, ErrorKind::Contradiction, &["but the period `7d` ends at"]).await;
    assert_eq!(written(&column("zone = \"UTC\""), ahead).count(ALL).await, (30, 1));
    // A placeholder is after the end of any period, whatever the profile declares and however the other times are written.
    let placeholder = |mention: &mut Value, at: DateTime<Utc>| {
        let placeholder = json!("9999-12-31T23:59:59Z");
        mention["publishedAt"] = if at == time_of(4_989) { placeholder } else { json!(at.to_rfc3339()) };
    };
    let beside_local = |mention: &mut Value, at: DateTime<Utc>| {
        let (placeholder, local) = (json!("9999-12-31T23:59:59Z"), at.format("%Y-%m-%dT%H:%M:%S").to_string());
        mention["publishedAt"] = if at == time_of(4_989) { placeholder } else { json!(local) };
    };
    let texts = ["a mention of 9999-12-31 23:59:59 UTC", "but the period `7d` ends at"];
    written("", placeholder).fails(ALL, ErrorKind::Contradiction, &texts).await;
    written(&column("zone = \"UTC\""), placeholder).fails(ALL, ErrorKind::Contradiction, &texts).await;
    written("", beside_local).fails(ALL, ErrorKind::Contradiction, &texts).await;
    // The day and the time in fields of their own.
    let apart = |mention: &mut Value, at: DateTime<Utc>| {
        mention["publishedAt"] = json!(at.format("%Y-%m-%d").to_string());
        mention["publishedTime"] = json!(at.format("%H:%M:%S").to_string());
    };
    let texts = ["`published_at` is a day without a time", "`/publishedTime`", "time_at"];
    written("", apart).fails(ALL, ErrorKind::Contradiction, &texts).await;
    assert_eq!(written(&column("time_at = \"/publishedTime\""), apart).ask(NEWEST).await.unwrap(), newest);
}

#[tokio::test(start_paused = true)]
async fn one_id_of_two_mentions_is_a_contradiction() {
    let lab = |change: fn(usize, &mut Value)| {
        Lab::new(move |asked| {
            let mut all = mentions(300);
            all.iter_mut().enumerate().for_each(|(number, mention)| change(number, mention));
            ok(&search(asked, &all))
        })
    };
    let some = "SELECT id, url FROM mentions WHERE aid = '1' LIMIT 150";
    let by_source = lab(|number, mention| mention["id"] = json!((number / 2).to_string()));
    by_source
        .fails(some, ErrorKind::Contradiction, &["two mentions have the same id", "`id` of [tables.mentions]"])
        .await;
    // Of one time, with other urls, in different pages.
    let same_time = lab(|number, mention| {
        mention["publishedAt"] = json!(time_of(number / 2).to_rfc3339());
        mention["id"] = json!((number / 2).to_string());
    });
    same_time.fails(some, ErrorKind::Contradiction, &["with different urls or sources"]).await;
    assert_eq!(lab(|_, _| {}).count(some).await.0, 150);
}

#[tokio::test(start_paused = true)]
async fn a_zone_may_have_another_name() {
    let lab = |name: &'static str| {
        Lab::new(move |asked| {
            let mut body = search(asked, &mentions(30));
            body["window"] = json!({"timezone": name});
            ok(&body)
        })
    };
    each_async(["Etc/UTC", "+00:00", "Z", "utc", "UTC+00:00"], async |name| {
        assert_eq!(lab(name).count(ALL).await, (30, 1), "{name}");
    })
    .await;
    let calcutta = "SELECT id FROM mentions WHERE aid = '1' AND timezone = 'Asia/Kolkata'";
    assert_eq!(lab("Asia/Calcutta").count(calcutta).await, (30, 1));
    lab("Europe/London").fails(ALL, ErrorKind::Contradiction, &["requested timezone `UTC`", "`Europe/London`"]).await;
}

#[tokio::test(start_paused = true)]
async fn offsets_that_are_rounded_down_are_seen() {
    let lab = |changes: &str, echoes: bool| {
        Lab::with(changes, move |asked| {
            let mut asked = asked.clone();
            let (from, size) = (asked.number("dataFrom"), asked.number("dataSize").max(1));
            asked.parameters.insert("dataFrom".to_owned(), (from / size * size).to_string());
            let mut body = search(&asked, &mentions(450));
            if !echoes && body["mentions"].is_object() {
                body["mentions"]["from"] = json!(from);
            }
            ok(&body)
        })
    };
    for echoes in [false, true] {
        // Pages that were requested ahead are lost once.
        let seen = lab("", echoes);
        let (rows, requests) = seen.count(ALL).await;
        assert!(rows == 450 && requests <= 10, "{rows} rows in {requests} requests");
        assert_eq!(seen.count(ALL).await, (450, 5), "it is remembered");
        assert_eq!(lab("[offset]\naligned = true\n", echoes).count(ALL).await, (450, 5));
    }
}

#[tokio::test(start_paused = true)]
async fn page_sizes_are_those_that_the_service_accepts() {
    let lab = |changes: &str, accepts: fn(usize) -> bool| {
        Lab::with(changes, move |asked| {
            let size = asked.number("dataSize");
            if size > 0 && !accepts(size) {
                let error =
                    json!({"code": "INVALID_PARAMETER", "message": "dataSize is not accepted", "field": "dataSize"});
                return status(400, &json!({ "error": error }));
            }
            ok(&search(asked, &mentions(450)))
        })
    };
    let five = "SELECT id FROM mentions WHERE aid = '1' ORDER BY published_at DESC LIMIT 5";
    let newest = [[format!("m{}", 449)]];
    let cases: [Case<bool>; 2] = [
        ("[page]\nmin = 10\n", |size| size >= 10),
        ("[page]\nsizes = [10, 25, 50, 100]\n", |size| [10, 25, 50, 100].contains(&size)),
    ];
    for (changes, accepts) in cases {
        // Without the entry, a refusal shows it, once.
        let seen = lab("", accepts);
        assert_eq!(seen.count(five).await, (5, 2));
        assert_eq!(seen.count(five).await, (5, 1));
        let told = lab(changes, accepts);
        assert_eq!(told.count(five).await, (5, 1));
        assert_eq!(told.service.seen()[0]["dataSize"], "10");
        let last = "SELECT id FROM mentions WHERE aid = '1' ORDER BY published_at DESC LIMIT 1";
        assert_eq!(told.ask(last).await.unwrap(), newest);
        assert_eq!(told.count(ALL).await, (450, 5));
    }
    // A refusal of something else is not repeated.
    let lab = Lab::new(|_| status(400, &json!({"error": {"code": "X", "message": "no such aid", "field": "aid"}})));
    lab.fails(five, ErrorKind::Rejected, &["no such aid"]).await;
    assert_eq!(lab.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_is_too_long_for_a_url_is_compared_here() {
    let lab = |changes: &str| {
        Lab::with(changes, |asked| {
            let url: usize = asked.parameters.iter().map(|(name, value)| name.len() + value.len() * 3 + 2).sum();
            match url {
                0..8_000 => ok(&search(asked, &mentions(50))),
                _ => Answer::text(414, "<html>too long</html>"),
            }
        })
    };
    let sql = |values: usize| {
        let values: Vec<String> = (0..values).map(|number| format!("'site-{number:04}.example.org'")).collect();
        format!("SELECT id FROM mentions WHERE aid = '1' AND source IN ('x.test', {})", values.join(", "))
    };
    let long = lab("");
    assert_eq!(long.count(&sql(600)).await, (50, 1));
    assert!(!long.service.seen()[0].contains_key("source"));
    // One more request, since only the last value has mentions.
    assert_eq!(long.count(&sql(20)).await, (50, 2));
    assert!(long.service.seen()[1].contains_key("source"));
    let texts = ["414 URI Too Long", "[filters] longest"];
    lab("[filters]\nlongest = 100000\n").fails(&sql(600), ErrorKind::Rejected, &texts).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_of_values_is_split_if_that_takes_fewer_requests() {
    let sited = |count: usize, every: usize| {
        let of = move |number: usize| {
            let site = if number.is_multiple_of(every) {
                format!("site-{:04}.example.org", number / every % 600)
            } else {
                "x.test".to_owned()
            };
            let mut mention = mention(number);
            mention["source"]["name"] = json!(site);
            mention
        };
        (0..count).map(of).collect::<Vec<Value>>()
    };
    let filtered = |asked: &Asked, all: &[Value]| {
        let sources: Vec<&str> = asked.text("source").split(',').filter(|source| !source.is_empty()).collect();
        let fits =
            |mention: &&Value| sources.is_empty() || sources.contains(&mention["source"]["name"].as_str().unwrap());
        search(asked, &all.iter().filter(fits).cloned().collect::<Vec<_>>())
    };
    let values: Vec<String> = (0..600).map(|number| format!("'site-{number:04}.example.org'")).collect();
    let sql = format!("SELECT id FROM mentions WHERE aid = '1' AND source IN ({})", values.join(", "));
    // Of 3,000 mentions, 30 match: the first page, a request for each of three parts, and one that proves that the service uses
    // such lists completely, instead of 31.
    let few = sited(3_000, 100);
    let lab = Lab::new(move |asked| ok(&filtered(asked, &few)));
    assert_eq!(lab.count(&sql).await, (30, 5));
    let longest = lab.service.seen().iter().filter_map(|sent| sent.get("source")).map(String::len).max();
    assert!(longest.is_some_and(|longest| longest < 6_000), "{longest:?}");
    // All of 300 match: four pages, instead of the first one and two for each of three parts.
    let all = sited(300, 1);
    let lab = Lab::new(move |asked| ok(&filtered(asked, &all)));
    assert_eq!(lab.count(&sql).await, (300, 4));
    // Rows in order of time have to arrive in it.
    let few = sited(3_000, 100);
    let lab = Lab::new(move |asked| ok(&filtered(asked, &few)));
    assert_eq!(lab.count(&format!("{sql} ORDER BY published_at LIMIT 5")).await.0, 5);
    // A service that compares differently returns the mentions of other parts.
    let few = sited(3_000, 100);
    let lab = Lab::new(move |asked| ok(&search(asked, &few)));
    lab.fails(&sql, ErrorKind::Contradiction, &["do not match the requested filters"]).await;
}

#[tokio::test(start_paused = true)]
async fn totals_are_read_in_every_notation() {
    let lab = |write: fn(usize, usize) -> Value| {
        Lab::new(move |asked| {
            let mut body = search(asked, &mentions(1_234));
            let total = write(1_234, asked.number("dataFrom"));
            body["overview"]["totalMentions"] = total.clone();
            if body["mentions"].is_object() {
                body["mentions"]["total"] = total;
            }
            ok(&body)
        })
    };
    let cases = [
        (|_, _| json!("1,234")) as fn(usize, usize) -> Value,
        |_, _| json!("1234"),
        |_, _| json!(1_234.0),
        |_, _| json!("1 234"),
        // On the first page only.
        |total, from| if from == 0 { json!(total) } else { Value::Null },
    ];
    each_async(cases, async |write| {
        let lab = lab(write);
        assert_eq!(lab.count(ALL).await, (1_234, 13));
        assert_eq!(lab.ask("SELECT count(*) FROM mentions WHERE aid = '1'").await.unwrap(), [["1234"]]);
    })
    .await;
    lab(|_, _| json!("about 1,200"))
        .fails(ALL, ErrorKind::Contradiction, &["invalid total `\"about 1,200\"`", "advisory"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn numbers_that_json_lacks_are_null() {
    let lab = Lab::new(|asked| {
        let score = r#""sentiment":{"label":"positive","score":NaN},"more":[-Infinity,"NaN"],"text":"#;
        Answer::text(200, search(asked, &mentions(30)).to_string().replace(r#""text":"#, score))
    });
    let found =
        lab.ask("SELECT DISTINCT sentiment, sentiment_score, extra FROM mentions WHERE aid = '1'").await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0][0], "positive");
    let extra: Value = serde_json::from_str(&found[0][2]).unwrap();
    assert_eq!(extra["more"], json!([null, "NaN"]));
}

#[tokio::test(start_paused = true)]
async fn a_search_that_is_gone_is_left_out_of_partial_results() {
    for gone in [410, 404, 403, 451] {
        let lab = Lab::new(move |asked| match (asked.list, asked.text("aid")) {
            (true, _) => ok(&list(0..3)),
            (false, "1") => status(gone, &json!({"error": {"code": "GONE", "message": "deleted"}})),
            _ => ok(&search(asked, &mentions(3))),
        });
        lab.ask("SELECT aid, id FROM mentions").await.expect_err("refused");
        lab.ask("SET savedsearch.partial = on").await.unwrap();
        assert_eq!(lab.count("SELECT aid, id FROM mentions").await.0, 6, "{gone}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_expires_is_read_again_once() {
    let lab = |keys: &'static [&'static str]| {
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        let source = move || {
            let number = usize::try_from(count.fetch_add(1, Ordering::Relaxed)).unwrap();
            Secret::new(keys[number.min(keys.len() - 1)])
        };
        let key = Secret::new("first-key").unwrap().renewed_by(source);
        let lab = Lab::keyed(key, "", |asked| match asked.key.as_str() {
            "first-key" if asked.number <= 2 => ok(&search(asked, &mentions(450))),
            "second-key" => ok(&search(asked, &mentions(450))),
            key => status(401, &json!({"error": {"code": "TOKEN_EXPIRED", "message": format!("{key} has expired")}})),
        });
        (lab, asked)
    };
    let (renewed, asked) = lab(&["second-key"]);
    assert_eq!(renewed.count(ALL).await.0, 450);
    assert_eq!(asked.load(Ordering::Relaxed), 1, "requests in flight share the new key");
    // The same key again, and another one that is not accepted either.
    for keys in [&["first-key"], &["third-key"]] {
        let (refused, asked) = lab(keys);
        let error = refused.fails(ALL, ErrorKind::Unauthorized, &["check the API key"]).await;
        assert!(!error.to_string().contains("first-key") && !error.to_string().contains("third-key"), "{error}");
        assert!(asked.load(Ordering::Relaxed) <= 5 && refused.requests() <= 12);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_expires_is_read_again_though_the_response_names_a_wait() {
    let key = Secret::new("first-key").unwrap().renewed_by(|| Secret::new("second-key"));
    let lab = Lab::keyed(key, "", |asked| match asked.key.as_str() {
        "second-key" => ok(&search(asked, &mentions(3))),
        _ => status(401, &json!({"error": {"code": "TOKEN_EXPIRED", "message": "expired"}})).with("retry-after", "60"),
    });
    let begun = tokio::time::Instant::now();
    assert_eq!(lab.count(ALL).await.0, 3);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_key_in_a_value_is_no_value() {
    const KEY: &str = "k3y/of-16+characters";
    let links = |asked: &Asked, key: &str| {
        let mut body = search(asked, &mentions(2));
        body["request"] = json!({ "url": format!("https://services.test/v4/search?key={key}&from=0") });
        for mention in body["mentions"]["items"].as_array_mut().unwrap() {
            mention["text"] = json!(format!("posted with {key}"));
        }
        ok(&body)
    };
    for written in [KEY, "k3y%2Fof-16%2Bcharacters"] {
        let lab = Lab::keyed(Secret::new(KEY).unwrap(), "", move |asked| links(asked, written));
        let shown = lab.ask("SELECT text FROM mentions WHERE aid = '1' ORDER BY id LIMIT 1").await.unwrap().concat();
        assert_eq!(shown, ["posted with <redacted>"]);
        let extra = lab.ask("SELECT * FROM overview WHERE aid = '1'").await.unwrap().concat().concat();
        assert!(!extra.contains("characters"), "{extra}");
    }
    // A short key may be a word.
    let lab = Lab::keyed(Secret::new("word").unwrap(), "", move |asked| links(asked, "word"));
    let shown = lab.ask("SELECT text FROM mentions WHERE aid = '1' ORDER BY id LIMIT 1").await.unwrap().concat();
    assert_eq!(shown, ["posted with word"]);
}

#[tokio::test(start_paused = true)]
async fn an_identifier_is_one_in_whatever_notation() {
    let lab = Lab::new(|asked| match asked.list {
        true => ok(&json!({"data": {"savedSearches": [{"aid": 183_000.0, "name": "one"}], "teamSavedSearches": []}})),
        false if asked.text("aid") == "183000" => {
            let mut body = search(asked, &mentions(3));
            body["search"]["aid"] = json!(183_000.0);
            ok(&body)
        }
        false => status(403, &json!({"error": {"code": "FORBIDDEN", "message": "not yours"}})),
    });
    assert_eq!(lab.ask("SELECT aid FROM saved_searches").await.unwrap(), [["183000"]]);
    assert_eq!(lab.ask("SELECT DISTINCT aid FROM mentions").await.unwrap(), [["183000"]]);
}

#[tokio::test(start_paused = true)]
async fn json_is_read_under_the_content_type_of_a_web_page() {
    let lab = Lab::new(|asked| ok(&search(asked, &mentions(5))).with("content-type", "text/html; charset=utf-8"));
    let sql = "SELECT count(*) FROM (SELECT id, title FROM mentions WHERE aid = '1')";
    let batches = lab.context.sql(sql).await.unwrap().collect().await.unwrap();
    assert_eq!(rows(&batches), [["5"]]);
}

/// A list without saved searches has none; one that is null was not read.
#[tokio::test(start_paused = true)]
async fn a_list_of_null_is_not_empty() {
    let lab =
        Lab::new(|_| ok(&json!({"data": {"savedSearches": null, "teamSavedSearches": null}, "savedSearches": null})));
    let error = lab.context.sql("SELECT count(*) FROM saved_searches").await.unwrap().collect().await;
    let error = error.expect_err("no list");
    assert!(error.to_string().contains("are null") || error.to_string().contains("has no"), "{error}");
}

/// The response to a request, whose timeline has a bucket for each of the days on which mentions were published.
fn by_day(asked: &Asked, mentions: &[Value], page: &[Value]) -> Answer {
    let mut days: BTreeMap<String, u64> = BTreeMap::new();
    for mention in mentions {
        *days.entry(mention["publishedAt"].as_str().unwrap()[..10].to_owned()).or_default() += 1;
    }
    let volume: Vec<Value> =
        days.into_iter().map(|(day, count)| json!({"start": format!("{day}T00:00:00Z"), "count": count})).collect();
    let mut body = search(asked, mentions);
    body["overview"]["volume"] = json!(volume);
    if asked.number("dataSize") > 0 {
        body["mentions"]["items"] = json!(page);
    }
    ok(&body)
}

#[tokio::test(start_paused = true)]
async fn first_mentions_by_time_begin_where_the_timeline_does() {
    let all = || mentions(4_900).into_iter().step_by(70).collect::<Vec<_>>();
    let first = |order: &str| format!("SELECT id FROM mentions WHERE aid = '1' ORDER BY published_at {order} LIMIT 2");
    // Each page is sorted, but it has the mentions with the least ids.
    let sorted_alone = Lab::new(move |asked| {
        let newest = asked.text("sortBy") == "date_desc";
        let others = if newest { 30 } else { 50 };
        let mut page: Vec<Value> = all().into_iter().skip(others).take(asked.number("dataSize")).collect();
        if newest {
            page.reverse();
        }
        by_day(asked, &all(), &page)
    });
    for (order, side) in [("DESC", "counts mentions after 2026-07-01"), ("ASC", "counts mentions before 2026-06-29")] {
        let says = ["the first mention is of 2026-06-", side, "[sort]"];
        sorted_alone.fails(&first(order), ErrorKind::Contradiction, &says).await;
    }
    assert_eq!(sorted_alone.requests(), 2, "no repetition changes it");
    let sorted = Lab::new(move |asked| {
        let page: Vec<Value> = selected(asked, &all()).into_iter().take(asked.number("dataSize")).collect();
        by_day(asked, &all(), &page)
    });
    for (order, ids) in [("DESC", ["m4830", "m4760"]), ("ASC", ["m0", "m70"])] {
        assert_eq!(sorted.ask(&first(order)).await.unwrap().concat(), ids);
    }
    assert_eq!(sorted.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_compared_as_text_unless_the_response_has_a_number() {
    let echoing = |aid: Value| {
        Lab::new(move |asked| {
            let mut body = search(asked, &mentions(30));
            body["search"]["aid"] = aid.clone();
            ok(&body)
        })
    };
    assert_eq!(echoing(json!(1)).count(ALL).await, (30, 1));
    assert_eq!(echoing(json!(1.0)).count(ALL).await, (30, 1));
    for other in [json!("01"), json!("1.0"), json!("1e0"), json!(2)] {
        echoing(other).fails(ALL, ErrorKind::Contradiction, &["requested aid `1`"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_window_may_be_reported_with_its_last_instant() {
    let sql =
        "SELECT id FROM mentions WHERE aid = '1' AND published_at >= '2026-06-01' AND published_at < '2026-07-01'";
    let until = |to: &'static str| {
        Lab::new(move |asked| {
            let early: Vec<Value> = mentions(300).into_iter().take(30).collect();
            let mut body = search(asked, &early);
            body["window"] = json!({"from": "2026-06-01T00:00:00Z", "to": to});
            ok(&body)
        })
    };
    for to in
        ["2026-07-01T00:00:00Z", "2026-06-30T23:59:59.999Z", "2026-06-30T23:59:59.999999Z", "2026-06-30T23:59:59Z"]
    {
        assert_eq!(until(to).count(sql).await, (30, 1), "{to}");
    }
    until("2026-06-30T23:59:00Z").fails(sql, ErrorKind::Contradiction, &["covers"]).await;
}

#[tokio::test(start_paused = true)]
async fn mentions_after_the_end_of_a_relative_period_contradict_it() {
    let later = |minutes: i64| {
        Lab::new(move |asked| {
            let mut all = mentions(30);
            all[29]["publishedAt"] = json!((now() + TimeDelta::minutes(minutes)).to_rfc3339());
            ok(&search(asked, &all))
        })
    };
    let sql = "SELECT id FROM mentions WHERE aid = '1' AND duration = '7d'";
    assert_eq!(later(5).count(sql).await, (30, 1), "clocks differ");
    for sql in [sql, "SELECT max(published_at) FROM mentions WHERE aid = '1' AND duration = '7d'"] {
        later(9 * 60).fails(sql, ErrorKind::Contradiction, &["but the period `7d` ends at", "`zone`"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn extremes_do_not_take_a_capped_total_for_all_mentions() {
    let capped = Lab::new(|asked| {
        let all: Vec<Value> = mentions(300);
        let mut body = search(asked, &all);
        body["mentions"]["total"] = json!(100);
        body["mentions"]["items"] =
            json!(selected(asked, &all).into_iter().take(asked.number("dataSize").min(100)).collect::<Vec<_>>());
        ok(&body)
    });
    let sql = "SELECT min(published_at) = (SELECT max(published_at) FROM mentions WHERE aid = '1') FROM mentions WHERE aid = '1'";
    if let Ok(rows) = capped.ask(sql).await {
        assert_eq!(rows, [["false"]]);
    }
    let both = capped.ask("SELECT min(published_at), max(published_at) FROM mentions WHERE aid = '1'").await;
    if let Ok(rows) = both {
        let of = |number: usize| time_of(number).format("%Y-%m-%dT%H:%M:%SZ").to_string();
        assert_eq!(rows, [[of(0), of(299)]]);
    }
    // In one order there are mentions, in the other there are none.
    let emptied = Lab::new(|asked| ok(&search(asked, &if asked.number > 1 { Vec::new() } else { mentions(300) })));
    let sql = "SELECT min(published_at), max(published_at) FROM mentions WHERE aid = '1'";
    let error = emptied.ask(sql).await.expect_err("one of the orders is empty");
    assert!(matches!(error.kind(), ErrorKind::Contradiction | ErrorKind::Incomplete), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_total_below_the_sum_of_its_timeline_counts_nothing() {
    for changes in ["", "[mentions]\nrequested_by = \"always\"\n"] {
        let capped = Lab::with(changes, |asked| {
            if asked.list {
                return ok(&list(1..2));
            }
            let mut body = search(asked, &mentions(300));
            let mut days: BTreeMap<String, usize> = BTreeMap::new();
            for number in 0..300 {
                *days.entry(time_of(number).format("%Y-%m-%dT00:00:00Z").to_string()).or_default() += 1;
            }
            body["overview"] = json!({
                "totalMentions": 100,
                "volume": days.iter().map(|(start, count)| json!({"start": start, "count": count})).collect::<Vec<_>>(),
            });
            ok(&body)
        });
        let counted = capped.ask("SELECT count(*) FROM mentions WHERE aid = '1' AND duration = '7d'").await;
        assert_eq!(counted.unwrap(), [["300"]], "{changes}");
    }
}

/// Mentions as numbered pages, `page` from 0, of the requested size.
fn numbered(asked: &Asked, mentions: &[Value]) -> Value {
    let (page, size) = (asked.number("page"), asked.number("dataSize"));
    let items: Vec<Value> = selected(asked, mentions).into_iter().skip(page * size).take(size).collect();
    json!({"search": {"aid": asked.text("aid")}, "mentions": {"items": items}})
}

/// Thirty mentions of yesterday evening.
fn recent() -> Vec<Value> {
    (4_100..4_130).map(mention).collect()
}

const NUMBERED: &str = "[offset]\nparameter = \"page\"\nunit = \"page\"\n[total]\ntrust = \"absent\"\n";

#[tokio::test(start_paused = true)]
async fn a_relative_period_is_whole_or_begins_with_a_whole_day() {
    let told = |from: &'static str, to: &'static str| {
        Lab::new(move |asked| {
            let mut body = search(asked, &recent());
            body["window"] = json!({"from": from, "to": to});
            ok(&body)
        })
    };
    let days = |days: u32| format!("{ALL} AND duration = '{days}d'");
    assert_eq!(told("2026-06-29T12:00:00Z", "2026-07-01T12:00:00Z").count(&days(2)).await, (30, 1));
    assert_eq!(told("2026-06-30T00:00:00Z", "2026-07-01T12:00:00Z").count(&days(2)).await, (30, 1));
    each_async(
        [
            ("2026-06-30T12:00:00Z", "2026-07-01T12:00:00Z"),
            ("2026-06-28T12:00:00Z", "2026-06-30T12:00:00Z"),
            ("2026-06-30T11:59:00Z", "2026-07-01T12:00:00Z"),
        ],
        async |(from, to)| {
            for sql in [days(2), days(2).replace("SELECT id", "SELECT count(*)")] {
                told(from, to).fails(&sql, ErrorKind::Contradiction, &["requested 2 days", "[window]"]).await;
            }
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_relative_period_for_a_range_covers_its_end() {
    // The service ends its periods at midnight.
    let until = |to: &'static str| {
        Lab::relative(move |asked| {
            let mut body = search(asked, &recent());
            body["window"] = json!({"from": "2026-06-24T00:00:00Z", "to": to});
            ok(&body)
        })
    };
    let since = format!("{ALL} AND published_at >= '2026-06-25T00:00:00Z'");
    until("2026-07-01T00:00:00Z").fails(&since, ErrorKind::Contradiction, &["covers", "[window]"]).await;
    assert_eq!(until("2026-07-01T12:00:00Z").count(&since).await, (30, 1));
    let early = format!("{since} AND published_at < '2026-06-30T00:00:00Z'");
    assert_eq!(until("2026-07-01T00:00:00Z").count(&early).await.1, 1);
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_window_are_compared_with_any_count_of_it() {
    // Windows exclude their first instant, on which each cut has mentions.
    let lab = |changes: &str, tell: fn(&mut Value, usize)| {
        let changes = format!("[depth]\nrows = 200\nbeyond = \"empty\"\n{changes}");
        Lab::with(&changes, move |asked| {
            let (from, to) = asked.text("duration").split_once("..").unwrap();
            let (from, to): (DateTime<Utc>, DateTime<Utc>) = (from.parse().unwrap(), to.parse().unwrap());
            // Five a minute.
            let at = |number: usize| time_of(number / 5);
            let all = (0..450).filter(|number| from < at(*number) && at(*number) < to).map(|number| {
                let mut mention = mention(number);
                mention["publishedAt"] = json!(at(number).to_rfc3339());
                mention
            });
            let all: Vec<Value> = all.collect();
            let mut body = search(asked, &all);
            let items = body["mentions"]["items"].as_array().cloned().unwrap_or_default();
            let left = 200_usize.saturating_sub(asked.number("dataFrom"));
            body["mentions"]["items"] = json!(items.into_iter().take(left).collect::<Vec<_>>());
            tell(&mut body, all.len());
            ok(&body)
        })
    };
    let range = format!("{ALL} AND published_at >= '2026-06-01' AND published_at < '2026-07-02'");
    let overview: fn(&mut Value, usize) = |body, _| {
        body["mentions"].as_object_mut().unwrap().remove("total");
    };
    match lab("[total]\ntrust = \"absent\"\n", overview).ask(&range).await {
        Ok(rows) => assert_eq!(rows.len(), 450),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Incomplete, "{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn pages_may_be_smaller_than_requested() {
    // As many bytes fit.
    let cursors = Lab::with(CURSORS, |asked| ok(&after_cursor(asked, &mentions(450), &[20])));
    assert_eq!(cursors.count(ALL).await, (450, 23));
    let bytes = Lab::new(|asked| {
        let mut body = search(asked, &mentions(450));
        let fits = 14 + asked.number("dataFrom") % 9;
        body["mentions"]["items"].as_array_mut().unwrap().truncate(fits);
        ok(&body)
    });
    assert_eq!(bytes.count(ALL).await.0, 450);
}

#[tokio::test(start_paused = true)]
async fn numbered_pages_have_sizes_that_the_service_accepts() {
    let lab = |sizes: &str| {
        Lab::with(&format!("{NUMBERED}[page]\n{sizes}\n"), |asked| match asked.number("dataSize") {
            10 | 25 | 50 | 100 => ok(&numbered(asked, &mentions(30))),
            size => panic!("a page of {size}"),
        })
    };
    for sizes in ["sizes = [10, 25, 50, 100]", "min = 100"] {
        assert_eq!(lab(sizes).count(ALL).await.0, 30, "{sizes}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_behind_the_end_may_be_refused() {
    let lab = |total: bool, count: usize| {
        let changes = if total { NUMBERED.replace("absent", "exact") } else { NUMBERED.to_owned() };
        Lab::with(&changes, move |asked| {
            let mut body = numbered(asked, &mentions(count));
            if total {
                body["mentions"]["total"] = json!(count);
            }
            let nothing = body["mentions"]["items"].as_array().is_none_or(Vec::is_empty);
            match nothing && asked.number("page") > 0 {
                true => status(404, &json!({"error": {"code": "NO_SUCH_PAGE", "message": "no such page"}})),
                false => ok(&body),
            }
        })
    };
    for (total, count) in [(true, 200), (true, 230), (false, 30), (false, 230)] {
        let sql = format!("{ALL} AND duration = '7d'");
        assert_eq!(lab(total, count).count(&sql).await.0, count, "total: {total}");
    }
}

/// Each end takes several empty pages, in two passes, which is more than three passes over a few mentions.
#[tokio::test(start_paused = true)]
async fn a_few_numbered_pages_without_a_total_are_read_whole() {
    for count in [30, 162, 230, 450, 710] {
        let lab = Lab::with(NUMBERED, move |asked| {
            let (from, to) = asked.text("duration").split_once("..").unwrap();
            let (from, to): (DateTime<Utc>, DateTime<Utc>) = (from.parse().unwrap(), to.parse().unwrap());
            let within = (0..count).filter(|number| (from..to).contains(&time_of(*number)));
            ok(&numbered(asked, &within.map(mention).collect::<Vec<_>>()))
        });
        let sql = format!("{ALL} AND published_at >= '2026-06-25' AND published_at < '2026-07-02'");
        assert_eq!(lab.count(&sql).await.0, count);
    }
}

#[tokio::test(start_paused = true)]
async fn an_offset_beyond_the_total_has_no_mentions() {
    // The service limits the offset to its last page.
    let lab = Lab::new(|asked| {
        let all = selected(asked, &mentions(450));
        let (from, size) = (asked.number("dataFrom").min(440), asked.number("dataSize"));
        let items: Vec<Value> = all.into_iter().skip(from).take(size).collect();
        ok(
            &json!({"search": {"aid": "1"}, "overview": {"totalMentions": 450}, "mentions": {"total": 450, "items": items}}),
        )
    });
    for offset in [450, 500] {
        let sql = format!("{ALL} ORDER BY published_at DESC LIMIT 10 OFFSET {offset}");
        lab.fails(&sql, ErrorKind::Contradiction, &["the total is 450", "[offset]"]).await;
    }
    assert_eq!(lab.count(&format!("{ALL} ORDER BY published_at DESC LIMIT 10 OFFSET 440")).await.0, 10);
}

#[tokio::test(start_paused = true)]
async fn numbers_about_other_things_do_not_make_a_response_incomplete() {
    let lab = Lab::new(|asked| {
        let mut body = if asked.list { list(0..3) } else { search(asked, &mentions(3)) };
        body["sentimentCoverage"] = json!(0.8);
        body["credits"] = json!({"used": 30, "remaining": 970});
        ok(&body)
    });
    assert_eq!(lab.ask("SELECT count(*) FROM saved_searches").await.unwrap(), [["3"]]);
    assert_eq!(lab.count(ALL).await, (3, 1));
    let partly = Lab::new(|asked| {
        let mut body = search(asked, &mentions(3));
        body["coverage"] = json!(0.57);
        ok(&body)
    });
    partly.fails(ALL, ErrorKind::Incomplete, &["`/coverage` is 0.57"]).await;
}
