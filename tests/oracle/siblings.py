"""Compares the rows that tests of the program expect with those of PostgreSQL and DuckDB: `siblings.txt` and `forms.txt`, which
describe their forms.

The program has no part in it. `tests/it/engine_defects.rs` and `tests/it/postgres/forms.rs` run the same statements.
"""

import datetime
import decimal
import math
import os
import pathlib
import re
import tempfile

import duckdb
import postgres

HERE = pathlib.Path(__file__).parent
# The tables of `tests/it/engine_defects.rs`. Integers of VALUES have 64 bits there.
TABLES = """
events(t, n): (timestamp '2026-06-01 09:00:00', 10), (timestamp '2026-06-01 03:00:00', 20), (timestamp '2026-06-02 01:00:00', 30), (timestamp '2026-06-01 17:00:00', 31)
words(id, w): (1, 'en'), (2, 'de'), (3, NULL)
owners(k): ('a'), ('b'), ('z')
facts(k, v): ('a', 1), ('a', NULL), ('b', 2)
scores(k, v, w): ('a', 1, 'x'), ('a', 2, 'x'), ('a', 3, 'y'), ('b', 4, 'y'), ('b', 5, NULL), (NULL, 6, 'x')
"""
WIDE = {"n", "id", "v"}
NUMBER = re.compile(r"-?(\d+(\.\d+)?(e[-+]?\d+)?|nan|inf|infinity)", re.IGNORECASE)
# A word behind a series that is no alias.
CLAUSES = "WHERE|ORDER|GROUP|HAVING|LIMIT|OFFSET|UNION|EXCEPT|INTERSECT|JOIN|LEFT|RIGHT|FULL|CROSS|WITH|WINDOW|ON"
SERIES = re.compile(rf"FROM (generate_series|range)\(([^()]*(?:\([^()]*\)[^()]*)*)\)(?! (?:AS )?\w+ ?\()(?: (?:AS )?(?!(?:{CLAUSES})\b)(\w+))?")
ARRAY = re.compile(r"((?:^|[(,=\[<>|@&]|\b(?:THEN|ELSE|SELECT|AND|OR|IN|ANY|VALUES|BETWEEN))\s*)\[")


def statements(path):
    """The statements of a file: for each the words of an engine by its name, the engines that give the rows, and the rows."""
    for block in path.read_text().split("\n\n"):
        lines = [line for line in block.strip("\n").split("\n") if not line.startswith("#")]
        end = next((at for at, line in enumerate(lines) if line.startswith("----")), None)
        if end is None:
            continue
        words, main = {}, []
        for line in lines[:end]:
            name, _, text = line.partition(": ")
            if name in ("postgresql", "duckdb"):
                words[name] = text
            else:
                main.append(line)
        yield "\n".join(main), words, lines[end].split()[1:], lines[end + 1:]


def translated(sql, engine):
    """A statement of the engine with PostgreSQL's or DuckDB's words for arrays, types and the column of a series."""
    sql = SERIES.sub(lambda found: f"FROM {found[1]}({found[2]}) AS {found[3] or 'series'}(value)", sql)
    while "make_array(" in sql:
        start = sql.index("make_array(")
        end, depth = start + len("make_array("), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(sql[end], 0)
            end += 1
        sql = f"{sql[:start]}ARRAY[{sql[start + len('make_array('):end - 1]}]{sql[end:]}"
    if engine == "postgresql":
        parts = sql.split("'")
        parts[::2] = [ARRAY.sub(r"\1ARRAY[", ARRAY.sub(r"\1ARRAY[", part)) for part in parts[::2]]
        sql = re.sub(r"(AS |::)double\b(?! precision)", r"\1double precision", "'".join(parts), flags=re.IGNORECASE)
    return sql


def shown(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        # The engine shows three digits of a fraction, or six.
        return value.isoformat(timespec="auto" if value.microsecond % 1000 or not value.microsecond else "milliseconds").replace("+00:00", "Z")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(shown(item) for item in value)}]"
    return str(value)


def close(ours, theirs):
    """True for equal values, or numbers that differ in the last digits of a floating-point number."""
    if ours == theirs or ours.replace("T", " ") == theirs.replace("T", " "):
        return True
    if NUMBER.fullmatch(ours) and NUMBER.fullmatch(theirs):
        one, other = float(ours), float(theirs)
        if not (math.isfinite(one) and math.isfinite(other)):
            return one == other or (math.isnan(one) and math.isnan(other))
        one, other = decimal.Decimal(ours), decimal.Decimal(theirs)
        return abs(one - other) <= max(abs(one), abs(other)) * decimal.Decimal("1e-9")
    if ours.startswith("[") and theirs.startswith("["):
        one, other = ours[1:-1].split(", "), theirs[1:-1].split(", ")
        return len(one) == len(other) and all(map(close, one, other))
    return False


def is_ordered(sql):
    """True if the statement itself has ORDER BY, not only a subquery or a window."""
    outside, depth = "", 0
    for at, part in enumerate(sql.split("'")):
        for letter in part if at % 2 == 0 else "":
            depth += {"(": 1, ")": -1}.get(letter, 0)
            outside += letter if depth == 0 else ""
    return "ORDER BY" in outside


def same(expected, rows, ordered):
    ours, theirs = [row.split("|") for row in expected], [[shown(cell) for cell in row] for row in rows]
    if not ordered:
        ours, theirs = sorted(ours), sorted(theirs)
    return len(ours) == len(theirs) and all(len(one) == len(other) and all(map(close, one, other)) for one, other in zip(ours, theirs))


def create(execute):
    for line in TABLES.strip().splitlines():
        table, _, rows = line.partition(": ")
        columns = re.search(r"\((.*)\)", table)[1].split(", ")
        items = ", ".join(f"CAST({name} AS bigint) AS {name}" if name in WIDE else name for name in columns)
        execute(f"CREATE TABLE {table.partition('(')[0]} AS SELECT {items} FROM (VALUES {rows}) AS t({', '.join(columns)})")
    execute("CREATE TABLE keys AS SELECT 'k' || (value % 1145) AS k FROM generate_series(1, 5000) AS s(value)")
    execute("CREATE TABLE absent AS SELECT CAST(1 AS bigint) AS k WHERE 1 > 1")


def compared(engines):
    counts = {}
    for sql, words, names, expected in statements(HERE / "siblings.txt"):
        for name in names:
            if name not in engines:
                continue
            text = translated(words.get(name, sql), name)
            try:
                rows = engines[name](text).fetchall()
                right = same(expected, rows, is_ordered(sql))
            except Exception as error:  # noqa: BLE001
                rows, right = str(error).strip(), False
            counts[name, right] = counts.get((name, right), 0) + 1
            if not right:
                print(f"== different: {text}\n   expected: {expected}\n   {name}: {rows}")
    return counts


def printed(connection, sql):
    """The lines that PostgreSQL prints for a statement, or its error."""
    result = connection.pgconn.exec_(sql.encode())
    if result.error_message:
        return [result.error_message.decode().strip()]
    cell = lambda row, at: "NULL" if (value := result.get_value(row, at)) is None else value.decode()  # noqa: E731
    return ["|".join(cell(row, at) for at in range(result.nfields)) for row in range(result.ntuples)]


def compared_forms(connection):
    """True for each statement of `forms.txt`, in each of its zones, whose lines PostgreSQL prints."""
    verdicts, zones = [], []
    for block in (HERE / "forms.txt").read_text().split("\n\n"):
        lines = block.strip("\n").split("\n")
        if lines[0].startswith("## "):
            zones = lines[0].partition(": ")[2].split(", ")
        if "----" not in lines:
            continue
        end = lines.index("----")
        for zone in zones:
            connection.execute(f"SET timezone = '{zone}'")
            came = printed(connection, "\n".join(lines[:end]))
            verdicts.append(came == lines[end + 1:])
            if not verdicts[-1]:
                print(f"== different in {zone}: {lines[:end]}\n   expected: {lines[end + 1:]}\n   postgresql: {came}")
    return verdicts


def main():
    database = duckdb.connect()
    database.execute("SET default_null_order = 'nulls_last'; SET TimeZone = 'UTC'; SET threads = 1")
    engines = {"duckdb": database.execute}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # PostgreSQL runs as another user
        server = postgres.Server(pathlib.Path(folder) / "postgres") if postgres.program("initdb") else None
        try:
            if server:
                server.load("siblings", {})
                connection = server.connect("siblings")
                engines["postgresql"] = connection.execute
            else:
                print("PostgreSQL is not installed: its rows are not compared")
            for execute in engines.values():
                create(execute)
            counts = compared(engines)
            forms = compared_forms(connection) if server else []
        finally:
            if server:
                server.close()
    print("siblings: " + ", ".join(f"{number} {'same' if right else 'different'} in {name}" for (name, right), number in sorted(counts.items())))
    print(f"forms: {forms.count(True)} same in postgresql, {forms.count(False)} different")
    raise SystemExit(any(not right for _, right in counts) or not all(forms))


main()
