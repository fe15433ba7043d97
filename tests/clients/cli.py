"""The command-line client of the arrow-flight crate: browses, queries, binds, and is killed during a query."""

import os
import signal
import subprocess

from service import AID, Served, assert_quiet, upstream_requests, wait_until

CLIENT = os.environ["FLIGHT_SQL_CLIENT"]


def command(served, *arguments):
    user = ["--username", "ada", "--password", "swordfish"]
    return [CLIENT, "--host", "127.0.0.1", "--port", str(served.port), *user, *arguments]


def printed(served, *arguments):
    done = subprocess.run(command(served, *arguments), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


with Served(users=True) as served:
    assert "savedsearch" in printed(served, "catalogs")
    assert "v4" in printed(served, "db-schemas", "savedsearch")
    assert "mentions" in printed(served, "tables", "savedsearch", "--db-schema-filter", "v_", "--table-types", "TABLE")
    assert "LOCAL TEMPORARY" in printed(served, "table-types")
    assert "Acme – brand" in printed(served, "statement-query", f"SELECT name FROM saved_searches WHERE aid = '{AID}'")
    bound = "SELECT name FROM saved_searches WHERE aid = $1 LIMIT $2"
    assert "Acme – brand" in printed(served, "prepared-statement-query", bound, "-p", f"$1={AID}", "-p", "$2=1")
    wrong = subprocess.run(command(served, "statement-query", "SELECT nothing"), capture_output=True, text=True)
    assert wrong.returncode != 0 and "nothing" in wrong.stderr, wrong.stderr

with Served("--delay-ms", "200", users=True) as slow:
    sql = f"SELECT * FROM mentions WHERE aid = '{AID}' AND duration = '30d'"
    client = subprocess.Popen(command(slow, "statement-query", sql), stdout=subprocess.DEVNULL)
    wait_until(lambda: upstream_requests(slow) >= 2)
    client.send_signal(signal.SIGKILL)
    client.wait()
    assert_quiet(slow)
print("the command-line client of arrow-flight passed")
