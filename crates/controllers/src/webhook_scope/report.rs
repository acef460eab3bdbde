//! Log lines and events about the webhook's scope.

use injectd_cluster::{EventQueue, Events, Service, about};
use tracing::{info, warn};

use super::{
    author::Author,
    memory::Wanted,
    selected::Selected,
    state::{Outcome, Standing, Why},
};

/// Writes log lines, and queues events on the Service.
pub(super) struct Reporter {
    /// Name of the configuration.
    configuration: String,
    events: EventQueue,
    standing: Standing,
    /// The last problem, to log it once.
    problem: Option<String>,
}

impl Reporter {
    /// A reporter, and the task that writes its events: no step waits for that.
    pub(super) fn new(
        events: Events,
        service: &Service,
        configuration: &str,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let object = about("v1", "Service", &service.namespace, &service.name, None);
        let (events, written) = EventQueue::new(events, object);
        let configuration = configuration.to_owned();
        let reporter = Self { configuration, events, standing: Standing::Unknown, problem: None };
        (reporter, written)
    }

    /// A write of the configuration.
    pub(super) fn wrote(&mut self, why: &Why, wanted: &Wanted) {
        let name = &self.configuration;
        let selects = match &*wanted.all_pods {
            [] if wanted.entries == [Selected::nothing()] => {
                "no pods: no template is served".to_owned()
            }
            [] => format!("the pods of all templates, in {} entries", wanted.entries.len()),
            why => format!("all pods, because {}", why.join("; ")),
        };
        let (is_warning, reason, message) = match why {
            Why::Changed => {
                let message =
                    format!("the MutatingWebhookConfiguration {name} now selects {selects}");
                (false, "WebhookScopeWritten", message)
            }
            Why::Bridged => {
                let message = format!(
                    "the MutatingWebhookConfiguration {name} selects all pods for some minutes: another \
                     replica wrote it, which may know a newer template"
                );
                (false, "WebhookScopeWidened", message)
            }
            Why::Repaired(author) => {
                let who = match author {
                    Author::Other(manager) => manager,
                    Author::Leader | Author::Unknown => "another client",
                };
                let message = format!(
                    "repaired the MutatingWebhookConfiguration {name}, which {who} had changed; make it \
                     ignore namespaceSelector, objectSelector and matchConditions"
                );
                (true, "WebhookScopeRepaired", message)
            }
        };
        if is_warning {
            warn!("{message}");
        } else {
            info!("{message}");
        }
        self.events.add(is_warning, reason, message);
    }

    /// What became of a write, if it is not as it was to be.
    pub(super) fn came_out(&mut self, outcome: Outcome) {
        let problem = match outcome {
            Outcome::Kept => return,
            Outcome::WithoutConditions => {
                "the API server does not keep matchConditions, as before Kubernetes 1.28: it calls \
                 injectd for more pods than necessary"
            }
            Outcome::Differs => "the API server has other selectors than injectd wrote",
        };
        self.problem("WebhookScopeDiffers", problem.to_owned());
    }

    /// The API server rejects the conditions.
    pub(super) fn without_conditions(&mut self, error: &str) {
        let problem = format!(
            "the API server rejects the condition of the templates, and calls injectd for more pods than \
             necessary: {error}"
        );
        self.problem("WebhookScopeWithoutConditions", problem);
    }

    /// Something failed.
    pub(super) fn failed(&mut self, what: &str, error: &str) {
        let problem = format!(
            "cannot {what} the MutatingWebhookConfiguration {}: {error}; new templates may get no pods",
            self.configuration
        );
        self.problem("WebhookScopeFailed", problem);
    }

    /// How the configuration is, if that is new.
    pub(super) fn stands(&mut self, standing: Standing) {
        if standing == self.standing {
            return;
        }
        self.standing = standing;
        let name = &self.configuration;
        match standing {
            Standing::Missing => {
                let problem = format!(
                    "the MutatingWebhookConfiguration {name} does not exist: no pod gets a sidecar of a \
                     template; install it, or correct --template-webhook"
                );
                self.problem("WebhookScopeMissing", problem);
            }
            Standing::NoEntry => {
                let problem = format!(
                    "the MutatingWebhookConfiguration {name} has no webhook that leads to this Service with \
                     the path /templates: no pod gets a sidecar of a template; correct clientConfig"
                );
                self.problem("WebhookScopeMissing", problem);
            }
            Standing::InStep => self.problem = None,
            Standing::Unknown | Standing::Behind => {}
        }
    }

    fn problem(&mut self, reason: &'static str, text: String) {
        if self.problem.as_ref() == Some(&text) {
            return;
        }
        warn!("{text}");
        self.events.add(true, reason, text.clone());
        self.problem = Some(text);
    }
}
