"""Misbehaving callers: each gets a status, and other callers are served as before."""

import gzip
import json
import struct
import time

from expect import DEADLINE_SECONDS, Failure, expect, expect_in, poll
from grpc_servers import (
    HERE, POD, SERVICE, Requests, Served, expect_refused, expect_served, expect_status, messages,
    must_succeed, request,
)
from http2 import (
    CANCEL, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, Connection, call_of, frame, message,
)
from steps import wait_until

INJECT, STREAM = (f"/{SERVICE}/{method}" for method in ("Inject", "InjectStream"))
MAX_BYTES = 10 << 20
RESETS, AT_ONCE = 10_000, 100
REVIEW = HERE.parent / "loadtest/review-12k.json"
# Connections, and streams on each. A connection whose client does not read has a window of 1 MiB, the
# requests and answers of one stream, and memory that the allocator keeps.
SLOW_READERS = (1, 1), (1, 50), (20, 4), (60, 2)
SLOW_READER_KIB = 3 << 10
SLOW_READER_BYTES = 8 << 20
HALF_OPEN = 200
# The largest number of unanswered requests of a stream.
BOMBS = 64
# Twice --max-body-memory.
MAX_UNPACKED_KIB = 2 * 64 << 10
NOISE_KIB = 16 << 10


def large_object():
    """The pod of the load test."""
    return json.dumps(json.loads(REVIEW.read_text())["request"]["object"]).encode()


def stream_message(uid, **fields):
    wrapped = messages.InjectStreamRequest(request=request(uid=uid, **fields))
    return message(wrapped.SerializeToString())


class Abuse:
    """One process, whose memory is measured before and after."""

    def __init__(self, folder):
        self.served = Served(folder / "served", "--max-connections", "100")
        self.first_rss = None
        self.max_grown = 0

    def steps(self):
        return {
            "serve, and its memory when warm": self.start,
            "a message over 10 MiB: OUT_OF_RANGE": self.too_large,
            "a stream with such a message ends with OUT_OF_RANGE": self.too_large_in_stream,
            "invalid JSON: INVALID_ARGUMENT, the field is named": self.invalid_json,
            "JSON that is not an object, wrong types: INVALID_ARGUMENT": self.wrong_types,
            "an unknown kind, of the request or the object, is skipped": self.unknown_kind,
            "bytes that are not a message: a status": self.no_message,
            "unknown methods and services: UNIMPLEMENTED": self.unimplemented,
            **{f"{streams} streams on each of {connections} connections whose client does not "
               f"read: at most {SLOW_READER_KIB >> 10} MiB each":
               lambda extent=(connections, streams): self.slow_readers(*extent)
               for connections, streams in SLOW_READERS},
            f"{HALF_OPEN} streams that stop inside of a message": self.half_open,
            f"{RESETS} streams that are reset at once": self.resets,
            f"a call, and {BOMBS} requests of a stream, small until they are decompressed":
                self.bombs,
            "memory is as before": self.memory,
            "SIGTERM ends it with exit code 0": lambda: expect("exit code", 0, self.served.stop()),
        }

    def start(self):
        self.served.start()
        requests = Requests()
        for index in range(2_000):
            requests.send(uid=str(index), object=large_object())
        requests.close()
        with self.served.call() as client:
            must_succeed(lambda: list(client.stream(requests)))
        self.first_rss = self.served.rss_kib()
        return f"{self.first_rss >> 10} MiB"

    def expect_well(self):
        self.served.expect_alive()
        expect_served(self.served.call())

    # --- messages ---

    def too_large(self):
        words = expect_refused("OUT_OF_RANGE", self.served.call(),
                               object=b" " * (MAX_BYTES + 1))
        self.expect_well()
        return words

    def too_large_in_stream(self):
        requests = Requests()
        requests.send(uid="large", object=b" " * (MAX_BYTES + 1))
        with self.served.call() as client:
            words = expect_status("OUT_OF_RANGE", lambda: list(client.stream(requests)))
        requests.close()
        self.expect_well()
        return words

    def invalid_json(self):
        for text_of in b"", b"{", b"\xff\xfe", b"{}{}", b"[" * 100_000, b'{"metadata":' * 10_000:
            with self.served.call() as client:
                words = expect_status("INVALID_ARGUMENT", lambda: client.inject(object=text_of))
            expect_in("the message", "object", words)
        self.expect_well()
        return words[:100]

    def wrong_types(self):
        for field, text_of in {
            "object": b"[]",
            "object.metadata": b'{"metadata":[]}',
            "object.metadata.annotations": b'{"metadata":{"annotations":7}}',
            "object.spec.containers": b'{"metadata":{},"spec":{"containers":{}}}',
        }.items():
            expect_refused("INVALID_ARGUMENT", self.served.call(), field, object=text_of)

    def unknown_kind(self):
        pod = json.loads(POD.read_text())
        without_kind = {key: pod[key] for key in ("metadata", "spec")}
        with self.served.call() as client:
            for fields in ({"kind": "Frobnicator", "object": json.dumps(without_kind).encode()},
                           {"kind": "", "object": json.dumps({**pod, "kind": "Frobnicator"}).encode()}):
                found = must_succeed(lambda fields=fields: client.inject(**fields))
                expect("the verdict", "VERDICT_SKIPPED", messages.Verdict.Name(found.verdict))
        return [skip.reason for skip in found.skips]

    def no_message(self):
        """Bytes that are not protobuf, wrong prefixes, and a truncated message."""
        with self.served.call() as client:
            ask = client.channel.unary_unary(INJECT)
            words = expect_status("INTERNAL", lambda: ask(b"\xff" * 64, timeout=DEADLINE_SECONDS))
        for name, data in {
            "a length of 4 GiB": b"\0\xff\xff\xff\xff" + b"x" * 64,
            "an unknown compression": b"\7\0\0\0\1x",
            "a truncated message": b"\0\0\0\1\0abc",
            "no message": b"",
        }.items():
            connection = Connection(self.served.port(), self.served.ca)
            connection.open(1, INJECT)
            connection.send(frame(DATA, END_STREAM, 1, data))
            wait_until(f"{name}: the call ends", lambda: self.has_ended(connection))
            connection.close()
        self.expect_well()
        return words

    def has_ended(self, connection):
        connection.read(0.01)
        expect("whether the connection is open", False, connection.is_over)
        return connection.has_ended(1)

    def unimplemented(self):
        with self.served.call() as client:
            for path in f"/{SERVICE}/Explain", "/no.such.Service/Call":
                ask = client.channel.unary_unary(path)
                expect_status("UNIMPLEMENTED", lambda ask=ask: ask(b"", timeout=DEADLINE_SECONDS))

    # --- streams ---

    def slow_readers(self, connections, streams):
        """Clients that send until the server takes no more, and read no answer."""
        data = b"".join(stream_message(str(index), object=large_object())
                        for index in range(SLOW_READER_BYTES // (12 << 10)))
        before = self.served.rss_kib()
        opened, sent = [], 0
        try:
            for _ in range(connections):
                connection = Connection(self.served.port(), self.served.ca)
                opened.append(connection)
                for index in range(streams):
                    connection.open(2 * index + 1, STREAM)
                    sent += connection.write(2 * index + 1, data, 0.02 if index else 0.2)
            grown = self.served.rss_kib() - before
            self.max_grown = max(grown, self.max_grown)
            self.expect_well()
        finally:
            for connection in opened:
                connection.close()
        total = len(data) * connections * streams
        words = f"{grown >> 10} MiB more, {sent >> 10} KiB taken of {total >> 20} MiB"
        if sent == total:
            raise Failure(f"the server took everything from a client that does not read: {words}")
        if grown > NOISE_KIB + SLOW_READER_KIB * connections:
            raise Failure(words)
        return words

    def half_open(self):
        before = self.served.rss_kib()
        connection = Connection(self.served.port(), self.served.ca)
        for index in range(HALF_OPEN):
            connection.open(2 * index + 1, STREAM)
            connection.send(frame(DATA, 0, 2 * index + 1, stream_message("half")[:20]))
        connection.read(0.2)
        grown = self.served.rss_kib() - before
        self.expect_well()
        expect("whether the connection is open", False, connection.is_over)
        connection.close()
        if grown > NOISE_KIB:
            raise Failure(f"{grown >> 10} MiB more")
        return f"{grown >> 10} MiB more"

    def resets(self):
        before, begin = self.served.rss_kib(), time.monotonic()
        sent = connections = 0
        reasons = set()
        while sent < RESETS:
            connection = Connection(self.served.port(), self.served.ca)
            connections += 1
            stream = 1
            while sent < RESETS and not connection.is_over and connection.goaway is None:
                block = call_of(STREAM)
                batch = b"".join(
                    frame(HEADERS, END_HEADERS, stream + 2 * offset, block)
                    + frame(RST_STREAM, 0, stream + 2 * offset, struct.pack(">I", CANCEL))
                    for offset in range(AT_ONCE))
                connection.send(batch)
                connection.read(0)
                sent, stream = sent + AT_ONCE, stream + 2 * AT_ONCE
            connection.read(0.05)
            reasons.add(connection.goaway)
            connection.close()
        grown = self.served.rss_kib() - before
        self.expect_well()
        if grown > NOISE_KIB:
            raise Failure(f"{grown >> 10} MiB more")
        return (f"{connections} connections, closed with GOAWAY {reasons}, {grown >> 10} MiB more, "
                f"{time.monotonic() - begin:.1f} s")

    def bombs(self):
        """The limit is for the decompressed size of a message, not for its size when sent."""
        gzipped = ("grpc-encoding", "gzip")
        padding = b" " * (MAX_BYTES - (16 << 10))
        zeros = gzip.compress(b"\0" * (40 * MAX_BYTES), 1)
        data = b"".join(
            message(gzip.compress(messages.InjectStreamRequest(request=request(
                uid=str(index), object=padding + large_object())).SerializeToString(), 1), True)
            for index in range(BOMBS))
        before, grown = self.served.rss_kib(), []
        for path, sent in (INJECT, message(zeros, True)), (STREAM, data):
            connection, most = Connection(self.served.port(), self.served.ca), 0
            connection.open(1, path, gzipped)
            # The server does not take all of it, because this client does not read all answers.
            connection.write(1, sent, 2)
            connection.send(frame(DATA, END_STREAM, 1, b""))
            until = time.monotonic() + 3
            while time.monotonic() < until and not connection.has_ended(1):
                connection.read(0.01)
                most = max(most, self.served.rss_kib() - before)
            connection.close()
            grown.append(most)
        self.expect_well()
        words = (f"{len(zeros) >> 10} KiB: {grown[0] >> 10} MiB more, "
                 f"{len(data) >> 10} KiB: {grown[1] >> 10} MiB more")
        if max(grown) > MAX_UNPACKED_KIB:
            raise Failure(words)
        return words

    def memory(self):
        """The allocator returns the memory of closed connections after a moment."""

        def is_returned():
            # The allocator returns memory while the server answers requests.
            self.expect_well()
            found = self.served.rss_kib()
            words = f"{self.first_rss >> 10} MiB before, {found >> 10} MiB after"
            if found - self.first_rss > self.max_grown / 2 + NOISE_KIB:
                raise Failure(words)
            return words

        return poll("memory is returned", is_returned)

    def clean_up(self):
        self.served.kill()


class Patience:
    """Callers that neither end nor read, limited by --body-timeout and --write-timeout."""

    # Both timeouts, and the additional time for a slow machine.
    timeout, patience = 5, 13
    # Together the streams ask for all memory for bodies; a message of `large_bytes` is within the
    # share that each connection has.
    streams, bytes_each, large_bytes = 16, 4 << 20, 1 << 20

    def __init__(self, folder):
        self.served = Served(folder / "served", "--body-timeout", f"{self.timeout}s",
                             "--write-timeout", f"{self.timeout}s")

    def steps(self):
        how = {"calls": (INJECT,),
               "calls with a deadline of an hour": (INJECT, ("grpc-timeout", "1H")),
               "streams": (STREAM,)}
        return {
            "serve --body-timeout --write-timeout": self.start,
            **{f"large messages of {name} that never end: others are served at once, and they end":
               lambda call=call: self.unending(*call) for name, call in how.items()},
            "SIGTERM ends it with exit code 0": lambda: expect("exit code", 0, self.served.stop()),
        }

    def start(self):
        self.served.start()

    def unending(self, path, *headers):
        data = message(b"x" * MAX_BYTES)[: self.bytes_each]
        large = b" " * self.large_bytes + large_object()
        opened = []
        try:
            for _ in range(self.streams):
                connection = Connection(self.served.port(), self.served.ca)
                opened.append(connection)
                connection.open(1, path, *headers)
                connection.write(1, data, 1)
            expect_served(self.served.call(), namespace="fulfilment", object=large)
            begin = time.monotonic()
            while not all(connection.has_ended(1) for connection in opened):
                for connection in opened:
                    # Answers PINGs, as any client does.
                    connection.read(0.02)
                seconds = time.monotonic() - begin
                if seconds > self.timeout + self.patience:
                    raise Failure(f"not ended after {seconds:.0f} s")
            return f"ended after {time.monotonic() - begin:.1f} s"
        finally:
            for connection in opened:
                connection.close()

    def clean_up(self):
        self.served.kill()
