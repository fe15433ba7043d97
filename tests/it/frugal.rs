//! Plans that save requests: shared responses, early ends, refusals before the first request; and no plan may hang.

use std::sync::Arc;
use std::time::Duration;

use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use datafusion_saved_search::CATALOG;
use datafusion_saved_search::client::{HttpLimits, HttpService, Network};
use datafusion_saved_search::plan_cost;
use datafusion_saved_search::profile::{OffsetUnit, RateWindow};
use datafusion_saved_search::simulator::{Corpus, CorpusSpec, KEY, Preset, Settings};
use datafusion_saved_search::{Clock, Connection, Error, ErrorKind, Profile, Secret, catalog, session};
use futures::StreamExt;

use crate::support::{BIG, EventCounter, OTHER, Scripted, World, corpus, each_async, now, pages, rows};

fn connection(world: &World, profile: Profile) -> Arc<Connection> {
    let builder = Connection::builder(world.service.base_url(), Secret::new(KEY).unwrap());
    builder.profile(profile).clock(Clock::fixed(now())).build().unwrap()
}

/// A session without our optimizer rules and defaults.
fn plain(world: &World) -> SessionContext {
    let context = SessionContext::new();
    context.register_catalog(CATALOG, catalog(&connection(world, Profile::v4())).unwrap());
    context
}

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, future).await.unwrap_or_else(|_| panic!("timed out: {what}"))
}

async fn failure(context: &SessionContext, sql: &str) -> Error {
    let result = context.sql(sql).await.unwrap().collect().await;
    Error::find(&result.expect_err(sql)).unwrap().clone()
}

/// Joins, sorts and aggregates complete their dynamic filters late, or never if no operator is seen to use them.
#[tokio::test]
async fn no_plan_waits_for_a_filter_that_never_completes() {
    let world = World::new().await;
    let plain = plain(&world);
    let (s, m) = (format!("{CATALOG}.v4.saved_searches"), format!("{CATALOG}.v4.mentions"));
    let cases = [
        format!("SELECT count(*) FROM {s} s JOIN {m} m ON m.aid = s.aid WHERE m.duration = '1d'"),
        format!(
            "SELECT m.id FROM {m} m JOIN {s} s ON m.aid = s.aid WHERE m.duration = '1d' ORDER BY m.published_at DESC LIMIT 3"
        ),
        format!(
            "SELECT m.id FROM {s} s JOIN {m} m ON m.aid = s.aid WHERE m.duration = '1d' ORDER BY m.aid, m.reach LIMIT 3"
        ),
        format!("SELECT aid, id FROM {m} WHERE duration = '1d' ORDER BY aid DESC, id LIMIT 3"),
        format!("SELECT max(aid), min(aid) FROM {m} WHERE duration = '1d' AND text IS NOT NULL"),
        format!(
            "SELECT DISTINCT m.aid FROM {m} m JOIN {s} s ON m.aid = s.aid WHERE m.duration = '1d' ORDER BY 1 LIMIT 2"
        ),
        format!(
            "SELECT count(*) FROM {m} a JOIN {m} b ON a.aid = b.aid AND a.id = b.id WHERE a.duration = '1d' AND b.duration = '1d'"
        ),
        format!("SELECT count(*) FROM {m} m WHERE m.duration = '1d' AND m.aid = (SELECT max(aid) FROM {s})"),
        format!("SELECT s.aid, m.id FROM {s} s, LATERAL (SELECT id FROM {m} WHERE aid = s.aid AND duration = '1d') m"),
        format!(
            "SELECT count(*) FROM {m} WHERE aid NOT IN (SELECT aid FROM {s} WHERE kind = 'team') AND duration = '1d'"
        ),
    ];
    each_async(cases, async |sql| {
        let mut answers = Vec::new();
        for context in [&world.context, &plain] {
            let batches = in_time(&sql, context.sql(&sql).await.unwrap().collect()).await;
            let mut rows = rows(&batches.unwrap_or_else(|error| panic!("{sql}: {error}")));
            rows.sort();
            answers.push(rows);
        }
        let limited = sql.contains("LIMIT");
        assert_eq!(answers[0].len(), answers[1].len(), "{sql}");
        assert!(limited || answers[0] == answers[1], "{sql}");
    })
    .await;
}

/// A client that reads one partition of a join and ignores the others. If a leaf uses the dynamic filter of the
/// engine's join, the join waits for all of its partitions, whatever the leaf. Our joins have one partition, and
/// without that filter no join waits.
#[tokio::test]
async fn one_partition_of_a_join_can_be_read_alone() {
    let world = World::new().await;
    let plain = plain(&world);
    plain.sql("SET datafusion.optimizer.enable_join_dynamic_filter_pushdown = false").await.unwrap();
    for context in [world.context.clone(), plain] {
        let sql = format!(
            "SELECT s.name, m.id FROM {CATALOG}.v4.saved_searches s JOIN {CATALOG}.v4.mentions m ON m.aid = s.aid \
             WHERE m.duration = '1d'"
        );
        let plan = context.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
        let join = find_join(&plan).expect("the plan has a join");
        let mut stream = join.execute(0, context.task_ctx()).unwrap();
        in_time(&sql, async { while stream.next().await.transpose().unwrap().is_some() {} }).await;
    }
}

/// A constant on the side that an outer join fills with NULL hides its properties from the engine, not the aids from the scan.
#[tokio::test]
async fn aids_pass_through_an_outer_join_with_constants() {
    let world = World::new().await;
    let joined = |columns: &str| {
        format!(
            "SELECT s.aid, m.x FROM saved_searches s LEFT JOIN (SELECT aid, {columns} AS x FROM mentions WHERE duration = '1d') m \
             ON m.aid = s.aid WHERE s.kind = 'saved' AND s.aid IN ('{BIG}', '{OTHER}') ORDER BY m.x NULLS FIRST, 1 LIMIT 5"
        )
    };
    let (_, id) = world.cost(&joined("id")).await;
    let (_, constant) = world.cost(&joined("'x'")).await;
    assert_eq!(constant, id);
}

fn find_join(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    if plan.downcast_ref::<HashJoinExec>().is_some() {
        return Some(Arc::clone(plan));
    }
    plan.children().into_iter().find_map(find_join)
}

/// A connection over a network with added latency, so that requests overlap.
fn slow(world: &World) -> Arc<Connection> {
    let base_url = world.service.base_url();
    let network = Network::try_new(HttpLimits::default(), &base_url.parse().unwrap()).unwrap();
    let network = Scripted::over(Duration::from_millis(200), network, |network, asked| async move {
        network.call(asked.request).await
    });
    let builder = Connection::builder(base_url, Secret::new(KEY).unwrap());
    builder.service(network).clock(Clock::fixed(now())).build().unwrap()
}

#[tokio::test]
async fn equal_requests_under_way_are_shared_between_queries() {
    let world = World::new().await;
    let connection = slow(&world);
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '20d'");
    let (one, other) = (session(&connection).unwrap(), session(&connection).unwrap());
    let (one, other) = (one.sql(&sql).await.unwrap(), other.sql(&sql).await.unwrap());
    let (one, other) = tokio::join!(one.collect(), other.collect());
    let (one, other) = (rows(&one.unwrap()), rows(&other.unwrap()));
    let pages = pages(one.len() as u64);
    assert!(pages > 1 && one.len() == other.len());
    assert!(world.service.requests() < 2 * pages, "{} requests for {pages} pages", world.service.requests());
    let records = connection.client().log().records();
    assert!(records.iter().any(|record| record.cached && record.attempts == 0), "{records:?}");
}

#[tokio::test]
async fn a_query_that_may_not_ask_does_not_keep_others_from_asking() {
    let world = World::new().await;
    let connection = slow(&world);
    let sql = format!("SELECT total_mentions FROM overview WHERE aid IN ('{BIG}', '{OTHER}')");
    let (poor, rich) = (session(&connection).unwrap(), session(&connection).unwrap());
    poor.sql("SET savedsearch.max_requests = 1").await.unwrap();
    let (poor, rich) = (poor.sql(&sql).await.unwrap(), rich.sql(&sql).await.unwrap());
    let (poor, rich) = tokio::join!(poor.collect(), rich.collect());
    assert_eq!(Error::find(&poor.expect_err("two requests exceed the budget")).unwrap().kind(), ErrorKind::Budget);
    assert_eq!(rows(&rich.unwrap()).len(), 2);
}

/// Alternatives that each name a saved search and a time read these saved searches alone, in the window of all alternatives.
#[tokio::test]
async fn alternatives_that_name_their_saved_search_read_no_other() {
    let world = World::new().await;
    let one = |aid: &str, since: &str, language: &str| {
        format!(
            "aid = '{aid}' AND published_at >= '2026-06-{since}' AND published_at < '2026-06-30' AND language = '{language}'"
        )
    };
    let read = |condition: &str| format!("SELECT id, aid FROM mentions WHERE {condition} ORDER BY id, aid");
    for (first, second) in [("26", "26"), ("24", "26")] {
        let (first, second) = (one(BIG, first, "de"), one(OTHER, second, "en"));
        let (rows, requests) = world.cost(&read(&format!("{first} OR {second}"))).await;
        let (mut apart, mut others) = (world.rows(&read(&first)).await, world.rows(&read(&second)).await);
        apart.append(&mut others);
        apart.sort();
        assert_eq!(rows, apart);
        let both = format!("aid IN ('{BIG}', '{OTHER}') AND published_at < '2026-06-30'");
        let since = if first.contains("06-24") { "2026-06-24" } else { "2026-06-26" };
        let (_, of_both) = world.cost(&read(&format!("{both} AND published_at >= '{since}'"))).await;
        assert_eq!(requests, of_both, "{first} OR {second}");
    }
}

/// Sums and casts fail for some values. The oracle is the engine without our rules.
#[tokio::test]
async fn conditions_that_may_fail_hide_no_time_and_no_saved_search_beside_them() {
    let world = World::new().await;
    let plain = plain(&world);
    let since = "published_at >= '2026-06-24'";
    let of_big = format!("aid = '{BIG}' AND {since}");
    let of_both = format!("aid IN ('{BIG}', '{OTHER}') AND {since}");
    let later = "published_at >= '2026-06-26' AND views > 20";
    let cases = [
        (format!("aid = '{BIG}' AND ({since} AND likes + shares > 10 OR {later}) AND likes > 0"), &of_big, 0_u64),
        (
            format!("aid = '{BIG}' AND NOT (published_at < '2026-06-24' OR likes + shares <= 10) AND likes > 0"),
            &of_big,
            0,
        ),
        (
            format!(
                "(aid = '{BIG}' AND likes + shares > 10 OR aid = '{OTHER}' AND views > 20) AND likes > 0 AND {since}"
            ),
            &of_both,
            0,
        ),
        // The list is read for the aids.
        (format!("aid::int = {BIG} AND likes + shares > 100 AND {since}"), &of_big, 1),
    ];
    let read =
        |condition: &str| format!("SELECT id, aid FROM {CATALOG}.v4.mentions WHERE {condition} ORDER BY id, aid");
    for (condition, of, list) in cases {
        let sql = read(&condition);
        let (found, requests) = world.cost(&sql).await;
        assert_eq!(requests, list + world.cost(&read(of)).await.1, "{condition}");
        let expected = plain.sql(&sql).await.unwrap().collect().await.unwrap();
        assert_eq!(found, rows(&expected), "{condition}");
    }
}

#[tokio::test]
async fn a_query_asks_each_question_once() {
    let world = World::new().await;
    let sql = format!(
        "SELECT o.total_mentions, sum(v.mentions) FROM overview o JOIN volume v ON v.aid = o.aid WHERE o.aid = '{BIG}' \
         GROUP BY o.total_mentions UNION ALL SELECT (SELECT count(*) FROM mentions WHERE aid = '{BIG}'), \
         (SELECT sum(mentions) FROM breakdowns WHERE aid = '{BIG}' AND dimension = 'sentiment')"
    );
    let (rows, requests) = world.cost(&sql).await;
    assert_eq!(requests, 1, "{:?}", world.service.take_seen());
    assert_eq!(rows[0], rows[1]);
    assert_eq!(rows[0][0], rows[0][1]);
    // Running the same query again sends the request again.
    assert_eq!(world.cost(&sql).await.1, 1);
    let frame = world.context.sql("SELECT count(*) FROM saved_searches").await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    for _ in 0..2 {
        let before = world.service.requests();
        collect(Arc::clone(&plan), world.context.task_ctx()).await.unwrap();
        assert_eq!(world.service.requests() - before, 1, "running a plan again is a new query");
    }
}

/// The request for the list counts as well.
#[tokio::test]
async fn too_much_for_the_listed_saved_searches_is_refused_once_the_list_is_known() {
    let world = World::new().await;
    let listed = "SELECT count(*) FROM saved_searches WHERE kind <> 'recent'";
    let searches: u64 = world.rows(listed).await[0][0].parse().unwrap();
    assert!(searches > 2);
    world.context.sql(&format!("SET savedsearch.max_requests = {searches}")).await.unwrap();
    let cases = [
        "SELECT aid, count(*) FROM mentions WHERE duration = '7d' GROUP BY aid",
        "SELECT aid, total_mentions FROM overview WHERE duration = '7d'",
        "SELECT id FROM mentions WHERE duration = '7d'",
        "SELECT id FROM mentions WHERE duration = '7d' ORDER BY published_at",
    ];
    each_async(cases, async |sql| {
        let before = world.service.requests();
        let error = failure(&world.context, sql).await;
        assert_eq!((error.kind(), world.service.requests() - before), (ErrorKind::Budget, 1), "{sql}: {error}");
        assert!(error.to_string().contains(&format!("needs at least {} requests", searches + 1)), "{sql}: {error}");
    })
    .await;
    world.context.sql(&format!("SET savedsearch.max_requests = {}", searches + 1)).await.unwrap();
    assert_eq!(world.cost(cases[1]).await.1, searches + 1);
}

#[tokio::test]
async fn too_much_is_refused_before_the_first_request() {
    let world = World::new().await;
    world.context.sql("SET savedsearch.max_requests = 3").await.unwrap();
    let overview = |days| {
        format!("SELECT total_mentions FROM overview WHERE aid IN ('{BIG}', '{OTHER}') AND duration = '{days}d'")
    };
    let sql = format!("{} UNION ALL {}", overview(1), overview(2));
    let error = failure(&world.context, &sql).await;
    assert_eq!(error.kind(), ErrorKind::Budget);
    assert!(
        error.to_string().contains("needs at least 4 requests") && error.to_string().contains("max_requests"),
        "{error}"
    );
    assert_eq!(world.service.requests(), 0);
    // A query that exceeds the declared budget before its deadline is refused too, but EXPLAIN still shows it.
    let mut profile = Profile::v4();
    profile.budget.windows = vec![RateWindow { requests: 1, seconds: 3_000 }];
    let context = session(&connection(&world, profile)).unwrap();
    let error = failure(&context, &overview(1)).await;
    assert_eq!(error.kind(), ErrorKind::Budget);
    assert!(error.to_string().contains("declared budget allows 1"), "{error}");
    context.sql(&format!("EXPLAIN {}", overview(1))).await.unwrap().collect().await.unwrap();
    assert_eq!(world.service.requests(), 0);
}

#[tokio::test]
async fn a_plan_tells_its_cost() {
    let world = World::new().await;
    let cases = [
        (format!("SELECT * FROM overview WHERE aid IN ('{BIG}', '{OTHER}')"), 2, true),
        (format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}'"), 1, true),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}' ORDER BY published_at LIMIT 10 OFFSET 40"), 1, true),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}'"), 1, false),
        (
            format!("SELECT o.aid FROM overview o CROSS JOIN volume v WHERE o.aid = '{BIG}' AND v.aid = '{BIG}'"),
            1,
            true,
        ),
        ("SELECT * FROM saved_searches a JOIN saved_searches b USING (aid)".to_owned(), 1, true),
        ("SELECT id FROM mentions".to_owned(), 1, false),
        ("SELECT id FROM mentions WHERE false".to_owned(), 0, true),
        (format!("SELECT max(published_at) FROM mentions WHERE aid = '{BIG}'"), 1, true),
        (format!("SELECT title, count(*) FROM mentions WHERE aid = '{BIG}' GROUP BY 1 ORDER BY 2 LIMIT 3"), 1, false),
        (format!("SELECT DISTINCT title FROM mentions WHERE aid = '{BIG}' LIMIT 3"), 0, false),
    ];
    each_async(cases, async |(sql, at_least, exact)| {
        let plan = world.context.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
        let cost = plan_cost(&plan);
        assert_eq!((cost.at_least, cost.exact), (at_least, exact), "{sql}\n{cost:?}");
        let spent = world.cost(&sql).await.1;
        assert!(spent >= at_least && (!exact || spent == at_least), "{spent} requests: {sql}");
    })
    .await;
    // The scans of a query do not share responses with mentions.
    let newest = format!("SELECT max(published_at) FROM mentions WHERE aid = '{BIG}'");
    let twice = world.context.sql(&format!("{newest} UNION ALL {newest}")).await.unwrap();
    let cost = plan_cost(&twice.create_physical_plan().await.unwrap());
    assert_ne!((cost.at_least, cost.exact), (1, true), "{cost:?}");
}

#[tokio::test]
async fn periods_that_end_now_are_read_newest_first_and_no_further_than_wanted() {
    let spec = CorpusSpec { seed: 7, searches: 1, mentions: 12_000, now: now() };
    let settings = Settings { clock: Clock::fixed(now()), ..Settings::default() };
    let world = World::with(Arc::new(Corpus::generate(spec)), settings, Profile::v4()).await;
    let text = include_str!("../../src/profile/builtin/v4.toml");
    let text = text
        .replace("relative = [\"h\", \"d\", \"w\"]", "relative = [\"w\"]")
        .replace("default = \"7d\"", "default = \"1w\"");
    let profile = Profile::parse(&text.replace("absolute = ", "# absolute = "), "weeks only").unwrap();
    let context = session(&connection(&world, profile)).unwrap();
    let corpus = world.service.corpus();
    let since = |instant: &str| {
        let instant = instant.parse::<chrono::DateTime<chrono::Utc>>().unwrap();
        let mentions = &corpus.search(BIG).unwrap().mentions;
        mentions.iter().filter(|mention| mention.facts.published >= instant).count()
    };
    // Nine days: two weeks are requested, and read until the first older mention.
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-06-22T12:00:00'");
    let found = rows(&context.sql(&sql).await.unwrap().collect().await.unwrap());
    let (wanted, of) = (since("2026-06-22T12:00:00Z"), since("2026-06-17T12:00:00Z"));
    assert_eq!(found.len(), wanted);
    assert_eq!(world.service.requests(), pages(wanted as u64 + 1));
    assert!(pages(wanted as u64 + 1) < pages(of as u64), "{wanted} of {of} mentions save no page");
    let seen = world.service.take_seen();
    assert!(seen[0].query.contains("duration=2w") && seen[0].query.contains("date_desc"), "{seen:?}");
}

/// The simulator is asked for the same periods by their names, which it resolves itself.
#[tokio::test]
async fn relative_periods_are_sent_as_instants_to_a_service_without_any() {
    let settings = Settings { clock: Clock::fixed(now()), preset: Preset::Flags, ..Settings::default() };
    let world = World::with(corpus(), settings, Profile::builtin("flags").unwrap()).await;
    let text = include_str!("../../src/profile/builtin/flags.toml");
    let own = text
        .replace("parameter = \"duration\"\n", "")
        .replace("relative = [\"h\", \"d\"]", "relative = [\"h\", \"d\"]\nrelative_as = \"instants\"");
    let by_name = session(&connection(&world, Profile::parse(text, "names").unwrap())).unwrap();
    let by_instants = session(&connection(&world, Profile::parse(&own, "instants").unwrap())).unwrap();
    let asked = async |context: &SessionContext, sql: &str| {
        let before = world.service.requests();
        let mut found = rows(&context.sql(sql).await.unwrap().collect().await.unwrap());
        found.sort();
        (found, world.service.requests() - before)
    };
    let of = |rest: &str| format!("SELECT {rest} FROM mentions WHERE aid = '{BIG}'");
    let cases = [
        of("id, duration").replace("WHERE", "WHERE duration = '20d' AND"),
        of("count(*), min(duration)").replace("WHERE", "WHERE duration = '36h' AND"),
        of("id, reach") + " ORDER BY id LIMIT 5",
        of("count(*)"),
        format!("SELECT duration, total_mentions FROM overview WHERE aid = '{BIG}' AND duration = '7d'"),
        format!("SELECT bucket_start, mentions FROM volume WHERE aid = '{BIG}' AND duration = '7d' ORDER BY 1"),
    ];
    each_async(cases, async |sql| {
        let (own, same) = (asked(&by_name, &sql).await.0, asked(&by_instants, &sql).await.0);
        assert!(own == same && !own.is_empty(), "{sql}: {} and {} rows", own.len(), same.len());
    })
    .await;
    // They cost what a range costs.
    let (found, cost) = asked(&by_instants, &of("id").replace("WHERE", "WHERE duration = '20d' AND")).await;
    let range = of("id") + " AND published_at >= TIMESTAMPTZ '2026-06-11T12:00:00Z'";
    assert_eq!((found, cost), asked(&by_name, &range).await);
    let seen = world.service.take_seen();
    assert!(seen.iter().any(|seen| seen.query.contains("since=") && !seen.query.contains("duration=")), "{seen:?}");
    let refused = Profile::parse(&own.replace("epoch_ms", "date"), "days").expect_err("days").to_string();
    assert!(refused.contains("expected days and weeks, because `instants` are dates"), "{refused}");
}

#[tokio::test]
async fn rows_are_left_out_by_the_service_only_if_it_counts_rows() {
    let world = World::new().await;
    let mut profile = Profile::v4();
    profile.offset.unit = OffsetUnit::Page;
    // The simulator counts rows. With a profile that claims pages, it returns wrong rows unless nothing is skipped.
    let paged = session(&connection(&world, profile)).unwrap();
    let sql = format!(
        "SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '90d' ORDER BY reach DESC LIMIT 5 OFFSET 20"
    );
    let plan = paged.sql(&format!("EXPLAIN {sql}")).await.unwrap().collect().await.unwrap();
    assert!(rows(&plan)[1][1].contains("GlobalLimitExec: skip=20, fetch=5"), "{plan:?}");
    let all = world.rows(&sql.replace("LIMIT 5 OFFSET 20", "")).await;
    assert_eq!(world.rows(&sql).await, all[20..25]);
    // Nothing beyond the end, and a partial page at the end.
    assert_eq!(world.rows(&sql.replace("OFFSET 20", "OFFSET 100000")).await.len(), 0);
    let end = format!("OFFSET {}", all.len() - 2);
    assert_eq!(world.rows(&sql.replace("OFFSET 20", &end)).await, all[all.len() - 2..]);
}

#[tokio::test]
async fn now_has_whole_seconds_so_that_ranges_by_it_can_be_counted() {
    let settings = Settings { clock: Clock::system(), ..Settings::default() };
    let world = World::with(corpus(), settings, Profile::v4()).await;
    let sql = "SELECT date_part('microsecond', now()) % 1000000, date_part('microsecond', current_timestamp) % 1000000";
    assert_eq!(world.rows(sql).await, [["0", "0"]]);
    let sql = format!(
        "SELECT count(*) > 0 FROM mentions WHERE aid = '{BIG}' AND published_at >= now() - INTERVAL '4000 days'"
    );
    let (rows, requests) = world.cost(&sql).await;
    assert_eq!((rows, requests), (vec![vec!["true".to_owned()]], 1));
}

/// `>`, `<=` and BETWEEN cost what `>=` and `<` cost: the page in the same response shows which mentions of the bound's
/// second do not belong.
#[tokio::test]
async fn rounded_times_bound_what_is_read() {
    let world = World::new().await;
    let of = |time: &str| {
        format!(
            "SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND {time} >= '2026-01-01' AND {time} < '2026-06-30T00:00:01'"
        )
    };
    let right = world.rows(&of("published_at")).await;
    assert!(right[0][0].parse::<u64>().unwrap() > 300, "{right:?}");
    for digits in [0, 3] {
        assert_eq!(world.rows(&of(&format!("published_at::timestamp({digits})"))).await, right, "{digits}");
    }
}

#[tokio::test]
async fn bounds_on_a_mention_are_counted_in_one_request() {
    let world = World::new().await;
    let time = |at: usize| {
        format!(
            "SELECT published_at FROM mentions WHERE aid = '{BIG}' AND duration = '90d' ORDER BY published_at LIMIT 1 OFFSET {at}"
        )
    };
    let (early, late) = (world.rows(&time(50)).await, world.rows(&time(600)).await);
    let (early, late) = (&early[0][0], &late[0][0]);
    let cases = [
        (format!("published_at > '{early}'"), 1),
        (format!("published_at >= '{early}' AND published_at <= '{late}'"), 1),
        (format!("published_at BETWEEN '{early}' AND '{late}'"), 1),
        (format!("published_at > '{early}' AND published_at < '{late}'"), 1),
        // A page shows one end only.
        (format!("published_at > '{early}' AND published_at <= '{late}'"), 2),
        (format!("published_at > '{early}' AND language = 'de'"), 1),
    ];
    each_async(cases, async |(range, requests)| {
        for sql in [
            format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND {range}"),
            format!("SELECT sentiment, count(*) FROM mentions WHERE aid = '{BIG}' AND {range} GROUP BY 1 ORDER BY 1"),
            format!(
                "SELECT date_trunc('day', published_at), count(*) FROM mentions WHERE aid = '{BIG}' AND {range} GROUP BY 1 ORDER BY 1"
            ),
        ] {
            let (counted, cost) = world.cost(&sql).await;
            world.rows("SET savedsearch.count_from_overview = 'never'").await;
            let read = world.rows(&sql).await;
            world.rows("SET savedsearch.count_from_overview = 'exact'").await;
            assert_eq!(counted, read, "{sql}");
            // A list may not add up to the total here, and is then read.
            if !sql.contains("sentiment") {
                assert_eq!(cost, requests, "{sql}");
            }
        }
    }).await;
    let (_, all) = world.cost("SELECT count(*) FROM mentions WHERE published_at >= '2026-06-01'").await;
    let (_, after) = world.cost("SELECT count(*) FROM mentions WHERE published_at > '2026-06-01'").await;
    assert_eq!(all, after);
}

/// A page that repeats a record, or that is not sorted, proves nothing at the edge of a window.
#[tokio::test]
async fn a_page_at_a_bound_is_believed_only_if_it_proves_itself() {
    for faults in [&["twice"][..], &["sort-ignored", "clamp:rows=1"]] {
        let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let settings = Settings { faults, clock: Clock::fixed(now()), ..Settings::default() };
        let world = World::with(corpus(), settings, Profile::v4()).await;
        let first = format!("SELECT min(published_at) FROM mentions WHERE aid = '{BIG}' AND duration = '7d'");
        let Ok(first) = world.context.sql(&first).await.unwrap().collect().await else { continue };
        let sql =
            format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND published_at > '{}'", rows(&first)[0][0]);
        let counted = world.context.sql(&sql).await.unwrap().collect().await;
        world.rows("SET savedsearch.count_from_overview = 'never'").await;
        let read = world.context.sql(&sql).await.unwrap().collect().await;
        if let (Ok(counted), Ok(read)) = (counted, read) {
            assert_eq!(rows(&counted), rows(&read), "{sql}");
        }
    }
}

/// More mentions in one second than a page has: the second is read, and the rest counted.
#[tokio::test]
async fn a_crowded_second_at_a_bound_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("crowd.ndjson");
    let record = |n: usize| {
        let seconds = if n < 130 { format!("00.{:06}", n / 50) } else { format!("{:02}", n % 60) };
        format!(
            "{{\"aid\":\"7\",\"id\":\"m{n}\",\"publishedAt\":\"2026-06-20T10:0{}:{seconds}Z\"}}\n",
            usize::from(n >= 130)
        )
    };
    std::fs::write(&data, (0..200).map(record).collect::<String>()).unwrap();
    let corpus = Arc::new(Corpus::load(&data).unwrap());
    let world =
        World::with(corpus, Settings { clock: Clock::fixed(now()), ..Settings::default() }, Profile::v4()).await;
    for (bound, count) in [
        ("> '2026-06-20T10:00:00Z'", "150"),
        ("> '2026-06-20T10:00:00.000001Z'", "100"),
        (">= '2026-06-20T10:00:00Z'", "200"),
    ] {
        let sql = format!("SELECT count(*) FROM mentions WHERE aid = '7' AND published_at {bound}");
        assert_eq!(world.rows(&sql).await, [[count]], "{sql}");
    }
}

/// Queries that once returned wrong results, or could, when counts replace mentions.
#[tokio::test]
async fn numbers_are_those_of_the_mentions_one_by_one() {
    let world = World::new().await;
    let never = session(&connection(&world, Profile::v4())).unwrap();
    never.sql("SET savedsearch.count_from_overview = never").await.unwrap();
    let m = format!("(SELECT * FROM mentions WHERE aid IN ('{BIG}', '{OTHER}') AND published_at >= '2026-05-01')");
    let d = "(VALUES ('en', 1), ('de', 2), ('de', 3), ('xx', 4), (NULL, 5)) d(l, n)";
    let cases = [
        // A filter that reaches the scan late.
        format!(
            "SELECT count(*) FROM (SELECT language, row_number() OVER (ORDER BY id) rn FROM {m} m) WHERE upper(language) = 'EN'"
        ),
        format!(
            "SELECT language, count(*) FROM (SELECT language, rank() OVER (ORDER BY published_at) r FROM {m} m) WHERE language <> 'en' GROUP BY 1"
        ),
        // Two scans of one query that could both use counts.
        format!(
            "SELECT count(*) FROM (SELECT a.language FROM {m} a JOIN {m} b ON a.language = b.language AND a.aid = '{BIG}' AND b.aid = '{OTHER}') x"
        ),
        format!(
            "SELECT a.language, count(*), count(b.id) FROM {m} a LEFT JOIN {m} b ON a.language = b.language AND b.aid = '{OTHER}' GROUP BY 1"
        ),
        // Names of scan columns that have become other expressions.
        format!("SELECT count(m.id) FROM (SELECT nullif(language, 'en') AS id FROM {m} m) m"),
        format!(
            "SELECT x.language, count(x.id) FROM (SELECT m.language, d.n AS id FROM {m} m LEFT JOIN {d} ON m.language = d.l) x GROUP BY 1"
        ),
        format!(
            "SELECT max(x.published_at), count(*) FROM (SELECT published_at + INTERVAL '1 day' AS published_at FROM {m} m) x"
        ),
        format!("SELECT upper(language) AS language, count(*) FROM {m} m GROUP BY upper(language)"),
        format!(
            "SELECT date_trunc('day', published_at), count(*) FROM (SELECT published_at + INTERVAL '20 hours' AS published_at FROM {m} m) x GROUP BY 1"
        ),
        // Joins that multiply rows, and outer rows without a mention.
        format!(
            "SELECT d.n, count(*), count(m.id), count(m.language), sum(d.n) FROM {d} LEFT JOIN {m} m ON m.language = d.l GROUP BY 1"
        ),
        format!("SELECT count(*), count(m.aid), count(d.n) FROM {m} m FULL JOIN {d} ON m.language = d.l"),
        format!("SELECT count(*) FROM {m} m WHERE m.language IN (SELECT l FROM {d})"),
        format!("SELECT count(*) FROM {m} m WHERE NOT EXISTS (SELECT 1 FROM {d} WHERE d.l = m.language)"),
        // Expressions by day, by day in a time zone, and some that only look like it.
        format!("SELECT date_part('dow', published_at AT TIME ZONE 'Asia/Tokyo'), count(*) FROM {m} m GROUP BY 1"),
        format!("SELECT (published_at AT TIME ZONE 'Asia/Tokyo')::date, count(*) FROM {m} m GROUP BY 1"),
        format!("SELECT date_trunc('month', published_at AT TIME ZONE 'Africa/Cairo'), count(*) FROM {m} m GROUP BY 1"),
        format!(
            "SELECT count(*) FILTER (WHERE published_at < '2026-05-20'), count(*) FILTER (WHERE published_at <= '2026-05-20T11:00:00') FROM {m} m"
        ),
        // Sums, averages and distinct values over weighted rows.
        format!(
            "SELECT aid, avg(CASE WHEN sentiment = 'negative' THEN 1 ELSE 0 END), sum(CASE WHEN sentiment IS NULL THEN 3 END) FROM {m} m GROUP BY aid HAVING count(*) > 5"
        ),
        format!("SELECT count(DISTINCT language), min(language), bool_and(language = 'en'), count(*) FROM {m} m"),
        format!("SELECT aid, language, count(*) FROM {m} m GROUP BY ROLLUP (aid, language)"),
        format!("SELECT count(*), count(*) FILTER (WHERE language = 'de' AND aid = '{BIG}') FROM {m} m"),
        // Bounds with fractional seconds, and bounds from a subquery.
        format!(
            "SELECT count(*), max(published_at) FROM mentions WHERE aid = '{BIG}' AND published_at BETWEEN '2026-05-03T10:00:00.5' AND '2026-06-03'"
        ),
        format!(
            "SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND published_at >= (SELECT min(bucket_start) FROM volume WHERE aid = '{BIG}' AND duration = '30d')"
        ),
        // A sort order that restarts every day.
        format!("SELECT published_at::time, id FROM {m} m ORDER BY published_at::time, id LIMIT 7"),
    ];
    each_async(cases, async |sql| {
        let mut answers = Vec::new();
        for context in [&world.context, &never] {
            let batches =
                in_time(&sql, context.sql(&sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")).collect()).await;
            let mut rows = rows(&batches.unwrap_or_else(|error| panic!("{sql}: {error}")));
            rows.sort();
            answers.push(rows);
        }
        assert_eq!(answers[0], answers[1], "{sql}");
        assert!(!answers[0].is_empty(), "{sql}");
    })
    .await;
    // A distinct value for each mention.
    let sql = format!("SELECT count(DISTINCT uuid()) = count(*), count(*) > 100 FROM {m} m");
    assert_eq!(world.rows(&sql).await, [["true", "true"]]);
}

#[tokio::test]
async fn conditions_on_the_time_that_do_not_reach_the_scan_are_refused() {
    let world = World::new().await;
    let p = "(VALUES (timestamp '2026-05-01', date '2026-05-02', '183772')) p(start, day, aid)";
    let cases = [
        "SELECT count(*) FROM mentions m JOIN saved_searches s ON s.aid = m.aid AND m.published_at >= s.created_at"
            .to_owned(),
        "SELECT count(*) FROM mentions WHERE published_at::date IN (SELECT date '2026-05-02')".to_owned(),
        format!("SELECT count(*) FROM volume v, {p} WHERE v.bucket_start >= p.start"),
        format!(
            "SELECT count(*) FROM {p} LEFT JOIN mentions m ON m.aid = p.aid WHERE m.published_at >= p.start OR m.id IS NULL"
        ),
        format!(
            "SELECT day, (SELECT count(*) FROM mentions m WHERE m.aid = '{BIG}' AND m.published_at::date = p.day) FROM {p}"
        ),
        format!(
            "SELECT count(*) FROM (SELECT DISTINCT aid, published_at FROM mentions) m, {p} WHERE m.published_at >= p.start"
        ),
        format!("SELECT count(*) FROM (SELECT published_at::date AS day FROM mentions) m JOIN {p} ON m.day = p.day"),
        format!("SELECT count(*) FROM {p} WHERE p.day NOT IN (SELECT published_at::date FROM mentions)"),
        format!(
            "SELECT count(reach) FROM mentions WHERE aid = '{BIG}' AND published_at >= to_timestamp(1790812800 + floor(random()))"
        ),
        format!(
            "SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND date_part('month', published_at) = (SELECT date_part('month', max(created_at)) FROM saved_searches)"
        ),
        format!(
            "SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND published_at IS DISTINCT FROM (SELECT max(NULL::timestamp))"
        ),
        "SELECT count(*) FROM mentions WHERE published_at < (SELECT timestamp '2026-05-01T00:00:00Z')".to_owned(),
        "SELECT count(*) FROM saved_searches s LEFT JOIN mentions m ON m.aid = s.aid WHERE m.published_at >= '2026-01-01' OR m.id IS NULL".to_owned(),
    ];
    each_async(cases, async |sql| {
        let result = match world.context.sql(&sql).await {
            Ok(frame) => frame.collect().await,
            Err(error) => Err(error),
        };
        let error = Error::find(&result.expect_err(&sql)).unwrap_or_else(|| panic!("untyped error: {sql}")).clone();
        assert_eq!(error.kind(), ErrorKind::Query, "{sql}: {error}");
        let searched = world.service.take_seen().into_iter().any(|seen| seen.path == "search");
        assert!(!searched, "{sql}");
    })
    .await;
    // These compare rows of default windows with each other, or bound the time where the scan can see it.
    for sql in [
        format!("SELECT count(*) FROM mentions m JOIN {p} ON m.aid = p.aid AND m.published_at >= p.start WHERE m.published_at >= (SELECT timestamp '2026-05-01T00:00:00Z')"),
        format!("SELECT count(*) FROM mentions m JOIN {p} ON m.aid = p.aid AND m.published_at >= p.start WHERE m.duration = '30d'"),
        "SELECT count(*) FROM mentions m JOIN (SELECT aid, max(published_at) mx FROM mentions GROUP BY aid) x ON m.aid = x.aid AND m.published_at = x.mx".to_owned(),
        "SELECT count(*) FROM mentions m WHERE m.published_at = (SELECT max(published_at) FROM mentions x WHERE x.aid = m.aid)".to_owned(),
        format!("SELECT a.id FROM mentions a LEFT JOIN mentions b ON a.aid = b.aid AND (b.published_at > a.published_at OR (b.published_at = a.published_at AND b.id > a.id)) WHERE b.id IS NULL AND a.aid = '{BIG}'"),
        format!("SELECT count(*) FROM volume v JOIN mentions m ON v.aid = m.aid AND m.published_at >= v.bucket_start AND m.published_at < v.bucket_end WHERE v.aid = '{BIG}'"),
        "SELECT s.aid FROM saved_searches s LEFT JOIN mentions m ON m.aid = s.aid WHERE m.published_at IS NULL".to_owned(),
        "SELECT s.aid FROM saved_searches s LEFT JOIN mentions m ON m.aid = s.aid WHERE m.published_at IS NULL OR s.kind = 'team'".to_owned(),
        "SELECT count(*) FROM (SELECT s.name, m.published_at FROM saved_searches s LEFT JOIN mentions m ON m.aid = s.aid LEFT JOIN overview o ON o.aid = s.aid) WHERE published_at >= '2026-06-20'".to_owned(),
        format!("SELECT id FROM (SELECT id, published_at, lag(published_at) OVER (ORDER BY published_at) p FROM mentions WHERE aid = '{BIG}') WHERE published_at - p > INTERVAL '6 hours'"),
        format!("SELECT source, published_at::date d, count(*) FROM mentions WHERE aid = '{BIG}' GROUP BY ROLLUP(source, published_at::date) HAVING source = 'x.com'"),
        "SELECT aid FROM mentions GROUP BY aid HAVING max(published_at) > timestamp '2026-06-30'".to_owned(),
        format!("SELECT count(*) FROM (SELECT id, published_at, row_number() OVER (ORDER BY published_at) n FROM mentions WHERE aid = '{BIG}') WHERE n < 5"),
    ] {
        world.rows(&sql).await;
    }
    // A bound from a subquery also bounds counts by day.
    let days = |bound| format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND published_at::date >= {bound}");
    assert_eq!(
        world.rows(&days("(SELECT max(date '2026-05-02'))")).await,
        world.rows(&days("date '2026-05-02'")).await
    );
}

/// The announced minimum never exceeds the requests sent: no query that could run is refused.
#[tokio::test]
async fn what_could_be_answered_is_not_refused() {
    let world = World::new().await;
    let three = format!("aid IN ('{BIG}', '{OTHER}', '186006')");
    let none = "s.name = 'none'";
    let cases = [
        (
            format!(
                "SELECT count(*) FROM mentions WHERE aid = '{BIG}' UNION ALL SELECT count(*) FROM mentions WHERE aid = '{BIG}'"
            ),
            1,
        ),
        (
            format!(
                "SELECT o.total_mentions FROM overview('{BIG}') o JOIN breakdowns('{BIG}') b ON b.aid = o.aid WHERE b.dimension = 'source'"
            ),
            1,
        ),
        (format!("SELECT aid FROM overview WHERE {three} LIMIT 1"), 1),
        (format!("SELECT count(*) FROM mentions WHERE {three} AND aid LIKE '183%'"), 1),
        (format!("SELECT total_mentions FROM overview WHERE aid = '{BIG}' AND aid LIKE '9%'"), 0),
        (
            format!(
                "SELECT id FROM mentions WHERE {three} AND aid = (SELECT min(aid) FROM saved_searches WHERE kind = 'saved') LIMIT 1"
            ),
            2,
        ),
        (
            format!(
                "SELECT m.id FROM saved_searches s JOIN mentions m ON m.language = s.name WHERE {none} AND m.{three}"
            ),
            1,
        ),
        (
            format!(
                "SELECT s.aid FROM saved_searches s WHERE {none} AND EXISTS (SELECT 1 FROM mentions m WHERE m.{three} AND m.language = s.name)"
            ),
            1,
        ),
        // Outer rows are read once, also with several correlated subqueries that are no joins.
        (
            "SELECT s.aid FROM saved_searches s WHERE (SELECT count(*) FROM saved_searches t WHERE t.aid > s.aid) < 5"
                .to_owned(),
            1,
        ),
        (
            format!(
                "SELECT s.aid, (SELECT count(*) FROM overview('{BIG}') o WHERE o.aid > s.aid) AS later, \
                 (SELECT count(*) FROM overview('{BIG}') o WHERE o.aid < s.aid) AS earlier FROM saved_searches s"
            ),
            2,
        ),
        (
            format!(
                "SELECT total_mentions FROM overview(['{BIG}', '{OTHER}']) UNION ALL SELECT total_mentions FROM overview('{BIG}')"
            ),
            2,
        ),
    ];
    each_async(cases, async |(sql, least)| {
        world.context.sql(&format!("SET savedsearch.max_requests = {}", least.max(1))).await.unwrap();
        let plan = world.context.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
        let cost = plan_cost(&plan);
        let (_, spent) = world.cost(&sql).await;
        assert_eq!(spent, least, "{sql}\n{:?}", world.service.take_seen());
        assert!(cost.at_least <= spent && (!cost.exact || cost.at_least == spent), "{sql}: {cost:?}");
        world.service.take_seen();
    })
    .await;
}

#[tokio::test]
async fn a_scan_is_planned_once_however_often_it_is_looked_at() {
    let world = World::new().await;
    // The events of planning are registered before they are watched: at the same time as tests in other threads, they could be
    // taken for ones that nobody watches.
    world.rows("SELECT count(*) FROM mentions").await;
    let counted = EventCounter::of("planned");
    let _watched = tracing::subscriber::set_default(counted.clone());
    let day = "published_at >= now() - INTERVAL '1 day'";
    let cases = [
        ("SELECT count(*) FROM mentions".to_owned(), 1),
        (
            format!("SELECT language, count(*) FROM mentions WHERE aid = '{BIG}' AND {day} GROUP BY 1 ORDER BY 2 DESC"),
            1,
        ),
        (format!("SELECT title FROM mentions WHERE aid = '{BIG}' AND {day} ORDER BY published_at DESC LIMIT 5"), 1),
        (format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND length(title) > 5"), 1),
        ("SELECT s.name, count(*) FROM saved_searches s JOIN mentions m ON m.aid = s.aid GROUP BY 1".to_owned(), 2),
        (
            format!(
                "SELECT id FROM mentions WHERE published_at >= (SELECT max(bucket_start) FROM volume WHERE aid = '{BIG}')"
            ),
            2,
        ),
        (format!("WITH m AS (SELECT * FROM mentions WHERE aid = '{BIG}') SELECT count(*) FROM m WHERE {day}"), 1),
        ("SELECT sum(total_mentions) FROM overview UNION ALL SELECT count(*) FROM mentions".to_owned(), 2),
        (format!("SELECT count(*) FILTER (WHERE {day}) FROM mentions WHERE aid = '{BIG}'"), 1),
        (
            format!(
                "SELECT id FROM mentions m WHERE aid = '{BIG}' AND EXISTS (SELECT 1 FROM volume v WHERE v.aid = m.aid)"
            ),
            2,
        ),
    ];
    each_async(cases, async |(sql, scans)| {
        let before = counted.events();
        world.rows(&sql).await;
        assert_eq!(counted.events() - before, scans, "{sql}");
    })
    .await;
}

/// An explicit period sets the window; an additional range only filters.
#[tokio::test]
async fn a_range_without_an_end_beside_a_period_of_the_past_is_no_sign_of_a_wrong_clock() {
    let world = World::new().await;
    let week = "2026-06-01T00:00:00Z..2026-06-08T00:00:00Z";
    let all = format!(
        "SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-06-03' AND published_at < '2026-06-08'"
    );
    let both =
        format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '{week}' AND published_at >= '2026-06-03'");
    let (mut expected, mut found) = (world.rows(&all).await, world.rows(&both).await);
    expected.sort();
    found.sort();
    assert!(!expected.is_empty() && expected == found);
}

/// The budget of a query, and its estimate, are those of all connections that it reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_of_several_connections_has_one_budget() {
    let (mine, theirs) = (World::new().await, World::new().await);
    let context = &mine.context;
    context.register_catalog("theirs", catalog(&connection(&theirs, Profile::v4())).unwrap());
    let requests = || mine.service.requests() + theirs.service.requests();
    let both = "SELECT aid FROM saved_searches UNION ALL SELECT aid FROM theirs.v4.saved_searches";
    let plan = context.sql(both).await.unwrap().create_physical_plan().await.unwrap();
    let cost = plan_cost(&plan);
    assert_eq!((cost.at_least, cost.exact), (2, true));
    context.sql("SET savedsearch.max_requests = 1").await.unwrap();
    assert_eq!((failure(context, both).await.kind(), requests()), (ErrorKind::Budget, 0));
    // How many requests this needs is known while it runs.
    let pages = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '90d'");
    let both = format!("{pages} UNION ALL {}", pages.replace("mentions", "theirs.v4.mentions"));
    context.sql("SET savedsearch.max_requests = 4").await.unwrap();
    assert_eq!(failure(context, &both).await.kind(), ErrorKind::Budget);
    assert!(requests() <= 4, "{}", requests());
    let before = requests();
    context.sql("SET savedsearch.max_requests = 1000").await.unwrap();
    context.sql(&both).await.unwrap().collect().await.unwrap();
    assert!(requests() - before > 4);
}

#[tokio::test]
async fn an_estimate_of_several_scans_adds_what_they_read_and_counts_the_list_once() {
    let world = World::new().await;
    let [long, short] = ["30d", "7d"].map(|words| format!("SELECT id FROM mentions WHERE duration = '{words}'"));
    let both = format!("{long} UNION ALL {short}");
    let cost = async || plan_cost(&world.context.sql(&both).await.unwrap().create_physical_plan().await.unwrap());
    let unknown = cost().await;
    assert_eq!((unknown.at_least, unknown.by_last_list, unknown.likely), (1, None, None));
    let sent = world.cost(&long).await.1 + world.cost(&short).await.1 - 1;
    let known = cost().await;
    let by_last_list = known.by_last_list.unwrap();
    assert_eq!((by_last_list.at_least, by_last_list.exact), (1 + 2 * by_last_list.searches, false));
    assert_eq!((known.likely, world.cost(&both).await.1), (Some(sent), sent));
}

/// The numbers of a plan are complete if it has one scan, as most have.
#[tokio::test]
async fn an_estimate_of_one_scan_is_that_of_the_plan() {
    /// The saved searches that the key may read.
    const SEARCHES: u64 = 4;
    let world = World::new().await;
    let sql = "SELECT id FROM mentions WHERE duration = '30d'";
    let cost =
        async |sql: &str| plan_cost(&world.context.sql(sql).await.unwrap().create_physical_plan().await.unwrap());
    let unknown = cost(sql).await;
    assert_eq!((unknown.likely, unknown.to_string().as_str()), (None, "at least 1"));
    let sent = world.cost(sql).await.1;
    let known = cost(sql).await;
    let by_last_list = known.by_last_list.as_ref().unwrap();
    assert_eq!((by_last_list.searches, by_last_list.at_least), (SEARCHES, 1 + SEARCHES));
    assert_eq!((known.likely, known.totals.known, known.totals.windows), (Some(sent), SEARCHES, SEARCHES));
    let words = format!("at least 5, likely about {sent} (4 saved searches in the last list)");
    assert_eq!(known.to_string(), words);
    // Nothing is likely of a scan that a limit ends.
    let limited = cost("SELECT DISTINCT title FROM mentions WHERE duration = '30d' LIMIT 3").await;
    assert_eq!((limited.scans.len(), limited.likely, limited.by_last_list), (1, None, None));
}

/// Pages are no longer requested together then, but the numbers of mentions are known.
#[tokio::test]
async fn an_estimate_knows_what_a_service_with_small_pages_has() {
    let faults = vec!["clamp:rows=40".parse().unwrap()];
    let settings = Settings { clock: Clock::fixed(now()), faults, ..Settings::default() };
    let world = World::with(corpus(), settings, Profile::v4()).await;
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '90d'");
    let (_, sent) = world.cost(&sql).await;
    let plan = world.context.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
    let likely = plan_cost(&plan).scans[0].likely.unwrap_or_default();
    assert!(sent > 10 && likely.abs_diff(sent) <= sent / 10 + 1, "{sent} instead of about {likely}");
}
