"""Clients of the webhook and admin servers."""

import base64
import hashlib
import http.client
import json
import socket
import ssl
from typing import NamedTuple

from expect import DEADLINE_SECONDS, Failure, expect

HOST = "127.0.0.1"


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
