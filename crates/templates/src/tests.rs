use injectd_cel::{Datum, Environment, Program, Variables};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{PodText, Template, reads::Reads, structure::Structure, wanted};

/// The example of the contract.
pub(crate) const SECRET_AGENT: &str = include_str!("read/tests/secret-agent.yaml");

/// A template without problems.
pub(crate) fn read(text: &str) -> Template {
    let object = injectd_yaml::parse(text, injectd_yaml::Options::default()).expect("YAML");
    Template::read(&object).unwrap_or_else(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", problems.join("\n"))
    })
}

const PODS: &str = include_str!("../../cel/testdata/data.json");
const POLICIES: &str = include_str!("../../cel/testdata/policies.txt");

struct Object<'d>(Datum<'d>);

impl Variables for Object<'_> {
    fn get(&self, name: &str) -> Option<Datum<'_>> {
        match name {
            "object" => Some(self.0),
            "oldObject" | "namespaceObject" => Some(Datum::Null),
            _ => None,
        }
    }
}

/// What an expression gives for a pod as a tree and as a text must be the same.
fn compare(program: &Program, pod: &Value) {
    let text = pod.to_string();
    let Some(text) = PodText::of(&text) else { return };
    let of_tree = program.value(&Object(pod.into()));
    let of_text = program.value(&Object(text.value()));
    assert_eq!(of_tree, of_text, "{pod}");
    let parts = wanted("object", [program]).parts();
    let pod_text = pod.to_string();
    let parts =
        PodText::parts(&pod_text, &parts).expect("what has all of an index has parts of it");
    assert_eq!(program.value(&Object(parts.value())), of_text, "{pod}");
}

#[test]
fn policies_have_the_same_value_for_tree_and_text() {
    let data: Vec<Value> = serde_json::from_str(PODS).expect("JSON");
    let mut compared = 0;
    for line in POLICIES.lines().filter(|line| !line.starts_with('#')) {
        for environment in [Environment::conditions().clone(), Environment::pods()] {
            let Ok(program) = Program::compile_in(&environment, line) else { continue };
            for data in &data {
                compare(&program, &data["object"]);
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn of_a_repeated_key_the_last_value_counts() {
    let text = r#"{"a":1,"\u0062":{"x\ny":"\"q\""},"a":[2,2.5,-0,true,null]}"#;
    let pod: Value = serde_json::from_str(text).expect("JSON");
    let text = PodText::of(text).expect("a tape");
    for expression in
        ["object", "object.map(k, k)", "object.a", "object.b", "size(object)", "object.a[1]"]
    {
        let program = Program::compile(expression).expect(expression);
        let of_text = program.value(&Object(text.value()));
        assert_eq!(program.value(&Object((&pod).into())), of_text, "{expression}");
    }
}

/// Parts of expressions, so that many texts compile.
const PARTS: &str = "object~.a~.?a~.b~[0]~[?'b']~1~'x'~(~)~[~]~{~}~,~:~ == ~ in ~+~.map(i, ~.all(i, \
    ~.exists(k, v, ~i~k~has(~.size()~size(~string(~.transformMap(k, v, ~dyn(~.distinct()~.filter(i, ";

fn expressions() -> impl Strategy<Value = String> {
    let words: Vec<_> = PARTS.split('~').collect();
    prop::collection::vec(prop::sample::select(words), 0..12)
        .prop_map(|words| format!("object{}", words.concat()))
}

fn objects() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f32>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab\"é]{1,2}", inner, 0..20).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn tree_and_text_agree(expression in expressions(), object in objects()) {
        if let Ok(program) = Program::compile(&expression) {
            compare(&program, &object);
        }
    }

    #[test]
    fn whole_objects_agree(object in objects()) {
        for expression in ["object", "object == object", "size(object) > 0", "object.map(k, object[k])"] {
            compare(&Program::compile(expression).expect("it compiles"), &object);
        }
    }
}

/// A cluster keeps many templates: each value in them is one of these.
#[test]
fn parts_of_templates_are_small() {
    let sizes = [size_of::<Structure>(), size_of::<Reads>()];
    assert!(sizes.iter().zip([24, 48]).all(|(size, most)| *size <= most), "{sizes:?}");
}
