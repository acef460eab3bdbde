//! The commands of sidecar templates.

use super::Guide;

/// `template`.
pub(super) const TEMPLATE: Guide = Guide {
    command: "template",
    examples: &[
        ("Check templates", "injectd template check templates/"),
        ("Test a template on its cases", "injectd template test templates/agent"),
    ],
    exit_codes: &[
        (0, "all templates are in order, all cases passed"),
        (1, "a file could not be read or written, or there was nothing to check"),
        (3, "a template has a problem, or a case failed"),
    ],
    related: &["template-check", "template-test", "manifest-crds"],
};

/// `template check`.
pub(super) const CHECK: Guide = Guide {
    command: "template check",
    examples: &[
        ("Templates of a folder", "injectd template check templates/"),
        ("Templates of a chart", "helm template chart | injectd template check -"),
        (
            "For a release of Kubernetes, with warnings as failures",
            "injectd template check --kubernetes 1.33 --fail-on warning templates/",
        ),
        (
            "What they would do to the pods of a chart",
            "helm template chart | injectd template check templates/ --manifests -",
        ),
        ("For a code host", "injectd template check -o sarif templates/ > findings.sarif"),
    ],
    exit_codes: &[
        (0, "no finding of --fail-on"),
        (1, "a file could not be read, or has no template or no pod"),
        (3, "a finding of --fail-on: by default, a problem"),
    ],
    related: &["template-test", "manifest-crds"],
};

/// `template test`.
pub(super) const TEST: Guide = Guide {
    command: "template test",
    examples: &[
        ("Test a template on its cases", "injectd template test templates/agent"),
        ("Write the expected files", "injectd template test --update templates/agent"),
        ("For a CI system", "injectd template test -o junit templates/* > results.xml"),
    ],
    exit_codes: &[
        (0, "all cases passed, or were updated"),
        (1, "a file could not be read or written, a template has a problem, or there was no case"),
        (3, "a case failed"),
    ],
    related: &["template-check"],
};
