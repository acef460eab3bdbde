//! The webhooks of sidecar injectors among those of a cluster, by their names.

use injectd_webhooks::{Reason, Step, Verdict, Webhook};
use serde::Serialize;

use crate::mesh::Mesh as _;

/// The label of a webhook configuration with the revision of Istio.
const ISTIO_REVISION: &str = "istio.io/rev";

/// A product with an injector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// Linkerd.
    Linkerd,
    /// Istio.
    Istio,
    /// Consul.
    Consul,
    /// Dapr.
    Dapr,
    /// Kuma.
    Kuma,
}

/// The ends of the names of webhooks.
const WEBHOOKS: [(&str, Product); 6] = [
    ("linkerd-proxy-injector.linkerd.io", Product::Linkerd),
    ("sidecar-injector.istio.io", Product::Istio),
    ("consul-connect-injector.consul.hashicorp.com", Product::Consul),
    ("sidecar-injector.dapr.io", Product::Dapr),
    ("kuma-injector.kuma.io", Product::Kuma),
    ("pods-kuma-injector.kuma.io", Product::Kuma),
];

impl Product {
    /// The product whose webhook has this name.
    #[must_use]
    pub fn of(webhook: &Webhook) -> Option<Self> {
        let name = &webhook.name;
        let product = WEBHOOKS.iter().find(|(end, _)| name.ends_with(end));
        product.map(|(_, product)| *product)
    }

    /// Whether its decision is known here: that of Linkerd and Istio.
    #[must_use]
    pub fn is_known(self) -> bool {
        matches!(self, Self::Linkerd | Self::Istio)
    }

    /// The name as people write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Linkerd => "Linkerd",
            Self::Istio => "Istio",
            Self::Consul => "Consul",
            Self::Dapr => "Dapr",
            Self::Kuma => "Kuma",
        }
    }

    /// The product of a mesh, by the name of the mesh.
    #[must_use]
    pub fn of_mesh(mesh: &str) -> Option<Self> {
        match mesh {
            injectd_core::linkerd::snapshot::Snapshot::NAME => Some(Self::Linkerd),
            injectd_istio::mesh::Istio::NAME => Some(Self::Istio),
            _ => None,
        }
    }
}

/// The revision of Istio whose webhook it is.
#[must_use]
pub fn istio_revision(webhook: &Webhook) -> &str {
    webhook.labels.get(ISTIO_REVISION).map_or("default", String::as_str)
}

/// The injectors that are called, in their order.
pub fn called<'s>(steps: &'s [Step<'_>]) -> impl Iterator<Item = (Product, &'s Step<'s>)> {
    let called = steps.iter().filter(|step| step.verdict == Verdict::Called);
    called.filter_map(|step| Some((Product::of(step.webhook)?, step)))
}

/// Why no webhook of a product is called, and what to do; `None` if one is called, or may be.
#[must_use]
pub fn not_called(steps: &[Step<'_>], product: Product) -> Option<Missed> {
    let mut own = steps.iter().filter(|step| Product::of(step.webhook) == Some(product)).peekable();
    let name = product.as_str();
    if own.peek().is_none() {
        return Some(Missed {
            text: format!("no webhook of {name} is in the cluster"),
            advice: format!(
                "Install the webhook of {name}'s injector: without it no pod gets a sidecar."
            ),
        });
    }
    let mut text = None;
    let mut advice = None;
    for step in own {
        if matches!(step.verdict, Verdict::Called | Verdict::Unknown) {
            return None;
        }
        let webhook = step.webhook;
        if step.verdict == Verdict::Rejected {
            return Some(Missed {
                text: format!("webhook {} rejects the pod: {}", webhook.name, step.reason),
                advice: format!("Correct the matchConditions of {}.", webhook.configuration),
            });
        }
        text.get_or_insert_with(|| {
            format!("the webhook of {name} is not called: {}: {}", webhook.name, step.reason)
        });
        let remedy = remedy(product, step);
        if advice.as_ref().is_none_or(|(rank, _)| *rank < remedy.0) {
            advice = Some(remedy);
        }
    }
    Some(Missed { text: text?, advice: advice?.1 })
}

/// Why no webhook is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// The reason.
    pub text: String,
    /// What to do.
    pub advice: String,
}

/// What to do so that a webhook is called, and how close it is to being called.
fn remedy(product: Product, step: &Step<'_>) -> (u8, String) {
    let configuration = &step.webhook.configuration;
    match (&step.reason, product) {
        (Reason::NamespaceSelector(_), Product::Istio) => {
            let revision = istio_revision(step.webhook);
            let label = match revision {
                "default" => "istio-injection=enabled".to_owned(),
                revision => format!("{ISTIO_REVISION}={revision}"),
            };
            let text = format!("Label the namespace {label}, and create the pod anew.");
            (3, text)
        }
        (Reason::NamespaceSelector(_), _) => (
            3,
            format!("Change the labels of the namespace as the selector of {configuration} asks."),
        ),
        (Reason::ObjectSelector(_), _) => (
            2,
            format!(
                "Change the labels of the pod template as the selector of {configuration} asks."
            ),
        ),
        (Reason::Condition(name) | Reason::ConditionFails { name, .. }, _) => {
            (4, format!("Change the pod, or condition {name} of {configuration}."))
        }
        _ => (1, format!("Correct the rules of {configuration}: they must have CREATE of pods.")),
    }
}
