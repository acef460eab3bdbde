"""h2load: a closed loop over kept-alive HTTP/1.1 connections."""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from servers import Failure

MOST_SECONDS = 300


class Run(NamedTuple):
    """What a run found; CPU is the server's for each request, times are in seconds."""

    rate: float
    done: int
    cpu: float
    latencies: list


def command(address, body, connections, *extent):
    return ["h2load", "--h1", "-t", "1", "-c", str(connections), *map(str, extent), "-d", str(body),
            "-H", "content-type: application/json", f"https://{address}/?timeout=10s"]


def h2load(server, body, connections, *extent, wants_latencies=False):
    """Runs it and fails unless all requests were answered with 200."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        line = command(server.address, body, connections, *extent)
        if wants_latencies:
            line += ["--log-file", str(log)]
        before = server.cpu_seconds()
        run = subprocess.run(line, capture_output=True, text=True, timeout=MOST_SECONDS,
                             check=False)
        cpu = server.cpu_seconds() - before
        rate, done = read(run)
        latencies = read_log(log) if wants_latencies else []
    return Run(rate, done, cpu / done, latencies)


def read(run):
    """Requests per second and in all."""
    numbers = re.search(r"^requests: .* (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, "
                        r"(\d+) timeout", run.stdout, re.MULTILINE)
    good = re.search(r"^status codes: (\d+) 2xx", run.stdout, re.MULTILINE)
    rate = re.search(r"^finished in .*?, ([\d.]+) req/s", run.stdout, re.MULTILINE)
    if run.returncode or not (numbers and good and rate):
        raise Failure(f"h2load: {run.stdout[-300:]}{run.stderr[-300:]}")
    done, _, failed, errored, timeout = map(int, numbers.groups())
    if not done or failed or errored or timeout or int(good[1]) < done:
        raise Failure(f"requests failed: {numbers[0]}, {good[0]}")
    return float(rate[1]), done


def read_log(path):
    return [int(line.split("\t")[2]) / 1e6 for line in path.read_text().splitlines()]
