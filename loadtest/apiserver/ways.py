"""The ways of a pod through the API server: a namespace for each, by how its pods are injected."""

import base64
import json
import os
import re
import signal
import subprocess
from typing import NamedTuple

from cluster import collection
from control_plane import ACCOUNT, CONTROL_PLANE, IP, ControlPlane
from expect import Failure, expect, expect_same, poll
from policy import TOKEN_PATH, TOKEN_VOLUME, applied, policy
from posting import post
from servers import INJECTD as BINARY

ENABLED = {"linkerd.io/inject": "enabled"}
DISABLED = {"linkerd.io/inject": "disabled"}
BY_WEBHOOK, BY_POLICY = {"sidecar": "webhook"}, {"sidecar": "policy"}


class Way(NamedTuple):
    # Also the key of the way.
    namespace: str
    title: str
    labels: dict
    annotations: dict


NOTHING = Way("nothing", "no sidecar", {}, {})
AGAIN = Way("nothing-again", "no sidecar, again", {}, {})
INJECTD = Way("injectd", "injectd", BY_WEBHOOK, ENABLED)
POLICY = Way("policy", "policy", BY_POLICY, ENABLED)
# Two more to split the cost: only the call, and only the sidecar.
ALLOWED = Way("allowed", "injectd, only allows", BY_WEBHOOK, DISABLED)
COMPLETE = Way("complete", "sidecar in the request", {}, {})
COMPARED = [NOTHING, POLICY, INJECTD, AGAIN]
ALL = [*COMPARED, ALLOWED, COMPLETE]


class Site:
    """The control plane with injectd, the policy, all namespaces, and requests that create pods."""

    def __init__(self, api, folder, lab, reviewed):
        self.api, self.folder, self.lab = api, folder, lab
        self.control_plane = ControlPlane(api, folder)
        self.pod = as_created(reviewed["request"]["object"])
        self.sidecar = self.token_volume = None
        self.bodies, self.owners = {}, []

    def start(self):
        # It would delete pods beyond the replicas of their ReplicaSet, and nothing else needs it.
        stop(self.pid("kube-controller-manager"))
        self.control_plane.make_account()
        for way in ALL:
            self.make_namespace(way)
        self.make_webhook(self.control_plane.start())
        self.sidecar = self.operations()
        self.make_policy()
        self.bodies[COMPLETE.namespace] = self.complete()
        for way in POLICY, INJECTD:
            poll(f"{way.title} adds the sidecar", lambda way=way: self.expect_sidecar(way))

    @property
    def pids(self):
        return {"apiserver": self.pid("kube-apiserver"), "injectd": self.control_plane.injectd.pid,
                "etcd": self.pid("etcd")}

    def pid(self, program):
        """The process id of a program of kube-lab."""
        return int((self.lab / f"{program}.pid").read_text())

    def make_namespace(self, way):
        """Creates a namespace, and the Deployment and ReplicaSet that own its pods."""
        name, create = way.namespace, self.control_plane.create
        create({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": name, "annotations": way.annotations, "labels": way.labels}})
        create({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": "default"}}, name)
        labels = self.pod["metadata"]["labels"]
        template = {"metadata": {"labels": labels}, "spec": self.pod["spec"]}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        replica_set = self.pod["metadata"]["generateName"].rstrip("-")
        owner = None
        deployment = replica_set.rpartition("-")[0]
        for kind, owned in ("Deployment", deployment), ("ReplicaSet", replica_set):
            made = create({"apiVersion": "apps/v1", "kind": kind, "spec": spec, "metadata": {
                "name": owned, "ownerReferences": [owner] if owner else []}}, name)
            if way == NOTHING:
                self.owners.append(made)
            owner = {"apiVersion": "apps/v1", "kind": kind, "name": owned, "controller": True,
                     "uid": made["metadata"]["uid"]}
        metadata = {**self.pod["metadata"], "ownerReferences": [owner]}
        self.bodies[way.namespace] = {**self.pod, "metadata": metadata}

    def make_webhook(self, ca):
        """Registers the webhook as Linkerd's chart does, but with failurePolicy Fail."""
        port = {"port": int(self.control_plane.injectd.address.rpartition(":")[2])}
        self.control_plane.create({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": ACCOUNT},
            "spec": {"clusterIP": IP, "ports": [port]}}, CONTROL_PLANE)
        webhook = {
            "name": "linkerd-proxy-injector.linkerd.io",
            "clientConfig": {
                "service": {"name": ACCOUNT, "namespace": CONTROL_PLANE, **port},
                "caBundle": base64.b64encode(ca).decode(),
            },
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                       "resources": ["pods", "services"], "scope": "Namespaced"}],
            "namespaceSelector": {"matchLabels": BY_WEBHOOK},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 10,
        }
        self.control_plane.create({"apiVersion": "admissionregistration.k8s.io/v1",
                                   "kind": "MutatingWebhookConfiguration",
                                   "metadata": {"name": ACCOUNT}, "webhooks": [webhook]})

    def operations(self):
        """injectd's patch for the pod as a webhook receives it."""
        sent, name = self.bodies[NOTHING.namespace], NOTHING.namespace
        body = self.api.create(sent, name, dry_run=True).created()
        del body["metadata"]["managedFields"]
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": name, "annotations": ENABLED}}
        objects = self.folder / "objects.json"
        objects.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [
            namespace, *self.owners]}))
        run = subprocess.run([BINARY, "review", "--objects", objects],
                             input=review(body, name), capture_output=True)
        expect(f"the exit code of injectd review ({run.stderr.decode()})", 0, run.returncode)
        self.token_volume = token_volume(body)
        return json.loads(base64.b64decode(json.loads(run.stdout)["response"]["patch"]))

    def make_policy(self):
        replaced = {self.token_volume: TOKEN_VOLUME, NOTHING.namespace: "request.namespace"}
        for manifest in policy(self.sidecar, BY_POLICY, replaced):
            path = f"/apis/{manifest['apiVersion']}/{plural(manifest['kind'])}"
            self.api.call("POST", path, json.dumps(manifest)).created()

    def complete(self):
        """The pod with its sidecar, but without the token's volume, which admission adds."""
        body = applied(self.bodies[COMPLETE.namespace], self.sidecar)
        for container in body["spec"]["initContainers"]:
            container["volumeMounts"] = [mount for mount in container["volumeMounts"]
                                         if mount["mountPath"] != TOKEN_PATH]
        text = json.dumps(body).replace(f'"{NOTHING.namespace}"', f'"{COMPLETE.namespace}"')
        return json.loads(text)

    def expect_sidecar(self, way):
        body = self.api.create(self.bodies[way.namespace], way.namespace, dry_run=True).created()
        expect("the init containers", ["linkerd-init", "linkerd-proxy", "schema"],
               [container["name"] for container in body["spec"].get("initContainers", [])])

    def expect_same_pods(self):
        """Fails unless the stored pods are equal, with the sidecar from either way."""
        stored = {way.namespace: self.stored(way) for way in ALL}
        sizes = [len(json.dumps(stored[way.namespace], separators=(",", ":")))
                 for way in (NOTHING, INJECTD)]
        for one, *others in (INJECTD, POLICY), (NOTHING, AGAIN, ALLOWED), (INJECTD, COMPLETE):
            for other in others:
                if other == COMPLETE:
                    # A field of the request has a manager, a field that admission adds has not.
                    for same in one, other:
                        del stored[same.namespace]["metadata"]["managedFields"]
                expect_same(f"{other.title}: the pod", stored[one.namespace],
                            stored[other.namespace])
        return sizes

    def stored(self, way):
        """A stored pod of that way, without the values that differ from pod to pod."""
        pods = collection("v1", "Pod", way.namespace)
        made = self.api.create(self.bodies[way.namespace], way.namespace).created()
        body = self.api.call("GET", f"{pods}/{made['metadata']['name']}").body
        metadata = body["metadata"]
        for field in metadata["managedFields"]:
            del field["time"]
        text = json.dumps(body)
        for value in (metadata["name"], metadata["uid"], metadata["creationTimestamp"],
                      metadata["resourceVersion"], metadata["ownerReferences"][0]["uid"],
                      metadata["namespace"], token_volume(body)):
            text = text.replace(f'"{value}"', '"-"')
        text = re.sub(rf'uid\\"+:\\"+{metadata["ownerReferences"][0]["uid"]}', "uid", text)
        body = json.loads(text)
        body["spec"]["volumes"].sort(key=lambda volume: volume["name"])
        return body

    def request(self, way):
        body = json.dumps(self.bodies[way.namespace]).encode()
        return post(collection("v1", "Pod", way.namespace), body)

    def clear(self, way):
        """Deletes the pods of a namespace, and makes the API server collect its garbage."""
        path = f"{collection('v1', 'Pod', way.namespace)}?gracePeriodSeconds=0"
        expect("the status of the deletion", 200, self.api.call("DELETE", path).status)
        self.collect_garbage()

    def collect_garbage(self):
        found = self.api.call("GET", "/debug/pprof/heap?gc=1&debug=1")
        expect("the status of the garbage collection", 200, found.status)

    def connections(self):
        """Connections that the API server has opened to the webhook so far."""
        return self.control_plane.injectd.metric("injectd_connections_total", server="webhook")

    def clean_up(self):
        if self.control_plane.injectd:
            self.control_plane.injectd.stop()


def stop(pid):
    """Ends a program of kube-lab."""
    os.kill(pid, signal.SIGTERM)

    def expect_end():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        raise Failure("it still runs")

    poll("the end of a program", expect_end)


def review(pod, namespace):
    """An AdmissionReview of a pod."""
    request = {
        "uid": "7b1c7a3e-5d9c-4a53-9d0c-3f2f0d6f4a11",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": namespace,
        "operation": "CREATE",
        "object": pod,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(body).encode()


def as_created(admitted):
    """The pod as its creator sent it: without what the API server added before the webhook."""
    body = json.loads(json.dumps(admitted))
    metadata, spec = body["metadata"], body["spec"]
    body.pop("status", None)
    for field in "managedFields", "namespace", "creationTimestamp", "ownerReferences":
        metadata.pop(field, None)
    # The namespace has this annotation.
    metadata["annotations"].pop("linkerd.io/inject", None)
    for field in "serviceAccountName", "serviceAccount", "priority", "preemptionPolicy":
        spec.pop(field, None)
    token = token_volume(body)
    spec["volumes"] = [volume for volume in spec["volumes"] if volume["name"] != token]
    for container in spec["containers"] + spec["initContainers"]:
        container["volumeMounts"] = [mount for mount in container["volumeMounts"]
                                     if mount["name"] != token]
    spec["tolerations"] = [toleration for toleration in spec["tolerations"]
                           if "tolerationSeconds" not in toleration]
    return body


def token_volume(body):
    [name] = {mount["name"] for container in body["spec"]["containers"]
              for mount in container["volumeMounts"] if mount["mountPath"] == TOKEN_PATH}
    return name


def plural(kind):
    kind = kind.lower()
    return kind[:-1] + "ies" if kind.endswith("y") else kind + "s"
