"""Superset's API, over Flight SQL and over PostgreSQL: connects a database, lists its tables, creates datasets and requests the data of charts."""

from service import Served, upstream_requests
from superset_app import new_app


def main():
    app = new_app()
    with Served(users=True) as served:
        charts(app.test_client(), served)
    print("Superset passed")


def charts(client, served):
    def post(path, body):
        answer = client.post(f"/api/v1/{path}", json=body, headers=headers)
        assert answer.status_code in (200, 201), (path, answer.status_code, answer.text[:2000])
        return answer.json

    headers = {}
    login = {"username": "ada", "password": "swordfish", "provider": "db"}
    headers["Authorization"] = f"Bearer {post('security/login', login)['access_token']}"
    flight = f"datafusion+flightsql://ada:swordfish@127.0.0.1:{served.port}?insecure=true"
    postgres = f"postgresql+psycopg2://ada:swordfish@127.0.0.1:{served.postgres}/savedsearch"
    for name, uri in (("Flight SQL", flight), ("Postgres", postgres)):
        before = upstream_requests(served)
        grain = "PT5M" if name == "Postgres" else "P1D"
        charts_of(client, served, post, headers, {"database_name": name, "sqlalchemy_uri": uri}, grain, before)


def charts_of(client, served, post, headers, database, grain, before):
    post("database/test_connection/", database)
    database = post("database/", database)["id"]
    found = client.get(f"/api/v1/database/{database}/tables/?q=(schema_name:v4)", headers=headers).json
    assert "mentions" in [table["value"] for table in found["result"]], found
    assert upstream_requests(served) == before, "browsing must not send requests"

    sql = "SELECT published_at, source FROM mentions WHERE aid = '183772' AND duration = '7d'"
    virtual = {"database": database, "schema": "v4", "table_name": "week", "sql": sql}
    whole = {"database": database, "schema": "v4", "table_name": "mentions"}
    count = {"expressionType": "SQL", "sqlExpression": "count(*)", "label": "mentions"}
    by_source = {"metrics": [count], "columns": ["source"], "row_limit": 50}
    one_search = {"filters": [{"col": "aid", "op": "==", "val": "183772"}]}
    created = []
    for dataset, query in ((virtual, by_source), (whole, by_source | one_search)):
        dataset = post("dataset/", dataset)["id"]
        created.append(dataset)
        asked = {"datasource": {"id": dataset, "type": "table"}, "queries": [query], "force": True}
        rows = post("chart/data", asked)["result"][0]["data"]
        assert len(rows) > 1 and sum(row["mentions"] for row in rows) > 0, rows
    # By day, as a line chart requests it.
    day = {"timeGrain": "P1D", "columnType": "BASE_AXIS", "sqlExpression": "published_at", "label": "day", "expressionType": "SQL"}
    asked = {"datasource": {"id": dataset, "type": "table"}, "queries": [by_source | one_search | {"columns": [day]}]}
    days = post("chart/data", asked)["result"][0]["data"]
    assert 7 <= len(days) <= 9, days
    # The last days only, in steps of five minutes if the dialect has them.
    recent = {"col": "published_at", "op": "TEMPORAL_RANGE", "val": "DATEADD(DATETIME('now'), -3, day) : now"}
    filters = {"filters": [*one_search["filters"], recent]}
    asked["queries"] = [by_source | filters | {"columns": [day | {"timeGrain": grain}]}]
    steps = post("chart/data", asked)["result"][0]["data"]
    assert 0 < sum(row["mentions"] for row in steps) < sum(row["mentions"] for row in days), steps
    assert all(row["day"] % 300_000 == 0 for row in steps), steps
    # Datasets of the same name in another database are refused.
    for dataset in created:
        assert client.delete(f"/api/v1/dataset/{dataset}", headers=headers).status_code == 200


main()
