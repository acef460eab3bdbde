//! Directs Prometheus to the agent, which merges the metrics of the proxy and of the application.

mod ports;
mod targets;

use injectd_gocompat::number::parse_bool;
use serde_json::{Value, json};

use super::{
    Facts, ProcessError, Warning,
    names::{MERGE_METRICS_ANNOTATION, PROMETHEUS_VARIABLE},
    tree::{annotation, annotations, annotations_mut, append_variable, sidecar_mut},
};
use crate::{go_json::go_json, release::Delta};
use targets::Target;

const SCRAPE: &str = "prometheus.io/scrape";
const PORT: &str = "prometheus.io/port";
const PATH: &str = "prometheus.io/path";
const TARGETS: &str = "prometheus.istio.io/scrape-targets";

/// Where the agent serves the merged metrics.
const MERGED_PATH: &str = "/stats/prometheus";

/// Istio: `applyPrometheusMerge`.
pub(super) fn merge(pod: &mut Value, facts: &Facts<'_>) -> Result<Option<Warning>, ProcessError> {
    let status_port = facts.status_port.to_string();
    let port = spelled(pod, PORT);
    if !is_wanted(pod, facts) || port == Some(&status_port) {
        return Ok(None);
    }
    let knows_targets = facts.release.has(Delta::ScrapeTargets);
    let asked = spelled(pod, TARGETS).filter(|_| knows_targets).unwrap_or_default();
    let (targets, mut warning) = match targets::parse(asked) {
        Ok(targets) => (targets, None),
        Err(entry) => (Vec::new(), Some(Warning::ScrapeTargets(entry.to_owned()))),
    };
    match ports::check(port.unwrap_or_default(), &targets, facts.status_port) {
        Err(error) if knows_targets => return Err(error),
        checked => warning = warning.or(checked.err().map(Warning::LaterValidation)),
    }
    let scrape = scraping(pod, &targets);
    if let (Some(scrape), Some(proxy)) = (scrape, sidecar_mut(pod)) {
        append_variable(proxy, PROMETHEUS_VARIABLE, &go_json(&scrape));
    }
    redirect(pod, status_port, knows_targets)?;
    Ok(warning)
}

fn is_wanted(pod: &Value, facts: &Facts<'_>) -> bool {
    let scrape = spelled(pod, SCRAPE).and_then(parse_bool).unwrap_or(true);
    let merge = annotation(pod, MERGE_METRICS_ANNOTATION).and_then(parse_bool);
    scrape && merge.unwrap_or(facts.prometheus_merge)
}

/// The agent's settings for scraping the application's metrics; `None` if the pod has none.
fn scraping(pod: &Value, targets: &[Target<'_>]) -> Option<Value> {
    let text = |key| spelled(pod, key).unwrap_or_default();
    let (port, path) = targets
        .first()
        .map_or_else(|| (text(PORT), text(PATH)), |target| (target.port, target.path));
    let scrape = text(SCRAPE);
    if scrape.is_empty() && path.is_empty() && port.is_empty() && targets.is_empty() {
        return None;
    }
    let mut scraping = json!({"scrape": scrape, "path": path, "port": port});
    if !targets.is_empty() {
        let target = |target: &Target<'_>| json!({"port": target.port, "path": target.path});
        scraping["targets"] = targets.iter().map(target).collect();
    }
    Some(scraping)
}

fn redirect(pod: &mut Value, port: String, knows_targets: bool) -> Result<(), ProcessError> {
    let annotations = annotations_mut(pod)?;
    let consumed = [SCRAPE, PORT, PATH].into_iter().chain(knows_targets.then_some(TARGETS));
    // Prometheus takes all these spellings for one: any that stayed could send it to the
    // application, past the agent.
    annotations.retain(|key, _| !consumed.clone().any(|consumed| same_label(key, consumed)));
    for (key, value) in [(PORT, port), (PATH, MERGED_PATH.into()), (SCRAPE, "true".into())] {
        annotations.insert(key.to_owned(), value.into());
    }
    Ok(())
}

/// The annotation of this name in any spelling: the exact one, else the lexically first. Upstream
/// takes a random one.
fn spelled<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    annotation(pod, key).or_else(|| {
        let spellings = annotations(pod)?.keys().filter(|other| same_label(other, key));
        annotation(pod, spellings.min()?)
    })
}

/// Whether two keys are the same with `_` instead of all but letters and digits of ASCII.
///
/// Prometheus: `strutil.SanitizeLabelName`.
pub(super) fn same_label(key: &str, other: &str) -> bool {
    let safe = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    key.chars().map(safe).eq(other.chars().map(safe))
}
