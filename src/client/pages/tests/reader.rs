//! Page reader over a service with one row per second: its requests, and the rows emitted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt;
use http::{HeaderMap, StatusCode};
use savedsearch_clock::Clock;
use tokio::time::{Instant, sleep};

use crate::client::{
    Client, ClientSpec, Exchanges, HttpFailure, HttpRequest, HttpResponse, HttpService, Page, PageDecoder, PageFacts,
    Prefetch, QueryBudget, RetryPolicy, Scan, Secret, parse_base_url, read_pages,
};
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{End, Profile, Zone};
use crate::request::{Beside, Echo, Endpoint, PageRequest, Pages, RequestPlan};

const SECOND: i64 = 1_000_000;
/// Requested period.
const HOUR: &str = "1970-01-01T00:00:00Z..1970-01-01T01:00:00Z";

/// Simulated service, which takes a second to respond. Records the time, the first row and the number of rows of each request.
#[derive(Debug)]
struct Service {
    profile: Arc<Profile>,
    rows: AtomicI64,
    /// Maximum size of a page.
    most: AtomicUsize,
    asked: Mutex<Vec<(Instant, usize, usize)>>,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let parameters: HashMap<String, String> = request.url.query_pairs().into_owned().collect();
        let number = |name: &str| parameters[name].parse::<usize>().expect("a number");
        let (from, size) = (number("dataFrom"), number("dataSize"));
        self.asked.lock().expect("not poisoned").push((Instant::now(), from, size));
        sleep(Duration::from_secs(1)).await;
        let window = &self.profile.window;
        let (start, end) = window.span_of(&parameters["duration"], Zone::UTC).expect("valid period");
        let (start, end) = (start.timestamp_micros(), end.timestamp_micros());
        let within = |at: &i64| start <= *at && (*at < end || (*at == end && !window.is_half_open()));
        let all: Vec<i64> = (0..self.rows.load(Ordering::Relaxed)).map(|row| row * SECOND).filter(within).collect();
        let page: Vec<i64> = all.iter().copied().skip(from).take(size.min(self.most.load(Ordering::Relaxed))).collect();
        let body = serde_json::to_vec(&(all.len(), page)).expect("JSON");
        let wire_bytes = body.len() as u64;
        Ok(HttpResponse { status: StatusCode::OK, headers: HeaderMap::new(), body: body.into(), wire_bytes })
    }
}

/// Rows by their instants; the id of each is its second.
#[derive(Debug, Clone)]
struct Seconds {
    ids: Vec<u64>,
    times: Vec<i64>,
}

impl Seconds {
    fn at(times: Vec<i64>) -> Self {
        let ids = times.iter().map(|at| u64::try_from(at / SECOND).expect("after 1970")).collect();
        Self { ids, times }
    }
}

impl Page for Seconds {
    fn ids(&self) -> Option<&[u64]> {
        Some(&self.ids)
    }

    fn times(&self) -> Option<&[i64]> {
        Some(&self.times)
    }

    fn keys(&self) -> Option<&[i64]> {
        self.times()
    }

    fn versions(&self) -> Option<&[i64]> {
        None
    }

    fn bytes(&self) -> usize {
        0
    }

    fn retain(self, keep: &[bool]) -> Self {
        Self::at(self.times.into_iter().zip(keep).filter(|(_, keep)| **keep).map(|(at, _)| at).collect())
    }

    fn last_row(&self) -> Self {
        Self::at(self.times.last().copied().into_iter().collect())
    }
}

struct Decoder;

impl PageDecoder for Decoder {
    type Page = Seconds;

    fn decode(&self, _: &PageRequest, body: &[u8]) -> Result<(Seconds, PageFacts)> {
        let (total, times): (u64, Vec<i64>) =
            serde_json::from_slice(body).map_err(|error| Error::new(ErrorKind::Malformed, error.to_string()))?;
        let rows = times.len() as u64;
        let facts = PageFacts {
            rows,
            total: Some(total),
            hint: None,
            beside: Beside::default(),
            counted_days: None,
            echo: Echo::default(),
        };
        Ok((Seconds::at(times), facts))
    }
}

/// A service with 25 rows, and its client. Each has an address of its own, because clients of one address share their limits.
fn service(change: impl FnOnce(&mut Profile)) -> (Arc<Service>, Arc<Client>) {
    static SERVICES: AtomicUsize = AtomicUsize::new(0);
    let number = SERVICES.fetch_add(1, Ordering::Relaxed);
    let mut profile = Profile::v4();
    change(&mut profile);
    let profile = Arc::new(profile);
    let (rows, most, asked) = (AtomicI64::new(25), AtomicUsize::new(usize::MAX), Mutex::default());
    let service = Arc::new(Service { profile: Arc::clone(&profile), rows, most, asked });
    let spec = ClientSpec {
        base_url: parse_base_url(&format!("http://reader-{number}.test/v4")).expect("valid URL"),
        key: Secret::new("key").expect("valid key"),
        profile,
        service: Arc::clone(&service) as Arc<dyn HttpService>,
        clock: Clock::system(),
        retry: RetryPolicy::default(),
        state_folder: None,
        keeps_estimates: false,
        shown_as: None,
        exchanges: Exchanges::Live,
    };
    (service, Arc::new(Client::try_new(spec).expect("client is built")))
}

/// Reads the rows of a period.
async fn rows(client: &Arc<Client>, duration: &str, pages: Pages, prefetch: Prefetch) -> Vec<u64> {
    let budget = QueryBudget::new("query-1".to_owned(), 1_000, Duration::from_secs(60), Duration::from_secs(60));
    let scan = Arc::new(Scan::new(Arc::new(budget), 4));
    let plan = RequestPlan {
        endpoint: Endpoint::Search,
        aid: Some("7".to_owned()),
        duration: Some(duration.to_owned()),
        timezone: Some("UTC".to_owned()),
        sort: Some("date_asc".to_owned()),
        pages: Some(pages),
        ..RequestPlan::list()
    };
    let pages = read_pages(Arc::clone(client), scan, Arc::new(plan), Arc::new(Decoder), prefetch);
    let pages: Vec<Seconds> = pages.try_collect().await.expect("all rows");
    pages.into_iter().flat_map(|page| page.ids).collect()
}

/// Takes the requests made so far: the second in which each was sent, and its first row.
fn requests(service: &Service, begun: Instant) -> Vec<(u64, usize)> {
    let asked = std::mem::take(&mut *service.asked.lock().expect("not poisoned"));
    let mut asked: Vec<_> = asked.into_iter().map(|(at, from, _)| ((at - begun).as_secs(), from)).collect();
    asked.sort_unstable();
    asked
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_cut_gives_just_what_is_wanted_and_overlaps_by_instants_if_only_links_prove_it() {
    let (half_open, closed) = (End::Exclusive, End::Inclusive);
    for (prefetch, fetch, ordered, end, careful) in [
        // If the reader may stop early, nothing judges the unread rows.
        (Prefetch::OnDemand, None, true, half_open, true),
        (Prefetch::OnDemand, Some(18), true, half_open, true),
        (Prefetch::Ahead(1), Some(20), true, half_open, true),
        // Without an order, any rows will do; and a reader of all rows has the totals.
        (Prefetch::OnDemand, None, false, half_open, false),
        (Prefetch::Ahead(1), None, true, half_open, false),
        (Prefetch::Ahead(1), None, false, half_open, false),
        // A part that shares its ends with others cannot be read again.
        (Prefetch::Ahead(1), None, false, closed, true),
    ] {
        let case = format!("{prefetch:?} {fetch:?} ordered={ordered} {end:?}");
        let pages = Pages { size: 5, skip: 0, fetch, ordered };
        let (service, client) = service(|profile| {
            profile.depth.rows = Some(10);
            profile.window.end = end;
        });
        let ids = rows(&client, HOUR, pages, prefetch).await;
        let asked = service.asked.lock().expect("not poisoned").clone();
        let asked: Vec<_> = asked.into_iter().map(|(_, from, size)| (from, size)).collect();
        assert_eq!(ids, (0..fetch.unwrap_or(25)).collect::<Vec<u64>>(), "{case}");
        // The second page begins two rows back, at a completely received instant, or one row back.
        assert_eq!(asked.contains(&(3, 5)), careful, "{case}: {asked:?}");
        assert!(careful || asked.contains(&(4, 5)), "{case}: {asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_that_the_last_total_covers_are_requested_with_the_first_one() {
    let (service, client) = service(|_| ());
    let pages = Pages { size: 5, skip: 0, fetch: None, ordered: false };
    let ahead = Prefetch::Ahead(3);
    let all = |count: u64| (0..count).collect::<Vec<_>>();

    // The first time, only a response tells how many pages there are. The last page is not full.
    let begun = Instant::now();
    assert_eq!(rows(&client, HOUR, pages, ahead).await, all(25));
    let first = requests(&service, begun);
    assert_eq!(first[..2], [(0, 0), (1, 4)]);
    assert_eq!(first.len(), 7);

    // Now three requests are sent at once, and no more of them in all.
    let begun = Instant::now();
    assert_eq!(rows(&client, HOUR, pages, ahead).await, all(25));
    let second = requests(&service, begun);
    assert_eq!(second[..3], [(0, 0), (0, 4), (0, 8)]);
    assert_eq!(second.len(), 7);

    // A limit below a page needs no second one, and a reader that may stop requests one after another.
    let begun = Instant::now();
    let few = Pages { fetch: Some(4), ..pages };
    assert_eq!(rows(&client, HOUR, few, ahead).await, all(4));
    assert_eq!(requests(&service, begun), [(0, 0)]);
    let begun = Instant::now();
    assert_eq!(rows(&client, HOUR, pages, Prefetch::OnDemand).await, all(25));
    assert_eq!(requests(&service, begun)[..2], [(0, 0), (1, 4)]);

    // More rows than expected are all read, and so are fewer; a page that was requested needlessly is not used.
    service.rows.store(60, Ordering::Relaxed);
    assert_eq!(rows(&client, HOUR, pages, ahead).await, all(60));
    requests(&service, begun);
    service.rows.store(6, Ordering::Relaxed);
    let begun = Instant::now();
    assert_eq!(rows(&client, HOUR, pages, ahead).await, all(6));
    assert_eq!(requests(&service, begun), [(0, 0), (0, 4), (0, 8), (1, 4)]);

    // What a part of the window has is not known.
    let begun = Instant::now();
    service.rows.store(25, Ordering::Relaxed);
    assert_eq!(rows(&client, "1970-01-01T00:00:00Z..1970-01-01T00:30:00Z", pages, ahead).await, all(25));
    assert_eq!(requests(&service, begun)[..2], [(0, 0), (1, 4)]);

    // A service that returns smaller pages than requested shows that once.
    assert_eq!(rows(&client, HOUR, pages, ahead).await, all(25));
    requests(&service, begun);
    service.most.store(3, Ordering::Relaxed);
    let mut counts = Vec::new();
    for _ in 0..3 {
        let begun = Instant::now();
        assert_eq!(rows(&client, HOUR, pages, ahead).await, all(25));
        let asked = requests(&service, begun);
        counts.push(asked.iter().filter(|(second, _)| *second == 0).count());
    }
    assert_eq!(counts, [3, 1, 1]);
}
