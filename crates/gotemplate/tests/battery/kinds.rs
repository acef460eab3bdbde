//! Why an answer may differ from Go's.

use crate::answers::Answer;

/// A kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Both are errors of the same place with other words.
    Words,
}

/// Functions whose errors have other words than Go's, from libraries.
const OTHER_WORDS: &[&str] = &["regex", "Regex"];

/// The kind that explains a difference; `None` if no kind does.
pub(crate) fn explain(template: &str, ours: &Answer, theirs: &Answer) -> Option<Kind> {
    let (Err(ours), Err(theirs)) = (ours, theirs) else { return None };
    let place = |message: &str| {
        let at = message.find(": error calling").unwrap_or(message.len());
        message[..at].to_owned()
    };
    let other_words = OTHER_WORDS.iter().any(|name| template.contains(name));
    (other_words && place(ours) == place(theirs)).then_some(Kind::Words)
}
