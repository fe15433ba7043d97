"""SQL of the three engines, and each difference between them, with its reason.

A tree is written in five languages: `engine` (the shell and Flight SQL), `postgres` (the PostgreSQL server), and what DuckDB
must be asked for the same rows, `duckdb` for `engine` and `duckdb-pg` for `postgres`; `postgresql` is PostgreSQL itself. What is not listed in DIFFERENCES, or
commented below, is written the same way in all of them. The order of NULLs is a setting of DuckDB (worlds.settings).
"""

TEMPLATES = {
    "and": "({0} AND {1})",
    "or": "({0} OR {1})",
    "not": "(NOT {0})",
    "is null": "({0} IS NULL)",
    "is not null": "({0} IS NOT NULL)",
    "is true": "({0} IS TRUE)",
    "is not true": "({0} IS NOT TRUE)",
    "is false": "({0} IS FALSE)",
    "is not false": "({0} IS NOT FALSE)",
    "=": "({0} = {1})",
    "<>": "({0} <> {1})",
    "<": "({0} < {1})",
    "<=": "({0} <= {1})",
    ">": "({0} > {1})",
    ">=": "({0} >= {1})",
    "is distinct from": "({0} IS DISTINCT FROM {1})",
    "is not distinct from": "({0} IS NOT DISTINCT FROM {1})",
    "between": "({0} BETWEEN {1} AND {2})",
    "not between": "({0} NOT BETWEEN {1} AND {2})",
    "case": "CASE WHEN {0} THEN {1} ELSE {2} END",
    "case2": "CASE WHEN {0} THEN {1} WHEN {2} THEN {3} END",
    "simple case": "CASE {0} WHEN {1} THEN {2} ELSE {3} END",
    "coalesce": "coalesce({0}, {1})",
    "nullif": "nullif({0}, {1})",
    "greatest": "greatest({0}, {1})",
    "least": "least({0}, {1})",
    "exists": "EXISTS ({0})",
    "not exists": "(NOT EXISTS ({0}))",
    "scalar": "({0})",
    "in subquery": "({0} IN ({1}))",
    "not in subquery": "({0} NOT IN ({1}))",
    "row in subquery": "(({0}, {1}) IN ({2}))",
    "row not in subquery": "(({0}, {1}) NOT IN ({2}))",
    "row =": "(({0}, {1}) = ({2}, {3}))",
    "= any": "({0} = ANY ({1}))",
    "<> all": "({0} <> ALL ({1}))",
    "any": "({0} {2} ANY ({1}))",
    "all": "({0} {2} ALL ({1}))",
    "like": "({0} LIKE {1})",
    "not like": "({0} NOT LIKE {1})",
    "ilike": "({0} ILIKE {1})",
    "similar to": "({0} SIMILAR TO {1})",
    "not similar to": "({0} NOT SIMILAR TO {1})",
    "regex": "({0} ~ {1})",
    "starts_with": "starts_with({0}, {1})",
    "+": "({0} + {1})",
    "-": "({0} - {1})",
    "*": "({0} * {1})",
    "negate": "(- {0})",
    "divide": "({0} / {1})",
    "modulo": "({0} % {1})",
    "abs": "abs({0})",
    "float": "CAST({0} AS DOUBLE PRECISION)",
    "float to int": "CAST({0} AS BIGINT)",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "int text": "CAST({0} AS VARCHAR)",
    "text int": "CAST(CAST({0} AS VARCHAR) AS BIGINT)",
    "length": "length({0})",
    "strpos": "strpos({0}, {1})",
    "concat operator": "({0} || {1})",
    "concat": "concat({0}, {1})",
    "lower": "lower({0})",
    "substr": "substr({0}, {1}, {2})",
    "left": "left({0}, {1})",
    "right": "right({0}, {1})",
    "replace": "replace({0}, {1}, {2})",
    "trim": "trim({0})",
    "split_part": "split_part({0}, {1}, {2})",
    "date": "CAST({0} AS DATE)",
    "date_trunc": "date_trunc({1}, {0})",
    "shift": "({0} + {1})",
    "shift back": "({0} - {1})",
    "interval": "INTERVAL '{0}'",
    "cast interval": "CAST('{0}' AS INTERVAL)",
    "rounded": "CAST(round({0}) AS BIGINT)",
    "mod": "mod({0}, {1})",
    "in array": "({0} = ANY (ARRAY[{1}, {2}]))",
    "times": "({0} * {1})",
    "guarded": "(({1} <> 0) AND (({0} / {1}) > {2}))",
    "interval sum": "({0} + {1})",
    "interval difference": "({0} - {1})",
    "age": "({0} - {1})",
    "epoch": "CAST(extract(epoch FROM {0}) AS BIGINT)",
    "extract": "CAST(extract({1} FROM {0}) AS BIGINT)",
    "local day": "CAST(({0} AT TIME ZONE {1}) AS DATE)",
    "local hour": "CAST(extract(hour FROM ({0} AT TIME ZONE {1})) AS BIGINT)",
    "cardinality": "cardinality({0})",
    "element": "({0})[{1}]",
    "contains": "array_has({0}, {1})",
    "array_to_string": "array_to_string({0}, ',')",
    "array": "[{0}]",
    "grouping": "grouping({0})",
    "initcap": "initcap({0})",
    "reverse": "reverse({0})",
    "regexp_replace": "regexp_replace({0}, '[aeiou]', '.', 'g')",
    "to_hex": "to_hex(length({0}))",
    "chr": "chr(CAST(65 + length({0}) AS BIGINT))",
}


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def similar(pattern):
    """A SIMILAR TO pattern as a regular expression."""
    return pattern.replace(".", "\\.").replace("%", ".*").replace("_", ".")


# Types of typed NULLs.
NULLS = {"int": "BIGINT", "text": "VARCHAR", "bool": "BOOLEAN", "float": "DOUBLE PRECISION", "ts": "TIMESTAMPTZ", "date": "DATE",
         "list": "VARCHAR[]"}

# IN of a row, member by member with three values.
ANY_ROW = (
    "SELECT CASE WHEN bool_or(same) THEN true WHEN count(*) > count(same) THEN NULL ELSE false END "
    "FROM (SELECT ({0} = __rows.first) AND ({1} = __rows.second) AS same FROM ({2}) AS __rows(first, second))"
)

# (languages, operator): what is written instead of the template, and the reason.
DUCKDB = ("duckdb", "duckdb-pg")
DIFFERENCES = {
    (DUCKDB, "divide"): ("({0} // {1})", "`/` of integers divides to a float in DuckDB; `//` truncates as `/` does elsewhere"),
    (("duckdb",), "float to int"): (
        "CAST(trunc({0}) AS BIGINT)",
        "a cast of a float to an integer truncates in the engine; it rounds in DuckDB and PostgreSQL",
    ),
    (DUCKDB, "cardinality"): ("len({0})", "another name"),
    (("duckdb",), "contains"): ("list_contains({0}, {1})", "another name"),
    (("postgres", "postgresql"), "contains"): ("({1} = ANY ({0}))", "array_has is not a function of PostgreSQL"),
    (("postgres", "postgresql"), "array"): ("ARRAY[{0}]", "PostgreSQL writes ARRAY before the brackets"),
    (("duckdb-pg",), "contains"): (
        "CASE WHEN {0} IS NULL THEN NULL WHEN len({0}) = 0 THEN false WHEN {1} IS NULL THEN NULL WHEN list_contains({0}, {1}) THEN true "
        "WHEN list_aggregate({0}, 'count') < len({0}) THEN NULL ELSE false END",
        "list_contains is false for an array with NULL that lacks the value; in PostgreSQL `= ANY` is NULL",
    ),
    (DUCKDB, "interval difference"): (
        "to_microseconds(CAST(epoch({0} - {1}) * 1000000 AS BIGINT))",
        "DuckDB compares days and hours of different signs one after the other, not the length of the intervals",
    ),
    (DUCKDB, "similar to"): (
        "regexp_full_match({0}, {1:similar})",
        "SIMILAR TO of DuckDB takes a regular expression, not a pattern of SQL",
    ),
    (DUCKDB, "not similar to"): ("(NOT regexp_full_match({0}, {1:similar}))", "as SIMILAR TO"),
    (DUCKDB, "row ="): (
        "(({0} = {2}) AND ({1} = {3}))",
        "rows of DuckDB are structures, in which NULL equals NULL; in SQL the comparison is NULL",
    ),
    (DUCKDB, "row in subquery"): (
        f"({ANY_ROW})",
        "a row with NULL in it is IN nothing but NULL in DuckDB; in SQL it is false if another member differs from that of every row",
    ),
    (DUCKDB, "row not in subquery"): (f"(NOT ({ANY_ROW}))", "as IN of a row"),
    (DUCKDB, "regex"): ("regexp_matches({0}, {1})", "`~` of DuckDB matches the whole text"),
    (("duckdb-pg",), "rounded"): (
        "CAST(round_even({0}, 0) AS BIGINT)",
        "round of double precision is half to even in PostgreSQL, half away from zero in DuckDB",
    ),
    (DUCKDB, "in array"): ("({0} IN ({1}, {2}))", "`= ANY` of an array with NULL is false in DuckDB, and NULL in PostgreSQL"),
    (DUCKDB, "guarded"): ("(({1} <> 0) AND (({0} // {1}) > {2}))", "as divide"),
    (DUCKDB, "float"): ("CAST({0} AS DOUBLE)", "another name of the type"),
}
RULES = {(language, op): template for (languages, op), (template, _) in DIFFERENCES.items() for language in languages}


class Part(str):
    """A rendered argument; `{0:similar}` translates a literal pattern."""

    def __format__(self, spec):
        return literal(similar(str(self)[1:-1].replace("''", "'"))) if spec == "similar" else str(self)


def expression(language, op, parts, fixed):
    duck = language.startswith("duckdb")
    if op == "column":
        return fixed[0]
    if op == "int":
        # Literals of DuckDB are 32 bits wide if they fit; those of the engine have 64.
        return f"{fixed[0]}::BIGINT" if duck else (f"({fixed[0]})" if fixed[0] < 0 else str(fixed[0]))
    if op in ("wide", "narrow"):
        return f"CAST({fixed[0]} AS {'BIGINT' if op == 'wide' else 'INT'})"
    if op.startswith("null "):
        type = NULLS[op[5:]]
        return f"CAST(NULL AS {'DOUBLE' if duck and op == 'null float' else type})"
    if op == "number":
        return str(fixed[0])
    if op == "text":
        return literal(fixed[0])
    if op == "bool":
        return fixed[0]
    if op == "instant":
        return f"TIMESTAMPTZ '{fixed[0]}'"
    if op == "instant text":
        # DuckDB takes the type of the other side as well, but not inside of functions.
        return f"TIMESTAMPTZ '{fixed[0]}'" if duck else f"'{fixed[0]}'"
    if op == "day":
        return f"DATE '{fixed[0]}'"
    if op in ("in list", "not in list"):
        word = "IN" if op == "in list" else "NOT IN"
        return f"({parts[0]} {word} ({', '.join(parts[1:])}))"
    if op == "array":
        parts = [", ".join(parts)]
    if duck and op == "interval" and " -" in fixed[0]:
        # As interval difference.
        return f"to_microseconds(CAST(epoch(INTERVAL '{fixed[0]}') * 1000000 AS BIGINT))"
    template = RULES.get((language, op)) or TEMPLATES[op]
    return template.format(*[Part(part) for part in parts], *fixed)


def join(language, kind):
    if language.startswith("duckdb"):
        # The engine's names of semi and anti joins.
        return {"LEFT SEMI JOIN": "SEMI JOIN", "LEFT ANTI JOIN": "ANTI JOIN"}.get(kind, kind)
    return kind


def suffix(language, words):
    """The direction of a sort key. NULLs come last unless it says otherwise; in PostgreSQL, first in a descending order."""
    return " DESC NULLS LAST" if language == "postgresql" and words == " DESC" else words
