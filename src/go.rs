//! What Go's standard library and Kubernetes' quantities accept and print, to the letter.
//!
//! Annotation values are written for Go programs: `1_0` is a float, `1.s` is a duration and `k`
//! is a quantity of nothing. A value that Go takes must not be refused here, and one that Go
//! refuses must not be taken, so these readers follow Go where Rust's own would differ.
//!
//! Not for numbers of our own (flags, JSON, metrics): use `str::parse` and `serde_json` there.
//! Not a general port either: only what annotations need is here, and errors carry no reason.

pub mod duration;
pub mod number;
pub mod quantity;
