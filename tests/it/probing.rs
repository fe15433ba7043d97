//! A probe of each dialect writes a profile with which all queries of the `requests` bench return correct rows,
//! unedited.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use datafusion::prelude::SessionContext;
use datafusion_saved_search::client::{Direct, HttpLimits};
use datafusion_saved_search::probe::{Facts, Probed, probe, probe_knowing, resume};
use datafusion_saved_search::profile_check::compare;
use datafusion_saved_search::simulator::{KEY, Preset, Settings, Simulator};
use datafusion_saved_search::{Clock, Connection, Profile, Secret, session};
use serde_json::{Value, json};

use crate::queries::{NOW, Rows, corpus, queries};
use crate::support::{InProcess, Scripted, connect, each_async, knob, now, rows, status, worded, written};

/// Requests that a probe may send.
const CALLS: u64 = 25;

fn simulator(preset: Preset) -> Simulator {
    Simulator::new(corpus(), Settings { clock: Clock::fixed(NOW.parse().unwrap()), preset, ..Settings::default() })
}

async fn probed(preset: Preset, calls: u64) -> Probed {
    let service = Arc::new(InProcess(simulator(preset), HttpLimits::default()));
    let address = "http://probed.test/v4".parse().unwrap();
    probe(Arc::new(Direct::new(service)), address, Secret::new(KEY).unwrap(), calls)
        .await
        .unwrap_or_else(|error| panic!("{preset}: {error}"))
}

/// A cell of V4 in a dialect.
fn cell(preset: Preset, cell: &str) -> String {
    let id = cell.len() == 16 && cell.bytes().all(|byte| byte.is_ascii_digit());
    match (preset, cell) {
        (_, "positive" | "neutral" | "negative") => written(preset, "sentiment", cell),
        _ if id => written(preset, "id", cell),
        _ => cell.to_owned(),
    }
}

fn told(preset: Preset, expected: Vec<Vec<String>>, upper: bool) -> Vec<Vec<String>> {
    let said = |text: &String| cell(preset, text);
    let cased = |text: String| if upper { text.to_uppercase() } else { text };
    expected.iter().map(|row| row.iter().map(|text| cased(said(text))).collect()).collect()
}

async fn answers(context: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let frame = context.sql(sql).await.map_err(|error| error.to_string())?;
    frame.collect().await.map(|batches| rows(&batches)).map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn what_was_probed_answers_every_query_rightly() {
    let mut wrong = Vec::new();
    for preset in Preset::ALL {
        let found = probed(preset, CALLS).await;
        assert!(found.calls.len() as u64 <= CALLS, "{preset}: {} calls", found.calls.len());
        if knob("PROBES_SHOWN", 0) > 0 {
            println!("=== {preset}\n{found}\n{}", found.document);
            found.calls.iter().for_each(|call| println!("{:?} {}", call.status, call.question));
        }
        let profile = Profile::parse(&found.document, "probed").unwrap();
        let simulator = simulator(preset);
        let clock = Clock::fixed(NOW.parse().unwrap());
        let context = session(&connect(&simulator, clock, profile)).unwrap();
        for query in queries(simulator.corpus(), NOW.parse().unwrap()) {
            let sql = worded(preset, query.sql.clone());
            // This query returns ids in upper case.
            let upper = query.sql.contains("SELECT upper(id)");
            let expected = match query.rows {
                Rows::InOrder(rows) => Rows::InOrder(told(preset, rows, upper)),
                Rows::Any(rows) => Rows::Any(told(preset, rows, false)),
                Rows::SomeOf(count, rows) => Rows::SomeOf(count, told(preset, rows, false)),
            };
            let before = simulator.requests();
            match answers(&context, &sql).await {
                Ok(rows) if expected.are(&rows) => {}
                Ok(rows) => wrong.push(format!("{preset}: {}: {} rows: {:?}", query.name, rows.len(), rows.first())),
                Err(error) => wrong.push(format!("{preset}: {}: {error}", query.name)),
            }
            if knob("PROBES_SHOWN", 0) > 0 {
                println!(
                    "{preset} {:<44} {:>4} requests, {} at least for v4",
                    query.name,
                    simulator.requests() - before,
                    query.least
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An example of another dialect costs requests, and does not help.
#[tokio::test(start_paused = true)]
async fn the_periods_of_each_dialect_are_found_also_with_an_example_of_another() {
    const EXAMPLE: &str =
        "http://probed.test/v4/search?aid=183772&duration=30d&withData=true&dataSize=25&sortBy=newest";
    for preset in Preset::ALL {
        let mut facts = Facts::default();
        facts.example(EXAMPLE, None).unwrap();
        let service = Arc::new(InProcess(simulator(preset), HttpLimits::default()));
        let (address, key) = ("http://probed.test/v4".parse().unwrap(), Secret::new(KEY).unwrap());
        let found = probe_knowing(Arc::new(Direct::new(service)), address, key, CALLS, None, facts).await.unwrap();
        assert!(found.calls.len() as u64 <= CALLS, "{preset}: {} calls", found.calls.len());
        assert!(found.holes.iter().all(|section| section != "window"), "{preset}\n{found}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_probe_says_what_it_keeps_and_asks_for_nothing_that_a_person_stated() {
    const OPEN: &str = "a probe does not provoke rate limits";
    let found = probed(Preset::V4, CALLS).await;
    assert!(found.to_string().contains(OPEN), "{found}");
    let (before, section) = found.document.split_once("[throttle]\n").unwrap();
    let documented = section.replacen("evidence = \"assumed\"", "evidence = \"documented\"", 1);
    let document = format!("{before}[throttle]\n{documented}");
    let service = Arc::new(InProcess(simulator(Preset::V4), HttpLimits::default()));
    let address = "http://probed.test/v4".parse().unwrap();
    let again =
        resume(Arc::new(Direct::new(service)), address, Secret::new(KEY).unwrap(), CALLS, &document).await.unwrap();
    let report = again.to_string();
    assert!(report.contains("[throttle] is documented, and kept as it is"), "{report}");
    assert!(!report.contains(OPEN), "{report}");
}

/// An unusual property of a service.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Quirk {
    /// Nothing.
    None,
    /// Relative windows end at midnight.
    CompleteDays,
    /// Only relative windows are accepted; responses echo all parameters, unknown ones included.
    Mirror,
    /// The service uses only the date of an instant.
    DaysOnly,
    /// The beginning of a window is exclusive.
    OpenStart,
    /// The overview contains some mentions.
    TopMentions,
    /// A list has an entry for all other values.
    Others,
    /// Names in a list differ from those in mentions.
    OtherNames,
    /// The timeline counts by week.
    Weeks,
    /// Its days are dates, which do not show their time zone.
    NamedDays,
    /// Totals are capped at a hundred.
    Capped,
    /// Times are written with a space and without a zone.
    Blank,
    /// Two of three requests are throttled.
    Busy,
}

/// A service with 400 mentions, one every 47 minutes.
struct Odd(Quirk);

impl Odd {
    fn published(row: i64) -> DateTime<Utc> {
        now() - TimeDelta::minutes(47 * row + 3)
    }

    fn item(&self, row: i64) -> Value {
        let at = Self::published(row);
        let written = if self.0 == Quirk::Blank { "%Y-%m-%d %H:%M:%S" } else { "%Y-%m-%dT%H:%M:%SZ" };
        let language = ["en", "en", "de", "fr", "es"][usize::try_from(row).unwrap() % 5];
        json!({"id": row, "published": at.format(written).to_string(), "title": "t", "language": language, "reach": row % 7})
    }

    fn answer(&self, path: &str, asked: &BTreeMap<String, String>) -> (u16, Value) {
        let quirk = self.0;
        if path.ends_with("/list") {
            return (200, json!({"saved": [{"aid": "7", "name": "seven"}]}));
        }
        let midnight = now().date_naive().and_time(chrono::NaiveTime::MIN).and_utc();
        let duration = asked.get("duration").map_or("7d", String::as_str);
        // Periods with names, which no refusal lists: one of them does not end now.
        let named = [("this_week", 168, 0), ("this_month", 720, 0), ("previous_week", 336, 168)];
        let named = named.into_iter().find(|(name, ..)| *name == duration);
        let named = named.map(|(_, since, until)| [since, until].map(|hours| now() - TimeDelta::hours(hours)));
        let hours = match duration.split_at(duration.len() - 1) {
            (n, "d") => n.parse().ok().map(|n: i64| n * 24),
            (n, "h") => n.parse().ok(),
            (n, "w") => n.parse().ok().map(|n: i64| n * 168),
            _ => None,
        };
        let ends = duration.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let day = |at: DateTime<Utc>| at.date_naive().and_time(chrono::NaiveTime::MIN).and_utc();
        let ends = named.map(|[from, to]| (from, to)).or(ends.filter(|_| quirk != Quirk::Mirror));
        let (from, to) = match (hours, ends) {
            (Some(hours), _) if quirk == Quirk::CompleteDays => (midnight - TimeDelta::hours(hours), midnight),
            (Some(hours), _) => (now() - TimeDelta::hours(hours), now()),
            (None, Some((from, to))) if quirk == Quirk::DaysOnly => (day(from), day(to)),
            (None, Some(ends)) => ends,
            (None, None) => return (400, json!({"message": format!("bad duration `{duration}`")})),
        };
        let starts = |at: DateTime<Utc>| if quirk == Quirk::OpenStart { from < at } else { from <= at };
        let matches = |row: &i64| starts(Self::published(*row)) && Self::published(*row) < to;
        let language = |row: &i64| self.item(*row)["language"].as_str().map(str::to_owned);
        let wanted = |row: &i64| asked.get("language").is_none_or(|wanted| language(row).as_ref() == Some(wanted));
        let rows: Vec<i64> = (0..400).filter(|row| matches(row) && wanted(row)).collect();
        let mut languages = BTreeMap::<String, u64>::new();
        rows.iter().filter_map(language).for_each(|language| *languages.entry(language).or_default() += 1);
        let named = |(name, count): (String, u64)| match (quirk, name.as_str()) {
            (Quirk::Others, "fr") => json!({"name": "other", "count": count}),
            (Quirk::OtherNames, name) => json!({"name": name.to_uppercase(), "count": count}),
            (_, name) => json!({"name": name, "count": count}),
        };
        let step = if quirk == Quirk::Weeks { 7 } else { 1 };
        let first = day(from);
        let bucket = |n: i64| first + TimeDelta::days(n * step);
        let within =
            |n: i64| rows.iter().filter(|row| (bucket(n)..bucket(n + 1)).contains(&Self::published(**row))).count();
        let timeline = (0..).take_while(|n| bucket(*n) < to).map(|n| {
            let start = bucket(n);
            let start = if quirk == Quirk::NamedDays { json!(start.date_naive().to_string()) } else { json!(start) };
            json!({"start": start, "count": within(n)})
        });
        let total = if quirk == Quirk::Capped { rows.len().min(100) } else { rows.len() };
        let mut overview = json!({
            "total": total,
            "timeline": timeline.collect::<Vec<_>>(),
            "languages": languages.into_iter().map(named).collect::<Vec<_>>(),
        });
        if quirk == Quirk::TopMentions {
            overview["top"] = rows.iter().take(5).map(|row| self.item(*row)).collect();
        }
        let number = |name: &str| asked.get(name).and_then(|number| number.parse().ok()).unwrap_or(0_usize);
        let (skip, size) = (number("dataFrom"), number("dataSize"));
        if size > 100 {
            return (400, json!({"message": "dataSize: at most 100"}));
        }
        let mut body = json!({"overview": overview, "aid": "7"});
        if size > 0 {
            let items: Vec<Value> = rows.iter().skip(skip).take(size).map(|row| self.item(*row)).collect();
            body["mentions"] = json!({"total": total, "items": items});
        }
        if quirk == Quirk::Mirror {
            body["request"] = json!(asked);
        }
        (200, body)
    }
}

fn odd(quirk: Quirk) -> Arc<Scripted> {
    Scripted::new(move |asked| {
        let (code, body) = match quirk {
            Quirk::Busy if asked.number > 1 && asked.number % 3 != 0 => (429, json!({"message": "slow down"})),
            _ => Odd(quirk).answer(asked.path(), &asked.parameters),
        };
        status(code, &body).with("date", &httpdate::fmt_http_date(now().into()))
    })
}

/// A property that only looks usual must not be relied on.
#[tokio::test(start_paused = true)]
async fn what_is_unusual_is_not_taken_for_the_usual() {
    let probe_of = async |quirk: Quirk| {
        let service = odd(quirk);
        let calls = if quirk == Quirk::Busy { 75 } else { CALLS };
        let found = probe(
            Arc::new(Direct::new(service)),
            "http://odd.test/v4".parse().unwrap(),
            Secret::new(KEY).unwrap(),
            calls,
        )
        .await;
        found.unwrap_or_else(|error| panic!("{quirk:?}: {error}")).document
    };
    let usual = [
        "absolute = \"{from}..{to}\"",
        "relative = [\"d\"",
        "end = \"exclusive\"",
        "days = true",
        "dimension = \"language\"",
        "requested_by = \"size\"",
        "trust = \"exact\"\nat = \"/mentions/total\"",
        "time = \"published_at\"",
    ];
    let cases = [
        (Quirk::None, [].as_slice()),
        // Its relative windows do not end now, so they are sent as instants.
        (Quirk::CompleteDays, ["duration=60d works", "relative = [\"d\""].as_slice()),
        (Quirk::Mirror, &["absolute = \"{from}..{to}\"", "separate"]),
        (Quirk::DaysOnly, &["absolute = \"{from}..{to}\""]),
        (Quirk::OpenStart, &["absolute = \"{from}..{to}\""]),
        (Quirk::TopMentions, &[]),
        (Quirk::Others, &["dimension = \"language\""]),
        (Quirk::OtherNames, &["dimension = \"language\""]),
        // Its timeline shows no lengths.
        (Quirk::Weeks, &["days = true", "relative = [\"d\""]),
        // Mentions show that they are days of UTC.
        (Quirk::NamedDays, &[]),
        (Quirk::Capped, &["trust = \"exact\"\nat = \"/mentions/total\"", "days = true", "dimension = \"language\""]),
        (Quirk::Blank, &[]),
        (Quirk::Busy, &[]),
    ];
    each_async(cases, async |(quirk, without)| {
        let document = probe_of(quirk).await;
        let of_instants = [Quirk::CompleteDays, Quirk::Weeks].contains(&quirk);
        assert_eq!(document.contains("relative_as"), of_instants, "{quirk:?}\n{document}");
        for line in without {
            assert!(!document.contains(line), "{quirk:?}: {line}\n{document}");
        }
        for line in usual.iter().filter(|line| !without.contains(line)) {
            // Without absolute windows, the kind of their end does not matter.
            let voided = without.iter().any(|line| line.starts_with("absolute")) && line.starts_with("end");
            assert!(voided || document.contains(line), "{quirk:?} lacks {line}\n{document}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn days_that_are_dates_show_no_effect_of_a_second_zone_and_none_is_tried() {
    let service = odd(Quirk::NamedDays);
    let probed = Arc::clone(&service);
    let (address, key) = ("http://odd.test/v4".parse().unwrap(), Secret::new(KEY).unwrap());
    probe(Arc::new(Direct::new(probed)), address, key, CALLS).await.unwrap();
    let asked = service.seen();
    let has = |zone: &str| asked.iter().any(|asked| asked.get("timezone").is_some_and(|sent| sent == zone));
    assert!(has("Asia/Kolkata") && !has("+05:30"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn the_check_of_a_profile_finds_names_of_periods_that_do_not_end_now() {
    let address = "http://odd.test/v4".parse().unwrap();
    let found =
        probe(Arc::new(Direct::new(odd(Quirk::None))), address, Secret::new(KEY).unwrap(), CALLS).await.unwrap();
    let agree = Ok("2 named periods have the same newest mention");
    let differ = Err("`previous_week`");
    for (names, expected) in [
        ("this_week = \"7d\", this_month = \"30d\"", agree),
        ("this_week = \"7d\", previous_week = \"7d\"", differ),
        // A search without a period has newer mentions.
        ("previous_week = \"7d\"", differ),
    ] {
        let document = found.document.replacen("relative = [", &format!("names = {{ {names} }}\nrelative = ["), 1);
        let connection = Connection::builder("http://odd-names.test/v4", Secret::new(KEY).unwrap())
            .service(odd(Quirk::None))
            .clock(Clock::fixed(now()))
            .profile(Profile::parse(&document, "named").unwrap())
            .build()
            .unwrap();
        let mut compared = Vec::new();
        compare(&connection, |what, result| compared.push((what, result))).await.unwrap();
        let periods = compared.iter().find(|(what, _)| *what == "periods").map(|(_, result)| result);
        let told = match (expected, periods) {
            (Ok(text), Some(Ok(told))) | (Err(text), Some(Err(told))) => told.contains(text),
            _ => false,
        };
        assert!(told, "{names}: {compared:?}");
    }
}
