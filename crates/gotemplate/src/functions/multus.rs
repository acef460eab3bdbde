//! `appendMultusNetwork` of Istio: the annotation `k8s.v1.cni.cncf.io/networks`.

use crate::{json, runes::trim_space, value::Value};

/// The networks with one more: a JSON list of objects, or names between commas.
///
/// With namespaces, the name of the network in a JSON list may be `ns/name`.
pub(super) fn append_network(existing: &[u8], network: &[u8], namespaces: bool) -> Vec<u8> {
    if existing.is_empty() {
        return network.to_vec();
    }
    let Some(end) = existing.iter().rposition(|byte| *byte == b']') else {
        let is_known = existing.split(|byte| *byte == b',').any(|part| trim_space(part) == network);
        let added: &[&[u8]] = if is_known { &[existing] } else { &[existing, b", ", network] };
        return added.concat();
    };
    let (namespace, name) = match network.iter().position(|byte| *byte == b'/' && namespaces) {
        Some(slash) => (&network[..slash], &network[slash + 1..]),
        None => (&b""[..], network),
    };
    let Ok(Value::List(networks)) = json::read(existing) else { return existing.to_vec() };
    for found in networks.iter() {
        let Value::Map(found) = found else { return existing.to_vec() };
        let text = |key: &str| match found.get(key.as_bytes()) {
            Some(Value::Text(text)) => text.to_vec(),
            _ => Vec::new(),
        };
        if text("name") == name && text("namespace") == namespace {
            return existing.to_vec();
        }
    }
    let name = String::from_utf8_lossy(name);
    let added = match namespace {
        b"" => format!(", {{\"name\": \"{name}\"}}"),
        namespace => {
            let namespace = String::from_utf8_lossy(namespace);
            format!(", {{\"name\": \"{name}\", \"namespace\": \"{namespace}\"}}")
        }
    };
    [&existing[..end], added.as_bytes(), &existing[end..]].concat()
}
