//! Every table answers, with the least requests.

use crate::support::{BIG, OTHER, World};

#[tokio::test]
async fn a_scan_gives_each_mention_once_with_as_few_requests_as_there_are_pages() {
    let world = World::new().await;
    let total = world.service.corpus().search(BIG).unwrap().mentions.len() as u64;
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= '2026-01-01'");
    let (mut rows, requests) = world.cost(&sql).await;
    rows.sort();
    rows.dedup();
    assert_eq!(rows.len() as u64, total);
    assert_eq!(requests, total.div_ceil(100));
}

#[tokio::test]
async fn requests_are_as_few_as_can_be() {
    let world = World::new().await;
    let year = "published_at >= '2026-01-01'";
    let all = world.service.corpus().search(BIG).unwrap().mentions.len() as u64;
    let pages = all.div_ceil(100);
    for (sql, requests) in [
        (format!("SELECT * FROM mentions WHERE aid = '{BIG}' ORDER BY published_at DESC LIMIT 10"), 1),
        (format!("SELECT * FROM mentions WHERE aid = '{BIG}' ORDER BY reach DESC LIMIT 10"), 1),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {year} ORDER BY engagement LIMIT 100"), 1),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {year} LIMIT 5"), 1),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {year} LIMIT 150"), 2),
        (format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND {year}"), pages),
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
    ] {
        let (_, spent) = world.cost(&sql).await;
        assert_eq!(spent, requests, "{sql}\n{:?}", world.service.take_seen());
        world.service.take_seen();
    }
}
