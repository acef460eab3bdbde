//! Which ports the agent may scrape (1.31 and later).

use injectd_gocompat::number::parse_int;

use super::{
    super::{PortError, ProcessError},
    Target,
};

/// Ports of Istio's own, and their use in the words of the denial.
const RESERVED: [(i64, &str); 9] = [
    (15000, "Envoy admin"),
    (15001, "outbound traffic capture"),
    (15004, "pilot debug"),
    (15006, "inbound traffic capture"),
    (15008, "HBONE tunnel"),
    (15020, "pilot-agent status / merged Prometheus"),
    (15021, "Envoy health"),
    (15053, "DNS proxy"),
    (15090, "Envoy Prometheus (already merged)"),
];

/// Checks the targets or, without targets, the port.
pub(super) fn check(
    port: &str,
    targets: &[Target<'_>],
    status_port: i32,
) -> Result<(), ProcessError> {
    if targets.is_empty() && !port.is_empty() {
        return check_port(port, status_port).map_err(ProcessError::ScrapePort);
    }
    let mut checks = targets.iter().map(|target| check_port(target.port, status_port));
    checks.try_for_each(|check| check.map_err(ProcessError::ScrapeTargets))
}

fn check_port(text: &str, status_port: i32) -> Result<(), PortError> {
    let port = parse_int(text, 64).filter(|port| (1..=65535).contains(port));
    let port = port.ok_or_else(|| PortError::Invalid(text.to_owned()))?;
    if port == i64::from(status_port) {
        return Err(PortError::AgentPort(text.to_owned()));
    }
    match RESERVED.iter().find(|(reserved, _)| *reserved == port) {
        Some((_, usage)) => Err(PortError::Reserved(text.to_owned(), usage)),
        None => Ok(()),
    }
}
