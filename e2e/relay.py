"""A TCP relay to a server that starts later."""

import socket
import threading

HOST = "127.0.0.1"


class Relay:
    """Passes connections on to an address, once it is open."""

    def __init__(self, address):
        self.address = address
        # Bound and not listening: connections are refused, and no other process gets the port.
        self.socket = socket.socket()
        self.socket.bind((HOST, 0))
        self.host, self.port = self.socket.getsockname()
        self.lock = threading.Lock()
        self.sockets = []

    def open(self):
        self.socket.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return  # The relay is closed.
            server = socket.create_connection(self.address)
            with self.lock:
                self.sockets += [client, server]
            for source, sink in (client, server), (server, client):
                threading.Thread(target=pump, args=(source, sink), daemon=True).start()

    def close(self):
        with self.lock:
            for each in (self.socket, *self.sockets):
                end(each)
                each.close()


def pump(source, sink):
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
    except OSError:
        pass  # One side is closed: close the other below.
    end(sink)


def end(stream):
    try:
        stream.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # It has ended already.
