"""A review at a constant mean rate over kept-alive connections: `loadtest/paced.rs`."""

import subprocess
from pathlib import Path
from typing import NamedTuple

from reviews import TYPICAL
from servers import PACED, Failure

CONNECTIONS = 25
GRACE_SECONDS = 30
# More than any server can answer: a closed loop, in which the answered rate is the capacity.
ENDLESS = 200_000


class Paced(NamedTuple):
    """The result: answers per second, requests that were due but never sent, times (s)."""

    rate: float
    unsent: int
    latencies: list


class Asked(NamedTuple):
    """A review and the path of its webhook; each request replaces `serial` by other digits."""

    review: Path = TYPICAL
    path: str = "/"
    serial: str | None = None

    def flags(self):
        return ["--path", self.path, *(["--serial", self.serial] if self.serial else [])]


class Load:
    """A load in the background; `result` waits for its end."""

    def __init__(self, address, rate, seconds, seed=0, asked=Asked(), connections=CONNECTIONS):
        self.seconds = seconds
        self.process = subprocess.Popen(
            [str(PACED), address, str(asked.review), "--rate", str(rate), "--seconds", str(seconds),
             "--connections", str(connections), "--seed", str(seed), *asked.flags()],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self):
        try:
            out, problem = self.process.communicate(timeout=self.seconds + GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise Failure("the client did not end in time") from None
        if self.process.returncode:
            raise Failure(f"{PACED.name}: {problem[-300:]}")
        unsent, *times = out.splitlines()
        latencies = [int(time) / 1e9 for time in times]
        if not latencies:
            raise Failure(f"{PACED.name}: no request fell due")
        return Paced(len(latencies) / self.seconds, int(unsent.removeprefix("unsent ")), latencies)


def paced(address, rate, seconds, seed=0, asked=Asked(), connections=CONNECTIONS):
    return Load(address, rate, seconds, seed, asked, connections).result()
