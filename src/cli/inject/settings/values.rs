//! Checks the values of flags, which become the values of annotations.

use crate::outcome::MAX_LABEL_BYTES;
use injectd_gocompat::{duration as go_duration, quantity as go_quantity};

const POLICIES: [&str; 6] = [
    "all-unauthenticated",
    "all-authenticated",
    "cluster-unauthenticated",
    "cluster-authenticated",
    "audit",
    "deny",
];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const ACCESS_LOGS: [&str; 2] = ["apache", "json"];
const LOG_FORMATS: [&str; 2] = ["plain", "json"];

type Parsed = Result<String, String>;

fn checked(text: &str, is_valid: bool, expected: &str) -> Parsed {
    if is_valid { Ok(text.to_owned()) } else { Err(format!("expected {expected}")) }
}

pub(super) fn any(text: &str) -> Parsed {
    checked(text, !text.trim().is_empty(), "a text that is not empty")
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|port| port > 0)
}

fn is_range(text: &str) -> bool {
    match text.split_once('-') {
        None => is_port(text),
        Some((from, to)) => {
            let (from, to) = (from.trim(), to.trim());
            is_port(from) && is_port(to) && from.parse::<u16>().ok() <= to.parse::<u16>().ok()
        }
    }
}

pub(super) fn port(text: &str) -> Parsed {
    checked(text, is_port(text), "a port from 1 to 65535")
}

pub(super) fn ports(text: &str) -> Parsed {
    let text = text.trim();
    checked(text, is_range(text), "ports and ranges of ports, such as 22,8100-8102")
}

pub(super) fn ports_or_names(text: &str) -> Parsed {
    let text = text.trim();
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && text.bytes().any(|byte| byte.is_ascii_alphabetic());
    checked(text, is_name || is_range(text), "ports, ranges and names of ports, such as 3306,mysql")
}

pub(super) fn subnet(text: &str) -> Parsed {
    let text = text.trim();
    let is_subnet = text.split_once('/').is_some_and(|(address, bits)| {
        let most = match address.parse() {
            Ok(std::net::IpAddr::V4(_)) => 32,
            Ok(std::net::IpAddr::V6(_)) => 128,
            Err(_) => return false,
        };
        bits.parse::<u8>().is_ok_and(|bits| bits <= most)
    });
    checked(text, is_subnet, "subnets in CIDR notation, such as 10.0.0.0/8")
}

pub(super) fn registry(text: &str) -> Parsed {
    checked(
        text,
        !text.trim_matches([' ', '/']).is_empty(),
        "a registry, such as cr.l5d.io/linkerd",
    )
}

/// The name of a namespace: a DNS label.
pub(in crate::cli) fn namespace(text: &str) -> Parsed {
    let is_valid = !text.is_empty()
        && text.len() <= MAX_LABEL_BYTES
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        && !text.starts_with('-')
        && !text.ends_with('-');
    checked(text, is_valid, "the name of a namespace: lower-case letters, digits and -")
}

pub(super) fn number(text: &str) -> Parsed {
    checked(text, text.parse::<u32>().is_ok(), "a number from 0 to 4294967295")
}

pub(super) fn quantity(text: &str) -> Parsed {
    checked(text, go_quantity::parse(text).is_some(), "a quantity, such as 100m or 64Mi")
}

pub(super) fn duration(text: &str) -> Parsed {
    let is_valid = go_duration::parse(text).is_some_and(|nanos| nanos >= 0);
    checked(text, is_valid, "a duration, such as 30s or 1h")
}

fn one_of(text: &str, names: &[&str]) -> Parsed {
    checked(text, names.contains(&text), &format!("one of {}", names.join(", ")))
}

pub(super) fn policy(text: &str) -> Parsed {
    one_of(text, &POLICIES)
}

pub(super) fn pull_policy(text: &str) -> Parsed {
    one_of(text, &PULL_POLICIES)
}

pub(super) fn log_format(text: &str) -> Parsed {
    one_of(text, &LOG_FORMATS)
}

pub(super) fn access_log(text: &str) -> Parsed {
    one_of(text, &ACCESS_LOGS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_linkerd_would_ignore_are_rejected() {
        for (parse, good, bad) in [
            (port as fn(&str) -> Parsed, "4191", "0"),
            (ports, "8100-8102", "9-8"),
            (ports, "22", "mysql"),
            (ports_or_names, "mysql", "a b"),
            (subnet, "10.0.0.0/8", "10.0.0.0/33"),
            (subnet, "fd00::/8", "10.0.0.0"),
            (number, "0", "-1"),
            (quantity, "64Mi", "64mb"),
            (duration, "1h30m", "1"),
            (policy, "deny", "none"),
            (pull_policy, "Always", "always"),
            (access_log, "apache", "nginx"),
            (log_format, "json", "xml"),
            (registry, "reg.example/x", "/"),
            (namespace, "shop-1", "Foo Bar"),
            (any, "x", " "),
        ] {
            assert_eq!(parse(good).as_deref(), Ok(good));
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
