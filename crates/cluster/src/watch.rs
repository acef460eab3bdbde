//! A watch of objects of one kind, as a stream of lists and changes.
//!
//! Not for what the objects mean, and not for namespaces, whose cache is `namespaces.rs`.

use std::{
    fmt::Debug,
    mem::{discriminant, take},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt as _;
use injectd_telemetry::metrics::WatchMetrics;
use kube::{
    Api, Resource,
    runtime::{
        utils::Backoff as _,
        watcher::{Config, DefaultBackoff, Error, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, time::sleep};

use crate::causes::{status_message, with_causes};

/// Duration of a watch: a watch on a dead connection ends soon after.
const WATCH_SECONDS: u32 = 60;
/// Longest pause while the API server does not have the kind, which may be defined at any time.
// Objects are often applied right after their definition, and to list an unknown kind costs an API
// server next to nothing.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(10);

/// What a watch found.
#[derive(Debug)]
pub enum Update<K> {
    /// All objects.
    Listed(Vec<K>),
    /// An object was created or changed.
    Applied(K),
    /// An object was deleted.
    Deleted(K),
    /// The objects cannot be read now. The watch goes on.
    Failed(WatchFailure),
}

/// Why objects cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchFailure {
    /// 404: the API server does not have the kind.
    Unknown,
    /// 403, with the API server's text: the process may not list or watch them.
    Forbidden(String),
    /// Any other failure, which may pass.
    Other(String),
}

/// The metrics of a kind, which may have several watches.
#[derive(Debug, Clone, Default)]
pub struct KindMetrics {
    metrics: WatchMetrics,
    failing: Arc<AtomicUsize>,
}

/// Counts a failing watch until it is dropped.
struct Failing(KindMetrics);

/// Which objects are watched.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// The only object, by its name.
    pub name: Option<String>,
    /// A selector of labels.
    pub labels: Option<String>,
    /// Objects in a page of a list.
    pub page_size: u32,
}

impl KindMetrics {
    /// Metrics of the watches of a kind.
    #[must_use]
    pub fn new(metrics: WatchMetrics) -> Self {
        Self { metrics, failing: Arc::default() }
    }

    /// Records the number of objects in memory.
    pub fn keep(&self, objects: usize) {
        self.metrics.cache.keep(objects as u64);
    }

    fn fail(&self, before: Option<Failing>) -> Failing {
        self.metrics.failed();
        before.unwrap_or_else(|| {
            // Relaxed: the count orders nothing else, and a metric may be a moment late.
            self.failing.fetch_add(1, Ordering::Relaxed);
            Failing(self.clone())
        })
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        let Self(KindMetrics { metrics, failing }) = self;
        if failing.fetch_sub(1, Ordering::Relaxed) == 1 {
            metrics.recovered();
        }
    }
}

/// Watches objects and sends what it finds, until the receiver is gone or the future is dropped.
/// After a failure it waits and lists the objects again, so that a recovery is seen.
pub async fn follow<K, C>(
    api: Api<K>,
    watched: Watched,
    metrics: KindMetrics,
    sender: mpsc::Sender<C>,
    change: impl Fn(Update<K>) -> C,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut config = Config::default().timeout(WATCH_SECONDS).page_size(watched.page_size);
    if let Some(name) = &watched.name {
        config = config.fields(&format!("metadata.name={name}"));
    }
    if let Some(labels) = &watched.labels {
        config = config.labels(labels);
    }
    let mut backoff = DefaultBackoff::default();
    let mut failing = None;
    loop {
        let mut watch = std::pin::pin!(watcher(api.clone(), config.clone()));
        let mut listed = Vec::new();
        let failure = loop {
            let Some(event) = watch.next().await else { return };
            let update = match event {
                Err(error) => break error,
                Ok(Event::Init) => {
                    listed.clear();
                    continue;
                }
                Ok(Event::InitApply(object)) => {
                    listed.push(object);
                    continue;
                }
                Ok(Event::InitDone) => Update::Listed(take(&mut listed)),
                Ok(Event::Apply(object)) => Update::Applied(object),
                Ok(Event::Delete(object)) => Update::Deleted(object),
            };
            failing = None;
            // Any event shows that the API server answers.
            backoff.reset();
            metrics.metrics.seen();
            if sender.send(change(update)).await.is_err() {
                return;
            }
        };
        let failure = WatchFailure::of(&failure);
        let mut pause = backoff.next().unwrap_or_default();
        // A kind that the API server does not have is a state, and no failure: nothing is to be
        // repaired.
        failing = if failure == WatchFailure::Unknown {
            pause = pause.min(UNKNOWN_PAUSE);
            metrics.metrics.seen();
            None
        } else {
            Some(metrics.fail(failing))
        };
        if sender.send(change(Update::Failed(failure))).await.is_err() {
            return;
        }
        sleep(pause).await;
    }
}

impl WatchFailure {
    /// Whether the other one is of the same kind; its text may name another verb.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other)
    }

    /// Why a list failed that no watch follows.
    #[must_use]
    pub fn of_list(error: kube::Error) -> Self {
        Self::of(&Error::InitialListFailed(error))
    }

    fn of(error: &Error) -> Self {
        let status = match error {
            Error::InitialListFailed(kube::Error::Api(status))
            | Error::WatchStartFailed(kube::Error::Api(status))
            | Error::WatchFailed(kube::Error::Api(status))
            | Error::WatchError(status) => Some(status),
            _ => None,
        };
        match status {
            Some(status) if status.code == 404 => Self::Unknown,
            Some(status) if status.code == 403 => Self::Forbidden(status_message(status)),
            Some(status) => Self::Other(status_message(status)),
            None => Self::Other(with_causes(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::{FutureExt as _, future::pending};
    use hyper::{Request, Response};
    use kube::{Client, client::Body};

    use super::*;
    use crate::objects::Node;

    const NODE: &str = r#"{"metadata": {"name": "NAME", "resourceVersion": "7"}}"#;

    /// What an API server answers, one request after the other; then nothing.
    fn answers() -> [(u16, String); 4] {
        let node = |name: &str| NODE.replace("NAME", name);
        let list = |metadata: &str, name: &str| {
            let nodes = node(name);
            format!(r#"{{"kind": "NodeList", "metadata": {metadata}, "items": [{nodes}]}}"#)
        };
        let forbidden = r#"{"kind": "Status", "status": "Failure", "message": "no", "code": 403}"#;
        let event = format!(r#"{{"type": "DELETED", "object": {}}}"#, node("a"));
        [
            (403, forbidden.to_owned()),
            (200, list(r#"{"continue": "x", "resourceVersion": "5"}"#, "a")),
            (200, list(r#"{"resourceVersion": "5"}"#, "b")),
            (200, format!("{event}\n")),
        ]
    }

    fn in_short(update: Update<Node>) -> String {
        let name = |node: &Node| node.metadata.name.clone().unwrap_or_default();
        match update {
            Update::Listed(nodes) => {
                format!("listed {:?}", nodes.iter().map(name).collect::<Vec<_>>())
            }
            Update::Applied(node) => format!("applied {}", name(&node)),
            Update::Deleted(node) => format!("deleted {}", name(&node)),
            Update::Failed(failure) => format!("failed {failure:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_watch_lists_all_pages_again() {
        let count = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |_: Request<Body>| {
            let answer = answers().into_iter().nth(count.fetch_add(1, Ordering::Relaxed));
            async move {
                let Some((status, text)) = answer else { return pending().await };
                let response =
                    Response::builder().status(status).body(Body::from(text.into_bytes()));
                Ok::<_, std::convert::Infallible>(response.expect("a response"))
            }
        });
        let api = Api::<Node>::all(Client::new(service, "default"));
        let (sender, mut updates) = mpsc::channel(10);
        let metrics = KindMetrics::default();
        let watched = Watched { page_size: 1, ..Watched::default() };
        let mut watch = follow(api, watched, metrics.clone(), sender, in_short).boxed();
        let mut next = async || {
            tokio::select! {
                () = &mut watch => panic!("must go on"),
                update = updates.recv() => update.expect("an update"),
            }
        };
        assert_eq!(next().await, r#"failed Forbidden("no")"#);
        assert_eq!(metrics.failing.load(Ordering::Relaxed), 1);
        assert_eq!(next().await, r#"listed ["a", "b"]"#);
        assert_eq!(metrics.failing.load(Ordering::Relaxed), 0);
        assert_eq!(next().await, "deleted a");
    }
}
