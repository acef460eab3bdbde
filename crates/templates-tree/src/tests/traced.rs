//! Who wrote each field is said of every field that a template changed.

use serde_json::{Value, json};

use super::{SECRET_AGENT, pod, template};
use crate::{Explained, Request, State, explain, inject, lay::leaves::leaves};

fn explained(text: &str, pod: &Value) -> Explained {
    let namespace = json!({"metadata": {"name": "shop", "labels": {}}});
    let request = Request {
        pod,
        namespace: &namespace,
        service_account: None,
        owners: &[],
        own_namespace: None,
    };
    let templates = [template(text)];
    let explained = explain(&templates, &request);
    assert_eq!(explained.result, inject(&templates, &request));
    explained
}

/// Place, step, field and expression of each write.
fn writes(explained: &Explained) -> Vec<[String; 4]> {
    let all = explained.templates.iter().flat_map(|template| &template.writes);
    let row = all.map(|write| {
        let place = if write.is_removed { "-" } else { "" }.to_owned() + &write.place;
        let expression = write.expression.clone().unwrap_or_default();
        [place, write.step.clone(), write.field.clone(), expression]
    });
    row.collect()
}

#[test]
fn every_field_of_the_example_has_its_step_and_its_expression() {
    let pod = pod();
    let explained = explained(SECRET_AGENT, &pod);
    let writes = writes(&explained);
    for expected in [
        [
            r#"spec.initContainers["secret-init"].args"#,
            "agent",
            "spec.steps[0].overlay.spec.initContainers[0].args",
            "",
        ],
        [
            r#"spec.initContainers["secret-init"].image"#,
            "agent",
            "spec.variables[1].value.image",
            "",
        ],
        [
            r#"spec.initContainers["secret-agent"].resources.requests.cpu"#,
            "agent",
            "spec.variables[1].value.resources.requests.cpu",
            "params.cpu",
        ],
        [
            r#"spec.initContainers["secret-agent"].env["CONFIG"].value"#,
            "agent",
            "spec.variables[1].value.env[0].value",
            "base64(toJson(variables.config))",
        ],
        [
            r#"spec.containers["app"].volumeMounts["/secrets"].readOnly"#,
            "agent",
            "spec.steps[0].containers[0].overlay.volumeMounts[0].readOnly",
            "",
        ],
        [
            r#"spec.volumes["secrets"].emptyDir.medium"#,
            "agent",
            "spec.steps[0].overlay.spec.volumes[0].emptyDir.medium",
            "",
        ],
    ] {
        assert!(writes.contains(&expected.map(str::to_owned)), "{expected:?}: {writes:#?}");
    }
    // Nothing is left out but the mark.
    let injected = explained.result.expect("it is injected");
    let (before, after) = (leaves(&pod), leaves(&injected.pod));
    let changed = after.iter().filter(|(place, value)| before.get(*place) != Some(*value));
    let changed =
        changed.filter(|(place, _)| !place.iter().any(|key| key.starts_with("injectd.dev/")));
    assert_eq!(changed.count(), writes.len());
    let template = &explained.templates[0];
    assert_eq!(template.decision.as_ref().map(|decision| &decision.state), Some(&State::Applied));
    let expected = [
        ("cpu", "annotation secrets.example.com/cpu"),
        ("role", "annotation secrets.example.com/role"),
        ("secret", "annotations with prefix secrets.example.com/secret-"),
    ];
    let expected = expected.map(|(name, from)| (name.to_owned(), from.to_owned()));
    assert_eq!(template.parameters, expected.into());
}

const CHANGES: &str = r#"
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {name: changes}
spec:
  match: {namespaceSelector: {}}
  variables:
  - {name: names, value: [one, two]}
  steps:
  - name: labels
    overlay: {metadata: {labels: {a.example.com/b: "${object.metadata.name}-x"}}}
  - name: each
    forEach: {items: "variables.names", variables: [{name: image, value: {of: "image-${item}"}}]}
    overlay: {spec: {containers: [{name: "c-${item}", image: "${variables.image.of}", args: ["-a", "${item}"]}]}}
  - name: removes
    existing: Replace
    overlay: {spec: {securityContext: {$patch: delete}}}
    containers:
    - existing: Replace
      overlay: {env: [{name: OLD, $patch: delete}, {name: SAME, value: new}], command: "${['a']}"}
"#;

#[test]
fn items_of_loops_maps_lists_and_what_is_removed_have_theirs() {
    let mut pod = pod();
    pod["spec"]["securityContext"] = json!({"runAsUser": 5, "fsGroup": 6});
    let env = json!([{"name": "OLD", "value": "1"}, {"name": "SAME", "value": "old"}]);
    pod["spec"]["containers"][0]["env"] = env;
    let mut found = writes(&explained(CHANGES, &pod));
    found.sort();
    let expected = [
        [
            r#"-spec.containers["app"].env["OLD"]"#,
            "removes",
            "spec.steps[2].containers[0].overlay.env[0]",
            "",
        ],
        ["-spec.securityContext", "removes", "spec.steps[2].overlay.spec.securityContext", ""],
        [
            "metadata.labels.a.example.com/b",
            "labels",
            r#"spec.steps[0].overlay.metadata.labels["a.example.com/b"]"#,
            "${object.metadata.name}-x",
        ],
        [
            r#"spec.containers["app"].command"#,
            "removes",
            "spec.steps[2].containers[0].overlay.command",
            "['a']",
        ],
        [
            r#"spec.containers["app"].env["SAME"].value"#,
            "removes",
            "spec.steps[2].containers[0].overlay.env[1].value",
            "",
        ],
    ];
    for row in expected {
        assert!(found.contains(&row.map(str::to_owned)), "{row:?}: {found:#?}");
    }
    for name in ["c-one", "c-two"] {
        let place = |field: &str| format!("spec.containers[\"{name}\"].{field}");
        let overlay = "spec.steps[1].overlay.spec.containers[0]";
        for [field, path, expression] in [
            ["name", "name", "c-${item}"],
            ["image", "image", "variables.image.of"],
            ["args", "args", "item"],
        ] {
            let path = format!("{overlay}.{path}");
            let row = [place(field), "each".to_owned(), path, expression.to_owned()];
            assert!(found.contains(&row), "{row:?}: {found:#?}");
        }
    }
}

#[test]
fn a_denial_and_a_pod_that_has_all_are_explained_too() {
    let mut denied = pod();
    denied["metadata"]["annotations"]["secrets.example.com/role"] = "A".into();
    let explained_denial = explained(SECRET_AGENT, &denied);
    assert!(explained_denial.result.is_err());
    assert_eq!(explained_denial.templates[0].decision, None);
    let first = explained(SECRET_AGENT, &pod()).result.expect("it is injected");
    let second = explained(SECRET_AGENT, &first.pod);
    let state = second.templates[0].decision.as_ref().map(|decision| &decision.state);
    assert_eq!(state, Some(&State::Present { is_outdated: false }));
    assert_eq!(writes(&second).len(), 0);
}
