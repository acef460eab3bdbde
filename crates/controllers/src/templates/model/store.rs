//! The API server of the model: it refuses what an API server refuses.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{LazyLock, Mutex},
};

use injectd_profiles::template_plane::{Definition, HASH_LABEL, Kind, KnownTemplates, UID_LABEL};
use injectd_templates::{Template, object::Identity};
use k8s_openapi::api::{apps::v1::ControllerRevision, coordination::v1::Lease};
use kube::{api::ObjectMeta, core::DynamicObject};
use serde_json::{Value, json};

use crate::templates::{
    replicas::DIGEST_ANNOTATION,
    revisions::kind_of,
    write::{Found, Write},
};

/// `revisionHistoryLimit` of all templates.
pub(crate) const LIMIT: usize = 2;

/// The templates of the model: one of each kind.
pub(crate) const TEMPLATES: usize = 2;

/// Why a write is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    Conflict,
    Gone,
}

/// The definition of a kind: how often it was made, and whether it is there.
#[derive(Debug, Clone, Copy)]
struct Defined {
    count: u64,
    is_there: bool,
}

impl Default for Defined {
    fn default() -> Self {
        Self { count: 0, is_there: true }
    }
}

/// What an API server has.
#[derive(Debug, Default)]
pub(crate) struct Store {
    templates: BTreeMap<Identity, DynamicObject>,
    revisions: BTreeMap<String, ControllerRevision>,
    leases: BTreeMap<String, Lease>,
    definitions: [Defined; Kind::ALL.len()],
    /// The last `resourceVersion`, and that of the last write that is not of a Lease.
    last: u64,
    version: u64,
}

pub(crate) fn identity(index: usize) -> Identity {
    let namespace = (index % 2 == 1).then(|| "team".to_owned());
    Identity { namespace, name: format!("t{index}") }
}

/// A spec of a template: `None` is one with a problem.
fn spec(identity: &Identity, number: Option<u8>) -> Value {
    let image = number.map_or_else(|| "${params.none}".to_owned(), |number| format!("a:{number}"));
    json!({
        "match": {"podSelector": {"matchLabels": {"a": "b"}}},
        "steps": [{
            "name": "s",
            "overlay": {"spec": {"containers": [{"name": identity.name, "image": image}]}},
        }],
        "revisionHistoryLimit": LIMIT,
    })
}

pub(crate) fn uid_of(revision: &ControllerRevision) -> Option<&str> {
    revision.metadata.labels.as_ref()?.get(UID_LABEL).map(String::as_str)
}

/// Whether a revision has the content of its hash.
pub(crate) fn is_whole(revision: &ControllerRevision) -> bool {
    /// The hash of each content, which is read once.
    static HASHES: LazyLock<Mutex<HashMap<String, Option<String>>>> = LazyLock::new(Mutex::default);
    let hash = revision.metadata.labels.as_ref().and_then(|labels| labels.get(HASH_LABEL));
    let Some(data) = &revision.data else { return false };
    let mut hashes = HASHES.lock().expect("no panic");
    let read = || Template::read(&data.0).ok().map(|template| template.hash);
    hash.is_some() && hashes.entry(data.0.to_string()).or_insert_with(read).as_ref() == hash
}

impl Store {
    fn next(&mut self) -> String {
        self.last += 1;
        self.version = self.last;
        self.last.to_string()
    }

    /// The version of the last write that is not of a Lease.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn edit(&mut self, identity: &Identity, number: Option<u8>) {
        if !self.definitions[Kind::of(identity) as usize].is_there {
            return;
        }
        let version = self.next();
        let uid = format!("uid-{}", self.last);
        let template = self.templates.entry(identity.clone()).or_insert_with(|| DynamicObject {
            types: None,
            metadata: ObjectMeta {
                name: Some(identity.name.clone()),
                namespace: identity.namespace.clone(),
                uid: Some(uid),
                generation: Some(0),
                ..ObjectMeta::default()
            },
            data: json!({}),
        });
        let spec = spec(identity, number);
        if template.data["spec"] != spec {
            template.data["spec"] = spec;
            template.metadata.generation = template.metadata.generation.map(|number| number + 1);
        }
        template.metadata.resource_version = Some(version);
    }

    pub(crate) fn delete(&mut self, identity: &Identity) {
        self.next();
        self.templates.remove(identity);
    }

    pub(crate) fn set_kind(&mut self, identity: &Identity, is_there: bool) {
        self.next();
        let kind = Kind::of(identity);
        let defined = &mut self.definitions[kind as usize];
        defined.count += u64::from(is_there && !defined.is_there);
        defined.is_there = is_there;
        if !is_there {
            self.templates.retain(|other, _| Kind::of(other) != kind);
        }
    }

    /// Someone overwrites a revision with the content of another one.
    pub(crate) fn lose(&mut self, index: usize) {
        let version = self.next();
        let mut revisions = self.revisions.values_mut().skip(index);
        if let Some(revision) = revisions.next() {
            revision.metadata.resource_version = Some(version);
            if let Some(data) = &mut revision.data {
                data.0["spec"]["priority"] = 7.into();
            }
        }
    }

    /// The status of each template that is there, by its uid.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.templates
            .values()
            .filter_map(|object| Some((object.metadata.uid.as_deref()?, &object.data["status"])))
    }

    /// The templates of a kind; `None` if its definition is gone.
    pub(crate) fn templates(&self, kind: Kind) -> Option<Vec<DynamicObject>> {
        let of_kind = self.templates.iter().filter(|(identity, _)| Kind::of(identity) == kind);
        let is_there = self.definitions[kind as usize].is_there;
        is_there.then(|| of_kind.map(|(_, object)| object.clone()).collect())
    }

    pub(crate) fn definition(&self, kind: Kind) -> Definition {
        match self.definitions[kind as usize] {
            Defined { count, is_there: true } => Definition::There(count.to_string()),
            Defined { is_there: false, .. } => Definition::Gone,
        }
    }

    pub(crate) fn revisions(&self) -> Vec<ControllerRevision> {
        self.revisions.values().cloned().collect()
    }

    pub(crate) fn leases(&self) -> Vec<Lease> {
        self.leases.values().cloned().collect()
    }

    /// A replica writes its Lease.
    pub(crate) fn report(&mut self, replica: usize, digest: &str) {
        let name = replica.to_string();
        let annotations = [(DIGEST_ANNOTATION.to_owned(), digest.to_owned())].into();
        let metadata = ObjectMeta {
            name: Some(name),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        };
        self.write_lease(&Lease { metadata, ..Lease::default() });
    }

    pub(crate) fn write_lease(&mut self, lease: &Lease) {
        self.last += 1;
        let mut lease = lease.clone();
        lease.metadata.resource_version = Some(self.last.to_string());
        self.leases.insert(lease.metadata.name.clone().unwrap_or_default(), lease);
    }

    pub(crate) fn has_reported(&self, digest: &str) -> bool {
        self.leases.values().all(|lease| {
            let annotations = lease.metadata.annotations.as_ref();
            annotations
                .and_then(|annotations| annotations.get(DIGEST_ANNOTATION))
                .map(String::as_str)
                == Some(digest)
        })
    }

    /// Whether a template with this uid is there.
    pub(crate) fn is_there(&self, uid: &str) -> bool {
        self.templates.values().any(|object| object.metadata.uid.as_deref() == Some(uid))
    }

    /// Whether the kind of a template that is gone is there.
    pub(crate) fn has_kind_of(&self, known: &KnownTemplates, uid: &str) -> bool {
        let kind = Kind::ALL.into_iter().find(|kind| kind_of(known, uid) == Some(kind.as_str()));
        kind.is_some_and(|kind| self.definitions[kind as usize].is_there)
    }

    /// The revisions of a template.
    pub(crate) fn kept(&self, uid: &str) -> Vec<&ControllerRevision> {
        self.revisions.values().filter(|revision| uid_of(revision) == Some(uid)).collect()
    }

    /// The number of the newest revision of a template.
    pub(crate) fn newest(&self, uid: &str) -> Option<i64> {
        self.kept(uid).into_iter().map(|revision| revision.revision).max()
    }

    /// A revision, if it is still as it was read.
    pub(crate) fn as_read(&self, of: &Found) -> Option<&ControllerRevision> {
        let revision = self.revisions.get(&of.name)?;
        (Found::of(&revision.metadata) == *of).then_some(revision)
    }

    /// A write of a leader.
    pub(crate) fn write(&mut self, write: &Write) -> Result<(), Refusal> {
        match write {
            Write::CreateRevision(revision) => self.create(revision),
            Write::RenumberRevision { of, revision } => {
                let number = *revision;
                self.must_be(of)?;
                let version = self.next();
                let revision = self.revisions.get_mut(&of.name).ok_or(Refusal::Gone)?;
                (revision.revision, revision.metadata.resource_version) = (number, Some(version));
                Ok(())
            }
            Write::DeleteRevision(of) => {
                self.must_be(of)?;
                self.next();
                self.revisions.remove(&of.name);
                Ok(())
            }
            Write::Status { identity, version, status } => {
                self.write_status(identity, version, status)
            }
            Write::DeleteLease(of) => {
                let lease = self.leases.get(&of.name).ok_or(Refusal::Gone)?;
                if Found::of(&lease.metadata) != *of {
                    return Err(Refusal::Conflict);
                }
                self.next();
                self.leases.remove(&of.name);
                Ok(())
            }
        }
    }

    fn must_be(&self, of: &Found) -> Result<(), Refusal> {
        if !self.revisions.contains_key(&of.name) {
            return Err(Refusal::Gone);
        }
        self.as_read(of).map(drop).ok_or(Refusal::Conflict)
    }

    fn create(&mut self, revision: &ControllerRevision) -> Result<(), Refusal> {
        let name = revision.metadata.name.clone().unwrap_or_default();
        if self.revisions.contains_key(&name) {
            return Err(Refusal::Conflict);
        }
        let mut revision = revision.clone();
        revision.metadata.resource_version = Some(self.next());
        revision.metadata.uid = Some(format!("revision-{}", self.last));
        self.revisions.insert(name, revision);
        Ok(())
    }

    fn write_status(
        &mut self,
        identity: &Identity,
        version: &str,
        status: &Value,
    ) -> Result<(), Refusal> {
        let found = self.templates.get(identity).ok_or(Refusal::Gone)?;
        if found.metadata.resource_version.as_deref() != Some(version) {
            return Err(Refusal::Conflict);
        }
        let version = self.next();
        let template = self.templates.get_mut(identity).ok_or(Refusal::Gone)?;
        template.metadata.resource_version = Some(version);
        for (field, value) in status.as_object().into_iter().flatten() {
            template.data["status"][field] = value.clone();
        }
        if let Some(fields) = template.data["status"].as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        Ok(())
    }
}
