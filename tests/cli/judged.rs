//! What `explain` and `audit` judge about objects that were once judged wrongly, as people reported
//! them.

use serde_json::{Value, json};

use super::{
    injectd,
    istio::{Files, args},
    text,
};

fn case(name: &str) -> String {
    format!("{}/tests/cli/judged/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// The last lines of the text for people: verdict and advice, in one line.
fn conclusion(arguments: &[&str]) -> String {
    let output = injectd(arguments, "");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{arguments:?}");
    let (_, end) = text(&output.stdout).split_once("Verdict:").expect("a verdict");
    end.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The API server reads the pod before it calls a webhook.
const BY_DECODING: &str = "refused, by the decoding of pods: ";

#[test]
fn the_verdict_and_the_advice_are_those_of_the_pod() {
    for (name, verdict, advice) in [
        ("denied-annotation", BY_DECODING, "Quote the value in the manifest: metadata.annotations"),
        ("denied-type", BY_DECODING, "Correct the type of the field: spec.containers[0].ports is"),
        (
            "failing-condition",
            "refused: webhook linkerd-proxy-injector.linkerd.io rejects the pod",
            "Correct the matchConditions of linkerd-proxy-injector-webhook-config.",
        ),
        (
            "unknown-condition",
            "injected, if the webhook is called, which is not known",
            "See whether condition c of linkerd-proxy-injector-webhook-config is true.",
        ),
    ] {
        let found = conclusion(&["explain", &case(name)]);
        assert!(found.starts_with(verdict) && found.contains(advice), "{name}: {found}");
    }
    let files = Files::valid();
    let refused = case("refused");
    let found = conclusion(&[&args(&["explain"], files.paths())[..], &[&refused]].concat());
    assert!(found.starts_with("refused, by LimitRange limits"), "{found}");
    assert!(found.contains("Change the pod as LimitRange limits asks"), "{found}");
}

#[test]
fn proxies_that_no_injector_added_are_no_finding() {
    let files = Files::valid();
    let istio = args(&["audit"], files.paths());
    for (command, name, pods) in [(&["audit"][..], "control-plane", 1), (&istio, "gateways", 2)] {
        let path = case(name);
        let output = injectd(&[command, &["-o", "json", &path]].concat(), "");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{name}");
        let audit: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (&audit["pods"]["meshed"], &audit["workloads"]),
            (&pods.into(), &Value::Array(vec![]))
        );
    }
}

/// Whose configuration is not known is not answered by the rules of the other mesh.
#[test]
fn nobody_is_told_to_install_another_mesh() {
    let output = injectd(&["explain", &case("gateways")], "");
    let shown = text(&output.stdout);
    assert!(!shown.contains("Install the webhook of Linkerd"), "{shown}");
    assert!(shown.contains("Nothing: the pod belongs to Istio itself, or has a proxy"), "{shown}");
}

/// Conditions, and what they say of the pod.
const CONDITIONS: [(&str, Said); 4] = [
    ("true", Said::True),
    ("false", Said::False),
    ("object.metadata.annotations['gone'] == 'x'", Said::Fails),
    ("1 / 0 == 1", Said::Fails),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    True,
    False,
    Fails,
}

/// What the API server does about a webhook with two conditions: one that is false skips it, whatever the
/// other says; else one that fails is a failure of the webhook.
fn expected(conditions: [Said; 2], policy: &str) -> &'static str {
    match () {
        () if conditions.contains(&Said::False) => "skips",
        () if !conditions.contains(&Said::Fails) => "calls",
        () if policy == "Fail" => "refuses",
        () => "skips",
    }
}

/// A pod that asks for both meshes, with a webhook of an injector and one of somebody else.
fn with_conditions(service: &str, conditions: [(&str, [&str; 2], &str); 2]) -> String {
    let webhook = |(name, conditions, policy): (&str, [&str; 2], &str)| {
        let conditions =
            conditions.map(|text| json!({"name": text.len().to_string(), "expression": text}));
        json!({"name": format!("{name}.example.com"), "failurePolicy": policy,
            "clientConfig": {"service": {"name": name, "namespace": "mesh", "path": "/inject"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["pods"]}],
            "matchConditions": conditions})
    };
    let [mut own, other] = conditions.map(webhook);
    own["clientConfig"]["service"]["name"] = service.into();
    let configuration = |kind: &str, name: &str, webhook: Value| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name}, "webhooks": [webhook]})
    };
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop",
            "labels": {"istio-injection": "enabled"}, "annotations": {"linkerd.io/inject": "enabled"}}}),
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "shop", "annotations": {"a": "b"}},
            "spec": {"containers": [{"name": "app", "image": "app"}]}}),
        configuration("MutatingWebhookConfiguration", "own", own),
        configuration("ValidatingWebhookConfiguration", "other", other),
    ];
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

/// The verdict of `explain` is what the API server does about the pod, whosever conditions fail.
#[test]
fn the_verdict_is_what_the_api_server_does() {
    let files = Files::valid();
    let istio = args(&["explain", "-o", "json", "-"], files.paths());
    let linkerd = ["explain", "-o", "json", "-"];
    let plain = ["true"; 2];
    for (command, service) in [(&linkerd[..], "linkerd-proxy-injector"), (&istio, "istiod")] {
        for (one, said_one) in CONDITIONS {
            for (other, said_other) in CONDITIONS {
                for (policy, is_own) in
                    [("Fail", true), ("Ignore", true), ("Fail", false), ("Ignore", false)]
                {
                    let tried = ("a", [one, other], policy);
                    let pair = if is_own {
                        [tried, ("b", plain, "Fail")]
                    } else {
                        [("b", plain, "Fail"), tried]
                    };
                    let output = injectd(command, &with_conditions(service, pair));
                    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
                    let item = &list["items"][0];
                    let found = match () {
                        () if item["isRejected"] == true => "refuses",
                        () if item["notAsked"] != Value::Null => "skips",
                        () => "calls",
                    };
                    let mut expected = expected([said_one, said_other], policy);
                    // Whoever else is skipped, the injector is called.
                    if !is_own && expected == "skips" {
                        expected = "calls";
                    }
                    assert_eq!(found, expected, "{tried:?} {is_own}: {item}");
                    let verdict = item["verdict"] == "injected";
                    assert!(found != "calls" || verdict, "{item}");
                }
            }
        }
    }
}

/// A workload, its verdict, and how the text about what to do begins; empty for nothing.
type Expected = (&'static str, &'static str, &'static str);

const OF_LINKERD: [Expected; 6] = [
    ("linkerd-destination", "not injected", "Nothing: the pod belongs to Linkerd itself"),
    ("metrics-api", "injected", ""),
    (
        "coredns",
        "not injected",
        "Create the pod in a namespace that linkerd-proxy-injector-webhook-config does not leave \
         out. Annotate the namespace or the pod template with linkerd.io/inject: enabled",
    ),
    ("kube-proxy", "not injected", "Linkerd cannot inject pods with hostNetwork: true."),
    ("web", "injected", ""),
    ("off", "skipped", "Remove linkerd.io/inject: disabled"),
];

const OF_ISTIO: [Expected; 12] = [
    ("istiod", "not injected", ISTIOS_OWN),
    ("gateway", "not injected", ISTIOS_OWN),
    ("waypoint", "not injected", ISTIOS_OWN),
    ("ztunnel", "not injected", ISTIOS_OWN),
    ("istio-cni-node", "not injected", ISTIOS_OWN),
    ("web", "injected", ""),
    ("off", "not injected", "Remove the label sidecar.istio.io/inject=false"),
    ("asks", "injected", ""),
    ("none", "not injected", "Label the namespace istio-injection=enabled"),
    ("in-ambient", "not injected", "Nothing: the pod is in the mesh without a sidecar"),
    ("coredns", "not injected", "Create the pod in another namespace: Istio never injects"),
    ("node-agent", "not injected", "Istio cannot inject pods with hostNetwork: true."),
];
const ISTIOS_OWN: &str = "Nothing: the pod belongs to Istio itself";

/// What is said of the workloads of a complete installation.
#[test]
fn installations_need_nothing_that_is_wrong() {
    let files = Files::valid();
    let of_istio = args(&["explain", "-o", "json"], files.paths());
    for (command, name, expected) in [
        (&["explain", "-o", "json"][..], "linkerd-installation", &OF_LINKERD[..]),
        (&of_istio, "istio-installation", &OF_ISTIO),
    ] {
        let path = case(name);
        let output = injectd(&[command, &[&*path]].concat(), "");
        let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let items = list["items"].as_array().expect("a list");
        assert_eq!(items.len(), expected.len(), "{name}");
        for (item, (object, verdict, advice)) in items.iter().zip(expected) {
            assert_eq!(item["object"]["name"], *object);
            let found = match &item["notAsked"] {
                Value::Null => item["verdict"].as_str().expect("a verdict"),
                _ => "not injected",
            };
            let advised = item["advice"].as_str().expect("advice");
            assert!(
                found == *verdict && advised.starts_with(advice),
                "{object}: {found}: {advised}"
            );
            assert!(!advice.is_empty() || advised.is_empty(), "{object}: {advised}");
            // Settings of charts and of the control plane are no mistakes.
            assert_eq!(item["ignored"], json!([]), "{object}");
        }
    }
}
