//! Long work: what takes a thread for so long that others would wait for it.

use std::{
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use tokio::{
    runtime::Handle,
    sync::{Notify, Semaphore},
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

/// Above this a review is answered on a thread of its own: the instructions for a byte (`just cost`)
/// keep smaller ones to a few milliseconds, and the largest recorded pods have half of it.
pub const LONG_REVIEW_BYTES: usize = 128 << 10;
/// Threads that do long work at a time: the machine has to have some left for the others.
const MAX_AT_A_TIME: usize = 4;

/// Threads beside those that accept connections and read requests.
#[derive(Debug)]
pub struct LongWork(Arc<Semaphore>);

/// No thread was free in time.
#[derive(Debug)]
pub struct Late;

impl LongWork {
    /// Does the work on threads of its own, which must be free by `deadline`. Work that waits takes
    /// none: others go on.
    ///
    /// # Errors
    /// When no thread is free in time.
    ///
    /// # Panics
    /// When the work does.
    pub async fn run<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Late> {
        let mut work = Box::pin(work);
        let woken = Arc::new(Woken::default());
        loop {
            let permit = timeout_at(deadline, Arc::clone(&self.0).acquire_owned()).await;
            let Ok(Ok(permit)) = permit else { return Err(Late) };
            let (runtime, waker) = (Handle::current(), Waker::from(Arc::clone(&woken)));
            let polled = spawn_blocking(move || {
                // It goes on if the caller leaves, and so must the permit.
                let _permit = permit;
                let _entered = runtime.enter();
                let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
                (polled, work)
            });
            work = match polled.await {
                Ok((Poll::Ready(done), _)) => return Ok(done),
                Ok((Poll::Pending, work)) => work,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // The process ends.
                Err(_) => return Err(Late),
            };
            woken.0.notified().await;
        }
    }
}

/// Notified when work that waited can go on.
#[derive(Default)]
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

impl Default for LongWork {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_AT_A_TIME)))
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use super::*;

    fn deadline() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    #[tokio::test]
    async fn the_thread_that_asked_goes_on_meanwhile() {
        let long_work = LongWork::default();
        let (tell, told) = mpsc::channel();
        // It would wait for ever on the only thread of this test.
        let work = long_work.run(deadline(), async move { told.recv() });
        let (done, _) = tokio::join!(work, async { tell.send(7) });
        assert_eq!(done.expect("a thread must be free"), Ok(7));
    }

    #[tokio::test]
    async fn work_that_waits_keeps_no_thread_from_others() {
        let long_work = LongWork::default();
        let (tell, _) = tokio::sync::broadcast::channel(1);
        let waiting = (0..2 * MAX_AT_A_TIME).map(|_| {
            let mut told = tell.subscribe();
            long_work.run(deadline(), async move { told.recv().await })
        });
        let waiting = futures_util::future::join_all(waiting);
        let other = async {
            let done = long_work.run(deadline(), async { 7 }).await;
            tell.send(done.expect("a thread must be free")).expect("others must wait");
        };
        let (done, ()) = tokio::join!(waiting, other);
        assert!(done.into_iter().all(|it| matches!(it, Ok(Ok(7)))));
    }

    #[tokio::test]
    async fn work_that_finds_no_thread_in_time_is_not_begun() {
        let long_work = LongWork::default();
        let taken = long_work.0.acquire_many(4).await;
        let done = long_work.run(Instant::now(), async { panic!("must not begin") }).await;
        assert!(matches!(done, Err(Late)));
        drop(taken);
        let done = long_work.run(deadline(), async { 7 }).await;
        assert!(matches!(done, Ok(7)));
    }
}
