//! As much of istiod as a take-over meets: its webhook, and the hand that writes its CA into
//! webhook configurations.

use std::{fs, time::Duration};

use hyper::http::Method;
use injectd_harness::{
    api::{Api, WEBHOOK_CONFIGURATIONS},
    certificates::Ca,
    expect::{Outcome, eventually, failed},
    injectd::Injectd,
    istio::Revision,
    lab::service_ip,
    objects::{base64, deployment, service},
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::interval};

use super::deployed::Istio;

/// As the injector, an annotation of pods.
pub(super) const INJECTOR: &str = "istiod";
/// What istiod reads to know whether it writes its CA.
const VARIABLE: &str = "INJECTION_WEBHOOK_CONFIG_NAME";
/// The end of the names of entries that it writes it into.
const ENTRY: &str = "sidecar-injector.istio.io";
// istiod writes its CA back whenever it sees another one; this loop is as insistent.
const PERIOD: Duration = Duration::from_millis(100);

/// istiod of one revision; it ends when this is dropped.
pub(super) struct Istiod {
    pub(super) port: u16,
    /// The path of its Deployment.
    path: String,
    pub(super) ca: Ca,
    _injectd: Injectd,
    _patcher: JoinSet<()>,
}

impl Istiod {
    /// Starts istiod of a revision with its Deployment and Service, and waits until it answers.
    pub(super) async fn start(it: &Istio<'_>, revision: &Revision) -> Outcome<Self> {
        let name = format!("istiod{}", revision.suffix());
        let (ip, folder) = (service_ip()?, it.folder(&name)?);
        let mut arguments = vec!["serve".to_owned(), "--standalone".into(), "--mesh=istio".into()];
        for (flag, text) in [
            ("injector-config", &revision.config),
            ("values", &revision.values),
            ("mesh-config", &revision.mesh),
        ] {
            fs::write(folder.join(flag), text)?;
            arguments.push(format!("--{flag}={}", folder.join(flag).display()));
        }
        let ca = Ca::new()?;
        let certificate = ca.issue(&format!("{name}.{}.svc", it.control_plane), ip)?;
        let bundle = certificate.ca.clone();
        let mut injectd = Injectd::serve(&it.lab.binary, &folder, ip, certificate, &arguments)?;
        injectd.set_variable("REVISION", &revision.name);
        injectd.start().await?;
        let port = injectd.webhook.port();
        it.create(&service(&name, &ip.to_string(), port)).await?;
        // Without pods: only its variables are read.
        let deployment = deployment(&name, 0, &json!({}));
        it.create(&deployment).await?;
        let (path, mut patcher) = (it.path(&deployment), JoinSet::new());
        let hand = Hand { api: it.lab.api.clone(), path: path.clone(), ca: base64(&bundle) };
        patcher.spawn(hand.patch(revision.name.clone()));
        Ok(Self { port, path, ca, _injectd: injectd, _patcher: patcher })
    }

    /// Sets the variable as Helm's `pilot.env` does, or removes it, as `kubectl set env` does.
    pub(super) async fn tell(&self, api: &Api, leaves_alone: bool) -> Outcome {
        let env = if leaves_alone { json!([{"name": VARIABLE, "value": ""}]) } else { json!([]) };
        eventually("the Deployment is updated", async || {
            api.update(&self.path, |deployment| {
                deployment["spec"]["template"]["spec"]["containers"][0]["env"] = env.clone();
            })
            .await
        })
        .await
    }
}

/// Writes the CA into webhook configurations.
struct Hand {
    api: Api,
    /// The path of istiod's Deployment.
    path: String,
    /// As a `caBundle` has it.
    ca: String,
}

impl Hand {
    /// Writes into the entries of a revision, unless a scenario forbids it.
    async fn patch(self, revision: String) {
        let mut ticks = interval(PERIOD);
        loop {
            ticks.tick().await;
            // It tries again, as istiod does.
            let _ = self.patch_once(&revision).await;
        }
    }

    async fn patch_once(&self, revision: &str) -> Outcome {
        let deployment = self.api.get(&self.path).await?.ok()?;
        let env = deployment.pointer("/spec/template/spec/containers/0/env");
        let mut env = env.and_then(Value::as_array).into_iter().flatten();
        let is_empty = |variable: &Value| variable["value"].as_str().unwrap_or_default().is_empty();
        if env.any(|variable| variable["name"] == VARIABLE && is_empty(variable)) {
            return Ok(());
        }
        let path = format!("{WEBHOOK_CONFIGURATIONS}?labelSelector=istio.io%2Frev%3D{revision}");
        let mut list = self.api.get(&path).await?.ok()?;
        for object in list["items"].as_array_mut().ok_or_else(|| failed("no items"))? {
            let before = object.clone();
            for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
                if webhook["name"].as_str().is_some_and(|name| name.ends_with(ENTRY)) {
                    webhook["clientConfig"]["caBundle"] = json!(self.ca);
                }
            }
            if *object != before {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{WEBHOOK_CONFIGURATIONS}/{name}");
                object["apiVersion"] = json!("admissionregistration.k8s.io/v1");
                object["kind"] = json!("MutatingWebhookConfiguration");
                self.api.call(Method::PUT, &path, Some(object.to_string())).await?;
            }
        }
        Ok(())
    }
}
