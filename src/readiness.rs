//! Whether the process is ready: when nothing holds it back any more.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Ready as long as no [`Hold`] is there.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<AtomicUsize>);

/// Keeps the process from being ready until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it makes the process ready"]
pub struct Hold(Arc<AtomicUsize>);

impl Readiness {
    /// Holds readiness back.
    pub fn hold(&self) -> Hold {
        self.0.fetch_add(1, Ordering::AcqRel);
        Hold(Arc::clone(&self.0))
    }

    /// Whether nothing holds it back.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
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
