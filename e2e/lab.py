"""Processes of a control plane on this machine, and a client that keeps its connection alive."""

import http.client
import os
import signal
import ssl
import subprocess
import time
import urllib.parse
from pathlib import Path

from expect import DEADLINE_SECONDS, Failure

# The time for requests in progress; the API server itself waits longer for open watches.
GRACE_SECONDS = 1


class Unreachable(Failure):
    """The API server did not answer."""


class Client:
    """One connection to the API server, reopened after an error."""

    def __init__(self, api, folder):
        address = urllib.parse.urlsplit(api.server)
        context = ssl.create_default_context(cadata=api.ca)
        context.load_cert_chain(folder / "client.pem")
        self.connection = http.client.HTTPSConnection(
            address.hostname, address.port, timeout=DEADLINE_SECONDS, context=context)

    def call(self, method, path, body=None):
        """Status and body of the answer."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        try:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Unreachable(f"{method} {path}: {error!r}") from None

    def close(self):
        self.connection.close()


class Component:
    """A process of kube-lab that programs stop, and start again with the same flags."""

    def __init__(self, lab, name):
        self.pid = int((lab / f"{name}.pid").read_text())
        self.log = lab / f"{name}.log"
        self.process = None
        files = Path(f"/proc/{self.pid}")
        self.executable = os.readlink(files / "exe")
        self.command, environment = (
            (files / file).read_text().split("\0")[:-1] for file in ("cmdline", "environ"))
        self.env = dict(variable.split("=", 1) for variable in environment)

    def signal(self, how):
        os.kill(self.pid, how)

    def stop(self):
        """Stops it with SIGTERM; a second SIGTERM stops it at once."""
        for patience in GRACE_SECONDS, DEADLINE_SECONDS:
            self.signal(signal.SIGTERM)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                if not self.is_running():
                    return
                time.sleep(0.01)
        raise Failure(f"{self.command[0]} still runs {DEADLINE_SECONDS} s after SIGTERM")

    def start(self):
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, executable=self.executable, env=self.env,
                                            stdout=log, stderr=log, start_new_session=True)
        self.pid = self.process.pid

    def is_running(self):
        if self.process:
            return self.process.poll() is None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def clean_up(self):
        """Resumes the process, and stops it if `start` started it; kube-lab stops the others."""
        if self.is_running():
            self.resume()
        if self.process and self.is_running():
            try:
                self.stop()
            except Failure:
                self.process.kill()
                self.process.wait()
