"""Reviews and calls that are expensive to answer, one after the other over each connection."""

import collections
import struct
import threading
import time

import http2
from attackers import PAUSE_SECONDS, Attacker
from connection import Connection, request_of, unverified_context  # loadtest/load
from http2 import DATA, END_STREAM, frame

LARGEST_WINDOW = (1 << 31) - 1
# The longest wait for an answer.
ANSWER_SECONDS = 40
# The wait for the last answers.
LAST_SECONDS = 0.5
INJECT = "/injectd.v1.Injector/Inject"


def reviews(place, connections, until, body):
    """One expensive review after the other over each connection, HTTP/1.1."""
    request, context = request_of(body), unverified_context()

    def ask(counts):
        connection = Connection(place.address, context)
        connection.tls.settimeout(ANSWER_SECONDS)
        while time.monotonic() < until:
            connection.send(request)
            status, length = take_answer(connection.tls)
            counts[f"answers {status}"] += 1
            counts["bytes of answers"] += length
            if status != 200:
                break
        connection.close()

    return in_threads(connections, until, ask)


def take_answer(tls):
    """Reads an answer and drops its body; returns its status and length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += read_chunk(tls)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    length = next(int(line[16:]) for line in lines if line.startswith("content-length: "))
    rest = length - len(body)
    while rest > 0:
        rest -= len(read_chunk(tls))
    return int(lines[0].split()[1]), length


def read_chunk(tls):
    if data := tls.recv(1 << 16):
        return data
    raise ConnectionError("the connection ended before the answer")


def calls(place, connections, until, message):
    """One expensive call of Inject after the other over each connection."""
    data = http2.message(message)

    def ask(counts):
        connection = Attacker(place, window=LARGEST_WINDOW)
        more = struct.pack(">I", LARGEST_WINDOW - 65_535)
        connection.send(frame(http2.WINDOW_UPDATE, 0, 0, more))
        while time.monotonic() < until and not connection.is_over:
            (stream,) = connection.begin(1)
            connection.open(stream, INJECT)
            connection.write(stream, data, patience=ANSWER_SECONDS)
            connection.send(frame(DATA, END_STREAM, stream, b""))
            end = time.monotonic() + ANSWER_SECONDS
            while not (connection.is_over or connection.has_ended(stream)):
                if time.monotonic() > end:
                    raise TimeoutError
                connection.read(0.01)
            counts["calls ended"] += 1
        counts["bytes of answers"] += connection.data_bytes
        connection.close()

    return in_threads(connections, until, ask)


def in_threads(count, until, ask):
    """Calls `ask` in `count` threads, and again after an error of its connection."""
    counts = collections.Counter()

    def repeat():
        while time.monotonic() < until:
            try:
                ask(counts)
            except OSError as error:
                counts[f"failed: {type(error).__name__}"] += 1
                time.sleep(PAUSE_SECONDS)

    threads = [threading.Thread(target=repeat, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    # Answers of the last round may never come.
    for thread in threads:
        thread.join(max(0, until + LAST_SECONDS - time.monotonic()))
    return counts.copy()
