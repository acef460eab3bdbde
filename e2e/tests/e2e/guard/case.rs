//! A mesh, its webhook and a table of pods.

use std::{fmt, fs, net::IpAddr};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_harness::{
    api::{Answer, NAMESPACES, WEBHOOK_CONFIGURATIONS, collection},
    certificates::Certificate,
    expect::{Outcome, eventually, expect, expect_listed, failed},
    injectd::Injectd,
    lab::Lab,
    objects::{service, service_account},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::policy;

/// Where the Service of the webhook is.
const NAMESPACE: &str = "guard-webhook";

/// What differs between cases.
pub(super) struct Plan {
    /// The name of the case, and of its objects.
    pub(super) name: &'static str,
    /// As messages have it.
    pub(super) mesh: &'static str,
    /// Flags of `injectd manifest guard`.
    pub(super) flags: &'static [&'static str],
    /// Flags of `injectd serve`; `FILE:x` is the path of the file x.
    pub(super) serve: Vec<&'static str>,
    /// The files that injectd reads, beside one another.
    pub(super) files: Vec<(&'static str, String)>,
    pub(super) namespaces: Vec<Value>,
    /// `MutatingWebhookConfiguration`s without an address.
    pub(super) webhooks: Vec<Value>,
    pub(super) rows: Vec<Row>,
    /// Whether the webhook has changed a pod.
    pub(super) is_injected: fn(&Value) -> bool,
}

/// A pod that is created in a namespace.
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

pub(super) struct Case {
    pub(super) lab: Lab,
    pub(super) plan: Plan,
    pub(super) injectd: Injectd,
    ip: IpAddr,
    _folder: TempDir,
}

impl Case {
    pub(super) fn new(lab: &Lab, plan: Plan, ip: IpAddr) -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        for (name, content) in &plan.files {
            fs::write(folder.path().join(name), content)?;
        }
        let certificate = Certificate::new(&format!("{}.{NAMESPACE}.svc", plan.name), ip)?;
        let path = format!("{}/", folder.path().display());
        let arguments = ["serve", "--standalone"].into_iter().chain(plan.serve.iter().copied());
        let arguments: Vec<_> = arguments.map(|it| it.replace("FILE:", &path)).collect();
        let injectd = Injectd::serve(&lab.binary, folder.path(), ip, certificate, &arguments)?;
        Ok(Self { lab: lab.clone(), plan, injectd, ip, _folder: folder })
    }

    /// Makes namespaces in which pods can be created at once.
    pub(super) async fn make_namespaces(&self) -> Outcome {
        let service =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        for namespace in self.plan.namespaces.iter().chain([&service]) {
            let created = self.lab.api.create(None, namespace).await?;
            expect_listed("the status of a namespace", created.status, &[201, 409])?;
            let name = namespace["metadata"]["name"].as_str();
            let account = self.lab.api.create(name, &service_account("default")).await?;
            expect_listed("the status of its ServiceAccount", account.status, &[201, 409])?;
        }
        Ok(())
    }

    /// Starts injectd, and makes the API server call it by its Service.
    pub(super) async fn serve(&mut self) -> Outcome {
        self.injectd.start().await?;
        let port = self.injectd.webhook.port();
        let service = service(self.plan.name, &self.ip.to_string(), port);
        self.lab.api.create(Some(NAMESPACE), &service).await?.created()?;
        for configuration in &self.plan.webhooks {
            self.lab.api.create(None, &self.addressed(configuration)).await?.created()?;
        }
        let probe = self.plan.a_reported()?;
        eventually("the webhook is called", async || {
            let pod = self.create(probe).await?.created()?;
            expect("whether the pod is injected", true, (self.plan.is_injected)(&pod))
        })
        .await
    }

    /// A webhook configuration with the address of injectd and failure policy Ignore.
    fn addressed(&self, configuration: &Value) -> Value {
        let mut configuration = configuration.clone();
        let reference = json!({"name": self.plan.name, "namespace": NAMESPACE, "path": "/inject",
            "port": self.injectd.webhook.port()});
        let ca = BASE64_STANDARD.encode(self.injectd.ca());
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            webhook["clientConfig"] = json!({"service": reference, "caBundle": ca});
            webhook["failurePolicy"] = json!("Ignore");
        }
        configuration
    }

    pub(super) async fn create(&self, row: &Row) -> Outcome<Answer> {
        self.lab.api.dry_run(&row.namespace, &row.pod).await
    }

    /// Removes everything that pods of other suites could meet.
    pub(super) async fn clean_up(&mut self) -> Outcome {
        self.injectd.discard();
        if policy::delete(self).await? {
            let probe = self.plan.a_reported()?;
            eventually("the policy is gone", async || {
                let answer = self.create(probe).await?;
                answer.expect_no_warnings()?;
                answer.created().map(drop)
            })
            .await?;
        }
        for configuration in &self.plan.webhooks {
            let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
            self.lab.api.delete(&format!("{WEBHOOK_CONFIGURATIONS}/{name}")).await?;
        }
        let services = collection("v1", "Service", Some(NAMESPACE));
        self.lab.api.delete(&format!("{services}/{}", self.plan.name)).await?;
        Ok(())
    }

    /// Removes the namespaces, which cases may share.
    pub(super) async fn delete_namespaces(&self) -> Outcome {
        for namespace in &self.plan.namespaces {
            let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
            self.lab.api.delete(&format!("{NAMESPACES}/{name}")).await?;
        }
        Ok(())
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
