//! What of an entry of the webhook's configuration belongs to injectd: which pods it selects.

use injectd_cluster::Service;
use injectd_k8s::selector::Selector;
use injectd_profiles::TEMPLATES_PATH;
use injectd_templates::scope::Entry;
use k8s_openapi::{
    api::admissionregistration::v1::{MatchCondition, MutatingWebhook},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};

/// The name of the first entry of the webhook of templates.
pub const ENTRY: &str = "templates.injectd.dev";
/// The name of the condition that injectd writes. Conditions with other names are the operator's.
pub const CONDITION: &str = "templates.injectd.dev";
/// The label that an entry asks for while no template is served: no pod has it.
pub const NO_PODS_LABEL: &str = "injectd.dev/no-template";
/// Conditions of an entry, at most (`ValidatingAdmissionWebhook` of Kubernetes).
const MAX_CONDITIONS: usize = 64;

/// Which pods an entry selects, by what injectd writes. Equal ones select the same pods, whatever their order
/// and form were.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Selected {
    pub(super) namespaces: LabelSelector,
    pub(super) objects: LabelSelector,
    pub(super) condition: Option<String>,
}

impl Selected {
    /// What an entry of a scope selects.
    pub(super) fn of_scope(entry: &Entry) -> Self {
        Self {
            namespaces: written(&entry.namespace_selector),
            objects: written(&entry.object_selector),
            condition: entry.condition.clone(),
        }
    }

    /// What an entry of a configuration selects.
    pub(super) fn of_webhook(webhook: &MutatingWebhook) -> Self {
        let mut conditions = webhook.match_conditions.iter().flatten();
        let own = conditions.find(|condition| condition.name == CONDITION);
        Self {
            namespaces: ordered(webhook.namespace_selector.as_ref()),
            objects: ordered(webhook.object_selector.as_ref()),
            condition: own.map(|condition| condition.expression.clone()),
        }
    }

    /// No pods.
    pub(super) fn nothing() -> Self {
        let label = LabelSelectorRequirement {
            key: NO_PODS_LABEL.to_owned(),
            operator: "Exists".to_owned(),
            values: None,
        };
        let objects =
            LabelSelector { match_expressions: Some(vec![label]), ..LabelSelector::default() };
        Self { objects, ..Self::default() }
    }

    /// The same without its condition: more pods, if it has one.
    pub(super) fn without_condition(&self) -> Self {
        Self { condition: None, ..self.clone() }
    }

    /// Whether it selects all pods of all namespaces.
    pub(super) fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// The conditions of an entry that selects this: the operator's stay.
    pub(super) fn conditions(&self, webhook: &MutatingWebhook) -> Vec<MatchCondition> {
        let mut conditions = others(webhook);
        let own = self.condition.iter().map(|expression| MatchCondition {
            name: CONDITION.to_owned(),
            expression: expression.clone(),
        });
        conditions.extend(own);
        conditions
    }
}

/// The conditions of an entry that injectd did not write.
pub(super) fn others(webhook: &MutatingWebhook) -> Vec<MatchCondition> {
    let conditions = webhook.match_conditions.iter().flatten();
    conditions.filter(|condition| condition.name != CONDITION).cloned().collect()
}

/// Whether an entry has room for the condition of injectd.
pub(super) fn has_room(webhook: &MutatingWebhook) -> bool {
    others(webhook).len() < MAX_CONDITIONS
}

/// Whether an entry leads to the templates of a Service. Of a URL only the path is known.
pub(super) fn is_of_templates(webhook: &MutatingWebhook, service: &Service) -> bool {
    let client = &webhook.client_config;
    match (&client.service, &client.url) {
        (Some(to), _) => service.is_called_by(client) && to.path.as_deref() == Some(TEMPLATES_PATH),
        (None, Some(url)) => url.ends_with(TEMPLATES_PATH),
        (None, None) => false,
    }
}

/// A selector in the form in which it is written.
fn written(selector: &Selector) -> LabelSelector {
    let requirements = selector.requirements().iter().map(|requirement| LabelSelectorRequirement {
        key: requirement.key().to_owned(),
        operator: requirement.operator().to_string(),
        values: Some(requirement.values().to_vec()),
    });
    of(requirements.collect())
}

/// A selector of a configuration in the same form.
fn ordered(selector: Option<&LabelSelector>) -> LabelSelector {
    let labels = selector.iter().flat_map(|selector| selector.match_labels.iter().flatten());
    let labels = labels.map(|(key, value)| LabelSelectorRequirement {
        key: key.clone(),
        operator: "In".to_owned(),
        values: Some(vec![value.clone()]),
    });
    let expressions =
        selector.iter().flat_map(|selector| selector.match_expressions.iter().flatten());
    of(labels.chain(expressions.cloned()).collect())
}

fn of(mut requirements: Vec<LabelSelectorRequirement>) -> LabelSelector {
    for requirement in &mut requirements {
        if let Some(values) = &mut requirement.values {
            values.sort();
            values.dedup();
        }
        requirement.values.take_if(|values| values.is_empty());
    }
    requirements.sort_by(|one, other| {
        (&one.key, &one.operator, &one.values).cmp(&(&other.key, &other.operator, &other.values))
    });
    requirements.dedup();
    let match_expressions = (!requirements.is_empty()).then_some(requirements);
    LabelSelector { match_expressions, match_labels: None }
}

#[cfg(test)]
mod tests {
    use injectd_k8s::selector::{Operator, Requirement};
    use serde_json::{Value, json};

    use super::*;

    fn webhook(fields: Value) -> MutatingWebhook {
        let mut webhook = json!({"name": "a", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"name": "injectd", "namespace": "mesh", "path": "/templates"}}});
        if let (Some(webhook), Value::Object(fields)) = (webhook.as_object_mut(), fields) {
            webhook.extend(fields);
        }
        serde_json::from_value(webhook).expect("a webhook")
    }

    #[test]
    fn the_form_and_the_order_of_a_selector_do_not_matter() {
        let entry = Entry {
            namespace_selector: [
                Requirement::new("b", Operator::NotIn, &["d", "c"]),
                Requirement::new("a", Operator::In, &["1"]),
            ]
            .into_iter()
            .collect(),
            object_selector: Selector::default(),
            condition: Some("true".to_owned()),
            pods: Vec::new(),
        };
        let written = Selected::of_scope(&entry);
        let found = webhook(json!({
            "namespaceSelector": {"matchLabels": {"a": "1"},
                "matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["c", "d"]}]},
            "objectSelector": {},
            "matchConditions": [{"name": "other", "expression": "false"}, {"name": CONDITION, "expression": "true"}],
        }));
        assert_eq!(Selected::of_webhook(&found), written);
    }

    #[test]
    fn conditions_of_the_operator_stay() {
        let of = |text: &str| Selected { condition: Some(text.to_owned()), ..Selected::default() };
        let own = |text: &str| json!([{"name": "a", "expression": "1 == 1"}, {"name": CONDITION, "expression": text}]);
        let found = webhook(json!({"matchConditions": own("true")}));
        assert_eq!(json!(of("false").conditions(&found)), own("false"));
        assert_eq!(Selected::nothing().conditions(&found).len(), 1);
        let full: Vec<_> =
            (0..64).map(|at| json!({"name": format!("c{at}"), "expression": "true"})).collect();
        let found = webhook(json!({"matchConditions": full}));
        assert!(!has_room(&found));
    }

    #[test]
    fn an_entry_is_known_by_service_and_path() {
        let service = Service { namespace: "mesh".into(), name: "injectd".into() };
        let to = |name: &str, path: &str| {
            webhook(
                json!({"clientConfig": {"service": {"name": name, "namespace": "mesh", "path": path}}}),
            )
        };
        assert!(is_of_templates(&to("injectd", "/templates"), &service));
        assert!(!is_of_templates(&to("injectd", "/"), &service));
        assert!(!is_of_templates(&to("other", "/templates"), &service));
        let url = webhook(json!({"clientConfig": {"url": "https://a.example.com/templates"}}));
        assert!(is_of_templates(&url, &service));
    }
}
