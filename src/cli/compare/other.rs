//! A client for the other injector: HTTPS over one HTTP/1.1 connection that is kept alive.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, StatusCode, Uri,
    client::conn::http1::{self, SendRequest},
    header::{CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

use crate::tls::AnyCertificate;

/// The default timeout of the webhook's configuration.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why the other injector did not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteError {
    /// Not an https URL.
    #[error("expected https://HOST:PORT/PATH")]
    Url,
    /// --ca contains no usable certificate.
    #[error("--ca contains no valid CA certificate; expected PEM")]
    Ca,
    /// No server at the address, or a server without TLS.
    #[error("cannot connect")]
    Connect(#[source] std::io::Error),
    /// No answer in time.
    #[error("no answer within {} seconds", TIMEOUT.as_secs())]
    Timeout,
    /// The connection closed before the answer, as when an injector panics.
    #[error("the connection closed before the answer")]
    Closed(#[source] hyper::Error),
    /// The answer is not HTTP/1.1, or incomplete.
    #[error("the answer is not valid HTTP/1.1")]
    NotHttp(#[source] hyper::Error),
    /// The server is not an injector, or it rejected the request.
    #[error("HTTP status {0}; expected 200")]
    Status(StatusCode),
}

/// A client for another injector.
pub(super) struct RemoteInjector {
    url: Uri,
    authority: String,
    tls: TlsConnector,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl RemoteInjector {
    /// `ca` is PEM; without it the client accepts any certificate.
    pub(super) fn new(url: &str, ca: Option<&[u8]>) -> Result<Self, RemoteError> {
        let url: Uri = url.parse().map_err(|_| RemoteError::Url)?;
        let authority = url.authority().ok_or(RemoteError::Url)?.to_string();
        if url.scheme_str() != Some("https") {
            return Err(RemoteError::Url);
        }
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .expect("the provider must support TLS 1.2 and 1.3");
        let config = match ca {
            Some(pem) => config.with_root_certificates(roots(pem)?),
            None => config
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate::default())),
        };
        let tls = TlsConnector::from(Arc::new(config.with_no_client_auth()));
        Ok(Self { url, authority, tls, connection: None })
    }

    /// Sends a review. Returns the body of an answer with status 200.
    pub(super) async fn review(&mut self, body: Vec<u8>) -> Result<Vec<u8>, RemoteError> {
        let answer = timeout(TIMEOUT, self.send(body)).await.unwrap_or(Err(RemoteError::Timeout));
        if answer.is_err() {
            self.connection = None;
        }
        answer
    }

    async fn send(&mut self, body: Vec<u8>) -> Result<Vec<u8>, RemoteError> {
        let request = Request::post(self.url.path_and_query().map_or("/", |path| path.as_str()))
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| RemoteError::Url)?;
        let usable = self.connection.take().filter(|connection| !connection.is_closed());
        let mut connection = match usable {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.ready().await.map_err(RemoteError::Closed)?;
        let response = connection.send_request(request).await.map_err(|error| {
            if error.is_parse() { RemoteError::NotHttp(error) } else { RemoteError::Closed(error) }
        })?;
        if response.status() != StatusCode::OK {
            return Err(RemoteError::Status(response.status()));
        }
        let body = response.into_body().collect().await.map_err(RemoteError::NotHttp)?;
        self.connection = Some(connection);
        Ok(body.to_bytes().to_vec())
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, RemoteError> {
        let host = self.url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = self.url.port_u16().unwrap_or(443);
        let stream =
            TcpStream::connect((host.as_str(), port)).await.map_err(RemoteError::Connect)?;
        let name = ServerName::try_from(host).map_err(|_| RemoteError::Url)?;
        let stream = self.tls.connect(name, stream).await.map_err(RemoteError::Connect)?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(RemoteError::Closed)?;
        // The next request reports a closed connection.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, RemoteError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|_| RemoteError::Ca)?).map_err(|_| RemoteError::Ca)?;
    }
    if roots.is_empty() { Err(RemoteError::Ca) } else { Ok(roots) }
}
