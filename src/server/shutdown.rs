//! Shutdown: graceful at the first signal, immediate at the second.

use std::{
    future::{Future, pending},
    io,
};

use injectd_telemetry::readiness::Readiness;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tracing::info;

/// Observes the signals to shut down.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<Signalled>);

/// The signals received so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signalled {
    /// No signal.
    Nothing,
    /// SIGTERM: clients need time to learn that this endpoint stops.
    ToTerminate,
    /// SIGINT: a person waits for the exit.
    ToInterrupt,
    /// A second signal.
    Again,
}

impl Shutdown {
    /// Shuts down at SIGTERM or SIGINT; from then on the process is not ready.
    ///
    /// # Errors
    /// When a signal handler cannot be installed.
    pub fn at_signals(readiness: Readiness) -> io::Result<Self> {
        let (sender, receiver) = watch::channel(Signalled::Nothing);
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::spawn(async move {
            let first = tokio::select! {
                _ = terminate.recv() => Signalled::ToTerminate,
                _ = interrupt.recv() => Signalled::ToInterrupt,
            };
            let _not_ready = readiness.hold();
            info!("shutting down webhook server");
            sender.send_replace(first);
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            sender.send_replace(Signalled::Again);
            sender.closed().await;
        });
        Ok(Self(receiver))
    }

    /// Shuts down when `done` completes, as at SIGINT.
    #[must_use]
    pub fn after(done: impl Future<Output = ()> + Send + 'static) -> Self {
        let (sender, receiver) = watch::channel(Signalled::Nothing);
        tokio::spawn(async move {
            done.await;
            sender.send_replace(Signalled::ToInterrupt);
            sender.closed().await;
        });
        Self(receiver)
    }

    /// Completes at the first signal.
    pub async fn begun(&mut self) -> Signalled {
        self.at_least(Signalled::ToTerminate).await
    }

    /// Completes at the second signal.
    pub async fn forced(&mut self) {
        self.at_least(Signalled::Again).await;
    }

    async fn at_least(&mut self, least: Signalled) -> Signalled {
        let signalled = self.0.wait_for(|signalled| *signalled >= least).await.map(|found| *found);
        match signalled {
            Ok(signalled) => signalled,
            // The sender is dropped: no signal can follow.
            Err(_) => pending().await,
        }
    }
}
