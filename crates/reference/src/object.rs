//! L§2.12, T§1: the object of a review, reduced to the fields that are read.

use serde_json::{Map, Value};

use super::json::{self, IntOrName, WrongType};

type Fields = Map<String, Value>;

/// Metadata of a pod, a pod template or a workload.
#[derive(Clone, Debug, Default)]
pub struct Meta {
    /// `name`; empty if missing.
    pub name: String,
    /// `namespace`; empty if missing.
    pub namespace: String,
    /// The annotations that injectd reads; see [`knows_annotation`].
    pub annotations: Map<String, Value>,
    /// Whether there are no annotations at all.
    pub no_annotations: bool,
    /// Labels with the name of the service, by key.
    pub labels: Map<String, Value>,
    /// Whether there are no labels at all.
    pub no_labels: bool,
    /// Owner references.
    pub owners: Vec<OwnerReference>,
    /// Whether Go would see a zero `ObjectMeta` (T§1, operation 1).
    pub zero: bool,
}

/// A reference to an owner.
#[derive(Clone, Debug, Default)]
pub struct OwnerReference {
    /// `kind`, with its spelling.
    pub kind: String,
    /// `name`; empty if missing.
    pub name: String,
    /// `uid`; empty if missing. A pod's author may set any value.
    pub uid: String,
}

/// The fields of a container that are read.
#[derive(Clone, Debug, Default)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// Its ports: name (may be empty) and number.
    pub ports: Vec<(String, i32)>,
    /// Ports of its liveness and readiness probes, if they are numbers.
    pub probe_ports: Vec<i32>,
    /// Mounts, of the first container only: name, path, read-only.
    pub mounts: Vec<(String, String, bool)>,
    /// `securityContext.capabilities`, of the first container only: the lists `add` and `drop`.
    pub capabilities: Option<(Vec<String>, Vec<String>)>,
}

/// The fields of a pod spec that are read.
#[derive(Clone, Debug, Default)]
pub struct PodSpec {
    /// `hostNetwork`.
    pub host_network: bool,
    /// `automountServiceAccountToken`, if set.
    pub automount: Option<bool>,
    /// Whether there are no volumes.
    pub no_volumes: bool,
    /// `containers`.
    pub containers: Vec<Container>,
    /// `initContainers`.
    pub init_containers: Vec<Container>,
}

/// A Service's port: `port` and `targetPort`.
pub type ServicePort = (i32, Option<IntOrName>);

/// The object of a review.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// The object's own kind, else the request's, in lower case.
    pub kind: String,
    /// The object's own metadata.
    pub meta: Meta,
    /// Metadata and spec of the pod or the pod template, for kinds with one.
    pub pod: Option<(Meta, PodSpec)>,
    /// The ports of a Service.
    pub service_ports: Vec<ServicePort>,
}

/// The request of a review, without its object.
#[derive(Clone, Debug, Default)]
pub struct Envelope {
    /// The namespace of the request.
    pub namespace: String,
    /// `dryRun`.
    pub dry_run: bool,
    kind: String,
    operation: String,
    subresource: String,
    object: Option<Value>,
}

impl Envelope {
    /// L§0-1: a review has a request with a uid; otherwise `None`.
    pub fn read(review: &Value) -> Option<Self> {
        let review = review.as_object()?;
        for echoed in ["kind", "apiVersion"] {
            json::text(review, echoed).ok()?;
        }
        let request = review.get("request")?.as_object()?;
        let text = |name: &str| Some(json::text(request, name).ok()?.unwrap_or_default());
        if text("uid")?.is_empty() {
            return None;
        }
        let empty = Fields::new();
        let kind = json::object(request, "kind").ok()?.unwrap_or(&empty);
        Some(Self {
            namespace: text("namespace")?,
            dry_run: json::flag(request, "dryRun").ok()?.unwrap_or(false),
            kind: json::text(kind, "kind").ok()?.unwrap_or_default(),
            operation: text("operation")?,
            subresource: text("subResource")?,
            object: request.get("object").filter(|object| !object.is_null()).cloned(),
        })
    }

    /// L§2.12: requests without an object, DELETE, CONNECT and subresources are allowed without a
    /// patch.
    pub fn asks_for_nothing(&self) -> bool {
        self.object.is_none()
            || ["DELETE", "CONNECT"].contains(&self.operation.as_str())
            || !self.subresource.is_empty()
    }
}

impl Workload {
    /// Reads the object.
    pub fn read(envelope: &Envelope) -> Result<Self, WrongType> {
        let Some(Value::Object(object)) = &envelope.object else {
            return Err(WrongType("the object must be an object".into()));
        };
        let own_kind = json::text(object, "kind")?.filter(|kind| !kind.is_empty());
        let kind = own_kind.unwrap_or_else(|| envelope.kind.clone());
        let mut workload =
            Self { kind: kind.to_lowercase(), meta: Meta::read(object)?, ..Self::default() };
        match workload.kind.as_str() {
            "pod" => {
                workload.meta.namespace.clone_from(&envelope.namespace);
                let spec = PodSpec::read(object)?;
                workload.pod = Some((workload.meta.clone(), spec));
            }
            "cronjob" => workload.pod = Some(template(inside(object, &["spec", "jobTemplate"])?)?),
            "deployment"
            | "replicationcontroller"
            | "replicaset"
            | "job"
            | "daemonset"
            | "statefulset" => workload.pod = Some(template(object)?),
            "service" => workload.service_ports = service_ports(object)?,
            _ => {}
        }
        Ok(workload)
    }
}

/// The pod template under `spec.template`; empty if missing.
fn template(holder: &Fields) -> Result<(Meta, PodSpec), WrongType> {
    let template = inside(holder, &["spec", "template"])?;
    Ok((Meta::read(template)?, PodSpec::read(template)?))
}

fn inside<'a>(fields: &'a Fields, path: &[&str]) -> Result<&'a Fields, WrongType> {
    static NOTHING: std::sync::LazyLock<Fields> = std::sync::LazyLock::new(Fields::new);
    path.iter().try_fold(fields, |fields, name| Ok(json::object(fields, name)?.unwrap_or(&NOTHING)))
}

fn service_ports(object: &Fields) -> Result<Vec<ServicePort>, WrongType> {
    let ports = json::objects(inside(object, &["spec"])?, "ports")?;
    ports
        .iter()
        .map(|port| {
            let number = json::int(port, "port")?.unwrap_or(0);
            Ok((number, json::int_or_name(port, "targetPort")?))
        })
        .collect()
}

/// The annotations that injectd reads; others may have any value.
pub fn knows_annotation(key: &str) -> bool {
    let domain = key.split('/').next().unwrap_or_default();
    [
        "linkerd.io",
        "config.linkerd.io",
        "config.alpha.linkerd.io",
        "config.beta.linkerd.io",
        "resource.opentelemetry.io",
    ]
    .contains(&domain)
}

/// The labels that injectd reads (L§2.1, last row but one).
pub fn knows_label(key: &str) -> bool {
    key == "app.kubernetes.io/instance" || key == "app.kubernetes.io/name"
}

impl Meta {
    fn read(holder: &Fields) -> Result<Self, WrongType> {
        let meta = inside(holder, &["metadata"])?;
        let (annotations, no_annotations) = strings(meta, "annotations", knows_annotation)?;
        let (labels, no_labels) = strings(meta, "labels", knows_label)?;
        json::text(meta, "generateName")?;
        Ok(Self {
            name: json::text(meta, "name")?.unwrap_or_default(),
            namespace: json::text(meta, "namespace")?.unwrap_or_default(),
            annotations,
            no_annotations,
            labels,
            no_labels,
            owners: owners(meta)?,
            zero: is_zero(meta),
        })
    }
}

/// The known entries of a map of strings (`null` is an empty string), and whether the map is empty.
fn strings(
    meta: &Fields,
    name: &str,
    known: fn(&str) -> bool,
) -> Result<(Fields, bool), WrongType> {
    let Some(map) = json::object(meta, name)? else {
        return Ok((Fields::new(), true));
    };
    let mut strings = Fields::new();
    for key in map.keys().filter(|key| known(key)) {
        let text = json::text(map, key)?.unwrap_or_default();
        strings.insert(key.clone(), text.into());
    }
    Ok((strings, map.is_empty()))
}

fn owners(meta: &Fields) -> Result<Vec<OwnerReference>, WrongType> {
    let references = json::objects(meta, "ownerReferences")?;
    references
        .iter()
        .map(|reference| {
            let text = |name| Ok(json::text(reference, name)?.unwrap_or_default());
            Ok(OwnerReference { kind: text("kind")?, name: text("name")?, uid: text("uid")? })
        })
        .collect()
}

/// T§1, operation 1: whether Go decodes a zero `ObjectMeta`. An empty map of annotations is zero;
/// an empty map of labels or an empty list is not.
fn is_zero(meta: &Fields) -> bool {
    meta.iter().all(|(key, value)| match key.as_str() {
        _ if value.is_null() => true,
        "annotations" => value.as_object().is_some_and(Map::is_empty),
        "name" | "generateName" | "namespace" | "selfLink" | "uid" | "resourceVersion" => {
            value.as_str() == Some("")
        }
        "generation" => value.as_i64() == Some(0),
        "creationTimestamp"
        | "deletionTimestamp"
        | "deletionGracePeriodSeconds"
        | "labels"
        | "ownerReferences"
        | "finalizers"
        | "managedFields" => false,
        _ => true,
    })
}

impl PodSpec {
    fn read(holder: &Fields) -> Result<Self, WrongType> {
        let spec = inside(holder, &["spec"])?;
        let containers = |name| -> Result<Vec<Container>, WrongType> {
            let containers = json::objects(spec, name)?;
            let containers = containers.iter().enumerate();
            let read =
                |(index, container)| Container::read(container, name == "containers" && index == 0);
            containers.map(read).collect()
        };
        Ok(Self {
            host_network: json::flag(spec, "hostNetwork")?.unwrap_or(false),
            automount: json::flag(spec, "automountServiceAccountToken")?,
            no_volumes: json::list(spec, "volumes")?.unwrap_or_default().is_empty(),
            containers: containers("containers")?,
            init_containers: containers("initContainers")?,
        })
    }
}

impl Container {
    /// Reads mounts and capabilities of the pod's first container only.
    fn read(container: &Fields, is_first: bool) -> Result<Self, WrongType> {
        let ports = json::objects(container, "ports")?;
        let ports = ports.iter().map(|port| {
            let name = json::text(port, "name")?.unwrap_or_default();
            Ok((name, json::int(port, "containerPort")?.unwrap_or(0)))
        });
        let nothing = Fields::new();
        let first = if is_first { container } else { &nothing };
        let mounts = json::objects(first, "volumeMounts")?;
        let mounts = mounts.iter().map(|mount| {
            let name = json::text(mount, "name")?.unwrap_or_default();
            let path = json::text(mount, "mountPath")?.unwrap_or_default();
            Ok((name, path, json::flag(mount, "readOnly")?.unwrap_or(false)))
        });
        let mut probe_ports = Vec::new();
        for probe in ["livenessProbe", "readinessProbe"] {
            let probe = inside(container, &[probe])?;
            let Some(get) = json::object(probe, "httpGet")? else {
                continue;
            };
            match json::int_or_name(get, "port")? {
                Some(IntOrName::Int(port)) => probe_ports.push(port),
                Some(IntOrName::Name) => {}
                // Go's zero value is the number 0.
                None => probe_ports.push(0),
            }
        }
        let security = inside(first, &["securityContext"])?;
        let capabilities = json::object(security, "capabilities")?
            .map(|lists| Ok((json::texts(lists, "add")?, json::texts(lists, "drop")?)))
            .transpose()?;
        Ok(Self {
            name: json::text(container, "name")?.unwrap_or_default(),
            image: json::text(container, "image")?.unwrap_or_default(),
            ports: ports.collect::<Result<_, _>>()?,
            probe_ports,
            mounts: mounts.collect::<Result<_, _>>()?,
            capabilities,
        })
    }
}
