//! What became of a pod, and of templates for a person.

use std::fmt;

use serde_json::Value;

const NOT_MATCHED: &str = "not matched: ";
const CONDITION: &str = "condition ";

/// What became of a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Injected {
    /// The pod afterwards.
    pub pod: Value,
    /// What a person should look at.
    pub warnings: Vec<String>,
    /// What became of each template, in the order in which they are applied.
    pub decisions: Vec<Decision>,
}

/// What became of a pod, if it is changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// The pod afterwards; `None` if it is as it was.
    pub pod: Option<Value>,
    /// What a person should look at.
    pub warnings: Vec<String>,
    /// What became of each template, in the order in which they are applied.
    pub decisions: Vec<Decision>,
}

impl Changed {
    /// The same with the pod that it was.
    pub(super) fn of(self, pod: &Value) -> Injected {
        let Self { pod: changed, warnings, decisions } = self;
        Injected { pod: changed.unwrap_or_else(|| pod.clone()), warnings, decisions }
    }
}

/// What became of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The key of the template.
    pub template: String,
    /// What became of it.
    pub state: State,
    /// The cost of its expressions, in units of cel-go.
    pub cost: u64,
}

impl Decision {
    /// Adds what became of the template in a pass after this one.
    pub(super) fn add(&mut self, later: Self) {
        if later.state == State::Applied {
            self.state = later.state;
        }
        self.cost += later.cost;
    }
}

/// What became of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is not for the pod, for this reason.
    Unmatched(String),
    /// A label or annotation, or its absence, switches it off.
    Disabled,
    /// It is left out, for this reason.
    Skipped(String),
    /// It is left out, because an expression fails.
    Failed {
        /// The field of the expression.
        field: String,
        /// The step or field, and the reason.
        text: String,
    },
    /// It is for the pod, and has nothing to add.
    Nothing,
    /// It was in the pod before.
    Present {
        /// Whether its `spec` has changed since.
        is_outdated: bool,
    },
    /// It was applied.
    Applied,
}

/// As a person reads it: `template agent: not matched: podSelector`.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "template {}: {}", self.template, self.state)
    }
}

impl State {
    /// The state in one word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unmatched(_) => "unmatched",
            Self::Disabled => "disabled",
            Self::Skipped(_) | Self::Failed { .. } => "skipped",
            Self::Nothing => "nothing",
            Self::Present { is_outdated: false } => "present",
            Self::Present { is_outdated: true } => "outdated",
            Self::Applied => "applied",
        }
    }
}

impl State {
    /// The state of a template with a condition that does not hold.
    pub(crate) fn unmet(name: &str) -> Self {
        // There is room for the rest of the text.
        let mut reason = String::with_capacity(NOT_MATCHED.len() + CONDITION.len() + name.len());
        reason.push_str(CONDITION);
        reason.push_str(name);
        Self::Unmatched(reason)
    }

    /// [`Self::text`].
    #[must_use]
    pub fn into_text(self) -> String {
        match self {
            Self::Unmatched(mut reason) => {
                reason.insert_str(0, NOT_MATCHED);
                reason
            }
            other => other.text(),
        }
    }

    /// As a person reads it: `not matched: podSelector`.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Unmatched(reason) => [NOT_MATCHED, reason].concat(),
            Self::Disabled => "disabled".to_owned(),
            Self::Skipped(reason) | Self::Failed { text: reason, .. } => {
                ["skipped: ", reason].concat()
            }
            Self::Nothing => "nothing to add".to_owned(),
            Self::Present { is_outdated: false } => "in the pod already".to_owned(),
            Self::Present { is_outdated: true } => "an older revision is in the pod".to_owned(),
            Self::Applied => "applied".to_owned(),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Why a pod is denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template {template}: {text}")]
pub struct Denied {
    /// The key of the template.
    pub template: String,
    /// The step or field, and the reason.
    pub text: String,
    /// The field of the expression that fails; `None` if the template denies on purpose.
    pub failed_at: Option<String>,
}
