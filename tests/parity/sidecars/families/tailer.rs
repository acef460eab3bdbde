//! The log tailer: the image decides how fluent-bit is made to write to its output.

use serde_json::{Value, json};

use super::{
    super::{case::Case, example::Example},
    text,
};

/// The first release of fluent-bit with a directory and a file as its output.
const FIRST_WITH_FILE: [u64; 3] = [1, 4, 6];

pub(super) fn fit(case: &Case, example: &Example) -> Vec<Value> {
    let mut example = example.clone();
    let image = text(&case.config, "fluentBitImage");
    let output = if writes_files(image) {
        json!(["path=/dev/", "-p", "file=stdout"])
    } else {
        json!(["path=/dev/stdout"])
    };
    example.set(json!({"image": image, "output": output}));
    vec![example.into_template()]
}

fn writes_files(image: &str) -> bool {
    let tag = image.split_once(':').map(|(_, tag)| tag).unwrap_or_default();
    let numbers: Option<Vec<u64>> = tag.split('.').map(|number| number.parse().ok()).collect();
    numbers.is_some_and(|mut numbers| {
        numbers.resize(3, 0);
        numbers >= FIRST_WITH_FILE.to_vec()
    })
}
