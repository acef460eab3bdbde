//! A `ConfigMap` or Secret on a node: its files are links through `..data`, swapped at once.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::expect::Outcome;

/// The texts of files by their names.
pub type Files = BTreeMap<String, String>;

/// The files of these names and texts.
#[must_use]
pub fn files<const N: usize>(texts: [(&str, &str); N]) -> Files {
    texts.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
}

/// A volume that is mounted into a container.
#[derive(Debug)]
pub struct Volume {
    /// What is mounted.
    pub folder: PathBuf,
    current: Option<PathBuf>,
}

impl Volume {
    /// A new volume with its first content.
    ///
    /// # Errors
    ///
    /// Fails if the files cannot be written.
    pub fn new(folder: &Path, content: &Files) -> Outcome<Self> {
        fs::create_dir_all(folder)?;
        let mut volume = Self { folder: folder.to_owned(), current: None };
        volume.write(content)?;
        for name in content.keys() {
            symlink(Path::new("..data").join(name), folder.join(name))?;
        }
        Ok(volume)
    }

    /// Writes new content beside the old, then swaps (kubelet's `atomic_writer.go`).
    ///
    /// # Errors
    ///
    /// Fails if the files cannot be written.
    pub fn write(&mut self, content: &Files) -> Outcome {
        // A folder is never used twice, as by the kubelet: a reader may still have a file of an
        // earlier one open.
        static VERSION: AtomicU64 = AtomicU64::new(0);
        let stamp = format!("..version_{}", VERSION.fetch_add(1, Ordering::Relaxed));
        let data = self.folder.join(&stamp);
        fs::create_dir(&data)?;
        for (name, text) in content {
            fs::write(data.join(name), text)?;
        }
        let link = self.folder.join("..data_tmp");
        symlink(&stamp, &link)?;
        fs::rename(&link, self.folder.join("..data"))?;
        if let Some(before) = self.current.replace(data) {
            fs::remove_dir_all(before)?;
        }
        Ok(())
    }
}
