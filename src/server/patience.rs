//! How long a caller waits for its answer: until its deadline, and only while it is there.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use injectd_core::lookups::Patience;
use tokio::time::Instant;

/// A caller's deadline, and whether it left before.
#[derive(Debug, Clone)]
pub struct CallerPatience {
    end: Instant,
    has_left: Arc<AtomicBool>,
}

/// Marks the caller as gone once it is dropped.
#[derive(Debug)]
pub struct Present(Arc<AtomicBool>);

impl CallerPatience {
    /// A caller that waits until this time.
    #[must_use]
    pub fn until(end: Instant) -> Self {
        Self { end, has_left: Arc::default() }
    }

    /// The deadline.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.end
    }

    /// For the future that the server drops when the caller is gone. Work on other threads goes on then.
    #[must_use = "dropping it marks the caller as gone"]
    pub fn while_present(&self) -> Present {
        Present(Arc::clone(&self.has_left))
    }
}

impl Patience for CallerPatience {
    fn is_over(&self) -> bool {
        // Relaxed: no data comes with the flag, and an evaluation that sees it late only works a
        // little longer.
        self.has_left.load(Relaxed) || Instant::now() >= self.end
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
