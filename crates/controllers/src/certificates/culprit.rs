//! Why a `caBundle` is wrong that was right: which field manager wrote it, or that the field has no manager.
//!
//! Not for who wrote the configuration last: that may be another field.

use k8s_openapi::{
    api::admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration},
    apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry,
};

use super::FIELD_MANAGER;

/// Why a `caBundle` is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Culprit {
    /// This field manager wrote it.
    Manager(String),
    /// It is empty, and no field manager has written it: it was removed, or the configuration was
    /// created anew.
    Empty,
    /// The configuration does not say it.
    Unknown,
}

impl Culprit {
    /// That of the webhooks of a configuration that `is_ours` selects. Of several the last writer.
    pub(super) fn of(
        configuration: &MutatingWebhookConfiguration,
        is_ours: impl Fn(&MutatingWebhook) -> bool,
    ) -> Self {
        let ours = || configuration.webhooks.iter().flatten().filter(|webhook| is_ours(webhook));
        let managers = configuration.metadata.managed_fields.iter().flatten();
        let others = managers.filter(|entry| {
            entry.manager.as_deref().is_some_and(|manager| manager != FIELD_MANAGER)
        });
        let writers =
            others.filter(|entry| ours().any(|webhook| has_written(entry, &webhook.name)));
        let last = writers.max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
        if let Some(manager) = last.and_then(|entry| entry.manager.clone()) {
            return Self::Manager(manager);
        }
        let is_empty = |webhook: &MutatingWebhook| {
            webhook.client_config.ca_bundle.as_ref().is_none_or(|bundle| bundle.0.is_empty())
        };
        if ours().any(is_empty) { Self::Empty } else { Self::Unknown }
    }
}

/// Whether a field manager has the `caBundle` of a webhook.
fn has_written(entry: &ManagedFieldsEntry, webhook: &str) -> bool {
    // The list is a map by names (`listMapKey=name` of `MutatingWebhookConfiguration`).
    let key = format!("k:{}", serde_json::json!({"name": webhook}));
    let mut at = entry.fields_v1.as_ref().map(|fields| &fields.0);
    for key in ["f:webhooks", &key, "f:clientConfig", "f:caBundle"] {
        at = at.and_then(|node| node.get(key));
    }
    at.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn culprit(bundle: &str, managers: &[(&str, &str, bool)]) -> Culprit {
        let managed: Vec<_> = managers
            .iter()
            .map(|(manager, time, has_bundle)| {
                let field = if *has_bundle { "f:caBundle" } else { "f:url" };
                let webhook = json!({"f:clientConfig": {field: {}}});
                json!({"manager": manager, "time": time, "operation": "Update",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:webhooks": {"k:{\"name\":\"a.b\"}": webhook}}})
            })
            .collect();
        let client = json!({"url": "https://a/", "caBundle": bundle});
        let webhook = json!({"name": "a.b", "clientConfig": client, "sideEffects": "None",
            "admissionReviewVersions": ["v1"]});
        let object = json!({"metadata": {"managedFields": managed}, "webhooks": [webhook]});
        Culprit::of(&serde_json::from_value(object).expect("a configuration"), |_| true)
    }

    #[test]
    fn it_is_who_owns_the_field_now() {
        let (early, late) = ("2026-11-26T01:00:00Z", "2026-11-26T02:00:00Z");
        let gitops = Culprit::Manager("gitops".to_owned());
        for (bundle, managers, expected) in [
            // As after kubectl patch with an empty text: no manager has the field.
            ("", &[("helm", early, false), ("kubectl-patch", late, false)][..], Culprit::Empty),
            // Created anew by Helm.
            ("", &[("helm", late, false)], Culprit::Empty),
            ("QQ==", &[("gitops", early, true), ("helm", late, false)], gitops.clone()),
            ("QQ==", &[("helm", early, true), ("gitops", late, true)], gitops),
            ("QQ==", &[("injectd", late, true)], Culprit::Unknown),
            ("QQ==", &[], Culprit::Unknown),
        ] {
            assert_eq!(culprit(bundle, managers), expected, "{managers:?}");
        }
    }
}
