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

/// Pastes names and images as Istio's template does.
const OTEL: &str = r#"
policy: enabled
templates:
  sidecar: |
    {{- $attributes := otelResourceAttributes .MeshConfig .ObjectMeta.Annotations .ObjectMeta.Labels .DeploymentMeta.Namespace .Spec.Containers }}
    spec:
      containers:
      - name: istio-proxy
        env:
        - name: OTEL_RESOURCE_ATTRIBUTES
          value: "{{ $attributes }}"
"#;

/// A mesh that asks for the attributes.
const OTEL_MESH: &str = "
extensionProviders:
- name: otel
  opentelemetry: {service: s, port: 4317, serviceAttributeEnrichment: OTEL_SEMANTIC_CONVENTIONS}
";

#[test]
fn names_and_images_in_the_attributes_for_opentelemetry_are_denied() {
    let revision = |mesh| revision_of(OTEL, "{}", mesh).with_tainted_values(TaintedValues::Deny);
    let plain = pod(&json!({}));
    let asked = inject(&revision(OTEL_MESH), &plain).expect("a pod");
    let attributes = asked.pod["spec"]["containers"].to_string();
    assert!(attributes.contains("service.version=1,"), "{attributes}");
    let mut image = plain.clone();
    image["spec"]["containers"][0]["image"] = format!("web@{ODD}").into();
    let mut name = plain.clone();
    name["spec"]["containers"][0]["name"] = ODD.into();
    let version = with("resource.opentelemetry.io/service.version", ODD);
    for (pod, begin) in [
        (&image, "a value in the spec holds"),
        (&name, "a value in the spec holds"),
        (&version, "annotation resource.opentelemetry.io/service.version holds"),
    ] {
        let denial = inject(&revision(OTEL_MESH), pod).expect_err("a denial");
        assert!(denial.starts_with(begin), "{denial}");
        let unread = inject(&revision(""), pod).err();
        assert_eq!(unread, None, "nothing is read without such a provider");
    }
}

#[test]
fn every_text_of_the_spec_that_a_template_pastes_is_named_with_its_line() {
    let lines = |config: &str| {
        let leaks = injectd_istio::leaks::of(&revision_of(config, "{}", "")).leaks;
        leaks.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let named =
        |line| format!("a value in the spec reaches YAML unquoted, template sidecar, {line}");
    assert_eq!(lines(NAMES), [named("lines 6, 8, 10")]);
    for field in [
        "(index .Spec.Containers 0).Image",
        "(index .Spec.Containers 0).WorkingDir",
        "(index (index .Spec.Containers 0).Env 0).Value",
        "(index (index .Spec.Containers 0).VolumeMounts 0).MountPath",
        "(index .Spec.Volumes 0).Name",
        ".Spec.ServiceAccountName",
        ".Spec.NodeName",
    ] {
        let config = format!(
            "policy: enabled\ntemplates:\n  sidecar: |\n    spec:\n      hostname: {{{{ {field} }}}}\n"
        );
        assert_eq!(lines(&config), [named("line 2")], "{field}");
        let quoted = config.replace(" }}", " | quote }}");
        assert_eq!(lines(&quoted), [""; 0], "{field}");
    }
}
