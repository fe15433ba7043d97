"""Superset's own pages in a browser: logs in, and draws the mentions by day over Flight SQL and over PostgreSQL.

Run manually, with Chromium and the package `playwright` beside Superset: browser.py CHROMIUM FOLDER. Writes a picture of
each page into FOLDER.
"""

import json
import pathlib
import sys
import threading

from playwright.sync_api import sync_playwright
from service import Served, upstream_requests
from superset_app import new_app
from werkzeug.serving import make_server

CHROMIUM, PICTURES = sys.argv[1], pathlib.Path(sys.argv[2])
DAY = {"timeGrain": "P1D", "columnType": "BASE_AXIS", "sqlExpression": "published_at", "label": "day", "expressionType": "SQL"}
COUNT = {"expressionType": "SQL", "sqlExpression": "count(*)", "label": "mentions"}
ONE_SEARCH = {"clause": "WHERE", "expressionType": "SIMPLE", "subject": "aid", "operator": "==", "comparator": "183772"}
WEEK = {"clause": "WHERE", "expressionType": "SIMPLE", "subject": "published_at", "operator": "TEMPORAL_RANGE", "comparator": "Last week"}


def main():
    app = new_app()
    web = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    with Served(users=True) as served, sync_playwright() as playwright:
        playwright.selectors.set_test_id_attribute("data-test")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800}, base_url=f"http://127.0.0.1:{web.server_port}")
        page.goto("/login/")
        page.get_by_test_id("username-input").fill("ada")
        page.get_by_test_id("password-input").fill("swordfish")
        page.get_by_test_id("login-button").click()
        page.wait_for_url("**/superset/welcome/")
        login = {"username": "ada", "password": "swordfish", "provider": "db"}
        token = page.request.post("/api/v1/security/login", data=login).json()["access_token"]
        headers = {"Authorization": f"Bearer {token}"}

        def post(path, body):
            answer = page.request.post(f"/api/v1/{path}", data=body, headers=headers)
            assert answer.ok, (path, answer.status, answer.text()[:2000])
            return answer.json()["id"]

        flight = f"datafusion+flightsql://ada:swordfish@127.0.0.1:{served.port}?insecure=true"
        postgres = f"postgresql+psycopg2://ada:swordfish@127.0.0.1:{served.postgres}/savedsearch"
        for name, uri in (("Flight SQL", flight), ("PostgreSQL", postgres)):
            database = post("database/", {"database_name": name, "sqlalchemy_uri": uri})
            dataset = post("dataset/", {"database": database, "schema": "v4", "table_name": "mentions"})
            form = {
                "datasource": f"{dataset}__table",
                "viz_type": "echarts_timeseries_bar",
                "x_axis": "published_at",
                "time_grain_sqla": "P1D",
                "metrics": [COUNT],
                "groupby": ["source"],
                "adhoc_filters": [ONE_SEARCH, WEEK],
                "row_limit": 1000,
            }
            chart = {"slice_name": f"Mentions by day over {name}", "viz_type": form["viz_type"], "params": json.dumps(form)}
            chart = post("chart/", chart | {"datasource_id": dataset, "datasource_type": "table"})
            before = upstream_requests(served)
            page.goto(f"/explore/?slice_id={chart}")
            try:
                page.wait_for_selector("[data-test='chart-container'] canvas, .chart-container canvas", timeout=90_000)
                page.wait_for_timeout(3000)
            finally:
                page.screenshot(path=PICTURES / f"superset {name}.png")
            print(f"requests over {name}: {upstream_requests(served) - before:.0f}")
            # Datasets of the same name in another database are refused.
            for path in (f"chart/{chart}", f"dataset/{dataset}"):
                assert page.request.delete(f"/api/v1/{path}", headers=headers).ok
        browser.close()
    web.shutdown()


main()
