"""Runs the npm clients: with queries that finish, and killed during a long one."""

import pathlib
import subprocess

from service import Served, assert_quiet, upstream_requests, wait_until

SCRIPT = str(pathlib.Path(__file__).with_name("npm.js"))

with Served(users=True) as served:
    subprocess.run(["node", SCRIPT, served.address], check=True, timeout=120)
with Served("--delay-ms", "300", users=True) as slow:
    client = subprocess.Popen(["node", SCRIPT, slow.address, "long"])
    wait_until(lambda: upstream_requests(slow) >= 2)
    client.kill()
    client.wait()
    assert_quiet(slow)
print("the npm clients passed")
