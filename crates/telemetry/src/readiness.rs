//! Tracks the readiness of the process. A component holds a handle until it is initialised; the
//! process is ready when no handle is left.

use std::sync::Arc;

use tokio::sync::watch;

/// Ready while no [`Hold`] exists.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<watch::Sender<usize>>);

/// Keeps the process from being ready until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it makes the process ready"]
pub struct Hold(Arc<watch::Sender<usize>>);

impl Readiness {
    /// Makes the process unready until the handle is dropped.
    pub fn hold(&self) -> Hold {
        self.0.send_modify(|holds| *holds += 1);
        Hold(Arc::clone(&self.0))
    }

    /// Whether no [`Hold`] exists.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.0.borrow() == 0
    }

    /// Waits until the process is ready, or until it is not.
    pub async fn wait_until(&self, is_ready: bool) {
        // Cannot fail: `self` owns the sender.
        drop(self.0.subscribe().wait_for(|&holds| (holds == 0) == is_ready).await);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.send_modify(|holds| *holds -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_ready_when_every_hold_is_dropped() {
        let readiness = Readiness::default();
        assert!(readiness.is_ready());
        let (one, other) = (readiness.hold(), readiness.hold());
        drop(one);
        assert!(!readiness.is_ready());
        drop(other);
        assert!(readiness.is_ready());
    }
}
