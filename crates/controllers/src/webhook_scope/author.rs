//! Who wrote which pods the entries select: a leader of injectd, or someone else.

use k8s_openapi::{
    api::admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ManagedFieldsEntry},
};
use serde_json::json;

use super::selected::{CONDITION, Selected};
use crate::certificates::FIELD_MANAGER;

/// Who wrote which pods the entries select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Author {
    /// A leader: it may know templates that this one does not know yet.
    Leader,
    /// A field manager that is not injectd has one of the fields.
    Other(String),
    /// The configuration does not say it.
    Unknown,
}

impl Author {
    /// The author of the entries at some indices.
    pub(super) fn of(configuration: &MutatingWebhookConfiguration, ours: &[usize]) -> Self {
        let webhooks = configuration.webhooks.as_deref().unwrap_or_default();
        let fields: Vec<_> =
            ours.iter().filter_map(|at| webhooks.get(*at)).flat_map(fields).collect();
        let managers = configuration.metadata.managed_fields.as_deref().unwrap_or_default();
        let (own, others): (Vec<_>, Vec<_>) =
            managers.iter().partition(|manager| manager.manager.as_deref() == Some(FIELD_MANAGER));
        let foreign: Vec<_> =
            fields.iter().filter(|field| !own.iter().any(|manager| has(manager, field))).collect();
        if foreign.is_empty() {
            return if fields.is_empty() { Self::Unknown } else { Self::Leader };
        }
        let writers = others.iter().filter(|other| foreign.iter().any(|field| has(other, field)));
        let last = writers.max_by_key(|other| other.time.as_ref().map(|time| time.0));
        last.and_then(|last| last.manager.clone()).map_or(Self::Unknown, Self::Other)
    }
}

/// The fields by which an entry selects, as the steps to them below `f:webhooks`.
fn fields(webhook: &MutatingWebhook) -> Vec<Vec<String>> {
    let Selected { namespaces, objects, condition } = Selected::of_webhook(webhook);
    let is_set = |selector: &LabelSelector| *selector != LabelSelector::default();
    let key = |name: &str| format!("k:{}", json!({"name": name}));
    let field = |name: &str| vec![key(&webhook.name), format!("f:{name}")];
    let condition = condition.map(|_| {
        let mut steps = field("matchConditions");
        // The list is a map by names.
        steps.push(key(CONDITION));
        steps
    });
    let namespaces = is_set(&namespaces).then(|| field("namespaceSelector"));
    let objects = is_set(&objects).then(|| field("objectSelector"));
    [namespaces, objects, condition].into_iter().flatten().collect()
}

/// Whether a field manager has a field.
fn has(manager: &ManagedFieldsEntry, steps: &[String]) -> bool {
    let mut at = manager.fields_v1.as_ref().map(|fields| &fields.0);
    for step in ["f:webhooks"].into_iter().chain(steps.iter().map(String::as_str)) {
        at = at.and_then(|node| node.get(step));
    }
    at.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// A configuration with an entry, and field managers with the time of their last write.
    fn author(entry: Value, managers: &[(&str, &str, Value)]) -> Author {
        let mut webhook = json!({"name": "a.b", "clientConfig": {"url": "https://a/templates"},
            "sideEffects": "None", "admissionReviewVersions": ["v1"]});
        if let (Some(webhook), Value::Object(entry)) = (webhook.as_object_mut(), entry) {
            webhook.extend(entry);
        }
        let managed: Vec<_> = managers
            .iter()
            .map(|(manager, time, fields)| {
                json!({"manager": manager, "time": time, "operation": "Update", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:webhooks": {"k:{\"name\":\"a.b\"}": fields}}})
            })
            .collect();
        let object = json!({"metadata": {"managedFields": managed}, "webhooks": [webhook]});
        Author::of(&serde_json::from_value(object).expect("a configuration"), &[0])
    }

    #[test]
    fn a_leader_has_all_fields_that_select() {
        let (early, late) = ("2026-11-26T01:00:00Z", "2026-11-26T02:00:00Z");
        let entry = json!({"objectSelector": {"matchLabels": {"a": "b"}},
            "namespaceSelector": {}, "matchConditions": [{"name": CONDITION, "expression": "true"}]});
        let condition = format!("k:{{\"name\":\"{CONDITION}\"}}");
        let own = json!({"f:objectSelector": {}, "f:matchConditions": {condition: {".": {}}}});
        let all = json!({"f:objectSelector": {}, "f:namespaceSelector": {}});
        let helm = Author::Other("helm".to_owned());
        for (managers, expected) in [
            (vec![("injectd", early, own.clone()), ("helm", late, all.clone())], Author::Leader),
            (vec![("injectd", late, json!({"f:matchConditions": {}})), ("helm", early, all)], helm),
            (vec![("injectd", late, json!({"f:clientConfig": {}}))], Author::Unknown),
            (vec![], Author::Unknown),
        ] {
            assert_eq!(author(entry.clone(), &managers), expected, "{managers:?}");
        }
        assert_eq!(
            author(json!({}), &[("helm", late, own)]),
            Author::Unknown,
            "it selects all pods"
        );
    }
}
