//! Rows about configurations that are wrong (design §3).

use super::{Context, Seen, recorded_message};
use crate::reference::values::Values;

/// injectd does not start with values that cannot be read or lack what no pod can do without.
pub(crate) fn refused_configuration(context: &Context<'_>, _: &Seen) -> Option<Seen> {
    context.reference.refused.then(Seen::refused)
}

/// What is not read is not checked: upstream refuses a wrong type in any of the values.
pub(crate) fn unread_values(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let refused = "failed to unmarshal JSON from: /var/run/linkerd/config/values";
    let denied = seen.allowed == Some(false) && recorded_message(context).starts_with(refused);
    denied.then(|| context.reference.clone())
}

/// A missing optional section has the release's defaults. Upstream stumbles over it.
pub(crate) fn optional_sections(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let stumbled = match seen.allowed {
        Some(allowed) => !allowed && is_about_nil(recorded_message(context)),
        None => seen.verdict == "aborted",
    };
    if !stumbled {
        return None;
    }
    let values = context.config.values.as_ref().ok()?;
    let values = Values::read(values, context.release).ok()?;
    (!values.missing_sections().is_empty()).then(|| context.reference.clone())
}

/// How a template engine tells that a section is missing.
fn is_about_nil(message: &str) -> bool {
    let nil = message.contains("nil pointer") || message.contains("untyped nil");
    message.starts_with("template: ") && nil
}
