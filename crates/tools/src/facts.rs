//! What is known of the cluster: from files, or read from its API server.

use std::collections::BTreeMap;

use injectd_command::CommandError;
use injectd_explain::later::{Checks, Version, unreadable};
use injectd_webhooks::Configurations;
use serde_json::Value;

use crate::manifests::{Listed, listed, text};

/// Objects that decide what happens to pods.
#[derive(Debug, Default)]
pub(super) struct Facts {
    namespaces: BTreeMap<String, Value>,
    quotas: Vec<Value>,
    limit_ranges: Vec<Value>,
    /// Mutating and validating webhook configurations; `None` if they are not known.
    webhooks: Option<Vec<Value>>,
    /// The release of the API server, if it is known.
    pub(super) version: Option<Version>,
    /// What could not be read.
    pub(super) unread: Vec<String>,
}

/// Where facts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Files alone.
    Files,
    /// Files, of which `--objects` has every Namespace.
    Objects,
    /// A cluster, besides files.
    Cluster,
}

/// What webhooks say of a namespace that is not there: their selectors cannot be compared.
const NOT_KNOWN: &str = "its labels are not known";

/// What checks the pods of a namespace.
pub(super) struct Checking<'f> {
    namespace: Option<&'f Value>,
    quotas: Vec<Value>,
    limit_ranges: Vec<Value>,
    version: Version,
}

impl Facts {
    /// Adds an object, or the items of a List, of a known kind. An item may leave its kind to the
    /// name of the List.
    pub(super) fn add(&mut self, object: &Value, listed_kind: &str) {
        if let Some(Listed { items, item_kind }) = listed(object) {
            for item in items {
                self.add(item, item_kind);
            }
            return;
        }
        let kind = match text(object, "/kind") {
            "" => listed_kind,
            kind => kind,
        };
        match kind {
            "Namespace" => {
                let name = text(object, "/metadata/name").to_owned();
                self.namespaces.insert(name, object.clone());
            }
            "ResourceQuota" => self.quotas.push(object.clone()),
            "LimitRange" => self.limit_ranges.push(object.clone()),
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                let mut object = object.clone();
                object["kind"] = kind.into();
                self.webhooks.get_or_insert_default().push(object);
            }
            _ => {}
        }
    }

    /// The webhook configurations, if they are known.
    pub(super) fn configurations(&self) -> Result<Option<Configurations>, CommandError> {
        let Some(webhooks) = &self.webhooks else { return Ok(None) };
        let read = Configurations::read(webhooks);
        read.map(Some).map_err(|error| CommandError::failed("cannot read the webhooks", error))
    }

    /// Whether Kubernetes could read the namespaces and their policies.
    ///
    /// # Errors
    /// A field has a value of another type, so that no cluster has such an object.
    pub(super) fn must_be_readable(&self) -> Result<(), CommandError> {
        let namespaces = self.namespaces.values().map(|namespace| ("Namespace", namespace));
        let quotas = self.quotas.iter().map(|quota| ("ResourceQuota", quota));
        let limit_ranges = self.limit_ranges.iter().map(|range| ("LimitRange", range));
        for (kind, object) in namespaces.chain(quotas).chain(limit_ranges) {
            if let Some(problem) = unreadable(kind, object) {
                let name = text(object, "/metadata/name");
                return Err(CommandError::failed(format!("cannot read {kind} {name}"), problem));
            }
        }
        Ok(())
    }

    /// Notes that all webhook configurations of the cluster are known.
    pub(super) fn know_webhooks(&mut self) {
        self.webhooks.get_or_insert_default();
    }

    /// Every namespace that is known.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.namespaces.iter()
    }

    /// What the facts lack about a namespace; `assumed` are the annotations that it counts with then.
    /// With `--objects`, and in a cluster, a namespace that is not there does not exist.
    pub(super) fn missing(
        &self,
        namespace: &str,
        source: Source,
        assumed: &[(&str, &str)],
    ) -> Vec<String> {
        let (no_namespace, no_webhooks) = match source {
            Source::Cluster => ("is not known", "the webhook configurations are not known"),
            _ => ("is not in the input", "no webhook configuration is in the input"),
        };
        let mut notes = Vec::new();
        if self.namespace(namespace).is_none() {
            let counts = match (source, assumed) {
                (Source::Cluster, _) => {
                    format!("{NOT_KNOWN}; the injector decides as for one without annotations")
                }
                (_, []) => "its labels and annotations are not known".to_owned(),
                (Source::Objects, _) => "with --objects it does not exist".to_owned(),
                (Source::Files, assumed) => {
                    let pairs = assumed.iter().map(|(key, value)| format!("{key}: {value}"));
                    let pairs: Vec<String> = pairs.collect();
                    let pairs = pairs.join(", ");
                    format!("{NOT_KNOWN}; it counts as annotated {pairs}, as in inject")
                }
            };
            notes.push(format!("Namespace {namespace} {no_namespace}: {counts}"));
        }
        if self.webhooks.is_none() {
            notes.push(format!("{no_webhooks}: whether one is called was not looked at"));
        }
        notes
    }

    pub(super) fn namespace(&self, name: &str) -> Option<&Value> {
        self.namespaces.get(name)
    }

    /// What checks the pods of a namespace.
    pub(super) fn checking(&self, namespace: &str) -> Checking<'_> {
        Checking {
            namespace: self.namespace(namespace),
            quotas: in_namespace(&self.quotas, namespace),
            limit_ranges: in_namespace(&self.limit_ranges, namespace),
            version: self.version.unwrap_or_default(),
        }
    }
}

impl Checking<'_> {
    pub(super) fn checks(&self) -> Checks<'_> {
        Checks {
            namespace: self.namespace,
            quotas: &self.quotas,
            limit_ranges: &self.limit_ranges,
            version: self.version,
        }
    }
}

fn in_namespace(objects: &[Value], namespace: &str) -> Vec<Value> {
    let is_there = |object: &&Value| text(object, "/metadata/namespace") == namespace;
    objects.iter().filter(is_there).cloned().collect()
}
