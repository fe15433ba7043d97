//! Behaviour in the presence of faults, as users see it: reports, warnings, labels, refusals and limits.

use std::sync::Arc;
use std::time::Duration;

use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_saved_search::CATALOG;
use datafusion_saved_search::client::{HttpLimits, RetryPolicy};
use datafusion_saved_search::profile::{RateWindow, ThrottleRule};
use datafusion_saved_search::simulator::{KEY, Preset, RateLimit, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, Error, ErrorKind, Profile, Secret, catalog, session};

use crate::support::{BIG, InProcess, OTHER, Virtual, connect, corpus, each_async, now, pages, rows};

/// A service with these faults, and a profile with `change` applied.
fn service(faults: &[&str], change: impl Fn(&mut Profile)) -> Virtual {
    let mut profile = Profile::v4();
    change(&mut profile);
    Virtual::new(corpus(), faults, Settings::default(), profile)
}

fn unchanged(_: &mut Profile) {}

fn all(aid: &str) -> String {
    format!(
        "SELECT id FROM mentions WHERE aid = '{aid}' AND published_at >= '2026-01-01' AND published_at < '2026-07-02'"
    )
}

fn count(aid: &str) -> usize {
    corpus().search(aid).unwrap().mentions.len()
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_an_error_or_on_request_a_warning() {
    // The service reports five more mentions than there are.
    let world = service(&["total:by=5"], unchanged);
    let error = world.error(&all(BIG)).await;
    assert_eq!((error.kind(), error.place().aid.as_deref()), (ErrorKind::Incomplete, Some(BIG)), "{error}");
    assert!(error.to_string().contains("SET savedsearch.completeness = 'report'"), "{error}");
    let verdicts = "SELECT DISTINCT verdict FROM system.requests WHERE verdict IS NOT NULL";
    let told = world.rows(verdicts).await;
    assert!(told[0][0].starts_with("incomplete: ") && told[0][0].contains("distinct mentions received"), "{told:?}");
    assert!(world.rows("SELECT * FROM system.warnings").await.is_empty());

    world.rows("SET savedsearch.completeness = 'report'").await;
    assert_eq!(world.rows(&all(BIG)).await.len(), count(BIG));
    let warnings = world.rows("SELECT aid, message FROM system.warnings").await;
    assert!(warnings[0][0] == BIG && warnings[0][1].contains("distinct mentions received"), "{warnings:?}");
    let analyzed = world.rows(&format!("EXPLAIN ANALYZE {}", all(BIG))).await.concat().concat();
    assert!(analyzed.contains("incomplete=1"), "{analyzed}");
}

#[tokio::test(start_paused = true)]
async fn what_was_repaired_is_told() {
    let world = service(&["delete:at=start@4"], unchanged);
    let analyzed = world.rows(&format!("EXPLAIN ANALYZE {}", all(BIG))).await.concat().concat();
    assert!(analyzed.contains("pages_reread=1") && analyzed.contains("incomplete=0"), "{analyzed}");
    let told = world.rows("SELECT verdict FROM system.requests WHERE verdict IS NOT NULL").await;
    assert!(told[0][0].starts_with("repaired: the total changed, 1 page re-read"), "{told:?}");
    let world = service(&[], unchanged);
    world.rows(&all(BIG)).await;
    let told = world.rows("SELECT verdict FROM system.requests WHERE verdict IS NOT NULL").await;
    assert_eq!(told, [[format!("complete: {0} of {0} (total, overview, timeline)", count(BIG))]]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_leaves_total_and_count_in_agreement_loses_nothing() {
    // Some rows already read are deleted and as many arrive after them, so that the total stays the same while rows
    // shift past the pages. Three of them, because a single one would only replace the row that pages share.
    let world = service(&["delete:n=3,at=start@4", "arrive:n=3,at=end@4"], unchanged);
    let ids: Vec<String> = world.rows(&all(BIG)).await.concat();
    let requests = world.simulator.requests();
    let there = |request| world.simulator.alive(BIG, request).into_iter().map(|mention| mention.facts.id.to_string());
    let last: std::collections::HashSet<String> = there(requests).collect();
    for id in there(1).filter(|id| last.contains(id)) {
        assert!(ids.contains(&id), "mention {id} was lost");
    }
}

#[tokio::test(start_paused = true)]
async fn who_stops_early_gets_nothing_from_behind_a_gap() {
    // More of the rows already read are deleted than the scan reads back, and the query needs only the first rows.
    for order in ["published_at", "published_at, id"] {
        let world = service(&["delete:n=150,at=start@12"], |profile| profile.page.max = 20);
        let error = world.error(&format!("{} ORDER BY {order} LIMIT 400", all(BIG))).await;
        assert_eq!(error.kind(), ErrorKind::Incomplete, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_saved_search_that_is_refused_ends_the_query_unless_it_may_be_left_out() {
    let fault = format!("403:aid={OTHER}");
    let world = service(&[&fault], unchanged);
    let both = "SELECT aid, count(DISTINCT id) FROM mentions WHERE duration = '100d' GROUP BY aid ORDER BY aid";
    let error = world.error(both).await;
    assert_eq!((error.kind(), error.place().aid.as_deref()), (ErrorKind::Forbidden, Some(OTHER)), "{error}");
    world.rows("SET savedsearch.partial = 'on'").await;
    let found = world.rows(both).await;
    assert!(!found.is_empty() && found.iter().all(|row| row[0] != OTHER), "{found:?}");
    let ordered =
        world.rows("SELECT aid FROM mentions WHERE duration = '100d' ORDER BY published_at DESC LIMIT 50").await;
    assert_eq!(ordered.len(), 50);
    let warnings = world.rows("SELECT DISTINCT aid FROM system.warnings").await;
    assert_eq!(warnings, [[OTHER]]);
    let labelled = world.rows("SELECT aid, total_mentions, extra FROM overview WHERE total_mentions IS NULL").await;
    assert!(
        labelled.len() == 1 && labelled[0][0] == OTHER && labelled[0][2].contains("savedsearch.missing"),
        "{labelled:?}"
    );
    // As the only saved search of a query it cannot be skipped.
    assert_eq!(world.error(&all(OTHER)).await.kind(), ErrorKind::Forbidden);
}

#[tokio::test(start_paused = true)]
async fn texts_that_say_no_character_are_an_error_that_says_where_or_are_replaced() {
    for fault in ["utf8", "escape", "surrogate"] {
        let world = service(&[fault], unchanged);
        let sql = format!("SELECT id, text FROM mentions WHERE aid = '{BIG}' AND duration = '20d'");
        let error = world.error(&sql).await;
        assert_eq!((error.kind(), error.place().row), (ErrorKind::Malformed, Some(0)), "{error}");
        assert!(error.to_string().contains("invalid UTF-8 or escape at byte "), "{error}");
        world.rows("SET savedsearch.lossy_text = 'on'").await;
        let found = world.rows(&sql).await;
        assert!(found.iter().any(|row| row[1].contains('\u{fffd}')), "{fault}");
        let analyzed = world.rows(&format!("EXPLAIN ANALYZE {sql}")).await.concat().concat();
        assert!(!analyzed.contains("characters_replaced=0"), "{analyzed}");
    }
}

#[tokio::test(start_paused = true)]
async fn throttling_and_quotas_look_as_the_profile_says() {
    let rule = |status, code: &str| ThrottleRule { status, code: Some(code.to_owned()) };
    for status in [401, 403, 503] {
        let fault = format!("{status}:code=rate_limited,retry-after=9@2-3");
        let world = service(&[&fault], |profile| profile.throttle.when.push(rule(status, "rate_limited")));
        assert_eq!(world.rows(&all(BIG)).await.len(), count(BIG));
    }
    let world = service(&["429:code=quota_exceeded@3-"], |profile| {
        profile.throttle.quota.push(rule(429, "quota_exceeded"));
    });
    let error = world.error(&all(BIG)).await;
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Quota, 1), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_down_is_let_alone_for_a_while() {
    let world = service(&["503@1-15"], unchanged);
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' LIMIT 1");
    for _ in 0..3 {
        assert_eq!(world.error(&sql).await.attempts(), 5);
    }
    let error = world.error(&sql).await;
    assert_eq!((error.kind(), world.simulator.requests()), (ErrorKind::Unavailable, 15), "{error}");
    assert!(error.to_string().contains("circuit breaker open: the last 3 calls"), "{error}");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(world.rows(&sql).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_may_pass_if_the_service_may_recover() {
    let cases = [
        ("500", true),
        ("503", true),
        ("accepted", true),
        ("429", true),
        ("stall", true),
        ("reset", true),
        ("400", false),
        ("401", false),
        ("403", false),
        ("404", false),
    ];
    each_async(cases, async |(fault, passes)| {
        let error = service(&[fault], unchanged).error(&all(BIG)).await;
        assert_eq!(error.may_pass(), passes, "{fault}: {error:?}");
    })
    .await;
}

#[tokio::test]
async fn a_refused_connection_may_pass() {
    // The port is free again at the end of the statement.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut retry = RetryPolicy::default();
    retry.failures = 1;
    let builder = Connection::builder(format!("http://{address}/v4"), Secret::new(KEY).unwrap());
    let context = session(&builder.retry(retry).build().unwrap()).unwrap();
    let result = context.sql("SELECT aid FROM saved_searches").await.unwrap().collect().await;
    let error = Error::find(&result.unwrap_err()).unwrap().clone();
    assert!(error.kind() == ErrorKind::Connect && error.may_pass(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_whatever_the_waits() {
    each_async(["429", "503", "stall", "trickle:ms=3000", "429:retry-after=3", "html"], async |fault| {
        let world = service(&[fault], unchanged);
        world.rows("SET savedsearch.query_deadline = 20").await;
        let begun = tokio::time::Instant::now();
        let result = world.ask(&all(BIG)).await;
        assert!(result.is_err(), "{fault}");
        assert!(begun.elapsed() <= Duration::from_secs(20), "{fault}: {:?}", begun.elapsed());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_lies_too_deep_is_asked_for_in_parts() {
    let deep = |rows: u64| move |profile: &mut Profile| profile.depth.rows = Some(rows);
    // By time, if the window can be cut: as many pages as without a depth limit.
    let world = service(&["depth:rows=300,answer=400"], deep(300));
    assert_eq!(world.rows(&all(BIG)).await.len(), count(BIG));
    let least = pages(count(BIG) as u64);
    assert!(world.simulator.requests() <= least + 3, "{} requests, {least} pages", world.simulator.requests());
    let analyzed = world.rows(&format!("EXPLAIN ANALYZE {}", all(BIG))).await.concat().concat();
    assert!(!analyzed.contains("windows_cut=0"), "{analyzed}");
    // Newest first, the windows are cut at their ends.
    let newest = world.rows(&format!("{} ORDER BY published_at DESC", all(BIG))).await;
    assert_eq!(newest.len(), count(BIG));
    // By the values of a filter, if only relative periods are supported.
    let world = service(&["depth:rows=500,answer=400"], |profile| {
        deep(500)(profile);
        profile.window.absolute = None;
    });
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '100d'");
    let ids: std::collections::HashSet<String> = world.rows(&sql).await.concat().into_iter().collect();
    assert_eq!(ids.len(), count(BIG));
    // Any sort order other than by time is established by sorting locally.
    let reach: Vec<String> =
        world.rows(&format!("{} ORDER BY reach DESC", sql.replace(" id ", " reach "))).await.concat();
    let mut sorted: Vec<Option<i64>> = reach.iter().map(|reach| reach.parse().ok()).collect();
    assert_eq!(sorted.len(), count(BIG));
    sorted.sort_by(|a, b| b.cmp(a));
    let sorted = sorted.into_iter().map(|reach| reach.map_or("NULL".to_owned(), |reach| reach.to_string()));
    assert_eq!(reach, sorted.collect::<Vec<_>>());
    // Impossible if no list of values covers all mentions.
    let world = service(&[], |profile| {
        deep(100)(profile);
        profile.window.absolute = None;
        profile.counts = None;
    });
    let error = world.error(&sql).await;
    assert_eq!(error.kind(), ErrorKind::TooDeep, "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_lies_before_a_cut_is_read_again_if_the_totals_of_both_sides_do_not_agree() {
    // Four pages lead to the cut.
    let faults = ["depth:rows=300,answer=400", "total:by=5@1-4"];
    let world = service(&faults, |profile| profile.depth.rows = Some(300));
    let analyzed = world.rows(&format!("EXPLAIN ANALYZE {}", all(BIG))).await.concat().concat();
    assert!(analyzed.contains("output_rows=960") && analyzed.contains("passes_repeated=1"), "{analyzed}");
}

#[tokio::test(start_paused = true)]
async fn a_depth_that_nobody_declared_is_met_once_a_scan() {
    for answer in ["400", "404", "empty", "last"] {
        let world = service(&[&format!("depth:rows=250,answer={answer}")], unchanged);
        let ids: std::collections::HashSet<String> = world.rows(&all(BIG)).await.concat().into_iter().collect();
        assert_eq!(ids.len(), count(BIG), "{answer}");
        let least = pages(count(BIG) as u64);
        assert!(world.simulator.requests() <= least + 18, "{answer}: {} requests", world.simulator.requests());
    }
}

#[tokio::test(start_paused = true)]
async fn a_range_that_ends_now_ends_by_the_services_clock() {
    let world = service(&["skew:seconds=3600"], unchanged);
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-06-01'");
    let error = world.error(&sql).await;
    assert_eq!(error.kind(), ErrorKind::Contradiction, "{error}");
    assert!(error.to_string().contains("clock is 60 minutes ahead"), "{error}");
    assert!(!world.rows(&sql).await.is_empty());
    let seen = world.connection.client().log().records();
    let asked = &seen.last().unwrap().parameters;
    assert!(asked.contains("2026-07-01T13:1"), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_clock_is_behind_loses_nothing() {
    let world = service(&["skew:seconds=-40000000"], unchanged);
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-06-01'");
    let first = world.rows(&sql).await;
    assert!(!first.is_empty());
    assert_eq!(world.rows(&sql).await, first);
}

/// All of a response is of another time, as if a cache repeated an old one.
#[tokio::test(start_paused = true)]
async fn a_response_of_hours_ago_is_not_that_of_a_window_that_ends_now() {
    let count = format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}'");
    for sql in [count.clone(), format!("SELECT id FROM mentions WHERE aid = '{BIG}'")] {
        for seconds in [2 * 3_600, 30 * 86_400] {
            let world = service(&[&format!("skew:seconds=-{seconds}")], unchanged);
            let error = world.error(&sql).await;
            assert_eq!(error.kind(), ErrorKind::Contradiction, "{sql}: {error}");
            let old = if seconds < 86_400 { "2 hours old" } else { "30 days old" };
            assert!(error.to_string().contains(old), "{sql}: {error}");
            assert!(error.to_string().contains("this machine's clock, 2026-07-01 12:0"), "{sql}: {error}");
        }
    }
    let notes = "SELECT message FROM system.warnings WHERE message LIKE '%newer mentions are not in it%'";
    for (seconds, noted) in [(1_800, 1), (60, 0)] {
        let world = service(&[&format!("skew:seconds=-{seconds}")], unchanged);
        world.rows(&count).await;
        assert_eq!(world.rows(notes).await.len(), noted, "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_scan_that_takes_long_still_ends_when_it_began() {
    let settings = Settings { clock: Clock::starting_at(now()), ..Settings::default() };
    let settings = Settings { delay: Duration::from_secs(55), ..settings };
    let simulator = Simulator::new(corpus(), settings);
    let mut profile = Profile::v4();
    profile.page.max = 50;
    let connection = connect(&simulator, Clock::starting_at(now()), profile);
    let context = session(&connection).unwrap();
    context.sql("SET savedsearch.query_deadline = 9000").await.unwrap();
    context.sql("SET savedsearch.concurrency = 1").await.unwrap();
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-01-01'");
    let begun = tokio::time::Instant::now();
    let batches = context.sql(&sql).await.unwrap().collect().await.unwrap();
    assert_eq!(rows(&batches).len(), count(BIG));
    assert!(begun.elapsed() > Duration::from_secs(700), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn mentions_without_ids_are_told_apart_by_what_else_they_say() {
    let world = service(&["missing:field=id"], unchanged);
    let ids: std::collections::HashSet<String> = world.rows(&all(BIG)).await.concat().into_iter().collect();
    assert_eq!(ids.len(), count(BIG));
    let analyzed = world.rows(&format!("EXPLAIN ANALYZE {}", all(BIG))).await.concat().concat();
    assert!(!analyzed.contains("ids_missing=0"), "{analyzed}");
}

/// A session with a memory pool of this many bytes.
fn cramped(connection: &Arc<Connection>, bytes: usize) -> SessionContext {
    let runtime =
        RuntimeEnvBuilder::new().with_memory_pool(Arc::new(GreedyMemoryPool::new(bytes))).build_arc().unwrap();
    let context = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
    context.register_catalog(CATALOG, catalog(connection).unwrap());
    context
}

#[tokio::test(start_paused = true)]
async fn a_query_over_its_memory_ends_with_the_engines_error() {
    let world = service(&[], unchanged);
    let sql = all(BIG).replace("mentions", &format!("{CATALOG}.v4.mentions")).replace("SELECT id", "SELECT *");
    let little = cramped(&world.connection, 40_000).sql(&sql).await.unwrap().collect().await;
    let error = little.expect_err("a page needs more memory");
    assert!(matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)), "{error:?}");
    assert!(error.to_string().contains("FetchExec mentions"), "{error}");
    let enough = cramped(&world.connection, 8 << 20);
    let batches = enough.sql(&sql).await.unwrap().collect().await.unwrap();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), count(BIG));
    assert_eq!(enough.runtime_env().memory_pool.reserved(), 0, "all memory was released");
}

#[tokio::test(start_paused = true)]
async fn fields_that_nobody_knows_are_listed() {
    let world = service(&["extra"], unchanged);
    let seen = "SELECT \"table\", field, records, first_seen <= last_seen FROM system.columns_seen ORDER BY field";
    world.rows(&format!("{} LIMIT 5", all(BIG))).await;
    assert!(world.rows(seen).await.is_empty(), "the column `extra` was not selected");
    let rows = world.rows(&all(BIG).replace("SELECT id", "SELECT extra")).await;
    let records = rows.len().to_string();
    assert!(rows[0][0].contains("future"), "{:?}", rows[0]);
    let listed: Vec<Vec<String>> = world.rows(seen).await;
    let fields: Vec<&str> = listed.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(fields, ["/future/deep/a", "/future/row"]);
    let pages = pages(rows.len() as u64);
    let met: u64 = listed[0][2].parse().unwrap();
    // Rows shared by two pages are counted twice.
    assert_eq!(met, rows.len() as u64 + pages - 1, "{records} records");
    assert_eq!((listed[0][0].as_str(), listed[0][3].as_str()), ("mentions", "true"));
}

#[tokio::test(start_paused = true)]
async fn a_field_that_stops_coming_is_an_error_or_on_request_a_warning() {
    let sql = all(BIG).replace("SELECT id", "SELECT id, language");
    let renamed = ["rename:field=language,to=lang@4-"];
    let error = service(&renamed, unchanged).error(&sql).await;
    assert_eq!(error.kind(), ErrorKind::Contradiction, "{error}");
    assert!(error.to_string().contains("the field of column `language` was in every record so far"), "{error}");
    // A query that does not select the column is not affected.
    assert_eq!(service(&renamed, unchanged).rows(&all(BIG)).await.len(), count(BIG));

    let world = service(&renamed, unchanged);
    world.rows("SET savedsearch.completeness = 'report'").await;
    assert_eq!(world.rows(&sql).await.len(), count(BIG));
    let warnings = world.rows("SELECT message FROM system.warnings").await;
    assert!(warnings.len() == 1 && warnings[0][0].contains("`language`"), "{warnings:?}");
    // Fields that are always missing, or become null, do not count as a change.
    for fault in ["missing:field=language", "null:field=language@4-"] {
        assert_eq!(service(&[fault], unchanged).rows(&sql).await.len(), count(BIG), "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_daily_budget_is_shared_by_all_who_name_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let session = || {
        let mut profile = Profile::v4();
        profile.budget.windows = vec![RateWindow { requests: 5, seconds: 86_400 }];
        let simulator = Simulator::new(corpus(), Settings { clock: Clock::fixed(now()), ..Settings::default() });
        let service = Arc::new(InProcess(simulator, HttpLimits::default()));
        let builder = Connection::builder("http://ledger.test/v4", Secret::new(KEY).unwrap()).service(service);
        session(&builder.profile(profile).clock(Clock::fixed(now())).state_folder(folder.path()).build().unwrap())
            .unwrap()
    };
    let (one, other) = (session(), session());
    let ask = async |context: &SessionContext, sql: &str| match context.sql(sql).await.unwrap().collect().await {
        Ok(batches) => Ok(rows(&batches)),
        Err(error) => Err(Error::find(&error).unwrap().clone()),
    };
    let overview = format!("SELECT count(*) FROM overview WHERE aid = '{BIG}'");
    for context in [&one, &other, &one] {
        assert_eq!(ask(context, &overview).await.unwrap(), [["1"]]);
    }
    let budget = "SELECT source, requests, seconds, used, remaining FROM system.budget";
    assert_eq!(ask(&other, budget).await.unwrap(), [["declared", "5", "86400", "3", "2"]]);
    // A query that exceeds the remainder is refused in advance, counting the requests of all sessions.
    let refused = ask(&other, "SELECT count(*) FROM overview").await.expect_err("exceeds the remainder");
    assert!(refused.to_string().contains("declared budget allows"), "{refused}");
    assert_eq!(refused.kind(), ErrorKind::Budget);
    let spent: i64 = ask(&one, budget).await.unwrap()[0][3].parse().unwrap();
    for _ in spent..5 {
        ask(&one, &overview).await.unwrap();
    }
    let error = ask(&other, &overview).await.expect_err("budget used up");
    assert!(matches!(error.kind(), ErrorKind::Budget | ErrorKind::Quota), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_ahead_is_no_reason_for_wrong_numbers() {
    let since = (now() - chrono::Duration::days(1)).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let of = format!("WHERE aid = '{BIG}' AND published_at >= '{since}'");
    for sql in [
        format!("SELECT count(*) FROM mentions {of}"),
        format!("SELECT max(published_at) FROM mentions {of}"),
        format!("SELECT language, count(*) FROM mentions {of} GROUP BY 1"),
        format!("SELECT sum(mentions) FROM volume WHERE aid = '{BIG}' AND bucket_start >= '{since}'"),
    ] {
        let world = service(&["skew:seconds=172800"], unchanged);
        let error = world.error(&sql).await;
        assert!(error.to_string().contains("minutes ahead"), "{sql}: {error}");
        // From then on, the service's clock is used.
        world.rows(&sql).await;
    }
    // A relative period also starts by the service's clock.
    let world = service(&["skew:seconds=86400"], |profile| {
        profile.window.absolute = None;
        profile.counts = None;
    });
    let error = world.error(&format!("SELECT count(*) FROM mentions {of}")).await;
    assert!(error.to_string().contains("minutes ahead"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_was_filtered_by_must_be_in_the_records() {
    let world = service(&["rename:field=language,to=lang"], unchanged);
    let error = world.error(&format!("{} AND language = 'de'", all(BIG))).await;
    assert_eq!(error.kind(), ErrorKind::Contradiction);
    assert!(
        error.to_string().contains("filters by `language`, but no record in the response has that field"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn every_dialect_tells_when_it_is_enough_and_is_heard() {
    for preset in Preset::ALL {
        let mut profile = Profile::builtin(preset.name()).unwrap();
        profile.page.max = 40;
        let rate_limit = Some(RateLimit { requests: 6, window: Duration::from_secs(30) });
        let world =
            Virtual::new(corpus(), &[] as &[&str], Settings { preset, rate_limit, ..Settings::default() }, profile);
        assert_eq!(world.rows(&all(BIG)).await.len(), count(BIG), "{preset}");
        let calls = world.rows("SELECT sum(attempts), count(*) FROM system.requests").await;
        let number = |at: usize| calls[0][at].parse::<u64>().unwrap();
        assert!(number(1) > 12, "{preset}: too few calls to hit the rate limit: {calls:?}");
        // If the service reports the end of the window, each window costs at most one vain attempt, plus those of the
        // requests in flight.
        assert!(number(0) < number(1) * 2, "{preset}: {calls:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn records_are_paid_for_from_the_declared_budget() {
    let budget = |profile: &mut Profile| {
        profile.page.max = 20;
        profile.budget.cost_per_record = Some(1);
        profile.budget.windows = vec![RateWindow { requests: 42, seconds: 60 }];
    };
    let world = service(&[], budget);
    let begun = tokio::time::Instant::now();
    assert_eq!(world.rows(&format!("{} LIMIT 80", all(BIG))).await.len(), 80);
    // Four pages of twenty, two per minute.
    assert!((60..90).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    let used = world.rows("SELECT max(used) FROM system.budget").await;
    assert!(used[0][0].parse::<u64>().unwrap() <= 42, "{used:?}");
}

/// A request that is repeated after a failure counts, so that one page is beyond the budget.
#[tokio::test(start_paused = true)]
async fn a_query_that_ends_at_its_budget_says_what_it_had_read() {
    let small = |profile: &mut Profile| profile.page.max = 20;
    let honest = service(&[], small);
    honest.rows(&all(BIG)).await;
    let needed = honest.simulator.requests();
    let world = service(&["503@4"], small);
    world.rows(&format!("SET savedsearch.max_requests = {needed}")).await;
    let error = world.error(&all(BIG)).await;
    assert_eq!((error.kind(), world.simulator.requests()), (ErrorKind::Budget, needed), "{error}");
    let text = error.to_string();
    let (_, read) = text.split_once(&format!("the query has issued {needed} requests, received ")).expect(&text);
    let (rows, allowed) = read.split_once(" rows and needs more, but ").expect(&text);
    assert!(allowed.starts_with(&format!("savedsearch.max_requests allows {needed}")), "{text}");
    // Of the pages that were received, each shares a mention with the one before it; others may have been on their way.
    let rows: u64 = rows.replace(',', "").parse().expect(&text);
    let found = count(BIG) as u64;
    assert!((found / 2..=found + needed).contains(&rows), "{found} mentions: {text}");
}

#[tokio::test(start_paused = true)]
async fn parts_are_made_by_another_column_than_the_filtered_and_of_values_that_can_be_asked_for() {
    let reaching = |rows: u64| {
        service(&[&format!("depth:rows={rows},answer=400")], move |profile| {
            profile.depth.rows = Some(rows);
            profile.window.absolute = None;
        })
    };
    let sql = |filter: &str| format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '100d' AND {filter}");
    let corpus = corpus();
    let kinds = corpus.search(BIG).unwrap().mentions.iter().map(|mention| mention.facts.kind.as_deref());
    let comments = kinds.filter(|kind| *kind == Some("comment")).count();
    let ids: std::collections::HashSet<String> =
        reaching(100).rows(&sql("type = 'comment'")).await.concat().into_iter().collect();
    assert_eq!(ids.len(), comments);
    // Mentions without a sentiment cannot be selected by it, and no other list covers all mentions.
    let error = reaching(300).error(&sql("source = 'x.com'")).await;
    assert_eq!(error.kind(), ErrorKind::TooDeep, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_part_that_gives_fewer_mentions_than_its_list_counts_is_an_error() {
    let world = service(&["depth:rows=300,answer=400"], |profile| {
        profile.depth.rows = Some(300);
        profile.window.absolute = None;
        // The list has an entry for mentions without a sentiment, but the profile does not declare it as such.
        profile.counts.as_mut().unwrap().lists.iter_mut().for_each(|list| list.missing = None);
    });
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '100d' AND source = 'x.com'");
    let error = world.error(&sql).await;
    assert!(matches!(error.kind(), ErrorKind::Incomplete | ErrorKind::Contradiction), "{error}");
}
