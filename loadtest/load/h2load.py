"""h2load: a closed loop over kept-alive HTTP/1.1 connections."""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from servers import Failure

MOST_SECONDS = 300
# Of the requests of a run with many connections: what is answered before the first has sent all.
BUSY_SHARE = 0.8
LEAST_SECONDS = 0.2


UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1}
CONNECT = re.compile(r"^time for connect: +([\d.]+)(us|ms|s) +([\d.]+)(us|ms|s)", re.MULTILINE)


class Run(NamedTuple):
    """What a run found; CPU is the server's for each request, times are in seconds."""

    rate: float
    done: int
    cpu: float
    latencies: list


class Steady(NamedTuple):
    """What a run found while all of its connections were open and busy."""

    rate: float
    latencies: list


def command(address, body, connections, *extent):
    return ["h2load", "--h1", "-t", "1", "-c", str(connections), *map(str, extent), "-d", str(body),
            "-H", "content-type: application/json", f"https://{address}/?timeout=10s"]


def h2load(server, body, connections, *extent, wants_latencies=False):
    """Runs it and fails unless all requests were answered with 200.

    With `-D` it never ends if a connection is not open by then: many connections want `-n`.
    """
    before = server.cpu_seconds()
    run, times = ran(server, body, connections, *extent, is_logged=wants_latencies)
    cpu = server.cpu_seconds() - before
    rate, done = read(run)
    return Run(rate, done, cpu / done, [took for _, took in times])


def steady(server, body, connections, requests):
    """A run's middle: from when its last connection is open, while none has sent all yet."""
    run, times = ran(server, body, connections, "-n", connections * requests, is_logged=True)
    read(run)
    connect = CONNECT.search(run.stdout)
    first, last = (float(connect[at]) * UNITS[connect[at + 1]] for at in (1, 3))
    # All begin to connect at once.
    begin = min(start for start, _ in times) - first + last
    ends = sorted(start + took for start, took in times)
    end = ends[int(len(ends) * BUSY_SHARE)]
    if end - begin < LEAST_SECONDS:
        raise Failure(f"{connections} connections took {last:.1f} s to open, as long as {requests}"
                      " requests of each: too few to measure")
    latencies = [took for start, took in times if start >= begin and start + took <= end]
    return Steady(len(latencies) / (end - begin), latencies)


def ran(server, body, connections, *extent, is_logged):
    """The process after its end, and of each request when it was sent and what it took (s)."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        line = command(server.address, body, connections, *extent)
        if is_logged:
            line += ["--log-file", str(log)]
        run = subprocess.run(line, capture_output=True, text=True, timeout=MOST_SECONDS,
                             check=False)
        return run, read_log(log) if is_logged else []


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
    lines = (line.split("\t") for line in path.read_text().splitlines())
    return [(int(start) / 1e6, int(took) / 1e6) for start, _, took in lines]
