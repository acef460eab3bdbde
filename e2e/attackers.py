"""Attackers that hold resources of the server: streams, bodies, answers, requests.

Each function attacks a server of this machine until a given time, in a process of its own
(attack.py). It trusts the certificate that the server presents, reopens connections that the
server closes, and returns its counts by name.
"""

import collections
import itertools
import select
import ssl
import struct
import time
from typing import NamedTuple

import http2
from connection import Connection, request_of, unverified_context  # loadtest/load
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, SETTINGS, frame

MAX_CONCURRENT_STREAMS = 3
# The streams of a connection until the server announces its limit (RFC 9113 recommends 100).
STREAMS = 100
# A pause after a round in which nothing could be sent, and after a connection was refused.
PAUSE_SECONDS = 0.002
# Streams of a connection that the attack `refusals` does not hold, but uses for requests.
SPARE = 20


class Place(NamedTuple):
    """An address (host:port), and a file with the certificate of its server."""

    address: str
    ca: str

    def port(self):
        return int(self.address.rpartition(":")[2])


class Attacker(http2.Connection):
    """HTTP/2 over TLS, with as many streams as the server allows."""

    def __init__(self, place, window=None):
        self.limit, self.live, self.left = STREAMS, set(), b""
        self.ids = itertools.count(1, 2)
        super().__init__(place.port(), place.ca, window)

    def take_frame(self):
        end = 9 + int.from_bytes(self.rest[:3], "big")
        if len(self.rest) >= end:
            self.look_at(self.rest[3], self.rest[4], int.from_bytes(self.rest[5:9], "big"),
                         self.rest[9:end])
        return super().take_frame()

    def look_at(self, kind, flags, stream, payload):
        """Inspects a received frame before it is taken."""
        if kind == SETTINGS:
            for key, value in struct.iter_unpack(">HI", payload):
                if key == MAX_CONCURRENT_STREAMS:
                    self.limit = value
        elif kind == DATA and flags & END_STREAM:
            self.ended.add(stream)

    def room(self):
        """Reads frames; returns how many streams may be opened, and how many have ended."""
        self.read(0)
        ended = self.live & (self.ended | self.resets.keys())
        self.live -= ended
        self.ended.clear()
        self.resets.clear()
        return max(0, self.limit - len(self.live)), len(ended)

    def begin(self, count):
        """Ids of streams, which the caller opens."""
        ids = list(itertools.islice(self.ids, count))
        self.live.update(ids)
        return ids

    def push(self, block):
        """Sends as much as the server takes now: of the last block's rest, else of this block."""
        self.left = self.left or memoryview(block)
        before = len(self.left)
        try:
            while self.left:
                self.left = self.left[self.tls.send(self.left):]
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            pass
        except OSError:
            self.is_over = True
        return before - len(self.left)

    def discard(self):
        """Reads and drops received bytes."""
        try:
            while not self.is_over:
                self.is_over = not self.tls.recv(1 << 16)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            self.is_over = True


class Crowd:
    """A number of connections; reopens those that end."""

    def __init__(self, count, connect, until):
        self.connections, self.connect, self.until = [None] * count, connect, until
        self.counts = collections.Counter()

    def rounds(self):
        """Each connection in turn, until the attack is over."""
        while True:
            for index, connection in enumerate(self.connections):
                if time.monotonic() > self.until:
                    return
                if connection is None or connection.is_over:
                    connection = self.connections[index] = self.again(connection)
                if connection:
                    yield connection

    def again(self, connection):
        if connection:
            connection.close()
        try:
            connection = self.connect()
        except OSError:
            self.counts["connections refused"] += 1
            time.sleep(PAUSE_SECONDS)
            return None
        self.counts["connections"] += 1
        return connection


def review_head(stream, flags=0, length=None, path="/"):
    """HEADERS of a review."""
    fields = [(":method", "POST"), (":scheme", "https"), (":path", f"{path}?timeout=10s"),
              (":authority", "localhost"), ("content-type", "application/json")]
    if length is not None:
        fields.append(("content-length", str(length)))
    block = b"".join(b"\0" + http2.text(name) + http2.text(value) for name, value in fields)
    return frame(HEADERS, END_HEADERS | flags, stream, block)


# --- held requests ---


def endless_streams(place, connections, until, body):
    """As many streams as the server allows, with bodies that do not end."""
    crowd = Crowd(connections, lambda: Attacker(place), until)
    for connection in crowd.rounds():
        room, ended = connection.room()
        crowd.counts["streams"] += room
        crowd.counts["streams ended by the server"] += ended
        block = b"".join(review_head(stream) + (frame(DATA, 0, stream, body) if body else b"")
                         for stream in connection.begin(room))
        if not connection.send(block, patience=1) or not room:
            time.sleep(PAUSE_SECONDS)
    return crowd.counts


def stalled_bodies(place, connections, until):
    """HTTP/1.1 requests that announce 3 MiB, send 1 MiB and stop."""
    request = request_of(b" " * (3 << 20))[:-(2 << 20)]
    context, counts, stalled = unverified_context(), collections.Counter(), {}
    while time.monotonic() < until:
        while len(stalled) < connections and time.monotonic() < until:
            connection = None
            try:
                connection = Connection(place.address, context)
                connection.tls.settimeout(1)
                connection.send(request)
                connection.tls.setblocking(False)
            except OSError:
                counts["refused before the end"] += 1
                if connection:
                    connection.close()
                time.sleep(PAUSE_SECONDS)
                continue
            counts["bodies"] += 1
            stalled[connection.tls] = connection
        for tls in select.select(list(stalled), [], [], 0.05)[0]:
            try:
                is_answered = tls.recv(1 << 14) != b""
            except ssl.SSLWantReadError:
                continue  # A session ticket.
            except OSError:
                is_answered = False
            counts["answered" if is_answered else "closed"] += 1
            stalled.pop(tls).close()
    return counts


def untaken_answers(place, connections, until, body):
    """Complete reviews, with a window of zero bytes for their answers."""
    crowd = Crowd(connections, lambda: Attacker(place, window=0), until)
    for connection in crowd.rounds():
        room, _ = connection.room()
        for stream in connection.begin(min(room, SPARE)):
            connection.windows[stream] = connection.first_window
            connection.send(review_head(stream), patience=1)
            sent = connection.write(stream, body, patience=0.2)
            if sent < len(body) or time.monotonic() > until:
                break
            connection.send(frame(DATA, END_STREAM, stream, b""), patience=1)
            crowd.counts["reviews"] += 1
        if not room:
            time.sleep(PAUSE_SECONDS)
    return crowd.counts


def refusals(place, connections, until):
    """Streams that do not end, and complete requests beyond them."""
    crowd = Crowd(connections, lambda: Attacker(place), until)
    holding = set()
    for connection in crowd.rounds():
        room, ended = connection.room()
        crowd.counts["requests ended"] += ended
        if connection not in holding:
            holding.add(connection)
            held = connection.begin(max(0, room - SPARE))
            connection.send(b"".join(map(review_head, held)), patience=1)
            room = SPARE
        crowd.counts["requests"] += room
        connection.send(b"".join(review_head(stream, END_STREAM, 0)
                                 for stream in connection.begin(room)), patience=1)
        if not room:
            time.sleep(PAUSE_SECONDS)
    return crowd.counts
