"""The bodies of attack_istio.py: reviews of pods that are expensive for Istio's injector."""

import json

TEMPLATES = "inject.istio.io/templates"
PROXY_CONFIG = "proxy.istio.io/config"
USER_VOLUME = "sidecar.istio.io/userVolume"
STATUS = "sidecar.istio.io/status"
LOG_LEVEL = "sidecar.istio.io/logLevel"
# Linkerd injects no pod without it.
INJECT = "linkerd.io/inject"
OPAQUE_PORTS = "config.linkerd.io/opaque-ports"
ADDITIONAL_ENV = "config.linkerd.io/proxy-additional-env"
KIND = {"group": "", "version": "v1", "kind": "Pod"}
# injectd reads no longer body.
MAX_BODY_BYTES = 10 << 20


def pod(annotations=None, containers=1, labels=None):
    """A pod of small containers."""
    metadata = {"name": "attack", "annotations": {INJECT: "enabled", **(annotations or {})},
                "labels": labels or {}}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {
        "containers": [{"name": f"c{index}", "image": "x"} for index in range(containers)]}}


def review(of_pod, namespace="attacker"):
    """A review of a pod, as bytes."""
    request = {"uid": "attack", "kind": KIND, "operation": "CREATE", "namespace": namespace,
               "object": of_pod}
    return compact({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                    "request": request})


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


def annotated(key, value, namespace="attacker", containers=1):
    return review(pod({key: value}, containers), namespace)


def repeated_template(count, note=""):
    """One template, as often as that; `note` makes bodies that no two are alike."""
    return review(pod({TEMPLATES: ",".join(["sidecar"] * count),
                       "sidecar.istio.io/proxyCPU": note or "1"}))


def new_pod(note):
    """A pod that is like no other."""
    return repeated_template(1, note)


def new_templates(note):
    """The same with 40 templates."""
    return repeated_template(40, note)


def many_containers(template, count):
    """A template with an entry for each container."""
    return annotated(TEMPLATES, template, containers=count)


def many_keys(count=85_000):
    """1.4 MB: a ProxyConfig with as many keys of proxyMetadata."""
    metadata = {f"K{index:05}": "v" for index in range(count)}
    return annotated(PROXY_CONFIG, compact({"proxyMetadata": metadata}).decode())


def many_labels(count=200_000):
    """3.1 MB: as many labels."""
    return review(pod(labels={f"l{index:06}": "v" for index in range(count)}))


def nested_anchors(length=256 << 10):
    """A ProxyConfig with a list in 250 anchors, each of which copies what is inside of it."""
    opened = "".join(f"&a{index} [" for index in range(250))
    return annotated(PROXY_CONFIG, "x: " + opened + "1," * (length // 2) + "]" * 250)


def quoted_texts(length=256 << 10):
    """A ProxyConfig with texts in quotes that only YAML 1.1 allows, each read anew."""
    return annotated(PROXY_CONFIG, "x: [" + "\"a\\'b\"," * (length // 7) + "]")


def many_volumes(count=48_000):
    """1.4 MB: as many volumes of an annotation."""
    return volumes((f"volume-{index:05}" for index in range(count)))


def volumes(names, namespace="attacker"):
    """Volumes with these names, as an annotation asks for them."""
    value = compact({name: {"emptyDir": {}} for name in names}).decode()
    return annotated(USER_VOLUME, value, namespace)


def stripped_names(count):
    """The mark of an earlier injection, with a name for each container."""
    names = [f"c{index}" for index in range(count)]
    value = compact({"initContainers": None, "containers": names}).decode()
    return annotated(STATUS, value, containers=count)


def pasted_containers(length, names=None):
    """A list of containers, pasted into the template through a value that it does not quote.

    Each is a container of the pod. With `names`, the pod has that many, and the list repeats them.
    """
    # A name stands in the value, and often in the pod: 21 bytes, and 33.
    count = (length - 33 * names) // 21 if names else length // 55
    names = names or count
    lines = [f"\n  - name: c{index % names}" for index in range(count)]
    # The list of the proxy's arguments goes on after the value.
    value = "x" + "".join(lines) + "\n    args:"
    return annotated(LOG_LEVEL, value, containers=names)


def unknown_annotations(length=1_100_000):
    """A pod with annotations of Istio that no release reads."""
    count = length // 44
    return pod({f"sidecar.istio.io/nothingReads{index:06}": "v" for index in range(count)})


def unknown_of_linkerd(length=1_100_000):
    """A pod with annotations of Linkerd that no release reads."""
    count = length // 44
    return pod({f"config.linkerd.io/nothing-reads-{index:06}": "v" for index in range(count)})


def large_proxy_config(length=960_000):
    """A pod with a ProxyConfig of many keys."""
    metadata = {f"K{index:05}": "v" for index in range(length // 12)}
    return pod({PROXY_CONFIG: compact({"proxyMetadata": metadata}).decode()})


def large_shapes(is_istio):
    """Bodies of up to 10 MiB by name: each is made when it is needed."""
    room = MAX_BODY_BYTES - 4_096
    shared = {
        "spaces": lambda: review(pod()) + b" " * room,
        "brackets": lambda: b"[" * MAX_BODY_BYTES,
        "one string": lambda: annotated("a", "v" * (room - 4_096)),
        "labels": lambda: many_labels(room // 16),
        "empty objects": lambda: review({**pod(), "status": [{}] * (room // 3)}),
        "containers": lambda: review(pod(containers=room // 32)),
        "variables": many_variables,
    }
    if not is_istio:
        return shared | {
            "opaque ports": lambda: annotated(OPAQUE_PORTS, "," * (room - 4_096)),
            "additional variables": lambda: annotated(ADDITIONAL_ENV, compact(
                [{"name": f"{index:06}"} for index in range(room // 22)]).decode()),
        }
    return shared | {
        "templates": lambda: repeated_template((room - 4_096) // 8),
        "keys of proxy.istio.io/config": lambda: many_keys(room // 19),
        "userVolume": lambda: many_volumes(room // 36),
        "status": lambda: stripped_names(room // 46),
        "pasted containers": lambda: pasted_containers(room - 4_096),
        "grpc-agent": lambda: many_containers("grpc-agent", room // 33),
    }


def many_variables():
    """A container with variables, 10 MiB."""
    large = pod()
    large["spec"]["containers"][0]["env"] = [
        {"name": f"V{index:06}", "value": "x"} for index in range(MAX_BODY_BYTES // 32)]
    return review(large)
