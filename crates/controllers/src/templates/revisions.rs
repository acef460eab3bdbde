//! Which `ControllerRevision`s a leader makes, numbers and removes.
//!
//! Invariants, which `model.rs` checks:
//! - A revision that is accepted, or served by the process that plans, is kept.
//! - The newest revision of a template is never removed while the template is there.
//! - While replicas serve something else than the process that plans, far more old revisions are kept.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use injectd_cluster::digest::digest;
use injectd_profiles::template_plane::{
    HASH_LABEL, KIND_LABEL, KeptRevision, KnownTemplate, KnownTemplates, NAME_LABEL,
    NAMESPACE_LABEL, UID_LABEL,
};
use injectd_templates::{Template, object::Identity, schema::API_VERSION};
use k8s_openapi::{api::apps::v1::ControllerRevision, apimachinery::pkg::runtime::RawExtension};
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::write::{Found, Write, kind};

/// The default of `revisionHistoryLimit`, and its bounds, as in `crds/spec.yaml`.
const DEFAULT_LIMIT: usize = 5;
const MAX_LIMIT: usize = 100;
/// Old revisions that are kept beyond the limit while a replica serves something else.
// A replica that is behind may need one of them again: it serves the last good revision that is
// kept.
const UNSETTLED: usize = 50;
/// Hexadecimal digits of the name of a revision that stand for its template.
const NAME_DIGITS: usize = 8;

/// The writes that revisions of templates need.
///
/// `is_settled`: all replicas serve what this process serves. `gone`: uids of templates that are gone for
/// good.
pub(super) fn writes(
    known: &KnownTemplates,
    is_settled: bool,
    gone: &BTreeSet<String>,
) -> Vec<Write> {
    let by_uid = by_uid(known);
    let mut writes = Vec::new();
    for (identity, template) in &known.templates {
        let Some(uid) = uid_of(template) else { continue };
        let kept = by_uid.get(uid).map(Vec::as_slice).unwrap_or_default();
        let of = Of { identity, uid, template, kept };
        writes.extend(of.missing());
        writes.extend(of.newest());
        writes.extend(of.excess(is_settled));
    }
    for uid in orphans(known).filter(|uid| gone.contains(*uid)) {
        let kept = by_uid.get(uid).into_iter().flatten();
        writes.extend(kept.map(|revision| Write::DeleteRevision(version(revision))));
    }
    writes
}

/// The revisions that this process serves and that nothing keeps: each replica makes them if no leader does.
pub(super) fn unkept(known: &KnownTemplates) -> Vec<Write> {
    let by_uid = by_uid(known);
    let mut writes = Vec::new();
    for (identity, template) in &known.templates {
        let Some(uid) = uid_of(template) else { continue };
        let kept = by_uid.get(uid).map(Vec::as_slice).unwrap_or_default();
        let of = Of { identity, uid, template, kept };
        let is_new = |write: &Write| matches!(write, Write::CreateRevision(_));
        writes.extend(of.missing().into_iter().filter(is_new));
    }
    writes
}

/// The uids of templates that have revisions, and are not there.
pub(super) fn orphans(known: &KnownTemplates) -> impl Iterator<Item = &str> {
    let there: BTreeSet<_> = known
        .templates
        .values()
        .filter_map(|template| template.object.metadata.uid.as_deref())
        .collect();
    let uids: BTreeSet<_> =
        known.revisions.iter().filter_map(|revision| label(revision, UID_LABEL)).collect();
    uids.into_iter().filter(move |uid| !there.contains(uid))
}

/// The kind of a template that has revisions, by its uid.
pub(super) fn kind_of<'k>(known: &'k KnownTemplates, uid: &str) -> Option<&'k str> {
    let mut revisions = known.revisions.iter();
    let revision = revisions.find(|revision| label(revision, UID_LABEL) == Some(uid))?;
    label(revision, KIND_LABEL)
}

/// The hashes of the revisions that are kept, by the uids of their templates.
pub(super) fn kept_hashes(known: &KnownTemplates) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut hashes = BTreeMap::<_, BTreeSet<_>>::new();
    for revision in &known.revisions {
        if let (Some(uid), Some(hash)) = (label(revision, UID_LABEL), label(revision, HASH_LABEL)) {
            hashes.entry(uid).or_default().insert(hash);
        }
    }
    hashes
}

/// The uid of a template that is there. No object will have that of an orphan again.
fn uid_of(template: &KnownTemplate) -> Option<&str> {
    template.object.metadata.uid.as_deref().filter(|_| !template.is_orphan)
}

fn by_uid(known: &KnownTemplates) -> BTreeMap<&str, Vec<&KeptRevision>> {
    let mut by_uid = BTreeMap::<_, Vec<_>>::new();
    for revision in &known.revisions {
        if let Some(uid) = label(revision, UID_LABEL) {
            by_uid.entry(uid).or_default().push(&**revision);
        }
    }
    by_uid
}

fn label<'r>(revision: &'r ControllerRevision, label: &str) -> Option<&'r str> {
    revision.metadata.labels.as_ref()?.get(label).map(String::as_str)
}

fn version(revision: &ControllerRevision) -> Found {
    Found::of(&revision.metadata)
}

/// A template with the revisions that are kept of it.
struct Of<'k> {
    identity: &'k Identity,
    uid: &'k str,
    template: &'k KnownTemplate,
    kept: &'k [&'k KeptRevision],
}

impl Of<'_> {
    /// The revision that is accepted.
    fn accepted(&self) -> Option<&Arc<Template>> {
        self.template.read.as_ref().ok()
    }

    /// The revisions that must be kept, the accepted one last.
    fn wanted(&self) -> Vec<&Template> {
        let accepted = self.accepted();
        let is_other =
            |served: &&Arc<Template>| accepted.is_none_or(|accepted| accepted.hash != served.hash);
        let served = self.template.served.as_ref().filter(is_other);
        served.into_iter().chain(accepted).map(|template| &**template).collect()
    }

    fn kept(&self, hash: &str) -> Option<&KeptRevision> {
        let mut kept = self.kept.iter().copied();
        kept.find(|revision| label(revision, HASH_LABEL) == Some(hash))
    }

    fn last_number(&self) -> i64 {
        self.kept.iter().map(|revision| revision.revision).max().unwrap_or_default()
    }

    /// Makes the revisions that are not kept. One with a content that is not that of its hash is removed, and
    /// made at the next look.
    fn missing(&self) -> Vec<Write> {
        let mut number = self.last_number();
        let mut writes = Vec::new();
        for template in self.wanted() {
            match self.kept(&template.hash) {
                Some(kept) if is_of(kept, self.identity, template) => {}
                Some(other) => writes.push(Write::DeleteRevision(version(other))),
                None => {
                    number = number.saturating_add(1);
                    let revision = revision(self.identity, self.uid, template, number);
                    writes.push(Write::CreateRevision(Box::new(revision)));
                }
            }
        }
        writes
    }

    /// Makes the accepted revision the newest one; else the served one, if another one has its number.
    fn newest(&self) -> Option<Write> {
        let newest = self.accepted().or(self.template.served.as_ref())?;
        let kept = self.kept(&newest.hash)?;
        if !is_of(kept, self.identity, newest) {
            return None;
        }
        let others = self.kept.iter().filter(|other| other.metadata.name != kept.metadata.name);
        let last = others.map(|other| other.revision).max()?;
        let is_newest = match self.accepted() {
            Some(_) => kept.revision > last,
            None => kept.revision != last,
        };
        let revision = last.saturating_add(1);
        (!is_newest).then(|| Write::RenumberRevision { of: version(kept), revision })
    }

    /// Removes the oldest revisions beyond the limit.
    fn excess(&self, is_settled: bool) -> Vec<Write> {
        let wanted: BTreeSet<_> =
            self.wanted().into_iter().map(|template| template.hash.as_str()).collect();
        let last = self.last_number();
        let is_wanted = |revision: &ControllerRevision| {
            label(revision, HASH_LABEL).is_some_and(|hash| wanted.contains(hash))
        };
        let mut old: Vec<_> = self
            .kept
            .iter()
            .filter(|revision| revision.revision != last && !is_wanted(revision))
            .collect();
        old.sort_by_key(|revision| (-revision.revision, revision.metadata.name.clone()));
        let most = self.limit() + if is_settled { 0 } else { UNSETTLED };
        old.into_iter()
            .skip(most)
            .map(|revision| Write::DeleteRevision(version(revision)))
            .collect()
    }

    /// `revisionHistoryLimit`.
    fn limit(&self) -> usize {
        let written = self.template.object.data.pointer("/spec/revisionHistoryLimit");
        let limit = written.and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
        limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT)
    }
}

/// Whether a revision has the content of its template.
fn is_of(kept: &KeptRevision, identity: &Identity, template: &Template) -> bool {
    // The keys of both are sorted, and `spec` is the last one.
    let without_spec = kept
        .data
        .strip_suffix('}')
        .and_then(|data| data.strip_suffix(&*template.revision)?.strip_suffix(",\"spec\":"));
    let head = head(identity).to_string();
    without_spec.is_some_and(|data| head.strip_suffix('}') == Some(data))
}

/// The object that a revision keeps.
fn content(identity: &Identity, template: &Template) -> Value {
    let mut content = head(identity);
    content["spec"] = serde_json::from_str(&template.revision).unwrap_or_default();
    content
}

/// The object that a revision keeps, without `spec`.
fn head(identity: &Identity) -> Value {
    let mut content = json!({
        "apiVersion": API_VERSION,
        "kind": kind(identity),
        "metadata": {"name": identity.name},
    });
    if let Some(namespace) = &identity.namespace {
        content["metadata"]["namespace"] = namespace.as_str().into();
    }
    content
}

/// A new revision.
fn revision(
    identity: &Identity,
    uid: &str,
    template: &Template,
    number: i64,
) -> ControllerRevision {
    let Identity { namespace, name } = identity;
    let short = if namespace.is_some() { "sct" } else { "cst" };
    let of = digest([short, namespace.as_deref().unwrap_or_default(), name, uid]);
    let hash = &template.hash;
    let labels = [
        (KIND_LABEL, kind(identity)),
        (NAMESPACE_LABEL, namespace.as_deref().unwrap_or_default()),
        (NAME_LABEL, name),
        (UID_LABEL, uid),
        (HASH_LABEL, hash),
    ];
    let labels = labels.into_iter().filter(|(_, value)| !value.is_empty());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{short}-{name}-{hash}-{}", &of[..NAME_DIGITS])),
            labels: Some(labels.map(|(key, value)| (key.into(), value.into())).collect()),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(content(identity, template))),
        revision: number,
    }
}

#[cfg(test)]
mod tests;
