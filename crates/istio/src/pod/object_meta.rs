//! The methods of `metav1.Object`, which an `ObjectMeta` has.

/// The field that a getter returns: `GetName` returns `Name`.
pub(super) fn getter(method: &str) -> Option<&str> {
    let field = method.strip_prefix("Get")?;
    let is_field = matches!(
        field,
        "Name"
            | "GenerateName"
            | "Namespace"
            | "SelfLink"
            | "UID"
            | "ResourceVersion"
            | "Generation"
            | "CreationTimestamp"
            | "DeletionTimestamp"
            | "DeletionGracePeriodSeconds"
            | "Labels"
            | "Annotations"
            | "OwnerReferences"
            | "Finalizers"
            | "ManagedFields"
            | "ObjectMeta"
    );
    is_field.then_some(field)
}
