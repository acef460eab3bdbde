//! Parses and prints values exactly as Go's standard library and Kubernetes' quantities do, checks
//! parts of URLs, and translates Go's regular expressions.
//!
//! Annotation values are written for Go programs: `1_0` is a float, `1.s` is a duration and `k` is
//! a quantity of zero. These parsers accept a value if and only if Go does, also where Rust's own
//! parsers differ.
//!
//! Not for other numbers (JSON, metrics): use `str::parse` and `serde_json` there. Not a general
//! port: it contains only what annotations and messages need, and errors carry no reason.

pub mod duration;
pub mod number;
pub mod path;
pub mod pattern;
pub mod quantity;
pub mod text;
pub mod url;
