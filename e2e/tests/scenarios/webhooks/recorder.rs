//! A webhook that allows everything and writes down which of its paths were called.

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::{
    Request, Response, body::Bytes, body::Incoming, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use injectd_harness::{certificates::Certificate, expect::Outcome};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::TlsAcceptor;

/// Paths in the order of their calls.
type Calls = Arc<Mutex<Vec<String>>>;

/// The name of its Service.
pub(super) const SERVICE: &str = "recorder";

pub(super) struct Recorder {
    /// That of its Service.
    pub(super) namespace: String,
    pub(super) port: u16,
    /// For `caBundle`.
    pub(super) ca: String,
    calls: Calls,
    server: JoinHandle<()>,
}

impl Recorder {
    /// A recorder for a Service in this namespace.
    pub(super) async fn start(ip: IpAddr, namespace: &str) -> Outcome<Self> {
        let certificate = Certificate::new(&format!("{SERVICE}.{namespace}.svc"), ip)?;
        let chain = vec![CertificateDer::from_pem_slice(certificate.certificate.as_bytes())?];
        let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes())?;
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
        let listener = TcpListener::bind((ip, 0)).await?;
        let port = listener.local_addr()?.port();
        let calls = Calls::default();
        let server = tokio::spawn(serve(listener, Arc::new(config).into(), Arc::clone(&calls)));
        let namespace = namespace.to_owned();
        Ok(Self { namespace, port, ca: BASE64_STANDARD.encode(certificate.ca), calls, server })
    }

    pub(super) fn forget(&self) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn recorded(&self) -> Vec<String> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, calls: Calls) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, calls) = (acceptor.clone(), Arc::clone(&calls));
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let answer = service_fn(move |request| answer(request, Arc::clone(&calls)));
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await);
        });
    }
}

/// Records dry runs only: controllers send other requests meanwhile.
async fn answer(
    request: Request<Incoming>,
    calls: Calls,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    if review["request"]["dryRun"] == true {
        calls.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }
    let answer = json!({
        "apiVersion": review["apiVersion"],
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    });
    let answer = Response::builder()
        .header("content-type", "application/json")
        .body(Full::from(answer.to_string()))
        .unwrap_or_default();
    Ok(answer)
}
