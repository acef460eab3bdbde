//! `injectd inject`: manifests with a sidecar, which the API server takes.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
};

use injectd_harness::{
    expect::{Outcome, expect, expect_same},
    manifests::objects,
    program::Program,
    sidecar::{expect_sidecar, pod_of, without_sidecar},
};
use serde_json::json;

use super::Standalone;

/// Each object of a manifest is the same with a sidecar, and a second run changes nothing.
pub(super) async fn manifest(it: &Standalone, file: &Path) -> Outcome {
    let once = injected(it, file).await?;
    let [before, after] = [fs::read_to_string(file)?, once.clone()].map(|text| objects(&text));
    expect("the number of objects", before.len(), after.len())?;
    for (plain, injected) in before.iter().zip(&after) {
        let plain = it.lab.api.dry_run_yaml(&it.namespace, plain).await?.created()?;
        let answer = it.lab.api.dry_run_yaml(&it.namespace, injected).await?;
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
    let input = it.folder.path().join("once.yaml");
    fs::write(&input, &once)?;
    expect("the manifest after a second run", once, injected(it, &input).await?)
}

/// `uninject` gives the text of the manifest back, without what it names.
pub(super) async fn back(it: &Standalone, file: &Path) -> Outcome {
    let input = it.folder.path().join("once.yaml");
    fs::write(&input, injected(it, file).await?)?;
    let original = fs::read_to_string(file)?;
    // Whether the author or the injection wrote it cannot be known.
    let stays = |line: &&str| !line.trim().starts_with("linkerd.io/inject: ");
    let expected: String = original.split_inclusive('\n').filter(stays).collect();
    expect("the manifest", expected, changed(it, &["uninject"], &input).await?)
}

/// Values and trust roots come from the `ConfigMaps` of a cluster.
pub(super) async fn cluster_values(it: &Standalone) -> Outcome {
    let values = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/core/src/linkerd/values");
    let values = fs::read_to_string(values.join("default.yaml"))?;
    let values = values.replace("linkerdVersion: edge-26.8.3", "linkerdVersion: edge-26.6.3");
    for (name, key, value) in [
        ("linkerd-config", "values", values.as_str()),
        ("linkerd-identity-trust-roots", "ca-bundle.crt", "roots of the cluster"),
    ] {
        let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name},
            "data": {key: value}});
        it.lab.api.create(Some(&it.namespace), &map).await?.created()?;
    }
    let pod = it.folder.path().join("pod.yaml");
    fs::write(&pod, "kind: Pod\nmetadata:\n  name: web\nspec:\n  containers: []\n")?;
    let config = it.lab.kubeconfig.display().to_string();
    let args = ["inject", "--kubeconfig", &config, "--linkerd-namespace", &it.namespace];
    let found = changed(it, &args, &pod).await?;
    expect("the roots of the cluster", true, found.contains("roots of the cluster"))?;
    expect("the release of the cluster", true, found.contains("proxy:edge-26.6.3"))
}

/// What `injectd inject` makes of a file.
async fn injected(it: &Standalone, file: &Path) -> Outcome<String> {
    changed(it, &["inject"], file).await
}

/// What a command of injectd makes of a file.
async fn changed(it: &Standalone, args: &[&str], file: &Path) -> Outcome<String> {
    let [out, err] = ["inject.out", "inject.err"].map(|name| it.folder.path().join(name));
    let mut command = Command::new(&it.lab.binary);
    command.args(args).stdin(File::open(file)?);
    let mut program = Program::start_with(&mut command, File::create(&out)?, File::create(&err)?)?;
    let status = program.wait().await?;
    let errors = fs::read_to_string(err)?;
    expect(format!("the exit code of {args:?}, which printed {errors:?}"), Some(0), status.code())?;
    Ok(fs::read_to_string(out)?)
}
