//! `injectd inject` and `injectd uninject`: manifests with a sidecar, which the API server takes, and
//! the manifests as they were.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
};

use injectd_harness::{
    expect::{Outcome, about, expect, expect_same},
    injectd::linkerd_folder,
    manifests::{files, objects},
    namespaced::{Namespaced, with_namespace},
    process::run_with_input,
    scenario::{with_binary, with_lab},
    sidecar::{expect_sidecar, pod_of, without_sidecar},
};
use serde_json::json;

#[tokio::test]
async fn each_manifest_gets_its_sidecars_once_and_is_accepted() -> Outcome {
    with_lab(async |lab| {
        with_namespace(lab, &json!({}), async |namespaced| {
            let folder = tempfile::tempdir()?;
            for file in files()? {
                about(file.display(), manifest(namespaced, &file, folder.path()).await)?;
            }
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test]
async fn uninject_gives_each_manifest_back_byte_for_byte() -> Outcome {
    with_binary(async |bench| {
        let folder = tempfile::tempdir()?;
        for file in files()? {
            about(file.display(), back(&bench.binary, &file, folder.path()).await)?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn inject_takes_values_and_trust_roots_from_the_cluster() -> Outcome {
    with_lab(async |lab| {
        with_namespace(lab, &json!({}), async |namespaced| {
            install(namespaced).await?;
            let folder = tempfile::tempdir()?;
            let pod = folder.path().join("pod.yaml");
            fs::write(&pod, "kind: Pod\nmetadata:\n  name: web\nspec:\n  containers: []\n")?;
            let config = lab.kubeconfig.display().to_string();
            let args = ["inject", "--kubeconfig", &config, "--linkerd-namespace", &namespaced.name];
            let found = changed(&lab.binary, &args, &pod).await?;
            expect("the roots of the cluster", true, found.contains("roots of the cluster"))?;
            expect("the release of the cluster", true, found.contains("proxy:edge-26.6.3"))
        })
        .await
    })
    .await
}

/// The `ConfigMaps` of another release of Linkerd than that in the binary.
async fn install(it: &Namespaced<'_>) -> Outcome {
    let values = fs::read_to_string(linkerd_folder().join("values/default.yaml"))?;
    let values = values.replace("linkerdVersion: edge-26.8.3", "linkerdVersion: edge-26.6.3");
    for (name, key, value) in [
        ("linkerd-config", "values", values.as_str()),
        ("linkerd-identity-trust-roots", "ca-bundle.crt", "roots of the cluster"),
    ] {
        let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name},
            "data": {key: value}});
        it.create(&map).await?.created()?;
    }
    Ok(())
}

/// Each object of a manifest is the same with a sidecar, and a second run changes nothing.
async fn manifest(it: &Namespaced<'_>, file: &Path, folder: &Path) -> Outcome {
    let (api, binary) = (&it.lab.api, &it.lab.binary);
    let once = changed(binary, &["inject"], file).await?;
    let [before, after] = [fs::read_to_string(file)?, once.clone()].map(|text| objects(&text));
    expect("the number of objects", before.len(), after.len())?;
    for (plain, injected) in before.iter().zip(&after) {
        let plain = api.dry_run_yaml(&it.name, plain).await?.created()?;
        let answer = api.dry_run_yaml(&it.name, injected).await?;
        answer.expect_no_warnings()?;
        let object = answer.created()?;
        if pod_of(&object).is_some() {
            expect_sidecar(&object, &plain)?;
        } else {
            expect_same("the object", &without_sidecar(&plain), &without_sidecar(&object))?;
        }
        if object["kind"] == "Service" {
            let expected = json!({"config.linkerd.io/opaque-ports": "3306"});
            expect_same("the annotations", &expected, &object["metadata"]["annotations"])?;
        }
    }
    let input = folder.join("once.yaml");
    fs::write(&input, &once)?;
    let twice = changed(binary, &["inject"], &input).await?;
    expect("the manifest after a second run", once, twice)
}

/// `uninject` gives the text of the manifest back, without what it names.
async fn back(binary: &Path, file: &Path, folder: &Path) -> Outcome {
    let input = folder.join("once.yaml");
    fs::write(&input, changed(binary, &["inject"], file).await?)?;
    let original = fs::read_to_string(file)?;
    // Whether the author or the injection wrote it cannot be known.
    let stays = |line: &&str| !line.trim().starts_with("linkerd.io/inject: ");
    let expected: String = original.split_inclusive('\n').filter(stays).collect();
    expect("the manifest", expected, changed(binary, &["uninject"], &input).await?)
}

/// What a command of injectd makes of a file.
async fn changed(binary: &Path, args: &[&str], file: &Path) -> Outcome<String> {
    let mut command = Command::new(binary);
    command.args(args).stdin(File::open(file)?);
    about(format!("{args:?}"), run_with_input(command).await?.with_code(0))
}
