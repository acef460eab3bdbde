//! Annotations by which another program writes the `caBundle` of a configuration.

use serde_json::Value;

/// Whether a value of an annotation makes its program write the `caBundle`.
type IsKept = fn(&str) -> bool;

/// The annotations, each with the program that follows it.
const ANNOTATIONS: [(&str, &str, IsKept); 5] = [
    ("cert-manager.io/inject-ca-from", CERT_MANAGER, is_name),
    ("cert-manager.io/inject-ca-from-secret", CERT_MANAGER, is_name),
    ("cert-manager.io/inject-apiserver-ca", CERT_MANAGER, is_true),
    ("service.beta.openshift.io/inject-cabundle", OPENSHIFT, is_true),
    ("service.alpha.openshift.io/inject-cabundle", OPENSHIFT, is_true),
];
const CERT_MANAGER: &str = "cert-manager's cainjector";
const OPENSHIFT: &str = "OpenShift's service CA operator";

/// An annotation that promises a `caBundle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Promise {
    pub(super) annotation: &'static str,
    /// The program that writes it.
    pub(super) program: &'static str,
}

impl Promise {
    /// That of a configuration.
    pub(super) fn of(configuration: &Value) -> Option<Self> {
        let annotations = &configuration["metadata"]["annotations"];
        let found = ANNOTATIONS.iter().find(|(annotation, _, is_kept)| {
            annotations[*annotation].as_str().is_some_and(is_kept)
        });
        found.map(|(annotation, program, _)| Self { annotation, program })
    }
}

/// `NAMESPACE/NAME`; cert-manager reports other values and writes nothing.
fn is_name(value: &str) -> bool {
    let parts = value.split_once('/');
    parts.is_some_and(|(namespace, name)| {
        !namespace.is_empty() && !name.is_empty() && !name.contains('/')
    })
}

fn is_true(value: &str) -> bool {
    value == "true"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_values_that_the_program_follows_promise_a_bundle() {
        for (annotation, value, is_promise) in [
            ("cert-manager.io/inject-ca-from", "linkerd/injector", true),
            ("cert-manager.io/inject-ca-from", "injector", false),
            ("cert-manager.io/inject-ca-from-secret", "a/b", true),
            ("cert-manager.io/inject-ca-from-secret", "a/b/c", false),
            ("cert-manager.io/inject-apiserver-ca", "true", true),
            ("cert-manager.io/inject-apiserver-ca", "false", false),
            ("service.beta.openshift.io/inject-cabundle", "true", true),
            ("service.beta.openshift.io/inject-cabundle", "yes", false),
            ("example.com/other", "true", false),
        ] {
            let found = Promise::of(&json!({"metadata": {"annotations": {annotation: value}}}));
            assert_eq!(found.is_some(), is_promise, "{annotation}: {value}");
        }
        assert_eq!(Promise::of(&json!({"metadata": {"annotations": null}})), None);
    }
}
