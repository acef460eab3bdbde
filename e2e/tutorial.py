"""What a tutorial shows, seen through a real API server: an application gets its sidecars.

A namespace is annotated, a Deployment applied; its pods, the event on their owner, metrics and the
debug log tell what happened. Then the opposite: an application that opted out. Started by run.sh.
"""

import sys
import urllib.parse

from client import metric
from cluster import collection, deployment
from expect import Failure, expect, poll
from injectd import ProxyInjector
from watched import ACCOUNT, CONTROL_PLANE, Watched, owner, run

TOTAL_SECONDS = 60
NAMESPACE = "tutorial"
REPLICAS = 2
SKIPPED = (
    "Linkerd sidecar proxy injection skipped: "
    'pod has the annotation "linkerd.io/inject:disabled"'
)


class Tutorial(Watched):
    namespace = NAMESPACE
    arguments = ("-log-level=debug",)

    def scenarios(self):
        return {
            "proxy-injector -log-level=debug": self.serve,
            "an application in an annotated namespace": self.apply,
            f"{REPLICAS} pods with a sidecar": self.pods,
            f"an event with count {REPLICAS} on the Deployment, none on its ReplicaSet": self.event,
            "metrics tell of it": self.told_by_metrics,
            "the log tells of it, and of the patch": self.told_by_log,
            "an application that opted out is told why": self.opted_out,
            "a dry run leaves no event": self.dry_run,
            "an owner that is not there gets no event": self.no_owner,
        }

    def start(self, server):
        """The account may be there already."""
        if self.api.call("GET", f"{collection('v1', 'Namespace')}/{CONTROL_PLANE}").status == 404:
            self.make_account()
        super().start(server)

    def serve(self):
        for kind in "MutatingWebhookConfiguration", "Service":
            version = "v1" if kind == "Service" else "admissionregistration.k8s.io/v1"
            namespace = CONTROL_PLANE if kind == "Service" else None
            self.api.call("DELETE", f"{collection(version, kind, namespace)}/{ACCOUNT}")
        super().serve()

    def apply(self):
        self.web = self.create(unannotated("web", REPLICAS), NAMESPACE)

    def pods(self):
        self.expect_pods("web", REPLICAS, {"deployment": "web"})

    def event(self):

        def attempt():
            found = self.the_event(self.web)
            expect("the count", REPLICAS, found["count"])
            return found

        found = poll("the event counts all pods", attempt)
        expect("type and reason", ("Normal", "Injected"), (found["type"], found["reason"]))
        expect("the message", "Linkerd sidecar proxy injected", found["message"])
        [replica_set] = self.of_app("apps/v1", "ReplicaSet", "web")
        expect("the ReplicaSet's events", [], self.injector_events("ReplicaSet", replica_set))
        return f"{found['reason']}: {found['message']} (x{found['count']})"

    def told_by_metrics(self):
        text = self.metrics()
        responses = metric(text, "proxy_inject_admission_responses_total", owner_kind="deployment",
                           skip="false", annotation_at="namespace")
        expect("Linkerd's counter of responses", REPLICAS, responses)
        sent = metric(text, "injectd_events_total", result="sent")
        folded = metric(text, "injectd_events_total", result="folded")
        if not 1 <= sent <= REPLICAS:
            raise Failure(f"{sent} writes for {REPLICAS} pods")
        return f"{responses:.0f} responses, {sent:.0f} writes, {folded:.0f} folded"

    def told_by_log(self):
        [first, *_] = self.of_app("v1", "Pod", "web")
        name = f"pod/{first['metadata']['generateName']}"
        for line in ("level=info msg=\"received admission review request ", f"received {name}",
                     f"injection patch generated for: {name}", "level=debug"):
            poll("the log", lambda line=line: self.expect_logged(line))

    def opted_out(self):
        web = unannotated("plain", 1)
        web["spec"]["template"]["metadata"]["annotations"] = {"linkerd.io/inject": "disabled"}
        made = self.create(web, NAMESPACE)
        found = poll("the event", lambda: self.the_event(made))
        expect("reason and message", ("InjectionSkipped", SKIPPED),
               (found["reason"], found["message"]))
        return found["message"]

    def dry_run(self):
        made = self.create(unannotated("dry", 0), NAMESPACE)
        manifest = self.owned_pod(owner({"apiVersion": "apps/v1", "kind": "Deployment",
                                         "metadata": made["metadata"]}))
        self.expect_injected(NAMESPACE, manifest)
        self.api.create(manifest, NAMESPACE).created()
        found = poll("the event of the pod that was made", lambda: self.the_event(made))
        expect("the count, without the dry run", 1, found["count"])

    def no_owner(self):
        before = metric(self.metrics(), "injectd_events_total", result="no_object")
        forged = {"apiVersion": "apps/v1", "kind": "Deployment", "controller": True,
                  "name": "web", "uid": "00000000-0000-4000-8000-000000000000"}
        self.api.create(self.owned_pod(forged), NAMESPACE).created()
        poll("it is counted", lambda: expect("events without an object", before + 1, metric(
            self.metrics(), "injectd_events_total", result="no_object")))

    # --- what they are made of ---

    def the_event(self, about):
        """The injector's only event on a Deployment."""
        found = self.injector_events("Deployment", about)
        expect("the number of events", 1, len(found))
        return found[0]

    def owned_pod(self, reference):
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"generateName": "owned-", "ownerReferences": [reference]},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]}}

    def injector_events(self, kind, about):
        """Events as `kubectl describe` finds them, of the injector alone."""
        fields = {"kind": kind, "name": about["metadata"]["name"],
                  "namespace": NAMESPACE, "uid": about["metadata"]["uid"]}
        selector = ",".join(f"involvedObject.{key}={value}" for key, value in fields.items())
        query = urllib.parse.urlencode({"fieldSelector": selector})
        found = self.api.call("GET", f"{collection('v1', 'Event', NAMESPACE)}?{query}").body
        return [it for it in found["items"] if it["source"].get("component") == ACCOUNT]


def unannotated(name, replicas):
    workload = deployment(name, replicas)
    workload["spec"]["template"]["metadata"].pop("annotations", None)
    return workload


if __name__ == "__main__":
    sys.exit(run(Tutorial, TOTAL_SECONDS, __doc__))
