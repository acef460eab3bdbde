"""Threads that create pods as controllers do, and the account of what became of them."""

import itertools
import json
import threading
import time
from contextlib import contextmanager

from cluster import collection, names, pod
from expect import DEADLINE_SECONDS, Failure
from lab import Unreachable
from steps import wait_until

NUMBER = "storm/number"
# A controller's first retry comes sooner, its later ones later.
RETRY_SECONDS = 0.1
WEBHOOK_FAILED = "failed calling webhook"
EXAMPLES = 3


class Phase:
    """What became of the pods whose creation began in a time."""

    def __init__(self, name):
        self.name = name
        self.created = self.injected = 0
        self.refused = self.unreachable = 0
        self.slowest = 0.0
        # Of pods without sidecar: when their creation began and ended.
        self.uninjected = []
        self.begins = []
        # What is in the sidecars.
        self.settings = set()
        self.examples = []

    def count(self, body, begin):
        """Counts a pod by the body that the API server answered."""
        self.created += 1
        sidecars = names(body, "initContainers").count("linkerd-proxy")
        if sidecars > 1:
            raise Failure(f"{sidecars} sidecars in {body['metadata']['name']}")
        if sidecars:
            self.injected += 1
            self.settings.add(settings(body))
        else:
            self.uninjected.append((begin, time.monotonic(), body["metadata"]["name"]))

    def row(self):
        return [self.name, self.created, self.injected, len(self.uninjected), self.refused,
                self.unreachable, f"{self.slowest * 1000:.0f} ms"]


def settings(body):
    """What of a sidecar the values and the trust roots decide."""
    [proxy] = [it for it in body["spec"]["initContainers"] if it["name"] == "linkerd-proxy"]
    env = {variable["name"]: variable.get("value") for variable in proxy["env"]}
    return (env["LINKERD2_PROXY_OUTBOUND_CONNECT_TIMEOUT"],
            body["metadata"]["annotations"]["linkerd.io/trust-root-sha256"])


class Creators:
    """Each thread creates one pod after the other, and tries again until it is there."""

    def __init__(self, clients, namespace, pause):
        self.path, self.pause = collection("v1", "Pod", namespace), pause
        self.lock = threading.Lock()
        self.ended, self.is_given_up = threading.Event(), False
        self.numbers, self.begun = itertools.count(), 0
        self.phase, self.failure = None, None
        self.busy_with = [None] * len(clients)
        self.threads = [threading.Thread(target=self.run, args=each) for each in enumerate(clients)]

    def enter(self, phase):
        """From now on pods count for this phase, and none is under way that counts for another."""
        with self.lock:
            is_first, self.phase = self.phase is None, phase
        if is_first:
            for thread in self.threads:
                thread.start()
        self.finish()

    def finish(self):
        """Waits for all that is under way now."""
        before = list(self.busy_with)
        wait_until("the creations under way", lambda: all(
            now is None or now is not then for now, then in zip(self.busy_with, before)))

    @contextmanager
    def haste(self, pause):
        """As many creations at a time as a roll-out brings, so that connections lead everywhere."""
        self.pause, before = pause, self.pause
        try:
            self.wait_for(self.phase.created + 4 * len(self.threads))
            yield
        finally:
            self.pause = before

    def wait_for(self, created):
        def is_so():
            if self.failure:
                raise self.failure
            return self.phase.created >= created

        wait_until(f"{created} pods", is_so)

    def stop(self):
        """Begins no more pods, and waits for those that are under way."""
        self.ended.set()
        for thread in self.threads:
            if thread.ident:
                thread.join(DEADLINE_SECONDS)

    def give_up(self):
        self.is_given_up = True
        self.stop()

    def run(self, index, client):
        while not self.ended.wait(self.pause):
            with self.lock:
                phase, number = self.phase, next(self.numbers)
                self.busy_with[index], self.begun = (phase, number), number + 1
            try:
                self.create(client, phase, number)
            except Exception as error:
                self.failure = error if isinstance(error, Failure) else Failure(repr(error))
                return
            finally:
                self.busy_with[index] = None
        client.close()

    def create(self, client, phase, number):
        manifest = pod("")
        manifest["metadata"] = {"generateName": "storm-", "labels": {NUMBER: str(number)}}
        text = json.dumps(manifest)
        first = time.monotonic()
        while time.monotonic() - first < DEADLINE_SECONDS and not self.is_given_up:
            begin = time.monotonic()
            try:
                status, body = client.call("POST", self.path, text)
            except Unreachable as error:
                status, body = None, str(error).encode()
            with self.lock:
                if status == 201:
                    phase.begins.append(begin)
                    phase.count({**json.loads(body), "kind": "Pod"}, begin)
                    phase.slowest = max(phase.slowest, time.monotonic() - first)
                    return
                if WEBHOOK_FAILED.encode() in body:
                    phase.refused += 1
                else:
                    phase.unreachable += 1
                if len(phase.examples) < EXAMPLES:
                    phase.examples.append(f"{status}: {body[:300].decode()}")
            time.sleep(RETRY_SECONDS)
        raise Failure(f"no pod after {DEADLINE_SECONDS} s, such as {phase.examples}")
