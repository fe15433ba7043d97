"""The program's fronts. Each runs a list of statements and returns, for each, rows as lists of values, or an error."""

import decimal
import json
import os
import re
import subprocess
import tempfile
import zlib

import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import adbc_driver_manager.dbapi as adbc
import psycopg
import pyarrow


# Seconds after which a batch of statements counts as hanging.
PATIENCE = 300


class Refused(Exception):
    """The program's error for a statement."""


class Shell:
    """`savedsearch sql --format json` over a file with one statement a line. It ends at the first error. Every other statement is
    prepared in SQL and then executed."""

    language = "engine"

    def __init__(self, arguments, environment):
        self.command = [*arguments, "--quiet", "sql", "--format", "json"]
        self.environment = environment

    def run(self, statements):
        results = []
        while len(results) < len(statements):
            results += self.some(statements[len(results):])
        return results

    def some(self, statements):
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            for at, statement in enumerate(statements):
                line = statement.replace("\n", " ")
                prepared = zlib.crc32(line.encode()) % 2
                file.write(f"PREPARE p{at} AS {line}; EXECUTE p{at};\n" if prepared else f"{line};\n")
            file.flush()
            command = [*self.command, "-f", file.name]
            try:
                run = subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=PATIENCE)
            except subprocess.TimeoutExpired as late:
                text, error = (late.stdout or b"").decode(), f"internal error: no answer within {PATIENCE} s"
                run = subprocess.CompletedProcess(command, 1, text, error)
        decoder = json.JSONDecoder(object_pairs_hook=lambda pairs: [value for _, value in pairs], parse_float=decimal.Decimal)
        results, at = [], 0
        while at < len(run.stdout):
            try:
                rows, at = decoder.raw_decode(run.stdout, at)
            except json.JSONDecodeError:
                # The statement failed after its first rows.
                assert run.returncode != 0, run.stdout[at:]
                break
            at += len(run.stdout[at:]) - len(run.stdout[at:].lstrip())
            results.append(rows)
        if len(results) == len(statements):
            assert run.returncode == 0, run.stderr
            return results
        error = run.stderr.strip()
        line = re.search(rf"{re.escape(file.name)}:(\d+)", error)
        failed = int(line[1]) - 1 if line else len(results)
        if failed < len(results):
            failed = len(results)
        if failed > len(results):
            # A syntax error of a later line, found before the first statement ran.
            return self.some(statements[:failed]) + [Refused(error)] if failed else [Refused(error)]
        return results + [Refused(error)]

    def close(self):
        pass


class Adbc:
    """A connection of ADBC, which returns Arrow tables."""

    language = "engine"

    def __init__(self, connection):
        self.connection = connection

    def run(self, statements):
        return [self.one(statement) for statement in statements]

    def one(self, statement):
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(statement)
                table = cursor.fetch_arrow_table()
                columns = [column.to_pylist() for column in table.columns]
                return [list(row) for row in zip(*columns)] if columns else [[]] * table.num_rows
        # A failure of the driver among the rows is one of Arrow.
        except (adbc_driver_manager.Error, pyarrow.ArrowException, OSError) as error:
            return Refused(str(error))

    def close(self):
        self.connection.close()


class Flight(Adbc):
    """ADBC over Flight SQL."""

    def __init__(self, uri):
        super().__init__(flightsql.connect(uri, autocommit=True))


class Driver(Adbc):
    """The program's own ADBC driver, in this process."""

    def __init__(self, library, options):
        super().__init__(adbc.connect(library, db_kwargs=options, autocommit=True))


class Postgres:
    """psycopg over the PostgreSQL protocol, with results as text or binary."""

    language = "postgres"

    def __init__(self, port, binary):
        self.address, self.binary = f"host=127.0.0.1 port={port} dbname=savedsearch user=ada", binary
        self.connection = None

    def run(self, statements):
        return [self.one(statement) for statement in statements]

    def one(self, statement):
        if self.connection is None or self.connection.closed:
            self.connection = psycopg.connect(self.address, autocommit=True)
        try:
            with self.connection.cursor(binary=self.binary) as cursor:
                cursor.execute(statement)
                return [list(row) for row in cursor.fetchall()]
        except psycopg.Error as error:
            return Refused(f"{error.sqlstate}: {error}")

    def close(self):
        if self.connection:
            self.connection.close()


def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SAVEDSEARCH_")}
    return kept | {"SAVEDSEARCH_API_KEY": "demo-key-comms", "SAVEDSEARCH_LOG": "error"}
