//! What `explain` and `audit` say of values that do not stay within their scalar in Istio's templates.

use injectd_testkit::istio::{MESH, VALUES};
use serde_json::{Value, json};

use super::{File, file, injectd, istio::args, text};

/// A template that pastes a value, as those of Istio 1.19 to 1.31 do.
const CONFIG: &str = "
policy: enabled
templates:
  sidecar: |
    spec:
      containers:
      - name: istio-proxy
        image: proxy
        args:
        - --proxyLogLevel={{ annotation .ObjectMeta `sidecar.istio.io/logLevel` `warning` }}
        - --end
";

const POD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/judged/tainted.yaml");

/// The output of a command about the pod, in a mode; its exit code.
fn output(command: &[&str], mode: &str) -> (Option<i32>, String) {
    let files: [File; 3] = [file("config", CONFIG), file("values", VALUES), file("mesh", MESH)];
    let paths = files.each_ref().map(File::path);
    let command = [&args(command, paths)[..], &["--tainted-values", mode, POD]].concat();
    let output = injectd(&command, "");
    assert!(output.status.code().is_some_and(|code| code != 1), "{}", text(&output.stderr));
    (output.status.code(), text(&output.stdout).to_owned())
}

#[test]
fn explain_names_value_template_and_what_each_mode_does() {
    let problem = "annotation sidecar.istio.io/logLevel holds more than a value: as text in the \
                   template it changes other fields of the pod";
    for (used, verdict) in [("off", "injected"), ("warn", "injected"), ("deny", "denied")] {
        let (_, found) = output(&["explain", "-o", "json"], used);
        let found: Value = serde_json::from_str(&found).expect("JSON");
        let item = &found["items"][0];
        assert_eq!(item["verdict"], verdict, "{item:#}");
        let value =
            json!({"value": "annotation sidecar.istio.io/logLevel", "templates": ["sidecar"]});
        let mode = |mode: &str, outcome: &str| json!({"mode": mode, "isInUse": mode == used, "outcome": outcome});
        let modes = [
            mode("off", "injected as by Istio"),
            mode("warn", "injected as by Istio, with a warning"),
            mode("deny", &format!("denied: {problem}")),
        ];
        assert_eq!(item["tainted"], json!({"values": [value], "modes": modes}));
        let advice = "Correct annotation sidecar.istio.io/logLevel: what is in it changes";
        assert!(item["advice"].as_str().is_some_and(|text| text.starts_with(advice)), "{item:#}");
    }
    let (_, people) = output(&["explain"], "warn");
    let people = people.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!people.contains("Without effect"), "the warning has a place of its own: {people}");
    for part in [
        "Values that change other fields of the pod annotation sidecar.istio.io/logLevel, in template \
         sidecar --tainted-values off injected as by Istio",
        "--tainted-values warn injected as by Istio, with a warning (in use)",
    ] {
        assert!(people.contains(part), "{people}");
    }
}

#[test]
fn audit_names_pods_and_counts_them() {
    let (code, found) = output(&["audit", "-o", "json"], "warn");
    assert_eq!(code, Some(3), "it has no sidecar");
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!((&found["pods"]["tainted"], &found["pods"]["missing"]), (&1.into(), &1.into()));
    let row = &found["tainted"][0];
    assert_eq!((&row["kind"], &row["name"]), (&"Pod".into(), &"web-0".into()));
    assert_eq!(row["podNames"], json!(["web-0"]));
    assert_eq!(row["values"], json!(["sidecar.istio.io/logLevel"]));
    let (_, denied) = output(&["audit", "-o", "json"], "deny");
    let denied: Value = serde_json::from_str(&denied).expect("JSON");
    assert_eq!(denied["tainted"], found["tainted"]);
    let (_, off) = output(&["audit", "-o", "json"], "off");
    let off: Value = serde_json::from_str(&off).expect("JSON");
    assert_eq!((&off["pods"]["tainted"], &off["tainted"]), (&0.into(), &json!([])));
    let (_, people) = output(&["audit"], "warn");
    let people = people.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = "shop pod/web-0: 1 pod with values that change other fields \
                 (sidecar.istio.io/logLevel): web-0; injectd explain says in which templates";
    assert!(people.contains(named), "{people}");
    assert!(people.ends_with("static; 1 with values that change other fields"), "{people}");
    let (_, lines) = output(&["audit", "-o", "jsonl", "--finding", "tainted"], "warn");
    let line: Value = serde_json::from_str(&lines).expect("one line");
    assert_eq!(line["tainted"], json!(["sidecar.istio.io/logLevel"]));
    let (_, junit) = output(&["audit", "-o", "junit"], "warn");
    assert!(junit.contains("failures=\"2\"") && junit.contains("type=\"tainted\""), "{junit}");
}

#[test]
fn only_who_asks_gets_an_exit_code_for_tainted_values() {
    for (more, code) in [
        (&["--finding", "tainted"][..], 0),
        (&["--finding", "tainted", "--fail-on", "tainted"], 3),
        (&["--fail-on", "unexpected"], 0),
    ] {
        let (found, _) = output(&[&["audit"], more].concat(), "warn");
        assert_eq!(found, Some(code), "{more:?}");
    }
}
