//! Engine defects that our sessions work around: a plain session shows them, ours does not.
//!
//! If the assertion about the plain session fails, the engine has been fixed: remove the workaround from
//! `optimizer/sound_properties.rs` and the case here.

use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_saved_search::engine_defects::{ENGINE_DEFECTS, EngineDefect, Here};

use crate::support::{World, rows};

/// Rows in the form of the registry, or the error.
async fn outcome(context: &SessionContext, sql: &str) -> Result<String, String> {
    let frame = context.sql(sql).await.map_err(|error| error.to_string())?;
    let batches = frame.collect().await.map_err(|error| error.to_string())?;
    Ok(rows(&batches).iter().map(|row| row.join("|")).collect::<Vec<_>>().join("; "))
}

/// Every entry of the registry is wrong in a plain session, and right or refused in ours.
#[tokio::test]
async fn the_registry_holds() {
    let ours = with_tables(World::new().await.context).await;
    let plain = with_tables(plain()).await;
    let mut failures = Vec::new();
    for EngineDefect { name, statement, plain: wrong, here, .. } in ENGINE_DEFECTS {
        let before = outcome(&plain, statement).await;
        if before.as_deref() != Ok(*wrong) {
            failures.push(format!("{name}: a plain session has changed: {before:?} instead of `{wrong}`"));
        }
        match (outcome(&ours, statement).await, here) {
            (Ok(came), Here::Right(right)) if came == *right => {}
            (Err(error), Here::Refused(advice)) if error.contains(advice) => {}
            (came, here) => failures.push(format!("{name}: `{statement}` came as {came:?}, expected {here:?}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

async fn answer(context: &SessionContext, sql: &str) -> Vec<Vec<String>> {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows(&frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}")))
}

/// Timestamps on two days, unsorted, and keys.
async fn with_tables(context: SessionContext) -> SessionContext {
    for table in [
        "CREATE TABLE events AS SELECT column1::timestamp AS t, column2 AS n FROM (VALUES \
         ('2026-06-01 09:00:00', 10), ('2026-06-01 03:00:00', 20), ('2026-06-02 01:00:00', 30), ('2026-06-01 17:00:00', 31))",
        "CREATE TABLE keys AS SELECT 'k' || (value % 1145) AS k FROM generate_series(1, 5000)",
    ] {
        answer(&context, table).await;
    }
    context
}

fn plain() -> SessionContext {
    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2).with_batch_size(256))
}

const MISREAD: [(&str, &[&str]); 5] = [
    ("SELECT t::time AS at FROM events WHERE t::date = '2026-06-01' ORDER BY t LIMIT 2", &["03:00:00", "09:00:00"]),
    (
        "SELECT t::time AS at FROM (SELECT t, row_number() OVER (ORDER BY n) r FROM events) WHERE t::date = '2026-06-01' \
         ORDER BY t DESC LIMIT 2",
        &["17:00:00", "09:00:00"],
    ),
    ("SELECT count(DISTINCT t) FROM events WHERE t::date = '2026-06-01'", &["3"]),
    ("SELECT n FROM events WHERE n / 10 = 3 ORDER BY n DESC LIMIT 1", &["31"]),
    (
        "SELECT t::time AS at FROM events WHERE t::date <= '2026-06-01' AND t::date >= '2026-06-01' ORDER BY t LIMIT 1",
        &["03:00:00"],
    ),
];

#[tokio::test]
async fn a_condition_on_a_cast_leaves_the_order_of_the_column_alone() {
    let ours = with_tables(World::new().await.context).await;
    for (sql, right) in MISREAD {
        assert_eq!(
            answer(&ours, sql).await,
            right.iter().map(|cell| vec![(*cell).to_owned()]).collect::<Vec<_>>(),
            "{sql}"
        );
    }
    let (sql, right) = MISREAD[0];
    let answered = answer(&with_tables(plain()).await, sql).await.concat();
    assert_ne!(answered, right, "the engine has been fixed: `{sql}` is right in a plain session");
}

/// Sorts and groups by a column of a side that an outer join fills with NULL. The last two join without an equality.
const FILLED: [(&str, &[&str]); 6] = [
    (
        "SELECT a.n FROM events a LEFT JOIN (SELECT n, 'x' AS c FROM events WHERE n = 20) b ON a.n = b.n \
         ORDER BY b.c NULLS FIRST, a.n",
        &["10", "30", "31", "20"],
    ),
    (
        "SELECT b.n FROM (SELECT n FROM events WHERE n = 20) a RIGHT JOIN events b ON a.n = b.n \
         ORDER BY a.n DESC NULLS FIRST, b.n",
        &["10", "30", "31", "20"],
    ),
    (
        "SELECT b.n FROM (SELECT n FROM events WHERE n = 20) a FULL JOIN events b ON a.n = b.n \
         ORDER BY a.n NULLS FIRST, b.n",
        &["10", "30", "31", "20"],
    ),
    (
        "SELECT count(*) FROM (SELECT c, count(*) FROM keys a LEFT JOIN (SELECT k AS l, 'x' AS c FROM keys WHERE k > 'k5') b \
         ON k = l GROUP BY c)",
        &["2"],
    ),
    (
        "SELECT a.n FROM events a LEFT JOIN (SELECT n, 'x' AS c FROM events WHERE n = 20) b ON a.n < b.n \
         ORDER BY b.c NULLS FIRST, a.n",
        &["20", "30", "31", "10"],
    ),
    (
        "SELECT b.n FROM (SELECT n FROM events WHERE n = 20) a FULL JOIN events b ON a.n > b.n \
         ORDER BY a.n NULLS FIRST, b.n",
        &["20", "30", "31", "10"],
    ),
];

#[tokio::test]
async fn what_an_outer_join_fills_with_null_is_no_constant() {
    let ours = with_tables(World::new().await.context).await;
    let plain = with_tables(plain()).await;
    let mut wrong = 0;
    for (sql, right) in FILLED {
        let right = right.iter().map(|cell| vec![(*cell).to_owned()]).collect::<Vec<_>>();
        assert_eq!(answer(&ours, sql).await, right, "{sql}");
        wrong += usize::from(answer(&plain, sql).await != right);
    }
    assert!(wrong > 0, "the engine has been fixed: constants of outer joins");
    println!("{wrong} of {} are wrong in a plain session", FILLED.len());
}

#[tokio::test]
async fn grouping_sets_have_each_group_once() {
    let ours = with_tables(World::new().await.context).await;
    let groups = "SELECT count(*), count(DISTINCT k) FROM (SELECT k, count(*) FROM keys GROUP BY ROLLUP(k, 'all'))";
    // Each key with and without the literal, and the grand total.
    let right = [[(2 * 1_145 + 1).to_string(), "1145".to_owned()]];
    assert_eq!(answer(&ours, groups).await, right);
    for (sql, count) in [
        ("SELECT k, 'x' AS c FROM keys", "2291"),
        ("SELECT k, c FROM (SELECT k, 'x' AS c FROM keys UNION ALL SELECT k, 'y' FROM keys) WHERE c = 'x'", "2291"),
        ("SELECT k, r AS c FROM (SELECT k, row_number() OVER (ORDER BY k) r FROM keys)", "6146"),
    ] {
        let sql = format!("SELECT count(*) FROM (SELECT k, c, count(*) FROM ({sql}) GROUP BY ROLLUP(k, c))");
        assert_eq!(answer(&ours, &sql).await, [[count]], "{sql}");
    }
    assert_ne!(
        answer(&with_tables(plain()).await, groups).await,
        right,
        "the engine has been fixed: ROLLUP over a literal"
    );
}
