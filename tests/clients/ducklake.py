"""DuckDB as a reader of a store: prints the mentions of each saved search and day (UTC) as JSON lines.

    ducklake.py DIR [--version N] [--filtered] [--time COLUMN] [--where CONDITION]

Needs the packages duckdb, duckdb-extension-ducklake and duckdb-extension-sqlite-scanner, all of one version.
"""

import argparse
import importlib.util
import json
from datetime import date, timedelta
from pathlib import Path

import duckdb


def extension(name):
    folder = Path(importlib.util.find_spec(f"duckdb_extension_{name}").submodule_search_locations[0])
    return next(folder.glob(f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"))


def attach(folder):
    """Returns a connection with the store as the catalog `store`, read-only, wherever its folder has been moved."""
    connection = duckdb.connect()
    for name in ("sqlite_scanner", "ducklake"):
        connection.execute(f"LOAD '{extension(name)}'")
    folder = Path(folder).resolve()
    catalog, data = (str(folder / name).replace("'", "''") for name in ("catalog.sqlite", "data"))
    options = f"READ_ONLY, DATA_PATH '{data}/', OVERRIDE_DATA_PATH true"
    connection.execute(f"ATTACH 'ducklake:sqlite:{catalog}' AS store ({options})")
    return connection


def count(connection, table, time, version, condition):
    at = "" if version is None else f" AT (VERSION => {version})"
    filters = "filters" if table == "mentions_filtered" else "NULL"
    # Instants as numbers, because zoned ones depend on the session's zone.
    day = f"epoch_us({time}) // 86400000000 - (epoch_us({time}) % 86400000000 < 0)::BIGINT"
    sql = f"SELECT aid, {filters}, {day}, count(*) FROM store.{table}{at} WHERE {condition} GROUP BY ALL ORDER BY ALL"
    for aid, text, number, mentions in connection.execute(sql).fetchall():
        row = {"aid": aid, "day": (date(1970, 1, 1) + timedelta(days=number)).isoformat(), "mentions": mentions}
        yield row if text is None else row | {"filters": json.loads(text)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--version", type=int)
    parser.add_argument("--filtered", action="store_true")
    parser.add_argument("--time", default="published_at")
    parser.add_argument("--where", default="true")
    options = parser.parse_args()
    table = "mentions_filtered" if options.filtered else "mentions"
    for row in count(attach(options.folder), table, options.time, options.version, options.where):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
