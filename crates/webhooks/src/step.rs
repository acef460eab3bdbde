//! What the API server does about one webhook.

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::{FailurePolicy, Plugin, Webhook};

/// A webhook, and whether it is called.
#[derive(Debug, Clone)]
pub struct Step<'c> {
    /// The webhook.
    pub webhook: &'c Webhook,
    /// Whether it is called.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
}

/// Whether a webhook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// It is called.
    Called,
    /// It is not called.
    NotCalled,
    /// The API server rejects the request without calling it.
    Rejected,
    /// It is not known.
    Unknown,
}

/// Why a webhook is called or not. The texts say what was compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// A rule matches.
    #[error("a rule, both selectors and all conditions match")]
    Matches,
    /// A rule matches the same object in another group or version.
    #[error("a rule matches the same object as {0}, in which it is sent")]
    MatchesEquivalent(String),
    /// Configurations of admission are exempt.
    #[error("no webhook is called for configurations of admission")]
    Exempt,
    /// A requirement on the namespace is not met.
    #[error("namespaceSelector: {0}")]
    NamespaceSelector(String),
    /// A requirement on the object is not met.
    #[error("objectSelector: {0}")]
    ObjectSelector(String),
    /// No rule matches.
    #[error("rules: {0}")]
    Rules(String),
    /// A condition is false.
    #[error("matchConditions: {0} is false")]
    Condition(String),
    /// A condition fails.
    #[error("matchConditions: {name} fails: {problem}")]
    ConditionFails {
        /// Name of the condition.
        name: String,
        /// The problem.
        problem: String,
    },
    /// A condition cannot be evaluated.
    #[error("matchConditions: {name} is not evaluated: {problem}")]
    ConditionUnknown {
        /// Name of the condition.
        name: String,
        /// Why not.
        problem: String,
    },
    /// The labels of the namespace are not known.
    #[error("namespaceSelector: the labels of the namespace are not known")]
    NamespaceUnknown,
    /// The versions of a custom resource are not known.
    #[error("matchPolicy Equivalent: the other versions of {0} are not known")]
    VersionsUnknown(String),
}

impl FailurePolicy {
    /// What follows from a failure of the webhook.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Fail => "if the call fails, the API server rejects the request",
            Self::Ignore => "if the call fails, the API server goes on without this webhook",
        }
    }
}

/// As an object of one level, for `-o json`.
impl Serialize for Step<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let webhook = self.webhook;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("configuration", &webhook.configuration)?;
        map.serialize_entry("webhook", &webhook.name)?;
        let plugin: Plugin = webhook.plugin;
        map.serialize_entry("plugin", &plugin)?;
        map.serialize_entry("verdict", &self.verdict)?;
        map.serialize_entry("reason", &self.reason.to_string())?;
        if let Some(injector) = &webhook.injector {
            map.serialize_entry("injector", injector)?;
        }
        map.serialize_entry("target", &webhook.target)?;
        map.serialize_entry("failurePolicy", &webhook.failure_policy)?;
        map.serialize_entry("timeoutSeconds", &webhook.timeout_seconds)?;
        map.serialize_entry("isReinvoked", &webhook.is_reinvoked)?;
        map.serialize_entry("hasCABundle", &webhook.has_ca_bundle)?;
        map.end()
    }
}
