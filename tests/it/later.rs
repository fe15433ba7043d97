//! A period or time zone known only from another part of the query, and time ranges outside the window.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion_saved_search::simulator::{Corpus, Settings};
use datafusion_saved_search::{ErrorKind, Profile};

use crate::support::{BIG, Virtual, corpus, each_async, now};

fn service() -> Virtual {
    Virtual::new(corpus(), &[] as &[&str], Settings::default(), Profile::v4())
}

/// Count of mentions in the last `days` days.
fn recent(corpus: &Corpus, days: i64) -> String {
    let since = now() - chrono::TimeDelta::days(days);
    let mentions = &corpus.search(BIG).unwrap().mentions;
    mentions.iter().filter(|mention| mention.facts.published >= since).count().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_period_or_a_zone_of_a_subquery_is_what_is_asked_for() {
    let (world, corpus) = (service(), corpus());
    let of = format!("aid = '{BIG}'");
    let cases = [
        (format!("SELECT count(*) FROM mentions WHERE {of} AND duration = (SELECT '30d')"), recent(&corpus, 30)),
        (format!("SELECT count(id) FROM mentions WHERE {of} AND (SELECT '30d') = duration"), recent(&corpus, 30)),
        (format!("SELECT total_mentions FROM overview WHERE {of} AND duration = (SELECT '30d')"), recent(&corpus, 30)),
        (format!("SELECT sum(mentions) FROM volume WHERE {of} AND duration = (SELECT '30d')"), recent(&corpus, 30)),
        (
            format!("SELECT count(*) FROM mentions WHERE {of} AND timezone = (SELECT 'Europe/Berlin')"),
            recent(&corpus, 7),
        ),
        (
            format!("SELECT count(*) FROM (SELECT * FROM mentions WHERE {of}) WHERE duration = '30d'"),
            recent(&corpus, 30),
        ),
        (
            format!("SELECT count(*) FROM mentions WHERE {of} GROUP BY duration HAVING duration = '30d'"),
            recent(&corpus, 30),
        ),
        (
            format!("SELECT count(*) FROM mentions WHERE {of} GROUP BY timezone HAVING timezone = 'UTC'"),
            recent(&corpus, 7),
        ),
        (format!("SELECT count(*) FILTER (WHERE duration = '7d') FROM mentions WHERE {of}"), recent(&corpus, 7)),
        (format!("SELECT count(*) FROM mentions WHERE {of} AND duration = (SELECT NULL::text)"), "0".to_owned()),
        (
            format!(
                "SELECT max(o.total_mentions) FROM mentions m JOIN overview o ON o.aid = m.aid AND o.duration = m.duration \
                 AND o.timezone = m.timezone WHERE m.{of}"
            ),
            recent(&corpus, 7),
        ),
        (
            format!(
                "SELECT max(o.total_mentions) FROM mentions m JOIN overview o ON o.aid = m.aid AND o.duration = m.duration \
                 WHERE m.{of} AND m.duration = '30d'"
            ),
            recent(&corpus, 30),
        ),
    ];
    each_async(cases, async |(sql, right)| {
        assert_eq!(world.rows(&sql).await, [[right]], "{sql}");
    })
    .await;
    let range = "published_at >= '2026-06-10' AND published_at < '2026-06-12T00:00:00.5Z'";
    let (from, to): (DateTime<Utc>, DateTime<Utc>) =
        ("2026-06-10T00:00:00Z".parse().unwrap(), "2026-06-12T00:00:00.5Z".parse().unwrap());
    let published = corpus.search(BIG).unwrap().mentions.iter().map(|mention| mention.facts.published);
    let in_range = published.filter(|at| (from..to).contains(at)).count();
    assert!(in_range > 0);
    for later in ["duration = (SELECT '30d')", "timezone = (SELECT 'Asia/Tokyo')", "timezone = (SELECT 'UTC')"] {
        let sql = format!("SELECT count(*) FROM mentions WHERE {of} AND {range} AND {later}");
        assert_eq!(world.rows(&sql).await, [[in_range.to_string()]], "{sql}");
        let sql = format!("SELECT id FROM mentions WHERE {of} AND {range} AND {later} LIMIT 3");
        assert_eq!(world.rows(&sql).await.len(), 3.min(in_range), "{sql}");
    }
    // An explicit period is kept, whatever range is given in addition.
    let given = format!(
        "SELECT count(*) FROM mentions WHERE {of} AND duration = '7d' AND published_at >= '2026-01-01' \
         AND timezone = (SELECT 'UTC')"
    );
    assert_eq!(world.rows(&given).await, [[recent(&corpus, 7)]]);
    let days = format!(
        "SELECT sum(n) FROM (SELECT published_at::date, count(*) AS n FROM mentions WHERE {of} AND duration = (SELECT '30d') \
         GROUP BY 1)"
    );
    assert_eq!(world.rows(&days).await, [[recent(&corpus, 30)]]);
    for test in ["duration !~ '^30'", "starts_with(duration, '30')", "nullif(duration, '7d') IS NULL"] {
        let sql = format!("SELECT count(*) FROM (SELECT * FROM mentions WHERE {of} LIMIT 10) WHERE {test}");
        let error = world.error(&sql).await;
        assert!(error.to_string().contains("must be known before"), "{sql}: {error}");
    }
    let zones = format!("SELECT DISTINCT timezone FROM volume WHERE {of} AND timezone = (SELECT 'Europe/Berlin')");
    assert_eq!(world.rows(&zones).await, [["Europe/Berlin"]]);
    for wrong in ["'30 days'", "'0d'"] {
        let error = world.error(&format!("SELECT id FROM mentions WHERE {of} AND duration = (SELECT {wrong})")).await;
        assert_eq!(error.kind(), ErrorKind::Query, "{error}");
    }
    let error = world.error(&format!("SELECT id FROM mentions WHERE {of} AND duration <> (SELECT '30d')")).await;
    assert!(error.to_string().contains("duration = '…'"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_period_or_a_zone_that_cannot_reach_the_scan_is_refused_with_what_to_add() {
    let world = service();
    let cases = [
        (
            "duration",
            "SELECT d.p, count(m.id) FROM (VALUES ('7d'), ('30d')) d(p) LEFT JOIN mentions m ON m.duration = d.p AND m.aid = '183772' GROUP BY 1",
        ),
        (
            "duration",
            "SELECT count(*) FROM mentions m JOIN (VALUES ('30d')) d(p) ON m.duration = d.p WHERE m.aid = '183772'",
        ),
        (
            "duration",
            "SELECT count(*) FROM overview m JOIN (VALUES ('30d'), ('90d')) d(p) ON m.duration = d.p WHERE m.aid = '183772'",
        ),
        (
            "timezone",
            "SELECT count(*) FROM mentions WHERE aid = '183772' AND timezone IN (SELECT 'Europe/Berlin' UNION ALL SELECT 'Asia/Tokyo')",
        ),
        (
            "timezone",
            "SELECT count(*) FROM volume WHERE aid = '183772' AND timezone IN (SELECT name FROM saved_searches)",
        ),
        ("duration", "SELECT count(*) FILTER (WHERE duration = '30d') FROM mentions WHERE aid = '183772'"),
        ("duration", "SELECT sum(CASE WHEN duration = '30d' THEN 1 ELSE 0 END) FROM mentions WHERE aid = '183772'"),
        ("duration", "SELECT sum(CASE duration WHEN '30d' THEN 1 ELSE 0 END) FROM mentions WHERE aid = '183772'"),
        ("duration", "SELECT count(*) FROM mentions WHERE aid = '183772' HAVING max(duration) = '30d'"),
        (
            "duration",
            "SELECT count(*) FROM (SELECT *, row_number() OVER (ORDER BY id) r FROM mentions WHERE aid = '183772') WHERE duration = '30d' AND r > 0",
        ),
        (
            "duration",
            "SELECT count(*) FROM (SELECT * FROM mentions WHERE aid = '183772' LIMIT 10) WHERE duration IN ('30d', '90d')",
        ),
        (
            "duration",
            "SELECT count(*) FROM mentions m JOIN overview o ON o.duration = m.duration WHERE m.aid = '183772' AND o.aid = '183772' AND m.published_at >= '2026-06-01'",
        ),
    ];
    each_async(cases, async |(column, sql)| {
        let error = world.error(sql).await;
        assert_eq!(error.kind(), ErrorKind::Query, "{sql}: {error}");
        assert!(error.to_string().contains(&format!("{column} = '…'")), "{sql}: {error}");
        assert_eq!(world.simulator.requests(), 0, "{sql}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn filters_of_aggregates_widen_what_is_read_or_a_note_says_what_is() {
    let (world, corpus) = (service(), corpus());
    let of = format!("FROM mentions WHERE aid = '{BIG}'");
    let since = |days: i64| (now() - chrono::TimeDelta::days(days)).to_rfc3339();
    let filtered = |days: i64| format!("FILTER (WHERE published_at >= '{}')", since(days));
    let sql = format!("SELECT count(*) {}, count(*) {} {of}", filtered(30), filtered(60));
    assert_eq!(world.rows(&sql).await, [[recent(&corpus, 30), recent(&corpus, 60)]]);
    let sql = format!("SELECT count(*) {} {of}", filtered(3));
    assert_eq!(world.rows(&sql).await, [[recent(&corpus, 3)]]);
    assert!(world.rows("SELECT * FROM system.warnings").await.is_empty());
    // Aggregates and groups without a filter use the default window; mentions outside it cannot be distinguished from none.
    for sql in [
        format!("SELECT count(*), count(*) {} {of}", filtered(30)),
        format!("SELECT language, count(*) {} {of} GROUP BY 1", filtered(30)),
        format!("SELECT sum(CASE WHEN published_at < '2026-06-26' THEN 1 ELSE 0 END) {of}"),
        format!("SELECT count(*) {of} AND indexed_at >= '2026-06-01'"),
    ] {
        let before = world.rows("SELECT message FROM system.warnings").await.len();
        world.rows(&sql).await;
        let notes = world.rows("SELECT message FROM system.warnings").await.split_off(before).concat().concat();
        assert!(
            notes.contains("default window of mentions (`7d`)") && notes.contains("add a filter on `published_at`"),
            "{sql}: {notes}"
        );
    }
    let before = world.rows("SELECT message FROM system.warnings").await.len();
    for sql in [
        format!("SELECT count(*), count(*) {} {of}", filtered(3)),
        format!("SELECT count(*), count(*) {} {of} AND duration = '30d'", filtered(60)),
        format!("SELECT count(*) {of} AND indexed_at >= '2026-06-01' AND duration = '30d'"),
    ] {
        world.rows(&sql).await;
    }
    assert_eq!(world.rows("SELECT message FROM system.warnings").await.len(), before);
}

#[tokio::test(start_paused = true)]
async fn values_in_another_case_than_the_services_are_noted_if_nothing_is_found() {
    let world = service();
    let of =
        |condition: &str| format!("SELECT id FROM mentions WHERE aid = '{BIG}' AND duration = '90d' AND {condition}");
    let noted = async |sql: &str| {
        let before = world.rows("SELECT message FROM system.warnings").await.len();
        let rows = world.rows(sql).await.len();
        (rows, world.rows("SELECT message FROM system.warnings").await.split_off(before).concat())
    };
    let note = |column: &str, value: &str, written: &str| {
        vec![format!("nothing was found: {column} = '{value}' is compared with case, and the service has '{written}'")]
    };
    // The profile names the columns of sentiments.
    assert_eq!(noted(&of("sentiment = 'Positive'")).await, (0, note("sentiment", "Positive", "positive")));
    let count = format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND sentiment = 'Negative'");
    assert_eq!(noted(&count).await, (1, note("sentiment", "Negative", "negative")));
    // Rows that the condition rejects have the value.
    assert_eq!(noted(&of("platform = 'Web'")).await, (0, note("platform", "Web", "web")));
    // Nothing is known yet.
    assert_eq!(noted(&of("language = 'EN'")).await, (0, Vec::new()));
    let languages = format!("SELECT language FROM mentions WHERE aid = '{BIG}' AND duration = '90d' LIMIT 100");
    assert_eq!(noted(&languages).await, (100, Vec::new()));
    assert_eq!(noted(&of("language = 'EN'")).await, (0, note("language", "EN", "en")));
    let (rows, notes) = noted(&of("sentiment IN ('Positive', 'negative')")).await;
    assert!(rows > 0 && notes.is_empty(), "{notes:?}");
    assert_eq!(noted(&of("sentiment = 'cheerful'")).await, (0, Vec::new()));
    let spaces =
        "nothing was found: sentiment = 'positive ' is compared with its spaces, and the service has 'positive'";
    assert_eq!(noted(&of("sentiment = 'positive '")).await, (0, vec![spaces.to_owned()]));
    assert_eq!(noted(&of("sentiment = ' Positive'")).await, (0, note("sentiment", " Positive", "positive")));
}

#[tokio::test(start_paused = true)]
async fn comparisons_with_a_value_in_another_case_that_select_no_rows_of_a_scan_are_noted() {
    let world = service();
    world.rows("CREATE TABLE own AS SELECT 'POSITIVE' AS sentiment").await;
    let of = |select: &str, condition: &str| {
        format!("SELECT {select} FROM mentions WHERE aid = '{BIG}' AND duration = '30d' AND {condition}")
    };
    let noted = async |sql: &str| {
        let before = world.rows("SELECT message FROM system.warnings").await.len();
        world.rows(sql).await;
        world.rows("SELECT message FROM system.warnings").await.split_off(before).concat()
    };
    let note = |sign: &str, value: &str| {
        let written = value.to_lowercase();
        vec![format!("sentiment {sign} '{value}' is compared with case, and the service has '{written}'")]
    };
    let filtered = of("count(reach), count(url) FILTER (WHERE sentiment = 'Positive')", "reach > 0");
    assert_eq!(noted(&filtered).await, note("=", "Positive"));
    let counted = of("sum(CASE sentiment WHEN 'NEGATIVE' THEN reach ELSE 0 END)", "reach > 0");
    assert_eq!(noted(&counted).await, note("=", "NEGATIVE"));
    assert_eq!(noted(&of("id", "sentiment <> 'Positive'")).await, note("<>", "Positive"));
    assert_eq!(noted(&of("id", "sentiment NOT IN ('Neutral', 'cheerful')")).await, note("<>", "Neutral"));
    assert_eq!(noted(&of("id", "(sentiment = 'Positive' OR reach > 0)")).await, note("=", "Positive"));
    for sql in [
        of("count(reach), count(url) FILTER (WHERE sentiment = 'positive')", "reach > 0"),
        of("count(reach), count(url) FILTER (WHERE sentiment = 'cheerful')", "reach > 0"),
        of("id", "sentiment IN ('Positive', 'negative')"),
        format!(
            "SELECT count(*) FILTER (WHERE o.sentiment = 'POSITIVE') FROM own o JOIN ({}) m ON lower(o.sentiment) = m.sentiment",
            of("sentiment, url", "reach > 0")
        ),
        format!(
            "SELECT count(*) FILTER (WHERE sentiment = 'POSITIVE') FROM ({}) m",
            of("upper(sentiment) AS sentiment, reach", "reach > 0")
        ),
    ] {
        assert_eq!(noted(&sql).await, [""; 0], "{sql}");
    }
}

#[tokio::test(start_paused = true)]
async fn names_of_a_breakdown_in_another_case_are_noted_without_a_request() {
    let world = service();
    let of = |name: &str| {
        format!("SELECT name FROM breakdowns WHERE aid = '{BIG}' AND dimension = 'source' AND name = '{name}'")
    };
    let all = world.rows(&format!("SELECT name FROM breakdowns WHERE aid = '{BIG}' AND dimension = 'source'")).await;
    let name = all.iter().flatten().find(|name| name.to_uppercase() != **name).unwrap();
    let before = world.simulator.requests();
    assert_eq!(world.rows(&of(&name.to_uppercase())).await.len(), 0);
    assert_eq!(world.simulator.requests() - before, 1);
    let note = format!(
        "nothing was found: name = '{}' is compared with case, and the service has '{name}'",
        name.to_uppercase()
    );
    assert_eq!(world.rows("SELECT message FROM system.warnings").await.concat(), [note]);
    assert_eq!(world.rows(&of(name)).await.len(), 1);
    assert_eq!(world.rows(&of("nobody")).await.len(), 0);
    assert_eq!(world.rows("SELECT message FROM system.warnings").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_saved_search_has_is_noted() {
    let world = service();
    let noted = async |sql: &str| {
        let before = world.rows("SELECT message FROM system.warnings").await.len();
        let rows = world.rows(sql).await.len();
        (rows, world.rows("SELECT message FROM system.warnings").await.split_off(before).concat())
    };
    let note =
        |name: &str, advice: &str| vec![format!("nothing was found: no saved search has the name '{name}'; {advice}")];
    let count = "SELECT count(*) FROM mentions m JOIN saved_searches s ON s.aid = m.aid WHERE s.name = 'acme - brand'";
    assert_eq!(noted(count).await, (1, note("acme - brand", "did you mean 'Acme – brand'?")));
    let list = |condition: &str| format!("SELECT aid FROM saved_searches WHERE {condition}");
    let unknown = note("something else", "saved_searches lists the names");
    assert_eq!(noted(&list("name = 'something else'")).await, (0, unknown));
    // Another condition, or another name, is met.
    assert_eq!(noted(&list("name = 'Acme – brand' AND aid = '0'")).await, (0, Vec::new()));
    assert_eq!(noted(&list("name IN ('Acme – brand', 'something else')")).await, (1, Vec::new()));
    assert_eq!(noted(&list("name LIKE 'something%'")).await, (0, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn each_form_of_a_day_that_leaves_an_instant_of_it_is_noted() {
    let world = service();
    let noted = async |condition: &str| {
        let before = world.rows("SELECT message FROM system.warnings").await.len();
        world.rows(&format!("SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND {condition}")).await;
        world.rows("SELECT message FROM system.warnings").await.split_off(before).concat()
    };
    let (cut, instant) = (
        "the conditions on published_at end with the first instant of 2026-06-27; for the whole day, use \
         published_at < '2026-06-28' or published_at::date <= '2026-06-27'",
        "the conditions on published_at leave one instant, midnight of 2026-06-27; for the whole day, use \
         published_at::date = '2026-06-27'",
    );
    for (condition, note) in [
        ("published_at BETWEEN '2026-06-20' AND '2026-06-27'", cut),
        ("published_at BETWEEN date '2026-06-20' AND date '2026-06-27'", cut),
        ("published_at >= '2026-06-20' AND published_at <= '2026-06-27'", cut),
        ("published_at >= '2026-06-20' AND published_at <= date '2026-06-27'", cut),
        ("published_at >= '2026-06-20' AND '2026-06-27'::date >= published_at", cut),
        ("published_at = '2026-06-27'", instant),
        ("published_at = date '2026-06-27'", instant),
        ("published_at IN ('2026-06-27')", instant),
    ] {
        assert_eq!(noted(condition).await, [note], "{condition}");
    }
    for condition in [
        "published_at::date BETWEEN '2026-06-20' AND '2026-06-27'",
        "published_at >= '2026-06-20' AND published_at < '2026-06-27'",
        "published_at::date = '2026-06-27'",
    ] {
        assert_eq!(noted(condition).await, [""; 0], "{condition}");
    }
    let computed = async |result: &str| {
        let before = world.rows("SELECT message FROM system.warnings").await.len();
        let of = format!("FROM mentions WHERE aid = '{BIG}' AND duration = '30d'");
        world.rows(&format!("SELECT {result}, max(url) {of}")).await;
        world.rows("SELECT message FROM system.warnings").await.split_off(before).concat()
    };
    let filtered = |condition: &str| format!("sum(reach) FILTER (WHERE {condition})");
    for result in [
        filtered("published_at BETWEEN '2026-06-20' AND '2026-06-27' AND reach > 5"),
        filtered("published_at <= date '2026-06-27'"),
        "sum(CASE WHEN published_at <= '2026-06-27' THEN reach ELSE 0 END)".to_owned(),
    ] {
        assert_eq!(computed(&result).await, [cut], "{result}");
    }
    for result in [filtered("published_at < '2026-06-27'"), filtered("published_at::date <= '2026-06-27'")] {
        assert_eq!(computed(&result).await, [""; 0], "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_with_the_month_for_minutes_is_noted() {
    let world = service();
    let first = |call: &str| format!("SELECT {call}) FROM mentions WHERE aid = '{BIG}' LIMIT 1");
    world.rows(&first("postgres_to_char(published_at, 'YYYY-MM-DD HH24:MI'")).await;
    assert!(world.rows("SELECT * FROM system.warnings").await.is_empty());
    world.rows(&first("postgres_to_char(published_at, 'YYYY-MM-DD ' || 'HH24:MM'")).await;
    world.rows(&first("to_char(published_at, '%H:%m'")).await;
    let noted = |text: &str, meaning: &str| vec![format!("in the template '{text}' of to_char, {meaning}")];
    assert_eq!(
        world.rows("SELECT message FROM system.warnings").await,
        [
            noted("YYYY-MM-DD HH24:MM", "`MM` is the month; minutes are `MI`"),
            noted("%H:%m", "`%m` is the month; minutes are `%M`"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn labels_of_records_in_a_file_can_be_filtered_by_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.ndjson");
    let label = |row: usize| ["positive", "mixed", "negative"][row % 3];
    let record = |row: usize| {
        format!(
            r#"{{"aid":"7","id":"{row}","publishedAt":"2026-06-30T{:02}:00:00Z","sentiment":{{"label":"{}"}}}}"#,
            row % 24,
            label(row)
        )
    };
    std::fs::write(&file, (0..90).map(record).collect::<Vec<_>>().join("\n")).unwrap();
    let corpus = Arc::new(Corpus::load(&file).unwrap());
    let world = Virtual::new(corpus, &[] as &[&str], Settings::default(), Profile::v4());
    assert_eq!(world.rows("SELECT count(*) FROM mentions WHERE aid = '7' AND sentiment = 'mixed'").await, [["30"]]);
    let counted = "SELECT sentiment, count(*) FROM mentions WHERE aid = '7' GROUP BY 1 ORDER BY 1";
    let before = world.simulator.requests();
    assert_eq!(world.rows(counted).await, [["mixed", "30"], ["negative", "30"], ["positive", "30"]]);
    assert_eq!(world.simulator.requests() - before, 1);
}

/// The engine optimizes a prepared statement before the rules of analysis have seen it, which correct its defects.
#[tokio::test(start_paused = true)]
async fn a_prepared_statement_has_the_rows_of_the_statement() {
    let world = service();
    let statements = [
        ("count(*) AS n FROM saved_searches HAVING $1 > 'b'", "'a'"),
        ("n FROM (SELECT count(*) AS n FROM saved_searches) q WHERE $1 > 'b'", "'a'"),
        (
            "w, n FROM (SELECT $1 AS w, count(*) AS n FROM saved_searches UNION ALL SELECT 'b', 1) q WHERE w = 'b'",
            "'a'",
        ),
        (
            "name FROM saved_searches WHERE aid NOT IN (SELECT CASE WHEN aid = $1 THEN NULL ELSE aid END FROM saved_searches)",
            "'1'",
        ),
        ("s.aid FROM saved_searches s FULL JOIN (SELECT $1 AS aid) t USING (aid) ORDER BY 1", "'zz'"),
        (
            "s.aid FROM (SELECT $1 AS aid) t RIGHT JOIN saved_searches s ON s.aid = t.aid WHERE t.aid IS NULL ORDER BY 1",
            "'zz'",
        ),
    ];
    for (at, (statement, value)) in statements.into_iter().enumerate() {
        let expected = world.rows(&format!("SELECT {}", statement.replace("$1", value))).await;
        world.rows(&format!("PREPARE p{at}(varchar) AS SELECT {statement}")).await;
        assert_eq!(world.rows(&format!("EXECUTE p{at}({value})")).await, expected, "{statement}");
    }
}

/// A prepared statement reads up to the time of its execution.
#[tokio::test(start_paused = true)]
async fn a_prepared_statement_reads_up_to_the_time_at_which_it_is_executed() {
    let (world, corpus) = (service(), corpus());
    let since = (now() - chrono::TimeDelta::days(3)).to_rfc3339();
    world
        .rows(&format!("PREPARE q AS SELECT count(*) FROM mentions WHERE aid = '{BIG}' AND published_at >= '{since}'"))
        .await;
    world.rows(&format!("PREPARE p AS SELECT id FROM mentions WHERE aid = $1 AND published_at >= '{since}'")).await;
    tokio::time::advance(std::time::Duration::from_secs(3_600)).await;
    let expected = recent(&corpus, 3);
    assert_eq!(world.rows("EXECUTE q").await, [[expected.clone()]]);
    assert_eq!(world.rows(&format!("EXECUTE p('{BIG}')")).await.len().to_string(), expected);
}
