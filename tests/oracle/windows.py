"""Window functions, their frames and their filters, DISTINCT ON and QUALIFY, compared with DuckDB.

Refused are aggregates that the engine cannot compute over moving frames, and frames whose start is behind their end.

ORACLE_WINDOWS statements (120) of ORACLE_SEED (1), over rows of their own, with NULLs and equal values among them.
"""

import collections
import os
import random
import re

import duckdb
from compare import same
from fronts import Refused, Shell
from oracle import INTERNAL

ROWS = """(1, 'a', 3, 1.5e0, 'x', DATE '2026-01-01', true), (2, 'a', NULL, 2.5e0, 'y', DATE '2026-01-02', false),
(3, 'b', 3, NULL, 'x', DATE '2026-01-02', NULL), (4, 'b', 1, -1.0e0, NULL, DATE '2026-01-05', true), (5, NULL, 7, 0.5e0, 'z', NULL, false),
(6, 'a', 1, 4.0e0, 'y', DATE '2026-01-09', true), (7, 'b', NULL, 1.5e0, 'w', DATE '2026-01-31', NULL), (8, 'a', 2, 3.25e0, NULL, NULL, true),
(9, 'c', 5, 1.5e0, 'x', DATE '2026-02-01', false), (10, 'b', 3, 8.0e0, 'v', DATE '2026-02-03', true)"""
TABLE = f"WITH t AS (SELECT * FROM (VALUES {' '.join(ROWS.split())}) AS v(i, k, n, x, s, d, b)) "
PARTITIONS = ["", "", "PARTITION BY k", "PARTITION BY b", "PARTITION BY k, b", "PARTITION BY n % 2"]
ORDERS = ["i", "n, i", "s, i", "d, i", "k, x, i"]
# Values, for each type of key, that a frame by RANGE goes back or ahead.
RANGES = {"n": ["1", "2", "0"], "i": ["1", "3"], "x": ["1.0", "0.5"], "d": ["INTERVAL '1 day'", "INTERVAL '1 month'", "INTERVAL '30 days'"]}
# DuckDB takes a frame between 30 days and 1 month in one direction for an empty one. PostgreSQL compares the instants, as is done here.
EMPTY_IN_DUCKDB = re.compile(r"BETWEEN INTERVAL '(30 days|1 month)' (\w+) AND INTERVAL '(?!\1)(?:30 days|1 month)' \2")
CONDITIONS = ["n > 1", "b", "s <> 'x'", "i % 2 = 0", "x IS NOT NULL"]


class Windows:
    def __init__(self, seed):
        self.rng = random.Random(f"windows {seed}")

    def pick(self, items):
        return self.rng.choice(items)

    def bounds(self, offset):
        """A frame's start and end. Offsets of one direction may be in the wrong order."""
        places = ["UNBOUNDED PRECEDING", "{} PRECEDING", "CURRENT ROW", "{} FOLLOWING", "UNBOUNDED FOLLOWING"]
        start = self.rng.randrange(4)
        end = self.rng.randrange(max(start, 1), 5)
        return f"BETWEEN {places[start].format(offset())} AND {places[end].format(offset())}"

    def direction(self):
        return self.pick(["", "", " DESC", " NULLS FIRST", " DESC NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST"])

    def over(self, exact):
        """A window; `exact` if the function depends on the order of equal rows."""
        partition, kind = self.pick(PARTITIONS), self.rng.random()
        if kind < 0.45 or exact:
            keys = ", ".join(key + self.direction() for key in self.pick(ORDERS).split(", "))
            frame = "ROWS " + self.bounds(lambda: self.pick("0123")) if self.rng.random() < 0.7 else ""
        elif kind < 0.75:
            key = self.pick(list(RANGES))
            keys = key + self.direction()
            frame = "RANGE " + self.bounds(lambda: self.pick(RANGES[key]))
        elif kind < 0.9:
            keys = self.pick(["n", "s", "d", "k, b"]) + self.direction()
            frame = "GROUPS " + self.bounds(lambda: self.pick("012"))
        else:
            keys = frame = ""
        return " ".join(part for part in [partition, keys and f"ORDER BY {keys}", frame] if part)

    def function(self):
        """A function's call in the engine and in DuckDB, and whether it depends on the order of equal rows."""
        value = self.pick(["n", "x", "s", "i", "d", "n + i"])
        number = self.pick(["n", "x", "i", "n * 2"])
        kind = self.rng.random()
        where = f" FILTER (WHERE {self.pick(CONDITIONS)})" if self.rng.random() < 0.3 else ""
        if kind < 0.5:
            call = self.pick([f"sum({number})", f"avg({number})", "count(*)", f"count({value})", f"min({value})", f"max({value})", "bool_and(b)",
                              "bool_or(b)", f"stddev({number})", f"var_pop({number})", "sum(DISTINCT n)", "count(DISTINCT s)", "median(x)"])
            return call + where, call + where, False
        if kind < 0.62:
            call = self.pick(["string_agg(s, ',')", "array_agg(n)"])
            return call + where, call + where, True
        if kind < 0.75:
            call = self.pick(["row_number()", "ntile(3)", "ntile(20)"])
            return call, call, True
        if kind < 0.83:
            call = self.pick(["rank()", "dense_rank()", "percent_rank()", "cume_dist()"])
            return call, call, True
        name, more = self.pick([("first_value", ""), ("last_value", ""), ("nth_value", ", 2"), ("lag", ""), ("lead", ""), ("lag", ", 2"),
                                ("lead", ", 3"), ("lag", ", 0"), ("lead", ", -1"), ("lag", ", 1, 0"), ("lead", ", 2, -5")])
        value = number if more.count(",") > 1 else value
        nulls = self.pick(["", "", "", " IGNORE NULLS", " RESPECT NULLS"])
        return f"{name}({value}{more}){nulls}", f"{name}({value}{more}{nulls})", True

    def statement(self):
        """The statement in the engine's SQL and in DuckDB's."""
        if self.rng.random() < 0.08:
            keys = self.pick(["k", "b", "n % 2", "k, b"])
            directed = ", ".join(key + self.direction() for key in [*keys.split(", "), *self.pick(ORDERS).split(", ")])
            both = f"SELECT DISTINCT ON ({keys}) i, k, n FROM t ORDER BY {directed}"
            return TABLE + both, TABLE + both
        functions = [self.function() for _ in range(self.pick([1, 1, 2]))]
        calls = [(function, self.over(function[2])) for function in functions]
        where = f" WHERE {self.pick(CONDITIONS)}" if self.rng.random() < 0.2 else ""
        tail = " ORDER BY i"
        if self.rng.random() < 0.2:
            tail += f" LIMIT {self.rng.randint(0, 5)}"
        texts, kept = [], self.rng.random() < 0.1
        for at in (0, 1):
            items = ", ".join(f"{function[at]} OVER ({over}) AS w{number}" for number, (function, over) in enumerate(calls))
            qualified = f" QUALIFY {calls[0][0][at]} OVER ({calls[0][1]}) IS NOT NULL" if kept else ""
            texts.append(f"{TABLE}SELECT i, {items} FROM t{where}{qualified}{tail}")
        return tuple(texts)


def main():
    seed, number = int(os.environ.get("ORACLE_SEED", 1)), int(os.environ.get("ORACLE_WINDOWS", 120))
    windows = Windows(seed)
    statements = [windows.statement() for _ in range(number)]
    database, counts = duckdb.connect(), collections.Counter()
    database.execute("SET default_null_order = 'nulls_last'")
    answers = Shell([os.environ["SAVEDSEARCH"]], dict(os.environ)).run([statement for statement, _ in statements])
    for (statement, theirs), ours in zip(statements, answers):
        if EMPTY_IN_DUCKDB.search(statement):
            counts["no truth"] += 1
            continue
        try:
            right = database.execute(theirs).fetchall()
        except duckdb.Error:
            counts["no truth"] += 1
            continue
        if isinstance(ours, Refused) and INTERNAL.search(str(ours)):
            counts["internal"] += 1
            print(f"== internal: {statement[len(TABLE):]}\n   came:  {ours}")
        elif isinstance(ours, Refused):
            counts["refused"] += 1
        elif same(ours, right, True):
            counts["same"] += 1
        else:
            counts["different"] += 1
            print(f"== different: {statement[len(TABLE):]}\n   came:  {ours}\n   right: {right}")
    print(f"windows: {number} statements, ORACLE_SEED={seed}: " + ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts)))
    raise SystemExit(counts["different"] + counts["internal"] > 0)


main()
