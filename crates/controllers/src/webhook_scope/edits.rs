//! What to change in a configuration so that its entries select the pods of a scope.
//!
//! Only what an entry selects is written, and entries are copied and removed: what else an entry has stays as
//! the installation and its operators set it. A further entry is a copy of the first.

use std::collections::BTreeSet;

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{MatchCondition, MutatingWebhook, WebhookClientConfig},
};
use kube::api::Patch;
use serde_json::json;

use super::selected::{ENTRY, Selected, others};

/// A change of the list of entries. Several are applied one after the other.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Edit {
    /// Writes which pods an entry selects.
    Select { at: usize, selected: Selected, conditions: Vec<MatchCondition> },
    /// Puts a copy of an entry at an index, with a name, and with a `caBundle` if the copy lacks it.
    Copy { from: usize, to: usize, name: String, bundle: Option<ByteString> },
    /// Removes an entry.
    Remove { at: usize },
}

/// The edits after which the entries at some indices select something.
pub(super) fn edits(
    webhooks: &[MutatingWebhook],
    ours: &[usize],
    wanted: &[Selected],
) -> Vec<Edit> {
    let (Some(&first), Some(&last)) = (ours.first(), ours.last()) else { return Vec::new() };
    let mut names = Names(webhooks.iter().map(|webhook| webhook.name.clone()).collect());
    let (mut edits, mut next) = (Vec::new(), last);
    for (index, selected) in wanted.iter().enumerate() {
        let conditions = selected.conditions(&webhooks[first]);
        let at = if let Some(&at) = ours.get(index) {
            let entry = &webhooks[at];
            if !is_copy(entry, &webhooks[first]) {
                edits.push(Edit::Remove { at });
                let bundle = bundle(entry).cloned();
                edits.push(Edit::Copy { from: first, to: at, name: entry.name.clone(), bundle });
            } else if Selected::of_webhook(entry) == *selected {
                continue;
            }
            at
        } else {
            next += 1;
            let name = names.next(index + 1);
            edits.push(Edit::Copy { from: first, to: next, name, bundle: None });
            next
        };
        edits.push(Edit::Select { at, selected: selected.clone(), conditions });
    }
    let surplus = ours.iter().skip(wanted.len().max(1)).rev();
    edits.extend(surplus.map(|&at| Edit::Remove { at }));
    edits
}

/// Whether an entry has all that the first one has, but for its name, its `caBundle` and what it selects.
fn is_copy(entry: &MutatingWebhook, first: &MutatingWebhook) -> bool {
    let plain = |of: &MutatingWebhook| MutatingWebhook {
        name: String::new(),
        namespace_selector: None,
        object_selector: None,
        match_conditions: Some(others(of)),
        client_config: WebhookClientConfig { ca_bundle: None, ..of.client_config.clone() },
        ..of.clone()
    };
    plain(entry) == plain(first) && (bundle(entry).is_some() || bundle(first).is_none())
}

/// The `caBundle` of an entry, if it has one.
fn bundle(entry: &MutatingWebhook) -> Option<&ByteString> {
    entry.client_config.ca_bundle.as_ref().filter(|bundle| !bundle.0.is_empty())
}

/// The names of all entries of a configuration.
struct Names(BTreeSet<String>);

impl Names {
    /// A free name for an entry: `templates-2.injectd.dev` for the second.
    fn next(&mut self, number: usize) -> String {
        let (label, domain) = ENTRY.split_once('.').unwrap_or((ENTRY, ""));
        let mut names = (number..).map(|number| format!("{label}-{number}.{domain}"));
        let free = names.find(|name| !self.0.contains(name));
        let name = free.unwrap_or_default();
        self.0.insert(name.clone());
        name
    }
}

/// The patch of a configuration that has this version still.
pub(super) fn patch(version: &str, edits: &[Edit]) -> Patch<()> {
    let mut operations =
        vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
    for edit in edits {
        match edit {
            Edit::Select { at, selected, conditions } => {
                let Selected { namespaces, objects, .. } = selected;
                let mut set = |field: &str, value| {
                    let path = format!("/webhooks/{at}/{field}");
                    operations.push(json!({"op": "add", "path": path, "value": value}));
                };
                set("namespaceSelector", json!(namespaces));
                set("objectSelector", json!(objects));
                set("matchConditions", json!(conditions));
            }
            Edit::Copy { from, to, name, bundle } => {
                let to = format!("/webhooks/{to}");
                let from = format!("/webhooks/{from}");
                operations.push(json!({"op": "copy", "from": from, "path": to}));
                let path = format!("{to}/name");
                operations.push(json!({"op": "replace", "path": path, "value": name}));
                if let Some(bundle) = bundle {
                    let path = format!("{to}/clientConfig/caBundle");
                    operations.push(json!({"op": "add", "path": path, "value": bundle}));
                }
            }
            Edit::Remove { at } => {
                operations.push(json!({"op": "remove", "path": format!("/webhooks/{at}")}));
            }
        }
    }
    let patch = serde_json::from_value(json!(operations));
    Patch::Json(patch.expect("the operations must be a JSON Patch"))
}

#[cfg(test)]
mod tests;
