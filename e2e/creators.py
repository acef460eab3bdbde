"""Threads that create pods as controllers do, and counts of the results."""

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
    """The counts of the pods whose creation began in one phase."""

    def __init__(self, name):
        self.name = name
        self.created = self.injected = 0
        self.refused = self.unreachable = 0
        self.slowest = 0.0
        # Of pods without sidecar: when their creation began and ended.
        self.uninjected = []
        self.begins = []
        # The settings of the sidecars.
        self.settings = set()
        self.examples = []

    def count(self, body, begin):
        """Counts a pod by the body that the API server returned."""
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
    """The settings of a sidecar that depend on the values and the trust roots."""
    [proxy] = [container for container in body["spec"]["initContainers"]
               if container["name"] == "linkerd-proxy"]
    env = {variable["name"]: variable.get("value") for variable in proxy["env"]}
    return (env["LINKERD2_PROXY_OUTBOUND_CONNECT_TIMEOUT"],
            body["metadata"]["annotations"]["linkerd.io/trust-root-sha256"])


class Creators:
    """Each thread creates one pod after the other, and retries until the pod exists."""

    def __init__(self, clients, namespace, pause):
        self.path, self.pause = collection("v1", "Pod", namespace), pause
        self.lock = threading.Lock()
        self.ended, self.is_given_up = threading.Event(), False
        self.numbers, self.begun = itertools.count(), 0
        self.phase, self.failure = None, None
        self.busy_with = [None] * len(clients)
        self.threads = [threading.Thread(target=self.run, args=each) for each in enumerate(clients)]

    def enter(self, phase):
        """Counts pods for this phase from now on; waits for creations that count for another."""
        with self.lock:
            is_first, self.phase = self.phase is None, phase
        if is_first:
            for thread in self.threads:
                thread.start()
        self.finish()

    def finish(self):
        """Waits for the creations that are in progress now."""
        before = list(self.busy_with)
        wait_until("the creations in progress", lambda: all(
            now is None or now is not then for now, then in zip(self.busy_with, before)))

    @contextmanager
    def faster(self, pause):
        """Creates pods as fast as a rollout, so that connections lead to every replica."""
        self.pause, before = pause, self.pause
        try:
            self.wait_for(self.phase.created + 4 * len(self.threads))
            yield
        finally:
            self.pause = before

    def wait_for(self, created):
        def is_reached():
            if self.failure:
                raise self.failure
            return self.phase.created >= created

        wait_until(f"{created} pods", is_reached)

    def stop(self):
        """Creates no more pods, and waits for the creations in progress."""
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
