//! Behaviour that clients of PostgreSQL take for granted: literals as they were written, types as they were described, errors
//! when they happen, sessions that forget.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn literals_stay_what_they_are_in_statements_that_are_translated() {
    let served = Served::new().await;
    let client = served.client().await;
    let literals = r"'\'' OR true --' AS a, 'b''''c' AS b";
    let translated = format!("SELECT {literals}, to_date('01.05.2026', 'DD.MM.YYYY')");
    assert_eq!(text(&client, &translated).await, r"\' OR true --|b''c|2026-05-01");
    assert_eq!(
        text(&client, &format!("SELECT {literals}, current_database()")).await,
        r"\' OR true --|b''c|savedsearch"
    );
    let copied = client.copy_out(&format!("COPY (SELECT {literals}) TO STDOUT (FORMAT csv)")).await.unwrap();
    let copied: Vec<bytes::Bytes> = copied.try_collect().await.unwrap();
    assert_eq!(copied.concat(), b"\\' OR true --,b''c\n");
    let named = "SELECT count(*) FROM pg_class WHERE relname = $1";
    for name in [r"\' OR true --", "mentions'' OR true --", "mentions\\"] {
        assert_eq!(client.query_one(named, &[&name]).await.unwrap().get::<_, i64>(0), 0, "{name}");
    }
    assert_eq!(client.query_one(named, &[&"mentions"]).await.unwrap().get::<_, i64>(0), 1);
    let named = client.prepare("SELECT 1 AS \"a\"\"b\", to_date('01.05.2026', 'DD.MM.YYYY')").await.unwrap();
    assert_eq!(named.columns()[0].name(), "a\"b");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_in_strings_lead_no_statement_to_the_catalogs() {
    let served = Served::new().await;
    let client = served.client().await;
    each_async(["pg_dump", "information_schema", "to_regclass", "regclass", "$9"], async |word| {
        let sql = format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND title = '{word}'");
        assert_eq!(text(&client, &sql).await, "0", "{word}");
    })
    .await;
    assert_eq!(text(&client, "SELECT count(*) FROM pg_class WHERE relname = '$2'").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_have_the_types_that_were_described() {
    let served = Served::new().await;
    let client = served.client().await;
    for sql in [
        "SELECT CASE WHEN x = 0 THEN 0 ELSE x * 0.5 END FROM (VALUES (1)) AS t(x)",
        "SELECT y FROM (SELECT 1 AS y WHERE 1 = 2 UNION ALL SELECT 0.5) AS t",
        "SELECT coalesce(NULL, 0.5, 1)",
    ] {
        assert_eq!(client.query_one(sql, &[]).await.unwrap().get::<_, f64>(0).to_string(), "0.5", "{sql}");
    }
    // A statement whose table changes meanwhile.
    client.batch_execute("CREATE TEMPORARY TABLE t AS SELECT 1 AS a").await.unwrap();
    let statement = client.prepare("SELECT a FROM t").await.unwrap();
    assert_eq!(client.query_one(&statement, &[]).await.unwrap().get::<_, i64>(0), 1);
    client.batch_execute("DROP TABLE t; CREATE TEMPORARY TABLE t AS SELECT 'x' AS a").await.unwrap();
    let error = client.query_one(&statement, &[]).await.expect_err("another type");
    assert_eq!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED));
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_are_read_with_both_protocols() {
    let served = Served::new().await;
    let client = served.client().await;
    let some = "SELECT n FROM (VALUES (1), (2), (3), (4), (5)) AS t(n) ORDER BY n";
    client.batch_execute(&format!("BEGIN; DECLARE c CURSOR FOR {some}")).await.unwrap();
    let numbers =
        async |sql: &str| -> Vec<i64> { client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect() };
    assert_eq!(numbers("FETCH 2 FROM c").await, [1, 2]);
    assert_eq!(texts(&client, "FETCH 1 FROM c").await, [[Some("3".to_owned())]]);
    client.batch_execute("MOVE 1 FROM c").await.unwrap();
    assert_eq!(numbers("FETCH ALL FROM c").await, [5]);
    assert_eq!(numbers("FETCH ALL FROM c").await, [0_i64; 0]);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(code(&client, "ROLLBACK TO a").await.0, "25P01");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_sent_before_sync() {
    let served = Served::new().await;
    let mut stream = TcpStream::connect(served.postgres.address()).await.unwrap();
    let sql = b"\0SELECT nope FROM mentions\0\0\0";
    let parse = message(b'P', i32::try_from(sql.len() + 4).unwrap(), sql);
    let bytes = [startup(&[("user", "ada")]), parse, message(b'H', 4, b"")].concat();
    stream.write_all(&bytes).await.unwrap();
    let mut answer = Vec::new();
    let told = async {
        while !String::from_utf8_lossy(&answer).contains("C42703") {
            assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "the connection is closed");
        }
    };
    timeout(LONGEST, told).await.expect("the error");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_zone_of_the_startup_message_is_that_of_the_session() {
    let served = Served::new().await;
    let midnight = "SELECT timestamptz '2026-05-01 00:00:00'";
    for (zone, shown, instant) in [
        ("Europe/Berlin", "Europe/Berlin", "2026-05-01 00:00:00+02"),
        ("Nowhere/Land", "UTC", "2026-05-01 00:00:00+00"),
    ] {
        let mut config = served.config();
        config.options(format!("-c timezone={zone}"));
        let client = served.try_client(&config).await.unwrap();
        for _ in 0..2 {
            assert_eq!(text(&client, "SHOW timezone").await, shown);
            assert_eq!(text(&client, midnight).await, instant);
            client.batch_execute("SET timezone = 'America/New_York'").await.unwrap();
            assert_eq!(text(&client, midnight).await, "2026-05-01 00:00:00-04");
            client.batch_execute("RESET timezone").await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn days_are_those_of_the_zone_of_the_session() {
    let served = Served::new().await;
    let (client, utc) = (served.client().await, served.client().await);
    client.batch_execute("SET timezone = 'europe/berlin'").await.unwrap();
    assert_eq!(text(&client, "SHOW timezone").await, "Europe/Berlin");
    let days = "SELECT day, count(*) FROM (SELECT published_at::date AS day FROM mentions WHERE aid = '183772' \
                AND published_at >= '2026-04-03' AND published_at < '2026-04-09') m GROUP BY day ORDER BY day";
    let same = "SELECT day, count(*) FROM (SELECT (published_at AT TIME ZONE 'Europe/Berlin')::date AS day \
                FROM mentions WHERE aid = '183772' AND published_at >= '2026-04-02T22:00:00Z' \
                AND published_at < '2026-04-08T22:00:00Z') m GROUP BY day ORDER BY day";
    let (ours, theirs) = (texts(&client, days).await, texts(&utc, same).await);
    assert!(ours.len() > 1, "{ours:?}");
    assert_eq!(ours, theirs);
    for form in [
        "SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE",
        "SET TIMEZONE = UTC",
        "SET TIME ZONE LOCAL",
        "RESET timezone",
    ] {
        client.batch_execute("SET TIME ZONE 'Asia/Tokyo'").await.unwrap();
        client.batch_execute(form).await.unwrap();
        assert_eq!(text(&client, "SHOW timezone").await, "UTC", "{form}");
        assert_eq!(text(&client, "SELECT timestamptz '2026-05-01 00:00:00'").await, "2026-05-01 00:00:00+00", "{form}");
    }
    client.batch_execute("BEGIN; SET LOCAL timezone = 'Asia/Tokyo'").await.unwrap();
    assert_eq!(text(&client, "SELECT timestamptz '2026-05-01 00:00:00'").await, "2026-05-01 00:00:00+09");
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(text(&client, "SELECT timestamptz '2026-05-01 00:00:00'").await, "2026-05-01 00:00:00+00");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_discarded_keeps_nothing() {
    let served = Served::new().await;
    let client = served.client().await;
    let made = "CREATE TEMPORARY TABLE own AS SELECT 'private' AS a; CREATE VIEW few AS SELECT aid FROM saved_searches; \
                SET savedsearch.partial = on; SET datafusion.sql_parser.default_null_ordering = 'nulls_min'";
    client.batch_execute(made).await.unwrap();
    let ordering = "SHOW datafusion.sql_parser.default_null_ordering";
    assert_eq!(text(&client, ordering).await, "nulls_min");
    client.batch_execute("DISCARD ALL").await.unwrap();
    for name in ["own", "few"] {
        assert_eq!(code(&client, &format!("SELECT * FROM {name}")).await.0, "42P01");
    }
    assert_eq!(text(&client, "SHOW savedsearch.partial").await, "off");
    assert_eq!(text(&client, ordering).await, text(&served.client().await, ordering).await);
    assert!(text(&client, "SELECT count(*) FROM saved_searches").await.parse::<u64>().unwrap() > 0);
}

/// The settings of the server are those that a session goes back to.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_back_to_the_settings_of_its_server() {
    let served = Served::with(Settings::default(), |spec| spec.host.settings.max_requests = 7).await;
    let client = served.client().await;
    for back in ["RESET savedsearch.max_requests", "DISCARD ALL"] {
        client.batch_execute("SET savedsearch.max_requests = 99").await.unwrap();
        assert_eq!(text(&client, "SHOW savedsearch.max_requests").await, "99");
        client.batch_execute(back).await.unwrap();
        assert_eq!(text(&client, "SHOW savedsearch.max_requests").await, "7", "{back}");
    }
}

/// Settings of the startup message are those that a session begins with and goes back to.
#[tokio::test(flavor = "multi_thread")]
async fn a_startup_message_has_settings_of_the_session() {
    let served = Served::new().await;
    let mut config = served.config();
    config.options("-c savedsearch.max_requests=7 -c statement_timeout=9s");
    let client = served.try_client(&config).await.unwrap();
    for back in ["RESET savedsearch.max_requests", "RESET ALL", "DISCARD ALL"] {
        assert_eq!(text(&client, "SHOW savedsearch.max_requests").await, "7", "before {back}");
        let changed = "SET savedsearch.max_requests = 99; SET savedsearch.partial = on; SET statement_timeout = 0";
        client.batch_execute(changed).await.unwrap();
        client.batch_execute(back).await.unwrap();
    }
    let settings = ["savedsearch.max_requests", "savedsearch.partial", "statement_timeout"];
    for (setting, expected) in settings.into_iter().zip(["7", "off", "9s"]) {
        assert_eq!(text(&client, &format!("SHOW {setting}")).await, expected, "{setting}");
    }
    let mut config = served.config();
    config.options("-c savedsearch.max_requests=many");
    let refused = served.try_client(&config).await.expect_err("an invalid value");
    assert!(refused.as_db_error().is_some_and(|error| error.message().contains("max_requests")), "{refused:?}");
}

/// Statements that pools send before they reuse a connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_gets_a_clean_session() {
    let served = Served::new().await;
    let client = served.client().await;
    client.batch_execute("SET savedsearch.max_requests = 99; SET statement_timeout = 900000").await.unwrap();
    let cleaning = "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL; SET SESSION AUTHORIZATION DEFAULT; \
                    RESET SESSION AUTHORIZATION; RESET ROLE; SET ROLE NONE";
    client.batch_execute(cleaning).await.unwrap();
    assert_ne!(text(&client, "SHOW savedsearch.max_requests").await, "99");
    assert_eq!(text(&client, "SHOW statement_timeout").await, "0");
    assert_eq!(code(&client, "SET ROLE other").await.0, "0A000");
}

/// As in PostgreSQL: SET LOCAL ends with its transaction, and a rollback undoes SET.
#[tokio::test(flavor = "multi_thread")]
async fn settings_end_with_their_transaction() {
    let served = Served::new().await;
    let client = served.client().await;
    let zone = "SELECT timestamptz '2026-05-01 00:00:00'";
    client.batch_execute("SET savedsearch.max_requests = 5").await.unwrap();
    let cases = [
        ("SET LOCAL savedsearch.max_requests = 6", "COMMIT", "5"),
        ("SET LOCAL savedsearch.max_requests = 6", "ROLLBACK", "5"),
        ("SET savedsearch.max_requests = 6", "ROLLBACK", "5"),
        ("SET savedsearch.max_requests = 6; RESET savedsearch.max_requests", "ROLLBACK", "5"),
        ("SET LOCAL savedsearch.max_requests = 6; SET savedsearch.max_requests = 7", "COMMIT", "7"),
        ("SET savedsearch.max_requests = 8; SET LOCAL savedsearch.max_requests = 6", "COMMIT", "8"),
    ];
    each_async(cases, async |(changes, end, expected)| {
        client.batch_execute(&format!("BEGIN; {changes}; SET LOCAL timezone = 'Europe/Berlin'")).await.unwrap();
        assert_eq!(text(&client, zone).await, "2026-05-01 00:00:00+02");
        client.batch_execute(end).await.unwrap();
        assert_eq!(text(&client, "SHOW savedsearch.max_requests").await, expected, "{changes}; {end}");
        assert_eq!(text(&client, zone).await, "2026-05-01 00:00:00+00", "{changes}; {end}");
    })
    .await;
    // As far as a savepoint.
    let begun = "BEGIN; SET savedsearch.max_requests = 1; SAVEPOINT a; SET savedsearch.max_requests = 2; SAVEPOINT b; \
                 SET savedsearch.max_requests = 3; SAVEPOINT c";
    client.batch_execute(begun).await.unwrap();
    for (back, expected) in [("ROLLBACK TO b", "2"), ("ROLLBACK TO SAVEPOINT b", "2"), ("ROLLBACK WORK TO a", "1")] {
        client.batch_execute(back).await.unwrap();
        assert_eq!(text(&client, "SHOW savedsearch.max_requests").await, expected, "{back}");
    }
    assert_eq!(code(&client, "ROLLBACK TO b").await.0, "3B001");
    let local = "ROLLBACK; BEGIN; SET LOCAL savedsearch.max_requests = 1; SAVEPOINT a; SET savedsearch.max_requests = 2; \
                 ROLLBACK TO a; COMMIT";
    client.batch_execute(local).await.unwrap();
    assert_eq!(text(&client, "SHOW savedsearch.max_requests").await, "8");
    client.batch_execute("BEGIN; SAVEPOINT a").await.unwrap();
    client.batch_execute("ROLLBACK TO a; RELEASE a").await.unwrap();
    assert_eq!(code(&client, "RELEASE a").await.0, "3B001");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(text(&client, "SHOW savedsearch.max_requests").await, "8");
    for outside in ["SAVEPOINT a", "RELEASE a", "ROLLBACK TO a"] {
        assert_eq!(code(&client, outside).await.0, "25P01", "{outside}");
    }
    client.batch_execute("BEGIN; SET LOCAL savedsearch.max_requests = 6").await.unwrap();
    code(&client, "SELECT nothing").await;
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(text(&client, "SHOW savedsearch.max_requests").await, "8", "after a failed transaction");
    client.batch_execute("SET LOCAL savedsearch.max_requests = 6").await.unwrap();
    assert_eq!(text(&client, "SHOW savedsearch.max_requests").await, "8", "outside of a transaction");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_semicolons_take_no_longer_than_their_number() {
    let served = Served::new().await;
    let client = served.client().await;
    let sent = format!("{}SELECT 7", ";".repeat(500_000));
    let answered = timeout(LONGEST, text(&client, &sent)).await;
    assert_eq!(answered.expect("an answer"), "7");
    assert_eq!(code(&client, &";".repeat(3 << 19)).await.0, "53000");
}
