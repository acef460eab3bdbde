//! The permissions of `--manage-certs`, each on named objects only.

/// Verbs on the Secret. `create` is used for a Secret that was deleted: the API server checks the
/// name, since the request is an apply.
pub const SECRET_VERBS: &[&str] = &["get", "list", "watch", "update", "patch", "create"];
/// Verbs on the Lease.
pub const LEASE_VERBS: &[&str] = &["get", "update"];
/// Verbs on the webhook configurations.
pub const WEBHOOK_VERBS: &[&str] = &["get", "list", "watch", "patch"];
