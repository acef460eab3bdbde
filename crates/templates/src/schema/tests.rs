use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod object;
#[path = "../../testdata/table.rs"]
mod table;

#[test]
fn problems_name_the_field_what_was_found_and_what_was_expected() {
    let cases = table::cases(&read(table::TEXT));
    assert!(cases.len() > 100, "{}", cases.len());
    for case in cases {
        let found: Vec<_> = check(&case.template).iter().map(ToString::to_string).collect();
        assert!(case.problem.is_some() || !case.is_offline, "{}", case.title);
        let expected: Vec<_> = case.problem.into_iter().collect();
        assert_eq!(found, expected, "{}", case.title);
    }
}

#[test]
fn documents_that_are_no_templates_have_problems() {
    for (document, expected) in [
        (json!([]), ": found a list, expected an object with apiVersion, kind, metadata and spec"),
        (
            json!({"kind": "Pod", "metadata": [], "spec": {"enablement": {"key": "a"}}}),
            "apiVersion: missing; expected injectd.dev/v1alpha1\n\
             kind: found \"Pod\", expected ClusterSidecarTemplate or SidecarTemplate\n\
             metadata: found a list, expected an object with a name",
        ),
        (
            json!({"apiVersion": "injectd.dev/v1", "kind": "SidecarTemplates", "spec": {"enablement": 1}}),
            "apiVersion: found \"injectd.dev/v1\", expected injectd.dev/v1alpha1; \
             did you mean injectd.dev/v1alpha1?\n\
             kind: found \"SidecarTemplates\", expected ClusterSidecarTemplate or SidecarTemplate; \
             did you mean SidecarTemplate?\n\
             metadata: missing; expected an object with a name\n\
             spec.enablement: found 1, expected an object",
        ),
        (
            json!({"apiVersion": API_VERSION, "kind": NAMESPACED_KIND, "metadata": {"name": "a"},
                "spec": {}, "status": {"pods": -1}}),
            "status.pods: found -1, expected at least 0",
        ),
    ] {
        let found: Vec<_> = check(&document).iter().map(ToString::to_string).collect();
        assert_eq!(found.join("\n"), expected, "{document}");
    }
}

#[test]
fn definitions_differ_in_names_scope_and_the_selector_of_namespaces() {
    let [cluster, namespaced] = crds();
    let names = |definition: &Value| {
        let spec = &definition["spec"];
        let names = &spec["names"];
        [
            &definition["metadata"]["name"],
            &spec["scope"],
            &names["kind"],
            &names["listKind"],
            &names["shortNames"][0],
        ]
        .map(|name| name.as_str().expect("a text").to_owned())
    };
    assert_eq!(
        names(&cluster),
        [
            "clustersidecartemplates.injectd.dev",
            "Cluster",
            CLUSTER_KIND,
            "ClusterSidecarTemplateList",
            "cst"
        ]
    );
    assert_eq!(
        names(&namespaced),
        [
            "sidecartemplates.injectd.dev",
            "Namespaced",
            NAMESPACED_KIND,
            "SidecarTemplateList",
            "sct"
        ]
    );
    let schema = |definition: &Value| {
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
    };
    let [mut of_cluster, of_namespaced] = [&cluster, &namespaced].map(schema);
    let fields = of_cluster["properties"]["match"]["properties"].as_object_mut().expect("fields");
    assert!(fields.shift_remove("namespaceSelector").is_some());
    assert!(
        of_cluster
            .as_object_mut()
            .expect("a schema")
            .shift_remove("x-kubernetes-validations")
            .is_some()
    );
    assert_eq!(of_cluster, of_namespaced);
}

/// Every list, map and text of a schema has a bound, and every field a sentence.
#[test]
fn everything_is_bounded_and_described() {
    fn walk(path: &str, schema: &Value) {
        let about = schema["description"].as_str().unwrap_or_default();
        assert!(about.starts_with(char::is_uppercase) && about.ends_with('.'), "{path}: {about:?}");
        let bounds: &[&str] = match schema["type"].as_str() {
            Some("array") => &["maxItems"],
            Some("string") if schema.get("enum").is_none() => &["maxLength"],
            Some("object") if schema.get("properties").is_none() => &["maxProperties"],
            Some("integer") => &["minimum"],
            None => &["maxItems", "maxLength", "maxProperties"],
            _ => &[],
        };
        for bound in bounds {
            assert!(schema[bound].is_u64() || schema[bound].is_i64(), "{path} has no {bound}");
        }
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            walk(&format!("{path}.{name}"), schema);
        }
        for (name, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
            schema.get(name).into_iter().for_each(|schema| walk(&format!("{path}{mark}"), schema));
        }
    }
    walk("spec", &read(SPEC));
    walk("status", &read(STATUS));
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-zA-Z.]{0,9}".prop_map(Value::from),
    ];
    let names = prop::sample::select(FIELDS.split(' ').collect::<Vec<_>>());
    leaf.prop_recursive(5, 60, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..8).prop_map(|map| json!(map)),
        ]
    })
}

/// Keys of random objects.
const FIELDS: &str = "match namespaceSelector matchLabels matchExpressions key operator values conditions name \
    expression enablement in default parameters type from podLabel items enum variables value validations steps \
    overlay containers kinds select names existingEnv placement position forEach a.b \u{e9}";

proptest! {
    /// Whatever the document is, problems have paths that can be read, and a filled `spec` stays as it is.
    #[test]
    fn documents_of_any_shape_are_checked(spec in values()) {
        let object = json!({"apiVersion": API_VERSION, "kind": CLUSTER_KIND, "metadata": {"name": "a"}, "spec": spec});
        for problem in check(&object) {
            prop_assert!(injectd_yaml::steps(&problem.field).is_some(), "{problem}");
        }
        let with_defaults = filled(&spec);
        prop_assert_eq!(filled(&with_defaults), with_defaults);
    }
}

#[test]
fn a_reserved_word_of_cel_is_no_name() {
    let base = &read(table::TEXT)["base"];
    for word in injectd_cel::RESERVED {
        for list in ["parameters", "variables", "steps"] {
            let mut template = base.clone();
            template["spec"][list][0]["name"] = word.into();
            let found = check(&template);
            let [problem] = &*found else { panic!("{word} in {list}: {found:?}") };
            assert!(problem.text.contains("reserved word"), "{problem}");
        }
    }
}
