//! Sessions of a server share its store.

use std::sync::Arc;
use std::time::Duration;

use datafusion_saved_search::client::HttpLimits;
use datafusion_saved_search::flight::FlightServer;
use datafusion_saved_search::host::{Auth, Upstream};
use datafusion_saved_search::simulator::{KEY, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, Secret};
use tempfile::TempDir;

use super::access::users;
use super::ends::get;
use super::{Served, all_rows, open};
use crate::support::{BIG, InProcess, corpus, now};

#[tokio::test(flavor = "multi_thread")]
async fn sessions_share_a_store() {
    let folder = TempDir::new().unwrap();
    let clock = Clock::fixed(now());
    let settings = Settings { clock: clock.clone(), delay: Duration::from_millis(20), ..Settings::default() };
    let simulator = Simulator::new(corpus(), settings);
    let service = Arc::new(InProcess(simulator.clone(), HttpLimits::default()));
    let builder = Connection::builder("http://stored.test/v4", Secret::new(KEY).unwrap());
    let connection = builder.service(service).clock(clock).store(folder.path()).build().unwrap();
    let mut spec = open(Upstream::Own { connection: Arc::clone(&connection), named: Vec::new() });
    spec.host.settings.freshness = Duration::from_secs(900);
    spec.host.operations = Some("127.0.0.1:0".parse().unwrap());
    let server = FlightServer::start(spec).await.unwrap();
    let served = Served { simulator, connection, server };
    let (mut one, mut other) = (served.client().await, served.client().await);
    assert_eq!(all_rows(&mut one, "SHOW savedsearch.freshness").await, [["savedsearch.freshness", "15m"]]);
    let sql = format!(
        "SELECT id FROM mentions WHERE aid = '{BIG}' AND published_at >= TIMESTAMP '2026-05-01T00:00:00Z' ORDER BY id"
    );
    // Days that a session reads are waited for by the other.
    let both = async {
        let later = async {
            tokio::time::sleep(Duration::from_millis(40)).await;
            all_rows(&mut other, &sql).await
        };
        tokio::join!(all_rows(&mut one, &sql), later)
    };
    let ((first, second), together) = served.cost(both).await;
    assert_eq!(first, second);
    let mut third = served.client().await;
    let (again, cost) = served.cost(all_rows(&mut third, &sql)).await;
    assert_eq!((again, cost), (first.clone(), 0));
    all_rows(&mut third, "SET savedsearch.store = 'off'").await;
    let (alone, cost) = served.cost(all_rows(&mut third, &sql)).await;
    assert_eq!((alone, cost), (first, together), "two sessions took as many requests as one");
    let (_, text) = get(served.server.operations().unwrap(), "/metrics");
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let kept = served.connection.store_statistics().unwrap();
    assert_eq!(value("savedsearch_store_days "), kept.days_from_store);
    assert_eq!(value("savedsearch_store_requests_saved "), kept.requests_saved);
    assert_eq!(value("savedsearch_store_rows_skipped "), kept.rows_skipped);
    assert!(kept.days_from_store >= 62 && kept.requests_saved >= 2 * (together - 1), "{kept:?}");
}

/// Rows of the system table that have conditions are those of the user.
#[tokio::test(flavor = "multi_thread")]
async fn the_conditions_of_others_are_not_shown() {
    let folder = TempDir::new().unwrap();
    let clock = Clock::fixed(now());
    let simulator = Simulator::new(corpus(), Settings { clock: clock.clone(), ..Settings::default() });
    let service = Arc::new(InProcess(simulator.clone(), HttpLimits::default()));
    let builder = Connection::builder("http://stored.test/v4", Secret::new(KEY).unwrap());
    let connection = builder.service(service).clock(clock).store(folder.path()).build().unwrap();
    let mut spec = open(Upstream::Own { connection: Arc::clone(&connection), named: Vec::new() });
    spec.host.auth = Auth::Users(users());
    let served = Served { simulator, connection, server: FlightServer::start(spec).await.unwrap() };
    let mut ada = served.client().await;
    ada.handshake("ada", "swordfish").await.unwrap();
    let mut bob = served.client().await;
    bob.set_header("x-api-key", "bobs-token");
    let since = "published_at >= TIMESTAMP '2026-05-01T00:00:00Z'";
    let sql = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND language = 'de' AND {since}");
    assert!(!all_rows(&mut ada, &sql).await.is_empty());
    let seen = "SELECT filters FROM system.store WHERE filters <> ''";
    assert_eq!(all_rows(&mut ada, seen).await, [[r#"{"language":["de"]}"#]]);
    assert!(all_rows(&mut bob, seen).await.is_empty());
}
