//! `otelResourceAttributes`: the attributes of a proxy's service for OpenTelemetry (1.30 and later).
//!
//! `pkg/kube/inject/template.go`, `otelResourceAttributes`.

use injectd_gotemplate::Value;

use super::target;
use crate::proto::{self, Message, Pointer};

const NAMESPACE: &str = "resource.opentelemetry.io/service.namespace";
const VERSION: &str = "resource.opentelemetry.io/service.version";
const INSTANCE: &str = "resource.opentelemetry.io/service.instance.id";
const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// The keys of annotations and of labels that [`resource_attributes`] reads; `None` if it reads nothing
/// of a pod.
pub(super) fn reads(mesh: &Value) -> Option<[&'static [&'static str]; 2]> {
    let Value::Object(mesh) = mesh else { return None };
    let is_asked = target(mesh.as_ref()).is_some_and(|mesh| asks_for_conventions(mesh));
    is_asked.then_some([&[NAMESPACE, VERSION, INSTANCE], &[VERSION_LABEL]])
}

/// The attributes, with commas between: from mesh config, annotations, labels, namespace, containers.
/// Empty unless a provider of the mesh asks for the semantic conventions.
pub(super) fn resource_attributes(args: &[Value]) -> String {
    let [Value::Object(mesh), annotations, labels, namespace, Value::List(containers)] = args
    else {
        return String::new();
    };
    if !target(mesh.as_ref()).is_some_and(|mesh| asks_for_conventions(mesh)) {
        return String::new();
    }
    let namespace = text(namespace);
    let annotation = |key: &str| entry(annotations, key);
    let first = containers.first().map(|container| field(container, "Name"));
    let version = || match &**containers {
        [only] => image_version(&field(only, "Image")),
        _ => None,
    };
    let attributes = [
        ("service.namespace", annotation(NAMESPACE).or(some(namespace.clone()))),
        (
            "service.version",
            annotation(VERSION).or_else(|| entry(labels, VERSION_LABEL)).or_else(version),
        ),
        (
            "service.instance.id",
            annotation(INSTANCE)
                .or_else(|| first.map(|first| format!("{namespace}.$(POD_NAME).{first}"))),
        ),
    ];
    let attributes =
        attributes.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value?)));
    attributes.collect::<Vec<_>>().join(",")
}

fn asks_for_conventions(mesh: &Message) -> bool {
    mesh.list("extension_providers").iter().any(|provider| {
        let proto::Value::Message(provider) = provider else { return false };
        provider.message("opentelemetry").is_some_and(|provider| {
            let pointer = Pointer { of: provider.of(), target: Some(provider) };
            let chosen = pointer.getter("GetServiceAttributeEnrichment");
            chosen.is_some_and(|name| name.to_string() == "OTEL_SEMANTIC_CONVENTIONS")
        })
    })
}

/// `TAG@DIGEST`, the digest or the tag of an image.
fn image_version(image: &str) -> Option<String> {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, some(digest.to_owned())),
        None => (image, None),
    };
    let last = name.rsplit('/').next().unwrap_or(name);
    let tag = last.rsplit_once(':').and_then(|(_, tag)| some(tag.to_owned()));
    match (tag, digest) {
        (Some(tag), Some(digest)) => Some(format!("{tag}@{digest}")),
        (tag, digest) => tag.or(digest),
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// A value of a map that is not empty.
fn entry(map: &Value, key: &str) -> Option<String> {
    let Value::Map(map) = map else { return None };
    some(text(&map.get(key.as_bytes())?))
}

fn field(container: &Value, name: &str) -> String {
    let Value::Object(container) = container else { return String::new() };
    container.field(name).map(|value| text(&value)).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value.plain().as_ref() {
        Value::Text(text) => text.lossy().into_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::image_version;

    #[test]
    fn the_version_of_an_image_is_its_tag_and_digest() {
        for (image, version) in [
            ("web:1.2", Some("1.2")),
            ("registry:5000/web", None),
            ("registry:5000/web:1@sha256:ab", Some("1@sha256:ab")),
            ("web@sha256:ab", Some("sha256:ab")),
            ("web", None),
            ("", None),
        ] {
            assert_eq!(image_version(image).as_deref(), version, "{image}");
        }
    }
}
