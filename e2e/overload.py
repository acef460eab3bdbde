"""More reviews than the server can answer, from clients that do not wait for answers.

Requests fall due at a constant rate, and a client gives up on a request ten seconds after it fell
due. Over HTTP/1.1 the client is `paced`. Over HTTP/2 it is in Python, and its reviews all have
different overrides, so that the server must compile a template for each of them.
"""

import collections
import struct
import time

import http2
import paced  # loadtest/load
from attackers import PAUSE_SECONDS, Attacker, review_head
from beside import GIVES_UP_SECONDS
from http2 import DATA, END_STREAM, HEADERS, SETTINGS, frame
from reviews import TYPICAL, with_override

BEYOND_CAPACITY = 2.5
SECONDS = 20
CAPACITY_SECONDS = 2
# Requests in progress while the capacity is measured over HTTP/2.
AT_ONCE = 50
LOG_LEVEL = "config.linkerd.io/proxy-log-level"
SERIAL, DIGITS = "warn,linkerd=info,serial=%s", 10
NO_SERIAL = "0" * DIGITS
HEADER_TABLE_SIZE = 1
# In the static table of header fields (RFC 7541): the whole field, and a name.
STATUS_200, RETRY_AFTER = 8, 53
OK, RIGHT, REFUSED, WRONG = (
    "answered without a patch", "answered right", "refused with Retry-After", "refused without")
PATCH = b'"patch":"'
LARGEST_WINDOW = (1 << 31) - 1


# --- HTTP/1.1 ---


def paced_capacity(place, *asked):
    """Reviews per second over 25 connections that are always busy."""
    found = paced.paced(place.address, paced.ENDLESS, CAPACITY_SECONDS, 0, *asked)
    return (found.rate,)


def paced_overload(place, connections, until, capacity, asked=paced.Asked(), seconds=SECONDS):
    """The outcomes of requests at 2.5 times the capacity; `paced` fails if one is refused."""
    rate = BEYOND_CAPACITY * capacity
    found = paced.paced(place.address, rate, seconds, 0, asked, connections)
    in_time = sum(latency <= GIVES_UP_SECONDS for latency in found.latencies)
    return {"capacity per second": round(capacity), "answered per second": round(found.rate),
            "answered in 10 s": in_time, "given up": len(found.latencies) - in_time + found.unsent}


# --- HTTP/2 ---


def own_capacity(place, *asked):
    """Reviews per second over HTTP/2, each with overrides of its own."""
    load = OpenLoop(place, 1, *(asked or (own_overrides(),)))
    begin = time.monotonic()
    load.run(begin + CAPACITY_SECONDS, lambda: AT_ONCE - load.under_way())
    load.close()
    return (load.counts[RIGHT] / CAPACITY_SECONDS,)


def own_overload(place, connections, until, capacity, *asked):
    """The outcomes of requests at 2.5 times the capacity."""
    load = OpenLoop(place, connections, *(asked or (own_overrides(),)))
    begin, rate = time.monotonic(), BEYOND_CAPACITY * capacity
    load.run(until, lambda: int((time.monotonic() - begin) * rate) - load.due)
    load.counts["not answered yet"] = load.under_way() + len(load.queue)
    load.counts["capacity per second"] = round(capacity)
    load.counts["answered per second"] = round(load.counts[RIGHT] / (time.monotonic() - begin))
    load.counts["offered"] = load.due
    load.close()
    return dict(load.counts)


def own_overrides():
    """The review for Linkerd with an override that has a serial number."""
    return with_override(TYPICAL.read_bytes(), LOG_LEVEL, SERIAL % NO_SERIAL)


class OpenLoop:
    """Requests over a number of connections, each with another serial number in place of
    `NO_SERIAL`; replaces connections that end."""

    def __init__(self, place, count, body, path="/"):
        self.place, self.count, self.path = place, count, path
        self.connections = [Asker(place) for _ in range(count)]
        self.body = body
        self.at = self.body.index(NO_SERIAL.encode())
        self.due, self.queue, self.counts = 0, collections.deque(), collections.Counter()
        # Each run has serials of its own, because the server caches templates.
        self.first = time.monotonic_ns() % 10**DIGITS

    def under_way(self):
        return sum(len(connection.begun) for connection in self.connections)

    def run(self, until, falls_due):
        """Sends requests as they fall due; `falls_due` returns how many more."""
        while (now := time.monotonic()) < until:
            for _ in range(max(0, falls_due())):
                self.queue.append(now)
                self.due += 1
            self.give_up(now)
            if not self.send(now) and not self.queue:
                time.sleep(PAUSE_SECONDS)
            for connection in self.connections:
                connection.read(0)
                self.counts += connection.take_outcomes()
            self.connections = [connection for connection in self.connections
                                if not connection.is_over]

    def give_up(self, now):
        while self.queue and self.queue[0] < now - GIVES_UP_SECONDS:
            self.queue.popleft()
            self.counts["given up unsent"] += 1
        for connection in self.connections:
            self.counts["given up"] += connection.give_up(now - GIVES_UP_SECONDS)

    def send(self, now):
        """Sends as many requests as the connections have room for."""
        sent = 0
        for connection in self.connections:
            while self.queue and connection.has_room(len(self.body)):
                connection.ask(self.path, self.next_body(), self.queue.popleft())
                sent += 1
        if len(self.connections) < self.count:
            try:
                self.connections.append(Asker(self.place))
            except OSError:
                self.counts["connections refused"] += 1
        return sent

    def next_body(self):
        self.first = (self.first + 1) % 10**DIGITS
        serial = f"{self.first:0{DIGITS}}".encode()
        return self.body[:self.at] + serial + self.body[self.at + DIGITS:]

    def close(self):
        for connection in self.connections:
            connection.close()


class Asker(Attacker):
    """A connection that records the outcome of each request."""

    def __init__(self, place):
        # By stream: when its request fell due, and its outcome so far.
        self.begun, self.answers, self.outcomes = {}, {}, collections.Counter()
        super().__init__(place, window=LARGEST_WINDOW)
        # No dynamic table, so that each header block can be read by itself.
        self.send(frame(SETTINGS, 0, 0, struct.pack(">HI", HEADER_TABLE_SIZE, 0)))
        self.send(frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", LARGEST_WINDOW - 65_535)))

    def has_room(self, length):
        self.push(b"")
        is_free = not (self.left or self.is_over) and len(self.begun) < self.limit
        return is_free and self.window >= length and self.first_window >= length

    def ask(self, path, body, due):
        (stream,) = self.begin(1)
        self.begun[stream] = due
        self.window -= len(body)
        frames = [review_head(stream, 0, len(body), path)]
        for at in range(0, len(body), http2.FRAME_BYTES):
            piece = body[at:at + http2.FRAME_BYTES]
            is_last = at + http2.FRAME_BYTES >= len(body)
            frames.append(frame(DATA, END_STREAM if is_last else 0, stream, piece))
        self.push(b"".join(frames))

    def give_up(self, since):
        late = [stream for stream, due in self.begun.items() if due < since]
        for stream in late:
            del self.begun[stream]
            self.left = bytes(self.left) + frame(http2.RST_STREAM, 0, stream,
                                                 struct.pack(">I", http2.CANCEL))
        return len(late)

    def look_at(self, kind, flags, stream, payload):
        super().look_at(kind, flags, stream, payload)
        if stream in self.begun and kind == HEADERS:
            self.answers[stream] = outcome(payload)
        elif self.answers.get(stream) == OK and kind == DATA and PATCH in payload:
            self.answers[stream] = RIGHT

    def take_outcomes(self):
        """Returns the counts of requests that ended since the last call."""
        self.live.clear()
        for stream in (self.ended | self.resets.keys()) & self.begun.keys():
            del self.begun[stream]
            self.outcomes[self.answers.pop(stream, "reset")] += 1
        self.ended.clear()
        self.resets.clear()
        if self.is_over:
            self.outcomes[f"ended with the connection (GOAWAY {self.goaway})"] += len(self.begun)
            self.begun.clear()
        found, self.outcomes = self.outcomes, collections.Counter()
        return found


def outcome(block):
    """The outcome by the header block of an answer without entries of the dynamic table."""
    names, at = set(), 0
    while at < len(block):
        byte = block[at]
        prefix = 7 if byte & 0x80 else 6 if byte & 0x40 else 5 if byte & 0x20 else 4
        index, at = integer(block, at, prefix)
        if byte & 0x80 and index == STATUS_200:
            return OK
        names.add(index)
        if prefix in (4, 6):
            for _ in range(1 if index else 2):
                length, at = integer(block, at, 7)
                at += length
    return REFUSED if RETRY_AFTER in names else WRONG


def integer(block, at, prefix):
    """An integer of a header block, and where it ends."""
    most = (1 << prefix) - 1
    number, at, shift = block[at] & most, at + 1, 0
    if number < most:
        return number, at
    while True:
        number, byte = number + ((block[at] & 0x7F) << shift), block[at]
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
