//! A client of a webhook of another process: HTTPS over HTTP/1.1 connections that are kept alive.

use std::{error::Error as _, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{Request, StatusCode, Uri, header::CONTENT_TYPE};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, Error as ClientError, connect::HttpConnector},
    rt::TokioExecutor,
};
use injectd_tls::AnyCertificate;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::time::timeout;

use crate::input::MAX_FILE_BYTES;

/// The default timeout of the webhook's configuration.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why the other injector did not answer.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Not an https URL.
    #[error("expected https://HOST:PORT/PATH")]
    Url,
    /// --server-name is no name and no IP address.
    #[error("--server-name {0} is neither a DNS name nor an IP address")]
    ServerName(String),
    /// --ca contains no usable certificate.
    #[error("--ca contains no valid CA certificate; expected PEM")]
    Ca,
    /// No server at the address, or a server without TLS.
    #[error("cannot connect")]
    Connect(#[source] ClientError),
    /// No answer in time.
    #[error("no answer within {} seconds", TIMEOUT.as_secs())]
    Timeout,
    /// The connection closed before the answer, as when an injector panics.
    #[error("the connection closed before the answer")]
    Closed(#[source] ClientError),
    /// The answer is not HTTP/1.1.
    #[error("the answer is not valid HTTP/1.1")]
    NotHttp(#[source] ClientError),
    /// The connection closed before the end of the answer.
    #[error("the answer is incomplete")]
    Incomplete(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer has no end, or is no answer of an injector.
    #[error("the answer is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// The server is not an injector, or it rejected the request.
    #[error("HTTP status {0}; expected 200")]
    Status(StatusCode),
}

/// How the certificate of another injector is verified.
#[derive(Debug, Clone, Copy, Default)]
pub struct Verification<'v> {
    /// PEM with the CA bundle; without it any certificate is accepted.
    pub ca: Option<&'v [u8]>,
    /// The name that the certificate must have, if it is not the host of the URL.
    pub server_name: Option<&'v str>,
}

/// A client for another injector.
pub struct RemoteInjector {
    url: Uri,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl RemoteInjector {
    /// A client for the injector at a URL.
    ///
    /// # Errors
    /// When the URL, a certificate or the name is not valid.
    ///
    /// # Panics
    /// Never: the provider has these versions.
    pub fn new(url: &str, verification: Verification<'_>) -> Result<Self, RemoteError> {
        let url: Uri = url.parse().map_err(|_| RemoteError::Url)?;
        if url.scheme_str() != Some("https") {
            return Err(RemoteError::Url);
        }
        let config = match verification.ca {
            Some(pem) => {
                ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                    .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
                    .expect("the provider must support TLS 1.2 and 1.3")
                    .with_root_certificates(roots(pem)?)
                    .with_no_client_auth()
            }
            None => AnyCertificate::client_config(),
        };
        let mut connector = HttpsConnectorBuilder::new().with_tls_config(config).https_only();
        if let Some(name) = verification.server_name {
            let invalid = |_| RemoteError::ServerName(name.to_owned());
            let name = ServerName::try_from(name.to_owned()).map_err(invalid)?;
            connector = connector.with_server_name_resolver(FixedServerNameResolver::new(name));
        }
        // API servers call webhooks by nothing else.
        let connector = connector.enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { url, client })
    }

    /// Sends a review. Returns the body of an answer with status 200.
    ///
    /// # Errors
    /// When there is no valid answer.
    pub async fn review(&self, body: Vec<u8>) -> Result<Vec<u8>, RemoteError> {
        timeout(TIMEOUT, self.send(body)).await.unwrap_or(Err(RemoteError::Timeout))
    }

    async fn send(&self, body: Vec<u8>) -> Result<Vec<u8>, RemoteError> {
        let request = Request::post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| RemoteError::Url)?;
        let response = self.client.request(request).await.map_err(RemoteError::of)?;
        if response.status() != StatusCode::OK {
            return Err(RemoteError::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), MAX_FILE_BYTES).collect().await;
        match body {
            Ok(body) => Ok(body.to_bytes().to_vec()),
            Err(error) if error.is::<LengthLimitError>() => Err(RemoteError::TooLarge),
            Err(error) => Err(RemoteError::Incomplete(error)),
        }
    }
}

impl RemoteError {
    fn of(error: ClientError) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<hyper::Error>());
        match cause {
            _ if error.is_connect() => Self::Connect(error),
            Some(cause) if cause.is_parse() => Self::NotHttp(error),
            _ => Self::Closed(error),
        }
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, RemoteError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|_| RemoteError::Ca)?).map_err(|_| RemoteError::Ca)?;
    }
    if roots.is_empty() { Err(RemoteError::Ca) } else { Ok(roots) }
}
