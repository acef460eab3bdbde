//! `injectd uninject`, `injectd version`.

use serde_json::Value;

use super::{injectd, text};

#[test]
fn what_cannot_be_known_is_said() {
    let manifest = "kind: Pod\nmetadata:\n  name: web\n  annotations:\n    linkerd.io/inject: enabled\n    \
                    config.linkerd.io/proxy-uid: \"5\"\nspec:\n  containers: []\n";
    let injected = injectd(&["inject"], manifest);
    let output = injectd(&["uninject"], &injected.stdout);
    assert_eq!(output.status.code(), Some(0));
    let expected = manifest.replace("    linkerd.io/inject: enabled\n", "");
    // An empty list means the same as none.
    assert_eq!(text(&output.stdout), expected);
    let stderr = text(&output.stderr);
    let said = "removed linkerd.io/inject: enabled; set it again if the author had set it";
    assert!(stderr.contains(said), "{stderr}");
    assert!(stderr.contains("kept config.linkerd.io/proxy-uid; remove it if a flag"), "{stderr}");
}

#[test]
fn objects_without_linkerd_come_out_byte_for_byte() {
    let manifests = "kind: Pod # a pod\nmetadata: {name: web}\n---\n{kind: Secret}";
    let output = injectd(&["uninject"], manifests);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), manifests));
    assert!(text(&output.stderr).contains("pod/web skipped: nothing of Linkerd is in it"));
    let output = injectd(&["uninject", "--fail-on", "skipped"], manifests);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), ""));
}

#[test]
fn annotations_of_inject_are_removed_from_namespaces() {
    let namespace = "kind: Namespace\nmetadata:\n  name: a\n";
    let annotated = injectd(&["inject", "--annotate"], namespace);
    assert!(text(&annotated.stdout).contains("linkerd.io/inject: enabled"));
    let output = injectd(&["uninject"], &annotated.stdout);
    assert_eq!(text(&output.stdout), namespace);
    assert!(text(&output.stderr).contains("namespace/a uninjected"));
}

#[test]
fn labels_of_namespaces_and_other_kinds_stay() {
    let manifests = "kind: Namespace\nmetadata:\n  labels: {linkerd.io/is-control-plane: \"true\"}\n---\n\
                     apiVersion: example.com/v1\nkind: Rollout\nspec:\n  template:\n    spec:\n      \
                     containers:\n      - name: linkerd-proxy\n";
    let output = injectd(&["uninject"], manifests);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), manifests));
    assert!(text(&output.stderr).contains("does not know the kind Rollout"));
}

#[test]
fn the_version_has_the_supported_releases() {
    let output = injectd(&["version", "-o", "json"], "");
    let version: Value = serde_json::from_slice(&output.stdout).expect("must be JSON");
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(version["commit"].as_str(), option_env!("INJECTD_COMMIT"));
    assert!(
        version["linkerd"]["newest"].as_str().is_some_and(|release| release.starts_with("edge-"))
    );
    assert_eq!(version["istio"], serde_json::json!({"oldest": "1.19", "newest": "1.31"}));
    assert!(text(&injectd(&["version"], "").stdout).starts_with("injectd "));
}

#[test]
fn wrong_usage_has_no_advice_of_the_library() {
    let output = injectd(&["inject", "--nonsense"], "");
    assert_eq!(output.status.code(), Some(64));
    assert!(!text(&output.stderr).contains("tip:"), "{}", text(&output.stderr));
    for (args, problem) in [
        (&["-o", "xml"][..], "invalid value 'xml'"),
        (&["--kubeconfig", "/nowhere"], "--kubeconfig /nowhere: cannot use the kubeconfig"),
        (&["-n", "Foo Bar"], "the name of a namespace"),
        (&["--registry", "/"], "a registry"),
        (&["--values", "/nowhere"], "cannot read --values /nowhere"),
    ] {
        let output = injectd(&[&["inject"], args].concat(), "");
        let stderr = text(&output.stderr);
        assert!(stderr.contains(problem) && !stderr.contains("tip:"), "{stderr}");
        assert!(!stderr.contains("standalone"), "{stderr}");
    }
}
