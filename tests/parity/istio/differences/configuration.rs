//! Rows about configurations.

use super::{Answer, Context};

/// injectd does not start with what later releases refuse at start; older ones start, and deny
/// every pod.
pub(crate) fn refused_configuration(context: &Context<'_>, seen: &Answer) -> Option<Answer> {
    seen.denial()?;
    let is_refused = context.later.iter().any(|later| later.refuses(&context.case.config));
    is_refused.then_some(Answer::Refused)
}
