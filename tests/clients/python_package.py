"""The wheel in a venv of its own, without Rust: the program, the ADBC driver and the Python package."""

import contextlib
import datetime
import gc
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

PAGES = [pathlib.Path(__file__).parents[2] / name for name in ("README.md", "docs/python.md", "docs/adbc.md", "python/README.md")]
BIN = pathlib.Path(sys.executable).parent
PROGRAM = str(BIN / "savedsearch")
# As a user has it: no Rust, no settings.
os.environ["PATH"] = f"{BIN}:/usr/bin:/bin"
for name in [name for name in os.environ if name.startswith("SAVEDSEARCH_")]:
    del os.environ[name]
CONFIGURATION = tempfile.TemporaryDirectory()
os.environ |= {"XDG_CONFIG_HOME": CONFIGURATION.name, "XDG_STATE_HOME": CONFIGURATION.name}

NOW, AID, KEY, OTHER = "2026-07-01T12:00:00Z", "183772", "demo-key-comms", "demo-key-research"

# Statements of the benchmark of requests, and others for each kind of value.
QUERIES = [
    f"SELECT id FROM mentions WHERE aid = '{AID}' ORDER BY published_at DESC LIMIT 10",
    f"SELECT count(*) AS n FROM mentions WHERE aid = '{AID}'",
    f"SELECT sentiment, count(*) AS n FROM mentions WHERE aid = '{AID}' GROUP BY sentiment ORDER BY sentiment",
    f"SELECT bucket_start, mentions FROM volume WHERE aid = '{AID}' AND timezone = 'Europe/Berlin' ORDER BY 1",
    "SELECT name FROM saved_searches WHERE name LIKE 'Acme%' ORDER BY name",
    "SELECT aid, count(*) AS n FROM mentions GROUP BY aid ORDER BY aid",
    "SELECT m.id FROM saved_searches s JOIN mentions m ON m.aid = s.aid WHERE s.name LIKE 'Acme%' ORDER BY m.published_at DESC, m.id LIMIT 10",
    f"SELECT * FROM mentions WHERE aid = '{AID}' AND published_at >= '2026-06-29' AND published_at < '2026-06-30' ORDER BY id",
    "SELECT dimension, rank, name, mentions FROM breakdowns WHERE dimension = 'source' ORDER BY aid, rank",
    "SELECT 1 AS one, 2.5 AS number, 'x' AS text, true AS flag, NULL AS nothing, DATE '2026-01-02' AS day, [1, 2] AS list",
]


class Simulator:
    """`savedsearch simulate`, with a clock that stands still."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        size = [] if "--mentions" in self.options else ["--mentions", "3000"]
        command = [PROGRAM, "--now", NOW, "simulate", "--listen", "127.0.0.1:0", "--searches", "4", *size, *self.options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"listening on (\S+)", line):
                self.url = f"http://{found[1]}/v4"
                return self
        raise RuntimeError("the simulator did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)


def run(*arguments, environment=None, **options):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=os.environ | (environment or {}), **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(error, call):
    try:
        call()
    except error as refusal:
        assert len(str(refusal).splitlines()) == 1, str(refusal)
        return refusal
    raise AssertionError("the call unexpectedly succeeded")


def resident():
    gc.collect()
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) >> 10


def imports():
    """`import savedsearch` imports nothing large, so that it is fast."""
    code = "import sys, savedsearch; print([name for name in ('pyarrow', 'pandas', 'polars', 'numpy', 'adbc_driver_manager') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    # Nothing has to be closed.
    code = "import savedsearch as s; q = s.sql('SELECT 1'); print(q.rows()); c = s.connect(); k = c.cursor(); k.execute('SELECT id FROM mentions')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[(1,)]\n", ""), done


def program():
    assert run("--version").startswith("savedsearch ")
    assert len(run("--quiet", "sql", "--format", "csv", "-c", "SELECT id FROM mentions LIMIT 3").splitlines()) == 4
    with tempfile.TemporaryDirectory() as folder, Simulator() as service:
        chart = pathlib.Path(folder, "chart.svg")
        run("--quiet", "sql", "-o", str(chart), "-c", f"SELECT bucket_start, mentions FROM volume WHERE aid = {AID}")
        assert chart.read_text().startswith("<svg")
        profile = pathlib.Path(folder, "mine.toml")
        run("--base-url", service.url, "probe", "-o", str(profile), environment={"SAVEDSEARCH_API_KEY": KEY})
        with savedsearch.connect(service.url, api_key=KEY, profile=profile) as connection:
            assert connection.sql("SELECT count(*) AS n FROM mentions WHERE aid = '183772'").rows()[0][0] > 0


def as_json(value):
    """A value as the shell writes it to NDJSON."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items() if item is not None}
    if hasattr(value, "isoformat"):
        return value.isoformat().replace("+00:00", "Z").replace(".000000", "")
    return [as_json(item) for item in value] if isinstance(value, list) else value


def same_as_the_shell():
    with Simulator() as service:
        for statement in QUERIES:
            shell = run(
                "--quiet", "--base-url", service.url, "sql", "--format", "ndjson", "-c", statement, "-c",
                "SELECT count(*) AS sent FROM system.requests", environment={"SAVEDSEARCH_API_KEY": KEY},
            )
            *expected, sent = [json.loads(line) for line in shell.splitlines()]
            # With a connection of its own, as the shell has one: nothing is known from earlier queries.
            with savedsearch.connect(service.url, api_key=KEY) as connection:
                query = connection.sql(statement)
                estimate, rows = query.estimate(), [as_json(row) for row in query.arrow().to_pylist()]
                requests = query.requests
                assert requests == connection.sql("SELECT count(*) FROM system.requests").rows()[0][0]
            expected = [{key: value for key, value in row.items() if value is not None} for row in expected]
            assert [{k: instants(v) for k, v in row.items()} for row in rows] == \
                [{k: instants(v) for k, v in row.items()} for row in expected], (statement, rows[:2], expected[:2])
            assert requests == sent["sent"], (statement, requests, sent)
            assert estimate, statement


def instants(value):
    """Instants without their notation."""
    if not isinstance(value, str) or not re.match(r"\d{4}-\d\d-\d\dT", value):
        return value
    return re.sub(r"(\.\d*?)0+(?=Z?$)", r"\1", value).removesuffix("Z").removesuffix(".")


def frames():
    import duckdb
    import pandas
    import polars
    import pyarrow

    with savedsearch.connect(now=NOW) as connection:
        assert connection.is_demo
        statement = "SELECT source, count(*) AS n FROM mentions GROUP BY source ORDER BY n DESC, source"
        query = connection.sql(statement)
        assert "not run yet" in repr(query) and query.requests == 0
        assert query.schema.names == ["source", "n"]
        expected = query.rows()
        sent = query.requests
        assert sent > 0 and query.pl().rows() == expected and query.requests == sent
        assert list(query.df().itertuples(index=False, name=None)) == expected
        assert isinstance(query.df(), pandas.DataFrame)
        assert query.svg().startswith("<svg") and query.svg("Sources").count("Sources") >= 1
        # The stream itself.
        query = connection.sql(statement)
        assert duckdb.sql("SELECT * FROM query").fetchall() == expected
        query = connection.sql(statement)
        assert polars.DataFrame(query).rows() == expected
        query = connection.sql(statement)
        assert pyarrow.table(query).num_rows == len(expected)
        assert "call arrow() before" in str(refused(savedsearch.InterfaceError, query.arrow))
        # DB-API.
        with connection.cursor() as cursor:
            cursor.execute("SELECT id, reach FROM mentions WHERE aid = ? AND reach > ? ORDER BY id LIMIT ?", (AID, 10, 3))
            assert [name for name, *_ in cursor.description] == ["id", "reach"] and len(cursor.fetchall()) == 3
            assert cursor.requests >= 1
            assert cursor.execute("SELECT CAST(? AS VARCHAR)", (None,)).fetchone() == (None,)
        assert len(pandas.read_sql(statement, connection)) == len(polars.read_database(statement, connection)) == len(expected)
        sets = pyarrow.table({"aid": [AID, "184889"]})
        counted = connection.sql("SELECT ? AS aid, count(*) AS n FROM mentions WHERE aid = ?", pyarrow.table({"a": sets["aid"], "b": sets["aid"]}))
        assert [row[0] for row in counted.rows()] == [AID, "184889"]
        connection.sql("CREATE VIEW acme AS SELECT aid FROM saved_searches WHERE name LIKE 'Acme%'")
        connection.sql("CREATE TABLE few AS SELECT aid FROM saved_searches LIMIT 2")
        assert connection.sql("SELECT count(*) FROM few").rows() == [(2,)]


def metadata():
    with savedsearch.connect() as connection:
        assert connection.adbc_get_info()["vendor_name"] == "savedsearch"
        assert connection.adbc_get_table_types() == ["TABLE", "VIEW", "LOCAL TEMPORARY"]
        schema = connection.adbc_get_table_schema("mentions", catalog_filter="savedsearch", db_schema_filter="v4")
        assert schema.names[:3] == ["aid", "id", "seq"]
        assert connection.adbc_current_catalog == "savedsearch" and connection.adbc_current_db_schema == "v4"
        for depth in ("catalogs", "db_schemas", "tables", "columns"):
            tree = connection.adbc_get_objects(depth=depth, catalog_filter="saved%").read_all().to_pylist()
            assert [catalog["catalog_name"] for catalog in tree] == ["savedsearch"], depth
            schemas = tree[0]["catalog_db_schemas"]
            assert (schemas is None) == (depth == "catalogs")
            if depth in ("tables", "columns"):
                tables = {table["table_name"]: table for schema in schemas for table in schema["db_schema_tables"]}
                assert {"mentions", "saved_searches", "requests"} <= tables.keys()
                assert (tables["mentions"]["table_columns"] is None) == (depth == "tables")
        one = connection.adbc_get_objects(depth="columns", table_name_filter="ment%", column_name_filter="publ%", table_types_filter=["table"])
        found = [table for catalog in one.read_all().to_pylist() for schema in catalog["catalog_db_schemas"] for table in schema["db_schema_tables"]]
        assert [[column["column_name"] for column in table["table_columns"]] for table in found] == [["published_at"]]
        assert found[0]["table_constraints"][0]["constraint_column_names"] == ["aid", "id"]
        assert connection.sql("SELECT count(*) FROM system.requests").rows() == [(0,)], "metadata costs no request"


def failures():
    with Simulator() as service:
        good = {"uri": service.url, "api_key": KEY}
        for options, words in [
            ({"uri": service.url}, "no API key"),
            ({"uri": "nonsense", "api_key": KEY}, "invalid base URL"),
            ({"api_key": KEY}, "requires uri"),
            (good | {"profile": "missing.toml"}, "missing.toml"),
            (good | {"now": NOW}, "demo data"),
            ({"now": "yesterday"}, "expected an instant"),
            (good | {"max_requests": "many"}, "max_requests"),
            (good | {"colour": "red"}, "unknown option savedsearch.colour"),
            ({"connection": "sales"}, "requires a configuration file"),
            ({"uri": service.url, "api_key_command": "exit 3"}, "exit status: 3"),
            (good | {"api_key_command": "echo x"}, "set either"),
            ({"store": "somewhere"}, "savedsearch.now"),
            (good | {"store": ""}, "path is empty"),
            (good | {"insecure": "false"}, "expected True or False"),
            ({"profile": "~/missing.toml"}, str(pathlib.Path.home() / "missing.toml")),
        ]:
            error = refused(savedsearch.Error, lambda: savedsearch.connect(**options))
            assert words in str(error) and KEY not in str(error) and error.kind, (options, str(error))
        with savedsearch.connect(service.url, api_key="wrong") as connection:
            error = refused(savedsearch.Error, lambda: connection.sql("SELECT count(*) FROM mentions WHERE aid = '1'").arrow())
            assert error.kind == "unauthorized" and error.sqlstate == "28000" and error.advice in str(error), vars(error)
        with savedsearch.connect(service.url, api_key_command=f"echo {KEY}", max_requests=2) as connection:
            error = refused(savedsearch.OperationalError, lambda: connection.sql("SELECT id FROM mentions WHERE duration = '365d'").arrow())
            assert error.kind == "budget" and error.sqlstate == "53400" and "max_requests" in str(error), vars(error)
            error = refused(savedsearch.ProgrammingError, lambda: connection.sql("SELECT id,\n nothing FROM mentions"))
            assert error.kind == "unknown_column" and error.place.line == 2 and error.sqlstate == "42703", vars(error)
            error = refused(savedsearch.Error, lambda: connection.sql("SELECT id FROM mentoins"))
            assert error.kind == "unknown_table" and error.advice == "did you mean mentions?", vars(error)
            for write in ["INSERT INTO mentions VALUES (1)", "DELETE FROM mentions", "DROP TABLE mentions", "COPY mentions TO 'x.csv'"]:
                assert refused(savedsearch.Error, lambda: connection.sql(write)).kind in ("unsupported", "query"), write
            other = savedsearch.connect(service.url, api_key=KEY)
            assert other.sql("SHOW savedsearch.max_requests").rows()[0][1] == "1000", "a budget belongs to a connection"
            other.close()
    with Simulator("--fault", "500@3-") as service, savedsearch.connect(service.url, api_key=KEY, query_deadline=1) as connection:
        query = connection.sql(f"SELECT id FROM mentions WHERE aid = '{AID}' AND duration = '365d'")
        error = refused(savedsearch.OperationalError, query.arrow)
        assert error.kind in ("unavailable", "timeout") and error.place.table == "mentions" and error.place.aid == AID, (error, error.place)


def two_keys():
    """Connections with two keys, at the same time."""
    team = "SELECT DISTINCT team_name FROM saved_searches WHERE team_name IS NOT NULL"
    with Simulator() as service:
        connections = {key: savedsearch.connect(service.url, api_key=key) for key in (KEY, OTHER)}
        found = {}

        def ask(key):
            found[key] = [connections[key].sql(team).rows() for _ in range(5)]

        threads = [threading.Thread(target=ask, args=(key,)) for key in connections]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert found == {KEY: [[("Comms",)]] * 5, OTHER: [[("Research",)]] * 5}, found
        [connection.close() for connection in connections.values()]


def cancelling():
    import duckdb
    import polars
    import pyarrow

    statement = f"SELECT * FROM mentions WHERE aid = '{AID}' AND duration = '365d'"
    with Simulator("--delay-ms", "300", "--mentions", "20000") as service:
        connection = savedsearch.connect(service.url, api_key=KEY, concurrency=1)

        def sent():
            return connection.sql("SELECT count(*) FROM system.requests").rows()[0][0]

        def quiet(what):
            time.sleep(1)
            before = sent()
            time.sleep(1)
            assert sent() == before, f"{what}: requests are still being sent"

        # Ctrl-C, while other threads run.
        query, ticks = connection.sql(statement), []
        ticking = threading.Event()

        def tick():
            while not ticking.wait(0.02):
                ticks.append(1)

        threading.Thread(target=tick).start()
        threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            query.arrow()
            raise AssertionError("the query was not cancelled")
        except KeyboardInterrupt:
            pass
        ticking.set()
        assert len(ticks) > 20, "the GIL was held"
        quiet("Ctrl-C")
        # In the fetches of a cursor.
        for fetch in (lambda cursor: cursor.fetchall(), list, lambda cursor: cursor.fetch_arrow_table()):
            with connection.cursor() as cursor:
                cursor.execute(statement)
                threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                try:
                    fetch(cursor)
                    raise AssertionError("the rows were not cancelled")
                except KeyboardInterrupt:
                    pass
                # Ctrl-C that comes between two rows of a loop is an exception of the loop.
                if fetch is not list:
                    assert refused(savedsearch.Error, cursor.fetchall).kind == "cancelled"
        # Between two calls of the driver, which do not see the signal.
        def interrupt(frame, event, _):
            if event == "return" and frame.f_code.co_name == "fetchone":
                sys.setprofile(None)
                raise KeyboardInterrupt

        with connection.cursor() as cursor:
            cursor.execute(statement)
            sys.setprofile(interrupt)
            try:
                cursor.fetchall()
                raise AssertionError("the rows were not cancelled")
            except KeyboardInterrupt:
                pass
            assert refused(savedsearch.Error, cursor.fetchall).kind == "cancelled"
        quiet("Ctrl-C in a fetch")
        # A stream that another library reads, by closing its query, or its connection.
        query = connection.sql(statement)
        stream = pyarrow.RecordBatchReader.from_stream(query)
        query.close()
        assert "the query was cancelled" in str(refused(pyarrow.ArrowException, stream.read_all))
        other = savedsearch.connect(service.url, api_key=KEY, concurrency=1)
        stream = pyarrow.RecordBatchReader.from_stream(other.sql(statement))
        other.close()
        assert "the query was cancelled" in str(refused(pyarrow.ArrowException, stream.read_all))
        # Ctrl-C while it reads. Of these, only DuckDB looks for signals, and only some of its versions.
        for library, read in [("pyarrow", pyarrow.table), ("polars", polars.DataFrame), ("duckdb", lambda found: duckdb.sql("FROM found").fetchall())]:
            query, done = connection.sql(statement), threading.Event()

            # The driver manager can miss one that comes between two batches.
            def press(done=done):
                while not done.wait(1.5):
                    os.kill(os.getpid(), signal.SIGINT)

            threading.Thread(target=press).start()
            line = str(refused(Exception, lambda: read(query)))
            done.set()
            assert re.search("query was cancelled|Query interrupted", line), (library, line)
            assert refused(savedsearch.Error, query.arrow).kind in ("cancelled", "usage"), library
            if "Query interrupted" in line:
                # DuckDB keeps the stream that it reads no more, whose next pages are requested ahead.
                query.close()
            quiet(f"Ctrl-C in {library}")
        # A stream goes on when nobody but its reader has it.
        assert pyarrow.RecordBatchReader.from_stream(connection.sql("SELECT * FROM generate_series(1, 100000)")).read_all().num_rows == 100_000
        quiet("a closed query")
        # From another thread, and by leaving the rows.
        query = connection.sql(statement)
        threading.Timer(1, query.cancel).start()
        assert refused(savedsearch.Error, query.arrow).kind == "cancelled"
        quiet("cancel")
        with connection.cursor() as cursor:
            reader = cursor.execute(statement).fetch_record_batch()
            reader.read_next_batch()
            reader.close()
        quiet("a closed stream")
        connection.close()


def leaks():
    with Simulator() as service:

        def use(times):
            for at in range(times):
                connection = savedsearch.connect(service.url, api_key=KEY)
                query = connection.sql(f"SELECT id, title FROM mentions WHERE aid = '{AID}' AND duration = '365d'")
                if at % 20 == 0:
                    # A stream that is left in the middle.
                    query.__arrow_c_stream__()
                query.close()
                connection.close()

        use(200)
        before = resident()
        use(2000)
        grown = resident() - before
        assert grown < 40, f"{grown} MiB more after 2,000 connections"
        return grown


def incomplete():
    import pyarrow

    statement = f"SELECT id FROM mentions WHERE aid = '{AID}' AND duration = '365d'"
    for use in (
        lambda connection: connection.sql(statement).arrow(),
        lambda connection: connection.sql(statement).rows(),
        lambda connection: pyarrow.table(connection.sql(statement)),
        lambda connection: connection.cursor().execute(statement).fetchall(),
        lambda connection: connection.cursor().execute(statement).fetchmany(100_000),
        lambda connection: list(connection.cursor().execute(statement)),
        lambda connection: connection.cursor().execute(statement).fetch_arrow_table(),
        lambda connection: connection.cursor().execute(statement).fetch_polars(),
        lambda connection: connection.cursor().execute(f"SELECT count(id) FROM ({statement} AND reach >= 0)").fetchone(),
    ):
        with Simulator("--fault", "short@2-") as service, savedsearch.connect(service.url, api_key=KEY, completeness="report") as connection:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                use(connection)
        found = [warning for warning in caught if issubclass(warning.category, savedsearch.IncompleteResult)]
        assert found and all(warning.filename == __file__ for warning in found), [str(warning) for warning in caught]


def sets_of_parameters():
    """A budget and an estimate are those of all sets together."""
    import pyarrow

    aids = pyarrow.table({"aid": [AID, "184889", AID, "184889", AID]})
    statement = "SELECT count(*) AS n FROM mentions WHERE aid = ?"
    with Simulator() as service, savedsearch.connect(service.url, api_key=KEY, max_requests=3) as connection:
        query = connection.sql(statement, aids)
        assert query.estimate() == "5" and query.costs().column("at_least").to_pylist() == [1, 1, 1, 1, 1, 5], query.costs()
        error = refused(savedsearch.OperationalError, query.arrow)
        assert error.kind == "budget" and query.requests == 3, (error, query.requests)
        assert str(error).startswith("parameter set 4, after 3 requests: "), error
        assert connection.sql("SELECT count(*) FROM system.requests").rows() == [(3,)]
        connection.sql("SET savedsearch.max_requests = 5")
        query = connection.sql(statement, aids)
        assert len(query.rows()) == 5 and query.requests == 5
        # A stream of parameters is read once, when the query is made.
        query = connection.sql(statement, aids.slice(0, 2).to_reader())
        assert query.estimate() == query.estimate() == "2" and len(query.rows()) == 2
        # Columns have the types of the values that are bound.
        query = connection.sql("SELECT ? AS n", (1,))
        assert query.schema == query.arrow().schema and query.rows() == [(1,)], query.schema
        # Results without a name are called as they are written.
        assert connection.sql("SELECT 1 + 1, upper('x'), count(*)").schema.names == ["1 + 1", "upper('x')", "count(*)"]
        # Types of parameters decide what the statement leaves open.
        for given, values, rows in [
            ("? + ?", (1, 2), [(3,)]),
            ("? * 2, abs(?)", (1.5, -2), [(3.0, 2)]),
            ("sum(?)", (4,), [(4,)]),
            ("? || 'x', upper(?)", ("a", "b"), [("ax", "B")]),
            ("? - ?", (datetime.date(2026, 7, 2), datetime.date(2026, 7, 1)), [(1,)]),
        ]:
            query = connection.sql(f"SELECT {given}", values)
            assert query.rows() == rows and query.schema == query.arrow().schema, (given, query.rows())


def created_tables():
    """A table that is created is estimated without being created, and its requests are counted."""
    from IPython.core.interactiveshell import InteractiveShell

    ipython = InteractiveShell.instance()
    ipython.run_line_magic("load_ext", "savedsearch")
    create = "CREATE TABLE kept AS SELECT aid, name FROM saved_searches"
    with Simulator() as service, savedsearch.connect(service.url, api_key=KEY) as connection:
        ipython.user_ns["service"] = connection
        shown = ipython.run_cell_magic("savedsearch", "--estimate --connection service", create)
        assert repr(shown) == "estimated requests: 1", shown
        assert refused(savedsearch.Error, lambda: connection.sql("SELECT * FROM kept")).kind == "unknown_table"
        with connection.cursor(adbc_stmt_kwargs={"savedsearch.estimate": "true"}) as cursor:
            assert cursor.execute(create).fetchall()[-1][2] == "1"
        assert connection.sql("SELECT count(*) FROM system.requests").rows() == [(0,)]
        query = connection.sql(create)
        assert query.requests == 1
        query.close()
        assert query.requests == 1 and connection.sql("SELECT count(*) FROM kept").rows()[0][0] > 1
        connection.sql("CREATE TABLE IF NOT EXISTS kept AS SELECT aid, name FROM saved_searches")
        error = refused(savedsearch.Error, lambda: connection.sql(create))
        assert "already exists" in str(error), error
        assert connection.sql("SELECT count(*) FROM system.requests").rows() == [(1,)]


def in_the_middle():
    """Failures after the first rows are those of the package, on every path and on every further call."""
    import pyarrow

    statement = f"SELECT id FROM mentions WHERE aid = '{AID}' AND duration = '365d'"

    def failing():
        stack = contextlib.ExitStack()
        service = stack.enter_context(Simulator("--fault", "500@4-"))
        return stack, stack.enter_context(savedsearch.connect(service.url, api_key=KEY, query_deadline=1, concurrency=1))

    for read in (
        lambda cursor: cursor.fetchall(),
        lambda cursor: cursor.fetchmany(10_000),
        list,
        lambda cursor: cursor.fetch_arrow_table(),
        lambda cursor: cursor.fetch_df(),
        lambda cursor: cursor.fetch_polars(),
    ):
        stack, connection = failing()
        with stack, connection.cursor() as cursor:
            cursor.execute(statement)
            error = refused(savedsearch.OperationalError, lambda: read(cursor))
            assert error.kind in ("unavailable", "timeout") and error.place.aid == AID, (error, error.place)
            for again in (cursor.fetchall, cursor.fetchone, cursor.fetch_arrow_table):
                assert str(refused(savedsearch.OperationalError, again)) == str(error)
    for use in (lambda query: query.arrow(), lambda query: pyarrow.table(query)):
        stack, connection = failing()
        with stack:
            query = connection.sql(statement)
            refused(Exception, lambda: use(query))
            assert refused(savedsearch.OperationalError, query.arrow).place.aid == AID


def exceptions():
    """Exceptions can be copied and sent to other processes; wrong arguments are typed."""
    import copy
    import pickle

    import pyarrow

    names = "Warning Date Time Timestamp DateFromTicks TimeFromTicks TimestampFromTicks Binary STRING NUMBER DATETIME ROWID"
    assert all(hasattr(savedsearch, name) for name in names.split())
    with savedsearch.connect(now=NOW) as connection:
        for statement in ("SELECT nothing FROM mentions", "COPY mentions TO 'x.csv'", "SELEC 1"):
            error = refused(savedsearch.Error, lambda: connection.sql(statement))
            for other in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
                assert type(other) is type(error) and vars(other) == vars(error) and str(other) == str(error), vars(other)
        cursor = connection.cursor()
        for call, words in [
            (lambda: connection.sql("SELECT ?", (2**70,)), "parameter 1"),
            (lambda: connection.sql("SELECT ?, ?", (1, object())), "parameter 2"),
            (lambda: connection.sql("SELECT ?", "text"), "sequence"),
            (lambda: connection.sql("SELECT ?", 5), "sequence"),
            (lambda: connection.sql("SELECT 1\0, 2"), "NUL"),
            (lambda: connection.sql("SELECT '\ud800'"), "Unicode"),
            (lambda: cursor.execute("SELECT ?", "text"), "sequence"),
            (lambda: cursor.execute("SELECT 1\0"), "NUL"),
            (lambda: cursor.executemany("SET savedsearch.max_requests = ?", ["5"]), "sequence"),
            (lambda: savedsearch.connect("http://127.0.0.1/v4", api_key=b"bytes"), "api_key"),
            (lambda: savedsearch.connect("http://127.0.0.1/v4", api_key="a\0b"), "NUL"),
        ]:
            error = refused(savedsearch.ProgrammingError, call)
            assert words in str(error) and error.kind == "usage" and error.sqlstate == "22023", error
        # The methods of the driver manager raise the exceptions of the package too.
        for call in (cursor.nextset, lambda: cursor.adbc_execute_partitions("SELECT 1"), lambda: cursor.adbc_ingest("t", pyarrow.table({"a": [1]}))):
            assert refused(savedsearch.NotSupportedError, call).kind == "usage"
        cursor.execute("SET savedsearch.max_requests = 7")
        assert cursor.description is None
        with connection.adbc_clone() as clone:
            assert isinstance(clone, savedsearch.Connection) and clone.is_demo
            assert clone.sql("SHOW savedsearch.max_requests").rows()[0][1] == "1000"
    for call in (connection.cursor, lambda: connection.sql("SELECT 1"), lambda: connection.is_demo, lambda: cursor.execute("SELECT 1"), connection.adbc_clone):
        assert "is closed" in str(refused(savedsearch.InterfaceError, call))
    with tempfile.TemporaryDirectory() as folder, Simulator() as service:
        # A store that is no folder.
        file = pathlib.Path(folder, "file")
        file.write_text("")
        assert refused(savedsearch.OperationalError, lambda: savedsearch.connect(service.url, api_key=KEY, store=file)).kind == "store"


def notebook():
    from IPython.core.interactiveshell import InteractiveShell

    ipython = InteractiveShell.instance()
    ipython.run_line_magic("load_ext", "savedsearch")
    shown = ipython.run_cell_magic("savedsearch", "found --chart", "SELECT source, count(*) AS n FROM mentions GROUP BY source")
    page = shown._repr_html_()
    assert "<svg" in page and "<th>source</th>" in page and "estimated requests:" in page and "sent:" in page, page
    assert ipython.user_ns["found"].pl().height == len(shown.rows)
    estimated = ipython.run_cell_magic("savedsearch", "--estimate", "SELECT count(*) FROM mentions")
    assert "sent:" not in repr(estimated) and "estimated requests:" in repr(estimated)
    assert ipython.run_cell_magic("savedsearch", "", "SET savedsearch.max_requests = 500") is None
    # The window of a query without a time filter is said.
    assert "no time filter: reading the last 7 days" in repr(shown) and "no time filter" in repr(ipython.user_ns["found"])
    assert ipython.user_ns["found"].notes and not savedsearch.sql("SELECT 1").notes
    # Rows that cannot be drawn are shown, with the reason.
    plain = ipython.run_cell_magic("savedsearch", "--chart", "SELECT name FROM saved_searches")
    assert plain.rows and "no chart: " in repr(plain) and plain.picture is None
    ipython.user_ns["values"] = (AID,)
    one = ipython.run_cell_magic("savedsearch", "--parameters values", "SELECT aid FROM saved_searches WHERE aid = ?")
    assert one.rows == [(AID,)], one.rows
    # A wrong option is refused before a request.
    before = savedsearch.sql("SELECT count(*) FROM system.requests").rows()
    for options in ("1x", "a-b", "for", "--rows -1", "--rows x", "--max-requests 0", "--nothing", "--parameters none", "--connection none"):
        error = refused(savedsearch.ProgrammingError, lambda: ipython.run_cell_magic("savedsearch", options, "SELECT id FROM mentions"))
        assert error._render_traceback_() == [f"ProgrammingError: {error}"], options
    assert savedsearch.sql("SELECT count(*) FROM system.requests").rows() == before


def forked():
    """A process that was forked after the driver was used gets an error; it does not wait for threads that it lacks."""
    code = "import os, savedsearch; savedsearch.connect().close(); child = os.fork(); connection = None if child else savedsearch.connect(); " \
           "os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "method `spawn`" in done.stderr, done


def manifest():
    """Driver managers find the driver by its name."""
    folder = tempfile.mkdtemp(dir=CONFIGURATION.name)
    written = subprocess.run([sys.executable, "-m", "savedsearch", folder], capture_output=True, text=True, check=True).stdout
    assert written == f"{folder}/savedsearch.toml\n", written
    code = "import adbc_driver_manager.dbapi as dbapi; connection = dbapi.connect('savedsearch', autocommit=True); " \
           "cursor = connection.execute('SELECT 1'); print(cursor.fetchone()[0]); cursor.close(); connection.close()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"ADBC_DRIVER_PATH": folder})
    assert done.stdout == "1\n", done.stderr


def dbt():
    page = PAGES[2].read_text()
    profile = next(block for block in re.findall(r"```yaml\n(.*?)```", page, re.S) if "profiles.yml" in block)
    model = next(block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "def model" in block)
    with tempfile.TemporaryDirectory() as folder, Simulator() as service:
        project = pathlib.Path(folder)
        (project / "models").mkdir()
        (project / "dbt_project.yml").write_text("name: coverage\nprofile: coverage\n")
        (project / "profiles.yml").write_text(profile)
        (project / "models" / "sources.py").write_text(model.replace("https://api.example.com/v4", service.url))
        command = [str(BIN / "dbt"), "build", "--profiles-dir", "."]
        environment = os.environ | {"SAVEDSEARCH_API_KEY": KEY, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        import duckdb

        with duckdb.connect(str(project / "coverage.duckdb")) as database:
            assert database.sql("SELECT count(*) > 1 AND min(n) > 0 FROM sources").fetchone() == (True,)


def pages():
    blocks = [(page.name, block) for page in PAGES for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)]
    blocks = [(name, block) for name, block in blocks if "grpc://" not in block]
    assert len(blocks) >= 3, "no Python examples in the documentation"
    with tempfile.TemporaryDirectory() as folder, Simulator() as service:
        os.chdir(folder)
        pathlib.Path("mine.toml").write_text(run("profile", "show", "v4"))
        os.environ["SAVEDSEARCH_API_KEY"] = KEY
        for name, block in blocks:
            block = block.replace("https://api.example.com/v4", service.url).replace("pass show savedsearch", f"echo {KEY}")
            exec(compile(block, name, "exec"), {"__name__": "__main__"})
        del os.environ["SAVEDSEARCH_API_KEY"]
        os.chdir("/")


imports()
import savedsearch  # noqa: E402

CHECKS = (program, same_as_the_shell, frames, metadata, failures, two_keys, cancelling, incomplete, sets_of_parameters, created_tables, in_the_middle, exceptions, notebook, forked, manifest, dbt, pages, leaks)
# python_package.py [CHECK…]
for check in CHECKS:
    if not sys.argv[1:] or check.__name__ in sys.argv[1:]:
        check()
print("the wheel, its program, driver and Python package passed")
