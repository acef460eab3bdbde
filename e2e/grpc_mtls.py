"""Client certificates: which are accepted, on the gRPC server and on the webhook's port."""

import json
import subprocess

from client import Target, ask, get, metric, patch_of, review
from expect import DEADLINE_SECONDS, Failure, expect, expect_in, poll
from grpc_servers import POD, Authority, Served, expect_refused, expect_served

DNS = "controller.example.com"
SPIFFE = "spiffe://cluster.local/ns/workflows/sa/controller"
STRANGER = "stranger.example.com"
ADDED = "added.example.com"


class Certificates:
    """A CA of clients, another CA, and certificates from both."""

    def __init__(self, folder):
        self.known, self.other = Authority(folder / "known"), Authority(folder / "other")
        self.dns = self.known.issue("dns", f"DNS:{DNS}")
        self.spiffe = self.known.issue("spiffe", f"URI:{SPIFFE}")
        self.stranger = self.known.issue("stranger", f"DNS:{STRANGER}")
        self.added = self.known.issue("added", f"DNS:{ADDED}")
        self.expired = self.known.issue("expired", f"DNS:{DNS}", days=-1)
        self.of_other = self.other.issue("dns", f"DNS:{DNS}")


class MutualTls:
    """A server that requires certificates."""

    def __init__(self, folder):
        self.certificates = Certificates(folder)
        self.client_ca, self.allow_file = folder / "client-ca.crt", folder / "allow"
        self.client_ca.write_bytes(self.certificates.known.path.read_bytes())
        self.allow_file.write_text("# empty\n")
        self.served = Served(
            folder / "served", "--grpc-client-ca", self.client_ca,
            # Host names are not case-sensitive.
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
            "a certificate of another CA: no connection":
                lambda: self.expect_no_connection(known.of_other),
            "an expired certificate: no connection":
                lambda: self.expect_no_connection(known.expired),
            "a name that is not allowed: PERMISSION_DENIED":
                lambda: self.expect_denied(known.stranger, STRANGER),
            "a DNS name is allowed in upper case, too": self.upper_case,
            "the webhook of the process requires no certificate": self.webhook,
            "--grpc-allow-file changes: a name is added, then removed": self.allow_file_changes,
            "--grpc-client-ca changes: the other CA's clients, not the first's": self.ca_changes,
            "an invalid --grpc-client-ca is rejected, the previous one stays": self.bad_ca,
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
        """TLS refuses it: gRPC reports UNAVAILABLE, and the process counts it."""
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
            poll("the name is allowed", lambda: self.expect_served(added))
            # The change applies to a connection that was open before.
            response = client.inject()
            self.expect_served(self.certificates.dns)
            self.allow_file.write_text("")
            poll("the name is denied", lambda: self.expect_denied(added, ADDED))
        expect("the verdict", 1, response.verdict)

    def ca_changes(self):
        self.replace_ca(self.certificates.other.path.read_bytes())
        poll("the new CA is in use", lambda: self.expect_served(self.certificates.of_other))
        self.expect_no_connection(self.certificates.dns)

    def bad_ca(self):
        before = self.served.log.read_text().count("--grpc-client-ca")
        self.replace_ca(b"not a certificate\n")

        def reported():
            found = self.served.log.read_text().count("--grpc-client-ca")
            if found == before:
                raise Failure("the log does not name --grpc-client-ca")

        poll("the log reports it", reported)
        self.expect_served(self.certificates.of_other)
        status, _ = get(self.served.port("admin"), "/ready", DEADLINE_SECONDS)
        expect("the status of /ready", 200, status)

    def replace_ca(self, pem):
        """Replaces the file atomically."""
        new = self.client_ca.with_suffix(".new")
        new.write_bytes(pem)
        new.rename(self.client_ca)

    def clean_up(self):
        self.served.kill()


class OnWebhook:
    """gRPC and the webhook on one port: only gRPC requires a certificate."""

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
            "gRPC without a certificate: UNAUTHENTICATED":
                lambda: expect_refused("UNAUTHENTICATED", self.call(None)),
            "gRPC with a name that is not allowed: PERMISSION_DENIED":
                lambda: expect_refused("PERMISSION_DENIED", self.call(known.stranger), STRANGER),
            "gRPC with a certificate of another CA: no connection":
                lambda: expect_refused("UNAVAILABLE", self.call(known.of_other)),
            "SIGTERM ends it with exit code 0": lambda: expect("exit code", 0, self.served.stop()),
        }

    def start(self):
        self.served.start()
        output = self.served.out.read_text()
        expect("whether there is a gRPC server", False, "gRPC server" in output)

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
        answer, _, last_line = done.stdout.decode().rpartition("\n")
        expect("version and status", "2 200", last_line)
        expect_in("the answer", '"patch":', answer)

    def clean_up(self):
        self.served.kill()


def expect_webhook_serves(served):
    target = Target(served.port("webhook"), "localhost", str(served.ca))
    answer, _ = ask(target, review(json.loads(POD.read_text())))
    if not patch_of(answer):
        raise Failure("the webhook does not inject")
