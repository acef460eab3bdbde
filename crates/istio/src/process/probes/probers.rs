//! The variable of the proxy with the original probes.

use serde_json::{Map, Value};

use super::{
    super::{
        names::PROBERS_VARIABLE,
        tree::{append_variable, name},
    },
    dump::Probers,
};
use crate::{
    go_json::go_json,
    release::{Delta, Release},
};

/// Appends the variable. In a pod with a status annotation, probes that an existing variable holds
/// win, since those in the pod may be rewritten ones; an existing text that cannot be read stays.
///
/// Istio: `mergeOrAppendProbers`. Without an existing variable in such a pod, releases before 1.27
/// lose the probes.
pub(super) fn hand_over(
    proxy: &mut Map<String, Value>,
    found: Probers,
    is_injected: bool,
    release: Release,
) {
    let existing = is_injected.then(|| existing(proxy)).flatten();
    let Some(variable) = existing else {
        if !is_injected || release.has(Delta::EmptyProbers) {
            append_variable(proxy, PROBERS_VARIABLE, &text(found));
        }
        return;
    };
    let value = variable.get("value").and_then(Value::as_str).unwrap_or_default();
    if let Some(old) = read(value) {
        let mut all = found;
        all.extend(old);
        variable.insert("value".to_owned(), text(all).into());
    }
}

fn existing(proxy: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    let env = proxy.get_mut("env")?.as_array_mut()?;
    env.iter_mut().find(|variable| name(variable) == PROBERS_VARIABLE)?.as_object_mut()
}

fn text(probers: Probers) -> String {
    go_json(&Value::Object(probers.into_iter().collect()))
}

/// Probes that an earlier injection has written.
fn read(text: &str) -> Option<Probers> {
    let probers = match serde_json::from_str(text).ok()? {
        Value::Null => return Some(Probers::new()),
        Value::Object(probers) => probers,
        _ => return None,
    };
    let is_readable = |prober: &Value| prober.is_object() || prober.is_null();
    probers.values().all(is_readable).then(|| probers.into_iter().collect())
}
