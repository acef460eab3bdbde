//! `inject`, then `uninject`: the original byte for byte, or a difference that uninject cannot know.
//!
//! Random manifests always; the objects of recorded requests if `$INJECTD_CORPUS` is set.

#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]

use std::{fs, io::Read as _, path::Path};

use injectd_testkit::generator::{configs::Config, manifests, random::Random};
use serde_json::{Map, Value};

use super::{file, injectd, text};

const RANDOM_MANIFESTS: usize = 1000;
const ODD_MANIFESTS: u64 = 300;
const SEPARATOR: &str = "\n---\n";

/// Objects as one stream, each in a style of its own.
fn stream(objects: &[Value]) -> String {
    let mut random = Random::new(7);
    let documents = objects.iter().map(|object| {
        let json = match random.below(4) {
            0 => serde_json::to_string_pretty(object).expect("a tree must be JSON"),
            1 => object.to_string(),
            _ => String::new(),
        };
        // Some JSON is not YAML, as with control characters.
        let text = match injectd_yaml::parse(&json, injectd_yaml::Options::default()) {
            Ok(read) if read == *object => json,
            _ => injectd_yaml::write(object).trim_end().to_owned(),
        };
        // In a stream of YAML, after a document that is YAML.
        format!("# a manifest\n{text}")
    });
    format!("# first{SEPARATOR}{}\n", documents.collect::<Vec<_>>().join(SEPARATOR))
}

/// An original as uninject should give it back where not byte for byte: without Linkerd's own labels,
/// annotations, containers and volumes.
fn expected(value: &Value) -> Value {
    const NAMES: [&str; 8] = [
        "linkerd-proxy",
        "linkerd-init",
        "linkerd-network-validator",
        "linkerd-debug",
        "linkerd-proxy-init-xtables-lock",
        "linkerd-identity-end-entity",
        "linkerd-identity-token",
        "linkerd-podinfo",
    ];
    let is_ours = |item: &Value| item["name"].as_str().is_some_and(|name| NAMES.contains(&name));
    let opts_out = |key: &str, value: &Value| key == "linkerd.io/inject" && value == "disabled";
    match value {
        Value::Object(map) => {
            let entries = map
                .iter()
                .filter(|(key, value)| !key.starts_with("linkerd.io") || opts_out(key, value));
            let entry = |(key, value): (&String, &Value)| {
                let mut value = expected(value);
                if let ("containers" | "initContainers" | "volumes", Value::Array(items)) =
                    (key.as_str(), &mut value)
                {
                    items.retain(|item| !is_ours(item));
                }
                (key.clone(), value)
            };
            Value::Object(entries.map(entry).collect())
        }
        Value::Array(items) => items.iter().map(expected).collect(),
        value => value.clone(),
    }
}

/// Without opaque ports, which go if they are the default for the ports, and without what is empty or
/// null, which is the same as nothing.
fn normal(value: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            let entries = map.iter().filter(|(key, _)| *key != "config.linkerd.io/opaque-ports");
            let entries = entries.map(|(key, value)| (key.clone(), normal(value)));
            Value::Object(entries.filter(|(_, value)| !is_empty(value)).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(normal).filter(|item| !is_empty(item)).collect(),
        value => value.clone(),
    }
}

/// Injects, removes and compares; prints the counts. Documents of the stream are separated by lines
/// of `---`.
fn round_trip(name: &str, original: &str) {
    let injected = injectd(&["inject", "--keep-going"], original);
    let once = text(&injected.stdout).to_owned();
    assert!(once.contains("- name: linkerd-proxy\n"), "{}", text(&injected.stderr));
    let again = file("once", &once);
    let back = injectd(&["uninject", again.path()], "");
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));

    let parts = |text: &str| text.split("---\n").map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (parts(original), parts(text(&back.stdout)));
    assert_eq!(before.len(), after.len());
    let (mut equal, mut explained, mut rejected) = (0, 0, 0);
    for (before, after) in before.iter().zip(&after).skip(1) {
        let read = |text: &str| {
            injectd_yaml::parse(text, injectd_yaml::Options::default()).expect("must be YAML")
        };
        if before == after {
            equal += 1;
        } else if after.trim().is_empty() {
            rejected += 1;
        } else {
            let (mut before, mut after) = (read(before), read(after));
            if before["kind"] == "Namespace" || before["kind"] == "Service" {
                // Only its metadata may change, and labels of a Namespace stay.
                before["metadata"].take();
                after["metadata"].take();
                assert_eq!(before, after);
                explained += 1;
                continue;
            }
            let is_component = before.to_string().contains("linkerd.io/control-plane-component");
            if !is_component {
                assert_eq!(normal(&expected(&before)), normal(&after), "{before}\n{after}");
            }
            explained += 1;
        }
    }
    let count = before.len() - 1;
    println!(
        "{name}: {count} manifests, {equal} equal, {explained} explained, {rejected} rejected"
    );
    let stderr = text(&injected.stderr);
    assert!(!stderr.contains("the document is rewritten"), "{stderr}");
    assert_eq!(rejected, stderr.lines().filter(|line| line.contains(" rejected: ")).count());
    assert!(equal > count / 8, "{equal} of {count} are equal");
}

#[test]
fn random_manifests_come_back() {
    let object = |seed| {
        let (review, _) = Config::of(seed).review(seed);
        let object = review.pointer("/request/object").filter(|object| object.is_object());
        object.cloned().unwrap_or_default()
    };
    let objects = (0..).map(object).filter(Value::is_object);
    let objects: Vec<Value> = objects.take(RANDOM_MANIFESTS).collect();
    round_trip("random", &stream(&objects));
}

#[test]
fn manifests_in_odd_styles_come_back() {
    let document = |seed| {
        let text = manifests::text(seed);
        if text.ends_with('\n') { text } else { text + "\n" }
    };
    let documents: Vec<String> = (0..ODD_MANIFESTS).map(document).collect();
    round_trip("odd styles", &format!("# first{SEPARATOR}{}", documents.join("---\n")));
}

#[test]
fn recorded_objects_come_back() {
    let Some(corpus) = std::env::var_os("INJECTD_CORPUS").filter(|path| !path.is_empty()) else {
        println!("skipped: INJECTD_CORPUS is not set");
        return;
    };
    for release in ["2.14.10", "2.20"] {
        let cases = Path::new(&corpus).join("linkerd").join(release).join("cases.jsonl.gz");
        let mut lines = String::new();
        let compressed = fs::read(cases).expect("recorded cases");
        let mut reader = flate2::read::GzDecoder::new(compressed.as_slice());
        reader.read_to_string(&mut lines).expect("must be gzip");
        let objects: Vec<Value> = lines
            .lines()
            .filter_map(|line| {
                let case: Value = serde_json::from_str(line).ok()?;
                let request: Value = serde_json::from_str(case["request"].as_str()?).ok()?;
                let object = request.pointer("/request/object")?.as_object()?.clone();
                Some(Value::Object(object))
            })
            .collect();
        assert!(objects.len() > 200, "{} objects", objects.len());
        round_trip(release, &stream(&objects));
    }
}
