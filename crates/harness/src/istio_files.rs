//! The files of a configuration of Istio, for an injectd without a cluster.

use std::path::PathBuf;

use crate::lab::{corpus, root};

/// The recorded release that is used.
pub const RELEASE: &str = "1.30.3";

/// Files: the configuration of the injector, its values, the configuration of the mesh.
pub type Files = [PathBuf; 3];

/// Those of a real Istio if there are recordings, with all its templates, else the small ones.
#[must_use]
pub fn recorded_or_small() -> Files {
    let Ok(corpus) = corpus() else { return small() };
    let folder = corpus.join("istio").join(RELEASE);
    ["config-default.yaml", "values-default.json", "mesh-default.yaml"]
        .map(|name| folder.join(name))
}

/// The small configuration that the tests have.
#[must_use]
pub fn small() -> Files {
    let folder = root().join("crates/testkit/src/istio");
    ["config.yaml", "values.json", "mesh.yaml"].map(|name| folder.join(name))
}

/// The flags of `injectd serve` that name these files.
#[must_use]
pub fn flags(files: &Files) -> Vec<String> {
    let names = ["--injector-config", "--injector-values", "--mesh-config"];
    let mut flags = vec!["--mesh".to_owned(), "istio".to_owned()];
    flags.extend(
        names
            .into_iter()
            .zip(files)
            .flat_map(|(name, file)| [name.to_owned(), file.display().to_string()]),
    );
    flags
}
