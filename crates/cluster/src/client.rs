//! The client for a cluster, and the limits of lookups.

use std::{env, path::Path, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use hyper::header::{HeaderValue, USER_AGENT};
use injectd_core::lookups::LookupError;
use kube::{
    Client, Config,
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use moka::sync;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout},
};

use crate::{
    causes::{api_message, with_causes},
    files::{self, MAX_SERVED_BYTES},
};

/// How long the API server may take to accept a connection.
// Half of the deadline that a review has by default: if a lookup fails, there is time left to
// answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the API server may send nothing: longer than a watch lasts.
const READ_TIMEOUT: Duration = Duration::from_secs(90);

/// Time reserved for answering after a lookup; at most half of what remains.
// An owner that is not found in time is derived from the pod, and the answer still has to be
// written.
const ANSWER_RESERVE: Duration = Duration::from_millis(100);
/// Limits of one namespace, so that its burst cannot starve the others: concurrent requests, and
/// waiting reviews as a fraction (1/4) of all that may wait.
const MAX_REQUESTS_OF_A_NAMESPACE: usize = 32;
const NAMESPACE_WAITING_DIVISOR: usize = 4;
/// Maximum number of namespaces whose limits are kept.
// A namespace that is evicted begins with a full share again.
const MAX_NAMESPACES: u64 = 10_000;
/// The first attempts of a lookup time out after 1/8 and 1/4 of its limit; the last gets the rest.
// A request on a dead connection has no end of its own: with three attempts a lookup survives two
// of them.
const RETRY_TIMEOUT_DIVISORS: [u32; 2] = [8, 4];

/// The field manager of objects that a process creates by an apply: one of its own, so that the API
/// server rejects the apply if another process has created the object.
#[must_use]
pub fn creator(identity: &str) -> String {
    /// Maximum length of a field manager.
    // The API server refuses longer ones (`FieldManagerMaxLength`).
    const MAX_MANAGER: usize = 128;
    format!("injectd-{identity}").chars().take(MAX_MANAGER).collect()
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// The API server refuses it.
    Status {
        /// The status of HTTP.
        code: u16,
        /// The API server's text.
        message: String,
    },
    /// The API server does not answer, or cannot be asked.
    Failed(String),
}

impl Unanswered {
    /// The API server's text, or why there is none.
    #[must_use]
    pub fn text(self) -> String {
        let (Self::Status { message: text, .. } | Self::Failed(text)) = self;
        text
    }
}

impl From<kube::Error> for Unanswered {
    fn from(error: kube::Error) -> Self {
        let message = api_message(&error).unwrap_or_default();
        match error {
            kube::Error::Api(status) => Self::Status { code: status.code, message },
            kube::Error::Service(cause) => {
                Self::Failed(format!("cannot connect to the API server: {}", with_causes(&*cause)))
            }
            kube::Error::HttpError(problem) => Self::Failed(problem.to_string()),
            error => Self::Failed(with_causes(&error)),
        }
    }
}

/// Why the client could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The process has neither a service account of a pod nor a kubeconfig.
    #[error(
        "no cluster: found neither a service account nor a kubeconfig; set --kubeconfig, or \
         --standalone to serve from files"
    )]
    NoCluster(#[source] InferConfigError),
    /// The kubeconfig cannot be read, or is not valid.
    #[error("cannot use the kubeconfig")]
    Kubeconfig(#[source] KubeconfigError),
    /// The configuration is not valid.
    #[error("cannot create a client for the API server")]
    Client(#[source] kube::Error),
}

/// What the API server says when it rejects a request.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Rejection(String);

/// Limits of the lookups in the API server.
#[derive(Debug)]
pub struct LookupLimits {
    waiting: Semaphore,
    shares: sync::Cache<String, Arc<Share>>,
    pub(crate) max_waiting: usize,
    pub(crate) timeout: Duration,
}

/// The limits of one namespace.
#[derive(Debug)]
pub(crate) struct Share {
    waiting: Semaphore,
    requests: Semaphore,
}

impl LookupLimits {
    /// At most `max_waiting` reviews wait for the API server, each at most `timeout`.
    #[must_use]
    pub fn new(max_waiting: usize, timeout: Duration) -> Self {
        let shares = sync::Cache::new(MAX_NAMESPACES);
        Self { waiting: Semaphore::new(max_waiting), shares, max_waiting, timeout }
    }

    pub(crate) fn begin(&self) -> Result<SemaphorePermit<'_>, LookupError> {
        // No queue: each review that waits keeps its body in memory, and its caller has a deadline.
        self.waiting.try_acquire().map_err(|_| LookupError::TooMany)
    }

    /// The limits of a namespace.
    pub(crate) fn share(&self, namespace: &str) -> Arc<Share> {
        self.shares.get_with_by_ref(namespace, || {
            let waiting = self.max_waiting.div_ceil(NAMESPACE_WAITING_DIVISOR);
            Arc::new(Share {
                waiting: Semaphore::new(waiting),
                requests: Semaphore::new(MAX_REQUESTS_OF_A_NAMESPACE),
            })
        })
    }

    pub(crate) async fn wait_for<T>(
        &self,
        found: impl Future<Output = Result<T, Arc<kube::Error>>>,
        deadline: Option<std::time::Instant>,
    ) -> Result<T, LookupError> {
        let _permit = self.begin()?;
        let mut limit = self.timeout;
        if let Some(deadline) = deadline {
            // Leaves time to answer without the result.
            let rest = Instant::from_std(deadline).saturating_duration_since(Instant::now());
            limit = limit.min(rest.saturating_sub(ANSWER_RESERVE).max(rest / 2));
        }
        match timeout(limit, found).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(match api_message(&*error) {
                // The core logs it.
                Some(message) => LookupError::Rejected(Arc::new(Rejection(message))),
                None => LookupError::Failed(error),
            }),
            Err(_) => Err(LookupError::Timeout),
        }
    }
}

impl Share {
    pub(crate) fn begin(&self) -> Result<SemaphorePermit<'_>, LookupError> {
        self.waiting.try_acquire().map_err(|_| LookupError::TooMany)
    }

    /// Waits until a request may be sent. `None` never comes: the semaphore is not closed.
    pub(crate) async fn request(&self) -> Option<SemaphorePermit<'_>> {
        self.requests.acquire().await.ok()
    }
}

/// Retries a slow request on another connection: a kept-alive connection may be dead.
pub(crate) async fn with_retries<T, E, A>(limit: Duration, request: impl Fn() -> A) -> Result<T, E>
where
    A: Future<Output = Result<T, E>>,
{
    for divisor in RETRY_TIMEOUT_DIVISORS {
        if let Ok(answer) = timeout(limit / divisor, request()).await {
            return answer;
        }
    }
    request().await
}

/// The cluster, and the user that calls it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientOptions<'a> {
    /// The file; without it and `context`, the cluster is the one that kube infers.
    pub kubeconfig: Option<&'a Path>,
    /// The context in the file; without it, the current one.
    pub context: Option<&'a str>,
    /// The user to impersonate.
    pub user: Option<&'a str>,
    /// The groups of that user.
    pub groups: &'a [String],
}

/// A client for the cluster of a kubeconfig; without one, for the cluster that kube infers: that of
/// the default kubeconfig, or of the pod in which this process runs.
///
/// # Errors
/// When no cluster is found, or its configuration is not valid.
#[must_use]
pub fn client(options: ClientOptions<'_>) -> BoxFuture<'_, Result<Client, ClientError>> {
    // Boxed: the packages that make a client share its code, with an HTTP client and TLS in it.
    Box::pin(found_client(options))
}

async fn found_client(options: ClientOptions<'_>) -> Result<Client, ClientError> {
    must_be_readable(options.kubeconfig).map_err(ClientError::Kubeconfig)?;
    let mut config = if options.kubeconfig.is_none() && options.context.is_none() {
        Config::infer().await.map_err(ClientError::NoCluster)?
    } else {
        let file = match options.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let file = file.map_err(ClientError::Kubeconfig)?;
        let context = options.context.map(str::to_owned);
        let context = KubeConfigOptions { context, ..KubeConfigOptions::default() };
        Config::from_custom_kubeconfig(file, &context).await.map_err(ClientError::Kubeconfig)?
    };
    if let Some(user) = options.user {
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups =
            (!options.groups.is_empty()).then(|| options.groups.to_vec());
    }
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    let user_agent = HeaderValue::from_static(concat!("injectd/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, user_agent));
    Client::try_from(config).map_err(ClientError::Client)
}

/// Checks the kubeconfig, or those that kube takes without one: it reads them whole.
fn must_be_readable(path: Option<&Path>) -> Result<(), KubeconfigError> {
    let paths = match (path, env::var_os("KUBECONFIG")) {
        (Some(path), _) => vec![path.to_owned()],
        (None, Some(paths)) => env::split_paths(&paths).collect(),
        (None, None) => env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
    };
    for path in paths {
        files::must_be_small(&path, MAX_SERVED_BYTES)
            .map_err(|error| KubeconfigError::ReadConfig(error, path))?;
    }
    Ok(())
}
