//! Generated statements against a server process: every construct nested and repeated, every function with large arguments.
//! Each statement is answered or refused, and none takes much memory.
//!
//! `GRAMMAR_CASES` sets the number of statements, `GRAMMAR_SEED` which ones, `GRAMMAR_MIB` the memory of one.

use std::time::Duration;

use tonic::Code;

use super::load::Serve;
use super::{all_rows, status, try_rows};
use crate::binary::Simulate;
use crate::support::knob;

/// Memory in MiB by which one statement may raise the peak of the process.
const MEMORY: u64 = 512;
/// Time for one statement: a hang is found, a busy machine is not.
const TIME: Duration = Duration::from_secs(300);

/// Expressions around an expression.
const NESTED: &[(&str, &str)] = &[
    ("(", ")"),
    ("cast(", " AS int)"),
    ("try_cast(", " AS varchar)"),
    ("(", ")::text::int"),
    ("coalesce(", ", 2)"),
    ("coalesce(greatest(", ", 2), 2)"),
    ("nvl(", ", 2)"),
    ("ifnull(", ", 2)"),
    ("nullif(", ", 2)"),
    ("greatest(", ", 2)"),
    ("abs(", ")"),
    ("CASE WHEN ", " > 1 THEN 1 ELSE 2 END"),
    ("CASE ", " WHEN 1 THEN 2 ELSE 3 END"),
    ("CASE WHEN true THEN ", " ELSE 3 END"),
    ("CASE WHEN value > 1 THEN abs(", ") ELSE 2 END"),
    ("(CASE WHEN ", " > 1 THEN value > 2 ELSE value < 3 END)::int"),
    ("(", " BETWEEN 1 AND 2)::int"),
    ("(", " NOT BETWEEN 1 AND 2)::int"),
    ("(", " IN (1, 2))::int"),
    ("(", " IN (1))::int"),
    ("(", " IS DISTINCT FROM 1)::int"),
    ("((", ", 2) < (3, 4))::int"),
    ("((1, ", ") IN ((2, 3), (4, 5)))::int"),
    ("((now(), now()) OVERLAPS (now() - (", ") * INTERVAL '1 day', now()))::int"),
    ("length(concat(", ", 'x'))"),
    ("(", " IS NULL)::int"),
    ("(", " = 1 AND value > 0 OR value < 5)::int"),
    ("(date_trunc('day', (", ")::bigint::timestamp) = TIMESTAMP '2026-01-01')::int"),
    ("(floor(", ") = 1)::int"),
    ("(NOT (", " > 1))::int"),
    ("- ", ""),
    ("(SELECT ", ")"),
    ("length(substring(", "::text FROM 1 FOR 2))"),
    ("length(overlay(", "::text PLACING 'a' FROM 1))"),
    ("length(trim(both 'x' from ", "::text))"),
    ("position('a' IN ", "::text)"),
    ("position(", "::text, 'a')"),
    ("extract(year FROM (", ")::bigint::timestamp)::int"),
    ("ceil(", ")"),
    ("length(upper(", "::text))"),
    ("length(encode(", "::text, 'hex'))"),
    ("length(concat(", "::text, 'x'))"),
    ("length(", "::text || 'x')"),
    ("array_length([", "])"),
    ("array_length(make_array(", "))"),
    ("array_element([", ", 1], 1)"),
    ("(struct(", ")).c0"),
    ("sum(", ") OVER ()"),
    ("2 * (1 + ", ")"),
    ("power(", ", 1)"),
    ("(interval '1 day' * ", " > interval '2 days')::int"),
    ("1 = ANY (SELECT ", ")"),
    ("(EXISTS (SELECT ", "))::int"),
    ("array_length(array_transform([1, 2], x -> ", "))"),
];

/// Queries around a query.
const QUERIES: &[(&str, &str)] = &[
    ("SELECT * FROM (", ") t"),
    ("SELECT * FROM ((", ") t CROSS JOIN (SELECT 1) u)"),
    ("SELECT value + value AS value FROM (", ") t WHERE value > 0"),
    ("SELECT DISTINCT value FROM (", ") t ORDER BY value LIMIT 3"),
    ("(", ") UNION ALL SELECT 1"),
    ("(", ") INTERSECT SELECT 1"),
    ("WITH c AS (", ") SELECT a.value FROM c a JOIN c b ON a.value = b.value"),
    ("SELECT count(*) AS value FROM (", ") t GROUP BY ROLLUP(value)"),
    ("SELECT max(value) OVER () AS value FROM (", ") t"),
    ("SELECT value FROM (", ") t WHERE value IN (SELECT 1)"),
    ("EXPLAIN ", ""),
];

/// Parts that are repeated in a statement.
const REPEATED: &[(&str, &str, &str)] = &[
    ("SELECT 1", " + 1", ""),
    ("SELECT 1", " || 'x'", ""),
    ("SELECT value", " * value", " FROM generate_series(1, 2)"),
    ("SELECT value", " / 1.5", " FROM generate_series(1, 2)"),
    ("SELECT INTERVAL '1 day'", " * 1", ""),
    ("SELECT now()", " + INTERVAL '1 day'", ""),
    ("SELECT 1 WHERE 1 = 1", " OR 1 = 1", ""),
    ("SELECT 1 WHERE 1 IN (1", ", 1", ")"),
    ("SELECT 1", ", 1", ""),
    ("SELECT 1", "::int", ""),
    ("SELECT [1]", "[1]", ""),
    ("SELECT CASE", " WHEN value = 1 THEN 2", " END FROM generate_series(1, 5)"),
    ("SELECT CASE", " WHEN value = 1 THEN true", " END FROM generate_series(1, 5)"),
    ("SELECT coalesce(NULL", ", value", ") FROM generate_series(1, 5)"),
    ("SELECT concat('a'", ", value", ") FROM generate_series(1, 5)"),
    ("SELECT 1", " UNION ALL SELECT 1", ""),
    ("SELECT 1", " EXCEPT SELECT 1", ""),
    ("SELECT 1 FROM (SELECT 1) a", ", (SELECT 1) b", ""),
    ("SELECT 1 FROM (SELECT 1 v) a", " JOIN (SELECT 1 v) b USING (v)", ""),
    ("VALUES (1)", ", (1)", ""),
    ("SELECT value FROM generate_series(1, 3) ORDER BY value", ", value", ""),
    ("SELECT count(*) FROM generate_series(1, 3) GROUP BY value", ", value + 1", ""),
    ("SELECT count(*) FROM (SELECT 1 a) GROUP BY CUBE(a", ", a", ")"),
    ("SELECT ", "NOT ", "true"),
    ("SELECT ", "INTERVAL ", "'1 day'"),
    ("", "EXPLAIN ", "SELECT 1"),
    ("SELECT '", "'' ", "'"),
    ("SELECT a", ".a", ""),
    ("SELECT ", "\"a\".", "b"),
    ("SELECT to_char(now(), '", "%c", "') FROM generate_series(1, 2000)"),
    ("SELECT cast(NULL AS int", "[]", ")"),
];

/// Arguments of functions.
const ARGUMENTS: &[&str] = &[
    "value",
    "9223372036854775807",
    "-9223372036854775808",
    "2147483647",
    "1e308",
    "0",
    "NULL",
    "repeat('x', 100000)",
    "repeat('%c', 50000)",
    "repeat('(a|b)*', 10000)",
    "'x'",
    "value::text",
    "range(0, 8000)",
    "[repeat('x', 60000)]",
    "now()",
    "DATE '2026-01-01'",
    "INTERVAL '1 nanosecond'",
    "INTERVAL '2147483647 months'",
    "true",
    "arrow_cast('x', 'Binary')",
    "struct(1, 'a')",
    "map(['a'], [1])",
];

/// A sequence of numbers, the same for the same seed (SplitMix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % most as u64).unwrap()
    }

    fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    fn statement(&mut self, functions: &[String]) -> String {
        const DEPTHS: [usize; 7] = [3, 8, 12, 16, 24, 48, 60];
        const COUNTS: [usize; 5] = [10, 90, 900, 3_000, 10_000];
        let wrapped = |(open, close): (&str, &str), depth: usize, inner: &str| {
            format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
        };
        match self.below(10) {
            // One construct, or two in turns; sometimes with an error inside.
            0..4 => {
                let (one, other, depth) = (*self.of(NESTED), *self.of(NESTED), *self.of(&DEPTHS));
                let pair = (format!("{}{}", one.0, other.0), format!("{}{}", other.1, one.1));
                let inner = *self.of(&["value", "value", "1", "1 1"]);
                let nested = match self.below(3) {
                    0 => wrapped((&pair.0, &pair.1), depth / 2, inner),
                    _ => wrapped(one, depth, inner),
                };
                format!("SELECT {nested} FROM generate_series(1, 2000)")
            }
            4 => wrapped(*self.of(QUERIES), *self.of(&DEPTHS), "SELECT value FROM generate_series(1, 10)"),
            5 | 6 => {
                let (before, part, after) = *self.of(REPEATED);
                format!("{before}{}{after}", part.repeat(*self.of(&COUNTS)))
            }
            _ => {
                let function = self.of(functions).clone();
                let args: Vec<&str> = (0..self.below(5)).map(|_| *self.of(ARGUMENTS)).collect();
                let columns = 1 + 7 * self.below(2);
                let call = format!("{function}({})", args.join(", "));
                format!("SELECT {} FROM generate_series(1, 2000)", vec![call; columns].join(", "))
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_statements_are_answered_or_refused_within_little_memory() {
    let service = Simulate::start(&["--searches", "1", "--mentions", "50"]);
    let served = Serve::start(&service.base_url, "v4");
    let mut client = served.client().await;
    let names = "SELECT DISTINCT routine_name FROM information_schema.routines ORDER BY routine_name";
    let functions: Vec<String> = all_rows(&mut client, names).await.into_iter().flatten().collect();
    assert!(functions.len() > 150, "{functions:?}");
    let seed = knob("GRAMMAR_SEED", 1);
    let mut draw = Draw(seed);
    let mut postgres = served.postgres().await;
    let most = knob("GRAMMAR_MIB", MEMORY);
    let (threads, mut slow, mut large) = (served.threads(), 0, 0);
    for case in 0..knob("GRAMMAR_CASES", 300) {
        let sql = draw.statement(&functions);
        let shown: String = sql.chars().take(200).collect();
        let of = format!("seed {seed}, case {case}");
        served.reset_peak();
        let (before, begun) = (served.memory(), std::time::Instant::now());
        let front = draw.below(4);
        match front {
            0 | 1 => {
                let answer = tokio::time::timeout(TIME, async {
                    match front {
                        0 => try_rows(&mut client, &sql).await.map(drop),
                        _ => client.prepare(sql.clone(), None).await.map(drop).map_err(status),
                    }
                });
                let answer = answer.await.unwrap_or_else(|_| panic!("{of}: no answer: {shown}"));
                let lost = answer.is_err_and(|status| matches!(status.code(), Code::Unavailable | Code::Unknown));
                assert!(!lost, "{of}: the server is gone: {shown}");
            }
            _ => {
                let answer = tokio::time::timeout(TIME, async {
                    match front {
                        2 => postgres.simple_query(&sql).await.map(drop),
                        _ => postgres.prepare(&sql).await.map(drop),
                    }
                });
                let answer = answer.await.unwrap_or_else(|_| panic!("{of}: no answer: {shown}"));
                if answer.is_err_and(|error| error.as_db_error().is_none()) {
                    postgres = served.postgres().await;
                }
            }
        }
        let (grown, took) = (served.peak().saturating_sub(before), begun.elapsed());
        (slow, large) = (slow + u64::from(took > Duration::from_secs(2)), large + u64::from(grown > 256));
        if took > Duration::from_secs(2) || grown > 256 {
            println!("{of}: {took:?}, {grown} MiB: {shown}");
        }
        assert!(grown < most, "{of}: {grown} MiB: {shown}");
    }
    println!("{slow} statements took more than 2 s, {large} more than 256 MiB");
    assert_eq!(all_rows(&mut served.client().await, "SELECT 1").await, [["1"]]);
    // Each lane answers, and none was replaced.
    let (_, health) = super::ends::get(served.operations(), "/healthz");
    assert!(health.ends_with("ok\n"), "{health}");
    assert!(served.threads() < threads + 200, "{} threads, {threads} at the start", served.threads());
}
