//! An error with its causes, as one text; of an answer of the API server only what it says.
//!
//! The client's own text of such an answer is the whole object.

use std::{error::Error, sync::Arc};

use injectd_core::causes::texts_of;

/// An error and the chain of its causes.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    texts_of(error, api_message)
}

/// What the API server says, if the error is its answer.
pub(crate) fn api_message(error: &(dyn Error + 'static)) -> Option<String> {
    let boxed = || error.downcast_ref::<Box<kube::Error>>().map(|error| &**error);
    let shared = || error.downcast_ref::<Arc<kube::Error>>().map(|error| &**error);
    let found = error.downcast_ref::<kube::Error>().or_else(boxed).or_else(shared);
    let kube::Error::Api(status) = found? else { return None };
    Some(status_message(status))
}

/// The message of an API server's answer; one without a message has its code and reason.
pub(crate) fn status_message(status: &kube::core::Status) -> String {
    let kube::core::Status { message, reason, code, .. } = status;
    if message.is_empty() { format!("status {code} {reason}") } else { message.clone() }
}

#[cfg(test)]
mod tests {
    use std::{fmt, io};

    use super::*;

    #[derive(Debug)]
    struct Outer(Box<dyn Error + Send + Sync>);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("cannot write")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&*self.0)
        }
    }

    fn forbidden() -> kube::Error {
        let status = kube::core::Status::failure("leases is forbidden", "Forbidden");
        kube::Error::Api(status.with_code(403).boxed())
    }

    #[test]
    fn an_answer_of_the_api_server_is_its_message() {
        let boxed = Outer(Box::new(Box::new(forbidden())));
        let shared = Outer(Box::new(Arc::new(forbidden())));
        for error in [Outer(Box::new(forbidden())), boxed, shared] {
            assert_eq!(with_causes(&error), "cannot write: leases is forbidden");
        }
        assert_eq!(with_causes(&forbidden()), "leases is forbidden");
        let unnamed = kube::core::Status::failure("", "Conflict").with_code(409).boxed();
        assert_eq!(with_causes(&kube::Error::Api(unnamed)), "status 409 Conflict");
    }

    #[test]
    fn other_errors_have_their_causes() {
        let error = Outer(Box::new(io::Error::other("the disk is full")));
        assert_eq!(with_causes(&error), "cannot write: the disk is full");
    }
}
