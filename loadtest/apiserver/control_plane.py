"""What Linkerd's injector needs of its control plane: ServiceAccount, ClusterRole, kubeconfig.

Scenarios in Rust do the same in `e2e/tests/scenarios/linkerd.rs`.
"""

import base64
import json
import re
import socket
import subprocess

from cluster import collection
from expect import expect
from servers import INJECTD, ROOT, Server

IP = "127.100.0.10"
CONTROL_PLANE = "linkerd"
ACCOUNT = "linkerd-proxy-injector"
HOST = f"{ACCOUNT}.{CONTROL_PLANE}.svc"
LINKERD = ROOT / "crates/core/src/linkerd"


class ControlPlane:
    """The account in a cluster, and proxy-injector after `start`."""

    def __init__(self, api, folder):
        self.api, self.folder = api, folder
        self.injectd = None

    def make_account(self):
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROL_PLANE}})
        role = (ROOT / "e2e/cluster-role.yaml").read_text()
        name = re.search(r"^  name: (\S+)", role, re.MULTILINE)[1]
        account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": CONTROL_PLANE}
        self.create({"apiVersion": "v1", "kind": "ServiceAccount",
                     "metadata": {"name": ACCOUNT}}, CONTROL_PLANE)
        self.create(role)
        group = "rbac.authorization.k8s.io"
        self.create({"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding",
                     "metadata": {"name": name}, "subjects": [account],
                     "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name}})

    def kubeconfig(self):
        """A kubeconfig of the ServiceAccount with a new token."""
        path = f"{collection('v1', 'ServiceAccount', CONTROL_PLANE)}/{ACCOUNT}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": 3600}}
        token = self.api.call("POST", path, json.dumps(request)).created()["status"]["token"]
        ca = base64.b64encode(self.api.ca.encode()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": {"server": self.api.server,
                                                     "certificate-authority-data": ca}}],
            "users": [{"name": ACCOUNT, "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": ACCOUNT}}],
            "current-context": "e2e",
        }
        file = self.folder / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(json.dumps(config))
        return file

    def start(self):
        """Starts proxy-injector with the default values; returns the CA of its certificate."""
        ca = make_certificates(self.folder, HOST, IP)
        addresses = [f"{IP}:{free_port(IP)}" for _ in range(2)]
        command = [INJECTD, "proxy-injector", f"-kubeconfig={self.kubeconfig()}",
                   f"-addr={addresses[0]}", f"-metrics-addr={addresses[1]}"]
        self.injectd = Server(command, addresses=addresses, env={
            "INJECTD_VALUES": str(LINKERD / "values/default.yaml"),
            "INJECTD_TRUST_ROOTS": str(LINKERD / "example-root.crt"),
            "INJECTD_TLS_CERT": str(self.folder / "tls.crt"),
            "INJECTD_TLS_KEY": str(self.folder / "tls.key"),
        })
        return ca

    def create(self, manifest, namespace=None):
        return self.api.create(manifest, namespace).created()


def free_port(ip):
    with socket.socket() as free:
        free.bind((ip, 0))
        return free.getsockname()[1]


def make_certificates(folder, host, ip):
    """Writes tls.crt and tls.key for a host, and returns the certificate of their CA."""

    def openssl(*args):
        run = subprocess.run(["openssl", *args], cwd=folder, capture_output=True, text=True)
        expect(f"openssl {args[0]}: {run.stderr}", 0, run.returncode)

    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
           "-days", "2"]
    openssl(*new, "-subj", "/CN=e2e", "-keyout", "ca.key", "-out", "ca.crt")
    openssl(*new, "-subj", f"/CN={host}", "-keyout", "tls.key", "-out", "tls.crt",
            "-CA", "ca.crt", "-CAkey", "ca.key",
            "-addext", f"subjectAltName=DNS:{host},IP:{ip}",
            "-addext", "basicConstraints=critical,CA:FALSE")
    return (folder / "ca.crt").read_bytes()
