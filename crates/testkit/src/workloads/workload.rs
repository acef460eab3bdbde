//! One workload: what its pods have in common, and a pod of it.

use serde_json::{Map, Value, json};

use super::{
    Kind,
    parts::{bits, container, letters, migration, mount_token, node_affinity, tolerations, uid},
};
use crate::{
    generator::random::Random,
    reviews::{encode, managed, typical},
};

const NAMESPACES: usize = 8;
const NODES: usize = 200;
const REPLICAS: usize = 5;
/// The percentage of pods that begin a rollout: another image, another hash.
const ROLLOUTS: usize = 2;
const NAMES: &[&str] =
    &["berth", "crane", "tariff", "manifest", "tide", "ledger", "gate", "pilot", "customs"];
const ROLES: &[&str] = &["api", "worker", "store", "agent", "sync", "index"];
/// What half of the workloads ask of the injector.
const ASKED: &[&[(&str, &str)]] = &[
    &[("sidecar.istio.io/proxyCPU", "50m"), ("sidecar.istio.io/proxyMemory", "96Mi")],
    &[("traffic.sidecar.istio.io/excludeOutboundPorts", "5432,6379")],
    &[("proxy.istio.io/config", "concurrency: 2\nholdApplicationUntilProxyStarts: true\n")],
    &[("prometheus.io/scrape", "true"), ("prometheus.io/port", "9102")],
];

type Object = Map<String, Value>;

pub(super) struct Workload {
    pub(super) kind: Kind,
    name: String,
    namespace: String,
    controller_uid: String,
    labels: Object,
    annotations: Object,
    containers: Vec<Value>,
    init: Vec<Value>,
    /// Those of the newest `ReplicaSet` or revision.
    hash: String,
    owner_uid: String,
}

impl Workload {
    pub(super) fn new(random: &mut Random, kind: Kind, index: usize) -> Self {
        let name = format!("{}-{}-{index}", random.pick(NAMES), random.pick(ROLES));
        let controller_uid = uid(random);
        let team = format!("team-{}", random.below(12));
        let labels = [("app", &name), ("app.kubernetes.io/name", &name), ("team", &team)];
        let checksum = format!("{:032x}{:032x}", bits(random), bits(random));
        let asked = if random.percent(50) { random.pick(ASKED) } else { &[] };
        let annotations = [("checksum/config", checksum.as_str())].into_iter();
        let mut workload = Self {
            kind,
            namespace: format!("port-{}", index % NAMESPACES),
            controller_uid,
            labels: object(labels),
            annotations: object(annotations.chain(asked.iter().copied())),
            containers: (0..random.between(1, 3))
                .map(|number| container(random, &name, number))
                .collect(),
            init: random.percent(40).then(|| migration(random, &name)).into_iter().collect(),
            hash: String::new(),
            owner_uid: String::new(),
            name,
        };
        workload.roll_out(random);
        workload
    }

    /// Another image, and the hash and the uid of another `ReplicaSet`.
    fn roll_out(&mut self, random: &mut Random) {
        self.hash = letters(random, 10);
        self.owner_uid = uid(random);
        for container in &mut self.containers {
            let version = format!("{}.{}", random.below(100), random.below(100));
            container["image"] = format!("registry.example/{}:{version}", self.name).into();
        }
    }

    /// The review of another pod.
    pub(super) fn review(&mut self, random: &mut Random) -> Vec<u8> {
        if random.percent(ROLLOUTS) {
            self.roll_out(random);
        }
        let mut pod = self.pod(random);
        let mut review = typical();
        let request = &mut review["request"];
        request["uid"] = uid(random).into();
        request["namespace"] = self.namespace.as_str().into();
        if let Some(name) = pod["metadata"].get("name") {
            request["name"] = name.clone();
        }
        let creator = match self.kind {
            Kind::Deployment => "replicaset",
            Kind::StatefulSet => "statefulset",
            Kind::DaemonSet => "daemonset",
            Kind::Job | Kind::CronJob => "job",
        };
        let user = format!("system:serviceaccount:kube-system:{creator}-controller");
        request["userInfo"]["username"] = user.into();
        request["userInfo"]["uid"] = self.controller_uid.as_str().into();
        pod["metadata"]["managedFields"] = request["object"]["metadata"]["managedFields"].take();
        managed::set(&mut pod);
        request["object"] = pod;
        encode(&review).into_bytes()
    }

    fn pod(&self, random: &mut Random) -> Value {
        let (mut metadata, own) = self.identity(random);
        let restart = if self.is_job() { "OnFailure" } else { "Always" };
        let mut spec = json!({
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            "containers": self.containers,
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": self.name,
            "serviceAccount": self.name,
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": tolerations(self.kind),
            "priority": 0,
            "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
        });
        if !self.init.is_empty() {
            spec["initContainers"] = self.init.as_slice().into();
        }
        match self.kind {
            Kind::StatefulSet => {
                spec["hostname"] = metadata["name"].clone();
                spec["subdomain"] = self.name.as_str().into();
            }
            Kind::DaemonSet => {
                let node = format!("node-{}.example", random.below(NODES));
                spec["affinity"] = node_affinity(&node);
            }
            Kind::Deployment | Kind::Job | Kind::CronJob => {}
        }
        mount_token(&mut spec, &format!("kube-api-access-{}", letters(random, 5)));
        let owner = self.owner(&own);
        metadata.insert("namespace".to_owned(), self.namespace.as_str().into());
        metadata.insert("creationTimestamp".to_owned(), Value::Null);
        metadata.insert("labels".to_owned(), sorted(self.labels.clone().into_iter().chain(own)));
        metadata.insert("annotations".to_owned(), sorted(self.annotations.clone()));
        metadata.insert("ownerReferences".to_owned(), json!([owner]));
        json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {}})
    }

    fn is_job(&self) -> bool {
        matches!(self.kind, Kind::Job | Kind::CronJob)
    }

    /// The name of a pod or its prefix, and the labels of the controller.
    fn identity(&self, random: &mut Random) -> (Object, Object) {
        let Self { name, hash, .. } = self;
        let prefix = |prefix: &str| object([("generateName", &format!("{prefix}-"))]);
        match self.kind {
            Kind::Deployment => {
                (prefix(&format!("{name}-{hash}")), object([("pod-template-hash", hash)]))
            }
            Kind::StatefulSet => {
                let ordinal = random.below(REPLICAS).to_string();
                let pod = format!("{name}-{ordinal}");
                let labels = [
                    ("apps.kubernetes.io/pod-index", &ordinal),
                    ("controller-revision-hash", &format!("{name}-{hash}")),
                    ("statefulset.kubernetes.io/pod-name", &pod),
                ];
                (prefix(name).into_iter().chain(object([("name", &pod)])).collect(), object(labels))
            }
            Kind::DaemonSet => {
                let labels = [("controller-revision-hash", hash.as_str())];
                (prefix(name), object(labels.into_iter().chain([("pod-template-generation", "3")])))
            }
            Kind::Job => (prefix(name), of_job(name, &self.owner_uid)),
            Kind::CronJob => {
                let job = format!("{name}-{}", random.between(29_000_000, 29_999_998));
                (prefix(&job), of_job(&job, &uid(random)))
            }
        }
    }

    /// The reference to the controller, with these labels of it.
    fn owner(&self, labels: &Object) -> Value {
        let (kind, name, uid) = match self.kind {
            Kind::Deployment => ("ReplicaSet", format!("{}-{}", self.name, self.hash).into(), None),
            Kind::StatefulSet => ("StatefulSet", self.name.as_str().into(), None),
            Kind::DaemonSet => ("DaemonSet", self.name.as_str().into(), None),
            Kind::Job | Kind::CronJob => {
                ("Job", labels["job-name"].clone(), Some(labels["controller-uid"].clone()))
            }
        };
        json!({
            "apiVersion": if self.is_job() { "batch/v1" } else { "apps/v1" },
            "kind": kind,
            "name": name,
            "uid": uid.unwrap_or_else(|| self.owner_uid.as_str().into()),
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}

fn of_job(name: &str, uid: &str) -> Object {
    let labels = [
        ("controller-uid", uid),
        ("batch.kubernetes.io/controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/job-name", name),
    ];
    object(labels)
}

fn object<'a>(fields: impl IntoIterator<Item = (&'a str, impl AsRef<str>)>) -> Object {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value.as_ref().into())).collect()
}

fn sorted(fields: impl IntoIterator<Item = (String, Value)>) -> Value {
    let mut fields: Object = fields.into_iter().collect();
    fields.sort_keys();
    fields.into()
}
