//! Thousands of objects in the cluster, and reviews of pods that belong to them.

use std::time::Instant;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use hyper::http::Method;
use injectd_harness::{
    api::{Api, collection},
    expect::Outcome,
    objects::{deployment, enabled, owner, plain_pod},
    scenario::note,
};
use serde_json::{Value, json};

use crate::endurance::REVIEW;

/// Where pods and `ReplicaSets` are.
pub(super) const CROWD: &str = "crowd";
/// Concurrent requests.
const CREATORS: usize = 16;

/// The objects that were made.
pub(super) struct Objects {
    api: Api,
    review: Value,
    /// Annotations of a namespace that injectd does not read.
    annotations: usize,
    namespaces: usize,
    replica_sets: usize,
}

impl Objects {
    pub(super) fn new(api: &Api, annotations: usize) -> Outcome<Self> {
        let review = serde_json::from_slice(REVIEW)?;
        Ok(Self { api: api.clone(), review, annotations, namespaces: 0, replica_sets: 0 })
    }

    /// Creates objects over many connections; returns them as the API server has them.
    async fn create(&self, namespace: Option<&str>, objects: Vec<Value>) -> Outcome<Vec<Value>> {
        let (begin, count) = (Instant::now(), objects.len());
        let create = async |mut object: Value| -> Outcome<Value> {
            let field = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
            let path = collection(&field("apiVersion"), &field("kind"), namespace);
            let body = Some(object.to_string());
            let made = self.api.call(Method::POST, &path, body).await?.created()?;
            object["metadata"]["uid"] = made["metadata"]["uid"].clone();
            Ok(object)
        };
        let requests: Vec<_> = objects.into_iter().map(create).collect();
        let made = stream::iter(requests).buffered(CREATORS).try_collect().await?;
        note(&format!("{count} created in {} s", begin.elapsed().as_secs()));
        Ok(made)
    }

    /// Creates namespaces until the cluster has this many.
    pub(super) async fn fill(&mut self, count: usize) -> Outcome {
        let list = self.api.get(&collection("v1", "Namespace", None)).await?.ok()?;
        let there = list["items"].as_array().map_or(0, Vec::len);
        let first = self.namespaces;
        self.namespaces += count - there;
        let mut annotations = enabled();
        annotations["config.linkerd.io/proxy-cpu-request"] = json!("100m");
        for index in 0..self.annotations {
            let key = format!("example.com/other-{index}");
            annotations[key] = json!("some text that others read");
        }
        let namespace = |index: usize| {
            let metadata = json!({"name": team(index), "annotations": annotations});
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        };
        self.create(None, (first..self.namespaces).map(namespace).collect()).await.map(drop)
    }

    pub(super) async fn pods(&self, count: usize) -> Outcome {
        let pods = (0..count).map(|index| plain_pod(&format!("crowd-{index}"))).collect();
        self.create(Some(CROWD), pods).await.map(drop)
    }

    /// New `ReplicaSets` without pods, each of a Deployment of its own.
    pub(super) async fn replica_sets(&mut self, count: usize) -> Outcome<Vec<Value>> {
        let first = self.replica_sets;
        self.replica_sets += count;
        let replica_set = |index: usize| {
            let name = format!("web-{index}");
            let uid = format!("00000000-0000-4000-8000-{index:012}");
            let parent = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "uid": uid}});
            let mut made = deployment(&name, 0, &enabled());
            made["kind"] = json!("ReplicaSet");
            made["metadata"] =
                json!({"name": format!("{name}-6f7"), "ownerReferences": [owner(&parent)]});
            made
        };
        self.create(Some(CROWD), (first..self.replica_sets).map(replica_set).collect()).await
    }

    /// A review of 12 KB. Only the API server knows the Deployment behind an owner.
    pub(super) fn review(
        &self,
        namespace: &str,
        replica_set: Option<&Value>,
        annotation: Option<(&str, String)>,
    ) -> Vec<u8> {
        let mut review = self.review.clone();
        let request = &mut review["request"];
        request["namespace"] = json!(namespace);
        let metadata = &mut request["object"]["metadata"];
        metadata["namespace"] = json!(namespace);
        metadata["ownerReferences"] = replica_set.map(owner).into_iter().collect();
        metadata["labels"] = json!({"app": "web"});
        if let Some((key, value)) = annotation {
            metadata["annotations"][key] = json!(value);
        }
        review.to_string().into_bytes()
    }
}

/// The name of a namespace.
pub(super) fn team(index: usize) -> String {
    format!("team-{index}")
}
