"""Connections to servers that made their certificates at start."""

import ssl
import time

from servers import Failure  # finds client

import client


def trusting():
    """A context for any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def target(address):
    return client.Target(int(address.rpartition(":")[2]), "localhost", ca="")


def request_of(body):
    """A request as the API server sends it."""
    return client.Target(0, "localhost", ca="").post(body)


class Connection(client.Connection):
    """One request at a time, each timed."""

    def __init__(self, address, context, session=None):
        super().__init__(target(address), context, session=session)

    def ask(self, request):
        """A request and its answer; gives the seconds it took."""
        begin = time.perf_counter()
        self.send(request)
        status = self.receive().status
        took = time.perf_counter() - begin
        if status != 200:
            raise Failure(f"a review was answered with {status}")
        return took
