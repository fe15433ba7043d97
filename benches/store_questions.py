"""Thirteen kinds of question over all saved searches of a store, compared with DuckDB over the same store, and over the same rows in one
file: prints the ratios, and the memory that each question takes beyond that of a server that waits.

After `store compact`, there are goals, and the exit status is 1 if one is missed: at most 1.0 times as long as DuckDB over the store and
1.5 times as long as over the file, 128 MiB, a file for each 20,000 mentions, 1.3 times the bytes of gzipped JSON, and 3 s for each question
to a server that has just started, if each read of a file of mentions takes 20 ms. The last one needs a C compiler (`cc`) and a program
that is linked dynamically: slow_reads.c delays its reads.

    pip install duckdb duckdb-extension-ducklake duckdb-extension-sqlite-scanner pytz 'psycopg[binary]'
    SAVEDSEARCH_BIN=target/release/savedsearch python benches/store_questions.py [MENTIONS [SEARCHES [RUNS]]]

The store is filled by `sync` from the simulator, and measured before and after `store compact`. Our times are those of a client
of the PostgreSQL server on loopback, DuckDB's those of a connection in this process. Both read files in the cache of the
operating system, and take two threads.
"""

import gzip
import os
import pathlib
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import psycopg
from program import median, run, start

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/clients"))
import ducklake  # noqa: E402

MENTIONS, SEARCHES, RUNS = (int(number) for number in (sys.argv[1:] + ["100000", "50", "5"][len(sys.argv) - 1 :]))
NOW, KEY, SINCE = "2026-07-01T12:00:00Z", "demo-key-comms", "2025-01-01"
QUESTIONS = {
    "count": "SELECT count(*) FROM mentions WHERE SINCE",
    "by language": "SELECT language, count(*) FROM mentions WHERE SINCE GROUP BY language",
    "by aid and month": "SELECT aid, date_trunc('month', published_at), count(*) FROM mentions WHERE SINCE GROUP BY 1, 2",
    "distinct authors": "SELECT count(DISTINCT author_name) FROM mentions WHERE SINCE",
    "length": "SELECT sum(length(text)) FROM mentions WHERE SINCE",
    "top authors": "SELECT author_name, sum(reach) FROM mentions WHERE SINCE GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
    "by day": "SELECT date_trunc('day', published_at), count(*) FROM mentions WHERE SINCE GROUP BY 1",
    "id in a search": "SELECT title FROM mentions WHERE SINCE AND aid = 'AID' AND id = 'ID'",
    "id anywhere": "SELECT title FROM mentions WHERE SINCE AND id = 'ID'",
    "newest ten": "SELECT id, title FROM mentions WHERE SINCE ORDER BY published_at DESC LIMIT 10",
    "ten by reach": "SELECT id, title, reach FROM mentions WHERE SINCE ORDER BY reach DESC, id LIMIT 10",
    "LIKE": "SELECT count(*) FROM mentions WHERE SINCE AND text LIKE '%recall%'",
    "ILIKE": "SELECT count(*) FROM mentions WHERE SINCE AND text ILIKE '%RECALL%'",
}


def sizes(store, what):
    paths = sqlite3.connect(f"{store}/catalog.sqlite").execute(
        "SELECT file_size_bytes, footer_size, record_count FROM ducklake_data_file WHERE table_id = 1 AND end_snapshot IS NULL"
    )
    files = paths.fetchall()
    rows = sum(rows for _, _, rows in files)
    length, footers = sum(length for length, _, _ in files), sum(footer for _, footer, _ in files)
    print(f"{what}: {len(files)} files, {length / rows:.0f} bytes a mention, {footers / rows:.1f} of them footers")
    return length / rows, len(files), rows


def memory(process, field):
    """A size of a process in MiB: `VmRSS` is the present one, and `VmHWM` the largest one since `forget`."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) / 1024


def forget(process):
    """Begins to record the largest size of a process again."""
    pathlib.Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def serve(url, store, **environment):
    """A server over the store, and the address of its PostgreSQL server."""
    listen = ("--listen", "127.0.0.1:0", "--postgres-listen", "127.0.0.1:0")
    arguments = ("--base-url", url, "--store", store, "serve", *listen, "--set", "freshness=3650d")
    server, told = start(*arguments, **environment)
    host, port = told["Postgres"].rsplit(":", 1)
    return server, {"host": host, "port": port, "user": "bench", "dbname": "savedsearch", "autocommit": True}


def asked(words):
    """The questions as statements, by name."""
    for name, sql in QUESTIONS.items():
        for word, value in words.items():
            sql = sql.replace(word, value)
        yield name, sql


def slow_disk(url, store, words, folder):
    """Prints the time of each question to a server that has just started, while reads of the files take 20 ms. Returns those that miss
    the goal."""
    if not shutil.which("cc"):
        print("a slow disk is not measured: there is no C compiler")
        return []
    library, count = f"{folder}/slow_reads.so", pathlib.Path(folder) / "reads"
    source = pathlib.Path(__file__).parent / "slow_reads.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, str(source), "-ldl"], check=True)
    data = str((pathlib.Path(store) / "data").resolve())
    slow = {"LD_PRELOAD": library, "SLOW_FOLDER": data, "SLOW_MS": "20", "SLOW_COUNT": str(count)}
    print(f"with {slow['SLOW_MS']} ms for each read of a file of mentions, after a start")
    all_reads, missed = 0, []
    for name, sql in asked(words):
        count.write_bytes(bytes(8))
        server, address = serve(url, store, **slow)
        with psycopg.connect(**address) as ours:
            begun = time.perf_counter()
            ours.execute(sql).fetchall()
            seconds = time.perf_counter() - begun
        server.terminate()
        server.wait(30)
        reads = int.from_bytes(count.read_bytes(), sys.byteorder)
        all_reads += reads
        print(f"  {name:<18} {seconds:>6.2f} s  {reads:>6} reads")
        if seconds > 3:
            missed.append(f"{name}: {seconds:.1f} s instead of 3 with a slow disk")
    return missed if all_reads else ["a slow disk: no read was delayed, since the program is linked statically"]


def measure(url, store, words, one):
    """Prints the figures of all questions. Returns those that miss a goal."""
    server, address = serve(url, store)
    duck = ducklake.attach(store)
    duck.execute("SET threads = 2")
    duck.execute(f"COPY (FROM store.mentions ORDER BY aid, published_at) TO '{one}' (FORMAT parquet, COMPRESSION zstd)")
    ratios, missed = [], []
    print(f"  {'':<18} {'ours':>9} {'store':>9} {'one file':>9} ms")
    with psycopg.connect(**address) as ours:
        for name, sql in asked(words):
            waiting = memory(server, "VmRSS")
            forget(server)
            time_taken, rows = median(lambda sql: ours.execute(sql).fetchall(), sql, RUNS)
            taken = memory(server, "VmHWM") - waiting
            theirs = []
            for table in ("store.mentions", f"read_parquet('{one}')"):
                time_of, expected = median(
                    lambda sql: duck.execute(sql).fetchall(), sql.replace("FROM mentions", f"FROM {table}"), RUNS
                )
                assert len(rows) == len(expected), (sql, len(rows), len(expected))
                theirs.append(time_of)
            of_store, of_file = (time_taken / time_of for time_of in theirs)
            ratios.append(of_store)
            print(
                f"  {name:<18} {time_taken:>9.1f} {theirs[0]:>9.1f} {theirs[1]:>9.1f} ms  ratios {of_store:.2f} {of_file:.2f}"
                f"  {taken:.0f} MiB"
            )
            for figure, goal, what in ((of_store, 1.0, "the store"), (of_file, 1.5, "one file"), (taken, 128, "MiB")):
                if figure > goal:
                    missed.append(f"{name}: {figure:.2f} instead of {goal} ({what})")
    print(f"  geometric mean of the ratios {statistics.geometric_mean(ratios):.2f}")
    server.terminate()
    server.wait(30)
    return missed


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    os.environ |= {"SAVEDSEARCH_API_KEY": KEY, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder}
    simulate = ("simulate", "--listen", "127.0.0.1:0", "--mentions", str(MENTIONS), "--searches", str(SEARCHES))
    service, told = start("--now", NOW, *simulate, "--largest-page", "1000")
    url, store = f"http://{told['listening']}/v4", f"{folder}/store"
    begun = time.perf_counter()
    run("--base-url", url, "--store", store, "sync", "--since", SINCE)
    print(f"filled in {time.perf_counter() - begun:.1f} s")
    since = f"published_at >= TIMESTAMP '{SINCE} 00:00:00+00'"
    select = f"SELECT aid, id FROM mentions WHERE {since} ORDER BY published_at, id LIMIT 1"
    query = ("--base-url", url, "--store", store, "sql", "--set", "freshness=3650d")
    aid, id = run(*query, "--format", "csv", "-c", select).decode().splitlines()[1].split(",")
    words = {"SINCE": since, "AID": aid, "ID": id}
    sizes(store, "after sync")
    measure(url, store, words, f"{folder}/first.parquet")
    begun = time.perf_counter()
    run("--base-url", url, "--store", store, "store", "compact")
    print(f"compacted in {time.perf_counter() - begun:.1f} s")
    stored, files, mentions = sizes(store, "after store compact")
    lines = run(*query, "--format", "ndjson", "-c", f"SELECT * FROM mentions WHERE {since}")
    zipped = len(gzip.compress(lines, 6)) / lines.count(b"\n")
    print(f"gzipped JSON: {zipped:.0f} bytes a mention; the store has {stored / zipped:.2f} times as many")
    missed = measure(url, store, words, f"{folder}/second.parquet")
    missed += slow_disk(url, store, words, folder)
    if stored > 1.3 * zipped:
        missed.append(f"bytes: {stored / zipped:.2f} times those of gzipped JSON instead of 1.3")
    if files > max(1, mentions / 20_000):
        missed.append(f"files: {files} for {mentions} mentions")
    service.terminate()
    service.wait(30)
sys.exit("missed goals:\n" + "\n".join(missed) if missed else 0)
