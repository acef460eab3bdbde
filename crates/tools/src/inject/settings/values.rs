//! Checks the values of flags, which become the values of annotations.

use std::path::Path;

use injectd_core::linkerd::{annotations::Annotation, checks::Check};
use injectd_k8s::names::is_dns_label;

type Parsed = Result<String, String>;

/// The value of the flag for an annotation, or an item of it. What the webhook warns of is refused.
pub(super) fn checked(annotation: Annotation, text: &str) -> Parsed {
    if annotation == Annotation::ProxyVersion && is_manifest(text) {
        return Err(
            "expected the tag of an image, not a file: -v is --proxy-version, as in linkerd \
                    inject; --verbose has no short form"
                .to_owned(),
        );
    }
    let Some(check) = Check::of(annotation) else { return Ok(text.to_owned()) };
    let text = if check.is_list() { text.trim() } else { text };
    expect(text, check.accepts(text) && !text.trim().is_empty(), check.expected)
}

/// Whether this is the name of a file with manifests.
fn is_manifest(text: &str) -> bool {
    let extension = Path::new(text).extension();
    extension.is_some_and(|extension| ["json", "yaml", "yml"].iter().any(|of| extension == *of))
}

fn expect(text: &str, is_valid: bool, expected: &str) -> Parsed {
    if is_valid { Ok(text.to_owned()) } else { Err(format!("expected {expected}")) }
}

pub(super) fn registry(text: &str) -> Parsed {
    expect(text, !text.trim_matches([' ', '/']).is_empty(), "a registry, such as cr.l5d.io/linkerd")
}

/// The name of a namespace: a DNS label.
pub(crate) fn namespace(text: &str) -> Parsed {
    expect(text, is_dns_label(text), "the name of a namespace: lower-case letters, digits and -")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_refuse_what_the_webhook_warns_of() {
        for (annotation, good, bad) in [
            (Annotation::AdminPort, "4191", "0"),
            (Annotation::SkipInboundPorts, " 22 ", "mysql"),
            (Annotation::OpaquePorts, "mysql", "a b"),
            (Annotation::ProxyGid, "7", ""),
            (Annotation::ProxyVersion, "edge-26.8.3", "deployment.yaml"),
            (Annotation::SkipSubnets, "10.0.0.0/8", "10.0.0.0/33"),
        ] {
            assert_eq!(checked(annotation, good).as_deref(), Ok(good.trim()));
            assert!(checked(annotation, bad).is_err(), "{bad}");
        }
        for (parse, good, bad) in [
            (registry as fn(&str) -> Parsed, "reg.example/x", "/"),
            (namespace, "shop-1", "Foo Bar"),
        ] {
            assert_eq!(parse(good).as_deref(), Ok(good));
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
