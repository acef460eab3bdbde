//! Tokens of `ServiceAccounts`, reviewed by a real API server: valid, invalid and missing.

mod hanging;

use injectd_api::{
    client::Connect,
    v1::{InjectRequest, inject_stream_response::Result as Answer},
};
use injectd_harness::{
    audit_log::events,
    client::{probe, wait_until_ready},
    expect::{Outcome, eventually, expect, failed},
    injectd::linkerd_folder,
    lab::{Bench, Lab},
    linkerd::{ACCOUNT, make_account},
    namespaced::{Namespaced, with_namespace},
    objects::{ServiceAccount, service_account},
    scenario::with_lab,
};
use serde_json::json;
use tempfile::TempDir;
use tonic::{Code, Request};

use crate::linkerd::delete_account_at_end;

use super::server::{
    SERVICE, Server, answers_of, expect_injected, expect_status, health, of_stream, request,
};

const AUDIENCE: &str = "injectd";
const CALLER: &str = "workflow-controller";
const STRANGER: &str = "stranger";
const LOOKUP_TIMEOUT: &str = "4s";

/// A process for a cluster whose callers have tokens.
struct Tokens<'a> {
    it: &'a Namespaced<'a>,
    control_plane: String,
    server: Server,
    /// A token of the allowed caller that was reviewed.
    known: String,
}

/// Runs a scenario with a server that reviews tokens, and a namespace with callers.
async fn with_tokens(lab: &Lab, scenario: impl AsyncFnOnce(&mut Tokens<'_>) -> Outcome) -> Outcome {
    lab.local()?;
    with_namespace(lab, &json!({}), async |namespaced| {
        let folder = tempfile::tempdir()?;
        let control_plane = format!("{}-control-plane", namespaced.name);
        let mut tokens = Tokens::start(namespaced, &control_plane, &folder).await?;
        Box::pin(scenario(&mut tokens)).await
    })
    .await
}

impl<'a> Tokens<'a> {
    async fn start(
        it: &'a Namespaced<'a>,
        control_plane: &str,
        folder: &TempDir,
    ) -> Outcome<Tokens<'a>> {
        delete_account_at_end(it, control_plane);
        let kubeconfig = make_account(&it.lab.api, control_plane, folder.path()).await?;
        let name = format!("{control_plane}-tokens");
        let of = ServiceAccount { namespace: control_plane, name: ACCOUNT };
        let role = "system:auth-delegator";
        let reviews = of.bound("ClusterRoleBinding", &name, "ClusterRole", role);
        it.create_in_cluster(&reviews).await?;
        let create = json!({"verb": "create", "group": "authentication.k8s.io",
            "resource": "tokenreviews"});
        it.lab.api.wait_until_allowed(of, &create).await?;
        for name in [CALLER, STRANGER] {
            it.create(&service_account(name)).await?.created()?;
        }
        let [values, roots] = ["values/default.yaml", "example-root.crt"]
            .map(|file| linkerd_folder().join(file).display().to_string());
        let flags = [
            "--kubeconfig",
            &kubeconfig.to_string_lossy(),
            "--values",
            &values,
            "--trust-roots",
            &roots,
            "--grpc-token-audience",
            AUDIENCE,
            "--grpc-allow",
            &format!("system:serviceaccount:{}:{CALLER}", it.name),
            "--lookup-timeout",
            LOOKUP_TIMEOUT,
        ];
        let bench = Bench { binary: it.lab.binary.clone(), is_long: it.lab.is_long };
        // Not only loopback, because callers authenticate.
        let mut server = Server::with(&bench, ":0", &flags)?;
        server.start().await?;
        let control_plane = control_plane.to_owned();
        let mut tokens = Self { it, control_plane, server, known: String::new() };
        wait_until_ready(tokens.server.injectd.admin).await?;
        tokens.known = tokens.token(CALLER, AUDIENCE).await?;
        tokens.expect_served(&tokens.known).await?;
        Ok(tokens)
    }

    async fn expect_ready(&self) -> Outcome {
        expect("/ready", 200, probe(self.server.injectd.admin, "/ready").await?.0)
    }

    /// A new token of an account.
    async fn token(&self, account: &str, audience: &str) -> Outcome<String> {
        let of = ServiceAccount { namespace: &self.it.name, name: account };
        let spec = json!({"expirationSeconds": 3600, "audiences": [audience]});
        self.it.lab.api.token(of, &spec).await
    }

    /// Fails unless a caller with this token gets a sidecar, in the scenario's namespace.
    async fn expect_served(&self, token: &str) -> Outcome {
        self.server.expect_served(&bearer(token), self.request()).await
    }

    async fn expect_refused(&self, code: Code, words: &str, token: &str) -> Outcome {
        expect_status(code, words, self.server.call(&bearer(token), self.request()).await)
    }

    fn request(&self) -> InjectRequest {
        InjectRequest { namespace: self.it.name.clone(), ..request() }
    }

    /// The reviews of tokens that the process has asked for, by the audit log.
    fn reviews(&self) -> Outcome<usize> {
        let user = format!("system:serviceaccount:{}:{ACCOUNT}", self.control_plane);
        let events = events(&self.it.lab.local()?.audit_log, &user)?;
        Ok(events.iter().filter(|event| event["objectRef"]["resource"] == "tokenreviews").count())
    }
}

fn bearer(token: &str) -> Connect {
    Connect { token: Some(token.to_owned()), ..Connect::default() }
}

#[tokio::test]
async fn a_token_is_judged_by_its_signature_its_audience_and_its_user() -> Outcome {
    with_lab(async |lab| {
        with_tokens(lab, async |tokens| {
            let mut client = tokens.server.client(&bearer(&tokens.known)).await?;
            let requests = futures_util::stream::iter([of_stream("1", tokens.request())]);
            let answer = answers_of(&mut client, requests).await?.message().await?;
            match answer.and_then(|answer| answer.result) {
                Some(Answer::Response(response)) => expect_injected(&response)?,
                other => return Err(failed(format!("the answer: {other:?}"))),
            }
            let another = tokens.token(CALLER, "another").await?;
            for token in [&another, "garbage", &forged(&tokens.known)?, &"x".repeat(8_000)] {
                tokens.expect_refused(Code::Unauthenticated, "", token).await?;
            }
            let stranger = tokens.token(STRANGER, AUDIENCE).await?;
            let user = format!("system:serviceaccount:{}:{STRANGER}", tokens.it.name);
            tokens.expect_refused(Code::PermissionDenied, &user, &stranger).await?;
            tokens.expect_served(&tokens.known).await?;
            tokens.server.injectd.terminate().await
        })
        .await
    })
    .await
}

/// A token whose payload is not the signed one.
fn forged(token: &str) -> Outcome<String> {
    let parts: Vec<_> = token.split('.').collect();
    let [head, payload, signature] = parts[..] else { return Err(failed("not a JWT")) };
    let (kept, last) = payload.split_at(payload.len() - 4);
    let last = if last == "AAAA" { "BBBB" } else { "AAAA" };
    Ok(format!("{head}.{kept}{last}.{signature}"))
}

#[tokio::test]
async fn a_call_needs_a_bearer_token_and_the_health_does_not() -> Outcome {
    with_lab(async |lab| {
        with_tokens(lab, async |tokens| {
            let none = tokens.server.call(&Connect::default(), tokens.request()).await;
            expect_status(Code::Unauthenticated, "authorization", none)?;
            for value in [&format!("Basic {}", tokens.known), &tokens.known, "Bearer", "Bearer "] {
                let mut request = Request::new(tokens.request());
                request.metadata_mut().insert("authorization", value.parse()?);
                let called = tokens.server.any_client().await?.inject(request).await;
                let Err(status) = called else { return Err(failed(format!("{value} is served"))) };
                expect("the status", Code::Unauthenticated, status.code())?;
            }
            let serving = health(&tokens.server.channel().await?, SERVICE).await?;
            expect("the health", 1, serving)
        })
        .await
    })
    .await
}

#[tokio::test]
async fn a_namespace_that_is_unknown_is_a_failed_precondition() -> Outcome {
    with_lab(async |lab| {
        with_tokens(lab, async |tokens| {
            let nowhere = format!("{}-nowhere", tokens.it.name);
            let request = InjectRequest { namespace: nowhere.clone(), ..request() };
            let called = tokens.server.call(&bearer(&tokens.known), request).await;
            expect_status(Code::FailedPrecondition, &nowhere, called)
        })
        .await
    })
    .await
}

#[tokio::test]
async fn a_token_is_reviewed_once() -> Outcome {
    with_lab(async |lab| {
        with_tokens(lab, async |tokens| {
            // That of the known token.
            eventually("the review is in the audit log", async || {
                expect("the reviews", 1, tokens.reviews()?)
            })
            .await?;
            let token = tokens.token(CALLER, AUDIENCE).await?;
            let mut client = tokens.server.client(&bearer(&token)).await?;
            for _ in 0..100 {
                client.inject(tokens.request()).await?;
            }
            // Another one, whose review comes after all of the first.
            let other = tokens.token(CALLER, AUDIENCE).await?;
            tokens.expect_served(&other).await?;
            eventually("both reviews are in the audit log", async || {
                expect("whether there are enough", true, tokens.reviews()? >= 3)
            })
            .await?;
            expect("the reviews", 3, tokens.reviews()?)
        })
        .await
    })
    .await
}
