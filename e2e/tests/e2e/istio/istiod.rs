//! As much of istiod as a take-over meets: its webhook, and the hand that writes its CA into
//! webhook configurations.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use hyper::http::Method;
use injectd_harness::{
    api::{Api, WEBHOOK_CONFIGURATIONS, collection},
    certificates::Ca,
    expect::{Outcome, eventually, failed},
    injectd::Injectd,
    objects::{base64, service},
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::interval};

use super::{
    config::Revision,
    deployed::{Deployed, NAMESPACE},
};

const IPS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(127, 100, 0, 12)), IpAddr::V4(Ipv4Addr::new(127, 100, 0, 13))];
/// As the injector, an annotation of pods.
pub(super) const INJECTOR: &str = "istiod";
/// What istiod reads to know whether it writes its CA.
const VARIABLE: &str = "INJECTION_WEBHOOK_CONFIG_NAME";
/// The end of the names of entries that it writes it into.
const ENTRY: &str = "sidecar-injector.istio.io";
const PERIOD: Duration = Duration::from_millis(100);

/// istiod of one revision; it ends when this is dropped.
pub(super) struct Istiod {
    name: String,
    pub(super) port: u16,
    pub(super) ca: Ca,
    _injectd: Injectd,
    _patcher: JoinSet<()>,
}

impl Istiod {
    /// Starts istiod of a revision with its Deployment and Service, and waits until it answers.
    pub(super) async fn start(it: &Deployed, revision: &Revision) -> Outcome<Self> {
        let name = format!("istiod{}", revision.suffix());
        let ip = IPS[usize::from(revision.name != "default")];
        let folder = it.folder(&name)?;
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
        let certificate = ca.issue(&format!("{name}.{NAMESPACE}.svc"), ip)?;
        let bundle = certificate.ca.clone();
        let mut injectd = Injectd::serve(&it.lab.binary, &folder, ip, certificate, &arguments)?;
        injectd.set_variable("REVISION", &revision.name);
        injectd.start().await?;
        let port = injectd.webhook.port();
        it.create(NAMESPACE, &service(&name, &ip.to_string(), port)).await?;
        it.create(NAMESPACE, &deployment(&name)).await?;
        let mut patcher = JoinSet::new();
        patcher.spawn(patch(it.lab.api.clone(), revision.name.clone(), name.clone(), bundle));
        Ok(Self { name, port, ca, _injectd: injectd, _patcher: patcher })
    }

    /// Sets the variable as Helm's `pilot.env` does, or removes it, as `kubectl set env` does.
    pub(super) async fn tell(&self, api: &Api, leaves_alone: bool) -> Outcome {
        let path = deployment_path(&self.name);
        let env = if leaves_alone { json!([{"name": VARIABLE, "value": ""}]) } else { json!([]) };
        eventually("the Deployment is updated", async || {
            api.update(&path, |it| {
                it["spec"]["template"]["spec"]["containers"][0]["env"] = env.clone();
            })
            .await
        })
        .await
    }
}

fn deployment_path(name: &str) -> String {
    format!("{}/{name}", collection("apps/v1", "Deployment", Some(NAMESPACE)))
}

/// A Deployment without pods: only its variables are read.
fn deployment(name: &str) -> Value {
    injectd_harness::objects::deployment(name, 0, &json!({}))
}

/// Writes the CA into the entries of its revision, unless it is told not to.
async fn patch(api: Api, revision: String, name: String, ca: String) {
    let ca = base64(&ca);
    let mut ticks = interval(PERIOD);
    loop {
        ticks.tick().await;
        // It tries again, as istiod does.
        let _ = patch_once(&api, &revision, &name, &ca).await;
    }
}

async fn patch_once(api: &Api, revision: &str, name: &str, ca: &str) -> Outcome {
    let deployment = api.get(&deployment_path(name)).await?.ok()?;
    let env = deployment.pointer("/spec/template/spec/containers/0/env");
    let mut env = env.and_then(Value::as_array).into_iter().flatten();
    if env.any(|it| it["name"] == VARIABLE && it["value"].as_str().unwrap_or_default().is_empty()) {
        return Ok(());
    }
    let path = format!("{WEBHOOK_CONFIGURATIONS}?labelSelector=istio.io%2Frev%3D{revision}");
    let mut list = api.get(&path).await?.ok()?;
    for object in list["items"].as_array_mut().ok_or_else(|| failed("no items"))? {
        let before = object.clone();
        for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
            if webhook["name"].as_str().is_some_and(|it| it.ends_with(ENTRY)) {
                webhook["clientConfig"]["caBundle"] = json!(ca);
            }
        }
        if *object != before {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("{WEBHOOK_CONFIGURATIONS}/{name}");
            object["apiVersion"] = json!("admissionregistration.k8s.io/v1");
            object["kind"] = json!("MutatingWebhookConfiguration");
            api.call(Method::PUT, &path, Some(object.to_string())).await?;
        }
    }
    Ok(())
}
