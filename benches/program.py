"""The program `SAVEDSEARCH_BIN` as a process, and the times of statements, for the benchmarks of servers."""

import atexit
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time

PROGRAM = os.environ["SAVEDSEARCH_BIN"]
# A benchmark that is ended ends its processes as well, and removes its files.
signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))


def start(*arguments, **environment):
    """A process that serves until it is ended, and its addresses by their names in what it prints."""
    process = subprocess.Popen([PROGRAM, *arguments], stderr=subprocess.PIPE, text=True, env=os.environ | environment)
    atexit.register(process.kill)
    told = {}
    for line in process.stderr:
        if found := re.match(r"(listening|Postgres) on (\S+)", line):
            told[found[1]] = found[2]
        if "listening" in told:
            # A full pipe would stop the process.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, told
    raise RuntimeError(f"{arguments} did not start")


def run(*arguments):
    """What a command prints."""
    return subprocess.run([PROGRAM, "--quiet", *arguments], check=True, stdout=subprocess.PIPE).stdout


def median(ask, sql, runs):
    """Milliseconds of a statement, and its rows. The first run opens files and fills caches."""
    times = []
    for _ in range(runs + 1):
        begun = time.perf_counter()
        rows = ask(sql)
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:]) * 1000, rows
