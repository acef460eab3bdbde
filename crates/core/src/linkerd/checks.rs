//! What the values of annotations must be, for those who read them after the injector: the proxy,
//! linkerd-init, the API server and the kubelet.
//!
//! Linkerd's injector takes most values as they are. So does injectd, and warns of a value that has
//! no effect or an effect that is not wanted. The flags of `injectd inject` refuse the same values.
//! What the injector itself ignores is in [`super::settings::effects`].

use injectd_gocompat::{duration, number, quantity};

use super::{annotations::Annotation, ports};
use crate::outcome::Warnings;

/// What the value of an annotation must be.
#[derive(Debug)]
pub struct Check {
    shape: Shape,
    is_valid: fn(&str) -> bool,
    /// What is expected, with an article.
    pub expected: &'static str,
    /// What happens with another value.
    otherwise: &'static str,
}

/// Whether a value is a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    /// Items between commas; empty ones have no effect.
    List,
    /// The same, but an empty item is an error for those who read it.
    StrictList,
}

/// The greatest ID of a user or group that an API server accepts (`validation.IsValidUserID`).
const MAX_ID: i64 = i32::MAX as i64;

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

const REFUSED: &str = "the API server refuses the pod";
const NO_START: &str = "the proxy does not start";

const PORT: Check = one(is_port, "a port from 1 to 65535", "the pod cannot run");
const USER: Check = one(|text| is_id(text, 0), "a user ID from 0 to 2147483647", REFUSED);
// Without a group, the setting is -1.
const GROUP: Check = one(|text| is_id(text, -1), "a group ID from 0 to 2147483647", REFUSED);
const QUANTITY: Check = one(is_amount, "a quantity, such as 100m or 64Mi", REFUSED);
const DURATION: Check = one(is_duration, "a duration, such as 30s or 1h", NO_START);
const IMAGE: Check = one(is_word, "a text without blanks", "the image cannot be pulled");
// Blanks become null.
const PULL_POLICY: Check = one(
    |text| text.trim().is_empty() || PULL_POLICIES.contains(&text),
    "one of Always, IfNotPresent, Never",
    REFUSED,
);
/// linkerd-init logs what it cannot parse, and goes on (`proxy-init`, `ports.ParsePortRange`).
const SKIPPED_PORTS: Check = Check {
    shape: Shape::List,
    is_valid: |item| ports::parse_range(item).is_some(),
    expected: "a port or a range of ports, such as 22 or 8100-8102",
    otherwise: "linkerd-init leaves it out",
};
/// The proxy allows blanks, and stops at what it cannot parse (`linkerd2-proxy`,
/// `parse_port_range_set`). Some releases of it only print a warning that the list is not supported.
const PROXY_PORTS: Check = Check {
    is_valid: is_proxy_range,
    otherwise: "a proxy that reads the list does not start",
    ..SKIPPED_PORTS
};

/// Every annotation whose value is checked.
const TABLE: &[(Annotation, Check)] = &[
    (
        Annotation::AccessLog,
        one(
            |text| ACCESS_LOGS.contains(&text),
            "one of apache, json",
            "the proxy writes no access log",
        ),
    ),
    (Annotation::AdminPort, PORT),
    (Annotation::CloseWaitTimeout, Check { otherwise: "linkerd-init fails", ..DURATION }),
    (Annotation::ControlPort, PORT),
    (Annotation::CpuLimit, QUANTITY),
    (Annotation::CpuRequest, QUANTITY),
    (Annotation::DebugImage, IMAGE),
    (Annotation::DebugImagePullPolicy, PULL_POLICY),
    (Annotation::DebugImageVersion, IMAGE),
    (
        Annotation::DefaultInboundPolicy,
        one(
            |text| POLICIES.contains(&text),
            "one of all-unauthenticated, all-authenticated, cluster-unauthenticated, \
             cluster-authenticated, audit, deny",
            NO_START,
        ),
    ),
    (Annotation::ImagePullPolicy, PULL_POLICY),
    (Annotation::InboundConnectTimeout, DURATION),
    (Annotation::InboundDiscoveryTimeout, DURATION),
    (Annotation::InboundPort, PORT),
    (Annotation::InitImage, IMAGE),
    (Annotation::InitImageVersion, IMAGE),
    (
        Annotation::LogFormat,
        // The proxy compares in upper case.
        one(
            |text| LOG_FORMATS.iter().any(|format| format.eq_ignore_ascii_case(text)),
            "one of plain, json",
            "the proxy logs as plain text",
        ),
    ),
    (
        Annotation::LogLevel,
        one(
            |text| !text.trim().is_empty(),
            "a list of levels, such as warn,linkerd=info",
            "the proxy does not log as wished",
        ),
    ),
    (Annotation::MemoryLimit, QUANTITY),
    (Annotation::MemoryRequest, QUANTITY),
    (
        Annotation::OpaquePorts,
        // The webhook resolves names and checks the numbers itself (`ports.rs`).
        Check {
            is_valid: |item| is_port_name(item) || ports::parse_range(item).is_some(),
            expected: "a port, a range or the name of a port, such as 3306 or mysql",
            ..SKIPPED_PORTS
        },
    ),
    (Annotation::OutboundConnectTimeout, DURATION),
    (Annotation::OutboundDiscoveryTimeout, DURATION),
    (Annotation::OutboundPort, PORT),
    (Annotation::PodInboundPorts, PROXY_PORTS),
    (Annotation::ProxyGid, GROUP),
    (Annotation::ProxyImage, IMAGE),
    (Annotation::ProxyUid, USER),
    (Annotation::ProxyVersion, IMAGE),
    (Annotation::RequireIdentity, PROXY_PORTS),
    (Annotation::ShutdownGracePeriod, DURATION),
    (Annotation::SkipInboundPorts, SKIPPED_PORTS),
    (Annotation::SkipOutboundPorts, SKIPPED_PORTS),
    (
        Annotation::SkipSubnets,
        Check {
            shape: Shape::StrictList,
            is_valid: |item| is_subnet(item.trim()),
            expected: "a subnet in CIDR notation, such as 10.0.0.0/8",
            otherwise: "linkerd-init fails",
        },
    ),
    (
        Annotation::WaitBeforeExitSeconds,
        one(
            |text| number::parse_uint(text).is_some(),
            "a number of seconds",
            "the pod cannot stop as wished",
        ),
    ),
];

const fn one(is_valid: fn(&str) -> bool, expected: &'static str, otherwise: &'static str) -> Check {
    Check { shape: Shape::One, is_valid, expected, otherwise }
}

impl Check {
    /// The check of an annotation; `None` if every value is possible, or the injector checks it.
    #[must_use]
    pub fn of(annotation: Annotation) -> Option<&'static Self> {
        TABLE.iter().find(|(checked, _)| *checked == annotation).map(|(_, check)| check)
    }

    /// Whether the value is a list with commas.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.shape != Shape::One
    }

    /// Whether a value, or an item of a list, is as expected.
    #[must_use]
    pub fn accepts(&self, item: &str) -> bool {
        (self.is_valid)(item)
    }

    /// The items that are not as expected. An empty value is that of the configuration.
    fn problems<'v>(&self, value: &'v str) -> impl Iterator<Item = &'v str> {
        let whole = (self.shape == Shape::One).then_some(value);
        let items = (self.shape != Shape::One).then(|| ports::items(value));
        let skips_empty = self.shape != Shape::StrictList || value.is_empty();
        whole
            .into_iter()
            .chain(items.into_iter().flatten())
            .filter(move |item| !(item.is_empty() && skips_empty || self.accepts(item)))
    }
}

/// Warns of a value that the injector takes although it is not as expected.
pub(super) fn warn(annotation: Annotation, value: &str, warnings: &mut Warnings) {
    let Some(check) = Check::of(annotation) else { return };
    for item in check.problems(value) {
        warnings.push(|| {
            let problem = format!("is not {}; {}", check.expected, check.otherwise);
            annotation.warning(item, &problem)
        });
    }
}

fn is_port(text: &str) -> bool {
    number::parse_int(text, 32).is_some_and(|port| (1..=65_535).contains(&port))
}

fn is_id(text: &str, least: i64) -> bool {
    number::parse_int(text, 64).is_some_and(|id| (least..=MAX_ID).contains(&id))
}

fn is_amount(text: &str) -> bool {
    quantity::parse(text).is_some_and(|quantity| quantity.approximate() >= 0.0)
}

fn is_duration(text: &str) -> bool {
    duration::parse(text).is_some_and(|nanos| nanos >= 0)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

fn is_proxy_range(item: &str) -> bool {
    let bound = |text: &str| text.trim().parse::<u16>().ok();
    match item.split_once('-') {
        _ if item.trim().is_empty() => true,
        None => bound(item).is_some(),
        Some((from, to)) => bound(from).zip(bound(to)).is_some_and(|(from, to)| from <= to),
    }
}

fn is_port_name(item: &str) -> bool {
    item.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && item.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// As Go's `net.ParseCIDR` reads it.
fn is_subnet(item: &str) -> bool {
    item.split_once('/').is_some_and(|(address, bits)| {
        let most = match address.parse() {
            Ok(std::net::IpAddr::V4(_)) => 32,
            Ok(std::net::IpAddr::V6(_)) => 128,
            Err(_) => return false,
        };
        bits.bytes().all(|byte| byte.is_ascii_digit())
            && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(annotation: Annotation, value: &str) -> Vec<String> {
        let mut warnings = Warnings::default();
        warn(annotation, value, &mut warnings);
        warnings.lines().collect()
    }

    #[test]
    fn each_item_of_a_list_that_has_no_effect_is_named() {
        let found = warned(Annotation::SkipOutboundPorts, "443,[4222],1-2,2-1, 80,https,");
        let begin = "config.linkerd.io/skip-outbound-ports: ";
        let end = " is not a port or a range of ports, such as 22 or 8100-8102; linkerd-init leaves \
                   it out";
        let expected =
            ["[4222]", "2-1", " 80", "https"].map(|port| format!("{begin}\"{port}\"{end}"));
        assert_eq!(found, expected);
        // The proxy trims; Go does not.
        assert_eq!(warned(Annotation::RequireIdentity, "443, 80 , 1 - 2,"), [""; 0]);
        assert_eq!(warned(Annotation::RequireIdentity, "https").len(), 1);
        assert_eq!(warned(Annotation::SkipSubnets, "10.0.0.0/8, fd00::/8"), [""; 0]);
        assert_eq!(warned(Annotation::SkipSubnets, "10.0.0.0/8,").len(), 1);
    }

    #[test]
    fn values_that_no_reader_takes_are_warned_of_and_empty_ones_are_not() {
        for (annotation, good, bad) in [
            (Annotation::AccessLog, "apache", "nginx"),
            (Annotation::AdminPort, "4191", "0"),
            (Annotation::CloseWaitTimeout, "30s", "-1s"),
            (Annotation::CpuRequest, "100m", "-1"),
            (Annotation::DebugImagePullPolicy, "Never", "never"),
            (Annotation::ImagePullPolicy, "Always", "always"),
            (Annotation::LogFormat, "JSON", "xml"),
            (Annotation::LogLevel, "warn", " "),
            (Annotation::OpaquePorts, "mysql", "a b"),
            (Annotation::ProxyGid, "-1", "-2"),
            (Annotation::ProxyImage, "cr.l5d.io/linkerd/proxy", "a b"),
            (Annotation::ProxyUid, "0", "2147483648"),
            (Annotation::ProxyVersion, "v1", " "),
            (Annotation::ShutdownGracePeriod, "1h30m", "-1ms"),
            (Annotation::SkipInboundPorts, "8100-8102", "9-8"),
            (Annotation::SkipSubnets, "fd00::/8", "10.0.0.0"),
            (Annotation::WaitBeforeExitSeconds, "7", "-7"),
        ] {
            assert_eq!(warned(annotation, good), [""; 0], "{good}");
            assert_eq!(warned(annotation, bad).len(), 1, "{bad}");
            assert_eq!(warned(annotation, ""), [""; 0], "{annotation:?}");
        }
    }

    #[test]
    fn a_million_invalid_items_leave_ten_warnings() {
        let mut warnings = Warnings::default();
        warn(Annotation::SkipInboundPorts, &"x,".repeat(1_000_000), &mut warnings);
        assert_eq!((warnings.total(), warnings.kept().len()), (1_000_000, 10));
    }
}
