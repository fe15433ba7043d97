//! Page reader over a service with one row per second: its requests, and the rows emitted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt;
use http::{HeaderMap, StatusCode};

use crate::client::{
    Client, ClientSpec, Exchanges, HttpFailure, HttpRequest, HttpResponse, HttpService, Pace, Page, PageDecoder,
    PageFacts, QueryBudget, RetryPolicy, Scan, Secret, parse_base_url, read_pages,
};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::profile::{End, Profile, Zone};
use crate::request::{Endpoint, PageRequest, Pages, RequestPlan};

/// Rows of the service.
const ROWS: i64 = 25;
const SECOND: i64 = 1_000_000;
/// Requested period.
const HOUR: &str = "1970-01-01T00:00:00Z..1970-01-01T01:00:00Z";

/// Simulated service, with the first row and the number of rows of each request.
#[derive(Debug)]
struct Service {
    profile: Arc<Profile>,
    asked: Mutex<Vec<(usize, usize)>>,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpFailure> {
        let parameters: HashMap<String, String> = request.url.query_pairs().into_owned().collect();
        let number = |name: &str| parameters[name].parse::<usize>().expect("a number");
        let (from, size) = (number("dataFrom"), number("dataSize"));
        self.asked.lock().expect("not poisoned").push((from, size));
        let window = &self.profile.window;
        let (start, end) = window.span_of(&parameters["duration"], Zone::UTC).expect("valid period");
        let (start, end) = (start.timestamp_micros(), end.timestamp_micros());
        let within = |at: &i64| start <= *at && (*at < end || (*at == end && !window.is_half_open()));
        let all: Vec<i64> = (0..ROWS).map(|row| row * SECOND).filter(within).collect();
        let page: Vec<i64> = all.iter().copied().skip(from).take(size).collect();
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
        let facts = PageFacts { rows: times.len() as u64, total: Some(total), hint: None, counted: None, window: None };
        Ok((Seconds::at(times), facts))
    }
}

/// Returns the rows emitted, and the first row and the number of rows of each request.
async fn read(pages: Pages, pace: Pace, change: impl FnOnce(&mut Profile)) -> (Vec<u64>, Vec<(usize, usize)>) {
    let mut profile = Profile::v4();
    change(&mut profile);
    let profile = Arc::new(profile);
    let service = Arc::new(Service { profile: Arc::clone(&profile), asked: Mutex::default() });
    let spec = ClientSpec {
        base_url: parse_base_url("http://reader.test/v4").expect("valid URL"),
        key: Secret::new("key").expect("valid key"),
        profile,
        service: Arc::clone(&service) as Arc<dyn HttpService>,
        clock: Clock::system(),
        retry: RetryPolicy::default(),
        state_folder: None,
        exchanges: Exchanges::Live,
    };
    let client = Arc::new(Client::try_new(spec).expect("client is built"));
    let budget = QueryBudget::new("query-1".to_owned(), 1_000, Duration::from_secs(60), Duration::from_secs(60));
    let scan = Arc::new(Scan::new(Arc::new(budget), 4));
    let plan = RequestPlan {
        endpoint: Endpoint::Search,
        aid: Some("7".to_owned()),
        duration: Some(HOUR.to_owned()),
        timezone: Some("UTC".to_owned()),
        sort: Some("date_asc".to_owned()),
        pages: Some(pages),
        ..RequestPlan::list()
    };
    let read: Vec<Seconds> =
        read_pages(client, scan, Arc::new(plan), Arc::new(Decoder), pace).try_collect().await.expect("all rows");
    let asked = service.asked.lock().expect("not poisoned").clone();
    (read.into_iter().flat_map(|page| page.ids).collect(), asked)
}

#[tokio::test]
async fn a_window_that_is_cut_gives_just_what_is_wanted_and_overlaps_by_instants_where_only_links_prove_it() {
    let (half_open, closed) = (End::Exclusive, End::Inclusive);
    for (pace, fetch, ordered, end, careful) in [
        // If the reader may stop early, nothing judges the unread rows.
        (Pace::OnDemand, None, true, half_open, true),
        (Pace::OnDemand, Some(18), true, half_open, true),
        (Pace::Ahead(1), Some(20), true, half_open, true),
        // Without an order, any rows will do; and a reader of all rows has the totals.
        (Pace::OnDemand, None, false, half_open, false),
        (Pace::Ahead(1), None, true, half_open, false),
        (Pace::Ahead(1), None, false, half_open, false),
        // A part that shares its ends with others cannot be read again.
        (Pace::Ahead(1), None, false, closed, true),
    ] {
        let case = format!("{pace:?} {fetch:?} ordered={ordered} {end:?}");
        let pages = Pages { size: 5, skip: 0, fetch, ordered };
        let (ids, asked) = read(pages, pace, |profile| {
            profile.depth.rows = Some(10);
            profile.window.end = end;
        })
        .await;
        assert_eq!(ids, (0..fetch.unwrap_or(25)).collect::<Vec<u64>>(), "{case}");
        // The second page begins two rows back, at a completely received instant, or one row back.
        assert_eq!(asked.contains(&(3, 5)), careful, "{case}: {asked:?}");
        assert!(careful || asked.contains(&(4, 5)), "{case}: {asked:?}");
    }
}
