"""Requests at a constant mean rate over kept-alive connections, whatever the answers take.

They fall due at random (Poisson), as those of callers who do not know of each other. A request
that finds every connection busy waits, and its time counts from when it fell due, so a server that
stalls is not asked less.
"""

import array
import gc
import multiprocessing
import random
import select
import socket
import ssl
import time
from typing import NamedTuple

from servers import Failure

# One client process cannot fill two cores.
PROCESSES = 2
CONNECTIONS = 25
GRACE_SECONDS = 10


class Paced(NamedTuple):
    """What came of it: answers per second, requests that were due but never sent, times (s)."""

    rate: float
    unsent: int
    latencies: list


def trusting():
    """A context for certificates made at start."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def request_of(body, host="localhost"):
    """A request as the API server sends it."""
    head = (f"POST /?timeout=10s HTTP/1.1\r\nHost: {host}\r\n"
            "User-Agent: kube-apiserver-admission\r\nAccept: application/json\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


class Connection:
    """One request at a time, without blocking while an answer comes."""

    def __init__(self, address, context, session=None):
        host, _, port = address.rpartition(":")
        plain = socket.create_connection((host, int(port)), GRACE_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tls = context.wrap_socket(plain, server_hostname="localhost", session=session)
        self.due, self.missing = 0.0, None

    def fileno(self):
        return self.tls.fileno()

    def send(self, request, due):
        self.due, self.missing = due, None
        self.tls.sendall(request)

    def receive(self):
        """Takes what is there; whether the answer is complete."""
        try:
            data = self.tls.recv(1 << 17)
        except ssl.SSLWantReadError:
            return False
        if self.missing is None:
            head, end, _ = data.partition(b"\r\n\r\n")
            if not end or not head.startswith(b"HTTP/1.1 200"):
                raise Failure(f"an answer began with {data[:60]!r}")
            head = head.lower()
            length = head[head.index(b"content-length: ") + 16 :].split(b"\r", 1)[0]
            self.missing = len(head) + 4 + int(length)
        self.missing -= len(data)
        return self.missing == 0

    def ask(self, request):
        """A request and its answer; gives the seconds it took."""
        begin = time.perf_counter()
        self.send(request, begin)
        while not self.receive():
            pass
        return time.perf_counter() - begin

    def close(self):
        self.tls.close()


class Load:
    """A load that runs beside what else is done, until `result` is asked for."""

    def __init__(self, address, body, rate, seconds, connections=CONNECTIONS):
        context = multiprocessing.get_context("fork")
        self.seconds, self.workers = seconds, []
        # A connection to warm up takes a while; all begin together.
        begin = time.monotonic() + 0.3
        for index in range(PROCESSES):
            share = len(range(index, connections, PROCESSES))
            ours, theirs = context.Pipe(duplex=False)
            arguments = (theirs, index, address, body, rate / PROCESSES, seconds, share, begin)
            worker = context.Process(target=work, args=arguments, daemon=True)
            worker.start()
            theirs.close()
            self.workers.append((worker, ours))

    def result(self):
        done, unsent = array.array("d"), 0
        for worker, pipe in self.workers:
            if not pipe.poll(self.seconds + 3 * GRACE_SECONDS):
                raise Failure("a client was not done in time")
            try:
                found = pipe.recv()
            except EOFError:
                found = "a client ended early"
            worker.join(GRACE_SECONDS)
            if isinstance(found, str):
                raise Failure(found)
            done += found[0]
            unsent += found[1]
        return Paced(len(done) / self.seconds, unsent, list(done))


def paced(address, body, rate, seconds, connections=CONNECTIONS):
    return Load(address, body, rate, seconds, connections).result()


# --- a client process ---


def work(pipe, seed, address, body, rate, seconds, connections, begin):
    # Its own pauses are not the server's.
    gc.disable()
    try:
        context, request = trusting(), request_of(body)
        opened = [Connection(address, context) for _ in range(connections)]
        for connection in opened:
            connection.ask(request)
            connection.tls.setblocking(False)
        time.sleep(max(0, begin - time.monotonic()))
        pipe.send(run(opened, request, rate, seconds, random.Random(seed)))
    except (Failure, OSError) as error:
        pipe.send(str(error) or repr(error))


def run(free, request, rate, seconds, arrivals):
    """Gives the times of the answers, and how many requests were due but not sent."""
    now, gap = time.perf_counter, arrivals.expovariate
    busy, times, unsent = set(), array.array("d"), 0
    begin = now()
    end, due = begin + seconds, begin + gap(rate)
    while due < end or busy:
        moment = now()
        if moment >= end and due < end:
            due += gap(rate)
            unsent += 1
            continue
        if due <= moment and free and due < end:
            connection = free.pop()
            connection.send(request, due)
            busy.add(connection)
            due += gap(rate)
            continue
        is_idle = moment < end and (free or not busy)
        wait = min(due, end) - moment if is_idle else GRACE_SECONDS
        ready = select.select(busy, (), (), max(0.0, wait))[0]
        if not (is_idle or ready):
            raise Failure("answers are missing")
        for connection in ready:
            if connection.receive():
                times.append(now() - connection.due)
                busy.remove(connection)
                free.append(connection)
    return times, unsent
