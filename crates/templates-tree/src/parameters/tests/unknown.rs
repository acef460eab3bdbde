//! Annotations that nothing reads.

use injectd_templates::object::ParameterKeys;

use super::*;

#[test]
fn annotations_with_the_prefix_that_nothing_reads_are_warned_of() {
    let spec = spec_with(&json!({
        "enablement": {"key": "x/inject"},
        "parameterKeys": {"prefix": "x/", "in": ["PodAnnotation"]},
        "parameters": [
            {"name": "level", "key": "log-level", "type": "String"},
            {"name": "role", "type": "String", "from": [{"serviceAccountAnnotation": "x/role"}]},
            {"name": "secret", "type": "Map", "from": [{"podAnnotationPrefix": "x/secret-"}]},
        ],
    }));
    let mut layers = pod(&[
        ("x/inject", "true"),
        ("x/log-level", "debug"),
        ("x/log-levle", MARKER),
        ("x/role", "a"),
        ("x/secret-a", "a"),
        ("x/secret-", "a"),
        ("x/\u{1b}", "a"),
        ("y/other", "a"),
    ]);
    layers.namespace_annotations = map(&[("x/other", "a")]);
    let mut expected = vec![
        "no parameter reads the annotation x/\\u{1b}",
        "no parameter reads the annotation x/log-levle; did you mean x/log-level?",
        "no parameter reads the annotation x/secret-",
    ];
    assert_eq!(read(&spec, &layers).expect("it is not denied").warnings, expected);
    let mut of_namespace = spec;
    let r#in = vec![injectd_templates::object::KeyPlace::NamespaceAnnotation];
    of_namespace.parameter_keys = Some(ParameterKeys { prefix: "x/".to_owned(), r#in });
    expected.push("no parameter reads the annotation x/other of the namespace");
    assert_eq!(read(&of_namespace, &layers).expect("it is not denied").warnings, expected);
}

#[test]
fn the_mark_is_no_annotation_of_a_parameter() {
    let spec =
        spec_with(&json!({"parameterKeys": {"prefix": "injectd.dev/", "in": ["PodAnnotation"]}}));
    let layers = pod(&[("injectd.dev/templates", "{}"), ("injectd.dev/x", "")]);
    let expected = ["no parameter reads the annotation injectd.dev/x"];
    assert_eq!(read(&spec, &layers).expect("it is not denied").warnings, expected);
}

#[test]
fn there_are_as_many_warnings_as_a_person_reads() {
    let spec = spec_with(&json!({"parameterKeys": {"prefix": "x/", "in": ["PodAnnotation"]}}));
    let annotations = (0..10_000).map(|number| (format!("x/{number}"), String::new()));
    let layers = Layers { pod_annotations: annotations.collect(), ..Layers::default() };
    let warnings = read(&spec, &layers).expect("it is not denied").warnings;
    assert_eq!((warnings.len(), &*warnings[32]), (33, "9968 more warnings about parameters"));
}
