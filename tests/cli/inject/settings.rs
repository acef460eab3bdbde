//! The flags of `linkerd inject` that change settings.

use super::{POD, injectd, injected, text, tree};

/// Flags, the annotation of each, and a text of the sidecar that shows its effect.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("--admin-port=9191", "config.linkerd.io/admin-port", ":9191"),
    ("--control-port=9190", "config.linkerd.io/control-port", ":9190"),
    ("--inbound-port=9143", "config.linkerd.io/inbound-port", ":9143"),
    ("--outbound-port=9140", "config.linkerd.io/outbound-port", ":9140"),
    ("--proxy-version=v9", "config.linkerd.io/proxy-version", "proxy:v9"),
    ("--proxy-image=me/p", "config.linkerd.io/proxy-image", "image: me/p:"),
    (
        "--image-pull-policy=Always",
        "config.linkerd.io/image-pull-policy",
        "imagePullPolicy: Always",
    ),
    ("--proxy-uid=77", "config.linkerd.io/proxy-uid", "runAsUser: 77"),
    ("--proxy-gid=78", "config.linkerd.io/proxy-gid", "runAsGroup: 78"),
    ("--proxy-log-level=debug", "config.linkerd.io/proxy-log-level", "value: \"debug,[{headers}]"),
    ("--proxy-log-format=json", "config.linkerd.io/proxy-log-format", "value: json"),
    ("--proxy-cpu-request=11m", "config.linkerd.io/proxy-cpu-request", "cpu: 11m"),
    ("--proxy-cpu-limit=2", "config.linkerd.io/proxy-cpu-limit", "cpu: \"2\""),
    ("--proxy-memory-request=12Mi", "config.linkerd.io/proxy-memory-request", "memory: 12Mi"),
    ("--proxy-memory-limit=13Mi", "config.linkerd.io/proxy-memory-limit", "memory: 13Mi"),
    ("--default-inbound-policy=deny", "config.linkerd.io/default-inbound-policy", "value: deny"),
    ("--access-log=apache", "config.linkerd.io/access-log", "value: apache"),
    ("--wait-before-exit-seconds=7", "config.alpha.linkerd.io/proxy-wait-before-exit-seconds", ""),
    ("--shutdown-grace-period=7s", "config.linkerd.io/shutdown-grace-period", "7000ms"),
    ("--skip-inbound-ports=22,8100-8102", "config.linkerd.io/skip-inbound-ports", "22,8100-8102"),
    ("--skip-outbound-ports=5432", "config.linkerd.io/skip-outbound-ports", "5432"),
    ("--skip-subnets=10.0.0.0/8", "config.linkerd.io/skip-subnets", "--subnets-to-ignore"),
    ("--opaque-ports=5000-6000", "config.linkerd.io/opaque-ports", "5000-6000"),
    (
        "--require-identity-on-inbound-ports=9",
        "config.linkerd.io/proxy-require-identity-inbound-ports",
        "",
    ),
    ("--native-sidecar", "config.linkerd.io/proxy-enable-native-sidecar", ""),
    ("--enable-external-profiles", "config.linkerd.io/enable-external-profiles", ""),
    ("--enable-debug-sidecar", "config.linkerd.io/enable-debug-sidecar", "linkerd-debug"),
    ("--registry=reg.example/x", "config.linkerd.io/proxy-image", "reg.example/x/proxy:"),
];

#[test]
fn each_flag_writes_its_annotation_and_takes_effect() {
    for (flag, annotation, effect) in SETTINGS {
        let found = injected(&[flag], POD);
        let pod = tree(found.as_bytes());
        assert!(pod["metadata"]["annotations"][annotation].is_string(), "{flag}: {found}");
        assert!(found.contains(effect), "{flag}: {found}");
    }
    // As in Linkerd, the timeout needs a proxy-init that runs as root.
    let timeout = "--close-wait-timeout=1h";
    let output = injectd(&["inject", timeout], POD);
    assert!(text(&output.stderr).contains("proxyInit.runAsRoot must be set"));
    let found = injected(&["--annotate", timeout], POD);
    assert!(found.contains("config.linkerd.io/close-wait-timeout: 1h"), "{found}");
    let workload = "kind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers: []\n";
    assert!(injected(&["--ingress"], workload).contains("LINKERD2_PROXY_INGRESS_MODE"));
    let ingress = injected(&["--ingress"], POD);
    assert!(ingress.contains("LINKERD2_PROXY_INGRESS_MODE"), "{ingress}");
    assert_eq!(tree(ingress.as_bytes())["metadata"]["annotations"]["linkerd.io/inject"], "ingress");
    assert_eq!(injected(&[], &ingress), ingress);
    let ingress = injected(&["--ingress", "--annotate"], POD);
    assert_eq!(tree(ingress.as_bytes())["metadata"]["annotations"]["linkerd.io/inject"], "ingress");
}

#[test]
fn an_invalid_value_of_a_flag_is_wrong_usage() {
    for (flag, value) in
        [("--admin-port", "0"), ("--proxy-cpu-request", "lots"), ("--default-inbound-policy", "x")]
    {
        let output = injectd(&["inject", flag, value], POD);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(64), ""));
        assert!(text(&output.stderr).contains(flag) && text(&output.stderr).contains("expected"));
    }
}
