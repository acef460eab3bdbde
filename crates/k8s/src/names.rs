//! Names as Kubernetes validates them (`k8s.io/apimachinery/pkg/util/validation`).

/// Maximum length of a DNS label, of a label's value, and of the name in a label's key, in bytes.
pub const MAX_LABEL_BYTES: usize = 63;
/// Maximum length of a DNS subdomain, in bytes: that of most names of objects.
pub const MAX_SUBDOMAIN_BYTES: usize = 253;

/// A part of a DNS name of any length, such as `my-name`.
fn is_dns_part(text: &str) -> bool {
    is_bounded(text, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), |byte| byte == b'-')
}

/// `IsDNS1123Label`: such as `my-name`.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= MAX_LABEL_BYTES && is_dns_part(text)
}

/// `IsDNS1123Subdomain`: such as `my.example.com`. Names of most objects are one.
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= MAX_SUBDOMAIN_BYTES && text.split('.').all(is_dns_part)
}

/// `IsDNS1035Label`: a DNS label that begins with a letter, such as `v1`.
#[must_use]
pub fn is_dns1035_label(text: &str) -> bool {
    is_dns_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// `IsQualifiedName`: a name, with a DNS subdomain and a slash before it or not.
#[must_use]
pub fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(is_dns_subdomain) && !name.is_empty() && is_label_value(name)
}

/// `IsValidLabelValue`.
#[must_use]
pub fn is_label_value(text: &str) -> bool {
    let is_inner = |byte: u8| matches!(byte, b'-' | b'_' | b'.');
    text.is_empty()
        || (text.len() <= MAX_LABEL_BYTES
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
        let [long, longer, longest] = [64, 253, 254].map(|length| "a".repeat(length));
        for (check, good, bad) in [
            (
                is_dns_subdomain as fn(&str) -> bool,
                &["a", "a-b.c0", "10.0.0.1", &long, &longer][..],
                // These names must not become a part of a path.
                &[
                    "", "-a", "a-", "a.", "a..b", "..", "a/b", "a?b", "a%2fb", "A", "a b", "ä",
                    &longest,
                ][..],
            ),
            (is_dns_label, &["a", "web-5f4", "0"], &["", "a-", "a.b", &long]),
            (is_dns1035_label, &["v1", "a-1"], &["1", "", "V1", &long]),
            (is_qualified_name, &["a", "A_b.c", "a.b/C"], &["", "/a", "a/", "a/b/c", "A/b", "-a"]),
            (is_label_value, &["", "a", "A.b_c-d"], &["-a", "a/b", &long]),
        ] {
            assert!(good.iter().all(|name| check(name)), "{good:?}");
            assert!(!bad.iter().any(|name| check(name)), "{bad:?}");
        }
    }
}
