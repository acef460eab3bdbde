//! CPU profiles of the running process, in pprof's format. Only with the feature `profiling`.

use std::{io, time::Duration};

#[cfg(feature = "profiling")]
pub use self::enabled::{prepare, take};

/// Whether this build can take profiles; without the feature it logs why not.
#[cfg(not(feature = "profiling"))]
#[must_use]
pub fn prepare() -> bool {
    tracing::warn!(
        "no CPU profiles: this build lacks the feature `profiling`, which the image has"
    );
    false
}

/// Takes a profile.
///
/// # Errors
/// Always: this build lacks the feature `profiling`.
#[cfg(not(feature = "profiling"))]
#[expect(clippy::unused_async, reason = "with the feature it waits")]
pub async fn take(_: Duration) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(feature = "profiling")]
mod enabled {
    use pprof::{ProfilerGuardBuilder, protos::Message as _};
    use tokio::{task::spawn_blocking, time::sleep};
    use tracing::debug;

    use super::{Duration, io};

    /// Samples per second of CPU time. No divisor of usual timer frequencies, so that samples do not
    /// coincide with timers.
    const FREQUENCY: i32 = 99;
    /// Libraries whose code the sampler must not unwind.
    // The signal of the sampler may interrupt them while they hold a lock that unwinding takes,
    // too.
    const BLOCKLIST: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];
    /// A folder that every container may write to, even with a read-only root.
    const SHARED_MEMORY: &str = "/dev/shm";

    /// Chooses a writable folder for samples, which go to a file after the first thousands, and
    /// returns whether this build can take profiles.
    #[must_use]
    pub fn prepare() -> bool {
        if let Err(error) = tempfile::tempfile() {
            debug!(%error, "CPU profiles use {SHARED_MEMORY} for temporary files");
            // Only a second call fails.
            drop(tempfile::env::override_temp_dir(SHARED_MEMORY.as_ref()));
        }
        true
    }

    /// Takes a profile of this duration; one at a time.
    ///
    /// # Errors
    /// When another profile is being taken, or the system has no timer for it.
    pub async fn take(duration: Duration) -> io::Result<Vec<u8>> {
        let guard = ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&BLOCKLIST);
        let guard = guard.build().map_err(io::Error::other)?;
        sleep(duration).await;
        let report = move || guard.report().build().and_then(|report| report.pprof());
        let profile = spawn_blocking(report).await.map_err(io::Error::other)?;
        Ok(profile.map_err(io::Error::other)?.encode_to_vec())
    }
}
