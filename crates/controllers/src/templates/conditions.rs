//! The conditions of a template, each from what is known about it.

use injectd_profiles::template_plane::KnownTemplate;
use injectd_templates::{
    Problem, Template, limits::MAX_BYTES_OF_SPEC, object::FailurePolicy, object::Identity,
};

use super::{
    findings::Findings,
    replicas::Replica,
    text::{MAX_MESSAGE, listed, plain},
};

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    /// Its name.
    pub(super) name: &'static str,
    pub(super) status: Truth,
    /// The cause in one word.
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// The names of the conditions, in their order.
pub(super) const NAMES: [&str; 4] = ["Accepted", "Programmed", "Conflicting", "Degraded"];

/// The conditions that are about the newest spec in any case.
pub(super) const OF_NEWEST: [&str; 2] = [NAMES[0], NAMES[1]];

/// The conditions of a template, in the order of [`NAMES`].
pub(super) fn conditions(
    identity: &Identity,
    template: &KnownTemplate,
    findings: &Findings,
    replicas: &[Replica],
) -> [Condition; NAMES.len()] {
    [
        accepted(identity, template, findings),
        programmed(identity, template, replicas),
        conflicting(identity, findings),
        degraded(identity, template, replicas),
    ]
}

fn condition(index: usize, status: Truth, reason: &'static str, message: &str) -> Condition {
    Condition { name: NAMES[index], status, reason, message: plain(message, MAX_MESSAGE) }
}

fn accepted(identity: &Identity, known: &KnownTemplate, findings: &Findings) -> Condition {
    match &known.read {
        Ok(template) => {
            let mut message = format!("revision {} is in order", template.hash);
            if let Some(notes) = findings.scope.get(identity) {
                message.push_str("; the webhook is called for more pods than it changes: ");
                message.push_str(&listed(notes));
            }
            if let [first, ..] = &*template.warnings {
                let count = template.warnings.len();
                // A long warning would push the hint behind it out of the message.
                let first = plain(&first.to_string(), MAX_MESSAGE / 4);
                let text = match count {
                    1 => format!("; warning: {first}"),
                    _ => format!(
                        "; {count} warnings, the first: {first} (injectd template check shows all)"
                    ),
                };
                message.push_str(&text);
            }
            condition(0, Truth::True, "Accepted", &message)
        }
        Err(problems) => {
            let texts: Vec<_> = problems.iter().map(Problem::to_string).collect();
            let message = format!("{}; {}", listed(&texts), in_use(known.served.as_deref()));
            let reason = if is_too_large(known) { "TooLarge" } else { "Invalid" };
            condition(0, Truth::False, reason, &message)
        }
    }
}

/// Whether `spec` is larger than a template may be.
fn is_too_large(known: &KnownTemplate) -> bool {
    let spec = &known.object.data["spec"];
    serde_json::to_string(spec).is_ok_and(|text| text.len() > MAX_BYTES_OF_SPEC)
}

fn in_use(served: Option<&Template>) -> String {
    match served {
        Some(served) => format!("the last good revision {} stays in use", served.hash),
        None => "no revision is in use".to_owned(),
    }
}

fn programmed(identity: &Identity, known: &KnownTemplate, replicas: &[Replica]) -> Condition {
    let Ok(template) = &known.read else {
        let message = in_use(known.served.as_deref());
        return condition(1, Truth::False, "NotAccepted", &message);
    };
    let (hash, all) = (&template.hash, replicas.len());
    let serves = |replica: &&Replica| {
        let served = replica.served.as_ref();
        served.is_some_and(|served| served.get(identity) == Some(hash))
    };
    let count = replicas.iter().filter(serves).count();
    let unknown = replicas.iter().filter(|replica| replica.served.is_none()).count();
    if all == 0 {
        let message = "no replica has reported what it serves";
        return condition(1, Truth::Unknown, "NoReplica", message);
    }
    let message = format!("{count} of {all} replicas serve revision {hash}");
    if count == all {
        condition(1, Truth::True, "Programmed", &message)
    } else if count + unknown == all {
        let message = format!("{message}; what {unknown} of them serve is not known");
        condition(1, Truth::Unknown, "ReplicaUnknown", &message)
    } else {
        condition(1, Truth::False, "Pending", &message)
    }
}

fn conflicting(identity: &Identity, findings: &Findings) -> Condition {
    match findings.conflicts.get(identity) {
        Some(texts) => condition(2, Truth::True, "Conflict", &listed(texts)),
        None => condition(2, Truth::False, "NoConflict", ""),
    }
}

fn degraded(identity: &Identity, known: &KnownTemplate, replicas: &[Replica]) -> Condition {
    let key = identity.to_string();
    let all = replicas.iter().flat_map(|replica| &replica.errors);
    let errors: Vec<_> = all.filter(|errors| errors.template == key).collect();
    let count = errors.iter().fold(0_u64, |sum, errors| sum.saturating_add(errors.count));
    // Not that of the most errors, which changes all the time.
    let field = errors.iter().map(|errors| &errors.field).min();
    let Some(field) = field.filter(|_| count > 0) else {
        return condition(3, Truth::False, "NoErrors", "");
    };
    let policy = known.served.as_ref().map(|served| served.spec.failure_policy);
    let effect = match policy {
        Some(FailurePolicy::Ignore) => "the template was left out",
        _ => "pods were denied",
    };
    let times = at_least(count);
    let message = format!("{field} failed {times} in the last hour, and {effect}");
    condition(3, Truth::True, "EvaluationErrors", &message)
}

/// A count as a power of ten: a message that changes with each error would be a write for each.
fn at_least(count: u64) -> String {
    match 10_u64.pow(count.checked_ilog10().unwrap_or_default()) {
        1 => "at least once".to_owned(),
        power => format!("at least {power} times"),
    }
}
