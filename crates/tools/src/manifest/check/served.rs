//! The certificates that Services of webhooks serve.

use std::{collections::BTreeSet, io, str::FromStr, sync::Arc, time::Duration};

use injectd_command::CommandError;
use injectd_tls::AnyCertificate;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

/// How long a server may take for the handshake.
// An API server gives a whole review as long by default, with the handshake in it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The Service of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServiceName {
    pub(super) namespace: String,
    name: String,
}

/// A value of `--connect`: an address, and the Service that it is of.
#[derive(Debug, Clone)]
pub(super) struct Connect {
    service: Option<ServiceName>,
    addr: String,
}

/// What a Service serves.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) service: ServiceName,
    /// The leaf first; never empty.
    pub(super) chain: Vec<CertificateDer<'static>>,
}

/// Why a certificate cannot be seen.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    #[error("{0} is not the name of a server")]
    Name(String, #[source] InvalidDnsNameError),
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    #[error("no TLS handshake in {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("the server sent no certificate")]
    NoCertificate,
}

impl ServiceName {
    /// The Service of a webhook; `None` for a URL.
    pub(super) fn of(webhook: &Value) -> Option<Self> {
        let service = &webhook["clientConfig"]["service"];
        let text = |key: &str| service[key].as_str().filter(|text| !text.is_empty());
        let (namespace, name) = (text("namespace")?, text("name")?);
        Some(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// The name by which the API server verifies the certificate.
    pub(super) fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl FromStr for Connect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (service, addr) = match text.split_once('=') {
            Some((service, addr)) => {
                let parts = service.split_once('/').ok_or("expected NAMESPACE/SERVICE before =")?;
                let (namespace, name) = (parts.0.to_owned(), parts.1.to_owned());
                (Some(ServiceName { namespace, name }), addr)
            }
            None => (None, text),
        };
        let port = addr.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        port.ok_or("expected HOST:PORT")?;
        Ok(Self { service, addr: addr.to_owned() })
    }
}

/// The certificates at all addresses. An address without a Service is of the only one to which the
/// configurations lead.
pub(super) async fn all(
    connects: &[Connect],
    configurations: &[&Value],
) -> Result<Vec<Served>, CommandError> {
    let webhooks = configurations
        .iter()
        .filter_map(|configuration| configuration["webhooks"].as_array())
        .flatten();
    let services: BTreeSet<_> = webhooks.filter_map(ServiceName::of).collect();
    let mut all = Vec::new();
    for Connect { service, addr } in connects {
        let service = match service {
            Some(service) if services.contains(service) => service,
            Some(ServiceName { namespace, name }) => {
                let text = format!("--connect: no webhook leads to the Service {namespace}/{name}");
                return Err(CommandError::Usage(text));
            }
            None => only(&services).map_err(|problem| {
                CommandError::Usage(format!(
                    "--connect {addr}: {problem}; write --connect NAMESPACE/SERVICE={addr}"
                ))
            })?,
        };
        let chain = chain(addr, service.host()).await;
        let chain = chain.map_err(|error| CommandError::failed(format!("--connect {addr}"), error));
        all.push(Served { service: service.clone(), chain: chain? });
    }
    Ok(all)
}

fn only(services: &BTreeSet<ServiceName>) -> Result<&ServiceName, String> {
    let mut all = services.iter();
    match (all.next(), all.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err("no webhook leads to a Service".to_owned()),
        (_, more) => Err(format!("the webhooks lead to {} Services", more + 1)),
    }
}

/// The chain that a server sends to a client which asks for this host.
async fn chain(addr: &str, host: String) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let host =
        ServerName::try_from(host.clone()).map_err(|error| ConnectError::Name(host, error))?;
    // Any certificate is accepted here, because the finding is about what the server sends. An
    // expired one must be seen and not refused.
    let config = AnyCertificate::client_config();
    let connect = async {
        let stream = TcpStream::connect(addr).await?;
        TlsConnector::from(Arc::new(config)).connect(host, stream).await
    };
    let connected = timeout(TIMEOUT, connect).await.map_err(|_| ConnectError::Timeout)?;
    let stream = connected.map_err(ConnectError::Connect)?;
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let chain: Vec<_> = chain.iter().cloned().map(CertificateDer::into_owned).collect();
    if chain.is_empty() { Err(ConnectError::NoCertificate) } else { Ok(chain) }
}
