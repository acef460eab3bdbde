//! The items of a template.

use crate::quote::quote;

/// The kinds of items. Those from `Block` on are keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Error,
    Bool,
    /// A printable ASCII character without a meaning of its own, such as a comma.
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    End0,
    Field,
    Identifier,
    LeftDelimiter,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelimiter,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Kind {
    /// The end of the input.
    pub(crate) const EOF: Self = Self::End0;
}

/// An item: its kind, its text (of an error: the message) and its place.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// Bytes before it.
    pub(crate) at: usize,
    /// Counted from 1.
    pub(crate) line: usize,
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        /// Longer items are cut in messages.
        const SHOWN: usize = 10;
        match self.kind {
            Kind::EOF => f.write_str("EOF"),
            Kind::Error => f.write_str(&self.text),
            kind if kind >= Kind::Block => write!(f, "<{}>", self.text),
            _ if self.text.len() > SHOWN => {
                let start: String = self.text.chars().take(SHOWN).collect();
                write!(f, "{}...", quote(start.as_bytes(), false))
            }
            _ => f.write_str(&quote(self.text.as_bytes(), false)),
        }
    }
}
