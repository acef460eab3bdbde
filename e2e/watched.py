"""End-to-end scenarios: injectd in Linkerd's place in a cluster that it watches. Started by run.sh.

It runs as `proxy-injector`, as a ServiceAccount with exactly Linkerd's ClusterRole; the API server
calls it by its Service. Needs a kube-lab of its own: its API server is stopped with a signal, and
the audit log tells what the ServiceAccount asked. Each scenario prints a line `ok …`, or `FAILED …`
with what was expected and what was found.
"""

import argparse
import base64
import concurrent.futures
import json
import os
import signal
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

from audit_log import events
from client import Connection, Target, get, metric
from cluster import ENABLED, Api, collection, deployment, names, pod, service
from dropin import patch_of, review
from expect import Failure, expect, expect_in, poll
from injectd import WEBHOOK_NAME, ProxyInjector
from manifest import documents
from relay import Relay
from steps import Steps, stop_in_time

TOTAL_SECONDS = 120
HERE = Path(__file__).parent
# Not that of scenarios.py: its Service may still be there.
IP = "127.100.0.10"
CONTROL_PLANE = "linkerd"
ACCOUNT = "linkerd-proxy-injector"
USER = f"system:serviceaccount:{CONTROL_PLANE}:{ACCOUNT}"
HOST = f"{ACCOUNT}.{CONTROL_PLANE}.svc"
REPLICAS = 20
AT_ONCE_SECONDS = 0.5
LABEL = "linkerd.io/proxy-"
SELECTED = {"e2e": "watched"}


class Watched:
    """What all scenarios share."""

    # Where pods are injected.
    namespace = "annotated"
    # More of proxy-injector's.
    arguments = ()

    def __init__(self, binary, api, folder, audit_log):
        self.binary, self.api, self.folder, self.audit_log = binary, api, folder, audit_log
        self.injectd = self.relay = None

    def scenarios(self):
        return {
            "a ServiceAccount with Linkerd's ClusterRole": self.make_account,
            "without an API server it is not ready": self.unready,
            "it is ready once the API server is there": self.becomes_ready,
            "a namespace that the watch has not shown is asked for": self.watch_lags,
            "proxy-injector: the API server asks by service": self.serve,
            "pods of an annotated namespace are injected": self.annotated,
            "a namespace's setting is in its pods": self.setting,
            "pods are not injected once the annotation is gone": self.no_longer_annotated,
            "pods made at once in new namespaces are injected": self.new_namespaces,
            "a namespace is denied until it is there, then its pod is injected": self.appears,
            "a namespace made anew has its new annotations": self.made_anew,
            f"a Deployment's {REPLICAS} pods are labelled with it": self.deployment,
            "a bare ReplicaSet's pods are labelled with it": self.replica_set,
            "a bare Job's pod is labelled with it": self.job,
            "a CronJob's pod has no owner's label": self.cron_job,
            "a forged uid leads to no Deployment": self.forged,
            "a pod of no namespace is denied in the API server's words": self.no_namespace,
            "the API server hangs: what is known is answered, else 503": self.hung,
            "the API server is back: all is well without a restart": self.back,
            "the ServiceAccount asked for nothing else, nothing was forbidden": self.asked,
            "SIGTERM ends it with exit code 0": self.terminated,
        }

    # --- start ---

    def make_account(self):
        self.make_namespace(CONTROL_PLANE)
        [role] = documents((HERE / "cluster-role.yaml").read_text())
        self.expect_upstream(role)
        account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": CONTROL_PLANE}
        self.create({"apiVersion": "v1", "kind": "ServiceAccount",
                     "metadata": {"name": ACCOUNT}}, CONTROL_PLANE)
        self.create(role)
        group = "rbac.authorization.k8s.io"
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": role["metadata"]["name"]}
        self.create({"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding",
                     "metadata": {"name": role["metadata"]["name"]},
                     "roleRef": reference, "subjects": [account]})

    def expect_upstream(self, role):
        """Compares with the manifests of Linkerd's charts, if they are there."""
        corpus = Path(os.environ.get("INJECTD_CORPUS") or "/nonexistent")
        for path in sorted(corpus.glob("manifests/*.yaml")):
            [theirs] = [it for it in documents(path.read_text()) if it["kind"] == "ClusterRole"]
            expect(f"the rules of {path.name}", theirs["rules"], role["rules"])

    def kubeconfig(self, server):
        """A kubeconfig of the ServiceAccount with a new token."""
        path = f"{collection('v1', 'ServiceAccount', CONTROL_PLANE)}/{ACCOUNT}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": 3600}}
        token = self.api.call("POST", path, json.dumps(request)).created()["status"]["token"]
        ca = base64.b64encode(self.api.ca.encode()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": {"server": server,
                                                     "certificate-authority-data": ca}}],
            "users": [{"name": ACCOUNT, "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": ACCOUNT}}],
            "current-context": "e2e",
        }
        file = self.folder / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(json.dumps(config))
        return file

    def start(self, server):
        self.injectd = ProxyInjector(self.binary, self.folder, HOST, IP, self.kubeconfig(server))
        self.injectd.command += self.arguments
        self.target = Target(self.injectd.port, HOST, str(self.folder / "ca.crt"))
        self.context = self.target.context()
        self.injectd.start()

    def unready(self):
        address = urllib.parse.urlsplit(self.api.server)
        self.relay = Relay((address.hostname, address.port))
        self.start(f"https://{self.relay.host}:{self.relay.port}")
        poll("the log", lambda: self.expect_logged("cannot watch namespaces"))
        expect("/ping", (200, "pong\n"), self.admin("/ping"))
        expect("/ready", (500, "not ready\n"), self.admin("/ready"))
        self.expect_refused(self.ask(CONTROL_PLANE, pod("early")))

    def becomes_ready(self):
        begin = time.monotonic()
        self.relay.open()
        self.wait_until_ready()
        return f"after {time.monotonic() - begin:.1f} s"

    def wait_until_ready(self):
        poll("/ready", lambda: expect("/ready", (200, "ok\n"), self.admin("/ready")))
        poll("the log", lambda: self.expect_logged("caches synced"))

    def watch_lags(self):
        """Nothing comes through the watch: whoever is asked for what is new is the API server."""
        connections = self.relay.hold()
        self.make_namespace("lagging", ENABLED)
        before = self.misses("namespaces")
        verdicts = [self.verdict("lagging", pod("at-once")) for _ in range(3)]
        expect("the verdicts", ["injected"] * 3, verdicts)
        expect("how often it was not known", 1, self.misses("namespaces") - before)
        self.relay.release()
        self.injectd.kill()
        self.relay.close()
        return f"{connections} connections held"

    def serve(self):
        self.start(self.api.server)
        self.wait_until_ready()
        port = {"port": self.injectd.port}
        self.create(service(ACCOUNT, {"clusterIP": IP, "ports": [port]}), CONTROL_PLANE)
        reference = {"name": ACCOUNT, "namespace": CONTROL_PLANE, **port}
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods", "services"], "scope": "Namespaced"}
        webhook = {
            "name": WEBHOOK_NAME,
            "clientConfig": {"service": reference,
                             "caBundle": base64.b64encode(self.injectd.ca).decode()},
            "rules": [rule],
            "namespaceSelector": {"matchLabels": SELECTED},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 10,
        }
        self.create({"apiVersion": "admissionregistration.k8s.io/v1",
                     "kind": "MutatingWebhookConfiguration",
                     "metadata": {"name": ACCOUNT}, "webhooks": [webhook]})
        self.make_namespace(self.namespace, ENABLED)
        poll("the webhook acts", lambda: self.expect_injected(self.namespace))

    # --- namespaces ---

    def annotated(self):
        self.expect_injected("annotated")
        opted_out = pod("opted-out", {"linkerd.io/inject": "disabled"})
        self.expect_left_alone("annotated", opted_out)

    def setting(self):
        self.annotate("annotated", {**ENABLED, "config.linkerd.io/proxy-log-level": "trace"})
        poll("the annotation counts", lambda: expect(
            "the log level", "trace", log_level(self.expect_injected("annotated"))[:5]))

    def no_longer_annotated(self):
        self.annotate("annotated", {})
        poll("the annotation counts no more", lambda: self.expect_left_alone("annotated"))
        self.annotate("annotated", ENABLED)
        poll("the annotation counts again", lambda: self.expect_injected("annotated"))

    def new_namespaces(self):
        before, count = self.misses("namespaces"), 10
        for index in range(count):
            self.make_namespace(f"new-{index}", ENABLED)
            self.expect_injected(f"new-{index}")
        return f"{self.misses('namespaces') - before} of {count} were not known yet"

    def appears(self):
        """Asked all the time while the namespace is made: denied, denied, injected."""
        has_begun, denied = threading.Event(), []

        def ask_until_allowed():
            while not (answer := self.answer("appearing", pod("at-once")))["allowed"]:
                denied.append(answer["status"]["message"])
                has_begun.set()
            return answer["auditAnnotations"]["verdict"]

        with concurrent.futures.ThreadPoolExecutor() as pool:
            verdict = pool.submit(ask_until_allowed)
            if not has_begun.wait(AT_ONCE_SECONDS * 10):
                raise Failure("nothing was denied")
            self.make_namespace("appearing", ENABLED)
            expect("the verdict", "injected", verdict.result())
        expect_in("the denials", 'namespaces "appearing" not found', denied[-1])
        return f"denied {len(denied)} times before"

    def made_anew(self):
        path = f"{collection('v1', 'Namespace')}/new-0"
        expect("the deletion", 200, self.api.call("DELETE", path).status)
        gone = lambda: expect("the status", 404, self.api.call("GET", path).status)
        poll("the namespace is gone", gone)
        poll("pods are denied", lambda: self.expect_not_found("new-0"))
        self.make_namespace("new-0", {"config.linkerd.io/proxy-log-level": "trace"})
        self.expect_left_alone("new-0")
        body = self.expect_injected("new-0", pod("asking", ENABLED))
        expect("the log level", "trace", log_level(body)[:5])

    def no_namespace(self):
        self.expect_not_found("nowhere")

    # --- workloads ---

    def deployment(self):
        workload = deployment("web", 0)
        del workload["spec"]["template"]["metadata"]["annotations"]
        self.create(workload, "annotated")
        before = self.misses("owners")
        self.scale("web", REPLICAS)
        self.expect_pods("web", REPLICAS, {"deployment": "web"})
        return f"its ReplicaSet was asked for by {self.misses('owners') - before} reviews"

    def replica_set(self):
        workload = {**deployment("bare", 3), "kind": "ReplicaSet"}
        self.create(workload, "annotated")
        self.expect_pods("bare", 3, {"replicaset": "bare"})

    def job(self):
        self.create(job("once"), "annotated")
        self.expect_pods("once", 1, {"job": "once"})

    def cron_job(self):
        """The Job is made as `kubectl create job --from` does: nobody waits for a minute."""
        workload = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
                    "spec": {"schedule": "0 0 1 1 *", "suspend": True,
                             "jobTemplate": {"spec": job("nightly")["spec"]}}}
        made = job("nightly-1", "nightly")
        made["metadata"]["ownerReferences"] = [owner(self.create(workload, "annotated"))]
        self.create(made, "annotated")
        self.expect_pods("nightly", 1, {})

    def forged(self):
        [replica_set] = self.of_app("apps/v1", "ReplicaSet", "web")
        name = replica_set["metadata"]["name"]
        theirs = owner({**replica_set, "apiVersion": "apps/v1", "kind": "ReplicaSet"})
        forged = {**theirs, "uid": "00000000-0000-4000-8000-000000000000"}
        for reference, labels in (forged, {"replicaset": name}), (theirs, {"deployment": "web"}):
            manifest = pod("forged")
            manifest["metadata"]["ownerReferences"] = [reference]
            expect("the labels", labels, owner_labels(self.expect_injected("annotated", manifest)))
        self.scale("web", REPLICAS + 1)
        self.expect_pods("web", REPLICAS + 1, {"deployment": "web"})

    # --- the API server hangs ---

    def hung(self):
        self.signal_api_server(signal.SIGSTOP)
        before = self.refused()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            unknown = [pool.submit(self.timed, f"unknown-{timeout}", pod("late"), timeout)
                       for timeout in (3, 10)]
            derived = pool.submit(self.timed, "annotated", self.replica("hung-6f7", "6f7"), 10)
            known = [self.timed("annotated", pod("known"), 10) for _ in range(50)]
            unknown, derived = [each.result() for each in unknown], derived.result()
        slowest = max(seconds for _, _, seconds in known)
        expect("the states of known namespaces", {200}, {answer.status for answer, _, _ in known})
        if slowest > AT_ONCE_SECONDS:
            raise Failure(f"the slowest review of a known namespace took {slowest:.1f} s")
        for answer, timeout, seconds in unknown:
            self.expect_refused(answer)
            if seconds > timeout:
                raise Failure(f"503 after {seconds:.1f} s, later than its timeout of {timeout} s")
        refused = {why: count - before[why] for why, count in self.refused().items()}
        expect("the number of refused requests", 2, sum(refused.values()))
        answer, _, seconds = derived
        expect("the status of a pod of an unknown owner", 200, answer.status)
        patch = {it["path"]: it.get("value") for it in patch_of(json.loads(answer.body))}
        expect("the label", "hung", patch.get("/metadata/labels/linkerd.io~1proxy-deployment"))
        after = ", ".join(f"{seconds:.1f} s of {timeout}" for _, timeout, seconds in unknown)
        return (f"known: slowest {slowest * 1000:.0f} ms; 503 after {after}, by reason {refused}; "
                f"owner told by its name after {seconds:.1f} s")

    def back(self):
        self.signal_api_server(signal.SIGCONT)
        poll("the API server", lambda: self.expect_injected("annotated"))
        self.expect_not_found("unknown-3")
        self.make_namespace("after", ENABLED)
        self.expect_injected("after")
        self.annotate("annotated", {**ENABLED, "config.linkerd.io/proxy-log-level": "debug"})
        poll("the annotation counts", lambda: expect(
            "the log level", "debug", log_level(self.expect_injected("annotated"))[:5]))
        self.scale("web", REPLICAS + 2)
        self.expect_pods("web", REPLICAS + 2, {"deployment": "web"})
        expect("/ready", (200, "ok\n"), self.admin("/ready"))
        expect("whether the watch fails", 0, metric(self.metrics(), "injectd_watch_failing"))
        expect("injectd's exit code", None, self.injectd.process.poll())

    def signal_api_server(self, how):
        file = Path(os.environ["KUBECONFIG"]).parent / "kube-apiserver.pid"
        os.kill(int(file.read_text()), how)

    # --- the end ---

    def asked(self):
        found = events(self.audit_log, f'"username":"{USER}"')
        codes = {event.get("responseStatus", {}).get("code") for event in found}
        requests = {(event["verb"], event.get("objectRef", {}).get("resource", event["requestURI"]))
                    for event in found}
        expect("what was asked for", {
            ("list", "namespaces"), ("watch", "namespaces"), ("get", "namespaces"),
            ("get", "replicasets"), ("get", "jobs"), ("get", "deployments"), ("get", "cronjobs"),
            ("create", "events"), ("patch", "events"),
        }, requests)
        if forbidden := codes & {401, 403}:
            raise Failure(f"answered {forbidden}")
        return f"{len({event['auditID'] for event in found})} requests"

    def terminated(self):
        expect("the exit code", 0, self.injectd.stop(signal.SIGTERM))

    def clean_up(self):
        self.signal_api_server(signal.SIGCONT)
        if self.injectd:
            self.injectd.kill()
        if self.relay:
            self.relay.close()

    # --- what they are made of ---

    def create(self, manifest, namespace=None):
        return self.api.create(manifest, namespace).created()

    def make_namespace(self, name, annotations=None):
        """A namespace in which pods can be made at once."""
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": name, "annotations": annotations or {}, "labels": SELECTED}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        status = self.api.create(account, name).status
        # The controller manager may have been faster.
        expect_in("the status of its service account", status, (201, 409))

    def annotate(self, name, annotations):
        path = f"{collection('v1', 'Namespace')}/{name}"

        def attempt():
            namespace = self.api.call("GET", path).body
            namespace["metadata"]["annotations"] = annotations
            answer = self.api.call("PUT", path, json.dumps(namespace))
            expect(f"the status of {name}", 200, answer.status)

        poll("the namespace is updated", attempt)

    def scale(self, name, replicas):
        path = collection("apps/v1", "Deployment", "annotated") + f"/{name}/scale"

        def attempt():
            found = self.api.call("GET", path).body
            found["spec"]["replicas"] = replicas
            answer = self.api.call("PUT", path, json.dumps(found))
            expect(f"the status of {name}", 200, answer.status)

        poll("the Deployment is scaled", attempt)

    def of_app(self, version, kind, name):
        path = collection(version, kind, self.namespace) + f"?labelSelector=app%3D{name}"
        return self.api.call("GET", path).body["items"]

    def expect_pods(self, app, count, labels):
        """Fails unless the controllers make so many pods, all with a sidecar and these labels."""

        def attempt():
            items = self.of_app("v1", "Pod", app)
            expect("the number of pods", count, len(items))
            return items

        for item in poll("the controllers make pods", attempt):
            item["kind"] = "Pod"  # Lists leave it out.
            expect_in("the init containers", "linkerd-proxy", names(item, "initContainers"))
            expect("the labels", labels, owner_labels(item))

    def expect_injected(self, namespace, manifest=None):
        body = self.api.create(manifest or pod("tried"), namespace, dry_run=True).created()
        expect_in("the init containers", "linkerd-proxy", names(body, "initContainers"))
        return body

    def expect_left_alone(self, namespace, manifest=None):
        body = self.api.create(manifest or pod("tried"), namespace, dry_run=True).created()
        expect("the init containers", [], names(body, "initContainers"))

    def expect_not_found(self, namespace):
        answer = self.answer(namespace, pod("lost"))
        expect("whether it is allowed", False, answer["allowed"])
        expect("the message", f'namespaces "{namespace}" not found', answer["status"]["message"])

    def expect_refused(self, answer):
        expect("the status", 503, answer.status)
        expect("Retry-After", "1", answer.retry_after)

    def replica(self, owner_name, template_hash):
        """A pod of a ReplicaSet that nobody has heard of."""
        manifest = pod("replica")
        manifest["metadata"]["labels"] = {"pod-template-hash": template_hash}
        manifest["metadata"]["ownerReferences"] = [owner({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": owner_name, "uid": "00000000-0000-4000-8000-000000000001"}})]
        return manifest

    def ask(self, namespace, manifest, timeout_seconds=10):
        """Asks injectd as the API server does, over a connection of its own."""
        connection = Connection(self.target, self.context, IP)
        connection.send(self.target.post(review(manifest, namespace), timeout_seconds))
        answer = connection.receive()
        connection.close()
        return answer

    def timed(self, namespace, manifest, timeout_seconds):
        begin = time.monotonic()
        answer = self.ask(namespace, manifest, timeout_seconds)
        return answer, timeout_seconds, time.monotonic() - begin

    def answer(self, namespace, manifest):
        answer = self.ask(namespace, manifest)
        expect(f"the status of a review ({answer.body[:80]!r})", 200, answer.status)
        return json.loads(answer.body)["response"]

    def verdict(self, namespace, manifest):
        return self.answer(namespace, manifest)["auditAnnotations"]["verdict"]

    def admin(self, path):
        return get(self.injectd.admin_port, path, AT_ONCE_SECONDS * 10, IP)

    def metrics(self):
        return self.admin("/metrics")[1]

    def misses(self, cache):
        return metric(self.metrics(), "injectd_cache_misses_total", cache=cache)

    def refused(self):
        text = self.metrics()
        return {why: metric(text, "injectd_requests_refused_total", reason=why)
                for why in ("cluster", "deadline")}

    def expect_logged(self, text):
        expect_in("the log", text, self.injectd.log.read_text())


def owner(body):
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "controller": True,
            "name": body["metadata"]["name"], "uid": body["metadata"]["uid"]}


def job(name, app=None):
    template = {"metadata": {"labels": {"app": app or name}},
                "spec": pod(name, restartPolicy="Never")["spec"]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"template": template}}


def owner_labels(body):
    """The labels that name a pod's workload, by its kind."""
    labels = body["metadata"].get("labels", {}).items()
    return {key.removeprefix(LABEL): value for key, value in labels if key.startswith(LABEL)}


def log_level(body):
    [proxy] = [it for it in body["spec"]["initContainers"] if it["name"] == "linkerd-proxy"]
    [level] = [it["value"] for it in proxy["env"] if it["name"] == "LINKERD2_PROXY_LOG"]
    return level


def run(of_class, seconds, description):
    """Runs all scenarios of a class; gives the exit code."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--audit-log", type=Path, required=True)
    args = parser.parse_args()
    stop_in_time(seconds)
    steps = Steps()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        api = Api(os.environ["KUBECONFIG"], folder)
        watched = of_class(os.environ["INJECTD"], api, folder, args.audit_log)
        try:
            for name, scenario in watched.scenarios().items():
                needed = scenario in (watched.make_account, watched.serve)
                if not steps.run(name, scenario) and needed:
                    print("passed over: what depends on it")
                    break
        finally:
            watched.clean_up()
        if steps.failed and watched.injectd:
            print("the end of injectd's log:", sep="\n  ",
                  *(line[:300] for line in watched.injectd.log.read_text().splitlines()[-20:]))
    return steps.end()


if __name__ == "__main__":
    sys.exit(run(Watched, TOTAL_SECONDS, __doc__))
