"""The wheel in a venv of its own, without Rust: the program, the ADBC driver and the Python package."""

import concurrent.futures
import contextlib
import ctypes
import datetime
import decimal
import enum
import gc
import http.server
import io
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import timeit
import urllib.error
import urllib.request
import uuid
import warnings

PAGES = [
    pathlib.Path(__file__).parents[2] / name
    for name in ("README.md", "docs/python.md", "docs/adbc.md", "python/README.md", "docs/recipes.md")
]
_, PYTHON_PAGE, ADBC_PAGE, _, _ = PAGES
BIN = pathlib.Path(sys.executable).parent
PROGRAM = str(BIN / "savedsearch")
GO, RSCRIPT = shutil.which("go"), shutil.which("Rscript")
# As a user has it: no Rust, no settings.
os.environ["PATH"] = f"{BIN}:/usr/bin:/bin"
for name in [name for name in os.environ if name.startswith("SAVEDSEARCH_")]:
    del os.environ[name]
CONFIGURATION = tempfile.TemporaryDirectory()
os.environ |= {"XDG_CONFIG_HOME": CONFIGURATION.name, "XDG_STATE_HOME": CONFIGURATION.name, "DAGSTER_DISABLE_TELEMETRY": "yes"}

NOW, AID, KEY, OTHER = "2026-07-01T12:00:00Z", "183772", "demo-key-comms", "demo-key-research"

# Statements of the benchmark of requests, and others for each kind of value.
QUERIES = [
    f"SELECT id FROM mentions WHERE aid = '{AID}' ORDER BY published_at DESC LIMIT 10",
    f"SELECT count(*) AS n FROM mentions WHERE aid = '{AID}'",
    f"SELECT sentiment, count(*) AS n FROM mentions WHERE aid = '{AID}' GROUP BY sentiment ORDER BY sentiment",
    f"SELECT bucket_start, mentions FROM volume WHERE aid = '{AID}' AND timezone = 'Europe/Berlin' ORDER BY 1",
    "SELECT name FROM saved_searches WHERE name LIKE 'Acme%' ORDER BY name",
    "SELECT aid, count(*) AS n FROM mentions GROUP BY aid ORDER BY aid",
    "SELECT m.id FROM saved_searches s JOIN mentions m ON m.aid = s.aid WHERE s.name LIKE 'Acme%' "
    "ORDER BY m.published_at DESC, m.id LIMIT 10",
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
    """Memory of this process in KiB, without what its allocators keep for later."""
    import pyarrow

    gc.collect()
    pyarrow.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1])


def imports():
    """`import savedsearch` imports few modules, so that it is fast. Its time is only printed: other processes can slow it down."""
    code = "import sys, typing; before = set(sys.modules); import savedsearch; print(*set(sys.modules) - before)"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert len(imported) < 10 and {"pyarrow", "pandas", "polars", "numpy", "adbc_driver_manager"}.isdisjoint(imported), imported

    def best(code):
        """The shortest of five runs, in ms."""
        command = [sys.executable, "-c", code]
        return min(timeit.repeat(lambda: subprocess.run(command, check=True), number=1, repeat=5)) * 1000

    print(f"import savedsearch: {best('import savedsearch') - best(''):.0f} ms more than an empty process")
    # Nothing has to be closed.
    code = "import savedsearch as s; q = s.sql('SELECT 1'); print(q.rows()); c = s.connect(); k = c.cursor(); " \
           "k.execute('SELECT id FROM mentions')"
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
        assert "not run yet; no time filter: reading the last 7 days" in repr(query) and query.requests == 0
        assert query.notes and not connection.sql("SELECT 1").notes
        assert connection.sql("SELECT count(*) FROM system.requests").rows() == [(0,)], "notes cost no request"
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
        pairs = pyarrow.table({"a": sets["aid"], "b": sets["aid"]})
        counted = connection.sql("SELECT ? AS aid, count(*) AS n FROM mentions WHERE aid = ?", pairs)
        assert [row[0] for row in counted.rows()] == [AID, "184889"]
        connection.sql("CREATE VIEW acme AS SELECT aid FROM saved_searches WHERE name LIKE 'Acme%'")
        connection.sql("CREATE TABLE few AS SELECT aid FROM saved_searches LIMIT 2")
        assert connection.sql("SELECT count(*) FROM few").rows() == [(2,)]


def notes():
    """All that the shell notes."""
    labels = re.compile(r"breakdowns has rows of each dimension \(source, .*\): select dimension, or add dimension = '…'")
    with Simulator() as service, savedsearch.connect(service.url, api_key=KEY) as connection:
        query = connection.sql("SELECT name, mentions FROM breakdowns WHERE aid = '183772'")
        for ran in (False, True):
            if ran:
                query.arrow()
            [window, label] = query.notes
            assert window.startswith("no time filter: reading the last 7 days") and labels.fullmatch(label), query.notes


def zones():
    """polars has no zones that are offsets; the instants stay."""
    for zone, name in [("+02:00", "Etc/GMT-2"), ("+05:30", "UTC"), ("Europe/Berlin", "Europe/Berlin")]:
        with savedsearch.connect(now=NOW, timezone=zone) as connection, connection.cursor() as cursor:
            statement = "SELECT now() AS t, [now()] AS list, named_struct('a', now()) AS pair"
            query = connection.sql(statement)
            frame, [(expected, *_)] = query.pl(), query.rows()
            assert frame.schema["t"].time_zone == name and frame["t"][0] == expected, (zone, frame)
            assert frame["list"][0][0] == frame["pair"][0]["a"] == expected, (zone, frame)
            assert cursor.execute(statement).fetch_polars().equals(frame), zone


def metadata():
    with savedsearch.connect() as connection:
        assert connection.adbc_get_info()["vendor_name"] == "savedsearch"
        assert connection.adbc_get_table_types() == ["TABLE", "VIEW", "LOCAL TEMPORARY"]
        schema = connection.adbc_get_table_schema("mentions", catalog_filter="savedsearch", db_schema_filter="v4")
        assert schema.names[:3] == ["aid", "id", "seq"]
        assert connection.adbc_current_catalog == "savedsearch" and connection.adbc_current_db_schema == "v4"
        for name, advice in [("adbc_current_catalog", "available: savedsearch"), ("adbc_current_db_schema", "available: system, v4")]:
            error = refused(savedsearch.ProgrammingError, lambda: setattr(connection, name, "nowhere"))
            assert error.kind == "not_found" and error.advice == advice and "`nowhere`" in str(error), error
        connection.adbc_current_db_schema = "system"
        assert connection.sql("SELECT count(*) FROM requests").rows() == [(0,)]
        connection.adbc_current_db_schema = "v4"
        for depth in ("catalogs", "db_schemas", "tables", "columns"):
            tree = connection.adbc_get_objects(depth=depth, catalog_filter="saved%").read_all().to_pylist()
            assert [catalog["catalog_name"] for catalog in tree] == ["savedsearch"], depth
            schemas = tree[0]["catalog_db_schemas"]
            assert (schemas is None) == (depth == "catalogs")
            if depth in ("tables", "columns"):
                tables = {table["table_name"]: table for schema in schemas for table in schema["db_schema_tables"]}
                assert {"mentions", "saved_searches", "requests"} <= tables.keys()
                assert (tables["mentions"]["table_columns"] is None) == (depth == "tables")
        filters = {"table_name_filter": "ment%", "column_name_filter": "publ%", "table_types_filter": ["table"]}
        catalogs = connection.adbc_get_objects(depth="columns", **filters).read_all().to_pylist()
        schemas = [schema for catalog in catalogs for schema in catalog["catalog_db_schemas"]]
        found = [table for schema in schemas for table in schema["db_schema_tables"]]
        assert [[column["column_name"] for column in table["table_columns"]] for table in found] == [["published_at"]]
        assert found[0]["table_constraints"][0]["constraint_column_names"] == ["aid", "id"]
        assert connection.sql("SELECT count(*) FROM system.requests").rows() == [(0,)], "metadata costs no request"


def failures():
    configured = pathlib.Path(CONFIGURATION.name, "comms.toml")
    with Simulator() as service:
        configured.write_text(f'[connections.comms]\nbase_url = "{service.url}"\napi_key_command = "echo {KEY}"\n')
        good = {"uri": service.url, "api_key": KEY}
        for options, words in [
            ({"uri": service.url}, "no API key"),
            ({"uri": "nonsense", "api_key": KEY}, "invalid base URL"),
            ({"api_key": KEY}, "requires uri"),
            (good | {"profile": "missing.toml"}, "missing.toml"),
            (good | {"now": NOW}, "demo data"),
            ({"now": "yesterday"}, "expected an instant"),
            (good | {"max_requests": "many"}, "max_requests"),
            (good | {"colour": "red"}, "unknown option colour; available: uri, api_key, "),
            (good | {"max_request": 5}, "unknown option max_request; did you mean max_requests?"),
            (good | {"timezone": "Europe/Belin"}, "invalid value `Europe/Belin` for timezone; expected an IANA"),
            ({"uri": "http://example.com/v4", "api_key": KEY}, "use an https URL, or insecure=True on"),
            ({"uri": service.url, "api_key": " "}, "the API key is empty; set SAVEDSEARCH_API_KEY or the option api_key_command"),
            (good | {"config": "missing.toml"}, "config cannot be combined with uri"),
            ({"connection": "sales"}, "requires a configuration file"),
            ({"config": configured, "connection": "comms", "api_key": KEY}, "remove them, or set them in the file"),
            (good | {"store": "/etc/passwd"}, "use another folder"),
            (good | {"api_key_command": "echo x"}, "api_key cannot be combined with api_key_command"),
            ({"store": "somewhere"}, "set now"),
            (good | {"store": ""}, "path is empty"),
            (good | {"insecure": "false"}, "expected True or False"),
            ({"profile": "~/missing.toml"}, str(pathlib.Path.home() / "missing.toml")),
        ]:
            error = refused(savedsearch.Error, lambda: savedsearch.connect(**options))
            assert words in str(error) and KEY not in str(error) and error.kind, (options, str(error))
            # Options are called as the arguments.
            assert error.advice and str(error).endswith(error.advice), (options, str(error), error.advice)
            assert "savedsearch." not in str(error) and "--" not in str(error), (options, str(error))
        error = refused(savedsearch.Error, lambda: savedsearch.connect(service.url, api_key_command="exit 3"))
        assert str(error).startswith("api_key_command failed: exit status: 3; ") and error.advice, error
        assert error.kind == "config", error
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


@contextlib.contextmanager
def one_address(services):
    """A service whose saved searches have the same aids under every key, but other mentions: `services` has a simulator for each
    key, to which the requests with this key are passed on."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            service = services[self.headers["Authorization"].removeprefix("Bearer ")]
            request = urllib.request.Request(service.url.removesuffix("/v4") + self.path, headers={"Authorization": f"Bearer {KEY}"})
            try:
                answer = urllib.request.urlopen(request, timeout=300)
            except urllib.error.HTTPError as refusal:
                answer = refusal
            with answer:
                body = answer.read()
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/v4"
        server.shutdown()


def two_keys():
    """The same statements about the same saved search under two keys at the same time, with and without stores: each key gets the
    rows that it gets alone."""
    since = "published_at >= '2026-06-20'"
    statements = [
        "SELECT aid, name, created_at FROM saved_searches ORDER BY aid",
        f"SELECT count(*) FROM mentions WHERE aid = '{AID}'",
        f"SELECT sentiment, count(*) FROM mentions WHERE aid = '{AID}' AND {since} GROUP BY sentiment ORDER BY 1",
        f"SELECT id, title, published_at FROM mentions WHERE aid = '{AID}' AND {since} ORDER BY published_at DESC, id",
        f"SELECT bucket_start, mentions FROM volume WHERE aid = '{AID}' ORDER BY 1",
        "SELECT aid, max(reach) FROM mentions GROUP BY aid ORDER BY aid",
    ]
    with contextlib.ExitStack() as stack:
        services = {key: stack.enter_context(Simulator("--seed", seed)) for key, seed in ((KEY, "1"), (OTHER, "2"))}
        url = stack.enter_context(one_address(services))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        alone = {}
        for key, service in services.items():
            with savedsearch.connect(service.url, api_key=KEY) as connection:
                alone[key] = [connection.sql(statement).rows() for statement in statements]
        differing = [mine != others for mine, others in zip(alone[KEY], alone[OTHER])]
        assert sum(differing) >= len(statements) - 1, differing
        for stored in (False, True):
            wrong, together = [], threading.Barrier(4)

            def ask(key):
                store = pathlib.Path(folder, key) if stored else None
                with savedsearch.connect(url, api_key=key, store=store) as connection:
                    for _ in range(3):
                        for statement, expected in zip(statements, alone[key]):
                            together.wait(60)
                            rows = connection.sql(statement).rows()
                            if rows != expected:
                                wrong.append((key, stored, statement, rows[:3], expected[:3]))

            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(ask, [KEY, OTHER, KEY, OTHER]))
            assert not wrong, wrong[:2]
        # A store belongs to one key.
        store = pathlib.Path(folder, KEY)
        assert refused(savedsearch.Error, lambda: savedsearch.connect(url, api_key=OTHER, store=store)).kind == "config"


@contextlib.contextmanager
def pressing_ctrl_c(every):
    """Presses Ctrl-C until the block ends: the driver manager can miss one that comes as a batch arrives."""
    done = threading.Event()

    def press():
        while not done.wait(every):
            os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    try:
        yield
    finally:
        done.set()
        pressing.join()


def cancelling():
    import adbc_driver_manager
    import duckdb
    import polars
    import pyarrow

    statement = f"SELECT * FROM mentions WHERE aid = '{AID}' AND duration = '365d'"
    with Simulator("--delay-ms", "300", "--mentions", "20000") as service:
        connection = savedsearch.connect(service.url, api_key=KEY, concurrency=1)

        def sent():
            return connection.sql("SELECT count(*) FROM system.requests").rows()[0][0]

        def quiet(what):
            # Those on their way may be counted later. The whole query takes a minute.
            for _ in range(5):
                before = sent()
                time.sleep(1)
                if sent() == before:
                    return
            raise AssertionError(f"{what}: requests are still being sent")

        # Ctrl-C, while other threads run.
        query, ticks = connection.sql(statement), []
        ticking = threading.Event()

        def tick():
            while not ticking.wait(0.02):
                ticks.append(1)

        threading.Thread(target=tick).start()
        try:
            with pressing_ctrl_c(1.5):
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
                try:
                    with pressing_ctrl_c(1):
                        fetch(cursor)
                    raise AssertionError("the rows were not cancelled")
                except KeyboardInterrupt:
                    pass
                # Ctrl-C that comes between two rows of a loop is an exception of the loop.
                if fetch is not list:
                    assert refused(savedsearch.Error, cursor.fetchall).kind == "cancelled"
        # In a stream of a cursor, which asks the cursor for each batch.
        with connection.cursor() as cursor:
            reader = cursor.execute(statement).fetch_record_batch()
            try:
                with pressing_ctrl_c(1):
                    reader.read_all()
                raise AssertionError("the rows were not cancelled")
            except KeyboardInterrupt:
                pass
            assert refused(savedsearch.Error, cursor.fetchall).kind == "cancelled"
        # In a stream that another library reads, and by closing its reader, while the cursor stays open.
        with connection.cursor() as cursor:
            names = [name for name, *_ in cursor.execute(statement).description]
            rows = cursor.fetch_arrow()
            assert pyarrow.schema(rows).names == names
            assert "consumed" in str(refused(savedsearch.ProgrammingError, lambda: cursor.description))
            with pressing_ctrl_c(1):
                line = str(refused(pyarrow.ArrowException, lambda: pyarrow.table(rows)))
            assert "the query was cancelled" in line, line
            quiet("Ctrl-C in a stream of fetch_arrow")
            assert "the rows were streamed" in str(refused(savedsearch.InterfaceError, rows.__arrow_c_stream__))
            for stream in (lambda: cursor.execute(statement).fetch_arrow(), lambda: connection.sql(statement)):
                reader = pyarrow.RecordBatchReader.from_stream(stream())
                reader.read_next_batch()
                reader.close()
                quiet("a closed reader")
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
        for library, read in [
            ("pyarrow", pyarrow.table),
            ("polars", polars.DataFrame),
            ("duckdb", lambda found: duckdb.sql("FROM found").fetchall()),
        ]:
            query = connection.sql(statement)
            with pressing_ctrl_c(1.5):
                line = str(refused(Exception, lambda: read(query)))
            assert re.search("query was cancelled|Query interrupted", line), (library, line)
            assert refused(savedsearch.Error, query.arrow).kind in ("cancelled", "usage"), library
            if "Query interrupted" in line:
                # DuckDB keeps the stream that it reads no more, whose next pages are requested ahead.
                query.close()
            quiet(f"Ctrl-C in {library}")
        # A stream goes on when nobody but its reader has it.
        numbers = pyarrow.RecordBatchReader.from_stream(connection.sql("SELECT * FROM generate_series(1, 100000)"))
        assert numbers.read_all().num_rows == 100_000
        quiet("a closed query")
        # From another thread, and by leaving the rows.
        query = connection.sql(statement)
        threading.Timer(1, query.cancel).start()
        assert refused(savedsearch.Error, query.arrow).kind == "cancelled"
        quiet("cancel")
        # After a cancel, every kind of fetch raises the same, whatever has arrived before.
        def cancelled(call):
            error = refused(savedsearch.OperationalError, call)
            status = adbc_driver_manager.AdbcStatusCode.CANCELLED
            assert (error.kind, error.sqlstate, error.status_code) == ("cancelled", "57014", status), error

        fetches = [name for name in dir(savedsearch.Cursor) if name.startswith("fetch")]
        assert len(fetches) > 8, fetches
        for statement_of_it in ("SELECT 1", statement):
            for end in (savedsearch.Cursor.adbc_cancel, lambda cursor: connection.adbc_cancel()):
                with connection.cursor() as cursor:
                    cursor.execute(statement_of_it)
                    end(cursor)
                    for name in fetches:
                        cancelled(getattr(cursor, name))
                    cancelled(lambda: next(cursor))
                    assert cursor.execute("SELECT 1").fetchall() == [(1,)], "the next statement runs"
        # While another thread executes.
        with connection.cursor() as cursor, concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(cursor.execute, statement.replace("*", "count(DISTINCT title)"))
            time.sleep(1)
            cursor.adbc_cancel()
            cancelled(running.result)
            for name in fetches:
                cancelled(getattr(cursor, name))
        # Before the driver has begun it, in every call that runs a statement.
        runs = (
            lambda cursor: cursor.execute("SELECT 1"),
            lambda cursor: cursor.executemany("CREATE OR REPLACE TABLE ones AS SELECT ? AS one", [(1,)]),
            lambda cursor: cursor.executescript("CREATE OR REPLACE TABLE ones AS SELECT 1 AS one"),
        )
        for run_it in runs:
            for end in (savedsearch.Cursor.adbc_cancel, lambda _: connection.adbc_cancel()):
                with connection.cursor() as cursor:
                    cursor._clear = lambda: end(cursor)
                    cancelled(lambda: run_it(cursor))
                    cancelled(cursor.fetchall)
                    del cursor._clear
                    assert cursor.execute("SELECT 1").fetchall() == [(1,)], "the next statement runs"
        for read in ("arrow", "rows", "pl", "df", "svg", "__arrow_c_stream__"):
            query = connection.sql("SELECT 1")
            query.cancel()
            cancelled(getattr(query, read))
            assert query.estimate(), "an estimate reads no rows"
        query = connection.sql("SELECT 1")
        assert query.rows() == [(1,)]
        query.cancel()
        assert query.rows() == [(1,)], "rows that were kept stay"
        with connection.cursor() as cursor:
            reader = cursor.execute(statement).fetch_record_batch()
            reader.read_next_batch()
            reader.close()
        quiet("a closed stream")
        connection.close()


def leaks():
    import pyarrow

    statement = f"SELECT id, title FROM mentions WHERE aid = '{AID}' AND duration = '365d'"
    with Simulator() as service:

        def use(times):
            for at in range(times):
                connection = savedsearch.connect(service.url, api_key=KEY)
                query = connection.sql(statement)
                if at % 2 == 0:
                    stream = pyarrow.RecordBatchReader.from_stream(query)
                    stream.read_next_batch()
                    # Half of the streams are cancelled; the others are dropped after their first rows.
                    if at % 4 == 0:
                        query.cancel()
                    del stream
                else:
                    query.close()
                connection.close()
            return resident()

        first, second = use(1000), use(1000)
        grown = (second - first) / 1024
        print(f"memory after the second 1,000 connections: {grown:+.1f} MiB")
        assert grown < 8, f"{grown} MiB more after the second 1,000 connections"


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
        with (
            Simulator("--fault", "short@2-") as service,
            savedsearch.connect(service.url, api_key=KEY, completeness="report") as connection,
        ):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                use(connection)
        found = [warning for warning in caught if issubclass(warning.category, savedsearch.IncompleteResult)]
        assert found and all(warning.filename == __file__ for warning in found), [str(warning) for warning in caught]


def sets_of_parameters():
    """A budget and an estimate are those of all sets together."""
    import numpy
    import pandas
    import pyarrow

    aids = pyarrow.table({"aid": [AID, "184889", AID, "184889", AID]})
    statement = "SELECT count(*) AS n FROM mentions WHERE aid = ?"
    with Simulator() as service, savedsearch.connect(service.url, api_key=KEY, max_requests=3) as connection:
        query = connection.sql(statement, aids)
        assert query.estimate() == "5" and query.costs().column("at_least").to_pylist() == [1, 1, 1, 1, 1, 5], query.costs()
        error = refused(savedsearch.OperationalError, query.arrow)
        assert error.kind == "budget" and query.requests == 0, (error, query.requests)
        assert str(error).startswith("5 parameter sets: the query needs at least 5 requests, but "), error
        with connection.cursor() as cursor:
            error = refused(savedsearch.OperationalError, lambda: cursor.execute(statement, aids))
            assert error.kind == "budget" and error.advice in str(error), error
            create = "CREATE OR REPLACE TABLE counted AS SELECT count(*) AS n FROM mentions WHERE aid = ?"
            error = refused(savedsearch.ProgrammingError, lambda: cursor.executemany(create, [(AID,)] * 4))
            assert str(error).startswith("a statement that changes the session takes one parameter set, got 4; "), error
        assert connection.sql("SELECT count(*) FROM system.requests").rows() == [(0,)], "nothing was spent"
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
        # Values of each type arrive as what they are. Ids are text, as the service has them.
        id = uuid.UUID("550e8400-e29b-41d4-a716-446655440000")

        class Choice(enum.Enum):
            SEARCH = AID

        for given, expected in [
            (id, str(id)),
            ([id], [str(id)]),
            (Choice.SEARCH, AID),
            (decimal.Decimal("1.50"), decimal.Decimal("1.50")),
            (datetime.time(1, 2, 3), datetime.time(1, 2, 3)),
            (datetime.timedelta(days=1, seconds=2), datetime.timedelta(days=1, seconds=2)),
            (numpy.int64(3), 3),
            (numpy.float32(1.5), 1.5),
            (numpy.bool_(True), True),
            (numpy.str_("x"), "x"),
            (numpy.datetime64("2026-07-01"), datetime.date(2026, 7, 1)),
            (numpy.datetime64("2026-07-01T12:00:00"), datetime.datetime(2026, 7, 1, 12)),
            (numpy.timedelta64(2, "h"), datetime.timedelta(hours=2)),
            (numpy.datetime64("NaT"), None),
            (pandas.NaT, None),
            (pandas.NA, None),
        ]:
            assert connection.sql("SELECT ?", (given,)).rows() == [(expected,)], given
        ids = pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), pyarrow.array([id.bytes], pyarrow.binary(16)))
        assert connection.sql("SELECT ?", pyarrow.table({"id": ids})).rows() == [(str(id),)]
        assert connection.sql("SELECT count(*) FROM saved_searches WHERE aid = ?", (id,)).rows() == [(0,)]


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
    import adbc_driver_manager
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
    # The class of the exception is the one that a call would have raised.
    sets = pyarrow.table({"aid": [AID, "nope"]})
    with Simulator() as service, savedsearch.connect(service.url, api_key=KEY) as connection, connection.cursor() as cursor:
        for read in (
            lambda: cursor.execute("SELECT id FROM mentions WHERE aid = ?", sets).fetchall(),
            lambda: connection.sql("SELECT id FROM mentions WHERE aid = ?", sets).arrow(),
        ):
            error = refused(savedsearch.ProgrammingError, read)
            assert (error.kind, error.status_code) == ("not_found", adbc_driver_manager.AdbcStatusCode.NOT_FOUND), error
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
    code = "import savedsearch; print(*dir(savedsearch)); help(savedsearch)"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {"connect", "sql", "Error", "Query"} <= set(listed.splitlines()[0].split())
    assert "connect(uri" in listed and "class bytes" not in listed
    with savedsearch.connect(now=NOW) as connection:
        for statement in ("SELECT nothing FROM mentions", "COPY mentions TO 'x.csv'", "SELEC 1"):
            error = refused(savedsearch.Error, lambda: connection.sql(statement))
            for other in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
                assert type(other) is type(error) and vars(other) == vars(error) and str(other) == str(error), vars(other)
        cursor, negative = connection.cursor(), connection.cursor()
        negative.execute("SELECT 1")
        negative.arraysize = -3
        for call, words in [
            (lambda: connection.sql("SELECT ?", (2**70,)), "parameter 1"),
            (lambda: connection.sql("SELECT ?, ?", (1, object())), "parameter 2"),
            (lambda: connection.sql("SELECT ?", (decimal.Decimal("NaN"),)), "parameter 1: a Decimal cannot be NaN"),
            (
                lambda: connection.sql("SELECT ?", (datetime.time(1, tzinfo=datetime.timezone.utc),)),
                "parameter 1: a time of day with a time zone",
            ),
            (lambda: connection.sql("SELECT ?", "text"), "sequence"),
            (lambda: connection.sql("SELECT ?", 5), "sequence"),
            (lambda: connection.sql("SELECT ?", (2**63,)), "parameter 1: the value is out of range"),
            (lambda: connection.sql("SELECT ?", (datetime.timedelta.max,)), "parameter 1: the value is out of range"),
            (lambda: connection.sql("SELECT ?", (decimal.Decimal("1" * 77),)), "parameter 1: the value is out of range"),
            (lambda: connection.sql("SELECT ?", ("\ud800",)), "remove unpaired surrogates"),
            (lambda: connection.sql("SELECT ?", pyarrow.array([1, 2])), "pass a sequence of values, or an Arrow table"),
            (lambda: connection.sql("SELECT ?", [("a",)]), "an Arrow table with a row for each set"),
            (lambda: cursor.execute("SELECT ?", [("a",), ("b",)]), "an Arrow table with a row for each set"),
            (lambda: cursor.executemany("SELECT ?", [(1,)]), "call execute, which also takes an Arrow table"),
            (lambda: cursor.executescript("SELECT 1"), "call execute"),
            (lambda: cursor.executemany("SET savedsearch.max_requests = ?", [(1,), ("a",)]), "different types: int, str"),
            (lambda: cursor.execute("SELECT 1").fetchmany(-1), "invalid number of rows: -1"),
            (lambda: negative.fetchmany(), "invalid number of rows: -3"),
            (lambda: savedsearch.sql("SELECT 1", connection="a"), "invalid connection of type str"),
            (lambda: connection.sql("SELECT 1\0, 2"), "NUL"),
            (lambda: connection.sql("SELECT '\ud800'"), "Unicode"),
            (lambda: cursor.execute("SELECT ?", "text"), "sequence"),
            (lambda: cursor.execute("SELECT 1\0"), "NUL"),
            (lambda: cursor.executemany("SET savedsearch.max_requests = ?", ["5"]), "sequence"),
            (lambda: savedsearch.connect("http://127.0.0.1/v4", api_key=b"bytes"), "api_key"),
            (lambda: savedsearch.connect("http://127.0.0.1/v4", api_key="a\0b"), "NUL"),
            (lambda: savedsearch.connect(5), "uri of type int; expected text"),
            (lambda: savedsearch.connect(profile=5), "profile of type int; expected a path"),
            (lambda: connection.sql(b"SELECT 1"), "statement of type bytes; expected text"),
        ]:
            error = refused(savedsearch.ProgrammingError, call)
            assert words in str(error) and error.kind == "usage" and error.sqlstate == "22023", error
            assert error.advice and str(error).endswith(error.advice), error
        assert negative.fetchall() == [(1,)], "no row is lost"
        # Values that Python has no type for.
        late = "SELECT DATE '9999-12-31' + 1000"
        for call in (cursor.execute(late).fetchone, cursor.fetchall, connection.sql(late).rows):
            error = refused(savedsearch.DataError, call)
            assert error.kind == "usage" and "as Arrow data" in error.advice, error
        # Times of day have nanoseconds, which neither Python nor pandas has.
        times = connection.sql("SELECT arrow_cast(3661000001001, 'Time64(Nanosecond)') AS t")
        assert times.rows() == [(datetime.time(1, 1, 1, 1),)] and times.df()["t"].tolist() == [datetime.time(1, 1, 1, 1)]
        # A stream whose cursor ran another statement.
        reader = cursor.execute("SELECT 1").fetch_record_batch()
        cursor.execute("SELECT 2")
        assert "ran another statement" in str(refused(savedsearch.InterfaceError, reader.read_all)) and cursor.fetchall() == [(2,)]
        # The methods of the driver manager raise the exceptions of the package too.
        for call in (
            cursor.nextset,
            lambda: cursor.adbc_execute_partitions("SELECT 1"),
            lambda: cursor.adbc_ingest("t", pyarrow.table({"a": [1]})),
        ):
            assert refused(savedsearch.NotSupportedError, call).kind == "usage"
        cursor.execute("SET savedsearch.max_requests = 7")
        assert cursor.description is None
        with connection.adbc_clone() as clone:
            assert isinstance(clone, savedsearch.Connection) and clone.is_demo
            assert clone.sql("SHOW savedsearch.max_requests").rows()[0][1] == "1000"
    for call in (
        connection.cursor,
        lambda: connection.sql("SELECT 1"),
        lambda: connection.is_demo,
        lambda: cursor.execute("SELECT 1"),
        connection.adbc_clone,
    ):
        assert "is closed" in str(refused(savedsearch.InterfaceError, call))
    # In the middle of the rows.
    ended = savedsearch.connect(now=NOW)
    cursor, query = ended.cursor(), ended.sql("SELECT id FROM mentions")
    cursor.execute("SELECT id FROM mentions").fetchone()
    ended.close()
    for call in (cursor.fetchone, cursor.fetchall, lambda: next(cursor), lambda: cursor.execute("SELECT 1"), query.arrow):
        assert "the connection is closed" in str(refused(savedsearch.InterfaceError, call))
    # Packages that are not installed.
    code = "import sys\nclass None_:\n    def find_spec(self, name, *_):\n" \
           "        if name in ('polars', 'pandas'): raise ModuleNotFoundError(name, name=name)\n" \
           "sys.meta_path.insert(0, None_())\nimport savedsearch as s\nq = s.sql('SELECT 1')\n" \
           "for call in (q.pl, q.df):\n    try: call()\n    except s.Error as error: print(error.kind, error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = [f"usage {name} is not installed; install it with `pip install {name}`" for name in ("polars", "pandas")]
    assert (done.stdout.splitlines(), done.stderr) == (lines, ""), done
    with tempfile.TemporaryDirectory() as folder, Simulator() as service:
        # A store that is no folder.
        file = pathlib.Path(folder, "file")
        file.write_text("")
        assert refused(savedsearch.OperationalError, lambda: savedsearch.connect(service.url, api_key=KEY, store=file)).kind == "store"


def threads():
    """Threads that share a cursor get every row once, or an exception; threads that share a query get the same rows."""
    statement = f"SELECT id FROM mentions WHERE aid = '{AID}'"
    with savedsearch.connect(now=NOW) as connection:
        [(expected,)] = connection.sql(f"SELECT count(*) FROM mentions WHERE aid = '{AID}'").rows()
        query = connection.sql(statement)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            shared = [rows.result() for rows in [pool.submit(query.rows) for _ in range(4)]]
        assert all(rows == shared[0] for rows in shared) and len(shared[0]) == expected

        def rows_of(cursor, fetch):
            rows, refusals = [], []
            while True:
                try:
                    found = fetch(cursor)
                except savedsearch.InterfaceError as error:
                    refusals.append(error)
                    time.sleep(0.005)
                    continue
                if not found:
                    return rows, refusals
                rows += found

        for fetch in (
            lambda cursor: cursor.fetchmany(20),
            lambda cursor: list(filter(None, [cursor.fetchone()])),
            # A list of more rows would be lost if another thread came between two of them.
            lambda cursor: list(itertools.islice(cursor, 1)),
        ):
            with connection.cursor() as cursor, concurrent.futures.ThreadPoolExecutor(3) as pool:
                cursor.execute(statement)
                parts = [part.result() for part in [pool.submit(rows_of, cursor, fetch) for _ in range(3)]]
            rows = [row for part, _ in parts for row in part]
            assert sorted(rows) == sorted(shared[0]), (len(rows), expected)
            assert all(error.kind == "usage" and "another thread" in str(error) for _, refusals in parts for error in refusals)
        # While one thread fetches, no other call runs, except for those that end it.
        with connection.cursor() as cursor, concurrent.futures.ThreadPoolExecutor(1) as pool:
            cursor.execute(statement)
            inside, ready = threading.Event(), threading.Event()
            held = pool.submit(cursor._read, lambda: (ready.set(), inside.wait(60)))
            assert ready.wait(60)
            for call in (
                cursor.fetchone,
                lambda: next(cursor),
                cursor.fetchall,
                cursor.fetch_arrow_table,
                lambda: cursor.execute("SELECT 1"),
                lambda: cursor.executescript("SELECT 1"),
                lambda: cursor.executemany("SELECT ?", [(1,)]),
                lambda: cursor.adbc_prepare("SELECT 1"),
            ):
                error = refused(savedsearch.InterfaceError, call)
                assert error.kind == "usage" and "a cursor for each thread" in str(error), error
            inside.set()
            held.result()
            assert len(cursor.fetchall()) == expected
        # A thread may fetch what another has executed, one after the other.
        with connection.cursor() as cursor, concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(cursor.execute, statement).result()
            assert len(cursor.fetchall()) == expected
    # A cursor that another thread closes or cancels: the statement runs, or an exception says why not, but never Ctrl-C's.
    with savedsearch.connect(now=NOW) as connection:
        for end in (savedsearch.Cursor.close, savedsearch.Cursor.adbc_cancel):
            for _ in range(100):
                cursor = connection.cursor()
                ending = threading.Thread(target=end, args=(cursor,))
                ending.start()
                try:
                    cursor.execute("SELECT 1")
                except savedsearch.Error as error:
                    assert error.kind in ("cancelled", "usage"), error
                ending.join()
                cursor.close()
    # A connection that is closed while other threads open cursors.
    for _ in range(5):
        connection, failures, started = savedsearch.connect(now=NOW), [], threading.Barrier(5)

        def work():
            started.wait(60)
            while True:
                try:
                    with connection.cursor() as cursor:
                        cursor.execute("SELECT 1")
                except savedsearch.Error as error:
                    failures.append(error)
                    if "connection is closed" in str(error):
                        return

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            working = [pool.submit(work) for _ in range(4)]
            started.wait(60)
            time.sleep(0.1)
            connection.close()
            for one in working:
                one.result()
        assert connection._closed and {error.kind for error in failures} <= {"cancelled", "usage"}, failures
    # A stream of a cursor, while another thread ends it or runs another statement.
    with Simulator("--delay-ms", "300", "--mentions", "20000") as service:
        statement_of_many = f"SELECT id FROM mentions WHERE aid = '{AID}' AND duration = '365d'"

        def run_another():
            assert "another thread" in str(refused(savedsearch.InterfaceError, lambda: cursor.execute("SELECT 1")))

        for end in (lambda: cursor.close(), lambda: connection.close(), run_another):
            connection = savedsearch.connect(service.url, api_key=KEY, concurrency=1)
            cursor = connection.cursor()
            reader = cursor.execute(statement_of_many).fetch_record_batch()
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                running = pool.submit(reader.read_all)
                time.sleep(1)
                end()
                cursor.close()
                assert refused(savedsearch.Error, running.result).kind == "cancelled"
            connection.close()
        # A daemon thread that reads a stream as the process ends.
        for read in ("pyarrow.table(c.sql(text))", "c.cursor().execute(text).fetch_record_batch().read_all()"):
            code = f"import pyarrow, savedsearch, threading, time; text = {statement_of_many!r}; " \
                   f"c = savedsearch.connect({service.url!r}, api_key={KEY!r}, concurrency=1); " \
                   f"threading.Thread(target=lambda: {read}, daemon=True).start(); time.sleep(1.5)"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, (read, done)
    # The number of requests can be read while another thread executes.
    with (
        Simulator("--delay-ms", "100", "--mentions", "20000") as service,
        savedsearch.connect(service.url, api_key=KEY, concurrency=1) as connection,
    ):
        query, seen = connection.sql(f"SELECT count(DISTINCT title) FROM mentions WHERE aid = '{AID}' AND duration = '365d'"), set()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(query.arrow)
            while not running.done() and len(seen) < 5:
                seen.add(query.requests)
                assert isinstance(query.notes, list)
                time.sleep(0.05)
            query.close()
            refused(savedsearch.Error, running.result)
        assert len(seen) == 5 and query.requests >= max(seen), (seen, query.requests)
    # It can be read while another thread closes the cursor or the connection.
    class Ending:
        """A statement whose account is read as soon as it has ended."""

        def __init__(self, cursor):
            self.cursor, self.statement = cursor, cursor._stmt

        def __getattr__(self, name):
            return getattr(self.statement, name)

        def close(self):
            self.statement.close()
            seen.append((self.cursor.requests, self.cursor.notes))

    for of in ("cursor", "connection"):
        with savedsearch.connect(now=NOW) as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT count(*) FROM mentions WHERE aid = '{AID}'").fetchall()
            seen, expected = [], (cursor.requests, cursor.notes)
            assert expected[0] == 1 and "no time filter" in expected[1][0], expected
            cursor._stmt = Ending(cursor)
            (cursor if of == "cursor" else connection).close()
            assert seen == [expected] == [(cursor.requests, cursor.notes)], (of, seen)
    ended = savedsearch.connect(now=NOW)
    ended._conn.close()
    for read in ("is_demo", "adbc_current_catalog", "adbc_current_db_schema"):
        refused(savedsearch.Error, lambda: getattr(ended, read))
    # A cursor and a connection are closed while another thread executes, which ends.
    with Simulator("--delay-ms", "300", "--mentions", "20000") as service:
        for close in ("close of the cursor", "close of the connection"):
            connection = savedsearch.connect(service.url, api_key=KEY, concurrency=1)
            cursor = connection.cursor()
            titles = f"SELECT count(DISTINCT title) FROM mentions WHERE aid = '{AID}' AND duration = '365d'"
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                running = pool.submit(cursor.execute, titles)
                time.sleep(1)
                (cursor if "cursor" in close else connection).close()
                assert refused(savedsearch.Error, running.result).kind == "cancelled", close
            connection.close()


def copies():
    """Connections, cursors and queries cannot be copied; the attempt closes nothing."""
    code = "import copy, gc, pickle, sys, savedsearch as s; c = s.connect(); k = c.cursor(); q = c.sql('SELECT 1')\n" \
           "for one in (c, k, q):\n" \
           "    for make in (copy.copy, copy.deepcopy, pickle.dumps):\n" \
           "        try: make(one); sys.exit(f'{make} of {one}')\n" \
           "        except s.InterfaceError as error: assert error.kind == 'usage' and 'another with' in str(error), error\n" \
           "gc.collect(); print(q.rows(), k.execute('SELECT 2').fetchall(), c.sql('SELECT 3').rows())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[(1,)] [(2,)] [(3,)]\n", ""), done


def notebook():
    from IPython.core.interactiveshell import InteractiveShell

    ipython = InteractiveShell.instance()
    ipython.run_line_magic("load_ext", "savedsearch")
    shown = ipython.run_cell_magic("savedsearch", "found", "SELECT source, count(*) AS n FROM mentions GROUP BY source")
    page = shown._repr_html_()
    assert "<svg" in page and "<th>source</th>" in page and "estimated requests:" in page and "sent:" in page, page
    assert ipython.user_ns["found"].pl().height == len(shown.rows)
    estimated = ipython.run_cell_magic("savedsearch", "--estimate", "SELECT count(*) FROM mentions")
    assert "sent:" not in repr(estimated) and "estimated requests:" in repr(estimated)
    assert ipython.run_cell_magic("savedsearch", "", "SET savedsearch.max_requests = 500") is None
    # The window of a query without a time filter is said.
    assert "no time filter: reading the last 7 days" in repr(shown) and "no time filter" in repr(ipython.user_ns["found"])
    assert ipython.user_ns["found"].notes and not savedsearch.sql("SELECT 1").notes
    without = ipython.run_cell_magic("savedsearch", "--no-chart", "SELECT source, count(*) AS n FROM mentions GROUP BY source")
    assert without.rows and "<svg" not in without._repr_html_()
    # Rows that cannot be drawn are shown without a word about a chart.
    plain = ipython.run_cell_magic("savedsearch", "", "SELECT name FROM saved_searches")
    assert plain.rows and plain.picture is None and "chart" not in plain._repr_html_()
    ipython.user_ns["values"] = (AID,)
    one = ipython.run_cell_magic("savedsearch", "--parameters values", "SELECT aid FROM saved_searches WHERE aid = ?")
    assert one.rows == [(AID,)], one.rows
    # A statement that fails leaves no query of an earlier cell in its variable.
    refused(savedsearch.Error, lambda: ipython.run_cell_magic("savedsearch", "found", "SELEC 1"))
    assert "found" not in ipython.user_ns
    two = ipython.run_cell_magic("savedsearch", "--rows 1", "SELECT * FROM generate_series(1, 2) AS s(n)")
    assert repr(two).splitlines()[:2] == ["n", "1"] and "1 row hidden" in repr(two), two
    none = ipython.run_cell_magic("savedsearch", "", "SELECT aid, name FROM saved_searches WHERE false")
    assert repr(none).splitlines()[0] == "aid | name" and "<th>name</th>" in none._repr_html_(), none
    with contextlib.redirect_stdout(io.StringIO()) as written:
        ipython.run_line_magic("savedsearch", "--help")
    assert "--max-requests" in written.getvalue()
    # A wrong option is refused before a request.
    before = savedsearch.sql("SELECT count(*) FROM system.requests").rows()
    for options in ("1x", "a-b", "for", "--rows -1", "--rows x", "--max-requests 0", "--nothing", "--parameters none", "--connection none"):
        error = refused(savedsearch.ProgrammingError, lambda: ipython.run_cell_magic("savedsearch", options, "SELECT id FROM mentions"))
        assert error._render_traceback_() == [f"ProgrammingError: {error}"], options
    assert savedsearch.sql("SELECT count(*) FROM system.requests").rows() == before


def forked():
    """A process that was forked after the driver was used gets an error; it does not wait for threads that it lacks."""
    for read in ("k.fetchall()", "k.fetchone()", "r.read_all()", "k.execute('SELECT 1')", "q.arrow()"):
        code = "import os, savedsearch as s; c = s.connect(); k = c.cursor().execute('SELECT * FROM generate_series(1, 100000)'); " \
               "r = k.fetch_record_batch(); q = c.sql('SELECT 1'); child = os.fork()\n" \
               f"if not child: {read}\nos._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
        assert done.returncode == 1 and "method `spawn`" in done.stderr, (read, done)
    # With the driver manager alone.
    code = "import adbc_driver_manager.dbapi as adbc, os, savedsearch as s; c = adbc.connect(str(s.driver_path()), autocommit=True); " \
           "k = c.cursor(); k.execute('SELECT * FROM generate_series(1, 100000)'); child = os.fork()\n" \
           "if not child: k.fetchall()\nos._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "method `spawn`" in done.stderr, done
    code = "import os, savedsearch; savedsearch.connect().close(); child = os.fork(); " \
           "connection = None if child else savedsearch.connect(); " \
           "os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "method `spawn`" in done.stderr, done


def manifest():
    """Driver managers find the driver by its name: in a folder that is given, in the user's own, and by the manifest of an archive."""
    code = "import adbc_driver_manager.dbapi as dbapi; connection = dbapi.connect('savedsearch', autocommit=True); " \
           "cursor = connection.execute('SELECT 1'); print(cursor.fetchone()[0]); cursor.close(); connection.close()"
    usual = {name: value for name, value in os.environ.items() if name not in ("ADBC_DRIVER_PATH", "XDG_CONFIG_HOME")}

    def python(environment, *arguments):
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=usual | environment)
        assert done.returncode == 0, (environment, done.stderr)
        return done.stdout

    with tempfile.TemporaryDirectory() as folder:
        given, home, archive = (pathlib.Path(folder, name) for name in ("given", "home", "archive"))
        for arguments, environment, place in [
            ([given], {"ADBC_DRIVER_PATH": str(given), "HOME": folder}, given),
            ([], {"HOME": str(home)}, home / ".config/adbc/drivers"),
            ([], {"XDG_CONFIG_HOME": str(home / "own"), "HOME": folder}, home / "own/adbc/drivers"),
        ]:
            assert python(environment, "-m", "savedsearch", *arguments) == f"{place}/savedsearch.toml\n"
            assert python(environment, "-c", code) == "1\n"
        # Nothing is written for a wrong call.
        def refusal(*arguments):
            command = [sys.executable, "-m", "savedsearch", *arguments]
            return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=usual | {"HOME": folder})

        before = sorted(pathlib.Path(folder).rglob("*"))
        for arguments in (["--bogus"], ["-x"], [""], ["a", "b"], ["sql"], ["sql", "-c", "SELECT 1"]):
            done = refusal(*arguments)
            assert done.returncode == 2 and "usage:" in done.stderr and not done.stdout, (arguments, done)
        done = refusal("sql")
        assert "or `savedsearch sql` to run the program" in done.stderr, done
        assert "usage:" in python({"HOME": folder}, "-m", "savedsearch", "--help")
        assert sorted(pathlib.Path(folder).rglob("*")) == before
        done = subprocess.run([sys.executable, "-m", "savedsearch"], capture_output=True, text=True, env=usual | {"HOME": "/proc"})
        assert done.returncode == 1 and done.stderr.startswith("python -m savedsearch: cannot write the manifest: "), done
        archive.mkdir()
        text = (PAGES[0].parent / "packaging/savedsearch.toml").read_text()
        text, count = re.subn(r"/usr/local/lib/libadbc_driver_savedsearch\.\w+", str(savedsearch.driver_path()), text)
        (archive / "savedsearch.toml").write_text(text)
        assert count == 4 and python({"ADBC_DRIVER_PATH": str(archive), "HOME": folder}, "-c", code) == "1\n"


def block_of(page, language, word):
    """The block of a page that contains the word."""
    return next(block for block in re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S) if word in block)


def dbt():
    model = block_of(ADBC_PAGE, "python", "def model")
    with tempfile.TemporaryDirectory() as folder, Simulator() as service:
        project = pathlib.Path(folder)
        (project / "models").mkdir()
        for name in ("dbt_project.yml", "profiles.yml"):
            (project / name).write_text(block_of(ADBC_PAGE, "yaml", f"# {name}"))
        (project / "models" / "sources.py").write_text(model.replace("https://api.example.com/v4", service.url))
        environment = os.environ | {"SAVEDSEARCH_API_KEY": KEY, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        done = subprocess.run([BIN / "dbt", "build"], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        import duckdb

        with duckdb.connect(str(project / "coverage.duckdb")) as database:
            assert database.sql("SELECT count(*) > 1 AND min(n) > 0 FROM sources").fetchone() == (True,)


def dagster_asset():
    import dagster

    names = {"__name__": "coverage"}
    with tempfile.TemporaryDirectory() as folder, Simulator() as service:
        os.chdir(folder)
        os.environ["SAVEDSEARCH_API_KEY"] = KEY
        exec(block_of(ADBC_PAGE, "python", "dagster.asset").replace("https://api.example.com/v4", service.url), names)
        done = dagster.materialize([names["sources"]], run_config={"loggers": {"console": {"config": {"log_level": "WARNING"}}}})
        del os.environ["SAVEDSEARCH_API_KEY"]
        [made] = done.get_asset_materialization_events()
        shown = {name: value.value for name, value in made.materialization.metadata.items()}
        assert done.success and shown["rows"] > 1 and shown["requests"] > 0, shown
        assert pathlib.Path("sources.parquet").exists()
        os.chdir("/")


def other_languages():
    """The programs in R and Go, where they can be run."""
    with tempfile.TemporaryDirectory() as folder, Simulator() as service:
        savedsearch.write_manifest(folder)
        environment = os.environ | {"ADBC_DRIVER_PATH": folder, "SAVEDSEARCH_API_KEY": KEY}

        def called(*command):
            return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)

        def write(name, language, word):
            text = block_of(ADBC_PAGE, language, word).replace("https://api.example.com/v4", service.url)
            pathlib.Path(folder, name).write_text(text)

        write("coverage.R", "r", "adbi")
        write("main.go", "go", "package main")
        if not RSCRIPT or called(RSCRIPT, "-e", "library(adbi)").returncode:
            print("skipped: the program in R (Rscript with adbi is not installed)")
        else:
            done = called(RSCRIPT, "coverage.R")
            assert done.returncode == 0 and "x.com" in done.stdout, done.stderr
        if not GO or called(GO, "mod", "download", "github.com/apache/arrow-adbc/go/adbc@latest").returncode:
            print("skipped: the program in Go (go with access to its modules is not installed)")
        else:
            for command in (["mod", "init", "coverage"], ["mod", "tidy"], ["run", "."]):
                done = called(GO, *command)
                assert done.returncode == 0, (command, done.stderr)
            assert "x.com" in done.stdout, done.stdout


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
        # The cells of a notebook.
        from IPython.core.interactiveshell import InteractiveShell

        ipython = InteractiveShell.instance()
        for cell in block_of(PYTHON_PAGE, "text", "%%savedsearch").split("\n\n"):
            ipython.run_cell(cell).raise_error()
        assert ipython.user_ns["sources"].pl().height > 1


imports()
import savedsearch  # noqa: E402

CHECKS = (
    program, same_as_the_shell, frames, notes, zones, metadata, failures, two_keys, cancelling, incomplete, sets_of_parameters,
    created_tables, in_the_middle, exceptions, threads, copies, notebook, forked, manifest, dbt, dagster_asset, other_languages, pages,
    leaks,
)
# python_package.py [CHECK…]
for check in CHECKS:
    if not sys.argv[1:] or check.__name__ in sys.argv[1:]:
        check()
print("the wheel, its program, driver and Python package passed")
