"""ADBC, the driver used by Polars and pandas: connects, browses, queries, binds, ingests rows and cancels."""

import datetime
import threading

import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import pandas
import polars
import pyarrow
from adbc_driver_flightsql import DatabaseOptions

from service import AID, Served, assert_quiet, upstream_requests, wait_until

USER = {"username": "ada", "password": "swordfish"}


def refused(error, run):
    """Returns the message of the expected error."""
    try:
        run()
    except error as refusal:
        return str(refusal)
    raise AssertionError("the call unexpectedly succeeded")


def browse(connection):
    assert connection.adbc_get_info()["vendor_name"] == "savedsearch"
    assert connection.adbc_get_table_types() == ["LOCAL TEMPORARY", "TABLE", "VIEW"]
    tree = connection.adbc_get_objects(depth="columns").read_all().to_pylist()
    tables = {
        table["table_name"]: [column["column_name"] for column in table["table_columns"]]
        for catalog in tree
        for schema in catalog["catalog_db_schemas"]
        for table in schema["db_schema_tables"]
    }
    assert {"saved_searches", "mentions", "overview", "volume", "breakdowns"} <= tables.keys(), tables.keys()
    assert tables["mentions"][:3] == ["aid", "id", "seq"], tables["mentions"]
    schema = connection.adbc_get_table_schema("mentions", catalog_filter="savedsearch", db_schema_filter="v4")
    assert schema.field("published_at").type == pyarrow.timestamp("us", "UTC"), schema


def query(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT aid) AS n FROM saved_searches")
        assert cursor.fetchone()[0] >= 4
        sql = "SELECT id, published_at, reach, tags FROM mentions WHERE aid = ? AND published_at >= ? LIMIT ?"
        since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=3)
        # The same statement with other values.
        for rows in (5, 7):
            cursor.execute(sql, (AID, since, rows))
            table = cursor.fetch_arrow_table()
            assert table.num_rows == rows and table.schema.field("tags").type == pyarrow.list_(pyarrow.string())
        cursor.execute("SELECT CAST(? AS VARCHAR) AS nothing", (None,))
        assert cursor.fetchone() == (None,)
        cursor.execute("SET savedsearch.max_requests = 77")
        cursor.execute("SHOW savedsearch.max_requests")
        assert cursor.fetchone() == ("savedsearch.max_requests", "77")
        cursor.execute("CREATE TEMPORARY TABLE few AS SELECT aid FROM saved_searches LIMIT 2")
        cursor.execute("SELECT count(*) FROM few")
        assert cursor.fetchone() == (2,)
        owners = pyarrow.table({"aid": [AID], "owner": ["me"]})
        with connection.cursor() as bulk:
            assert bulk.adbc_ingest("owners", owners, temporary=True) == 1
        cursor.execute("SELECT DISTINCT owner FROM owners JOIN mentions USING (aid)")
        assert cursor.fetchall() == [("me",)]
        text = refused(adbc_driver_manager.ProgrammingError, lambda: cursor.execute("SELECT nothing FROM mentions"))
        assert "INVALID_ARGUMENT" in text and "nothing" in text, text
        text = refused(adbc_driver_manager.NotSupportedError, lambda: cursor.execute("COPY mentions TO 'x.csv'"))
        assert "read-only" in text, text


def frames(connection):
    sql = f"SELECT source, count(*) AS n FROM mentions WHERE aid = '{AID}' GROUP BY source ORDER BY source"
    of_pandas = pandas.read_sql(sql, connection)
    of_polars = polars.read_database(sql, connection)
    assert of_pandas["n"].tolist() == of_polars["n"].to_list() and len(of_polars) > 1
    bound = polars.read_database(
        "SELECT count(*) AS n FROM mentions WHERE aid = ?", connection, execute_options={"parameters": (AID,)}
    )
    assert bound["n"].to_list()[0] > 0


def cancel():
    """A cancelled or closed query sends no more requests to the service after a second."""
    with Served("--delay-ms", "200", users=True) as slow:
        for leave in ("cancel", "close"):
            connection = flightsql.connect(slow.uri, USER)
            cursor = connection.cursor()
            cursor.execute("SET savedsearch.concurrency = 1")
            begun = upstream_requests(slow)
            cursor.execute(f"SELECT * FROM mentions WHERE aid = '{AID}' AND duration = '30d'")
            reader = cursor.fetch_record_batch()
            wait_until(lambda: upstream_requests(slow) > begun + 1)
            if leave == "cancel":
                threading.Timer(0.1, cursor.adbc_cancel).start()
                refused(Exception, reader.read_all)
            else:
                reader.close()
            then = assert_quiet(slow)
            assert then < begun + 9, f"{leave}: the query had already finished"
            cursor.close()
            connection.close()


def main():
    with Served(users=True) as served:
        with flightsql.connect(served.uri, USER) as connection:
            browse(connection)
            query(connection)
            frames(connection)
        token = {DatabaseOptions.AUTHORIZATION_HEADER.value: "Bearer bobs-token"}
        with flightsql.connect(served.uri, token) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)
        wrong = {"username": "ada", "password": "guess"}
        text = refused(adbc_driver_manager.Error, lambda: flightsql.connect(served.uri, wrong).cursor().execute("SELECT 1"))
        assert "UNAUTHENTICATED" in text.upper() and "guess" not in text, text
        cancel()
    with Served(tls=True, users=True) as served:
        trusted = {DatabaseOptions.TLS_ROOT_CERTS.value: served.authority.read_text(), **USER}
        with flightsql.connect(served.uri, trusted) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)
    print("ADBC", flightsql.__name__, "with Polars", polars.__version__, "and pandas", pandas.__version__, "passed")


main()
