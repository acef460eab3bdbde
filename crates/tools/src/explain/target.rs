//! What is explained: pods, and the pods that workloads create.

use std::path::{Path, PathBuf};

use injectd_command::{CommandError, input};
use injectd_core::yaml;
use injectd_explain::{Subject, Workload, later::Objection};
use injectd_k8s::names::is_dns_subdomain;
use serde_json::Value;

use super::advice::is_undecoded;
use crate::{
    facts::Facts,
    inject::{kind_of, must_have_spec, template_of},
    manifests::{self, Listed, listed, text},
};

/// The kinds of objects in a cluster: their names and short names, and their resource.
const KINDS: [(&[&str], &str, &str); 11] = [
    (&["pod", "pods", "po"], "/api/v1", "pods"),
    (&["deployment", "deployments", "deploy"], "/apis/apps/v1", "deployments"),
    (&["statefulset", "statefulsets", "sts"], "/apis/apps/v1", "statefulsets"),
    (&["daemonset", "daemonsets", "ds"], "/apis/apps/v1", "daemonsets"),
    (&["replicaset", "replicasets", "rs"], "/apis/apps/v1", "replicasets"),
    (
        &["replicationcontroller", "replicationcontrollers", "rc"],
        "/api/v1",
        "replicationcontrollers",
    ),
    (&["job", "jobs"], "/apis/batch/v1", "jobs"),
    (&["cronjob", "cronjobs", "cj"], "/apis/batch/v1", "cronjobs"),
    (&["rollout", "rollouts", "ro"], "/apis/argoproj.io/v1alpha1", "rollouts"),
    (&["cloneset", "clonesets"], "/apis/apps.kruise.io/v1alpha1", "clonesets"),
    (&["kservice", "kservices", "ksvc"], "/apis/serving.knative.dev/v1", "services"),
];

/// The arguments of the command.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) files: Vec<PathBuf>,
    pub(super) names: Vec<Named>,
}

/// An object of the cluster.
#[derive(Debug)]
pub(super) struct Named {
    /// The prefix of its URL: API group and version.
    pub(super) api: &'static str,
    pub(super) resource: &'static str,
    pub(super) called: String,
}

/// An object to explain.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) subject: Subject,
    pub(super) namespace: String,
    /// The pod that is created; `None` if the object has none.
    pub(super) pod: Option<Value>,
    pub(super) notes: Vec<String>,
    /// Whether it is a pod of a cluster.
    pub(super) is_running: bool,
    /// The object with the pod's template, without the template, and where that is.
    workload: Option<(Value, &'static str)>,
    /// Whether the API server decodes the template with the object: not in a custom resource.
    is_decoded_whole: bool,
}

impl Wanted {
    /// Tells files from names of objects: what exists as a file, or has no known type before its
    /// slash, is a file.
    pub(super) fn of(targets: &[String]) -> Result<Self, CommandError> {
        let mut wanted = Self::default();
        let mut paths = Vec::new();
        for target in targets {
            let named = target.split_once('/').filter(|_| !Path::new(target).exists());
            let Some((kind, name)) = named else {
                paths.push(PathBuf::from(target));
                continue;
            };
            let lower = kind.to_lowercase();
            match KINDS.iter().find(|(names, ..)| names.contains(&lower.as_str())) {
                Some((_, api, resource)) if is_dns_subdomain(name) => {
                    wanted.names.push(Named { api, resource, called: name.to_owned() });
                }
                Some(_) => {
                    let text = format!("{target}: {name:?} is not a name; use {kind}/NAME");
                    return Err(CommandError::Usage(text));
                }
                // A path such as manifests/web.yaml.
                None if name.contains(['.', '/']) || kind.is_empty() => {
                    paths.push(PathBuf::from(target));
                }
                None => {
                    let kinds: Vec<_> = KINDS.iter().map(|(names, ..)| names[0]).collect();
                    return Err(CommandError::Usage(format!(
                        "{target}: there is no such file, and {kind} is none of {}",
                        kinds.join(", ")
                    )));
                }
            }
        }
        if !paths.is_empty() {
            wanted.files = input::all_files(&paths)?;
        }
        Ok(wanted)
    }

    /// Whether an object of a cluster is named.
    pub(super) fn needs_cluster(&self) -> bool {
        !self.names.is_empty()
    }
}

/// Whether it is a type of objects that are explained.
pub(super) fn is_kind(text: &str) -> bool {
    let lower = text.to_lowercase();
    KINDS.iter().any(|(names, ..)| names.contains(&lower.as_str()))
}

/// The API and the resource of a kind.
pub(super) fn resource_of(kind: &str) -> Option<(&'static str, &'static str)> {
    let lower = kind.to_lowercase();
    let found = KINDS.iter().find(|(names, ..)| names.contains(&lower.as_str()));
    found.map(|(_, api, resource)| (*api, *resource))
}

/// Reads a file: its pods and workloads, and facts about the cluster. `each` is called with each document.
pub(super) fn read(
    path: &Path,
    default_namespace: &str,
    facts: &mut Facts,
    each: &mut dyn FnMut(&Value),
) -> Result<Vec<Target>, CommandError> {
    let name = input::name(path);
    let text = input::read_text(path)?;
    let mut targets = Vec::new();
    for document in yaml::stream(&text) {
        let document = document.map_err(|problem| CommandError::failed(name.as_str(), problem))?;
        facts.add(&document.value, "");
        each(&document.value);
        match listed(&document.value) {
            Some(Listed { items, item_kind }) => {
                for item in items {
                    targets.push(Target::of(item, item_kind, default_namespace)?);
                }
            }
            None if document.value.is_null() => {}
            None => targets.push(Target::of(&document.value, "", default_namespace)?),
        }
    }
    Ok(targets)
}

impl Target {
    /// An object to explain. `listed_kind` is the kind that the name of a List gives it.
    ///
    /// # Errors
    /// It has no spec, or metadata of another shape.
    pub(super) fn of(
        object: &Value,
        listed_kind: &str,
        default_namespace: &str,
    ) -> Result<Self, CommandError> {
        let kind = match text(object, "/kind") {
            "" => listed_kind,
            kind => kind,
        };
        let namespace = match text(object, "/metadata/namespace") {
            "" => default_namespace,
            namespace => namespace,
        };
        let name = ["/metadata/name", "/metadata/generateName"].map(|field| text(object, field));
        let subject = Subject {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.into_iter().find(|name| !name.is_empty()).unwrap_or_default().to_owned(),
        };
        let namespace = namespace.to_owned();
        let mut notes = Vec::new();
        let known = manifests::pod_prefix(object, kind_of(object, kind), kind);
        let is_decoded_whole = known.is_some();
        let prefix = known.or_else(|| template_of(object));
        let make = |prefix: &str| {
            must_have_spec(object, prefix)?;
            let mut pod = manifests::pod_of(object, prefix);
            let metadata = pod.get("metadata").unwrap_or(&Value::Null);
            if !metadata.is_object() && !metadata.is_null() {
                return Err("metadata is not an object".to_owned());
            }
            if !prefix.is_empty() {
                notes.push(made_from(&subject, prefix, known.is_some()));
                pod["metadata"]["generateName"] = format!("{}-", subject.name).into();
            }
            pod["metadata"]["namespace"] = namespace.as_str().into();
            Ok(pod)
        };
        let pod = prefix
            .map(make)
            .transpose()
            .map_err(|problem| CommandError::failed(title(&subject), problem))?;
        let is_running = prefix == Some("") && !text(object, "/metadata/uid").is_empty();
        let workload = prefix.filter(|prefix| !prefix.is_empty()).map(|prefix| {
            let mut workload = object.clone();
            if let Some(template) = workload.pointer_mut(prefix) {
                *template = Value::Null;
            }
            (workload, prefix)
        });
        Ok(Self { subject, namespace, pod, notes, is_running, workload, is_decoded_whole })
    }

    /// The workload that the pod is made from.
    pub(super) fn workload(&self) -> Option<Workload<'_>> {
        let (object, prefix) = self.workload.as_ref()?;
        Some(Workload { object, prefix })
    }

    /// Objections to its pod, of which those to values of another type say where these are in the
    /// object. A workload whose template the API server knows cannot be decoded itself.
    pub(super) fn placed(&self, mut later: Vec<Objection>) -> Vec<Objection> {
        let Some((_, prefix)) = self.workload else { return later };
        let path = prefix.trim_start_matches('/').replace('/', ".");
        for objection in later.iter_mut().filter(|objection| is_undecoded(objection)) {
            objection.text = format!("{path}.{}", objection.text);
            if self.is_decoded_whole {
                objection.by = format!("the decoding of {}s", self.subject.kind);
            }
        }
        later
    }

    /// Kind and name, in errors.
    pub(super) fn title(&self) -> String {
        title(&self.subject)
    }
}

/// How the pod of a workload is made.
fn made_from(subject: &Subject, prefix: &str, is_known: bool) -> String {
    let Subject { kind, name, .. } = subject;
    if is_known {
        return format!("the pod is made from the template of {kind}/{name}");
    }
    let path = prefix.trim_start_matches('/').replace('/', ".");
    format!(
        "the pod is made from {path} of {kind}/{name}, which looks like a pod template; what the \
         controller of {kind} adds to its pods is not known"
    )
}

fn title(subject: &Subject) -> String {
    format!("{}/{}", subject.kind.to_lowercase(), subject.name)
}
