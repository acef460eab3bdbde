"""End-to-end scenarios: injectd and a real Kubernetes API server. Started by run.sh.

Each scenario prints a line `ok …`, or `FAILED …` with what was expected and what was found. With
--audit-log the API server is one of this machine: it reaches loopback addresses and writes its
audit log to that file. Without, what needs a webhook is passed over.
"""

import argparse
import base64
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from audit_log import Comparison, events
from cluster import (
    ENABLED, TIMEOUT_ANNOTATION, Api, collection, deployment, expect_sidecar, names, objects, pod,
    pod_of, service, without_sidecar,
)
from expect import Failure, expect, expect_in, expect_same, poll
from injectd import WEBHOOK_IP, WEBHOOK_NAME, Injectd

HERE = Path(__file__).parent
TOTAL_SECONDS = 170


class Scenarios:
    """What all scenarios share, and how many of them failed."""

    def __init__(self, binary, api, namespace, folder, audit_log):
        self.binary, self.api, self.namespace = binary, api, namespace
        self.folder, self.audit_log = folder, audit_log
        self.injectd = None
        self.failed = 0

    def run(self, name, scenario, *args):
        begin = time.monotonic()
        try:
            scenario(*args)
        except Exception as error:
            self.failed += 1
            found = error if isinstance(error, Failure) else repr(error)
            print(f"FAILED {name}: {found}", flush=True)
            return False
        print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        return True

    def create(self, manifest, dry_run=False):
        return self.api.create(manifest, self.namespace, dry_run)

    def all(self):
        comparison = Comparison(self.binary, self.api, self.namespace, self.folder, self.audit_log)
        self.run("a namespace with its service account", self.make_namespace)
        for path in sorted((HERE / "manifests").glob("*.yaml")):
            self.run(f"inject {path.name}", self.inject, path)
        for name, scenario in {
            "serve: the API server asks by service": self.serve,
            "a pod that asks for it is injected": self.injected_pod,
            "a pod with a name yet to be generated is injected": self.generated_name,
            "a pod that does not ask is left alone": self.not_asking_pod,
            "a pod that opts out is left alone": self.opted_out_pod,
            "a pod on its node's network is left alone": self.host_network_pod,
            "an injected pod is not injected again": self.resubmitted_pod,
            "a pod's own settings are in its sidecar": self.own_settings,
            "a pod may ask for the proxy among its containers": self.proxy_as_container,
            "a bad annotation is told in a warning": self.warning,
            "a pod that cannot be injected is refused with the reason": self.denial,
            "a dry run shows the sidecar and stores nothing": self.dry_run,
            "a service gets the annotation of its opaque port": self.service,
            "a Deployment's pods are injected": self.deployment,
            "pods are refused while injectd is gone, injected when it is back": self.killed,
            "without the webhook pods are not injected": self.ask_no_more,
            "serve: the API server asks by URL, in HTTP/2": self.asked_by_url,
            "SIGTERM ends injectd with exit code 0": self.terminated,
            "a webhook that may fail lets a pod in without sidecar": self.failed_open,
            "compare: the reviews of the audit log get the same answers": comparison.same,
            "compare: the place of another value is named": comparison.other_values,
            "compare: another annotation of the namespace is named": comparison.other_annotations,
        }.items():
            if not self.audit_log:
                print(f"passed over, it needs an API server of this machine: {name}")
            elif not self.run(name, scenario) and scenario == self.serve:
                return print("passed over: what depends on it")

    def make_namespace(self):
        labels = {"pod-security.kubernetes.io/enforce": "privileged"}
        metadata = {"name": self.namespace, "labels": labels}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        self.api.create(namespace).created()
        path = collection("v1", "ServiceAccount", self.namespace) + "/default"

        def attempt():
            expect("the status", 200, self.api.call("GET", path).status)

        poll("a service account", attempt)

    # --- injectd inject ---

    def inject(self, path):
        """What comes out is what went in and a sidecar; once more changes nothing."""
        once = self.inject_text(path.read_text())
        before, after = list(objects(path.read_text())), list(objects(once))
        expect("the number of objects", len(before), len(after))
        for plain, injected in zip(before, after):
            plain = self.create(plain, dry_run=True).created()
            answer = self.create(injected, dry_run=True)
            expect("the warnings", [], answer.warnings)
            body = answer.created()
            if pod_of(body):
                expect_sidecar(body, plain)
            else:
                expect_same("the object", without_sidecar(plain), without_sidecar(body))
            if body["kind"] == "Service":
                annotations = body["metadata"].get("annotations")
                expect("the annotations", {"config.linkerd.io/opaque-ports": "3306"}, annotations)
        expect("what is injected twice", once, self.inject_text(once))

    def inject_text(self, text):
        run = subprocess.run([self.binary, "inject"], input=text, capture_output=True, text=True)
        expect(f"the exit code of inject, which said {run.stderr!r}", 0, run.returncode)
        return run.stdout

    # --- injectd serve ---

    def serve(self):
        self.injectd = Injectd(self.binary, self.folder, f"injectd.{self.namespace}.svc")
        self.injectd.start()
        spec = {"clusterIP": WEBHOOK_IP, "ports": [{"port": self.injectd.port}]}
        self.create(service("injectd", spec)).created()
        reference = {"name": "injectd", "namespace": self.namespace, "port": self.injectd.port}
        self.ask_by({"service": reference})
        expect("whether HTTP/2 was spoken", False, self.has_spoken_http2())

    def ask_by(self, client):
        """Makes the API server ask injectd, and waits until it does."""
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods", "services"], "scope": "Namespaced"}
        bundle = base64.b64encode(self.injectd.ca).decode()
        webhook = {
            "name": WEBHOOK_NAME,
            "clientConfig": {**client, "caBundle": bundle},
            "rules": [rule],
            "namespaceSelector": selector,
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
        }
        self.api.create({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": self.namespace},
            "webhooks": [webhook],
        }).created()
        self.wait_until_asked()

    def wait_until_asked(self):
        def attempt():
            body = self.create(pod("probe", ENABLED), dry_run=True).created()
            expect_in("the init containers", "linkerd-proxy", names(body, "initContainers"))

        poll("the webhook acts", attempt)

    def ask_no_more(self):
        path = collection("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")
        expect("the deletion", 200, self.api.call("DELETE", f"{path}/{self.namespace}").status)

        def attempt():
            body = self.create(pod("probe", ENABLED), dry_run=True).created()
            expect("the init containers", [], names(body, "initContainers"))

        poll("the webhook acts no more", attempt)

    def has_spoken_http2(self):
        return 'msg=received frame="Headers' in self.injectd.log.read_text()

    def plain(self, manifest):
        """The object as it is in a namespace whose pods are not reviewed."""
        return self.api.create(manifest, "default", dry_run=True).created()

    def expect_audit(self, answer, verdict, reasons=None):
        """Fails unless the API server's audit log tells this of the review."""

        def attempt():
            found = events(self.audit_log, answer.audit_id)
            if not found:
                raise Failure(f"no event {answer.audit_id}")
            return found[-1].get("annotations", {})

        found = poll("the audit log", attempt)
        expect("the verdict", verdict, found.get(f"{WEBHOOK_NAME}/verdict"))
        expect("the reasons", reasons, found.get(f"{WEBHOOK_NAME}/reasons"))

    def expect_left_alone(self, manifest, reason):
        answer = self.create(manifest)
        plain, body = self.plain(manifest), answer.created()
        for field in ("annotations", "labels"):
            expect(f"the {field}", plain["metadata"].get(field), body["metadata"].get(field))
        for field in ("containers", "initContainers", "volumes"):
            expect(f"the number of {field}", len(names(plain, field)), len(names(body, field)))
        expect_same("the pod", without_sidecar(plain), without_sidecar(body))
        self.expect_audit(answer, "skipped", reason)

    def injected_pod(self):
        manifest = pod("injected", ENABLED)
        answer = self.create(manifest)
        expect("the warnings", [], answer.warnings)
        expect_sidecar(answer.created(), self.plain(manifest))
        self.expect_audit(answer, "injected")
        path = collection("v1", "Pod", self.namespace) + "/injected"
        stored = self.api.call("GET", path).body
        expect_same("the stored pod", without_sidecar(answer.body), without_sidecar(stored))

    def generated_name(self):
        manifest = pod("", ENABLED)
        manifest["metadata"] = {"generateName": "generated-", "annotations": ENABLED}
        body = self.create(manifest).created()
        expect_in("the init containers", "linkerd-proxy", names(body, "initContainers"))

    def not_asking_pod(self):
        self.expect_left_alone(pod("not-asking"), "injection_enable_annotation_absent")

    def opted_out_pod(self):
        manifest = pod("opted-out", {"linkerd.io/inject": "disabled"})
        self.expect_left_alone(manifest, "injection_enable_annotation_absent")

    def host_network_pod(self):
        manifest = pod("host-network", ENABLED, hostNetwork=True)
        self.expect_left_alone(manifest, "host_network_enabled")

    def resubmitted_pod(self):
        before = self.create(pod("resubmitted", ENABLED), dry_run=True).created()
        again = {key: before[key] for key in ("apiVersion", "kind", "spec")}
        kept = {key: before["metadata"][key] for key in ("annotations", "labels")}
        again["metadata"] = {"name": "resubmitted", **kept}
        self.expect_left_alone(again, "sidecar_already_exists")

    def own_settings(self):
        annotations = {
            **ENABLED,
            TIMEOUT_ANNOTATION: "7s",
            "config.linkerd.io/enable-debug-sidecar": "true",
            "config.linkerd.io/opaque-ports": "8080",
            "config.linkerd.io/skip-outbound-ports": "25",
        }
        own = {"name": "migrate", "image": "example.com/migrate:1"}
        manifest = pod("own-settings", annotations, initContainers=[own])
        body = self.create(manifest).created()
        expect_sidecar(body, self.plain(manifest))
        expect_in("the containers", "linkerd-debug", names(body, "containers"))
        env = {variable["name"]: variable.get("value")
               for variable in body["spec"]["initContainers"][1]["env"]}
        expect("the timeout", "7000ms", env.get("LINKERD2_PROXY_OUTBOUND_CONNECT_TIMEOUT"))

    def proxy_as_container(self):
        key = "config.linkerd.io/proxy-enable-native-sidecar"
        manifest = pod("proxy-as-container", {**ENABLED, key: "false"})
        expect_sidecar(self.create(manifest).created(), self.plain(manifest))

    def warning(self):
        key = "config.linkerd.io/proxy-cpu-request"
        manifest = pod("warning", {**ENABLED, key: "lots"})
        answer = self.create(manifest)
        expect_sidecar(answer.created(), self.plain(manifest))
        expect("the number of warnings", 1, len(answer.warnings))
        expect_in("the warning", key, answer.warnings[0])
        expect_in("the warning", "lots", answer.warnings[0])
        self.expect_audit(answer, "injected")

    def denial(self):
        manifest = pod("denied", {**ENABLED, "config.linkerd.io/close-wait-timeout": "30s"})
        answer = self.create(manifest)
        expect("the status", 400, answer.status)
        message = answer.body["message"]
        expect_in("the message", f'admission webhook "{WEBHOOK_NAME}" denied the request', message)
        expect_in("the message", "runAsRoot", message)
        self.expect_audit(answer, "denied")

    def dry_run(self):
        manifest = pod("dry-run", ENABLED)
        answer = self.create(manifest, dry_run=True)
        expect_sidecar(answer.created(), self.plain(manifest))
        path = collection("v1", "Pod", self.namespace) + "/dry-run"
        expect("the status of the pod", 404, self.api.call("GET", path).status)

    def service(self):
        spec = {"clusterIP": "None", "ports": [{"port": 3306}]}
        answer = self.create(service("db", spec))
        annotations = answer.created()["metadata"].get("annotations")
        expect("the annotations", {"config.linkerd.io/opaque-ports": "3306"}, annotations)
        self.expect_audit(answer, "annotated", "unsupported_resource")

    def deployment(self):
        self.create(deployment("web", 30)).created()
        self.expect_injected_replicas("web", 30)

    def of_app(self, version, kind, name):
        path = collection(version, kind, self.namespace) + f"?labelSelector=app%3D{name}"
        return self.api.call("GET", path).body["items"]

    def expect_injected_replicas(self, name, count):
        def attempt():
            items = self.of_app("v1", "Pod", name)
            expect("the number of pods", count, len(items))
            return items

        for item in poll("the controllers make pods", attempt):
            item["kind"] = "Pod"  # Lists leave it out.
            expect_in("the init containers", "linkerd-proxy", names(item, "initContainers"))
            label = item["metadata"]["labels"].get("linkerd.io/proxy-deployment")
            expect("the label of the workload", name, label)

    def killed(self):
        expect("the exit code", -signal.SIGKILL, self.injectd.stop(signal.SIGKILL))
        answer = self.create(pod("while-gone", ENABLED))
        expect("the status", 500, answer.status)
        expect_in("the message", "failed calling webhook", answer.body["message"])
        self.create(deployment("while-gone", 2)).created()
        poll("the controllers are refused pods", self.refused_replicas)
        self.injectd.start()
        self.wait_until_asked()
        body = self.create(pod("after-kill", ENABLED)).created()
        expect_in("the init containers", "linkerd-proxy", names(body, "initContainers"))
        self.expect_injected_replicas("while-gone", 2)

    def refused_replicas(self):
        for item in self.of_app("apps/v1", "ReplicaSet", "while-gone"):
            for condition in item["status"].get("conditions", []):
                return expect("the condition", "FailedCreate", condition["reason"])
        raise Failure("no ReplicaSet has a condition")

    def asked_by_url(self):
        self.ask_by({"url": f"https://{WEBHOOK_IP}:{self.injectd.port}/"})
        manifest = pod("by-url", ENABLED)
        expect_sidecar(self.create(manifest).created(), self.plain(manifest))
        told = lambda: expect("whether HTTP/2 was spoken", True, self.has_spoken_http2())
        poll("the log tells", told)

    def terminated(self):
        expect("the exit code", 0, self.injectd.stop(signal.SIGTERM))

    def failed_open(self):
        """injectd is gone: pods are refused until the API server has seen the new policy."""
        kind = collection("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")
        path = f"{kind}/{self.namespace}"
        configuration = self.api.call("GET", path).body
        configuration["webhooks"][0]["failurePolicy"] = "Ignore"
        expect("the update", 200, self.api.call("PUT", path, json.dumps(configuration)).status)
        manifest = pod("failed-open", ENABLED)
        body = poll("the API server", lambda: self.create(manifest).created())
        expect("the init containers", [], names(body, "initContainers"))

    def clean_up(self):
        if self.injectd:
            self.injectd.kill()
        webhooks = "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"
        for version, kind in webhooks, ("v1", "Namespace"):
            try:
                self.api.call("DELETE", f"{collection(version, kind)}/{self.namespace}")
            except Failure as failure:
                print(failure)


def stop_in_time():
    late = f"FAILED: the scenarios took longer than {TOTAL_SECONDS} s"
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(late))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.alarm(TOTAL_SECONDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audit-log", type=Path)
    args = parser.parse_args()
    stop_in_time()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            api = Api(os.environ["KUBECONFIG"], Path(folder))
            version = api.call("GET", "/version").body.get("gitVersion")
        except (Failure, OSError) as error:
            sys.exit(f"$KUBECONFIG: {error}")
        print(f"Kubernetes {version} at {api.server}", flush=True)
        namespace = f"injectd-e2e-{secrets.token_hex(4)}"
        binary = os.environ["INJECTD"]
        scenarios = Scenarios(binary, api, namespace, Path(folder), args.audit_log)
        try:
            scenarios.all()
        finally:
            scenarios.clean_up()
        if scenarios.failed and scenarios.injectd:
            log = scenarios.injectd.log.read_text().splitlines()
            lines = [line for line in log if " DEBUG " not in line]
            print("the end of injectd's log:", *lines[-20:], sep="\n  ")
    print(f"{scenarios.failed} failed, {time.monotonic() - begin:.0f} s")
    return scenarios.failed > 0


if __name__ == "__main__":
    sys.exit(main())
