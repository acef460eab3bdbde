//! A client of the gRPC door, for programs in Rust: messages are those of [`crate::grpc::v1`].
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use injectd::{client::Connect, grpc::v1::InjectRequest};
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

use crate::{
    grpc::v1::injector_client::InjectorClient, server::UNIX_SCHEME, webhook::MAX_BODY_BYTES,
};

/// How long the door may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to the gRPC door; cheap to copy.
pub type Client = InjectorClient<InterceptedService<Channel, Token>>;

/// What a connection needs: nothing for a socket of this user, a CA for a door with TLS, and what
/// proves who calls.
#[derive(Clone, Default)]
pub struct Connect {
    /// Certificates as PEM: those the door's certificate is verified with.
    pub ca: Option<Vec<u8>>,
    /// The name in the door's certificate, where it is not that of the address.
    pub server_name: Option<String>,
    /// The caller's certificate chain and its key, as PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The caller's token; connect anew when it is replaced.
    pub token: Option<String>,
}

impl fmt::Debug for Connect {
    /// Without key and token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is none, or nobody answers there.
    #[error("cannot connect to {0}")]
    Transport(String, #[source] tonic::transport::Error),
    /// The address is of no kind that is known.
    #[error("{0}: expected https://HOST:PORT or unix:PATH")]
    Address(String),
    /// The token has characters that no header takes.
    #[error("the token is none")]
    Token(#[source] tonic::metadata::errors::InvalidMetadataValue),
}

/// Sends the caller's token with every request, if there is one.
#[derive(Debug, Clone)]
pub struct Token(Option<MetadataValue<Ascii>>);

impl Connect {
    /// Connects to `unix:PATH` or `https://HOST:PORT`.
    ///
    /// # Errors
    /// When nobody answers there, or TLS does not agree.
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
                // The address of a socket is the connector's.
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
        let client = client.max_encoding_message_size(MAX_BODY_BYTES);
        Ok(client.max_decoding_message_size(MAX_BODY_BYTES))
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
