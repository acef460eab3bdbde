//! The sidecars of service meshes in a pod, by what their containers are called and run.
//!
//! A mesh recognises its own sidecar by rules of its own; a sidecar from another registry, or under
//! another name, is not recognised, and the pod gets a second one.

#![expect(clippy::disallowed_types, reason = "a pod of any shape")]

use serde::Serialize;
use serde_json::Value;

/// A container that looks like a sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sidecar {
    /// Name of the container.
    pub container: String,
    /// Its image.
    pub image: String,
    /// What it looks like.
    pub product: &'static str,
    /// Whether the mesh takes it for a sidecar and leaves the pod alone.
    pub recognised: bool,
}

/// What a sidecar's container looks like.
struct Look {
    product: &'static str,
    names: &'static [&'static str],
    /// The ends of the image's repository.
    repositories: &'static [&'static str],
}

const LOOKS: [Look; 8] = [
    Look {
        product: "Linkerd's proxy",
        names: &["linkerd-proxy"],
        repositories: &["linkerd/proxy", "/linkerd-proxy", "/linkerd2-proxy"],
    },
    Look {
        product: "Linkerd's init container",
        names: &["linkerd-init"],
        repositories: &["linkerd/proxy-init"],
    },
    Look { product: "Istio's proxy", names: &["istio-proxy"], repositories: &["/proxyv2"] },
    Look { product: "Istio's init container", names: &["istio-init"], repositories: &[] },
    Look {
        product: "Consul's proxy",
        names: &["consul-dataplane", "envoy-sidecar"],
        repositories: &["/consul-dataplane"],
    },
    Look { product: "Kuma's proxy", names: &["kuma-sidecar"], repositories: &["/kuma-dp"] },
    Look { product: "Dapr's sidecar", names: &["daprd"], repositories: &["/daprd"] },
    Look { product: "an Envoy proxy", names: &["envoy"], repositories: &["/envoy"] },
];

/// The containers of a pod's spec that look like sidecars; `recognised` decides by name and image
/// whether the mesh takes the container for a sidecar. The flag is set for init containers.
#[must_use]
pub fn of_spec(spec: &Value, recognised: impl Fn(&str, &str, bool) -> bool) -> Vec<Sidecar> {
    let mut found = Vec::new();
    for (list, is_init) in [("initContainers", true), ("containers", false)] {
        let containers = spec.get(list).and_then(Value::as_array);
        for container in containers.into_iter().flatten() {
            let text = |key: &str| container.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, image) = (text("name"), text("image"));
            let recognised = recognised(name, image, is_init);
            let look = LOOKS.iter().find(|look| look.fits(name, image));
            let product = match (look, recognised) {
                (Some(look), _) => look.product,
                (None, true) => "a sidecar",
                (None, false) => continue,
            };
            let (container, image) = (name.to_owned(), image.to_owned());
            found.push(Sidecar { container, image, product, recognised });
        }
    }
    found
}

impl Look {
    fn fits(&self, name: &str, image: &str) -> bool {
        let repository = repository(image);
        self.names.contains(&name) || self.repositories.iter().any(|end| repository.ends_with(end))
    }
}

/// The image without tag and digest.
fn repository(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sidecar_of_another_registry_is_found() {
        let spec = json!({
            "initContainers": [{"name": "a", "image": "registry:5000/linkerd/proxy-init@sha256:0"}],
            "containers": [
                {"name": "app", "image": "proxyv2-example"},
                {"name": "b", "image": "registry:5000/istio/proxyv2:1.29.0"},
                {"name": "c", "image": "x"},
            ],
        });
        let found = of_spec(&spec, |name, _, _| name == "c");
        let found: Vec<_> = found
            .iter()
            .map(|sidecar| (&*sidecar.container, sidecar.product, sidecar.recognised))
            .collect();
        assert_eq!(
            found,
            [
                ("a", "Linkerd's init container", false),
                ("b", "Istio's proxy", false),
                ("c", "a sidecar", true),
            ]
        );
    }

    #[test]
    fn the_repository_has_neither_tag_nor_digest() {
        for (image, expected) in [
            ("a", "a"),
            ("a:1", "a"),
            ("host:5000/a", "host:5000/a"),
            ("host:5000/a:1@sha256:0", "host:5000/a"),
            ("", ""),
        ] {
            assert_eq!(repository(image), expected);
        }
    }
}
