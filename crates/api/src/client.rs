//! A client of the gRPC server, for programs in Rust: messages are those of [`crate::v1`].
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use injectd_api::{client::Connect, v1::InjectRequest};
//!
//! let mut client = Connect::default().to("unix:/run/injectd.sock").await?;
//! let request = InjectRequest {
//!     namespace: "shop".to_owned(),
//!     kind: "Pod".to_owned(),
//!     object: std::fs::read("pod.json")?.into(),
//!     ..InjectRequest::default()
//! };
//! let response = client.inject(request).await?.into_inner();
//! println!("{:?}: {} bytes of patch", response.verdict(), response.patch.len());
//! # Ok(())
//! # }
//! ```

use std::{fmt, time::Duration};

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};

use crate::{MAX_MESSAGE_BYTES, UNIX_SCHEME, v1::injector_client::InjectorClient};

/// How long the server may take to accept a connection.
// Without it, an address that drops packets costs the minutes that the kernel repeats them.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to the gRPC server; cheap to clone.
pub type Client = InjectorClient<InterceptedService<Channel, Token>>;

/// Options of a connection. A Unix domain socket of this user needs none. A server with TLS needs a
/// CA, and a certificate or a token of the caller.
#[derive(Clone, Default)]
pub struct Connect {
    /// PEM certificates that verify the server's certificate.
    pub ca: Option<Vec<u8>>,
    /// The name in the server's certificate, if it differs from the host in the address.
    pub server_name: Option<String>,
    /// The caller's certificate chain and its key, as PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The caller's token; reconnect when it is replaced.
    pub token: Option<String>,
}

impl fmt::Debug for Connect {
    /// Omits the key and the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not valid, no server answers, or TLS failed.
    #[error("cannot connect to {0}")]
    Transport(String, #[source] tonic::transport::Error),
    /// The address has an unknown scheme.
    #[error("{0}: expected https://HOST:PORT or unix:PATH")]
    Address(String),
    /// The token contains characters that are not allowed in a header.
    #[error("the token contains characters that are not allowed in a header")]
    Token(#[source] tonic::metadata::errors::InvalidMetadataValue),
}

/// Sends the caller's token with every request, if there is one.
#[derive(Debug, Clone)]
pub struct Token(Option<MetadataValue<Ascii>>);

impl Connect {
    /// Connects to `unix:PATH` or `https://HOST:PORT`.
    ///
    /// # Errors
    /// When the address or the token is not valid, no server answers, or TLS fails.
    pub async fn to(&self, addr: &str) -> Result<Client, ConnectError> {
        let failed = |error| ConnectError::Transport(addr.to_owned(), error);
        let token = self.token.as_ref().map(|token| format!("Bearer {token}").parse());
        let mut token: Option<MetadataValue<Ascii>> =
            token.transpose().map_err(ConnectError::Token)?;
        if let Some(token) = &mut token {
            token.set_sensitive(true);
        }
        let channel = match addr.strip_prefix(UNIX_SCHEME) {
            Some(path) => {
                // The connector dials the socket; this address only names the authority.
                let endpoint = Endpoint::from_static("http://localhost");
                let path = path.to_owned();
                let connector = tower::service_fn(move |_| {
                    let path = path.clone();
                    async move { UnixStream::connect(path).await.map(TokioIo::new) }
                });
                endpoint.connect_with_connector(connector).await.map_err(failed)?
            }
            None if !addr.starts_with("https://") => {
                return Err(ConnectError::Address(addr.to_owned()));
            }
            None => self.endpoint(addr).map_err(failed)?.connect().await.map_err(failed)?,
        };
        let client = InjectorClient::with_interceptor(channel, Token(token));
        let client = client.max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(client.max_decoding_message_size(MAX_MESSAGE_BYTES))
    }

    fn endpoint(&self, addr: &str) -> Result<Endpoint, tonic::transport::Error> {
        let mut tls = ClientTlsConfig::new();
        if let Some(ca) = &self.ca {
            tls = tls.ca_certificate(Certificate::from_pem(ca));
        }
        if let Some(name) = &self.server_name {
            tls = tls.domain_name(name);
        }
        if let Some((chain, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(chain, key));
        }
        let endpoint = Endpoint::from_shared(addr.to_owned())?;
        endpoint.connect_timeout(CONNECT_TIMEOUT).tls_config(tls)
    }
}

impl Interceptor for Token {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}
