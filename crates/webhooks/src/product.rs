//! Whose injector a webhook calls: of which mesh, and of which revision.
//!
//! A webhook is known by what its configuration leads to: the Service and its path, with the labels of
//! the installation. Its name is only a guess: it can be chosen freely.

use injectd_istio::path::Webhook as Path;
use serde::Serialize;

use crate::Labels;

/// The label of webhook configurations, namespaces and pods with the revision of Istio.
pub(crate) const ISTIO_REVISION: &str = "istio.io/rev";
/// The label of Istio's webhook configurations (`istio-discovery`, `mutatingwebhook.yaml`).
const ISTIO_LABEL: Label = Label { key: "app", value: "sidecar-injector" };
/// The Service of Istio's control plane; that of a revision has the revision behind it.
const ISTIOD: &str = "istiod";
/// The revision of Istio without a name.
pub(crate) const DEFAULT_REVISION: &str = "default";
/// The Service of Linkerd's injector, and the label of its configuration (`linkerd-control-plane`,
/// `proxy-injector-rbac.yaml`).
const LINKERD_SERVICE: &str = "linkerd-proxy-injector";
const LINKERD_LABEL: Label =
    Label { key: "linkerd.io/control-plane-component", value: "proxy-injector" };
/// The label of injectd's own webhook configurations, and the path of the one for Linkerd (the chart).
const INJECTD_LABEL: Label = Label { key: "app.kubernetes.io/name", value: "injectd" };
const INJECTD_LINKERD_PATH: &str = "/linkerd";
/// The path of injectd's webhook of sidecar templates, and the Service of the chart.
const TEMPLATES_PATH: &str = "/templates";
const INJECTD_SERVICE: &str = "injectd";

/// A label with its value.
struct Label {
    key: &'static str,
    value: &'static str,
}

/// A product with an injector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    /// Sidecar templates of injectd.
    Templates,
}

/// The ends of the names of webhooks, as each product names its own.
const NAMES: [(&str, Product); 10] = [
    ("templates.injectd.dev", Product::Templates),
    ("templates.sidecar-injector.injectd", Product::Templates),
    ("linkerd.sidecar-injector.injectd", Product::Linkerd),
    ("sidecar-injector.injectd", Product::Istio),
    ("linkerd-proxy-injector.linkerd.io", Product::Linkerd),
    ("sidecar-injector.istio.io", Product::Istio),
    ("consul-connect-injector.consul.hashicorp.com", Product::Consul),
    ("sidecar-injector.dapr.io", Product::Dapr),
    ("kuma-injector.kuma.io", Product::Kuma),
    ("pods-kuma-injector.kuma.io", Product::Kuma),
];

impl Product {
    /// The product of a mesh, by the name of the mesh.
    #[must_use]
    pub fn of_mesh(mesh: &str) -> Option<Self> {
        let known = [Self::Linkerd, Self::Istio, Self::Templates];
        known.into_iter().find(|product| product.mesh() == mesh)
    }

    /// Whether its decision is known here: that of Linkerd, Istio and sidecar templates.
    #[must_use]
    pub fn is_known(self) -> bool {
        matches!(self, Self::Linkerd | Self::Istio | Self::Templates)
    }

    /// Its name in labels of metrics, and that of its mesh.
    #[must_use]
    pub fn mesh(self) -> &'static str {
        match self {
            Self::Linkerd => "linkerd",
            Self::Istio => "istio",
            Self::Consul => "consul",
            Self::Dapr => "dapr",
            Self::Kuma => "kuma",
            Self::Templates => "templates",
        }
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
            Self::Templates => "sidecar templates",
        }
    }
}

/// The injector that a webhook calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Injector {
    /// The product.
    pub product: Product,
    /// The revision of Istio; `None` for other products.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether it is a guess: the webhook leads to a URL, or only its name is known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_guess: bool,
}

/// Where a webhook is, and what its configuration says of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'p> {
    /// The labels of the configuration.
    pub(crate) labels: &'p Labels,
    /// The name of the webhook.
    pub(crate) name: &'p str,
    /// The name of the Service; `None` for a URL.
    pub(crate) service: Option<&'p str>,
    pub(crate) path: &'p str,
}

impl Place<'_> {
    /// The injector that is there.
    pub(crate) fn injector(self) -> Option<Injector> {
        self.by_path().or_else(|| self.by_name())
    }

    /// By the path, with the labels of the installation or its Service.
    fn by_path(self) -> Option<Injector> {
        // A URL may lead anywhere.
        let is_guess = self.service.is_none();
        let istio = |revision| {
            let revision = Some(revision);
            Some(Injector { product: Product::Istio, revision, is_guess })
        };
        match Path::of(self.path) {
            Path::Revision(revision) if self.path.split('/').any(|part| part == "inject") => {
                return istio(revision);
            }
            Path::Default if self.is_istio() => return istio(self.revision()),
            Path::Revision(_) | Path::Default | Path::Other => {}
        }
        if self.is_templates() {
            return Some(Injector { product: Product::Templates, revision: None, is_guess });
        }
        let service = self.service?;
        let is_linkerd = service == LINKERD_SERVICE
            || LINKERD_LABEL.is_in(self.labels)
            || self.path == INJECTD_LINKERD_PATH
            || INJECTD_LABEL.is_in(self.labels);
        is_linkerd.then_some(Injector { product: Product::Linkerd, revision: None, is_guess })
    }

    /// Whether `/inject` is the path of an injector of Istio here.
    fn is_istio(self) -> bool {
        let Some(service) = self.service else { return self.labels.contains_key(ISTIO_REVISION) };
        self.labels.contains_key(ISTIO_REVISION)
            || [ISTIO_LABEL, INJECTD_LABEL].into_iter().any(|label| label.is_in(self.labels))
            || service == ISTIOD
            || revision_of(service).is_some()
    }

    /// Whether it is injectd's webhook of sidecar templates.
    fn is_templates(self) -> bool {
        let is_injectd = |service: &str| {
            let rest = service.strip_prefix(INJECTD_SERVICE);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        self.path == TEMPLATES_PATH
            && (INJECTD_LABEL.is_in(self.labels) || self.service.is_some_and(is_injectd))
    }

    /// The revision of `/inject`.
    fn revision(self) -> String {
        let label = self.labels.get(ISTIO_REVISION).map(String::as_str);
        let label = label.filter(|revision| !revision.is_empty());
        let named = || self.service.and_then(revision_of);
        label.or_else(named).unwrap_or(DEFAULT_REVISION).to_owned()
    }

    fn by_name(self) -> Option<Injector> {
        let (_, product) = *NAMES.iter().find(|(end, _)| self.name.ends_with(end))?;
        let revision = (product == Product::Istio).then(|| self.revision());
        // Other products are known by nothing else, and nothing is decided for them.
        Some(Injector { product, revision, is_guess: product.is_known() })
    }
}

impl Label {
    fn is_in(&self, labels: &Labels) -> bool {
        labels.get(self.key).is_some_and(|found| found == self.value)
    }
}

/// The revision in the name of a Service of Istio's control plane.
fn revision_of(service: &str) -> Option<&str> {
    service.strip_prefix(ISTIOD)?.strip_prefix('-')
}

/// Whether injectd's chart made a configuration with these labels.
pub(crate) fn is_of_injectd(labels: &Labels) -> bool {
    INJECTD_LABEL.is_in(labels)
}
