//! Webhook configurations, read and compiled.

use injectd_k8s::selector::{InvalidSelector, LabelSelector, Selector};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    conditions::Condition,
    product::{Injector, Place},
    rules::Rule,
};

/// The seconds that the API server waits for a webhook that does not say it.
// `SetDefaults_MutatingWebhook` of the API v1.
const DEFAULT_TIMEOUT_SECONDS: u32 = 10;

/// The webhook configurations of a cluster, in the order in which the API server considers them.
#[derive(Debug)]
pub struct Configurations {
    pub(crate) webhooks: Vec<Webhook>,
}

/// The part of the API server that calls a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Plugin {
    /// `MutatingAdmissionWebhook`, the first.
    Mutating,
    /// `ValidatingAdmissionWebhook`.
    Validating,
}

/// What the API server does when a webhook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum FailurePolicy {
    /// It rejects the request.
    Fail,
    /// It goes on without the webhook.
    Ignore,
}

/// A webhook.
#[derive(Debug)]
pub struct Webhook {
    /// The part of the API server that calls it.
    pub plugin: Plugin,
    /// Name of the configuration.
    pub configuration: String,
    /// Labels of the configuration.
    pub labels: crate::Labels,
    /// Name of the webhook.
    pub name: String,
    /// What follows from its failure.
    pub failure_policy: FailurePolicy,
    /// How long the API server waits.
    pub timeout_seconds: u32,
    /// Whether it is called again after later webhooks changed the object.
    pub is_reinvoked: bool,
    /// Where it is: a service or a URL.
    pub target: String,
    /// Path of the URL; empty if there is none.
    pub path: String,
    /// Namespace of the service; `None` for a URL.
    pub namespace: Option<String>,
    /// The sidecar injector that it calls; `None` for other webhooks.
    pub injector: Option<Injector>,
    /// Whether the configuration has a CA to trust.
    pub has_ca_bundle: bool,
    pub(crate) namespace_selector: Selector,
    pub(crate) object_selector: Selector,
    pub(crate) rules: Vec<Rule>,
    pub(crate) is_equivalent: bool,
    pub(crate) conditions: Vec<Condition>,
}

/// Why a configuration cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InvalidConfiguration {
    /// It has another shape.
    #[error("webhook configuration {name}: {source}")]
    Shape {
        /// Name of the configuration.
        name: String,
        /// The problem.
        source: serde_json::Error,
    },
    /// A selector is not valid.
    #[error("webhook configuration {name}, webhook {webhook}, {field}: {source}")]
    Selector {
        /// Name of the configuration.
        name: String,
        /// Name of the webhook.
        webhook: String,
        /// The field with the selector.
        field: &'static str,
        /// The problem.
        source: InvalidSelector,
    },
    /// The kind is another one.
    #[error("{0:?} is neither a MutatingWebhookConfiguration nor a ValidatingWebhookConfiguration")]
    Kind(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    webhooks: Option<Vec<WebhookSpec>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WebhookSpec {
    name: String,
    client_config: ClientConfig,
    rules: Option<Vec<Rule>>,
    failure_policy: Option<String>,
    match_policy: Option<String>,
    namespace_selector: Option<LabelSelector>,
    object_selector: Option<LabelSelector>,
    timeout_seconds: Option<u32>,
    reinvocation_policy: Option<String>,
    match_conditions: Option<Vec<ConditionSpec>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClientConfig {
    url: Option<String>,
    service: Option<Service>,
    ca_bundle: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Service {
    namespace: String,
    name: String,
    path: Option<String>,
    port: Option<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ConditionSpec {
    name: String,
    expression: String,
}

impl Configurations {
    /// Whether some webhook has conditions: they may read every field of a request.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        self.webhooks.iter().any(|webhook| !webhook.conditions.is_empty())
    }

    /// Reads configurations of both kinds, in any order.
    ///
    /// # Errors
    /// The first configuration that cannot be read.
    pub fn read<'c>(
        objects: impl IntoIterator<Item = &'c Value>,
    ) -> Result<Self, InvalidConfiguration> {
        let mut webhooks = Vec::new();
        for object in objects {
            add(object, &mut webhooks)?;
        }
        // The sort keeps the order of the webhooks in their configuration.
        // An API server calls configurations in the order of their names.
        webhooks.sort_by(|one, other| {
            let key = |it: &Webhook| (it.plugin, it.configuration.clone());
            key(one).cmp(&key(other))
        });
        Ok(Self { webhooks })
    }

    /// The webhooks in the order in which the API server considers them.
    #[must_use]
    pub fn webhooks(&self) -> &[Webhook] {
        &self.webhooks
    }
}

fn add(object: &Value, webhooks: &mut Vec<Webhook>) -> Result<(), InvalidConfiguration> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let plugin = match text("/kind") {
        "MutatingWebhookConfiguration" => Plugin::Mutating,
        "ValidatingWebhookConfiguration" => Plugin::Validating,
        other => return Err(InvalidConfiguration::Kind(other.to_owned())),
    };
    let name = text("/metadata/name");
    let spec = Spec::deserialize(object)
        .map_err(|source| InvalidConfiguration::Shape { name: name.to_owned(), source })?;
    for webhook in spec.webhooks.into_iter().flatten() {
        let selector = |written: Option<LabelSelector>, field| {
            Selector::new(written.unwrap_or_default()).map_err(|source| {
                let (name, webhook) = (name.to_owned(), webhook.name.clone());
                InvalidConfiguration::Selector { name, webhook, field, source }
            })
        };
        let conditions = webhook.match_conditions.unwrap_or_default().into_iter();
        let (target, path) = webhook.client_config.target();
        let labels = injectd_k8s::object::labels(object);
        let service = webhook.client_config.service.as_ref().map(|service| &*service.name);
        let place = Place { labels: &labels, name: &webhook.name, service, path: &path };
        webhooks.push(Webhook {
            plugin,
            configuration: name.to_owned(),
            // Only mutating webhooks inject.
            injector: if plugin == Plugin::Mutating { place.injector() } else { None },
            labels,
            failure_policy: match webhook.failure_policy.as_deref() {
                Some("Ignore") => FailurePolicy::Ignore,
                // What `admissionregistration.k8s.io/v1` completes; v1beta1 had `Ignore`.
                _ => FailurePolicy::Fail,
            },
            timeout_seconds: webhook.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS),
            is_reinvoked: webhook.reinvocation_policy.as_deref() == Some("IfNeeded"),
            has_ca_bundle: webhook.client_config.ca_bundle.is_some_and(|ca| !ca.is_empty()),
            target,
            path,
            namespace: webhook.client_config.service.map(|service| service.namespace),
            namespace_selector: selector(webhook.namespace_selector, "namespaceSelector")?,
            object_selector: selector(webhook.object_selector, "objectSelector")?,
            rules: webhook.rules.unwrap_or_default(),
            // `Equivalent` is the default of v1.
            is_equivalent: webhook.match_policy.as_deref() != Some("Exact"),
            conditions: conditions
                .map(|condition| Condition::new(condition.name, &condition.expression))
                .collect(),
            name: webhook.name,
        });
    }
    Ok(())
}

impl ClientConfig {
    fn target(&self) -> (String, String) {
        let Some(service) = &self.service else {
            let url = self.url.clone().unwrap_or_default();
            let path =
                url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
            let path = path.unwrap_or_default().to_owned();
            return (url, path);
        };
        let Service { namespace, name, path, port } = service;
        let path = path.clone().unwrap_or_default();
        let port = port.filter(|port| *port != 443).map(|port| format!(":{port}"));
        (format!("service {namespace}/{name}{}{path}", port.unwrap_or_default()), path)
    }
}
