//! Permissions, as the rules of roles give them.

/// A rule of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The API group; empty for the core group.
    pub api_group: &'static str,
    /// The resources.
    pub resources: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
}
