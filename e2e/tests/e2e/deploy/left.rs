//! What the suite would leave in the cluster: webhooks, roles, namespaces and CRDs.

use std::collections::BTreeSet;

use injectd_harness::{
    api::{Api, collection},
    expect::{Outcome, eventually, expect},
};

const WEBHOOKS: &str = "admissionregistration.k8s.io/v1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// Kinds without a namespace, in the order in which their objects go. The deletion of a namespace needs
/// the kinds of its objects.
const KINDS: [(&str, &str); 6] = [
    (WEBHOOKS, "MutatingWebhookConfiguration"),
    (WEBHOOKS, "ValidatingWebhookConfiguration"),
    (RBAC, "ClusterRoleBinding"),
    (RBAC, "ClusterRole"),
    ("v1", "Namespace"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
];

/// The paths of objects.
pub(super) type Objects = BTreeSet<String>;

/// All objects of these kinds.
pub(super) async fn objects(api: &Api) -> Outcome<Objects> {
    let mut all = Objects::new();
    for kind in KINDS {
        all.extend(of_kind(api, kind).await?);
    }
    Ok(all)
}

async fn of_kind(api: &Api, (version, kind): (&str, &str)) -> Outcome<Objects> {
    let path = collection(version, kind, None);
    let list = api.get(&path).await?.ok()?;
    let names = list["items"].as_array().into_iter().flatten();
    let names = names.filter_map(|object| object["metadata"]["name"].as_str());
    Ok(names.map(|name| format!("{path}/{name}")).collect())
}

/// Deletes the objects that were not there before, and waits until they are gone.
pub(super) async fn delete(api: &Api, before: &Objects) -> Outcome {
    for kind in KINDS {
        for path in of_kind(api, kind).await?.difference(before) {
            api.delete(path).await?;
        }
        eventually("the suite cleans up", async || {
            let found = of_kind(api, kind).await?;
            let left: Vec<_> = found.difference(before).collect();
            expect("the objects that are left", [""; 0].as_slice(), left.as_slice())
        })
        .await?;
    }
    Ok(())
}
