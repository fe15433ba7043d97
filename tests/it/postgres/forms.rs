//! Forms of SQL that PostgreSQL's users write: each expected text was printed by PostgreSQL 15 for the same statement.

use super::semantics::{printed, refused};
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn intervals_are_read_in_all_forms() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("interval '04:05:06', interval '1 day 04:05:06', interval '1 12:59:10', interval '-1 day -02:03:04'", "04:05:06|1 day 04:05:06|1 day 12:59:10|-1 days -02:03:04"),
            ("interval '1 year 2 mons', interval '1-2', interval 'P1DT2H', interval 'P0001-02-03T04:05:06', interval '@ 1 minute ago'", "1 year 2 mons|1 year 2 mons|1 day 02:00:00|1 year 2 mons 3 days 04:05:06|-00:01:00"),
            ("interval '1.5 months', interval '1.5 days', interval '2 w', interval '1 decade', interval '5'", "1 mon 15 days|1 day 12:00:00|14 days|10 years|00:00:05"),
            ("interval '1:30' minute to second, interval '1 2' day to hour, interval '3 days 2 hours' day", "00:01:30|1 day 02:00:00|3 days"),
            ("'04:05'::interval, x::interval FROM (VALUES ('1 day 02:00:00'), ('P1M')) AS t(x) ORDER BY 2", "04:05:00|1 day 02:00:00|04:05:00|1 mon"),
            ("make_interval(days => 10, hours => 2), make_interval(1, 2, 3, 4, 5, 6, 7.5), make_interval(secs => 1.5)", "10 days 02:00:00|1 year 2 mons 25 days 05:06:07.5|00:00:01.5"),
            ("make_timestamp(2026, 1, 2, 3, 4, 5.5), make_date(2026, 1, 2)", "2026-01-02 03:04:05.5|2026-01-02"),
            ("make_date(-1, 1, 1), make_date(-44, 3, 15), make_timestamp(-1, 1, 1, 0, 0, 0), make_date(y, 2, 29) FROM (VALUES (-1)) AS t(y)", "0001-01-01 BC|0044-03-15 BC|0001-01-01 00:00:00 BC|0001-02-29 BC"),
            ("interval '1 month' * 1.5, interval '1 day' / 2, 2.5 * interval '1 hour', interval '5 minutes' * x FROM (VALUES (3)) AS t(x)", "1 mon 15 days|12:00:00|02:30:00|00:15:00"),
            ("justify_hours(interval '27 hours'), justify_days(interval '35 days'), justify_interval(interval '1 month -1 hour')", "1 day 03:00:00|1 mon 5 days|29 days 23:00:00"),
            ("justify_days(t - timestamp '2026-04-01 00:00:00'), justify_hours(t - timestamp '2026-06-26 00:00:00'), justify_interval(t - timestamp '2026-04-01 00:00:00') FROM (VALUES (timestamp '2026-06-27 01:30:00')) AS q(t)", "2 mons 27 days 01:30:00|1 day 01:30:00|2 mons 27 days 01:30:00"),
            ("(t - timestamp '2026-04-01 00:00:00') * 2 FROM (VALUES (timestamp '2026-06-27 01:30:00')) AS q(t)", "174 days 03:00:00"),
            ("age(timestamp '2026-03-01 00:00:00', timestamp '2025-01-15 12:00:00'), age(date '2026-03-01', date '2026-01-31'), age(date '2026-01-31', date '2026-03-01')", "1 year 1 mon 16 days 12:00:00|1 mon 1 day|-1 mons -1 days"),
            ("date '2026-01-01' + interval '1 hour', date '2026-01-01' - interval '1 day', interval '1 hour' + date '2026-01-01', date '2026-01-01' + 3", "2026-01-01 01:00:00|2025-12-31 00:00:00|2026-01-01 01:00:00|2026-01-04"),
            ("d + interval '1 hour' FROM (VALUES (date '2026-01-01')) AS t(d)", "2026-01-01 01:00:00"),
            ("timestamp '2026-02-05 10:00:00' - timestamp '2026-01-01 12:00:00', (timestamp '2026-02-05 10:00:00' - timestamp '2026-01-01 12:00:00')::text", "34 days 22:00:00|34 days 22:00:00"),
        ],
    )
    .await;
    refused(
        &client,
        &[
            ("interval 'foo'", "22007", "invalid input syntax"),
            ("x::interval FROM (VALUES ('1 foo')) AS t(x)", "22P02", "invalid input syntax"),
            ("make_date(0, 1, 1)", "22008", "date field value out of range"),
            ("make_interval(fortnights => 1)", "42883", "make_interval"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_times_are_read_without_their_zone() {
    let served = Served::new().await;
    let client = served.client().await;
    for zone in ["UTC", "America/New_York"] {
        client.batch_execute(&format!("SET timezone = '{zone}'")).await.unwrap();
        printed(
            &client,
            &[
                (
                    "v::timestamp, v::date FROM (VALUES ('2026-06-25 23:00:00+02')) AS q(v)",
                    "2026-06-25 23:00:00|2026-06-25",
                ),
                (
                    "v::timestamp, v::date FROM (VALUES ('2026-06-25 23:00:00-05')) AS q(v)",
                    "2026-06-25 23:00:00|2026-06-25",
                ),
                ("v::timestamp FROM (VALUES ('2026-06-25 23:00 America/New_York')) AS q(v)", "2026-06-25 23:00:00"),
                (
                    "v::timestamp, v::date FROM (VALUES ('2026-06-25 12:00:00'), (NULL)) AS q(v) ORDER BY 1",
                    "2026-06-25 12:00:00|2026-06-25|NULL|NULL",
                ),
                (
                    "'2026-06-25 12:00:00 Europe/Berlin'::timestamp, timestamp '2026-06-25 12:00:00+02'",
                    "2026-06-25 12:00:00|2026-06-25 12:00:00",
                ),
                ("'2026-06-25 23:00 America/New_York'::date, date '2026-06-25 23:00-05'", "2026-06-25|2026-06-25"),
                (
                    "v::time FROM (VALUES ('120000'), ('2026'), ('04:05:06.5')) AS q(v) ORDER BY 1",
                    "04:05:06.5|12:00:00|20:26:00",
                ),
            ],
        )
        .await;
    }
    refused(
        &client,
        &[
            ("'-1'::time", "22007", "invalid input syntax for type time"),
            ("v::time FROM (VALUES ('-1')) AS q(v)", "22007", "invalid input syntax for type time"),
            ("v::time FROM (VALUES ('12')) AS q(v)", "22007", "invalid input syntax for type time"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dates_are_instants_of_the_zone_of_the_session() {
    let served = Served::new().await;
    let client = served.client().await;
    client.batch_execute("SET timezone = 'America/New_York'").await.unwrap();
    let dates = "FROM (VALUES (date '2026-06-25')) AS t(d)";
    printed(
        &client,
        &[
            ("date '2026-06-25' AT TIME ZONE 'UTC'", "2026-06-25 04:00:00"),
            (format!("d AT TIME ZONE 'UTC', d AT TIME ZONE 'Europe/Berlin' {dates}").as_str(), "2026-06-25 04:00:00|2026-06-25 06:00:00"),
            (format!("date_trunc('month', d), extract(epoch FROM date_trunc('month', d))::bigint {dates}").as_str(), "2026-06-01 00:00:00-04|1780286400"),
            (format!("date_trunc('month', d::timestamp), date_trunc('month', d)::date {dates}").as_str(), "2026-06-01 00:00:00|2026-06-01"),
            (format!("to_char(d, 'OF TZ'), to_char(d, 'YYYY-MM-DD HH24:MI') {dates}").as_str(), "-04 EDT|2026-06-25 00:00"),
            (format!("date_bin(interval '1 hour', d, timestamptz '2026-01-01 00:00:00Z') {dates}").as_str(), "2026-06-25 00:00:00-04"),
            ("v FROM (VALUES (date '2026-06-25'), (timestamptz '2026-06-26 04:00:00Z'), (timestamp '2026-06-27 00:00:00'), (NULL)) AS q(v) ORDER BY v", "2026-06-25 00:00:00-04|2026-06-26 00:00:00-04|2026-06-27 00:00:00-04|NULL"),
            ("* FROM generate_series(date '2026-03-08', '2026-03-10'::date, '1 day')", "2026-03-08 00:00:00-05|2026-03-09 00:00:00-04|2026-03-10 00:00:00-04"),
            ("* FROM generate_series(date '2026-06-25' + 1, date '2026-06-26', interval '12 hours') WITH ORDINALITY", "2026-06-26 00:00:00-04|1"),
            ("g FROM generate_series(date '2026-06-25', timestamptz '2026-06-25 16:00:00Z', '12 hours') AS g ORDER BY g", "2026-06-25 00:00:00-04|2026-06-25 12:00:00-04"),
            ("g FROM generate_series(date '2026-06-25', '2026-06-26', '1 day') AS g ORDER BY g", "2026-06-25 00:00:00-04|2026-06-26 00:00:00-04"),
            ("g FROM generate_series(date '2026-06-25' - interval '1 day', date '2026-06-25', '1 day') AS g ORDER BY g", "2026-06-24 00:00:00|2026-06-25 00:00:00"),
            ("g FROM generate_series(date_trunc('month', date '2026-06-25'), date '2026-07-01', '1 month') AS g ORDER BY g", "2026-06-01 00:00:00-04|2026-07-01 00:00:00-04"),
            (format!("generate_series(d, d + 1, '1 day') {dates}").as_str(), "2026-06-25 00:00:00-04|2026-06-26 00:00:00-04"),
            (format!("g {dates}, generate_series(t.d, t.d + interval '1 day', '1 day') AS g ORDER BY g").as_str(), "2026-06-25 00:00:00|2026-06-26 00:00:00"),
            (format!("g::date {dates}, generate_series(t.d, t.d + 1, interval '1 day') AS g ORDER BY g").as_str(), "2026-06-25|2026-06-26"),
            ("x FROM (VALUES (timestamp '2026-06-25 04:00:00'), ('2026-06-25')) AS t(x) ORDER BY x", "2026-06-25 00:00:00|2026-06-25 04:00:00"),
            ("x FROM (VALUES ('2026-06-24'), (date '2026-06-25'), (NULL)) AS t(x) ORDER BY x", "2026-06-24|2026-06-25|NULL"),
            ("x, y FROM (VALUES (1, '2026-06-24'), (2, current_date - 100000)) AS t(x, y) WHERE x = 1", "1|2026-06-24"),
            ("x FROM (VALUES ('2026-06-25 12:00:00'), (timestamptz '2026-06-25 04:00:00Z' - interval '1 day')) AS t(x) ORDER BY x", "2026-06-24 00:00:00-04|2026-06-25 12:00:00-04"),
            ("date '2026-06-25' INTERSECT SELECT timestamptz '2026-06-25 04:00:00Z'", "2026-06-25 00:00:00-04"),
            ("date '2026-06-25' EXCEPT SELECT timestamptz '2026-06-25 00:00:00Z'", "2026-06-25 00:00:00-04"),
            ("timestamptz '2026-06-25 04:00:00Z' INTERSECT SELECT date '2026-06-25'", "2026-06-25 00:00:00-04"),
            (format!("date_trunc('month', d), count(*) {dates} GROUP BY 1").as_str(), "2026-06-01 00:00:00-04|1"),
        ],
    )
    .await;
    refused(
        &client,
        &[
            ("x FROM (VALUES (date_trunc('month', date '2026-06-25'))) AS t(x)", "0A000", "in VALUES"),
            ("x FROM (VALUES (date '2026-06-25'), ('zzz')) AS t(x)", "22007", "zzz"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_have_the_signs_and_errors_of_postgresql() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("row_number() OVER () - 5, row_number() OVER () / 2, -row_number() OVER (), rank() OVER (ORDER BY x) * -1 FROM (VALUES (1)) AS t(x)", "-4|0|-1|-1"),
            ("r - 5 FROM (SELECT row_number() OVER () AS r FROM (VALUES (1)) AS t(x)) AS q", "-4"),
            ("1 - cardinality(ARRAY[1,2]), array_position(ARRAY['a','b'], 'b') - 3, array_positions(ARRAY['a','b','a'], 'a')", "-1|-1|{1,3}"),
            ("round(2.5::float8), round(3.5::float8), round(-2.5::float8), round(2.5), round(-2.5), round(2.345, 2), round(25, -1)", "2|4|-2|3|-3|2.35|30"),
            ("round(x), round(y) FROM (VALUES (2.5::float8, 2.5::numeric)) AS t(x, y)", "2|3"),
            ("trunc(4.35, 2), trunc(-1.15, 1), round(1.005, 2), round(100.0 * 2047 / 20000, 2), round(-1250.5, -2)", "4.35|-1.1|1.01|10.24|-1300"),
            ("round(avg(x), 2) FROM (VALUES (1.00), (1.01)) AS t(x)", "1.01"),
            ("mod(7, 3), mod(-7, 3), mod(7.5, 2), div(7, 2), ~5, 'abc' ^@ 'ab', sign(-3), ceiling(1.2)", "1|-1|1.5|3|-6|t|-1|2"),
            ("x FROM (VALUES (0), (1), (2), (0)) AS t(x) WHERE x <> 0 AND 10 / x > 2 ORDER BY x", "1|2"),
            ("width_bucket(5.35, 0.024, 10.06, 5), width_bucket(-1.0::float8, 0, 10, 5), width_bucket(10, 0, 10, 5), width_bucket(1, 10, 0, 5)", "3|0|6|5"),
            ("variance(x), every(x > 1), percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (1::float8), (3)) AS t(x)", "2|f|1"),
            ("extract(century FROM date '2026-01-01'), extract(decade FROM date '2026-01-01'), extract(millennium FROM date '2001-01-01')", "21|202|3"),
            ("extract(century FROM i), extract(millennium FROM i), extract(decade FROM i) FROM (VALUES (interval '13 months')) AS t(i)", "0|0|0"),
            ("extract(century FROM interval '250 years'), extract(decade FROM interval '-13 months'), date_part('century', interval '-13 months')", "2|0|0"),
            ("extract(century FROM make_date(-1, 1, 1)), date_part('decade', timestamp '1999-12-31 00:00:00'), extract(millennium FROM NULL::timestamp)", "-1|199|NULL"),
            ("num_nulls(1, NULL), num_nonnulls(1, NULL), isfinite(date '2026-01-01')", "1|1|t"),
            ("r / (r * 10), r * 10 FROM (SELECT row_number() OVER (ORDER BY x) AS r FROM (VALUES (1)) AS t(x)) AS q", "0|10"),
            ("percentile_cont(0.9) WITHIN GROUP (ORDER BY x) FROM generate_series(1, 10) AS x", "9.1"),
            ("string_agg(DISTINCT x, ','), array_agg(DISTINCT x) FROM (VALUES ('d'), ('b'), (NULL), ('c')) AS t(x)", "b,c,d|{b,c,d,NULL}"),
            ("interval '49 months' / 49, interval '1 month' / 3, interval '1 day' * 1.5", "1 mon|10 days|1 day 12:00:00"),
            ("to_timestamp('2026-05-01 14', 'YYYY-MM-DD HH24'), to_timestamp('2026-05-01 12:30', 'YYYY-MM-DD HH:MI')", "2026-05-01 14:00:00+00|2026-05-01 00:30:00+00"),
            ("date_trunc('days', timestamp '2026-05-04 10:11:12'), date_trunc('hours', timestamp '2026-05-04 10:11:12')", "2026-05-04 00:00:00|2026-05-04 10:00:00"),
            ("date '2026-02-01' - '2026-01-01', timestamp '2026-01-03' - '2026-01-01 00:00'", "31|2 days"),
            ("json_object_keys('{\"a\":1,\"b\":2}')", "a|b"),
            ("upper(current_setting('timezone')), 2.6::int, version() LIKE 'PostgreSQL%'", "UTC|3|t"),
            ("current_user, 2.6::int", "ada|3"),
            ("count(*) FROM pg_class WHERE relname = ANY('{mentions,volume}'::text[])", "2"),
            ("substring('foobar' from 'o(.)b'), substring('foobar', 'o.b'), substring('foobar' from 2 for 3), substring('a' from 'b') IS NULL", "o|oob|oob|t"),
            ("array_remove(ARRAY[1,2,NULL], NULL), array_remove(ARRAY[1,2,1], 1)", "{1,2}|{2}"),
            (
                "date_trunc('day', timestamptz '2026-05-01 23:30:00Z', 'Europe/Berlin'), date_trunc('hour', t, 'Asia/Kolkata') \
                 FROM (VALUES (timestamptz '2026-05-01 23:45:00Z')) AS v(t)",
                "2026-05-01 22:00:00+00|2026-05-01 23:30:00+00",
            ),
        ],
    )
    .await;
    refused(
        &client,
        &[
            ("1.0 / 0", "22012", "division by zero"),
            ("x / 0 FROM (VALUES (1.5::float8)) AS t(x)", "22012", "division by zero"),
            ("x % y FROM (VALUES (1.5::float8, 0)) AS t(x, y)", "22012", "division by zero"),
            ("1 % 0", "22012", "division by zero"),
            ("sum(x) FROM (VALUES (9223372036854775807), (1)) AS t(x)", "22003", "out of range"),
        ],
    )
    .await;
    let statement = client
        .prepare("SELECT row_number() OVER (), cardinality(ARRAY[1]), array_position(ARRAY[1], 1), approx_distinct(1)")
        .await
        .unwrap();
    let types: Vec<&str> = statement.columns().iter().map(|column| column.type_().name()).collect();
    assert_eq!(types, ["int8"; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_have_bounds_and_rows() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("NULL = ANY(ARRAY[]::int[]), NULL <> ALL(ARRAY[]::int[]), 1 = ANY(ARRAY[2, NULL]), 1 <> ALL(ARRAY[2, NULL]), 1 < ANY(ARRAY[2, NULL])", "f|t|NULL|NULL|t"),
            ("array_length(ARRAY[]::int[], 1), array_length(ARRAY[1,2], 1), array_length(ARRAY[1,2], 2), cardinality(ARRAY[]::int[])", "NULL|2|NULL|0"),
            ("array_upper(ARRAY[1,2], 1), array_lower(ARRAY[1,2], 1), array_ndims(ARRAY[1,2]), array_upper(ARRAY[]::int[], 1), array_ndims(ARRAY[]::int[])", "2|1|1|NULL|NULL"),
            ("trim_array(ARRAY[1,2,3], 1), array_fill(7, ARRAY[3]), array(SELECT x FROM (VALUES (1), (2)) AS t(x) ORDER BY x DESC)", "{1,2}|{7,7,7}|{2,1}"),
            ("t.x, ARRAY(SELECT b FROM (VALUES (1, 5), (1, 3)) AS u(a, b) WHERE u.a = t.x ORDER BY b) FROM (VALUES (1), (2)) AS t(x) ORDER BY x", "1|{3,5}|2|{}"),
            ("generate_series(1, 3)", "1|2|3"),
            ("x, generate_series(1, x) FROM (VALUES (1), (2)) AS t(x) ORDER BY 1, 2", "1|1|2|1|2|2"),
            ("count(*) FROM (SELECT generate_series(1, 10)) AS q", "10"),
            ("generate_series FROM (SELECT generate_series(1, 2)) AS q ORDER BY 1", "1|2"),
            ("string_to_table('a,b', ',') AS s ORDER BY 1", "a|b"),
            ("x FROM unnest(ARRAY[1,2]) x ORDER BY x", "1|2"),
            ("g + 1 FROM generate_series(1, 3) g ORDER BY g", "2|3|4"),
            ("generate_series FROM generate_series(1, 2) ORDER BY 1", "1|2"),
            ("* FROM generate_series(1, 2) WITH ORDINALITY ORDER BY 1", "1|1|2|2"),
            ("* FROM unnest(ARRAY['b','a']) WITH ORDINALITY AS t(v, n) ORDER BY n", "b|1|a|2"),
            ("* FROM unnest(ARRAY[1,2], ARRAY['a','b','c']) AS t(a, b) ORDER BY b", "1|a|2|b|NULL|c"),
            ("t.x, u FROM (VALUES (1, ARRAY[1,2]), (2, ARRAY[3])) AS t(x, a), unnest(t.a) AS u ORDER BY x, u", "1|1|1|2|2|3"),
            ("t.x, u.v, u.n FROM (VALUES (1, ARRAY[1,2]), (2, ARRAY[3])) AS t(x, a) CROSS JOIN unnest(a) WITH ORDINALITY AS u(v, n) ORDER BY x, v", "1|1|1|1|2|2|2|3|1"),
            ("t.x, u FROM (VALUES (1, ARRAY[1]), (2, ARRAY[]::int[])) AS t(x, a) LEFT JOIN unnest(a) AS u ON true ORDER BY x, u", "1|1|2|NULL"),
            ("t.x, g FROM (VALUES (1), (2)) AS t(x), generate_series(1, t.x) AS g ORDER BY x, g", "1|1|2|1|2|2"),
            ("d::date FROM generate_series(timestamp '2026-01-01 00:00:00', timestamp '2026-01-03 00:00:00', '1 day') d ORDER BY d", "2026-01-01|2026-01-02|2026-01-03"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subqueries_stand_anywhere() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("(1, 2) IN (SELECT 1, 2), (1, NULL) IN (SELECT 1, 2), (1, 3) NOT IN (SELECT 1, 2), (1, NULL) NOT IN (SELECT 1, 2), (2, NULL) IN (SELECT 1, 2)", "t|NULL|t|NULL|f"),
            ("x FROM (VALUES (1, 2), (3, 4)) AS t(x, y) WHERE (x, y) IN (SELECT a, b FROM (VALUES (1, 2), (5, NULL)) AS u(a, b))", "1"),
            ("x FROM (VALUES (1, 2), (3, 4)) AS t(x, y) WHERE (x, y) NOT IN (SELECT a, b FROM (VALUES (1, 2), (5, NULL)) AS u(a, b))", "3"),
            ("count(*) FROM (VALUES (1, 2), (3, 4)) AS t(x, y) WHERE (x, y) NOT IN (SELECT a, b FROM (VALUES (1, 2), (3, NULL)) AS u(a, b))", "0"),
            ("x FROM (VALUES (1, 2), (3, 4)) AS t(x, y) WHERE (x, y) < ANY (SELECT 3, 1)", "1"),
            ("1 > ALL (SELECT 1 UNION SELECT NULL), 2 > ALL (SELECT 1 UNION SELECT NULL), 1 > ALL (SELECT 1 WHERE false), 2 > ANY (SELECT 1 UNION SELECT NULL), 1 > ANY (SELECT 1 WHERE false)", "f|NULL|t|t|f"),
            ("x FROM (VALUES (1), (2)) AS t(x) WHERE (x > ANY (SELECT 1 UNION SELECT NULL)) IS NULL OR x = 7", "1"),
            ("x FROM (VALUES (1), (2)) AS t(x) WHERE NOT (x > ALL (SELECT 1 UNION SELECT NULL))", "1"),
            ("x FROM (VALUES (1), (2)) AS t(x) WHERE x >= ALL (SELECT 2)", "2"),
            ("x AS y FROM (VALUES (1, 2), (3, 1)) AS t(x, y) ORDER BY t.y", "3|1"),
            ("x AS y FROM (VALUES (1, 2), (3, 1)) AS t(x, y) ORDER BY y + 0", "3|1"),
            ("x AS y, y AS x FROM (VALUES (1, 9), (2, 8)) AS t(x, y) ORDER BY abs(x)", "1|9|2|8"),
            ("y FROM (SELECT x AS y FROM (VALUES (1, 2), (3, 1)) AS t(x, y) ORDER BY y + 0 LIMIT 1) AS q", "3"),
            ("x AS y FROM (VALUES (1, 2), (3, 1)) AS t(x, y) ORDER BY y", "1|3"),
            ("x FROM (VALUES (1), (2)) AS t(x) ORDER BY (SELECT max(b) FROM (VALUES (1, 5), (2, 3)) AS u(a, b) WHERE u.a = t.x)", "2|1"),
            ("(SELECT max(b) FROM (VALUES (1, 5), (2, 3)) AS u(a, b) WHERE u.a = t.x) AS m, count(*) FROM (VALUES (1), (2)) AS t(x) GROUP BY 1 ORDER BY 1", "3|1|5|1"),
            ("sum((SELECT max(b) FROM (VALUES (1, 5), (2, 3)) AS u(a, b) WHERE u.a = t.x)) FROM (VALUES (1), (2)) AS t(x)", "8"),
            ("count(*) FILTER (WHERE EXISTS (SELECT 1 FROM (VALUES (1), (4)) AS u(a) WHERE u.a = t.x)) FROM (VALUES (1), (2)) AS t(x)", "1"),
            ("count(*) FILTER (WHERE (SELECT max(b) FROM (VALUES (1, 5), (2, 3)) AS u(a, b) WHERE u.a = t.x) > 4) FROM (VALUES (1), (2)) AS t(x)", "1"),
            ("x, q.b FROM (VALUES (1), (2), (3)) AS t(x) LEFT JOIN LATERAL (SELECT b FROM (VALUES (1, 5), (1, 3), (2, 4), (2, 9)) AS u(a, b) WHERE u.a = t.x ORDER BY b DESC LIMIT 1) AS q ON true ORDER BY x", "1|5|2|9|3|NULL"),
            ("x, q.b FROM (VALUES (1), (2)) AS t(x), LATERAL (SELECT b FROM (VALUES (1, 5), (1, 3), (2, 4), (2, 9)) AS u(a, b) WHERE u.a = t.x ORDER BY b OFFSET 1 LIMIT 2) AS q ORDER BY x", "1|5|2|9"),
            ("x, (SELECT b FROM (VALUES (1, 5), (1, 3), (2, 4)) AS u(a, b) WHERE u.a = t.x ORDER BY b LIMIT 1) FROM (VALUES (1), (2), (3)) AS t(x) ORDER BY x", "1|3|2|4|3|NULL"),
            ("x, y, count(*) FROM (VALUES (1, 2), (3, 4)) AS t(x, y) GROUP BY ROLLUP (1, 2) ORDER BY 1, 2", "1|2|1|1|NULL|1|3|4|1|3|NULL|1|NULL|NULL|2"),
            ("x, y, count(*) FROM (VALUES (1, 2), (3, 4)) AS t(x, y) GROUP BY GROUPING SETS ((1), (2), ()) ORDER BY 1, 2", "1|NULL|1|3|NULL|1|NULL|2|1|NULL|4|1|NULL|NULL|2"),
            ("1 FROM (VALUES (1), (2)) AS t(x) HAVING true", "1"),
            ("(date '2026-01-01', date '2026-01-31') OVERLAPS (date '2026-01-15', date '2026-02-15'), (date '2026-01-01', date '2026-01-15') OVERLAPS (date '2026-01-15', date '2026-02-15'), (date '2026-01-31', date '2026-01-01') OVERLAPS (date '2026-01-15', NULL)", "t|f|t"),
            ("(timestamp '2026-01-01 00:00:00', interval '10 days') OVERLAPS (timestamp '2026-01-05 00:00:00', interval '10 days')", "t"),
            ("sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE NO OTHERS) FROM (VALUES (1), (2), (3)) AS t(x) ORDER BY x", "3|6|5"),
        ],
    )
    .await;
    refused(
        &client,
        &[
            ("1 WHERE (1, 2) = (SELECT 1, 2)", "0A000", "(a, b) IN (SELECT"),
            ("sum(x) OVER (ORDER BY x ROWS 1 PRECEDING EXCLUDE TIES) FROM (VALUES (1)) AS t(x)", "0A000", "EXCLUDE"),
            ("1 BETWEEN SYMMETRIC 2 AND 0", "0A000", "least(a, b)"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_clients_type() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("encode('a'::bytea, 'hex'), length(gen_random_uuid()::text), quote_literal('a''b'), quote_nullable(NULL)", "61|36|'a''b'|NULL"),
            ("regexp_substr('abc', 'b.'), date(timestamp '2026-01-01 10:00:00')", "bc|2026-01-01"),
            ("initcap('hello WORLD'), split_part('a,b,c', ',', 2), lpad('a', 3, 'xy'), overlay('abc' placing 'x' from 2 for 1), int4('7')", "Hello World|b|xya|axc|7"),
        ],
    )
    .await;
    refused(
        &client,
        &[
            ("nope(1)", "42883", "unknown function `nope`"),
            ("uper('a')", "42883", "did you mean upper?"),
            ("nextval('x')", "42883", "row_number()"),
            ("md5('a')", "42883", "hashes"),
            ("jsonb_build_object('a', 1)", "42883", "json_build_object"),
        ],
    )
    .await;
    let json = |sql: &str| {
        let (client, sql) = (&client, format!("SELECT {sql}"));
        async move {
            let statement = client.prepare(&sql).await.unwrap();
            assert_eq!(statement.columns()[0].type_().name(), "json", "{sql}");
            text(client, &sql).await
        }
    };
    assert_eq!(json("json_build_object('a', 1, 'b', NULL, 'c', 'x')").await, r#"{"a":1,"b":null,"c":"x"}"#);
    assert_eq!(json("json_agg(x ORDER BY x) FROM (VALUES (2), (1)) AS t(x)").await, "[1,2]");
    assert_eq!(json("json_agg(json_build_object('x', x)) FROM (VALUES (1)) AS t(x)").await, r#"[{"x":1}]"#);
    assert_eq!(json("to_json('a b')").await, r#""a b""#);
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_have_the_meaning_of_their_declared_type() {
    use tokio_postgres::types::{ToSql, Type};
    let served = Served::new().await;
    let client = served.client().await;
    let list: Vec<i16> = vec![1, 2];
    let texts: Vec<Option<&str>> = vec![Some("a"), None];
    type Given<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];
    let cases: &[(&str, Given<'_>, Option<&str>)] = &[
        ("round($1::numeric / 4, 1)", &[(&10_i16, Type::INT2)], Some("2.5")),
        ("round($1::numeric / $2, 2)", &[(&100_i32, Type::INT4), (&7_i32, Type::INT4)], Some("14.29")),
        ("$1 / $2", &[(&7_i32, Type::INT4), (&2_i32, Type::INT4)], Some("3")),
        ("$1::int", &[(&2.5_f64, Type::FLOAT8)], Some("2")),
        ("round($1)", &[(&2.5_f64, Type::FLOAT8)], Some("2")),
        ("$1::text", &[(&1e20_f64, Type::FLOAT8)], Some("1e+20")),
        ("($1 || '')", &[(&1.0_f64, Type::FLOAT8)], Some("1")),
        ("$1::text", &[(&list, Type::INT2_ARRAY)], Some("{1,2}")),
        ("sum(x) FROM unnest($1::int[]) AS t(x)", &[(&list, Type::INT2_ARRAY)], Some("3")),
        ("count(*) FROM unnest($1::text[]) AS t(x)", &[(&texts, Type::TEXT_ARRAY)], Some("2")),
        ("('z' = ANY ($1))", &[(&texts, Type::TEXT_ARRAY)], None),
        ("avg(n) / $1 FROM (VALUES (1), (2)) AS t(n) HAVING sum(n) / $1 = 1", &[(&3_i32, Type::INT4)], Some("0.5")),
        ("substring('abc' FROM $1)", &[(&2_i16, Type::INT2)], Some("bc")),
        (
            "x FROM (VALUES (1), (2), (3)) AS t(x) ORDER BY x LIMIT $1 OFFSET $2",
            &[(&1_i64, Type::INT8), (&1_i64, Type::INT8)],
            Some("2"),
        ),
    ];
    each_async(cases, async |(select, given, right)| {
        let sql = match select.split_once(" FROM (VALUES").or_else(|| select.split_once(" FROM unnest")) {
            Some((expr, _)) => format!("SELECT ({expr})::text{}", &select[expr.len()..]),
            None => format!("SELECT ({select})::text"),
        };
        let rows = client.query_typed(&sql, given).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let came: Option<String> = rows[0].get(0);
        assert_eq!(came.as_deref(), *right, "{sql}");
    })
    .await;
    let by_zero = client.query_typed("SELECT 1.5::float8 / $1", &[(&0_i32, Type::INT4)]).await.expect_err("by zero");
    assert_eq!(by_zero.code().map(|code| code.code()), Some("22012"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bit_strings_are_refused() {
    let served = Served::new().await;
    let client = served.client().await;
    refused(
        &client,
        &[
            ("B'99'", "0A000", "bit strings"),
            ("b'101' AS x", "0A000", "bit strings"),
            ("x FROM (VALUES (B'1')) AS t(x)", "0A000", "bit strings"),
            ("1 WHERE B'1' = '1'", "0A000", "bit strings"),
        ],
    )
    .await;
}
