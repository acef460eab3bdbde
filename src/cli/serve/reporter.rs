//! Reports the configuration of a server: the release of its mesh, and where it comes from.

use std::sync::Arc;

use arc_swap::ArcSwap;
use injectd_istio::mesh::Istio;
use tracing::{info, warn};

use super::super::config::unknown_release;
use crate::{linkerd::snapshot::Snapshot, mesh::Mesh as _, metrics::Registry, observer::LogStyle};

/// Reports each applied configuration in the log, the metrics and the text of `/ready`.
#[derive(Clone)]
pub(super) struct Reporter {
    pub(super) registry: Arc<Registry>,
    pub(super) log_style: LogStyle,
    /// The body of `/ready`.
    pub(super) ready_text: Arc<ArcSwap<String>>,
}

impl Reporter {
    pub(super) fn new(registry: Arc<Registry>, log_style: LogStyle) -> Self {
        Self { registry, log_style, ready_text: Arc::new(ArcSwap::from_pointee("ok\n".to_owned())) }
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
        if self.log_style == LogStyle::Line {
            let remark =
                if unknown.is_some() { "unknown release, injecting as" } else { "release" };
            self.ready_text.store(Arc::new(format!("ok\n{remark} {release}\n")));
        }
        let registry = &self.registry;
        registry.set("injectd_config_generation", &[], generation as f64);
        registry.set("injectd_release_unknown", &[], f64::from(u8::from(unknown.is_some())));
        let labels = [
            ("linkerd_release", release),
            ("linkerd_version", version.to_owned()),
            ("source", source.to_owned()),
        ];
        registry.set_info("injectd_config_info", &labels.into());
    }

    /// Reports a configuration of Istio.
    #[expect(clippy::cast_precision_loss, reason = "configurations are few")]
    pub(super) fn report_istio(&self, mesh: &Istio) {
        let (generation, release) =
            (mesh.configuration().generation, &mesh.configuration().release);
        info!(generation, release = &**release, "configuration applied");
        self.ready_text.store(Arc::new(format!("ok\nIstio {release}\n")));
        self.registry.set("injectd_config_generation", &[], generation as f64);
        let labels = [("istio_release", release.clone())];
        self.registry.set_info("injectd_config_info", &labels.into());
    }
}
