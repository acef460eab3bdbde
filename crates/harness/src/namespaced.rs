//! A namespace of a scenario's own, with pods that can be created at once.

use std::hash::{BuildHasher as _, RandomState};

use serde_json::{Value, json};

use crate::{
    api::{Answer, NAMESPACES, collection},
    expect::{Outcome, expect_listed},
    lab::Lab,
    objects::{namespace, service_account},
};

/// The label whose value is the name of the scenario's first namespace: webhooks select by it.
pub const OF_SCENARIO: &str = "injectd-e2e";

/// The cluster, and a namespace in it that no other scenario uses.
pub struct Namespaced<'a> {
    /// The cluster.
    pub lab: &'a Lab,
    /// The name of the namespace.
    pub name: String,
}

/// Runs a scenario with a new namespace, which is deleted afterwards.
///
/// # Errors
///
/// Those of the scenario, or that there is no such namespace.
pub async fn with_namespace<T>(
    lab: &Lab,
    annotations: &Value,
    scenario: impl AsyncFnOnce(&Namespaced<'_>) -> Outcome<T>,
) -> Outcome<T> {
    // Unlike those of other runs in the same cluster.
    let name = format!("injectd-e2e-{:08x}", RandomState::new().hash_one(0) >> 32);
    let it = Namespaced { lab, name };
    it.make(&it.name, annotations).await?;
    let outcome = scenario(&it).await;
    it.delete(&it.name).await?;
    outcome
}

impl Namespaced<'_> {
    /// The labels of the scenario's namespaces, which its webhooks select.
    #[must_use]
    pub fn labels(&self) -> Value {
        json!({OF_SCENARIO: self.name})
    }

    /// Makes one more namespace of the scenario; [`Namespaced::delete`] deletes it.
    ///
    /// # Errors
    ///
    /// Fails if there is one with this name.
    pub async fn make(&self, name: &str, annotations: &Value) -> Outcome {
        let object = namespace(name, annotations, &self.labels());
        self.lab.api.create(None, &object).await?.created()?;
        let account = self.lab.api.create(Some(name), &service_account("default")).await?;
        // The controller manager may have been faster.
        expect_listed("the status of its ServiceAccount", account.status, &[201, 409])
    }

    /// Deletes a namespace; its objects are gone some time later.
    ///
    /// # Errors
    ///
    /// Fails if the API server does not answer.
    pub async fn delete(&self, name: &str) -> Outcome {
        self.lab.api.delete(&format!("{NAMESPACES}/{name}")).await.map(drop)
    }

    /// The path of an object of the namespace.
    #[must_use]
    pub fn path(&self, version: &str, kind: &str, name: &str) -> String {
        format!("{}/{name}", collection(version, kind, Some(&self.name)))
    }

    /// Creates an object in the namespace.
    ///
    /// # Errors
    ///
    /// As [`crate::api::Api::create`].
    pub async fn create(&self, object: &Value) -> Outcome<Answer> {
        self.lab.api.create(Some(&self.name), object).await
    }

    /// What the creation of an object would be answered with.
    ///
    /// # Errors
    ///
    /// As [`crate::api::Api::dry_run`].
    pub async fn dry_run(&self, object: &Value) -> Outcome<Answer> {
        self.lab.api.dry_run(&self.name, object).await
    }
}
