//! Whether the process is ready: when nothing holds it back any more.

use std::sync::Arc;

use tokio::sync::watch;

/// Ready as long as no [`Hold`] is there.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<watch::Sender<usize>>);

/// Keeps the process from being ready until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it makes the process ready"]
pub struct Hold(Arc<watch::Sender<usize>>);

impl Readiness {
    /// Holds readiness back.
    pub fn hold(&self) -> Hold {
        self.0.send_modify(|holds| *holds += 1);
        Hold(Arc::clone(&self.0))
    }

    /// Whether nothing holds it back.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.0.borrow() == 0
    }

    /// Waits until the process is ready, or not.
    pub async fn wait_until(&self, is_ready: bool) {
        // The sender is here.
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
    fn ready_is_what_nothing_holds_back() {
        let readiness = Readiness::default();
        assert!(readiness.is_ready());
        let (one, other) = (readiness.hold(), readiness.hold());
        drop(one);
        assert!(!readiness.is_ready());
        drop(other);
        assert!(readiness.is_ready());
    }
}
