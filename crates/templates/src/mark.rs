//! Where the mark is: what a pod itself says of the templates in it.

/// The annotation of the mark.
pub const ANNOTATION: &str = "injectd.dev/templates";
/// The label of pods with a mark.
pub const LABEL: &str = "injectd.dev/injected";
