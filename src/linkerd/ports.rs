//! The ports of a pod: inbound ports, opaque ports, the default list (`linkerd.md` §2.5).

use std::borrow::Cow;

use smallvec::SmallVec;

use super::{
    annotations::Annotation,
    release::{Delta, Release},
    settings,
};
use crate::{
    go::number,
    outcome::Warning,
    pod::{Container, IntegerOrName, ServicePort, Spec},
};

/// `proxy.opaquePorts`, prepared for matching against the ports of pods.
#[derive(Debug)]
pub struct DefaultOpaquePorts(Vec<i32>);

/// Which containers and names of ports count, by release.
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

    /// The containers whose ports count, init containers first.
    fn containers<'s, 'a>(self, spec: &'s Spec<'a>) -> impl Iterator<Item = &'s Container<'a>> {
        let init: &[Container<'a>] = if self.init_containers { &spec.init_containers } else { &[] };
        init.iter().chain(spec.containers.iter())
    }

    /// Every port of containers and their HTTP probes, sorted as text, each once, joined by commas.
    #[must_use]
    pub fn inbound_ports(self, spec: &Spec<'_>) -> String {
        let mut ports = SmallVec::<[i32; 16]>::new();
        for container in self.containers(spec) {
            ports.extend(container.ports.iter().map(|port| port.number.0));
            ports.extend(container.probe_ports());
        }
        let (mut left, mut right) = (itoa::Buffer::new(), itoa::Buffer::new());
        ports.sort_unstable_by(|&a, &b| left.format(a).cmp(right.format(b)));
        ports.dedup();
        joined(&ports)
    }

    /// Resolves an opaque-ports override: names to numbers, numbers and ranges checked.
    ///
    /// Items that are neither are dropped with a warning. Order and repetitions stay.
    #[must_use]
    pub fn resolve(self, value: &str, spec: &Spec<'_>, warnings: &mut Vec<Warning>) -> String {
        let mut resolved = String::new();
        for item in value.strip_suffix(',').unwrap_or(value).split(',') {
            let item = item.trim();
            let Some(port) = self.named(item, spec).map(range_of).or_else(|| parse_range(item))
            else {
                let problem = "is no port, range or port name; it is left out";
                warnings.push(settings::warning(Annotation::OpaquePorts, item, problem));
                continue;
            };
            if !resolved.is_empty() {
                resolved.push(',');
            }
            resolved.push_str(&port);
        }
        resolved
    }

    /// The port of a name. Before 24.4.2 the first of a name counts, and ports without a name share
    /// the empty one, of which the last counts.
    fn named(self, name: &str, spec: &Spec<'_>) -> Option<i32> {
        let mut named = self
            .containers(spec)
            .flat_map(|container| container.ports.iter())
            .filter(|port| &*port.name == name)
            .map(|port| port.number.0);
        match (self.last_name_wins, name.is_empty()) {
            (true, true) => None,
            (true, false) | (false, true) => named.last(),
            (false, false) => named.next(),
        }
    }
}

fn range_of(port: i32) -> Cow<'static, str> {
    Cow::Owned(port.to_string())
}

/// `a` or `a-b` within 0..=65535 (`portrange.go`), written canonically.
fn parse_range(item: &str) -> Option<Cow<'static, str>> {
    let bound = |text| number::parse_int(text, 64).filter(|port| (0..=65_535).contains(port));
    let (lower, upper) = item.split_once('-').unwrap_or((item, item));
    let (lower, upper) = (bound(lower)?, bound(upper)?);
    match lower.cmp(&upper) {
        std::cmp::Ordering::Less => Some(Cow::Owned(format!("{lower}-{upper}"))),
        std::cmp::Ordering::Equal => Some(Cow::Owned(lower.to_string())),
        std::cmp::Ordering::Greater => None,
    }
}

// === impl DefaultOpaquePorts ===

impl DefaultOpaquePorts {
    /// Splits the list at commas. Upstream compares text: an item that is not spelled as a port
    /// number is, such as a range or one with spaces, matches nothing.
    #[must_use]
    pub fn new(list: &str) -> Self {
        let spelled =
            |item: &&str| item.parse::<i32>().ok().filter(|port| port.to_string() == *item);
        Self(list.split(',').filter_map(|item| spelled(&item)).collect())
    }

    /// The ports of a pod that are on the list, in their order; empty when there is none.
    #[must_use]
    pub fn of_pod(&self, rules: PortRules, spec: &Spec<'_>) -> String {
        let ports: SmallVec<[i32; 8]> = rules
            .containers(spec)
            .flat_map(|container| container.ports.iter().map(|port| port.number.0))
            .filter(|port| self.0.contains(port))
            .collect();
        joined(&ports)
    }

    /// The ports of a service whose target is on the list. A target given by name never is.
    #[must_use]
    pub fn of_service(&self, ports: &[ServicePort<'_>]) -> String {
        let opaque: SmallVec<[i32; 8]> = ports
            .iter()
            .filter(|port| {
                let target = match port.target_port {
                    IntegerOrName::Integer(0) => port.port.0,
                    IntegerOrName::Integer(target) => target,
                    IntegerOrName::Name(_) => 0,
                };
                self.0.contains(&target)
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

    fn spec(json: &str) -> Spec<'_> {
        crate::json::read(json).expect("spec")
    }

    const PORTS: &str = r#"{"initContainers":[{"ports":[{"name":"db","containerPort":3306}]}],
        "containers":[{"ports":[{"name":"http","containerPort":8080},{"containerPort":80}],
        "livenessProbe":{"httpGet":{"port":10000}}},
        {"ports":[{"name":"http","containerPort":3000},{"name":"1-2","containerPort":80}]}]}"#;

    fn resolve(value: &str, release: Release) -> (String, usize) {
        let mut warnings = Vec::new();
        let resolved = PortRules::of(release).resolve(value, &spec(PORTS), &mut warnings);
        (resolved, warnings.len())
    }

    #[test]
    fn inbound_ports_sort_as_text() {
        let of = |release| PortRules::of(release).inbound_ports(&spec(PORTS));
        assert_eq!(of(Release::NEWEST), "10000,3000,3306,80,8080");
        assert_eq!(of(Release::edge(25, 12, 1)), "10000,3000,80,8080");
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
    fn names_resolved_otherwise_before_24_4_2() {
        assert_eq!(resolve("http,db", Release::stable_2_14()), ("8080".to_owned(), 1));
        assert_eq!(resolve(",,", Release::stable_2_14()), ("80,80".to_owned(), 0));
    }

    #[test]
    fn the_default_list_matches_text() {
        let defaults = DefaultOpaquePorts::new("80, 3000,+8080,3306,1-9999");
        assert_eq!(defaults.of_pod(PortRules::of(Release::NEWEST), &spec(PORTS)), "3306,80,80");
    }

    #[test]
    fn a_services_port_is_opaque_if_its_target_is() {
        let service = spec(
            r#"{"ports":[{"port":3306},{"port":90,"targetPort":25},{"port":25,"targetPort":90},
            {"port":25,"targetPort":"smtp"}]}"#,
        );
        assert_eq!(DefaultOpaquePorts::new("25,3306").of_service(&service.ports), "3306,90");
    }
}
