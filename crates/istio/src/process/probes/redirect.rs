//! Makes probes call the agent.

use serde_json::{Map, Value};

use super::{
    super::tree::{list_mut, name},
    handlers::{Action, LISTS, Place, is_rewritten, places},
};
use crate::release::Release;

/// Every HTTP, TCP and gRPC probe becomes an HTTP probe of the agent, also those that the agent
/// does not know, such as one with the name of a port that the container lacks. The answer is
/// whether there are any.
///
/// Istio: `patchRewriteProbe`.
pub(super) fn redirect(pod: &mut Value, port: i32, release: Release) -> bool {
    let mut any = false;
    for field in LISTS {
        let containers = list_mut(pod, field).into_iter().flatten();
        for container in containers.filter(|container| is_rewritten(container)) {
            for place in places(release) {
                any |= redirect_one(container, *place, port).is_some();
            }
        }
    }
    any
}

fn redirect_one(container: &mut Value, place: Place, port: i32) -> Option<()> {
    let path = place.path(name(container));
    let probe = place.of_mut(container)?;
    let (kind, _) = place.action(probe)?;
    if kind != Action::Http {
        probe.shift_remove(kind.field());
        probe.insert(Action::Http.field().to_owned(), Value::Object(Map::new()));
    }
    let action = probe.get_mut(Action::Http.field())?.as_object_mut()?;
    action.insert("path".to_owned(), path.into());
    action.insert("port".to_owned(), port.into());
    if action.get("scheme").and_then(Value::as_str) == Some("HTTPS") {
        action.insert("scheme".to_owned(), "HTTP".into());
    }
    Some(())
}
