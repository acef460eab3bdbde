//! Keys of answers: what a pod has of what is read.

use std::borrow::Cow;

use injectd_core::json::{Node, Shape};
use injectd_memory::{Head, Key, Reading, Unusual};

use super::{KeyedPod, Memory, slot};
use crate::{
    decide::INJECT_ANNOTATION,
    fields::CONTAINER_LISTS,
    owner::{self, Owner},
    path::NETWORK_LABEL,
    process::names,
    proto::layers::Resources,
    release::Release,
    revision::Revision,
    selector::Selector,
    strip::{OVERRIDES_ANNOTATION, STATUS_ANNOTATION},
};

/// Parts of the keys of annotations that an injection may read: Istio's domains, and `prometheus` in every
/// spelling.
const READ_ANNOTATIONS: &[&str] = &["istio.io", "prometheus"];

/// What is read of every pod.
#[derive(Debug)]
pub(super) struct FirstKey {
    pub(super) key: Key,
    /// The pod's owner if the name of that is not in the key: there may be slots for it.
    pub(super) owner: Option<Owner>,
}

impl Memory {
    /// The first key of a pod.
    ///
    /// # Errors
    /// The pod is evaluated anew.
    pub(super) fn first_key(
        &self,
        KeyedPod { tape, inputs }: KeyedPod<'_>,
        has_slots: bool,
    ) -> Result<FirstKey, Unusual> {
        let pod = tape.root();
        let metadata = pod.get("metadata");
        let annotations = metadata.and_then(|metadata| metadata.get("annotations"));
        let has = |key| annotations.is_some_and(|annotations| annotations.get(key).is_some());
        // An earlier injection is taken out before templates read the pod: they do not read what
        // the text has.
        if has(STATUS_ANNOTATION) || has(OVERRIDES_ANNOTATION) || has_odd_volumes(pod) {
            return Err(Unusual);
        }
        let mut head = Head::new();
        for is_so in inputs.native {
            head.flag(is_so);
        }
        let own = metadata.and_then(|metadata| metadata.get("namespace"));
        let own = plain(own)?;
        let namespace = if own.is_empty() { inputs.namespace } else { own };
        let owner = owner(metadata, namespace, self.release)?;
        let has_slots = has_slots && slot::is_exchangeable(&owner.name);
        head.flag(has_slots);
        let owner_name = if has_slots { "" } else { &owner.name };
        let texts = [inputs.path, namespace, &owner.kind, &owner.api_version, owner_name];
        let annotations = inputs.namespace_annotations.iter();
        let annotations = annotations.flat_map(|(key, value)| [key, value]).map(String::as_str);
        for text in texts.into_iter().chain(annotations) {
            head.text(text);
        }
        let key = self.answers.first_key(head, namespace, pod)?;
        Ok(FirstKey { key, owner: has_slots.then_some(owner) })
    }
}

/// What the steps of an injection read of every pod, besides its templates, its namespace and its
/// owner.
pub(super) fn fixed(revision: &Revision, resources: &Resources) -> Reading {
    let config = &revision.config;
    let mut read = Reading::default();
    let metadata = read.member("metadata");
    let annotations = metadata.member("annotations");
    annotations.read_alike(READ_ANNOTATIONS);
    annotations.read_members(config.injected_annotations.keys().map(String::as_str));
    let labels = metadata.member("labels");
    labels.read_members([INJECT_ANNOTATION, NETWORK_LABEL]);
    labels.read_members(resources.selecting_labels());
    let selectors = config.never_inject.iter().chain(&config.always_inject);
    labels.read_members(selectors.flat_map(Selector::keys));
    let spec = read.member("spec");
    spec.read_members(["dnsPolicy", "hostNetwork", "nodeName"]);
    for list in CONTAINER_LISTS {
        let own = spec.member(list);
        let names = [names::PROXY, names::INIT, names::VALIDATION, names::CORE_DUMP];
        own.read_names(names.map(Into::into));
        let container = own.item();
        container.read_members(["name", "ports", "lifecycle"]);
        container.read_members(["livenessProbe", "readinessProbe", "startupProbe"]);
        if revision.is_openshift() {
            container.member("securityContext").read_whole();
        }
    }
    if revision.is_openshift() {
        spec.member("securityContext").read_whole();
    }
    read
}

/// Whether a volume has more than a name and a source, which is worth a warning.
fn has_odd_volumes(pod: Node<'_, '_>) -> bool {
    let volumes = pod.get("spec").and_then(|spec| spec.get("volumes"));
    let mut volumes = volumes.into_iter().flat_map(Node::items);
    volumes.any(|volume| volume.members().count() > 2)
}

/// The owner as templates read it.
fn owner(
    metadata: Option<Node<'_, '_>>,
    namespace: &str,
    release: Release,
) -> Result<Owner, Unusual> {
    let member = |key| plain(metadata.and_then(|metadata| metadata.get(key)));
    let owners = metadata.and_then(|metadata| metadata.get("ownerReferences"));
    let is_controller =
        |owner: &Node<'_, '_>| owner.get("controller").is_some_and(|node| node.raw() == "true");
    let mut controller = None;
    if let Some(owner) = owners.into_iter().flat_map(Node::items).find(is_controller) {
        let text = |key| plain(owner.get(key));
        controller = Some([text("apiVersion")?, text("kind")?, text("name")?]);
    }
    let labels = metadata.and_then(|metadata| metadata.get("labels"));
    for key in owner::LABELS {
        plain(labels.and_then(|labels| labels.get(key)))?;
    }
    let label = |key: &str| plain(Some(labels?.get(key)?)).ok();
    let facts = owner::Facts {
        has_prefix: !member("generateName")?.is_empty(),
        controller,
        name: member("name")?,
        label,
    };
    Ok(Owner::guess(&facts, namespace, release))
}

/// A text without escapes; empty if there is none.
fn plain<'a>(node: Option<Node<'_, 'a>>) -> Result<&'a str, Unusual> {
    match node.map(|node| (node.shape(), node.text())) {
        None | Some((Shape::Null, _)) => Ok(""),
        Some((Shape::Text, Some(Cow::Borrowed(text)))) => Ok(text),
        _ => Err(Unusual),
    }
}
