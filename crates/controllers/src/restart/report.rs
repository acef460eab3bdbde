//! The log lines and Kubernetes events of restarts.

use injectd_cluster::{Events, about, causes::with_causes};
use injectd_k8s::workload::Workload;
use kube::Client;
use tracing::{info, warn};

use super::{finding::Finding, restarter::Notice};

/// What to do about restarts that do not help.
const REMEDY: &str = "check that API servers reach the webhook; restarts go on when the webhooks or \
                      the configuration of the mesh change";

/// Writes log lines and events.
pub(super) struct Reporter {
    events: Events,
}

/// An event on a workload.
#[derive(Debug, PartialEq, Eq)]
struct Event<'a> {
    workload: &'a Workload,
    is_warning: bool,
    reason: &'static str,
    message: String,
}

impl Reporter {
    pub(super) fn new(client: Client) -> Self {
        Self { events: Events::new(client) }
    }

    /// Logs a notice, and writes its event, if it has one.
    pub(super) async fn report(&self, notice: &Notice) {
        log(notice);
        if let Some(event) = event(notice) {
            self.write(event).await;
        }
    }

    async fn write(&self, Event { workload, is_warning, reason, message }: Event<'_>) {
        let Workload { api_version, kind, namespace, name, uid } = workload;
        let object = about(api_version, kind, namespace, name, uid.as_deref());
        if let Err(error) = self.events.record(&object, is_warning, reason, &message).await {
            warn!(error = with_causes(&error), "cannot write an event of {workload}");
        }
    }
}

fn log(notice: &Notice) {
    match notice {
        Notice::Restarted(Finding { workload, reason, .. }) => {
            info!(reason, "restarted {workload}");
        }
        Notice::Waits(Finding { workload, reason, .. }, wait) => {
            info!(reason, "{workload} is not restarted: {wait}");
        }
        Notice::Gone(workload) => info!("the audit does not find {workload} any more"),
        Notice::Finished(it) => info!("the rollout of {} is finished", it.workload),
        Notice::Stuck(it) => {
            let why = it.stuck.as_deref().unwrap_or_default();
            let Workload { namespace, .. } = &it.workload;
            warn!(
                "restarts of {namespace} stopped: the rollout of {} is stuck: {why}",
                it.workload
            );
        }
        Notice::Stopped(_, namespaces) => {
            warn!("all restarts stopped: those in {namespaces} did not help; {REMEDY}");
        }
        Notice::Resumed => info!("restarts go on"),
        Notice::Failed(workload, error) => {
            warn!(error = with_causes(error), "cannot restart {workload}; it is tried again");
        }
    }
}

fn event(notice: &Notice) -> Option<Event<'_>> {
    let (workload, is_warning, reason, message) = match notice {
        Notice::Restarted(Finding { workload, reason, .. }) => {
            let message = match &**reason {
                "" => "Restarted its pods".to_owned(),
                reason => format!("Restarted its pods: {reason}"),
            };
            (workload, false, "InjectdRestarted", message)
        }
        Notice::Waits(Finding { workload, .. }, wait) if wait.concerns_owner() => {
            (workload, true, "InjectdRestartDelayed", format!("Its pods are not restarted: {wait}"))
        }
        Notice::Stuck(it) => {
            let why = it.stuck.as_deref().unwrap_or_default();
            let message = format!("injectd stopped restarts of the namespace: {why}");
            (&it.workload, true, "InjectdRestartStuck", message)
        }
        // Who reads the event of a workload may not know of other namespaces.
        Notice::Stopped(workload, _) => {
            let message = format!(
                "injectd stopped all restarts: this one and those in other namespaces did not \
                 help; {REMEDY}"
            );
            (workload, true, "InjectdRestartsStopped", message)
        }
        Notice::Waits(..)
        | Notice::Gone(_)
        | Notice::Finished(_)
        | Notice::Resumed
        | Notice::Failed(..) => return None,
    };
    Some(Event { workload, is_warning, reason, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::restart::{InFlight, Wait};

    fn finding() -> Finding {
        let json = r#"{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop",
            "name": "web", "reason": "1 pod has no sidecar"}"#;
        serde_json::from_str(json).expect("a finding")
    }

    fn event_of(notice: &Notice) -> Option<(bool, &'static str, String)> {
        event(notice).map(|event| (event.is_warning, event.reason, event.message))
    }

    #[test]
    fn owners_get_events_about_what_they_can_change() {
        let restarted = event_of(&Notice::Restarted(finding()));
        let message = "Restarted its pods: 1 pod has no sidecar".to_owned();
        assert_eq!(restarted, Some((false, "InjectdRestarted", message)));
        let budget = Wait::Budget { budget: "web".into() };
        let delayed = event_of(&Notice::Waits(finding(), budget));
        let message =
            "Its pods are not restarted: the PodDisruptionBudget web allows no disruption";
        assert_eq!(delayed, Some((true, "InjectdRestartDelayed", message.to_owned())));
        for wait in [Wait::DryRun, Wait::Others { count: 2 }, Wait::Window { next: None }] {
            assert_eq!(event_of(&Notice::Waits(finding(), wait)), None);
        }
    }

    #[test]
    fn a_stuck_rollout_is_a_warning() {
        let since = jiff::Timestamp::now();
        let mut it = InFlight::new(finding().workload, since);
        it.stuck = Some("it is not finished after 600s".into());
        let message = "injectd stopped restarts of the namespace: it is not finished after 600s";
        let expected = Some((true, "InjectdRestartStuck", message.to_owned()));
        assert_eq!(event_of(&Notice::Stuck(it)), expected);
    }
}
