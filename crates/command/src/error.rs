//! Why a command failed.

use std::{error::Error, io};

/// Why a command failed. The variant decides the exit code.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Invalid flags or environment variables.
    #[error("{0}")]
    Usage(String),
    /// The same for `proxy-injector`, with Go's exit code.
    #[error("{0}")]
    GoUsage(String),
    /// Anything else.
    #[error("{message}")]
    Failed {
        /// What failed.
        message: String,
        /// Why.
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    /// Some of the input could not be used; each problem is printed already.
    #[error("{0}")]
    Incomplete(String),
    /// `compare` found a difference, or a finding is one of `--fail-on`.
    #[error("{0}")]
    Findings(String),
    /// The reader closed the pipe.
    #[error("stdout was closed")]
    OutputClosed,
}

impl CommandError {
    /// Anything that is no wrong usage.
    pub fn failed(
        message: impl Into<String>,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Failed { message: message.into(), cause: cause.into() }
    }

    /// Stdout could not be written.
    #[must_use]
    pub fn output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::failed("cannot write to stdout", error)
    }
}
