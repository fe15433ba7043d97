"""flightsql-dbapi, the driver behind Superset's dialect: DB-API, SQLAlchemy and pandas."""

import threading

import flightsql.sqlalchemy  # noqa: F401 (registers the dialect)
import pandas
import sqlalchemy
from flightsql import FlightSQLClient, TableRef, connect

from service import AID, Served, assert_quiet, upstream_requests, wait_until


def client(served, **credentials):
    return FlightSQLClient(host="127.0.0.1", port=served.port, insecure=True, **credentials)


def by_dbapi(served):
    # With a token, with a user, and with neither, which is refused.
    for credentials in ({"token": "bobs-token"}, {"user": "ada", "password": "swordfish"}):
        cursor = connect(client(served, **credentials)).cursor()
        cursor.execute("SELECT aid, name FROM saved_searches ORDER BY aid LIMIT 2")
        assert cursor.fetchall()[0] == [AID, "Acme – brand"]
        assert [column[0] for column in cursor.description] == ["aid", "name"]
    try:
        connect(client(served)).cursor().execute("SELECT 1")
    except Exception as refusal:
        assert "log in" in str(refusal), refusal
    else:
        raise AssertionError("connected without credentials")


def by_statement(served):
    flight = client(served, token="bobs-token")
    statement = flight.prepare("SELECT count(*) AS n FROM mentions WHERE aid = ?")
    import pyarrow

    info = statement.execute(pyarrow.record_batch([pyarrow.array([AID])], names=["0"]))
    assert flight.do_get(info.endpoints[0].ticket).read_all()["n"][0].as_py() > 0
    statement.close()
    tables = flight.do_get(flight.get_tables().endpoints[0].ticket).read_all()
    assert "mentions" in tables["table_name"].to_pylist()
    keys = flight.do_get(flight.get_primary_keys(TableRef(table="mentions")).endpoints[0].ticket).read_all()
    assert keys["column_name"].to_pylist() == ["aid", "id"], keys
    infos = flight.do_get(flight.get_sql_info([0, 2, 3, 504]).endpoints[0].ticket).read_all()
    assert infos.num_rows == 4


def by_sqlalchemy(served):
    engine = sqlalchemy.create_engine(f"datafusion+flightsql://ada:swordfish@127.0.0.1:{served.port}?insecure=true")
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_schema_names() == ["system", "v4"]
    assert "mentions" in inspector.get_table_names("v4")
    columns = {column["name"]: column["type"] for column in inspector.get_columns("mentions", "v4")}
    assert isinstance(columns["published_at"], sqlalchemy.types.TIMESTAMP), columns["published_at"]
    with engine.connect() as connection:
        rows = connection.execute(f"SELECT source, count(*) AS n FROM mentions WHERE aid = '{AID}' GROUP BY 1").fetchall()
        frame = pandas.DataFrame(rows, columns=["source", "n"])
        assert frame["n"].sum() > 0


def left(served):
    """A cancelled stream sends no more requests to the service."""
    with Served("--delay-ms", "200") as slow:
        flight = client(slow)
        info = flight.execute(f"SELECT * FROM mentions WHERE aid = '{AID}' AND duration = '30d' AND reach >= 0")
        reader = flight.do_get(info.endpoints[0].ticket)
        wait_until(lambda: upstream_requests(slow) > 1)
        threading.Timer(0.1, reader.cancel).start()
        try:
            reader.read_all()
        except (Exception, KeyboardInterrupt):  # raised by the driver
            pass
        assert_quiet(slow)


def main():
    with Served(users=True) as served:
        by_dbapi(served)
        by_statement(served)
        by_sqlalchemy(served)
        left(served)
    print("flightsql-dbapi with SQLAlchemy", sqlalchemy.__version__, "passed")


main()
