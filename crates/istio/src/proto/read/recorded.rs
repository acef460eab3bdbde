//! Answers of Go: `answers.jsonl.gz` has 1,500 documents, half of them wrong somewhere, with the JSON
//! or the error of `jsonpb` 1.5.4 on the messages of `istio.io/api` 1.31.0.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::Value as Json;

use crate::{
    proto::{
        Message,
        schema::{MESH_CONFIG, PROXY_CONFIG},
    },
    release::Release,
};

#[test]
fn documents_are_read_and_written_as_by_go() {
    let mut text = String::new();
    GzDecoder::new(&include_bytes!("answers.jsonl.gz")[..])
        .read_to_string(&mut text)
        .expect("the answers must be UTF-8");
    let mut count = 0;
    for line in text.lines() {
        let case: Json = serde_json::from_str(line).expect("a case must be JSON");
        let of = if case["message"] == "proxy" { *PROXY_CONFIG } else { *MESH_CONFIG };
        let ours = match Message::read(of, &case["document"], Release::NEWEST) {
            Ok(message) => message.to_json(),
            Err(error) => error.to_string(),
        };
        let theirs = case["json"].as_str().or(case["error"].as_str());
        assert_eq!(Some(ours.as_str()), theirs, "{}", case["document"]);
        count += 1;
    }
    assert_eq!(count, 1500);
}
