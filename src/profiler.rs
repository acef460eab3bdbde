//! CPU profiles of the running process, as pprof reads them.

use std::{io, time::Duration};

use pprof::{ProfilerGuardBuilder, protos::Message as _};
use tokio::{task::spawn_blocking, time::sleep};
use tracing::debug;

/// Samples in a second of CPU time: not a divisor of anything that happens regularly.
const FREQUENCY: i32 = 99;
/// Libraries that must not be interrupted to be looked at.
const UNTOUCHED: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];

/// What every container can write to, even on a read-only root.
const SHARED_MEMORY: &str = "/dev/shm";

/// Sees to it that samples can be kept somewhere: beyond the first thousands they go to a file.
pub fn prepare() {
    if let Err(error) = tempfile::tempfile() {
        debug!(%error, "profiles are kept in {SHARED_MEMORY}");
        // Only a second call fails.
        drop(tempfile::env::override_temp_dir(SHARED_MEMORY.as_ref()));
    }
}

/// Takes a profile of so much time; one at a time.
///
/// # Errors
/// When another is being taken, or the system gives no timer.
pub async fn take(duration: Duration) -> io::Result<Vec<u8>> {
    let guard = ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&UNTOUCHED).build();
    let guard = guard.map_err(io::Error::other)?;
    sleep(duration).await;
    let report = move || guard.report().build().and_then(|report| report.pprof());
    let profile = spawn_blocking(report).await.map_err(io::Error::other)?;
    Ok(profile.map_err(io::Error::other)?.encode_to_vec())
}
