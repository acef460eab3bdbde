//! A Kubernetes cluster: the client, and what of the cluster is known.
//!
//! Namespaces are watched, owners asked for when a pod names them; nothing else is held. Not for
//! what a review makes of it.

use std::{path::Path, sync::Arc, time::Duration};

use hyper::header::{HeaderValue, USER_AGENT};
use kube::{
    Client, Config,
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout},
};

mod events;
mod namespaces;
mod owners;
mod tokens;

pub use events::{Events, WriteError, now};
pub use namespaces::WatchedNamespaces;
pub use owners::Owners;
pub use tokens::Tokens;

/// How long the API server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may be silent: longer than a watch lasts.
const READ_TIMEOUT: Duration = Duration::from_secs(90);

/// What a lookup leaves of a review's time, at most half of it.
const REST: Duration = Duration::from_millis(100);
/// Longest name of an object.
const MAX_NAME: usize = 253;
/// Shares of a lookup's time that its first questions get; the last one gets the rest.
const PATIENCE_SHARES: [u32; 2] = [8, 4];

/// Whether the API server could have an object of that name: a DNS subdomain. What is none must not
/// become part of a path.
#[must_use]
pub fn is_object_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let is_bounded = bytes.first().is_some_and(|&it| is_inner(it))
        && bytes.last().is_some_and(|&it| is_inner(it));
    let is_known = |&byte: &u8| is_inner(byte) || matches!(byte, b'-' | b'.');
    is_bounded && name.len() <= MAX_NAME && bytes.iter().all(is_known)
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No pod of a cluster, and no kubeconfig either.
    #[error(
        "no cluster: neither a service account's files nor a kubeconfig are there; give \
         --kubeconfig, or --standalone to serve on files"
    )]
    NoCluster(#[source] InferConfigError),
    /// The file cannot be used.
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[source] KubeconfigError),
    /// The configuration cannot be used.
    #[error("the API server cannot be talked to")]
    Client(#[source] kube::Error),
}

/// Why the cluster did not answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LookupError {
    /// It took too long.
    #[error("the API server did not answer in time")]
    Timeout,
    /// Too many reviews wait for it already.
    #[error("too many reviews wait for the API server")]
    TooMany,
    /// It answered something else, or nothing.
    #[error("the API server did not answer")]
    Failed(#[source] Arc<kube::Error>),
}

/// What the API server is asked with, and how much of it at a time.
#[derive(Debug)]
pub struct Lookups {
    waiting: Semaphore,
    most: usize,
    timeout: Duration,
}

impl LookupError {
    /// Whether the API server said nothing at all.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        match self {
            Self::Timeout => true,
            Self::TooMany => false,
            Self::Failed(error) => !matches!(**error, kube::Error::Api(_)),
        }
    }
}

impl Lookups {
    /// So many reviews may wait for the cluster, each so long.
    #[must_use]
    pub fn new(most: usize, timeout: Duration) -> Self {
        Self { waiting: Semaphore::new(most), most, timeout }
    }

    fn begin(&self) -> Result<SemaphorePermit<'_>, LookupError> {
        self.waiting.try_acquire().map_err(|_| LookupError::TooMany)
    }

    async fn wait_for<T>(
        &self,
        found: impl Future<Output = Result<T, Arc<kube::Error>>>,
        deadline: Option<Instant>,
    ) -> Result<T, LookupError> {
        let _permit = self.begin()?;
        let mut patience = self.timeout;
        if let Some(deadline) = deadline {
            // A little is left for the answer that does without.
            let rest = deadline.saturating_duration_since(Instant::now());
            patience = patience.min(rest.saturating_sub(REST).max(rest / 2));
        }
        match timeout(patience, found).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(LookupError::Failed(error)),
            Err(_) => Err(LookupError::Timeout),
        }
    }
}

/// Asks again, on another connection, when there is no answer for a while: one that is kept alive
/// may have died in silence.
async fn patiently<T, E, A>(limit: Duration, ask: impl Fn() -> A) -> Result<T, E>
where
    A: Future<Output = Result<T, E>>,
{
    for share in PATIENCE_SHARES {
        if let Ok(answer) = timeout(limit / share, ask()).await {
            return answer;
        }
    }
    ask().await
}

/// A client for the cluster of a kubeconfig, else of the pod that this process runs in.
///
/// # Errors
/// When there is none, or it cannot be talked to.
pub async fn client(kubeconfig: Option<&Path>) -> Result<Client, ClientError> {
    let mut config = match kubeconfig {
        None => Config::infer().await.map_err(ClientError::NoCluster)?,
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(ClientError::Kubeconfig)?;
            let options = KubeConfigOptions::default();
            Config::from_custom_kubeconfig(file, &options).await.map_err(ClientError::Kubeconfig)?
        }
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    let user_agent = HeaderValue::from_static(concat!("injectd/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, user_agent));
    Client::try_from(config).map_err(ClientError::Client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_objects_are_dns_subdomains() {
        for name in ["a", "web-5f4", "10.0.0.1", &"a".repeat(253)] {
            assert!(is_object_name(name), "{name}");
        }
        let others =
            ["", "-a", "a-", "a/b", "..", "a?b", "A", "a b", "a%2fb", "ä", &"a".repeat(254)];
        for name in others {
            assert!(!is_object_name(name), "{name}");
        }
    }
}
