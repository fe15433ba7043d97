"""A PostgreSQL server with the records, where one is installed: the truth for what the PostgreSQL front promises."""

import os
import pathlib
import pwd
import shutil
import subprocess

import psycopg

from fronts import Refused
from worlds import RECENT, TYPES, columns

POSTGRES = {name: {"DOUBLE": "double precision"}.get(type, type) for name, type in TYPES.items()}


def program(name):
    """The program of a PostgreSQL server, or None."""
    folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((str(folder / name) for folder in folders if (folder / name).exists()), shutil.which(name))


class Server:
    """A server in a folder of its own, reached by a socket. It does not run as root."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(folder, self.user)
        data = folder / "data"
        self.run([program("initdb"), "-D", str(data), "-U", "oracle", "-A", "trust", "--locale=C", "-E", "UTF8", "-N"])
        options = f"-c listen_addresses='' -k {folder} -c timezone=UTC -c fsync=off"
        command = [program("pg_ctl"), "-D", str(data), "-l", str(folder / "log"), "-w", "-o", options]
        self.stopping = [program("pg_ctl"), "-D", str(data), "-m", "immediate", "stop"]
        self.run([*command, "start"])

    def run(self, command):
        if self.user:
            account = pwd.getpwnam(self.user)
            subprocess.run(command, check=True, capture_output=True, user=account.pw_uid, group=account.pw_gid, cwd=self.folder)
        else:
            subprocess.run(command, check=True, capture_output=True)

    def load(self, name, tables):
        """Creates a database of this name with the rows of a service."""
        with self.connect("postgres") as admin:
            admin.execute(f'CREATE DATABASE "{name}"')
        with self.connect(name) as database:
            for table, rows in tables.items():
                names = rows[0] if rows else RECENT
                database.execute(f"CREATE TABLE {table} ({columns(names, POSTGRES)})")
                places = ", ".join(["%s"] * len(names))
                with database.cursor() as cursor:
                    cursor.executemany(f"INSERT INTO {table} VALUES ({places})", [list(row.values()) for row in rows])

    def connect(self, name):
        connection = psycopg.connect(f"host={self.folder} dbname={name} user=oracle", autocommit=True)
        connection.execute("SET statement_timeout = '10s'")
        return connection

    def close(self):
        self.run(self.stopping)


def rows(connection, sql):
    try:
        return [tuple(row) for row in connection.execute(sql).fetchall()]
    except psycopg.Error as error:
        return Refused(f"{error.sqlstate}: {error}")
