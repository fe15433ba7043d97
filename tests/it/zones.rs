//! The time zone of a session: its days, its literals, its printed times, and the zone of its requests.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Timelike, Utc};
use chrono_tz::Tz;
use datafusion_saved_search::sql;

use crate::support::{BIG, World, each_async, rows};

const BERLIN: &str = "Europe/Berlin";
/// Covers the night of 2026-03-29, in which Berlin's clocks are set forward.
const WINDOW: &str = "published_at >= '2026-03-20' AND published_at < '2026-04-10'";

async fn in_zone(zone: &str) -> World {
    let world = World::new().await;
    world.context.sql(&format!("SET timezone = '{zone}'")).await.unwrap();
    world
}

/// Rows of a statement with the meaning that fronts give it, such as templates of PostgreSQL in `to_char`.
async fn rows_in_fronts(world: &World, text: &str) -> Vec<Vec<String>> {
    let frame = sql(&world.context, text).await.unwrap_or_else(|error| panic!("{text}\n{error}"));
    rows(&frame.collect().await.unwrap_or_else(|error| panic!("{text}\n{error}")))
}

/// Times of publication of the window, which begins and ends at midnight of the zone.
fn published(world: &World, zone: Tz) -> Vec<DateTime<Tz>> {
    let midnight = |day: &str| -> DateTime<Utc> {
        let day: NaiveDate = day.parse().unwrap();
        day.and_hms_opt(0, 0, 0).unwrap().and_local_timezone(zone).unwrap().to_utc()
    };
    let (from, to) = (midnight("2026-03-20"), midnight("2026-04-10"));
    let corpus = world.service.corpus();
    let mentions = corpus.search(BIG).unwrap().mentions.iter().map(|mention| mention.facts.published);
    mentions.filter(|at| (from..to).contains(at)).map(|at| at.with_timezone(&zone)).collect()
}

fn counted(keys: impl Iterator<Item = String>) -> Vec<Vec<String>> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1);
    counts.into_iter().map(|(key, count)| vec![key, count.to_string()]).collect()
}

#[tokio::test]
async fn days_are_those_of_the_zone_and_still_come_from_one_overview() {
    let world = in_zone(BERLIN).await;
    let zone: Tz = BERLIN.parse().unwrap();
    let published = published(&world, zone);
    assert!(published.len() > 20, "{}", published.len());
    type Key = fn(&DateTime<Tz>) -> String;
    let of_days: [(&str, Key); 4] = [
        ("published_at::date", |at| at.date_naive().to_string()),
        ("CAST(date_trunc('day', published_at) AS date)", |at| at.date_naive().to_string()),
        ("date_part('day', published_at)", |at| at.format("%-d").to_string()),
        ("extract(dow FROM published_at)", |at| at.format("%w").to_string()),
    ];
    for (key, expected) in of_days {
        let sql = format!("SELECT {key}, count(*) FROM mentions WHERE aid = '{BIG}' AND {WINDOW} GROUP BY 1");
        world.service.take_seen();
        let (mut rows, requests) = world.cost(&sql).await;
        rows.sort();
        assert_eq!(rows, counted(published.iter().map(expected)), "{sql}");
        assert_eq!(requests, 1, "{sql}");
        let seen = world.service.take_seen();
        assert!(seen.iter().all(|seen| format!("{seen:?}").contains("Berlin")), "{seen:?}");
    }
    let of_instants: [(&str, Key); 7] = [
        ("date_part('hour', published_at)", |at| at.hour().to_string()),
        ("to_char(published_at, '%Y-%m-%d %H')", |at| at.format("%Y-%m-%d %H").to_string()),
        ("to_char(published_at, 'YYYY-MM-DD HH24')", |at| at.format("%Y-%m-%d %H").to_string()),
        ("date_trunc('hour', published_at)::time", |at| at.format("%H:00:00").to_string()),
        ("date_trunc('hour', published_at::timestamp)", |at| at.format("%Y-%m-%dT%H:00:00").to_string()),
        ("date_bin(INTERVAL '7 days', published_at::timestamp)::date", |at| {
            let day = at.date_naive();
            let past = (day - NaiveDate::default()).num_days() % 7;
            (day - chrono::Days::new(u64::try_from(past).unwrap())).to_string()
        }),
        ("date_bin(INTERVAL '1 day', published_at)::date", |at| at.date_naive().to_string()),
    ];
    for (key, expected) in of_instants {
        let sql = format!("SELECT {key}, count(*) FROM mentions WHERE aid = '{BIG}' AND {WINDOW} GROUP BY 1");
        let mut rows = rows_in_fronts(&world, &sql).await;
        rows.sort();
        assert_eq!(rows, counted(published.iter().map(expected)), "{sql}");
    }
    // The first day of summer time has 23 hours, and starts an hour before that of UTC.
    let day = format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND published_at::date = '2026-03-29'");
    let of_day = published.iter().filter(|at| at.date_naive().to_string() == "2026-03-29").count();
    assert_eq!(world.cost(&day).await, (vec![vec![of_day.to_string()]], 1));
    for sql in [
        format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND date_trunc('day', published_at) = '2026-03-29'"),
        format!(
            "SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND date_trunc('day', published_at) = date '2026-03-29'"
        ),
        format!(
            "SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND published_at >= date '2026-03-29' AND published_at < date '2026-03-30'"
        ),
    ] {
        assert_eq!(world.cost(&sql).await, (vec![vec![of_day.to_string()]], 1), "{sql}");
    }
}

#[tokio::test]
async fn times_are_shown_in_the_zone_and_orders_and_limits_still_reach_the_service() {
    let world = in_zone(BERLIN).await;
    let newest = format!("SELECT published_at FROM mentions WHERE aid = '{BIG}' ORDER BY published_at DESC LIMIT 3");
    let (shown, requests) = world.cost(&newest).await;
    assert_eq!((shown.len(), requests), (3, 1));
    assert!(shown.iter().all(|row| row[0].ends_with("+02:00")), "{shown:?}");
    let days = "SELECT bucket_start, timezone FROM volume WHERE aid = '183772' ORDER BY 1 LIMIT 1";
    let shown = world.rows(days).await;
    assert!(shown[0][0].ends_with("T00:00:00+02:00") && shown[0][1] == BERLIN, "{shown:?}");
    // Views, CTEs and tables that were made in another zone.
    world.context.sql("SET timezone = 'UTC'").await.unwrap();
    world
        .rows(&format!(
            "CREATE VIEW daily AS SELECT date_trunc('day', published_at) AS day FROM mentions WHERE aid = '{BIG}'"
        ))
        .await;
    world
        .rows(&format!("CREATE TABLE kept AS SELECT published_at FROM mentions WHERE aid = '{BIG}' AND {WINDOW}"))
        .await;
    world.context.sql("SET timezone = 'Asia/Tokyo'").await.unwrap();
    let cases = [
        "SELECT day FROM daily LIMIT 1".to_owned(),
        "SELECT date_trunc('day', published_at) FROM kept LIMIT 1".to_owned(),
        format!(
            "WITH m AS (SELECT * FROM mentions WHERE aid = '{BIG}') SELECT date_trunc('day', published_at) FROM m LIMIT 1"
        ),
        format!("SELECT date_trunc('day', t) FROM (SELECT max(published_at) AS t FROM mentions WHERE aid = '{BIG}')"),
        format!("SELECT date_trunc('day', published_at) FROM mentions(aid => '{BIG}') LIMIT 1"),
        "SELECT date_trunc('day', time) FROM system.requests LIMIT 1".to_owned(),
    ];
    each_async(cases, async |sql| {
        let shown = world.rows(&sql).await;
        assert!(shown[0][0].ends_with("T00:00:00+09:00"), "{sql}: {shown:?}");
    })
    .await;
}

/// Values of PostgreSQL 15.
#[tokio::test]
async fn constants_are_those_of_the_zone() {
    let world = in_zone(BERLIN).await;
    let cases = [
        ("date_trunc('day', timestamptz '2026-03-29 12:00:00+00')", "2026-03-29T00:00:00+01:00"),
        ("date_trunc('day', timestamptz '2026-10-25 12:00:00+00')", "2026-10-25T00:00:00+02:00"),
        ("date_trunc('hour', timestamptz '2026-10-25 00:30:00+00')", "2026-10-25T02:00:00+02:00"),
        ("date_trunc('hour', timestamptz '2026-10-25 01:30:00+00')", "2026-10-25T02:00:00+01:00"),
        ("(timestamptz '2026-03-28 23:30:00+00')::date", "2026-03-29"),
        ("(timestamptz '2026-03-28 23:30:00+00')::timestamp", "2026-03-29T00:30:00"),
        ("(timestamptz '2026-03-28 23:30:00+00')::time", "00:30:00"),
        ("(date '2026-03-30')::timestamptz", "2026-03-30T00:00:00+02:00"),
        ("timestamptz '2026-03-29 12:00:00'", "2026-03-29T12:00:00+02:00"),
        ("timestamptz '2026-03-28 12:00:00' + INTERVAL '1 day'", "2026-03-29T12:00:00+02:00"),
        ("timestamptz '2026-03-28 12:00:00' + INTERVAL '24 hours'", "2026-03-29T13:00:00+02:00"),
        ("extract(hour FROM timestamptz '2026-10-25 01:30:00+00')", "2"),
        ("extract(epoch FROM timestamptz '2026-10-25 01:30:00+00')", "1792891800.0"),
        ("timestamptz '2026-07-01 00:00:00' = timestamptz '2026-06-30 22:00:00Z'", "true"),
        ("now()::date = current_date", "true"),
        // Seconds since 1970, of integers and others. Values of PostgreSQL 15, except for `from_unixtime`.
        ("to_timestamp(1782432000)", "2026-06-26T02:00:00+02:00"),
        ("to_timestamp(1782432000.0)", "2026-06-26T02:00:00+02:00"),
        ("max(to_timestamp(x)) FROM (VALUES (1782432000)) v(x)", "2026-06-26T02:00:00+02:00"),
        ("to_timestamp(1782432000::int)", "2026-06-26T02:00:00+02:00"),
        ("to_timestamp_seconds(1782432000)", "2026-06-26T02:00:00+02:00"),
        ("to_timestamp_millis(1782432000000)", "2026-06-26T02:00:00+02:00"),
        ("to_timestamp_micros(1782432000000000)", "2026-06-26T02:00:00+02:00"),
        ("to_timestamp_nanos(1782432000000000000)", "2026-06-26T02:00:00+02:00"),
        ("from_unixtime(1782432000)", "2026-06-26T02:00:00+02:00"),
        ("from_unixtime(1782432000) = timestamptz '2026-06-26 02:00:00'", "true"),
        // Origins of `date_bin`. Values of PostgreSQL 15.
        ("date_bin('6 hours', timestamptz '2026-06-24 12:30:00', '2026-06-24')", "2026-06-24T12:00:00+02:00"),
        (
            "date_bin(INTERVAL '6 hours', timestamptz '2026-06-24 12:30:00', timestamp '2001-01-01')",
            "2026-06-24T07:00:00+02:00",
        ),
        ("date_bin('1 day', timestamptz '2026-06-24 12:30:00', timestamptz '2026-01-01')", "2026-06-24T01:00:00+02:00"),
        (
            "date_bin('1 hour', timestamp '2026-06-24 12:30:00', timestamptz '2026-01-01 00:15')",
            "2026-06-24T12:15:00+02:00",
        ),
        (
            "date_bin('15 minutes', timestamptz '2026-10-25 02:50:00+01', date '2026-10-25')",
            "2026-10-25T02:45:00+01:00",
        ),
        // Days without an origin and months are those of the zone.
        ("date_bin('1 day', timestamptz '2026-06-24 00:30:00')", "2026-06-24T00:00:00+02:00"),
        ("date_bin('1 month', timestamptz '2026-07-01 00:30:00', date '2026-01-01')", "2026-07-01T00:00:00+02:00"),
    ];
    each_async(cases, async |(expression, expected)| {
        assert_eq!(world.rows(&format!("SELECT {expression}")).await, [[expected]], "{expression}");
    })
    .await;
}

/// Rows of PostgreSQL 15, and of DuckDB: a day back from 06:00 after the change of clocks is 23 hours.
#[tokio::test]
async fn frames_of_days_and_months_are_those_of_the_zone() {
    let world = in_zone(BERLIN).await;
    let days = [
        "2026-03-28 04:00",
        "2026-03-28 08:00",
        "2026-03-28 12:00",
        "2026-03-28 16:00",
        "2026-03-28 20:00",
        "2026-03-29 00:00",
        "2026-03-29 04:00",
        "2026-03-29 08:00",
        "2026-03-29 12:00",
        "2026-03-29 16:00",
        "2026-03-29 20:00",
    ];
    let months = [
        "2026-02-28 11:30",
        "2026-03-28 11:00",
        "2026-03-28 11:30",
        "2026-03-31 10:15",
        "2026-04-30 10:15",
        "2026-04-30 10:16",
    ];
    // A day later, clocks skip the local time, so a day is only defined by hours.
    let skipped = ["2026-03-28 00:30", "2026-03-28 01:30", "2026-03-29 01:00"];
    let values = |instants: &[&str]| {
        let values: Vec<_> = instants.iter().map(|at| format!("(timestamptz '{at}+00')")).collect();
        format!("(VALUES {}) v(t)", values.join(", "))
    };
    let cases = [
        (&days[..], "t RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW", "1 2 3 4 5 6 6 6 6 6 6"),
        (&days[..], "t DESC RANGE BETWEEN CURRENT ROW AND INTERVAL '1 day' FOLLOWING", "1 2 3 4 5 6 6 6 6 6 6"),
        (&days[..], "t RANGE BETWEEN CURRENT ROW AND INTERVAL '1 day' FOLLOWING", "6 6 6 6 6 6 5 4 3 2 1"),
        (&days[..], "t RANGE BETWEEN INTERVAL '24 hours' PRECEDING AND CURRENT ROW", "1 2 3 4 5 6 7 7 7 7 7"),
        (&months[..], "t RANGE BETWEEN CURRENT ROW AND INTERVAL '1 month' FOLLOWING", "3 3 2 2 2 1"),
        (&skipped[..], "t RANGE BETWEEN CURRENT ROW AND INTERVAL '24 hours' FOLLOWING", "2 2 1"),
        (&skipped[..], "t::timestamp RANGE BETWEEN CURRENT ROW AND INTERVAL '1 day' FOLLOWING", "2 1 1"),
    ];
    each_async(cases, async |(instants, over, counts)| {
        // The other functions of the window have the same order.
        let sql = format!(
            "SELECT n FROM (SELECT t, count(*) OVER (ORDER BY {over}) AS n, row_number() OVER (ORDER BY t) AS r, \
             rank() OVER (PARTITION BY t) AS k FROM {}) q WHERE r > 0 AND k = 1 ORDER BY t",
            values(instants)
        );
        assert_eq!(world.rows(&sql).await.concat().join(" "), counts, "{sql}");
    })
    .await;
    let sql = format!(
        "SELECT count(*) OVER (ORDER BY t RANGE BETWEEN CURRENT ROW AND INTERVAL '1 day' FOLLOWING) FROM {}",
        values(&skipped)
    );
    let error = match sql_of(&world, &sql).await {
        Ok(rows) => panic!("{rows:?}"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains("meets a change of clocks in Europe/Berlin, from 2026-03-28 02:30:00"), "{error}");
    assert!(error.contains("write hours, as in INTERVAL '24 hours'"), "{error}");
}

async fn sql_of(world: &World, text: &str) -> datafusion::error::Result<Vec<Vec<String>>> {
    Ok(rows(&sql(&world.context, text).await?.collect().await?))
}

/// Every function reads a time in the zone that `AT TIME ZONE` gave it, in a session of another zone. 22:30 in UTC is 07:30 of the next
/// day in Tokyo, 18:30 in New York, where it is summer, and 00:30 of the next day in Berlin.
#[tokio::test]
async fn functions_read_a_time_in_the_zone_that_it_was_given() {
    let world = in_zone(BERLIN).await;
    let cases = [
        (
            "to_char(t, 'YYYY-MM-DD HH24:MI')",
            ["2026-07-01 00:30", "2026-07-01 07:30", "2026-06-30 18:30", "2026-06-30 22:30"],
        ),
        (
            "to_char(t, '%Y-%m-%d %H:%M')",
            ["2026-07-01 00:30", "2026-07-01 07:30", "2026-06-30 18:30", "2026-06-30 22:30"],
        ),
        ("to_char(t, 'TZ OF')", ["CEST +02", "JST +09", "EDT -04", "UTC +00"]),
        ("date_part('hour', t)", ["0", "7", "18", "22"]),
        ("extract(day FROM t)", ["1", "1", "30", "30"]),
        ("t::date", ["2026-07-01", "2026-07-01", "2026-06-30", "2026-06-30"]),
        ("to_date(t)", ["2026-07-01", "2026-07-01", "2026-06-30", "2026-06-30"]),
        ("t::time", ["00:30:00", "07:30:00", "18:30:00", "22:30:00"]),
        ("t::timestamp", ["2026-07-01T00:30:00", "2026-07-01T07:30:00", "2026-06-30T18:30:00", "2026-06-30T22:30:00"]),
        (
            "t::text",
            [
                "2026-07-01T00:30:00+02:00",
                "2026-07-01T07:30:00+09:00",
                "2026-06-30T18:30:00-04:00",
                "2026-06-30T22:30:00Z",
            ],
        ),
        ("date_trunc('day', t)::date", ["2026-07-01", "2026-07-01", "2026-06-30", "2026-06-30"]),
        ("date_bin(INTERVAL '1 day', t)::date", ["2026-07-01", "2026-07-01", "2026-06-30", "2026-06-30"]),
        // Six hours from midnight there.
        (
            "date_bin(INTERVAL '6 hours', t, timestamp '2026-06-01')::time",
            ["00:00:00", "06:00:00", "18:00:00", "18:00:00"],
        ),
    ];
    each_async(cases, async |(expression, expected)| {
        for (zone, expected) in
            ["", " AT TIME ZONE 'Asia/Tokyo'", " AT TIME ZONE 'America/New_York'", " AT TIME ZONE 'UTC'"]
                .iter()
                .zip(expected)
        {
            let times = format!("SELECT timestamptz '2026-06-30 22:30:00Z'{zone} AS t");
            let constant = format!("SELECT {expression} FROM ({times})");
            assert_eq!(rows_in_fronts(&world, &constant).await, [[expected]], "{constant}");
            let column = format!(
                "SELECT {expression} FROM (SELECT x{zone} AS t FROM (VALUES (timestamptz '2026-06-30 22:30:00Z')) v(x))"
            );
            assert_eq!(rows_in_fronts(&world, &column).await, [[expected]], "{column}");
        }
    })
    .await;
}

/// A service that counts no days of the zone, or takes no zone at all, still serves the session.
#[tokio::test]
async fn a_zone_that_the_service_does_not_take_costs_requests_but_no_query() {
    let world = in_zone("+05:30").await;
    let by_day =
        format!("SELECT published_at::date, count(*) FROM mentions WHERE aid = '{BIG}' AND {WINDOW} GROUP BY 1");
    let zone = chrono::FixedOffset::east_opt(19_800).unwrap();
    let span = |day: &str| DateTime::parse_from_rfc3339(&format!("{day}T00:00:00+05:30")).unwrap();
    let (from, to) = (span("2026-03-20"), span("2026-04-10"));
    let corpus = world.service.corpus();
    let published = corpus.search(BIG).unwrap().mentions.iter().map(|mention| mention.facts.published);
    let days =
        published.filter(|at| from <= *at && *at < to).map(|at| at.with_timezone(&zone).date_naive().to_string());
    let mut found = world.rows(&by_day).await;
    found.sort();
    assert_eq!(found, counted(days));
    let plan = world.context.sql(&format!("EXPLAIN {by_day}")).await.unwrap().collect().await.unwrap();
    assert!(format!("{:?}", rows(&plan)).contains("one by one, because"), "{:?}", rows(&plan));
}
