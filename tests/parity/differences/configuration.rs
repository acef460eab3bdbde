//! Rows about invalid configurations (T§9).

use super::{Context, Seen, recorded_message};
use injectd_testkit::reference::values::Values;

/// injectd does not start with values that are invalid or lack a key that every pod needs.
pub(crate) fn refused_configuration(context: &Context<'_>, _: &Seen) -> Option<Seen> {
    context.reference.refused.then(Seen::refused)
}

/// injectd does not check values that it does not read; upstream rejects a wrong type in any value.
pub(crate) fn unread_values(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let refused = "failed to unmarshal JSON from: /var/run/linkerd/config/values";
    let denied = seen.allowed == Some(false) && recorded_message(context).starts_with(refused);
    denied.then(|| context.reference.clone())
}

/// A missing optional section has the release's defaults; upstream fails.
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

/// Whether the template engine's message is about a missing section.
fn is_about_nil(message: &str) -> bool {
    let nil = message.contains("nil pointer") || message.contains("untyped nil");
    message.starts_with("template: ") && nil
}
