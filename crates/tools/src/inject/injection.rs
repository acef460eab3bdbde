//! What injection makes of each object.

use injectd_command::CommandError;
use injectd_core::{
    linkerd::{annotations::Annotation, uninject},
    object::Kind,
    outcome::Verdict,
};
use injectd_explain::completion;
use serde_json::Value;

use super::{
    INJECT, pods,
    review::{Reviewed, Reviewer, apply},
    settings::Setting,
};
use crate::manifests::{Action, Edited, Entry};

/// How the command changes objects.
pub(super) struct Injection<'a> {
    pub(super) reviewer: Reviewer<'a>,
    pub(super) settings: Vec<Setting>,
    pub(super) annotate: bool,
    pub(super) ingress: bool,
    /// Whether pods keep the annotation `linkerd.io/inject` that they get from their namespace. The
    /// one of namespaces that are not known is ours.
    pub(super) keeps_inject: bool,
}

/// Why an object is not injected.
enum Failure {
    /// It cannot be used.
    Rejected(String),
    /// Nothing can go on.
    Command(CommandError),
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

impl From<String> for Failure {
    fn from(problem: String) -> Self {
        Self::Rejected(problem)
    }
}

impl Injection<'_> {
    /// What injection makes of an object of this kind.
    pub(super) fn edit(&self, object: &Value, name: &str) -> Result<Edited, CommandError> {
        let kind = pods::kind_of(object, name);
        let entry = Entry::of(object, name, Action::Unchanged);
        let edited = match kind {
            Kind::Other => Ok(Edited { object: None, entry: pods::without_injector(object, name) }),
            kind => {
                pods::must_be_readable(object).map_err(Failure::Rejected).and_then(
                    |()| match kind {
                        Kind::Namespace => Ok(self.namespace(object, entry)),
                        Kind::Service => self.service(object, entry),
                        kind => self.pods(object, kind, entry),
                    },
                )
            }
        };
        let mut edited = match edited {
            Ok(edited) => edited,
            Err(Failure::Command(error)) => return Err(error),
            Err(Failure::Rejected(problem)) => {
                let entry = Entry::of(object, name, Action::Rejected).because(problem);
                Edited { object: None, entry }
            }
        };
        if matches!(kind, Kind::Pod | Kind::Workload(_) | Kind::CronJob) {
            edited.entry.has_pods = true;
            edited.entry.warnings.extend(pods::udp_warnings(object, kind));
            edited.warn_of_invalid_pods(kind.path_prefix());
        }
        Ok(edited)
    }

    fn namespace(&self, object: &Value, entry: Entry) -> Edited {
        if !self.annotate {
            return Edited { object: None, entry };
        }
        if pods::annotation(object, "", INJECT) == Some("disabled") {
            let reason = "the namespace has the annotation \"linkerd.io/inject: disabled\"";
            let entry = Entry { action: Action::Skipped, ..entry }.because(reason);
            return Edited { object: None, entry };
        }
        let mut annotated = object.clone();
        pods::annotate(&mut annotated, "", INJECT, self.inject_value());
        for setting in self.settings.iter().filter(|setting| setting.on_namespaces) {
            pods::annotate(&mut annotated, "", setting.annotation.key(), &setting.value);
        }
        annotated_entry(object, annotated, entry)
    }

    /// With --opaque-ports, a Service gets the annotation; else what the webhook gives it.
    fn service(&self, object: &Value, entry: Entry) -> Result<Edited, Failure> {
        let mut annotated = object.clone();
        let opaque =
            self.settings.iter().find(|setting| setting.annotation == Annotation::OpaquePorts);
        if let Some(setting) = opaque {
            pods::annotate(&mut annotated, "", setting.annotation.key(), &setting.value);
        } else if !self.annotate {
            apply(&mut annotated, &self.reviewer.review(object, Kind::Service)??.patch)?;
        }
        Ok(annotated_entry(object, annotated, entry))
    }

    fn pods(&self, object: &Value, kind: Kind, entry: Entry) -> Result<Edited, Failure> {
        if self.annotate && uninject::is_control_plane(object, kind) {
            let problem = "a component of Linkerd's control plane; inject it with --manual";
            return Err(problem.to_owned().into());
        }
        let prefix = kind.path_prefix();
        let mut injected = object.clone();
        // First, as the webhook skips a pod with a sidecar: a manifest that was injected before is
        // injected anew.
        let inject = self.without_sidecar(&mut injected, kind);
        if self.annotate {
            // Whatever the namespace says.
            self.enable(&mut injected, prefix);
        } else {
            self.write_settings(&mut injected, prefix);
        }
        let reviewed = self.reviewer.review(&injected, kind)??;
        if reviewed.verdict != Verdict::Injected {
            return self.skip(object, kind, reviewed, entry);
        }
        pods::must_have_spec(object, prefix)?;
        let mut warnings = reviewed.warnings;
        if self.annotate {
            self.write_settings(&mut injected, prefix);
        } else {
            // The clone is for a warning about pods that end, Jobs for the most part; others are
            // not cloned.
            let before = injected.pointer(prefix).filter(|pod| completion::ends(pod)).cloned();
            apply(&mut injected, &reviewed.patch)?;
            if !(self.keeps_inject || self.ingress) {
                pods::restore(&mut injected, prefix, INJECT, inject);
            }
            if let (Some(before), Some(after)) = (before, injected.pointer(prefix)) {
                let mesh = self.reviewer.injector.mesh();
                warnings.extend(completion::warning(&before, after, &*mesh));
            }
        }
        let action = if self.annotate { Action::Annotated } else { Action::Injected };
        let entry = Entry { action, warnings, ..entry };
        Ok(Edited { object: Some(injected), entry })
    }

    /// The webhook gives a pod that it skips at most the annotation for opaque ports.
    fn skip(
        &self,
        object: &Value,
        kind: Kind,
        reviewed: Reviewed,
        entry: Entry,
    ) -> Result<Edited, Failure> {
        let entry = Entry {
            action: Action::Skipped,
            reasons: reviewed.reasons,
            warnings: reviewed.warnings,
            ..entry
        };
        let entry = entry.because(reviewed.reasons_in_words);
        let mut annotated = object.clone();
        pods::ensure_metadata(&mut annotated);
        let patch = self.reviewer.review(&annotated, kind)??.patch;
        let is_annotated = !self.annotate && !patch.0.is_empty();
        apply(&mut annotated, &patch)?;
        Ok(Edited { object: is_annotated.then_some(annotated), entry })
    }

    /// Removes an earlier injection. The answer is the author's annotation `linkerd.io/inject`.
    fn without_sidecar(&self, object: &mut Value, kind: Kind) -> Option<String> {
        let prefix = kind.path_prefix();
        let inject = pods::annotation(object, prefix, INJECT).map(str::to_owned);
        if uninject::has_sidecar(object, kind) {
            uninject::uninject(&self.reviewer.injector.mesh(), object, kind);
            pods::restore(object, prefix, INJECT, inject.clone());
        }
        pods::ensure_metadata(object);
        inject
    }

    /// Writes the annotations of the flags.
    fn write_settings(&self, object: &mut Value, prefix: &str) {
        for setting in &self.settings {
            pods::annotate(object, prefix, setting.annotation.key(), &setting.value);
        }
        if self.ingress && pods::annotation(object, prefix, INJECT) != Some("disabled") {
            pods::annotate(object, prefix, INJECT, "ingress");
        }
    }

    /// Asks for injection, unless the author opted out or chose the mode.
    fn enable(&self, object: &mut Value, prefix: &str) {
        if matches!(pods::annotation(object, prefix, INJECT), None | Some("")) {
            pods::annotate(object, prefix, INJECT, self.inject_value());
        }
    }

    fn inject_value(&self) -> &'static str {
        if self.ingress { "ingress" } else { "enabled" }
    }
}

fn annotated_entry(object: &Value, annotated: Value, entry: Entry) -> Edited {
    if annotated == *object {
        return Edited { object: None, entry };
    }
    Edited { object: Some(annotated), entry: Entry { action: Action::Annotated, ..entry } }
}
