//! Separate threads for work that would block the worker threads for too long.

use std::{
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use injectd_api::MAX_MESSAGE_BYTES;
use tokio::{
    runtime::Handle,
    sync::{Notify, Semaphore},
    task::spawn_blocking,
    time::timeout_at,
};

use super::CallerPatience;

/// Size above which a review is answered on a separate thread. By their instructions per byte
/// (`just cost`), smaller reviews take a few milliseconds. The largest recorded pods have half this
/// size.
pub const LONG_REVIEW_BYTES: usize = 128 << 10;
/// Maximum number of threads for long work, so that cores are left for other requests.
pub(super) const MAX_AT_A_TIME: usize = 4;
/// Bytes of a review for each of the threads that it takes. A review of the largest size takes all: what
/// is read of it and its answer take up to nine times its size (`just attack istio`, additional
/// variables), and the memory limit of the chart has room for that once, beside the bodies.
const BYTES_PER_THREAD: usize = MAX_MESSAGE_BYTES.div_ceil(MAX_AT_A_TIME);

/// Threads apart from those that accept connections and read requests. Cheap to clone: the servers of a
/// process share them.
#[derive(Debug, Clone)]
pub struct LongWork(Arc<Semaphore>);

/// The work was not done before the deadline.
#[derive(Debug)]
pub struct Late;

impl LongWork {
    /// Runs `work` for a review of so many bytes on separate threads while the caller is there. Waiting
    /// work holds no thread. Work that runs goes on without its caller, until it asks for the caller's
    /// patience.
    ///
    /// # Errors
    /// When the work is not done in time.
    ///
    /// # Panics
    /// When `work` panics.
    pub async fn run<T: Send + 'static>(
        &self,
        patience: &CallerPatience,
        bytes: usize,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Late> {
        let _present = patience.while_present();
        let done = self.run_to_end(threads_of(bytes), work);
        timeout_at(patience.end(), done).await.unwrap_or(Err(Late))
    }

    async fn run_to_end<T: Send + 'static>(
        &self,
        threads: u32,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Late> {
        let mut work = Box::pin(work);
        let woken = Arc::new(Woken::default());
        loop {
            let permit = Arc::clone(&self.0).acquire_many_owned(threads).await;
            let Ok(permit) = permit else { return Err(Late) };
            // The thread is left while the work waits, for example for its turn: a few threads
            // could otherwise all wait.
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

/// How many threads count as taken by a review of so many bytes.
fn threads_of(bytes: usize) -> u32 {
    let threads = bytes.div_ceil(BYTES_PER_THREAD).clamp(1, MAX_AT_A_TIME);
    u32::try_from(threads).unwrap_or(u32::MAX)
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

    use injectd_core::lookups::Patience as _;
    use tokio::time::Instant;

    use super::*;

    fn patience() -> CallerPatience {
        CallerPatience::until(Instant::now() + Duration::from_secs(30))
    }

    #[tokio::test]
    async fn the_calling_thread_is_not_blocked() {
        let long_work = LongWork::default();
        let ((sender, receiver), patience) = (mpsc::channel(), patience());
        // On the only thread of this test, it would block for ever.
        let work = long_work.run(&patience, 0, async move { receiver.recv() });
        let (done, _) = tokio::join!(work, async { sender.send(7) });
        assert_eq!(done.expect("a thread must be free"), Ok(7));
    }

    #[tokio::test]
    async fn the_largest_review_runs_alone() {
        for (bytes, threads) in [
            (0, 1),
            (3 << 20, 2),
            (MAX_MESSAGE_BYTES / 2, 2),
            (MAX_MESSAGE_BYTES, 4),
            (MAX_MESSAGE_BYTES + (1 << 20), 4),
        ] {
            assert_eq!(threads_of(bytes), threads, "{bytes}");
        }
        let long_work = LongWork::default();
        let ((sender, receiver), patience) = (mpsc::channel(), patience());
        let large = long_work.run(&patience, MAX_MESSAGE_BYTES, async move { receiver.recv() });
        let free = || long_work.0.available_permits();
        let other = async {
            while free() > 0 {
                tokio::task::yield_now().await;
            }
            sender.send(7)
        };
        let (done, _) = tokio::join!(large, other);
        assert_eq!((done.expect("a thread must be free"), free()), (Ok(7), MAX_AT_A_TIME));
    }

    #[tokio::test]
    async fn work_that_waits_keeps_no_thread_from_others() {
        let long_work = LongWork::default();
        let (sender, _) = tokio::sync::broadcast::channel(1);
        let patience = patience();
        let waiting = (0..2 * MAX_AT_A_TIME).map(|_| {
            let mut receiver = sender.subscribe();
            long_work.run(&patience, 0, async move { receiver.recv().await })
        });
        let waiting = futures_util::future::join_all(waiting);
        let other = async {
            let done = long_work.run(&patience, 0, async { 7 }).await;
            sender.send(done.expect("a thread must be free")).expect("others must wait");
        };
        let (done, ()) = tokio::join!(waiting, other);
        assert!(done.into_iter().all(|result| matches!(result, Ok(Ok(7)))));
    }

    #[tokio::test]
    async fn work_that_finds_no_thread_in_time_is_not_begun() {
        let long_work = LongWork::default();
        let taken = long_work.0.acquire_many(4).await;
        let done = long_work
            .run(&CallerPatience::until(Instant::now()), 0, async { panic!("must not begin") })
            .await;
        assert!(matches!(done, Err(Late)));
        drop(taken);
        let done = long_work.run(&patience(), 0, async { 7 }).await;
        assert!(matches!(done, Ok(7)));
    }

    #[tokio::test]
    async fn work_learns_that_its_caller_is_gone() {
        let (long_work, patience) = (LongWork::default(), patience());
        let (began, begins) = tokio::sync::oneshot::channel();
        let (ended, ends) = tokio::sync::oneshot::channel();
        let own = patience.clone();
        let work = async move {
            began.send(()).expect("the test must wait");
            while !own.is_over() {
                std::thread::yield_now();
            }
            ended.send(()).expect("the test must wait");
        };
        tokio::select! {
            done = long_work.run(&patience, 0, work) => panic!("must be dropped first: {done:?}"),
            sent = begins => sent.expect("the work must begin"),
        }
        ends.await.expect("the work must end");
    }

    #[tokio::test]
    async fn a_caller_waits_no_longer_than_its_deadline() {
        let (long_work, (stop, stopped)) = (LongWork::default(), mpsc::channel::<()>());
        let patience = CallerPatience::until(Instant::now() + Duration::from_millis(20));
        let done = long_work.run(&patience, 0, async move { stopped.recv() }).await;
        assert!(matches!(done, Err(Late)));
        assert!(patience.is_over());
        drop(stop);
    }
}
