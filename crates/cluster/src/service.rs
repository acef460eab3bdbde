//! The Service through which the API server calls a webhook.

use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;

/// A Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Service {
    /// Whether a webhook leads to it; false for a URL, of which that cannot be known.
    #[must_use]
    pub fn is_called_by(&self, webhook: &WebhookClientConfig) -> bool {
        let to = webhook.service.as_ref();
        to.is_some_and(|to| to.name == self.name && to.namespace == self.namespace)
    }
}
