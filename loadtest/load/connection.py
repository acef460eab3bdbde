"""Connections to servers that make their certificate at start."""

import ssl
import time

from servers import Failure  # adds e2e to sys.path

import client

HERE = client.Target(port=0, server_name="localhost", ca="")


def unverified_context():
    """A TLS context that accepts any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def request_of(body, path="/"):
    """A request as the API server sends it."""
    return HERE.post(body, path=path)


class Connection(client.Connection):
    """One request at a time, each timed."""

    def __init__(self, address, context, session=None):
        port = int(address.rpartition(":")[2])
        super().__init__(HERE._replace(port=port), context, session=session)

    def ask(self, request):
        """Sends a request and reads its answer; returns the seconds."""
        return self.answer(request)[0]

    def answer(self, request):
        """The same; returns the seconds and the answer."""
        begin = time.perf_counter()
        self.send(request)
        answer = self.receive()
        took = time.perf_counter() - begin
        if answer.status != 200:
            raise Failure(f"a review was answered with {answer.status}")
        return took, answer.body
