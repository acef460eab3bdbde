//! Reads what an explanation needs from a cluster.

use std::collections::BTreeSet;

use injectd_cluster::{Pages, Unanswered};
use injectd_command::CommandError;
use injectd_k8s::workload::controller;
use kube::Client;
use serde_json::Value;

use super::target::{Named, Target, resource_of};
use crate::{facts::Facts, manifests::text, progress::Progress};

/// Most Jobs of a `CronJob` whose pods are looked at: their names are in a selector. By default it
/// keeps four that have ended.
const MAX_JOBS: usize = 50;

/// Owners above each other, at most.
// Kubernetes' own kinds make two, a CronJob with its Job. Objects that own each other would be
// followed without end.
const MAX_OWNERS: usize = 4;

/// The resources of a namespace that check its pods.
const CHECKS: [&str; 2] = ["resourcequotas", "limitranges"];

/// The webhook configurations of a cluster.
const WEBHOOKS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// A cluster that is read.
pub(super) struct Cluster<'c> {
    client: &'c Client,
    progress: &'c Progress,
}

impl<'c> Cluster<'c> {
    pub(super) fn new(client: &'c Client, progress: &'c Progress) -> Self {
        Self { client, progress }
    }

    /// Reads an object that is to be explained.
    pub(super) async fn object(
        &self,
        named: &Named,
        namespace: &str,
    ) -> Result<Value, CommandError> {
        let Named { api, resource, called: name } = named;
        let path = format!("{api}/namespaces/{namespace}/{resource}/{name}");
        self.get(&path, &format!("{resource}/{name}")).await.map_err(|error| {
            let message = format!("cannot read {resource}/{name} in namespace {namespace}");
            CommandError::failed(message, error.text())
        })
    }

    /// Reads what is known about the cluster and the namespaces of the targets. What cannot be read
    /// is noted.
    pub(super) async fn read(
        &self,
        targets: &[Target],
        facts: &mut Facts,
    ) -> Result<(), CommandError> {
        self.read_version(facts).await?;
        let namespaces: BTreeSet<_> = targets.iter().map(|target| &*target.namespace).collect();
        for namespace in namespaces {
            let path = format!("/api/v1/namespaces/{namespace}");
            match self.get(&path, &format!("namespace {namespace}")).await {
                Ok(object) => facts.add(&object, "Namespace"),
                Err(Unanswered::Status { code: 404, .. }) => {
                    facts.unread.push(format!("namespace {namespace} does not exist"));
                }
                Err(error) => facts.unread.push(note(error, &format!("namespace {namespace}"))?),
            }
            for resource in CHECKS {
                let path = format!("/api/v1/namespaces/{namespace}/{resource}");
                self.list(&path, resource, facts).await?;
            }
        }
        let mut knows_webhooks = true;
        for resource in WEBHOOKS {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}");
            knows_webhooks &= self.list(&path, resource, facts).await?;
        }
        if knows_webhooks {
            facts.know_webhooks();
        }
        Ok(())
    }

    /// Reads the release of the API server: the one that it emulates, if it says so.
    async fn read_version(&self, facts: &mut Facts) -> Result<(), CommandError> {
        match self.get("/version", "the version of the API server").await {
            Ok(version) => {
                let minor = ["/emulationMinor", "/minor"].map(|field| text(&version, field));
                let minor = minor.into_iter().find(|minor| !minor.is_empty()).unwrap_or_default();
                match format!("1.{minor}").parse() {
                    Ok(version) => facts.version = Some(version),
                    Err(error) => {
                        let text =
                            format!("not read: the version of the API server: 1.{minor}: {error}");
                        facts.unread.push(text);
                    }
                }
            }
            Err(error) => facts.unread.push(note(error, "the version of the API server")?),
        }
        Ok(())
    }

    /// Adds the objects of a list to the facts; false if it may not be read.
    async fn list(
        &self,
        path: &str,
        resource: &str,
        facts: &mut Facts,
    ) -> Result<bool, CommandError> {
        self.pages(path, resource, facts, &mut |item, kind, facts| facts.add(item, kind)).await
    }

    /// Reads a list page by page, each item with its kind; false if it may not be read, which is noted.
    async fn pages(
        &self,
        path: &str,
        resource: &str,
        facts: &mut Facts,
        take: &mut impl FnMut(&Value, &str, &mut Facts),
    ) -> Result<bool, CommandError> {
        let mut pages = Pages::new(self.client, path);
        loop {
            self.progress.say(resource);
            match pages.next::<Value>().await {
                Ok(None) => return Ok(true),
                Ok(Some(page)) => {
                    let kind = page.types.kind.strip_suffix("List").unwrap_or_default();
                    page.items.iter().for_each(|item| take(item, kind, facts));
                }
                Err(error) => {
                    facts.unread.push(note(error.into(), resource)?);
                    return Ok(false);
                }
            }
        }
    }

    /// The names of the Jobs that the controller of this uid has made; the newest of them. What may not
    /// be read is noted.
    pub(super) async fn jobs_of(
        &self,
        uid: &str,
        namespace: &str,
        facts: &mut Facts,
    ) -> Result<BTreeSet<String>, CommandError> {
        let mut jobs = Vec::new();
        let mut take = |job: &Value| {
            let owners = job.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            if owners.into_iter().flatten().any(|owner| text(owner, "/uid") == uid) {
                let fields = ["/metadata/creationTimestamp", "/metadata/name"];
                jobs.push(fields.map(|field| text(job, field).to_owned()));
            }
        };
        let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
        self.pages(&path, "jobs", facts, &mut |job, _, _| take(job)).await?;
        // RFC 3339 times in UTC compare as texts.
        jobs.sort_unstable_by(|one, other| other.cmp(one));
        jobs.truncate(MAX_JOBS);
        Ok(jobs.into_iter().map(|[_, name]| name).collect())
    }

    /// A ServiceAccount; `None` if it does not exist.
    ///
    /// # Errors
    /// Why it is not known.
    pub(super) async fn service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, String> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}");
        match self.get(&path, &format!("serviceaccounts/{name}")).await {
            Ok(object) => Ok(Some(object)),
            Err(Unanswered::Status { code: 404, .. }) => Ok(None),
            Err(error) => Err(error.text().clone()),
        }
    }

    /// The owners of a pod, the nearest first, as far as they are of known kinds, and why not all are known.
    pub(super) async fn owners(
        &self,
        pod: &Value,
        namespace: &str,
    ) -> (Vec<Value>, Option<String>) {
        let mut owners: Vec<Value> = Vec::new();
        while owners.len() < MAX_OWNERS
            && let Some(owner) = controller(owners.last().unwrap_or(pod))
            && let Some((api, resource)) = resource_of(text(owner, "/kind"))
        {
            let (kind, name) = (text(owner, "/kind").to_owned(), text(owner, "/name").to_owned());
            let path = format!("{api}/namespaces/{namespace}/{resource}/{name}");
            match self.get(&path, &format!("{resource}/{name}")).await {
                Ok(mut object) => {
                    object["kind"] = kind.into();
                    owners.push(object);
                }
                // No failure: a pod outlives its deleted owner until the garbage collector comes.
                Err(Unanswered::Status { code: 404, .. }) => break,
                Err(error) => {
                    let problem = format!("{kind} {namespace}/{name}: {}", error.text());
                    return (owners, Some(problem));
                }
            }
        }
        (owners, None)
    }

    async fn get(&self, path: &str, what: &str) -> Result<Value, Unanswered> {
        self.progress.say(what);
        let request = hyper::Request::get(path).body(Vec::new());
        let request = request.map_err(kube::Error::HttpError)?;
        Ok(self.client.request(request).await?)
    }
}

/// What is not known because a request has no answer.
///
/// # Errors
/// The API server does not answer at all.
fn note(why: Unanswered, what: &str) -> Result<String, CommandError> {
    match why {
        Unanswered::Status { message, .. } => Ok(format!("not read: {what}: {message}")),
        Unanswered::Failed(text) => Err(CommandError::failed(format!("cannot read {what}"), text)),
    }
}
