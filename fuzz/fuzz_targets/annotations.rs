//! Any text as values of the parameters of a sidecar template, a line each.
#![no_main]
#![expect(clippy::disallowed_types, reason = "pods are trees")]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/templates-tree/testdata/any.rs"]
#[expect(dead_code, reason = "each target has one of its functions")]
mod any;

fuzz_target!(|text: &str| {
    any::parameters(text);
});
