//! Log lines of the keeper of templates.

use injectd_profiles::template_plane::{HASH_LABEL, NAME_LABEL, NAMESPACE_LABEL};
use tracing::{debug, info, warn};

use super::write::Write;

/// Writes log lines.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    /// The last problem of each kind, to log it once.
    problems: Vec<(String, String)>,
}

/// Maximum number of problems that are remembered: each may be about an object of its own.
const MAX_PROBLEMS: usize = 256;

impl Reporter {
    /// Something was written.
    pub(super) fn wrote(&mut self, write: &Write) {
        self.worked(&what(write));
        match write {
            Write::CreateRevision(revision) => {
                let labels = revision.metadata.labels.as_ref();
                let label = |key| labels.and_then(|labels| labels.get(key)).map_or("", |text| text);
                let (namespace, template) = (label(NAMESPACE_LABEL), label(NAME_LABEL));
                info!(template, namespace, hash = label(HASH_LABEL), "keeps a new revision");
            }
            Write::Status { .. } => debug!("wrote the status of {}", write.object()),
            Write::RenumberRevision { .. } => debug!("{} is the newest one", write.object()),
            Write::DeleteRevision(_) => info!("removed the {}", write.object()),
            Write::DeleteLease(_) => {
                info!("removed the {} of a replica that is gone", write.object());
            }
        }
    }

    /// Something works.
    pub(super) fn worked(&mut self, what: &str) {
        self.problems.retain(|(of, _)| of != what);
    }

    /// Something failed. It is logged when it is new.
    pub(super) fn failed(&mut self, what: &str, error: &str) {
        let is_known = self.problems.iter().any(|(of, text)| of == what && text == error);
        if is_known {
            return;
        }
        self.worked(what);
        if self.problems.len() >= MAX_PROBLEMS {
            self.problems.remove(0);
        }
        self.problems.push((what.to_owned(), error.to_owned()));
        warn!(error, "cannot {what}; the templates in use stay");
    }
}

/// What a write does.
pub(super) fn what(write: &Write) -> String {
    let object = write.object();
    match write {
        Write::CreateRevision(_) => format!("create the {object}"),
        Write::RenumberRevision { .. } => format!("write the {object}"),
        Write::DeleteRevision(_) | Write::DeleteLease(_) => format!("remove the {object}"),
        Write::Status { .. } => format!("write the status of the {object}"),
    }
}
