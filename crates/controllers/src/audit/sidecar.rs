//! The sidecar of a pod, as far as it can be outdated.

use serde_json::Value;

use injectd_core::{
    linkerd::{annotations::CREATED_BY_ANNOTATION, uninject::is_control_plane},
    object::Kind,
};
use injectd_webhooks::injectors::Product;

/// The containers of sidecars: those that run beside the pod's own, and those that begin before them.
const PROXIES: [(&str, Product); 2] =
    [("linkerd-proxy", Product::Linkerd), ("istio-proxy", Product::Istio)];

/// What the injection notes on pods, and what it is called in a finding.
const NOTES: [(&str, &str); 2] = [
    ("linkerd.io~1proxy-version", "proxy version"),
    ("linkerd.io~1trust-root-sha256", "trust roots"),
];

/// The annotation with what Istio's injector added.
const ISTIO_STATUS: &str = "/metadata/annotations/sidecar.istio.io~1status";

/// How the value of [`CREATED_BY_ANNOTATION`] begins that Linkerd's webhook writes. The charts of Linkerd
/// and `linkerd inject --manual` write others: their proxies are a part of the template.
const LINKERD_INJECTOR: &str = "linkerd/proxy-injector";

/// A sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sidecar {
    pub(super) product: Product,
    /// Whether an injector left its mark: other proxies are a part of the pod's own template, such as
    /// those of gateways and control planes.
    pub(super) is_injected: bool,
    /// Empty if the injection adds no proxy.
    image: String,
    /// The values of [`NOTES`].
    notes: [Option<String>; NOTES.len()],
    pub(super) revision: Option<String>,
}

impl Sidecar {
    /// The sidecar of a pod.
    pub(super) fn of(pod: &Value) -> Option<Self> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let status = pod.pointer(ISTIO_STATUS).and_then(Value::as_str);
        let mut proxies = proxies(pod);
        let (product, image) = if status.is_some() {
            // Templates such as grpc-simple add no proxy, and the pod may have another mesh's.
            let own = proxies.find(|(product, _)| *product == Product::Istio);
            (Product::Istio, own.and_then(|(_, container)| text(container.get("image"))))
        } else {
            let (product, container) = proxies.next()?;
            (product, text(container.get("image")))
        };
        let is_injected = match product {
            Product::Istio => status.is_some(),
            _ => is_injected_by_linkerd(pod),
        };
        let status: Value =
            status.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        Some(Self {
            product,
            is_injected,
            image: image.unwrap_or_default(),
            notes: NOTES.map(|(key, _)| text(pod.pointer(&format!("/metadata/annotations/{key}")))),
            revision: text(status.get("revision")),
        })
    }

    /// How the sidecar differs from the one that the pod would get now.
    pub(super) fn differs(&self, now: Option<&Self>) -> Option<String> {
        let Some(now) = now else { return Some("the pod would get no proxy now".to_owned()) };
        if self.product != now.product {
            let (one, other) = (self.product.as_str(), now.product.as_str());
            return Some(format!("the sidecar is {one}'s, now it would be {other}'s"));
        }
        let absent = || "absent".to_owned();
        if self.revision != now.revision && now.revision.is_some() {
            let (one, other) = (self.revision.clone(), now.revision.clone());
            let (one, other) = (one.unwrap_or_else(absent), other.unwrap_or_else(absent));
            return Some(format!("revision {one}, now {other}"));
        }
        for (index, (_, name)) in NOTES.iter().enumerate() {
            let (one, other) = (&self.notes[index], &now.notes[index]);
            if one == other || other.is_none() {
                continue;
            }
            return Some(match *name {
                "trust roots" => "the trust roots have changed".to_owned(),
                name => {
                    let one = one.clone().unwrap_or_else(absent);
                    let other = other.clone().unwrap_or_else(absent);
                    format!("{name} {one}, now {other}")
                }
            });
        }
        (!is_same_image(&self.image, &now.image))
            .then(|| format!("image {}, now {}", self.image, now.image))
    }
}

/// The containers of sidecars, and whose they are.
fn proxies(pod: &Value) -> impl Iterator<Item = (Product, &Value)> {
    let lists = ["/spec/containers", "/spec/initContainers"].into_iter();
    let containers = lists.filter_map(|list| pod.pointer(list)?.as_array()).flatten();
    containers.filter_map(|container| {
        let name = container.get("name")?.as_str()?;
        let (_, product) = PROXIES.iter().find(|(proxy, _)| *proxy == name)?;
        Some((*product, container))
    })
}

fn is_injected_by_linkerd(pod: &Value) -> bool {
    let annotations = pod.pointer("/metadata/annotations");
    let created_by = annotations.and_then(|all| all.get(CREATED_BY_ANNOTATION)?.as_str());
    // The proxies of the control plane are those of its chart.
    !is_control_plane(pod, Kind::Pod)
        && created_by.is_some_and(|text| text.starts_with(LINKERD_INJECTOR))
}

/// Whether two images differ at most in the registry and path of a mirror, or if one of them has a
/// digest and the other one none: other webhooks rewrite images, and a restart changes nothing about it.
fn is_same_image(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(Image::of);
    let is_pinned = one.digest.is_some() != other.digest.is_some();
    let is_same_tag =
        one.tag == other.tag || is_pinned && (one.tag.is_none() || other.tag.is_none());
    one.name == other.name && is_same_tag && (is_pinned || one.digest == other.digest)
}

/// The last part of an image's name, and what is behind it.
struct Image<'i> {
    name: &'i str,
    tag: Option<&'i str>,
    digest: Option<&'i str>,
}

impl<'i> Image<'i> {
    fn of(image: &'i str) -> Self {
        let (image, digest) =
            image.split_once('@').map_or((image, None), |(image, digest)| (image, Some(digest)));
        let last = image.rsplit('/').next().unwrap_or_default();
        let (name, tag) =
            last.split_once(':').map_or((last, None), |(name, tag)| (name, Some(tag)));
        Self { name, tag, digest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_other_webhooks_rewrite_are_the_same() {
        for (one, other, is_same) in [
            ("cr.l5d.io/linkerd/proxy:1", "mirror:5000/cr.l5d.io/linkerd/proxy:1", true),
            ("a/proxyv2:1", "b/proxyv2:1@sha256:a", true),
            ("a/proxyv2:1", "b/proxyv2@sha256:a", true),
            ("a/proxyv2@sha256:a", "b/proxyv2@sha256:a", true),
            ("a/proxyv2@sha256:a", "a/proxyv2@sha256:b", false),
            ("a/proxyv2:1@sha256:a", "a/proxyv2:2", false),
            ("a/proxyv2:1", "a/proxyv2:2", false),
            ("a/proxyv2", "a/proxy", false),
        ] {
            assert_eq!(is_same_image(one, other), is_same, "{one} {other}");
        }
    }
}
