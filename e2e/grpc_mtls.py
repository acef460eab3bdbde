"""Client certificates: whose are let in, on the server of its own and on the webhook's port."""

import json
import subprocess

from client import Target, ask, get, metric
from dropin import patch_of, review
from expect import DEADLINE_SECONDS, Failure, expect, expect_in, poll
from grpc_servers import POD, Authority, Served, expect_refused, expect_served

DNS = "controller.example.com"
SPIFFE = "spiffe://cluster.local/ns/workflows/sa/controller"
STRANGER = "stranger.example.com"
ADDED = "added.example.com"


class Certificates:
    """A CA of clients, another one, and certificates by both."""

    def __init__(self, folder):
        self.known, self.other = Authority(folder / "known"), Authority(folder / "other")
        self.dns = self.known.issue("dns", f"DNS:{DNS}")
        self.spiffe = self.known.issue("spiffe", f"URI:{SPIFFE}")
        self.stranger = self.known.issue("stranger", f"DNS:{STRANGER}")
        self.added = self.known.issue("added", f"DNS:{ADDED}")
        self.expired = self.known.issue("expired", f"DNS:{DNS}", days=-1)
        self.of_other = self.other.issue("dns", f"DNS:{DNS}")


class MutualTls:
    """A server that asks for certificates."""

    def __init__(self, folder):
        self.certificates = Certificates(folder)
        self.client_ca, self.allow_file = folder / "client-ca.crt", folder / "allow"
        self.client_ca.write_bytes(self.certificates.known.path.read_bytes())
        self.allow_file.write_text("# nobody yet\n")
        self.served = Served(
            folder / "served", "--grpc-client-ca", self.client_ca,
            # Names of hosts are the same in upper and lower case.
            "--grpc-allow", f"{DNS},{SPIFFE},Upper.Example.com",
            "--grpc-allow-file", self.allow_file)

    def steps(self):
        known = self.certificates
        return {
            "serve --grpc-client-ca --grpc-allow --grpc-allow-file": self.start,
            "a client certificate with an allowed DNS name": lambda: self.expect_served(known.dns),
            "a client certificate with an allowed SPIFFE URI":
                lambda: self.expect_served(known.spiffe),
            "no client certificate: no connection": lambda: self.expect_no_connection(None),
            "one of another CA: no connection": lambda: self.expect_no_connection(known.of_other),
            "an expired one: no connection": lambda: self.expect_no_connection(known.expired),
            "a name that is not allowed: PERMISSION_DENIED":
                lambda: self.expect_denied(known.stranger, STRANGER),
            "a DNS name is allowed in upper case, too": self.upper_case,
            "the webhook of the process asks for no certificate": self.webhook,
            "--grpc-allow-file changes: a name is added, then removed": self.allow_file_changes,
            "--grpc-client-ca changes: the other CA's clients, not the first's": self.ca_changes,
            "a --grpc-client-ca that is none is refused, what serves serves on": self.bad_ca,
            "SIGTERM ends it with exit code 0": lambda: expect("exit code", 0, self.served.stop()),
        }

    def start(self):
        self.served.start()
        return self.served.address()

    def expect_served(self, cert):
        expect_served(self.served.call(cert=cert))

    def expect_denied(self, cert, name):
        return expect_refused("PERMISSION_DENIED", self.served.call(cert=cert), name)

    def expect_no_connection(self, cert):
        """TLS refuses it, which gRPC tells as UNAVAILABLE; the process counts it."""
        before = self.failed_handshakes()
        words = expect_refused("UNAVAILABLE", self.served.call(cert=cert))
        if self.failed_handshakes() == before:
            raise Failure(f"no handshake failed, but: {words}")
        return words.splitlines()[0][:120]

    def failed_handshakes(self):
        _, text = get(self.served.port("admin"), "/metrics", DEADLINE_SECONDS)
        return metric(text, "injectd_handshakes_failed_total", server="grpc")

    def upper_case(self):
        self.expect_served(self.certificates.known.issue("upper", "DNS:upper.example.com"))

    def webhook(self):
        expect_webhook_serves(self.served)

    def allow_file_changes(self):
        added = self.certificates.added
        self.expect_denied(added, ADDED)
        with self.served.call(cert=added) as client:
            self.allow_file.write_text(f"{ADDED} # since today\n")
            poll("the name is taken over", lambda: self.expect_served(added))
            # What was open before counts the same.
            told_of_open = client.inject()
            self.expect_served(self.certificates.dns)
            self.allow_file.write_text("")
            poll("the name is gone", lambda: self.expect_denied(added, ADDED))
        expect("the verdict", 1, told_of_open.verdict)

    def ca_changes(self):
        self.replace_ca(self.certificates.other.path.read_bytes())
        poll("the CA is taken over", lambda: self.expect_served(self.certificates.of_other))
        self.expect_no_connection(self.certificates.dns)

    def bad_ca(self):
        before = self.served.log.read_text().count("--grpc-client-ca")
        self.replace_ca(b"not a certificate\n")

        def told():
            found = self.served.log.read_text().count("--grpc-client-ca")
            if found == before:
                raise Failure("the log does not name --grpc-client-ca")

        poll("the log tells of it", told)
        self.expect_served(self.certificates.of_other)
        status, _ = get(self.served.port("admin"), "/ready", DEADLINE_SECONDS)
        expect("the status of /ready", 200, status)

    def replace_ca(self, pem):
        """As a program replaces a file: whole."""
        new = self.client_ca.with_suffix(".new")
        new.write_bytes(pem)
        new.rename(self.client_ca)

    def clean_up(self):
        self.served.kill()


class OnWebhook:
    """gRPC and the webhook on one port: the certificate is for gRPC alone."""

    def __init__(self, folder):
        self.certificates = Certificates(folder)
        self.served = Served(folder / "served", "--grpc-on-webhook", "--grpc-client-ca",
                             self.certificates.known.path, "--grpc-allow", DNS, grpc_addr="")

    def steps(self):
        known = self.certificates
        return {
            "serve --grpc-on-webhook --grpc-client-ca": self.start,
            "the webhook answers without a certificate, over HTTP/1.1 and HTTP/2": self.webhook,
            "gRPC on the webhook's port, with a client certificate":
                lambda: expect_served(self.call(known.dns)),
            "without one: UNAUTHENTICATED":
                lambda: expect_refused("UNAUTHENTICATED", self.call(None)),
            "with a name that is not allowed: PERMISSION_DENIED":
                lambda: expect_refused("PERMISSION_DENIED", self.call(known.stranger), STRANGER),
            "with one of another CA: no connection":
                lambda: expect_refused("UNAVAILABLE", self.call(known.of_other)),
            "SIGTERM ends it with exit code 0": lambda: expect("exit code", 0, self.served.stop()),
        }

    def start(self):
        self.served.start()
        expect("whether there is a gRPC server", False, "gRPC server" in self.served.out.read_text())

    def call(self, cert):
        return self.served.call(server="webhook", cert=cert)

    def webhook(self):
        expect_webhook_serves(self.served)
        url = f"https://{self.served.address('webhook')}/"
        command = ["curl", "--silent", "--show-error", "--http2", "--cacert", str(self.served.ca),
                   "--data-binary", "@-", "--write-out", "\n%{http_version} %{http_code}", url]
        body = review(json.loads(POD.read_text()))
        done = subprocess.run(command, input=body, capture_output=True, timeout=DEADLINE_SECONDS)
        expect(f"the exit code of curl ({done.stderr})", 0, done.returncode)
        answer, _, told = done.stdout.decode().rpartition("\n")
        expect("version and status", "2 200", told)
        expect_in("the answer", '"patch":', answer)

    def clean_up(self):
        self.served.kill()


def expect_webhook_serves(served):
    target = Target(served.port("webhook"), "localhost", str(served.ca))
    answer, _ = ask(target, review(json.loads(POD.read_text())))
    if not patch_of(answer):
        raise Failure("the webhook does not inject")
