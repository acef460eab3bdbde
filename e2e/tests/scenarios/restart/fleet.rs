//! The namespaces, workloads and budgets that controllers restart.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use injectd_cluster::{ClientOptions, client};
use injectd_controllers::restart::{Finding, RolloutKind, WINDOW_ANNOTATION, Workload};
use injectd_harness::{
    api::{NAMESPACES, collection},
    expect::{Outcome, eventually},
    lab::Lab,
    namespaced::{Namespaced, OF_SCENARIO},
    objects::deployment,
};
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use kube::Client;
use serde_json::{Value, json};

use super::kubelet::Kubelet;

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
pub(super) struct Fleet<'a> {
    pub(super) it: &'a Namespaced<'a>,
    pub(super) client: Client,
    pub(super) workloads: Vec<Member>,
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

/// A client of the crate `kube`, of an administrator.
pub(crate) async fn client_of(lab: &Lab) -> Outcome<Client> {
    let options = ClientOptions { kubeconfig: Some(&lab.kubeconfig), ..ClientOptions::default() };
    Ok(client(options).await?)
}

impl<'a> Fleet<'a> {
    pub(super) async fn new(it: &'a Namespaced<'a>) -> Outcome<Self> {
        let client = client_of(it.lab).await?;
        let kubelet = Kubelet::start(&client, &it.name);
        let workloads = (0..COUNT).map(|index| member(index, name(it, index))).collect();
        Ok(Self { it, client, workloads, _kubelet: kubelet })
    }

    pub(super) async fn create(&self) -> Outcome {
        for index in 0..NAMESPACE_COUNT {
            let window = if CLOSED.contains(&index) { closed_window()? } else { OPEN.to_owned() };
            let annotations = json!({WINDOW_ANNOTATION: window});
            self.it.make(&name(self.it, index), &annotations).await?;
        }
        let (api, labels) = (&self.it.lab.api, self.it.labels());
        let create = async |member: &Member| -> Outcome {
            let namespace = Some(&*member.finding.workload.namespace);
            if member.has_budget {
                api.create(namespace, &member.budget(&labels)).await?.created()?;
            }
            api.create(namespace, &member.object(&labels)).await?.created().map(drop)
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
                self.it
                    .lab
                    .api
                    .update(&path, |budget| budget["spec"]["minAvailable"] = json!(0))
                    .await
            })
            .await
        };
        each(self.budgets().map(open)).await
    }

    pub(super) async fn open_windows(&self) -> Outcome {
        for index in CLOSED {
            let path = format!("{NAMESPACES}/{}", name(self.it, index));
            let open = |namespace: &mut Value| {
                namespace["metadata"]["annotations"][WINDOW_ANNOTATION] = json!(OPEN);
            };
            self.it.lab.api.update(&path, open).await?;
        }
        Ok(())
    }

    /// How many events of the namespaces have this reason.
    pub(super) async fn events(&self, reason: &str) -> Outcome<usize> {
        let mut count = 0;
        for index in 0..NAMESPACE_COUNT {
            let path = collection("v1", "Event", Some(&name(self.it, index)));
            let path = format!("{path}?fieldSelector=reason%3D{reason}");
            let list = self.it.lab.api.get(&path).await?.ok()?;
            count += list["items"].as_array().map_or(0, Vec::len);
        }
        Ok(count)
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        self.workloads.iter().map(|workload| workload.finding.clone()).collect()
    }

    pub(super) fn closed(&self) -> impl Iterator<Item = &Member> {
        self.workloads.iter().filter(|workload| workload.is_closed)
    }

    pub(super) fn budgets(&self) -> impl Iterator<Item = &Member> {
        self.workloads.iter().filter(|workload| workload.has_budget)
    }

    pub(super) fn open_with_budget(&self) -> impl Iterator<Item = &Member> {
        self.budgets().filter(|workload| !workload.is_closed)
    }

    /// Those that may be restarted from the beginning.
    pub(super) fn free(&self) -> impl Iterator<Item = &Member> {
        self.workloads.iter().filter(|workload| !workload.is_closed && !workload.has_budget)
    }
}

impl Member {
    fn object(&self, labels: &Value) -> Value {
        let Workload { kind, name, .. } = &self.finding.workload;
        let mut object = deployment(name, 1, &json!({}));
        object["kind"] = json!(kind);
        object["metadata"]["labels"] = labels.clone();
        let of_pods = &mut object["spec"]["template"]["metadata"]["labels"];
        of_pods[OF_SCENARIO] = labels[OF_SCENARIO].clone();
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

    /// A budget that allows no disruption.
    fn budget(&self, labels: &Value) -> Value {
        let name = &self.finding.workload.name;
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "minAvailable": 1,
                "selector": {"matchLabels": {"app": name}},
            },
        })
    }
}

fn member(index: usize, namespace: String) -> Member {
    let kind = match index % 10 {
        8 => RolloutKind::StatefulSet,
        9 => RolloutKind::DaemonSet,
        _ => RolloutKind::Deployment,
    };
    let in_namespace = index % NAMESPACE_COUNT;
    let workload = Workload {
        api_version: RolloutKind::API_VERSION.to_owned(),
        kind: kind.as_str().to_owned(),
        namespace,
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

/// The namespace of a workload.
fn name(it: &Namespaced<'_>, index: usize) -> String {
    it.name_of(&(index % NAMESPACE_COUNT).to_string())
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
