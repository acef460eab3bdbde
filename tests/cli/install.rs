//! `injectd manifest install`: what values make of the objects.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{commands::help, file, injectd, text};

/// No image is published: the chart has no default.
const IMAGE: &str = "image.repository=ghcr.io/injectd/injectd";

/// The objects for these values.
fn rendered(values: &Value) -> Vec<Value> {
    let values = file("values", values.to_string());
    rendered_with(&["-n", "mesh", "-f", values.path()])
}

fn rendered_with(args: &[&str]) -> Vec<Value> {
    let output =
        injectd(&[&["manifest", "install", "-o", "json", "--set", IMAGE], args].concat(), "");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{args:?}");
    let mut list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let Value::Array(items) = list["items"].take() else { panic!("no items") };
    items
}

/// Why these arguments are wrong.
fn refused(args: &[&str]) -> String {
    let output = injectd(&[&["manifest", "install", "-n", "mesh"], args].concat(), "");
    assert_eq!(output.status.code(), Some(64), "{args:?}: {}", text(&output.stderr));
    text(&output.stderr).to_owned()
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found =
        objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn webhooks<'a>(objects: &'a [Value], name: &str) -> &'a Value {
    &find(objects, "MutatingWebhookConfiguration", name)["webhooks"]
}

fn pod_of(objects: &[Value]) -> &Value {
    &find(objects, "Deployment", "injectd")["spec"]["template"]
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    match values {
        [] => json!({"key": key, "operator": operator}),
        _ => json!({"key": key, "operator": operator, "values": values}),
    }
}

/// No webhook selects these pods.
fn not_own() -> Value {
    requirement("app.kubernetes.io/name", "NotIn", &["injectd"])
}

#[test]
fn fields_of_overrides_win_over_defaults_and_these_over_the_mesh() {
    let rule = |resource: &str| {
        json!({"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "scope": "*",
            "resources": [resource]})
    };
    let team = requirement("team", "Exists", &[]);
    let webhook_of = |defaults: Value, overrides: Value| {
        let objects = rendered(&json!({
            "webhookDefaults": defaults, "linkerd": {"webhookOverrides": overrides},
        }));
        webhooks(&objects, "injectd-linkerd")[0].clone()
    };
    let plain = webhook_of(json!({}), json!({}));
    assert_eq!(plain["rules"][0]["resources"], json!(["pods", "services"]));
    assert_eq!(plain["failurePolicy"], "Ignore");
    assert_eq!(plain["namespaceSelector"]["matchExpressions"][0]["operator"], "NotIn");

    let defaults = json!({
        "rules": [rule("pods/*")],
        "failurePolicy": "Fail",
        "timeoutSeconds": 5,
        "namespaceSelector": {"matchLabels": {"a": "b"}},
        "objectSelector": {"matchExpressions": []},
    });
    let changed = webhook_of(defaults.clone(), json!({}));
    assert_eq!(changed["rules"], json!([rule("pods/*")]));
    assert_eq!(
        (&changed["failurePolicy"], &changed["timeoutSeconds"]),
        (&json!("Fail"), &json!(5))
    );
    let namespaces = json!({
        "matchLabels": {"a": "b"},
        "matchExpressions": plain["namespaceSelector"]["matchExpressions"],
    });
    assert_eq!(changed["namespaceSelector"], namespaces);
    assert_eq!(changed["objectSelector"], json!({"matchExpressions": [not_own()]}));

    let overrides = json!({
        "rules": [rule("*/*")],
        "failurePolicy": "Ignore",
        "namespaceSelector": {"matchExpressions": [team]},
    });
    let replaced = webhook_of(defaults, overrides);
    assert_eq!(replaced["rules"], json!([rule("*/*")]));
    assert_eq!(replaced["failurePolicy"], "Ignore");
    assert_eq!(replaced["timeoutSeconds"], 5);
    let namespaces = json!({"matchLabels": {"a": "b"}, "matchExpressions": [team]});
    assert_eq!(replaced["namespaceSelector"], namespaces);
}

#[test]
fn selectors_of_overrides_never_widen_a_tag() {
    let own = |key: &str| requirement(key, "Exists", &[]);
    let objects = rendered(&json!({
        "linkerd": {"enabled": false},
        "webhookDefaults": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
        "istio": {
            "enabled": true,
            "tags": [{"tag": "canary", "revision": "next"}],
            "webhookOverrides": {
                "name": "inject.example.com",
                "namespaceSelector": {"matchExpressions": [own("team")]},
                "objectSelector": {"matchExpressions": [own("app")]},
            },
        },
    }));
    let webhooks = webhooks(&objects, "injectd-tag-canary");
    let off = requirement("sidecar.istio.io/inject", "NotIn", &["false"]);
    let tagged = requirement("istio.io/rev", "In", &["canary"]);
    let untagged = requirement("istio.io/rev", "DoesNotExist", &[]);
    let unlabelled = requirement("istio-injection", "DoesNotExist", &[]);
    let selector = |requirements: &[&Value]| json!({"matchExpressions": requirements});
    let namespaces = |requirements: &[&Value]| json!({"matchLabels": {"a": "b"}, "matchExpressions": requirements});
    let (team, app, not_own) = (own("team"), own("app"), not_own());
    for (webhook, name, namespaces, pods) in [
        (
            &webhooks[0],
            "rev.namespace.inject.example.com",
            namespaces(&[&team, &tagged, &unlabelled]),
            selector(&[&app, &off, &not_own]),
        ),
        (
            &webhooks[1],
            "rev.object.inject.example.com",
            namespaces(&[&team, &untagged, &unlabelled]),
            selector(&[&app, &off, &tagged, &not_own]),
        ),
    ] {
        assert_eq!(webhook["name"], name);
        assert_eq!(webhook["namespaceSelector"], namespaces, "{name}");
        assert_eq!(webhook["objectSelector"], pods, "{name}");
        assert_eq!(webhook["clientConfig"]["service"]["path"], "/istio/next/inject");
    }
    assert_eq!(webhooks.as_array().map(Vec::len), Some(2));
}

#[test]
fn every_field_of_a_webhook_can_be_set() {
    let mut webhook = json!({
        "name": "own.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "caBundle": "UEVN",
            "service": {"name": "other", "namespace": "there", "path": "/x", "port": 8443},
        },
        "failurePolicy": "Fail",
        "matchConditions": [{"name": "own", "expression": "object.metadata.name != 'x'"}],
        "matchPolicy": "Exact",
        "namespaceSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [not_own()]},
        "objectSelector": {"matchLabels": {"c": "d"}},
        "reinvocationPolicy": "IfNeeded",
        "rules": [
            {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"],
                "scope": "*"},
            {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["deployments/scale"], "scope": "Namespaced"},
        ],
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 30,
    });
    let mut of_url = webhook.clone();
    of_url["name"] = json!("url.example.com");
    of_url["clientConfig"] =
        json!({"url": "https://injector.example.com:8443/x", "caBundle": "UEVN"});
    let objects = rendered(&json!({
        "customWebhooks": [webhook, of_url],
        // The later one of url and service wins.
        "webhookDefaults": {"clientConfig": {"url": "https://injector.example.com/"}},
        "webhookLabels": {"label": "x"},
        "webhookAnnotations": {"annotation": "y"},
    }));
    for webhook in [&mut webhook, &mut of_url] {
        webhook["objectSelector"]["matchExpressions"] = json!([not_own()]);
    }
    assert_eq!(webhooks(&objects, "injectd-custom"), &json!([webhook, of_url]));
    let metadata = &find(&objects, "MutatingWebhookConfiguration", "injectd-custom")["metadata"];
    assert_eq!(metadata["labels"]["label"], "x");
    assert_eq!(metadata["annotations"]["annotation"], "y");
}

/// injectd compares webhooks with it while it serves.
#[test]
fn an_annotation_has_what_each_webhook_selects() {
    let condition = json!({"name": "not-a", "expression": "object.metadata.name != '<a>'"});
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["pods"]});
    let objects = rendered(&json!({
        "istio": {"enabled": true, "tags": [{"tag": "prod"}]},
        "linkerd": {"webhookOverrides": {"matchConditions": [condition]}},
        "customWebhooks": [{"name": "a.example.com", "rules": [rule]}],
    }));
    let configurations =
        objects.iter().filter(|object| object["kind"] == "MutatingWebhookConfiguration");
    let mut names = Vec::new();
    for configuration in configurations {
        let annotation = &configuration["metadata"]["annotations"]["injectd.dev/selectors"];
        let selectors: Value =
            serde_json::from_str(annotation.as_str().expect("an annotation")).expect("JSON");
        let webhooks = configuration["webhooks"].as_array().expect("webhooks");
        assert_eq!(selectors.as_object().map(serde_json::Map::len), Some(webhooks.len()));
        for webhook in webhooks {
            let selected = &selectors[webhook["name"].as_str().expect("a name")];
            for field in ["namespaceSelector", "objectSelector", "matchConditions"] {
                assert_eq!(selected.get(field), webhook.get(field), "{}", webhook["name"]);
            }
            names.push(webhook["name"].clone());
        }
    }
    let name = |kind: &str| format!("rev.{kind}.sidecar-injector.injectd");
    let linkerd = "linkerd.sidecar-injector.injectd";
    assert_eq!(names, [linkerd, &name("namespace"), &name("object"), "a.example.com"]);
}

/// Every replica watches them, whoever makes the certificates. A name without an object would be
/// reported as gone.
#[test]
fn the_configurations_that_exist_are_watched() {
    for (source, set) in [("managed", ""), ("secret", "certificates.secretName=a")] {
        let source = format!("certificates.source={source}");
        for webhook in [true, false] {
            let webhook_set = format!("linkerd.webhook={webhook}");
            let all = [&*source, "certificates.caBundle=ca", &webhook_set, set];
            let set = all
                .iter()
                .filter(|setting| !setting.is_empty())
                .flat_map(|setting| ["--set", setting]);
            let set: Vec<_> = set.collect();
            let objects = rendered_with(&[&["-n", "mesh"], &*set].concat());
            let args = &pod_of(&objects)["spec"]["containers"][0]["args"];
            let args = args.as_array().expect("arguments");
            let names = if webhook { "injectd-linkerd" } else { "" };
            let flag = json!(format!("--webhook-configurations={names}"));
            assert!(args.contains(&flag) && args.contains(&json!("--webhook-service=injectd")));
        }
    }
}

#[test]
fn pods_stay_what_the_service_selects() {
    let objects = rendered(&json!({
        "podLabels": {"app.kubernetes.io/name": "other", "app.kubernetes.io/instance": "x", "a": "b"},
    }));
    let labels = &pod_of(&objects)["metadata"]["labels"];
    let selector = &find(&objects, "Service", "injectd")["spec"]["selector"];
    for (key, value) in selector.as_object().expect("a selector") {
        assert_eq!(&labels[key], value, "{key}");
    }
    assert_eq!(labels["a"], "b");
}

#[test]
fn without_a_user_the_platform_chooses_it() {
    let objects = rendered(&json!({"runAsUser": null, "runAsGroup": null}));
    let security = &pod_of(&objects)["spec"]["containers"][0]["securityContext"];
    let expected = json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    });
    assert_eq!(security, &expected);
}

#[test]
fn a_default_that_is_removed_is_left_out_or_missing_by_name() {
    let optional = [
        "image.tag=null",
        "image.digest=null",
        "image.pullPolicy=null",
        "image.pullSecrets=null",
        "linkerd.webhookOverrides=null",
        "istio.revisions=null",
        "istio.env=null",
        "istio.tags=null",
        "istio.webhookOverrides=null",
        "webhookDefaults.timeoutSeconds=null",
        "customWebhooks=null",
        "webhookLabels=null",
        "webhookAnnotations=null",
        "certificates.caBundle=null",
        "certificates.certManagerCertificate=null",
        "topologySpreadConstraints=null",
        "resources=null",
        "priorityClassName=null",
        "nodeSelector=null",
        "tolerations=null",
        "affinity=null",
        "podAnnotations=null",
        "podLabels=null",
        "extraArgs=null",
        "extraEnv=null",
        "service.annotations=null",
        "serviceAccount.name=null",
        "serviceAccount.annotations=null",
        "networkPolicy.webhookFrom=null",
        "networkPolicy.metricsFrom=null",
        "serviceMonitor.labels=null",
        "prometheusRule.labels=null",
        "dashboard.labels=null",
        "podDisruptionBudget.maxUnavailable=null",
        "podDisruptionBudget.minAvailable=1",
    ];
    let sections = ["istio", "networkPolicy", "serviceMonitor", "prometheusRule", "dashboard"];
    let enabled = sections.map(|section| format!("{section}.enabled=true"));
    let mut args = vec!["-n", "mesh"];
    args.extend(
        optional
            .iter()
            .copied()
            .chain(enabled.iter().map(|setting| &**setting))
            .flat_map(|setting| ["--set", setting]),
    );
    let objects = rendered_with(&args);
    for object in &objects {
        let printed = object.to_string();
        assert!(!printed.contains("%!") && !printed.contains("<no value>"), "{printed}");
    }
    let budget = &find(&objects, "PodDisruptionBudget", "injectd")["spec"];
    assert_eq!((&budget["minAvailable"], &budget["maxUnavailable"]), (&json!(1), &Value::Null));
    assert!(webhooks(&objects, "injectd-linkerd")[0].get("timeoutSeconds").is_none());

    for required in ["image", "image.repository", "replicas", "logLevel", "service.port"] {
        let (section, name) = required.rsplit_once('.').unwrap_or(("values", required));
        let error = refused(&["--set", &format!("{required}=null")]);
        assert!(error.contains(&format!("{section}: {name} is required")), "{error}");
    }
}

#[test]
fn names_are_those_of_services_and_stay_text() {
    for name in ["a", "no", &"a".repeat(53)] {
        let objects = rendered_with(&["-n", "2024", "--name", name]);
        let service = find(&objects, "Service", name);
        assert_eq!(service["metadata"]["namespace"], "2024");
        for object in &objects {
            let name = object["metadata"]["name"].as_str().expect("a name");
            let most = if object["kind"] == "Service" { 63 } else { 253 };
            assert!(name.len() <= most, "{name}");
        }
    }
    for name in ["my.injectd", "1injectd", "Injectd", "injectd-", &"a".repeat(54)] {
        let error = refused(&["--name", name]);
        assert!(error.contains(name), "{error}");
    }
    for namespace in ["my.mesh", "Mesh", &"a".repeat(64)] {
        let output = injectd(&["manifest", "install", "-n", namespace], "");
        assert_eq!(output.status.code(), Some(64), "{namespace}");
        assert!(text(&output.stderr).contains(namespace), "{}", text(&output.stderr));
    }
}

#[test]
fn two_releases_in_a_namespace_share_no_object() {
    let names = |release: &str| {
        let args = ["-n", "mesh", "--name", release, "--mesh", "linkerd,istio,templates"];
        let tag = ["--set", "istio.tags[0].tag=x", "--set", "networkPolicy.enabled=true"];
        let tag = [&tag[..], &["--set", "audit.enabled=true"]].concat();
        let objects = rendered_with(&[&args[..], &tag].concat());
        // One release of a cluster has them.
        let own = objects.iter().filter(|object| object["kind"] != "CustomResourceDefinition");
        own.map(|object| format!("{} {}", object["kind"], object["metadata"]["name"])).collect()
    };
    let (one, other): (Vec<_>, Vec<_>) = (names("injectd"), names("injectd-2"));
    assert!(one.iter().all(|object| !other.contains(object)), "{one:?} {other:?}");
}

/// Leases that two releases share would let one of them have no leader. The usual release has the names that
/// injectd has without a chart.
#[test]
fn each_release_has_leases_of_its_own() {
    for (release, prefix) in [("injectd", "injectd"), ("other", "other")] {
        let set = ["--set", "audit.enabled=true"];
        let args = ["-n", "mesh", "--name", release, "--mesh", "linkerd,templates"];
        let objects = rendered_with(&[&args[..], &set].concat());
        let pod = &find(&objects, "Deployment", release)["spec"]["template"]["spec"];
        let args = pod["containers"][0]["args"].to_string();
        for flag in ["--lease-prefix=PREFIX", "--certificate-secret=PREFIX-certificates"] {
            let flag = flag.replace("PREFIX", prefix);
            assert!(args.contains(&format!("\"{flag}\"")), "{flag}: {args}");
        }
        for of in ["audit", "certificates"] {
            let name = format!("{prefix}-{of}");
            find(&objects, "Lease", &name);
            let rules = find(&objects, "Role", &name)["rules"].as_array().expect("rules");
            let of_leases = rules.iter().find(|rule| rule["resources"] == json!(["leases"]));
            let names = &of_leases.expect("a rule for Leases")["resourceNames"];
            assert_eq!(names, &json!([name]), "{release}");
        }
    }
    let help = help("serve");
    let (_, of_prefix) = help.split_once("--lease-prefix").expect("the flag");
    let (of_prefix, _) = of_prefix.split_once("\n      --").expect("a flag after it");
    assert!(of_prefix.contains("[default: injectd]"), "{of_prefix}");
}

#[test]
fn roles_name_what_is_read_and_written() {
    let objects = rendered(&json!({
        "linkerd": {"webhook": false},
        "istio": {
            "enabled": true,
            "revisions": ["default", "canary"],
            "env": {"SHARED_MESH_CONFIG": "shared"},
            "tags": [{"tag": "prod"}],
        },
    }));
    let config_maps = &find(&objects, "Role", "injectd-mesh-istio")["rules"][0];
    let names =
        ["istio-sidecar-injector", "istio", "istio-sidecar-injector-canary", "istio-canary"];
    let names: Vec<_> = names.into_iter().chain(["shared"]).collect();
    assert_eq!(config_maps["resourceNames"], json!(names));
    // Linkerd's webhook configuration is that of no release, or of another one.
    let webhooks = &find(&objects, "ClusterRole", "injectd-mesh-certificates")["rules"][0];
    assert_eq!(webhooks["resourceNames"], json!(["injectd-custom", "injectd-tag-prod"]));
    let args = pod_of(&objects)["spec"]["containers"][0]["args"].to_string();
    assert!(args.contains("\"--webhook-configurations=injectd-tag-prod\""), "{args}");
}

#[test]
fn words_that_are_booleans_in_yaml_are_text() {
    let set = ["audit.enabled=true", "audit.restart=on", "podLabels.a=yes", "podLabels.b=*"];
    let args: Vec<_> = set.iter().flat_map(|setting| ["--set", setting]).collect();
    let objects = rendered_with(&[&["-n", "mesh"], &*args].concat());
    let pod = pod_of(&objects);
    assert!(pod["spec"]["containers"][0]["args"].to_string().contains("\"--restart=on\""));
    assert_eq!(pod["metadata"]["labels"]["a"], "yes");
    assert_eq!(pod["metadata"]["labels"]["b"], "*");
}

#[test]
fn grpc_is_on_by_its_flag() {
    let args = |values: Value| pod_of(&rendered(&values))["spec"]["containers"][0]["args"].clone();
    assert!(args(json!({})).to_string().contains("\"--grpc-addr=\""));
    let on = args(json!({"extraArgs": ["--grpc-addr=:8444", "--grpc-client-ca=/ca.crt"]}));
    assert_eq!(on.to_string().matches("--grpc-addr").count(), 1, "{on}");
}

#[test]
fn a_network_policy_is_there_where_the_api_servers_are_known() {
    let from = json!([{"ipBlock": {"cidr": "10.0.0.0/24"}}]);
    for (values, expected) in [
        (json!({}), false),
        (json!({"webhookFrom": from}), true),
        (json!({"enabled": false, "webhookFrom": from}), false),
        (json!({"enabled": true}), true),
    ] {
        let objects = rendered(&json!({"networkPolicy": values}));
        let found = objects.iter().any(|object| object["kind"] == "NetworkPolicy");
        assert_eq!(found, expected, "{values}");
    }
}

/// The rules of roles: API group, resource, verb.
fn rules(objects: &[Value], name: &str) -> Vec<(String, String, String)> {
    let named = objects.iter().filter(|object| {
        let is_role = object["kind"] == "Role" || object["kind"] == "ClusterRole";
        is_role && object["metadata"]["name"].as_str().is_some_and(|role| role.ends_with(name))
    });
    let rules = named.flat_map(|role| role["rules"].as_array().expect("rules"));
    let texts = |value: &Value| {
        let texts = value.as_array().expect("a list").iter();
        texts.map(|text| text.as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    for rule in rules {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let with = |verb| (group.clone(), resource.clone(), verb);
                found.extend(texts(&rule["verbs"]).into_iter().map(with));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_page_on_security_lists_every_permission_of_the_chart() {
    let page = include_str!("../../SECURITY.md");
    let listed = |feature: &str| {
        let mut found = Vec::new();
        let item =
            page.split("\n- `").find_map(|item| item.strip_prefix(feature)?.strip_prefix('`'));
        for line in item.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("  - ")) {
            let (resources, rest) = line.split_once(" (").expect("resources (group): verbs.");
            let (group, rest) = rest.split_once("): ").expect("resources (group): verbs.");
            let verbs = rest.split_once(". Objects: ").expect("verbs and objects").0;
            for resource in resources.split(", ") {
                let group = if group == "core" { "" } else { group };
                let with = |verb: &str| (group.to_owned(), resource.to_owned(), verb.to_owned());
                found.extend(verbs.split(", ").map(with));
            }
        }
        found.sort();
        found
    };
    let with = |restart: &str| {
        rendered(&json!({
            "istio": {"enabled": true, "openshift": true},
            "templates": {"enabled": true, "manageWebhook": restart == "on"},
            "audit": {"enabled": true, "restart": restart},
        }))
    };
    let (objects, dry) = (with("on"), with("dry-run"));
    let source = json!({"source": "secret", "secretName": "a", "caBundle": "ca"});
    let own = rendered(&json!({"certificates": source}));
    let audit = rules(&dry, "-audit");
    let mut restarts = rules(&objects, "-audit");
    restarts.retain(|rule| !audit.contains(rule));
    let templates = rules(&dry, "-templates");
    let mut managed = rules(&objects, "-templates");
    managed.retain(|rule| !templates.contains(rule));
    let people = [rules(&objects, "-template-admin"), rules(&objects, "-template-view")].concat();
    for (feature, rules) in [
        ("linkerd.enabled", rules(&objects, "-linkerd")),
        ("istio.enabled", rules(&objects, "-istio")),
        ("certificates.source: managed", rules(&objects, "-certificates")),
        ("certificates.source: secret", rules(&own, "-webhooks")),
        ("audit.enabled", audit),
        ("audit.restart", restarts),
        ("templates.enabled", templates),
        ("templates.manageWebhook", managed),
        ("crds.enabled", people),
    ] {
        assert!(!rules.is_empty());
        let mut rules = rules;
        rules.sort();
        assert_eq!(listed(feature), rules, "{feature}");
    }
    let roles = objects.iter().chain(&own);
    let roles = roles.filter(|object| object["kind"] == "Role" || object["kind"] == "ClusterRole");
    let names = roles.map(|role| role["metadata"]["name"].as_str().expect("a name"));
    let ends = ["-linkerd", "-istio", "-certificates", "-webhooks", "-audit"];
    let ends = [&ends[..], &["-templates", "-template-admin", "-template-view"]].concat();
    for name in names {
        assert!(ends.iter().any(|end| name.ends_with(end)), "SECURITY.md lacks {name}");
    }
}

#[test]
fn the_network_policy_admits_the_test_beside_api_servers() {
    let api_servers = json!([{"ipBlock": {"cidr": "10.0.0.0/24"}}]);
    let policy = |from: Value| {
        let objects = rendered(&json!({"networkPolicy": {"enabled": true, "webhookFrom": from}}));
        find(&objects, "NetworkPolicy", "injectd")["spec"]["ingress"][0].clone()
    };
    assert_eq!(policy(json!([])).get("from"), None);
    let from = &policy(api_servers.clone())["from"];
    assert_eq!(from[0], api_servers[0]);
    let labels = &from[1]["podSelector"]["matchLabels"];
    assert_eq!(labels["app.kubernetes.io/name"], "injectd-test");
}

#[test]
fn values_that_the_api_does_not_have_are_named() {
    for (set, problem) in [
        ("webhookDefaults.name=a.example.com", "webhookDefaults.name"),
        ("webhookDefaults.sideEffects=Some", "webhookDefaults.sideEffects"),
        ("customWebhooks[0].name=a.example.com", "needs name and rules"),
        ("istio.webhookOverrides.rules[0].verbs=[GET]", "unknown value"),
        ("istio.tags[1].tag=x", "istio.tags[0]: expected object, found null"),
        ("templates.namespacedTemplates=strict", "templates.namespacedTemplates: expected"),
        ("linkerd.webhookOverrides.objectSelector.matchExpressions=[{key: a}]", "operator"),
    ] {
        let error = refused(&["--set", set]);
        assert!(error.contains(problem), "{set}: {error}");
    }
}

#[test]
fn kubectl_builds_the_bases() {
    for mesh in ["linkerd", "istio", "templates"] {
        let folder = format!("{}/deploy/kustomize/{mesh}", env!("CARGO_MANIFEST_DIR"));
        let kubectl =
            Command::new("kubectl").args(["kustomize", &folder]).stdin(Stdio::null()).output();
        let Ok(output) = kubectl else {
            drop(writeln!(std::io::stderr(), "skipped: needs kubectl"));
            return;
        };
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{mesh}");
        let printed = text(&output.stdout);
        assert!(printed.contains("image: ghcr.io/injectd/injectd:0.1.0"), "{printed}");
        let base = std::fs::read_to_string(format!("{folder}/injectd.yaml")).expect("a base");
        let objects = |text: &str| text.matches("\nkind: ").count();
        assert_eq!(objects(printed), objects(&base), "{mesh}");
    }
}

#[test]
fn a_manifest_is_not_values() {
    let manifest = file("manifest", "apiVersion: apps/v1\nkind: Deployment\n");
    let output = injectd(&["manifest", "install", "-n", "mesh", "-f", manifest.path()], "");
    assert_eq!(output.status.code(), Some(1));
    let problem = "expected values of the chart, not the manifest of a Deployment";
    assert!(text(&output.stderr).contains(problem), "{}", text(&output.stderr));
}

#[test]
fn values_that_would_end_the_process_are_refused() {
    for (set, problem) in [
        ("certificates.managed.lifetime=10s", "must be at least 1m"),
        ("certificates.managed.lifetime=8000h", "at most half of caLifetime, 8760h"),
        ("certificates.managed.lifetime=a month", "\"a month\" is no duration"),
        ("extraArgs[0]=--addr=:1", "extraArgs: the chart sets --addr by a value of its own"),
        ("extraArgs[0]=--adr=:1", "extraArgs: injectd serve has no flag --adr"),
        ("extraArgs={--max-connections=5,--max-requests=5}", "a list is written in brackets"),
        ("replicas=2", "image.repository: no image of injectd is published yet; build one"),
        ("linkerd.enabled=false", "error: set linkerd.enabled, istio.enabled or templates.enabled"),
    ] {
        let error = refused(&["--set", set]);
        assert!(error.contains(problem), "{set}: {error}");
    }
    let set = ["certificates.managed.lifetime=1m", "certificates.managed.caLifetime=1m60s"];
    rendered_with(&["-n", "mesh", "--set", set[0], "--set", set[1]]);
    rendered(&json!({"extraArgs": ["--max-connections", "5", "--drain-delay=1s"]}));
}

/// The chart refuses others, because the process would.
#[test]
fn the_chart_knows_the_flags_of_serve() {
    let checks = include_str!("../../deploy/helm/injectd/templates/checks.yaml");
    let lists = checks.lines().filter(|line| line.contains(" := list \"--"));
    let mut known: Vec<_> = lists.flat_map(|line| line.split('"').skip(1).step_by(2)).collect();
    known.sort_unstable();
    let help = help("serve");
    let words = help.lines().filter(|line| line.trim_start().starts_with('-'));
    let flags = words.filter_map(|line| line.split_whitespace().find(|it| it.starts_with("--")));
    let mut flags: Vec<_> =
        flags.map(|flag| flag.split(['=', '[', ',']).next().unwrap_or(flag)).collect();
    flags.retain(|flag| !["--help", "--version"].contains(flag));
    flags.sort_unstable();
    assert_eq!(known, flags);
}

#[test]
fn tags_of_istio_refuse_pods_while_no_injector_answers() {
    let objects = rendered(&json!({"istio": {"enabled": true, "tags": [{"tag": "canary"}]}}));
    assert_eq!(webhooks(&objects, "injectd-linkerd")[0]["failurePolicy"], "Ignore");
    for webhook in webhooks(&objects, "injectd-tag-canary").as_array().expect("a list") {
        assert_eq!(webhook["failurePolicy"], "Fail");
    }
}

#[test]
fn the_leader_writes_further_configurations() {
    let objects = rendered(&json!({"certificates": {
        "managed": {"webhookConfigurations": ["istio-sidecar-injector"]},
    }}));
    let names = "injectd-linkerd,istio-sidecar-injector";
    let args = &find(&objects, "Deployment", "injectd")["spec"]["template"]["spec"]["containers"]
        [0]["args"];
    assert!(args.to_string().contains(&format!("--webhook-configurations={names}")), "{args}");
    let role = find(&objects, "ClusterRole", "injectd-mesh-certificates");
    assert!(role["rules"][0]["resourceNames"].to_string().contains("istio-sidecar-injector"));
}

/// The arguments of the process.
fn process_args(objects: &[Value]) -> Vec<&str> {
    let args = pod_of(objects)["spec"]["containers"][0]["args"].as_array().expect("arguments");
    args.iter().map(|arg| arg.as_str().expect("a text")).collect()
}

fn kinds(objects: &[Value], kind: &str) -> usize {
    objects.iter().filter(|object| object["kind"] == kind).count()
}

#[test]
fn templates_are_installed_alone_or_beside_meshes() {
    for meshes in ["templates", "linkerd,templates", "linkerd,istio,templates"] {
        let objects = rendered_with(&["-n", "mesh", "--mesh", meshes]);
        let args = process_args(&objects);
        for mesh in ["linkerd", "istio", "templates"] {
            let flag = format!("--mesh={mesh}");
            assert_eq!(args.contains(&&*flag), meshes.contains(mesh), "{meshes}: {args:?}");
        }
        for flag in [
            "--namespaced-templates=baseline",
            "--manage-webhook",
            "--template-webhook=injectd-templates",
        ] {
            assert!(args.contains(&flag), "{flag}: {args:?}");
        }
        let names = args.iter().find_map(|arg| arg.strip_prefix("--webhook-configurations="));
        assert!(names.is_some_and(|names| names.ends_with("injectd-templates")), "{names:?}");
        assert_eq!(kinds(&objects, "CustomResourceDefinition"), 2);
    }
    let none = rendered(&json!({}));
    let has_templates = |object: &Value| object.to_string().contains("sidecartemplates");
    assert!(!none.iter().any(has_templates), "{none:?}");
    assert!(!process_args(&none).iter().any(|arg| arg.contains("template")));
}

/// Who writes a field last would take back what the other one wrote.
#[test]
fn the_chart_does_not_write_what_the_leader_writes_into_the_webhook_of_templates() {
    let narrowed = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}});
    let of = |templates: Value| {
        let objects = rendered(&json!({"templates": templates, "webhookDefaults": narrowed}));
        find(&objects, "MutatingWebhookConfiguration", "injectd-templates").clone()
    };
    let managed = of(json!({"enabled": true}));
    let webhook = &managed["webhooks"][0];
    assert_eq!(
        (webhook.get("namespaceSelector"), webhook.get("objectSelector")),
        (None, None),
        "{webhook}"
    );
    // By the label alone, any pod would be left out whose author writes it.
    let label = "'app.kubernetes.io/name'";
    let labels = "object.metadata.labels";
    let not_own_pods = json!({"name": "not-injectd", "expression": format!(
        "request.namespace != 'mesh' || !(has({labels}) && {label} in {labels} && {labels}[{label}] == 'injectd')"
    )});
    assert_eq!(webhook["matchConditions"], json!([not_own_pods]));
    assert_eq!(webhook["reinvocationPolicy"], "IfNeeded");
    assert_eq!(webhook["clientConfig"]["service"]["path"], "/templates");
    assert!(managed["metadata"]["annotations"].get("injectd.dev/selectors").is_none());

    let condition = json!({"name": "a", "expression": "true"});
    let own = of(json!({"enabled": true, "manageWebhook": false,
        "webhookOverrides": {"matchConditions": [condition]}}));
    let webhook = &own["webhooks"][0];
    assert_eq!(webhook["namespaceSelector"], narrowed["namespaceSelector"]);
    assert!(webhook.get("objectSelector").is_none(), "{webhook}");
    assert_eq!(webhook["matchConditions"], json!([condition, not_own_pods]));
    assert!(own["metadata"]["annotations"]["injectd.dev/selectors"].is_string());

    let error = refused(&[
        "--mesh=templates",
        "--set=templates.webhookOverrides.objectSelector.matchLabels.a=b",
    ]);
    let problem = "templates.webhookOverrides.objectSelector: injectd writes it by the templates";
    assert!(error.contains(problem), "{error}");
}

#[test]
fn flags_of_templates_are_values() {
    let objects = rendered_with(&[
        "-n=mesh",
        "--mesh=templates",
        "--namespaced-templates=off",
        "--manage-webhook=false",
    ]);
    let args = process_args(&objects);
    assert!(args.contains(&"--namespaced-templates=off"), "{args:?}");
    assert!(!args.contains(&"--manage-webhook"), "{args:?}");
    let set = ["-n=mesh", "--mesh=templates", "--set=templates.namespacedTemplates=restricted"];
    assert!(process_args(&rendered_with(&set)).contains(&"--namespaced-templates=restricted"));
}

#[test]
fn templates_of_a_config_map_need_no_definitions() {
    let objects = rendered(&json!({
        "linkerd": {"enabled": false}, "templates": {"enabled": true, "configMap": "sidecars"},
    }));
    let args = process_args(&objects);
    assert!(args.contains(&"--templates=/var/run/templates"), "{args:?}");
    assert!(!args.contains(&"--manage-webhook"), "{args:?}");
    let spec = &pod_of(&objects)["spec"];
    assert_eq!(spec["volumes"], json!([{"name": "templates", "configMap": {"name": "sidecars"}}]));
    let mount = json!({"name": "templates", "mountPath": "/var/run/templates", "readOnly": true});
    assert_eq!(spec["containers"][0]["volumeMounts"], json!([mount]));
    assert_eq!(kinds(&objects, "CustomResourceDefinition"), 0);
    let may = rules(&objects, "-templates");
    assert!(may.iter().all(|(group, _, _)| group != "injectd.dev"), "{may:?}");
}

#[test]
fn definitions_stay_when_the_release_goes_unless_a_value_says_otherwise() {
    let of = |values: Value| {
        let objects = rendered(&values);
        let crds =
            objects.into_iter().filter(|object| object["kind"] == "CustomResourceDefinition");
        crds.map(|crd| crd["metadata"].clone()).collect::<Vec<_>>()
    };
    let policy = |crd: &Value| crd["annotations"]["helm.sh/resource-policy"].clone();
    let kept = of(json!({"templates": {"enabled": true}}));
    assert_eq!(kept.iter().map(policy).collect::<Vec<_>>(), [json!("keep"), json!("keep")]);
    assert_eq!(kept[0]["labels"]["app.kubernetes.io/instance"], "injectd");
    let deleted = of(json!({"templates": {"enabled": true}, "crds": {"keep": false}}));
    assert_eq!(deleted.iter().map(policy).collect::<Vec<_>>(), [Value::Null, Value::Null]);
    assert_eq!(of(json!({"crds": {"enabled": true}})).len(), 2);
    assert_eq!(of(json!({"templates": {"enabled": true}, "crds": {"enabled": false}})).len(), 0);
}

/// The printed roles give templates of a namespace to those who may create pods in it, and those of the
/// cluster to nobody.
#[test]
fn roles_for_people_have_no_cluster_templates_to_write() {
    let objects = rendered(&json!({"templates": {"enabled": true}}));
    let label = |role: &str, to: &str| {
        let role = find(&objects, "ClusterRole", role);
        role["metadata"]["labels"][format!("rbac.authorization.k8s.io/aggregate-to-{to}")].clone()
    };
    assert_eq!(label("injectd-mesh-template-admin", "admin"), "true");
    assert_eq!(label("injectd-mesh-template-admin", "edit"), Value::Null);
    assert_eq!(label("injectd-mesh-template-view", "view"), "true");
    let writes = rules(&objects, "-template-admin");
    assert!(writes.iter().all(|(_, resource, _)| resource == "sidecartemplates"), "{writes:?}");
}
