//! Writes the reviews of the mixes into a folder, for clients that read files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use injectd_harness::expect::Outcome;
use injectd_testkit::reviews::{ISTIO_MIX, MIX, Sent, TEMPLATES_MIX};
use serde_json::{Map, Value, json};

use crate::report::say;

/// The mixes of all meshes.
pub(crate) fn of_all_meshes() -> Vec<Sent> {
    [&MIX[..], &ISTIO_MIX, &TEMPLATES_MIX].concat()
}

/// Writes the mix for Linkerd, or those for all meshes, and prints the lengths of the reviews.
pub(crate) fn write_mixes(folder: &Path, meshes: bool) -> Outcome {
    let mix = if meshes { of_all_meshes() } else { MIX.to_vec() };
    write(folder, &mix)?;
    for sent in mix {
        let length = fs::metadata(path(folder, &sent))?.len();
        say(&format!("{}: {length} bytes", sent.name));
    }
    Ok(())
}

fn path(folder: &Path, sent: &Sent) -> PathBuf {
    folder.join(format!("{}.json", sent.name))
}

/// Writes each review into a file of its name, and into `expected.json` what its answers must contain,
/// its percentage of the mix and the path of its webhook.
pub(crate) fn write(folder: &Path, mix: &[Sent]) -> Outcome {
    fs::create_dir_all(folder)?;
    for sent in mix {
        fs::write(path(folder, sent), (sent.body)())?;
    }
    let each = |value: fn(&Sent) -> Value| -> Map<String, Value> {
        mix.iter().map(|sent| (sent.name.to_owned(), value(sent))).collect()
    };
    let expected = json!({
        "contains": each(|sent| sent.contains.into()),
        "mix": each(|sent| sent.percent.into()),
        "paths": each(|sent| sent.path.into()),
    });
    Ok(fs::write(folder.join("expected.json"), expected.to_string())?)
}
