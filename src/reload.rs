//! Reading files again when they change.
//!
//! A mounted `ConfigMap` or `Secret` is swapped through the symbolic link `..data` beside its files;
//! files that are mounted by themselves are told by size, time and inode, and left alone until they
//! have not changed for a while.
//!
//! Not for what files mean: whoever follows them reads them whole and refuses what is torn.

use std::{
    error::Error,
    fs, io, iter,
    os::unix::fs::MetadataExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use tracing::{info, warn};

use crate::{log, metrics::ReloadMetrics};

/// Files that belong together.
#[derive(Debug)]
pub struct Files {
    paths: Vec<PathBuf>,
    seen: Vec<Version>,
}

/// What tells one content of a file from the next without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Version {
    /// Where `..data` leads.
    Link(PathBuf),
    /// Device, inode, size, and time of the last change in nanoseconds.
    File(u64, u64, u64, i128),
    Missing,
}

impl Files {
    /// The files as they are now: take this before they are read for the first time.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths: Vec<_> = paths.into_iter().collect();
        let seen = versions(&paths);
        Self { paths, seen }
    }

    /// Whether anything changed since this was last asked.
    pub fn have_changed(&mut self) -> bool {
        let mut now = versions(&self.paths);
        // A swap in the middle of looking would be seen twice.
        loop {
            let again = versions(&self.paths);
            if again == now {
                break;
            }
            now = again;
        }
        let have_changed = now != self.seen;
        self.seen = now;
        have_changed
    }

    /// Whether any of them is changed in place.
    fn may_be_half_written(&self) -> bool {
        self.seen.iter().any(|version| !matches!(version, Version::Link(_)))
    }
}

fn versions(paths: &[PathBuf]) -> Vec<Version> {
    paths.iter().map(|path| Version::of(path)).collect()
}

impl Version {
    fn of(path: &Path) -> Self {
        let leads_through_data = fs::read_link(path).is_ok_and(|to| to.starts_with("..data"));
        let link = path.parent().map(|folder| folder.join("..data"));
        if let Some(Ok(target)) = link.filter(|_| leads_through_data).map(fs::read_link) {
            return Self::Link(target);
        }
        match fs::metadata(path) {
            Ok(file) => {
                let changed =
                    i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec());
                Self::File(file.dev(), file.ino(), file.size(), changed)
            }
            Err(_) => Self::Missing,
        }
    }
}

/// Starts a thread that calls `reload` whenever the files change. What it refuses is told and
/// counted; what serves already serves on.
///
/// # Errors
/// When there is no thread to be had.
pub fn follow<E: Error + 'static>(
    what: &'static str,
    mut files: Files,
    interval: Duration,
    metrics: ReloadMetrics,
    mut reload: impl FnMut() -> Result<(), E> + Send + 'static,
) -> io::Result<()> {
    let follow = move || {
        let mut state = State::Settled;
        loop {
            thread::sleep(interval);
            let have_changed = files.have_changed();
            if have_changed && files.may_be_half_written() {
                state = State::Changing;
                continue;
            }
            if !have_changed && state == State::Settled {
                continue;
            }
            // What panics is a bug, and refused like anything else.
            let problem = match catch_unwind(AssertUnwindSafe(&mut reload)) {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some((log::with_causes(&error), is_unread(&error))),
                Err(_) => Some(("a bug in injectd".to_owned(), false)),
            };
            metrics.is_refused.set(i32::from(problem.is_some()));
            let Some((error, is_unread)) = problem else {
                state = State::Settled;
                metrics.taken.increment(1);
                info!(what, "reloaded");
                continue;
            };
            // It is told once, however often it is tried.
            if have_changed || state != State::Unread {
                metrics.refused.increment(1);
                warn!(error, what, "files are refused; what serves, serves on");
            }
            state = if is_unread { State::Unread } else { State::Settled };
        }
    };
    thread::Builder::new().name(format!("reload {what}")).spawn(follow).map(drop)
}

/// What is known of files that are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// What is there was taken or refused.
    Settled,
    /// Somebody may be writing.
    Changing,
    /// What is there could not be read; it is tried again.
    Unread,
}

/// Whether a file system's bad moment is behind an error.
fn is_unread(error: &(dyn Error + 'static)) -> bool {
    let causes = iter::successors(Some(error), |&error| error.source());
    causes.into_iter().any(<dyn Error>::is::<io::Error>)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, os::unix::fs::symlink, process};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = env::temp_dir().join(format!("injectd-reload-{name}-{}", process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn a_swap_of_the_data_link_is_a_change() {
        let folder = Folder::new("link");
        let data = folder.0.join("..data");
        symlink("..first", &data).expect("a link");
        symlink("..data/values", folder.0.join("values")).expect("a link");
        let mut files = Files::new([folder.0.join("values")]);
        assert!(!files.have_changed());
        symlink("..second", folder.0.join("..tmp")).expect("a link");
        fs::rename(folder.0.join("..tmp"), &data).expect("a swap");
        assert!(files.have_changed());
        assert!(!files.have_changed());
    }

    #[test]
    fn a_file_by_itself_is_told_by_what_it_is() {
        let folder = Folder::new("file");
        let path = folder.0.join("values");
        fs::write(&path, "a").expect("a file");
        let mut files = Files::new([path.clone()]);
        assert!(!files.have_changed());
        fs::write(&path, "longer").expect("a file");
        assert!(files.have_changed());
        fs::remove_file(&path).expect("no file");
        assert!(files.have_changed());
        fs::write(&path, "longer").expect("a file");
        assert!(files.have_changed());
    }
}
