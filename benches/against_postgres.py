"""The servers over a store, measured from outside: the same statements through our PostgreSQL and Flight SQL servers, through
DuckDB over the same store, and through PostgreSQL over a table with the same rows. Prints the times and the ratios. Exits with 1
if one of them misses its goal.

    pip install duckdb duckdb-extension-ducklake duckdb-extension-sqlite-scanner pytz 'psycopg[binary]' adbc-driver-flightsql pyarrow
    SAVEDSEARCH_BIN=target/release/savedsearch python benches/against_postgres.py [MENTIONS [RUNS]]

Requires the programs of a PostgreSQL server. The store is filled from the simulator and compacted.
"""

import contextlib
import os
import pathlib
import sys
import tempfile
import threading
import time

import adbc_driver_flightsql.dbapi as flightsql
import psycopg
from program import median, run, start

sys.path[1:1] = [str(pathlib.Path(__file__).parent.parent / "tests" / name) for name in ("clients", "oracle")]
import ducklake  # noqa: E402
import postgres  # noqa: E402

MENTIONS, RUNS = (int(number) for number in (sys.argv[1:] + ["53000", "9"][len(sys.argv) - 1 :]))
NOW, KEY, SINCE = "2026-07-01T12:00:00Z", "demo-key-comms", "2026-01-01"
# Clients at once, and seconds in which they ask.
CLIENTS, SECONDS = 8, 5
COLUMNS = "aid, id, published_at, title, text, language, source_type, author_name, reach"
WINDOW = f"published_at >= TIMESTAMP '{SINCE} 00:00:00+00' AND published_at < TIMESTAMP '2026-06-25 00:00:00+00'"
QUESTIONS = {
    "ILIKE": f"SELECT count(*) FROM mentions WHERE {WINDOW} AND text ILIKE '%recall%'",
    "by source": f"SELECT source_type, count(*) FROM mentions WHERE {WINDOW} GROUP BY 1 ORDER BY 1",
    "by language": f"SELECT language, count(*), sum(reach) FROM mentions WHERE {WINDOW} GROUP BY 1 ORDER BY 1",
    "by day": f"SELECT date_trunc('day', published_at), count(*) FROM mentions WHERE {WINDOW} GROUP BY 1 ORDER BY 1",
}
SMALL = (
    "SELECT language, count(*) FROM mentions WHERE aid = 'AID' AND published_at >= TIMESTAMP '2026-06-10 00:00:00+00' "
    "AND published_at < TIMESTAMP '2026-06-17 00:00:00+00' GROUP BY 1 ORDER BY 1"
)
# Goals: milliseconds of a small statement, and shares of PostgreSQL's statements a second and of its rows of text a second.
SMALL_GOAL, RATE_GOAL, FETCH_GOAL = 5, 0.3, 1.0


def compared(name, ways, sql):
    """Prints the times of a statement by way. All ways must return the same rows."""
    times, first = {}, None
    for way, ask in ways.items():
        times[way], rows = median(ask, sql, RUNS)
        rows = [tuple(map(str, row)) for row in rows] if name != "by day" else [(row[1]) for row in rows]
        first = rows if first is None else first
        assert rows == first, (way, sql, rows[:3], first[:3])
    print(f"  {name:<12} " + "  ".join(f"{way} {taken:.1f}" for way, taken in times.items()) + " ms")
    return times


def rate(connect, sql):
    """Statements a second of several clients."""
    counts, until = [0] * CLIENTS, time.perf_counter() + SECONDS

    def ask(number):
        with connect() as connection:
            while time.perf_counter() < until:
                connection.execute(sql).fetchall()
                counts[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


def fill(server, rows):
    with server.connect("postgres") as admin:
        admin.execute("SET statement_timeout = 0")
        admin.execute(
            "CREATE TABLE mentions (aid text, id text, published_at timestamptz, title text, text text, language text, "
            "source_type text, author_name text, reach bigint)"
        )
        with admin.cursor() as cursor, cursor.copy("COPY mentions FROM STDIN WITH (FORMAT csv, HEADER)") as copy:
            copy.write(rows)
        admin.execute("CREATE INDEX ON mentions (aid, published_at)")
        admin.execute("VACUUM ANALYZE mentions")


def measure(told, theirs, duck, aid):
    """Names of the goals that were missed."""
    host, port = told["Postgres"].rsplit(":", 1)

    def connect():
        return psycopg.connect(host=host, port=port, user="bench", dbname="savedsearch", autocommit=True)

    missed = []
    flight = flightsql.connect(f"grpc://{told['listening']}", autocommit=True)
    with connect() as ours, theirs() as other, flight.cursor() as cursor:

        def by_flight(sql):
            cursor.execute(sql)
            return cursor.fetchall()

        ways = {
            "ours": lambda sql: ours.execute(sql).fetchall(),
            "Flight": by_flight,
            "PostgreSQL": lambda sql: other.execute(sql).fetchall(),
            "DuckDB": lambda sql: duck.execute(sql.replace("FROM mentions", "FROM store.mentions")).fetchall(),
        }
        for name, sql in QUESTIONS.items():
            compared(name, ways, sql)
        small = SMALL.replace("AID", aid)
        times = compared("small", ways, small)
        missed += [f"a small statement by {way}" for way in ("ours", "Flight") if times[way] > SMALL_GOAL]
        texts = f"SELECT {COLUMNS} FROM mentions WHERE {WINDOW}"
        fetched = {way: median(ask, texts, RUNS) for way, ask in ways.items() if way != "DuckDB"}
        assert len({len(rows) for _, rows in fetched.values()}) == 1
        share = fetched["PostgreSQL"][0] / fetched["ours"][0]
        print(f"  {len(fetched['ours'][1])} rows with texts " + "  ".join(f"{way} {taken:.0f}" for way, (taken, _) in fetched.items()))
        print(f"  share of PostgreSQL's speed {share:.2f}, goal at least {FETCH_GOAL}")
        missed += ["rows of texts"] * (share < FETCH_GOAL)
    flight.close()
    own, of_postgres = rate(connect, small), rate(theirs, small)
    print(f"  {CLIENTS} clients: {own:.0f} a second, PostgreSQL {of_postgres:.0f}; share {own / of_postgres:.2f}, goal at least {RATE_GOAL}")
    return missed + ["statements a second"] * (own / of_postgres < RATE_GOAL)


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, contextlib.ExitStack() as stack:
    os.chmod(folder, 0o755)  # The user of the PostgreSQL server enters it.
    os.environ |= {"SAVEDSEARCH_API_KEY": KEY, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder}
    simulate = ("simulate", "--listen", "127.0.0.1:0", "--mentions", str(MENTIONS), "--searches", "4", "--largest-page", "1000")
    service, told = start("--now", NOW, *simulate)
    connection = ("--base-url", f"http://{told['listening']}/v4", "--store", f"{folder}/store")
    run(*connection, "sync", "--since", SINCE)
    run(*connection, "store", "compact")
    select = f"SELECT {COLUMNS} FROM mentions WHERE {WINDOW}"
    rows = run(*connection, "sql", "--set", "freshness=3650d", "--format", "csv", "-c", select)
    aid = rows.split(b"\n")[1].split(b",")[0].decode()
    server = postgres.Server(pathlib.Path(folder) / "postgres")
    # It outlives this process otherwise.
    stack.callback(server.close)
    fill(server, rows)
    listen = ("serve", "--listen", "127.0.0.1:0", "--postgres-listen", "127.0.0.1:0", "--set", "freshness=3650d")
    ours, told = start(*connection, *listen)
    duck = ducklake.attach(f"{folder}/store")
    duck.execute("SET threads = 2")
    duck.execute("SET TimeZone = 'UTC'")
    missed = measure(told, lambda: server.connect("postgres"), duck, aid)
    for process in (ours, service):
        process.terminate()
        process.wait(30)
print("missed: " + (", ".join(missed) or "nothing"))
sys.exit(bool(missed))
