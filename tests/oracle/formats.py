"""Each type through each format and protocol, and back: the same values everywhere, written down by hand.

A format that cannot hold a value is listed in LOSSES with its reason; nothing else may differ.
"""

import csv
import datetime
import decimal
import io
import json
import math
import pathlib
import re
import struct
import subprocess
import tempfile
import urllib.request

import adbc_driver_flightsql.dbapi as flightsql
import duckdb
import psycopg
import pyarrow.ipc
import pyarrow.parquet

from fronts import environment
from service import BINARY, Served

UTC = datetime.timezone.utc
D, T, DT, TD = decimal.Decimal, datetime.time, datetime.datetime, datetime.timedelta
# Type of SQL: (literal, value) of each row. Every type also has a NULL.
TYPES = {
    "VARCHAR": [
        ("'plain'", "plain"), ("''", ""), ("'it''s'", "it's"), ("'a,b;c'", "a,b;c"), ("'say \"hi\"'", 'say "hi"'),
        ("'two\nlines'", "two\nlines"), ("'carriage\rreturn'", "carriage\rreturn"), ("'tab\there'", "tab\there"),
        ("'back\\slash'", "back\\slash"), ("'日本 🚀 ß'", "日本 🚀 ß"), ("'NULL'", "NULL"), ("'\\N'", "\\N"), ("'\\.'", "\\."),
        ("' x '", " x "), ("'a|b'", "a|b"), ("'{a,\"b\"}'", '{a,"b"}'), ("'true'", "true"), ("'007'", "007"),
    ],
    "BIGINT": [("0", 0), ("-1", -1), (f"{2**63 - 1}", 2**63 - 1), (f"(-{2**63 - 1} - 1)", -(2**63)), (f"{2**53 + 1}", 2**53 + 1)],
    "INT": [("0", 0), ("2147483647", 2**31 - 1), ("-2147483648", -(2**31))],
    "SMALLINT": [("0", 0), ("32767", 2**15 - 1), ("-32768", -(2**15))],
    "TINYINT": [("0", 0), ("127", 127), ("-128", -128)],
    "BIGINT UNSIGNED": [("0", 0), (f"{2**63 - 1}", 2**63 - 1), (f"CAST({2**64 - 1} AS BIGINT UNSIGNED)", 2**64 - 1)],
    "DOUBLE": [("0", 0.0), ("0.1", 0.1), ("-1.5", -1.5), ("1e300", 1e300), ("5e-324", 5e-324), ("1e16", 1e16),
               ("'NaN'", math.nan), ("'inf'", math.inf), ("'-inf'", -math.inf)],
    "REAL": [("0", 0.0), ("0.25", 0.25), ("0.1", struct.unpack("f", struct.pack("f", 0.1))[0])],
    "BOOLEAN": [("TRUE", True), ("FALSE", False)],
    "DECIMAL(38, 10)": [("0", D(0)), ("'1.5'", D("1.5")), ("'-0.0000000001'", D("-0.0000000001")),
                        ("'1234567890123456789012345678.0123456789'", D("1234567890123456789012345678.0123456789"))],
    "DECIMAL(10, 2)": [("'0.05'", D("0.05")), ("'-12345678.90'", D("-12345678.90"))],
    "DATE": [("'2026-07-01'", DT(2026, 7, 1).date()), ("'1969-12-31'", DT(1969, 12, 31).date()), ("'1900-01-01'", DT(1900, 1, 1).date()),
             ("'9999-12-31'", DT(9999, 12, 31).date())],
    "TIMESTAMP": [("'2026-07-01T12:00:00'", DT(2026, 7, 1, 12)), ("'1969-12-31T23:59:59.5'", DT(1969, 12, 31, 23, 59, 59, 500000)),
                  ("'2026-07-01T00:00:00.123456'", DT(2026, 7, 1, 0, 0, 0, 123456))],
    "TIMESTAMPTZ": [("'2026-07-01T12:00:00Z'", DT(2026, 7, 1, 12, tzinfo=UTC)),
                    ("'2026-07-01T00:00:00.000001+02:00'", DT(2026, 6, 30, 22, 0, 0, 1, tzinfo=UTC))],
    "TIME": [("'10:00:00'", T(10)), ("'23:59:59.999999'", T(23, 59, 59, 999999)), ("'00:00:00.5'", T(0, 0, 0, 500000))],
    "INTERVAL": [("INTERVAL '2 days 3 hours'", TD(days=2, hours=3)), ("INTERVAL '90 minutes'", TD(minutes=90)),
                 ("INTERVAL '-1 second'", TD(seconds=-1)), ("INTERVAL '0.25 seconds'", TD(seconds=0.25))],
    "duration": [("TIMESTAMP '2026-07-01T00:00:00' - TIMESTAMP '2026-06-30T00:00:01'", TD(seconds=86399)),
                 ("TIMESTAMP '2026-07-01T00:00:00' - TIMESTAMP '2026-07-01T00:00:00.5'", TD(seconds=-0.5)),
                 ("TIMESTAMP '2026-07-01T00:00:00' - TIMESTAMP '2024-07-01T00:00:00'", TD(days=730))],
    "BYTEA": [("decode('00ff41', 'hex')", b"\x00\xffA"), ("decode('', 'hex')", b"")],
    "VARCHAR[]": [("['a', 'b']", ["a", "b"]), ("['', NULL, 'NULL']", ["", None, "NULL"]), ("['a,b', '\"', '\\', '{', ' x ']", ["a,b", '"', "\\", "{", " x "]),
                  ("arrow_cast([], 'List(Utf8)')", [])],
    "BIGINT[]": [("[1, NULL, -3]", [1, None, -3])],
    "DOUBLE[]": [("[0.5, NULL]", [0.5, None])],
    "BOOLEAN[]": [("[true, NULL, false]", [True, None, False])],
    "TIMESTAMPTZ[]": [("[TIMESTAMPTZ '2026-07-01T12:00:00Z']", [DT(2026, 7, 1, 12, tzinfo=UTC)])],
    "DATE[]": [("[DATE '2026-07-01', NULL]", [DT(2026, 7, 1).date(), None])],
    "struct": [("named_struct('a', 1, 'b', 'x')", {"a": 1, "b": "x"}), ("named_struct('a', NULL, 'b', '')", {"a": None, "b": ""})],
    "map": [("map(['k', 'l'], [1, NULL])", {"k": 1, "l": None})],
}
NESTED = ("struct", "map", *(name for name in TYPES if name.endswith("[]")))
REFUSED, SHOWN = "refused", "shown"
# Types whose literals need no cast.
UNCAST = ("duration", "BYTEA", "BIGINT UNSIGNED", "INTERVAL", *NESTED)
EMPTY = "NULL and the empty text are both empty (docs/shell.md)"
NUMBERS = "JSON has no such numbers"
# (format, type): values that cannot come back, what comes instead, and the reason.
LOSSES = {
    ("csv", "VARCHAR"): ([""], None, EMPTY),
    ("tsv", "VARCHAR"): ([""], None, EMPTY),
    ("csv", "BYTEA"): ([b""], None, EMPTY),
    ("tsv", "BYTEA"): ([b""], None, EMPTY),
    **{("mcp", type): (SHOWN, None, "lists and structures are written for people") for type in TYPES if type in NESTED},
    ("parquet", "INTERVAL"): (REFUSED, "not yet implemented", "the Parquet writer has no intervals"),
    ("parquet_in_duckdb", "INTERVAL"): (REFUSED, "not yet implemented", "as above"),
    ("json", "DOUBLE"): ([math.nan, math.inf, -math.inf], None, NUMBERS),
    ("ndjson", "DOUBLE"): ([math.nan, math.inf, -math.inf], None, NUMBERS),
}


def statement(type):
    """One statement for a type: its values in a fixed order, with a NULL at the end."""
    rows = []
    for number, (literal, _) in enumerate(TYPES[type]):
        rows.append(f"({number}, {literal if type in UNCAST else f'CAST({literal} AS {type})'})")
    rows.append(f"({len(rows)}, NULL)")
    return f"SELECT v FROM (VALUES {', '.join(rows)}) t(n, v) ORDER BY n"


def expected(form, type):
    lost, instead, _ = LOSSES.get((form, type), ([], None, ""))
    same = lambda a, b: isinstance(a, float) is isinstance(b, float) and (a == b or (a != a and b != b))
    return [instead if any(same(value, other) for other in lost) else value for _, value in TYPES[type]] + [None]


# -- values of text

def read(type, text, form):
    """Reads a value that a text format has for a type."""
    if text is None:
        return None
    if type == "VARCHAR":
        return text
    if type.endswith("[]"):
        parts = json.loads(text) if isinstance(text, str) else text
        return [read(type[:-2], part, "json") for part in parts]
    if type in ("struct", "map"):
        return json.loads(text) if isinstance(text, str) else text
    if type in ("DOUBLE", "REAL"):
        number = float(text)
        return struct.unpack("f", struct.pack("f", number))[0] if type == "REAL" else number
    if type.startswith("DECIMAL"):
        return D(text)
    if type in ("BIGINT", "INT", "SMALLINT", "TINYINT", "BIGINT UNSIGNED"):
        return int(text)
    if type == "BOOLEAN":
        return text if isinstance(text, bool) else {"true": True, "t": True, "false": False, "f": False}[text]
    if type == "DATE":
        return datetime.date.fromisoformat(text)
    if type in ("TIMESTAMP", "TIMESTAMPTZ"):
        at = DT.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text.replace("Z", "+00:00")))
        return at.astimezone(UTC) if at.tzinfo else at
    if type == "TIME":
        return T.fromisoformat(text)
    if type in ("INTERVAL", "duration"):
        return length(text)
    if type == "BYTEA":
        return bytes.fromhex(text.removeprefix("\\x"))
    raise ValueError(type)


UNITS = {"day": 86400, "hour": 3600, "min": 60, "sec": 1, "d": 86400, "h": 3600, "m": 60, "s": 1}


def length(text):
    if "P" in text:
        sign = -1 if text.startswith("-") else 1
        found = re.findall(r"(-?[\d.]+)([DHMS])", text)
        return sign * sum((TD(seconds=float(D(number)) * UNITS[unit.lower()]) for number, unit in found), TD())
    total = TD()
    clock = re.search(r"(-?)(\d+):(\d+):([\d.]+)", text)
    if clock:
        total = TD(hours=int(clock[2]), minutes=int(clock[3]), seconds=float(clock[4])) * (-1 if clock[1] else 1)
        text = text.replace(clock[0], "")
    for number, unit in re.findall(r"(-?[\d.]+) (day|hour|min|sec)", text):
        total += TD(seconds=float(number) * UNITS[unit])
    return total


def arrow(value):
    """A value of Arrow as Python has it."""
    if isinstance(value, pyarrow.MonthDayNano):
        assert value.months == 0
        return TD(days=value.days, microseconds=value.nanoseconds / 1000)
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    if isinstance(value, DT) and value.tzinfo:
        return value.astimezone(UTC)
    return value


# -- formats

class Formats:
    def __init__(self, served, agents, folder):
        self.served, self.agents, self.folder = served, agents, pathlib.Path(folder)
        self.flight_connection = flightsql.connect(served.uri, autocommit=True)
        self.postgres = psycopg.connect(f"host=127.0.0.1 port={served.postgres} dbname=savedsearch user=ada", autocommit=True)

    def shell(self, form, sql, path=None):
        command = [BINARY, "--base-url", self.served.base_url, "--quiet", "sql", "--format", form]
        command += ["-o", str(path)] if path else []
        run = subprocess.run([*command, "-c", sql], capture_output=True, env=environment())
        assert run.returncode == 0, (form, sql, run.stderr.decode())
        return run.stdout.decode()

    def json(self, type):
        rows = json.loads(self.shell("json", statement(type)), parse_float=D)
        return [read(type, row["v"], "json") for row in rows]

    def ndjson(self, type):
        lines = self.shell("ndjson", statement(type)).splitlines()
        return [read(type, json.loads(line, parse_float=D)["v"], "json") for line in lines]

    def csv(self, type, form="csv", delimiter=","):
        text = self.shell(form, statement(type))
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        return [read(type, row[0] if row and row[0] != "" else None, form) for row in rows[1:]]

    def tsv(self, type):
        return self.csv(type, "tsv", "\t")

    def parquet(self, type):
        path = self.folder / "v.parquet"
        self.shell("parquet", statement(type), path)
        return [arrow(value) for value in pyarrow.parquet.read_table(path)["v"].to_pylist()]

    def parquet_in_duckdb(self, type):
        path = self.folder / "d.parquet"
        self.shell("parquet", statement(type), path)
        database = duckdb.connect()
        database.execute("SET TimeZone = 'UTC'")
        # Parquet has no durations: other readers see the number of nanoseconds.
        value = "v / 1e9 * INTERVAL '1 second'" if type == "duration" else "v"
        rows = database.execute(f"SELECT {value} FROM '{path}'").fetchall()
        return [value.astimezone(UTC) if isinstance(value, DT) and value.tzinfo else value for (value,) in rows]

    def arrow(self, type):
        path = self.folder / "v.arrow"
        self.shell("arrow", statement(type), path)
        with pyarrow.ipc.open_stream(path) as stream:
            return [arrow(value) for value in stream.read_all()["v"].to_pylist()]

    def flight(self, type):
        with self.flight_connection.cursor() as cursor:
            cursor.execute(statement(type))
            return [arrow(value) for value in cursor.fetch_arrow_table()["v"].to_pylist()]

    def narrow(self, type, values):
        """The nearest REAL: psycopg reads the text of one as a float of 64 bits."""
        if type != "REAL":
            return values
        return [value if value is None else struct.unpack("f", struct.pack("f", value))[0] for value in values]

    def pg(self, type, binary):
        with self.postgres.cursor(binary=binary) as cursor:
            cursor.execute(statement(type))
            self.oid = cursor.description[0].type_code
            return self.narrow(type, [row[0] for row in cursor.fetchall()])

    def postgres_text(self, type):
        return self.pg(type, False)

    def postgres_binary(self, type):
        return self.pg(type, True)

    def copied(self, type, form):
        self.pg(type, False)
        with self.postgres.cursor().copy(f"COPY ({statement(type)}) TO STDOUT (FORMAT {form})") as copy:
            copy.set_types([self.oid])
            return self.narrow(type, [row[0] for row in copy.rows()])

    def copy_text(self, type):
        return self.copied(type, "text")

    def copy_binary(self, type):
        return self.copied(type, "binary")

    def copy_csv(self, type):
        """COPY writes NULL as nothing, and the empty text in quotes."""
        with self.postgres.cursor().copy(f"COPY ({statement(type)}) TO STDOUT (FORMAT csv)") as copy:
            text = b"".join(bytes(part) for part in copy).decode()
        # With quotes as data, the reader of Python keeps them: records end where quotes are even.
        cells, cell = [], ""
        for line in re.split(r"(?<=\n)", text):
            cell += line
            if line and cell.count('"') % 2 == 0:
                cells.append(cell[:-1])
                cell = ""
        oid, loader = self.oid_of(type), psycopg.adapt.Transformer(self.postgres)
        values = []
        for cell in cells:
            if cell == "":
                values.append(None)
                continue
            plain = cell[1:-1].replace('""', '"') if cell.startswith('"') else cell
            values.append(loader.get_loader(oid, psycopg.pq.Format.TEXT).load(plain.encode()))
        return self.narrow(type, values)

    def oid_of(self, type):
        self.pg(type, False)
        return self.oid

    def mcp(self, type):
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "query", "arguments": {"sql": statement(type)}}}
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        request = urllib.request.Request(f"http://{self.agents.address}/mcp", json.dumps(call).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = answer.read().decode()
        body = next(line[5:] for line in body.splitlines() if line.startswith("data:") and len(line) > 6) if "data:" in body else body
        text = json.loads(body)["result"]["content"][0]["text"]
        # A header, the rows, an empty line and the summary.
        lines = text.rstrip("\n").split("\n")[1:-2]
        return [read(type, cell, "mcp") if cell is not None else None for cell in map(self.unescaped, lines)]

    @staticmethod
    def unescaped(line):
        if line == "NULL":
            return None
        return re.sub(r"\\(.)", lambda found: {"n": "\n", "r": "\r", "t": "\t"}.get(found[1], found[1]), line)


FORMATS = ["json", "ndjson", "csv", "tsv", "parquet", "parquet_in_duckdb", "arrow", "flight", "postgres_text",
           "postgres_binary", "copy_text", "copy_binary", "copy_csv", "mcp"]


def equal(a, b):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    if isinstance(a, bool) is not isinstance(b, bool):
        return False
    return a == b and (a is None) == (b is None)


def main():
    failures, checked = [], 0
    with Served("--mentions", "40", "--searches", "2") as served, tempfile.TemporaryDirectory() as folder:
        with Served(command="mcp", base_url=served.base_url) as agents:
            formats = Formats(served, agents, folder)
            for type in TYPES:
                for form in FORMATS:
                    lost, reason, _ = LOSSES.get((form, type), (None, None, None))
                    if lost == SHOWN:
                        continue
                    checked += 1
                    want = expected(form, type) if lost != REFUSED else None
                    try:
                        came = getattr(formats, form)(type)
                    except Exception as error:  # noqa: BLE001
                        if lost == REFUSED and reason in str(error):
                            continue
                        failures.append(f"{type} as {form}: {error!r}"[:300])
                        continue
                    if not equal(came, want):
                        pairs = [(a, b) for a, b in zip(came, want) if not equal(a, b)] or [(came, want)]
                        failures.append(f"{type} as {form}: {pairs}"[:300])
            formats.flight_connection.close()
            formats.postgres.close()
    print("\n".join(failures) or f"formats: {checked} pairs of type and format have the same values")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
