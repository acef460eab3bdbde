//! The namespaces, workloads and budgets of the suite.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use hyper::http::Method;
use injectd::{
    cluster::{ClientOptions, client},
    restart::{Finding, RolloutKind, WINDOW_ANNOTATION, Workload},
};
use injectd_harness::{
    api::{Api, NAMESPACES, collection},
    expect::{Outcome, eventually},
    lab::Lab,
    objects::{deployment, namespace},
};
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use kube::Client;
use serde_json::{Value, json};

use super::kubelet::Kubelet;

/// The label of all objects of the suite.
pub(super) const LABEL: (&str, &str) = ("suite", "restart");
/// A window that is open.
const OPEN: &str = "00:00-24:00 UTC";
const COUNT: usize = 200;
/// One workload of a namespace rolls out at a time.
const NAMESPACE_COUNT: usize = 24;
/// The namespaces whose window is closed at first.
const CLOSED: std::ops::Range<usize> = 5..11;
/// Concurrent requests.
const REQUESTS: usize = 16;

/// The workloads, and the pods' kubelet.
pub(super) struct Fleet {
    pub(super) client: Client,
    pub(super) workloads: Vec<Member>,
    api: Api,
    _kubelet: Kubelet,
}

/// A workload of the fleet.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) finding: Finding,
    is_closed: bool,
    has_budget: bool,
    /// Its rollout takes some seconds.
    is_slow: bool,
}

impl Fleet {
    pub(super) async fn new(lab: &Lab) -> Outcome<Self> {
        let options =
            ClientOptions { kubeconfig: Some(&lab.kubeconfig), ..ClientOptions::default() };
        let client = client(options).await?;
        let kubelet = Kubelet::start(&client);
        let workloads = (0..COUNT).map(member).collect();
        Ok(Self { client, workloads, api: lab.api.clone(), _kubelet: kubelet })
    }

    pub(super) async fn create(&self) -> Outcome {
        for index in 0..NAMESPACE_COUNT {
            let window = if CLOSED.contains(&index) { closed_window()? } else { OPEN.to_owned() };
            let annotations = json!({WINDOW_ANNOTATION: window});
            let object = namespace(&name(index), &annotations, &label());
            self.api.create(None, &object).await?.created()?;
        }
        let create = async |member: &Member| -> Outcome {
            let namespace = Some(&*member.finding.workload.namespace);
            if member.has_budget {
                self.api.create(namespace, &member.budget(1)).await?.created()?;
            }
            self.api.create(namespace, &member.object()).await?.created().map(drop)
        };
        each(self.workloads.iter().map(create)).await
    }

    /// Lets all budgets allow a disruption.
    pub(super) async fn open_budgets(&self) -> Outcome {
        let open = async |member: &Member| -> Outcome {
            let Workload { namespace, name, .. } = &member.finding.workload;
            let path = collection("policy/v1", "PodDisruptionBudget", Some(namespace));
            let path = format!("{path}/{name}");
            // The disruption controller writes the status of the same object.
            eventually("the budget is changed", async || {
                self.api.update(&path, |it| it["spec"]["minAvailable"] = json!(0)).await
            })
            .await
        };
        each(self.budgets().map(open)).await
    }

    pub(super) async fn open_windows(&self) -> Outcome {
        for index in CLOSED {
            let path = format!("{NAMESPACES}/{}", name(index));
            let open = |it: &mut Value| {
                it["metadata"]["annotations"][WINDOW_ANNOTATION] = json!(OPEN);
            };
            self.api.update(&path, open).await?;
        }
        Ok(())
    }

    pub(super) async fn delete(&self) -> Outcome {
        for index in 0..NAMESPACE_COUNT {
            self.api.delete(&format!("{NAMESPACES}/{}", name(index))).await?;
        }
        Ok(())
    }

    /// How many events of the namespaces have this reason.
    pub(super) async fn events(&self, reason: &str) -> Outcome<usize> {
        let mut count = 0;
        for index in 0..NAMESPACE_COUNT {
            let path = collection("v1", "Event", Some(&name(index)));
            let path = format!("{path}?fieldSelector=reason%3D{reason}");
            let list = self.api.call(Method::GET, &path, None).await?.ok()?;
            count += list["items"].as_array().map_or(0, Vec::len);
        }
        Ok(count)
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        self.workloads.iter().map(|it| it.finding.clone()).collect()
    }

    pub(super) fn closed(&self) -> impl Iterator<Item = &Member> {
        self.workloads.iter().filter(|it| it.is_closed)
    }

    pub(super) fn budgets(&self) -> impl Iterator<Item = &Member> {
        self.workloads.iter().filter(|it| it.has_budget)
    }

    pub(super) fn open_with_budget(&self) -> impl Iterator<Item = &Member> {
        self.budgets().filter(|it| !it.is_closed)
    }

    /// Those that may be restarted from the beginning.
    pub(super) fn free(&self) -> impl Iterator<Item = &Member> {
        self.workloads.iter().filter(|it| !it.is_closed && !it.has_budget)
    }
}

impl Member {
    fn object(&self) -> Value {
        let Workload { kind, name, .. } = &self.finding.workload;
        let mut object = deployment(name, 1, &json!({}));
        object["kind"] = json!(kind);
        object["metadata"]["labels"] = label();
        object["spec"]["template"]["metadata"]["labels"][LABEL.0] = json!(LABEL.1);
        if self.is_slow {
            object["spec"]["minReadySeconds"] = json!(2);
        }
        if kind == "StatefulSet" {
            object["spec"]["serviceName"] = json!(name);
        } else if kind == "DaemonSet"
            && let Some(spec) = object["spec"].as_object_mut()
        {
            spec.remove("replicas");
        }
        object
    }

    fn budget(&self, min_available: u8) -> Value {
        let name = &self.finding.workload.name;
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "labels": label()},
            "spec": {
                "minAvailable": min_available,
                "selector": {"matchLabels": {"app": name}},
            },
        })
    }
}

fn member(index: usize) -> Member {
    let kind = match index % 10 {
        8 => RolloutKind::StatefulSet,
        9 => RolloutKind::DaemonSet,
        _ => RolloutKind::Deployment,
    };
    let in_namespace = index % NAMESPACE_COUNT;
    let workload = Workload {
        api_version: RolloutKind::API_VERSION.to_owned(),
        kind: kind.as_str().to_owned(),
        namespace: name(in_namespace),
        name: format!("w{index}"),
        uid: None,
    };
    let finding =
        Finding { workload, reason: "1 pod has no sidecar".to_owned(), ..Finding::default() };
    Member {
        finding,
        is_closed: CLOSED.contains(&in_namespace),
        has_budget: index.is_multiple_of(10),
        is_slow: !index.is_multiple_of(2),
    }
}

fn name(index: usize) -> String {
    format!("restart-{index}")
}

fn label() -> Value {
    json!({LABEL.0: LABEL.1})
}

/// A window that begins in some days.
fn closed_window() -> Outcome<String> {
    let date = Timestamp::now().to_zoned(TimeZone::UTC).date().checked_add(3.days())?;
    Ok(format!("{} 00:00-01:00 UTC", date.strftime("%a")))
}

async fn each(requests: impl Iterator<Item = impl Future<Output = Outcome>>) -> Outcome {
    let requests: Vec<_> = requests.collect();
    stream::iter(requests).buffer_unordered(REQUESTS).try_collect().await
}

/// Whether a window is the open one.
pub(super) fn is_open(window: &str) -> bool {
    window == OPEN
}
