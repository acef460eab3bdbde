//! Where the probes and lifecycle handlers of a container are.

use serde_json::{Map, Value};

use super::super::{
    names::PROXY,
    tree::{CONTAINERS, INIT_CONTAINERS, name},
};
use crate::release::{Delta, Release};

/// The lists of containers in the order of the dump, of which later entries win.
pub(super) const LISTS: [&str; 2] = [INIT_CONTAINERS, CONTAINERS];

/// A probe or a lifecycle handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The fields that lead to it.
    fields: &'static [&'static str],
    /// The last part of its path at the agent.
    suffix: &'static str,
}

const READINESS: Place = Place { fields: &["readinessProbe"], suffix: "readyz" };
const LIVENESS: Place = Place { fields: &["livenessProbe"], suffix: "livez" };
const STARTUP: Place = Place { fields: &["startupProbe"], suffix: "startupz" };
const PRE_STOP: Place = Place { fields: &["lifecycle", "preStop"], suffix: "prestopz" };
const POST_START: Place = Place { fields: &["lifecycle", "postStart"], suffix: "poststartz" };

/// The places that a release rewrites.
pub(super) fn places(release: Release) -> &'static [Place] {
    if release.has(Delta::HandlerProbes) {
        &[READINESS, LIVENESS, STARTUP, PRE_STOP, POST_START]
    } else {
        &[READINESS, LIVENESS, STARTUP]
    }
}

/// Whether the container is the application's.
pub(super) fn is_rewritten(container: &Value) -> bool {
    name(container) != PROXY
}

impl Place {
    /// A lifecycle handler has neither grpc nor a timeout.
    pub(super) fn is_probe(self) -> bool {
        self.fields.len() == 1
    }

    /// The path at the agent.
    ///
    /// Istio: `FormatProberURL`.
    pub(super) fn path(self, container: &str) -> String {
        let kind = if self.is_probe() { "app-health" } else { "app-lifecycle" };
        format!("/{kind}/{container}/{}", self.suffix)
    }

    /// The probe or handler of a container.
    pub(super) fn of(self, container: &Value) -> Option<&Map<String, Value>> {
        let found = self.fields.iter().try_fold(container, |inside, field| inside.get(field));
        found.and_then(Value::as_object)
    }

    /// The probe or handler of a container.
    pub(super) fn of_mut(self, container: &mut Value) -> Option<&mut Map<String, Value>> {
        let found = self.fields.iter().try_fold(container, |inside, field| inside.get_mut(field));
        found.and_then(Value::as_object_mut)
    }

    /// The action that is rewritten; `None` if there is none, or only a command.
    pub(super) fn action(
        self,
        probe: &Map<String, Value>,
    ) -> Option<(Action, &Map<String, Value>)> {
        let actions: &[_] = if self.is_probe() {
            &[Action::Http, Action::Tcp, Action::Grpc]
        } else {
            &[Action::Http, Action::Tcp]
        };
        actions.iter().find_map(|kind| Some((*kind, probe.get(kind.field())?.as_object()?)))
    }
}

/// What a probe does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Http,
    Tcp,
    Grpc,
}

impl Action {
    /// The field that holds the details.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Http => "httpGet",
            Self::Tcp => "tcpSocket",
            Self::Grpc => "grpc",
        }
    }
}
