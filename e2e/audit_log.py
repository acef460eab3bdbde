"""The API server's audit log, and the scenarios of `injectd compare`, which reads it."""

import json
import subprocess
from pathlib import Path

from cluster import TIMEOUT_ANNOTATION, collection
from expect import DEADLINE_SECONDS, Failure, expect, expect_in, poll
from injectd import WEBHOOK_NAME

# Tells that a webhook was called, whatever it answered.
CALL_ANNOTATION = "mutation.webhook.admission.k8s.io/"
FAILED_OPEN_ANNOTATION = "failed-open.mutation.webhook.admission.k8s.io/"
VALUES = Path(__file__).parent.parent / "src/linkerd/values/default.yaml"


def events(path, containing=""):
    """The events of an audit log that have this text in them."""
    # The last line may still be under way.
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines if containing in line]


def is_asked(event):
    """Whether the API server called the webhook; else there is no answer to compare with."""
    annotations = event.get("annotations", {}).items()
    calls = (json.loads(call) for key, call in annotations if key.startswith(CALL_ANNOTATION))
    return any(call["webhook"] == WEBHOOK_NAME for call in calls)


def has_failed_open(event):
    return any(key.startswith(FAILED_OPEN_ANNOTATION) for key in event["annotations"])


class Comparison:
    """What injectd answered the API server against what it answers `injectd compare`."""

    def __init__(self, binary, api, namespace, folder, audit_log):
        self.binary, self.api, self.namespace = binary, api, namespace
        self.folder, self.audit_log = folder, audit_log

    # --- scenarios ---

    def same(self):
        report, verdicts = self.compare(0, self.objects())
        for verdict in ("annotated", "injected", "skipped"):
            expect_in("the verdicts", verdict, verdicts)
        expect("the differences", [], report["differences"])
        expect("the number of reviews with the same answer", report["compared"], report["same"])
        expect("the number that failed open", 1, report["failedOpen"])

    def other_values(self):
        line = "outboundConnectTimeout: {}\n"
        values = VALUES.read_text()
        expect_in(VALUES.name, line.format("1000ms"), values)
        other = self.folder / "values.yaml"
        other.write_text(values.replace(line.format("1000ms"), line.format("2000ms")))
        report, verdicts = self.compare(3, self.objects(), "--values", other)
        place = "linkerd-proxy/env/LINKERD2_PROXY_OUTBOUND_CONNECT_TIMEOUT/value"
        expect("the places", [place], [found["place"] for found in report["differences"]])
        [found] = report["differences"]
        expect("theirs", '"1000ms"', found["example"]["theirs"])
        expect("ours", '"2000ms"', found["example"]["ours"])
        # One of the pods has a timeout of its own.
        expect("the number of reviews", verdicts.count("injected") - 1, found["reviews"])

    def other_annotations(self):
        report, _ = self.compare(3, self.objects({TIMEOUT_ANNOTATION: "2s"}))
        path = "/metadata/annotations/" + TIMEOUT_ANNOTATION.replace("/", "~1")
        places = [found["place"] for found in report["differences"]]
        expect_in("the places", f'operations: - +"{path}"', places)

    # --- what they are made of ---

    def compare(self, exit_code, objects, *flags):
        """The report, once it is on all that the webhook was asked; and the verdicts there were."""
        logged = poll("the audit log", self.logged)
        asked = [event for event in logged if is_asked(event)]
        created = [event for event in asked if event["responseStatus"]["code"] == 201]
        answered = [event for event in created if not has_failed_open(event)]
        log, file = self.folder / "audit.log", self.folder / "objects.json"
        log.write_text("".join(json.dumps(event) + "\n" for event in logged))
        file.write_text(json.dumps(objects))
        command = [self.binary, "compare", "--output", "json", "--objects", file, *flags, log]
        run = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        said = run.stderr + run.stdout
        expect(f"the exit code of compare, which said {said!r}", exit_code, run.returncode)
        report = json.loads(run.stdout)
        expect("the number of reviews compared", len(answered), report["compared"])
        expect("the number that failed open", len(created) - len(answered), report["failedOpen"])
        expect("the number ignored", len(logged) - len(created), report["ignored"])
        return report, [event["annotations"].get(f"{WEBHOOK_NAME}/verdict") for event in answered]

    def logged(self):
        logged = events(self.audit_log)
        told = [event.get("responseObject", {}).get("metadata", {}).get("uid") for event in logged]
        for item in self.list("v1", "Pod")["items"]:
            if item["metadata"]["uid"] not in told:
                raise Failure(f"no event of the pod {item['metadata']['name']}")
        return logged

    def objects(self, annotations=None):
        """What answers depend on; the namespace had no annotations when the webhook was asked."""
        path = f"{collection('v1', 'Namespace')}/{self.namespace}"
        namespace = self.api.call("GET", path).body
        namespace["metadata"]["annotations"] = annotations or {}
        items = [namespace, self.list("apps/v1", "ReplicaSet")]
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def list(self, version, kind):
        return self.api.call("GET", collection(version, kind, self.namespace)).body
