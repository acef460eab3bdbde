"""Servers under load: started on free ports, measured through /proc, always stopped."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from connection import get, metric
from expect import DEADLINE_SECONDS, Failure, expect, poll

ROOT = Path(__file__).parent.parent.parent
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
INJECTD = Path(os.environ.get("INJECTD", RELEASE / "injectd"))
ECHO = Path(os.environ.get("ECHO", RELEASE / "examples" / "echo"))
OVERLOAD = Path(os.environ.get("OVERLOAD", RELEASE / "examples" / "overload"))
PACED = Path(os.environ.get("PACED", RELEASE / "examples" / "paced"))
# The configuration of Istio: a recorded one, else the small one of the tests.
ISTIO_RELEASE = "1.30.3"
CORPUS = os.environ.get("INJECTD_CORPUS")
SMALL = ROOT / "crates/testkit/src/istio"
SERVER = re.compile(rb"^(echo|webhook|gRPC|admin) server: (\S+)")


class Server:
    """A process that prints the addresses of its servers, unless they are known; it writes a log,
    which is discarded."""

    def __init__(self, command, path="/", addresses=(), env=None):
        self.path = path
        self.begin = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env={**os.environ, **(env or {})})
        self.pid = self.process.pid
        self.address = self.admin = self.grpc = None
        if addresses:
            self.address, self.admin = addresses
            poll("injectd is ready", self.expect_ready)
            return
        for line in self.process.stdout:
            if not (server := SERVER.match(line)):
                continue
            if server[1] == b"admin":
                self.admin = server[2].decode()
            elif server[1] == b"gRPC":
                self.grpc = server[2].decode()
            else:
                self.address = server[2].decode()
            if self.address and (self.admin or server[1] == b"echo"):
                return
        self.stop()
        raise Failure(f"{command[0]} exited during start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def expect_ready(self):
        expect("injectd's exit code", None, self.process.poll())
        expect("/ready", (200, "ok\n"), get(self.admin, "/ready"))

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    # --- CPU, memory, metrics ---

    def cpu_seconds(self):
        """User and system time of its threads so far, to the nanosecond."""
        total = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def rss_mib(self, field="VmRSS"):
        """Resident memory, or with VmHWM its peak."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s*(\d+) kB", status, re.MULTILINE)[1]) / 1024

    def metric(self, name, **labels):
        status, text = get(self.admin, "/metrics")
        expect("status of /metrics", 200, status)
        return metric(text, name, **labels)


def injectd(*flags, grpc_addr="", path="/"):
    return Server([str(INJECTD), "serve", "--standalone", "--addr", "127.0.0.1:0",
                   "--metrics-addr", "127.0.0.1:0", "--grpc-addr", grpc_addr, *flags], path)


def injectd_for_istio(*flags, files=(), **others):
    config, values, mesh = files or istio_files()
    return injectd("--mesh", "istio", "--injector-config", str(config), "--values", str(values),
                   "--mesh-config", str(mesh), *flags, path="/inject", **others)


def istio_files():
    """The files of the keys `config`, `values` and `mesh`."""
    if CORPUS:
        folder, suffix = Path(CORPUS) / "istio" / ISTIO_RELEASE, "-default"
    else:
        folder, suffix = SMALL, ""
    return [folder / f"{name}{suffix}.{kind}"
            for name, kind in (("config", "yaml"), ("values", "json"), ("mesh", "yaml"))]


def echo(review, answer_bytes=None):
    """An echo with answers of this length, or of the length of injectd's for Linkerd."""
    length = ["--answer-bytes", str(answer_bytes)] if answer_bytes else []
    return Server([str(ECHO), str(review), "--addr", "127.0.0.1:0", *length])
