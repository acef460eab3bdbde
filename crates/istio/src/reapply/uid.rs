//! The ids of a user's `istio-proxy`, where the capture of traffic must know them.

use serde_json::{Map, Value};

use crate::{
    process::{
        Facts, Warning,
        names::{INIT, INTERCEPTION_MODE_ANNOTATION, VALIDATION},
        tree::{
            INIT_CONTAINERS, annotation, find_mut, list, name, object_mut, sidecar, sidecar_mut,
        },
    },
    release::Delta,
};

const TPROXY: &str = "TPROXY";

/// The argument of `istio-init` before the proxy's uid.
const UID_FLAG: &str = "-u";

/// The ids that a user gave to the proxy.
struct Ids {
    user: Option<i64>,
    group: Option<i64>,
}

/// Istio: `adjustInitContainerUser`.
pub(super) fn adjust(pod: &mut Value, original: &Value, facts: &Facts<'_>) -> Option<Warning> {
    if !facts.release.has(Delta::InitUser) {
        return None;
    }
    let ids = ids(original)?;
    let names = [INIT, VALIDATION];
    let is_there =
        |wanted: &&str| list(pod, INIT_CONTAINERS).iter().any(|one| name(one) == *wanted);
    let Some(init) = names.into_iter().find(is_there) else {
        return Some(Warning::NoInitContainer);
    };
    let mode = annotation(pod, INTERCEPTION_MODE_ANNOTATION);
    let tproxy = facts.tproxy || mode == Some(TPROXY);
    if let (true, Some(proxy)) = (tproxy && ids.user.is_some(), sidecar_mut(pod)) {
        // Only root may bind with TPROXY.
        Ids { user: Some(0), group: None }.set(proxy);
    }
    let init = find_mut(pod, INIT_CONTAINERS, init)?;
    if !tproxy && init.get("name").and_then(Value::as_str) == Some(VALIDATION) {
        ids.set(init);
    }
    if let Some(user) = ids.user.filter(|user| *user != 0) {
        set_flag(init, user);
    }
    None
}

fn ids(original: &Value) -> Option<Ids> {
    let security = sidecar(original)?.get("securityContext")?;
    let id = |field| security.get(field).and_then(Value::as_i64);
    let ids = Ids { user: id("runAsUser"), group: id("runAsGroup") };
    (ids.user.is_some() || ids.group.is_some()).then_some(ids)
}

impl Ids {
    fn set(&self, container: &mut Map<String, Value>) {
        let Some(security) = object_mut(container, "securityContext") else { return };
        for (field, id) in [("runAsUser", self.user), ("runAsGroup", self.group)] {
            if let Some(id) = id {
                security.insert(field.to_owned(), id.into());
            }
        }
    }
}

/// Replaces the argument after the first flag. Upstream panics if the flag is the last argument.
fn set_flag(container: &mut Map<String, Value>, user: i64) {
    let Some(args) = container.get_mut("args").and_then(Value::as_array_mut) else { return };
    let flag = args.iter().position(|argument| argument == UID_FLAG);
    if let Some(value) = flag.and_then(|flag| args.get_mut(flag + 1)) {
        *value = user.to_string().into();
    }
}
