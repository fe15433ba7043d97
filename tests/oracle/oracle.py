"""Compares the rows of generated statements with DuckDB's over the same records.

    simulator --JSON over HTTP--> DuckDB, PostgreSQL ---------------- rows \
        |                                                                    same? else the statement is reduced and printed
        +--> shell, ADBC driver, Flight SQL, PostgreSQL server ------ rows /

A case is a number: it decides records, front, store and statement. What the program refuses with an error counts as refused,
except for internal errors. Too many refused statements are a failure as well.
"""

import collections
import concurrent.futures
import datetime
import os
import pathlib
import random
import re
import signal
import sys
import tempfile
import threading
import time

import postgres
from checks import CHECKS, Chosen, Rows
from fronts import Driver, Flight, Postgres, Refused, Shell, environment
from expressions import World
from grammar import Grammar
from reduce import smaller
from service import BINARY, Served
from worlds import KEY, NOW, PROFILE, TODAY, Records, settings, write_odd

# A result that no type can hold is an error everywhere.
OVERFLOW = re.compile("Overflow|out of range")
MODES = ["shell", "driver", "flight", "text", "binary"]
# The library of the ADBC driver. Without it, its statements run over Flight SQL, so that a number remains the same case.
DRIVER = os.environ.get("SAVEDSEARCH_DRIVER")
# Largest shares of statements that are refused, and that DuckDB refuses.
MOST = {"refused": 0.15, "no truth": 0.03}


class Service:
    """A simulator with a server, a server with a store, and the records."""

    def __init__(self, folder, name, seed):
        folder = folder / name
        folder.mkdir()
        (folder / "profile.toml").write_text(PROFILE)
        options = ["--now", NOW, "--seed", str(seed), "--searches", "4", "--mentions", "90"]
        if name == "odd":
            options = ["--now", NOW, "--data", str(write_odd(folder, seed))]
        self.bare = Served(*options, program=["--profile", str(folder / "profile.toml")])
        self.bare.__enter__()
        try:
            self.begin(folder, seed)
        except BaseException:
            self.bare.__exit__()
            raise

    def begin(self, folder, seed):
        shared = ["--profile", str(folder / "profile.toml"), "--store", str(folder / "store")]
        self.stored = Served(base_url=self.bare.base_url, program=shared)
        self.stored.__enter__()
        self.records = Records(self.bare.base_url)
        common = [BINARY, "--base-url", self.bare.base_url, "--profile", str(folder / "profile.toml")]
        self.commands = {False: common, True: [*common, "--store", str(folder / "store-shell")]}
        options = {"uri": self.bare.base_url, "savedsearch.api_key": KEY, "savedsearch.profile": str(folder / "profile.toml")}
        self.options = {False: options, True: options | {"savedsearch.store": str(folder / "store-driver")}}
        mentions = self.records.mentions
        instants = sorted({row["published_at"] for row in mentions})
        texts = sorted({row[name] for row in mentions for name in ("title", "language", "source", "id", "aid") if row[name]})
        ages = [datetime.timedelta(days=days) for days in (11, 6, 2.5, 77, 30)]
        days = [f"{TODAY - age:%Y-%m-%dT%H:%M:%SZ}" for age in ages]
        rng = random.Random(seed)
        self.world = World(days * 2 + rng.sample(instants, min(10, len(instants))), rng.sample(texts, min(30, len(texts))))

    def front(self, mode, store):
        server = self.stored if store else self.bare
        if mode == "shell":
            return Shell(self.commands[store], environment())
        if mode == "driver":
            return Driver(DRIVER, self.options[store])
        if mode == "flight":
            return Flight(server.uri)
        return Postgres(server.postgres, mode == "binary")

    def close(self):
        self.stored.__exit__()
        self.bare.__exit__()


class Truth:
    """DuckDB, and PostgreSQL where it is installed; each thread has its own connections."""

    def __init__(self, services, folder):
        self.databases = {name: service.records.database() for name, service in services.items()}
        self.local = threading.local()
        self.server = postgres.Server(folder) if postgres.program("initdb") else None
        if not self.server:
            print("PostgreSQL is not installed: no second opinion for its front")
        for name, service in services.items():
            if self.server:
                self.server.load(name, service.records.tables)

    def rows(self, service, sql):
        cursors = self.local.__dict__.setdefault("cursors", {})
        if service not in cursors:
            cursors[service] = settings(self.databases[service].cursor())
        try:
            return cursors[service].execute(sql).fetchall()
        except Exception as error:  # noqa: BLE001
            return Refused(str(error))

    def opinion(self, service, sql):
        """The rows of PostgreSQL, or None if it has no opinion: up to version 17 it sorts constants of grouping sets wrongly."""
        if not self.server or re.search("CUBE|ROLLUP|GROUPING SETS", sql):
            return None
        connections = self.local.__dict__.setdefault("connections", {})
        if service not in connections:
            connections[service] = self.server.connect(service)
        return postgres.rows(connections[service], sql)

    def close(self):
        if self.server:
            self.server.close()


class Case:
    """A statement by its number: everything else follows from the seed."""

    def __init__(self, seed, number, services):
        rng = random.Random(f"{seed} {number}")
        self.number = number
        self.service = rng.choice(list(services))
        self.mode, self.store = rng.choice(MODES), rng.random() < 0.5
        if self.mode == "driver" and not DRIVER:
            self.mode = "flight"
        self.language = "postgres" if self.mode in ("text", "binary") else "engine"
        grammar = Grammar(rng, services[self.service].world, self.language)
        self.check = rng.choices(CHECKS, [16, 1, 1, 1])[0]
        self.tree = grammar.statement() if self.check is Rows else grammar.conditioned(self.check is not Chosen)

    @property
    def place(self):
        return self.service, self.mode, self.store

    def truth(self, tree, databases):
        """The rows of DuckDB, or those of PostgreSQL for its front, unless it refuses the statement."""
        def ask(tree):
            language = "duckdb" if self.language == "engine" else "duckdb-pg"
            rows = databases.rows(self.service, tree.sql(language))
            if self.language == "engine":
                return rows
            opinion = databases.opinion(self.service, tree.sql("postgresql"))
            return rows if opinion is None or (isinstance(opinion, Refused) and not OVERFLOW.search(str(opinion))) else opinion

        return self.check.truth(tree, ask)

    def statements(self, tree, truth):
        return [tree.sql(self.language) for tree in self.check.trees(tree, truth)]

    def verdict(self, tree, answers, truth):
        for answer in answers:
            if isinstance(answer, Refused):
                return "internal" if INTERNAL.search(str(answer)) else "refused"
        if isinstance(truth, Refused) and not OVERFLOW.search(str(truth)):
            return "no truth"
        # An error in a row that OFFSET or LIMIT 0 leaves out: the engine does not compute it.
        if isinstance(truth, Refused) and re.search("OFFSET|LIMIT 0", tree.sql(self.language)) and not any(map(len, answers)):
            return "no truth"
        return "same" if self.check.holds(tree, answers, truth) else "different"


INTERNAL = re.compile(r"INTERNAL|panick|this is a bug|internal error|Internal error")


def message(error):
    """An error with names and numbers left out, to count it."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else "?"
    text = re.sub(r"^error: |/\S+\.sql: (line \d+: )?|/\S+\.sql:\d+: |INVALID_ARGUMENT: |NOT_IMPLEMENTED: |\[FlightSQL\] |^[0-9A-Z]{5}: ", "", text)
    text = re.sub(r"'[^']*'|`[^`]*`|\"[^\"]*\"", "…", text)
    return re.sub(r"\d+", "n", text)[:110]


def main():
    # Ends the services and PostgreSQL as well when it is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = os.environ.get("ORACLE_SEED", "1")
    cases = int(os.environ.get("ORACLE_CASES", "1500"))
    first = int(os.environ.get("ORACLE_FIRST", "0"))
    only = os.environ.get("ORACLE_CASE")
    numbers = [int(only)] if only else range(first, first + cases)
    threads = int(os.environ.get("ORACLE_THREADS", "4"))
    shown = int(os.environ.get("ORACLE_SHOWN", "20"))
    started = time.monotonic()
    counts, found, samples = collections.Counter(), [], {}
    errors = {"refused": collections.Counter(), "no truth": collections.Counter()}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # PostgreSQL runs as another user
        services, databases = {}, None
        try:
            for name in ("drawn", "odd"):
                services[name] = Service(pathlib.Path(folder), name, seed)
            databases = Truth(services, pathlib.Path(folder) / "postgres")
            by_place = collections.defaultdict(list)
            for number in numbers:
                case = Case(seed, number, services)
                by_place[case.place].append(case)
            chunks = [cases[at:at + 25] for cases in by_place.values() for at in range(0, len(cases), 25)]
            random.Random(0).shuffle(chunks)

            def check(chunk):
                service, mode, store = chunk[0].place
                front = services[service].front(mode, store)
                truths = [case.truth(case.tree, databases) for case in chunk]
                statements = [case.statements(case.tree, true) for case, true in zip(chunk, truths)]
                answers = iter(front.run([text for texts in statements for text in texts]))
                results = []
                for case, true, texts in zip(chunk, truths, statements):
                    ours = [next(answers) for _ in texts]
                    results.append((case, case.verdict(case.tree, ours, true), ours, true, texts))
                front.close()
                return results

            with concurrent.futures.ThreadPoolExecutor(threads) as pool:
                for results in pool.map(check, chunks):
                    for case, kind, ours, true, texts in results:
                        counts[kind] += 1
                        if counts.total() % 1000 == 0:
                            print(f"{counts.total()} of {len(numbers)} statements", flush=True)
                        if kind in ("refused", "no truth"):
                            error = true if kind == "no truth" else next(answer for answer in ours if isinstance(answer, Refused))
                            errors[kind][message(error)] += 1
                            samples.setdefault(message(error), (case.number, texts[0]))
                        elif kind != "same":
                            found.append((case, kind))
                            # A long run that is stopped has told them.
                            print(f"{kind}: case {case.number} of seed {seed}: {texts[0]}", flush=True)

            def reduced(failure):
                case, kind = failure
                front = services[case.service].front(case.mode, case.store)

                def run(tree):
                    true = case.truth(tree, databases)
                    texts = case.statements(tree, true)
                    return front.run(texts), true, texts

                def fails(tree):
                    try:
                        answers, true, _ = run(tree)
                        return case.verdict(tree, answers, true) == kind
                    except Exception:  # noqa: BLE001 A reduction can make a tree that is no statement.
                        return False

                tree = smaller(case.tree, fails)
                answers, true, texts = run(tree)
                front.close()
                return case, kind, tree, answers, true, texts

            signatures = set()
            found.sort(key=lambda failure: failure[0].number)
            with concurrent.futures.ThreadPoolExecutor(threads) as pool:
                for case, kind, tree, answers, true, texts in pool.map(reduced, found[:shown]):
                    signature = re.sub(r"'[^']*'|\d+|\b[a-z]\.\w+", "…", texts[0])
                    if signature in signatures:
                        continue
                    signatures.add(signature)
                    place = f"{case.service}, {case.mode}, {'store' if case.store else 'no store'}"
                    print(f"\n== {kind}: case {case.number} of seed {seed} ({place}; {case.check.__doc__})")
                    for text, answer in zip(texts, answers):
                        print(f"   {text}\n      came:  {short(answer)}")
                    print(f"      right: {short(true)}", flush=True)
        finally:
            if databases:
                databases.close()
            for service in services.values():
                service.close()
    if os.environ.get("ORACLE_REFUSALS"):
        for name, counter in errors.items():
            for text, number in counter.most_common():
                print(f"{number:6} {name}: {text}\n         case {samples[text][0]}: {samples[text][1][:300]}")
    total = sum(counts.values())
    print(f"{total} statements, ORACLE_SEED={seed} ORACLE_NOW={NOW}, {time.monotonic() - started:.0f} s: " + ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts)))
    # A few statements say nothing about shares.
    many = [kind for kind, most in MOST.items() if total >= 500 and counts[kind] > most * total]
    for kind in many:
        print(f"too many statements: {counts[kind]} {kind}, at most {MOST[kind]:.0%} are expected; ORACLE_REFUSALS=1 lists them")
    sys.exit(1 if counts["different"] or counts["internal"] or many else 0)


def short(rows):
    if not isinstance(rows, list):
        return str(rows)[:300]
    text = ", ".join(str(row) for row in rows[:8])
    return f"{len(rows)} rows: {text[:400]}"


if __name__ == "__main__":
    main()
