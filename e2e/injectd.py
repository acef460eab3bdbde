"""`injectd serve`, and the certificate it is called by."""

import os
import socket
import subprocess

from expect import DEADLINE_SECONDS, Failure, expect, poll

# An address of this machine, and in the range of cluster IPs: a Service leads here without proxy.
WEBHOOK_IP = "127.100.0.9"
# The name of Linkerd's: `injectd compare` looks for its patches in audit logs.
WEBHOOK_NAME = "linkerd-proxy-injector.linkerd.io"


class Injectd:
    """`injectd serve` with a certificate of its own CA for its Service."""

    def __init__(self, binary, folder, host):
        self.log = folder / "injectd.log"
        self.process = None
        with socket.socket() as free:
            free.bind((WEBHOOK_IP, 0))
            self.port = free.getsockname()[1]
        self.ca = make_certificates(folder, host)
        self.command = [
            binary, "serve", "--standalone", "--addr", f"{WEBHOOK_IP}:{self.port}",
            "--metrics-addr", f"{WEBHOOK_IP}:0",
            "--tls-cert", folder / "tls.crt", "--tls-key", folder / "tls.key",
        ]

    def start(self):
        # h2 tells each frame: that is how to know which HTTP was spoken.
        env = {**os.environ, "INJECTD_LOG": "info,h2=debug", "NO_COLOR": "1"}
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=env)

        def connect():
            expect("injectd's exit code", None, self.process.poll())
            try:
                socket.create_connection((WEBHOOK_IP, self.port), 1).close()
            except OSError as error:
                raise Failure(str(error)) from None

        poll("injectd listens", connect)

    def stop(self, how):
        """Sends a signal and gives the exit code."""
        self.process.send_signal(how)
        try:
            return self.process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"injectd outlived {how.name} by {DEADLINE_SECONDS} s") from None

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def make_certificates(folder, host):
    """Writes tls.crt and tls.key for a host, and gives the certificate of their CA."""

    def openssl(*args):
        run = subprocess.run(["openssl", *args], cwd=folder, capture_output=True, text=True)
        expect(f"openssl {args[0]}: {run.stderr}", 0, run.returncode)

    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
           "-days", "2"]
    openssl(*new, "-subj", "/CN=e2e", "-keyout", "ca.key", "-out", "ca.crt")
    openssl(*new, "-subj", f"/CN={host}", "-keyout", "tls.key", "-out", "tls.crt",
            "-CA", "ca.crt", "-CAkey", "ca.key",
            "-addext", f"subjectAltName=DNS:{host},IP:{WEBHOOK_IP}",
            "-addext", "basicConstraints=critical,CA:FALSE")
    return (folder / "ca.crt").read_bytes()
