//! `injectd probe`: asks a server whether it is ready, or a webhook whether it injects. The image has
//! no other HTTP client.

use std::{path::PathBuf, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{StatusCode, Uri};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use injectd_command::{
    CommandError,
    config::MeshName,
    input,
    print::Printer,
    remote::{RemoteError, RemoteInjector, Verification},
    units::parse_duration,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::server;

/// The most bytes of an answer that are printed.
// A server that is not injectd may answer with a page, or without an end.
const MAX_BODY_BYTES: usize = 4096;
/// The uid of the review.
const UID: &str = "injectd-probe";

/// Ask a server whether it is ready, or a webhook whether it injects
///
/// Without --review, each URL must answer with HTTP status 200. With --review, each webhook gets the
/// admission review of a pod in the namespace default that asks for the sidecar, as a dry run. Its
/// answer must allow the pod and add the sidecar. For templates, the answer must allow the pod: there may be
/// no template for it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Without --review, the server, such as `http://injectd-metrics.linkerd.svc:9995/ready`; with it, the
    /// webhook, such as `https://injectd.linkerd.svc/linkerd`
    #[arg(value_name = "URL", required = true)]
    urls: Vec<Uri>,
    /// Send a review, and expect the sidecar of this mesh; for templates, an answer that allows the pod
    #[arg(long, value_name = "MESH")]
    review: Option<MeshName>,
    /// PEM file with the CA bundle that verifies the webhook [default: any certificate is accepted]
    #[arg(long, value_name = "FILE", requires = "review")]
    ca: Option<PathBuf>,
    /// The name that the webhook's certificate must have, such as `injectd.linkerd.svc` behind a
    /// port-forward [default: the host of the URL]
    #[arg(long, value_name = "NAME", requires = "ca")]
    server_name: Option<String>,
    /// Time for each answer; with --review at most 10s
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    timeout: Duration,
}

/// Why a server is not ready, or a webhook does not inject.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    #[error("cannot connect")]
    Connect(#[source] hyper_util::client::legacy::Error),
    #[error("HTTP status {0}: {1}")]
    Status(StatusCode, String),
    #[error("no answer in time")]
    Timeout,
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("the answer is not an AdmissionReview with the uid of the request")]
    NotAnAnswer,
    #[error("the webhook denies the pod: {0}")]
    Denied(String),
    #[error("the patch does not apply")]
    InvalidPatch(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the webhook allows the pod without the container {sidecar}; reasons: {reasons}")]
    NotInjected { sidecar: &'static str, reasons: String },
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let runtime = server::runtime(Some(1))
        .map_err(|error| CommandError::failed("cannot start the async runtime", error))?;
    let ca = args.ca.as_deref().map(|path| input::read_flag("--ca", path)).transpose()?;
    for url in &args.urls {
        let verification =
            Verification { ca: ca.as_deref(), server_name: args.server_name.as_deref() };
        let webhook = args.webhook(url, verification)?;
        let asked = async {
            match (&webhook, args.review) {
                (Some(webhook), Some(mesh)) => injects(webhook, mesh).await,
                _ => ready(url).await,
            }
        };
        let answer = runtime.block_on(async { timeout(args.timeout, asked).await });
        let answer = answer.unwrap_or(Err(ProbeError::Timeout));
        let answer = answer.map_err(|error| CommandError::failed(url.to_string(), error))?;
        Printer::stdout().line(&format!("{url}: {answer}")).map_err(CommandError::output)?;
    }
    Ok(())
}

impl Args {
    /// The webhook at a URL; `None` without --review.
    fn webhook(
        &self,
        url: &Uri,
        verification: Verification<'_>,
    ) -> Result<Option<RemoteInjector>, CommandError> {
        let usage = |problem: String| CommandError::Usage(format!("{url}: {problem}"));
        match self.review {
            Some(_) => RemoteInjector::new(&url.to_string(), verification)
                .map(Some)
                .map_err(|error| usage(error.to_string())),
            None if url.scheme_str() == Some("http") => Ok(None),
            None => {
                Err(usage("expected http://HOST:PORT/PATH, or --review for a webhook".to_owned()))
            }
        }
    }
}

/// Asks whether a server is ready.
async fn ready(url: &Uri) -> Result<String, ProbeError> {
    let client = Client::builder(TokioExecutor::new());
    let client: Client<_, Empty<Bytes>> = client.build(HttpConnector::new());
    let response = client.get(url.clone()).await.map_err(ProbeError::Connect)?;
    let status = response.status();
    // The text of a ready server says no more than that, so it is not read.
    if status == StatusCode::OK {
        return Ok("ready".to_owned());
    }
    let body = Limited::new(response.into_body(), MAX_BODY_BYTES).collect().await;
    let text = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Err(ProbeError::Status(status, String::from_utf8_lossy(&text).trim().to_owned()))
}

/// Asks whether a webhook injects a pod.
async fn injects(injector: &RemoteInjector, mesh: MeshName) -> Result<String, ProbeError> {
    let review = review();
    let answer = injector.review(review.to_string().into_bytes()).await?;
    let pod = injected(&review["request"]["object"], &answer)?;
    let sidecar = match mesh {
        MeshName::Linkerd => "linkerd-proxy",
        MeshName::Istio => "istio-proxy",
        MeshName::Templates => return Ok("answers".to_owned()),
    };
    pod.has(sidecar)?;
    Ok(format!("injects {sidecar}"))
}

/// The review of a pod that asks for the sidecar of each mesh. A dry run: the webhook sends no event.
fn review() -> Value {
    // This namespace exists in every cluster.
    let namespace = "default";
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": UID,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": UID,
            "namespace": namespace,
            "operation": "CREATE",
            "userInfo": {"username": UID},
            "dryRun": true,
            "object": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": UID,
                    "namespace": namespace,
                    "labels": {"sidecar.istio.io/inject": "true"},
                    "annotations": {"linkerd.io/inject": "enabled"},
                },
                "spec": {"containers": [{"name": "probe", "image": "probe"}]},
            },
        },
    })
}

/// A pod as an answer makes it.
#[derive(Debug)]
struct Injected {
    pod: Value,
    /// Why there is no sidecar.
    reasons: String,
}

/// The pod of an answer that allows it.
fn injected(pod: &Value, answer: &[u8]) -> Result<Injected, ProbeError> {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let response = &answer["response"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match response["allowed"].as_bool() {
        Some(is_allowed) if response["uid"] == UID => {
            if !is_allowed {
                return Err(ProbeError::Denied(text(&response["status"]["message"])));
            }
        }
        _ => return Err(ProbeError::NotAnAnswer),
    }
    let mut pod = pod.clone();
    if let Some(patch) = response["patch"].as_str() {
        apply(&mut pod, patch).map_err(ProbeError::InvalidPatch)?;
    }
    let reasons = match text(&response["auditAnnotations"]["reasons"]) {
        reasons if reasons.is_empty() => "none given".to_owned(),
        reasons => reasons,
    };
    Ok(Injected { pod, reasons })
}

impl Injected {
    /// Checks that the pod has the sidecar.
    fn has(self, sidecar: &'static str) -> Result<(), ProbeError> {
        let lists = ["containers", "initContainers"].map(|list| self.pod["spec"][list].as_array());
        if lists.into_iter().flatten().flatten().any(|container| container["name"] == sidecar) {
            return Ok(());
        }
        Err(ProbeError::NotInjected { sidecar, reasons: self.reasons })
    }
}

/// Applies a patch in base64.
fn apply(pod: &mut Value, patch: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let patch: json_patch::Patch = serde_json::from_slice(&STANDARD.decode(patch)?)?;
    Ok(json_patch::patch(pod, &patch)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(response: &Value) -> Result<(), ProbeError> {
        let pod = &review()["request"]["object"];
        injected(pod, json!({"response": response}).to_string().as_bytes())?.has("linkerd-proxy")
    }

    fn patch(path: &str, name: &str) -> Value {
        let add = json!([{"op": "add", "path": path, "value": {"name": name}}]);
        json!({"uid": UID, "allowed": true, "patch": STANDARD.encode(add.to_string())})
    }

    #[test]
    fn only_an_answer_that_adds_the_sidecar_passes() {
        assert!(judged(&patch("/spec/containers/-", "linkerd-proxy")).is_ok());
        let broken = json!({"uid": UID, "allowed": true, "patch": "x"});
        for (response, problem) in [
            (json!({"uid": "other", "allowed": true}), "with the uid of the request"),
            (json!({"uid": UID}), "not an AdmissionReview"),
            (
                json!({"uid": UID, "allowed": false, "status": {"message": "no values"}}),
                "denies the pod: no values",
            ),
            (json!({"uid": UID, "allowed": true}), "without the container linkerd-proxy"),
            (
                json!({"uid": UID, "allowed": true, "auditAnnotations": {"reasons": "disabled"}}),
                "reasons: disabled",
            ),
            (patch("/spec/containers/-", "other"), "without the container linkerd-proxy"),
            (patch("/spec/none/-", "linkerd-proxy"), "the patch does not apply"),
            (broken, "the patch does not apply"),
        ] {
            let error = judged(&response).expect_err(problem).to_string();
            assert!(error.contains(problem), "{response}: {error}");
        }
    }
}
