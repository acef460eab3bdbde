//! What the environment says of the pod that the process runs in.

/// The name of the pod, or one that no other process has.
#[expect(clippy::disallowed_methods, reason = "this is configuration")]
pub(super) fn identity() -> String {
    let pod = ["POD_NAME", "HOSTNAME"].iter().find_map(|name| std::env::var(name).ok());
    let pod = pod.filter(|name| !name.is_empty()).unwrap_or_else(|| "injectd".to_owned());
    // Two holders would share the name of the pod alone: a container that was restarted, or a
    // second process in the pod, would take a Lease of the other for its own.
    format!("{pod}_{}", std::process::id())
}

/// The name of the pod if it is known, else the identity of the process.
#[expect(clippy::disallowed_methods, reason = "this is configuration")]
pub(super) fn replica() -> String {
    // Without the process here: a container that was restarted goes on with the Lease of its pod,
    // which is removed with the pod.
    std::env::var("POD_NAME").ok().filter(|name| !name.is_empty()).unwrap_or_else(identity)
}

/// The uid of the pod, if it is known with its name.
#[expect(clippy::disallowed_methods, reason = "this is configuration")]
pub(super) fn object_uid() -> Option<String> {
    let [name, uid] = ["POD_NAME", "POD_UID"].map(|name| std::env::var(name).ok());
    name.filter(|name| !name.is_empty())?;
    uid.filter(|uid| !uid.is_empty())
}

/// The namespace of the pod, if it is known.
#[expect(clippy::disallowed_methods, reason = "this is configuration")]
pub(super) fn namespace() -> Option<String> {
    std::env::var("POD_NAMESPACE").ok().filter(|own| !own.is_empty())
}
