//! The other injector, over HTTPS: one kept-alive HTTP/1.1 connection, as an API server has it.

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

/// Why there is no injector to ask.
#[derive(Debug, thiserror::Error)]
pub(super) enum OtherError {
    /// Not an address over HTTPS.
    #[error("expected https://HOST:PORT/PATH")]
    Url,
    /// No certificates to trust.
    #[error("--ca holds no certificate that can be trusted; expected PEM")]
    Ca,
    /// No server at the address, or one without TLS.
    #[error("cannot connect")]
    Connect(#[source] std::io::Error),
    /// No answer in time.
    #[error("no answer within {} seconds", TIMEOUT.as_secs())]
    Timeout,
    /// The connection broke off before an answer; an injector that panics does that.
    #[error("the connection broke off")]
    Broken(#[source] hyper::Error),
    /// An answer, but not in HTTP/1.1, or not all of it.
    #[error("the answer cannot be read as HTTP/1.1")]
    NotHttp(#[source] hyper::Error),
    /// The answer of a server that is not an injector, or of one that refused the request.
    #[error("HTTP status {0}; expected 200")]
    Status(StatusCode),
}

/// Another injector.
pub(super) struct Other {
    url: Uri,
    authority: String,
    tls: TlsConnector,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Other {
    /// `ca` is PEM; without it any certificate will do.
    pub(super) fn new(url: &str, ca: Option<&[u8]>) -> Result<Self, OtherError> {
        let url: Uri = url.parse().map_err(|_| OtherError::Url)?;
        let authority = url.authority().ok_or(OtherError::Url)?.to_string();
        if url.scheme_str() != Some("https") {
            return Err(OtherError::Url);
        }
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .expect("the provider must know TLS");
        let config = match ca {
            Some(pem) => config.with_root_certificates(roots(pem)?),
            None => config
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate::default())),
        };
        let tls = TlsConnector::from(Arc::new(config.with_no_client_auth()));
        Ok(Self { url, authority, tls, connection: None })
    }

    /// Sends a review. Returns the body of the answer, whose status is 200.
    pub(super) async fn review(&mut self, body: Vec<u8>) -> Result<Vec<u8>, OtherError> {
        let asked = timeout(TIMEOUT, self.ask(body)).await.unwrap_or(Err(OtherError::Timeout));
        if asked.is_err() {
            self.connection = None;
        }
        asked
    }

    async fn ask(&mut self, body: Vec<u8>) -> Result<Vec<u8>, OtherError> {
        let request = Request::post(self.url.path_and_query().map_or("/", |path| path.as_str()))
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| OtherError::Url)?;
        let usable = self.connection.take().filter(|connection| !connection.is_closed());
        let mut connection = match usable {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.ready().await.map_err(OtherError::Broken)?;
        let response = connection.send_request(request).await.map_err(|error| {
            if error.is_parse() { OtherError::NotHttp(error) } else { OtherError::Broken(error) }
        })?;
        if response.status() != StatusCode::OK {
            return Err(OtherError::Status(response.status()));
        }
        let body = response.into_body().collect().await.map_err(OtherError::NotHttp)?;
        self.connection = Some(connection);
        Ok(body.to_bytes().to_vec())
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, OtherError> {
        let host = self.url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = self.url.port_u16().unwrap_or(443);
        let stream =
            TcpStream::connect((host.as_str(), port)).await.map_err(OtherError::Connect)?;
        let name = ServerName::try_from(host).map_err(|_| OtherError::Url)?;
        let stream = self.tls.connect(name, stream).await.map_err(OtherError::Connect)?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(OtherError::Broken)?;
        // Its end shows in the next request.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, OtherError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|_| OtherError::Ca)?).map_err(|_| OtherError::Ca)?;
    }
    if roots.is_empty() { Err(OtherError::Ca) } else { Ok(roots) }
}
