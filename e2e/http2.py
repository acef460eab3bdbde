"""HTTP/2 frame by frame (RFC 9113): a client that can break the rules, unlike a library."""

import select
import socket
import ssl
import struct
import time

from expect import DEADLINE_SECONDS

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
CANCEL = 8
FRAME_BYTES = 16 << 10


class Connection:
    """HTTP/2 over TLS; it reads frames of the server only in `read`."""

    def __init__(self, port, ca, window=None):
        context = ssl.create_default_context(cafile=ca)
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS)
        self.tls = context.wrap_socket(plain, server_hostname="localhost")
        settings = b"" if window is None else struct.pack(">HI", INITIAL_WINDOW_SIZE, window)
        self.tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, settings))
        self.tls.setblocking(False)
        self.rest = b""
        # The bytes that the server accepts: on the connection, on a new stream, and by stream.
        self.window, self.first_window, self.windows = 65_535, 65_535, {}
        self.is_over = False
        self.resets, self.ended, self.goaway, self.data_bytes = {}, set(), None, 0

    def send(self, data, patience=DEADLINE_SECONDS):
        """Sends all of it; False if the server does not take it in time, or has closed."""
        data, until = memoryview(data), time.monotonic() + patience
        while data:
            try:
                data = data[self.tls.send(data) :]
            except ssl.SSLWantWriteError:
                if not select.select([], [self.tls], [], max(0, until - time.monotonic()))[1]:
                    return False
            except OSError:
                self.is_over = True
                return False
        return True

    def open(self, stream, path, *headers):
        """Begins a call."""
        self.windows[stream] = self.first_window
        return self.send(frame(HEADERS, END_HEADERS, stream, call_of(path, *headers)))

    def reset(self, stream):
        return self.send(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))

    def write(self, stream, data, patience):
        """Sends data as far as the server's windows allow; returns the number of bytes sent."""
        sent, until = 0, time.monotonic() + patience
        while sent < len(data) and not self.is_over and stream not in self.resets:
            self.read(0)
            room = min(self.window, self.windows[stream], FRAME_BYTES, len(data) - sent)
            if room <= 0:
                if time.monotonic() > until:
                    break
                self.read(0.05)
                continue
            if not self.send(frame(DATA, 0, stream, data[sent : sent + room])):
                break
            self.window -= room
            self.windows[stream] -= room
            sent += room
            until = time.monotonic() + patience
        return sent

    def read(self, patience):
        """Reads frames for `patience` seconds; does not enlarge the server's window."""
        until = time.monotonic() + patience
        while not self.is_over:
            try:
                received = self.tls.recv(1 << 16)
            except ssl.SSLWantReadError:
                if not select.select([self.tls], [], [], max(0, until - time.monotonic()))[0]:
                    return
                continue
            except OSError:
                received = b""
            self.is_over = not received
            self.rest += received
            while self.take_frame():
                pass

    def take_frame(self):
        if len(self.rest) < 9:
            return False
        length = int.from_bytes(self.rest[:3], "big")
        kind, flags, stream = self.rest[3], self.rest[4], int.from_bytes(self.rest[5:9], "big")
        if len(self.rest) < 9 + length:
            return False
        payload, self.rest = self.rest[9 : 9 + length], self.rest[9 + length :]
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, length, 6):
                key, value = struct.unpack_from(">HI", payload, at)
                if key == INITIAL_WINDOW_SIZE:
                    for known in self.windows:
                        self.windows[known] += value - self.first_window
                    self.first_window = value
            self.send(frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE and stream == 0:
            self.window += int.from_bytes(payload, "big")
        elif kind == WINDOW_UPDATE:
            self.windows[stream] = self.windows.get(stream, 0) + int.from_bytes(payload, "big")
        elif kind == HEADERS and flags & END_STREAM:
            self.ended.add(stream)
        elif kind == RST_STREAM:
            self.resets[stream] = int.from_bytes(payload, "big")
        elif kind == GOAWAY:
            self.goaway = int.from_bytes(payload[4:8], "big")
        elif kind == DATA:
            self.data_bytes += length
        return True

    def has_ended(self, stream):
        return stream in self.ended or stream in self.resets

    def close(self):
        self.tls.close()


def frame(kind, flags, stream, payload):
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def call_of(path, *headers):
    """The header block of a call."""
    fields = [(":method", "POST"), (":scheme", "https"), (":path", path),
              (":authority", "localhost"), ("content-type", "application/grpc"),
              ("te", "trailers"), *headers]
    return b"".join(b"\0" + text(name) + text(value) for name, value in fields)


def text(value):
    """A string literal of a header block (RFC 7541), shorter than 127 bytes."""
    return bytes([len(value)]) + value.encode()


def message(data, is_compressed=False):
    """A message of gRPC: whether it is compressed, its length, its bytes."""
    return bytes([is_compressed]) + len(data).to_bytes(4, "big") + data
