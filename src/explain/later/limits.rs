//! Resource quotas and limit ranges.

use injectd_gocompat::quantity;
use serde_json::{Map, Value, json};

use super::{Effect, Objection, containers, items, objection, text};

/// The resources of which a quota wants every container to name its amount.
const OF_EVERY_CONTAINER: [&str; 2] = ["cpu", "memory"];

/// The pod with the default requests and limits that limit ranges give to containers without any.
/// The API server applies them again after a webhook has changed the pod.
pub(super) fn with_defaults(limit_ranges: &[Value], pod: &Value) -> Value {
    let mut pod = pod.clone();
    for limit in of_containers(limit_ranges).map(|(_, limit)| limit) {
        for list in ["/spec/initContainers", "/spec/containers"] {
            let containers = pod.pointer_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                for (key, defaults) in [("limits", "default"), ("requests", "defaultRequest")] {
                    add_missing(container, key, limit.get(defaults));
                }
            }
        }
    }
    pod
}

fn add_missing(container: &mut Value, key: &str, defaults: Option<&Value>) {
    let Some(container) = container.as_object_mut() else { return };
    let Some(defaults) = defaults.and_then(Value::as_object) else { return };
    let resources = container.entry("resources").or_insert_with(|| json!({}));
    let Some(resources) = resources.as_object_mut() else { return };
    let amounts = resources.entry(key).or_insert_with(|| json!({}));
    let Some(amounts) = amounts.as_object_mut() else { return };
    for (resource, amount) in defaults {
        amounts.entry(resource.clone()).or_insert_with(|| amount.clone());
    }
}

/// The limits for containers, each with the name of its range.
fn of_containers(limit_ranges: &[Value]) -> impl Iterator<Item = (&str, &Value)> {
    limit_ranges.iter().flat_map(|range| {
        let name = text(range, "/metadata/name").unwrap_or_default();
        let limits = items(range.pointer("/spec/limits")).iter();
        limits.filter(|limit| text(limit, "/type") == Some("Container")).map(move |it| (name, it))
    })
}

/// The objections of limit ranges to single containers.
pub(super) fn of_ranges(limit_ranges: &[Value], pod: &Value) -> Vec<Objection> {
    let mut found = Vec::new();
    for (range, limit) in of_containers(limit_ranges) {
        let by = format!("LimitRange {range}");
        for container in containers(pod) {
            let who = text(container, "/name").unwrap_or_default();
            for (resource, most) in amounts(limit.get("max")) {
                let set = amount(container, "limits", resource);
                let problem = match set {
                    None => "sets no limit".to_owned(),
                    Some(limit) if limit > most => "exceeds the limit".to_owned(),
                    Some(_) => continue,
                };
                let most = &limit["max"][resource];
                let text = format!("container {who} {problem} for {resource}: at most {most}");
                found.push(objection(Effect::Refuses, by.clone(), text));
            }
            for (resource, least) in amounts(limit.get("min")) {
                let set = amount(container, "requests", resource)
                    .or_else(|| amount(container, "limits", resource));
                if set.is_none_or(|request| request < least) {
                    let least = &limit["min"][resource];
                    let text =
                        format!("container {who} requests too little {resource}: at least {least}");
                    found.push(objection(Effect::Refuses, by.clone(), text));
                }
            }
        }
    }
    found
}

/// The objections of quotas: amounts that containers do not name, and sums that exceed what is left.
pub(super) fn of_quotas(quotas: &[Value], pod: &Value) -> Vec<Objection> {
    let mut found = Vec::new();
    for quota in quotas {
        let has_scopes = ["scopes", "scopeSelector"].iter().any(|key| {
            quota.pointer(&format!("/spec/{key}")).is_some_and(|scope| !scope.is_null())
        });
        // Whether a scope has the pod depends on more than the pod.
        if has_scopes {
            continue;
        }
        let by = format!("ResourceQuota {}", text(quota, "/metadata/name").unwrap_or_default());
        for (name, hard) in amounts(quota.pointer("/spec/hard")) {
            if let Some(text) = exceeded(quota, name, hard, pod) {
                found.push(objection(Effect::Refuses, by.clone(), text));
            }
        }
    }
    found
}

fn exceeded(quota: &Value, name: &str, hard: f64, pod: &Value) -> Option<String> {
    let (key, resource) = match name.split_once('.') {
        Some((key @ ("limits" | "requests"), resource)) => (key, resource),
        _ if name == "pods" => ("", "pods"),
        _ if matches!(name, "cpu" | "memory" | "ephemeral-storage") => ("requests", name),
        _ => return None,
    };
    if OF_EVERY_CONTAINER.contains(&resource) {
        let lacking = containers(pod).filter(|it| amount(it, key, resource).is_none());
        let lacking: Vec<_> = lacking.filter_map(|it| text(it, "/name")).collect();
        if !lacking.is_empty() {
            return Some(format!("{name} must be set for: {}", lacking.join(", ")));
        }
    }
    let wanted = if key.is_empty() { 1.0 } else { sum(pod, key, resource) };
    let used = quota.pointer("/status/used")?.as_object()?;
    let used = amounts_of(used).find(|(used, _)| *used == name)?.1;
    (used + wanted > hard).then(|| {
        let of = |map: &str| &quota[if map == "hard" { "spec" } else { "status" }][map][name];
        format!("{name} is exhausted: {} of {} are used", of("used"), of("hard"))
    })
}

/// What a pod takes: its containers and restartable init containers together, or its largest init
/// container.
fn sum(pod: &Value, key: &str, resource: &str) -> f64 {
    let of = |container: &Value| amount(container, key, resource).unwrap_or_default();
    let mut restartable = 0.0;
    let mut largest = 0.0_f64;
    for container in items(pod.pointer("/spec/initContainers")) {
        if text(container, "/restartPolicy") == Some("Always") {
            restartable += of(container);
            largest = largest.max(restartable);
        } else {
            largest = largest.max(restartable + of(container));
        }
    }
    let together: f64 = items(pod.pointer("/spec/containers")).iter().map(of).sum();
    largest.max(restartable + together)
}

fn amount(container: &Value, key: &str, resource: &str) -> Option<f64> {
    let amounts = container.get("resources")?.get(key)?.as_object()?;
    let set = amounts_of(amounts).find(|(name, _)| *name == resource);
    // A limit is the request too, if there is none.
    match (set, key) {
        (None, "requests") => amount(container, "limits", resource),
        (set, _) => set.map(|(_, amount)| amount),
    }
}

fn amounts(map: Option<&Value>) -> impl Iterator<Item = (&str, f64)> {
    map.and_then(Value::as_object).into_iter().flat_map(amounts_of)
}

fn amounts_of(map: &Map<String, Value>) -> impl Iterator<Item = (&str, f64)> {
    map.iter().filter_map(|(name, amount)| {
        let text = match amount {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some((name.as_str(), quantity::parse(&text)?.approximate()))
    })
}
