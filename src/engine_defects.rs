//! Registry of the engine's defects: statements for which a plain DataFusion session returns wrong rows, and what our
//! sessions do.
//!
//! `tests/it/engine_defects.rs` runs each statement in both sessions. It fails if our session returns other rows than the
//! standard requires. It also fails once the plain session is right: then the engine has been fixed, and the workaround can
//! be removed. `docs/guarantees.md` lists the entries.
//!
//! Invariant: an entry is either worked around, with the rows that the standard requires, or refused with the form to write.

/// A statement that the engine answers with wrong rows.
#[derive(Debug, Clone, Copy)]
pub struct EngineDefect {
    /// Name of the defect: lowercase words, as shown in the documentation.
    pub name: &'static str,
    /// Issue of the engine's repository, if there is one.
    pub upstream: Option<u32>,
    /// Smallest statement that shows the defect, over the tables of `tests/it/engine_defects.rs`.
    pub statement: &'static str,
    /// Rows of a plain session: cells separated by `|`, rows by `; `.
    pub plain: &'static str,
    /// Behaviour of our sessions.
    pub here: Here,
}

/// Behaviour of our sessions at a defect of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Here {
    /// The statement has these rows, which the standard requires, in the form of [`EngineDefect::plain`].
    Right(&'static str),
    /// The statement is refused with an error that contains this text, which names the form to write.
    Refused(&'static str),
}

/// A rule of analysis that works around a defect of the engine. EXPLAIN has its note if it changed the plan.
#[derive(Debug, Clone, Copy)]
pub struct Workaround {
    /// Name of the rule.
    pub rule: &'static str,
    /// Behaviour of the engine alone, with issues of its repository.
    pub note: &'static str,
}

/// The rules of analysis that work around defects of the engine.
pub const WORKAROUNDS: &[Workaround] = &[
    Workaround { rule: "local_times", note: "the engine alone would compute a local time as one of UTC" },
    Workaround {
        rule: "savedsearch_peer_frames",
        note: "the engine alone would refuse a window that is sorted by a duration, a clock time or a row",
    },
    Workaround {
        rule: "savedsearch_range_frames",
        note: "the engine alone would round the distance of a frame by RANGE, or lose the end of the frame near a change of clocks",
    },
    Workaround {
        rule: "savedsearch_pattern_matching",
        note: "the engine alone would match SIMILAR TO as a regular expression (#22263), take a backslash of a regular \
               expression for an escape of LIKE, and refuse ESCAPE",
    },
    Workaround { rule: "savedsearch_row_comparison", note: "the engine alone would compare NULLs of a row as values" },
    Workaround {
        rule: "savedsearch_interval_fields",
        note: "the engine alone would return totals for fields of an interval",
    },
    Workaround {
        rule: "savedsearch_interval_texts",
        note: "the engine alone would take a number without a unit for months where a text is cast to an interval",
    },
    Workaround {
        rule: "savedsearch_interval_comparison",
        note: "the engine alone would compare intervals by their fields, not by their length",
    },
    Workaround {
        rule: "savedsearch_nested_order",
        note: "the engine alone would take NULL for the smallest member of an array or a row, and lose rows of such a sort below LIMIT",
    },
    Workaround {
        rule: "savedsearch_derived_conditions",
        note: "the engine alone would lose a correlated condition, or compare another column of its name",
    },
    Workaround {
        rule: "savedsearch_applied_subqueries",
        note: "the engine alone would refuse a correlated subquery, or return wrong rows for it",
    },
    Workaround {
        rule: "savedsearch_subqueries",
        note: "the engine alone would lose NULLs of IN and EXISTS, and rows of aggregates (#25336, #25347, #24960)",
    },
    Workaround {
        rule: "savedsearch_unknown_lists",
        note: "the engine alone would make a list of values true or false for NULL (#24246)",
    },
    Workaround {
        rule: "savedsearch_aggregate_filters",
        note: "the engine alone would push a condition below the aggregate that it applies to",
    },
    Workaround { rule: "savedsearch_checked_arithmetic", note: "the engine alone would wrap integers that overflow" },
    Workaround {
        rule: "savedsearch_narrowed_decimals",
        note: "the engine alone would move a cast that drops digits to the other side of a comparison (#23095)",
    },
    Workaround { rule: "savedsearch_sort_keys", note: "the engine alone would panic at a sort key that occurs twice" },
];

/// All known defects of the engine's version that this crate is built with.
pub const ENGINE_DEFECTS: &[EngineDefect] = &[
    EngineDefect {
        name: "an equality beside a join by IS NOT DISTINCT FROM",
        upstream: None,
        statement: "SELECT count(*) FROM facts a JOIN facts b ON a.k IS NOT DISTINCT FROM b.k WHERE a.v = b.v",
        plain: "3",
        here: Here::Right("2"),
    },
    EngineDefect {
        name: "two derived tables with the same expressions",
        upstream: Some(24_686),
        statement: "SELECT i + 1 AS i FROM (SELECT i + 1 AS i FROM (SELECT 1 AS i))",
        plain: "2",
        here: Here::Right("3"),
    },
    EngineDefect {
        name: "a sort by keys of both sides of a join, which are in order",
        upstream: Some(25_052),
        statement: "SELECT r.w, l.v FROM (SELECT * FROM (VALUES (1, 200), (1, 100)) a(k, v) ORDER BY v LIMIT 10) l \
                    JOIN (SELECT * FROM (VALUES (1, 1), (1, 1)) b(k, w) ORDER BY w LIMIT 10) r ON l.k = r.k ORDER BY r.w, l.v",
        plain: "1|100; 1|200; 1|100; 1|200",
        here: Here::Right("1|100; 1|100; 1|200; 1|200"),
    },
    EngineDefect {
        name: "a comparison with a cast that drops digits",
        upstream: Some(23_095),
        statement: "SELECT count(*) FROM (VALUES (CAST(12.6 AS DECIMAL(10, 2)))) t(x) WHERE CAST(x AS BIGINT) = 12",
        plain: "0",
        here: Here::Right("1"),
    },
    EngineDefect {
        name: "a condition on groups of random values",
        upstream: Some(25_415),
        statement: "SELECT count(*) FROM (SELECT random() < 0.5 AS k, count(*) FROM generate_series(1, 500) GROUP BY random() < 0.5) q \
                    WHERE k",
        plain: "2",
        here: Here::Right("1"),
    },
    EngineDefect {
        name: "a sort or a count above a condition on a cast of the same column",
        upstream: None,
        statement: "SELECT t::time AS at FROM events WHERE t::date = '2026-06-01' ORDER BY t LIMIT 2",
        plain: "09:00:00; 03:00:00",
        here: Here::Right("03:00:00; 09:00:00"),
    },
    EngineDefect {
        name: "`ROLLUP`, `CUBE` or `GROUPING SETS` over constants or sorted input",
        upstream: None,
        statement: "SELECT count(*) > 2291 FROM (SELECT k, count(*) FROM keys GROUP BY ROLLUP(k, 'all'))",
        plain: "true",
        here: Here::Right("false"),
    },
    EngineDefect {
        name: "NOT IN with a NULL among the values, below OR",
        upstream: Some(25_336),
        statement: "SELECT id FROM words WHERE w NOT IN (SELECT v FROM (VALUES ('en'), (NULL)) q(v)) OR id = 0 ORDER BY id",
        plain: "2; 3",
        here: Here::Right(""),
    },
    EngineDefect {
        name: "IN with a NULL among the values, below IS NULL",
        upstream: Some(25_336),
        statement: "SELECT id FROM words WHERE (w IN (SELECT v FROM (VALUES ('en'), (NULL)) q(v))) IS NULL ORDER BY id",
        plain: "",
        here: Here::Right("2; 3"),
    },
    EngineDefect {
        name: "correlated NOT IN with a NULL among the values",
        upstream: Some(25_347),
        statement: "SELECT k FROM owners o WHERE 5 NOT IN (SELECT v FROM facts f WHERE f.k = o.k) ORDER BY k",
        plain: "a; b; z",
        here: Here::Right("b; z"),
    },
    EngineDefect {
        name: "NOT IN of a constant with a NULL among the values",
        upstream: None,
        statement: "SELECT count(*) FROM words WHERE 7 NOT IN (SELECT v FROM facts)",
        plain: "3",
        here: Here::Right("0"),
    },
    EngineDefect {
        name: "NOT IN of NULLs without a type",
        upstream: None,
        statement: "SELECT k FROM (SELECT NULL AS c, k FROM (VALUES (1), (2)) v(k)) a WHERE c NOT IN (SELECT NULL) ORDER BY k",
        plain: "1; 2",
        here: Here::Right(""),
    },
    EngineDefect {
        name: "two correlated conditions in ON, on columns of one name",
        upstream: None,
        statement: "SELECT k, (SELECT count(*) FROM facts f JOIN scores s ON f.v = s.v AND s.k = o.k AND f.k = o.k) AS n FROM owners o \
                    ORDER BY k",
        plain: "a|1; b|1; z|0",
        here: Here::Right("a|1; b|0; z|0"),
    },
    EngineDefect {
        name: "a correlated condition in ON of an outer join",
        upstream: None,
        statement: "SELECT k, (SELECT count(*) FROM words p LEFT JOIN facts q ON q.v = p.id AND q.k = o.k) AS n FROM owners o ORDER BY k",
        plain: "a|1; b|1; z|0",
        here: Here::Refused("in or below an outer join"),
    },
    EngineDefect {
        name: "a correlated condition on one of two columns of a name",
        upstream: None,
        statement: "SELECT k FROM owners o WHERE EXISTS (SELECT e.k FROM facts e JOIN facts f ON e.k < f.k WHERE f.k = o.k) ORDER BY k",
        plain: "a",
        here: Here::Right("b"),
    },
    EngineDefect {
        name: "DISTINCT above groups by the key of a joined table",
        upstream: None,
        statement: "SELECT DISTINCT k FROM (SELECT o.k, w.id FROM (SELECT k FROM owners GROUP BY k) o CROSS JOIN words w \
                    GROUP BY o.k, w.id) q ORDER BY k",
        plain: "a; a; a; b; b; b; z; z; z",
        here: Here::Right("a; b; z"),
    },
    EngineDefect {
        name: "GROUP BY above groups by the key of a joined table",
        upstream: None,
        statement: "SELECT count(*) FROM (SELECT k, id FROM (SELECT o.k, w.id, w.w FROM (SELECT k FROM owners GROUP BY k) o \
                    CROSS JOIN words w GROUP BY o.k, w.id, w.w) q GROUP BY k, id) z",
        plain: "3",
        here: Here::Right("9"),
    },
    EngineDefect {
        name: "a join with groups by the key of a joined table",
        upstream: None,
        statement: "SELECT count(*) FROM (SELECT p.k FROM owners p LEFT JOIN (SELECT o.k, w.id FROM (SELECT k FROM owners \
                    GROUP BY k) o CROSS JOIN words w GROUP BY o.k, w.id) q ON q.k = p.k) z",
        plain: "3",
        here: Here::Right("9"),
    },
    EngineDefect {
        name: "a cast of an inner column that is equal to an outer value",
        upstream: None,
        statement: "SELECT k, (SELECT count(*) FROM words w WHERE w.id::boolean = (o.k < 'z')) AS n FROM owners o ORDER BY k",
        plain: "a|1; a|1; a|1; b|1; b|1; b|1; z|0",
        here: Here::Right("a|3; b|3; z|0"),
    },
    EngineDefect {
        name: "a merged column in a subquery of a query with a column of its name",
        upstream: None,
        statement: "SELECT k FROM owners o WHERE EXISTS (SELECT 1 FROM facts f JOIN owners p USING (k) WHERE k = o.k AND v = 2) \
                    ORDER BY k",
        plain: "a; b; z",
        here: Here::Right("b"),
    },
    EngineDefect {
        name: "an ambiguous column in a subquery of a query with a column of its name",
        upstream: None,
        statement: "SELECT k FROM owners WHERE EXISTS (SELECT 1 FROM facts f, facts g WHERE k = 'b' AND f.v = g.v) ORDER BY k",
        plain: "b",
        here: Here::Refused("write f.k or g.k"),
    },
    EngineDefect {
        name: "IS NULL of a count in LATERAL",
        upstream: None,
        statement: "SELECT o.k, t.x FROM owners o LEFT JOIN LATERAL (SELECT count(*) IS NULL AS x FROM facts f WHERE f.k = \
                    o.k) t ON true ORDER BY k",
        plain: "a|false; b|false; z|NULL",
        here: Here::Right("a|false; b|false; z|false"),
    },
    EngineDefect {
        name: "DISTINCT in LATERAL below an inequality",
        upstream: None,
        statement: "SELECT o.k, q.x FROM owners o, LATERAL (SELECT DISTINCT f.v IS NULL AS x FROM facts f WHERE f.k <> o.k) \
                    q ORDER BY 1, 2",
        plain: "a|false; b|false; b|true; z|false; z|false; z|true",
        here: Here::Refused("DISTINCT or GROUP BY below a comparison"),
    },
    EngineDefect {
        name: "a condition that is always false above an aggregate without GROUP BY",
        upstream: None,
        statement: "SELECT n FROM (SELECT count(5) AS n FROM words) WHERE (n BETWEEN n AND n) IS FALSE",
        plain: "0",
        here: Here::Right(""),
    },
    EngineDefect {
        name: "a condition above grouping sets that is always false",
        upstream: None,
        statement: "SELECT w, n FROM (SELECT w, count(5) AS n FROM words GROUP BY CUBE (w)) q \
                    WHERE CASE WHEN n BETWEEN n AND n THEN 'a' ELSE w END BETWEEN 'b' AND 'c'",
        plain: "NULL|0",
        here: Here::Right(""),
    },
    EngineDefect {
        name: "a condition on a label beside an aggregate without GROUP BY, above a union",
        upstream: None,
        statement: "SELECT w, n FROM (SELECT 'a' AS w, count(*) AS n FROM words UNION ALL SELECT 'b', 1) q WHERE w = 'b'",
        plain: "a|0; b|1",
        here: Here::Right("b|1"),
    },
    EngineDefect {
        name: "a scalar subquery without rows",
        upstream: None,
        statement: "SELECT id FROM words WHERE coalesce(id = (SELECT 7 FROM facts WHERE v > 5 LIMIT 1), true) ORDER BY id",
        plain: "",
        here: Here::Right("1; 2; 3"),
    },
    EngineDefect {
        name: "a scalar subquery without rows, of a value that is computed while planning",
        upstream: None,
        statement: "SELECT id FROM words WHERE (id < (SELECT abs(1) FROM facts WHERE v > 5)) IS NULL ORDER BY id",
        plain: "",
        here: Here::Right("1; 2; 3"),
    },
    EngineDefect {
        name: "IN over an aggregate of a correlated subquery",
        upstream: Some(24_960),
        statement: "SELECT k FROM owners o WHERE 0 IN (SELECT count(*) FROM facts f WHERE f.k = o.k) ORDER BY k",
        plain: "",
        here: Here::Right("z"),
    },
    EngineDefect {
        name: "EXISTS over an aggregate of a correlated subquery",
        upstream: Some(24_960),
        statement: "SELECT k FROM owners o WHERE EXISTS (SELECT count(*) FROM facts f WHERE f.k = o.k) ORDER BY k",
        plain: "a; b",
        here: Here::Right("a; b; z"),
    },
    EngineDefect {
        name: "first rows of a union by a label",
        upstream: None,
        statement: "SELECT 'b' AS w, n FROM events UNION ALL SELECT 'a', n + 100 FROM events ORDER BY w, n LIMIT 2",
        plain: "b|10; b|20",
        here: Here::Right("a|110; a|120"),
    },
    EngineDefect {
        name: "OFFSET without LIMIT in a subquery",
        upstream: None,
        statement: "SELECT min(n), count(*) FROM (SELECT * FROM events ORDER BY t DESC OFFSET 2) q GROUP BY n / 100",
        plain: "30|2",
        here: Here::Right("10|2"),
    },
    EngineDefect {
        name: "OFFSET below a window function",
        upstream: None,
        statement: "SELECT n, row_number() OVER (ORDER BY n) AS r FROM (SELECT n FROM events ORDER BY t DESC OFFSET 2) ORDER BY n",
        plain: "30|1; 31|2",
        here: Here::Right("10|1; 20|2"),
    },
    EngineDefect {
        name: "EXISTS over grouping sets of a correlated subquery",
        upstream: Some(25_519),
        statement: "SELECT k FROM owners o WHERE EXISTS (SELECT 1 FROM facts f WHERE f.k = o.k GROUP BY ROLLUP (f.v)) ORDER BY k",
        plain: "a; b",
        here: Here::Right("a; b; z"),
    },
    EngineDefect {
        name: "IN over grouping sets of a correlated subquery",
        upstream: Some(25_519),
        statement: "SELECT k FROM owners o WHERE 0 IN (SELECT count(*) FROM facts f WHERE f.k = o.k GROUP BY ROLLUP (f.v)) ORDER BY k",
        plain: "",
        here: Here::Refused("write the subquery as a table of FROM, and join it"),
    },
    EngineDefect {
        name: "rows with NULL, compared",
        upstream: None,
        statement: "SELECT (k, v) = ('a', NULL) AS x FROM facts ORDER BY k, v NULLS LAST",
        plain: "false; true; false",
        here: Here::Right("NULL; NULL; false"),
    },
    EngineDefect {
        name: "a comparison with ANY of an array with NULL",
        upstream: None,
        statement: "SELECT NOT (7 = ANY (a)) AS r FROM (SELECT array_agg(v) AS a FROM facts) q",
        plain: "true",
        here: Here::Right("NULL"),
    },
    EngineDefect {
        name: "a minus before an interval of several units",
        upstream: None,
        statement: "SELECT TIMESTAMP '2026-05-03T12:00:00' + -INTERVAL '2 hours 30 minutes' AS t",
        plain: "2026-05-03T10:30:00",
        here: Here::Right("2026-05-03T09:30:00"),
    },
    EngineDefect {
        name: "a decimal with one digit more than its type has",
        upstream: None,
        statement: "SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)) + 1 AS d",
        plain: "10000000000000000000000000000000000000",
        here: Here::Refused("cast to fewer digits after the point"),
    },
    EngineDefect {
        name: "a number with underscores",
        upstream: None,
        statement: "SELECT 1_000",
        plain: "1",
        here: Here::Right("1000"),
    },
    EngineDefect {
        name: "texts in consecutive lines",
        upstream: None,
        statement: "SELECT 'a'\n'b'",
        plain: "a",
        here: Here::Right("ab"),
    },
    EngineDefect {
        name: "operators on bits without parentheses",
        upstream: None,
        statement: "SELECT 1 | 4 & 2 AS bits",
        plain: "1",
        here: Here::Right("0"),
    },
    EngineDefect {
        name: "two lists of one operand below NOT",
        upstream: Some(24_246),
        statement: "SELECT id FROM words WHERE NOT (w IN ('en') AND w IN ('de')) ORDER BY id",
        plain: "1; 2; 3",
        here: Here::Right("1; 2"),
    },
    EngineDefect {
        name: "XOR of a value with itself",
        upstream: Some(24_246),
        statement: "SELECT k, v XOR v FROM facts ORDER BY k, v NULLS LAST",
        plain: "a|0; a|0; b|0",
        here: Here::Right("a|0; a|NULL; b|0"),
    },
    EngineDefect {
        name: "two negated lists of one operand",
        upstream: Some(24_246),
        statement: "SELECT id FROM words WHERE w NOT IN ('en', 'x') OR w NOT IN ('de', 'y') ORDER BY id",
        plain: "1; 2; 3",
        here: Here::Right("1; 2"),
    },
    EngineDefect {
        name: "merged column after FULL JOIN",
        upstream: Some(22_881),
        statement: "SELECT k FROM (VALUES (1)) a(k) FULL JOIN (VALUES (2)) b(k) USING (k) ORDER BY k NULLS FIRST",
        plain: "NULL; 1",
        here: Here::Right("1; 2"),
    },
    EngineDefect {
        name: "merged column after RIGHT JOIN",
        upstream: Some(22_881),
        statement: "SELECT k FROM (VALUES (1)) a(k) RIGHT JOIN (VALUES (2)) b(k) USING (k)",
        plain: "NULL",
        here: Here::Right("2"),
    },
    EngineDefect {
        name: "natural join without a common column",
        upstream: None,
        statement: "SELECT x FROM (VALUES (1)) a(x) NATURAL LEFT JOIN (SELECT 1 AS z WHERE false) b",
        plain: "",
        here: Here::Right("1"),
    },
    EngineDefect {
        name: "comparison of intervals",
        upstream: None,
        statement: "SELECT count(*) FROM events WHERE t - TIMESTAMP '2026-06-01 00:00:00' > '1 day'::interval",
        plain: "0",
        here: Here::Right("1"),
    },
    EngineDefect {
        name: "SIMILAR TO without anchors",
        upstream: Some(22_263),
        statement: "SELECT 'abc' SIMILAR TO 'b'",
        plain: "true",
        here: Here::Right("false"),
    },
    EngineDefect {
        name: "integer arithmetic",
        upstream: None,
        statement: "SELECT 9223372036854775807 + 1",
        plain: "-9223372036854775808",
        here: Here::Refused("integer out of range"),
    },
    EngineDefect {
        name: "sum of integers",
        upstream: None,
        statement: "SELECT sum(v) FROM (VALUES (9223372036854775807), (1)) t(v)",
        plain: "-9223372036854775808",
        here: Here::Refused("integer out of range"),
    },
    EngineDefect {
        name: "difference of unsigned integers",
        upstream: None,
        statement: "SELECT row_number() OVER (ORDER BY n) - row_number() OVER (ORDER BY n DESC) AS d FROM events ORDER BY n LIMIT 1",
        plain: "18446744073709551613",
        here: Here::Right("-3"),
    },
    EngineDefect {
        name: "quotient of unsigned integers",
        upstream: None,
        statement: "SELECT row_number() OVER (ORDER BY n) / 2 AS d FROM events ORDER BY n LIMIT 1",
        plain: "0.5000",
        here: Here::Right("0"),
    },
    EngineDefect {
        name: "a name of a result within an expression of ORDER BY",
        upstream: None,
        statement: "SELECT -n AS n FROM events ORDER BY n + 0 LIMIT 1",
        plain: "-31",
        here: Here::Right("-10"),
    },
    EngineDefect {
        name: "IN of a constant that a condition in the subquery fixes",
        upstream: None,
        statement: "SELECT count(*) FROM words WHERE 2 IN (SELECT id FROM words WHERE id = 2)",
        plain: "0",
        here: Here::Right("3"),
    },
    EngineDefect {
        name: "correlated NOT IN with NULLs in the correlated column",
        upstream: None,
        statement: "SELECT id FROM words a WHERE 0 NOT IN (SELECT 0 FROM words b WHERE b.w = a.w AND b.id > 1) ORDER BY id",
        plain: "",
        here: Here::Right("1; 3"),
    },
    EngineDefect {
        name: "a count of different values of a constant column",
        upstream: None,
        statement: "SELECT count(DISTINCT e), count(*) FROM (SELECT NULL::text AS e FROM (VALUES (1), (2)) v(k)) q",
        plain: "1|2",
        here: Here::Right("0|2"),
    },
    EngineDefect {
        name: "an aggregate without GROUP BY below a join whose condition is never true",
        upstream: None,
        statement: "SELECT x.n FROM words y LEFT JOIN (SELECT count(*) AS n FROM words) x ON false",
        plain: "0; 0; 0",
        here: Here::Right("NULL; NULL; NULL"),
    },
    EngineDefect {
        name: "a window function in a correlated subquery",
        upstream: None,
        statement: "SELECT o.id, l.r FROM words o, LATERAL (SELECT count(*) OVER () AS r FROM words i WHERE i.id = o.id) l ORDER BY o.id",
        plain: "1|3; 2|3; 3|3",
        here: Here::Right("1|1; 2|1; 3|1"),
    },
    EngineDefect {
        name: "OFFSET in a correlated EXISTS",
        upstream: None,
        statement: "SELECT id FROM words o WHERE EXISTS (SELECT 1 FROM words i WHERE i.id = o.id OFFSET 1) ORDER BY id",
        plain: "1; 2; 3",
        here: Here::Right(""),
    },
    EngineDefect {
        name: "an ambiguous column of WHERE beside the qualified ones",
        upstream: None,
        statement: "SELECT a.v FROM facts a JOIN facts b ON a.k = b.k WHERE a.v > 0 AND b.v > 0 AND v = 2",
        plain: "2",
        here: Here::Refused("is ambiguous; write a.v or b.v"),
    },
    EngineDefect {
        name: "IS NULL of a count in a correlated subquery",
        upstream: None,
        statement: "SELECT k, (SELECT count(*) IS NULL FROM facts f WHERE f.k = o.k) AS x FROM owners o ORDER BY k",
        plain: "a|false; b|false; z|NULL",
        here: Here::Right("a|false; b|false; z|false"),
    },
    EngineDefect {
        name: "HAVING without GROUP BY in a correlated scalar subquery",
        upstream: None,
        statement: "SELECT (SELECT max(i.id) FROM words i WHERE i.id = o.id HAVING count(*) = 0) AS m FROM words o ORDER BY o.id",
        plain: "1; 2; 3",
        here: Here::Right("NULL; NULL; NULL"),
    },
    EngineDefect {
        name: "`~ '.*'` of NULL",
        upstream: None,
        statement: "SELECT NOT (w ~ '.*') AS c FROM words WHERE id = 3",
        plain: "true",
        here: Here::Right("NULL"),
    },
    EngineDefect {
        name: "a window that is based on a named one",
        upstream: None,
        statement: "SELECT id, count(*) OVER (p ORDER BY id) AS c FROM words WINDOW p AS (PARTITION BY w) ORDER BY id",
        plain: "1|1; 2|2; 3|3",
        here: Here::Refused("based on another one"),
    },
    EngineDefect {
        name: "GROUP BY … WITH ROLLUP",
        upstream: None,
        statement: "SELECT count(*) AS n FROM words GROUP BY w WITH ROLLUP",
        plain: "1; 1; 1",
        here: Here::Refused("WITH ROLLUP"),
    },
    EngineDefect {
        name: "a table of WITH with random values that is used twice",
        upstream: None,
        statement: "WITH k AS (SELECT uuid() AS r FROM words) SELECT count(*) FROM k a JOIN k b USING (r)",
        plain: "0",
        here: Here::Refused("random values"),
    },
    EngineDefect {
        name: "a series of days in a zone across a change of clocks",
        upstream: None,
        statement: "SELECT count(*) FROM generate_series(arrow_cast('2026-03-27 02:30:00', 'Timestamp(ns, \"Europe/Berlin\")'), \
            arrow_cast('2026-04-02 12:00:00', 'Timestamp(ns, \"Europe/Berlin\")'), interval '1 day')",
        plain: "2",
        here: Here::Right("7"),
    },
    EngineDefect {
        name: "a list of days in a zone across a change of clocks",
        upstream: None,
        statement: "SELECT cardinality(generate_series(arrow_cast('2026-03-27 02:30:00', 'Timestamp(ns, \"Europe/Berlin\")'), \
            arrow_cast('2026-04-02 12:00:00', 'Timestamp(ns, \"Europe/Berlin\")'), interval '1 day'))",
        plain: "1",
        here: Here::Right("7"),
    },
    EngineDefect {
        name: "a series whose step has a negative part",
        upstream: None,
        statement: "SELECT count(*) FROM generate_series(date '2026-01-31', date '2026-04-30', interval '1 month -1 day')",
        plain: "0",
        here: Here::Right("4"),
    },
    EngineDefect {
        name: "floating-point numbers that leave a moving frame",
        upstream: None,
        statement: "SELECT i, sum(x) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM (VALUES (1, 1e20), (2, 1e0), \
                    (3, 1e0)) v(i, x) ORDER BY i",
        plain: "1|1e20; 2|1e20; 3|0.0",
        here: Here::Right("1|1e20; 2|1e20; 3|2.0"),
    },
    EngineDefect {
        name: "`array_agg(DISTINCT …)` in opposite orders",
        upstream: None,
        statement: "SELECT array_agg(DISTINCT id ORDER BY id DESC) AS a, array_agg(DISTINCT id ORDER BY id) AS b FROM words",
        plain: "[3, 2, 1]|[3, 2, 1]",
        here: Here::Right("[3, 2, 1]|[1, 2, 3]"),
    },
    EngineDefect {
        name: "`array_agg` and `string_agg` over a window whose rows come in the opposite order",
        upstream: None,
        statement: "SELECT id, array_agg(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS a, \
                    row_number() OVER (ORDER BY id DESC) AS r FROM words ORDER BY id",
        plain: "1|[3, 2, 1]|3; 2|[3, 2]|2; 3|[3]|1",
        here: Here::Right("1|[1, 2, 3]|3; 2|[2, 3]|2; 3|[3]|1"),
    },
    EngineDefect {
        name: "a negative zero in CASE, sort keys and partitions",
        upstream: None,
        statement: "SELECT CASE round(x) WHEN 0 THEN 'zero' ELSE 'other' END AS c FROM (VALUES (-0.4e0)) v(x)",
        plain: "other",
        here: Here::Right("zero"),
    },
    EngineDefect {
        name: "doubles as decimals",
        upstream: None,
        statement: "SELECT x::decimal(38, 10) AS d FROM (VALUES (1e20)) v(x)",
        plain: "100000000000000001988.4624838656",
        here: Here::Right("100000000000000000000.0000000000"),
    },
    EngineDefect {
        name: "subqueries over series of other values",
        upstream: None,
        statement: "SELECT (SELECT count(*) FROM generate_series(1, 3)) AS a, (SELECT count(*) FROM generate_series(1, 5)) AS b",
        plain: "3|3",
        here: Here::Right("3|5"),
    },
    EngineDefect {
        name: "GROUP BY below a cast that is compared with an outer value",
        upstream: None,
        statement: "SELECT id FROM words x WHERE EXISTS (SELECT 1 FROM (VALUES (1.1e0, 'a'), (1.2e0, 'a')) v(y, g) WHERE \
                    v.y::bigint = x.id GROUP BY g HAVING count(*) > 1)",
        plain: "",
        here: Here::Right("1"),
    },
    EngineDefect {
        name: "EXCEPT and INTERSECT whose right side is correlated",
        upstream: None,
        statement: "SELECT id FROM words x WHERE EXISTS (SELECT v FROM (VALUES (2)) a(v) EXCEPT SELECT v FROM (VALUES (2)) b(v) WHERE \
                    b.v = x.id)",
        plain: "",
        here: Here::Refused("on the right of EXCEPT or INTERSECT"),
    },
    EngineDefect {
        name: "`*` of LEFT JOIN … USING, if the right table's name is first in the alphabet",
        upstream: None,
        statement: "SELECT * FROM words z LEFT JOIN (VALUES (1, 'x')) a(id, y) USING (id) ORDER BY z.id",
        plain: "en|1|x; de|NULL|NULL; NULL|NULL|NULL",
        here: Here::Right("1|en|x; 2|de|NULL; 3|NULL|NULL"),
    },
    EngineDefect {
        name: "ORDER BY of a position in parentheses",
        upstream: None,
        statement: "SELECT x FROM (VALUES (3), (1), (2)) v(x) ORDER BY (1)",
        plain: "3; 1; 2",
        here: Here::Right("1; 2; 3"),
    },
    EngineDefect {
        name: "the order of a derived table whose first rows are shown",
        upstream: None,
        statement: "SELECT * FROM (SELECT x FROM (VALUES (5), (9), (7)) v(x) ORDER BY x DESC) q LIMIT 1",
        plain: "5",
        here: Here::Right("9"),
    },
    EngineDefect {
        name: "the order of a derived table whose rows an aggregate collects",
        upstream: None,
        statement: "SELECT string_agg(k, '') AS s FROM (SELECT k FROM owners ORDER BY k DESC) q",
        plain: "abz",
        here: Here::Right("zba"),
    },
    EngineDefect {
        name: "a position in DISTINCT ON",
        upstream: None,
        statement: "SELECT count(*) AS n FROM (SELECT DISTINCT ON (1) k FROM owners) q",
        plain: "1",
        here: Here::Right("3"),
    },
    EngineDefect {
        name: "a condition without columns above DISTINCT, UNION or a window of a count",
        upstream: None,
        statement: "SELECT n FROM (SELECT DISTINCT count(*) AS n FROM facts) q WHERE (SELECT max(id) FROM words) > 5",
        plain: "0",
        here: Here::Right(""),
    },
    EngineDefect {
        name: "NULL and a computed pattern of any text",
        upstream: None,
        statement: "SELECT count(*) AS n FROM words WHERE NOT (w ~ ('.' || '*'))",
        plain: "1",
        here: Here::Right("0"),
    },
    EngineDefect {
        name: "`array_has` of an array that contains NULL",
        upstream: Some(24_246),
        statement: "SELECT array_has([nullif(w, 'de'), 'b'], 'a') AS h FROM words WHERE id = 2",
        plain: "NULL",
        here: Here::Right("false"),
    },
    EngineDefect {
        name: "`array_has_any` and `array_has_all` of NULL and of arrays that contain NULL",
        upstream: Some(24_985),
        statement: "SELECT array_has_any([1, NULL], [NULL, id + 2]) AS a, array_has_all([1], CASE WHEN id < 2 THEN [id] END) AS b \
                    FROM words WHERE id = 2",
        plain: "true|true",
        here: Here::Right("false|NULL"),
    },
    EngineDefect {
        name: "lead with IGNORE NULLS and an offset above 1",
        upstream: None,
        statement: "SELECT lead(x, 2) IGNORE NULLS OVER (ORDER BY i) AS y \
            FROM (VALUES (1, 9), (2, 8), (3, 7), (4, 6), (5, NULL), (6, 3)) v(i, x) ORDER BY i",
        plain: "7; 6; NULL; NULL; NULL; NULL",
        here: Here::Right("7; 6; 3; NULL; NULL; NULL"),
    },
    EngineDefect {
        name: "lag with a negative offset below LIMIT",
        upstream: None,
        statement: "SELECT lag(n, -2) OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS l FROM events ORDER BY n LIMIT 1",
        plain: "NULL",
        here: Here::Right("30"),
    },
    EngineDefect {
        name: "an offset of lag that is NULL",
        upstream: None,
        statement: "SELECT lag(x, NULL) OVER (ORDER BY x) AS l FROM (VALUES (1), (2)) v(x) ORDER BY x",
        plain: "1; 2",
        here: Here::Right("NULL; NULL"),
    },
    EngineDefect {
        name: "a date plus hours",
        upstream: None,
        statement: "SELECT CAST(date '2026-01-31' + interval '1 hour' AS timestamp) = timestamp '2026-01-31 01:00:00' AS t",
        plain: "false",
        here: Here::Right("true"),
    },
    EngineDefect {
        name: "an instant computed from NaN",
        upstream: None,
        statement: "SELECT to_timestamp(CAST('NaN' AS double)) = to_timestamp(0) AS t",
        plain: "true",
        here: Here::Refused("Can't cast value NaN"),
    },
    EngineDefect {
        name: "a logarithm that does not exist",
        upstream: None,
        statement: "SELECT ln(0) AS l",
        plain: "-inf",
        here: Here::Refused("ln(0.0) has no value"),
    },
    EngineDefect {
        name: "a double beside a decimal",
        upstream: None,
        statement: "SELECT x = n AS t FROM (VALUES (1e-20, CAST(0 AS DECIMAL(10, 2)))) v(x, n)",
        plain: "true",
        here: Here::Right("false"),
    },
    EngineDefect {
        name: "a recursive term with fractions",
        upstream: None,
        statement: "WITH RECURSIVE t AS (SELECT 1 AS n, 0 AS k UNION ALL SELECT n * 1.5, k + 1 FROM t WHERE k < 2) SELECT n FROM t",
        plain: "1; 1; 1",
        here: Here::Refused("column n is double in the recursive term"),
    },
    EngineDefect {
        name: "a frame by RANGE that ends before a row whose key is NULL, infinite or NaN",
        upstream: None,
        statement: "SELECT min(n) = 300 AS whole FROM (SELECT value % 3 AS k, count(*) OVER (ORDER BY nullif(value % 3, 1) \
                    RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING) AS n FROM generate_series(1, 900)) q WHERE k = 1",
        plain: "false",
        here: Here::Right("true"),
    },
    EngineDefect {
        name: "a regular expression of a text with a backslash",
        upstream: None,
        statement: r"SELECT x FROM (VALUES ('a\c'), ('ac'), ('%')) v(x) WHERE x ~ '\\'",
        plain: "%",
        here: Here::Right(r"a\c"),
    },
    EngineDefect {
        name: "groups of `regexp_match` that took no part in the match",
        upstream: None,
        statement: "SELECT (regexp_match('abc', '(x)?(b)'))[2] AS second",
        plain: "NULL",
        here: Here::Right("b"),
    },
    EngineDefect {
        name: "`date_trunc` of an instant before 1970 to milliseconds",
        upstream: None,
        statement: "SELECT date_trunc('millisecond', timestamp '1969-06-03 10:59:00.123456') = \
                    timestamp '1969-06-03 10:59:00.123' AS down",
        plain: "false",
        here: Here::Right("true"),
    },
    EngineDefect {
        name: "a frame by RANGE whose distance has more digits than its key",
        upstream: None,
        statement: "SELECT count(*) OVER (ORDER BY CAST(x AS DECIMAL(10, 2)) RANGE BETWEEN 0.005 PRECEDING AND CURRENT ROW) AS n \
                    FROM (VALUES (1.00), (1.01)) v(x) ORDER BY n",
        plain: "1; 2",
        here: Here::Right("1; 1"),
    },
    EngineDefect {
        name: "a number as the distance of a frame by RANGE over dates",
        upstream: None,
        statement: "SELECT count(*) OVER (ORDER BY CAST(x AS DATE) RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n \
                    FROM (VALUES ('2026-01-01'), ('2026-01-02'), ('2026-01-20')) v(x) ORDER BY n",
        plain: "1; 2; 3",
        here: Here::Refused("write an interval, as in INTERVAL '1 day'"),
    },
    EngineDefect {
        name: "the year of a time compared with one after 2262",
        upstream: None,
        statement: "SELECT count(*) AS n FROM (VALUES (timestamp '2024-02-29')) v(x) WHERE extract(year FROM x) < 3000",
        plain: "0",
        here: Here::Right("1"),
    },
    EngineDefect {
        name: "the order of arrays and rows with NULL",
        upstream: None,
        statement: "SELECT x < y AS less, x > y AS greater FROM (VALUES (make_array(1, NULL), make_array(1, 2))) v(x, y)",
        plain: "true|false",
        here: Here::Right("false|true"),
    },
    EngineDefect {
        name: "the order of the results of a moving frame",
        upstream: None,
        statement: "SELECT count(*) OVER (PARTITION BY k ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n \
            FROM (VALUES ('a', 1), ('a', 2), ('b', 3)) v(k, i) ORDER BY n",
        plain: "1; 2; 1",
        here: Here::Right("1; 1; 2"),
    },
    EngineDefect {
        name: "fields of the difference of two times",
        upstream: None,
        statement: "SELECT extract(minute FROM TIMESTAMP '2026-06-01 03:10:00' - TIMESTAMP '2026-06-01 00:00:00') AS m",
        plain: "190",
        here: Here::Right("10"),
    },
    EngineDefect {
        name: "date_bin far from its origin",
        upstream: None,
        statement: "SELECT date_bin(interval '7 days', timestamp '2026-07-01 12:00:00', arrow_cast('1700-01-01', 'Timestamp(us)')) AS b",
        plain: "NULL",
        here: Here::Right("2026-06-26T00:00:00"),
    },
    EngineDefect {
        name: "a time cast to fewer digits",
        upstream: None,
        statement: "SELECT CAST(CAST(timestamp '1969-12-31 23:59:59.5' AS timestamp(0)) AS text) AS t",
        plain: "1970-01-01T00:00:00",
        here: Here::Right("1969-12-31T23:59:59"),
    },
    EngineDefect {
        name: "the seconds of an instant since 1970",
        upstream: None,
        statement: "SELECT extract(epoch FROM timestamp '2200-01-01 00:00:01') = 7258118401 AS t",
        plain: "false",
        here: Here::Right("true"),
    },
    EngineDefect {
        name: "intervals in an array",
        upstream: None,
        statement: "SELECT count(*) FROM (VALUES (make_array(interval '1 month'))) a(x) \
            JOIN (VALUES (make_array(interval '30 days'))) b(y) ON a.x = b.y",
        plain: "0",
        here: Here::Right("1"),
    },
    EngineDefect {
        name: "hours in the distance of a frame by RANGE over dates",
        upstream: None,
        statement: "SELECT count(*) OVER (ORDER BY d RANGE BETWEEN INTERVAL '36 hours' PRECEDING AND INTERVAL '12 hours' PRECEDING) AS n \
                    FROM (VALUES (DATE '2026-06-01'), (DATE '2026-06-02')) v(d) ORDER BY n",
        plain: "1; 2",
        here: Here::Right("0; 1"),
    },
    EngineDefect {
        name: "the first rows by rows or arrays with NULL",
        upstream: None,
        statement: "SELECT count(*) FROM (SELECT k FROM (SELECT nullif(greatest(value, 2000), 2000) AS k, value AS v \
                    FROM generate_series(1, 4000)) s ORDER BY (k, v) LIMIT 100) q WHERE k IS NULL",
        plain: "100",
        here: Here::Right("0"),
    },
    EngineDefect {
        name: "`array_agg` and `string_agg` ordered by rows with NULL",
        upstream: None,
        statement: "SELECT array_agg(v ORDER BY (k, v)) = array_agg(v ORDER BY k, v) AS t FROM \
                    (SELECT nullif(value % 5, 2) AS k, value AS v FROM generate_series(1, 3000)) s",
        plain: "false",
        here: Here::Right("true"),
    },
    EngineDefect {
        name: "the largest or smallest of infinities and NaN with GROUP BY",
        upstream: None,
        statement: "SELECT max(v) = CAST('-Infinity' AS DOUBLE) AS t FROM (VALUES (1, CAST('-Infinity' AS DOUBLE))) x(g, v) GROUP BY g",
        plain: "false",
        here: Here::Right("true"),
    },
    EngineDefect {
        name: "an origin of date_bin without a zone",
        upstream: None,
        statement: "SELECT date_bin(interval '6 hours', arrow_cast('2026-06-24 12:30:00', 'Timestamp(ns, \"Europe/Berlin\")'), \
            timestamp '2026-06-24 00:00:00') AS b",
        plain: "2026-06-24T08:00:00+02:00",
        here: Here::Right("2026-06-24T12:00:00+02:00"),
    },
    EngineDefect {
        name: "minutes of zones that were seconds apart from those of UTC",
        upstream: None,
        statement: "SELECT extract(epoch FROM date_trunc('minute', arrow_cast(44625610, 'Timestamp(s, \"Africa/Monrovia\")'))) = 44625570 AS t",
        plain: "false",
        here: Here::Right("true"),
    },
    EngineDefect {
        name: "a number without a unit in a text that is cast to an interval",
        upstream: None,
        statement: "SELECT timestamp '2026-01-01' + x::interval AS t FROM (VALUES ('5')) v(x)",
        plain: "2026-06-01T00:00:00",
        here: Here::Right("2026-01-01T00:00:05"),
    },
    EngineDefect {
        name: "NULL as the flags of a regular expression",
        upstream: None,
        statement: "SELECT regexp_match('abc', 'b', NULL) IS NULL AS m, regexp_like('abc', 'b', NULL) IS NULL AS l",
        plain: "false|false",
        here: Here::Right("true|true"),
    },
    EngineDefect {
        name: "numbers of two types in EXCEPT and INTERSECT",
        upstream: None,
        statement: "SELECT x / 2 AS h FROM (SELECT 3 AS x EXCEPT SELECT 4e0) q",
        plain: "1",
        here: Here::Right("1.5"),
    },
];
