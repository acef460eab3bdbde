//! `injectd inject`: manifests with a sidecar, which the API server takes.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
};

use injectd_e2e::{
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

/// What `injectd inject` makes of a file.
async fn injected(it: &Standalone, file: &Path) -> Outcome<String> {
    let [out, err] = ["inject.out", "inject.err"].map(|name| it.folder.path().join(name));
    let mut command = Command::new(&it.lab.binary);
    command.arg("inject").stdin(File::open(file)?);
    let mut program = Program::start_with(&mut command, File::create(&out)?, File::create(&err)?)?;
    let status = program.wait().await?;
    let errors = fs::read_to_string(err)?;
    expect(format!("the exit code of inject, which printed {errors:?}"), Some(0), status.code())?;
    Ok(fs::read_to_string(out)?)
}
