//! Istio's sidecar injection, as `docs/istio` describes it: configuration, decision, and what comes
//! before and after the templates.
//!
//! Not the templates' language (`injectd-gotemplate`) and not the merge (`injectd-merge`).

pub mod pod;
pub mod release;
