//! Sets pods to ready, as a kubelet would.

use std::pin::pin;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
    runtime::{
        WatchStreamExt as _,
        watcher::{Config, watcher},
    },
};
use serde_json::json;
use tokio::task::JoinSet;

use injectd_harness::namespaced::OF_SCENARIO;

/// Concurrent requests.
const REQUESTS: usize = 8;

/// Ends when it is dropped.
pub(crate) struct Kubelet {
    _task: JoinSet<()>,
}

impl Kubelet {
    /// Of the pods whose label says that they are of a scenario.
    pub(crate) fn start(client: &Client, scenario: &str) -> Self {
        let mut task = JoinSet::new();
        task.spawn(run(client.clone(), format!("{OF_SCENARIO}={scenario}")));
        Self { _task: task }
    }
}

async fn run(client: Client, selector: String) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
    let pods = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let config = Config::default().labels(&selector);
    let changes = pin!(watcher(pods, config).default_backoff().applied_objects());
    let set = async |pod: kube::runtime::watcher::Result<DynamicObject>| {
        let Ok(pod) = pod else { return };
        if pod.data["status"]["phase"] == "Running" || pod.metadata.deletion_timestamp.is_some() {
            return;
        }
        let namespace = pod.namespace().unwrap_or_default();
        let pods = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource);
        let now = Timestamp::now().to_string();
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": now});
        let status = Patch::Merge(json!({"status": {"phase": "Running", "conditions": [ready]}}));
        // The pod may be gone.
        drop(pods.patch_status(&pod.name_any(), &PatchParams::default(), &status).await);
    };
    changes.for_each_concurrent(REQUESTS, set).await;
}
