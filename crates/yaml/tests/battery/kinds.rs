//! Why an answer may differ from Go's. The documentation of the crate lists the same kinds.

use crate::answers::Difference;

/// A kind of difference. In all but the last, we reject a text that Go reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    AnchorName,
    BlockIndent,
    ByteOrderMark,
    CommentWithoutBlank,
    FlowColon,
    FlowDash,
    FlowQuestionMark,
    FlowTab,
    JsonNumber,
    JsonSurrogate,
    KeyColon,
    KeysOfTwoTypes,
    OverwrittenProblem,
    QuotedIndent,
    Tag,
    TextAfterEnd,
    UnicodeBreak,
    /// Go rejects a text for what comes after the first document.
    LooksBeyond,
}

/// Parts of our messages.
const MESSAGES: &[(&str, Kind)] = &[
    ("expected a colon after this key", Kind::KeyColon),
    ("the name of the anchor has other characters", Kind::AnchorName),
    ("the lines of this text are not indented alike", Kind::BlockIndent),
    ("JSON has no infinity and no NaN", Kind::OverwrittenProblem),
    ("did not find expected hexadecimal number", Kind::TextAfterEnd),
    ("a BOM must not appear", Kind::ByteOrderMark),
    ("comments must be separated", Kind::CommentWithoutBlank),
    ("a blank must follow the colon of this key", Kind::FlowColon),
    ("plain scalar cannot start with '-'", Kind::FlowDash),
    ("text with ? or a leading :", Kind::FlowQuestionMark),
    ("tabs disallowed within this context", Kind::FlowTab),
    ("a blank must follow the tag", Kind::Tag),
    ("did not find expected tag URI", Kind::Tag),
    ("mismatched bracket", Kind::Tag),
    ("high surrogate without", Kind::JsonSurrogate),
    ("while scanning a tag, did not find expected whitespace", Kind::Tag),
    ("number out of range", Kind::JsonNumber),
    ("two keys of different types", Kind::KeysOfTwoTypes),
    ("the key is a number of more than 63 bits", Kind::OverwrittenProblem),
    ("expected a string as key, found null", Kind::OverwrittenProblem),
    ("a merge key needs a mapping", Kind::OverwrittenProblem),
    ("this quoted text does not end", Kind::QuotedIndent),
    ("tab cannot be used as indentation", Kind::QuotedIndent),
    ("comment intercepting the multiline text", Kind::TextAfterEnd),
    ("a key must not be a list or a mapping", Kind::TextAfterEnd),
    ("misplaced bracket", Kind::TextAfterEnd),
    ("invalid content after document end", Kind::TextAfterEnd),
    ("unclosed bracket", Kind::TextAfterEnd),
    ("invalid trailing content", Kind::TextAfterEnd),
    ("missing explicit document end", Kind::TextAfterEnd),
    ("the lines of a block scalar must be indented", Kind::TextAfterEnd),
    ("a control character", Kind::TextAfterEnd),
    ("a line break of Unicode", Kind::UnicodeBreak),
];

/// The kind that explains a difference; `None` if no kind does. A text with another meaning has no
/// kind.
pub(crate) fn explain(
    text: &str,
    reading: &str,
    difference: Difference,
    ours: &str,
) -> Option<Kind> {
    match difference {
        Difference::OtherMeaning => None,
        Difference::OnlyWeRead => {
            // In a stream, a document has a line before it.
            let is_separator =
                |line: &&str| line.trim().is_empty() || line.starts_with(['-', '%', '#']);
            let first = text.lines().find(|line| !is_separator(line)).unwrap_or_default();
            let one = reading != "many" || text.contains("---");
            // An anchor or tag is a whole document, with text behind it.
            let empty = ["null", "\"\"", "[null]", "[\"\"]"].contains(&ours);
            let flow = one && first.trim_start().starts_with(['{', '[']);
            (empty || flow).then_some(Kind::LooksBeyond)
        }
        Difference::OnlyGoReads => {
            let known = MESSAGES.iter().find(|(message, _)| ours.contains(message));
            let breaks = text.contains(['\u{85}', '\u{2028}', '\u{2029}']);
            let half = text.contains("\\ud83d") && ours.contains("an escape that YAML 1.1");
            let known = known.map(|(_, kind)| *kind).or(half.then_some(Kind::JsonSurrogate));
            known.or_else(|| breaks.then_some(Kind::UnicodeBreak))
        }
    }
}
