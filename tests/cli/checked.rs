//! `injectd manifest check`: whole configurations, their certificates, and exit codes.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use time::{Duration, OffsetDateTime};

use super::{injectd, text};

/// A CA that lives this long, of which this much remains.
fn ca(lives: Duration, remains: Duration) -> String {
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "shop-ca");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.not_after = OffsetDateTime::now_utc() + remains;
    params.not_before = params.not_after - lives;
    let key = rcgen::KeyPair::generate().expect("the system must provide randomness");
    BASE64_STANDARD.encode(params.self_signed(&key).expect("a certificate must be made").pem())
}

/// A configuration without findings, but for what is changed in it: values by their pointers.
fn configuration(changes: &[(&str, Value)]) -> Value {
    let mut object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "shop", "annotations": {}},
        "webhooks": [{
            "name": "pods.shop.example.com",
            "clientConfig": {"service": {"namespace": "shop", "name": "checks", "path": "/pods"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"]}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "namespaceSelector": {"matchLabels": {"team": "shop"}},
        }],
    });
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        object.pointer_mut(parent).expect("a parent")[key] = value.clone();
    }
    object
}

/// The exit code and the output.
fn checked(object: &Value, args: &[&str]) -> (Option<i32>, String) {
    let output = injectd(&[&["manifest", "check", "-"], args].concat(), &object.to_string());
    (output.status.code(), text(&output.stdout).to_owned())
}

const BUNDLE: &str = "/webhooks/0/clientConfig/caBundle";
const CONDITIONS: &str = "/webhooks/0/matchConditions";

#[test]
fn errors_and_dangers_end_with_3() {
    let condition = |text: &str| json!([{"name": "c", "expression": text}]);
    let danger = || (CONDITIONS, condition("object.metadata.labels.a == 'b'"));
    let ignore = || ("/webhooks/0/failurePolicy", json!("Ignore"));
    for (changes, args, code) in [
        (vec![], &[][..], 0),
        (vec![(CONDITIONS, condition("1 +"))], &[], 3),
        (vec![danger()], &[], 3),
        (vec![danger()], &["--fail-on", "error"], 0),
        (vec![danger()], &["--fail-on", "none"], 0),
        (vec![danger(), ignore()], &[], 0),
        (vec![danger(), ignore()], &["--fail-on", "warning"], 3),
        (vec![(BUNDLE, json!("YQ=="))], &[], 3),
    ] {
        let (found, output) = checked(&configuration(&changes), args);
        assert_eq!(found, Some(code), "{args:?}: {output}");
    }
}

#[test]
fn a_ca_is_measured_by_its_own_lifetime() {
    let (days, hours) = (Duration::days, Duration::hours);
    for (lives, remains, problem) in [
        (days(2), days(2), ""),
        (days(2), hours(5), ""),
        (days(2), Duration::minutes(210), "its CA CN=shop-ca expires in 3 h, on "),
        (days(3650), days(40), ""),
        (days(3650), hours(20 * 24 + 6), "its CA CN=shop-ca expires in 20 days, on "),
        (days(365), -days(3), "its CA CN=shop-ca expired on "),
    ] {
        let object = configuration(&[(BUNDLE, json!(ca(lives, remains)))]);
        let (code, output) = checked(&object, &[]);
        let expected = if problem.is_empty() { 0 } else { 3 };
        assert_eq!(code, Some(expected), "{lives} {remains}: {output}");
        assert!(output.contains(problem), "{output}");
        let date = (OffsetDateTime::now_utc() + remains).date();
        assert!(problem.is_empty() || output.contains(&date.to_string()), "{date}: {output}");
    }
}

#[test]
fn a_bundle_that_another_program_writes_is_not_judged_in_files() {
    let ended = ca(Duration::days(365), -Duration::days(3));
    for annotation in [
        ("cert-manager.io/inject-ca-from", "shop/checks"),
        ("cert-manager.io/inject-ca-from-secret", "shop/checks"),
        ("cert-manager.io/inject-apiserver-ca", "true"),
        ("service.beta.openshift.io/inject-cabundle", "true"),
    ] {
        let promised = |bundle: &str| {
            let annotations = json!({annotation.0: annotation.1});
            configuration(&[("/metadata/annotations", annotations), (BUNDLE, json!(bundle))])
        };
        for bundle in ["Cg==", "YQ==", &ended] {
            let (code, output) = checked(&promised(bundle), &["--fail-on", "suggestion"]);
            assert_eq!((code, &*output), (Some(0), "1 configuration: 0 findings\n"), "{bundle}");
        }
        let (code, output) = checked(&promised(""), &[]);
        assert_eq!(code, Some(0));
        assert!(output.contains("suggestion: shop, ") && output.contains(annotation.0), "{output}");
        // The API server does not even read it.
        assert_eq!(checked(&promised("Cg"), &[]).0, Some(3));
    }
    for bundle in ["Cg==", &ended] {
        let other = json!({"cert-manager.io/inject-ca-from": "checks"});
        let changes = [("/metadata/annotations", other), (BUNDLE, json!(bundle))];
        assert_eq!(checked(&configuration(&changes), &[]).0, Some(3), "{bundle}");
    }
}

#[test]
fn a_configuration_for_a_file_of_the_api_server_is_named() {
    let name = ("/metadata/name", json!("shop.static.k8s.io"));
    let (code, output) = checked(&configuration(std::slice::from_ref(&name)), &[]);
    assert_eq!(code, Some(3));
    assert!(
        output.contains("error: shop.static.k8s.io, pods.shop.example.com, clientConfig.service")
    );
    let client = ("/webhooks/0/clientConfig", json!({"url": "https://checks.example.com/pods"}));
    let (code, output) = checked(&configuration(&[name, client]), &[]);
    assert_eq!(code, Some(0));
    assert!(output.contains("warning: shop.static.k8s.io, metadata.name: "), "{output}");
    assert!(output.contains("1.37") && output.contains("1 configuration: 1 finding"), "{output}");
}

/// What people ask for with values is reported as for others, such as rules for everything.
#[test]
fn what_install_prints_has_no_findings() {
    let both = ["istio.enabled=true", "istio.tags[0].tag=canary", "istio.tags[1].tag=prod"];
    let secret = ["certificates.source=secret", "certificates.certManagerCertificate=mesh/injectd"];
    for values in [
        &[][..],
        &both,
        &secret,
        &["certificates.source=secret"],
        &["linkerd.enabled=false", both[0], both[1], "istio.tags[0].revision=1-30"],
        &[both[0], both[1], "webhookDefaults.failurePolicy=Fail"],
        &[both[0], both[1], "webhookDefaults.reinvocationPolicy=IfNeeded"],
        &[both[0], both[1], "istio.webhookOverrides.name=own.example.com"],
        &["webhookDefaults.timeoutSeconds=5", "webhookDefaults.matchPolicy=Exact"],
    ] {
        let set = values.iter().flat_map(|value| ["--set", value]);
        let install = ["manifest", "install", "-n", "mesh", "--set", "image.repository=injectd"];
        let args: Vec<_> = install.into_iter().chain(set).collect();
        let installed = injectd(&args, "");
        assert_eq!(installed.status.code(), Some(0), "{values:?}: {}", text(&installed.stderr));
        let check = ["manifest", "check", "-", "--fail-on", "suggestion"];
        let output = injectd(&check, text(&installed.stdout));
        let found = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{values:?}: {found}");
        assert!(found.ends_with(": 0 findings\n"), "{values:?}: {found}");
    }
}

/// An API server that has these configurations; a kubeconfig for it.
fn cluster(objects: Vec<Value>) -> NamedTempFile {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for connection in listener.incoming() {
            answer(connection.expect("a connection"), &objects);
        }
    });
    let mut file = NamedTempFile::new().expect("a file");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "a", "user": {}}],
    });
    file.write_all(config.to_string().as_bytes()).expect("must be written");
    file
}

/// Answers a request for a list.
fn answer(mut connection: TcpStream, objects: &[Value]) {
    let mut lines = BufReader::new(&connection).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    // The headers end with an empty line.
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let is_of = |object: &&Value| {
        let kind = object["kind"].as_str().expect("a kind").to_ascii_lowercase();
        request.contains(&format!("/{kind}s?"))
    };
    let items: Vec<_> = objects.iter().filter(is_of).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items});
    let body = list.to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let length = body.len();
    write!(connection, "{head}content-length: {length}\r\n\r\n{body}").expect("must be written");
}

/// In the cluster, the program of the annotation has had its turn: what it left is a danger that names
/// both. A file with the same configuration has none.
#[test]
fn a_bundle_that_another_program_has_not_written_is_a_danger_in_a_cluster() {
    let ended = ca(Duration::days(365), -Duration::days(3));
    let good = ca(Duration::days(365), Duration::days(365));
    let manager = ("cert-manager.io/inject-ca-from", "shop/checks", "cert-manager's cainjector");
    let openshift =
        ("service.beta.openshift.io/inject-cabundle", "true", "OpenShift's service CA operator");
    for (annotation, value, program) in [manager, openshift] {
        for (bundle, problem) in [
            (None, "it is empty: the API server trusts only its own roots, and each call fails"),
            (Some("Cg=="), "it has no PEM certificate: each call fails"),
            (Some(&*ended), "its CA CN=shop-ca expired on "),
            (Some(&*good), ""),
        ] {
            let annotations = ("/metadata/annotations", json!({annotation: value}));
            let bundle = bundle.map(|bundle| (BUNDLE, json!(bundle)));
            let changes: Vec<_> = [annotations].into_iter().chain(bundle).collect();
            let object = configuration(&changes);
            let (code, output) = checked(&object, &[]);
            assert_eq!((code, &*output), (Some(0), "1 configuration: 0 findings\n"));
            let config = cluster(vec![object]);
            let path = config.path().to_str().expect("a path");
            let args = ["manifest", "check", "--live", "--kubeconfig", path];
            let output = injectd(&args, "");
            let found = text(&output.stdout);
            let expected = if problem.is_empty() { 0 } else { 3 };
            assert_eq!(output.status.code(), Some(expected), "{found}{}", text(&output.stderr));
            assert!(found.contains("note: configurations that an API server"), "{found}");
            if problem.is_empty() {
                assert!(found.ends_with("1 configuration: 0 findings\n"), "{found}");
                continue;
            }
            let place =
                format!("danger: shop, pods.shop.example.com, clientConfig.caBundle: {problem}");
            assert!(found.starts_with(&place), "{found}");
            let advice =
                format!("  {program} should write it ({annotation}): find out why it does not.");
            assert!(found.contains(&advice), "{found}");
        }
    }
}

/// A kubeconfig of an API server that does not run.
fn unreached() -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {}}],
    });
    fs::write(file.path(), config.to_string()).expect("a kubeconfig");
    file
}

#[test]
fn a_dry_run_without_workloads_does_not_ask_for_a_restart() {
    let file = unreached();
    let path = file.path().to_str().expect("a path");
    let output = injectd(&["restart", "-f", "-", "--kubeconfig", path], r#"{"workloads": []}"#);
    let found = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{found}");
    assert_eq!(found, "dry run: there is nothing to restart\n");
}

#[test]
fn a_server_that_is_not_reached_is_named_with_the_cause() {
    let file = unreached();
    let path = file.path().to_str().expect("a path");
    for args in [&["audit"][..], &["explain", "pod/web"], &["manifest", "check", "--live"]] {
        let output = injectd(&[args, &["--kubeconfig", path]].concat(), "");
        let found = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{found}");
        assert!(found.contains("cannot connect to the API server"), "{found}");
        assert!(found.contains("Connection refused"), "{found}");
    }
}

/// The webhook of a release of the chart gets its CA from a replica, which may not run yet.
#[test]
fn an_empty_bundle_of_the_chart_names_the_log_of_injectd() {
    let labels = json!({
        "app.kubernetes.io/name": "injectd",
        "app.kubernetes.io/instance": "sidecars",
    });
    let config = cluster(vec![configuration(&[("/metadata/labels", labels)])]);
    let path = config.path().to_str().expect("a path");
    let output = injectd(&["manifest", "check", "--live", "--kubeconfig", path], "");
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{found}{}", text(&output.stderr));
    assert!(found.contains("see kubectl -n shop logs deployment/sidecars."), "{found}");
}
