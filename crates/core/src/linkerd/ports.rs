//! The ports of a pod: inbound ports, opaque ports, the default list
//! (`docs/spec/linkerd/injection.md` §2.5).

use std::{collections::BTreeMap, iter};

use injectd_gocompat::number;
use smallvec::SmallVec;

use super::{
    annotations::Annotation,
    pod::{Container, ServicePort, Spec},
    release::{Delta, Release},
};
use crate::{outcome::Warnings, view::IntegerOrName};

/// The ports of `proxy.opaquePorts`, sorted for lookups.
#[derive(Debug)]
pub struct DefaultOpaquePorts(Vec<i32>);

/// The containers and port names that a release uses.
#[derive(Debug, Clone, Copy)]
pub struct PortRules {
    init_containers: bool,
    last_name_wins: bool,
}

// === impl PortRules ===

impl PortRules {
    /// The rules of a release.
    #[must_use]
    pub fn of(release: Release) -> Self {
        Self {
            init_containers: release.has(Delta::InitContainerPorts),
            last_name_wins: release.has(Delta::LastPortNameWins),
        }
    }

    /// The containers whose ports are used, init containers first.
    fn containers<'s, 'a>(self, spec: &'s Spec<'a>) -> impl Iterator<Item = &'s Container<'a>> {
        let init: &[Container<'a>] = if self.init_containers { &spec.init_containers } else { &[] };
        init.iter().chain(spec.containers.iter())
    }

    /// The ports of containers and their HTTP probes, without duplicates, sorted as text, joined by
    /// commas.
    #[must_use]
    pub fn inbound_ports(self, spec: &Spec<'_>) -> String {
        let mut ports = SmallVec::<[i32; 16]>::new();
        for container in self.containers(spec) {
            ports.extend(container.ports.iter().map(|port| port.number.0));
            ports.extend(container.probe_ports());
        }
        ports.sort_unstable();
        ports.dedup();
        // Linkerd sorts the texts: 10 comes before 9. Numbers that sort so are compared without a
        // text for each.
        let mut ports: SmallVec<[u128; 16]> = ports.into_iter().map(text_key).collect();
        ports.sort_unstable();
        let mut text = String::with_capacity(ports.len() * 6);
        for (index, key) in ports.into_iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            // Behind the digits are zero bytes, which no digit is.
            let length = size_of::<u128>() - key.trailing_zeros() as usize / 8;
            text.push_str(str::from_utf8(&key.to_be_bytes()[..length]).unwrap_or_default());
        }
        text
    }

    /// Resolves an opaque-ports override: replaces names with numbers, checks numbers and ranges.
    ///
    /// Drops invalid items with a warning. Keeps the order and repetitions.
    #[must_use]
    pub fn resolve(self, value: &str, spec: &Spec<'_>, warnings: &mut Warnings) -> String {
        let ports = self.names(spec);
        // Most items are numbers. Kubernetes does not allow port names that begin as numbers do, so
        // the lookup of a number is usually skipped.
        let has_numbers = ports.keys().any(|name| begins_as_number(name));
        let mut resolved = String::new();
        let mut number = itoa::Buffer::new();
        for item in items(value.strip_suffix(',').unwrap_or(value)) {
            let item = item.trim();
            let may_be_name = !ports.is_empty() && (has_numbers || !begins_as_number(item));
            let named = if may_be_name { ports.get(item) } else { None };
            let named = named.map(|&port| (port.into(), port.into()));
            let Some((lower, upper)) = named.or_else(|| parse_range(item)) else {
                let problem = "is not a port, a range or a port name; ignored";
                warnings.push(|| Annotation::OpaquePorts.warning(item, problem));
                continue;
            };
            if !resolved.is_empty() {
                resolved.push(',');
            }
            resolved.push_str(number.format(lower));
            if lower < upper {
                resolved.push('-');
                resolved.push_str(number.format(upper));
            }
        }
        resolved
    }

    /// The ports by name. Before 24.4.2 the first port of a name wins, and ports without a name
    /// have the empty name.
    fn names<'s>(self, spec: &'s Spec<'_>) -> BTreeMap<&'s str, i32> {
        let containers = self.containers(spec);
        let ports = containers.flat_map(|container| container.ports.iter());
        let ports = ports.map(|port| (&*port.name, port.number.0));
        let mut names = BTreeMap::default();
        if self.last_name_wins {
            names.extend(ports.filter(|(name, _)| !name.is_empty()));
        } else {
            for (name, port) in ports {
                names.entry(name).or_insert(port);
            }
        }
        names
    }
}

/// The digits of a port as a number that sorts as text.
fn text_key(port: i32) -> u128 {
    let mut key = [0; size_of::<u128>()];
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(port);
    key[..text.len()].copy_from_slice(text.as_bytes());
    u128::from_be_bytes(key)
}

/// The items between commas. `str::split` takes ten times as long for empty items, and a list may
/// have millions.
pub(super) fn items(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(list);
    iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.bytes().position(|byte| byte == b',') else { return rest.take() };
        rest = Some(&text[end + 1..]);
        Some(&text[..end])
    })
}

/// Whether a text may be a non-negative number.
fn begins_as_number(text: &str) -> bool {
    matches!(text.as_bytes().first(), Some(b'0'..=b'9' | b'+'))
}

/// `a` or `a-b` within 0..=65535 (`portrange.go`).
pub(super) fn parse_range(item: &str) -> Option<(i64, i64)> {
    let bound = |text| number::parse_int(text, 64).filter(|port| (0..=65_535).contains(port));
    if !begins_as_number(item) {
        return None;
    }
    let Some(dash) = item.bytes().position(|byte| byte == b'-') else {
        return bound(item).map(|port| (port, port));
    };
    let range = (bound(&item[..dash])?, bound(&item[dash + 1..])?);
    (range.0 <= range.1).then_some(range)
}

// === impl DefaultOpaquePorts ===

impl DefaultOpaquePorts {
    /// Splits the list at commas. Upstream compares text, so an item that is not spelled like a
    /// port number matches nothing, such as a range or a number with spaces.
    #[must_use]
    pub fn new(list: &str) -> Self {
        let spelled =
            |item: &&str| item.parse::<i32>().ok().filter(|port| port.to_string() == *item);
        let mut ports: Vec<_> = list.split(',').filter_map(|item| spelled(&item)).collect();
        ports.sort_unstable();
        Self(ports)
    }

    fn has(&self, port: i32) -> bool {
        self.0.binary_search(&port).is_ok()
    }

    /// The ports of a pod that are on the list, in the pod's order; empty without such ports.
    #[must_use]
    pub fn of_pod(&self, rules: PortRules, spec: &Spec<'_>) -> String {
        let ports: SmallVec<[i32; 8]> = rules
            .containers(spec)
            .flat_map(|container| container.ports.iter().map(|port| port.number.0))
            .filter(|&port| self.has(port))
            .collect();
        joined(&ports)
    }

    /// The ports of a service whose target port is on the list. A named target port never is.
    #[must_use]
    pub fn of_service(&self, ports: &[ServicePort<'_>]) -> String {
        let opaque: SmallVec<[i32; 8]> = ports
            .iter()
            .filter(|port| {
                let target = match port.target_port {
                    // A target port that is not set is the port itself.
                    IntegerOrName::Integer(0) => port.port.0,
                    IntegerOrName::Integer(target) => target,
                    IntegerOrName::Name(_) => 0,
                };
                self.has(target)
            })
            .map(|port| port.port.0)
            .collect();
        joined(&opaque)
    }
}

fn joined(ports: &[i32]) -> String {
    let mut text = String::with_capacity(ports.len() * 6);
    let mut number = itoa::Buffer::new();
    for (index, port) in ports.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(number.format(*port));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linkerd::pod::OtherSpec;

    fn spec(json: &str) -> Spec<'_> {
        crate::json::read(json).expect("spec")
    }

    const PORTS: &str = r#"{"initContainers":[{"ports":[{"name":"db","containerPort":3306}]}],
        "containers":[{"ports":[{"name":"http","containerPort":8080},{"containerPort":80}],
        "livenessProbe":{"httpGet":{"port":10000}}},
        {"ports":[{"name":"http","containerPort":3000},{"name":"1-2","containerPort":80}]}]}"#;

    fn resolve(value: &str, release: Release) -> (String, usize) {
        let mut warnings = Warnings::default();
        let resolved = PortRules::of(release).resolve(value, &spec(PORTS), &mut warnings);
        (resolved, warnings.total())
    }

    #[test]
    fn inbound_ports_sort_as_text() {
        let of = |release| PortRules::of(release).inbound_ports(&spec(PORTS));
        assert_eq!(of(Release::NEWEST), "10000,3000,3306,80,8080");
        assert_eq!(of(Release::edge(25, 12, 1)), "10000,3000,80,8080");
        let odd = r#"{"containers":[{"ports":[{"containerPort":-2147483648},{"containerPort":0},
            {"containerPort":2147483647},{"containerPort":-1},{}]}]}"#;
        let odd = PortRules::of(Release::NEWEST).inbound_ports(&spec(odd));
        assert_eq!(odd, "-1,-2147483648,0,2147483647");
    }

    #[test]
    fn opaque_ports_are_names_numbers_and_ranges() {
        for (value, resolved, dropped) in [
            ("http,db", "3000,3306", 0),
            ("1-2", "80", 0),
            ("+80, 22 ,8100-8102,", "80,22,8100-8102", 0),
            ("80-80,80", "80,80", 0),
            ("8102-8100,-80,65536,x,1-2-3", "", 5),
            (",,", "", 2),
            ("", "", 1),
        ] {
            assert_eq!(resolve(value, Release::NEWEST), (resolved.to_owned(), dropped), "{value}");
        }
    }

    #[test]
    fn the_first_port_of_a_name_won_before_24_4_2_also_of_the_empty_name() {
        let release = Release::stable_2_14();
        assert_eq!(resolve("http,db", release), ("8080".to_owned(), 1));
        assert_eq!(resolve(",,", release), ("80,80".to_owned(), 0));
        let unnamed = r#"{"containers":[{"ports":[{"containerPort":9090}]},
            {"ports":[{"containerPort":8080}]}]}"#;
        let mut warnings = Warnings::default();
        let resolved = PortRules::of(release).resolve(",,", &spec(unnamed), &mut warnings);
        assert_eq!((resolved.as_str(), warnings.total()), ("9090,9090", 0));
    }

    #[test]
    fn a_name_wins_over_a_number_with_the_same_text() {
        let named = r#"{"containers":[{"ports":[{"name":"80","containerPort":1}]}]}"#;
        let mut warnings = Warnings::default();
        let resolved = PortRules::of(Release::NEWEST).resolve("80,81", &spec(named), &mut warnings);
        assert_eq!(resolved, "1,81");
    }

    #[test]
    fn the_warning_names_the_invalid_item() {
        let mut warnings = Warnings::default();
        let rules = PortRules::of(Release::NEWEST);
        assert_eq!(rules.resolve("80,x", &spec(PORTS), &mut warnings), "80");
        let expected = "config.linkerd.io/opaque-ports: \"x\" is not a port, a range or a port name; \
                        ignored";
        assert_eq!(warnings.lines().collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn a_million_invalid_items_leave_ten_warnings() {
        let mut warnings = Warnings::default();
        let value = "x,".repeat(1_000_000);
        let rules = PortRules::of(Release::NEWEST);
        assert_eq!(rules.resolve(&value, &spec(PORTS), &mut warnings), "");
        assert_eq!((warnings.total(), warnings.kept().len()), (1_000_000, 10));
    }

    #[test]
    fn the_default_list_matches_text() {
        let defaults = DefaultOpaquePorts::new("80, 3000,+8080,3306,1-9999");
        assert_eq!(defaults.of_pod(PortRules::of(Release::NEWEST), &spec(PORTS)), "3306,80,80");
    }

    #[test]
    fn a_services_port_is_opaque_if_its_target_is() {
        let service: OtherSpec<'_> = crate::json::read(
            r#"{"ports":[{"port":3306},{"port":90,"targetPort":25},{"port":25,"targetPort":90},
            {"port":25,"targetPort":"smtp"}]}"#,
        )
        .expect("spec");
        assert_eq!(DefaultOpaquePorts::new("25,3306").of_service(&service.ports), "3306,90");
    }
}
