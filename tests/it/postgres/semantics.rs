//! PostgreSQL's meaning of SQL: each expected text was printed by PostgreSQL 15 for the same statement.

use super::*;

pub(super) async fn printed(client: &Client, cases: &[(&str, &str)]) {
    each_async(cases, async |(sql, expected)| {
        let row = texts(client, &format!("SELECT {sql}")).await.concat();
        let shown: Vec<String> = row.into_iter().map(|value| value.unwrap_or_else(|| "NULL".to_owned())).collect();
        assert_eq!(shown.join("|"), *expected, "{sql}");
    })
    .await;
}

pub(super) async fn refused(client: &Client, cases: &[(&str, &str, &str)]) {
    each_async(cases, async |(sql, sqlstate, part)| {
        let (code, line) = code(client, &format!("SELECT {sql}")).await;
        assert_eq!(code, *sqlstate, "{sql}: {line}");
        assert!(line.contains(part), "{sql}: {line}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_are_read_from_their_text() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("'{en,de}'::text[]", "{en,de}"),
            (r#"'{"a,b",NULL,"NULL","c\"d", x y }'::text[]"#, r#"{"a,b",NULL,"NULL","c\"d","x y"}"#),
            ("'{1,2}'::int[], '{}'::text[], CAST('{NULL}' AS bigint[])", "{1,2}|{}|{NULL}"),
            ("x::text[] FROM (VALUES ('{a,b}')) AS t(x)", "{a,b}"),
            ("(x::int[])[2] FROM (VALUES ('{7,8}')) AS t(x)", "8"),
            ("'en' = ANY('{en,de}'), 'fr' = ANY('{en,de}'), 1 = ANY('{1,2}'), 1 = ANY('{}'::int[])", "t|f|t|f"),
            ("NOT (1 = ANY('{2,NULL}')), 1 <> ALL('{2,3}'::int[])", "NULL|t"),
            ("ARRAY[1,2]::text, ARRAY['a b', NULL, 'x']::text, ARRAY[1,2]::text[]", "{1,2}|{\"a b\",NULL,x}|{1,2}"),
            (
                "(ARRAY[1,2,3])[-1] AS a, (ARRAY[1,2,3])[0] AS b, (ARRAY[1,2,3])[3], (ARRAY[1,2,3])[4]",
                "NULL|NULL|3|NULL",
            ),
            ("(ARRAY[1,2,3])[n] FROM (VALUES (-1)) AS t(n)", "NULL"),
            ("(ARRAY[1,2,3])[-1:2], (ARRAY[1,2,3])[2:1], (ARRAY[1,2,3])[2:], (ARRAY[1,2,3])[:-1]", "{1,2}|{}|{2,3}|{}"),
        ],
    )
    .await;
    refused(
        &client,
        &[
            ("'{{a},{b}}'::text[]", "0A000", "arrays of arrays"),
            ("'{a,,b}'::text[]", "22P02", "malformed array literal"),
            ("'en'::text[]", "22P02", "malformed array literal"),
            ("'{x}'::int[]", "22P02", "x"),
        ],
    )
    .await;
}

/// Each of these is what PostgreSQL 15 prints.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_other_types_keep_their_digits() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            (
                "ARRAY[1.6,2.5,-2.5]::int[], CAST(ARRAY[1.6,2.6] AS integer[]), ARRAY[2.6]::smallint[]",
                "{2,3,-3}|{2,3}|{3}",
            ),
            (
                "3 = ANY (ARRAY[2.6]::int[]), 2 = ANY (ARRAY[2.6, NULL]::int[]), 3 <> ALL (ARRAY[2.6]::int[])",
                "t|NULL|f",
            ),
            ("x::numeric > 0, x::numeric = 0.000000000001 FROM (VALUES (1e-12::float8)) AS t(x)", "t|t"),
            (
                "round((2.0/3)::numeric, 15), 0.1::real::numeric = 0.1, 1 / (0.00000000001::float8::numeric) > 1",
                "0.666666666666667|t|t",
            ),
            ("round(x, 2) > 0, round(x, 2) = 2.57, trunc(x, 1) < 2.55 FROM (VALUES (2.567::numeric)) AS t(x)", "t|t|t"),
            (
                "round(2.5::real), round(0.5::real), 1::real/3, 16777217::int + 0::real",
                "2|0|0.3333333333333333|16777217",
            ),
            ("sqrt(2::real), 1.5::real = 1.5, 0.1::real = 0.1, 2::real * 3::real", "1.4142135623730951|t|f|6"),
        ],
    )
    .await;
    refused(
        &client,
        &[
            ("x::numeric FROM (VALUES ('0.00000000001')) AS t(x)", "22003", "does not fit numeric"),
            (
                "x::numeric FROM (VALUES ('0.1234567890123456789012345678901234567890')) AS t(x)",
                "22003",
                "does not fit numeric",
            ),
            ("x::numeric FROM (VALUES ('infinity'::float8)) AS t(x)", "22003", "does not fit numeric"),
            ("x::numeric FROM (VALUES ('1,5')) AS t(x)", "22P02", "invalid input syntax for type numeric"),
            ("unnest(ARRAY[ARRAY[1,2],ARRAY[3,4]])", "0A000", "arrays of arrays"),
            ("array_agg(a) FROM (VALUES (ARRAY[1]), (ARRAY[2,3])) AS t(a)", "0A000", "arrays of arrays"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_may_be_many_and_literals_short() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("'abc' LIKE ANY (ARRAY['%b%', 'x']), 'abc' NOT LIKE ALL (ARRAY['%b%', 'x'])", "t|f"),
            ("'ABC' ILIKE ANY ('{x,a%}'), 'abc' LIKE ANY (ARRAY['x', NULL]), 'abc' NOT ILIKE ANY ('{A%,x}')", "t|NULL|t"),
            ("interval '1 month - 1 day', interval '- 1 day + 2 hours'", "1 mon -1 days|-1 days +02:00:00"),
            ("count(*) FROM generate_series('2026-11-20 00:00'::timestamptz, '2026-11-21 00:00'::timestamptz, '1 hour')", "25"),
            ("timestamp '2026-01-01' < date '9999-12-31', now() BETWEEN date '0001-01-01' AND date '9999-12-31'", "t|t"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_parameters_have_the_type_of_what_they_are_compared_with() {
    let served = Served::new().await;
    let client = served.client().await;
    let sql = "SELECT id FROM mentions WHERE aid = ANY($1) AND duration = '7d'";
    let statement = client.prepare(sql).await.unwrap();
    assert_eq!(statement.params(), [tokio_postgres::types::Type::TEXT_ARRAY]);
    let list = vec![BIG, OTHER];
    let (found, cost) = served.cost(client.query(&statement, &[&list])).await;
    let literal = format!("SELECT id FROM mentions WHERE aid IN ('{BIG}', '{OTHER}') AND duration = '7d'");
    let (expected, expected_cost) = served.cost(texts(&client, &literal)).await;
    assert_eq!((found.unwrap().len(), cost), (expected.len(), expected_cost));
    let cases = [
        ("SELECT 1 FROM mentions WHERE aid = '1' AND reach = ANY($1)", vec!["_int8"]),
        ("SELECT 1 FROM mentions WHERE aid = '1' AND reach <> ALL($1)", vec!["_int8"]),
        ("SELECT 1 FROM mentions WHERE aid = '1' AND reach > ANY($1)", vec!["_int8"]),
        ("SELECT 1 FROM mentions WHERE aid = '1' AND $1 = ANY(tags)", vec!["text"]),
        ("SELECT 1 FROM mentions WHERE aid = '1' AND published_at = ANY($1)", vec!["_timestamptz"]),
        ("SELECT 1 FROM mentions WHERE aid = '1' AND language = ANY($1::text[])", vec!["_text"]),
        (
            "SELECT $1::int, $2::date, $3::timestamp, $4::numeric, $5::uuid, $6::json, $7::float8, CAST($8 AS varchar)",
            vec!["int4", "date", "timestamp", "numeric", "uuid", "json", "float8", "varchar"],
        ),
        (
            "SELECT $1::timestamptz, $2::bigint, $3::bool, $4::time, $5::interval, $6::smallint, $7::real",
            vec!["timestamptz", "int8", "bool", "time", "interval", "int2", "float4"],
        ),
        ("SELECT 1 FROM mentions WHERE aid = $1 AND reach > $2::int LIMIT $3", vec!["text", "int4", "int8"]),
    ];
    each_async(cases, async |(sql, types)| {
        let statement = client.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let described: Vec<&str> = statement.params().iter().map(|known| known.name()).collect();
        assert_eq!(described, types, "{sql}");
    })
    .await;
    let (list, day) = (vec!["a", "b"], now().date_naive());
    let row = client.query_one("SELECT $1::int + 1, $2::text[], $3::date", &[&41, &list, &day]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 42);
    assert_eq!(row.get::<_, Vec<String>>(1), ["a", "b"]);
    // In the text format, as psycopg and node-pg send it.
    let parse =
        [&b"\0SELECT x FROM (VALUES ('y z'), ('n')) AS t(x) WHERE x = ANY($1)\0\0\x01"[..], &0_i32.to_be_bytes()]
            .concat();
    let bound = b"{x,\"y z\"}";
    let length = i32::try_from(bound.len()).unwrap().to_be_bytes();
    let bind = [&b"\0\0\0\0\0\x01"[..], &length, bound, b"\0\0"].concat();
    let mut stream = TcpStream::connect(served.postgres.address()).await.unwrap();
    let frame = |kind, body: &[u8]| message(kind, i32::try_from(body.len() + 4).unwrap(), body);
    let bytes = [
        startup(&[("user", "ada")]),
        frame(b'P', &parse),
        frame(b'B', &bind),
        frame(b'E', b"\0\0\0\0\0"),
        frame(b'S', b""),
    ];
    stream.write_all(&bytes.concat()).await.unwrap();
    let mut answer = Vec::new();
    let arrived = async {
        while !String::from_utf8_lossy(&answer).contains("y z") {
            assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "{}", String::from_utf8_lossy(&answer));
        }
    };
    timeout(LONGEST, arrived).await.expect("a row");
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_are_computed_wherever_they_come_from() {
    let served = Served::new().await;
    let client = served.client().await;
    let at = "timestamp '2026-11-05 13:04:05.678'";
    printed(
        &client,
        &[
            (format!("to_char({at}, 'YYYY' || '-MM')").as_str(), "2026-11"),
            (
                format!("to_char({at}, f) FROM (VALUES ('DD.MM.YYYY'), ('HH24:MI')) AS t(f) ORDER BY f").as_str(),
                "05.11.2026|13:04",
            ),
            (format!("to_char({at}, CASE WHEN true THEN 'FMMonth' ELSE 'Day' END)").as_str(), "November"),
            (format!("to_char({at}, 'Month DD, YYYY HH12:MI:SS AM')").as_str(), "November  05, 2026 01:04:05 PM"),
            (format!("to_char({at}, 'FMDDth \"of\" Mon, Q WW IW J')").as_str(), "5th of Nov, 4 45 45 2461350"),
            (format!("to_char({at}, '%d.%m.')").as_str(), "05.11."),
            (format!("to_char({at}, NULL)").as_str(), "NULL"),
            ("to_char(12.5::float8, 'FM99'), to_char(12.5, 'FM99'), to_char(13.5::float8, 'FM99')", "12|13|14"),
            ("to_char(x, 'FM99'), to_char(x / 100, 'FM0.00') FROM (VALUES (12.5::float8)) AS t(x)", "12|0.12"),
            ("to_char(0.5::float8, 'FM9990'), to_char(-2.5::float8, 'FM9'), to_char(2.5::real, 'FM9')", "0|-2|2"),
            ("to_char(2.675::float8, 'FM9.99'), to_char(2.675, 'FM9.99')", "2.67|2.68"),
        ],
    )
    .await;
    let shown = client.query_one(&format!("SELECT to_char({at}, $1)"), &[&"YYYY-MM-DD"]).await.unwrap();
    assert_eq!(shown.get::<_, &str>(0), "2026-11-05");
    // As a template, not one group.
    let days = |template: &str| {
        format!(
            "SELECT to_char(published_at, {template}), count(*) FROM mentions WHERE aid = '{BIG}' AND duration = '7d' GROUP BY 1"
        )
    };
    let literal = texts(&client, &days("'YYYY-MM-DD'")).await;
    assert!(literal.len() > 3);
    assert_eq!(texts(&client, &days("'YYYY-' || 'MM-DD'")).await.len(), literal.len());
    refused(
        &client,
        &[
            ("to_char(12.5, '9.9EEEE')", "0A000", "EEEE"),
            ("to_char(interval '1 hour', 'HH24')", "0A000", "to_char"),
            ("to_date(x, f) FROM (VALUES ('2026', 'YYYY')) AS t(x, f)", "0A000", "template"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_times_are_computed_and_printed_as_in_postgresql() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("2 ^ 3, -2 ^ 2, 2 ^ 3 ^ 2, 2 * 3 ^ 2, 2 ^ -1::int", "8|4|64|18|0.5"),
            ("|/ 9, ||/ 27.0 > 2.9, @ -3, 5 # 3, 7 % 3", "3|t|3|6|1"),
            (
                "2.6::int, 2.5::int, 3.5::int, (-2.5)::int, -2.5::int, (1.0 + 1.5)::int, (5 / 2.0)::int",
                "3|3|4|-3|-3|3|3",
            ),
            ("2.5::float8::int, 3.5::float8::int, 2.5::numeric(4, 1)::bigint, '7'::int", "2|4|3|7"),
            ("avg(n)::int FROM (VALUES (2), (3)) AS t(n)", "3"),
            ("x::int, x::bigint, (x + 1)::smallint FROM (VALUES (2.5::float8)) AS t(x)", "2|2|4"),
            ("sum(x::int) FROM (VALUES (0.5::float8), (1.5), (2.5), (-1.5)) AS t(x)", "2"),
            ("16777217::float, cast('123456789.123' AS float), 16777217::real", "16777217|123456789.123|1.6777216e+07"),
            (
                "'{1.1,16777217}'::float[], 16777217::float(24), 16777217::float(25)",
                "{1.1,16777217}|1.6777216e+07|16777217",
            ),
            ("1.23456789012345::numeric, '1.50'::numeric, 3::numeric", "1.23456789012345|1.50|3"),
            ("extract(second FROM timestamp '2026-01-01 00:00:05.25')", "5.250000"),
            ("date_part('second', timestamp '2026-01-01 00:00:05.25')", "5.25"),
            ("extract(milliseconds FROM timestamp '2026-01-01 00:00:05.25')", "5250.000"),
            ("extract(year FROM date '2026-01-01'), extract(isodow FROM date '2026-11-22')", "2026|7"),
            ("extract(year FROM date '2026-01-01') / 4 = 506.5, date_part('year', date '2026-01-01') / 4", "t|506.5"),
            (
                "timestamp '2026-01-01 10:00:00'::text, timestamptz '2026-01-01 10:00:00Z'::text",
                "2026-01-01 10:00:00|2026-01-01 10:00:00+00",
            ),
            ("date '2026-01-01'::text, true::text, 7::text, interval '1 day'::text", "2026-01-01|true|7|1 day"),
            ("1e20::float8::text, 0.1::float4::text, '\\x01'::bytea::text", "1e+20|0.1|\\x01"),
            ("'abcdef'::varchar(3), 'abc'::char, 'a' || 1 + 2", "abc|a|a3"),
            ("5 & 3 = 1, 1<-1, 1=-1, 2*-3", "t|f|f|-6"),
        ],
    )
    .await;
    refused(
        &client,
        &[
            ("date '2026-01-01'::int", "42000", "cannot cast"),
            ("now()::bigint", "42000", "cannot cast"),
            ("'ab'::char(3)", "0A000", "blanks"),
            ("1e30::float8::int", "22003", "out of range"),
            ("3000000000.5::int", "22003", "out of range"),
        ],
    )
    .await;
    // A condition on what is cut to a length chooses among the aids of the list: one request for it, one for the overview.
    let (count, cost) =
        served.cost(text(&client, "SELECT count(*) FROM overview WHERE aid::varchar(255) = '183772'")).await;
    assert_eq!((count.as_str(), cost), ("1", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_compared_member_by_member() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("(1, NULL) = (1, NULL), (1, NULL) = (2, NULL), (1, NULL) < (2, 1), (1, NULL) < (1, 1)", "NULL|f|t|NULL"),
            ("(1, NULL) IS NULL, (NULL, NULL) IS NULL, (1, NULL) IS NOT NULL, (1, 2) IS NOT NULL", "f|t|f|t"),
            (
                "(1, 2) IN ((1, 2), (3, 4)), (1, NULL) IN ((1, 2)), (1, 2) NOT IN ((3, 4)), (2, NULL) IN ((1, 2))",
                "t|NULL|t|f",
            ),
            ("(1, NULL) IS DISTINCT FROM (1, NULL), (1, 2) <> (1, NULL), (1, 2) <> (2, NULL)", "f|NULL|t"),
            ("ROW(1, 2) >= ROW(1, 2), (2, 1) BETWEEN (1, 9) AND (2, 1)", "t|t"),
        ],
    )
    .await;
    refused(&client, &[("(1, 2) = (1, 2, 3)", "42601", "unequal number of entries")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn types_that_only_clients_have_arrive_as_such() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            ("'{\"b\":1, \"a\":2}'::json", "{\"b\":1, \"a\":2}"),
            ("named_struct('a', NULL, 'b', 1)", "{\"a\":null,\"b\":1}"),
            ("localtimestamp > timestamp '2026-01-01 00:00:00'", "t"),
        ],
    )
    .await;
    let statement =
        client.prepare("SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u, '1'::json AS j").await.unwrap();
    let types: Vec<&str> = statement.columns().iter().map(|column| column.type_().name()).collect();
    assert_eq!(types, ["uuid", "json"]);
    assert_eq!(client.query(&statement, &[]).await.unwrap().len(), 1, "in binary");
    refused(
        &client,
        &[("'x'::uuid", "22P02", "uuid"), ("'{'::json", "22P02", "json"), ("'1'::jsonb", "0A000", "use json")],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn collations_of_bytes_are_accepted_and_others_refused() {
    let served = Served::new().await;
    let client = served.client().await;
    let one = format!("SELECT aid FROM overview WHERE \"aid\" = '{BIG}' COLLATE \"C\"");
    assert_eq!(served.cost(text(&client, &one)).await, (BIG.to_owned(), 1));
    printed(
        &client,
        &[
            (
                "'a' COLLATE \"POSIX\" < 'b' AS a, 'a' COLLATE pg_catalog.\"default\" < 'b', 'a' < 'B' COLLATE ucs_basic",
                "t|t|f",
            ),
            ("x FROM (VALUES ('b'), ('B')) AS t(x) ORDER BY x COLLATE \"C\" LIMIT 1", "B"),
        ],
    )
    .await;
    refused(
        &client,
        &[("'a' COLLATE \"de_DE\" < 'b'", "0A000", "de_DE"), ("'a' COLLATE \"en-x-icu\"", "0A000", "en-x-icu")],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_the_session_are_known_beside_the_tables_of_the_service() {
    let served = Served::new().await;
    let client = served.client().await;
    let searches = text(&client, "SELECT count(*) FROM saved_searches").await;
    let both = "SELECT current_user, current_database(), current_schema, count(*) FROM saved_searches";
    assert_eq!(text(&client, both).await, format!("ada|savedsearch|v4|{searches}"));
    let named = "SELECT current_user AS \"a\"\"b\", count(*) AS pg_count FROM saved_searches";
    assert_eq!(text(&client, named).await, format!("ada|{searches}"));
    let statement = client.prepare(both).await.unwrap();
    assert_eq!(statement.columns()[0].name(), "current_user");
    assert_eq!(client.prepare(named).await.unwrap().columns()[0].name(), "a\"b");
    for alone in ["SELECT * FROM current_schema()", "SELECT c.* FROM current_schema() AS c"] {
        assert_eq!(text(&client, alone).await, "v4", "{alone}");
    }
    assert_eq!(code(&client, "SELECT 1 FROM pg_class, saved_searches").await.0, "0A000");
    let (sqlstate, line) = code(&client, "CREATE TABLE t (\n\ta BIGINT, \n\tb TEXT\n)").await;
    assert_eq!(sqlstate, "0A000", "{line}");
    assert!(line.contains("read-only"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_reads_what_is_fetched() {
    let served = Served::new().await;
    let client = served.client().await;
    let all = format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '365d'");
    for select in [all.clone(), format!("{all} AND length(title) > 0"), format!("{all} ORDER BY published_at DESC")] {
        let (whole, cost) = served.cost(texts(&client, &select)).await;
        assert!(cost > 3, "{cost} requests");
        client.batch_execute(&format!("BEGIN; DECLARE c CURSOR FOR {select}")).await.unwrap();
        let (some, first) = served.cost(texts(&client, "FETCH 10 FROM c")).await;
        assert_eq!((some.len(), first), (10, 1), "{select}");
        let (rest, _) = served.cost(texts(&client, "FETCH ALL FROM c")).await;
        let mut fetched = [some, rest].concat();
        let mut whole = whole;
        fetched.sort();
        whole.sort();
        assert!(fetched == whole, "{select}");
        client.batch_execute("COMMIT").await.unwrap();
    }
    // All searches: the list, and the first page of the first one.
    client.batch_execute("BEGIN; DECLARE c CURSOR FOR SELECT id FROM mentions WHERE duration = '365d'").await.unwrap();
    let (some, first) = served.cost(texts(&client, "FETCH 5 FROM c")).await;
    assert_eq!((some.len(), first), (5, 2));
    client.batch_execute("ROLLBACK").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_with_hold_outlives_its_transaction() {
    let served = Served::new().await;
    let client = served.client().await;
    let numbers = "SELECT n FROM (VALUES (1), (2), (3), (4)) AS t(n) ORDER BY n";
    client
        .batch_execute(&format!("BEGIN; DECLARE c CURSOR WITH HOLD FOR {numbers}; FETCH 1 FROM c; COMMIT"))
        .await
        .unwrap();
    assert_eq!(text(&client, "FETCH 1 FROM c").await, "2");
    // Neither an error nor another transaction ends it.
    client.batch_execute("SELECT nope").await.expect_err("an unknown column");
    client.batch_execute("BEGIN; SELECT 1; ROLLBACK").await.unwrap();
    assert_eq!(client.query("FETCH 1 FROM c", &[]).await.unwrap()[0].get::<_, i64>(0), 3);
    client.batch_execute("CLOSE c").await.unwrap();
    client.batch_execute(&format!("DECLARE d CURSOR WITH HOLD FOR {numbers}")).await.unwrap();
    assert_eq!(text(&client, "FETCH 1 FROM d").await, "1");
    client.batch_execute(&format!("BEGIN; DECLARE e CURSOR WITH HOLD FOR {numbers}; ROLLBACK")).await.unwrap();
    assert_eq!(code(&client, "FETCH 1 FROM e").await.0, "34000");
    assert_eq!(code(&client, "DECLARE f CURSOR FOR SELECT 1").await.0, "25P01");
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_have_postgresqls_syntax() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("('a' || chr(10) || 'b') ~ 'a.b', 'a' ~ 'a.b'", "t|f"),
            ("NOT (x ~ '.*') FROM (VALUES (NULL::text)) AS t(x)", "NULL"),
            ("'é' ~ '^[[:alpha:]]$', 'É' ~ '[[:upper:]]', '5' ~ '[[:alpha:]]'", "t|t|f"),
            (r"'the word' ~ '\mword\M', 'swords' ~ '\yword\y', 'a]' ~ '[]]'", "t|f|t"),
            (r"regexp_replace('USD 10', 'USD ', '$1'), regexp_replace('foobar', 'o+', '[\&]')", "$110|f[oo]bar"),
            (r"regexp_replace('ab', '(a)(b)', '\2\1')", "ba"),
            (r"regexp_replace('hello', 'l*', '', 'g'), regexp_replace('a b', '\y', '|', 'g')", "heo||a| |b|"),
            (
                "timestamptz '2027-01-01Z', '2027-01-01 +02'::timestamptz, timestamp '2027-01-01Z', date '2027-01-01Z'",
                "2027-01-01 00:00:00+00|2026-12-31 22:00:00+00|2027-01-01 00:00:00|2027-01-01",
            ),
            (
                "v::timestamptz, v::timestamp, v::date FROM (VALUES ('2027-01-01Z')) AS q(v)",
                "2027-01-01 00:00:00+00|2027-01-01 00:00:00|2027-01-01",
            ),
            (
                "v::timestamptz, v::timestamp, v::date FROM (VALUES ('2027-01-01 -05:30')) AS q(v)",
                "2027-01-01 05:30:00+00|2027-01-01 00:00:00|2027-01-01",
            ),
            (
                "v::timestamptz, '2027-01-01 +2'::timestamptz FROM (VALUES ('2027-01-01 Europe/Berlin')) AS q(v)",
                "2026-12-31 23:00:00+00|2026-12-31 22:00:00+00",
            ),
            ("count(*) FROM (SELECT generate_series(date '2026-01-01', date '2026-01-03', '1 day') AS g) AS q", "3"),
            ("ARRAY[1] || NULL, NULL || ARRAY[1], ARRAY[1] || NULL::int", "{1}|{1}|{1,NULL}"),
            ("x || NULL, ('a' || y) || NULL FROM (VALUES (ARRAY[1], 'b')) AS t(x, y)", "{1}|NULL"),
            ("row_to_json(row(1, 'a')), to_json((1, row(2, 3)))", r#"{"f1":1,"f2":"a"}|{"f1":1,"f2":{"f1":2,"f2":3}}"#),
            ("json_agg((x, 1)) FROM (VALUES (2)) AS t(x)", r#"[{"f1":2,"f2":1}]"#),
            ("array_remove(ARRAY[1,2,1], 1), array_replace(ARRAY[1,2,1], 1, 9)", "{2}|{9,2,9}"),
            ("'{\"a\": {\"b\": 7}}'::text -> 'a' ->> 'b', '{\"a\": {\"b\": 7}}'::text #>> '{a,b}'", "7|7"),
        ],
    )
    .await;
}

/// The names are those of PostgreSQL 15.
#[tokio::test(flavor = "multi_thread")]
async fn results_have_the_names_that_postgresql_gives_them() {
    let served = Served::new().await;
    let client = served.client().await;
    let none = "?column?";
    let cases = [
        ("1, 'a', NULL, true, -1, 1 + 1, 'a' || name, name = 'a', name IS NULL, name LIKE 'a%' FROM s", vec![none; 10]),
        ("name, s.name, NAME::text, (name)::varchar(3), name COLLATE \"C\" FROM s", vec!["name"; 5]),
        ("1::int, '1'::numeric(4, 1), 1::text::int, date '2020-01-01' FROM s", vec!["int4", "numeric", "int4", "date"]),
        (
            "interval '1 day', now()::date, current_date, current_user FROM s",
            vec!["interval", "now", "current_date", "current_user"],
        ),
        ("count(*), count(name), max(name)::text, sum(1) / 2 FROM s", vec!["count", "count", "max", none]),
        (
            "coalesce(name, 'x'), nullif(name, 'x'), greatest(1, 2), LOWER(name), extract(year FROM now()) FROM s",
            vec!["coalesce", "nullif", "greatest", "lower", "extract"],
        ),
        (
            "trim(name), trim(LEADING FROM name), substring(name FROM 1 FOR 2), position('a' IN name) FROM s",
            vec!["btrim", "ltrim", "substring", "position"],
        ),
        (
            "now() AT TIME ZONE 'UTC', ARRAY[1], (ARRAY[1])[1], languages[1], ARRAY(SELECT 1) FROM s",
            vec!["timezone", "array", "array", "languages", "array"],
        ),
        (
            "CASE WHEN true THEN 1 END, CASE WHEN true THEN 'a' ELSE name END, CASE WHEN true THEN 1 ELSE 2::int END FROM s",
            vec!["case", "name", "case"],
        ),
        (
            "(SELECT 5), (SELECT max(name) FROM s), (SELECT 1 AS one), EXISTS (SELECT 1), NOT EXISTS (SELECT 1)",
            vec![none, "max", "one", "exists", none],
        ),
        (
            "row_number() OVER (), sum(1) OVER (), unnest(ARRAY[1, 2]), generate_series(1, 2) FROM s",
            vec!["row_number", "sum", "unnest", "generate_series"],
        ),
        ("upper(name), s.name FROM s UNION SELECT 'a', 'b' ORDER BY upper", vec!["upper", "name"]),
        ("name::text, count(*) FROM s GROUP BY name::text ORDER BY name::text || 'a'", vec!["name", "count"]),
        ("lower(name), name::text FROM s GROUP BY name HAVING name > 'a' ORDER BY lower(name)", vec!["lower", "name"]),
        ("* FROM (SELECT lower(name), lower(query), 1 FROM s) t", vec!["lower", "lower", none]),
    ];
    each_async(cases, async |(sql, names)| {
        let statement = client.prepare(&format!("SELECT {}", sql.replace("FROM s", "FROM saved_searches s"))).await;
        let statement = statement.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(statement.columns().iter().map(|column| column.name()).collect::<Vec<_>>(), names, "{sql}");
    })
    .await;
    let two = "(VALUES ('b', 1), ('a', 2), ('a', 3)) AS v(k, n)";
    printed(
        &client,
        &[
            (format!("k, count(*) FROM {two} GROUP BY k ORDER BY count DESC").as_str(), "a|2|b|1"),
            (format!("k, sum(n) FROM {two} GROUP BY k HAVING sum(n) > 0 ORDER BY sum").as_str(), "b|1|a|5"),
            (format!("upper, count(*) FROM (SELECT upper(k) FROM {two}) t GROUP BY upper ORDER BY upper").as_str(), "A|2|B|1"),
            (format!("upper(k), count(*) FROM {two} GROUP BY upper ORDER BY 1").as_str(), "A|2|B|1"),
            (format!("DISTINCT upper(k) FROM {two} ORDER BY upper(k) DESC").as_str(), "B|A"),
            (format!("max(count) FROM (SELECT k, count(*) FROM {two} GROUP BY k) t").as_str(), "2"),
            // A name in an expression, in HAVING and before GROUP BY is a column of the input.
            (format!("upper(k) FROM (SELECT k, k AS upper FROM {two}) t GROUP BY upper, k HAVING upper = 'b'").as_str(), "B"),
            ("n::text FROM (VALUES (10), (9)) v(n) ORDER BY n", "10|9"),
            ("n::text FROM (VALUES (10), (9)) v(n) ORDER BY n + 0", "9|10"),
            ("n FROM (VALUES (10), (9)) v(n) WHERE n::text IN (SELECT n::text FROM (VALUES (10), (9)) v(n) ORDER BY n LIMIT 1)", "10"),
        ],
    )
    .await;
    let (code, line) =
        code(&client, "SELECT lower FROM (SELECT lower(name), lower(query) FROM saved_searches) t").await;
    assert!(line.contains("have the same name"), "{code} {line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_bind_as_in_postgresql() {
    let served = Served::new().await;
    let client = served.client().await;
    printed(
        &client,
        &[
            ("@ -5 + 1, @ x - 5 FROM (VALUES (3)) AS t(x)", "4|2"),
            ("count(*) FROM (VALUES (3), (9), (-4)) AS t(x) WHERE @ x - 5 > 3", "2"),
            ("|/ 16 + 9, ||/ x + 2 FROM (VALUES (25)) AS t(x)", "5|3"),
            ("~ 1 + 1, ~ 1 << 2, - 2 ^ 2, @ -2 * 3", "-3|-8|4|6"),
            ("'ab' ~ 'a' || 'x'", "truex"),
            ("1 | 4 & 2, 1 | 8 >> 1, 1 << 2 & 4, 1 + 2 | 4", "0|4|4|7"),
            ("'ab' LIKE 'a%' = true, 'a' || 'b' = 'ab', 'b' = 'a' || 'b'", "t|t|f"),
            ("1_000, 'a'\n'b'", "1000|ab"),
            ("(ARRAY[7, 8])[1 | 2 & 2]", "8"),
        ],
    )
    .await;
    refused(
        &client,
        &[("123abc", "42000", "neither a number nor a name"), ("'a' 'b'", "42000", "two literals in a row")],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_alone_in_order_by_is_the_result() {
    let served = Served::new().await;
    let client = served.client().await;
    let rows = "FROM (VALUES (1.4, 2), (1.2, 1)) AS t(x, y)";
    printed(
        &client,
        &[
            (&format!("DISTINCT ON (x::int) x::int, y {rows} ORDER BY x::int, x DESC, y"), "1|1"),
            (&format!("DISTINCT ON (x::int) x::int, y {rows} ORDER BY x::int, t.x DESC, y"), "1|2"),
            (&format!("x::int, y {rows} ORDER BY x, y DESC, x + 1 LIMIT 1"), "1|2"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_rows_beside_outer_joins_are_refused() {
    let served = Served::new().await;
    let client = served.client().await;
    let joined = "FROM (VALUES (1), (2)) AS s(i) LEFT JOIN (VALUES (1)) AS m(i) ON m.i = s.i";
    refused(
        &client,
        &[
            (&format!("count(m.*) {joined}"), "0A000", "count a column"),
            (&format!("count(*) {joined} WHERE m.* IS NULL"), "0A000", "name a column"),
            (&format!("s.i {joined} GROUP BY 1 ORDER BY count(m.*)"), "0A000", "count a column"),
        ],
    )
    .await;
    let inner = "(SELECT t.i, count(t.*) AS n FROM (VALUES (1)) AS t(i) GROUP BY 1)";
    printed(
        &client,
        &[
            ("count(m.*) FROM (VALUES (1), (2)) AS m(i)", "2"),
            (&format!("s.i, n FROM (VALUES (2)) AS s(i) LEFT JOIN {inner} AS c USING (i)"), "2|NULL"),
        ],
    )
    .await;
}
