//! The original probes in the form that the agent reads.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    super::{
        Facts, Warning,
        tree::{list, name},
    },
    handlers::{Action, LISTS, Place, is_rewritten, places},
};

/// The probes by their path at the agent.
pub(super) type Probers = BTreeMap<String, Value>;

/// The name of a port that the container lacks.
struct UnknownPort<'a>(&'a str);

/// All probes of the application's containers that the agent can run.
///
/// Istio: `DumpAppProbers`.
pub(super) fn dump(pod: &Value, facts: &Facts<'_>) -> (Probers, Vec<Warning>) {
    let mut found = Probers::new();
    let mut warnings = Vec::new();
    let containers = LISTS.into_iter().flat_map(|field| list(pod, field));
    for container in containers.filter(|container| is_rewritten(container)) {
        for place in places(facts.release) {
            match prober(container, *place, facts.status_port) {
                Ok(Some(prober)) => _ = found.insert(place.path(name(container)), prober),
                Ok(None) => {}
                Err(UnknownPort(port)) => warnings.push(Warning::UnknownPort {
                    container: name(container).to_owned(),
                    port: port.to_owned(),
                }),
            }
        }
    }
    (found, warnings)
}

/// The answer is `None` if there is nothing to hand over.
fn prober(
    container: &Value,
    place: Place,
    status_port: i32,
) -> Result<Option<Value>, UnknownPort<'_>> {
    let Some(probe) = place.of(container) else { return Ok(None) };
    let Some((kind, action)) = place.action(probe) else { return Ok(None) };
    let details = if kind == Action::Grpc {
        grpc(action)
    } else {
        let Some(port) = port(container, action, status_port)? else { return Ok(None) };
        if kind == Action::Http { http(action, port) } else { tcp(action, port) }
    };
    let mut prober = Map::new();
    prober.insert(kind.field().to_owned(), Value::Object(details));
    if place.is_probe() {
        copy(probe, &mut prober, "timeoutSeconds");
    }
    Ok(Some(Value::Object(prober)))
}

/// The port as a number; `None` if the probe already is rewritten.
fn port<'a>(
    container: &Value,
    action: &'a Map<String, Value>,
    status_port: i32,
) -> Result<Option<Value>, UnknownPort<'a>> {
    match action.get("port") {
        Some(Value::String(wanted)) => {
            let ports = container.get("ports").and_then(Value::as_array);
            let is_wanted = |port: &&Value| !wanted.is_empty() && name(port) == wanted;
            let named = ports.and_then(|ports| ports.iter().rfind(is_wanted));
            let named = named.ok_or(UnknownPort(wanted))?;
            Ok(Some(named.get("containerPort").cloned().unwrap_or_else(|| 0.into())))
        }
        Some(port @ Value::Number(_)) => {
            Ok((port.as_f64() != Some(f64::from(status_port))).then(|| port.clone()))
        }
        _ => Ok((status_port != 0).then(|| 0.into())),
    }
}

fn http(action: &Map<String, Value>, port: Value) -> Map<String, Value> {
    let mut details = Map::new();
    copy(action, &mut details, "path");
    details.insert("port".to_owned(), port);
    copy(action, &mut details, "host");
    copy(action, &mut details, "scheme");
    let headers = action.get("httpHeaders").and_then(Value::as_array);
    if let Some(headers) = headers.filter(|headers| !headers.is_empty()) {
        let headers = headers.iter().map(header).collect();
        details.insert("httpHeaders".to_owned(), headers);
    }
    details
}

/// Go writes both texts of a header, also those that are not set (`HTTPHeader`).
fn header(header: &Value) -> Value {
    let text = |field: &str| {
        let text = header.get(field).filter(|value| !value.is_null());
        (field.to_owned(), text.cloned().unwrap_or_else(|| "".into()))
    };
    Value::Object(["name", "value"].map(text).into_iter().collect())
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
