//! Any bytes as the body of a review: no panic, and an answer that is one.
//!
//! From the folder above, on the pinned toolchain (`cargo install cargo-fuzz` once):
//!
//! ```sh
//! mkdir -p fuzz/corpus/raw_body
//! RUSTC_BOOTSTRAP=1 cargo fuzz run raw_body fuzz/corpus/raw_body fuzz/seeds/raw_body -- \
//!     -dict=fuzz/raw_body.dict -max_total_time=120
//! ```

#![no_main]
#![expect(clippy::disallowed_types, reason = "an answer is checked as a tree")]

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::FutureExt as _;
use injectd::{injector::Injector, review};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::Value;

#[path = "../../loadtest/standalone.rs"]
mod standalone;

static INJECTOR: LazyLock<Injector> = LazyLock::new(standalone::injector);

fuzz_target!(|body: &[u8]| {
    compare_cut(body);
    check_answer(body);
});

fn check_answer(body: &[u8]) {
    let mut body = body.to_vec();
    let answer = INJECTOR.review(&mut body).now_or_never();
    let Ok(answer) = answer.expect("a review without a cluster must not wait") else {
        return;
    };
    let review: Value = serde_json::from_slice(&answer.body).expect("an answer must be JSON");
    let response = &review["response"];
    assert_eq!(response["uid"], *answer.outcome.uid, "the uid must be echoed");
    assert!(response["allowed"].is_boolean());
    let Some(patch) = response.get("patch") else {
        return;
    };
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = patch.as_str().expect("a patch must be a string");
    let patch = STANDARD.decode(patch).expect("a patch must be base64");
    let patch: Value = serde_json::from_slice(&patch).expect("a patch must be JSON");
    for operation in patch.as_array().expect("a patch must be a list") {
        assert_eq!(operation["op"], "add");
        let pointer = operation["path"].as_str().expect("a path must be a string");
        assert!(pointer.starts_with('/'));
        assert!(operation.get("value").is_some(), "a value must be added");
    }
}

/// What the cut does to valid JSON, and that it does nothing wild to anything else.
fn compare_cut(body: &[u8]) {
    let mut cut = body.to_vec();
    review::cut_managed_fields(&mut cut);
    assert!(cut.len() <= body.len());
    if serde_json::from_slice::<IgnoredAny>(body).is_ok() {
        assert_eq!(
            String::from_utf8_lossy(&cut),
            String::from_utf8_lossy(&cut_byte_at_a_time(body))
        );
        serde_json::from_slice::<IgnoredAny>(&cut).expect("valid JSON must stay valid");
    }
}

/// Where a reader of valid JSON is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Outside,
    String,
    Escape,
}

/// Empties the list of each key `"managedFields"` that is followed by `:[`; slow and obvious.
fn cut_byte_at_a_time(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = At::Outside;
    let mut token = Vec::new();
    let mut depth = 0_usize;
    for &byte in body {
        let was_inside = depth > 0;
        at = match (at, byte) {
            (At::Outside, b'"') => {
                token.clear();
                At::String
            }
            (At::Outside, _) | (At::String, b'"') => At::Outside,
            (At::String, b'\\') => At::Escape,
            (At::String | At::Escape, _) => At::String,
        };
        token.push(byte);
        if at == At::Outside {
            match byte {
                b'[' if was_inside || token == *br#""managedFields":["# => depth += 1,
                b']' if was_inside => depth -= 1,
                _ => {}
            }
        }
        if !was_inside || depth == 0 {
            out.push(byte);
        }
    }
    out
}
