//! What a webhook configuration selects, and how that differs from what it selected.
//!
//! Not for which pods that means: `injectd-webhooks` evaluates selectors.

use std::collections::{BTreeMap, BTreeSet};

use injectd_cluster::Service;
use injectd_profiles::TEMPLATES_PATH;
use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchCondition, MutatingWebhook, MutatingWebhookConfiguration,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use serde::Deserialize;

/// Annotation of a webhook configuration with what its webhooks should select, as JSON: by the name of
/// the webhook `namespaceSelector`, `objectSelector` and `matchConditions`. The chart writes it. Without
/// it, a process compares with what it saw first.
pub const SELECTORS_ANNOTATION: &str = "injectd.dev/selectors";
/// Maximum length of the text about a difference. An event has room for 1024 bytes.
const MAX_TEXT: usize = 600;

/// A configuration as it was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// What the webhooks select that lead to the Service, by their names.
    pub(super) webhooks: Webhooks,
    /// What they should select, if the configuration says it; the error of an annotation that is not
    /// valid.
    pub(super) expected: Option<Result<Webhooks, String>>,
}

/// What webhooks select, by their names.
pub(super) type Webhooks = BTreeMap<String, Selection>;

/// What a webhook selects: everything that meets all requirements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selection(BTreeSet<Requirement>);

/// A part of a selector: its field, and the requirement as text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Requirement {
    field: &'static str,
    text: String,
}

/// The fields of a webhook that select, as the annotation has them.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    namespace_selector: Option<LabelSelector>,
    object_selector: Option<LabelSelector>,
    match_conditions: Option<Vec<MatchCondition>>,
}

/// A configuration as it is. If it is managed, a leader of injectd writes what its webhooks for templates select, and
/// how many there are: they count as one, under the name of the first.
pub(super) fn of(
    configuration: &MutatingWebhookConfiguration,
    service: &Service,
    is_managed: bool,
) -> Seen {
    let webhooks = configuration.webhooks.iter().flatten();
    let ours = webhooks.filter(|webhook| {
        let client = &webhook.client_config;
        // Where a URL leads cannot be known.
        client.service.is_none() || service.is_called_by(client)
    });
    let (managed, others): (Vec<_>, Vec<_>) =
        ours.partition(|webhook| is_managed && is_of_templates(webhook));
    let mut webhooks: Webhooks =
        others.iter().map(|webhook| (webhook.name.clone(), Selection::of(webhook))).collect();
    let annotations = configuration.metadata.annotations.as_ref();
    let annotation = annotations.and_then(|all| all.get(SELECTORS_ANNOTATION));
    let mut expected = annotation.map(|text| parse(text));
    if let Some(first) = managed.first() {
        for of in [Some(&mut webhooks), expected.as_mut().and_then(|of| of.as_mut().ok())] {
            let Some(of) = of else { continue };
            of.retain(|name, _| managed.iter().all(|webhook| webhook.name != *name));
            of.insert(first.name.clone(), Selection::default());
        }
    }
    Seen { webhooks, expected }
}

fn is_of_templates(webhook: &MutatingWebhook) -> bool {
    let to = webhook.client_config.service.as_ref();
    to.is_some_and(|to| to.path.as_deref() == Some(TEMPLATES_PATH))
}

fn parse(annotation: &str) -> Result<Webhooks, String> {
    let fields: BTreeMap<String, Fields> =
        serde_json::from_str(annotation).map_err(|error| error.to_string())?;
    Ok(fields.into_iter().map(|(name, fields)| (name, fields.selection())).collect())
}

impl Fields {
    fn selection(&self) -> Selection {
        let mut all = BTreeSet::new();
        let selectors = [
            ("namespaceSelector", &self.namespace_selector),
            ("objectSelector", &self.object_selector),
        ];
        for (field, selector) in selectors {
            let texts = selector.iter().flat_map(requirements);
            all.extend(texts.map(|text| Requirement { field, text }));
        }
        for MatchCondition { name, expression } in self.match_conditions.iter().flatten() {
            let text = format!("{name}: {expression}");
            all.insert(Requirement { field: "matchConditions", text });
        }
        Selection(all)
    }
}

impl Selection {
    fn of(webhook: &MutatingWebhook) -> Self {
        let fields = Fields {
            namespace_selector: webhook.namespace_selector.clone(),
            object_selector: webhook.object_selector.clone(),
            match_conditions: webhook.match_conditions.clone(),
        };
        fields.selection()
    }
}

/// The requirements of a selector as `kubectl` writes them, whatever their order.
fn requirements(selector: &LabelSelector) -> Vec<String> {
    let labels = selector.match_labels.iter().flatten();
    let mut all: Vec<_> = labels.map(|(key, value)| format!("{key} In [{value}]")).collect();
    for it in selector.match_expressions.iter().flatten() {
        let values: BTreeSet<_> = it.values.iter().flatten().map(String::as_str).collect();
        let values: Vec<_> = values.into_iter().collect();
        let values =
            if values.is_empty() { String::new() } else { format!(" [{}]", values.join(", ")) };
        all.push(format!("{} {}{values}", it.key, it.operator));
    }
    all
}

/// How what webhooks select differs from what they should select; `None` if it does not.
pub(super) fn difference(expected: &Webhooks, found: &Webhooks) -> Option<String> {
    let mut texts = Vec::new();
    for (name, before) in expected {
        match found.get(name) {
            None => texts.push(format!("its webhook {name} is gone")),
            Some(after) => texts.extend(before.changes(name, after)),
        }
    }
    let new = found.keys().filter(|name| !expected.contains_key(*name));
    texts.extend(new.map(|name| format!("it has a further webhook {name}")));
    let text = texts.join("; ");
    if text.len() <= MAX_TEXT {
        return (!text.is_empty()).then_some(text);
    }
    Some(format!("{} …", &text[..text.floor_char_boundary(MAX_TEXT)]))
}

impl Selection {
    /// A text for each field that selects something else.
    fn changes(&self, name: &str, after: &Self) -> Vec<String> {
        let fields = ["namespaceSelector", "objectSelector", "matchConditions"];
        let change = |field: &&'static str| {
            let texts = |of: &Self, without: &Self| {
                let only =
                    of.0.difference(&without.0).filter(|requirement| requirement.field == *field);
                only.map(|requirement| requirement.text.clone()).collect::<Vec<_>>()
            };
            let (added, removed) = (texts(after, self), texts(self, after));
            // All requirements must be met: more of them select less.
            let how = match (added.is_empty(), removed.is_empty()) {
                (true, true) => return None,
                (false, true) => "narrowed",
                (true, false) => "widened",
                (false, false) => "changed",
            };
            let parts = [("added", added), ("removed", removed)];
            let parts = parts.iter().filter(|(_, texts)| !texts.is_empty());
            let parts: Vec<_> =
                parts.map(|(what, texts)| format!("{what}: {}", texts.join(", "))).collect();
            Some(format!("{field} of {name}: {how} ({})", parts.join("; ")))
        };
        fields.iter().filter_map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn configuration(webhooks: &Value, annotation: Option<&str>) -> MutatingWebhookConfiguration {
        let mut object = json!({"metadata": {"name": "a"}, "webhooks": webhooks});
        if let Some(text) = annotation {
            object["metadata"]["annotations"] = json!({SELECTORS_ANNOTATION: text});
        }
        serde_json::from_value(object).expect("a configuration")
    }

    fn seen(webhooks: &Value) -> Webhooks {
        let service = Service { namespace: "mesh".into(), name: "injectd".into() };
        of(&configuration(webhooks, None), &service, false).webhooks
    }

    fn webhook(name: &str, fields: Value) -> Value {
        let mut webhook = json!({"name": name, "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"service": {"name": "injectd", "namespace": "mesh"}}});
        if let (Some(webhook), Value::Object(fields)) = (webhook.as_object_mut(), fields) {
            webhook.extend(fields);
        }
        webhook
    }

    #[test]
    fn the_order_and_the_form_of_requirements_do_not_matter() {
        let one = json!({"namespaceSelector": {"matchLabels": {"a": "b", "c": "d"}}});
        let other = json!({"namespaceSelector": {"matchExpressions": [
            {"key": "c", "operator": "In", "values": ["d"]},
            {"key": "a", "operator": "In", "values": ["b"]},
        ]}, "objectSelector": {}});
        let [one, other] = [one, other].map(|fields| seen(&json!([webhook("w", fields)])));
        assert_eq!(difference(&one, &other), None);
    }

    #[test]
    fn a_difference_says_whether_more_or_less_is_selected() {
        let all = seen(&json!([webhook("w", json!({}))]));
        let some = json!({"objectSelector": {"matchLabels": {"a": "b"}}});
        let some = seen(&json!([webhook("w", some)]));
        let other = json!({"objectSelector": {"matchLabels": {"a": "c"}}});
        let other = seen(&json!([webhook("w", other)]));
        let condition = json!({"matchConditions": [{"name": "never", "expression": "false"}]});
        let condition = seen(&json!([webhook("w", condition)]));
        let none = Webhooks::new();
        for (before, after, expected) in [
            (&all, &some, "objectSelector of w: narrowed (added: a In [b])"),
            (&some, &all, "objectSelector of w: widened (removed: a In [b])"),
            (&some, &other, "objectSelector of w: changed (added: a In [c]; removed: a In [b])"),
            (&all, &condition, "matchConditions of w: narrowed (added: never: false)"),
            (&all, &none, "its webhook w is gone"),
            (&none, &all, "it has a further webhook w"),
        ] {
            assert_eq!(difference(before, after).as_deref(), Some(expected));
        }
    }

    #[test]
    fn webhooks_that_lead_elsewhere_do_not_count() {
        let mut elsewhere = webhook("b", json!({}));
        elsewhere["clientConfig"]["service"]["name"] = "istiod".into();
        let mut url = webhook("c", json!({}));
        url["clientConfig"] = json!({"url": "https://example.com/"});
        let found = seen(&json!([webhook("a", json!({})), elsewhere, url]));
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a", "c"]);
    }

    #[test]
    fn the_annotation_says_what_is_expected() {
        let fields = json!({"objectSelector": {"matchLabels": {"a": "b"}}});
        let webhooks = json!([webhook("w", fields.clone())]);
        let service = Service { namespace: "mesh".into(), name: "injectd".into() };
        let right =
            of(&configuration(&webhooks, Some(&json!({"w": fields}).to_string())), &service, false);
        assert_eq!(right.expected, Some(Ok(right.webhooks)));
        let wrong = of(&configuration(&webhooks, Some("[]")), &service, false);
        assert!(matches!(wrong.expected, Some(Err(_))));
    }

    #[test]
    fn what_a_leader_writes_is_no_change() {
        let service = Service { namespace: "mesh".into(), name: "injectd".into() };
        let of_templates = |name: &str, label: &str| {
            webhook(
                name,
                json!({
                    "clientConfig": {"service": {"name": "injectd", "namespace": "mesh", "path": "/templates"}},
                    "objectSelector": {"matchLabels": {"a": label}},
                }),
            )
        };
        let other =
            |label: &str| webhook("w", json!({"objectSelector": {"matchLabels": {"a": label}}}));
        let before = json!([of_templates("t", "b"), other("b")]);
        let after = json!([of_templates("t", "c"), of_templates("t-2", "d"), other("c")]);
        let annotation = json!({"t": {"objectSelector": {"matchLabels": {"a": "b"}}},
            "w": {"objectSelector": {"matchLabels": {"a": "b"}}}});
        let seen = |webhooks: &Value, is_managed| {
            of(&configuration(webhooks, Some(&annotation.to_string())), &service, is_managed)
        };
        let change = |is_managed| {
            let [before, after] = [&before, &after].map(|webhooks| seen(webhooks, is_managed));
            let expected = after.expected.expect("an annotation").expect("it is valid");
            let found = [
                difference(&before.webhooks, &after.webhooks),
                difference(&expected, &after.webhooks),
            ];
            found.map(Option::unwrap_or_default)
        };
        let text = "objectSelector of w: changed (added: a In [c]; removed: a In [b])";
        assert_eq!(change(true), [text, text]);
        assert!(change(false)[0].contains("it has a further webhook t-2"));
    }

    #[test]
    fn texts_are_bounded() {
        let many: Vec<_> =
            (0..100).map(|number| webhook(&format!("ö{number}"), json!({}))).collect();
        let text = difference(&seen(&json!(many)), &Webhooks::new()).expect("a difference");
        assert!(text.len() <= MAX_TEXT + " …".len(), "{text}");
    }
}
