"""`injectd proxy-injector`, and its certificate."""

import os
import socket
import subprocess
from pathlib import Path

from expect import DEADLINE_SECONDS, Failure, expect, poll

# The name of Linkerd's webhook: `injectd compare` searches audit logs for its patches.
WEBHOOK_NAME = "linkerd-proxy-injector.linkerd.io"
LINKERD = Path(__file__).parent.parent / "crates/core/src/linkerd"


class ProxyInjector:
    """`injectd proxy-injector` for the cluster of a kubeconfig, with the default values."""

    def __init__(self, binary, folder, host, ip, kubeconfig):
        self.log = folder / "injectd.log"
        self.process = None
        self.ip, self.port, self.admin_port = ip, free_port(ip), free_port(ip)
        self.ca = make_certificates(folder, host, ip)
        self.command = [
            binary, "proxy-injector", f"-kubeconfig={kubeconfig}", f"-addr={ip}:{self.port}",
            f"-metrics-addr={ip}:{self.admin_port}",
        ]
        self.env = {
            "INJECTD_VALUES": str(LINKERD / "values/default.yaml"),
            "INJECTD_TRUST_ROOTS": str(LINKERD / "example-root.crt"),
            "INJECTD_TLS_CERT": str(folder / "tls.crt"),
            "INJECTD_TLS_KEY": str(folder / "tls.key"),
        }

    def start(self):
        env = {**os.environ, **self.env, "NO_COLOR": "1"}
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=env)

        def connect():
            expect("injectd's exit code", None, self.process.poll())
            try:
                socket.create_connection((self.ip, self.port), 1).close()
            except OSError as error:
                raise Failure(str(error)) from None

        poll("injectd listens", connect)

    def stop(self, how):
        """Sends a signal and returns the exit code."""
        self.process.send_signal(how)
        try:
            return self.process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"injectd still runs {DEADLINE_SECONDS} s after {how.name}") from None

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


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
