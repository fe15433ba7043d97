//! EXPLAIN shows the parameters sent, the residual filter, the window, the page size and the requests.

use datafusion_saved_search::Profile;
use datafusion_saved_search::simulator::Settings;

use crate::support::{BIG, Virtual, World, corpus, each};

async fn plan(world: &World, sql: &str) -> String {
    let rows = world.rows(&format!("EXPLAIN {sql}")).await;
    let physical = rows.into_iter().find(|row| row[0] == "physical_plan").unwrap();
    physical[1].clone()
}

#[tokio::test]
async fn plans_say_what_will_be_asked() {
    let world = World::new().await;
    let queries = [
        ("newest_ten", "SELECT id, title FROM mentions WHERE aid = '183772' ORDER BY published_at DESC LIMIT 10"),
        (
            "declared_filters_and_a_range",
            "SELECT id FROM mentions WHERE aid = '183772' AND language IN ('de', 'en') AND sentiment = 'negative' \
             AND published_at >= '2026-06-01' AND published_at < '2026-06-15'",
        ),
        (
            "a_residual_filter_keeps_the_limit_here",
            "SELECT id FROM mentions WHERE aid = '183772' AND reach > 1000 LIMIT 5",
        ),
        (
            "duration_and_zone_as_given",
            "SELECT id FROM mentions WHERE aid = '183772' AND duration = '30d' AND timezone = 'Europe/Berlin'",
        ),
        ("all_saved_searches", "SELECT id FROM mentions WHERE duration = '1d'"),
        ("several_aids", "SELECT count(*) FROM mentions WHERE aid IN ('183772', '184889')"),
        (
            "several_in_one_order",
            "SELECT id FROM mentions WHERE aid IN ('183772', '184889') ORDER BY published_at DESC LIMIT 10",
        ),
        (
            "a_day_in_a_zone",
            "SELECT mentions FROM volume WHERE aid = '183772' AND timezone = 'Europe/Berlin' AND bucket_start::date = '2026-03-28'",
        ),
        (
            "an_order_with_nulls_first_stays_here",
            "SELECT reach FROM mentions WHERE aid = '183772' ORDER BY reach DESC NULLS FIRST LIMIT 3",
        ),
        ("the_list", "SELECT name FROM saved_searches WHERE name LIKE 'Acme%'"),
        (
            "an_expression_over_an_order",
            "SELECT upper(title) FROM mentions WHERE aid = '183772' ORDER BY published_at DESC LIMIT 10",
        ),
        (
            "a_second_key_ends_the_sort_early",
            "SELECT id FROM mentions WHERE aid = '183772' ORDER BY published_at DESC, id LIMIT 10",
        ),
        (
            "an_order_through_a_join",
            "SELECT s.name, m.id FROM saved_searches s JOIN mentions m ON m.aid = s.aid \
             WHERE s.name LIKE 'Acme%' ORDER BY m.published_at DESC LIMIT 10",
        ),
        ("an_offset", "SELECT id FROM mentions WHERE aid = '183772' ORDER BY reach DESC LIMIT 10 OFFSET 500"),
        (
            "days_apart",
            "SELECT id FROM mentions WHERE aid = '183772' AND published_at::date IN ('2026-05-02', '2026-06-10')",
        ),
        (
            "a_month_of_a_zone",
            "SELECT id FROM mentions WHERE aid = '183772' \
             AND date_trunc('month', published_at AT TIME ZONE 'Europe/Berlin') = '2026-03-01'",
        ),
        (
            "those_of_another_query",
            "SELECT id FROM mentions WHERE aid IN (SELECT aid FROM saved_searches WHERE kind = 'team')",
        ),
        (
            "the_one_of_another_query",
            "SELECT id FROM mentions WHERE aid = (SELECT min(aid) FROM saved_searches) LIMIT 3",
        ),
        (
            "a_lateral_join",
            "SELECT s.name, m.id FROM saved_searches s, LATERAL (SELECT id FROM mentions WHERE aid = s.aid) m",
        ),
        ("a_count", "SELECT count(*) FROM mentions WHERE aid = '183772' AND language = 'de'"),
        ("a_count_by_a_list", "SELECT source, count(*) FROM mentions WHERE aid = '183772' GROUP BY source"),
        (
            "a_count_by_days",
            "SELECT (published_at AT TIME ZONE 'Europe/Berlin')::date, count(*) FROM mentions WHERE aid = '183772' \
             AND published_at >= '2026-06-01' AND published_at < '2026-07-01' GROUP BY 1",
        ),
        ("first_and_last", "SELECT min(published_at), max(published_at), count(*) FROM mentions WHERE aid = '183772'"),
        (
            "a_count_through_a_join",
            "SELECT s.name, count(m.id) FROM saved_searches s LEFT JOIN mentions m ON m.aid = s.aid GROUP BY s.name",
        ),
        ("a_count_of_what_stays_here", "SELECT count(*) FROM mentions WHERE aid = '183772' AND reach > 10"),
        ("a_count_by_what_no_list_has", "SELECT title, count(*) FROM mentions WHERE aid = '183772' GROUP BY title"),
        (
            "a_table_function",
            "SELECT id FROM mentions(aid => '183772', duration => '30d', sort_by => 'reach_desc') LIMIT 10",
        ),
        ("a_contradiction_asks_nothing", "SELECT id FROM mentions WHERE language = 'en' AND language = 'de'"),
    ];
    for (name, sql) in queries {
        let plan = plan(&world, sql).await;
        insta::assert_snapshot!(name, format!("{sql}\n\n{plan}"));
    }
    assert_eq!(world.service.requests(), 0);
}

#[tokio::test]
async fn explain_analyze_counts_what_was_spent() {
    let world = World::new().await;
    let sql = "EXPLAIN ANALYZE SELECT id FROM mentions WHERE aid = '183772' AND duration = '90d' LIMIT 150";
    let text = world.rows(sql).await.into_iter().flatten().collect::<String>();
    let cases = [
        "requests=2",
        "pages=2",
        "retries=0",
        "mentions_received=150",
        "duplicates_dropped=0",
        "type_conflicts=0",
        "mentions_from_store=0",
        "reads_not_stored=0",
        "files_looked_up=0",
        "rows_skipped=0",
        "wait_ms=",
        "bytes_received=",
    ];
    each(cases, |counter| {
        assert!(text.contains(counter), "no {counter} in {text}");
    });
}

#[tokio::test(start_paused = true)]
async fn only_limits_of_the_service_count_as_waits() {
    let sql = format!("EXPLAIN ANALYZE SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '7d' LIMIT 1");
    for (fault, waits) in [("503@1", false), ("429:retry-after=3@1", true)] {
        let world = Virtual::new(corpus(), &[fault], Settings::default(), Profile::v4());
        let text = world.rows(&sql).await.concat().concat();
        assert!(text.contains("retries=1"), "{fault}: {text}");
        assert_eq!(!text.contains("wait_ms=0"), waits, "{fault}: {text}");
        let record = world.connection.client().log().records().into_iter().find(|record| record.attempts == 2).unwrap();
        assert_eq!((record.wait.is_zero(), record.pause.is_zero()), (!waits, waits), "{fault}");
    }
}

/// The verdicts in the metrics of a query.
async fn verdict(world: &Virtual, sql: &str) -> String {
    let text = world.rows(&format!("EXPLAIN ANALYZE {sql}")).await.concat().concat();
    let shown = text.split_once("verdict=").unwrap_or_else(|| panic!("no verdict in {text}")).1;
    shown.split(['\n', ']']).next().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn verdicts_of_scans_counts_and_lists_say_what_shows_them() {
    let all =
        format!("FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-06-01' AND published_at < '2026-06-20'");
    let rows = format!("SELECT id {all}");
    let (count, of_language) = (format!("SELECT count(*) {all}"), format!("SELECT count(*) {all} AND language = 'en'"));
    let days = format!("SELECT date_trunc('day', published_at), count(*) {all} GROUP BY 1");
    let limited = format!("{rows} LIMIT 90");
    let list = "SELECT aid FROM saved_searches";
    let every = format!("SELECT count(DISTINCT id) {}", all.replace(&format!("aid = '{BIG}' AND "), ""));
    let mut shown = Vec::new();
    for (faults, statements) in [
        (vec![], vec![&*rows, &count, &of_language, &days, &limited, list, &every]),
        (vec!["delete:at=start@4"], vec![&*rows]),
        (vec!["depth:rows=60,answer=empty"], vec![&*rows]),
        (vec!["overview:by=25"], vec![&*rows, &count]),
        (vec!["timeline:by=25"], vec![&*count]),
        (vec!["list:name=languages,by=3"], vec![&*of_language]),
        (vec!["total:by=300"], vec![&*rows]),
    ] {
        for sql in statements {
            let mut profile = Profile::v4();
            profile.page.max = 40;
            let world = Virtual::new(corpus(), &faults, Settings::default(), profile);
            world.rows("SET savedsearch.completeness = 'report'").await;
            shown.push(format!("{faults:?} {sql}\n    {}", verdict(&world, sql).await));
            let logged = "SELECT verdict FROM system.requests WHERE verdict IS NOT NULL";
            shown.push(format!("    {:?}", world.rows(logged).await.concat()));
        }
    }
    insta::assert_snapshot!("verdicts", shown.join("\n"));
}
