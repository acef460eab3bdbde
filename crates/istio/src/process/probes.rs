//! Directs probes to the agent, which the kubelet reaches without a certificate, and hands the
//! original probes to the agent.

mod dump;
mod handlers;
mod probers;
mod redirect;

use injectd_gocompat::number::parse_bool;
use serde_json::Value;

use super::{
    Facts, Warning,
    names::{REWRITE_PROBES_ANNOTATION, STATUS_ANNOTATION, STATUS_PORT_ANNOTATION},
    tree::{annotation, sidecar, sidecar_mut},
};

/// Istio: `applyRewrite` and `app_probe.go`.
pub(super) fn rewrite(pod: &mut Value, facts: &Facts<'_>) -> Vec<Warning> {
    let asked = annotation(pod, REWRITE_PROBES_ANNOTATION).and_then(parse_bool);
    if sidecar(pod).is_none() || !asked.unwrap_or(facts.rewrite_probes) {
        return Vec::new();
    }
    let (found, mut warnings) = dump::dump(pod, facts);
    let is_injected = annotation(pod, STATUS_ANNOTATION).is_some();
    if let (false, Some(proxy)) = (found.is_empty(), sidecar_mut(pod)) {
        probers::hand_over(proxy, found, is_injected, facts.release);
    }
    let port = status_port(pod, facts.status_port);
    if redirect::redirect(pod, port, facts.release) && port == 0 {
        warnings.push(Warning::NoStatusPort);
    }
    warnings
}

/// The port that the rewritten probes call. One that is not an integer is 0.
fn status_port(pod: &Value, default: i32) -> i32 {
    let digits = annotation(pod, STATUS_PORT_ANNOTATION);
    digits.map_or(default, |digits| digits.parse().unwrap_or_default())
}
