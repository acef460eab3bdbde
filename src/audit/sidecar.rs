//! The sidecar of a pod, as far as it can be outdated.

use serde_json::Value;

use crate::explain::injectors::Product;

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

/// A sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sidecar {
    pub(super) product: Product,
    image: String,
    /// The values of [`NOTES`].
    notes: [Option<String>; NOTES.len()],
    revision: Option<String>,
}

impl Sidecar {
    /// The sidecar of a pod.
    pub(super) fn of(pod: &Value) -> Option<Self> {
        let lists = ["/spec/containers", "/spec/initContainers"].into_iter();
        let containers = lists.filter_map(|list| pod.pointer(list)?.as_array()).flatten();
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        for container in containers {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            let Some((_, product)) = PROXIES.iter().find(|(proxy, _)| *proxy == name) else {
                continue;
            };
            let status = pod.pointer(ISTIO_STATUS).and_then(Value::as_str);
            let status: Value =
                status.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            return Some(Self {
                product: *product,
                image: text(container.get("image")).unwrap_or_default(),
                notes: NOTES
                    .map(|(key, _)| text(pod.pointer(&format!("/metadata/annotations/{key}")))),
                revision: text(status.get("revision")),
            });
        }
        None
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
        (self.image != now.image).then(|| format!("image {}, now {}", self.image, now.image))
    }
}
