//! Pods that are created while something happens to the certificates, and none of which may be refused.

use injectd_harness::{
    expect::Outcome,
    stream::{Stream, all_created},
};

use super::callers::Callers;

/// Creates pods and verifies certificates until it is stopped or dropped.
pub(super) struct Load {
    stream: Stream,
    callers: Callers,
}

impl Load {
    pub(super) fn start(stream: Stream, callers: Callers) -> Self {
        Self { stream, callers }
    }

    /// Waits until so many more pods were created.
    pub(super) async fn wait_for(&self, more: usize) -> Outcome {
        self.stream.wait_for(more).await
    }

    /// Stops, and returns the counts.
    ///
    /// # Errors
    ///
    /// Fails if a pod was refused or a certificate was rejected.
    pub(super) async fn stop(self) -> Outcome<String> {
        let seen = self.stream.stop().await;
        let calls = self.callers.stop().await;
        all_created(&seen)?;
        Ok(format!("{} pods, {} further connections: 0 failed", seen.len(), calls?))
    }
}
