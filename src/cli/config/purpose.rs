//! How files of the configuration are read: by the server, or by a command.

use std::path::Path;

use tracing::warn;

use super::{
    super::{CommandError, input, note},
    trust_roots,
};

/// What a configuration is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Purpose {
    /// To serve: the files are read again when they change, and the proxies join a mesh.
    Serve,
    /// To print manifests for a cluster; files are of any kind and size.
    Inject,
    /// To repeat recorded answers: Linkerd's injector takes any bytes as trust roots. Files are of
    /// any kind and size.
    Replay,
}

impl Purpose {
    /// Reads the file of a flag.
    pub(super) fn read(self, flag: &str, path: &Path) -> Result<Vec<u8>, CommandError> {
        match self {
            Self::Serve => input::read_served(flag, path),
            Self::Inject | Self::Replay => input::read(path),
        }
    }

    /// Reads the text file of a flag.
    pub(super) fn read_text(self, flag: &str, path: &Path) -> Result<String, CommandError> {
        input::utf8(path, self.read(flag, path)?)
    }

    /// Reads trust roots, with warnings for those that proxies cannot use.
    pub(super) fn read_trust_roots(self, path: &Path) -> Result<Vec<u8>, CommandError> {
        let bundle = self.read("--trust-roots", path)?;
        let file = format!("--trust-roots {}", path.display());
        let warnings = match trust_roots::check(&bundle) {
            Ok(warnings) => warnings,
            Err(problem) if self == Self::Replay => vec![problem],
            Err(problem) => return Err(CommandError::failed(file, problem)),
        };
        for warning in warnings {
            match self {
                Self::Serve => warn!("{file}: {warning}"),
                Self::Inject | Self::Replay => note(&format!("warning: {file}: {warning}")),
            }
        }
        Ok(bundle)
    }
}
