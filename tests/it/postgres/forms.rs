//! Forms of SQL that PostgreSQL's users write, with the texts that PostgreSQL 15 prints for the same statement.

use super::semantics::{printed, refused};
use super::*;

/// Statements with the rows that PostgreSQL prints, below the names of their tests. `tests/oracle/siblings.py` compares them.
const FORMS: &str = include_str!("../../oracle/forms.txt");

/// Runs the statements below the name of a test.
async fn printed_forms(client: &Client, test: &str) {
    let (_, section) = FORMS.split_once(&format!("\n## {test}:")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let form = |block: &'static str| {
        let (statement, rows) = block.trim_matches('\n').split_once("\n----\n")?;
        Some((statement.strip_prefix("SELECT ").unwrap(), rows.replace('\n', "|")))
    };
    let forms: Vec<(&str, String)> = section.split("\n\n").filter_map(form).collect();
    let cases: Vec<(&str, &str)> = forms.iter().map(|(statement, cells)| (*statement, cells.as_str())).collect();
    assert!(!cases.is_empty(), "{test}");
    printed(client, &cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn intervals_are_read_in_all_forms() {
    let served = Served::new().await;
    let client = served.client().await;
    printed_forms(&client, "intervals_are_read_in_all_forms").await;
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
        printed_forms(&client, "texts_of_times_are_read_without_their_zone").await;
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
    printed_forms(&client, "dates_are_instants_of_the_zone_of_the_session").await;
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
    printed_forms(&client, "numbers_have_the_signs_and_errors_of_postgresql").await;
    printed(
        &client,
        &[
            ("current_user, 2.6::int", "ada|3"),
            ("count(*) FROM pg_class WHERE relname = ANY('{mentions,volume}'::text[])", "2"),
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
    printed_forms(&client, "arrays_have_bounds_and_rows").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subqueries_stand_anywhere() {
    let served = Served::new().await;
    let client = served.client().await;
    printed_forms(&client, "subqueries_stand_anywhere").await;
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
    printed_forms(&client, "functions_that_clients_type").await;
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
