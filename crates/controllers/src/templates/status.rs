//! The status of a template as it is to be, and what differs from it as it is.

use std::{cmp::Reverse, collections::BTreeSet};

use injectd_profiles::template_plane::{KnownTemplate, KnownTemplates};
use injectd_templates::{Template, object::Identity};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    conditions::{Condition, NAMES, OF_NEWEST, conditions},
    findings::Findings,
    pods::{Counts, PodCounts},
    replicas::Replica,
    revisions::kept_hashes,
    write::Write,
};

/// Maximum number of revisions in a status, as in `crds/status.yaml`.
// The greatest `revisionHistoryLimit`, and the revision in use.
const MAX_REVISIONS: usize = 101;
/// Maximum number of conditions, as in `crds/status.yaml`.
const MAX_CONDITIONS: usize = 16;

/// What the status of all templates depends on, besides the templates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'f> {
    /// The replicas that live.
    pub(super) replicas: &'f [Replica],
    pub(super) findings: &'f Findings,
    /// Pods; `None` until they were counted.
    pub(super) counts: Option<&'f PodCounts>,
    pub(super) now: Timestamp,
}

/// The writes that the status of templates needs.
pub(super) fn writes(known: &KnownTemplates, facts: Facts<'_>) -> Vec<Write> {
    let kept = kept_hashes(known);
    let none = BTreeSet::new();
    let of = |(identity, template): (&Identity, &KnownTemplate)| {
        let metadata = &template.object.metadata;
        let (uid, version) = (metadata.uid.as_deref()?, metadata.resource_version.clone()?);
        let kept = kept.get(uid).unwrap_or(&none);
        let status = changes(kept, identity, template, facts)?;
        Some(Write::Status { identity: identity.clone(), version, status })
    };
    // The object of an orphan is gone.
    let there = known.templates.iter().filter(|(_, template)| !template.is_orphan);
    there.filter_map(of).collect()
}

/// The fields of the status that change, as a merge patch of it; `None` if there are none.
fn changes(
    kept: &BTreeSet<&str>,
    identity: &Identity,
    template: &KnownTemplate,
    facts: Facts<'_>,
) -> Option<Value> {
    let before = &template.object.data["status"];
    let mut status = Map::new();
    let generation = template.object.metadata.generation;
    status.insert("observedGeneration".to_owned(), generation.into());
    let (current, update) = hashes(identity, template, facts.replicas);
    status.insert("currentRevision".to_owned(), current.clone().into());
    status.insert("updateRevision".to_owned(), update.clone().into());
    if let Some(counts) = facts.counts {
        pods(&mut status, &counts.of(identity), update.as_deref(), kept);
    }
    let found = conditions(identity, template, facts.findings, facts.replicas);
    status.insert("conditions".to_owned(), all(&found, template, facts.now));
    status.retain(|field, value| *value != before[field.as_str()]);
    (!status.is_empty()).then_some(Value::Object(status))
}

/// The revision that all replicas serve, or served last, and the newest one that was accepted.
fn hashes(
    identity: &Identity,
    template: &KnownTemplate,
    replicas: &[Replica],
) -> (Option<String>, Option<String>) {
    let text = |field: &str| {
        let found = template.object.data["status"][field].as_str();
        found.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let hash = |template: &Template| template.hash.clone();
    let served = template.served.as_deref().map(hash);
    let is_everywhere = !replicas.is_empty()
        && replicas.iter().all(|replica| {
            let served_there = replica.served.as_ref().and_then(|there| there.get(identity));
            served_there.is_some() && served_there == served.as_ref()
        });
    let current = served.clone().filter(|_| is_everywhere).or_else(|| text("currentRevision"));
    let accepted = template.read.as_ref().ok().map(|template| hash(template));
    (current, accepted.or(served).or_else(|| text("updateRevision")))
}

/// Pods with the sidecar, with an outdated one, and by revision.
fn pods(
    status: &mut Map<String, Value>,
    counts: &Counts,
    newest: Option<&str>,
    kept: &BTreeSet<&str>,
) {
    let current = newest.and_then(|hash| counts.by_hash.get(hash)).copied().unwrap_or_default();
    let total = counts.total();
    status.insert("pods".to_owned(), number(total));
    status.insert("outdated".to_owned(), number(total - current));
    let mut revisions: Vec<_> = counts.by_hash.iter().collect();
    // A hash that no revision has may be forged.
    let is_known = |hash: &String| kept.contains(hash.as_str()) || newest == Some(hash);
    revisions.sort_by_key(|(hash, count)| (!is_known(hash), Reverse(**count), (*hash).clone()));
    let revisions = revisions.into_iter().take(MAX_REVISIONS);
    let revisions = revisions.map(|(hash, count)| json!({"hash": hash, "pods": number(*count)}));
    status.insert("revisions".to_owned(), revisions.collect());
}

/// A count as the schema has it.
fn number(count: u32) -> Value {
    i32::try_from(count).unwrap_or(i32::MAX).into()
}

/// All conditions: these, and those of the status that are not known here.
fn all(found: &[Condition], template: &KnownTemplate, now: Timestamp) -> Value {
    let of_status = template.object.data["status"]["conditions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let is_other =
        |condition: &&Value| condition["type"].as_str().is_some_and(|name| !NAMES.contains(&name));
    let others = of_status.iter().filter(is_other).cloned();
    let found = found.iter().map(|Condition { name, status, reason, message }| {
        let earlier = of_status.iter().find(|condition| condition["type"] == *name);
        let since = earlier.filter(|earlier| earlier["status"] == status.as_str());
        let since = since.and_then(|earlier| earlier["lastTransitionTime"].as_str());
        let mut condition = json!({
            "type": name,
            "status": status.as_str(),
            "reason": reason,
            "message": message,
            "lastTransitionTime": since.map_or_else(|| seconds(now), str::to_owned),
        });
        // While the newest spec is not in order, the others are about the one that is served.
        let generation = if template.read.is_ok() || OF_NEWEST.contains(name) {
            template.object.metadata.generation
        } else {
            earlier.and_then(|earlier| earlier["observedGeneration"].as_i64())
        };
        if let Some(generation) = generation {
            condition["observedGeneration"] = generation.into();
        }
        condition
    });
    found.chain(others).take(MAX_CONDITIONS).collect()
}

/// A time in whole seconds, as Kubernetes writes it.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests;
