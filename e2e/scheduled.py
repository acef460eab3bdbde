"""A pod of the injector as a kubelet runs it: its container, and the files of its volumes."""

import base64
import json

from cluster import collection
from expect import Failure, expect

CONTROL_PLANE = "linkerd"
CONTAINER = "proxy-injector"


class Scheduled:
    """A pod as a kubelet reads it: for `Container`, in place of a manifest."""

    def __init__(self, api, body):
        self.api, self.body = api, body
        self.container = container_of(body["spec"])
        self.ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}

    def mounts(self):
        volumes = {volume["name"]: volume for volume in self.body["spec"]["volumes"]}
        for mount in self.container["volumeMounts"]:
            yield mount["mountPath"], self.files(volumes[mount["name"]])

    def files(self, source):
        match source:
            case {"configMap": {"name": name}}:
                return find(self.api, "v1", "ConfigMap", name)["data"]
            case {"secret": {"secretName": name}}:
                found = find(self.api, "v1", "Secret", name)["data"]
                return {key: base64.b64decode(value).decode() for key, value in found.items()}
            case {"serviceAccountToken": {"path": path, **more}}:
                return {path: self.token(more["expirationSeconds"])}
            case {"downwardAPI": {"items": [{"path": path, "fieldRef": field}]}}:
                expect("the field", "metadata.namespace", field["fieldPath"])
                return {path: self.body["metadata"]["namespace"]}
            case {"projected": {"sources": sources}}:
                return {path: text for each in sources for path, text in self.files(each).items()}
        raise Failure(f"a volume of an unknown kind: {source}")

    def token(self, seconds):
        """A token that is bound to the pod."""
        metadata = self.body["metadata"]
        account = self.body["spec"]["serviceAccountName"]
        bound = {"apiVersion": "v1", "kind": "Pod",
                 "name": metadata["name"], "uid": metadata["uid"]}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": seconds, "boundObjectRef": bound}}
        path = f"{collection('v1', 'ServiceAccount', CONTROL_PLANE)}/{account}/token"
        return self.api.call("POST", path, json.dumps(request)).created()["status"]["token"]


def container_of(spec):
    [found] = [container for container in spec["containers"] if container["name"] == CONTAINER]
    return found


def find(api, version, kind, name):
    answer = api.call("GET", f"{collection(version, kind, CONTROL_PLANE)}/{name}")
    expect(f"the status of the {kind} {name}", 200, answer.status)
    return answer.body
