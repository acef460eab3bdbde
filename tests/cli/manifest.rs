//! `injectd manifest guard`: the whole output for both meshes, and for templates.
//!
//! `BLESS=1` rewrites the files in `manifest`.

use std::fs;

use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::{injectd, is_blessed, text};

fn path(name: &str) -> String {
    format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn printed(args: &[&str]) -> String {
    let output = injectd(&[&["manifest", "guard"], args].concat(), "");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{args:?}");
    text(&output.stdout).to_owned()
}

#[test]
fn the_objects_of_both_meshes() {
    for (name, args) in [
        ("guard-linkerd.yaml", &[][..]),
        ("guard-istio.yaml", &["--mesh", "istio", "--revision", "default,canary"]),
        (
            "guard-istio-settings.yaml",
            &[
                "--mesh=istio",
                "--istio-release=1.24.6",
                "--enable-namespaces-by-default",
                "--injector-policy=disabled",
                "--never-inject-selector=job",
                "--always-inject-selector=team=shop,tier notin (old, test)",
                "--action=deny,audit",
                "--namespace-selector=guarded",
            ],
        ),
    ] {
        expect_file(name, &printed(args));
    }
}

/// Compares what is printed with a file in `manifest`.
fn expect_file(name: &str, found: &str) {
    let file = path(&format!("tests/cli/manifest/{name}"));
    if is_blessed() {
        fs::write(&file, found).expect("the file must be written");
    }
    let expected = fs::read_to_string(file).expect("must be there: run with BLESS=1");
    assert_eq!(found, expected, "{name}");
}

#[test]
fn the_objects_of_templates_and_what_they_lack() {
    let folder = path("tests/cli/manifest/guard-templates");
    let args = ["manifest", "guard", "--mesh=templates", "--templates", &folder];
    let output = injectd(&args, "");
    let notes = "note: template batch: pods without its sidecar are not reported: \
                 spec.match.conditions[0].expression: line 1, column 1: a webhook's condition cannot read \
                 owner: use object, or a selector beside it\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), notes));
    expect_file("guard-templates.yaml", text(&output.stdout));
}

#[test]
fn the_audit_needs_no_permission_to_change_workloads_unless_it_restarts_them() {
    let printed = |args: &[&str]| {
        let output =
            injectd(&[&["manifest", "audit", "-n", "mesh", "-o", "json"], args].concat(), "");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    let kinds = |list: &serde_json::Value| {
        let items = list["items"].as_array().expect("items");
        items
            .iter()
            .map(|item| item["kind"].as_str().expect("a kind").to_owned())
            .collect::<Vec<_>>()
    };
    let all = printed(&[]);
    assert_eq!(kinds(&all), ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]);
    let of_apps = |list: &serde_json::Value| {
        let rules = list["items"][0]["rules"].as_array().expect("rules");
        let apps = rules.iter().filter(|rule| rule["apiGroups"][0] == "apps");
        apps.map(|rule| (rule["resources"].clone(), rule["verbs"].clone())).collect::<Vec<_>>()
    };
    let workloads = || serde_json::json!(["deployments", "statefulsets", "daemonsets"]);
    let read = (workloads(), serde_json::json!(["get", "list"]));
    let write = [
        (workloads(), serde_json::json!(["patch"])),
        (serde_json::json!(["replicasets"]), serde_json::json!(["get"])),
    ];
    let owners = (serde_json::json!(["replicasets"]), serde_json::json!(["get"]));
    assert_eq!(of_apps(&all), [&[owners.clone(), read.clone()][..], &write].concat());
    assert_eq!(of_apps(&printed(&["--read-only"])), [owners, read]);
    let has = |place: usize, resource: &str| {
        let mut rules = all["items"][place]["rules"].as_array().expect("rules").iter();
        rules.any(|rule| rule["resources"].as_array().expect("a list").contains(&resource.into()))
    };
    // Sidecar templates.
    for (place, resource) in [
        (0, "clustersidecartemplates"),
        (0, "sidecartemplates"),
        (0, "serviceaccounts"),
        (2, "controllerrevisions"),
    ] {
        assert!(has(place, resource), "{resource}");
    }
    let yaml = injectd(&["manifest", "audit", "-n", "mesh"], "");
    assert_eq!(text(&yaml.stdout).matches("\n---\n").count(), 3);
}

#[test]
fn the_kinds_of_templates_are_printed_as_documents_or_as_a_list() {
    let printed = |args: &[&str]| {
        let output = injectd(&[&["manifest", "crds"], args].concat(), "");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
        text(&output.stdout).to_owned()
    };
    let list: serde_json::Value = serde_json::from_str(&printed(&["-o", "json"])).expect("JSON");
    let items = list["items"].as_array().expect("items");
    let kinds: Vec<_> = items.iter().map(|item| &item["spec"]["names"]["kind"]).collect();
    assert_eq!(kinds, ["ClusterSidecarTemplate", "SidecarTemplate"]);
    let yaml = printed(&[]);
    let documents: Vec<_> = yaml.split("\n---\n").collect();
    assert_eq!(documents.len(), items.len());
    for (document, item) in documents.iter().zip(items) {
        assert_eq!(&serde_saphyr::from_str::<serde_json::Value>(document).expect("YAML"), item);
    }
}

#[test]
fn json_is_one_list() {
    let list: serde_json::Value = serde_json::from_str(&printed(&["-o", "json"])).expect("JSON");
    assert_eq!(
        (&list["kind"], &list["items"][1]["kind"]),
        (&"List".into(), &"ValidatingAdmissionPolicyBinding".into())
    );
}

#[test]
fn wrong_flags_exit_with_64_and_one_line() {
    for (args, line) in [
        (
            &["--action", "warn,deny"][..],
            "error: --action: deny and warn exclude each other: the message of a refused pod is \
             shown anyway\n",
        ),
        (&["--revision", "a"], "error: --revision needs --mesh istio\n"),
        (&["--templates", "a"], "error: --templates needs --mesh templates\n"),
        (&["--mesh", "templates"], "error: --mesh templates needs --templates\n"),
        (
            &["--namespace-selector", "a in b"],
            "error: --namespace-selector \"a in b\": not a label selector; expected such as \
             team=shop,!old\n",
        ),
    ] {
        let output = injectd(&[&["manifest", "guard"], args].concat(), "");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(64), line));
        assert_eq!(text(&output.stdout), "");
    }
    for args in [&["manifest"][..], &["manifest", "guard", "--mesh", "x"]] {
        assert_eq!(injectd(args, "").status.code(), Some(64), "{args:?}");
    }
}

/// The configurations of a file, and the severities that are found in it.
fn checked(file: &str) -> Vec<String> {
    let args = ["manifest", "check", file, "-o", "json", "--fail-on", "none"];
    let output = injectd(&args, "");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{file}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    findings
        .iter()
        .map(|finding| finding["severity"].as_str().expect("a severity").to_owned())
        .collect()
}

#[test]
fn configurations_of_other_products_are_neither_wrong_nor_dangerous() {
    for (file, suggestions) in [
        ("tests/cli/manifest/check/linkerd.yaml", 3),
        ("tests/cli/manifest/check/cert-manager.yaml", 0),
        ("tests/cli/manifest/check/kyverno.yaml", 0),
        ("tests/cli/manifest/check/gatekeeper.yaml", 1),
        ("tests/cli/manifest/check/vault.yaml", 0),
        ("tests/cli/manifest/check/opentelemetry.yaml", 0),
        ("e2e/istio/webhooks-1.19.yaml", 4),
        ("e2e/istio/webhooks-1.31.yaml", 4),
    ] {
        let mut found = checked(&path(file));
        // Gatekeeper names pods/exec beside other resources, for operations that it does not have.
        if file.ends_with("gatekeeper.yaml") {
            assert_eq!(found.remove(0), "warning");
        }
        assert_eq!(found, vec!["suggestion"; suggestions], "{file}");
    }
}

#[test]
fn a_ca_bundle_is_read() {
    let configuration = |bundle: &str| {
        let file = path("tests/cli/manifest/check/vault.yaml");
        let manifest = fs::read_to_string(file).expect("the manifest");
        let manifest = manifest.replace("caBundle: \"\"", &format!("caBundle: \"{bundle}\""));
        injectd(&["manifest", "check", "-"], &manifest)
    };
    for (bundle, code, problem) in
        [("!", 3, "it is not base64"), ("YQ==", 3, "it has no PEM certificate")]
    {
        let output = configuration(bundle);
        assert_eq!(output.status.code(), Some(code), "{bundle}");
        assert!(text(&output.stdout).contains(problem), "{}", text(&output.stdout));
    }
}

#[test]
fn values_that_reach_yaml_unquoted_are_named_with_template_and_line() {
    const PROBLEM: &str =
        "annotation sidecar.istio.io/logLevel reaches YAML unquoted, template sidecar, line 5";
    let file = path("tests/cli/manifest/check/istio-templates.yaml");
    let check = |more: &[&str]| injectd(&[&["manifest", "check", &file], more].concat(), "");
    let found = check(&["-o", "json"]);
    assert_eq!((found.status.code(), text(&found.stderr)), (Some(0), ""));
    let report: serde_json::Value = serde_json::from_slice(&found.stdout).expect("JSON");
    let leak = serde_json::json!({
        "namespace": "istio-system", "configMap": "istio-sidecar-injector", "template": "sidecar",
        "value": "annotation sidecar.istio.io/logLevel", "lines": [5],
    });
    assert_eq!((&report["configMaps"], &report["unquoted"]), (&1.into(), &[leak][..].into()));
    let finding = &report["findings"][0];
    assert_eq!((&finding["severity"], &finding["problem"]), (&"warning".into(), &PROBLEM.into()));
    assert_eq!(check(&["--fail-on", "warning"]).status.code(), Some(3));
}

#[test]
fn templates_that_cannot_be_used_are_named() {
    let file = path("tests/cli/manifest/check/istio-templates.yaml");
    let manifest = fs::read_to_string(file).expect("the manifest");
    let wrong = manifest.replace("| quote", "| quot");
    let output = injectd(&["manifest", "check", "-"], &wrong);
    assert_eq!(output.status.code(), Some(1));
    let problem = "config.templates.sidecar line 6: function \"quot\" not defined";
    assert!(text(&output.stderr).contains(problem), "{}", text(&output.stderr));
    // Beside a configuration of webhooks it is a note.
    let webhooks = path("tests/cli/manifest/check/cert-manager.yaml");
    let webhooks = fs::read_to_string(webhooks).expect("the manifest");
    let output = injectd(&["manifest", "check", "-"], &format!("{wrong}---\n{webhooks}"));
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("note: not checked: ConfigMap"));
    assert!(text(&output.stdout).contains(problem), "{}", text(&output.stdout));
}

#[test]
fn check_says_what_cannot_be_checked() {
    for (args, input, code, problem) in [
        (&["-"][..], "kind: Pod", 1, "no MutatingWebhookConfiguration"),
        (&["-"], "a: [", 1, "line 1"),
        (&["missing.yaml"], "", 1, "missing.yaml"),
        (&[], "", 64, "required"),
        (&["-", "--fail-on", "all"], "", 64, "--fail-on"),
        (&["-", "--context", "a"], "", 64, "--context needs --live"),
        (&["-", "--connect", "localhost"], "", 64, "expected HOST:PORT"),
        (&["-", "--connect", "a=localhost:1"], "", 64, "NAMESPACE/SERVICE"),
    ] {
        let output = injectd(&[&["manifest", "check"], args].concat(), input);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert!(text(&output.stderr).contains(problem), "{}", text(&output.stderr));
    }
}

#[test]
fn install_says_which_value_is_wrong() {
    for (args, code, problem) in [
        (&["-n", "mesh", "--set", "replica=1"][..], 64, "did you mean replicas?"),
        (&["-n", "mesh", "--set", "replicas"], 64, "KEY=VALUE"),
        (&["-n", "mesh", "--set", "linkerd.enabled=false"], 64, "at least one mesh"),
        (&["-n", "mesh", "--set", "certificates.source=generated"], 64, "\"managed\", \"secret\""),
        (&["-n", "mesh", "-f", "missing.yaml"], 1, "missing.yaml"),
        (&["-n", "My Mesh"], 64, "--namespace"),
        (&["--mesh", "consul", "-n", "mesh"], 64, "--mesh"),
        (&[], 64, "--namespace"),
    ] {
        let output = injectd(&[&["manifest", "install"], args].concat(), "");
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(problem), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn the_bases_of_kustomize_are_what_install_prints() {
    for (mesh, namespace) in
        [("linkerd", "linkerd"), ("istio", "istio-system"), ("templates", "injectd")]
    {
        let mut args = vec!["manifest", "install", "--mesh", mesh, "-n", namespace];
        args.extend(["--set", "image.repository=ghcr.io/injectd/injectd"]);
        if mesh == "istio" {
            args.extend(["--set", "istio.tags[0].tag=injectd"]);
        }
        let output = injectd(&args, "");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{args:?}");
        let found = text(&output.stdout);
        let file = path(&format!("deploy/kustomize/{mesh}/injectd.yaml"));
        if is_blessed() {
            fs::write(&file, found).expect("the file must be written");
        }
        let expected = fs::read_to_string(file).expect("must be there: run with BLESS=1");
        assert_eq!(found, expected, "{mesh}");
    }
}

#[test]
fn an_address_belongs_to_a_service_of_the_configurations() {
    let manifests: String = ["vault", "kyverno"]
        .map(|name| path(&format!("tests/cli/manifest/check/{name}.yaml")))
        .map(|file| fs::read_to_string(file).expect("the manifest"))
        .join("\n---\n");
    for (connect, code, problem) in [
        ("localhost:1", 64, "the webhooks lead to 2 Services; write --connect NAMESPACE/SERVICE="),
        ("other/other=localhost:1", 64, "no webhook leads to the Service other/other"),
        ("vault/vault-agent-injector-svc=127.0.0.1:1", 1, "cannot connect"),
    ] {
        let output = injectd(&["manifest", "check", "-", "--connect", connect], &manifests);
        let found = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{found}");
        assert!(found.contains(problem), "{found}");
    }
}

#[test]
fn the_ca_bundle_must_verify_the_certificate_that_is_served() {
    let url = super::compare::server(super::compare::Reply::BreakOff);
    let addr = url.trim_start_matches("https://").trim_end_matches('/');
    let file = path("tests/cli/manifest/check/vault.yaml");
    let manifest = fs::read_to_string(file).expect("the manifest");
    let root = fs::read(path("crates/core/src/linkerd/example-root.crt")).expect("a CA");
    for (bundle, problem) in [
        (String::new(), "it is empty: the API server trusts only its own roots"),
        (BASE64_STANDARD.encode(root), "it does not verify the served certificate for vault-agent"),
    ] {
        let manifest = manifest.replace("caBundle: \"\"", &format!("caBundle: {bundle:?}"));
        let args = ["manifest", "check", "-", "--fail-on", "danger", "--connect", addr];
        let output = injectd(&args, &manifest);
        let found = text(&output.stdout);
        assert_eq!(output.status.code(), Some(3), "{found}{}", text(&output.stderr));
        assert!(found.contains(problem), "{found}");
    }
}
