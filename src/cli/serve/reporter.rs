//! Reports the configurations of a server: the releases of its meshes, and where they come from.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use injectd_cluster::causes::with_causes;
use injectd_command::config::unknown_release;
use injectd_istio::mesh::Istio;
use injectd_profiles::DEFAULT_REVISION;
use injectd_telemetry::metrics::Registry;
use injectd_templates_mesh::Templates;
use tracing::{info, warn};

use crate::{admin::ReadyTexts, linkerd::snapshot::Snapshot, mesh::Mesh as _, observer::LogStyle};

/// The metric with the release of a mesh.
const CONFIG_INFO: &str = "injectd_config_info";

/// Reports each applied configuration in the log, the metrics and the text of `/ready`.
#[derive(Clone)]
pub(super) struct Reporter {
    pub(super) registry: Arc<Registry>,
    pub(super) log_style: LogStyle,
    /// The bodies of `/ready`.
    pub(super) ready_texts: Arc<ReadyTexts>,
    in_use: Arc<Mutex<InUse>>,
}

/// The releases in use, for `/ready`.
#[derive(Default)]
struct InUse {
    linkerd: Option<String>,
    /// By revision.
    istio: BTreeMap<String, String>,
    /// How many sidecar templates.
    templates: Option<usize>,
}

impl Reporter {
    pub(super) fn new(registry: Arc<Registry>, log_style: LogStyle) -> Self {
        Self { registry, log_style, ready_texts: Arc::default(), in_use: Arc::default() }
    }

    #[expect(clippy::cast_precision_loss, reason = "configurations are few")]
    pub(super) fn report(&self, snapshot: &Snapshot) {
        let (choice, generation) = (&snapshot.release_choice, snapshot.configuration.generation);
        let (release, version) = (choice.release.to_string(), &*choice.version);
        let (source, unknown) = (choice.source.as_str(), unknown_release(choice));
        info!(generation, release, source, version, "configuration applied");
        if let Some(warning) = &unknown {
            // `&str` is recorded without formatting.
            warn!(message = &**warning, release, source, version);
        }
        if let Some(advice) = choice.advice() {
            warn!(message = advice, release, source, version);
        }
        if self.log_style == LogStyle::Line {
            let remark =
                if unknown.is_some() { "unknown release, injecting as" } else { "release" };
            self.update(|in_use| in_use.linkerd = Some(format!("{remark} {release}")));
        }
        let registry = &self.registry;
        registry.set("injectd_config_generation", &[], generation as f64);
        registry.set("injectd_release_unknown", &[], f64::from(u8::from(unknown.is_some())));
        let labels = [
            ("linkerd_release", release),
            ("linkerd_version", version.to_owned()),
            ("source", source.to_owned()),
        ];
        registry.set_info(CONFIG_INFO, "linkerd", Some(&labels.into()));
    }

    /// Reports a configuration of a revision of Istio.
    #[expect(clippy::cast_precision_loss, reason = "configurations are few")]
    pub(super) fn report_istio(&self, revision: &str, mesh: &Istio) {
        let (generation, release) =
            (mesh.configuration().generation, &mesh.configuration().release);
        info!(generation, release = &**release, revision, "configuration applied");
        self.update(|in_use| _ = in_use.istio.insert(revision.to_owned(), release.clone()));
        let labels = [("revision", revision.to_owned())];
        self.registry.set("injectd_config_generation", &labels, generation as f64);
        let [label] = labels;
        let labels = [("istio_release", release.clone()), label];
        self.registry.set_info(CONFIG_INFO, &subject(revision), Some(&labels.into()));
        report_leaks(revision.to_owned(), mesh.find_leaks());
    }

    /// Reports sidecar templates.
    #[expect(clippy::cast_precision_loss, reason = "configurations and templates are few")]
    pub(super) fn report_templates(&self, mesh: &Templates) {
        let (generation, templates) = (mesh.configuration().generation, mesh.templates().len());
        info!(generation, templates, "configuration applied");
        self.update(|in_use| in_use.templates = Some(templates));
        let labels = [("mesh", Templates::NAME.to_owned())];
        self.registry.set("injectd_config_generation", &labels, generation as f64);
        self.registry.set("injectd_templates", &[], templates as f64);
    }

    /// Reports that a revision of Istio is not served any more.
    pub(super) fn report_removed(&self, revision: &str) {
        info!(revision, "the revision is not served any more: its ConfigMap was deleted");
        self.update(|in_use| _ = in_use.istio.remove(revision));
        self.registry.set_info(CONFIG_INFO, &subject(revision), None);
    }

    /// Reports what the process waits for before it is ready.
    pub(super) fn report_waiting(&self, reason: Option<&str>) {
        if let Some(reason) = reason {
            info!(reason = reason.replace('\n', "; "), "not ready");
        }
        let reason = reason.map(|reason| format!("{reason}\n")).unwrap_or_default();
        self.ready_texts.not_ready.store(Arc::new(format!("not ready\n{reason}")));
    }

    fn update(&self, change: impl FnOnce(&mut InUse)) {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut in_use);
        self.ready_texts.ready.store(Arc::new(format!("ok\n{}", in_use.in_words())));
    }
}

/// A revision as the subject of an info metric.
fn subject(revision: &str) -> String {
    format!("{}/{revision}", Istio::NAME)
}

impl InUse {
    /// One line per mesh and revision. The revision `default` alone is not named.
    fn in_words(&self) -> String {
        let is_plain = self.istio.len() == 1;
        let linkerd = self.linkerd.iter().map(|release| format!("{release}\n"));
        let istio = self.istio.iter().map(|(revision, release)| match revision.as_str() {
            DEFAULT_REVISION if is_plain => format!("Istio {release}\n"),
            revision => format!("Istio {release}, revision {revision}\n"),
        });
        let templates = self.templates.iter().map(|count| format!("sidecar templates: {count}\n"));
        linkerd.chain(istio).chain(templates).collect()
    }
}

/// Logs which annotations reach YAML unquoted. Neither the start nor a reload waits for it, and the
/// configurations are looked at one after the other.
fn report_leaks(revision: String, find: impl FnOnce() -> Vec<String> + Send + 'static) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let report = move || {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        for leak in find() {
            warn!(revision, "{leak}");
        }
    };
    if let Err(error) = thread::Builder::new().name("taint-check".to_owned()).spawn(report) {
        warn!("what can leave its scalar in templates is not looked at: {}", with_causes(&error));
    }
}
