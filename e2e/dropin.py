"""Runs the binary in place of Linkerd's proxy-injector, by its Deployment. Started by dropin.sh.

For each manifest: the container's arguments, environment, mounts, probes, ports and user are those
of the manifest; only INJECTD_STANDALONE is added, because there is no API server. Each step prints
a line `ok …`, or `FAILED …` with the expected value and the value that was found.
"""

import base64
import json
import os
import re
import socket
import ssl
import sys
import tempfile
from pathlib import Path

from certificate import KEYS, Authority
from client import HOST, Connection, Target, ask, certificate_digest, get, metric
from cluster import ENABLED, pod
from container import Container
from expect import Failure, expect, expect_in, poll
from manifest import Manifest
from steps import Steps, stop_in_time

TOTAL_SECONDS = 240
STANDALONE = {"INJECTD_STANDALONE": "true"}
# A user as a platform assigns it that chooses users itself.
ARBITRARY_UID = 1000730000
TLS = "/var/run/linkerd/tls"
TRUST_ROOTS = "/var/run/linkerd/identity/trust-roots"
CONFIG = "/var/run/linkerd/config"


def manifests():
    paths = sorted(Path(os.environ["INJECTD_CORPUS"], "manifests").glob("*.yaml"))
    return [Manifest(path) for path in paths]


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


def probe(manifest, which, expected):
    """Sends the manifest's probe as a kubelet does, with the same timeout."""
    spec = manifest.container[which]
    port, path = spec["httpGet"]["port"], spec["httpGet"]["path"]
    found = get(port, path, spec.get("timeoutSeconds", 1))
    expect(f"the answer of {path}", expected, found)


class Dropin:
    """One manifest's container, and its steps."""

    def __init__(self, binary, manifest, folder, form, uid):
        self.manifest, self.form, self.uid = manifest, form, uid
        self.folder = folder / manifest.name
        self.folder.mkdir()
        self.authority = Authority(self.folder / "ca")
        self.host = manifest.service_name()
        self.secret = self.authority.secret(self.host, form)
        self.container = Container(binary, manifest, self.folder, self.secret, uid, STANDALONE)
        self.log = self.folder / "log"
        self.port, self.admin_port = manifest.ports
        self.target = Target(self.port, self.host, str(self.authority.path))

    def steps(self):
        name, uid = self.manifest.name, self.container.plan["uid"]
        return {
            f"{name}: starts with {self.form} key as user {uid}": self.start,
            f"{name}: readiness probe": self.ready,
            f"{name}: liveness probe": lambda: probe(self.manifest, "livenessProbe",
                                                     (200, "pong\n")),
            f"{name}: no privileges": self.privileges,
            f"{name}: no path is writable": self.read_only,
            f"{name}: injects a pod over TLS 1.3": self.inject,
            f"{name}: TLS 1.2 is refused, HTTP/2 is offered": self.protocols,
            f"{name}: metrics": self.metrics,
            f"{name}: a renewed certificate is served": self.renew,
            f"{name}: rotated trust roots reach the next pod": self.rotate,
            f"{name}: SIGTERM: not ready, still answering, exit code 0": self.terminate,
        }

    def start(self):
        with self.log.open("wb") as log:
            self.container.start(log)
        # Empty until the kernel has started the program.
        command = Path(f"/proc/{self.container.pid}/cmdline")
        poll("the arguments", lambda: expect(
            "the arguments", self.manifest.container["args"],
            command.read_text().split("\0")[1:-1]))

    def ready(self):
        poll("/ready", lambda: probe(self.manifest, "readinessProbe", (200, "ok\n")))

    def privileges(self):
        status = self.container.status
        uid, gid = self.container.plan["uid"], self.container.plan["gid"]
        expect("the user", [str(uid)] * 4, status("Uid").split())
        expect("the group", [str(gid)] * 4, status("Gid").split())
        for field in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            expect(field, 0, int(status(field), 16))
        expect("NoNewPrivs", "1", status("NoNewPrivs"))
        expect("its process id in its namespace", "1", status("NSpid").split()[-1])

    def read_only(self):
        # As root, only the mounts prevent writing, not the permissions.
        for uid in (self.container.plan["uid"], 0):
            written, tried = self.container.writable(uid)
            expect(f"paths that user {uid} can write", [], written)
        return f"{tried} paths tried, as its user and as root"

    def inject_over(self, host=HOST):
        answer, certificate = ask(self.target, review(pod("web", ENABLED)), host)
        return patch_of(answer), certificate

    def inject(self):
        for host in (HOST, "::1"):
            operations, certificate = self.inject_over(host)
            expect("the certificate", certificate_digest(self.secret["tls.crt"]), certificate)
        text = json.dumps(operations)
        expect_in("the patch", '"linkerd-proxy"', text)
        expect_in("the patch", '"cr.l5d.io/linkerd/proxy:linkerdVersionValue"', text)
        expect_in("the patch", "linkerd/proxy-injector linkerdVersionValue", text)
        bundle = self.manifest.find("ConfigMap", "linkerd-identity-trust-roots")["data"]
        self.expect_anchors(operations, bundle["ca-bundle.crt"])
        return f"{len(operations)} operations"

    def expect_anchors(self, operations, bundle):
        expect_in("the patch", json.dumps(bundle.strip())[1:-1], json.dumps(operations))

    def protocols(self):
        context = self.target.context()
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        try:
            Connection(self.target, context)
            raise Failure("TLS 1.2 is accepted")
        except ssl.SSLError as error:
            expect_in("the error", "PROTOCOL_VERSION", str(error).upper())
        context = self.target.context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        connection = Connection(self.target, context)
        expect("the protocol", "h2", connection.tls.selected_alpn_protocol())
        connection.close()

    def exposition(self):
        status, text = get(self.admin_port, "/metrics", 1)
        expect("the status of /metrics", 200, status)
        return text

    def metrics(self):
        text = self.exposition()
        for name, labels in {
            "proxy_inject_admission_requests_total": {},
            "proxy_inject_admission_responses_total": {"skip": "false"},
            "injectd_reviews_total": {"verdict": "injected"},
        }.items():
            expect(name, 2, metric(text, name, **labels))
        [release] = re.findall(r'^injectd_config_info{linkerd_release="([^"]*)".*} 1$', text, re.M)
        return f"release {release}"

    def renew(self):
        secret = self.authority.secret(self.host, self.form)
        self.container.volumes[TLS].write(secret)
        expected = certificate_digest(secret["tls.crt"])
        poll("the certificate",
             lambda: expect("the certificate", expected, self.inject_over()[1]))

    def rotate(self):
        bundle = self.authority.path.read_text()
        self.container.volumes[TRUST_ROOTS].write({"ca-bundle.crt": bundle})
        poll("the patch", lambda: self.expect_anchors(self.inject_over()[0], bundle))

    def terminate(self):
        self.container.terminate()
        poll("/ready after SIGTERM",
             lambda: probe(self.manifest, "readinessProbe", (500, "not ready\n")))
        probe(self.manifest, "livenessProbe", (200, "pong\n"))
        self.inject_over()
        memory = self.container.rss_kib("VmHWM")
        expect("the exit code", 0, self.container.wait())
        with socket.socket() as free:
            error = free.connect_ex((HOST, self.port))
            expect("the error of a connection after its end", 111, error)
        limit = self.manifest.container.get("resources", {}).get("limits", {}).get("memory")
        return f"at most {memory >> 10} MiB used, limit {limit or 'none'}"


def main():
    stop_in_time(TOTAL_SECONDS)
    steps = Steps()
    forms = list(KEYS)
    with tempfile.TemporaryDirectory() as folder:
        for index, manifest in enumerate(manifests()):
            uid = ARBITRARY_UID if manifest.name.endswith("-ha") else None
            dropin = Dropin(os.environ["INJECTD"], manifest, Path(folder),
                            forms[index % len(forms)], uid)
            try:
                if not steps.all(dropin.steps()):
                    lines = dropin.log.read_text().splitlines()
                    print("the end of its log:", *lines[-20:], sep="\n  ")
            finally:
                dropin.container.kill()
    if not steps.done:
        sys.exit("dropin: no manifests in $INJECTD_CORPUS")
    return steps.end()


if __name__ == "__main__":
    sys.exit(main())
