//! Values of the `spec`, and containers that an annotation brings into it.

use super::*;

/// A template that pastes names and images of containers.
const NAMES: &str = r#"
policy: enabled
templates:
  sidecar: |
    spec:
      containers:
      - name: istio-proxy
        env:
        - name: APPS
          value: "{{ range .Spec.Containers }}{{ .Name }},{{ end }}"
        - name: IMAGE
          value: "{{ (index .Spec.Containers 0).Image }}"
        - name: NODES
          value: "{{ range $key, $value := .Spec.NodeSelector }}{{ $key }}={{ $value }},{{ end }}"
"#;

/// A container beside the sidecar.
const ODD: &str =
    "x\"\n  - name: mine\n    image: example.org/mine\n    env:\n    - name: A\n      value: \"b";

fn denial(config: &str, pod: &Value) -> Option<String> {
    let revision = revision_of(config, "{}", "").with_tainted_values(TaintedValues::Deny);
    inject(&revision, pod).err()
}

#[test]
fn a_name_in_the_overrides_is_denied_by_their_annotation() {
    let overrides = json!({"containers": [{"name": ODD}]}).to_string();
    let pod = with("proxy.istio.io/overrides", &overrides);
    let denial = denial(NAMES, &pod).expect("a denial");
    assert!(denial.starts_with("annotation proxy.istio.io/overrides holds"), "{denial}");
    for (release, revision) in releases::recorded() {
        let revision = revision.with_tainted_values(TaintedValues::Deny);
        let denial = inject(&revision, &pod).expect_err("a denial");
        assert!(denial.contains("proxy.istio.io/overrides"), "{release} {denial}");
    }
    let usual = json!({"containers": [{"name": "istio-proxy", "args": ["a b"]}]}).to_string();
    let usual = with("proxy.istio.io/overrides", &usual);
    for (release, revision) in releases::recorded() {
        let revision = revision.with_tainted_values(TaintedValues::Deny);
        assert_eq!(inject(&revision, &usual).err(), None, "{release}");
    }
}

#[test]
fn a_value_of_the_spec_that_templates_read_is_denied() {
    let plain = pod(&json!({}));
    assert_eq!(denial(NAMES, &plain), None);
    let mut image = plain.clone();
    image["spec"]["containers"][0]["image"] = format!("web@{ODD}").into();
    let mut selector = plain.clone();
    selector["spec"]["nodeSelector"] = json!({ODD: "a"});
    for pod in [image, selector] {
        let denial = denial(NAMES, &pod).expect("a denial");
        assert!(denial.starts_with("a value in the spec holds"), "{denial}");
    }
    let mut unread = plain;
    unread["spec"]["hostname"] = ODD.into();
    unread["spec"]["containers"][0]["args"] = json!([ODD]);
    assert_eq!(denial(NAMES, &unread), None);
}
