//! Reads the pods of a cluster page by page.

use std::{collections::BTreeMap, sync::Arc};

use injectd_webhooks::{Configurations, InvalidConfiguration};
use kube::{Client, core::Status};
use serde_json::Value;

use super::{Audited, Auditor, Judgement, Namespace, Webhooks, memory::Memory, summary::Summary};
use crate::{causes::with_causes, explain::ExplainError, restart::Evidence};

/// Pods in a page of the list.
pub const PAGE: usize = 500;
/// The webhook configurations that matter: only mutating ones inject.
const WEBHOOKS_API: &str = "/apis/admissionregistration.k8s.io/v1";
/// Kind and resource of webhook configurations.
const WEBHOOKS: (&str, &str) = ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
const VALIDATING: (&str, &str) =
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations");
/// The status of an expired continue token.
const GONE: u16 = 410;

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

/// Which pods are audited.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The namespaces; empty for all.
    pub namespaces: Vec<String>,
    /// A label selector; empty for all pods.
    pub selector: String,
}

/// The webhook configurations of a cluster, mutating and validating.
///
/// # Errors
/// They cannot be read.
pub async fn webhook_configurations(client: &Client) -> Result<Vec<Value>, ReadError> {
    let mut objects = configurations(client, WEBHOOKS).await?;
    objects.extend(configurations(client, VALIDATING).await?);
    Ok(objects)
}

/// The configurations of a kind, with version and kind, which lists leave out.
async fn configurations(
    client: &Client,
    (kind, resource): (&str, &str),
) -> Result<Vec<Value>, ReadError> {
    let mut objects = Vec::new();
    pages(client, &format!("{WEBHOOKS_API}/{resource}"), "", resource, &mut |items| {
        objects.extend(items.into_iter().map(|mut item| {
            item["apiVersion"] = "admissionregistration.k8s.io/v1".into();
            item["kind"] = kind.into();
            item
        }));
        std::future::ready(Ok(()))
    })
    .await?;
    Ok(objects)
}

/// The webhooks of a cluster.
///
/// # Errors
/// They cannot be read.
pub async fn webhooks(client: &Client) -> Result<Webhooks, ReadError> {
    let objects = configurations(client, WEBHOOKS).await?;
    Ok(Webhooks::new(Configurations::read(&objects)?, &objects))
}

/// The namespaces of a cluster, by name.
///
/// # Errors
/// They cannot be read.
pub async fn namespaces(client: &Client) -> Result<BTreeMap<String, Namespace>, ReadError> {
    let mut found = BTreeMap::new();
    pages(client, "/api/v1/namespaces", "", "namespaces", &mut |items| {
        for item in items {
            let name = item.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            found.insert(name.to_owned(), Namespace::new(item));
        }
        std::future::ready(Ok(()))
    })
    .await?;
    Ok(found)
}

/// Judges the pods of a scope; `advance` is told how many after each page, and how many remain if the
/// API server says it.
///
/// # Errors
/// They cannot be read.
pub async fn audit(
    client: &Client,
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
        let mut next = String::new();
        loop {
            let page = page(client, &path, &scope.selector, &next, &what).await?;
            advance(page.items.len());
            for pod in page.items {
                judges.judge(pod, summary).await;
            }
            match page.next {
                Some(token) => next = token,
                None => break,
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
        if let Some((judgement, evidence)) = key.and_then(|key| memory.get(&key)) {
            return summary.add(audited, judgement, evidence);
        }
        let of_workload = audited.workload.namespace.clone();
        let work = move || {
            let namespace = namespaces.get(&of_workload);
            let judgement = runtime.block_on(auditor.judge(&pod, namespace))?;
            let evidence = match &judgement {
                Judgement::Wrong(finding, _) => auditor.evidence(*finding, namespace),
                _ => Evidence::default(),
            };
            if let Some(key) = key {
                memory.keep(key, (judgement.clone(), evidence.clone()));
            }
            Ok((judgement, evidence))
        };
        let (judgement, evidence) = judged(&name, Box::new(work)).await;
        summary.add(audited, judgement, evidence);
    }
}

/// What judges a pod and blocks.
pub(super) type Work = Box<dyn FnOnce() -> Result<(Judgement, Evidence), ExplainError> + Send>;

/// The judgement on a pod of a name. A panic is a reason as well; it has been printed where it is.
pub(super) async fn judged(pod: &str, work: Work) -> (Judgement, Evidence) {
    let problem = match tokio::task::spawn_blocking(work).await {
        Ok(Ok(judged)) => return judged,
        Ok(Err(error)) => with_causes(&error),
        Err(error) => format!("a fault of injectd: {}", ended(error)),
    };
    (Judgement::Unknown(format!("cannot judge pod {pod}: {problem}")), Evidence::default())
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

struct Page {
    items: Vec<Value>,
    next: Option<String>,
}

async fn pages<F: Future<Output = Result<(), ReadError>>>(
    client: &Client,
    path: &str,
    selector: &str,
    what: &str,
    take: &mut impl FnMut(Vec<Value>) -> F,
) -> Result<(), ReadError> {
    let mut next = String::new();
    loop {
        let page = page(client, path, selector, &next, what).await?;
        take(page.items).await?;
        match page.next {
            Some(token) => next = token,
            None => return Ok(()),
        }
    }
}

/// A page of a list. A token that has expired is replaced by the one that the API server offers: the
/// rest of the list is then newer than its beginning.
async fn page(
    client: &Client,
    path: &str,
    selector: &str,
    token: &str,
    what: &str,
) -> Result<Page, ReadError> {
    let mut token = token.to_owned();
    let mut list = loop {
        let request = hyper::Request::get(url(path, selector, &token)).body(Vec::new());
        let request = request.map_err(|error| ReadError::Failed {
            what: what.to_owned(),
            problem: error.to_string(),
        })?;
        match client.request::<Value>(request).await {
            Ok(list) => break list,
            Err(kube::Error::Api(status)) => {
                let Some(newer) = offered(&status, &token) else {
                    let (what, message) = (what.to_owned(), status.message.clone());
                    return Err(ReadError::Refused { what, message });
                };
                token = newer;
            }
            Err(kube::Error::Service(cause)) => {
                let problem = format!("cannot connect to the API server: {cause}");
                return Err(ReadError::Failed { what: what.to_owned(), problem });
            }
            Err(error) => {
                let (what, problem) = (what.to_owned(), with_causes(&error));
                return Err(ReadError::Failed { what, problem });
            }
        }
    };
    let next = list.pointer("/metadata/continue").and_then(Value::as_str);
    let next = next.filter(|token| !token.is_empty()).map(str::to_owned);
    let items = match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    Ok(Page { items, next })
}

/// The URL of a page.
fn url(path: &str, selector: &str, token: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("limit", &PAGE.to_string());
    for (key, value) in [("labelSelector", selector), ("continue", token)] {
        if !value.is_empty() {
            query.append_pair(key, value);
        }
    }
    format!("{path}?{}", query.finish())
}

/// The token that the API server offers for one that has expired.
fn offered(status: &Status, expired: &str) -> Option<String> {
    let offered = status.metadata.as_ref()?.continue_.clone()?;
    (status.code == GONE && offered != expired && !offered.is_empty()).then_some(offered)
}
