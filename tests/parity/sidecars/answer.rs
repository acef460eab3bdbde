//! What injectd answers.

use injectd_templates::Template;
use injectd_templates_tree::{Request, inject};
use serde_json::Value;

use super::{case::Case, meaning::meaning};

/// An answer: the pod afterwards, or the message of a denial.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The pod is denied.
    Denied(String),
    /// The pod.
    Pod(Value),
}

impl Answer {
    /// The answer with what of the pod is compared.
    pub(crate) fn meaning(&self) -> Self {
        match self {
            Self::Denied(message) => Self::Denied(message.clone()),
            Self::Pod(pod) => Self::Pod(meaning(pod)),
        }
    }
}

/// What the templates make of the pod of a case.
///
/// # Errors
/// The first problem of a template.
pub(crate) fn of(templates: &[Value], case: &Case) -> Result<Answer, String> {
    let templates: Result<Vec<_>, _> = templates.iter().map(Template::read).collect();
    let templates = templates.map_err(|problems| format!("unread: {}", problems[0]))?;
    let (namespace, owners) = (case.namespace_object(), case.owners());
    let request = Request {
        pod: &case.pod,
        namespace: &namespace,
        service_account: case.service_account(),
        owners: &owners,
        own_namespace: None,
    };
    Ok(match inject(&templates, &request) {
        Ok(injected) => Answer::Pod(injected.pod),
        Err(denied) => Answer::Denied(format!("{}: {}", denied.template, denied.text)),
    })
}
