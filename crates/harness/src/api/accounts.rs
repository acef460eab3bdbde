//! `ServiceAccounts`: their kubeconfigs, and clients that are one.

use std::{
    fs::File,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use hyper::http::Method;
use serde_json::{Value, json};

use super::{Api, collection};
use crate::{
    expect::{Outcome, eventually, expect},
    objects::ServiceAccount,
};

impl Api {
    /// A new token of an account, by the `spec` of a `TokenRequest`.
    ///
    /// # Errors
    ///
    /// Fails if the API server gives none.
    pub async fn token(&self, of: ServiceAccount<'_>, spec: &Value) -> Outcome<String> {
        let accounts = collection("v1", "ServiceAccount", Some(of.namespace));
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": spec});
        let path = format!("{accounts}/{}/token", of.name);
        let made = self.call(Method::POST, &path, Some(request.to_string())).await?.created()?;
        Ok(made["status"]["token"].as_str().unwrap_or_default().to_owned())
    }

    /// A kubeconfig of a `ServiceAccount` with a new token, for the API server at this URL.
    ///
    /// # Errors
    ///
    /// Fails if the API server gives no token.
    pub async fn kubeconfig(&self, namespace: &str, account: &str, server: &str) -> Outcome<Value> {
        let of = ServiceAccount { namespace, name: account };
        let token = self.token(of, &json!({"expirationSeconds": 3600})).await?;
        let cluster = json!({"server": server, "certificate-authority-data": self.ca});
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": [{"name": account, "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": account}}],
            "current-context": "e2e",
        }))
    }

    /// Waits until an account is allowed a request, by the `resourceAttributes` of a
    /// `SubjectAccessReview`: the API server knows new roles only after a delay.
    ///
    /// # Errors
    ///
    /// Fails if the account is not allowed it in time.
    pub async fn wait_until_allowed(&self, of: ServiceAccount<'_>, request: &Value) -> Outcome {
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": of.user(), "resourceAttributes": request}});
        eventually("the role takes effect", async || {
            let answer = self.create(None, &review).await?.created()?;
            expect(
                format!("whether {request} is allowed"),
                true,
                answer["status"]["allowed"] == true,
            )
        })
        .await
    }

    /// A client that is a `ServiceAccount`.
    ///
    /// # Errors
    ///
    /// As [`Api::kubeconfig`].
    pub async fn as_account(&self, namespace: &str, account: &str) -> Outcome<Self> {
        let kubeconfig = self.kubeconfig(namespace, account, &self.server).await?;
        Self::from_kubeconfig(serde_json::from_value(kubeconfig)?).await
    }
}

/// Writes a kubeconfig into a folder, for its owner alone; returns the file.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub fn write_kubeconfig(folder: &Path, kubeconfig: &Value) -> Outcome<PathBuf> {
    let file = folder.join("kubeconfig");
    let mut options = File::options();
    options.create(true).truncate(true).write(true).mode(0o600);
    options.open(&file)?.write_all(kubeconfig.to_string().as_bytes())?;
    Ok(file)
}
