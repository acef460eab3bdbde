//! YAML read into JSON as Kubernetes reads it: as Go's `sigs.k8s.io/yaml` (`YAMLToJSON`) on
//! `go.yaml.in/yaml/v2` does.
//!
//! Shapes: [`parse`] reads one document, [`documents`] a stream. Plain scalars and keys have the
//! types of YAML 1.1 (`yes` is true, `0777` is 511), keys become strings, merge keys take effect in
//! their order, and numbers are those of the JSON that Go writes (`1e3` is 1000).
//!
//! [`stream`] also says where each document is. [`edit`] changes a document in its text and keeps its
//! comments and style; [`write`] writes a value anew. What they write reads as the same value here, in
//! Go's libraries, and in readers of other versions of YAML. [`place`] says where a value is in its text.
//!
//! # Limits
//! [`MAX_NESTING`] lists and mappings inside of one another (Go: 10,000), [`Limits`],
//! and Go's own limit for aliases: they make at most 99 % of a document of up to 400,000 nodes and
//! 10 % of one of four million or more. Documents and bytes have no limit, nodes only that of [`Limits`].
//!
//! # Where Go answers otherwise
//! The parser below, `granit-parser`, reads YAML 1.2, yaml.v2 reads 1.1. `tests/battery` compares
//! both. No text gets another meaning: a text that the two see differently is an error here. Go reads
//! these texts, this crate rejects them:
//!
//! | kind | example |
//! |---|---|
//! | `AnchorName` | `{&x: a}`, where Go's anchor is `x` |
//! | `BlockIndent` | an empty block scalar with an indentation indicator before an indented comment |
//! | `ByteOrderMark` | U+FEFF that is not at the beginning |
//! | `CommentWithoutBlank` | `a: 'b'#c` |
//! | `FlowColon` | `{a:, b: c}` and `{a :, b: c}`, where Go's keys are `a:` and `a :` |
//! | `FlowDash` | `[-]` |
//! | `FlowQuestionMark` | `[?a]` |
//! | `FlowTab` | a line of `[a, b]` that begins with a tab |
//! | `JsonNumber` | `{"a": 1e999}` in a stream, if it is YAML and not JSON |
//! | `JsonSurrogate` | `{"a": "\\ud83d"}`, half of a character, in a stream of JSON |
//! | `KeyColon` | `*a: b` with no blank before the colon; the header of a block scalar at the left margin |
//! | `KeysOfTwoTypes` | `{1: a, "1": b}`: at random, Go keeps one |
//! | `OverwrittenProblem` | a key that is null, in a mapping that the same key replaces later |
//! | `QuotedIndent` | a line of a quoted scalar that begins with `---"` or `..."` |
//! | `Tag` | `[!!str, a]`, where Go's tag is `!!str,`; `!!!x a` |
//! | `TextAfterEnd` | `{} a: b`, where Go ignores all after `{}` |
//! | `UnicodeBreak` | U+0085, U+2028 or U+2029 that is not written as an escape |
//!
//! One kind is the other way round, with [`MoreDocuments::Ignore`]: `LooksBeyond`, where Go's scanner
//! is one token ahead and finds an error behind the first document. Quoted scalars with `\'`, or with
//! lines that are not indented, are an error too if there are too many ([`Limits::bytes_read_again`]).

#![expect(clippy::disallowed_types, reason = "documents are trees")]

mod block;
mod dialect;
mod edit;
mod find;
mod json;
mod keys;
mod limits;
mod marks;
mod places;
mod repair;
mod scalar;
mod stream;
mod timestamp;
mod tree;
mod writer;

use std::fmt;

pub use edit::{ItemEditor, edit, rewrite};
pub use find::{Step, place, steps};
pub use limits::{Limits, MAX_NESTING};
pub use stream::{Document, Stream, documents, stream};
pub use tree::parse;
pub use writer::{write, write_report};

/// What a document is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// YAML. It may be JSON as well, if it is not the first document of its stream.
    Yaml,
    /// JSON.
    Json,
}

/// What to do with keys that are written twice in one mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicateKeys {
    /// The last one wins, as in `yaml.Unmarshal`.
    #[default]
    LastWins,
    /// The last one wins, and [`Document::duplicate_key`] names the first that is written again. Only
    /// in a stream; elsewhere as [`LastWins`](Self::LastWins).
    Noted,
    /// They are an error. A key may override one that a merge key brought, which
    /// `yaml.UnmarshalStrict` rejects.
    Error,
    /// All stay: a key that is written again gets a NUL and a number at its end, which no key of YAML has.
    /// For who compares what two texts have, not what they mean. Not for JSON in a stream.
    Kept,
}

/// What to do with text after the first document, where one document is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MoreDocuments {
    /// It is not read, as in `yaml.Unmarshal`.
    #[default]
    Ignore,
    /// It is an error, unless it is only comments.
    Error,
}

/// What becomes of floats without a fraction, such as `1e3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WholeFloats {
    /// Integers, if they are below 1e21: Go writes `1e3` into JSON as 1000.
    #[default]
    Integers,
    /// They stay floats. `yaml.Unmarshal` prints a float into a string field in another way than
    /// an integer.
    Floats,
}

/// How to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Keys that are written twice.
    pub duplicate_keys: DuplicateKeys,
    /// Documents after the first one.
    pub more_documents: MoreDocuments,
    /// Floats without a fraction.
    pub whole_floats: WholeFloats,
    /// How much work the text may make.
    pub limits: Limits,
}

/// Why a text could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// Counted from 1, in the whole text.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// One line of plain English. It contains no values of the text.
    pub message: String,
    /// Whether the text is over one of [`Limits`].
    pub is_over_limit: bool,
    /// Whether it is a key that is written twice in one mapping.
    pub is_duplicate_key: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} column {}: {}", self.line, self.column, self.message)
    }
}
