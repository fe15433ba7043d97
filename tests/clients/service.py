"""Runs a simulator and a server over it as processes, for tests with real clients."""

import os
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.request

AID = "183772"
BINARY = os.environ["SAVEDSEARCH"]


class Served:
    """`savedsearch simulate` with the given options, and `savedsearch serve` or `mcp` over it, with the options `program`. With a
    `base_url` there is no simulator of its own."""

    def __init__(self, *simulate, command="serve", users=False, tls=False, program=(), base_url=None):
        self.folder = tempfile.TemporaryDirectory()
        self.simulate, self.command, self.users, self.tls = simulate, command, users, tls
        self.program, self.base_url = program, base_url
        self.processes = []

    def __enter__(self):
        folder = pathlib.Path(self.folder.name)
        size = [] if {"--data", "--mentions"} & set(self.simulate) else ["--searches", "4", "--mentions", "3000"]
        options = ["--listen", "127.0.0.1:0", *size, *self.simulate]
        if not self.base_url:
            upstream = self.start(["simulate", *options])["listening on"]
            self.base_url = f"http://{upstream}/v4"
        serve = ["--base-url", self.base_url, *self.program, self.command, "--listen", "127.0.0.1:0", "--operations", "127.0.0.1:0"]
        if self.command == "serve":
            serve += ["--postgres-listen", "127.0.0.1:0"]
        if self.users:
            (folder / "users.toml").write_text(users())
            serve += ["--auth", "users", "--users-file", str(folder / "users.toml")]
        if self.tls:
            self.authority = certificates(folder)
            serve += ["--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server.key")]
        told = self.start(serve)
        self.address = told["listening on"]
        self.operations = told["health and metrics on"]
        self.postgres = int(told.get("Postgres on", ":0").rsplit(":", 1)[1])
        self.port = int(self.address.rsplit(":", 1)[1])
        self.uri = f"grpc+tls://localhost:{self.port}" if self.tls else f"grpc://{self.address}"
        # A server that has a key checks it with one request, which is not part of any test.
        for _ in range(600):
            if self.command != "serve" or upstream_requests(self) >= 1:
                break
            time.sleep(0.1)
        return self

    def start(self, arguments):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SAVEDSEARCH_")}
        environment |= {"SAVEDSEARCH_API_KEY": "demo-key-comms", "SAVEDSEARCH_LOG": "warn"}
        process = subprocess.Popen([BINARY, *arguments], stderr=subprocess.PIPE, text=True, env=environment)
        self.processes.append(process)
        told, line = {}, ""
        for line in process.stderr:
            found = re.match(r"(.* on) (\S+)$", line.strip())
            if found:
                told[found[1]] = found[2]
            if "listening on" in told:
                return told
        raise RuntimeError(f"{arguments} did not start: {line}")

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            assert process.wait(300) == 0, "the process failed"
        self.folder.cleanup()


def users():
    command = [BINARY, "serve", "--hash-password"]
    hashed = subprocess.run(command, input="swordfish\n", capture_output=True, text=True, check=True).stdout.strip()
    command[-1] = "--scram-verifier"
    proof = subprocess.run(command, input="swordfish\n", capture_output=True, text=True, check=True).stdout.strip()
    token = subprocess.run(["sha256sum"], input="bobs-token", capture_output=True, text=True, check=True).stdout.split()[0]
    return f'[users.ada]\n{hashed}\n{proof}\n[users.bob]\ntoken_sha256 = ["{token}"]\n'


def certificates(folder):
    """Creates a certificate authority and a server certificate for this machine."""

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    new = ["req", "-newkey", "rsa:2048", "-nodes"]
    openssl(*new, "-x509", "-days", "2", "-subj", "/CN=tests", "-keyout", "authority.key", "-out", "authority.pem")
    openssl(*new, "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    signed = ["x509", "-req", "-days", "2", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial"]
    openssl(*signed, "-extfile", "names", "-in", "server.csr", "-out", "server.pem")
    return folder / "authority.pem"


def metric(served, name):
    text = urllib.request.urlopen(f"http://{served.operations}/metrics", timeout=300).read().decode()
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"savedsearch_{name} "))


def upstream_requests(served):
    """Returns the number of requests that the server has sent to the service."""
    return metric(served, "upstream_requests")


def assert_quiet(served):
    """Asserts that no more requests are sent to the service, soon after a query has ended: those on their way may be counted later.
    Returns the number sent until then."""
    for _ in range(3):
        then = upstream_requests(served)
        time.sleep(1)
        if upstream_requests(served) == then:
            return then
    raise AssertionError("requests are still being sent")


def wait_until(condition):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("condition not met within 300 s")
