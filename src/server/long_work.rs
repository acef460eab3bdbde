//! Separate threads for work that would block the worker threads for too long.

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

/// Size above which a review is answered on a separate thread. By their instructions per byte
/// (`just cost`), smaller reviews take a few milliseconds. The largest recorded pods have half this
/// size.
pub const LONG_REVIEW_BYTES: usize = 128 << 10;
/// Maximum number of threads for long work, so that cores are left for other requests.
const MAX_AT_A_TIME: usize = 4;

/// Threads apart from those that accept connections and read requests.
#[derive(Debug)]
pub struct LongWork(Arc<Semaphore>);

/// No thread became free before the deadline.
#[derive(Debug)]
pub struct Late;

impl LongWork {
    /// Runs `work` on separate threads; one must become free by `deadline`. Waiting work holds no
    /// thread.
    ///
    /// # Errors
    /// When no thread becomes free in time.
    ///
    /// # Panics
    /// When `work` panics.
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
                // The work continues if the caller drops this future, so it must own the permit.
                let _permit = permit;
                let _entered = runtime.enter();
                let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
                (polled, work)
            });
            work = match polled.await {
                Ok((Poll::Ready(done), _)) => return Ok(done),
                Ok((Poll::Pending, work)) => work,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // The runtime shuts down.
                Err(_) => return Err(Late),
            };
            woken.0.notified().await;
        }
    }
}

/// Notified when waiting work can continue.
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
    async fn the_calling_thread_is_not_blocked() {
        let long_work = LongWork::default();
        let (sender, receiver) = mpsc::channel();
        // On the only thread of this test, it would block for ever.
        let work = long_work.run(deadline(), async move { receiver.recv() });
        let (done, _) = tokio::join!(work, async { sender.send(7) });
        assert_eq!(done.expect("a thread must be free"), Ok(7));
    }

    #[tokio::test]
    async fn work_that_waits_keeps_no_thread_from_others() {
        let long_work = LongWork::default();
        let (sender, _) = tokio::sync::broadcast::channel(1);
        let waiting = (0..2 * MAX_AT_A_TIME).map(|_| {
            let mut receiver = sender.subscribe();
            long_work.run(deadline(), async move { receiver.recv().await })
        });
        let waiting = futures_util::future::join_all(waiting);
        let other = async {
            let done = long_work.run(deadline(), async { 7 }).await;
            sender.send(done.expect("a thread must be free")).expect("others must wait");
        };
        let (done, ()) = tokio::join!(waiting, other);
        assert!(done.into_iter().all(|result| matches!(result, Ok(Ok(7)))));
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
