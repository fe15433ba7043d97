"""Stored mentions into polars, through the ADBC driver and through the Flight SQL server on loopback: prints the ratio of their
times, and the time of `import savedsearch`. Exits with 1 if one of them is above its goal.

    packaging/wheel … ; pip install ….whl polars adbc-driver-flightsql
    python benches/into_polars.py [MENTIONS [RUNS]]

Uses the program and the driver of the wheel. The store is filled first, from the simulator.
"""

import atexit
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import adbc_driver_flightsql.dbapi as flightsql
import polars
import savedsearch

PROGRAM = str(pathlib.Path(sys.executable).parent / "savedsearch")
MENTIONS, RUNS = (int(number) for number in (sys.argv[1:] + ["200000", "7"][len(sys.argv) - 1 :]))
GOAL, IMPORT_GOAL = 0.7, 150
NOW, KEY = "2026-07-01T12:00:00Z", "demo-key-comms"
FIRST = "import savedsearch; savedsearch.sql('SELECT 1').rows()"
SQL = "SELECT * FROM mentions WHERE published_at >= '2026-01-01' AND published_at < '2026-06-25'"


def start(*arguments):
    process = subprocess.Popen([PROGRAM, *arguments], stderr=subprocess.PIPE, text=True)
    atexit.register(process.kill)
    for line in process.stderr:
        if found := re.search(r"listening on (\S+)", line):
            return process, found[1]
    raise RuntimeError(f"{arguments} did not start")


def seconds(read):
    begun = time.perf_counter()
    rows = read()
    return time.perf_counter() - begun, rows


def process(code):
    """Shortest time of a Python process that runs the code, in ms."""
    command = [sys.executable, "-c", code]
    return min(seconds(lambda: subprocess.run(command, check=True))[0] for _ in range(9)) * 1000


with tempfile.TemporaryDirectory() as folder:
    os.environ |= {"SAVEDSEARCH_API_KEY": KEY, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder}
    service, address = start("--now", NOW, "simulate", "--listen", "127.0.0.1:0", "--mentions", str(MENTIONS), "--largest-page", "1000")
    url, store = f"http://{address}/v4", f"{folder}/store"
    sync = [PROGRAM, "--quiet", "--base-url", url, "--store", store, "sync", "--since", "2026-01-01"]
    subprocess.run(sync, check=True, stdout=subprocess.DEVNULL)
    server, address = start("--base-url", url, "--store", store, "serve", "--listen", "127.0.0.1:0")
    driver = savedsearch.connect(url, api_key=KEY, store=store, freshness="365d")
    flight = flightsql.connect(f"grpc://{address}", autocommit=True)
    with flight.cursor() as cursor:
        cursor.execute("SET savedsearch.freshness = '365d'")
    ways = {"driver": lambda: driver.sql(SQL).pl().height, "flight": lambda: polars.read_database(SQL, flight).height}
    taken = {way: [] for way in ways}
    for run in range(RUNS + 1):
        for way, read in ways.items():
            time_taken, rows = seconds(read)
            if run:
                taken[way].append(time_taken)
    driver.close()
    flight.close()
    medians = {way: statistics.median(times) for way, times in taken.items()}
    ratio = medians["driver"] / medians["flight"]
    print(f"{rows} rows: driver {medians['driver']:.3f} s, Flight {medians['flight']:.3f} s, ratio {ratio:.2f}, goal at most {GOAL}")
    for started in (server, service):
        started.terminate()
        started.wait(30)

empty, imported, loaded, first = map(process, ("", "import savedsearch", "import adbc_driver_manager.dbapi", FIRST))
imported, loaded, first = imported - empty, loaded - empty, first - empty
print(f"import savedsearch: {imported:.0f} ms more than an empty process, goal at most {IMPORT_GOAL}")
print(f"and a first query: {first:.0f} ms; the driver manager alone, with what it imports: {loaded:.0f} ms")
sys.exit(ratio > GOAL or imported > IMPORT_GOAL)
