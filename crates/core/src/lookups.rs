//! What the injector looks up: namespaces, owners of pods, and service accounts. A review may wait only
//! for these lookups, and for its turn.
//!
//! A namespace that is unknown or evicted never means "no annotations": its lookup fails.

use std::{
    error::Error,
    fmt::Debug,
    pin::Pin,
    sync::{Arc, LazyLock},
    time::Instant,
};

use crate::{namespace::NamespaceReads, object::OwnerReference, outcome::Workload};

/// The kind of service accounts.
const SERVICE_ACCOUNT: &str = "ServiceAccount";

/// Texts by key, in the order of their source.
pub type Entries = Box<[(String, String)]>;

/// Labels and annotations of an object, at least those that injection reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Its labels.
    pub labels: Entries,
    /// Its annotations.
    pub annotations: Entries,
}

/// A reference from an object to its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// API version of the owner; may be empty.
    pub api_version: String,
    /// Kind of the owner, as written.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// uid of the owner's object; may be empty.
    pub object_uid: String,
    /// Whether the owner is the object's controller.
    pub is_controller: bool,
}

/// An object that may own pods, and its owners.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerObject {
    /// uid of the object; may be empty.
    pub object_uid: String,
    /// Its own owners.
    pub owners: Vec<Reference>,
}

/// An owner; `None` if it does not exist.
pub type FoundOwner = Option<Arc<OwnerObject>>;

/// An object of a namespace: a ServiceAccount, or an owner with what may change of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownObject {
    /// Its uid and its owners.
    pub owner: Arc<OwnerObject>,
    /// Its labels and annotations.
    pub metadata: Metadata,
}

/// Such an object; `None` if it does not exist.
pub type FoundObject = Option<Arc<KnownObject>>;

/// Why a lookup failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LookupError {
    /// The API server did not answer in time.
    #[error("the API server did not answer in time")]
    Timeout,
    /// Too many reviews wait for the API server.
    #[error("too many reviews wait for the API server")]
    TooMany,
    /// The API server answered with an error.
    #[error("the request to the API server failed")]
    Rejected(#[source] Arc<dyn Error + Send + Sync>),
    /// The API server could not be reached, or its answer could not be read.
    #[error("the request to the API server failed")]
    Failed(#[source] Arc<dyn Error + Send + Sync>),
    /// The object is not in memory, and no source can be asked for it.
    #[error("the object is not in memory")]
    NotInMemory,
}

/// The lookup of an object failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot look up the {what} {name:?}")]
pub struct ObjectError {
    /// What the object is for the pod, such as `owner`.
    pub what: &'static str,
    /// Name of the object.
    pub name: String,
    /// The failed lookup.
    pub source: LookupError,
}

/// What a review asks for before its evaluation.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Namespace of the request. Namespaces take turns.
    pub namespace: &'a str,
    /// Bytes in memory besides the body while it waits.
    pub waiting_bytes: usize,
    /// Bytes in memory during the evaluation, by estimate.
    pub memory: usize,
}

/// A turn of work that takes long. It ends when this is dropped.
#[derive(Debug)]
pub struct Turn {
    /// Whether it came after another turn ended.
    pub has_waited: bool,
    /// What the server granted, which the next turn needs.
    pub granted: Box<dyn Granted>,
}

/// What a server grants for a turn.
pub trait Granted: Debug + Send + Sync {
    /// Runs the work once, where other reviews do not wait for it.
    fn run(&self, work: &mut dyn FnMut());

    /// How long the caller waits for the work.
    fn patience(&self) -> Arc<dyn Patience>;
}

/// How long a caller waits. Work that takes long asks from time to time.
pub trait Patience: Debug + Send + Sync {
    /// Whether the caller is gone, or its deadline has passed. Once true, it stays true.
    fn is_over(&self) -> bool;
}

/// Why there is no turn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoTurn {
    /// Too many reviews wait, or this one waited too long. A retry may succeed.
    #[error("too many pods wait to be evaluated, or this one waited too long")]
    Late,
    /// The evaluation takes more memory than all evaluations may have. The text names the limit.
    #[error("{0}")]
    TooLarge(String),
}

/// The future of a turn.
pub type NextTurn<'t> = Pin<Box<dyn Future<Output = Result<Turn, NoTurn>> + Send + 't>>;

/// Limits how much work that takes long is done at a time, so that other work goes on beside it.
pub trait Turns: Debug + Send + Sync {
    /// Waits for a turn, and for memory.
    fn next<'t>(&'t self, asked: Asked<'t>) -> NextTurn<'t>;
}

/// Facts that the caller supplies in place of lookups, its deadline, and the turns it grants.
#[derive(Debug, Default)]
pub struct CallerFacts<'a> {
    /// Labels and annotations of the namespace, at least those that injection reads.
    pub namespace: Option<Arc<Metadata>>,
    /// The workload for the labels of an injected pod.
    pub workload: Option<Workload<'a>>,
    /// When the caller stops waiting: an owner whose lookup takes longer is derived from the pod's
    /// labels.
    pub deadline: Option<Instant>,
    /// The decoded path of the webhook's URL; empty for callers without one.
    pub path: &'a str,
    /// The turns of evaluations; `None` if they need not wait.
    pub turns: Option<&'a dyn Turns>,
}

/// The source of namespaces, owners and service accounts.
pub trait Lookups: Send + Sync {
    /// Labels and annotations of a namespace, at least those that a configuration reads; `None` if it does
    /// not exist.
    fn namespace(
        &self,
        name: &str,
        reads: &NamespaceReads,
    ) -> impl Future<Output = Result<Option<Arc<Metadata>>, LookupError>> + Send;

    /// The object of an owner: a `ReplicaSet` or a Job; `None` for other kinds. The lookup should end before
    /// `deadline`.
    fn owner(
        &self,
        namespace: &str,
        owner: &OwnerReference<'_>,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<FoundOwner, LookupError>> + Send;

    /// The object of an owner if it is in memory, else [`LookupError::NotInMemory`].
    fn owner_in_memory(
        &self,
        namespace: &str,
        owner: &OwnerReference<'_>,
    ) -> impl Future<Output = Result<FoundOwner, LookupError>> + Send;

    /// An object with its labels and annotations; `None` if it does not exist, or if objects of its kind
    /// are not looked up. What is found may be some seconds old, and may have another uid than the reference
    /// claims. The lookup should end before `deadline`.
    fn object(
        &self,
        namespace: &str,
        object: &OwnerReference<'_>,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<FoundObject, LookupError>> + Send;

    /// A ServiceAccount, as [`Lookups::object`].
    fn service_account(
        &self,
        namespace: &str,
        name: &str,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<FoundObject, LookupError>> + Send {
        async move {
            let account = OwnerReference::new(SERVICE_ACCOUNT, name, "");
            self.object(namespace, &account, deadline).await
        }
    }

    /// Learns what a configuration will read of namespaces. A source that keeps everything has nothing
    /// to learn.
    fn will_read(&self, _: &NamespaceReads) {}

    /// Whether an involved object exists; `true` if the source cannot answer that.
    fn has(&self, namespace: &str, kind: &str, name: &str) -> bool;
}

impl LookupError {
    /// Whether nothing is known about the object, as opposed to an answer of the API server.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        match self {
            Self::Timeout | Self::Failed(_) | Self::NotInMemory => true,
            Self::TooMany | Self::Rejected(_) => false,
        }
    }
}

// === impl Turn ===

impl Turn {
    /// Runs work where other reviews do not wait for it.
    ///
    /// # Panics
    /// When the work panics.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let (mut work, mut done) = (Some(work), None);
        // A trait object cannot take `FnOnce` by value: the first call takes the work out.
        self.granted.run(&mut || done = work.take().map(|work| work()));
        done.expect("work must have run")
    }

    /// How long the caller waits for the work.
    #[must_use]
    pub fn patience(&self) -> Arc<dyn Patience> {
        self.granted.patience()
    }
}

// === impl Metadata ===

impl Metadata {
    /// Neither labels nor annotations.
    #[must_use]
    pub fn none() -> Arc<Self> {
        static NONE: LazyLock<Arc<Metadata>> = LazyLock::new(Arc::default);
        Arc::clone(&NONE)
    }

    /// No labels, and these annotations.
    pub fn annotated(annotations: impl IntoIterator<Item = (String, String)>) -> Arc<Self> {
        let annotations = annotations.into_iter().collect();
        Arc::new(Self { annotations, ..Self::default() })
    }
}

// === impl OwnerObject ===

impl OwnerObject {
    /// The owner that controls the object.
    #[must_use]
    pub fn controller(&self) -> Option<&Reference> {
        self.owners.iter().find(|owner| owner.is_controller)
    }

    /// Whether the object has the claimed uid: the author of a pod may write any uid.
    #[must_use]
    pub fn has_claimed_uid(&self, reference: &OwnerReference<'_>) -> bool {
        self.object_uid.is_empty() || self.object_uid == *reference.owner_uid
    }
}
