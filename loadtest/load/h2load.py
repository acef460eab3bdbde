"""h2load: a closed loop over kept-alive connections, of HTTP/1.1 unless told otherwise."""

import re
import subprocess
import tempfile
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from servers import Failure

MOST_SECONDS = 300
JSON = ("content-type: application/json",)
# Of many connections, those that have to be open and busy for what they do to count.
BUSY_SHARE = 0.99
LEAST_SECONDS = 0.2
# A fast server ends a short run before enough connections are busy for long enough.
MOST_DOUBLINGS = 4


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


def h2load(server, body, connections, *extent, wants_latencies=False):
    """Runs it and fails unless all requests were answered with 200.

    With `-D` it never ends if a connection is not open by then: many connections want `-n`.
    """
    before = server.cpu_seconds()
    run, times = ran(reviews_of(server), body, connections, "--h1", *extent,
                     is_logged=wants_latencies)
    cpu = server.cpu_seconds() - before
    rate, done = read(run)
    return Run(rate, done, cpu / done, [took for _, took in times])


def steady(server, body, connections, requests):
    """The part of a run in which each connection has a request under way.

    A run in which that part is too short is repeated with twice as many requests.
    """
    for doublings in range(MOST_DOUBLINGS + 1):
        count = connections * requests << doublings
        run, times = ran(reviews_of(server), body, connections, "--h1", "-n", count,
                         is_logged=True)
        read(run)
        begin, end = busy(times, connections)
        if end - begin >= LEAST_SECONDS:
            latencies = [took for start, took in times if begin < start + took <= end]
            return Steady(len(latencies) / (end - begin), latencies)
    raise Failure(f"{connections} connections were busy for {end - begin:.1f} s"
                  f" of {count:,} requests, less than {LEAST_SECONDS} s")


def busy(times, connections):
    """From when to when nearly all connections had a request under way."""
    starts = sorted(start for start, _ in times)
    ends = sorted(start + took for start, took in times)
    found = [start for index, start in enumerate(starts, 1)
             if index - bisect_right(ends, start) >= BUSY_SHARE * connections]
    return (found[0], found[-1]) if found else (0, 0)


def reviews_of(server):
    """The URL as an API server asks."""
    return f"https://{server.address}/?timeout=10s"


def ran(url, body, connections, *extent, headers=JSON, is_logged=False):
    """The process after its end, and of each request when it was sent and what it took (s)."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        line = ["h2load", "-t", "1", "-c", str(connections), *map(str, extent), "-d", str(body),
                *(word for header in headers for word in ("-H", header)), url]
        if is_logged:
            line += ["--log-file", str(log)]
        try:
            run = subprocess.run(line, capture_output=True, text=True, timeout=MOST_SECONDS,
                                 check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f"h2load was not done within {MOST_SECONDS} s") from None
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
