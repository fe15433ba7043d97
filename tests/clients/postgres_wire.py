"""The server for clients of PostgreSQL with psycopg, SQLAlchemy, DuckDB and npm's pg."""

import datetime
import importlib.util
import pathlib
import subprocess
import threading
import time

import duckdb
import psycopg
import sqlalchemy

from service import AID, Served

BIG = f"SELECT id FROM mentions WHERE aid = '{AID}' AND duration = '365d'"


def address(served, user="ada", password="swordfish"):
    return f"host=127.0.0.1 port={served.postgres} dbname=savedsearch user={user} password={password}"


def fails(code, statement):
    try:
        statement()
    except psycopg.Error as error:
        assert error.sqlstate == code, (error.sqlstate, error)
        return
    raise AssertionError(f"no error {code}")


def log_in(served):
    authority = f"sslmode=verify-full sslrootcert={served.folder.name}/authority.pem hostaddr=127.0.0.1"
    encrypted = address(served).replace("host=127.0.0.1", "host=localhost")
    with psycopg.connect(f"{encrypted} {authority}") as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("ada",)
    for wrong in [address(served) + " sslmode=disable", address(served, password="wrong"), address(served, user="eve")]:
        try:
            psycopg.connect(wrong)
        except psycopg.OperationalError:
            continue
        raise AssertionError(wrong)


def psycopg_runs(served):
    with psycopg.connect(address(served), autocommit=True) as connection:
        since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=3)
        counted = "SELECT count(*) FROM mentions WHERE aid = %s AND published_at >= %s"
        number = connection.execute(counted, (AID, since)).fetchone()[0]
        cursor = connection.cursor(binary=True)
        rows = cursor.execute(counted.replace("count(*)", "id, published_at, tags, reach"), (AID, since)).fetchall()
        assert len(rows) == number and all(isinstance(row[1], datetime.datetime) for row in rows)
        assert all(isinstance(row[2], list) for row in rows)
        all_ids = connection.execute(BIG).fetchall()
        with connection.transaction(), connection.cursor(name="some") as named:
            named.itersize = 50
            named.execute(BIG)
            assert [named.fetchone() for _ in range(120)] == all_ids[:120]
        with cursor.copy(f"COPY ({BIG}) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["text"])
            assert list(copy.rows()) == all_ids
        fails("42703", lambda: connection.execute("SELECT nope FROM mentions"))
        connection.autocommit = False
        fails("42P01", lambda: connection.execute("SELECT * FROM nope"))
        fails("25P02", lambda: connection.execute("SELECT 1"))
        connection.rollback()
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.rollback()
        threading.Timer(0.1, connection.cancel).start()
        begun = time.monotonic()
        endless = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 1000000) b"
        fails("57014", lambda: connection.execute(endless))
        assert time.monotonic() - begun < 60


def sqlalchemy_runs(served):
    url = f"postgresql+psycopg://ada:swordfish@127.0.0.1:{served.postgres}/savedsearch"
    engine = sqlalchemy.create_engine(url)
    inspector = sqlalchemy.inspect(engine)
    assert "v4" in inspector.get_schema_names()
    tables = ["breakdowns", "mentions", "overview", "recent_searches", "saved_searches", "volume"]
    assert sorted(inspector.get_table_names(schema="v4")) == tables
    columns = {column["name"]: column for column in inspector.get_columns("mentions", schema="v4")}
    assert isinstance(columns["published_at"]["type"], sqlalchemy.types.DateTime)
    assert isinstance(columns["tags"]["type"], sqlalchemy.types.ARRAY)
    assert inspector.get_pk_constraint("mentions", schema="v4")["constrained_columns"] == ["aid", "id"]
    assert inspector.get_foreign_keys("mentions", schema="v4") == []
    with engine.connect() as connection:
        found = connection.execute(sqlalchemy.text("SELECT name FROM saved_searches WHERE aid = :aid"), {"aid": AID})
        assert len(found.fetchall()) >= 1


def duckdb_runs(served):
    package = pathlib.Path(importlib.util.find_spec("duckdb_extension_postgres_scanner").origin).parent
    extension = next(package.rglob("postgres_scanner.duckdb_extension"))
    engine = duckdb.connect()
    engine.execute(f"LOAD '{extension}'")
    engine.execute(f"ATTACH '{address(served)}' AS service (TYPE postgres, READ_ONLY)")
    names = [row[0] for row in engine.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'v4'").fetchall()]
    assert "mentions" in names, names
    rows = engine.execute("SELECT count(DISTINCT aid) FROM service.v4.saved_searches").fetchone()
    assert rows[0] >= 1
    joined = "SELECT s.name, count(*) FROM service.v4.saved_searches s JOIN service.v4.mentions m USING (aid) GROUP BY 1"
    assert engine.execute(joined).fetchall()


def npm_runs(served):
    program = """
const { Client } = require("pg"), Cursor = require("pg-cursor");
(async () => {
  const client = new Client({ host: "127.0.0.1", port: +process.argv[1], user: "ada", password: "swordfish", database: "savedsearch" });
  await client.connect();
  const one = await client.query("SELECT aid, name FROM saved_searches WHERE aid = $1", [process.argv[2]]);
  if (one.rows[0].aid !== process.argv[2]) throw new Error("no row");
  const cursor = client.query(new Cursor(process.argv[3]));
  if ((await cursor.read(30)).length !== 30) throw new Error("no rows");
  await cursor.close();
  const error = await client.query("SELECT nope FROM mentions").catch((error) => error);
  if (error.code !== "42703") throw error;
  await client.end();
})().catch((error) => { console.error(error); process.exit(1); });
"""
    subprocess.run(["node", "-e", program, str(served.postgres), AID, BIG], check=True, timeout=120)


with Served(users=True, tls=True) as served:
    log_in(served)
with Served(users=True) as served:
    psycopg_runs(served)
    sqlalchemy_runs(served)
    duckdb_runs(served)
    npm_runs(served)
print("the clients of PostgreSQL passed")
