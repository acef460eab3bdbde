"""Memory of injectd by objects of the cluster, and reviews that wait for it. Started by memory.sh.

injectd runs as `proxy-injector`, as a ServiceAccount with exactly Linkerd's ClusterRole. This
program creates namespaces, pods and ReplicaSets as plain objects. The controllers are stopped, so
that nothing else changes. Reviews go directly to the webhook. Ends with a table of the resident
memory.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from callers import Callers, Many, patched
from certificate import Authority
from client import review
from cluster import ENABLED, Api, collection, deployment, pod
from control_plane import HOST, ControlPlane, owner
from expect import Failure, expect, poll
from injectd import LINKERD
from lab import Component
from replicas import Replica
from steps import Steps, stop_in_time

TOTAL_SECONDS = 420
# The budget of docs/profiling.md, with any number of pods.
MAX_KIB = 64 << 10
MAX_SECONDS = 1
# Less growth than this is noise: pods and ReplicaSets in memory would take more.
NOISE_KIB = 4 << 10
REVIEW = Path(__file__).parent.parent / "loadtest/review-12k.json"
CROWD = "crowd"
CALLERS = 25
DEPLOYMENT = "/metadata/labels/linkerd.io~1proxy-deployment"
LABEL = "config.linkerd.io/proxy-log-level"


class Extent:
    """The number of objects and reviews."""

    def __init__(self, args):
        is_short = args.short
        self.namespaces = [10, 200, 1_000] if is_short else [10, 1_000, 10_000]
        self.pods = 500 if is_short else 20_000
        self.replica_sets = args.replica_sets or (300 if is_short else 3_000)
        self.annotations = args.annotations
        self.injections = args.injections or (500 if is_short else 5_000)
        self.strangers = 100 if is_short else 1_000
        self.templates = 200 if is_short else 6_000
        self.reviews = 500 if is_short else 4_000
        self.starts = 3


class Memory:
    """One replica, the objects in the cluster, and the measured memory."""

    def __init__(self, binary, api, folder, lab, extent):
        self.api, self.extent, self.rows = api, extent, []
        self.api_server = Component(lab, "kube-apiserver")
        self.controllers = Component(lab, "kube-controller-manager")
        self.many = Many(api, folder)
        self.numbers = itertools.count()
        # Annotations that injectd does not read.
        self.others = {f"example.com/other-{index}": "some text that others read"
                       for index in range(extent.annotations)}
        self.owners = []
        self.review = json.loads(REVIEW.read_text())
        control_plane = ControlPlane(binary, api, folder)
        control_plane.make_account()
        self.authority = Authority(folder / "ca")
        files = {
            "config": {"values": (LINKERD / "values/default.yaml").read_text()},
            "roots": {"ca-bundle.crt": (LINKERD / "example-root.crt").read_text()},
            "tls": self.authority.secret(HOST, "PKCS#8 EC"),
        }
        kubeconfig = control_plane.kubeconfig(api.server)
        self.replica = Replica(binary, folder / "replica", kubeconfig, files)
        control_plane.make_namespace(CROWD)
        self.controllers.hang()

    def steps(self):
        few, some, many = self.extent.namespaces
        return {
            f"{few} namespaces": self.first,
            f"start with {some} namespaces": self.starts,
            f"{many} namespaces": self.namespaces,
            f"{self.extent.pods} pods and {self.extent.replica_sets} ReplicaSets": self.crowd,
            f"{self.extent.injections} pods injected": self.injections,
            f"a pod each of {self.extent.strangers} new ReplicaSets": self.strangers,
            f"memory with all of them is less than {MAX_KIB >> 10} MiB": self.budget,
            f"{self.extent.templates} sets of overrides": self.templates,
            "the API server hangs and is back": self.hangs,
            "SIGTERM ends it": self.terminated,
        }

    # --- steps ---

    def first(self):
        self.fill(self.extent.namespaces[0])
        seconds = self.replica.start()
        self.measure(f"{self.extent.namespaces[0]} namespaces")
        return f"ready after {seconds:.2f} s"

    def starts(self):
        count = self.extent.namespaces[1]
        rate = self.fill(count)
        self.measure(f"{count} namespaces, watched one by one")
        self.expect_known(count)
        seconds = [self.start_again() for _ in range(self.extent.starts)]
        self.measure(f"{count} namespaces, listed at start")
        if min(seconds) > MAX_SECONDS:
            raise Failure(f"ready after {seconds} s, the budget is {MAX_SECONDS} s")
        return f"ready after {', '.join(f'{each:.2f}' for each in seconds)} s; {rate}"

    def namespaces(self):
        count = self.extent.namespaces[2]
        rate = self.fill(count)
        self.measure(f"{count} namespaces, watched one by one")
        self.expect_known(count)
        seconds = self.start_again()
        self.measure(f"{count} namespaces, listed at start")
        return f"ready after {seconds:.2f} s; {rate}"

    def crowd(self):
        extent, before = self.extent, self.rows[-1][2]
        rate = self.many.create("v1", "Pod", CROWD, (
            {**pod(f"crowd-{index}"), "kind": "Pod"} for index in range(extent.pods)))
        self.owners += self.replica_sets(extent.replica_sets)
        what = f"  and {extent.pods} pods, {extent.replica_sets} ReplicaSets"
        self.measure(f"{what}, created meanwhile")
        # The peak, because the allocator returns the memory of the list at start at some time.
        more = self.rows[-1][2] - before
        seconds = self.start_again()
        self.measure(f"{what}, present at start")
        if more > NOISE_KIB:
            raise Failure(f"pods and ReplicaSets take {more} KiB")
        return f"ready after {seconds:.2f} s; {rate}"

    def injections(self):
        """injectd looks up each owner once; the pods are in many namespaces."""
        names = itertools.cycle(range(self.extent.namespaces[2] // 2))
        bodies = [self.body(CROWD if index % 2 else f"team-{next(names)}",
                            self.owners[index // 2 % len(self.owners)] if index % 2 else None)
                  for index in range(self.extent.injections)]
        found = self.send(bodies, CALLERS)
        self.measure(f"  and {len(bodies)} pods injected over {CALLERS} connections")
        return found.text()

    def strangers(self):
        count = self.extent.strangers
        strangers = self.replica_sets(count)
        before = self.misses("owners")
        found = self.send([self.body(CROWD, each) for each in strangers], CALLERS)
        for each, answer in zip(strangers, found.answers):
            [theirs] = each["metadata"]["ownerReferences"]
            expect("the label", theirs["name"], patched(answer).get(DEPLOYMENT))
        expect("unknown owners", count, self.misses("owners") - before)
        self.measure(f"  and {count} pods of as many new ReplicaSets")
        return f"{CALLERS} callers; {found.text()}; all labelled with their Deployment"

    def budget(self):
        most = max(rss for _, rss, _ in self.rows)
        if most > MAX_KIB:
            raise Failure(f"{most} KiB")
        return f"{most / 1024:.1f} MiB at most"

    def templates(self):
        """Each set is used once: an uncached template costs time, and the cache is bounded."""
        count = self.extent.templates
        bodies = [self.body(CROWD, None, {LABEL: f"warn,linkerd=debug,set={index}"})
                  for index in range(count)]
        found = self.send(bodies, CALLERS)
        self.measure(f"  and {count} sets of overrides")
        return found.text()

    def hangs(self):
        bodies = [self.body(f"team-{index % 10}") for index in range(self.extent.reviews)]
        before = self.send(bodies, CALLERS)
        self.api_server.hang()
        try:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                unknown = [pool.submit(self.ask_unknown, f"unknown-{seconds}", seconds)
                           for seconds in (2, 3, 10)]
                during = self.send(bodies, CALLERS)
                refused = [each.result() for each in unknown]
        finally:
            self.api_server.resume()
        if during.rate() < before.rate() / 2:
            raise Failure(f"reviews of known namespaces: {before.text()}, then {during.text()}")
        begin = time.monotonic()
        poll("the API server", lambda: self.expect_denied("unknown-10"))
        namespace = {"apiVersion": "v1", "kind": "Namespace",
                     "metadata": {"name": "unknown-10", "annotations": ENABLED}}
        self.api.create(namespace).created()
        self.send([self.body("unknown-10")], 1)
        back = time.monotonic() - begin
        failing = lambda: self.replica.metric("injectd_watch_failing")
        poll("the watch", lambda: expect("whether it fails", 0, failing()))
        expect("/ready", True, self.replica.is_ready())
        after = self.send(bodies, CALLERS)
        self.measure("  and the API server hung meanwhile")
        return (f"known namespaces before: {before.text()}; meanwhile: {during.text()}; after: "
                f"{after.text()}; unknown ones: 503 after {', '.join(refused)}; "
                f"a new one injected {back:.1f} s after it was back")

    def terminated(self):
        expect("the exit code", 0, self.replica.stop(signal.SIGTERM))

    # --- parts of the steps ---

    def fill(self, count):
        """Creates namespaces until the cluster has `count`."""
        there = len(self.api.call("GET", collection("v1", "Namespace")).body["items"])
        return self.many.create("v1", "Namespace", None, (
            {"metadata": {"name": f"team-{next(self.numbers)}", "annotations": {
                **ENABLED, "config.linkerd.io/proxy-cpu-request": "100m",
                **self.others}}}
            for _ in range(count - there)))

    def replica_sets(self, count):
        """New ReplicaSets without pods, each of a Deployment of its own."""
        made = []
        for _ in range(count):
            name = f"web-{next(self.numbers)}"
            body = {**deployment(name, 0), "kind": "ReplicaSet"}
            parent = {"apiVersion": "apps/v1", "kind": "Deployment",
                      "metadata": {"name": name, "uid": f"00000000-0000-4000-8000-{len(made):012}"}}
            body["metadata"] = {"name": f"{name}-6f7", "ownerReferences": [owner(parent)]}
            made.append(body)
        self.many.create("apps/v1", "ReplicaSet", CROWD, made)
        return made

    def body(self, namespace, replica_set=None, annotations=None):
        """A review of 12 KB. Only the API server knows the Deployment behind an owner."""
        request = self.review["request"]
        metadata = request["object"]["metadata"]
        metadata = {**metadata, "namespace": namespace, "ownerReferences": [],
                    "annotations": {**metadata["annotations"], **(annotations or {})},
                    "labels": {"app": "web"}}
        if replica_set:
            metadata["ownerReferences"] = [owner(replica_set)]
        made = {**request, "namespace": namespace,
                "object": {**request["object"], "metadata": metadata}}
        return json.dumps({**self.review, "request": made}).encode()

    def send(self, bodies, callers, timeout_seconds=10):
        """Sends reviews over `callers` connections; all must be injected."""
        found = Callers(self.replica.target(self.authority), callers).send(bodies, timeout_seconds)
        for answer in found.answers:
            expect(f"the status of {answer.body[:100]}", 200, answer.status)
            verdict = json.loads(answer.body)["response"]["auditAnnotations"]["verdict"]
            expect("the verdict", "injected", verdict)
        return found

    def ask(self, namespace, seconds):
        found = Callers(self.replica.target(self.authority), 1).send(
            [review(pod("stranger"), namespace)], seconds)
        return found.answers[0], found.seconds

    def ask_unknown(self, namespace, timeout_seconds):
        answer, seconds = self.ask(namespace, timeout_seconds)
        expect("the status", 503, answer.status)
        expect("Retry-After", "1", answer.retry_after)
        if seconds > timeout_seconds:
            raise Failure(f"503 after {seconds:.1f} s, later than {timeout_seconds} s")
        return f"{seconds:.1f} s of {timeout_seconds}"

    def expect_denied(self, namespace):
        answer, _ = self.ask(namespace, 10)
        expect("the status", 200, answer.status)
        response = json.loads(answer.body)["response"]
        expect("the message", f'namespaces "{namespace}" not found', response["status"]["message"])

    def misses(self, cache):
        return self.replica.metric("injectd_cache_misses_total", cache=cache)

    def start_again(self):
        expect("the exit code", 0, self.replica.stop(signal.SIGINT))
        return self.replica.start()

    def expect_known(self, count):
        """Fails if the watch has not delivered the newest namespaces."""
        before = self.misses("namespaces")
        self.send([self.body(f"team-{index}") for index in range(count - 50, count - 10)], 1)
        expect("unknown namespaces", before, self.misses("namespaces"))

    def measure(self, when):
        """Records the memory once it no longer changes."""
        before = None
        while before != (before := self.replica.rss_kib()):
            time.sleep(0.5)
        self.rows.append((when, before, self.replica.rss_kib("VmHWM")))

    def table(self):
        rows = [f"  {'':57} {'RSS':>10} {'peak':>10}"]
        rows += [f"  {when:57} {rss / 1024:6.1f} MiB {peak / 1024:6.1f} MiB"
                 for when, rss, peak in self.rows]
        return "\n".join(rows)

    def clean_up(self):
        self.replica.kill()
        self.api_server.clean_up()
        self.controllers.clean_up()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--short", action="store_true", help="fewer objects and reviews")
    parser.add_argument("--annotations", type=int, default=1,
                        help="annotations of a namespace that injectd does not read [1]")
    parser.add_argument("--replica-sets", type=int, help="ReplicaSets beside the pods [3000]")
    parser.add_argument("--injections", type=int,
                        help="pods to inject, every second one of a ReplicaSet [5000]")
    args = parser.parse_args()
    stop_in_time(TOTAL_SECONDS)
    steps = Steps()
    with tempfile.TemporaryDirectory() as folder:
        folder, config = Path(folder), os.environ["KUBECONFIG"]
        memory = Memory(os.environ["INJECTD"], Api(config, folder), folder, Path(config).parent,
                        Extent(args))
        try:
            steps.all(memory.steps())
        finally:
            memory.clean_up()
            print(memory.table(), flush=True)
        if steps.failed and memory.replica.log.exists():
            lines = memory.replica.log.read_text().splitlines()
            print("the end of injectd's log:", *lines[-20:], sep="\n  ")
    return steps.end()


if __name__ == "__main__":
    sys.exit(main())
