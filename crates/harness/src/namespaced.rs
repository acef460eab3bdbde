//! A namespace of a scenario's own, with pods that can be created at once.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

use crate::{
    api::{Answer, Api, NAMESPACES, collection, path_of},
    expect::{NotPassed, Outcome, about, eventually, expect_listed, failed},
    lab::Lab,
    objects::{ServiceAccount, namespace, service_account},
    scenario::part,
};

mod left;

/// The label whose value is the name of the scenario's first namespace: webhooks select by it.
pub const OF_SCENARIO: &str = "injectd-e2e";

/// Whose requests the audit policy leaves out, `e2e/audit-policy.yaml`: it creates pods by the thousand.
const UNAUDITED: ServiceAccount<'_> = ServiceAccount { namespace: "default", name: "default" };

/// The cluster, and a namespace in it that no other scenario uses.
pub struct Namespaced<'a> {
    /// The cluster.
    pub lab: &'a Lab,
    /// The name of the namespace.
    pub name: String,
    /// The paths of what the end of the scenario deletes.
    made: Mutex<Vec<String>>,
}

/// Runs a scenario with a new namespace. Afterwards all that the scenario has made are deleted, also if
/// it panics, takes too long, or one of them cannot be deleted.
///
/// # Errors
///
/// Those of the scenario; that there is no such namespace; the first deletion that failed; what the
/// scenario leaves in the cluster.
pub async fn with_namespace<T>(
    lab: &Lab,
    annotations: &Value,
    scenario: impl AsyncFnOnce(&Namespaced<'_>) -> Outcome<T>,
) -> Outcome<T> {
    // Unlike those of other runs in the same cluster.
    let name = format!("injectd-e2e-{:08x}", RandomState::new().hash_one(0) >> 32);
    let it = Namespaced { lab, name, made: Mutex::default() };
    let whole = async {
        it.make(&it.name, annotations).await?;
        scenario(&it).await
    };
    let outcome = part(Box::pin(whole)).await;
    let deleted = it.delete_all(|_| true).await;
    let cleaned = deleted.and(left::expect_nothing(&lab.api, &it.name).await);
    match (outcome, about("after the scenario", cleaned)) {
        (outcome, Ok(())) => outcome,
        (Err(NotPassed::Failed(why)), Err(left)) => Err(failed(format!("{why}; {left}"))),
        (_, Err(left)) => Err(left),
    }
}

async fn delete(lab: &Lab, path: &str) -> Outcome {
    // At once: the next process that uses the cluster gives its Services the same addresses.
    let services = namespace_at(path).map(|name| collection("v1", "Service", Some(name)));
    let mut deleted = Ok(());
    for path in services.iter().map(String::as_str).chain([path]) {
        // Of an object that the scenario has deleted, the status is 404.
        let answer = lab.api.delete(path).await;
        deleted = deleted.and(answer.and_then(|answer| {
            expect_listed(format!("the status of DELETE {path}"), answer.status, &[200, 202, 404])
        }));
    }
    deleted
}

/// The name of the namespace whose path this is.
fn namespace_at(path: &str) -> Option<&str> {
    path.strip_prefix(NAMESPACES)?.strip_prefix('/').filter(|name| !name.contains('/'))
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
        self.create_in_cluster(namespace).await?;
        let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
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

    /// Creates an object that is in no namespace, and deletes it once the scenario has ended.
    ///
    /// # Errors
    ///
    /// Fails if there is one with this name.
    pub async fn create_in_cluster(&self, object: &Value) -> Outcome<Value> {
        let path = path_of(object, None);
        // Before the request: its answer may be lost.
        self.delete_at_end(path.clone());
        let answer = self.lab.api.create(None, object).await?;
        if answer.status == 409 {
            // It is another's.
            self.forget(&path);
        }
        answer.created()
    }

    /// Deletes the object or the selected collection of this path once the scenario has ended, if it is
    /// there then.
    pub fn delete_at_end(&self, path: String) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }

    /// Takes back the last [`Namespaced::delete_at_end`] of this path.
    fn forget(&self, path: &str) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = made.iter().rposition(|earlier| earlier == path) {
            made.remove(last);
        }
    }

    /// Deletes what the scenario has made in no namespace before the scenario ends.
    ///
    /// # Errors
    ///
    /// The first deletion that failed; the others are tried.
    pub async fn delete_in_cluster(&self) -> Outcome {
        self.delete_all(|path| namespace_at(path).is_none()).await
    }

    /// The last first.
    async fn delete_all(&self, is_meant: impl Fn(&str) -> bool) -> Outcome {
        let mut meant =
            std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        let others = meant.extract_if(.., |path| !is_meant(path)).collect();
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = others;
        let mut cleaned = Ok(());
        // The last one first: what was made later may need what was made before it, as a webhook
        // needs its namespace.
        for path in meant.iter().rev() {
            cleaned = cleaned.and(delete(self.lab, path).await);
        }
        cleaned
    }

    /// A client whose requests are not in the audit log, for pods in these namespaces.
    ///
    /// # Errors
    ///
    /// Fails if the client may create no pods in time.
    pub async fn unaudited(&self, namespaces: &[String]) -> Outcome<Api> {
        let api = &self.lab.api;
        for namespace in namespaces {
            let edit = UNAUDITED.bound("RoleBinding", "unaudited", "ClusterRole", "edit");
            let made = api.create(Some(namespace), &edit).await?;
            expect_listed("the status of the role", made.status, &[201, 409])?;
            let create = json!({"verb": "create", "resource": "pods", "namespace": namespace});
            api.wait_until_allowed(UNAUDITED, &create).await?;
        }
        api.as_account(UNAUDITED.namespace, UNAUDITED.name).await
    }

    /// The name of one more namespace of the scenario, or of an object of the whole cluster.
    #[must_use]
    pub fn name_of(&self, what: &str) -> String {
        format!("{}-{what}", self.name)
    }

    /// A text of a table, in which the names that begin with this prefix are the scenario's own.
    #[must_use]
    pub fn own_names(&self, prefix: &str, text: &str) -> String {
        text.replace(prefix, &self.name_of(""))
    }

    /// As [`Namespaced::own_names`], of an object.
    ///
    /// # Errors
    ///
    /// Fails if the prefix is more than the beginning of names.
    pub fn own_object(&self, prefix: &str, object: &Value) -> Outcome<Value> {
        Ok(serde_json::from_str(&self.own_names(prefix, &object.to_string()))?)
    }

    /// Replaces the annotations of a namespace.
    ///
    /// # Errors
    ///
    /// Fails if there is no such namespace.
    pub async fn annotate(&self, namespace: &str, annotations: &Value) -> Outcome {
        let path = format!("{NAMESPACES}/{namespace}");
        eventually("the namespace is updated", async || {
            let annotate =
                |object: &mut Value| object["metadata"]["annotations"] = annotations.clone();
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
            self.lab
                .api
                .update(&path, |deployment| deployment["spec"]["replicas"] = json!(replicas))
                .await
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
        self.lab.api.of_app(version, kind, &self.name, app).await
    }
}
