//! Names as Kubernetes validates them (`k8s.io/apimachinery/pkg/util/validation`).

/// Lengths in bytes.
pub(crate) const MAX_LABEL: usize = 63;
const MAX_SUBDOMAIN: usize = 253;

/// A part of a DNS name of any length, such as `my-name`.
pub(crate) fn is_dns_part(text: &str) -> bool {
    is_bounded(text, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), |byte| byte == b'-')
}

/// `IsDNS1123Subdomain`: such as `my.example.com`.
pub(crate) fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= MAX_SUBDOMAIN && text.split('.').all(is_dns_part)
}

/// `IsDNS1035Label`: a DNS label that begins with a letter, such as `v1`.
pub(crate) fn is_version(text: &str) -> bool {
    is_dns_part(text)
        && text.len() <= MAX_LABEL
        && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// `IsQualifiedName`: a name, with a DNS subdomain and a slash before it or not.
pub(crate) fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(is_dns_subdomain) && !name.is_empty() && is_label_value(name)
}

/// `IsValidLabelValue`.
pub(crate) fn is_label_value(text: &str) -> bool {
    let is_inner = |byte: u8| matches!(byte, b'-' | b'_' | b'.');
    text.is_empty()
        || (text.len() <= MAX_LABEL
            && is_bounded(text, |byte| byte.is_ascii_alphanumeric(), is_inner))
}

/// Whether a text has outer bytes only, but for inner ones between the first and the last.
fn is_bounded(text: &str, is_outer: impl Fn(u8) -> bool, is_inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.into_iter().all(|end| end.is_some_and(|&byte| is_outer(byte)))
        && bytes.iter().all(|&byte| is_outer(byte) || is_inner(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kubernetes() {
        let long = "a".repeat(64);
        for (check, good, bad) in [
            (
                is_dns_subdomain as fn(&str) -> bool,
                &["a", "a-b.c0", &long][..],
                &["", "-a", "a.", "A"][..],
            ),
            (is_version, &["v1", "a-1"], &["1", "", "V1", &long]),
            (is_qualified_name, &["a", "A_b.c", "a.b/C"], &["", "/a", "a/", "a/b/c", "A/b", "-a"]),
            (is_label_value, &["", "a", "A.b_c-d"], &["-a", "a/b", &long]),
        ] {
            assert!(good.iter().all(|name| check(name)), "{good:?}");
            assert!(!bad.iter().any(|name| check(name)), "{bad:?}");
        }
    }
}
