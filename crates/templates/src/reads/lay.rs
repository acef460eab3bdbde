//! What laying an overlay on a pod reads.

use std::collections::BTreeSet;

use injectd_merge::schema::{Field, Kind, Merge, POD, Struct};

use super::{Pattern, Reads};
use crate::{
    Template,
    structure::{Constant, DIRECTIVE, Entries, Structure, TextPart},
    union,
};

/// The lists of containers.
pub(super) const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// What laying a piece of a Pod on a place reads.
pub(super) fn lay(reads: &mut Reads, of: &Structure, kind: &'static Kind) {
    let Some(Entries { from: None, fields, .. }) = of.entries() else {
        return reads.read_whole();
    };
    match kind {
        Kind::Struct(_) if of.field(DIRECTIVE).is_some() => reads.read_whole(),
        Kind::Struct(types) => {
            for (key, value) in fields {
                lay_field(reads.member(key), value, types.get().field(key));
                for rival in union::others(types.get(), key) {
                    reads.member(rival).read_whole();
                }
            }
        }
        Kind::Map(..) => fields.iter().for_each(|(key, _)| reads.member(key).read_whole()),
        _ => reads.read_whole(),
    }
}

pub(super) fn lay_field(reads: &mut Reads, value: &Structure, field: Option<&'static Field>) {
    let Some(field) = field else { return reads.read_whole() };
    match (&field.kind, field.merge, value) {
        (Kind::List(element), Merge::ByKey(key), Structure::List(entries)) => {
            match element.as_struct().and_then(|of| looked_for(of, key, entries)) {
                Some(found) => found.into_iter().for_each(|of| reads.read_entries(key, of)),
                None => reads.read_whole(),
            }
        }
        (Kind::List(_), ..) => reads.read_whole(),
        (kind, ..) => lay(reads, value, kind),
    }
}

/// The texts under the key of entries that are looked for in a list; `None` if all of it is read.
fn looked_for(of: &Struct, key: &str, entries: &[Structure]) -> Option<BTreeSet<Pattern>> {
    // Entries of other lists have two keys, or numbers.
    if !["EnvVar", "VolumeMount", "VolumeDevice", "Volume", "LocalObjectReference"]
        .contains(&of.name)
    {
        return None;
    }
    let mut found = BTreeSet::new();
    for entry in entries {
        if entry.field(DIRECTIVE).is_some() {
            return None;
        }
        found.insert(entry.field(key).and_then(pattern)?);
        if of.name == "EnvVar" {
            match entry.field("value") {
                None => {}
                Some(Structure::Constant(Constant::Text(text))) => found.extend(named_by(text)),
                Some(_) => return None,
            }
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The variables that a value may name by `$(X)`.
fn named_by(text: &str) -> impl Iterator<Item = Pattern> {
    let names = text.split("$(").skip(1).filter_map(|rest| rest.split_once(')'));
    names.map(|(name, _)| Pattern::exact(name))
}

/// The texts that a structure becomes; `None` if they may be any.
pub(super) fn pattern(of: &Structure) -> Option<Pattern> {
    match of {
        Structure::Constant(Constant::Text(text)) => Some(Pattern::exact(text)),
        Structure::Text(parts) => {
            let constant = |part: Option<&TextPart>| match part {
                Some(TextPart::Constant(text)) => text.clone(),
                _ => "".into(),
            };
            let (prefix, suffix) = (constant(parts.first()), constant(parts.last()));
            Some(Pattern { prefix, suffix: Some(suffix) })
        }
        _ => None,
    }
}

/// Volumes that a template's containers mount, and that it does not add, must be the pod's; those of a
/// `StatefulSet` are known by who mounts them.
pub(super) fn mounted(pod: &mut Reads, container: &Structure, own_volumes: &[Pattern]) {
    for mounts in ["volumeMounts", "volumeDevices"] {
        let mounts = match container.field(mounts) {
            None => continue,
            Some(Structure::List(mounts)) => &**mounts,
            Some(_) => &[],
        };
        let names = mounts.iter().map(|mount| mount.field("name").and_then(pattern));
        let foreign =
            names.filter(|name| !name.as_ref().is_some_and(|name| own_volumes.contains(name)));
        for name in foreign {
            pod.at(["metadata", "ownerReferences"]).read_whole();
            let spec = pod.member("spec");
            let lists =
                LISTS.iter().flat_map(|list| [[list, "volumeMounts"], [list, "volumeDevices"]]);
            let read = |reads: &mut Reads| match &name {
                Some(name) => reads.read_entries("name", name.clone()),
                None => reads.read_whole(),
            };
            read(spec.member("volumes"));
            lists.for_each(|[list, mounts]| read(spec.at([list, "*", mounts])));
        }
    }
}

/// The names of volumes that a template adds.
pub(super) fn volumes(template: &Template) -> Vec<Pattern> {
    let overlays = template.steps.iter().filter_map(|step| step.overlay.as_ref());
    let lists = overlays.filter_map(|overlay| overlay.field("spec")?.field("volumes"));
    let volumes = lists.flat_map(|list| match list {
        Structure::List(volumes) => &**volumes,
        _ => &[],
    });
    volumes.filter_map(|volume| pattern(volume.field("name")?)).collect()
}

pub(super) fn field_kind(of: &'static Kind, key: &str) -> &'static Kind {
    let field = of.as_struct().and_then(|of| of.field(key));
    &field.expect("the table must have the field").kind
}

pub(super) fn container_kind() -> &'static Kind {
    match field_kind(field_kind(&POD, "spec"), "containers") {
        Kind::List(container) => container,
        other => other,
    }
}
