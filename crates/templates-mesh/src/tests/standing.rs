//! A pod that was just injected is as it should be, and the one before lacks what it gets.

use injectd_core::explain::Explain as _;
use injectd_templates_tree::{Request, Stands, inject, standings};
use serde_json::{Value, json};

use super::{
    cases::{Case, examples},
    metadata, origin, read,
};
use crate::Templates;

/// How a pod stands to a template in the surroundings of a case.
fn stands(template: &Value, case: &Case, pod: &Value) -> Stands {
    let template = read(template);
    let of_namespace = metadata(case);
    let origin = origin(case, "shop", &of_namespace);
    let namespace = origin.namespace_object();
    let request = Request {
        pod,
        namespace: &namespace,
        service_account: origin.service_account.as_ref(),
        owners: &origin.owners,
        own_namespace: None,
    };
    let all = standings(&[&template], &request);
    all.into_iter().next().expect("must be one").stands
}

#[test]
fn injected_pods_of_examples_are_as_they_should_be() {
    let mut injections = 0;
    for example in examples() {
        let template = [read(&example.template)];
        for case in &example.cases {
            let of_namespace = metadata(case);
            let origin = origin(case, "shop", &of_namespace);
            let namespace = origin.namespace_object();
            let request = Request {
                pod: &case.pod,
                namespace: &namespace,
                service_account: origin.service_account.as_ref(),
                owners: &origin.owners,
                own_namespace: None,
            };
            let Ok(injected) = inject(&template, &request) else { continue };
            let (key, name) = (template[0].key(), &case.pod["metadata"]["name"]);
            if injected.pod == case.pod {
                let found = stands(&example.template, case, &case.pod);
                assert!(
                    matches!(found, Stands::Absent(_) | Stands::Present),
                    "{key}: {name}: {found:?}"
                );
                continue;
            }
            injections += 1;
            let found = stands(&example.template, case, &injected.pod);
            assert_eq!(found, Stands::Present, "{key}: {name}");
            assert_eq!(
                stands(&example.template, case, &case.pod),
                Stands::Missing,
                "{key}: {name}"
            );
        }
    }
    assert!(injections > 30, "{injections}");
}

/// Pods of a workload are judged once, unless their names decide.
#[test]
fn names_decide_only_if_an_expression_reads_them() {
    let reads = |expression: &str| {
        let template = json!({"apiVersion": "injectd.dev/v1alpha1", "kind": "ClusterSidecarTemplate",
            "metadata": {"name": "agent"}, "spec": {
                "match": {"conditions": [{"name": "c", "expression": expression}]},
                "steps": [{"name": "a", "overlay": {"spec": {"containers": [{"name": "a", "image": "a"}]}}}]}});
        Templates::new([read(&template)], None, 1).reads_names()
    };
    assert!(!reads("object.metadata.?labels['app'].orValue('') == 'web'"));
    for names in [
        "object.metadata.?name.orValue('') == 'web'",
        "object.spec.?nodeName.orValue('') == 'a'",
        "object == object",
    ] {
        assert!(reads(names), "{names}");
    }
}
