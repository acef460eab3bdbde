//! Which admission webhooks an API server calls for a request, in which order, and what their failure
//! means.
//!
//! The rules are those of Kubernetes 1.36 (`k8s.io/apiserver/pkg/admission/plugin/webhook`). What is
//! compiled once per configuration: selectors and conditions. Not for the calls themselves.

#![expect(clippy::disallowed_types, reason = "objects of a cluster have any shape")]

pub mod check;
pub mod injectors;

mod conditions;
mod configuration;
mod equivalents;
mod product;
mod request;
mod rules;
mod selector;
mod step;
mod walk;

pub use conditions::{Condition, Evaluation};
pub use configuration::{Configurations, FailurePolicy, InvalidConfiguration, Plugin, Webhook};
pub use injectd_k8s::{object::Labels, selector::Selector};
pub use request::{Operation, Request, Resource};
pub use step::{Reason, Step, Verdict};

#[cfg(test)]
mod tests;
