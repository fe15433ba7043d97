//! Numbers, fields of intervals, texts of values and further forms: each expected text was printed by PostgreSQL 15 for the same
//! statement, except for digits beyond those of PostgreSQL.

use super::semantics::{printed, refused};
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn sums_of_bigint_are_numeric() {
    let served = Served::new().await;
    let client = served.client().await;
    let big = "(VALUES (3::bigint), (4)) AS v(x)";
    printed(
        &client,
        &[
            (format!("sum(x) / 2 = 3.5::numeric, sum(x) FROM {big}").as_str(), "t|7"),
            (format!("sum(x) / count(*) = 3.5::numeric, round(sum(x) / count(*), 2) FROM {big}").as_str(), "t|3.50"),
            (format!("sum(x) % 2, sum(x) * 2, -sum(x), sum(DISTINCT x) / 2 > 3 FROM {big}").as_str(), "1|14|-7|t"),
            (
                format!("x, round(100 * x / sum(x) OVER (), 1), round(count(*) * 100 / sum(count(*)) OVER (), 1) FROM {big} GROUP BY x ORDER BY x").as_str(),
                "3|42.9|50.0|4|57.1|50.0",
            ),
            (format!("coalesce(sum(x), 0) / 2 > 3, (sum(x) / 2)::int, greatest(sum(x), 1) FROM {big}").as_str(), "t|4|7"),
            (format!("s / 2 > 3 FROM (SELECT sum(x) AS s FROM {big}) AS q").as_str(), "t"),
            (format!("s / 2 > 3 FROM (SELECT sum(x) AS s FROM {big} UNION ALL SELECT 8::bigint) AS q").as_str(), "t|t"),
            (format!("round((SELECT sum(x) FROM {big}) / 2, 1)").as_str(), "3.5"),
            (format!("count(*) FROM {big} HAVING sum(x) / 2 > 3").as_str(), "2"),
            // Literals beside numbers.
            ("max(CASE WHEN x > 0 THEN x ELSE '0' END), max(coalesce(nullif(x, '9'), '2')) FROM (VALUES (9), (10)) AS v(x)", "10|10"),
            ("CASE WHEN x > 0 THEN x ELSE '0' END AS y FROM (VALUES (9), (10), (-1)) AS v(x) ORDER BY y", "0|9|10"),
            ("greatest(x, '9'), least(y, '10', 8) FROM (VALUES (10, 9.5)) AS v(x, y)", "10|8"),
            ("CASE WHEN true THEN 'a' ELSE 'b' END, coalesce(NULL, 'x')", "a|x"),
            // Beside a recursive query.
            (
                "sum(n) / 4 > 2, max(n) FROM (WITH RECURSIVE r(n) AS (SELECT 1::bigint UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n FROM r) AS q",
                "t|4",
            ),
            // A sum of integer is bigint.
            ("sum(x) / 2 FROM (VALUES (3), (4)) AS v(x)", "3"),
            ("sum(CASE WHEN x > 3 THEN 1 ELSE 0 END) / count(*) FROM (VALUES (3::bigint), (4)) AS v(x)", "0"),
            ("100 * sum(f) / count(*) FROM (SELECT CASE WHEN x > 3 THEN 1 END AS f FROM (VALUES (3), (4)) AS v(x)) AS q", "50"),
            ("sum(x::int) / 2, sum(length(x::text)) / 4 FROM (VALUES (3::bigint), (4)) AS v(x)", "3|0"),
            ("sum(g) / 2 FROM generate_series(1, 5) AS g", "7"),
            ("sum(count(*)) OVER () / 2 > 1 FROM (VALUES (1), (2), (3)) AS v(x) GROUP BY x LIMIT 1", "t"),
            // Beside instants of dates.
            (
                "m::date, sum(x) / 2 = 3.5::numeric FROM (SELECT date_trunc('month', d) AS m, x FROM (VALUES (date '2026-06-25', 3::bigint), (date '2026-06-26', 4)) AS v(d, x)) AS q GROUP BY m",
                "2026-06-01|t",
            ),
        ],
    )
    .await;
    for (sql, expected) in [
        (
            "SELECT sum(reach), sum(reach) / 2, count(*), max(reach), avg(reach) FROM mentions WHERE aid = '1'",
            ["numeric", "numeric", "int8", "int8", "float8"],
        ),
        (
            "SELECT sum(1), sum(x::int), sum(x) OVER (), sum(y), sum(x::numeric) OVER () FROM (VALUES (1::bigint, 0.5::float8)) AS v(x, y) GROUP BY x, y",
            ["int8", "int8", "numeric", "float8", "numeric"],
        ),
    ] {
        let statement = client.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let types: Vec<&str> = statement.columns().iter().map(|column| column.type_().name()).collect();
        assert_eq!(types, expected, "{sql}");
    }
    // The sum is still that of the service's counts.
    let days = format!(
        "SELECT sum(mentions) FROM volume WHERE aid = '{BIG}' AND bucket_start >= '2026-04-03' AND bucket_start < '2026-04-09'"
    );
    let quotient = days.replace("sum(mentions)", "sum(mentions) / count(DISTINCT bucket_start)");
    let (sum, cost) = served.cost(text(&client, &days)).await;
    let (each, cost_of_quotient) = served.cost(text(&client, &quotient)).await;
    assert_eq!(cost, cost_of_quotient);
    let (sum, each): (f64, f64) = (sum.parse().unwrap(), each.parse().unwrap());
    assert!((sum / 6.0 - each).abs() < 1e-9, "{sum} / 6 = {each}");
}

#[tokio::test(flavor = "multi_thread")]
async fn quotients_of_numeric_have_16_digits_at_least() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("1::numeric(4,0) / 7, 2::numeric(10,2) / 3", "0.14285714285714285714|0.66666666666666666667"),
            ("10::numeric / 3 = 3.3333333333333333::numeric, 100000::numeric / 3 = 33333.333333333333::numeric", "t|t"),
            (
                "1::numeric / 4 = 0.25, 0.1::numeric + 0.2 = 0.3, 1::numeric / 8 * 1.5, 1::numeric / 4 < 0.26",
                "t|t|0.18750000000000000000|t",
            ),
            ("7::numeric % 3, 7.5::numeric(4,1) % 2, -7::numeric(3,0) % 3", "1|1.5|-1"),
            (
                "round(1::numeric / 3 * (1::numeric / 3), 4), round((1::numeric / 3) / (2::numeric / 3), 4)",
                "0.1111|0.5000",
            ),
            ("round(x * x / x, 3) FROM (SELECT 1::numeric / 3 AS x) AS q", "0.333"),
            ("round(x / y, 3) FROM (VALUES (1::numeric(4,0), 7), (2, 3)) AS v(x, y) ORDER BY x", "0.143|0.667"),
        ],
    )
    .await;
    refused(
        &client,
        &[
            ("1::numeric / 0", "22012", "division by zero"),
            ("sum(x) / 0 FROM (VALUES (1::bigint)) AS v(x)", "22012", "division by zero"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_intervals_are_those_beside_the_larger_ones() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            (
                "extract(minute FROM interval '03:10:20.5'), extract(hour FROM interval '30 hours'), extract(second FROM interval '03:10:20.5')",
                "10|30|20.500000",
            ),
            (
                "extract(epoch FROM interval '1 year') = 31557600, extract(epoch FROM interval '1 mon 1 day 00:00:01.25') = 2678401.25",
                "t|t",
            ),
            ("date_part('milliseconds', interval '00:00:20.5'), extract(microseconds FROM interval '00:00:20.5')", "20500|20500000"),
            (
                "extract(day FROM a - b), extract(hour FROM a - b), extract(minute FROM a - b), extract(second FROM a - b), \
                 extract(epoch FROM a - b) = 2066410.5, date_part('milliseconds', a - b) \
                 FROM (VALUES (timestamp '2026-01-25 10:00:10.5', timestamp '2026-01-01 12:00:00')) AS v(a, b)",
                "23|22|0|10.500000|t|10500",
            ),
            (
                "extract(quarter FROM interval '14 months'), extract(year FROM interval '30 months'), extract(month FROM interval '30 months')",
                "1|2|6",
            ),
            ("extract(decade FROM interval '25 years')", "2"),
            ("extract(minute FROM -interval '03:10:20.5'), date_part('second', -interval '03:10:20.5')", "-10|-20.5"),
            (
                "avg(a - b) FROM (VALUES (timestamp '2026-01-02 00:00:01', timestamp '2026-01-01'), \
                 (timestamp '2026-01-03 00:00:00', timestamp '2026-01-01')) AS v(a, b)",
                "1 day 12:00:00.5",
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_joined_as_postgresql_prints_them() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("date_part('year', timestamp '2026-01-01') || '-', 'x' || timestamptz '2026-05-01 12:00:00'", "2026-|x2026-05-01 12:00:00+00"),
            ("concat(true), true || 'x', concat(1.5, NULL, date '2026-01-01')", "t|truex|1.52026-01-01"),
            ("concat_ws('-', true, 2, timestamp '2026-01-01 10:00:00')", "t-2-2026-01-01 10:00:00"),
            ("array_to_string(ARRAY[true, false], ','), array_to_string(ARRAY[timestamp '2026-01-01 10:00:00'], ',')", "t,f|2026-01-01 10:00:00"),
            ("ARRAY[true]::text[], ARRAY[timestamp '2026-01-01 10:00:00']::text[]", "{true}|{\"2026-01-01 10:00:00\"}"),
            ("'a' || interval '1 day', ARRAY[1,2] || 3, 'x' || 1e20::float8, 'a' || NULL", "a1 day|{1,2,3}|x1e+20|NULL"),
            ("x || '!' FROM (VALUES (interval '90 minutes')) AS v(x)", "01:30:00!"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn literals_are_read_as_in_postgresql() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("'1030'::time, time '103059'", "10:30:00|10:30:59"),
            ("timestamp '2026-01-01' + '2 hours', '1 day' + timestamp '2026-01-01', interval '1 day' + '1 hour'", "2026-01-01 02:00:00|2026-01-02 00:00:00|1 day 01:00:00"),
            ("ARRAY['a'] = '{a}', ARRAY[]::text[] = '{}', ARRAY[1,2] <> '{1,2}'", "t|t|f"),
            (
                "date 'today' = current_date, date 'tomorrow' - date 'yesterday', timestamp 'epoch', 'today'::timestamp = current_date, \
                 'now'::timestamptz = now()",
                "t|2|1970-01-01 00:00:00|t|t",
            ),
            ("1 AS x UNION SELECT '2' ORDER BY 1", "1|2"),
            ("to_hex(-1), to_hex(255), to_hex(-1::bigint)", "ffffffff|ff|ffffffffffffffff"),
            ("to_char(12.5, 'FM990.0%'), to_char(0.5, '990D00 %'), to_char(timestamp '2026-01-01', 'YYYY %')", "12.5%|   0.50 %|2026 %"),
        ],
    )
    .await;
    let statement = client.prepare("SELECT 1 AS x UNION SELECT '2'").await.unwrap();
    assert_eq!(statement.columns()[0].type_().name(), "int8");
    refused(
        &client,
        &[
            ("'12'::time", "22007", "type time"),
            ("'2026-06'::date", "22007", "type date"),
            ("99999999999::int", "22003", ""),
            ("'99999999999'::int", "22003", ""),
            ("'abc'::int", "22P02", "abc"),
            ("'a' ~ '('", "2201B", "invalid regular expression: unclosed group"),
            ("regexp_match('a', 'a{2,1}')", "2201B", "invalid regular expression: invalid repetition count range"),
            ("regexp_count('a', '(')", "2201B", "invalid regular expression: ("),
            (r"'a' ~ '(\w{1,1000}){1,100}'", "2201B", "invalid regular expression: too large"),
            ("'a' SIMILAR TO '(_{1,1000}){1,1000}'", "2201B", "invalid regular expression: too large"),
            (r"regexp_like('a', '(\w{1,1000}){1,100}')", "2201B", "invalid regular expression: too large"),
            (
                r"regexp_like('a', p) FROM (VALUES ('(\w{1,1000}){1,100}'), ('b')) v(p)",
                "2201B",
                "invalid regular expression: too large",
            ),
            (r"regexp_match('a', '(\w{1,1000}){1,100}')", "2201B", "invalid regular expression: too large"),
            (r"regexp_replace('a', '(\w{1,1000}){1,100}', 'b')", "2201B", "invalid regular expression: too large"),
            (r"regexp_count('a', '(\w{1,1000}){1,100}')", "2201B", "invalid regular expression: "),
            ("'2026-13-01'::date", "22008", "2026-13-01"),
            ("'abc'::date", "22007", "abc"),
            ("'2026-02-30'::timestamp", "22008", "2026-02-30"),
            ("(SELECT x FROM (VALUES (1), (2)) v(x))", "21000", "more than one row"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn further_forms_are_known() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("trim(leading FROM '  x ') || '|', trim(both FROM ' x '), trim(trailing FROM 'x  ') || '|'", "x ||x|x|"),
            (
                "date_trunc('milliseconds', timestamp '2026-01-01 00:00:00.123456'), date_trunc('decade', timestamp '2026-05-01'), \
                 date_trunc('century', timestamp '2026-05-01'), date_trunc('century', timestamp '2000-05-01'), \
                 date_trunc('millennium', timestamp '2026-05-01')",
                "2026-01-01 00:00:00.123|2020-01-01 00:00:00|2001-01-01 00:00:00|1901-01-01 00:00:00|2001-01-01 00:00:00",
            ),
            ("1 top, 2 sort, 3 view, 4 match, 5 exclude", "1|2|3|4|5"),
            ("count(*) match, max(x) view FROM (VALUES (1)) start(x)", "1|1"),
            ("settings.x, format.x, sample.x FROM (VALUES (1)) settings(x), (VALUES (2)) format(x), (VALUES (3)) sample(x)", "1|2|3"),
            ("EXISTS (SELECT 1 FROM unnest(ARRAY['a','b']) t WHERE t = 'a')", "t"),
            (
                "i FROM (VALUES (1, ARRAY['a','b']), (2, ARRAY['c']), (3, NULL)) v(i, a) \
                 WHERE EXISTS (SELECT 1 FROM unnest(a) t WHERE t LIKE 'a%')",
                "1",
            ),
            (
                "i FROM (VALUES (1, ARRAY['a','b']), (2, ARRAY['c']), (3, NULL)) v(i, a) \
                 WHERE NOT EXISTS (SELECT u.x FROM unnest(v.a) AS u(x) WHERE upper(u.x) = 'A') ORDER BY i",
                "2|3",
            ),
        ],
    )
    .await;
    client.batch_execute("SET timezone = 'Europe/Berlin'").await.unwrap();
    printed(
        &client,
        &[
            ("to_timestamp(1782432000), to_timestamp(1782432000.0)", "2026-06-26 02:00:00+02|2026-06-26 02:00:00+02"),
            ("to_timestamp(x) FROM (VALUES (1782432000::bigint)) v(x)", "2026-06-26 02:00:00+02"),
            (
                "date_bin('6 hours', timestamptz '2026-06-24 12:30:00', '2026-06-24'), \
                 date_bin('6 hours', timestamptz '2026-06-24 12:30:00', timestamp '2001-01-01')",
                "2026-06-24 12:00:00+02|2026-06-24 07:00:00+02",
            ),
            (
                "date_bin('1 day', timestamptz '2026-06-24 12:30:00', timestamptz '2026-01-01'), \
                 date_bin('1 hour', timestamp '2026-06-24 12:30:00', timestamptz '2026-01-01 00:15')",
                "2026-06-24 01:00:00+02|2026-06-24 12:15:00+02",
            ),
            (
                "extract(timezone FROM timestamptz '2026-06-24 12:30:00'), extract(timezone_hour FROM timestamptz '2026-01-24 12:30:00'), \
                 date_part('timezone_minute', timestamptz '2026-01-24')",
                "7200|1|0",
            ),
        ],
    )
    .await;
    let seconds = client.query_one("SELECT to_timestamp($1::bigint)::text", &[&1_782_432_000_i64]).await.unwrap();
    assert_eq!(seconds.get::<_, &str>(0), "2026-06-26 02:00:00+02");
    // A bound instant is read in the zone of the session, like any other.
    let at: DateTime<Utc> = "2026-06-25T22:30:00Z".parse().unwrap();
    let of_bound = [
        ("date_part('hour', $1::timestamptz)::text", "0"),
        ("date_trunc('day', $1::timestamptz)::text", "2026-06-26 00:00:00+02"),
        ("$1::timestamptz::date::text", "2026-06-26"),
        ("to_char($1::timestamptz, 'DD HH24:MI TZ')", "26 00:30 CEST"),
        ("to_char($1::timestamptz AT TIME ZONE 'Asia/Tokyo', 'DD HH24:MI')", "26 07:30"),
    ];
    each_async(of_bound, async |(expression, expected)| {
        let row = client.query_one(&format!("SELECT {expression}"), &[&at]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), expected, "{expression}");
    })
    .await;
    printed(
        &client,
        &[
            (
                "to_char(timestamptz '2026-06-25 22:30:00Z', 'DD HH24:MI'), \
                 to_char(timestamptz '2026-06-25 22:30:00Z' AT TIME ZONE 'Asia/Tokyo', 'DD HH24:MI'), \
                 to_char(timestamp '2026-06-26 07:30:00' AT TIME ZONE 'Asia/Tokyo', 'DD HH24:MI')",
                "26 00:30|26 07:30|26 00:30",
            ),
            (
                "date_part('hour', (x::timestamptz[])[1]), to_char((x::timestamptz[])[1], 'HH24') \
                 FROM (VALUES ('{2026-06-25 22:30:00+00}')) v(x)",
                "0|00",
            ),
        ],
    )
    .await;
}
