//! Every table can be queried, with the minimum of requests.

use chrono::{DateTime, TimeDelta, Utc};

use datafusion::prelude::SessionContext;
use datafusion_saved_search::simulator::{KEY, Settings};
use datafusion_saved_search::{Clock, Connection, Error, ErrorKind, Profile, Secret, catalog, session};

use crate::support::{BIG, OTHER, World, corpus, each_async, now, pages, rows};

#[tokio::test]
async fn a_scan_gives_each_mention_once_with_as_few_requests_as_there_are_pages() {
    let world = World::new().await;
    let total = world.service.corpus().search(BIG).unwrap().mentions.len() as u64;
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-01-01'");
    let (mut rows, requests) = world.cost(&sql).await;
    rows.sort();
    rows.dedup();
    assert_eq!(rows.len() as u64, total);
    assert_eq!(requests, pages(total));
}

#[tokio::test]
async fn the_tables_work_in_a_plain_session() {
    let world = World::new().await;
    let connection = Connection::builder(world.service.base_url(), Secret::new(KEY).unwrap());
    let connection = connection.clock(Clock::fixed(now())).build().unwrap();
    let context = SessionContext::new();
    context.register_catalog("brand", catalog(&connection).unwrap());
    let total = world.service.corpus().search(BIG).unwrap().mentions.len();
    let everything = format!("FROM brand.v4.mentions WHERE aid = '{BIG}' AND duration = '100d'");
    for (sql, expected, requests) in [
        (format!("SELECT count(*) {everything}"), total.to_string(), pages(total as u64)),
        (format!("SELECT count(*) FROM (SELECT id {everything} ORDER BY published_at DESC LIMIT 10)"), "10".into(), 1),
        ("SELECT count(*) FROM brand.v4.saved_searches WHERE kind = 'team'".into(), "1".into(), 1),
        ("SELECT count(DISTINCT endpoint) FROM brand.system.requests".into(), "2".into(), 0),
    ] {
        let before = world.service.requests();
        let batches = context.sql(&sql).await.unwrap().collect().await.unwrap();
        assert_eq!(rows(&batches), [[expected]], "{sql}");
        assert_eq!(world.service.requests() - before, requests, "{sql}");
    }
}

#[tokio::test]
async fn an_order_above_a_limit_orders_the_limited_rows_only() {
    let world = World::new().await;
    let limited = format!("SELECT * FROM mentions WHERE aid = '{BIG}' AND duration = '60d' LIMIT 3");
    assert_eq!(world.rows(&format!("SELECT id FROM ({limited}) ORDER BY reach DESC LIMIT 5")).await.len(), 3);
    let newest = format!("SELECT * FROM mentions WHERE aid = '{BIG}' ORDER BY published_at DESC LIMIT 20");
    let ids = world.rows(&format!("SELECT id FROM ({newest})")).await;
    for id in world.rows(&format!("SELECT id FROM ({newest}) ORDER BY reach DESC LIMIT 5")).await {
        assert!(ids.contains(&id), "{id:?} is not among the newest");
    }
}

#[tokio::test]
async fn unstable_ties_give_every_mention_once_or_an_error() {
    let faults = vec!["ties".parse().unwrap()];
    let settings = Settings { clock: Clock::fixed(now()), faults, ..Settings::default() };
    let world = World::with(corpus(), settings, Profile::v4()).await;
    let total = world.service.corpus().search(BIG).unwrap().mentions.len();
    for _ in 0..5 {
        let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '100d'");
        match world.context.sql(&sql).await.unwrap().collect().await {
            Ok(batches) => {
                let ids: std::collections::HashSet<_> = rows(&batches).into_iter().collect();
                assert_eq!((ids.len(), batches.iter().map(|b| b.num_rows()).sum::<usize>()), (total, total));
            }
            Err(error) => assert_eq!(Error::find(&error).unwrap().kind(), ErrorKind::Incomplete, "{error}"),
        }
    }
}

#[tokio::test]
async fn breakdowns_without_their_label_are_noted() {
    let world = World::new().await;
    let of = format!("FROM breakdowns WHERE aid = '{BIG}' AND duration = '7d'");
    for sql in [
        format!("SELECT * {of} LIMIT 3"),
        format!("SELECT name, mentions {of} AND dimension = 'source'"),
        format!("SELECT dimension, sum(mentions) {of} GROUP BY 1"),
        format!("SELECT count(*) {of}"),
    ] {
        world.rows(&sql).await;
        assert!(world.rows("SELECT message FROM system.warnings").await.is_empty(), "{sql}");
    }
    world.rows(&format!("SELECT name, mentions {of} LIMIT 3")).await;
    let notes = world.rows("SELECT message FROM system.warnings").await.concat().concat();
    assert!(notes.contains("rows of each dimension (source, author, ") && notes.contains("dimension = '…'"), "{notes}");
}

#[tokio::test]
async fn a_budget_counts_all_saved_searches_of_a_query() {
    let world = World::new().await;
    world.context.sql("SET savedsearch.max_requests = 14").await.unwrap();
    let sql = format!("SELECT id FROM mentions WHERE aid IN ('{BIG}', '{OTHER}') AND duration = '90d'");
    let error = world.context.sql(&sql).await.unwrap().collect().await.expect_err("too many");
    assert_eq!(Error::find(&error).unwrap().kind(), ErrorKind::Budget, "{error}");
    assert!(error.to_string().contains("the query needs"), "{error}");
    assert!(world.service.requests() <= 8, "{} requests sent", world.service.requests());
}

#[tokio::test]
async fn a_limit_is_charged_for_what_it_needs_only() {
    let world = World::new().await;
    world.context.sql("SET savedsearch.max_requests = 2").await.unwrap();
    let all = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '90d'");
    let (rows, requests) = world.cost(&format!("{all} AND text IS NOT NULL LIMIT 5")).await;
    assert_eq!((rows.len(), requests), (5, 1));
    let before = world.service.requests();
    let error = world.context.sql(&all).await.unwrap().collect().await.expect_err("too many");
    assert_eq!(Error::find(&error).unwrap().kind(), ErrorKind::Budget, "{error}");
    assert_eq!(world.service.requests() - before, 1, "the first page reports the total");
}

/// Saved searches whose name begins with Acme: two of four. A scan of one day takes one request per saved search.
#[tokio::test]
async fn joins_ask_only_for_the_saved_searches_of_the_other_side() {
    let world = World::new().await;
    let plain = {
        let connection = Connection::builder(world.service.base_url(), Secret::new(KEY).unwrap());
        let connection = connection.clock(Clock::fixed(now())).build().unwrap();
        let context = SessionContext::new();
        context.register_catalog("datafusion", catalog(&connection).unwrap());
        context.sql("SET datafusion.catalog.default_schema = 'v4'").await.unwrap();
        context
    };
    let acme = "s.name LIKE 'Acme%' AND s.kind = 'saved'";
    let cases = [
        // The list once and a page for each saved search; if the other side is empty, only the list.
        (format!("SELECT count(DISTINCT m.aid) FROM saved_searches s JOIN mentions m ON m.aid = s.aid WHERE {acme} AND m.duration = '1d'"), "2", 3),
        (format!("SELECT count(DISTINCT m.aid) FROM mentions m JOIN saved_searches s ON m.aid = s.aid WHERE {acme} AND m.duration = '1d'"), "2", 3),
        (format!("SELECT count(DISTINCT aid) FROM mentions WHERE aid IN (SELECT aid FROM saved_searches s WHERE {acme}) AND duration = '1d'"), "2", 3),
        (format!("SELECT count(DISTINCT aid) FROM mentions m WHERE EXISTS (SELECT 1 FROM saved_searches s WHERE s.aid = m.aid AND {acme}) AND duration = '1d'"), "2", 3),
        ("SELECT count(*) FROM mentions m JOIN saved_searches s ON m.aid = s.aid WHERE s.name = 'none' AND m.duration = '1d'".into(), "0", 1),
        ("SELECT count(DISTINCT aid) FROM mentions WHERE aid LIKE '%6%' AND duration = '1d'".into(), "1", 2),
        (format!("SELECT count(DISTINCT aid) FROM mentions WHERE aid <> '{BIG}' AND duration = '1d'"), "3", 4),
        (format!("SELECT count(*) > 0 FROM overview o JOIN saved_searches s ON o.aid = s.aid WHERE {acme}"), "true", 3),
    ];
    each_async(cases, async |(sql, expected, requests)| {
        for (context, kind) in [(&world.context, "ours"), (&plain, "plain")] {
            let before = world.service.requests();
            let batches = context.sql(&sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")).collect().await.unwrap();
            assert_eq!(rows(&batches), [[expected]], "{kind}: {sql}");
            let spent = world.service.requests() - before;
            // A session without our defaults may start the other side early; its result must still be correct.
            assert!(
                spent == requests || kind == "plain",
                "{spent} requests, expected {requests}: {sql}\n{:?}",
                world.service.take_seen()
            );
            world.service.take_seen();
        }
    })
    .await;
}

#[tokio::test]
async fn a_text_of_the_time_is_not_met_by_the_default_window() {
    let world = World::new().await;
    let sql = "SELECT id FROM mentions WHERE CAST(published_at AS VARCHAR) = '2026-05-01T00:00:00Z'";
    let error = world.context.sql(sql).await.unwrap().collect().await.expect_err("an unbounded range");
    assert!(error.to_string().contains("no lower bound for"), "{error}");
}

#[tokio::test]
async fn requests_are_as_few_as_can_be() {
    let world = World::new().await;
    let year = "published_at >= '2026-01-01'";
    let all = world.service.corpus().search(BIG).unwrap().mentions.len() as u64;
    let pages = pages(all);
    let cases = [
        (format!("SELECT * FROM mentions WHERE aid = '{BIG}' ORDER BY published_at DESC LIMIT 10"), 1),
        (format!("SELECT * FROM mentions WHERE aid = '{BIG}' ORDER BY reach DESC LIMIT 10"), 1),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {year} ORDER BY engagement LIMIT 100"), 1),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {year} LIMIT 5"), 1),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {year} LIMIT 150"), 2),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {year}"), pages),
        (
            format!(
                "SELECT id FROM mentions WHERE aid IN ('{BIG}', '{OTHER}') AND {year} ORDER BY published_at DESC LIMIT 10"
            ),
            2,
        ),
        (format!("SELECT id FROM mentions WHERE {year} ORDER BY reach DESC LIMIT 100"), 5),
        (format!("SELECT count(*) FROM overview WHERE aid IN ('{BIG}', '{OTHER}')"), 2),
        (format!("SELECT * FROM volume WHERE aid = '{BIG}'"), 1),
        (format!("SELECT * FROM breakdowns WHERE aid = '{BIG}' AND dimension = 'source'"), 1),
        ("SELECT aid FROM saved_searches".to_owned(), 1),
        ("SELECT id FROM mentions LIMIT 5".to_owned(), 2),
        ("SELECT id FROM mentions LIMIT 0".to_owned(), 0),
        ("SELECT id FROM mentions WHERE false".to_owned(), 0),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND aid = '{OTHER}'"), 0),
        ("SELECT id FROM mentions WHERE language = 'en' AND language = 'de'".to_owned(), 0),
        ("EXPLAIN SELECT id FROM mentions".to_owned(), 0),
        ("DESCRIBE mentions".to_owned(), 0),
        ("SHOW TABLES".to_owned(), 0),
        ("SELECT count(*) FROM information_schema.columns".to_owned(), 0),
        ("SELECT * FROM system.requests".to_owned(), 0),
        ("SELECT * FROM system.profile".to_owned(), 0),
    ];
    each_async(cases, async |(sql, requests)| {
        let (_, spent) = world.cost(&sql).await;
        assert_eq!(spent, requests, "{sql}\n{:?}", world.service.take_seen());
        world.service.take_seen();
    })
    .await;
}

/// The table in the section "SQL by example" of docs/costs.md. The README repeats some of its rows.
#[tokio::test]
async fn the_costs_in_the_documentation_are_what_queries_cost() {
    let world = World::new().await;
    let corpus = world.service.corpus();
    let facts = || corpus.search(BIG).unwrap().mentions.iter().map(|mention| &mention.facts);
    let week = now() - TimeDelta::days(7);
    let today = now().date_naive();
    let before_today = |at: &DateTime<Utc>| (today - TimeDelta::days(14)..today).contains(&at.date_naive());
    let two_weeks = facts().filter(|facts| before_today(&facts.published)).count() as u64;
    let negative = facts()
        .filter(|facts| facts.published >= week && facts.sentiment.as_deref() == Some("negative"))
        .count() as u64;
    let last_week = facts().filter(|facts| facts.published >= week).count() as u64;
    let searches = corpus.searches.iter().filter(|search| search.team == 0).count() as u64;
    let costs = include_str!("../../docs/costs.md").split("## SQL by example").nth(1).unwrap();
    let rows = costs.lines().skip_while(|line| !line.starts_with("| `")).take_while(|line| line.starts_with("| `"));
    let rows: Vec<&str> = rows.collect();
    let repeated = include_str!("../../README.md").lines().filter(|line| line.starts_with("| `SELECT"));
    let repeated: Vec<&str> = repeated.collect();
    assert!(repeated.len() >= 6, "only {} rows in the README", repeated.len());
    for row in repeated {
        assert!(rows.contains(&row), "docs/costs.md does not have the README's row {row}");
    }
    let mut checked = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [queries, cost] = cells.as_slice() else { panic!("{row}") };
        let expected = match *cost {
            "1 + s" => 1 + searches,
            cost if cost.starts_with("⌈n/99⌉, n counting negative") => pages(negative),
            "⌈n/99⌉" => pages(two_weeks),
            "the same; here some mentions have no language, which no list counts: ⌈n/99⌉" => pages(last_week),
            // The lists of this service add up.
            cost if cost.starts_with("1 if the list in the response adds up") => 1,
            number => number.parse().unwrap_or_else(|_| panic!("{row}")),
        };
        for query in queries.split('`').skip(1).step_by(2) {
            let query =
                query.replace("… WHERE", "SELECT id FROM mentions WHERE").replace('…', "SELECT id FROM mentions");
            // The clock of this session is real, and that of its service is not.
            let query = query.replace("current_date", &format!("date '{today}'"));
            let (_, spent) = world.cost(&query).await;
            assert_eq!(spent, expected.max(u64::from(!matches!(*cost, "0"))), "{query}");
            checked += 1;
        }
    }
    assert!(checked >= 15, "only {checked} queries of docs/costs.md were checked");
}

/// Every query of docs/recipes.md, and the cost below it.
#[tokio::test]
async fn the_recipes_cost_what_they_say() {
    let world = World::new().await;
    let corpus = world.service.corpus();
    let mut checked = 0;
    for recipe in include_str!("../../docs/recipes.md").split("```sql\n").skip(1) {
        let (query, rest) = recipe.split_once("\n```\n").unwrap();
        let cost = rest.lines().find_map(|line| line.strip_prefix("Cost: ")).unwrap();
        let (_, spent) = world.cost(query).await;
        let days = cost.split_once("n over ").and_then(|(_, days)| days.split(' ').next()?.parse().ok());
        let expected = match days {
            Some(days) => {
                let since = now() - TimeDelta::days(days);
                let mentions = corpus.search(BIG).unwrap().mentions.iter();
                pages(mentions.filter(|mention| mention.facts.published >= since).count() as u64)
            }
            None => cost.split(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{cost}")),
        };
        assert_eq!(spent, expected, "{query}");
        checked += 1;
    }
    assert!(checked >= 10, "only {checked} recipes were checked");
}

#[tokio::test]
async fn names_of_the_list_are_known_afterwards_and_no_query_hangs_on_them() {
    let world = World::new().await;
    let connection = Connection::builder(world.service.base_url(), Secret::new(KEY).unwrap()).build().unwrap();
    let context = session(&connection).unwrap();
    assert_eq!(connection.known_searches(), None);
    context.sql("SELECT aid FROM saved_searches").await.unwrap().collect().await.unwrap();
    let known = connection.known_searches().unwrap();
    assert!(known.contains(&(BIG.to_owned(), "Acme – brand".to_owned())));

    // The recent searches in this list have no name.
    let name = "{ name = \"name\", type = \"utf8\", at = \"/name\" }";
    let text = include_str!("../../src/profile/builtin/v4.toml");
    let text = text.replacen(name, "{ name = \"name\", type = \"utf8\", null = false, at = \"/name\" }", 1);
    let profile = Profile::parse(&text, "named").unwrap();
    let world = World::with(corpus(), Settings { clock: Clock::fixed(now()), ..Settings::default() }, profile).await;
    assert_eq!(world.rows("SELECT id FROM mentions LIMIT 3").await.len(), 3);
}
