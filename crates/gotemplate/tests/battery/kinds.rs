//! Why an answer may differ from Go's.

use crate::answers::Answer;

/// A kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Both are errors of the same place with other words.
    Words,
    /// A limit of ours.
    Limit,
    /// Words of bytes that are not UTF-8 begin elsewhere.
    WordsOfBytes,
}

/// Functions whose errors have other words than Go's, from libraries; and bytes that are not UTF-8,
/// which some errors show as U+FFFD.
const OTHER_WORDS: &[&str] = &["regex", "Regex", "\\xff"];

/// The kind that explains a difference; `None` if no kind does.
pub(crate) fn explain(template: &str, ours: &Answer, theirs: &Answer) -> Option<Kind> {
    let of_cases = ["snakecase", "kebabcase", "camelcase"];
    if template.contains("\\xff") && of_cases.iter().any(|name| template.contains(name)) {
        return Some(Kind::WordsOfBytes);
    }
    let limits = ["the template takes more than", "the date is out of range"];
    if let Err(ours) = ours
        && limits.iter().any(|text| ours.contains(text))
    {
        return Some(Kind::Limit);
    }
    let (Err(ours), Err(theirs)) = (ours, theirs) else { return None };
    let place = |message: &str| {
        let at = message.find(": error calling").unwrap_or(message.len());
        message[..at].to_owned()
    };
    let other_words = OTHER_WORDS.iter().any(|name| template.contains(name));
    (other_words && place(ours) == place(theirs)).then_some(Kind::Words)
}
