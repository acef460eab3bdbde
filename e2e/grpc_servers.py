"""`injectd serve` with a gRPC server, its clients, and the certificates of both."""

import os
import queue
import re
import signal
import subprocess
import sys
from pathlib import Path

import grpc

from certificate import KEYS
from expect import DEADLINE_SECONDS, Failure, expect, expect_in, poll

HERE = Path(__file__).parent
POD = HERE / "clients/pod.json"
SERVICE = "injectd.v1.Injector"
# The lines that servers print at start, up to the address.
SERVERS = {"webhook": "webhook server: ", "grpc": "gRPC server: ", "admin": "admin server: "}
LAST_LINE = "try it: "

sys.path.insert(0, str(HERE / "clients/python"))
from inject import generated  # noqa: E402

messages, services = generated()


class Authority:
    """A CA that issues certificates of servers and clients."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.path = folder / "ca.crt"
        self.openssl(*KEYS["PKCS#8 EC"][:-1], "ca.key")
        self.openssl("req", "-x509", "-key", "ca.key", "-days", "2", "-subj",
                     f"/CN=e2e {folder.name}", "-out", "ca.crt")

    def openssl(self, *args):
        run = subprocess.run(["openssl", *args], cwd=self.folder, capture_output=True, text=True)
        expect(f"openssl {args[0]}: {run.stderr}", 0, run.returncode)

    def issue(self, name, names, usage="clientAuth", days=2):
        """Makes NAME.crt and NAME.key with these names: DNS:…, URI:…; returns their paths."""
        key, request, certificate = (self.folder / f"{name}.{suffix}"
                                     for suffix in ("key", "csr", "crt"))
        self.openssl(*KEYS["PKCS#8 EC"][:-1], key)
        self.openssl("req", "-new", "-key", key, "-subj", "/CN=e2e", "-out", request)
        extensions = self.folder / "extensions"
        extensions.write_text(f"subjectAltName={names}\nextendedKeyUsage={usage}\n"
                              "basicConstraints=critical,CA:FALSE\n")
        self.openssl("x509", "-req", "-in", request, "-CA", "ca.crt", "-CAkey", "ca.key",
                     "-days", str(days), "-extfile", extensions, "-out", certificate)
        return certificate, key


class Served:
    """A process of `injectd serve` on free ports; it prints the addresses of its servers."""

    def __init__(self, folder, *arguments, grpc_addr="127.0.0.1:0", is_standalone=True,
                 drain_delay="200ms"):
        folder.mkdir()
        self.log, self.out = folder / "log", folder / "out"
        self.process = None
        self.authority = Authority(folder / "server")
        self.ca = self.authority.path
        certificate, key = self.authority.issue("tls", "DNS:localhost,IP:127.0.0.1", "serverAuth")
        self.command = [
            os.environ["INJECTD"], "serve", *(["--standalone"] * is_standalone),
            "--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--grpc-addr", grpc_addr,
            "--tls-cert", certificate, "--tls-key", key,
            "--reload-interval", "200ms", "--drain-delay", drain_delay, *arguments,
        ]

    def start(self):
        # A failed step may have left a process.
        self.kill()
        with self.log.open("a") as log, self.out.open("w") as out:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=log, env=environment())

        def announced():
            expect(f"injectd's exit code ({self.log_tail()!r})", None,
                   self.process.poll())
            expect_in("its output", LAST_LINE, self.out.read_text())

        poll("the servers are open", announced)
        return self

    def log_tail(self):
        return self.log.read_text()[-500:]

    def address(self, server="grpc"):
        found = re.search(rf"^{SERVERS[server]}(\S+)", self.out.read_text(), re.MULTILINE)
        if not found:
            raise Failure(f"no {server} server: {self.out.read_text()!r}")
        return found[1]

    def port(self, server="grpc"):
        return int(self.address(server).rpartition(":")[2])

    def rss_kib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+)", status, re.MULTILINE)[1])

    def expect_alive(self):
        expect("injectd's exit code", None, self.process.poll())

    def stop(self, how=signal.SIGTERM):
        """Sends a signal and returns the exit code."""
        self.process.send_signal(how)
        return self.exit_code(how.name)

    def exit_code(self, cause):
        try:
            return self.process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"injectd still runs {DEADLINE_SECONDS} s after {cause}") from None

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def call(self, **how):
        """A client with a connection of its own."""
        server = how.pop("server", "grpc")
        return Client(**{"address": self.address(server), "ca": self.ca, **how})


class Client:
    """One connection to a gRPC server."""

    def __init__(self, address, ca=None, cert=None, token=None, authority="localhost"):
        options = [
            # Channels with the same certificate would share a connection.
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_retries", 0),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1),
        ]
        if authority:
            options.append(("grpc.default_authority", authority))
        if address.startswith("unix:"):
            self.channel = grpc.insecure_channel(address, options)
        else:
            chain, key = (path.read_bytes() for path in cert) if cert else (None, None)
            credentials = grpc.ssl_channel_credentials(ca.read_bytes(), key, chain)
            self.channel = grpc.secure_channel(address, credentials, options)
        self.stub = services.InjectorStub(self.channel)
        self.metadata = [("authorization", f"Bearer {token}")] if token else []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def inject(self, timeout=DEADLINE_SECONDS, **fields):
        """Requests the sidecar of the example pod, or of the pod in `fields`."""
        return self.stub.Inject(request(**fields), timeout=timeout, metadata=self.metadata)

    def stream(self, requests, timeout=DEADLINE_SECONDS):
        return self.stub.InjectStream(requests, timeout=timeout, metadata=self.metadata)

    def health(self, service=SERVICE):
        """The number of a health.v1 status, read without its proto: 1 is SERVING."""
        ask = self.channel.unary_unary("/grpc.health.v1.Health/Check")
        name = service.encode()
        answer = ask(bytes([0x0A, len(name)]) + name, timeout=DEADLINE_SECONDS)
        return answer[1] if answer else 0


class Requests:
    """Requests of a stream, sent as they are queued."""

    def __init__(self):
        self.queue = queue.SimpleQueue()

    def send(self, **fields):
        self.queue.put(messages.InjectStreamRequest(request=request(**fields)))

    def close(self):
        self.queue.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        sent = self.queue.get()
        if sent is None:
            raise StopIteration
        return sent


def request(**fields):
    return messages.InjectRequest(**{"namespace": "default", "kind": "Pod",
                                     "object": POD.read_bytes(), **fields})


def environment():
    """The environment of this process, without the variables that set flags."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("INJECTD")}
    return {**kept, "NO_COLOR": "1"}


def expect_injected(response):
    expect("the verdict", "VERDICT_INJECTED", messages.Verdict.Name(response.verdict))
    expect_in("the patch", b"linkerd-proxy", response.patch)
    return response


def expect_served(client, **fields):
    """Fails unless a client is served; closes the client."""
    with client:
        must_succeed(lambda: expect_injected(client.inject(**fields)))


def must_succeed(call):
    """The result of a call; if the call fails, raises a Failure with its status."""
    try:
        return call()
    except grpc.RpcError as error:
        raise Failure(f"{error.code().name}: {error.details()}") from None


def expect_status(code, call, words=""):
    """Fails unless a call ends with this status; returns its message."""
    try:
        call()
    except grpc.RpcError as error:
        expect(f"the status ({error.details()})", code, error.code().name)
        expect_in("the message", words, error.details())
        return error.details()
    raise Failure(f"the status: expected {code}, found OK")


def expect_refused(code, client, words="", **fields):
    """As expect_status, for one request of a client; closes the client."""
    with client:
        return expect_status(code, lambda: client.inject(**fields), words)
