//! Go's `text/template` with the functions of sprig and Istio.
//!
//! [`Template::parse`] reads a template, [`Template::execute`] renders it for a [`Value`]. Values
//! have Go's types, since those decide what is printed, compared and accepted as an argument. What
//! an execution may use and how much of it is in its [`Context`].
//!
//! # Functions
//! [`Functions::builtin`] has Go's own, [`Functions::sprig`] those of sprig 3.3 as well, and
//! [`Functions::istio`] those of Istio's webhook. Each is a row that says whether its result depends on
//! more than its arguments. Templates that use `getHostByName` or `expandenv` are refused when they
//! are parsed, unless [`Functions::with_outside`] turns the function on. Functions of keys, certificates and
//! passwords, such as `genCA` and `derivePassword`, are always refused.
//!
//! # Limits
//! [`MAX_NESTING`] when parsing; [`MAX_OUTPUT_BYTES`], [`MAX_STEPS`] and [`MAX_DEPTH`] when rendering.
//! Go has none but the depth of templates.
//!
//! # Where Go answers otherwise
//! `tests/battery` compares outputs and texts of errors with Go's, `tests/corpus` with real injectors.
//!
//! | here | Go |
//! |---|---|
//! | `set`, `unset` and `merge` change a copy of the data for one rendering | they change the data |
//! | a map cannot be put into itself | printing it ends the process |
//! | `keys` and `values` are in the order of the keys | a random order |
//! | `sortAlpha` sorts a copy | it sorts a list of strings in place |
//! | time zones other than UTC are an error in `dateInZone` | they are known, or taken for UTC |
//! | dates beyond a million years are an error | they wrap around |
//! | functions of keys, certificates and passwords do not exist | they make another secret for each pod |
//! | errors of regular expressions have other words | |
//! | `snakecase`, `kebabcase` of bytes that are not UTF-8 give U+FFFD | the bytes stay |
//! | addresses of pointers are printed as `0xc000000000` | as they are |
//!
//! Conversions of numbers and versions are those of the newest releases of the libraries. `int "12.5"`
//! is 12 as in cast 1.10; in 1.7 it is 0. A pre-release in one constraint counts for its whole group as
//! in semver 3.5; in 3.3 it does not.
//!
//! # Its own parser
//! The crate `gotmpl` has a parser, but it forgets how numbers were written, has no imaginary ones,
//! and checks neither functions nor variables nor the place of `break`: this parser is our own.

#![expect(clippy::format_push_string, reason = "short texts, off the common path")]

mod context;
mod eval;
mod function;
mod functions;
mod json;
mod lex;
mod number;
mod parse;
mod print;
mod quote;
mod runes;
mod template;
mod text;
mod tree;
mod value;
mod yaml;

pub use context::{
    Context, GONE, Hooks, Limits, MAX_DEPTH, MAX_OUTPUT_BYTES, MAX_STEPS, NoHooks, Origin, Reads,
    STEP_BYTES, STEPS_UNTIL_ASKED, Step, Use, is_plain_name,
};
pub use eval::{ExecError, Location};
pub use function::{Call, Function, Functions, Outcome, Param, Refusal, Slot};
pub use functions::duration_text;
pub use json::check_json;
pub use parse::{MAX_NESTING, ParseError};
pub use print::shown;
pub use template::Template;
pub use text::Text;
pub use value::{Element, Entries, IntKind, List, Map, Object, Shape, Signature, UintKind, Value};
