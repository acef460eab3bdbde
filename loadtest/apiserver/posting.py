"""Creators of pods: threads with a kept-alive connection each, and the CPU time of processes."""

import os
import socket
import ssl
import threading
import time
import urllib.parse
from pathlib import Path
from typing import NamedTuple

from expect import DEADLINE_SECONDS, Failure

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Connection:
    """HTTP/1.1 at little CPU: it sends bytes, and checks only that the answer is a 201."""

    def __init__(self, api, client_certificate):
        address = urllib.parse.urlsplit(api.server)
        context = ssl.create_default_context(cadata=api.ca)
        context.load_cert_chain(client_certificate)
        plain = socket.create_connection((address.hostname, address.port), DEADLINE_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tls = context.wrap_socket(plain, server_hostname=address.hostname)

    def create(self, request):
        self.tls.sendall(request)
        answer = self.read_chunk()
        while not is_whole(answer):
            answer += self.read_chunk()
        if not answer.startswith(b"HTTP/1.1 201 "):
            raise Failure(f"a pod was not created: {answer[-500:].decode(errors='replace')}")

    def read_chunk(self):
        received = self.tls.recv(1 << 18)
        if not received:
            raise Failure("the API server closed a connection")
        return received

    def close(self):
        self.tls.close()


def is_whole(answer):
    """Whether the answer is complete; its JSON has no line break that looks like the last chunk."""
    head, _, body = answer.partition(b"\r\n\r\n")
    _, has_length, length = head.lower().partition(b"content-length: ")
    if has_length:
        return len(body) >= int(length.split(b"\r\n")[0])
    return body.endswith(b"0\r\n\r\n")


def post(path, body):
    head = (f"POST {path} HTTP/1.1\r\nHost: apiserver\r\nUser-Agent: loadtest\r\n"
            "Accept: application/json\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


class Run(NamedTuple):
    """The result of a run."""

    pods: int
    seconds: float
    # By process.
    cpu_seconds: dict


class Creators:
    """Connections for the largest number of creators."""

    def __init__(self, api, client_certificate, most):
        self.connections = [Connection(api, client_certificate) for _ in range(most)]
        self.failure = None

    def run(self, request, count, seconds, pids):
        """Creates pods with `count` creators for `seconds`."""
        counts = [0] * count
        end = threading.Event()
        before, begin = cpu_seconds(pids), time.monotonic()
        threads = [threading.Thread(target=self.create, args=(request, index, counts, end))
                   for index in range(count)]
        try:
            for thread in threads:
                thread.start()
            end.wait(seconds)
        finally:
            end.set()
        for thread in threads:
            thread.join()
        wall, after = time.monotonic() - begin, cpu_seconds(pids)
        if self.failure:
            raise self.failure
        return Run(sum(counts), wall, {name: after[name] - before[name] for name in pids})

    def create(self, request, index, counts, end):
        connection = self.connections[index]
        try:
            while not end.is_set():
                connection.create(request)
                counts[index] += 1
        except (OSError, Failure) as failure:
            self.failure = Failure(str(failure))
            end.set()

    def close(self):
        for connection in self.connections:
            connection.close()


def cpu_seconds(pids):
    """User and system time of processes so far."""
    times = {}
    for name, pid in pids.items():
        # The second field, in parentheses, may hold spaces: count after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        times[name] = (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
    return times
