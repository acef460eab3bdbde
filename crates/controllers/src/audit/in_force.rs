//! The sidecar templates that are in force in a cluster, from its objects: of one that is not in order, the last
//! revision that was, from its `ControllerRevision`s.
//!
//! Not for a process that serves templates: it knows what it serves.

use std::{cmp::Reverse, collections::BTreeSet};

use futures_util::TryStreamExt as _;
use injectd_cluster::Unanswered;
use injectd_profiles::template_plane::{
    HASH_LABEL, KIND_LABEL, NAME_LABEL, NAMESPACE_LABEL, UID_LABEL,
};
use injectd_templates::Template;
use serde_json::Value;

use super::{Rim, cluster::ReadError};

/// The API of templates.
const TEMPLATES_API: &str = "/apis/injectd.dev/v1alpha1";
/// The kinds of templates, and their resources.
const KINDS: [(&str, &str); 2] = [
    ("ClusterSidecarTemplate", "clustersidecartemplates"),
    ("SidecarTemplate", "sidecartemplates"),
];
/// The status of a resource that the API server does not have.
const NOT_FOUND: u16 = 404;

/// The templates of a cluster.
#[derive(Debug, Default)]
pub struct InForce {
    /// The revisions in force.
    pub templates: Vec<Template>,
    /// Names of templates whose revision in force is not known.
    pub unknown: BTreeSet<String>,
    /// What is not known, and why.
    pub notes: Vec<String>,
}

/// The templates that are in force; `namespace` is injectd's own, which keeps the revisions. A cluster without the
/// kinds has none.
///
/// # Errors
/// They cannot be read.
pub async fn in_force(cluster: &dyn Rim, namespace: Option<&str>) -> Result<InForce, ReadError> {
    let mut found = InForce::default();
    for (kind, resource) in KINDS {
        for mut object in listed(cluster, resource).await? {
            object["apiVersion"] = "injectd.dev/v1alpha1".into();
            object["kind"] = kind.into();
            // What is written there is not the author's.
            let status = object.as_object_mut().and_then(|object| object.shift_remove("status"));
            let read = Template::read(&object);
            let hash = read.as_ref().ok().map(|template| template.hash.clone());
            let written = Written { kind, object: &object, hash: hash.as_deref() };
            let problem = match (read, written.refusal(status.as_ref())) {
                (Ok(template), None) => {
                    found.templates.push(template);
                    continue;
                }
                (Ok(_), Some(refusal)) => refusal.to_owned(),
                (Err(problems), _) => problems.first().map(ToString::to_string).unwrap_or_default(),
            };
            found.last_good(cluster, namespace, written, &problem).await;
        }
    }
    Ok(found)
}

async fn listed(cluster: &dyn Rim, resource: &str) -> Result<Vec<Value>, ReadError> {
    let pages = cluster.pages(format!("{TEMPLATES_API}/{resource}"), "");
    match pages.try_concat().await {
        Err(kube::Error::Api(status)) if status.code == NOT_FOUND => Ok(Vec::new()),
        found => found.map_err(|error| ReadError::of(resource, error)),
    }
}

/// A template that is not in order.
#[derive(Clone, Copy)]
struct Written<'w> {
    kind: &'static str,
    object: &'w Value,
    /// The hash of its `spec`, if that can be read.
    hash: Option<&'w str>,
}

impl Written<'_> {
    fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Why injectd does not accept it as it is, such as a ceiling that only the server knows.
    fn refusal<'s>(&self, status: Option<&'s Value>) -> Option<&'s str> {
        let conditions = status?.get("conditions")?.as_array()?;
        let generation = self.object.pointer("/metadata/generation");
        let is_refusal = |condition: &&Value| {
            condition["type"] == "Accepted"
                && condition["status"] == "False"
                // A condition of an earlier generation is about another spec.
                && condition.get("observedGeneration") == generation
        };
        let condition = conditions.iter().find(is_refusal)?;
        Some(condition["message"].as_str().unwrap_or_default())
    }

    /// Its key in marks.
    fn key(&self) -> String {
        match (self.text("/metadata/namespace"), self.text("/metadata/name")) {
            ("", name) => name.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        }
    }

    /// The labels of its revisions.
    fn selector(&self) -> String {
        let (namespace, name) = (self.text("/metadata/namespace"), self.text("/metadata/name"));
        let of_namespace = match namespace {
            "" => String::new(),
            namespace => format!(",{NAMESPACE_LABEL}={namespace}"),
        };
        format!("{KIND_LABEL}={},{NAME_LABEL}={name}{of_namespace}", self.kind)
    }

    /// The newest revision that is in order, and has not the `spec` that is not accepted: that was accepted once,
    /// below another ceiling.
    async fn last_good(
        &self,
        cluster: &dyn Rim,
        namespace: Option<&str>,
    ) -> Result<Option<Template>, String> {
        let Some(namespace) = namespace else { return Ok(None) };
        let path = format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions");
        let selector = self.selector();
        let revisions: Vec<Value> = cluster
            .pages(path, &selector)
            .try_concat()
            .await
            .map_err(|error| Unanswered::from(error).text().clone())?;
        let uid = self.text("/metadata/uid");
        // A template of the same name that was deleted has left revisions with another uid.
        let is_its = |revision: &&Value| {
            let labels = &revision["metadata"]["labels"];
            labels[UID_LABEL].as_str() == Some(uid)
        };
        let mut its: Vec<_> = revisions.iter().filter(is_its).collect();
        its.sort_by_key(|revision| Reverse(revision["revision"].as_i64()));
        let key = self.key();
        let good = its.into_iter().find_map(|revision| {
            let template = Template::read(&revision["data"]).ok()?;
            let hash = revision["metadata"]["labels"][HASH_LABEL].as_str();
            let is_refused = self.hash == Some(&template.hash);
            let is_its = template.key() == key && hash == Some(&template.hash);
            (is_its && !is_refused).then_some(template)
        });
        Ok(good)
    }
}

impl InForce {
    /// Adds the last revision of a template that was in order, or a note.
    async fn last_good(
        &mut self,
        cluster: &dyn Rim,
        namespace: Option<&str>,
        written: Written<'_>,
        problem: &str,
    ) {
        let key = written.key();
        let why = match written.last_good(cluster, namespace).await {
            Ok(Some(template)) => return self.templates.push(template),
            Ok(None) => "and no revision that was in order is known".to_owned(),
            Err(text) => format!("and its revisions cannot be read: {text}"),
        };
        self.notes.push(format!("template {key} is not in order, {why}: {problem}"));
        self.unknown.insert(key);
    }
}

#[cfg(test)]
mod tests;
