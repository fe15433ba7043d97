//! EXPLAIN shows what is sent, what is left, the window, the page size and the requests.

use crate::support::World;

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
    for counter in ["requests=2", "pages=2", "retries=0", "mentions_received=150", "type_conflicts=0"] {
        assert!(text.contains(counter), "no {counter} in {text}");
    }
}
