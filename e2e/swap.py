"""deploy/linkerd-swap on Linkerd's control plane: the swap and the way back. Started by swap.sh.

Each manifest is applied as its chart rendered it, except the certificate, which is not recorded.
The commands are those of deploy/linkerd-swap/README.md. The container runs as a kubelet would run
it for the pod that the controllers create, with the token of its ServiceAccount. Each step prints a
line `ok …`, or `FAILED …` with the expected value and the value that was found.
"""

import argparse
import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

from audit_log import events
from certificate import Authority
from client import get, metric
from cluster import ENABLED, Api, collection, deployment, names, pod, without_sidecar
from container import Container
from expect import DEADLINE_SECONDS, Failure, expect, expect_in, expect_same, poll
from manifest import documents
from relay import Relay
from scheduled import CONTAINER, CONTROL_PLANE, Scheduled, container_of, find
from steps import Steps, stop_in_time

TOTAL_SECONDS = 240
ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
OVERLAY = DEPLOY / "linkerd-swap"
INJECTOR = "linkerd-proxy-injector"
NEIGHBOUR = "linkerd-destination"
IMAGE = "ghcr.io/injectd/injectd:TAG"
USER = f"system:serviceaccount:{CONTROL_PLANE}:{INJECTOR}"
SELECTED = f"?labelSelector=linkerd.io/control-plane-component%3D{CONTAINER}"
# The address of the Service `kubernetes`, and the port of all Services.
API_SERVER_IP, PORT = "127.100.0.1", 443
REPLICAS = 3
APPLY = ["kubectl", "apply", "--server-side=false"]
# Annotations that controllers and clients write.
BOOKKEEPING = ("deployment.kubernetes.io/revision",
               "kubectl.kubernetes.io/last-applied-configuration")


class ServiceAddress(Relay):
    """The address and port of a Service, in place of kube-proxy."""

    def __init__(self, ip, target):
        super().__init__(target)
        self.socket.close()
        self.socket = socket.create_server((ip, PORT))
        self.open()


class Swap:
    """One manifest, with the swap and the way back."""

    def __init__(self, binary, api, folder, path, audit_log):
        self.binary, self.api, self.audit_log = binary, api, audit_log
        self.name = path.stem.removeprefix("proxy-injector-")
        self.application = "app-" + self.name.replace(".", "-")
        self.folder = folder / self.name
        shutil.copytree(OVERLAY, self.folder / "overlay")
        self.authority = Authority(self.folder / "ca")
        self.manifests = self.folder / "overlay/linkerd.yaml"
        self.manifests.write_text(self.completed(path.read_text()))
        self.log = self.folder / "log"
        self.container = self.service = self.before = None

    def steps(self):
        return {f"{self.name}: {name}": step for name, step in {
            "Linkerd's manifests are applied": self.apply,
            "kubectl set image changes the image and nothing else": self.set_image,
            "the overlay changes the image and nothing else": self.overlay,
            "the post-renderer prints the same": self.post_render,
            "injectd starts as the Deployment's pod": self.start,
            "its readiness probe succeeds": self.ready,
            "a pod is injected through Linkerd's webhook": self.injected,
            "a Deployment's pods in an annotated namespace are injected": self.replicas,
            "a pod that does not ask is left alone": self.left_alone,
            "Linkerd's ClusterRole is enough": self.permissions,
            "swapped back, the Deployment is as before": self.back,
            "the metrics that the README names exist": self.metrics,
            "SIGTERM ends it with exit code 0": self.terminated,
        }.items()}

    def completed(self, text):
        """The manifests with a certificate, and a neighbour that shares the injector's image."""
        host = f"{INJECTOR}.{CONTROL_PLANE}.svc"
        values = {"caBundle": self.authority.path.read_text(),
                  **self.authority.secret(host, "PKCS#1 RSA")}  # As Helm makes them.
        for key, value in values.items():
            blank = f"{key}: <base64 PEM>"
            expect(f"the number of {blank}", 1, text.count(blank))
            text = text.replace(blank, f"{key}: {base64.b64encode(value.encode()).decode()}")
        [injector] = [body for body in documents(text) if body["kind"] == "Deployment"]
        neighbour = deployment(NEIGHBOUR, 0)
        neighbour["metadata"]["namespace"] = CONTROL_PLANE
        neighbour["spec"]["template"]["spec"]["containers"] = [
            {"name": name, "image": image_of(injector)} for name in ("destination", CONTAINER)]
        return f"{text.rstrip()}\n---\n{json.dumps(neighbour)}\n"

    # --- commands ---

    def run(self, command, text=None, exit_code=0):
        run = subprocess.run(command, input=text, capture_output=True, text=True,
                             cwd=self.folder / "overlay", timeout=DEADLINE_SECONDS,
                             env={**os.environ, "HOME": str(self.folder.parent)})
        expect(f"the exit code of {command[:4]} ({run.stderr!r})", exit_code, run.returncode)
        return run.stdout

    def documented(self, heading):
        """Runs the commands that README.md has below a heading."""
        text = (OVERLAY / "README.md").read_text()
        [section] = re.findall(rf"^## {heading}\n(.*?)(?:^## |\Z)", text, re.M | re.S)
        commands = re.search(r"^```sh\n(.*?)^```$", section, re.M | re.S)[1]
        self.run(["sh", "-eu", "-c", commands])

    def parsed(self, text):
        """The objects of a YAML text, as kubectl reads them."""
        text = self.run(["kubectl", "create", "--dry-run=client", "-o", "json", "-f", "-"], text)
        return json.loads("[" + re.sub(r"^}\n{", "},{", text, flags=re.M) + "]")

    # --- the Deployment ---

    def deployment(self, name=INJECTOR):
        return content(find(self.api, "apps/v1", "Deployment", name))

    def apply(self):
        status = self.api.create(namespace(CONTROL_PLANE)).status
        expect_in("the status of the namespace", status, (201, 409))
        self.run([*APPLY, "-f", self.manifests])
        self.before, self.neighbour = self.deployment(), self.deployment(NEIGHBOUR)
        pods = poll("the controllers make pods", lambda: self.pods(image_of(self.before)))
        return f"{len(pods)} pods of {image_of(self.before)}"

    def set_image(self):
        self.documented("Swap")
        self.expect_swapped(self.deployment())
        expect_same("the other Deployment", self.neighbour, self.deployment(NEIGHBOUR))

    def expect_swapped(self, body):
        expect("the image", IMAGE, image_of(body))
        expect_same("the Deployment", with_image(self.before, IMAGE), body)

    def overlay(self):
        self.built = self.run(["kubectl", "kustomize", "."])
        before, after = self.parsed(self.manifests.read_text()), self.parsed(self.built)
        expect_same("the objects", [with_image(body, IMAGE) for body in before], after)
        answer = json.loads(self.run([*APPLY, "--dry-run=server", "-o", "json", "-k", "."]))
        [body] = [item for item in answer["items"] if is_injector(item)]
        self.expect_swapped(content(body))
        return f"{len(after)} objects"

    def post_render(self):
        text, script = self.manifests.read_text(), "./post-render.sh"
        other = "registry.example:5000/a/b@sha256:" + 64 * "0"
        expect("the manifests", self.built, self.run([script], text))
        expect("the manifests with another image", self.built.replace(IMAGE, other),
               self.run([script, other], text))
        self.run([script], json.dumps(namespace("without")), exit_code=1)

    def pods(self, image):
        """The pods of the injector with this image; fails if there are none."""
        found = [body for body in self.all_pods() if container_of(body["spec"])["image"] == image]
        if not found:
            raise Failure(f"no pod of {image}")
        return found

    def all_pods(self):
        path = collection("v1", "Pod", CONTROL_PLANE)
        return self.api.call("GET", path + SELECTED).body["items"]

    # --- its container ---

    def start(self):
        body = poll("the controllers make pods", lambda: self.pods(IMAGE))[0]
        self.scheduled = Scheduled(self.api, body)
        env = {"KUBERNETES_SERVICE_HOST": API_SERVER_IP, "KUBERNETES_SERVICE_PORT": str(PORT)}
        self.container = Container(self.binary, self.scheduled, self.folder, None, env=env)
        with self.log.open("wb") as log:
            self.container.start(log)
        poll("its command line", self.expect_arguments)
        uid = self.scheduled.container["securityContext"]["runAsUser"]
        expect("the user", [str(uid)] * 4, self.container.status("Uid").split())
        return f"user {uid}, {' '.join(self.scheduled.container['args'])}"

    def expect_arguments(self):
        # Empty until the kernel has started the program.
        cmdline = Path(f"/proc/{self.container.pid}/cmdline").read_text().split("\0")
        expect("the arguments", self.scheduled.container["args"], cmdline[1:-1])

    def ready(self):
        poll("/ready", lambda: self.probe("readinessProbe", "ok\n"))
        self.probe("livenessProbe", "pong\n")
        spec = find(self.api, "v1", "Service", INJECTOR)["spec"]
        [target] = [port["targetPort"] for port in spec["ports"] if port["port"] == PORT]
        target = ("127.0.0.1", self.scheduled.ports[target])
        self.service = ServiceAddress(spec["clusterIP"], target)

    def probe(self, which, expected):
        spec = self.scheduled.container[which]["httpGet"]
        expect(spec["path"], (200, expected), get(spec["port"], spec["path"], 1))

    # --- through the API server ---

    def injected(self):
        self.api.create(namespace(self.application)).created()
        web = pod("web", ENABLED)
        create = lambda *where: self.api.create(web, *where).created()
        poll("the webhook injects", lambda: self.expect_sidecar(create(self.application, True)))
        body = create(self.application)
        self.expect_sidecar(body)
        plain = create("kube-system", True)  # No webhook is called there.
        expect_same("the pod without its sidecar", without_sidecar(plain), without_sidecar(body))
        return re.search("failurePolicy: .*", self.manifests.read_text())[0]

    def expect_sidecar(self, body):
        found = {container["name"]: container for field in ("initContainers", "containers")
                 for container in body["spec"].get(field, [])}
        expect("its containers", {"linkerd-init", "linkerd-proxy", "main"}, set(found))
        own = body["metadata"]["annotations"]
        version = self.before["metadata"]["labels"]["app.kubernetes.io/version"]
        expect("the creator of the sidecar", f"linkerd/proxy-injector {version}",
               own.get("linkerd.io/created-by"))
        expect("the proxy", f"cr.l5d.io/linkerd/proxy:{version}", found["linkerd-proxy"]["image"])
        env = {variable["name"]: variable.get("value")
               for variable in found["linkerd-proxy"]["env"]}
        roots = find(self.api, "v1", "ConfigMap", "linkerd-identity-trust-roots")["data"]
        expect("the trust roots", roots["ca-bundle.crt"].strip(),
               (env.get("LINKERD2_PROXY_IDENTITY_TRUST_ANCHORS") or "").strip())

    def replicas(self):
        annotated = self.application + "-annotated"
        self.api.create(namespace(annotated, ENABLED)).created()
        workload = deployment("web", REPLICAS)
        del workload["spec"]["template"]["metadata"]["annotations"]
        self.api.create(workload, annotated).created()

        def attempt():
            items = self.api.call("GET", collection("v1", "Pod", annotated)).body["items"]
            expect("the number of pods", REPLICAS, len(items))
            return items

        for body in poll("the controllers make pods", attempt):
            self.expect_sidecar(body)
            labels = body["metadata"]["labels"]
            expect("the label", "web", labels.get("linkerd.io/proxy-deployment"))

    def left_alone(self):
        body = self.api.create(pod("plain"), self.application).created()
        found = names(body, "initContainers") + names(body, "containers")
        expect("its containers", ["main"], found)

    def metrics(self):
        port = self.scheduled.container["readinessProbe"]["httpGet"]["port"]
        status, text = get(port, "/metrics", 1)
        expect("the status of /metrics", 200, status)
        expect("refused requests", 0, metric(text, "injectd_requests_rejected_total"))
        exported = set(re.findall(r"^# TYPE (\S+)", text, re.M))
        documented = metrics_in(ROOT / "docs/operations.md")
        # The suite `deploy` checks those of alerts and dashboard, which need other flags, too.
        used = metrics_in(OVERLAY / "README.md")
        expect("metrics that are not in docs/operations.md", set(), used - documented)
        expect("metrics that are not exported", set(), used - exported)
        return f"{len(used)} metrics"

    def permissions(self):
        found = events(self.audit_log, f'"username":"{USER}"')
        codes = {event.get("responseStatus", {}).get("code") for event in found}
        requests = {f"{event['verb']} {event.get('objectRef', {}).get('resource')}"
                    for event in found}
        expect_in("the requests", "watch namespaces", requests)
        expect("refused requests", set(), codes & {401, 403})
        return ", ".join(sorted(requests))

    def back(self):
        self.documented("Back")
        expect_same("the Deployment", self.before, self.deployment())
        poll("the controllers make pods", lambda: self.pods(image_of(self.before)))

    def terminated(self):
        self.container.terminate()
        expect("the exit code", 0, self.container.wait())

    def clean_up(self):
        if self.container:
            self.container.kill()
        if self.service:
            self.service.close()
        self.run(["kubectl", "delete", "--ignore-not-found", "-f", self.manifests])
        poll("the pods are gone", lambda: expect("the number of pods", 0, len(self.all_pods())))


def namespace(name, annotations=None):
    metadata = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def content(body):
    """An object without the fields that the API server and the controllers write."""
    kept = {key: body["metadata"].get(key) for key in ("name", "namespace", "labels")}
    annotations = body["metadata"].get("annotations", {}).items()
    kept["annotations"] = {key: value for key, value in annotations if key not in BOOKKEEPING}
    return {**body, "metadata": kept, "status": None}


def metrics_in(path):
    found = re.findall(r"\b(?:injectd|proxy_inject)_[a-z_]+", path.read_text())
    return {re.sub("_(bucket|sum|count)$", "", name) for name in found}


def is_injector(body):
    return (body["kind"], body["metadata"]["name"]) == ("Deployment", INJECTOR)


def image_of(body):
    return container_of(body["spec"]["template"]["spec"])["image"]


def with_image(body, image):
    """The object with this image if it is the injector, else the same object."""
    body = json.loads(json.dumps(body))
    if is_injector(body):
        container_of(body["spec"]["template"]["spec"])["image"] = image
    return body


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audit-log", type=Path, required=True)
    args = parser.parse_args()
    stop_in_time(TOTAL_SECONDS)
    steps = Steps()
    paths = sorted(Path(os.environ["INJECTD_CORPUS"], "manifests").glob("*.yaml"), reverse=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        api = Api(os.environ["KUBECONFIG"], folder)
        address = urllib.parse.urlsplit(api.server)
        poll("a service account", lambda: api.create(pod("p"), "kube-system", True).created())
        ServiceAddress(API_SERVER_IP, (address.hostname, address.port))
        for path in paths:
            swap = Swap(os.environ["INJECTD"], api, folder, path, args.audit_log)
            try:
                if not steps.all(swap.steps()) and swap.log.exists():
                    lines = swap.log.read_text().splitlines()
                    print("the end of its log:", *lines[-20:], sep="\n  ")
            finally:
                swap.clean_up()
    if not steps.done:
        sys.exit("swap: no manifests in $INJECTD_CORPUS")
    return steps.end()


if __name__ == "__main__":
    sys.exit(main())
