//! Spans: their tree, their fields, and what must not be in them.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use datafusion_saved_search::simulator::KEY;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::support::{BIG, OTHER, World};

/// A span of the library.
#[derive(Debug, Clone)]
struct Captured {
    name: &'static str,
    level: Level,
    /// Position of the parent among the captured spans.
    parent: Option<usize>,
    fields: Fields,
    closed: bool,
}

#[derive(Debug, Clone, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

#[derive(Debug, Default)]
struct Spans {
    all: Vec<Captured>,
    /// Positions of the open ones.
    open: HashMap<u64, usize>,
}

/// The spans captured so far.
#[derive(Debug, Clone, Default)]
struct Capture(Arc<Mutex<Spans>>);

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Capture {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        let parent = context.span(id).unwrap().parent().map(|parent| parent.id().into_u64());
        let mut spans = self.0.lock().unwrap();
        let parent = parent.and_then(|parent| spans.open.get(&parent).copied());
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let at = spans.all.len();
        spans.open.insert(id.into_u64(), at);
        spans.all.push(Captured { name: metadata.name(), level: *metadata.level(), parent, fields, closed: false });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut spans = self.0.lock().unwrap();
        if let Some(at) = spans.open.get(&id.into_u64()).copied() {
            values.record(&mut spans.all[at].fields);
        }
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        let mut spans = self.0.lock().unwrap();
        if let Some(at) = spans.open.remove(&id.into_u64()) {
            spans.all[at].closed = true;
        }
    }
}

impl Capture {
    /// Captures the spans of the library on this thread until the guard is dropped.
    fn start(&self) -> DefaultGuard {
        // Tests on other threads have no subscriber. A span that they meet first must not be cached as one that nobody wants.
        static EVERYWHERE: Once = Once::new();
        EVERYWHERE.call_once(|| {
            let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
        });
        let own = filter_fn(|metadata| metadata.target().starts_with("datafusion_saved_search"));
        tracing::subscriber::set_default(tracing_subscriber::registry().with(self.clone().with_filter(own)))
    }
}

impl Captured {
    fn field(&self, name: &str) -> &str {
        self.fields.0.get(name).unwrap_or_else(|| panic!("no field `{name}`: {self:?}"))
    }

    fn number(&self, name: &str) -> u64 {
        self.field(name).parse().unwrap_or_else(|error| panic!("{name}: {error}: {self:?}"))
    }
}

/// Returns the spans of a query with its rows and its cost.
async fn spans_of(world: &World, sql: &str) -> (Vec<Captured>, Vec<Vec<String>>, u64) {
    let capture = Capture::default();
    let (rows, cost) = {
        // All tasks of this runtime run on this thread.
        let _captured = capture.start();
        let (rows, cost) = world.cost(sql).await;
        // Tasks that were aborted end when they are next polled.
        for _ in 0..10_000 {
            if capture.0.lock().unwrap().open.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        (rows, cost)
    };
    let spans = capture.0.lock().unwrap().all.clone();
    for span in &spans {
        assert!(span.closed, "still open: {span:?}");
        for (name, value) in span.fields.0.iter().filter(|(_, value)| value.parse::<u64>().is_err()) {
            for text in [KEY, BIG, OTHER, "SELECT", "published_at", "language", "duration", "http", "/", "v4", "?"] {
                assert!(!value.contains(text), "`{text}` in {name}: {span:?}");
            }
        }
    }
    (spans, rows, cost)
}

fn named<'a>(spans: &'a [Captured], name: &'a str) -> impl Iterator<Item = &'a Captured> {
    spans.iter().filter(move |span| span.name == name)
}

/// Asserts that the spans are one query with its scans, each with its requests, and returns the query.
fn assert_tree(spans: &[Captured], requests: u64) -> &Captured {
    let queries: Vec<_> = named(spans, "query").collect();
    let [query] = queries[..] else { panic!("not one query: {spans:#?}") };
    assert_eq!((query.level, query.parent), (Level::INFO, None));
    for (name, parent) in [("scan", "query"), ("request", "scan")] {
        for span in named(spans, name) {
            assert_eq!(span.level, Level::DEBUG);
            assert_eq!(span.parent.map(|at| spans[at].name), Some(parent), "{span:?}");
            assert_eq!(span.field("query"), query.field("query"));
        }
    }
    assert_eq!(named(spans, "request").map(|request| request.number("attempts")).sum::<u64>(), requests);
    assert_eq!(named(spans, "scan").map(|scan| scan.number("requests")).sum::<u64>(), requests);
    assert_eq!(query.number("requests"), requests);
    query
}

#[tokio::test]
async fn a_query_has_a_span_with_its_scan_and_its_requests() {
    let world = World::new().await;
    let sql = format!("SELECT id, title FROM mentions WHERE aid = '{BIG}' AND language = 'en' AND duration = '30d'");
    let (spans, rows, cost) = spans_of(&world, &sql).await;
    let query = assert_tree(&spans, cost);
    let [scan] = named(&spans, "scan").collect::<Vec<_>>()[..] else { panic!("{spans:#?}") };
    assert_eq!((scan.field("table"), scan.number("searches")), ("mentions", 1));
    assert_eq!((scan.number("rows"), scan.number("retries")), (rows.len() as u64, 0));
    assert!((1..=cost).contains(&scan.number("pages")), "{scan:?}");
    let bytes: u64 = named(&spans, "request").map(|request| request.number("bytes")).sum();
    assert!(bytes > 0 && bytes == scan.number("bytes"), "{spans:#?}");
    for request in named(&spans, "request") {
        assert_eq!((request.number("status"), request.field("endpoint")), (200, "search"));
        assert_eq!((request.field("shared"), request.field("otel.kind")), ("false", "client"));
        assert!(request.number("wait_ms") < 60_000);
    }
    assert!(named(&spans, "request").map(|request| request.number("rows")).sum::<u64>() >= rows.len() as u64);
    let known = world.rows("SELECT DISTINCT query FROM system.requests").await;
    assert_eq!(known, [[query.field("query").to_owned()]]);
}

/// The list and the overviews are requested by tasks that scans share, and operators above run on tasks of their own.
#[tokio::test]
async fn requests_of_other_tasks_are_in_the_span_of_their_scan() {
    let world = World::new().await;
    let sql = "SELECT language, count(*) FROM mentions GROUP BY 1";
    let (spans, _, cost) = spans_of(&world, sql).await;
    assert_tree(&spans, cost);
    let endpoints: Vec<&str> = named(&spans, "request").map(|request| request.field("endpoint")).collect();
    assert!(endpoints.contains(&"list") && endpoints.contains(&"search"), "{spans:#?}");
    assert!(named(&spans, "scan").all(|scan| scan.number("searches") > 1), "{spans:#?}");
    // Two scans of one query.
    let of = |aid: &str| format!("SELECT total_mentions FROM overview('{aid}')");
    let sql = format!("{} UNION ALL {}", of(BIG), of(OTHER));
    let (spans, _, cost) = spans_of(&world, &sql).await;
    assert_tree(&spans, cost);
    assert_eq!(named(&spans, "scan").count(), 2, "{spans:#?}");
}

#[tokio::test]
async fn a_failed_request_names_its_kind_and_not_its_message() {
    let world = World::new().await;
    let capture = Capture::default();
    {
        let _captured = capture.start();
        let frame = world.context.sql("SELECT id FROM mentions WHERE aid = '000'").await.unwrap();
        frame.collect().await.unwrap_err();
    }
    let spans = capture.0.lock().unwrap().all.clone();
    let [request] = named(&spans, "request").collect::<Vec<_>>()[..] else { panic!("{spans:#?}") };
    assert_eq!((request.field("error"), request.number("status")), ("NotFound", 404));
    for span in named(&spans, "request").chain(named(&spans, "scan")) {
        assert_eq!(span.field("otel.status_code"), "ERROR", "{span:?}");
    }
    assert!(spans.iter().all(|span| span.fields.0.values().all(|value| value != "000")), "{spans:#?}");
}
