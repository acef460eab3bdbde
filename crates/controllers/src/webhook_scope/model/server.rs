//! The API server of the model: a configuration, with field managers.

use std::collections::BTreeMap;

use injectd_webhooks::{Configurations, Labels, Request, Verdict};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::api::Patch;
use serde_json::{Value, json};

use super::{
    super::edits::{self, patch},
    *,
};
use crate::{certificates::FIELD_MANAGER, webhook_scope::selected::CONDITION};

/// What others do with the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Edit {
    /// Helm writes its selectors again.
    Reset,
    /// Someone narrows the selectors.
    Narrow,
    /// Someone removes all selectors and conditions.
    Widen,
    /// It is deleted.
    Delete,
    /// It is created anew.
    Again,
    /// The `caBundle` of all entries is written.
    Bundle,
    /// An operator changes the timeout of the first entry.
    Timeout,
    /// Someone adds an entry that is not injectd's.
    Add,
}

impl Edit {
    pub(in super::super) const ALL: [Self; 8] = [
        Self::Reset,
        Self::Narrow,
        Self::Widen,
        Self::Delete,
        Self::Again,
        Self::Bundle,
        Self::Timeout,
        Self::Add,
    ];
}

/// Why a write is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Refused {
    Conflict,
    Conditions,
}

/// An API server.
#[derive(Debug)]
pub(in super::super) struct Server {
    object: Option<Value>,
    version: u64,
    /// Who has a field of an entry.
    owners: BTreeMap<(String, &'static str), &'static str>,
    pub(super) drops: bool,
    pub(super) rejects: bool,
    /// Whether conditions were dropped or rejected at any time.
    pub(super) has_lost_conditions: bool,
    bundles: u64,
    /// The pods that are called for, by what entries select.
    known: BTreeMap<String, [bool; PODS]>,
}

/// The Service of injectd.
pub(in super::super) fn service() -> Service {
    Service { namespace: "mesh".into(), name: "injectd".into() }
}

/// An entry as the chart has it.
fn entry(name: &str, path: &str) -> Value {
    json!({"name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Ignore", "timeoutSeconds": 7,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "clientConfig": {"caBundle": "QQ==",
            "service": {"name": "injectd", "namespace": "mesh", "path": path}}})
}

impl Server {
    pub(in super::super) fn new() -> Self {
        let mut server = Self {
            object: None,
            version: 0,
            owners: BTreeMap::new(),
            drops: false,
            rejects: false,
            has_lost_conditions: false,
            bundles: 0,
            known: BTreeMap::new(),
        };
        server.edit(Edit::Again);
        server
    }

    pub(in super::super) fn read(&self) -> Option<MutatingWebhookConfiguration> {
        let mut object = self.object.clone()?;
        let mut managers: BTreeMap<&str, Value> = BTreeMap::new();
        for ((name, field), owner) in &self.owners {
            let fields = managers.entry(owner).or_insert_with(|| json!({}));
            let entry = &mut fields["f:webhooks"][format!("k:{}", json!({"name": name}))];
            match *field {
                "matchConditions" => {
                    let condition = format!("k:{}", json!({"name": CONDITION}));
                    entry["f:matchConditions"][condition] = json!({".": {}});
                }
                field => entry[format!("f:{field}")] = json!({}),
            }
        }
        let managed = managers.into_iter().map(|(manager, fields)| {
            json!({"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields})
        });
        object["metadata"]["managedFields"] = managed.collect();
        serde_json::from_value(object).ok()
    }

    pub(super) fn object(&self) -> Option<&Value> {
        self.object.as_ref()
    }

    /// The entries of the configuration; empty if there is none.
    pub(super) fn webhooks(&self) -> Vec<Value> {
        let webhooks = self.object.as_ref().and_then(|object| object["webhooks"].as_array());
        webhooks.cloned().unwrap_or_default()
    }

    /// What injectd's entries select.
    pub(in super::super) fn entries(&self) -> Option<Vec<Selected>> {
        self.object.as_ref()?;
        let ours = self.webhooks().into_iter().filter(is_ours);
        let entry = |one| Selected::of_webhook(&serde_json::from_value(one).expect("a webhook"));
        Some(ours.map(entry).collect())
    }

    /// Writes entries as a field manager.
    fn set(&mut self, mut webhooks: Vec<Value>, manager: &'static str) {
        let before = self.webhooks();
        let mut owners = BTreeMap::new();
        for webhook in &mut webhooks {
            let name = webhook["name"].as_str().unwrap_or_default().to_owned();
            let old = before.iter().find(|old| old["name"] == webhook["name"]);
            for field in ["namespaceSelector", "objectSelector", "matchConditions"] {
                if self.drops && field == "matchConditions" && !webhook[field].is_null() {
                    self.has_lost_conditions |=
                        webhook[field].as_array().is_some_and(|all| !all.is_empty());
                    webhook[field] = json!([]);
                }
                let is_same = old.is_some_and(|old| old[field] == webhook[field]);
                let owner = self.owners.get(&(name.clone(), field)).filter(|_| is_same);
                if let Some(owner) = owner.copied().or((!is_same).then_some(manager)) {
                    owners.insert((name.clone(), field), owner);
                }
            }
        }
        self.owners = owners;
        self.version += 1;
        let metadata =
            json!({"name": "injectd-templates", "resourceVersion": self.version.to_string()});
        self.object = Some(json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration", "metadata": metadata, "webhooks": webhooks}));
    }

    /// What others do.
    pub(in super::super) fn edit(&mut self, edit: Edit) {
        if edit == Edit::Again {
            self.owners.clear();
            let mut first = entry("templates.injectd.dev", "/templates");
            first["objectSelector"] = json!(Selected::nothing().objects);
            return self.set(vec![first], "helm");
        }
        if self.object.is_none() {
            return;
        }
        let mut webhooks = self.webhooks();
        for webhook in webhooks.iter_mut().filter(|one| is_ours(one)) {
            match edit {
                Edit::Reset => {
                    webhook["namespaceSelector"] = json!({});
                    webhook["objectSelector"] = json!(Selected::nothing().objects);
                }
                Edit::Narrow => {
                    webhook["objectSelector"] = json!({"matchLabels": {"app": "other"}});
                }
                Edit::Widen => {
                    for field in ["namespaceSelector", "objectSelector"] {
                        webhook[field] = json!({});
                    }
                    webhook["matchConditions"] = json!([]);
                }
                Edit::Bundle => {
                    self.bundles += 1;
                    let bundle = format!("{:04}", self.bundles);
                    webhook["clientConfig"]["caBundle"] = bundle.into();
                }
                Edit::Delete | Edit::Again | Edit::Add | Edit::Timeout => {}
            }
        }
        match edit {
            Edit::Delete => {
                self.object = None;
                self.owners.clear();
            }
            Edit::Timeout => {
                let first = webhooks.iter_mut().find(|one| is_ours(one)).expect("an entry");
                first["timeoutSeconds"] = (1 + self.version % 9).into();
                self.set(webhooks, "kubectl");
            }
            Edit::Add if webhooks.len() < 4 => {
                let other = entry(&format!("other{}", webhooks.len()), "/linkerd");
                webhooks.insert(0, other);
                self.set(webhooks, "kubectl");
            }
            _ => self.set(webhooks, "kubectl"),
        }
    }

    /// A write of a leader.
    pub(in super::super) fn write(
        &mut self,
        version: &str,
        edits: &[edits::Edit],
    ) -> Result<MutatingWebhookConfiguration, Refused> {
        let mut object = self.object.clone().ok_or(Refused::Conflict)?;
        let Patch::Json::<()>(operations) = patch(version, edits) else {
            return Err(Refused::Conflict);
        };
        // kube has another version of the package.
        let operations: json_patch::Patch =
            serde_json::from_value(json!(operations)).expect("a JSON Patch");
        json_patch::patch(&mut object, &operations).map_err(|_| Refused::Conflict)?;
        let webhooks = object["webhooks"].as_array().cloned().unwrap_or_default();
        let has_conditions =
            |one: &Value| one["matchConditions"].as_array().is_some_and(|all| !all.is_empty());
        if self.rejects && webhooks.iter().any(has_conditions) {
            self.has_lost_conditions = true;
            return Err(Refused::Conditions);
        }
        self.set(webhooks, FIELD_MANAGER);
        self.read().ok_or(Refused::Conflict)
    }

    /// The pods that injectd is called for.
    pub(super) fn called(&mut self) -> [bool; PODS] {
        let Some(object) = &self.object else { return [false; PODS] };
        let key = format!("{:?}", self.entries());
        if let Some(called) = self.known.get(&key) {
            return *called;
        }
        let read = Configurations::read([object]).expect("a configuration");
        let called = std::array::from_fn(|pod| is_called(&read, pod));
        self.known.insert(key, called);
        called
    }

    /// Invariant 2: what a leader must not change is as before.
    pub(super) fn check_owned(&self, before: &[Value]) -> Checked {
        let after = self.webhooks();
        let others = |of: &[Value]| -> Vec<Value> {
            of.iter().filter(|one| !is_ours(one)).cloned().collect()
        };
        prop_assert_eq!(others(before), others(&after));
        let first = before.iter().find(|one| is_ours(one)).expect("an entry");
        for entry in after.iter().filter(|one| is_ours(one)) {
            let old = before.iter().find(|old| old["name"] == entry["name"]).unwrap_or(first);
            prop_assert_eq!(&old["clientConfig"], &entry["clientConfig"]);
            for field in ["timeoutSeconds", "failurePolicy", "rules"] {
                prop_assert_eq!(&first[field], &entry[field]);
            }
        }
        Ok(())
    }
}

fn is_ours(webhook: &Value) -> bool {
    webhook["clientConfig"]["service"]["path"] == "/templates"
}

fn is_called(read: &Configurations, pod: usize) -> bool {
    let labels = if pod < 3 { json!({"app": format!("w{pod}")}) } else { json!({}) };
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": labels},
        "spec": {"containers": [{"name": "app", "image": "a"}]}});
    let namespace = if pod == 3 { "on" } else { "off" };
    let mut labels = Labels::new();
    labels.insert("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
    if pod == 3 {
        labels.insert("inject".to_owned(), "enabled".to_owned());
    }
    let steps = read.walk(&Request::creates_pod(&object, namespace), Some(&labels));
    let own = |webhook: &str| webhook.starts_with("templates");
    steps.iter().any(|step| own(&step.webhook.name) && step.verdict == Verdict::Called)
}
