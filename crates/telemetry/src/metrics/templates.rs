//! What became of the pods of each sidecar template.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use injectd_core::outcome::{TemplateDecision, TemplateResult};
use metrics::{Counter, counter};

use super::Registry;
use crate::recent_errors::RecentErrors;

/// Maximum number of templates that are counted by name; pods of further ones are counted together.
// Each name is several series for the life of the process, and users choose names. As many
// templates of a cluster are served at once.
const MAX_TEMPLATES: usize = 1_000;
/// The name of these.
const OTHERS: &str = "(others)";

/// Counters of a template, in the order of [`TemplateResult::COUNTED`].
type Counters = [Counter; TemplateResult::COUNTED.len()];

/// Counts pods by template and result, and keeps the errors of the last hour.
#[derive(Debug)]
pub struct TemplateMetrics {
    registry: Arc<Registry>,
    /// By the name of the template.
    known: RwLock<HashMap<String, Counters>>,
    errors: Arc<RecentErrors>,
}

impl TemplateMetrics {
    /// Counts no pod yet.
    #[must_use]
    pub fn new(registry: &Arc<Registry>, errors: Arc<RecentErrors>) -> Self {
        Self { registry: Arc::clone(registry), known: RwLock::default(), errors }
    }

    /// Counts what became of the templates of a pod.
    pub fn record(&self, decisions: &[TemplateDecision]) {
        for TemplateDecision { template, result, failed_at, .. } in decisions {
            if let Some(field) = failed_at {
                self.errors.record(template, field);
            }
            if let Some(index) = TemplateResult::COUNTED.iter().position(|other| other == result) {
                self.count(template, index);
            }
        }
    }

    fn count(&self, template: &str, index: usize) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        // There are others only if there are too many templates.
        if let Some(counters) = known.get(template).or_else(|| known.get(OTHERS)) {
            return counters[index].increment(1);
        }
        // A thread that asks for the write lock while it holds the read lock waits for itself.
        // Another thread may have added the template in between, hence the entry.
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let name = if known.len() < MAX_TEMPLATES { template } else { OTHERS };
        let counters = known.entry(name.to_owned()).or_insert_with(|| {
            let counter = |result: TemplateResult| {
                let labels =
                    [("template", name.to_owned()), ("result", result.as_str().to_owned())];
                counter!("injectd_template_pods_total", &labels)
            };
            self.registry.register(|| TemplateResult::COUNTED.map(counter))
        });
        counters[index].increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_over_the_limit_are_counted_together() {
        let registry = Arc::new(Registry::new());
        let metrics = TemplateMetrics::new(&registry, Arc::default());
        let decision = |number: usize| TemplateDecision {
            template: number.to_string(),
            result: TemplateResult::Injected,
            text: String::new(),
            failed_at: None,
        };
        let decisions: Vec<_> = (0..2 * MAX_TEMPLATES).map(decision).collect();
        metrics.record(&decisions);
        metrics.record(&decisions);
        assert_eq!(metrics.known.read().expect("no panic").len(), MAX_TEMPLATES + 1);
        let text = registry.exporter().render();
        let counted = |name: &str, count: usize| {
            let labels = format!("template=\"{name}\",result=\"injected\"");
            text.contains(&format!("injectd_template_pods_total{{{labels}}} {count}\n"))
        };
        assert!(counted("1", 2) && counted(OTHERS, 2 * MAX_TEMPLATES), "{text}");
    }

    #[test]
    fn templates_that_are_not_for_a_pod_are_not_counted() {
        let metrics = TemplateMetrics::new(&Arc::default(), Arc::default());
        let decision = TemplateDecision {
            template: "a".to_owned(),
            result: TemplateResult::Unmatched,
            text: String::new(),
            failed_at: None,
        };
        metrics.record(&[decision]);
        assert!(metrics.known.read().expect("no panic").is_empty());
    }
}
