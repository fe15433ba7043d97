"""Runs the npm clients: with queries that come to their end, and killed in the middle of one that does not."""

import pathlib
import subprocess
import time

from service import Served, upstream_requests, wait_until

SCRIPT = str(pathlib.Path(__file__).with_name("npm.js"))

with Served(users=True) as served:
    subprocess.run(["node", SCRIPT, served.address], check=True, timeout=120)
with Served("--delay-ms", "300", users=True) as slow:
    client = subprocess.Popen(["node", SCRIPT, slow.address, "long"])
    wait_until(lambda: upstream_requests(slow) >= 2)
    client.kill()
    client.wait()
    time.sleep(1)
    then = upstream_requests(slow)
    time.sleep(1)
    assert upstream_requests(slow) == then, "the service is still asked"
print("the npm clients went well")
