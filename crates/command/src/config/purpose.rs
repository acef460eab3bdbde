//! Reads the files of the configuration, for a server or for a command.

use std::path::Path;

use tracing::warn;

use super::trust_roots;
use crate::{CommandError, input, print::print_line};

/// The purpose of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A server: it reloads the files when they change, and its proxies join a mesh.
    Serve,
    /// `inject` prints manifests for a cluster. Accepts pipes as well.
    Inject,
    /// `review` and `compare` repeat recorded answers. They accept any bytes as trust roots, as
    /// Linkerd's injector does, and pipes as well.
    Replay,
}

impl Purpose {
    /// Reads the file that a flag names.
    pub(super) fn read(self, flag: &str, path: &Path) -> Result<Vec<u8>, CommandError> {
        match self {
            Self::Serve => input::read_served(flag, path),
            Self::Inject | Self::Replay => input::read_flag(flag, path),
        }
    }

    /// Reads the file that a flag names as UTF-8.
    pub(super) fn read_text(self, flag: &str, path: &Path) -> Result<String, CommandError> {
        let bytes = self.read(flag, path)?;
        input::utf8(&format!("{flag} {}", input::name(path)), bytes)
    }

    /// Reads trust roots. Prints or logs warnings about certificates that proxies cannot use.
    pub(super) fn read_trust_roots(self, path: &Path) -> Result<Vec<u8>, CommandError> {
        let bundle = self.read("--trust-roots", path)?;
        let file = format!("--trust-roots {}", path.display());
        let warnings = match trust_roots::check(&bundle) {
            Ok(warnings) => warnings,
            Err(problem) if self == Self::Replay => vec![problem],
            Err(problem) => return Err(CommandError::failed(file, problem)),
        };
        for warning in &warnings {
            self.warn(&file, warning);
        }
        Ok(bundle)
    }

    /// Prints or logs a warning about a file, which is named with its flag.
    pub(super) fn warn(self, file: &str, warning: &str) {
        match self {
            Self::Serve => warn!("{file}: {warning}"),
            Self::Inject | Self::Replay => print_line(&format!("warning: {file}: {warning}")),
        }
    }
}
