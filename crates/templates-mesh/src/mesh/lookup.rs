//! What is looked up for a pod: its ServiceAccount, and its owners.

use injectd_core::{
    lookups::{KnownObject, LookupError, Lookups, Metadata, ObjectError},
    mesh::{Caller, InjectError},
    object::OwnerReference,
};
use injectd_templates::reads::Needs;
use serde_json::{Value, json};

use crate::set::Origin;

/// Owners above each other: Pod, `ReplicaSet`, Deployment, and what an operator puts above.
const MAX_OWNERS: usize = 4;
/// The ServiceAccount of a pod that names none.
const DEFAULT_SERVICE_ACCOUNT: &str = "default";
/// The kind of a ServiceAccount.
pub(super) const SERVICE_ACCOUNT: &str = "ServiceAccount";

/// Looks up what templates read besides the pod.
///
/// # Errors
/// A lookup fails. Without any source of objects, none is there.
pub(super) async fn of_pod(
    origin: &mut Origin<'_>,
    pod: &Value,
    needs: &Needs,
    caller: &Caller<'_, '_, impl Lookups>,
) -> Result<(), InjectError> {
    if needs.service_account.is_some() {
        let name = service_account_name(pod);
        let found = caller.lookups.service_account(origin.namespace, name, caller.deadline).await;
        let found = found_or_none(found, "service account", name)?;
        origin.service_account = found.map(|found| object(SERVICE_ACCOUNT, name, &found));
    }
    if needs.reads_owners {
        owners(origin, pod, caller).await?;
    }
    Ok(())
}

async fn owners(
    origin: &mut Origin<'_>,
    pod: &Value,
    caller: &Caller<'_, '_, impl Lookups>,
) -> Result<(), InjectError> {
    let mut next = controller(pod);
    // The bound also ends a circle of owners: Kubernetes does not prevent that objects name each
    // other.
    while let Some([kind, name, uid]) = next.filter(|_| origin.owners.len() < MAX_OWNERS) {
        let reference = OwnerReference::new(&kind, &name, &uid);
        let found = caller.lookups.object(origin.namespace, &reference, caller.deadline).await;
        let Some(found) = found_or_none(found, "owner", &name)? else { break };
        let owner = object(&kind, &name, &found);
        next = controller(&owner);
        origin.owners.push(owner);
    }
    Ok(())
}

/// The name of a pod's ServiceAccount.
pub(super) fn service_account_name(pod: &Value) -> &str {
    let name = pod.pointer("/spec/serviceAccountName").and_then(Value::as_str);
    // In a cluster an admission plugin has written the name before webhooks are called. Pods of
    // files may lack it.
    name.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_SERVICE_ACCOUNT)
}

/// Kind, name and uid of an object's controller.
pub(super) fn controller(object: &Value) -> Option<[String; 3]> {
    let references = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let controller = references.iter().find(|reference| reference["controller"] == true)?;
    let text = |key| controller.get(key).and_then(Value::as_str).map(str::to_owned);
    Some([text("kind")?, text("name")?, text("uid").unwrap_or_default()])
}

fn found_or_none<T>(
    found: Result<Option<T>, LookupError>,
    what: &'static str,
    name: &str,
) -> Result<Option<T>, ObjectError> {
    match found {
        Ok(found) => Ok(found),
        Err(LookupError::NotInMemory) => Ok(None),
        Err(source) => Err(ObjectError { what, name: name.to_owned(), source }),
    }
}

/// An object as expressions see it.
fn object(kind: &str, name: &str, known: &KnownObject) -> Value {
    let KnownObject { owner, metadata: Metadata { labels, annotations } } = known;
    let map = |entries: &[(String, String)]| -> Value {
        entries.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect()
    };
    let references = owner.owners.iter().map(|reference| {
        json!({
            "apiVersion": reference.api_version,
            "kind": reference.kind,
            "name": reference.name,
            "uid": reference.object_uid,
            "controller": reference.is_controller,
        })
    });
    json!({
        "kind": kind,
        "metadata": {
            "name": name,
            "uid": owner.object_uid,
            "labels": map(labels),
            "annotations": map(annotations),
            "ownerReferences": references.collect::<Vec<_>>(),
        },
    })
}
