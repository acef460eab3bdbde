//! Reloads files when they change, and at SIGHUP.
//!
//! A mounted `ConfigMap` or `Secret` has changed if the symbolic link `..data` beside its files has
//! a new target. A plain file has changed if its size, time or inode differs; it is read once it
//! has been stable for an interval.
//!
//! Not for the content of files: the caller reads them whole and rejects inconsistent sets.

use std::{
    error::Error,
    fs, io, iter,
    os::unix::fs::MetadataExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use injectd_cluster::causes::with_causes;
use injectd_telemetry::metrics::ReloadMetrics;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

/// Reads of the versions of files until two reads agree; a file that never stops changing counts as
/// changed.
const MAX_READS_OF_VERSIONS: usize = 10;

/// Files that belong together.
#[derive(Debug)]
pub struct Files {
    paths: Vec<PathBuf>,
    /// The files of the paths.
    list: fn(&[PathBuf]) -> Vec<PathBuf>,
    seen: Vec<(PathBuf, Version)>,
}

/// What became of files that were read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reloaded {
    /// They are in use.
    Whole,
    /// A part of them is in use. What is rejected is logged already.
    InPart,
}

impl From<()> for Reloaded {
    fn from((): ()) -> Self {
        Self::Whole
    }
}

/// Identifies the content of a file without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Version {
    /// The target of `..data`.
    Link(PathBuf),
    /// Device, inode, size, and time of the last change in nanoseconds.
    File(u64, u64, u64, i128),
    Missing,
}

impl Files {
    /// The current versions of the files; call this before the files are read for the first time.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self::listed(paths.into_iter().collect(), <[PathBuf]>::to_vec)
    }

    /// The same for the files that `list` finds below the paths; these may come and go.
    #[must_use]
    pub fn listed(paths: Vec<PathBuf>, list: fn(&[PathBuf]) -> Vec<PathBuf>) -> Self {
        let seen = versions(list(&paths));
        Self { paths, list, seen }
    }

    fn versions(&self) -> Vec<(PathBuf, Version)> {
        versions((self.list)(&self.paths))
    }

    /// Whether any file has changed since the last call.
    pub fn have_changed(&mut self) -> bool {
        let mut now = self.versions();
        // A swap between two reads of versions would count as two changes.
        for _ in 0..MAX_READS_OF_VERSIONS {
            let again = self.versions();
            if again == now {
                break;
            }
            now = again;
        }
        let have_changed = now != self.seen;
        self.seen = now;
        have_changed
    }

    /// Whether another process may write a file in place.
    fn may_be_half_written(&self) -> bool {
        self.seen.iter().any(|(_, version)| !matches!(version, Version::Link(_)))
    }
}

fn versions(paths: Vec<PathBuf>) -> Vec<(PathBuf, Version)> {
    let version = |path: PathBuf| {
        let version = Version::of(&path);
        (path, version)
    };
    paths.into_iter().map(version).collect()
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

/// When files are reloaded: at an interval if they have changed, and on request.
#[derive(Debug, Clone)]
pub struct Schedule {
    interval: Duration,
    requests: Arc<Requests>,
}

/// Number of requests to reload all files, changed or not.
#[derive(Debug, Default)]
struct Requests {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Schedule {
    /// Checks for changes at this interval.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, requests: Arc::default() }
    }

    /// Reloads all files at SIGHUP, which otherwise ends the process.
    ///
    /// # Errors
    /// When the signal handler cannot be installed.
    pub fn reload_at_hangup(&self) -> io::Result<()> {
        let mut hangup = signal(SignalKind::hangup())?;
        let schedule = self.clone();
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                info!("received SIGHUP: reloading all files");
                schedule.reload_now();
            }
        });
        Ok(())
    }

    /// Reloads all files now, changed or not.
    pub fn reload_now(&self) {
        *self.requests.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.requests.changed.notify_all();
    }

    /// Waits for the end of the interval, or for a request that is not in `seen`. Returns whether
    /// there was a request.
    fn wait(&self, seen: &mut u64) -> bool {
        let Requests { count, changed } = &*self.requests;
        let count = count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(count, self.interval, |count| count == seen);
        let (count, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_requested = *count != *seen;
        *seen = *count;
        is_requested
    }
}

/// Starts a thread that calls `reload` when the files change or a reload is requested. Rejected
/// files are logged and counted; the previous ones stay in use.
///
/// # Errors
/// When no thread can be started.
pub fn follow<R: Into<Reloaded>, E: Error + 'static>(
    what: &'static str,
    mut files: Files,
    schedule: &Schedule,
    metrics: ReloadMetrics,
    mut reload: impl FnMut() -> Result<R, E> + Send + 'static,
) -> io::Result<()> {
    if files.paths.is_empty() {
        return Ok(());
    }
    let schedule = schedule.clone();
    let follow = move || {
        let mut state = State::Settled;
        // A request before the thread started may have come after the files were read.
        let mut seen_requests = 0;
        loop {
            let is_requested = schedule.wait(&mut seen_requests);
            let have_changed = files.have_changed();
            if have_changed && files.may_be_half_written() && !is_requested {
                state = State::Changing;
                continue;
            }
            if !have_changed && state == State::Settled && !is_requested {
                continue;
            }
            // A panic is a bug; it rejects the files like any error.
            let (error, is_unread) = match catch_unwind(AssertUnwindSafe(&mut reload)) {
                Ok(Ok(reloaded)) => {
                    state = State::Settled;
                    report(what, reloaded.into(), &metrics);
                    continue;
                }
                Ok(Err(error)) => (with_causes(&error), is_unread(&error)),
                Err(_) => ("a bug in injectd".to_owned(), false),
            };
            metrics.is_rejected.set(1);
            // Retries are not logged.
            if have_changed || is_requested || state != State::Unread {
                metrics.rejected.increment(1);
                warn!(error, what, "files are rejected; the previous ones stay in use");
            }
            state = if is_unread { State::Unread } else { State::Settled };
        }
    };
    // A thread of its own: reading may block as long as a disk or a network volume likes.
    thread::Builder::new().name(format!("reload {what}")).spawn(follow).map(drop)
}

/// Logs and counts files that are in use.
fn report(what: &str, reloaded: Reloaded, metrics: &ReloadMetrics) {
    metrics.applied.increment(1);
    metrics.is_rejected.set(i32::from(reloaded == Reloaded::InPart));
    match reloaded {
        Reloaded::Whole => info!(what, "reloaded"),
        Reloaded::InPart => {
            metrics.rejected.increment(1);
            warn!(what, "reloaded in part: the lines before name what is rejected");
        }
    }
}

/// The state of followed files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// They were loaded or rejected.
    Settled,
    /// Another process may be writing them.
    Changing,
    /// They could not be read, and are read again at the next interval.
    Unread,
}

/// Whether reading a file failed, which may be temporary.
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
    fn a_file_that_comes_into_a_folder_is_a_change() {
        let folder = Folder::new("listed");
        let list = |paths: &[PathBuf]| -> Vec<PathBuf> {
            let entries = fs::read_dir(&paths[0]).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect()
        };
        let mut files = Files::listed(vec![folder.0.clone()], list);
        assert!(!files.have_changed());
        fs::write(folder.0.join("a"), "a").expect("a file");
        assert!(files.have_changed() && !files.have_changed());
        fs::remove_file(folder.0.join("a")).expect("no file");
        assert!(files.have_changed());
    }

    #[test]
    fn a_request_is_seen_once_and_also_when_it_came_before_the_wait() {
        let schedule = Schedule::new(Duration::ZERO);
        let mut seen = 0;
        assert!(!schedule.wait(&mut seen));
        schedule.reload_now();
        schedule.reload_now();
        assert!(schedule.wait(&mut seen));
        assert!(!schedule.wait(&mut seen));
    }

    #[test]
    fn a_plain_file_changes_with_its_metadata() {
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
