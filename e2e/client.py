"""Clients of the webhook and admin servers: one connection, and processes with many of them."""

import base64
import hashlib
import http.client
import json
import multiprocessing
import socket
import ssl
import time
from typing import NamedTuple

from expect import DEADLINE_SECONDS, Failure, expect

HOST = "127.0.0.1"
EXAMPLES = 3


class Target(NamedTuple):
    """The port of a webhook, and the name and CA that verify its certificate."""

    port: int
    server_name: str
    ca: str

    def context(self):
        context = ssl.create_default_context(cafile=self.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return context

    def post(self, body, timeout_seconds=10, path="/"):
        """A request as the API server sends it."""
        head = (f"POST {path}?timeout={timeout_seconds}s HTTP/1.1\r\nHost: {self.server_name}:443\r\n"
                "User-Agent: kube-apiserver-admission\r\nAccept: application/json\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
        return head.encode() + body


class Answer(NamedTuple):
    status: int
    is_last: bool
    body: bytes
    retry_after: str | None


class Connection:
    """TLS 1.3 and HTTP/1.1, kept alive."""

    def __init__(self, target, context, host=HOST, session=None):
        plain = socket.create_connection((host, target.port), DEADLINE_SECONDS)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.tls = context.wrap_socket(plain, server_hostname=target.server_name,
                                           session=session)
        except OSError:
            plain.close()
            raise
        self.rest = b""
        self.received = 0

    def certificate(self):
        return digest(self.tls.getpeercert(binary_form=True))

    def send(self, request):
        self.tls.sendall(request)

    def receive(self):
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.read_chunk()
        head, _, body = self.rest.partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines[1:])
        length = int(fields["content-length"])
        while len(body) < length:
            body += self.read_chunk()
        self.rest = body[length:]
        self.received += 1
        is_last = fields.get("connection") == "close"
        retry_after = fields.get("retry-after")
        return Answer(int(lines[0].split()[1]), is_last, body[:length], retry_after)

    def read_chunk(self):
        received = self.tls.recv(1 << 16)
        if not received:
            raise ConnectionError("the connection ended before the answer")
        return received

    def close(self):
        self.tls.close()


def digest(data):
    return hashlib.sha256(data).hexdigest()[:12]


def certificate_digest(pem):
    return digest(ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN") :]))


def ask(target, body, host=HOST, context=None):
    """Sends one review over a new connection; returns the parsed answer and the certificate."""
    connection = Connection(target, context or target.context(), host)
    connection.send(target.post(body))
    answer, certificate = connection.receive(), connection.certificate()
    connection.close()
    expect("the status of a review", 200, answer.status)
    return json.loads(answer.body), certificate


class Exposition:
    """`/metrics` over one connection, as Prometheus requests it."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection(HOST, port, timeout=DEADLINE_SECONDS)

    def read(self):
        self.connection.request("GET", "/metrics")
        response = self.connection.getresponse()
        text = response.read().decode()
        expect("the status of /metrics", 200, response.status)
        return text


def get(port, path, timeout, host=HOST):
    """Status and text of a GET from the admin server, as a kubelet probes."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request("GET", path, headers={
            "User-Agent": "kube-probe/1.36", "Accept": "*/*", "Connection": "close",
        })
        response = connection.getresponse()
        return response.status, response.read().decode()
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


def review(manifest, namespace="default"):
    """An AdmissionReview of a pod that asks for its sidecar."""
    request = {
        "uid": "7b1c7a3e-5d9c-4a53-9d0c-3f2f0d6f4a11",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": namespace,
        "operation": "CREATE",
        "object": manifest,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(body).encode()


def patch_of(answer):
    """The operations of an answer that allows its pod."""
    response = answer["response"]
    expect("whether the pod is allowed", True, response["allowed"])
    expect("the type of the patch", "JSONPatch", response.get("patchType"))
    return json.loads(base64.b64decode(response["patch"]))


# --- processes with many connections ---


class Tally:
    """The outcomes of requests that were sent completely."""

    def __init__(self):
        self.answered = self.failed = self.wrong = 0
        self.unsent = self.opened = 0
        self.slowest = 0.0
        self.answers, self.certificates = {}, {}
        self.examples = []

    def add(self, other):
        for field in ("answered", "failed", "wrong", "unsent", "opened"):
            setattr(self, field, getattr(self, field) + getattr(other, field))
        self.slowest = max(self.slowest, other.slowest)
        for field in ("answers", "certificates"):
            for key, count in getattr(other, field).items():
                getattr(self, field)[key] = getattr(self, field).get(key, 0) + count
        self.examples = (self.examples + other.examples)[:EXAMPLES]

    def count(self, answer):
        key = digest(answer.body)
        if answer.status != 200:
            self.fail(f"status {answer.status}: {answer.body[:80]!r}")
            return
        self.answered += 1
        self.answers[key] = self.answers.get(key, 0) + 1

    def fail(self, example):
        self.failed += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)

    def expect_good(self, answers, certificates):
        """Fails unless all answers, and all certificates, are among these."""
        self.wrong = sum(count for key, count in self.answers.items() if key not in answers)
        expect(f"failed reviews (such as {self.examples})", 0, self.failed)
        expect(f"wrong answers, of {self.answered}", 0, self.wrong)
        expect("unexpected certificates", set(), set(self.certificates) - set(certificates))


class Clients:
    """Processes that share a number of connections and run one command after the other."""

    def __init__(self, target, body, processes, pause=0.0):
        """Processes that send `body`; under load they pause after each round of reviews."""
        context = multiprocessing.get_context("fork")
        self.workers = []
        for _ in range(processes):
            ours, theirs = context.Pipe()
            worker = context.Process(target=work, args=(target, body, theirs, pause), daemon=True)
            worker.start()
            theirs.close()
            self.workers.append((worker, ours))

    def begin(self, what, connections=0):
        """Begins `open`, `ask` or `load` in each process."""
        for index, (_, pipe) in enumerate(self.workers):
            share = len(range(index, connections, len(self.workers)))
            pipe.send((what, share))

    def wait(self, seconds=120):
        """Waits for the command to end; returns the sum of all processes."""
        total = Tally()
        deadline = time.monotonic() + seconds
        for _, pipe in self.workers:
            if not pipe.poll(max(0, deadline - time.monotonic())):
                raise Failure(f"a client did not end within {seconds} s")
            total.add(pipe.recv())
        return total

    def do(self, what, connections=0):
        self.begin(what, connections)
        return self.wait()

    def stop_load(self):
        for _, pipe in self.workers:
            pipe.send(("stop", 0))
        return self.wait()

    def close(self):
        for worker, pipe in self.workers:
            try:
                pipe.send(("end", 0))
            except OSError:
                pass  # It is gone already.
        for worker, pipe in self.workers:
            worker.join(DEADLINE_SECONDS)
            pipe.close()


def work(target, body, pipe, pause):
    """A client process: runs commands until `end`."""
    worker = Worker(target, body, pipe, pause)
    while True:
        what, share = pipe.recv()
        if what == "end":
            return
        worker.tally = Tally()
        getattr(worker, what)(share)
        pipe.send(worker.tally)


class Worker:
    def __init__(self, target, body, pipe, pause):
        self.target, self.pipe, self.pause = target, pipe, pause
        self.request, self.context = target.post(body), target.context()
        self.connections = []
        self.tally, self.unsent = Tally(), None

    def connect(self):
        """Opens a connection; if it fails, returns None and counts it as unsent."""
        try:
            connection = Connection(self.target, self.context)
        except OSError as error:
            self.tally.unsent += 1
            self.unsent = repr(error)
            return None
        self.tally.opened += 1
        key = connection.certificate()
        self.tally.certificates[key] = self.tally.certificates.get(key, 0) + 1
        return connection

    # --- commands ---

    def open(self, share):
        for _ in range(share):
            connection = self.connect()
            if connection:
                self.connections.append(connection)
            else:
                self.tally.fail(f"no connection: {self.unsent}")

    def ask(self, _):
        """One review over each connection."""
        self.round()

    def load(self, replaced):
        """Reviews over all connections until the next message; replaces some in each round."""
        while not self.pipe.poll():
            self.round()
            for _ in range(replaced):
                self.connections.pop(0).close()
                self.open(1)
            time.sleep(self.pause)
        self.pipe.recv()

    def load_until_closed(self, share):
        """Reviews until the server asks for all connections to be closed."""
        self.open(share)
        while self.connections:
            for connection in self.round():
                self.connections.remove(connection)

    def load_until_refused(self, share):
        """Reviews, over new connections if needed, until the server refuses them."""
        self.open(share)
        while self.connections:
            for connection in self.round():
                self.connections.remove(connection)
                if (another := self.connect()) is not None:
                    self.connections.append(another)

    def close(self, _):
        for connection in self.connections:
            connection.close()
        self.connections = []

    def round(self):
        """One review over each connection at a time; returns connections that are used up."""
        sent, last = [], []
        for connection in self.connections:
            try:
                connection.send(self.request)
                sent.append((connection, time.monotonic()))
            except OSError:
                self.tally.unsent += 1
                last.append(connection)
        for connection, begin in sent:
            try:
                answer = connection.receive()
            except OSError as error:
                number = connection.received + 1
                self.tally.fail(f"request {number} of a connection is not answered: {error!r}")
                last.append(connection)
                continue
            self.tally.slowest = max(self.tally.slowest, time.monotonic() - begin)
            self.tally.count(answer)
            if answer.is_last:
                connection.close()
                last.append(connection)
        return last
