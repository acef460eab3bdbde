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

use std::{str, sync::LazyLock};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::FutureExt as _;
use injectd_core::{json, view::Anything};
use injectd_testkit::Injector;
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::Value;

static INJECTOR: LazyLock<Injector> = LazyLock::new(injectd_testkit::injector);

fuzz_target!(|body: &[u8]| {
    check_skip(body);
    check_answer(body);
});

fn check_answer(body: &[u8]) {
    let answer = INJECTOR.review(body).now_or_never();
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

/// Valid JSON is skipped to its end, whatever it is.
fn check_skip(body: &[u8]) {
    let Ok(text) = str::from_utf8(body) else {
        return;
    };
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        json::read::<Anything>(text).expect("valid JSON must have an end");
    }
}
