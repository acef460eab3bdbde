//! The original probes in the form that the agent reads.

#![expect(clippy::disallowed_types, reason = "templates are merged into trees")]

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    super::{
        Facts,
        tree::{list, name},
    },
    handlers::{Action, LISTS, Place, is_rewritten, places},
};

/// The probes by their path at the agent.
pub(super) type Probers = BTreeMap<String, Value>;

/// All probes of the application's containers that the agent can run.
///
/// Istio: `DumpAppProbers`.
pub(super) fn dump(pod: &Value, facts: &Facts<'_>) -> Probers {
    let mut found = Probers::new();
    let containers = LISTS.into_iter().flat_map(|field| list(pod, field));
    for container in containers.filter(|container| is_rewritten(container)) {
        for place in places(facts.release) {
            if let Some(prober) = prober(container, *place, facts.status_port) {
                found.insert(place.path(name(container)), prober);
            }
        }
    }
    found
}

fn prober(container: &Value, place: Place, status_port: i32) -> Option<Value> {
    let probe = place.of(container)?;
    let (kind, action) = place.action(probe)?;
    let details = match kind {
        Action::Http => http(action, port(container, action, status_port)?),
        Action::Tcp => tcp(action, port(container, action, status_port)?),
        Action::Grpc => grpc(action),
    };
    let mut prober = Map::new();
    prober.insert(kind.field().to_owned(), Value::Object(details));
    if place.is_probe() {
        copy(probe, &mut prober, "timeoutSeconds");
    }
    Some(Value::Object(prober))
}

/// The port as a number; `None` if its name is unknown, or if the probe already is rewritten.
fn port(container: &Value, action: &Map<String, Value>, status_port: i32) -> Option<Value> {
    match action.get("port") {
        Some(Value::String(wanted)) => {
            let ports = container.get("ports").and_then(Value::as_array)?;
            let named = |port: &&Value| !wanted.is_empty() && name(port) == wanted;
            let named = ports.iter().rfind(named)?;
            Some(named.get("containerPort").cloned().unwrap_or_else(|| 0.into()))
        }
        Some(port @ Value::Number(_)) => {
            (port.as_f64() != Some(f64::from(status_port))).then(|| port.clone())
        }
        _ => (status_port != 0).then(|| 0.into()),
    }
}

fn http(action: &Map<String, Value>, port: Value) -> Map<String, Value> {
    let mut details = Map::new();
    copy(action, &mut details, "path");
    details.insert("port".to_owned(), port);
    copy(action, &mut details, "host");
    copy(action, &mut details, "scheme");
    copy(action, &mut details, "httpHeaders");
    details
}

fn tcp(action: &Map<String, Value>, port: Value) -> Map<String, Value> {
    let mut details = Map::new();
    details.insert("port".to_owned(), port);
    copy(action, &mut details, "host");
    details
}

fn grpc(action: &Map<String, Value>) -> Map<String, Value> {
    let mut details = Map::new();
    let port = action.get("port").filter(|port| port.is_number());
    details.insert("port".to_owned(), port.cloned().unwrap_or_else(|| 0.into()));
    details.insert("service".to_owned(), action.get("service").cloned().unwrap_or_default());
    details
}

/// Copies a field unless Go would leave it out.
fn copy(from: &Map<String, Value>, to: &mut Map<String, Value>, field: &str) {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    };
    if let Some(value) = from.get(field).filter(|value| !is_empty(value)) {
        to.insert(field.to_owned(), value.clone());
    }
}
