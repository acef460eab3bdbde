"""The 12 KB review at a constant mean rate over kept-alive connections: `loadtest/paced.rs`."""

import subprocess
from typing import NamedTuple

from reviews import TYPICAL
from servers import PACED, Failure

CONNECTIONS = 25
GRACE_SECONDS = 30


class Paced(NamedTuple):
    """The result: answers per second, requests that were due but never sent, times (s)."""

    rate: float
    unsent: int
    latencies: list


class Load:
    """A load in the background; `result` waits for its end."""

    def __init__(self, address, rate, seconds, seed=0):
        self.seconds = seconds
        self.process = subprocess.Popen(
            [str(PACED), address, str(TYPICAL), "--rate", str(rate), "--seconds", str(seconds),
             "--connections", str(CONNECTIONS), "--seed", str(seed)],
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


def paced(address, rate, seconds, seed=0):
    return Load(address, rate, seconds, seed).result()
