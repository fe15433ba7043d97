//! A corpus of real records, loaded from a file and queried by year, source and text.
//!
//! The file is next to the repository. `tests/run` runs the test if the file exists.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use datafusion_saved_search::simulator::{Corpus, Settings};
use datafusion_saved_search::{Clock, Profile};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::support::{World, pages, repository};

#[tokio::test]
#[ignore = "needs ../shared/data/mentions.ndjson.gz"]
async fn real_records_are_counted_right_by_year_source_and_text() {
    let path = repository().join("../shared/data/mentions.ndjson.gz");
    assert!(path.exists(), "{} not found", path.display());
    let mut by_year: BTreeMap<String, u64> = BTreeMap::new();
    let (mut by_source, mut with_text, mut all) = (BTreeMap::<String, u64>::new(), 0, 0);
    for line in BufReader::new(GzDecoder::new(std::fs::File::open(&path).unwrap())).lines() {
        let record: Value = serde_json::from_str(&line.unwrap()).unwrap();
        all += 1;
        if record["aid"] != "700109" {
            continue;
        }
        *by_year.entry(record["publishedAt"].as_str().unwrap()[..4].to_owned()).or_default() += 1;
        *by_source.entry(record["source"]["name"].as_str().unwrap().to_owned()).or_default() += 1;
        with_text += u64::from(record["text"].as_str().is_some_and(|text| text.contains("tokio")));
    }
    // The records extend beyond the time of the other tests.
    let clock = Clock::fixed("2027-01-01T00:00:00Z".parse().unwrap());
    let settings = Settings { clock, ..Settings::default() };
    let world = World::with(Arc::new(Corpus::load(&path).unwrap()), settings, Profile::v4()).await;
    let one = "aid = '700109' AND published_at >= '2000-01-01'";
    let pairs = |counts: &BTreeMap<String, u64>| {
        counts.iter().map(|(key, count)| vec![key.clone(), count.to_string()]).collect::<Vec<_>>()
    };
    let years =
        format!("SELECT date_part('year', published_at), count(*) FROM mentions WHERE {one} GROUP BY 1 ORDER BY 1");
    assert_eq!(world.rows(&years).await, pairs(&by_year));
    let sources = format!("SELECT source, count(*) FROM mentions WHERE {one} GROUP BY 1 ORDER BY 1");
    assert_eq!(world.rows(&sources).await, pairs(&by_source));
    let texts = format!("SELECT count(*) FROM mentions WHERE {one} AND text LIKE '%tokio%'");
    assert_eq!(world.rows(&texts).await, [[with_text.to_string()]]);
    let (year, count) = by_year.iter().max_by_key(|(_, count)| **count).unwrap();
    let sql =
        format!("SELECT count(*) FROM mentions WHERE aid = '700109' AND date_part('year', published_at) = {year}");
    let (rows, requests) = world.cost(&sql).await;
    assert_eq!((rows, requests), (vec![vec![count.to_string()]], 1), "counted from the overview");
    world.context.sql("SET savedsearch.count_from_overview = never").await.unwrap();
    let (rows, requests) = world.cost(&sql).await;
    assert_eq!((rows, requests), (vec![vec![count.to_string()]], pages(*count)), "counted from mentions");
    assert_eq!(world.rows(&years).await, pairs(&by_year));
    assert_eq!(world.rows(&sources).await, pairs(&by_source));
    let everything = "SELECT count(*), count(DISTINCT id) FROM mentions WHERE published_at >= '2000-01-01'";
    assert_eq!(world.rows(everything).await, [[all.to_string(), all.to_string()]]);
}
