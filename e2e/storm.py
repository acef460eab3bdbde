"""End-to-end storm: two replicas behind a Service, pods created all the time. Started by storm.sh.

injectd runs as `proxy-injector`, as a ServiceAccount with exactly Linkerd's ClusterRole; the API
server calls it by its Service, whose address balancer.py serves in place of kube-proxy. While
threads and a Deployment's controller create pods, one fault follows another. No call of the webhook
may fail, except those in progress at a SIGKILL. With failurePolicy Fail these are retried: every
pod must get its sidecar, and no pod may be lost. With Ignore they are counted.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from certificate import Authority
from client import ask, metric, review
from cluster import Api, collection, deployment, names, pod
from control_plane import owner_labels
from creators import NUMBER, WEBHOOK_FAILED, Creators, Phase, settings
from expect import Failure, expect, poll
from flood import Flood
from lab import Client
from replicas import Pair
from steps import Steps, stop_in_time, wait_until

TOTAL_SECONDS = 235
# Small, so that the floods reach them; the API server keeps fewer connections.
MAX_CONNECTIONS, MAX_REQUESTS = 100, 16
COLUMNS = ["", "pods", "injected", "not injected", "refused", "no answer", "slowest"]
LOG_LINES = 20


class Extent:
    """The number of pods and faults."""

    def __init__(self, is_short):
        self.threads, self.pause, self.short_pause = (6, 0.2, 0.05) if is_short else (8, 0.25, 0.05)
        self.replicas = 3 if is_short else 6
        # The least number of pods of a phase; most phases have more.
        self.pods = 30 if is_short else 80
        self.hung_seconds = 1.5 if is_short else 4
        self.floods = 1 if is_short else 3
        # The policies under which the API server is restarted, which takes longest.
        self.restarts = ["Ignore"] if is_short else ["Fail", "Ignore"]


class Run:
    """All faults with one failure policy."""

    def __init__(self, pair, policy, extent):
        self.pair, self.policy, self.extent = pair, policy, extent
        self.namespace = f"storm-{policy.lower()}"
        self.phases, self.seen = [], set()
        clients = [Client(pair.api, pair.folder) for _ in range(extent.threads)]
        self.creators = Creators(clients, self.namespace, extent.pause)

    def all(self, steps):
        print(f"failurePolicy {self.policy}", flush=True)
        if not steps.run("the webhook is registered", self.register):
            return
        for name, fault in {
            "no fault": self.quiet,
            "API server: stopped and started": self.api_server_restarts,
            "API server: hangs and is back": self.api_server_hangs,
            "values change": self.values_change,
            "trust roots change": self.roots_change,
            "certificate of another CA": self.certificate_rotates,
            "overload of both replicas": self.overload,
            "SIGTERM of a replica": self.terminated,
            "SIGKILL of a replica": self.killed,
            "no fault, at the end": self.quiet,
        }.items():
            if fault != self.api_server_restarts or self.policy in self.extent.restarts:
                steps.run(name, self.under_load, name, fault)
        steps.run("every pod exists, with one sidecar at most", self.audit)

    def under_load(self, name, fault):
        """Makes a fault while pods are created; at the end all pods of the Deployment must exist."""
        before, phase = self.settings(), Phase(name)
        self.phases.append(phase)
        self.creators.enter(phase)
        self.scale(len(self.phases) * self.extent.replicas)
        note = fault(phase)
        self.creators.wait_for(self.extent.pods)
        self.count_replicas(phase)
        self.check(phase, before, self.settings())
        return note

    def check(self, phase, before, after):
        """Fails if a fault had an effect that it must not have."""
        is_killed = phase.name.startswith("SIGKILL")
        if phase.uninjected and not (is_killed and self.policy == "Ignore"):
            raise Failure(f"pods without sidecar: {phase.uninjected[:3]} of {phase.created}")
        if phase.refused and not is_killed:
            raise Failure(f"{phase.refused} calls of the webhook failed: {phase.examples}")
        if phase.unreachable and not phase.name.startswith("API server: stopped"):
            raise Failure(f"{phase.unreachable} creations not answered: {phase.examples}")
        expect("whether settings changed", phase.name.endswith("change"), before != after)
        expect("settings that are neither old nor new", set(), phase.settings - {before, after})

    # --- the faults ---

    def quiet(self, _):
        pass

    def api_server_restarts(self, _):
        begin = time.monotonic()
        self.pair.api_server.stop()
        stopped = time.monotonic()
        self.pair.api_server.start()
        self.wait_for_api_server()
        ready = [replica.is_ready() for replica in self.pair.replicas]
        expect("whether the replicas are ready", [True, True], ready)
        return f"ended after {stopped - begin:.1f} s, back {time.monotonic() - stopped:.1f} s later"

    def api_server_hangs(self, _):
        known = review(pod("known"), self.namespace)
        deadline, asked = time.monotonic() + self.extent.hung_seconds, 0
        self.pair.api_server.hang()
        try:
            while time.monotonic() < deadline:
                for replica in self.pair.replicas:
                    answer, _ = ask(replica.target(self.pair.authorities[-1]), known)
                    verdict = answer["response"]["auditAnnotations"]["verdict"]
                    expect("the verdict while it hangs", "injected", verdict)
                    asked += 1
                time.sleep(0.1)
        finally:
            self.pair.api_server.resume()
        self.wait_for_api_server()
        return f"for {self.extent.hung_seconds} s; {asked} reviews meanwhile, all injected"

    def wait_for_api_server(self):
        path = "/readyz"
        poll(path, lambda: expect(path, 200, self.pair.api.call("GET", path).status))

    def values_change(self, _):
        self.pair.values.reverse()
        self.pair.rewrite("config", {"values": self.pair.values[0]}, "config")

    def roots_change(self, _):
        self.pair.roots.reverse()
        self.pair.rewrite("roots", self.pair.bundle(0), "config")

    def certificate_rotates(self, _):
        """The API server trusts both CAs before the first replica has the new certificate."""
        pair = self.pair
        pair.authorities.append(Authority(pair.folder / f"ca-{len(pair.authorities)}"))
        pair.configure(pair.authorities[-2:])
        pair.rewrite("tls", pair.secret(), "tls")
        pair.configure(pair.authorities[-1:])
        for replica in pair.replicas:
            ask(replica.target(pair.authorities[-1]), review(pod("new"), self.namespace))

    def overload(self, _):
        """A flood uses up connections and requests: reviews of other clients are answered."""
        half = review(pod("half"), self.namespace)
        floods = [Flood(replica, self.pair.authorities[-1], half, MAX_REQUESTS)
                  for replica in self.pair.replicas]

        def total(of):
            return sum(of(flood) for flood in floods)

        before = total(Flood.refused_requests)
        try:
            for _ in range(self.extent.floods):
                for flood in floods:
                    flood.begin(MAX_CONNECTIONS)
                enough = total(Flood.answered) + self.extent.threads
                wait_until("reviews answered", lambda: total(Flood.answered) >= enough)
                for flood in floods:
                    statuses = set(flood.end())
                    expect("unexpected statuses of half reviews", set(), statuses - {200, 503})
                self.creators.finish()
        finally:
            for flood in floods:
                flood.close()
        expect("requests refused beside a flood", 0, total(Flood.refused_requests) - before)
        connections = total(Flood.refused_connections)
        return (f"floods: {self.extent.floods}; all reviews of other connections answered, "
                f"{connections} connections answered 503 or closed")

    def terminated(self, phase):
        balancer = self.pair.balancer
        with self.creators.faster(self.extent.short_pause):
            index, replica = self.busiest(phase)
            begin = time.monotonic()
            expect("the exit code", 0, replica.stop(signal.SIGTERM))
            ended = time.monotonic() - begin
            balancer.wait_for(index, False)
        ready = replica.start()
        balancer.wait_for(index, True)
        return f"ended after {ended:.1f} s, ready again after {ready:.2f} s"

    def killed(self, phase):
        balancer = self.pair.balancer
        with self.creators.faster(self.extent.short_pause):
            index, replica = self.busiest(phase)
            in_progress = sum(creation is not None for creation in self.creators.busy_with)
            begin = time.monotonic()
            replica.kill()
            balancer.wait_for(index, False)
            end = time.monotonic()
        replica.start()
        balancer.wait_for(index, True)
        self.count_replicas(phase)
        late = [each for each in phase.uninjected if each[0] > end]
        expect("pods without sidecar after the replica was out of rotation", [], late)
        begun = sum(begin <= each <= end for each in phase.begins)
        return (f"out of rotation after {end - begin:.1f} s; {in_progress} creations in progress "
                f"at the kill, {begun} begun until then; without sidecar {len(phase.uninjected)}, "
                f"refused {phase.refused}")

    def busiest(self, phase):
        """The replica that gets most reviews, because connections stay where they are."""
        def reviews():
            return [replica.metric("injectd_reviews_total") for replica in self.pair.replicas]

        before = reviews()
        self.creators.wait_for(phase.created + 2 * self.extent.threads)
        more = [after - then for after, then in zip(reviews(), before)]
        index = more.index(max(more))
        return index, self.pair.replicas[index]

    # --- parts of the steps ---

    def register(self):
        self.pair.register(self.policy, self.namespace)
        self.pair.control_plane.create(deployment("web", 0), self.namespace)

    def settings(self):
        return settings(self.pair.control_plane.expect_injected(self.namespace))

    def scale(self, replicas):
        path = collection("apps/v1", "Deployment", self.namespace) + "/web/scale"

        def attempt():
            found = self.pair.api.call("GET", path).body
            found["spec"]["replicas"] = replicas
            answer = self.pair.api.call("PUT", path, json.dumps(found))
            expect("the status of the Deployment", 200, answer.status)

        poll("the Deployment is scaled", attempt)

    def count_replicas(self, phase):
        """Counts the Deployment's pods of this phase once all exist."""
        path = collection("v1", "Pod", self.namespace) + "?labelSelector=app%3Dweb"
        expected = len(self.phases) * self.extent.replicas

        def attempt():
            items = self.pair.api.call("GET", path).body["items"]
            expect("the number of the Deployment's pods", expected, len(items))
            return items

        for item in poll("the Deployment's pods", attempt):
            uid, item["kind"] = item["metadata"]["uid"], "Pod"  # Lists leave it out.
            if uid in self.seen:
                continue
            self.seen.add(uid)
            before = phase.injected
            # The begin of the controller's creation is unknown.
            phase.count(item, 0)
            if phase.injected > before:
                expect("the labels", {"deployment": "web"}, owner_labels(item))

    def audit(self):
        """Compares the stored pods with the counts of this program and of the API server."""
        self.creators.stop()
        uninjected = {name for phase in self.phases for *_, name in phase.uninjected}
        numbers, without, count, rest = set(), set(), 0, ""
        while rest is not None:
            path = collection("v1", "Pod", self.namespace) + f"?limit=200&continue={rest}"
            found = self.pair.api.call("GET", path).body
            for item in found["items"]:
                item["kind"], count = "Pod", count + 1
                numbers.add(item["metadata"]["labels"].get(NUMBER))
                sidecars = names(item, "initContainers").count("linkerd-proxy")
                if sidecars == 0:
                    without.add(item["metadata"]["name"])
                elif sidecars > 1:
                    raise Failure(f"{sidecars} sidecars in {item['metadata']['name']}")
            rest = found["metadata"].get("continue")
        missing = {str(number) for number in range(self.creators.begun)} - numbers
        expect("creations without a pod", set(), missing)
        expect("uncounted stored pods without sidecar", set(), without - uninjected)
        text = self.pair.api.call("GET", "/metrics").body["message"]
        failed_open = metric(text, "apiserver_admission_webhook_fail_open_count", type="admit")
        expect("the API server's count of calls that failed open", len(without), failed_open)
        for replica in self.pair.replicas:
            expect("/ready", True, replica.is_ready())
            poll("the watch", lambda: expect(
                "whether it fails", 0, replica.metric("injectd_watch_failing")))
            expect("bugs", 0, replica.metric("injectd_panics_total"))
        unanswered = count - self.creators.begun - len(self.seen)
        return (f"{count} stored, {len(without)} without sidecar, as many as failed open; "
                f"{unanswered} of them created twice, because the first answer was lost")

    def table(self):
        rows = [COLUMNS] + [phase.row() for phase in self.phases]
        total = ["all"] + [sum(row[column] for row in rows[1:]) for column in range(1, 6)] + [""]
        widths = [max(len(str(row[column])) for row in rows) for column in range(len(COLUMNS))]
        lines = (f"  {row[0]:{widths[0]}}" + "".join(
            f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:]))
            for row in rows + [total])
        return "\n".join(lines)


def logs(pair):
    for index, replica in enumerate(pair.replicas):
        if replica.log.exists():
            lines = replica.log.read_text().splitlines()
            lines = [line for line in lines if "level=info" not in line]
            print(f"the end of replica {index}'s log:", *lines[-LOG_LINES:], sep="\n  ")
    lines = pair.api_server.log.read_text(errors="replace").splitlines()
    lines = [line for line in lines if WEBHOOK_FAILED in line.lower()]
    print("failed calls in the API server's log:", *lines[-LOG_LINES:], sep="\n  ")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--short", action="store_true", help="fewer pods, in less than 90 s")
    parser.add_argument("--policy", action="append", choices=["Fail", "Ignore"])
    args = parser.parse_args()
    stop_in_time(TOTAL_SECONDS)
    steps, extent = Steps(), Extent(args.short)
    with tempfile.TemporaryDirectory() as folder:
        folder, lab = Path(folder), Path(os.environ["KUBECONFIG"]).parent
        pair = Pair(os.environ["INJECTD"], Api(os.environ["KUBECONFIG"], folder), folder, lab, {
            "INJECTD_MAX_CONNECTIONS": str(MAX_CONNECTIONS),
            "INJECTD_MAX_REQUESTS": str(MAX_REQUESTS),
        })
        try:
            steps.run("two replicas behind a Service", pair.start)
            for policy in args.policy or ["Fail", "Ignore"]:
                if steps.failed:
                    break
                run = Run(pair, policy, extent)
                try:
                    run.all(steps)
                finally:
                    run.creators.give_up()
                    print(f"failurePolicy {policy}:\n{run.table()}", flush=True)
        finally:
            pair.clean_up()
            if steps.failed:
                logs(pair)
    return steps.end()


if __name__ == "__main__":
    sys.exit(main())
