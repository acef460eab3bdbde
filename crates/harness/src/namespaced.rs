//! A namespace of a scenario's own, with pods that can be created at once.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

use crate::{
    api::{Answer, NAMESPACES, collection},
    expect::{Outcome, eventually, expect_listed},
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
    /// The names of all namespaces that the scenario has made.
    made: Mutex<Vec<String>>,
}

/// Runs a scenario with a new namespace. Afterwards all that the scenario has made are deleted.
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
    let it = Namespaced { lab, name, made: Mutex::default() };
    let outcome = match it.make(&it.name, annotations).await {
        Ok(()) => scenario(&it).await,
        Err(why) => Err(why),
    };
    let made = it.made.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut cleaned = Ok(());
    for name in made {
        cleaned = cleaned.and(delete(lab, &name).await);
    }
    outcome.and_then(|value| cleaned.map(|()| value))
}

async fn delete(lab: &Lab, namespace: &str) -> Outcome {
    // At once: the next process that uses the cluster gives its Services the same addresses.
    lab.api.delete(&collection("v1", "Service", Some(namespace))).await?;
    // Of a namespace that the scenario has deleted, the status is 404.
    lab.api.delete(&format!("{NAMESPACES}/{namespace}")).await.map(drop)
}

impl Namespaced<'_> {
    /// The labels of the scenario's namespaces, which its webhooks select.
    #[must_use]
    pub fn labels(&self) -> Value {
        json!({OF_SCENARIO: self.name})
    }

    /// Makes one more namespace of the scenario.
    ///
    /// # Errors
    ///
    /// As [`Namespaced::make_object`].
    pub async fn make(&self, name: &str, annotations: &Value) -> Outcome {
        let mut labels = self.labels();
        // A cluster may have a stricter default.
        labels["pod-security.kubernetes.io/enforce"] = json!("privileged");
        self.make_object(&namespace(name, annotations, &labels)).await
    }

    /// Makes a namespace that the webhooks of the scenario select only by its own labels.
    ///
    /// # Errors
    ///
    /// Fails if there is one with this name.
    pub async fn make_object(&self, namespace: &Value) -> Outcome {
        self.lab.api.create(None, namespace).await?.created()?;
        let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(name.to_owned());
        let account = self.lab.api.create(Some(name), &service_account("default")).await?;
        // The controller manager may have been faster.
        expect_listed("the status of its ServiceAccount", account.status, &[201, 409])
    }

    /// As [`Namespaced::make`], with these labels besides its own.
    ///
    /// # Errors
    ///
    /// As [`Namespaced::make_object`].
    pub async fn make_labelled(&self, name: &str, labels: &Value) -> Outcome {
        self.make_object(&namespace(name, &json!({}), &self.with_labels(labels))).await
    }

    /// These labels and [`Namespaced::labels`].
    #[must_use]
    pub fn with_labels(&self, labels: &Value) -> Value {
        let mut all = labels.clone();
        all[OF_SCENARIO] = json!(self.name);
        all
    }

    /// The name of one more namespace of the scenario, or of an object of the whole cluster.
    #[must_use]
    pub fn name_of(&self, what: &str) -> String {
        format!("{}-{what}", self.name)
    }

    /// Replaces the annotations of a namespace.
    ///
    /// # Errors
    ///
    /// Fails if there is no such namespace.
    pub async fn annotate(&self, namespace: &str, annotations: &Value) -> Outcome {
        let path = format!("{NAMESPACES}/{namespace}");
        eventually("the namespace is updated", async || {
            let annotate = |it: &mut Value| it["metadata"]["annotations"] = annotations.clone();
            self.lab.api.update(&path, annotate).await
        })
        .await
    }

    /// Sets the number of a Deployment's replicas.
    ///
    /// # Errors
    ///
    /// Fails if there is no such Deployment.
    pub async fn scale(&self, deployment: &str, replicas: usize) -> Outcome {
        let path = format!("{}/scale", self.path("apps/v1", "Deployment", deployment));
        eventually("the Deployment is scaled", async || {
            self.lab.api.update(&path, |it| it["spec"]["replicas"] = json!(replicas)).await
        })
        .await
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

    /// The objects of the namespace whose label `app` has this value.
    ///
    /// # Errors
    ///
    /// As [`crate::api::Api::of_app`].
    pub async fn of_app(&self, version: &str, kind: &str, app: &str) -> Outcome<Vec<Value>> {
        self.lab.api.of_app((version, kind), &self.name, app).await
    }
}
