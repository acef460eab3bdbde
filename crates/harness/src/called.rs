//! A webhook that the API server calls for the namespaces of a scenario, and the pods that it changes.

use serde_json::{Value, json};

use crate::{
    api::WEBHOOK_CONFIGURATIONS,
    expect::{Outcome, eventually, expect},
    namespaced::{Namespaced, OF_SCENARIO},
    objects::{enabled, pod, webhook_configuration},
    sidecar::{expect_no_proxy, expect_proxy, expect_workload},
};

impl Namespaced<'_> {
    /// The path of the configuration of the scenario's webhook.
    #[must_use]
    pub fn webhook(&self) -> String {
        format!("{WEBHOOK_CONFIGURATIONS}/{}", self.name)
    }

    /// Limits the webhooks of a configuration to the namespaces of the scenario.
    pub fn confine(&self, configuration: &mut Value) {
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            let own = json!({"key": OF_SCENARIO, "operator": "In", "values": [self.name]});
            match &mut webhook["namespaceSelector"]["matchExpressions"] {
                Value::Array(expressions) => expressions.push(own),
                none => *none = json!([own]),
            }
        }
    }

    /// Makes the API server call a webhook for the namespaces of the scenario, and waits until it
    /// does. `client` is `{"service": …}` or `{"url": …}`.
    ///
    /// # Errors
    ///
    /// Fails if pods get no sidecar in time.
    pub async fn call(&self, client: Value, ca: &str) -> Outcome {
        let configuration = webhook_configuration(&self.name, client, ca, &self.labels());
        self.create_in_cluster(&configuration).await?;
        self.wait_until_called(true).await
    }

    /// Deletes the configuration of the scenario's webhook, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if the API server does not answer.
    pub async fn stop_calling(&self) -> Outcome {
        self.lab.api.delete(&self.webhook()).await.map(drop)
    }

    /// Waits until the webhook is called, or is not called any more.
    ///
    /// # Errors
    ///
    /// Fails if that is not so in time.
    pub async fn wait_until_called(&self, is_called: bool) -> Outcome {
        let probe = pod("probe", &enabled());
        eventually("the configuration of the webhook takes effect", async || {
            let pod = self.dry_run(&probe).await?.created()?;
            if is_called { expect_proxy(&pod) } else { expect_no_proxy(&pod) }
        })
        .await
    }

    /// Fails unless a pod would get a sidecar in a namespace; returns the pod with it.
    ///
    /// # Errors
    ///
    /// Names the status, or the init containers that the pod has.
    pub async fn expect_injected(&self, namespace: &str, pod: &Value) -> Outcome<Value> {
        let pod = self.lab.api.dry_run(namespace, pod).await?.created()?;
        expect_proxy(&pod)?;
        Ok(pod)
    }

    /// Fails unless a pod would get no sidecar in a namespace.
    ///
    /// # Errors
    ///
    /// Names the status, or the init containers that the pod has.
    pub async fn expect_left_alone(&self, namespace: &str, pod: &Value) -> Outcome {
        expect_no_proxy(&self.lab.api.dry_run(namespace, pod).await?.created()?)
    }

    /// Waits for the pods of a workload; fails unless all have a sidecar and these labels, by the
    /// kind of the workload.
    ///
    /// # Errors
    ///
    /// Names the number of pods, or what a pod has.
    pub async fn expect_pods(&self, app: &str, count: usize, labels: &[(&str, &str)]) -> Outcome {
        let pods = eventually("the controllers make pods", async || {
            let pods = self.of_app("v1", "Pod", app).await?;
            expect("the number of pods", count, pods.len())?;
            Ok(pods)
        })
        .await?;
        for pod in &pods {
            expect_proxy(pod)?;
            expect_workload(pod, labels)?;
        }
        Ok(())
    }
}
