"""A store in object storage with its catalog in PostgreSQL: two servers and three synchronizations share it, while processes are
killed, the database is restarted, and the bucket does not answer for a while. Rows are those of the service at any time. A
synchronization waits for another process that merges files.

    shared_store.py [COMMAND…]

With a command, it runs that instead, over a database and a bucket of its own, which STORE_CATALOG and STORE_FILES name. Needs the
environment variable SAVEDSEARCH, the packages of ducklake.py and those that are imported here, and PostgreSQL's programs.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import boto3
import duckdb
import psycopg
from botocore.exceptions import BotoCoreError

import ducklake

PROGRAM = os.environ["SAVEDSEARCH"]
NOW = "2026-07-01T12:00:00Z"
SINCE = "2026-05-01"
SECRET = "not-for-any-output"
BUCKET = "tests"


def program(name):
    """A program of PostgreSQL, or None."""
    folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((str(folder / name) for folder in folders if (folder / name).exists()), shutil.which(name))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Database:
    """A server of PostgreSQL in a folder of its own. It does not run as root."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / "postgres"
        self.folder.mkdir()
        self.port = free_port()
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            pathlib.Path(folder).chmod(0o755)
            shutil.chown(self.folder, self.user)
        self.data = str(self.folder / "data")
        self.run([program("initdb"), "-D", self.data, "-U", "tests", "-A", "trust", "--locale=C", "-E", "UTF8", "-N"])
        self.start()

    def run(self, command):
        options = {}
        if self.user:
            account = pwd.getpwnam(self.user)
            options = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **options)

    def start(self):
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.folder}"
        self.run([program("pg_ctl"), "-D", self.data, "-l", str(self.folder / "log"), "-w", "-o", options, "start"])

    def stop(self):
        self.run([program("pg_ctl"), "-D", self.data, "-m", "immediate", "-w", "stop"])

    def url(self):
        return f"postgres://tests:{SECRET}@127.0.0.1:{self.port}/postgres"

    def connect(self, schema):
        options = f"-c search_path={schema}"
        return psycopg.connect(self.url(), options=options, autocommit=True)


class Bucket:
    """moto as a process. It keeps objects in memory, so it is stopped and goes on, but is not killed."""

    def __init__(self):
        self.port = free_port()
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.environment = {
            "AWS_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }
        self.client = boto3.client(
            "s3",
            endpoint_url=self.environment["AWS_ENDPOINT"],
            aws_access_key_id="tests",
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )
        for _ in range(300):
            with contextlib.suppress(BotoCoreError):
                self.client.create_bucket(Bucket=BUCKET)
                return
            time.sleep(0.1)
        raise RuntimeError("moto did not start")

    def names(self, prefix):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return {item["Key"].removeprefix(prefix) for page in pages for item in page.get("Contents", [])}

    def pause(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Shared:
    """A store, and the processes that use it."""

    def __init__(self, database, bucket, name):
        self.database, self.bucket, self.name = database, bucket, name
        self.location = f"s3://{BUCKET}/{name}"
        self.options = ["--store", self.location, "--catalog", f"{database.url()}?schema={name}", "--now", NOW]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SAVEDSEARCH_", "AWS_"))}
        self.environment = environment | bucket.environment | {"SAVEDSEARCH_LOG": "warn"}

    def start(self, *arguments, **options):
        return subprocess.Popen([PROGRAM, *self.options, *arguments], env=self.environment, text=True, **options)

    def run(self, *arguments):
        """Output and notes of a command that succeeds."""
        with self.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            output, notes = process.communicate()
        assert SECRET not in output + notes, "a secret is printed"
        assert process.returncode == 0, f"{arguments}: {notes}"
        return output, notes

    @contextlib.contextmanager
    def server(self):
        """Address of a server for PostgreSQL clients."""
        listen = ["--listen", "127.0.0.1:0", "--postgres-listen", "127.0.0.1:0"]
        process = self.start("serve", *listen, stderr=subprocess.PIPE)
        port = None
        for line in process.stderr:
            assert SECRET not in line, "a secret is printed"
            if "Postgres on" in line:
                port = line.strip().rsplit(":", 1)[1]
            if "listening on" in line:
                break
        assert port, "the server did not start"
        try:
            yield f"host=127.0.0.1 port={port} user=tests dbname=savedsearch sslmode=disable"
        finally:
            process.terminate()
            process.communicate(timeout=120)
        assert process.returncode == 0, "the server failed"

    def attach(self):
        """DuckDB with the store as the catalog `store`."""
        connection = duckdb.connect()
        for name in ("postgres_scanner", "httpfs", "ducklake"):
            connection.execute(f"LOAD '{ducklake.extension(name)}'")
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID 'tests', SECRET '{SECRET}', ENDPOINT '127.0.0.1:{self.bucket.port}', "
            "URL_STYLE 'path', USE_SSL false, REGION 'us-east-1')"
        )
        address = f"host=127.0.0.1 port={self.database.port} user=tests dbname=postgres"
        connection.execute(f"ATTACH 'ducklake:postgres:{address}' AS store (READ_ONLY, METADATA_SCHEMA '{self.name}')")
        return connection

    def by_day(self):
        rows = ducklake.count(self.attach(), "mentions", "published_at", None, "true")
        return {(row["aid"], row["day"]): row["mentions"] for row in rows}


BY_DAY = (
    "SELECT aid, CAST(published_at::date AS VARCHAR) AS day, count(*) AS mentions FROM mentions "
    f"WHERE published_at >= TIMESTAMP '{SINCE}T00:00:00Z' GROUP BY aid, published_at::date"
)


def expected(shared):
    output, _ = shared.run("--quiet", "sql", "--format", "ndjson", "--set", "store=off", "-c", BY_DAY)
    return {(row["aid"], row["day"]): row["mentions"] for row in map(json.loads, output.splitlines())}


def asked(address):
    with psycopg.connect(address, autocommit=True) as connection:
        return {(aid, day): mentions for aid, day, mentions in connection.execute(BY_DAY).fetchall()}


def sync(shared):
    return shared.start("--quiet", "sync", "--since", SINCE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finished(process):
    """Verifies how a synchronization ended: it was killed, or has done its work."""
    _, notes = process.communicate()
    assert SECRET not in notes, "a secret is printed"
    assert process.returncode in (0, -signal.SIGKILL), f"status {process.returncode}: {notes}"
    return process.returncode == 0


def check(shared, seed):
    chance = random.Random(seed)
    everything = expected(shared)
    with shared.server() as first, shared.server() as second:
        syncs = [sync(shared) for _ in range(3)]
        killed = done = 0
        for step in range(int(os.environ.get("SHARED_STEPS", "30"))):
            time.sleep(chance.uniform(0.05, 1.2))
            at = chance.randrange(3)
            if syncs[at].poll() is None:
                syncs[at].kill()
            done += finished(syncs[at])
            killed += syncs[at].returncode != 0
            if step % 10 == 4:
                shared.database.stop()
                time.sleep(chance.uniform(0, 1))
                shared.database.start()
            elif step % 10 == 9:
                shared.bucket.pause(chance.uniform(0.5, 2))
            syncs[at] = sync(shared)
            if step % 5 == 0:
                assert asked(chance.choice([first, second])) == everything
        for process in syncs:
            done += finished(process)
        # The leases of killed processes end by themselves.
        for _ in range(60):
            _, notes = shared.run("sync", "--since", SINCE)
            if "other processes" not in notes:
                break
            time.sleep(3)
        assert "other processes" not in notes, notes
        assert asked(first) == asked(second) == everything
    assert shared.by_day() == everything, "DuckDB reads other rows"
    # Stored days are read from the bucket, not from the service.
    aid = min(aid for aid, _ in everything)
    stored = f"aid = '{aid}' AND published_at >= '{SINCE}' AND published_at < '2026-06-20'"
    settings = ["--set", "freshness=1h", "--set", "max_requests=1"]
    shared.run("--quiet", "sql", *settings, "-c", f"SELECT count(DISTINCT id) FROM mentions WHERE {stored}")
    shared.run("store", "verify")
    shared.run("store", "compact")
    assert shared.by_day() == everything, "DuckDB reads other rows after files were merged"
    # Erasing removes what killed processes have left, and nothing else.
    shared.run("store", "forget", "--before", "2026-05-20")
    left = {key: mentions for key, mentions in everything.items() if key[1] >= "2026-05-20"}
    assert shared.by_day() == left, "DuckDB reads other rows after an erasure"
    with shared.database.connect(shared.name) as catalog:
        named = catalog.execute(
            "SELECT t.path || f.path FROM ducklake_table t JOIN (SELECT table_id, path FROM ducklake_data_file "
            "UNION ALL SELECT table_id, path FROM ducklake_delete_file) f ON f.table_id = t.table_id"
        ).fetchall()
    assert shared.bucket.names(f"{shared.name}/data/") == {path for (path,) in named}, "other objects than named ones"
    shared.run("store", "verify")
    print(f"shared store: {len(everything)} days agree; synchronizations: {done} done, {killed} killed (SHARED_SEED={seed})")


def merged(shared):
    """Two servers fill a store by queries for single days. They merge tiny files, one of them at a time."""
    everything = expected(shared)
    with shared.server() as first, shared.server() as second:

        def fill(address, days):
            with psycopg.connect(address, autocommit=True) as connection:
                for aid, day in days:
                    sql = f"SELECT id FROM mentions WHERE aid = '{aid}' AND published_at::date = '{day}'"
                    assert len(connection.execute(sql).fetchall()) == everything[aid, day], (aid, day)

        days = sorted(everything)[:90]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(fill, [first, second], [days[::2], days[1::2]]))
    with shared.database.connect(shared.name) as catalog:
        of_mentions = "SELECT count(*) FROM ducklake_data_file WHERE table_id = 1"
        (written,) = catalog.execute(of_mentions).fetchone()
        (current,) = catalog.execute(f"{of_mentions} AND end_snapshot IS NULL").fetchone()
    assert written > len(days) > 80 and current <= 70, f"{len(days)} days, {written} files, {current} of them current"
    filled = {day: everything[day] for day in days}
    assert shared.by_day() == filled, "DuckDB reads other rows after queries have merged files"
    shared.run("store", "verify")
    print(f"shared store: queries for {len(days)} days left {current} of {written} files")


def refused(shared):
    """Another catalog must not take over the files, a bucket needs a catalog, and it is not another one of the same name."""
    commands = [
        (["--catalog", f"{shared.database.url()}?schema=another"], "belong to another catalog"),
        ([], "needs a catalog in PostgreSQL"),
    ]
    for catalog, told in commands:
        command = [PROGRAM, "--store", shared.location, *catalog, "--now", NOW, "sql", "-c", "SELECT 1"]
        done = subprocess.run(command, env=shared.environment, text=True, capture_output=True)
        assert done.returncode == 2 and told in done.stderr and SECRET not in done.stderr, done.stderr
    client, name = shared.bucket.client, {"Bucket": BUCKET, "Key": f"{shared.name}/catalog-id"}
    claim = client.get_object(**name)["Body"].read()
    client.delete_object(**name)
    command = [PROGRAM, *shared.options, "sql", "-c", "SELECT 1"]
    done = subprocess.run(command, env=shared.environment, text=True, capture_output=True)
    assert done.returncode == 2 and "are not in s3://" in done.stderr, done.stderr
    client.put_object(**name, Body=claim)
    shared.run("sql", "-c", "SELECT 1")


def read_only(shared):
    """A user of the database who may only read gets rows from the store, and uploads nothing that no commit could name."""
    everything = expected(shared)
    with shared.database.connect(shared.name) as catalog:
        catalog.execute("CREATE ROLE reader LOGIN")
        catalog.execute(f"GRANT USAGE ON SCHEMA {shared.name} TO reader")
        catalog.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {shared.name} TO reader")
    reading = Shared(shared.database, shared.bucket, shared.name)
    reading.options = [option.replace("//tests:", "//reader:") for option in reading.options]
    before = shared.bucket.names(f"{shared.name}/data/")
    output, _ = reading.run("--quiet", "sql", "--format", "ndjson", "--set", "freshness=0s", "-c", BY_DAY)
    assert {(row["aid"], row["day"]): row["mentions"] for row in map(json.loads, output.splitlines())} == everything
    assert shared.bucket.names(f"{shared.name}/data/") == before, "files that no commit names"
    with shared.database.connect(shared.name) as catalog:
        catalog.execute("GRANT INSERT, UPDATE, DELETE ON savedsearch_store TO reader")
    reading.run("--quiet", "sql", "-c", BY_DAY)
    assert shared.bucket.names(f"{shared.name}/data/") == before, "files that no commit names"


def awaited(shared):
    """A synchronization waits for a process that merges files. If that takes long, it indexes words, and says what it left."""
    shared.run("sync", "--since", SINCE)
    shared.run("store", "compact")
    shared.run("store", "index")

    def indexes():
        return {name for name in shared.bucket.names(f"{shared.name}/data/") if name.endswith(".words")}

    everything = indexes()
    assert everything, "no file is large enough for an index"

    def noted(seconds, *options):
        """Notes of a synchronization while another process has the lease of merging for this time, and the time that it takes."""
        sql = (
            "INSERT INTO savedsearch_lease (name, holder, token, ends) "
            "VALUES ('merging of files', 'another', 1, extract(epoch FROM clock_timestamp())::bigint + %s) "
            "ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = savedsearch_lease.token + 1, ends = excluded.ends"
        )
        with shared.database.connect(shared.name) as catalog:
            catalog.execute(sql, [seconds])
        for name in indexes():
            shared.bucket.client.delete_object(Bucket=BUCKET, Key=f"{shared.name}/data/{name}")
        begun = time.monotonic()
        _, notes = shared.run("sync", "--since", SINCE, *options)
        assert indexes() == everything, f"words are not indexed: {notes}"
        return notes, time.monotonic() - begun

    notes, took = noted(4)
    assert "not merged" not in notes and took > 2, notes
    notes, _ = noted(3600, "--quota", "1GB")
    assert "files are not merged: another process is still merging files; the next synchronization applies the quota" in notes, notes
    print("shared store: a synchronization waits for another process that merges, and indexes words if that takes long")


def gone(shared):
    """Queries go on without a database that is gone. Only the first one waits for it. The store is used soon after it is back."""
    everything = expected(shared)
    with shared.server() as address:
        assert asked(address) == everything
        shared.database.stop()
        begun = time.monotonic()
        for _ in range(3):
            assert asked(address) == everything
        took = time.monotonic() - begun
        shared.database.start()
        begun = time.monotonic()
        with psycopg.connect(address, autocommit=True) as connection:
            while True:
                try:
                    connection.execute("SELECT * FROM system.store").fetchall()
                    break
                except psycopg.Error:
                    # Pauses double, so that the next one is about as long as all before.
                    assert time.monotonic() - begun < 5 + 2 * took, "the store is not used although the database is back"
                    time.sleep(0.2)
        back = time.monotonic() - begun
    print(f"shared store: three queries without the database took {took:.0f} s; it was used {back:.0f} s after it was back")


def main():
    if not program("initdb"):
        print("skipped: a store with its catalog in PostgreSQL (apt-get install postgresql)")
        return 0
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        bucket = Bucket()
        stack.callback(bucket.stop)
        database = Database(folder)
        stack.callback(database.stop)
        if len(sys.argv) > 1:
            places = {"STORE_CATALOG": database.url(), "STORE_FILES": f"s3://{BUCKET}"}
            return subprocess.run(sys.argv[1:], env=os.environ | bucket.environment | places).returncode
        shared = Shared(database, bucket, "shared")
        check(shared, int(os.environ.get("SHARED_SEED", random.randrange(1 << 32))))
        refused(shared)
        merged(Shared(database, bucket, "merged"))
        read_only(shared)
        awaited(Shared(database, bucket, "awaited"))
        gone(shared)
    return 0


if __name__ == "__main__":
    sys.exit(main())
