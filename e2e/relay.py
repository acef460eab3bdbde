"""A TCP relay: an API server that is not there yet, or whose old connections fall silent."""

import socket
import threading

HOST = "127.0.0.1"


class Relay:
    """Passes connections on to an address, once it is open."""

    def __init__(self, address):
        self.address = address
        # Bound and not listening: whoever connects is refused, and nobody else gets the port.
        self.socket = socket.socket()
        self.socket.bind((HOST, 0))
        self.host, self.port = self.socket.getsockname()
        self.lock = threading.Lock()
        self.gates, self.sockets = [], []

    def open(self):
        self.socket.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return  # It is closed.
            server, gate = socket.create_connection(self.address), threading.Event()
            gate.set()
            with self.lock:
                self.gates.append(gate)
                self.sockets += [client, server]
            for source, sink in (client, server), (server, client):
                threading.Thread(target=pump, args=(source, sink, gate), daemon=True).start()

    def hold(self):
        """Connections there are pass nothing on any more; gives how many there are."""
        with self.lock:
            for gate in self.gates:
                gate.clear()
            return len(self.gates)

    def release(self):
        with self.lock:
            for gate in self.gates:
                gate.set()

    def close(self):
        self.release()
        with self.lock:
            for each in (self.socket, *self.sockets):
                end(each)
                each.close()


def pump(source, sink, gate):
    try:
        while data := source.recv(1 << 16):
            gate.wait()
            sink.sendall(data)
    except OSError:
        pass  # One of them is gone: the other learns it below.
    end(sink)


def end(stream):
    try:
        stream.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # It has ended already.
