//! The kind of a scalar: YAML reads a value without quotes as a text, a number, true, false or null.
//!
//! All of these are one scalar. The guard lets them pass in every mode, and what Kubernetes makes of them is
//! what it makes of them with Istio. The check of the templates reports each place without quotes.

use super::*;

/// A template with a place of each type, and with a quoted one.
const TYPED: &str = "
policy: enabled
templates:
  sidecar: |
    metadata:
      labels:
        quoted: {{ index .ObjectMeta.Annotations `example.org/quoted` | quote }}
    spec:
      terminationGracePeriodSeconds: {{ index .ObjectMeta.Annotations `example.org/number` }}
      hostNetwork: {{ index .ObjectMeta.Annotations `example.org/flag` }}
      containers:
      - name: istio-proxy
        args:
        - {{ index .ObjectMeta.Annotations `example.org/text` }}
";

const PLACES: [&str; 4] =
    ["example.org/quoted", "example.org/number", "example.org/flag", "example.org/text"];

/// Values that YAML reads as numbers, true, false or null, or as a text only by a tag or quotes.
const VALUES: [&str; 24] = [
    "true",
    "false",
    "yes",
    "No",
    "null",
    "Null",
    "~",
    "",
    "123",
    "-1",
    "+1",
    "0x10",
    "0b11",
    "0777",
    "0o7",
    "1_000",
    "1e3",
    "1.5",
    ".5",
    ".inf",
    "2001-01-01",
    "!!str 1",
    "!!int 1",
    "'1'",
];

#[test]
fn a_value_of_another_kind_is_a_scalar_in_every_mode() {
    let usual = json!({
        "example.org/quoted": "a", "example.org/number": "30", "example.org/flag": "false",
        "example.org/text": "a",
    });
    let mut injected = 0;
    for (place, value) in PLACES.iter().flat_map(|place| VALUES.map(|value| (place, value))) {
        let mut annotations = usual.clone();
        annotations[*place] = value.into();
        let result = |mode| {
            let revision = revision_of(TYPED, "{}", "").with_tainted_values(mode);
            inject(&revision, &pod(&annotations)).map(|injected| injected.pod)
        };
        let [off, warn, deny] = TaintedValues::ALL.map(result);
        assert_eq!(warn, off, "{place} {value}");
        // Of a value that is none in JSON, such as .inf, the denial has another text.
        assert_eq!(deny.as_ref().ok(), off.as_ref().ok(), "{place} {value}");
        injected += usize::from(off.is_ok());
        if *place == PLACES[0] {
            let pod = off.expect("a quoted value is a text");
            assert_eq!(pod["metadata"]["labels"]["quoted"], value);
        }
    }
    println!("{injected} of {} are injected", PLACES.len() * VALUES.len());
    // Kubernetes' types reject the others.
    assert!((VALUES.len()..PLACES.len() * VALUES.len()).contains(&injected), "{injected}");
}

#[test]
fn places_where_the_kind_may_change_are_reported() {
    let leaks = injectd_istio::leaks::of(&revision_of(TYPED, "{}", "")).leaks;
    let found: Vec<_> = leaks.iter().map(|leak| leak.source.to_string()).collect();
    let mut unquoted: Vec<_> = PLACES[1..].iter().map(|key| format!("annotation {key}")).collect();
    unquoted.sort();
    assert_eq!(found, unquoted);
}
