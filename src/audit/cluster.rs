//! Reads the pods of a cluster page by page.

use std::{collections::BTreeMap, sync::Arc};

use injectd_webhooks::{Configurations, InvalidConfiguration};
use kube::{Client, core::Status};
use serde_json::Value;

use super::{Audited, Auditor, Judgement, Namespace, Webhooks, summary::Summary};
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
    /// The mesh cannot decide about a pod.
    #[error("cannot judge pod {pod}")]
    Pod {
        /// Namespace and name.
        pod: String,
        /// The problem.
        source: Box<ExplainError>,
    },
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
/// They cannot be read, or a pod cannot be judged.
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
                judges.judge(pod, summary).await?;
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
    pub auditor: Arc<Auditor>,
    /// The namespaces, by name.
    pub namespaces: Arc<BTreeMap<String, Namespace>>,
}

impl Judges {
    /// Judges a pod and adds it to the summary. A pod is judged on a thread for blocking work: beside
    /// a server, no condition and no template keeps a thread that answers reviews. The conditions and
    /// the meshes bound how long that takes.
    ///
    /// # Errors
    /// The mesh cannot decide about it.
    pub async fn judge(&self, pod: Value, summary: &mut Summary) -> Result<(), ReadError> {
        let runtime = tokio::runtime::Handle::current();
        let Self { auditor, namespaces } = self.clone();
        let judged = tokio::task::spawn_blocking(move || {
            let audited = Audited::of(&pod);
            let namespace = namespaces.get(&audited.workload.namespace);
            let judgement = runtime.block_on(auditor.judge(&pod, namespace));
            let judgement = judgement.map_err(|source| name_of(&pod, source))?;
            let evidence = match &judgement {
                Judgement::Wrong(finding, _) => auditor.evidence(*finding, namespace),
                _ => Evidence::default(),
            };
            Ok::<_, ReadError>((audited, judgement, evidence))
        });
        let (audited, judgement, evidence) = judged.await.map_err(|error| {
            ReadError::Failed { what: "pods".to_owned(), problem: with_causes(&error) }
        })??;
        summary.add(audited, judgement, evidence);
        Ok(())
    }
}

/// The error of a pod that cannot be judged.
fn name_of(pod: &Value, source: ExplainError) -> ReadError {
    let text = |field: &str| pod.pointer(field).and_then(Value::as_str).unwrap_or_default();
    let pod = format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"));
    ReadError::Pod { pod, source: Box::new(source) }
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
