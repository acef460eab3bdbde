//! The annotations of Istio #61215 in the default templates of each release.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use injectd_istio::leaks;
use injectd_testkit::istio::recorded_revision;

use super::*;

/// Release and revision of each recorded configuration.
pub(crate) fn recorded() -> Vec<(String, Revision)> {
    let Some(corpus) = env::var_os("INJECTD_CORPUS").filter(|corpus| !corpus.is_empty()) else {
        println!("skipped: INJECTD_CORPUS is not set");
        return Vec::new();
    };
    let corpus = PathBuf::from(corpus);
    let folders = fs::read_dir(corpus.join("istio")).expect("the corpus must have a folder istio");
    let mut releases: Vec<_> = folders
        .map(|folder| folder.expect("the folder must be readable"))
        .filter(|folder| folder.path().is_dir())
        .map(|folder| folder.file_name().to_string_lossy().into_owned())
        .collect();
    releases.sort();
    let revision = |release: String| {
        let revision = recorded_revision(&corpus, &release);
        (release, revision)
    };
    releases.into_iter().map(revision).collect()
}

/// The annotations that the main branch quotes, and values that leave their scalar in one of the
/// releases before.
const QUOTED: [(&str, &str); 5] = [
    (LOG_LEVEL, CONTAINER),
    ("sidecar.istio.io/componentLogLevel", CONTAINER),
    ("sidecar.istio.io/agentLogLevel", CONTAINER),
    ("sidecar.istio.io/proxyImage", "a/b\"\n    imagePullPolicy: \"Never"),
    ("sidecar.istio.io/bootstrapOverride", "a\n---\n"),
];

/// The first release whose default templates quote them.
pub(crate) const MENDED: &str = "master";

#[test]
fn annotations_that_the_main_branch_quotes_are_found_in_every_release_before() {
    for (release, revision) in recorded() {
        let revision = revision.with_tainted_values(TaintedValues::Deny);
        for (key, value) in QUOTED {
            let denial = inject(&revision, &with(key, value)).err();
            if release == MENDED {
                assert_eq!(denial, None, "{release} {key}");
            } else {
                let denial = denial.expect("a denial");
                assert!(
                    denial.starts_with(&format!("annotation {key} holds")),
                    "{release} {denial}"
                );
            }
        }
    }
}

#[test]
fn a_second_key_does_not_replace_the_image() {
    let pod = with("sidecar.istio.io/proxyImageType", "x\"\n    image: \"example.org/evil");
    let mut replaced = 0;
    for (release, revision) in recorded() {
        let revision = revision.with_tainted_values(TaintedValues::Off);
        let off = inject(&revision, &pod).expect("a pod");
        let containers = off.pod["spec"]["containers"].as_array().expect("a list");
        let is_evil = |container: &Value| {
            container["image"].as_str().is_some_and(|image| image.starts_with("example.org/evil"))
        };
        replaced += usize::from(containers.iter().any(is_evil));
        let denial = inject(&revision.with_tainted_values(TaintedValues::Deny), &pod).err();
        let denial = denial.expect("a denial");
        assert!(denial.contains("sidecar.istio.io/proxyImageType"), "{release} {denial}");
    }
    println!("{replaced} releases have the other image");
}

#[test]
fn usual_values_pass() {
    let usual = json!({
        LOG_LEVEL: "warning",
        "sidecar.istio.io/componentLogLevel": "misc:error,rbac:debug",
        "sidecar.istio.io/agentLogLevel": "default:info,xds:debug",
        "sidecar.istio.io/proxyImage": "registry:5000/istio/proxyv2@sha256:0123",
        "sidecar.istio.io/bootstrapOverride": "custom",
        "sidecar.istio.io/proxyCPU": "100m",
        "sidecar.istio.io/userVolume": r#"{"a b":{"hostPath":{"path":"/my dir"}},"c":{"emptyDir":{}}}"#,
        "sidecar.istio.io/userVolumeMount": r#"{"c":{"mountPath":"/a, b: c","readOnly":true}}"#,
        "traffic.sidecar.istio.io/includeOutboundIPRanges": "10.0.0.0/8,192.168.0.0/16",
        "traffic.sidecar.istio.io/includeOutboundPorts": "80, 443",
        "traffic.sidecar.istio.io/excludeInboundPorts": "80,81",
        "traffic.sidecar.istio.io/includeInboundPorts": "*",
        "k8s.v1.cni.cncf.io/networks": r#"[{"name":"a b","namespace":"c"}]"#,
        "proxy.istio.io/config": "proxyMetadata:\n  A: 'x, y: z # w'\n  B: \"1\"\nholdApplicationUntilProxyStarts: true\n",
        "apm.datadoghq.com/env": r#"{"DD_ENV":"my env"}"#,
    });
    let mut pod = pod(&usual);
    pod["spec"]["containers"][0]["args"] = json!(["sh", "-c", "a: b\n- c # d"]);
    for (release, revision) in recorded() {
        let revision = revision.with_tainted_values(TaintedValues::Deny);
        for templates in ["sidecar", "gateway", "grpc-simple", "grpc-agent"] {
            let mut pod = pod.clone();
            pod["metadata"]["annotations"]["inject.istio.io/templates"] = templates.into();
            let denial = inject(&revision, &pod).err();
            assert_eq!(denial, None, "{release} {templates}");
        }
    }
}

/// The page with the table of all releases.
const PAGE: &str = include_str!("../../../../docs/istio/tainted-values.md");

#[test]
fn the_page_has_the_table_of_all_releases() {
    let recorded = recorded();
    if recorded.is_empty() {
        return;
    }
    let mut found = BTreeMap::<Source, Vec<String>>::new();
    for (index, (_, revision)) in recorded.iter().enumerate() {
        for leak in leaks::of(revision).leaks {
            let row =
                found.entry(leak.source).or_insert_with(|| vec![String::new(); recorded.len()]);
            let template = leak.template.replace("sidecar", "s").replace("gateway", "g");
            row[index].push_str(&template.replace("grpc-agent", "a").replace("grpc-simple", "p"));
        }
    }
    let names: Vec<_> = recorded.iter().map(|(release, _)| release.as_str()).collect();
    let mut table =
        format!("| annotation | {} |\n|---{}|\n", names.join(" | "), "|---".repeat(names.len()));
    for (source, row) in &found {
        let Source::Annotation(key) = source else { continue };
        assert_eq!(source.counted_as(), key, "its counter must have its name");
        let cells: Vec<_> = row
            .iter()
            .map(|cell| cell.chars().flat_map(|c| [' ', c]).collect::<String>())
            .collect();
        table.extend([format!("| `{key}` |{} |\n", cells.join(" |"))]);
    }
    assert!(PAGE.contains(&table), "the table of docs/istio/tainted-values.md must be:\n{table}");
    let lines: Vec<_> = recorded
        .iter()
        .find(|(release, _)| release == "1.30.3")
        .into_iter()
        .flat_map(|(_, revision)| leaks::of(revision).leaks)
        .map(|leak| leak.to_string())
        .collect();
    let expected =
        "annotation sidecar.istio.io/logLevel reaches YAML unquoted, template sidecar, line 203";
    assert!(lines.iter().any(|line| line == expected), "{lines:?}");
}
