//! Any text as a sidecar template: it is refused, or applied to a pod, and once more.
#![no_main]
#![expect(clippy::disallowed_types, reason = "pods are trees")]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/templates-tree/testdata/any.rs"]
#[expect(dead_code, reason = "each target has one of its functions")]
mod any;

fuzz_target!(|text: &str| {
    any::template(text);
});
