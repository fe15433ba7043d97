"""Subqueries that refer to a row of two queries around them, compared with SQLite: DuckDB 1.5 returns wrong rows for some of them.

ORACLE_NESTED statements (150) of ORACLE_SEED (1), over rows of their own, with NULLs among them.
"""

import os
import random
import sqlite3

from fronts import Refused, Shell

S = [("1", 1), ("2", 2), ("3", None), ("4", 4), ("5", 2)]
B = [("1", 1), ("1", 2), ("2", None), ("3", 3), ("4", 1), ("5", 5), (None, 2)]
COMPARISONS = ["=", "=", "<>", "<=", "<", ">="]


def rows_of(table):
    literal = {None: "NULL"}
    return ", ".join(f"({literal.get(a, repr(a))}, {literal.get(v, v)})" for a, v in table)


class Nested:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def compare(self, left, right):
        return f"{left} {self.rng.choice(COMPARISONS)} {right}"

    def innermost(self, outermost, middle, level):
        """A condition with a subquery that compares with a row of both queries around it."""
        table, alias, columns = self.rng.choice("sb"), f"e{level}", self.rng.choices("av", k=2)
        where = [self.compare(f"{alias}.{column}", f"{of}.{column}") for column, of in zip(columns, (outermost, middle))]
        if level < 2 and self.rng.random() < 0.3:
            where.append(self.innermost(outermost, alias, level + 1))
        source = f"FROM {table} {alias} WHERE {' AND '.join(where)}"
        negated = self.rng.choice(["", "NOT "])
        value = self.rng.choice(["count(*)", f"max({alias}.v)", f"min({alias}.v)"])
        return self.rng.choice([
            f"{negated}EXISTS (SELECT 1 {source})",
            f"{middle}.v {negated}IN (SELECT {alias}.v {source})",
            f"(SELECT {value} {source}) {self.rng.choice(['=', '>', '<>'])} {self.rng.randint(0, 3)}",
        ])

    def statement(self):
        outer, middle = self.rng.choices("sb", k=2)
        where = self.innermost("c", "d", 0)
        if self.rng.random() < 0.5:
            where += f" AND {self.compare('d.a', 'c.a')}"
        source, negated = f"FROM {middle} d WHERE {where}", self.rng.choice(["", "NOT "])
        value = self.rng.choice(["count(*)", "max(d.v)", "sum(d.v + c.v)"])
        tests = [f"{negated}EXISTS (SELECT 1 {source})", f"c.v {negated}IN (SELECT d.v {source})"]
        shown = self.rng.choice([*tests, f"(SELECT {value} {source})"])
        if shown in tests and self.rng.random() < 0.5:
            return f"SELECT c.a, c.v FROM {outer} c WHERE {shown}"
        return f"SELECT c.a, c.v, {shown} AS x FROM {outer} c"


def in_one_form(rows):
    return sorted(([int(cell) if isinstance(cell, (bool, int)) else cell for cell in row] for row in rows), key=str)


def main():
    seed, number = int(os.environ.get("ORACLE_SEED", 1)), int(os.environ.get("ORACLE_NESTED", 150))
    tables = f"WITH s(a, v) AS (VALUES {rows_of(S)}), b(a, v) AS (VALUES {rows_of(B)}) "
    nested = Nested(seed)
    statements = [tables + nested.statement() for _ in range(number)]
    truth, failed = sqlite3.connect(":memory:"), 0
    for statement, ours in zip(statements, Shell([os.environ["SAVEDSEARCH"]], dict(os.environ)).run(statements)):
        right = in_one_form(truth.execute(statement).fetchall())
        if isinstance(ours, Refused) or in_one_form(ours) != right:
            failed += 1
            print(f"== different: {statement}\n   came:  {ours}\n   right: {right}")
    print(f"nested: {number} statements, ORACLE_SEED={seed}: {failed} different from SQLite")
    raise SystemExit(failed > 0)


main()
