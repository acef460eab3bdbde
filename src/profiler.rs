//! CPU profiles of the running process, as pprof reads them.

use std::{io, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use pprof::{ProfilerGuardBuilder, protos::Message as _};
use tokio::time::sleep;

use crate::admin::Profiler;

/// Samples in a second of CPU time: not a divisor of anything that happens regularly.
const FREQUENCY: i32 = 99;

/// Takes profiles, one at a time.
#[must_use]
pub fn profiler() -> Profiler {
    Arc::new(|duration| take(duration).boxed())
}

async fn take(duration: Duration) -> io::Result<Vec<u8>> {
    let guard = ProfilerGuardBuilder::default().frequency(FREQUENCY).build();
    let guard = guard.map_err(io::Error::other)?;
    sleep(duration).await;
    let profile = guard.report().build().and_then(|report| report.pprof());
    Ok(profile.map_err(io::Error::other)?.encode_to_vec())
}
