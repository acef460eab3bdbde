//! Clients of injectd: one that asks the webhook as the API server does, one that probes the admin
//! server as a kubelet does. Each request has a connection of its own.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    client::conn::http1,
    http::header,
    rt::{Read, Write},
};
use hyper_util::rt::TokioIo;
use rustls::{pki_types::ServerName, version::TLS13};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    expect::{DEADLINE, Outcome, eventually, expect, failed},
    tls::tls_config,
};

/// A webhook: its address, and the name and CA that its certificate is verified by.
#[derive(Clone, Copy, Debug)]
pub struct Webhook<'a> {
    /// The address.
    pub addr: SocketAddr,
    /// The name in the certificate.
    pub server_name: &'a str,
    /// PEM of the CA.
    pub ca: &'a str,
}

/// An answer of the webhook.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// Whether the server asks for the connection to be closed.
    pub is_last: bool,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The admission response of an answer with status 200.
    ///
    /// # Errors
    ///
    /// Fails for any other status, and for a body that is no JSON.
    pub fn response(&self) -> Outcome<Value> {
        let text = String::from_utf8_lossy(&self.body);
        let begin: String = text.chars().take(80).collect();
        expect(format!("the status of a review ({begin:?})"), 200, self.status)?;
        let mut review: Value = serde_json::from_slice(&self.body)?;
        Ok(review["response"].take())
    }

    /// Fails unless the request is refused for now.
    ///
    /// # Errors
    ///
    /// Names the status or the header that is another.
    pub fn expect_refused(&self) -> Outcome {
        expect("the status", 503, self.status)?;
        expect("Retry-After", Some("1"), self.retry_after.as_deref())
    }
}

impl Webhook<'_> {
    /// A connection with TLS 1.3, for one of these protocols.
    ///
    /// # Errors
    ///
    /// Fails if the server does not accept it.
    pub async fn connect(&self, protocols: &[&str]) -> Outcome<TlsStream<TcpStream>> {
        let mut config = tls_config(self.ca, &[&TLS13])?;
        config.alpn_protocols =
            protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let stream = TcpStream::connect(self.addr).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.server_name.to_owned())?;
        Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
    }

    /// Sends the review of a pod, as the API server does with this timeout for the webhook.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer in time; the status is for the caller to judge.
    pub async fn review(&self, namespace: &str, pod: &Value, seconds: u64) -> Outcome<Answer> {
        self.review_at("/", namespace, pod, seconds).await
    }

    /// As [`Webhook::review`], at this path.
    ///
    /// # Errors
    ///
    /// As [`Webhook::review`].
    pub async fn review_at(
        &self,
        path: &str,
        namespace: &str,
        pod: &Value,
        seconds: u64,
    ) -> Outcome<Answer> {
        let request = Request::post(format!("{path}?timeout={seconds}s"))
            .header(header::HOST, format!("{}:443", self.server_name))
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(review_of(namespace, pod)))?;
        let exchange = async {
            let stream = self.connect(&[]).await?;
            send(TokioIo::new(stream), request).await
        };
        // A handshake of TLS is large.
        let response = timeout(DEADLINE, Box::pin(exchange));
        let (head, body) = response.await.map_err(|_| failed("the webhook does not answer"))??;
        let retry_after = head.headers().get(header::RETRY_AFTER);
        Ok(Answer {
            status: head.status().as_u16(),
            is_last: head
                .headers()
                .get(header::CONNECTION)
                .is_some_and(|connection| connection == "close"),
            retry_after: retry_after
                .map(|seconds| String::from_utf8_lossy(seconds.as_bytes()).into_owned()),
            body,
        })
    }
}

/// Waits until the admin server says that injectd is ready.
///
/// # Errors
///
/// Fails if it is not ready in time.
pub async fn wait_until_ready(admin: SocketAddr) -> Outcome {
    eventually("/ready", async || expect("/ready", 200, probe(admin, "/ready").await?.0)).await
}

/// Status and text of a GET at the admin server.
///
/// # Errors
///
/// Fails if there is no answer within five seconds.
pub async fn probe(admin: SocketAddr, path: &str) -> Outcome<(u16, String)> {
    let request = Request::get(path)
        .header(header::HOST, admin.to_string())
        .header(header::USER_AGENT, "kube-probe/1.36")
        .header(header::CONNECTION, "close")
        .body(Full::default())?;
    let exchange = async { send(TokioIo::new(TcpStream::connect(admin).await?), request).await };
    match timeout(Duration::from_secs(5), exchange).await {
        Ok(Ok((head, body))) => {
            Ok((head.status().as_u16(), String::from_utf8_lossy(&body).into_owned()))
        }
        Ok(Err(why)) => Err(failed(format!("GET {path}: {why}"))),
        Err(_) => Err(failed(format!("GET {path}: no answer within 5 s"))),
    }
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>) -> Outcome<(Response<()>, Bytes)>
where
    S: Read + Write + Unpin,
{
    let (mut sender, connection) = http1::handshake(stream).await?;
    let exchange = async {
        let response: Response<Incoming> = sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok((Response::from_parts(head, ()), body))
    };
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        ended = connection => {
            // What has come before the end is the answer.
            ended?;
            exchange.await
        }
    }
}

/// The operations of the patch in an answer that allows its pod.
///
/// # Errors
///
/// Fails if the pod is denied or there is no patch.
pub fn patch_of(response: &Value) -> Outcome<Vec<Value>> {
    expect("whether the pod is allowed", Some(true), response["allowed"].as_bool())?;
    expect("the type of the patch", Some("JSONPatch"), response["patchType"].as_str())?;
    let patch = BASE64_STANDARD.decode(response["patch"].as_str().unwrap_or_default())?;
    Ok(serde_json::from_slice(&patch)?)
}

/// The review of a pod that is created.
#[must_use]
pub fn review_of(namespace: &str, pod: &Value) -> Bytes {
    let request = json!({
        "uid": "7b1c7a3e-5d9c-4a53-9d0c-3f2f0d6f4a11",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": namespace,
        "operation": "CREATE",
        "object": pod,
    });
    let kind = "AdmissionReview";
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": kind, "request": request});
    review.to_string().into()
}
