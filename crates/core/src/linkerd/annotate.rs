//! The patch that only adds the opaque-ports annotation, for Services and for objects that are not
//! injected (`inject.go`, `CreateOpaquePortsPatch`).

use std::borrow::Cow;

use super::{annotations::Annotation, overrides::Overrides, pod::Object, snapshot::Snapshot};
use crate::{
    object::Kind,
    patch::{Segment, write_add, write_add_string},
};

/// The patch; `None` if the object needs no annotation.
#[must_use]
pub fn opaque_ports_patch(
    snapshot: &Snapshot,
    kind: Kind,
    object: &Object<'_>,
    overrides: &Overrides<'_>,
) -> Option<Segment> {
    let ports = ports_to_add(snapshot, kind, object, overrides)?;
    let mut patch = b"[".to_vec();
    if object.metadata.annotations.is_empty() {
        write_add(&mut patch, "", "/metadata/annotations", b"{}");
        patch.push(b',');
    }
    let key = Annotation::OpaquePorts.key();
    write_add_string(&mut patch, "", "/metadata/annotations", key, &ports);
    patch.push(b']');
    Some(Segment::new(patch))
}

fn ports_to_add<'o>(
    snapshot: &Snapshot,
    kind: Kind,
    object: &Object<'_>,
    overrides: &Overrides<'o>,
) -> Option<Cow<'o, str>> {
    // The object's own annotation stays as its author wrote it, even if it is empty.
    if overrides.is_own(Annotation::OpaquePorts) {
        return None;
    }
    if let Some(ports) = overrides.of_namespace(Annotation::OpaquePorts) {
        return Some(Cow::Borrowed(ports));
    }
    let defaults = &snapshot.default_opaque_ports;
    let ports = match kind {
        Kind::Pod => defaults.of_pod(snapshot.port_rules, &object.spec.pod),
        Kind::Service => defaults.of_service(&object.spec.other.ports),
        Kind::Workload(_) | Kind::CronJob | Kind::Namespace | Kind::Other => return None,
    };
    (!ports.is_empty()).then_some(Cow::Owned(ports))
}
