"""Many clients at a time: of the API server, to create objects, and of the webhook."""

import json
import queue
import statistics
import threading
import time

from client import Connection, patch_of
from cluster import collection
from expect import Failure
from lab import Client

CREATORS = 16


class Many:
    """Creates objects over many connections."""

    def __init__(self, api, folder):
        self.clients = [Client(api, folder) for _ in range(CREATORS)]

    def create(self, version, kind, namespace, objects):
        """Creates the objects and sets their uids; returns a text with number and time."""
        path = collection(version, kind, namespace)

        def create(client, body):
            text = json.dumps({"apiVersion": version, "kind": kind, **body})
            status, answer = client.call("POST", path, text)
            if status != 201:
                raise Failure(f"{path}: {status}: {answer[:200]}")
            body["metadata"]["uid"] = json.loads(answer)["metadata"]["uid"]

        objects = list(objects)
        begin = time.monotonic()
        share(create, self.clients, objects)
        seconds = time.monotonic() - begin
        return f"{len(objects)} created in {seconds:.0f} s"


class Callers:
    """Connections to a webhook, kept alive, with a caller each."""

    def __init__(self, target, count):
        context = target.context()
        self.target = target
        self.connections = [Connection(target, context) for _ in range(count)]

    def send(self, bodies, timeout_seconds):
        """Sends each body once, then closes the connections."""
        answers = [None] * len(bodies)
        times = []
        requests = [self.target.post(body, timeout_seconds) for body in bodies]

        def call(connection, numbered):
            index, request = numbered
            begin = time.monotonic()
            connection.send(request)
            answers[index] = connection.receive()
            times.append(time.monotonic() - begin)

        begin = time.monotonic()
        try:
            share(call, self.connections, list(enumerate(requests)))
            return Answers(answers, times, time.monotonic() - begin)
        finally:
            for connection in self.connections:
                connection.close()


class Answers:
    """Answers in the order of their requests, and their times."""

    def __init__(self, answers, times, seconds):
        self.answers, self.times, self.seconds = answers, times, seconds

    def rate(self):
        return len(self.answers) / self.seconds

    def text(self):
        centiles = statistics.quantiles(self.times, n=100)
        return (f"{self.rate():.0f} reviews/s, p50 {centiles[49] * 1000:.1f} ms, "
                f"p99 {centiles[98] * 1000:.1f} ms")


def patched(answer):
    """Values of a patch by their paths."""
    operations = patch_of(json.loads(answer.body))
    return {operation["path"]: operation.get("value") for operation in operations}


def share(work, workers, items):
    """Calls `work` with each item and a worker, each worker in a thread of its own."""
    todo, failures = queue.SimpleQueue(), []
    for item in items:
        todo.put(item)

    def run(worker):
        try:
            while not failures:
                work(worker, todo.get_nowait())
        except queue.Empty:
            pass
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=[worker]) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
