//! A Kubernetes cluster: the client, and caches of objects.
//!
//! Namespaces and the objects that Istio reads are watched; owners and service accounts are looked up when a pod
//! names them. Each module uses only modules below it.
//!
//! Not for decisions about reviews.

pub mod sources;

mod known_objects;
mod namespaces;
mod owners;
mod tokens;

pub mod lease;
pub mod watch;

pub mod objects;

mod event_queue;
mod events;
mod pages;
mod repeated;
mod service;

mod merged;

mod client;

pub mod causes;
pub mod digest;
pub mod files;

pub use client::{ClientError, ClientOptions, LookupLimits, Unanswered, client, creator};
pub use event_queue::EventQueue;
pub use events::{Events, WriteError, about, now};
pub use known_objects::KnownObjects;
pub use namespaces::WatchedNamespaces;
pub use owners::Owners;
pub use pages::Pages;
pub use service::Service;
pub use tokens::Tokens;
