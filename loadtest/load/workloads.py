"""Pods of generated workloads, as controllers create them and an API server sends them.

The pods of a workload differ in what a cluster makes anew for each: uids, the volume of the token
and its mounts, hashes of a rollout, ordinals, the node of a DaemonSet's pod, the Job of a CronJob.
"""

import copy
import random
import uuid

from reviews import encode, managed, typical

# How many workloads of each kind.
KINDS = {"Deployment": 28, "StatefulSet": 8, "DaemonSet": 6, "Job": 4, "CronJob": 4}
NAMESPACES, NODES, REPLICAS = 8, 200, 5
# The share of pods that begin a rollout: another image, another hash.
ROLLOUTS = 0.02
# Kubernetes' alphabet of generated names.
LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
NAMES = ["berth", "crane", "tariff", "manifest", "tide", "ledger", "gate", "pilot", "customs"]
ROLES = ["api", "worker", "store", "agent", "sync", "index"]
# What some workloads ask of the injector.
ASKED = [
    {"sidecar.istio.io/proxyCPU": "50m", "sidecar.istio.io/proxyMemory": "96Mi"},
    {"traffic.sidecar.istio.io/excludeOutboundPorts": "5432,6379"},
    {"proxy.istio.io/config": "concurrency: 2\nholdApplicationUntilProxyStarts: true\n"},
    {"prometheus.io/scrape": "true", "prometheus.io/port": "9102"},
]


class Workloads:
    """The same workloads and pods for the same seed."""

    def __init__(self, seed=0):
        self.random = random.Random(seed)
        kinds = [kind for kind, count in KINDS.items() for _ in range(count)]
        self.workloads = [Workload(self.random, kind, index) for index, kind in enumerate(kinds)]

    def reviews(self, count):
        """Yields the kind of a workload and the review of a pod of it."""
        for _ in range(count):
            workload = self.random.choice(self.workloads)
            yield workload.kind, encode(workload.review(self.random))


class Workload:
    def __init__(self, of, kind, index):
        self.kind = kind
        self.name = f"{of.choice(NAMES)}-{of.choice(ROLES)}-{index}"
        self.namespace = f"port-{index % NAMESPACES}"
        self.uid, self.controller_uid = new_uid(of), new_uid(of)
        self.labels = {"app": self.name, "app.kubernetes.io/name": self.name,
                       "team": f"team-{of.randrange(12)}"}
        self.annotations = {"checksum/config": f"{of.getrandbits(256):064x}"}
        if of.random() < 0.5:
            self.annotations |= of.choice(ASKED)
        self.containers = [container(of, self.name, number) for number in range(of.randint(1, 3))]
        self.init = [first(of, self.name)] if of.random() < 0.4 else []
        self.roll_out(of)

    def roll_out(self, of):
        """Another image, and the hash and the uid of another ReplicaSet."""
        self.hash, self.owner_uid = letters(of, 10), new_uid(of)
        for each in self.containers:
            each["image"] = f"registry.example/{self.name}:{of.randrange(100)}.{of.randrange(100)}"

    def review(self, of):
        if of.random() < ROLLOUTS:
            self.roll_out(of)
        review = typical()
        request, pod = review["request"], self.pod(of)
        request["uid"], request["namespace"] = new_uid(of), self.namespace
        if "name" in pod["metadata"]:
            request["name"] = pod["metadata"]["name"]
        of_pods = {"Deployment": "replicaset", "CronJob": "job"}.get(self.kind, self.kind.lower())
        user = f"system:serviceaccount:kube-system:{of_pods}-controller"
        request["userInfo"] |= {"username": user, "uid": self.controller_uid}
        pod["metadata"]["managedFields"] = request["object"]["metadata"]["managedFields"]
        request["object"] = pod
        return managed(review)

    def pod(self, of):
        name, own = self.identity(of)
        labels = self.labels | own
        spec = {
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            "containers": copy.deepcopy(self.containers),
            "restartPolicy": "OnFailure" if self.kind in ("Job", "CronJob") else "Always",
            "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": self.name, "serviceAccount": self.name, "securityContext": {},
            "schedulerName": "default-scheduler", "tolerations": tolerations(self.kind),
            "priority": 0, "enableServiceLinks": True, "preemptionPolicy": "PreemptLowerPriority",
        }
        if self.init:
            spec["initContainers"] = copy.deepcopy(self.init)
        if self.kind == "StatefulSet":
            spec |= {"hostname": name["name"], "subdomain": self.name}
        if self.kind == "DaemonSet":
            spec["affinity"] = node_affinity(f"node-{of.randrange(NODES)}.example")
        mount_token(spec, f"kube-api-access-{letters(of, 5)}")
        metadata = name | {
            "namespace": self.namespace, "creationTimestamp": None,
            "labels": dict(sorted(labels.items())),
            "annotations": dict(sorted(self.annotations.items())),
            "ownerReferences": [self.owner(name, own)],
        }
        return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec,
                "status": {}}

    def identity(self, of):
        """The name or its prefix, and the labels of the controller."""
        match self.kind:
            case "Deployment":
                prefix = f"{self.name}-{self.hash}-"
                return {"generateName": prefix}, {"pod-template-hash": self.hash}
            case "StatefulSet":
                ordinal = str(of.randrange(REPLICAS))
                name = f"{self.name}-{ordinal}"
                return {"generateName": f"{self.name}-", "name": name}, {
                    "apps.kubernetes.io/pod-index": ordinal,
                    "controller-revision-hash": f"{self.name}-{self.hash}",
                    "statefulset.kubernetes.io/pod-name": name}
            case "DaemonSet":
                return {"generateName": f"{self.name}-"}, {
                    "controller-revision-hash": self.hash, "pod-template-generation": "3"}
        job = f"{self.name}-{of.randrange(29_000_000, 29_999_999)}" if self.kind == "CronJob" \
            else self.name
        uid = new_uid(of) if self.kind == "CronJob" else self.owner_uid
        labels = {prefix + key: value for key, value in (("controller-uid", uid), ("job-name", job))
                  for prefix in ("", "batch.kubernetes.io/")}
        return {"generateName": f"{job}-"}, labels

    def owner(self, name, labels):
        kind, owner, uid = self.kind, self.name, self.owner_uid
        if self.kind == "Deployment":
            kind, owner = "ReplicaSet", f"{self.name}-{self.hash}"
        elif self.kind == "CronJob":
            kind, owner, uid = "Job", labels["job-name"], labels["controller-uid"]
        version = "batch/v1" if kind == "Job" else "apps/v1"
        return {"apiVersion": version, "kind": kind, "name": owner, "uid": uid, "controller": True,
                "blockOwnerDeletion": True}


# --- parts of a pod ---


def container(of, name, number):
    port = 8080 + number
    is_http = of.random() < 0.7
    check = {"path": "/healthz", "port": port, "scheme": "HTTP"} if is_http else {"port": port}
    probe = {"httpGet" if is_http else "tcpSocket": check, "initialDelaySeconds": 5,
             "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    return {
        "name": f"{name}-{number}" if number else name, "image": "",
        "args": [f"--listen=:{port}", f"--shards={of.randint(1, 9)}"],
        "ports": [{"name": "http" if number == 0 else f"http-{number}", "containerPort": port,
                   "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{index:02}", "value": f"{of.getrandbits(96):x}"}
                for index in range(of.randint(3, 15))],
        "resources": {"limits": {"memory": f"{of.choice([128, 256, 512])}Mi"},
                      "requests": {"cpu": f"{of.choice([50, 100, 250])}m", "memory": "128Mi"}},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        "livenessProbe": probe, "readinessProbe": copy.deepcopy(probe),
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def first(of, name):
    return {"name": "migrate", "image": f"registry.example/{name}-migrate:{of.randrange(100)}",
            "args": ["up"], "resources": {}, "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent"}


def mount_token(spec, name):
    """The volume that the plugin ServiceAccount adds, with a name of its own for each pod."""
    ca = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    reference = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    field = {"path": "namespace", "fieldRef": reference}
    sources = [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
               {"configMap": ca}, {"downwardAPI": {"items": [field]}}]
    projected = {"sources": sources, "defaultMode": 420}
    spec["volumes"].append({"name": name, "projected": projected})
    for each in spec["containers"] + spec.get("initContainers", []):
        each["volumeMounts"].append({"name": name, "readOnly": True, "mountPath": SERVICE_ACCOUNT})


def node_affinity(node):
    """The node of a DaemonSet's pod, as its controller chooses it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def tolerations(kind):
    seconds = {} if kind == "DaemonSet" else {"tolerationSeconds": 300}
    return [{"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute",
             **seconds} for what in ("not-ready", "unreachable")]


def letters(of, count):
    return "".join(of.choice(LETTERS) for _ in range(count))


def new_uid(of):
    return str(uuid.UUID(int=of.getrandbits(128), version=4))
