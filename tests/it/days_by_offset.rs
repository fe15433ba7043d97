//! A service whose timeline has dates, which are days of the requested zone: 25 requests show it at any hour of a winter day, when days
//! of London are those of UTC. What a query returns is compared with the mentions of the service.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveTime, TimeDelta, Utc};
use datafusion_saved_search::client::{Direct, HttpService};
use datafusion_saved_search::probe::{Facts, Probed, probe_knowing};
use datafusion_saved_search::{Clock, Connection, Profile, Secret, session};
use serde_json::{Value, json};

use crate::support::{Answer, Asked, Scripted, each_async, rows, status};

/// Requests that a probe may send.
const CALLS: u64 = 25;
const KEY: &str = "hk_days_by_offset";
const AID: &str = "31";
/// Mentions of the last hundred days.
const MENTIONS: usize = 2_600;
/// The depth of paging.
const DEPTH: usize = 1_000;
/// Filters, with the values of the fields that they compare.
const FILTERS: [(&str, &[&str]); 4] = [
    ("lang", &["en", "en", "de", "fr", "es"]),
    ("tone", &["POS", "NEU", "NEG", "NEU"]),
    ("domain", &["x.com", "reddit.com", "news.example"]),
    ("country", &["DE", "US", "FR", "IN", "BR", "JP", "US"]),
];

/// Mentions by their numbers, newest first.
struct Service {
    now: DateTime<Utc>,
    times: Vec<DateTime<Utc>>,
}

/// A requested window with its zone.
struct Window {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    zone: FixedOffset,
}

impl Service {
    fn new(now: DateTime<Utc>) -> Self {
        let mut state: u64 = 20;
        let mut ago = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            TimeDelta::milliseconds(i64::try_from((state >> 20) % 8_640_000_000).unwrap() + 60_000)
        };
        let mut times: Vec<DateTime<Utc>> = (0..MENTIONS).map(|_| now - ago()).collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        Self { now, times }
    }

    fn answer(&self, asked: &Asked) -> Answer {
        let answer = match asked.list {
            true => status(200, &list()),
            false => match self.search(asked) {
                Ok(body) => status(200, &body),
                Err(refusal) => refusal,
            },
        };
        answer.with("date", &httpdate::fmt_http_date(self.now.into()))
    }

    fn search(&self, asked: &Asked) -> Result<Value, Answer> {
        let Window { from, to, zone } = self.window(asked)?;
        let number = |name: &str, least: usize| {
            let text = Some(asked.text(name)).filter(|text| !text.is_empty());
            let number = text.map_or(Some(least), |text| text.parse::<usize>().ok().filter(|number| *number >= least));
            number.ok_or_else(|| refused(name, &format!("{name}: expected a whole number of {least} or more")))
        };
        let (size, page) = (number("dataSize", 0)?.min(50), number("dataFrom", 1)?);
        let order = Some(asked.text("sortBy")).filter(|order| !order.is_empty()).unwrap_or("-published_at");
        let is_wanted = |name: &str, value: &str| {
            let wanted = asked.text(name);
            wanted.is_empty() || wanted.split(',').any(|wanted| wanted == value)
        };
        let is_empty = asked.text("aid") != AID;
        let mut found: Vec<usize> = (0..MENTIONS)
            .filter(|n| !is_empty && (from..to).contains(&self.times[*n]))
            .filter(|n| FILTERS.iter().all(|(name, values)| is_wanted(name, value(*n, values))))
            .collect();
        let day = |n: &usize| self.times[*n].with_timezone(&zone).date_naive();
        let (first, last) = (from.with_timezone(&zone), (to - TimeDelta::milliseconds(1)).with_timezone(&zone));
        let days = first.date_naive().iter_days().take_while(|day| *day <= last.date_naive());
        let mut daily: BTreeMap<String, u64> = days.map(|day| (day.to_string(), 0)).collect();
        found.iter().for_each(|n| *daily.entry(day(n).to_string()).or_default() += 1);
        let mut languages: BTreeMap<&str, u64> = BTreeMap::new();
        found.iter().for_each(|n| *languages.entry(value(*n, FILTERS[0].1)).or_default() += 1);
        let total = found.len();
        match order {
            "-published_at" => {}
            "published_at" => found.reverse(),
            "-reach" => found.sort_by_key(|n| std::cmp::Reverse(reach(*n))),
            "reach" => found.sort_by_key(|n| reach(*n)),
            other => return Err(refused("sortBy", &format!("sortBy: cannot sort by '{other}'"))),
        }
        let mut body = json!({
            "request": {
                "aid": asked.text("aid"), "since": from.with_timezone(&zone).to_rfc3339(),
                "until": to.with_timezone(&zone).to_rfc3339(), "timezone": zone.to_string(), "sortBy": order,
            },
            "summary": {"volume": total, "daily": daily, "byLanguage": languages},
        });
        if size > 0 {
            let at = (page - 1).saturating_mul(size);
            let found = found.into_iter().take(DEPTH).skip(at).take(size);
            let items: Vec<Value> = found.map(|n| record(n, self.times[n].with_timezone(&zone))).collect();
            body["data"] = json!({"items": items});
        }
        Ok(body)
    }

    fn window(&self, asked: &Asked) -> Result<Window, Answer> {
        let zone = Some(asked.text("timezone")).filter(|zone| !zone.is_empty()).unwrap_or("+00:00");
        let zone: FixedOffset =
            zone.parse().map_err(|_| refused("timezone", "timezone: expected a UTC offset such as +02:00"))?;
        let ends = [asked.text("startDate"), asked.text("endDate")];
        if ends.iter().any(|end| !end.is_empty()) {
            let day = |end: &str| end.parse::<NaiveDate>().ok();
            let (Some(first), Some(last)) = (day(ends[0]), day(ends[1])) else {
                let text = "startDate, endDate: expected two days YYYY-MM-DD, the later one last";
                return Err(refused("dates", text));
            };
            let start =
                |day: NaiveDate| day.and_time(NaiveTime::MIN).and_local_timezone(zone).unwrap().with_timezone(&Utc);
            return Ok(Window { from: start(first), to: start(last + TimeDelta::days(1)), zone });
        }
        let period = Some(asked.text("duration")).filter(|period| !period.is_empty()).unwrap_or("P7D");
        let hours = [("PT", 'H', 1), ("P", 'D', 24), ("P", 'W', 168)].into_iter().find_map(|(head, tail, hours)| {
            let number = period.strip_prefix(head)?.strip_suffix(tail)?;
            number.parse::<i64>().ok().filter(|number| (1..4_000).contains(number)).map(|number| number * hours)
        });
        let Some(hours) = hours else {
            let text = "duration: expected an ISO 8601 duration such as P7D or PT24H";
            return Err(refused("duration", text));
        };
        Ok(Window { from: self.now - TimeDelta::hours(hours), to: self.now, zone })
    }

    /// The number of mentions on each day of UTC, from so many days ago until so many.
    fn days(&self, from: i64, to: i64) -> Vec<Vec<String>> {
        let day = |ago: i64| self.now.date_naive() - TimeDelta::days(ago);
        let count = |day: NaiveDate| self.times.iter().filter(|at| at.date_naive() == day).count().to_string();
        (to + 1..=from).rev().map(|ago| vec![count(day(ago))]).collect()
    }
}

fn list() -> Value {
    json!({"data": {"items": [{"aid": 30, "label": "Old campaign"}, {"aid": 31, "label": "Acme"}]}})
}

fn refused(field: &str, message: &str) -> Answer {
    status(400, &json!({"code": format!("validation.{field}"), "message": message}))
}

/// The value of a mention among these.
fn value(n: usize, values: &[&'static str]) -> &'static str {
    values[n * 7_907 % 1_009 % values.len()]
}

fn reach(n: usize) -> usize {
    n * 7_919 % 100_003
}

fn record(n: usize, at: DateTime<FixedOffset>) -> Value {
    json!({
        "uid": format!("x:{n}"), "link": format!("https://x.test/{n}"), "content": format!("mention {n}"),
        "published_at": at.to_rfc3339(), "lang": value(n, FILTERS[0].1),
        "tone": value(n, FILTERS[1].1), "origin": {"domain": value(n, FILTERS[2].1)},
        "location": {"country": value(n, FILTERS[3].1)}, "kind": value(n, &["post", "comment", "article"]), "reach": reach(n),
    })
}

async fn probed(service: &Arc<Scripted>, example: Option<&str>) -> Probed {
    let (address, key) = ("http://days.test/v4".parse().unwrap(), Secret::new(KEY).unwrap());
    let mut facts = Facts::default();
    if let Some(example) = example {
        facts.example(example, None).unwrap();
    }
    let source = Arc::new(Direct::new(Arc::clone(service) as Arc<dyn HttpService>));
    probe_knowing(source, address, key, CALLS, None, facts).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_days_of_the_requested_zone_are_found_at_any_hour() {
    const EXAMPLE: &str = "http://days.test/v4/search?aid=31&dataSize=20&dataFrom=1&duration=P7D&sortBy=-published_at";
    let midnight: DateTime<Utc> = "2026-12-01T00:00:00Z".parse().unwrap();
    let cases = (0..24).step_by(4).flat_map(|hour| [(hour, None), (hour, Some(EXAMPLE))]);
    each_async(cases, async |(hour, example)| {
        let now = midnight + TimeDelta::minutes(60 * hour + 17);
        let data = Arc::new(Service::new(now));
        let script = Arc::clone(&data);
        let service = Scripted::new(move |asked| script.answer(asked));
        let found = probed(&service, example).await;
        assert!(found.calls.len() as u64 <= CALLS, "{hour}: {} calls", found.calls.len());
        assert!(found.document.contains("kind = \"offset\"\ndefault = \"+00:00\""), "{hour}\n{found}");
        let kind = if example.is_some() { "example" } else { "alone" };
        let connection = Connection::builder(format!("http://days{hour}{kind}.test/v4"), Secret::new(KEY).unwrap())
            .service(Arc::clone(&service) as _)
            .clock(Clock::fixed(now))
            .profile(Profile::parse(&found.document, "probed").unwrap())
            .build()
            .unwrap();
        let context = session(&connection).unwrap();
        let day = |ago: i64| (now - TimeDelta::days(ago)).format("%Y-%m-%dT00:00:00Z");
        let sql = format!(
            "SELECT mentions FROM volume WHERE aid = '{AID}' AND bucket_start >= '{}' AND bucket_start < '{}' \
             ORDER BY bucket_start",
            day(9),
            day(2)
        );
        let batches = context.sql(&sql).await.unwrap().collect().await.unwrap();
        assert_eq!(rows(&batches), data.days(9, 2), "{hour}\n{found}");
    })
    .await;
}
