//! The mixes of reviews that the load tests send, and what each answer must contain.

use super::{
    TYPICAL, annotated_with, of_many_containers, review_of, service, typical, with_override,
};

const INJECTED: &[&str] = &[r#""allowed":true"#, r#""verdict":"injected""#, r#""patch":""#];
const ANNOTATED: &[&str] = &[r#""allowed":true"#, r#""verdict":"annotated""#, r#""patch":""#];
const SKIPPED: &[&str] = &[r#""allowed":true"#, r#""verdict":"skipped""#];
const DENIED: &[&str] = &[r#""allowed":false"#, r#""verdict":"denied""#, "runAsRoot"];

/// A review of a mix.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The name of the review.
    pub name: &'static str,
    /// Its share of the mix.
    pub percent: u64,
    /// The path of the webhook.
    pub path: &'static str,
    /// Texts that each answer must contain.
    pub contains: &'static [&'static str],
    /// Makes the review.
    pub body: fn() -> Vec<u8>,
}

/// Reviews for Linkerd's webhook.
pub const MIX: [Sent; 6] = [
    sent("typical", 60, INJECTED, || TYPICAL.into()),
    sent("small", 20, INJECTED, || review_of("3k")),
    sent("skipped", 8, SKIPPED, || annotated_with("linkerd.io/inject", "disabled")),
    sent("annotated", 6, ANNOTATED, service),
    sent("large", 3, INJECTED, || review_of("68k")),
    // Needs root, which the default values do not allow.
    sent("denied", 3, DENIED, || with_override("config.linkerd.io/close-wait-timeout", "30s")),
];

/// Reviews for Istio's webhook.
pub const ISTIO_MIX: [Sent; 5] = [
    sent("istio-typical", 55, INJECTED, || TYPICAL.into()).to("/inject"),
    sent("istio-small", 20, INJECTED, || review_of("3k")).to("/inject"),
    sent("istio-unlike", 10, INJECTED, || unlike("sidecar.istio.io/statsInclusionPrefixes"))
        .to("/inject"),
    sent("istio-skipped", 10, SKIPPED, || annotated_with("sidecar.istio.io/inject", "false"))
        .to("/inject"),
    sent("istio-large", 5, INJECTED, of_many_containers).to("/inject"),
];

/// Reviews for the webhook of sidecar templates, which serves `crates/templates-mesh/benches/ten.yaml`.
pub const TEMPLATES_MIX: [Sent; 5] = [
    sent("templates-typical", 55, INJECTED, || TYPICAL.into()).to("/templates"),
    sent("templates-small", 20, INJECTED, || review_of("3k")).to("/templates"),
    sent("templates-unlike", 10, INJECTED, || unlike("agent.example.com/unlike")).to("/templates"),
    sent("templates-skipped", 10, SKIPPED, || {
        annotated_with("agent.example.com/inject", "disabled")
    })
    .to("/templates"),
    sent("templates-large", 5, INJECTED, of_many_containers).to("/templates"),
];

const fn sent(
    name: &'static str,
    percent: u64,
    contains: &'static [&'static str],
    body: fn() -> Vec<u8>,
) -> Sent {
    Sent { name, percent, path: "/", contains, body }
}

impl Sent {
    const fn to(self, path: &'static str) -> Self {
        Self { path, ..self }
    }
}

/// A pod with the uid of its review in this annotation, which no other has once each review has a uid of
/// its own.
fn unlike(key: &str) -> Vec<u8> {
    let uid = &typical()["request"]["uid"];
    annotated_with(key, uid.as_str().unwrap_or_default())
}
