//! Any text as a template, and any text as values of parameters: nothing panics, and what is injected once is
//! injected again. The test of random texts has this module, and so have the fuzz targets.

use std::sync::LazyLock;

use injectd_templates::{Template, object::ParameterSource};
use injectd_templates_tree::{Request, State, inject, lay};
use injectd_yaml::{Options, parse};
use serde_json::{Value, json};

static EXAMPLE: LazyLock<Template> = LazyLock::new(|| {
    let text = include_str!("parameters.yaml");
    let object = parse(text, Options::default()).expect("the template must be YAML");
    Template::read(&object).expect("the template must be valid")
});

fn pod() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "annotations": {
            "secrets.example.com/inject": "true", "secrets.example.com/role": "shop",
            "secrets.example.com/secret-db": "db/shop", "example.com/items": "a,b"}},
        "spec": {
            "initContainers": [{"name": "init", "image": "init"}],
            "containers": [
                {"name": "app", "image": "app", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}]},
                {"name": "sidecar", "image": "sidecar"}],
            "volumes": [{"name": "data", "emptyDir": {}}]},
    })
}

/// Whether a template is applied to a pod, and how.
fn applied(template: &Template, pod: &Value) -> bool {
    let namespace = json!({"metadata": {"name": "shop", "labels": {}, "annotations": {}}});
    let request = Request {
        pod,
        namespace: &namespace,
        service_account: None,
        owners: &[],
        own_namespace: None,
    };
    let Ok(injected) = inject(std::slice::from_ref(template), &request) else { return false };
    drop(lay::patch(pod, &injected.pod));
    let request = Request { pod: &injected.pod, ..request };
    let again = inject(std::slice::from_ref(template), &request);
    // With its mark, a pod is not changed again.
    let again = again.unwrap_or_else(|denied| panic!("{denied}")).pod;
    assert_eq!(again, injected.pod, "{}", lay::patch(&injected.pod, &again).len());
    injected.decisions.iter().any(|decision| decision.state == State::Applied)
}

/// Any text as a template. The answer is whether it is applied to a pod; nothing if it is no template.
pub(crate) fn template(text: &str) -> Option<bool> {
    let object = parse(text, Options::default()).ok()?;
    match Template::read(&object) {
        Ok(template) => Some(applied(&template, &pod())),
        Err(problems) => {
            assert!(!problems.is_empty(), "a template is refused for a reason");
            None
        }
    }
}

/// Any text as the values of parameters, a line each, in their order. The answer is whether the template is
/// applied to the pod.
pub(crate) fn parameters(text: &str) -> bool {
    let mut pod = pod();
    for (parameter, line) in EXAMPLE.spec.parameters.iter().zip(text.split('\n')) {
        let (map, key) = match parameter.from.first() {
            Some(ParameterSource::PodAnnotationPrefix(prefix)) => {
                ("annotations", format!("{prefix}x"))
            }
            Some(ParameterSource::PodLabel(key)) => ("labels", key.clone()),
            Some(source) => ("annotations", source.key().to_owned()),
            None => continue,
        };
        pod["metadata"][map][key] = json!(line);
    }
    applied(&EXAMPLE, &pod)
}
