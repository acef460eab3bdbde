"""Admission reviews of three sizes and four verdicts, all made of the typical one.

    python3 reviews.py FOLDER [--meshes]

writes them into a folder, with `expected.json`: the texts that an answer must contain; with
`--meshes` also reviews for Istio. They are the same every time, compact and escaped as an API
server sends them.
"""

import copy
import json
import sys
from pathlib import Path

TYPICAL = Path(__file__).parent.parent / "review-12k.json"
# Overrides come before this annotation of the typical review, because Go sorts keys.
AFTER_OVERRIDES = b'"fulfilment.example/change":'
MANY_CONTAINERS = 20
TOKEN_VOLUME = "kube-api-access-"
# The keys of list items in managedFields, if not the name.
LIST_KEYS = {"ports": ("containerPort", "protocol"), "volumeMounts": ("mountPath",),
             "ownerReferences": ("uid",)}
WITHOUT_SELF = {"metadata", "spec", "containers"}
# Fields that have one manager as a whole.
ATOMIC = {"secretKeyRef", "fieldRef", "nodeSelector",
          "requiredDuringSchedulingIgnoredDuringExecution"}
# Set by admission plugins, which are not managers.
OF_ADMISSION = {"tolerations", "priority", "preemptionPolicy"}

# Texts that each answer must contain.
INJECTED = ['"allowed":true', '"verdict":"injected"', '"patch":"']
EXPECTED = {
    "small": INJECTED, "typical": INJECTED, "large": INJECTED,
    "annotated": ['"allowed":true', '"verdict":"annotated"', '"patch":"'],
    "skipped": ['"allowed":true', '"verdict":"skipped"'],
    "denied": ['"allowed":false', '"verdict":"denied"', "runAsRoot"],
}
# Percent of each in a mix.
MIX = {"typical": 60, "small": 20, "skipped": 8, "annotated": 6, "large": 3, "denied": 3}

# The same for Istio's webhook. A pod with the uid of its review in an annotation is like no other.
ISTIO_MIX = {"istio-typical": 55, "istio-small": 20, "istio-unlike": 10, "istio-skipped": 10,
             "istio-large": 5}
ISTIO_EXPECTED = {name: INJECTED for name in ISTIO_MIX} | {"istio-skipped": EXPECTED["skipped"]}
ISTIO_PATH = "/inject"


def encode(review):
    """As Go's encoder writes it: compact, with the special characters of HTML escaped."""
    text = json.dumps(review, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def typical():
    return json.loads(TYPICAL.read_text())


def mix_text():
    return ", ".join(f"{percent} % {name}" for name, percent in MIX.items())


# --- sizes ---


def small():
    """A pod of one plain container: about 3.4 KB."""
    review = typical()
    pod = review["request"]["object"]
    container, spec = pod["spec"]["containers"][1], pod["spec"]
    metadata = pod["metadata"]
    metadata["annotations"] = {"linkerd.io/inject": "enabled"}
    metadata["labels"] = {key: metadata["labels"][key]
                          for key in ("app.kubernetes.io/name", "pod-template-hash")}
    del container["args"]
    only_token(container)
    only_token(spec)
    spec["containers"] = [container]
    for field in "initContainers", "nodeSelector", "tolerations":
        del spec[field]
    spec["securityContext"] = {}
    return managed(review)


def only_token(owner):
    """Removes all mounts of a container, or all volumes of a pod, except the token's."""
    field = "volumeMounts" if "volumeMounts" in owner else "volumes"
    owner[field] = [item for item in owner[field] if item["name"].startswith(TOKEN_VOLUME)]


def large():
    """A pod of thirteen containers with long lists and notes: about 68 KB."""
    review = typical()
    pod = review["request"]["object"]
    containers = pod["spec"]["containers"]
    main = containers[0]
    annotations = pod["metadata"]["annotations"]
    for index in range(1, 6):
        note = {"ticket": f"FUL-{2217 + index}", "wave": index,
                "note": "<north-quay> & pilots " * 25}
        annotations[f"fulfilment.example/change-{index}"] = encode(note).decode()
    for index in range(1, 11):
        worker = copy.deepcopy(main)
        worker["name"] = f"berth-shard-{index:02}"
        worker["args"] += [f"--shard={index}/10", "--routes=" + ",".join(
            f"quay-{index}-{route}:8080" for route in range(12))]
        host = "fulfilment.svc.cluster.local:8443"
        worker["env"] += [{"name": f"ROUTE_{route:02}",
                           "value": f"https://quay-{route}.{host}/v2?shard={index}&all"}
                          for route in range(6)]
        for number, port in enumerate(worker["ports"]):
            port["containerPort"] += 100 * index
            port["name"] = f"{port['name'][:8]}-{index}-{number}"
        containers.append(worker)
    pod["metadata"]["annotations"] = dict(sorted(annotations.items()))
    return managed(review)


def of_many_containers():
    """A pod of twenty containers: about 68 KB."""
    review = typical()
    containers = review["request"]["object"]["spec"]["containers"]
    for index in range(MANY_CONTAINERS - len(containers)):
        # Four of five are the main one.
        another = copy.deepcopy(containers[index % 5 // 4])
        another["name"] = f"berth-shard-{index:02}"
        containers.append(another)
    return managed(review)


def managed(review):
    """Sets managedFields to those of the controller's own write."""
    pod = review["request"]["object"]
    whole = copy.deepcopy(pod)
    metadata, spec = whole["metadata"], whole["spec"]
    for field in "namespace", "creationTimestamp", "managedFields":
        metadata.pop(field, None)
    containers = spec["containers"] + spec.get("initContainers", [])
    mounts = ((container, "volumeMounts") for container in containers)
    for owner, field in [(spec, "volumes"), *mounts]:
        owner[field] = [item for item in owner[field] if not item["name"].startswith(TOKEN_VOLUME)]
        if not owner[field]:
            del owner[field]
    for field in OF_ADMISSION:
        spec.pop(field, None)
    fields = {"f:metadata": fields_of("metadata", metadata), "f:spec": fields_of("spec", spec)}
    pod["metadata"]["managedFields"][0]["fieldsV1"] = fields
    return review


def fields_of(name, value):
    """The fieldsV1 of a value."""
    own = {} if name in WITHOUT_SELF else {".": {}}
    if isinstance(value, dict) and name not in ATOMIC:
        children = {f"f:{key}": fields_of(key, value[key]) for key in sorted(value)}
        return {**own, **children} if children else {}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {**own, **{key_of(name, item): item_fields(name, item) for item in value}}
    return {}


def key_of(name, item):
    key = {field: item[field] for field in LIST_KEYS.get(name, ("name",))}
    return "k:" + json.dumps(key, separators=(",", ":"))


def item_fields(name, item):
    if name == "ownerReferences":
        return {}
    return {".": {}, **{f"f:{key}": fields_of(key, item[key]) for key in sorted(item)}}


# --- verdicts ---


def annotated_with(key, value):
    review = typical()
    metadata = review["request"]["object"]["metadata"]
    metadata["annotations"] = dict(sorted({**metadata["annotations"], key: value}.items()))
    return review


def service():
    """A Service that gets the annotation of its opaque port."""
    review = typical()
    request = review["request"]
    of_service = {"group": "", "version": "v1"}
    for field in "kind", "requestKind":
        request[field] = {**of_service, "kind": "Service"}
    for field in "resource", "requestResource":
        request[field] = {**of_service, "resource": "services"}
    request["name"] = "berth-database"
    request["object"] = {
        "kind": "Service", "apiVersion": "v1",
        "metadata": {"name": "berth-database", "namespace": request["namespace"],
                     "creationTimestamp": None, "labels": {"app.kubernetes.io/name": "berth"}},
        "spec": {"ports": [{"name": "mysql", "protocol": "TCP", "port": 3306, "targetPort": 3306}],
                 "selector": {"app.kubernetes.io/name": "berth-database"}, "type": "ClusterIP",
                 "sessionAffinity": "None"},
        "status": {"loadBalancer": {}},
    }
    return review


def bodies():
    """All reviews by name, encoded."""
    reviews = {
        "small": small(), "typical": typical(), "large": large(),
        "skipped": annotated_with("linkerd.io/inject", "disabled"),
        # Needs root, which the default values do not allow.
        "denied": annotated_with("config.linkerd.io/close-wait-timeout", "30s"),
        "annotated": service(),
    }
    return {name: encode(review) for name, review in reviews.items()}


def istio_bodies():
    """The reviews for Istio by name, encoded."""
    uid = typical()["request"]["uid"]
    reviews = {
        "istio-small": small(), "istio-typical": typical(), "istio-large": of_many_containers(),
        "istio-unlike": annotated_with("sidecar.istio.io/statsInclusionPrefixes", uid),
        "istio-skipped": annotated_with("sidecar.istio.io/inject", "false"),
    }
    return {name: encode(review) for name, review in reviews.items()}


def with_override(body, key, value):
    """The typical review with one more annotation."""
    override = f"{json.dumps(key)}:{json.dumps(value)},".encode()
    return body.replace(AFTER_OVERRIDES, override + AFTER_OVERRIDES, 1)


def write(folder, meshes=False):
    """Writes all reviews, and the expectations of their answers; yields names and lengths."""
    found, expected, mix = bodies(), EXPECTED, MIX
    if meshes:
        found, expected, mix = found | istio_bodies(), expected | ISTIO_EXPECTED, mix | ISTIO_MIX
    for name, body in found.items():
        (folder / f"{name}.json").write_bytes(body)
        yield name, len(body)
    paths = dict.fromkeys(ISTIO_MIX if meshes else (), ISTIO_PATH)
    text = json.dumps({"contains": expected, "mix": mix, "paths": paths})
    (folder / "expected.json").write_text(text)


def main():
    folder, *flags = sys.argv[1:]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, length in write(folder, "--meshes" in flags):
        print(f"{name}: {length} bytes")


if __name__ == "__main__":
    main()
