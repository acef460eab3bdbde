"""A well-behaved client beside attackers, and a kubelet's probes, with a sample of each request.

Each runs in a process of its own, so that the attackers' Python does not slow it down.
"""

import itertools
import multiprocessing
import time
from typing import NamedTuple

import client
from connection import Connection, request_of, unverified_context  # loadtest/load
from expect import Failure
from results import percentile  # loadtest/load

# A webhook's default timeout: the client gives up on a review after it.
GIVES_UP_SECONDS = 10
PROBE_SECONDS = 0.1
NEW_CONNECTION_SECONDS = 1
# A review has its usual speed if it takes at most this many times the p99 before the attack.
USUAL = 2
FORK = multiprocessing.get_context("fork")


class Sample(NamedTuple):
    """A request: when it began, its time (s), and why it failed; "" if it did not."""

    begin: float
    seconds: float
    problem: str


class Process:
    """Runs `work(pipe, *args)` as a process; `pipe` carries messages to it and its result back."""

    def __init__(self, work, *args):
        self.pipe, theirs = FORK.Pipe()
        self.process = FORK.Process(target=run, args=(work, theirs, *args), daemon=True)
        self.process.start()
        theirs.close()

    def send(self, message):
        try:
            self.pipe.send(message)
        except OSError:
            pass  # The process has ended; `result` returns its result, if any.

    def result(self, seconds, default=None):
        """The result of `work`; `default` if there is none within `seconds`."""
        try:
            return self.pipe.recv() if self.pipe.poll(max(0, seconds)) else default
        except EOFError:
            return default
        finally:
            self.process.terminate()
            self.process.join(1)
            if self.process.is_alive():
                self.process.kill()
                self.process.join()


def run(work, pipe, *args):
    try:
        pipe.send(work(pipe, *args))
    except KeyboardInterrupt:
        pass


def reviews(pipe, address, body, ends):
    """One review after the other over a kept connection.

    Ends with a review at its usual speed after `pipe` has delivered (begin, end) of the attack, or
    at `ends`.
    """
    request, samples, attack = request_of(body), [], None
    slowest = 0.0
    caller = Caller(address, ends)
    while time.monotonic() < ends:
        sample = caller.ask(request)
        samples.append(sample)
        if attack is None and pipe.poll():
            attack = pipe.recv()
            quiet = [sample.seconds for sample in samples
                     if sample.begin < attack[0] and not sample.problem]
            slowest = USUAL * percentile(quiet, 0.99)
        if attack and is_usual(sample, attack[1], slowest):
            break
    caller.close()
    return samples


def is_usual(sample, since, slowest):
    return sample.begin >= since and not sample.problem and sample.seconds <= slowest


def new_connections(pipe, address, bodies, ends):
    """A new TLS connection each second with one review, until `pipe` has a message."""
    requests, samples = itertools.cycle(map(request_of, bodies)), []
    while time.monotonic() < ends:
        caller = Caller(address, ends)
        samples.append(caller.ask(next(requests)))
        caller.close()
        if pipe.poll(max(0, samples[-1].begin + NEW_CONNECTION_SECONDS - time.monotonic())):
            break
    return samples


class Caller:
    """Sends reviews over one connection, and over a new one after an error."""

    def __init__(self, address, ends):
        self.address, self.ends, self.connection = address, ends, None
        self.context = unverified_context()

    def ask(self, request):
        begin = time.monotonic()
        # The time limit to open a connection, handshake included.
        client.DEADLINE_SECONDS = max(0.1, min(GIVES_UP_SECONDS, self.ends - begin))
        problem = ""
        try:
            self.connection = self.connection or Connection(self.address, self.context)
            self.connection.tls.settimeout(client.DEADLINE_SECONDS)
            self.connection.ask(request)
        except Failure as failure:
            problem = str(failure)
            self.close()
        except OSError as error:
            problem = repr(error)
            self.close()
        return Sample(begin, time.monotonic() - begin, problem)

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


def probes(pipe, admin, ends):
    """/live and /ready in turn, until `pipe` has a message."""
    host, port = admin.rsplit(":", 1)
    samples = []
    while time.monotonic() < ends:
        begin = time.monotonic()
        for path in "/live", "/ready":
            patience = max(0.1, min(GIVES_UP_SECONDS, ends - time.monotonic()))
            samples.append(probe(host, int(port), path, patience))
        if pipe.poll(max(0, begin + PROBE_SECONDS - time.monotonic())):
            break
    return samples


def probe(host, port, path, timeout):
    begin, problem = time.monotonic(), ""
    try:
        status, _ = client.get(port, path, timeout, host)
        problem = "" if status == 200 else f"{path}: status {status}"
    except Failure as failure:
        problem = str(failure)
    return Sample(begin, time.monotonic() - begin, problem)
