//! Go's `text/template` with the functions of sprig and Istio.
//!
//! [`Template::parse`] reads a template, [`Template::execute`] renders it for a [`Value`]. Values
//! have Go's types, since those decide what is printed, compared and accepted as an argument. What
//! an execution may use and how much of it is in its [`Context`].
//!
//! The crate `gotmpl` has a parser, but it forgets how numbers were written, has no imaginary ones,
//! and checks neither functions nor variables nor the place of `break`: this parser is our own.

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
    Context, Hooks, Limits, MAX_DEPTH, MAX_OUTPUT_BYTES, MAX_STEPS, NoHooks, Origin, Reads, Step,
    Use,
};
pub use eval::{ExecError, Location};
pub use function::{Call, Function, Functions, Outcome, Param, Slot};
pub use parse::{MAX_NESTING, ParseError};
pub use template::Template;
pub use text::Text;
pub use value::{Element, Entries, IntKind, List, Map, Object, Shape, Signature, UintKind, Value};
