"""h2load: a closed loop over kept-alive connections."""

import re
import subprocess
import tempfile
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from servers import Failure

MAX_SECONDS = 300
JSON = ("content-type: application/json",)
# The share of connections that must be open and busy for a measurement with many connections.
BUSY_SHARE = 0.99
MIN_SECONDS = 0.2
# A fast server ends a short run before enough connections are busy for long enough.
MAX_DOUBLINGS = 4


class Run(NamedTuple):
    """The figures of a run; CPU is the server's per request, times are in seconds."""

    rate: float
    done: int
    cpu: float
    latencies: list


class Steady(NamedTuple):
    """The figures of a run while all of its connections were open and busy."""

    rate: float
    latencies: list


def h2load(server, body, connections, *extent, wants_latencies=False):
    """Runs h2load over HTTP/1.1; fails unless all requests were answered with 200.

    With `-D`, h2load never ends if a connection is not open by then: use `-n` for many connections.
    """
    before = server.cpu_seconds()
    run, times = run_h2load(review_url(server), body, connections, "--h1", *extent,
                            is_logged=wants_latencies)
    cpu = server.cpu_seconds() - before
    rate, done = read(run)
    return Run(rate, done, cpu / done, [took for _, took in times])


def steady(server, body, connections, requests):
    """The part of a run in which each connection has a request in progress.

    A run in which that part is too short is repeated with twice as many requests.
    """
    for doublings in range(MAX_DOUBLINGS + 1):
        count = connections * requests << doublings
        run, times = run_h2load(review_url(server), body, connections, "--h1", "-n", count,
                                is_logged=True)
        read(run)
        begin, end = busy(times, connections)
        if end - begin >= MIN_SECONDS:
            latencies = [took for start, took in times if begin < start + took <= end]
            return Steady(len(latencies) / (end - begin), latencies)
    raise Failure(f"{connections} connections were busy for {end - begin:.1f} s"
                  f" of {count:,} requests, less than {MIN_SECONDS} s")


def busy(times, connections):
    """Begin and end of the time in which nearly all connections had a request in progress."""
    starts = sorted(start for start, _ in times)
    ends = sorted(start + took for start, took in times)
    found = [start for index, start in enumerate(starts, 1)
             if index - bisect_right(ends, start) >= BUSY_SHARE * connections]
    return (found[0], found[-1]) if found else (0, 0)


def review_url(server):
    """The URL that an API server calls."""
    return f"https://{server.address}{server.path}?timeout=10s"


def run_h2load(url, body, connections, *extent, headers=JSON, is_logged=False):
    """Runs h2load; returns the process, and (begin, duration) of each request in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        line = ["h2load", "-t", "1", "-c", str(connections), *map(str, extent), "-d", str(body),
                *(word for header in headers for word in ("-H", header)), url]
        if is_logged:
            line += ["--log-file", str(log)]
        try:
            run = subprocess.run(line, capture_output=True, text=True, timeout=MAX_SECONDS,
                                 check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f"h2load did not end within {MAX_SECONDS} s") from None
        return run, read_log(log) if is_logged else []


def read(run):
    """Requests per second, and the number of requests."""
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
