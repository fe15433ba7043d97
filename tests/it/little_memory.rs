//! Queries with less memory than their rows take: the same rows as with enough memory, or an error.
//!
//! The engine keeps a part of the rows on disk then, by other code.

use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_saved_search::sql;

use crate::support::{World, rows};

const TABLES: [&str; 3] = [
    "CREATE TABLE big AS SELECT nullif(value, 0) AS i, value % 97 AS k, CASE WHEN value % 5 <> 0 THEN value % 130 END AS n, \
     value || repeat('x', 60) AS t FROM generate_series(1, 2500)",
    "CREATE TABLE few AS SELECT nullif(value, 0) AS i, nullif(value % 7, 8) AS k, CASE WHEN value % 4 <> 0 THEN value END AS n FROM generate_series(1, 120)",
    "CREATE TABLE none AS SELECT i, k, n FROM few WHERE i < 0",
];

const STATEMENTS: &[&str] = &[
    "SELECT n, k, count(*), sum(i), min(t) FROM big GROUP BY n, k",
    "SELECT t, count(*), max(i) FROM big GROUP BY t",
    "SELECT named_struct('k', k, 'n', n) AS s, count(*) FROM big GROUP BY s",
    "SELECT [k, n] AS s, count(*), count(DISTINCT t) FROM big GROUP BY s",
    "SELECT k, n, grouping(k, n), count(*) FROM big GROUP BY CUBE (k, n)",
    "SELECT k, string_agg(t, ',' ORDER BY i DESC), array_agg(n ORDER BY i), first_value(t ORDER BY n, i) FROM big GROUP BY k",
    "SELECT k, median(i), stddev(i), approx_distinct(t) > 0 FROM big GROUP BY k",
    "SELECT DISTINCT k, n FROM big",
    "SELECT count(DISTINCT t), count(DISTINCT n) FROM big",
    "SELECT i, t FROM big ORDER BY t DESC, i",
    "SELECT i FROM (SELECT i, t FROM big ORDER BY t, i LIMIT 1200 OFFSET 900)",
    "SELECT i, row_number() OVER (PARTITION BY k ORDER BY n NULLS FIRST, i), sum(i) OVER (PARTITION BY k ORDER BY i), \
     lag(t) OVER (ORDER BY i) FROM big",
    "SELECT i, count(*) OVER (PARTITION BY n), max(t) OVER (PARTITION BY k) FROM big",
    "SELECT k, n FROM big EXCEPT SELECT k, n FROM few",
    "SELECT k, n FROM big INTERSECT SELECT k, n FROM few",
    "SELECT t FROM big UNION SELECT t FROM big WHERE i % 2 = 0",
    "SELECT i FROM big WHERE (n NOT IN (SELECT n FROM few)) IS NULL",
    "SELECT i FROM big WHERE coalesce((k, n) NOT IN (SELECT k, n FROM none), false)",
    "SELECT i FROM big b WHERE n > 100 OR EXISTS (SELECT 1 FROM few f WHERE f.n > b.n + 60)",
    "SELECT i, (SELECT max(f.i) FROM few f WHERE f.n < b.n) FROM big b",
    "SELECT count(*), sum(b.i), sum(f.i), count(l.i) FROM big b JOIN few f ON b.n < f.n LEFT JOIN few l ON l.i > f.i + b.k",
];

/// Joins of `x` and `y`, with an equality and without.
const JOINS: [&str; 7] = [
    "SELECT count(*), sum(x.i), count(y.i), sum(y.k) FROM x JOIN y ON {}",
    "SELECT count(*), sum(x.i), count(y.i), sum(y.k) FROM x LEFT JOIN y ON {}",
    "SELECT count(*), sum(x.i), count(y.i), sum(y.k) FROM x RIGHT JOIN y ON {}",
    "SELECT count(*), sum(x.i), count(y.i), sum(y.k) FROM x FULL JOIN y ON {}",
    "SELECT i FROM x WHERE EXISTS (SELECT 1 FROM y WHERE {})",
    "SELECT i FROM x WHERE NOT EXISTS (SELECT 1 FROM y WHERE {})",
    "SELECT i, EXISTS (SELECT 1 FROM y WHERE {}) FROM x",
];
const CONDITIONS: [&str; 3] = ["x.n > y.n + 40", "x.n = y.n", "x.n = y.n AND x.i < 20 * y.i"];

fn joins() -> Vec<String> {
    let mut all = Vec::new();
    for join in JOINS {
        for condition in CONDITIONS {
            for (x, y) in [("big", "few"), ("few", "big"), ("big", "none")] {
                let tables = format!("WITH x AS (SELECT * FROM {x}), y AS (SELECT * FROM {y}) ");
                all.push(tables + &join.replace("{}", condition));
            }
        }
    }
    all
}

/// The session with its tables, and a pool of memory.
fn limited(context: &SessionContext, pool: Arc<dyn MemoryPool>) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().expect("a runtime");
    let state = SessionStateBuilder::new_from_existing(context.state()).with_runtime_env(runtime);
    SessionContext::new_with_state(state.build())
}

async fn sorted_rows(context: &SessionContext, statement: &str) -> Result<Vec<Vec<String>>, DataFusionError> {
    let mut rows = rows(&sql(context, statement).await?.collect().await?);
    rows.sort_unstable();
    Ok(rows)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_do_not_depend_on_the_memory() {
    let context = World::new().await.context;
    for setting in ["target_partitions = 3", "batch_size = 256", "sort_spill_reservation_bytes = 4096"] {
        context.sql(&format!("SET datafusion.execution.{setting}")).await.expect("a setting");
    }
    for table in TABLES {
        context.sql(table).await.expect(table);
    }
    let (mut refused, mut answered) = (0, 0);
    for prefers_hash_joins in [true, false] {
        let preference = format!("SET datafusion.optimizer.prefer_hash_join = {prefers_hash_joins}");
        context.sql(&preference).await.expect("a setting");
        let others = STATEMENTS.iter().filter(|_| prefers_hash_joins).map(|statement| (*statement).to_owned());
        for statement in others.chain(joins()) {
            let expected =
                sorted_rows(&context, &statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
            let pools: [Arc<dyn MemoryPool>; 4] = [
                Arc::new(GreedyMemoryPool::new(20_000)),
                Arc::new(FairSpillPool::new(80_000)),
                Arc::new(GreedyMemoryPool::new(320_000)),
                Arc::new(FairSpillPool::new(1_280_000)),
            ];
            for (at, pool) in pools.into_iter().enumerate() {
                match sorted_rows(&limited(&context, pool), &statement).await {
                    Ok(found) => {
                        let counts = format!("{} rows, {} expected", found.len(), expected.len());
                        assert!(found == expected, "{statement} in pool {at}: {counts}");
                        answered += 1;
                    }
                    Err(error) => {
                        let is_memory = matches!(error.find_root(), DataFusionError::ResourcesExhausted(_));
                        assert!(is_memory, "{statement} in pool {at}: {error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 100 && answered > 100, "{refused} refused, {answered} answered");
}

/// If this fails, the engine has been fixed: remove `optimizer/read_once.rs`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_alone_repeats_rows_of_a_join_on_disk() {
    let config = SessionConfig::new().with_target_partitions(3).with_batch_size(256);
    let context = SessionContext::new_with_config(config);
    for table in TABLES {
        context.sql(table).await.expect(table);
    }
    let statement = "SELECT x.i FROM few x LEFT JOIN big y ON x.n > y.n + 100";
    let count = |context: SessionContext| async move {
        let batches = context.sql(statement).await.expect("a plan").collect().await.expect("rows");
        batches.iter().map(|batch| batch.num_rows()).sum::<usize>()
    };
    let enough = count(context.clone()).await;
    let little = count(limited(&context, Arc::new(GreedyMemoryPool::new(1_000)))).await;
    assert_ne!(enough, little, "the engine has been fixed");
}
