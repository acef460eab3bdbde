//! The flags of `--mesh istio`: which webhooks there are, and what the policy cannot read.

use injectd_istio::release::{Delta, Release};
use injectd_profiles::DEFAULT_REVISION;

use super::{Check, CommandError, Named, Rules, must_be_object_name, selector};

mod cel;

pub(super) use self::cel::rules;

/// What `--mesh istio` needs.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of --mesh istio")]
pub(super) struct IstioArgs {
    /// Revisions and tags that have a webhook, with commas between; default is the revision without a
    /// name [default: every revision that a label names]
    #[arg(long, value_name = "REVISIONS", value_delimiter = ',')]
    revision: Vec<String>,
    /// Release of Istio, such as 1.24.6; up to 1.26 other values of sidecar.istio.io/inject are valid
    /// [default: the newest]
    #[arg(long, value_name = "RELEASE")]
    istio_release: Option<String>,
    /// The webhook has enableNamespacesByDefault: pods of namespaces without Istio's labels are
    /// injected
    #[arg(long)]
    enable_namespaces_by_default: bool,
    /// The key policy of the ConfigMap istio-sidecar-injector [default: enabled]
    #[arg(long, value_name = "POLICY")]
    injector_policy: Option<InjectorPolicy>,
    /// Selector of neverInjectSelector of the same ConfigMap, as kubectl -l reads it; may be repeated
    #[arg(long, value_name = "SELECTOR")]
    never_inject_selector: Vec<String>,
    /// Selector of alwaysInjectSelector of the same ConfigMap; may be repeated
    #[arg(long, value_name = "SELECTOR")]
    always_inject_selector: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum InjectorPolicy {
    Enabled,
    Disabled,
}

// === impl IstioArgs ===

impl IstioArgs {
    /// These flags, and whether they are set.
    pub(super) fn set(&self) -> [(&'static str, bool); 6] {
        [
            ("--revision", !self.revision.is_empty()),
            ("--istio-release", self.istio_release.is_some()),
            ("--enable-namespaces-by-default", self.enable_namespaces_by_default),
            ("--injector-policy", self.injector_policy.is_some()),
            ("--never-inject-selector", !self.never_inject_selector.is_empty()),
            ("--always-inject-selector", !self.always_inject_selector.is_empty()),
        ]
    }

    fn check(&self) -> Result<(), CommandError> {
        for revision in &self.revision {
            must_be_object_name("--revision", revision)?;
        }
        let problem = if self.enable_namespaces_by_default && !self.has_default() {
            "--enable-namespaces-by-default needs the revision default in --revision"
        } else if !self.always_inject_selector.is_empty() && !self.is_disabled() {
            "--always-inject-selector needs --injector-policy disabled: every pod is injected without"
        } else {
            return Ok(());
        };
        Err(CommandError::Usage(problem.to_owned()))
    }

    /// Whether `sidecar.istio.io/inject` has the values of releases up to 1.26.
    fn has_old_values(&self) -> Result<bool, CommandError> {
        let Some(text) = &self.istio_release else { return Ok(false) };
        match Release::parse(text).filter(|release| *release >= Release::OLDEST) {
            Some(release) => Ok(!release.has(Delta::StrictInject)),
            None => Err(CommandError::Usage(format!(
                "--istio-release {text}: unknown release; expected one from {} on, such as 1.24.6",
                Release::OLDEST
            ))),
        }
    }

    /// Whether the webhooks of the revision `default` are there.
    fn has_default(&self) -> bool {
        self.revision.is_empty()
            || self.revision.iter().any(|revision| revision == DEFAULT_REVISION)
    }

    fn is_disabled(&self) -> bool {
        self.injector_policy == Some(InjectorPolicy::Disabled)
    }
}
