//! What the injector of Linkerd's control plane needs of a cluster: its account, with exactly the
//! `ClusterRole` of Linkerd's chart.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    api::{Api, write_kubeconfig},
    expect::Outcome,
    lab::root,
    objects::{ServiceAccount, namespace, service_account},
};

/// The name of the `ServiceAccount`, the Service and the webhook's configuration.
pub const ACCOUNT: &str = "linkerd-proxy-injector";

/// Linkerd's `ClusterRole`.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn cluster_role() -> Outcome<Value> {
    let file = root().join("e2e/cluster-role.yaml");
    Ok(serde_saphyr::from_str(&fs::read_to_string(file)?)?)
}

/// Makes the namespace of a control plane and the account in it, whose role is in force; returns its
/// kubeconfig, a file in this folder.
///
/// # Errors
///
/// Fails if one of the objects is there already.
pub async fn make_account(api: &Api, control_plane: &str, folder: &Path) -> Outcome<PathBuf> {
    let namespace = namespace(control_plane, &json!({}), &json!({}));
    api.create(None, &namespace).await?.created()?;
    make_permissions(api, control_plane).await?;
    let config = api.kubeconfig(control_plane, ACCOUNT, &api.server).await?;
    write_kubeconfig(folder, &config)
}

async fn make_permissions(api: &Api, control_plane: &str) -> Outcome {
    api.create(Some(control_plane), &service_account(ACCOUNT)).await?.created()?;
    let of = ServiceAccount { namespace: control_plane, name: ACCOUNT };
    for object in permissions(control_plane, of)? {
        api.create(None, &object).await?.created()?;
    }
    api.wait_until_allowed(of, &json!({"verb": "list", "resource": "namespaces"})).await
}

/// Linkerd's `ClusterRole`, and its binding to an account, both with this name.
///
/// # Errors
///
/// As [`cluster_role`].
pub fn permissions(name: &str, of: ServiceAccount<'_>) -> Outcome<[Value; 2]> {
    let mut role = cluster_role()?;
    role["metadata"]["name"] = json!(name);
    Ok([role, of.bound("ClusterRoleBinding", name, "ClusterRole", name)])
}
