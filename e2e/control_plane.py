"""What Linkerd's injector needs of its control plane: ServiceAccount, ClusterRole, kubeconfig.

Programs start proxy-injector with it, or use only the account. Scenarios in Rust do the same in
`tests/scenarios/linkerd.rs`.
"""

import base64
import json
import os
from pathlib import Path

from client import get
from cluster import collection
from expect import expect, expect_in, poll
from injectd import ProxyInjector
from manifest import documents

HERE = Path(__file__).parent
IP = "127.100.0.10"
CONTROL_PLANE = "linkerd"
ACCOUNT = "linkerd-proxy-injector"
HOST = f"{ACCOUNT}.{CONTROL_PLANE}.svc"
PROBE_SECONDS = 5
SELECTED = {"e2e": "watched"}


class ControlPlane:
    """The account in a cluster, and proxy-injector after `start`."""

    def __init__(self, binary, api, folder):
        self.binary, self.api, self.folder = binary, api, folder
        self.injectd = None

    def make_account(self):
        self.make_namespace(CONTROL_PLANE)
        [role] = documents((HERE / "cluster-role.yaml").read_text())
        self.expect_upstream(role)
        account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": CONTROL_PLANE}
        self.create({"apiVersion": "v1", "kind": "ServiceAccount",
                     "metadata": {"name": ACCOUNT}}, CONTROL_PLANE)
        self.create(role)
        group = "rbac.authorization.k8s.io"
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": role["metadata"]["name"]}
        self.create({"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding",
                     "metadata": {"name": role["metadata"]["name"]},
                     "roleRef": reference, "subjects": [account]})

    def expect_upstream(self, role):
        """Compares with the manifests of Linkerd's charts in $INJECTD_CORPUS, if it is set."""
        corpus = Path(os.environ.get("INJECTD_CORPUS") or "/nonexistent")
        for path in sorted(corpus.glob("manifests/*.yaml")):
            [upstream] = [body for body in documents(path.read_text())
                          if body["kind"] == "ClusterRole"]
            expect(f"the rules of {path.name}", upstream["rules"], role["rules"])

    def kubeconfig(self, server):
        """A kubeconfig of the ServiceAccount with a new token."""
        path = f"{collection('v1', 'ServiceAccount', CONTROL_PLANE)}/{ACCOUNT}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": 3600}}
        token = self.api.call("POST", path, json.dumps(request)).created()["status"]["token"]
        ca = base64.b64encode(self.api.ca.encode()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": {"server": server,
                                                     "certificate-authority-data": ca}}],
            "users": [{"name": ACCOUNT, "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": ACCOUNT}}],
            "current-context": "e2e",
        }
        file = self.folder / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(json.dumps(config))
        return file

    def start(self, server):
        self.injectd = ProxyInjector(self.binary, self.folder, HOST, IP, self.kubeconfig(server))
        self.injectd.start()

    def wait_until_ready(self):
        poll("/ready", lambda: expect("/ready", (200, "ok\n"), get(
            self.injectd.admin_port, "/ready", PROBE_SECONDS, IP)))
        poll("the log", lambda: expect_in(
            "the log", "caches synced", self.injectd.log.read_text()))

    def create(self, manifest, namespace=None):
        return self.api.create(manifest, namespace).created()

    def make_namespace(self, name, annotations=None):
        """Creates a namespace in which pods can be created at once."""
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": name, "annotations": annotations or {}, "labels": SELECTED}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        status = self.api.create(account, name).status
        # The controller manager may have been faster.
        expect_in("the status of its service account", status, (201, 409))
