//! Nothing leaves its scalar: a value of a pod, a namespace or a ServiceAccount adds no field, and no entry.
//!
//! `INJECTD_SCALAR_CASES` sets how many values are tried.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    fs,
    path::Path,
};

use injectd_templates::object::{Parameter, ParameterSource};
use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestRunner};

use super::*;
use crate::State;

/// Values that are tried if nobody says how many.
const CASES: u32 = 2000;

/// Pieces of languages, each of which means something to some reader.
const PIECES: [&str; 40] = [
    "${params.role}",
    "${",
    "$${",
    "}",
    "$(X)",
    "$$(X)",
    "$patch: delete",
    "{{ .Values.x }}",
    "{{",
    "}}",
    "{{- range $i := . }}",
    "\"",
    "'",
    "\\",
    "\\\"",
    "\"}",
    "\"]}",
    "',",
    "\n",
    "\r\n",
    "\n- name: x",
    "\n  x: y",
    ": ",
    " #",
    "&a",
    "*a",
    "!!binary x",
    "|\n x",
    "[x]",
    "{'a': 1}",
    "{\"name\": \"x\"}",
    "\", \"x\": \"y",
    "\u{0}",
    "\u{2028}",
    "é",
    "---\n",
    "'] + ['",
    "optional.none()",
    "`x`",
    "\t<<: *x",
];

fn values() -> impl Strategy<Value = String> {
    let piece =
        prop_oneof![3 => select(PIECES.to_vec()).prop_map(str::to_owned), 1 => "[{}\"'$x]{1,4}"];
    vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

/// A text of the same length and separators that means nothing.
fn neutral(text: &str) -> String {
    let stays = |letter: char| ",;:=/|".contains(letter) || letter.is_whitespace();
    text.chars().map(|letter| if stays(letter) { letter } else { 'x' }).collect()
}

/// Keys, kinds, and lengths of lists.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => json!(null),
        Value::Bool(_) => json!(true),
        Value::Number(_) => json!(1),
        Value::String(_) => json!(""),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), shape(value))).collect()
        }
    }
}

/// A template that is for a pod, a namespace and a ServiceAccount.
#[derive(Debug)]
struct Example {
    template: Template,
    pod: Value,
    namespace: Value,
    account: Value,
}

impl Example {
    fn new(object: &Value) -> Self {
        let mount =
            json!({"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"});
        Self {
            template: Template::read(object).unwrap_or_else(|found| panic!("{found:?}")),
            pod: json!({
                "metadata": {"name": "web", "labels": {"azure.workload.identity/use": "true", "app": "web"},
                    "annotations": {
                        "secrets.example.com/inject": "true",
                        "secrets.example.com/role": "shop",
                        "dapr.io/enabled": "true", "dapr.io/app-id": "web",
                        "instrumentation.opentelemetry.io/inject-java": "true",
                        "sidecar.opentelemetry.io/inject": "true",
                        "sidecar.logging-extensions.banzaicloud.io/tail": "/var/log/a",
                        "injector.tumblr.com/request": "a",
                        "vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/role": "shop",
                        "vault.hashicorp.com/agent-inject-secret-a": "db/shop"}},
                "spec": {"containers": [{"name": "app", "image": "app", "volumeMounts": [mount]}],
                    "volumes": [{"name": "token", "emptyDir": {}}]},
            }),
            namespace: json!({"metadata": {"name": "shop", "labels": {}, "annotations": {}}}),
            account: json!({"metadata": {"name": "shop", "annotations": {
                "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/a"}}}),
        }
    }

    /// The pod afterwards, with a value for a parameter; `None` if it is denied.
    fn injected(&self, parameter: &Parameter, key: &str, value: &str) -> Option<Injected> {
        let (mut pod, mut namespace) = (self.pod.clone(), self.namespace.clone());
        let mut account = self.account.clone();
        let keys = self.template.spec.parameter_keys.as_ref();
        let (object, map, key) = match parameter.from.first() {
            Some(ParameterSource::PodAnnotation(key)) => (&mut pod, "annotations", key.clone()),
            Some(ParameterSource::PodLabel(key)) => (&mut pod, "labels", key.clone()),
            Some(ParameterSource::PodAnnotationPrefix(prefix)) => {
                (&mut pod, "annotations", format!("{prefix}{key}"))
            }
            Some(ParameterSource::NamespaceAnnotation(key)) => {
                (&mut namespace, "annotations", key.clone())
            }
            Some(ParameterSource::NamespaceLabel(key)) => (&mut namespace, "labels", key.clone()),
            Some(ParameterSource::NamespaceAnnotationPrefix(prefix)) => {
                (&mut namespace, "annotations", format!("{prefix}{key}"))
            }
            Some(ParameterSource::ServiceAccountAnnotation(key)) => {
                (&mut account, "annotations", key.clone())
            }
            None => {
                let (keys, key) = (keys?, parameter.key.as_ref()?);
                (&mut pod, "annotations", format!("{}{key}", keys.prefix))
            }
        };
        object["metadata"][map][key] = json!(value);
        let request = Request {
            pod: &pod,
            namespace: &namespace,
            service_account: Some(&account),
            owners: &[],
            own_namespace: None,
        };
        let injected = inject(std::slice::from_ref(&self.template), &request).ok()?;
        Some(injected)
    }
}

fn without_patterns(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_patterns),
        Value::Object(fields) => {
            fields.shift_remove("pattern");
            fields.values_mut().for_each(without_patterns);
        }
        _ => {}
    }
}

/// The example of the contract, without its patterns: they refuse most values; and the examples.
fn examples() -> Vec<Example> {
    let mut of_contract = yaml(SECRET_AGENT);
    without_patterns(&mut of_contract);
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/templates");
    let entries = fs::read_dir(directory).expect("examples");
    let mut files: Vec<_> =
        entries.map(|entry| entry.expect("an entry").path().join("template.yaml")).collect();
    files.sort();
    let files = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    let objects = [of_contract].into_iter().chain(files.map(|text| yaml(&text)));
    let examples = objects.map(|object| Example::new(&object));
    examples.filter(|example| !example.template.spec.parameters.is_empty()).collect()
}

#[expect(clippy::disallowed_methods, reason = "the variable is for people who run the test")]
fn cases() -> Option<u32> {
    std::env::var("INJECTD_SCALAR_CASES").ok().and_then(|cases| cases.parse().ok())
}

#[test]
fn nothing_leaves_its_scalar() {
    let cases = cases();
    let config = ProptestConfig::with_cases(cases.unwrap_or(CASES));
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..config });
    let examples = examples();
    assert!(examples.len() > 8, "{}", examples.len());
    let compared = Cell::new(0);
    let applied = RefCell::new(BTreeSet::new());
    let keys = select(vec!["one", "role", "service", "log-level", "tls-secret", "agent-image"]);
    let input = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), keys, values());
    let result = runner.run(&input, |(example, parameter, key, value)| {
        let example = example.get(&examples);
        let parameter = parameter.get(&example.template.spec.parameters);
        let found = example.injected(parameter, key, &value);
        let expected = example.injected(parameter, key, &neutral(&value));
        if let (Some(found), Some(expected)) = (found, expected) {
            compared.set(compared.get() + 1);
            let name = (example.template.key(), &parameter.name);
            if found.decisions[0].state == State::Applied {
                applied.borrow_mut().insert(name.0.clone());
            }
            let (mut found, mut expected) = (shape(&found.pod), shape(&expected.pod));
            found["metadata"]["name"] = json!(name);
            expected["metadata"]["name"] = json!(name);
            prop_assert_eq!(found, expected);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // Those that are for the pod: of the others, nothing is seen here.
    assert!(applied.borrow().len() > 3, "{applied:?}");
    assert!(compared.get() > cases.unwrap_or(CASES) / 4, "{}", compared.get());
}
