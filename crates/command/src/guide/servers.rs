//! The servers, and the probe of a server.

use super::{Guide, WRONG_USAGE};
use crate::EXIT_GO_USAGE;

/// `injectd serve`.
pub(super) const SERVE: Guide = Guide {
    command: "serve",
    examples: &[
        ("Without a cluster", "injectd serve --standalone --addr 127.0.0.1:8443"),
        ("For Istio, in a cluster", "injectd serve --mesh istio --manage-certs"),
        (
            "For the sidecar templates of a cluster; it writes for which pods its webhook is called",
            "injectd serve --mesh templates --manage-certs --manage-webhook",
        ),
    ],
    exit_codes: &[(0, "drained after a signal"), (1, "a server could not start")],
    related: &["proxy-injector", "probe", "manifest-install"],
};

/// `injectd proxy-injector`.
pub(super) const PROXY_INJECTOR: Guide = Guide {
    command: "proxy-injector",
    examples: &[
        (
            "As the Deployment of Linkerd's chart starts it",
            "injectd proxy-injector -log-level=info -log-format=plain -linkerd-namespace=linkerd -enable-pprof=false",
        ),
        ("The version that it reports", "injectd proxy-injector -version"),
    ],
    exit_codes: &[
        (0, "drained after a signal"),
        (1, "a server could not start"),
        (EXIT_GO_USAGE, WRONG_USAGE),
    ],
    related: &["serve"],
};

/// `injectd probe`.
pub(super) const PROBE: Guide = Guide {
    command: "probe",
    examples: &[
        ("Whether a server is ready", "injectd probe http://127.0.0.1:9995/ready"),
        (
            "Whether a webhook injects",
            "injectd probe --review linkerd --ca ca.crt https://injectd.linkerd.svc/linkerd",
        ),
    ],
    exit_codes: &[
        (0, "each server is ready, or injects"),
        (1, "a server is not ready, or does not inject"),
    ],
    related: &["serve"],
};
