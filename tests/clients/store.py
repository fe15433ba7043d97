"""DuckDB reads a store while `savedsearch sync` writes it: every snapshot is consistent, and the last one has all mentions.

Needs the environment variable SAVEDSEARCH, and the packages of ducklake.py.
"""

import contextlib
import json
import os
import sqlite3
import subprocess
import tempfile
import time

import ducklake

PROGRAM = os.environ["SAVEDSEARCH"]
SINCE = "2026-05-01"


def savedsearch(folder, *arguments, **options):
    command = [PROGRAM, "--quiet", "--store", folder, "--now", "2026-07-01T12:00:00Z", *arguments]
    return subprocess.run(command, check=True, text=True, capture_output=True, **options).stdout


def by_day(folder, version=None):
    rows = ducklake.count(ducklake.attach(folder), "mentions", "published_at", version, "true")
    return {(row["aid"], row["day"]): row["mentions"] for row in rows}


def expected(folder):
    sql = (
        "SELECT aid, CAST(published_at::date AS VARCHAR) AS day, count(*) AS mentions FROM mentions "
        f"WHERE published_at >= TIMESTAMP '{SINCE}T00:00:00Z' GROUP BY aid, published_at::date"
    )
    lines = savedsearch(folder, "sql", "--format", "ndjson", "--set", "store=off", "-c", sql).splitlines()
    return {(row["aid"], row["day"]): row["mentions"] for row in map(json.loads, lines)}


def deletes(folder):
    with contextlib.closing(sqlite3.connect(f"{folder}/catalog.sqlite")) as catalog:
        return catalog.execute("SELECT count(*) FROM ducklake_delete_file WHERE end_snapshot IS NULL").fetchone()[0]


def main():
    with tempfile.TemporaryDirectory() as folder:
        all_mentions = expected(folder)
        command = [PROGRAM, "--quiet", "--store", folder, "--now", "2026-07-01T12:00:00Z", "sync", "--since", SINCE]
        with subprocess.Popen(command) as sync:
            seen, snapshots = {}, 0
            while sync.poll() is None:
                # Days only become more, and each has all its mentions from the beginning.
                now = by_day(folder) if os.path.exists(f"{folder}/data") else {}
                assert all(now.get(day) == number for day, number in seen.items())
                assert all(all_mentions[day] == number for day, number in now.items())
                seen, snapshots = now, snapshots + 1
                time.sleep(0.05)
        assert sync.returncode == 0
        assert snapshots > 1, "the sync ended before DuckDB read anything"
        assert by_day(folder) == all_mentions
        deleted = ducklake.attach(folder).execute("SELECT count(*), max(deleted_at) FROM store.mentions_deleted")
        assert deleted.fetchall() == [(0, None)]
        versions = ducklake.attach(folder).execute("SELECT snapshot_id FROM store.snapshots() ORDER BY 1").fetchall()
        numbers = [sum(by_day(folder, version).values()) for (version,) in versions[1:]]
        assert numbers == sorted(numbers) and numbers[-1] == sum(all_mentions.values())
        # The rows stay where they are read from: before and after files are merged, and when a few rows of one are replaced.
        columns = "count(*), count(DISTINCT id), sum(reach), min(title), max(as_of), count(first_seen), max(first_seen)"
        by_aid = f"SELECT aid, {columns} FROM store.mentions GROUP BY aid ORDER BY aid"
        rows = ducklake.attach(folder).execute(by_aid).fetchall()
        savedsearch(folder, "store", "compact")
        assert ducklake.attach(folder).execute(by_aid).fetchall() == rows
        one = rows[0][0]
        again = f"SELECT id FROM mentions WHERE aid = '{one}' AND published_at >= '2026-06-03' AND published_at < '2026-06-05'"
        savedsearch(folder, "sql", "--set", "store=write", "-c", again)
        assert deletes(folder) == 1, "the file has the rows of other days and saved searches"
        assert by_day(folder) == all_mentions
        # Statistics of the file exclude nothing that is there.
        some = f"SELECT aid, {columns} FROM store.mentions WHERE aid = '{rows[-1][0]}' GROUP BY aid"
        assert ducklake.attach(folder).execute(some).fetchall() == rows[-1:]
        savedsearch(folder, "store", "compact")
        assert (deletes(folder), by_day(folder)) == (0, all_mentions)
        savedsearch(folder, "store", "forget", "--before", "2026-05-20")
        assert by_day(folder) == {key: number for key, number in all_mentions.items() if key[1] >= "2026-05-20"}
        print(f"DuckDB: {len(all_mentions)} days agree, {snapshots} reads during the sync, {len(versions)} versions")


if __name__ == "__main__":
    main()
