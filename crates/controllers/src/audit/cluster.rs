//! Reads the pods of a cluster page by page.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::TryStreamExt as _;
use injectd_cluster::{Unanswered, causes::with_causes};
use injectd_explain::ExplainError;
use injectd_webhooks::{Configurations, InvalidConfiguration};
use serde_json::Value;

use super::{
    Audited, Auditor, Judgement, Namespace, Rim, Webhooks,
    memory::{Judged, Memory},
    summary::Summary,
};
use crate::restart::Evidence;

/// The webhook configurations that matter: only mutating ones inject.
const WEBHOOKS_API: &str = "/apis/admissionregistration.k8s.io/v1";
/// The configurations whose webhooks may inject.
const WEBHOOKS: ConfigurationKind = ConfigurationKind {
    kind: "MutatingWebhookConfiguration",
    resource: "mutatingwebhookconfigurations",
};
const VALIDATING: ConfigurationKind = ConfigurationKind {
    kind: "ValidatingWebhookConfiguration",
    resource: "validatingwebhookconfigurations",
};

/// A kind of webhook configurations.
#[derive(Debug, Clone, Copy)]
struct ConfigurationKind {
    kind: &'static str,
    resource: &'static str,
}

/// Why a cluster cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The API server refuses.
    #[error("cannot list {what}: {message}")]
    Refused {
        /// What is read.
        what: String,
        /// The API server's text.
        message: String,
    },
    /// The API server does not understand the label selector.
    #[error("--selector {selector:?}: {message}")]
    Selector {
        /// The selector.
        selector: String,
        /// The API server's text.
        message: String,
    },
    /// The API server does not answer.
    #[error("cannot list {what}: {problem}")]
    Failed {
        /// What is read.
        what: String,
        /// The problem.
        problem: String,
    },
    /// A webhook configuration cannot be read.
    #[error(transparent)]
    Webhooks(#[from] InvalidConfiguration),
}

impl ReadError {
    pub(super) fn of(what: &str, error: kube::Error) -> Self {
        Self::unanswered(what, error.into())
    }

    fn unanswered(what: &str, unanswered: Unanswered) -> Self {
        let what = what.to_owned();
        match unanswered {
            Unanswered::Status { message, .. } => Self::Refused { what, message },
            Unanswered::Failed(problem) => Self::Failed { what, problem },
        }
    }
}

/// Which pods are audited.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The namespaces; empty for all.
    pub namespaces: Vec<String>,
    /// A label selector; empty for all pods.
    pub selector: String,
}

impl Scope {
    /// Why its pods cannot be read.
    fn problem(&self, what: &str, error: kube::Error) -> ReadError {
        match Unanswered::from(error) {
            Unanswered::Status { code: 400, message } if !self.selector.is_empty() => {
                ReadError::Selector { selector: self.selector.clone(), message }
            }
            unanswered => ReadError::unanswered(what, unanswered),
        }
    }
}

/// The webhook configurations of a cluster, mutating and validating.
///
/// # Errors
/// They cannot be read.
pub async fn webhook_configurations(cluster: &dyn Rim) -> Result<Vec<Value>, ReadError> {
    let mut objects = configurations(cluster, WEBHOOKS).await?;
    objects.extend(configurations(cluster, VALIDATING).await?);
    Ok(objects)
}

/// The configurations of a kind, with version and kind, which lists leave out.
async fn configurations(cluster: &dyn Rim, of: ConfigurationKind) -> Result<Vec<Value>, ReadError> {
    let ConfigurationKind { kind, resource } = of;
    let mut objects = all(cluster, format!("{WEBHOOKS_API}/{resource}"), resource).await?;
    for object in &mut objects {
        object["apiVersion"] = "admissionregistration.k8s.io/v1".into();
        object["kind"] = kind.into();
    }
    Ok(objects)
}

/// All objects of a list.
async fn all(cluster: &dyn Rim, path: String, what: &str) -> Result<Vec<Value>, ReadError> {
    let pages = cluster.pages(path, "").try_concat();
    pages.await.map_err(|error| ReadError::of(what, error))
}

/// The webhooks of a cluster.
///
/// # Errors
/// They cannot be read.
pub async fn webhooks(cluster: &dyn Rim) -> Result<Webhooks, ReadError> {
    let objects = configurations(cluster, WEBHOOKS).await?;
    Ok(Webhooks::new(Configurations::read(&objects)?, &objects))
}

/// The namespaces of a cluster, by name.
///
/// # Errors
/// They cannot be read.
pub async fn namespaces(cluster: &dyn Rim) -> Result<BTreeMap<String, Namespace>, ReadError> {
    let objects = all(cluster, "/api/v1/namespaces".to_owned(), "namespaces").await?;
    let named = objects.into_iter().map(|object| {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        (name.to_owned(), Namespace::new(object))
    });
    Ok(named.collect())
}

/// Judges the pods of a scope; `advance` gets their number after each page.
///
/// # Errors
/// They cannot be read.
pub async fn audit(
    cluster: &dyn Rim,
    scope: &Scope,
    judges: &Judges,
    summary: &mut Summary,
    mut advance: impl FnMut(usize),
) -> Result<(), ReadError> {
    let all = vec![String::new()];
    for namespace in if scope.namespaces.is_empty() { &all } else { &scope.namespaces } {
        let (path, what) = match &**namespace {
            "" => ("/api/v1/pods".to_owned(), "pods".to_owned()),
            name => {
                (format!("/api/v1/namespaces/{name}/pods"), format!("pods of namespace {name}"))
            }
        };
        let mut pages = cluster.pages(path, &scope.selector);
        while let Some(page) =
            pages.try_next().await.map_err(|error| scope.problem(&what, error))?
        {
            advance(page.len());
            for pod in page {
                judges.judge(pod, summary).await;
            }
        }
    }
    Ok(())
}

/// What pods are judged by.
#[derive(Debug, Clone)]
pub struct Judges {
    /// The webhooks and the meshes.
    auditor: Arc<Auditor>,
    /// The namespaces, by name.
    namespaces: Arc<BTreeMap<String, Namespace>>,
    memory: Arc<Memory>,
}

impl Judges {
    /// Judges by the webhooks and meshes of an auditor, and by the namespaces of these names.
    #[must_use]
    pub fn new(auditor: Arc<Auditor>, namespaces: BTreeMap<String, Namespace>) -> Self {
        Self { auditor, namespaces: Arc::new(namespaces), memory: Arc::default() }
    }

    /// Judges a pod and adds it to the summary; equal pods are judged once. A pod is judged on a thread for blocking work: beside
    /// a server, no condition and no template keeps a thread that answers reviews. The conditions and
    /// the meshes bound how long that takes. One about which the mesh cannot decide is unknown: whoever
    /// may create pods ends no audit.
    pub async fn judge(&self, pod: Value, summary: &mut Summary) {
        let runtime = tokio::runtime::Handle::current();
        let Self { auditor, namespaces, memory } = self.clone();
        let (audited, name) = (Audited::of(&pod), name_of(&pod));
        let key = memory.key(&auditor, &pod);
        if let Some(known) = key.and_then(|key| memory.get(&key)) {
            return add(summary, audited, known);
        }
        let of_workload = audited.workload.namespace.clone();
        // Done on a thread for long work: a template that takes long must not hold a thread that
        // answers reviews.
        let work = move || {
            let namespace = namespaces.get(&of_workload);
            let mut tainted = Vec::new();
            let judge = auditor.judge_with(&pod, namespace, &mut tainted);
            let judgement = runtime.block_on(judge)?;
            let evidence = match &judgement {
                Judgement::Wrong(finding, _) => auditor.evidence(*finding, namespace),
                _ => Evidence::default(),
            };
            let judged = Judged { judgement, evidence, tainted };
            if let Some(key) = key {
                memory.keep(key, judged.clone());
            }
            Ok(judged)
        };
        add(summary, audited, judged(&name, Box::new(work)).await);
    }
}

fn add(summary: &mut Summary, pod: Audited, judged: Judged) {
    let Judged { judgement, evidence, tainted } = judged;
    summary.add(Audited { tainted, ..pod }, judgement, evidence);
}

/// What judges a pod and blocks.
pub(super) type Work = Box<dyn FnOnce() -> Result<Judged, ExplainError> + Send>;

/// The judgement on a pod of a name. A panic is a reason as well; it has been printed where it is.
pub(super) async fn judged(pod: &str, work: Work) -> Judged {
    let problem = match tokio::task::spawn_blocking(work).await {
        Ok(Ok(judged)) => return judged,
        Ok(Err(error)) => with_causes(&error),
        Err(error) => format!("a fault of injectd: {}", ended(error)),
    };
    let judgement = Judgement::Unknown(format!("cannot judge pod {pod}: {problem}"));
    Judged { judgement, evidence: Evidence::default(), tainted: Vec::new() }
}

/// How a task ended without a result.
fn ended(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "it was not judged".to_owned() };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

/// The namespace and name of a pod.
fn name_of(pod: &Value) -> String {
    let text = |field: &str| pod.pointer(field).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::{
        StreamExt as _,
        stream::{self, BoxStream},
    };
    use serde_json::json;

    use super::*;

    /// Pods in a page.
    const PAGE: usize = 2;

    /// A cluster with the pods of two namespaces, in pages.
    #[derive(Default)]
    struct Simulation {
        /// Requests until one fails; `None` if all succeed.
        fails_after: Option<usize>,
        asked: Mutex<Vec<String>>,
    }

    impl Rim for Simulation {
        fn pages<'a>(
            &'a self,
            path: String,
            selector: &'a str,
        ) -> BoxStream<'a, kube::Result<Vec<Value>>> {
            let pods = |namespace: &str, count: usize| {
                let pod = |name: usize| json!({"metadata": {"namespace": namespace, "name": name}});
                (0..count).map(pod).collect::<Vec<_>>()
            };
            let objects = match &*path {
                "/api/v1/pods" => [pods("a", 3), pods("b", 4)].concat(),
                "/api/v1/namespaces/a/pods" => pods("a", 3),
                "/api/v1/namespaces" => vec![json!({"metadata": {"name": "a"}})],
                _ => Vec::new(),
            };
            let pages: Vec<_> = objects.chunks(PAGE).map(<[Value]>::to_vec).collect();
            let page = move |page| {
                let mut asked = self.asked.lock().expect("the requests");
                asked.push(format!("{path}?{selector}"));
                let status = kube::core::Status {
                    code: 403,
                    message: "no".into(),
                    ..kube::core::Status::default()
                };
                match self.fails_after {
                    Some(count) if asked.len() > count => Err(kube::Error::Api(status.into())),
                    _ => Ok(page),
                }
            };
            stream::iter(pages).map(page).boxed()
        }
    }

    /// The number of pods that were judged and of pages, and the problem.
    async fn audited(simulation: &Simulation, scope: &Scope) -> (u64, usize, Option<String>) {
        let webhooks = webhooks(simulation).await.expect("the webhooks");
        let auditor = Auditor::new(webhooks, BTreeMap::new()).await.expect("an auditor");
        let namespaces = namespaces(simulation).await.expect("the namespaces");
        let judges = Judges::new(Arc::new(auditor), namespaces);
        let (mut summary, mut pages) = (Summary::default(), 0);
        let result = audit(simulation, scope, &judges, &mut summary, |_| pages += 1).await;
        (summary.counts().total, pages, result.err().map(|error| error.to_string()))
    }

    #[tokio::test]
    async fn pods_are_judged_page_by_page() {
        let simulation = Simulation::default();
        assert_eq!(audited(&simulation, &Scope::default()).await, (7, 4, None));
        let scope = Scope { namespaces: vec!["a".to_owned()], selector: "app=web".to_owned() };
        assert_eq!(audited(&simulation, &scope).await, (3, 2, None));
        let asked = simulation.asked.lock().expect("the requests");
        assert_eq!(asked.last().map(String::as_str), Some("/api/v1/namespaces/a/pods?app=web"));
    }

    #[tokio::test]
    async fn a_page_that_cannot_be_read_ends_an_audit() {
        // The first request is for the namespaces.
        let simulation = Simulation { fails_after: Some(2), ..Simulation::default() };
        let (pods, pages, problem) = audited(&simulation, &Scope::default()).await;
        assert_eq!((pods, pages, problem.as_deref()), (2, 1, Some("cannot list pods: no")));
    }
}
