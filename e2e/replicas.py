"""Replicas of injectd as a cluster runs them: mounts, ServiceAccount, Service and webhook."""

import base64
import json
import os
import re
import subprocess
import time
from pathlib import Path

from balancer import Balancer
from certificate import Authority
from client import HOST as LOCAL
from client import Exposition, Target, get, metric
from cluster import ENABLED, collection, service
from container import Volume
from control_plane import ACCOUNT, CONTROL_PLANE, HOST, ControlPlane
from expect import Failure, expect, poll
from injectd import LINKERD, WEBHOOK_NAME, ProxyInjector, free_port
from lab import Component
from steps import wait_until

SERVICE_IP = "127.100.0.11"
WEBHOOKS = collection("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")


class Replica(ProxyInjector):
    """`injectd proxy-injector` with mounts of its own, as a kubelet makes them."""

    def __init__(self, binary, folder, kubeconfig, files, env=None):
        folder.mkdir()
        super().__init__(binary, folder, HOST, LOCAL, kubeconfig)
        self.exposition = Exposition(self.admin_port)
        self.volumes = {name: Volume(folder / name) for name in files}
        for name, content in files.items():
            self.volumes[name].write(content)
        self.env = {
            "INJECTD_VALUES": str(folder / "config/values"),
            "INJECTD_TRUST_ROOTS": str(folder / "roots/ca-bundle.crt"),
            "INJECTD_TLS_CERT": str(folder / "tls/tls.crt"),
            "INJECTD_TLS_KEY": str(folder / "tls/tls.key"),
            **(env or {}),
        }

    def start(self):
        """Starts it, and returns the seconds until it was ready."""
        begin = time.monotonic()
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, env={**os.environ, **self.env},
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until("/ready", self.is_ready)
        return time.monotonic() - begin

    def is_ready(self):
        expect("injectd's exit code", None, self.process.poll())
        try:
            return get(self.admin_port, "/ready", 1)[0] == 200
        except Failure:
            return False

    def target(self, authority):
        return Target(self.port, HOST, str(authority.path))

    def metric(self, name, **labels):
        return metric(self.exposition.read(), name, **labels)

    def rss_kib(self, field="VmRSS"):
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s*(\d+) kB$", text, re.MULTILINE)[1])


class Pair:
    """Two replicas with their Service and webhook, and the API server that calls them."""

    def __init__(self, binary, api, folder, lab, env):
        self.api, self.folder = api, folder
        self.api_server = Component(lab, "kube-apiserver")
        self.control_plane = ControlPlane(binary, api, folder)
        self.authorities = [Authority(folder / "ca-0")]
        self.port = free_port(SERVICE_IP)
        self.witnesses = 0
        self.policy = self.namespace = self.balancer = None
        roots = (LINKERD / "example-root.crt").read_text()
        self.roots = [roots, roots + self.authorities[0].path.read_text()]
        values, line = (LINKERD / "values/default.yaml").read_text(), "outboundConnectTimeout: {}\n"
        self.values = [values.replace(line.format("1000ms"), line.format(timeout))
                       for timeout in ("1000ms", "2000ms")]
        self.control_plane.make_account()
        files = {"config": {"values": self.values[0]}, "roots": self.bundle(0),
                 "tls": self.secret()}
        kubeconfig = self.control_plane.kubeconfig(api.server)
        self.replicas = [Replica(binary, folder / f"replica-{index}", kubeconfig, files, env)
                         for index in range(2)]

    def bundle(self, index):
        return {"ca-bundle.crt": self.roots[index]}

    def secret(self):
        return self.authorities[-1].secret(HOST, "PKCS#8 EC")

    def start(self):
        seconds = [replica.start() for replica in self.replicas]
        ports = [(replica.port, replica.admin_port) for replica in self.replicas]
        self.balancer = Balancer((SERVICE_IP, self.port), ports)
        for index in range(len(ports)):
            self.balancer.wait_for(index, True)
        spec = {"clusterIP": SERVICE_IP, "ports": [{"port": self.port}]}
        self.control_plane.create(service(ACCOUNT, spec), CONTROL_PLANE)
        return f"ready after {' and '.join(f'{each:.2f}' for each in seconds)} s"

    def register(self, policy, namespace):
        """Makes the API server call the webhook for the pods of a namespace."""
        self.policy, self.namespace = policy, namespace
        self.control_plane.make_namespace(namespace, ENABLED)
        self.configure(self.authorities[-1:])

    def configure(self, authorities):
        """Writes the webhook's configuration, and waits until the API server uses it."""
        self.witnesses += 1
        # Only this version of the configuration injects its pods.
        witness = f"witness-{self.witnesses}"
        self.control_plane.make_namespace(witness, ENABLED)
        bundle = b"".join(authority.path.read_bytes() for authority in authorities)
        reference = {"name": ACCOUNT, "namespace": CONTROL_PLANE, "port": self.port}
        selector = {"key": "kubernetes.io/metadata.name", "operator": "In",
                    "values": [self.namespace, witness]}
        webhook = {
            "name": WEBHOOK_NAME,
            "clientConfig": {"service": reference, "caBundle": base64.b64encode(bundle).decode()},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                       "resources": ["pods", "services"], "scope": "Namespaced"}],
            "namespaceSelector": {"matchExpressions": [selector]},
            "failurePolicy": self.policy,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 10,
        }
        body = {"apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": ACCOUNT}, "webhooks": [webhook]}
        before = self.api.call("GET", f"{WEBHOOKS}/{ACCOUNT}")
        if before.status == 404:
            self.control_plane.create(body)
        else:
            body["metadata"] = before.body["metadata"]
            answer = self.api.call("PUT", f"{WEBHOOKS}/{ACCOUNT}", json.dumps(body))
            expect(f"the status of the webhook ({answer.body})", 200, answer.status)
        poll("the webhook injects", lambda: self.control_plane.expect_injected(witness))

    def rewrite(self, volume, content, what):
        """Swaps a mount of one replica after the other, as kubelets do, and waits for both."""
        for replica in self.replicas:
            taken = replica.metric("injectd_reloads_total", what=what, result="applied")
            replica.volumes[volume].write(content)
            wait_until("a reload", lambda: replica.metric(
                "injectd_reloads_total", what=what, result="applied") > taken)

    def clean_up(self):
        self.api_server.clean_up()
        for replica in self.replicas:
            replica.kill()
        if self.balancer:
            self.balancer.close()
