"""Clients of the webhook and admin servers, which make their certificate at start."""

import http.client
import socket
import ssl
import time
from typing import NamedTuple

from expect import DEADLINE_SECONDS, Failure, expect


def unverified_context():
    """A TLS context that accepts any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def request_of(body, path="/"):
    """A request as the API server sends it."""
    head = (f"POST {path}?timeout=10s HTTP/1.1\r\nHost: localhost:443\r\n"
            "User-Agent: kube-apiserver-admission\r\nAccept: application/json\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


class Connection:
    """TLS 1.3 and HTTP/1.1, kept alive: one request at a time, each timed."""

    def __init__(self, address, context, session=None):
        plain = socket.create_connection(split(address), DEADLINE_SECONDS)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.tls = context.wrap_socket(plain, server_hostname="localhost", session=session)
        except OSError:
            plain.close()
            raise
        self.rest = b""

    def ask(self, request):
        """Sends a request and reads its answer; returns the seconds."""
        return self.answer(request)[0]

    def answer(self, request):
        """The same; returns the seconds and the body of the answer."""
        begin = time.perf_counter()
        self.tls.sendall(request)
        status, body = self.receive()
        took = time.perf_counter() - begin
        if status != 200:
            raise Failure(f"a review was answered with {status}")
        return took, body

    def receive(self):
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.read_chunk()
        head, _, body = self.rest.partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = int(dict(line.split(": ", 1) for line in lines[1:])["content-length"])
        while len(body) < length:
            body += self.read_chunk()
        self.rest = body[length:]
        return int(lines[0].split()[1]), body[:length]

    def read_chunk(self):
        if received := self.tls.recv(1 << 16):
            return received
        raise ConnectionError("the connection ended before the answer")

    def close(self):
        self.tls.close()


# --- the admin server ---


class Exposition:
    """`/metrics` over one connection, as Prometheus requests it."""

    def __init__(self, address):
        self.connection = http.client.HTTPConnection(*split(address), timeout=DEADLINE_SECONDS)

    def read(self):
        self.connection.request("GET", "/metrics")
        response = self.connection.getresponse()
        text = response.read().decode()
        expect("the status of /metrics", 200, response.status)
        return text


class Page(NamedTuple):
    status: int
    text: str


def get(address, path, timeout=10):
    """A page of the admin server, as a kubelet probes."""
    connection = http.client.HTTPConnection(*split(address), timeout=timeout)
    try:
        connection.request("GET", path, headers={
            "User-Agent": "kube-probe/1.36", "Accept": "*/*", "Connection": "close",
        })
        response = connection.getresponse()
        return Page(response.status, response.read().decode())
    except OSError as error:
        raise Failure(f"GET {path}: {error}") from None
    finally:
        connection.close()


def metric(text, name, **labels):
    """The sum of the samples with these labels; 0 if there are none."""
    total = 0.0
    for line in text.split("\n"):
        sample, _, value = line.rpartition(" ")
        is_named = sample.partition("{")[0] == name
        if is_named and all(f'{key}="{label}"' in sample for key, label in labels.items()):
            total += float(value)
    return int(total)


def split(address):
    host, _, port = address.rpartition(":")
    return host, int(port)
