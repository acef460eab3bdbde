//! When to stop: at a signal, and at once at a second one.

use std::{
    future::{Future, pending},
    io,
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use tracing::info;

use crate::readiness::Readiness;

/// Tells when to stop.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<Signalled>);

/// What was signalled so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signalled {
    /// Nothing.
    Nothing,
    /// SIGTERM: others have to learn of it first.
    ToTerminate,
    /// SIGINT: a person waits.
    ToInterrupt,
    /// A second signal.
    Again,
}

impl Shutdown {
    /// Stops at SIGTERM or SIGINT; not ready from then on.
    ///
    /// # Errors
    /// When the system does not let it listen for signals.
    pub fn at_signals(readiness: Readiness) -> io::Result<Self> {
        let (tell, told) = watch::channel(Signalled::Nothing);
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::spawn(async move {
            let first = tokio::select! {
                _ = terminate.recv() => Signalled::ToTerminate,
                _ = interrupt.recv() => Signalled::ToInterrupt,
            };
            let _not_ready = readiness.hold();
            info!("shutting down webhook server");
            tell.send_replace(first);
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tell.send_replace(Signalled::Again);
            tell.closed().await;
        });
        Ok(Self(told))
    }

    /// Stops when a future is done, as at SIGINT.
    #[must_use]
    pub fn after(done: impl Future<Output = ()> + Send + 'static) -> Self {
        let (tell, told) = watch::channel(Signalled::Nothing);
        tokio::spawn(async move {
            done.await;
            tell.send_replace(Signalled::ToInterrupt);
            tell.closed().await;
        });
        Self(told)
    }

    /// Done at the first signal.
    pub async fn begun(&mut self) -> Signalled {
        self.at_least(Signalled::ToTerminate).await
    }

    /// Done at the second signal.
    pub async fn hastened(&mut self) {
        self.at_least(Signalled::Again).await;
    }

    async fn at_least(&mut self, least: Signalled) -> Signalled {
        let told = self.0.wait_for(|signalled| *signalled >= least).await.map(|told| *told);
        match told {
            Ok(signalled) => signalled,
            // Whoever tells is gone.
            Err(_) => pending().await,
        }
    }
}
