//! The places of the injected containers.

use serde_json::Value;

use super::{
    names::{CORE_DUMP, INIT, PROXY, VALIDATION},
    tree::{CONTAINERS, INIT_CONTAINERS, find, list_mut, name},
};

#[derive(Clone, Copy)]
enum Place {
    First,
    Last,
}

/// Istio: `reorderPod`.
pub(super) fn arrange(pod: &mut Value, hold: bool) {
    if let Some(list) = list_mut(pod, CONTAINERS) {
        put(list, PROXY, if hold { Place::First } else { Place::Last });
    }
    let Some(list) = list_mut(pod, INIT_CONTAINERS) else { return };
    if find(list, PROXY).is_some() {
        // Init containers of the user start after a native proxy, so that they are in the mesh.
        for name in [CORE_DUMP, PROXY, VALIDATION, INIT] {
            put(list, name, Place::First);
        }
    } else {
        // Init containers of the user have no proxy, so capturing starts after them.
        put(list, VALIDATION, Place::First);
        put(list, INIT, Place::Last);
        put(list, CORE_DUMP, Place::Last);
    }
}

/// Removes all containers of the name and puts the last of them to its place.
fn put(list: &mut Vec<Value>, wanted: &str, place: Place) {
    let Some(at) = list.iter().rposition(|container| name(container) == wanted) else { return };
    let container = list.remove(at);
    list.retain(|container| name(container) != wanted);
    match place {
        Place::First => list.insert(0, container),
        Place::Last => list.push(container),
    }
}
