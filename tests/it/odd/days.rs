//! Times whose days contradict the timeline of the same response.

use super::*;

/// Writes the times of mentions with this function.
fn written(times: fn(DateTime<Utc>) -> Value) -> Arc<Scripted> {
    changed(move |_, body| {
        let items = body.pointer_mut("/mentions/items").and_then(Value::as_array_mut);
        items.into_iter().flatten().for_each(|item| {
            let at = instant(item["publishedAt"].as_str().unwrap());
            item["publishedAt"] = times(at);
        });
    })
}

fn lab(service: Arc<Scripted>, profile: Profile) -> Lab {
    let connection = service.connect(Secret::new("a-key").unwrap(), profile);
    Lab { service, context: session(&connection).unwrap() }
}

/// The instants of the honest service, some hours away.
fn away(at: DateTime<Utc>, minutes: i64) -> Value {
    json!(at + TimeDelta::minutes(minutes))
}

const STATEMENTS: [&str; 4] = [
    "SELECT id FROM mentions WHERE aid = '1' AND duration = '30d'",
    "SELECT id, published_at FROM mentions WHERE aid = '1' AND duration = '30d' AND language = 'de'",
    "SELECT sum(reach) FROM mentions WHERE aid = '1' AND duration = '30d'",
    "SELECT id FROM mentions WHERE aid = '1' AND duration = '30d' ORDER BY published_at DESC",
];

#[tokio::test(start_paused = true)]
async fn local_times_that_are_written_as_utc_contradict_the_timeline() {
    type Written = fn(DateTime<Utc>) -> Value;
    let cases: [(Written, &str); 3] = [
        (|at| away(at, -4 * 60), "were later, such as by 4 h"),
        (|at| away(at, 9 * 60), "were earlier, such as by 9 h"),
        (|at| away(at, 5 * 60 + 30), "were earlier, such as by 5 h"),
    ];
    for (times, shift) in cases {
        for sql in STATEMENTS {
            lab(written(times), Profile::v4()).fails(sql, &["the timeline does not count", shift, "`zone`"]).await;
        }
    }
    // The timeline is not believed, if the profile says so.
    let mut profile = Profile::v4();
    profile.counts.as_mut().unwrap().days = false;
    let shifted = lab(written(|at| away(at, -4 * 60)), profile);
    assert_eq!(shifted.ask(STATEMENTS[0]).await.unwrap().len(), MENTIONS);
    // Right times take no more requests: pages share a row.
    let right = lab(written(|at| json!(at)), Profile::v4());
    assert_eq!(right.ask(STATEMENTS[0]).await.unwrap().len(), MENTIONS);
    assert_eq!(right.service.requests(), 7);
}

/// The profile says Tokyo, but the service writes times in the requested zone, UTC.
#[tokio::test(start_paused = true)]
async fn times_in_the_requested_zone_contradict_the_zone_of_the_profile() {
    let tokyo = || {
        let mut profile = Profile::v4();
        let columns = &mut profile.tables.mentions.columns;
        columns.iter_mut().find(|column| column.name == "published_at").unwrap().zone = "Asia/Tokyo".parse().ok();
        profile
    };
    let local: fn(DateTime<Utc>) -> Value = |at| json!(at.format("%Y-%m-%dT%H:%M:%S").to_string());
    for sql in STATEMENTS {
        lab(written(local), tokyo())
            .fails(sql, &["would if `published_at` were later, such as by 9 h", "`zone`"])
            .await;
    }
    let right: fn(DateTime<Utc>) -> Value = |at| {
        let at = at + TimeDelta::hours(9);
        json!(at.format("%Y-%m-%dT%H:%M:%S").to_string())
    };
    assert_eq!(lab(written(right), tokyo()).ask(STATEMENTS[0]).await.unwrap().len(), MENTIONS);
}

/// Mentions that come and go while pages are read may be on other days.
#[tokio::test(start_paused = true)]
async fn a_few_mentions_on_other_days_are_no_shift() {
    let lab = Lab::new(|asked, body| {
        // The timeline is older than the mentions: one of the first day was removed, and one of the last day has arrived.
        if asked.number("dataSize") > 0 {
            let days = body["overview"]["volume"].as_array_mut().unwrap();
            let (first, last) =
                (days.iter().position(|day| day["count"] != 0), days.iter().rposition(|day| day["count"] != 0));
            for (day, by) in [(first.unwrap(), 1), (last.unwrap(), -1)] {
                days[day]["count"] = json!(days[day]["count"].as_i64().unwrap() + by);
            }
        }
    });
    assert_eq!(lab.ask(STATEMENTS[0]).await.unwrap().len(), MENTIONS);
}
