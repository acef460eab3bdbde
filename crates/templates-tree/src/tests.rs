//! Whole templates on whole pods.

use injectd_templates::Template;
use injectd_yaml::Options;
use serde_json::{Value, json};

use crate::{Injected, Request, inject};

fn yaml(text: &str) -> Value {
    injectd_yaml::parse(text, Options::default()).expect("YAML")
}

fn template(text: &str) -> Template {
    Template::read(&yaml(text)).unwrap_or_else(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", problems.join("\n"))
    })
}

fn injected(templates: &[Template], pod: &Value) -> Result<Injected, String> {
    let namespace = json!({"metadata": {"name": "shop", "labels": {}}});
    let request = Request {
        pod,
        namespace: &namespace,
        service_account: None,
        owners: &[],
        own_namespace: None,
    };
    inject(templates, &request).map_err(|denied| denied.to_string())
}

const SECRET_AGENT: &str = include_str!("../../templates/src/read/tests/secret-agent.yaml");

fn pod() -> Value {
    json!({
        "metadata": {"name": "web", "annotations": {
            "secrets.example.com/inject": "true",
            "secrets.example.com/role": "shop",
            "secrets.example.com/cpu": "0.25",
            "secrets.example.com/secret-db": "db/shop",
        }},
        "spec": {"containers": [{"name": "app", "image": "app"}]},
    })
}

#[test]
fn the_example_of_the_contract_is_injected() {
    let templates = [template(SECRET_AGENT)];
    let first = injected(&templates, &pod()).expect("it is injected");
    let spec = &first.pod["spec"];
    assert_eq!(spec["initContainers"][1]["restartPolicy"], "Always");
    assert_eq!(spec["initContainers"][0]["resources"]["requests"]["cpu"], "0.25");
    assert_eq!(spec["initContainers"][0].get("securityContext"), None);
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["mountPath"], "/secrets");
    let second = injected(&templates, &first.pod).expect("it is injected");
    assert_eq!(second.pod, first.pod);
}
