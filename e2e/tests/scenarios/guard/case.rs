//! A mesh, its webhook and a table of pods.

use std::{fmt, fs, net::IpAddr};

use injectd_harness::{
    api::Answer,
    certificates::Certificate,
    expect::{Outcome, eventually, expect, failed},
    injectd::Injectd,
    lab::service_ip,
    namespaced::Namespaced,
    objects::{base64, service},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The Service of the webhook.
const SERVICE: &str = "injectd";

/// What differs between scenarios.
pub(super) struct Plan {
    /// As messages have it.
    pub(super) mesh: &'static str,
    /// Flags of `injectd manifest guard`.
    pub(super) flags: Vec<String>,
    /// Flags of `injectd serve`; `FILE:x` is the path of the file x.
    pub(super) serve: Vec<&'static str>,
    /// The files that injectd reads, beside one another.
    pub(super) files: Vec<(&'static str, String)>,
    pub(super) namespaces: Vec<Value>,
    /// `MutatingWebhookConfiguration`s without an address; their names are replaced.
    pub(super) webhooks: Vec<Value>,
    pub(super) rows: Vec<Row>,
    /// Whether the webhook has changed a pod.
    pub(super) is_injected: fn(&Value) -> bool,
}

/// A pod that is tried in a namespace.
pub(super) struct Row {
    pub(super) namespace: String,
    pub(super) pod: Value,
    /// Whether the webhook injects the pod.
    pub(super) asks: bool,
    /// Whether the guard lets the pod pass although it asks: it has a sidecar already.
    pub(super) is_excused: bool,
    /// A part of the message: the label or annotation that asks.
    pub(super) asked_by: String,
}

pub(super) struct Case<'a> {
    /// The namespace of the Service. Cluster-wide objects have its name.
    pub(super) it: &'a Namespaced<'a>,
    pub(super) plan: Plan,
    pub(super) injectd: Injectd,
    ip: IpAddr,
    _folder: TempDir,
}

impl<'a> Case<'a> {
    pub(super) fn new(it: &'a Namespaced<'a>, plan: Plan) -> Outcome<Self> {
        let (folder, ip) = (tempfile::tempdir()?, service_ip()?);
        for (name, content) in &plan.files {
            fs::write(folder.path().join(name), content)?;
        }
        let certificate = Certificate::new(&format!("{SERVICE}.{}.svc", it.name), ip)?;
        let path = format!("{}/", folder.path().display());
        let arguments = ["serve", "--standalone"].into_iter().chain(plan.serve.iter().copied());
        let arguments: Vec<_> =
            arguments.map(|argument| argument.replace("FILE:", &path)).collect();
        let injectd = Injectd::serve(&it.lab.binary, folder.path(), ip, certificate, &arguments)?;
        Ok(Self { it, plan, injectd, ip, _folder: folder })
    }

    /// Makes namespaces in which pods can be created at once.
    pub(super) async fn make_namespaces(&self) -> Outcome {
        for namespace in &self.plan.namespaces {
            self.it.make_object(namespace).await?;
        }
        Ok(())
    }

    /// Starts injectd, and makes the API server call it by its Service.
    pub(super) async fn serve(&mut self) -> Outcome {
        self.injectd.start().await?;
        let port = self.injectd.webhook.port();
        let service = service(SERVICE, &self.ip.to_string(), port);
        self.it.create(&service).await?.created()?;
        for (index, configuration) in self.plan.webhooks.iter().enumerate() {
            let configuration = self.addressed(configuration, &self.name_of(index));
            self.it.create_in_cluster(&configuration).await?;
        }
        self.wait_until_injected(true).await
    }

    async fn wait_until_injected(&self, expected: bool) -> Outcome {
        let probe = self.plan.a_reported()?;
        eventually("the configuration of the webhook takes effect", async || {
            let answer = self.create(probe).await?;
            answer.expect_no_warnings()?;
            let is_injected = (self.plan.is_injected)(&answer.created()?);
            expect("whether the pod is injected", expected, is_injected)
        })
        .await
    }

    fn name_of(&self, index: usize) -> String {
        format!("{}-{index}", self.it.name)
    }

    /// A webhook configuration with the address of injectd and failure policy Ignore.
    fn addressed(&self, configuration: &Value, name: &str) -> Value {
        let mut configuration = configuration.clone();
        configuration["metadata"]["name"] = json!(name);
        let reference = json!({"name": SERVICE, "namespace": self.it.name, "path": "/inject",
            "port": self.injectd.webhook.port()});
        let ca = base64(self.injectd.ca());
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            webhook["clientConfig"] = json!({"service": reference, "caBundle": ca});
            webhook["failurePolicy"] = json!("Ignore");
        }
        configuration
    }

    /// Tries to create a pod.
    pub(super) async fn create(&self, row: &Row) -> Outcome<Answer> {
        self.it.lab.api.dry_run(&row.namespace, &row.pod).await
    }

    /// Removes what is there for all namespaces, and waits until the API server knows.
    pub(super) async fn clean_up(&self) -> Outcome {
        self.it.delete_in_cluster().await?;
        self.wait_until_injected(false).await
    }
}

// === impl Plan ===

impl Plan {
    /// The first pod that the guard reports.
    pub(super) fn a_reported(&self) -> Outcome<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.is_reported()).ok_or_else(|| failed("no row asks for a sidecar"))
    }
}

// === impl Row ===

impl Row {
    /// Whether the guard reports the pod when the webhook is gone.
    pub(super) fn is_reported(&self) -> bool {
        self.asks && !self.is_excused
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, pod, .. } = self;
        write!(f, "{namespace}: {} {}", pod["metadata"], pod["spec"])
    }
}
