//! Divides the file descriptors of the process, so that no server waits for one that another holds.
//!
//! Without it, idle connections to the webhook could leave none for probes.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::debug;

/// For standard streams, listeners, runtimes, signals and files that are read again: 18 to 24 are in
/// use.
const OWN: u64 = 32;
/// For connections to the admin server and to the API server, half for each: a quarter of all
/// descriptors, between these bounds. The upper one is twice [`MAX_ADMIN_CONNECTIONS`].
const MIN_SHARED: u64 = 16;
const MAX_SHARED: u64 = 2 * MAX_ADMIN_CONNECTIONS as u64;
/// Maximum concurrent connections to the admin server: from a kubelet, a few Prometheus servers, a
/// person.
pub const MAX_ADMIN_CONNECTIONS: usize = 256;

/// The limit of open file descriptors; without a limit, the greatest number.
#[derive(Debug, Clone, Copy)]
pub struct Descriptors(u64);

impl Descriptors {
    /// Raises the soft limit to the hard limit, as Go does.
    #[must_use]
    pub fn raise() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        // Not an error: the limits of connections are made to fit whatever number there is.
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            debug!(%error, "cannot raise the limit of open file descriptors");
        }
        Self(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
    }

    /// The number of descriptors that the process may open.
    #[must_use]
    pub fn limit(self) -> u64 {
        self.0
    }

    /// Maximum concurrent connections to the admin server.
    #[must_use]
    pub fn admin_connections(self) -> usize {
        usize::try_from(self.shared() / 2).unwrap_or(MAX_ADMIN_CONNECTIONS)
    }

    /// The greatest `--max-connections` that each of `servers` can have, up to `asked`. A server also
    /// answers a quarter more with 503, and closes one at a time; 0 if there are too few descriptors.
    #[must_use]
    pub fn connections(self, servers: u64, asked: u32) -> u32 {
        let share = self.0.saturating_sub(OWN + self.shared()) / servers;
        // Four fifths, without a product that overflows: one fifth is for connections over the
        // limit.
        let most = share.saturating_sub(1) / 5 * 4 + share.saturating_sub(1) % 5 * 4 / 5;
        u32::try_from(most).unwrap_or(u32::MAX).min(asked)
    }

    /// A limit that is enough for `asked` connections to each of `servers`.
    #[must_use]
    pub fn enough(servers: u64, asked: u32) -> u64 {
        let asked = u64::from(asked);
        OWN + MAX_SHARED + servers * (asked + asked.div_ceil(4) + 1)
    }

    fn shared(self) -> u64 {
        (self.0 / 4).clamp(MIN_SHARED, MAX_SHARED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_reserve_fit_into_the_limit() {
        for limit in (0..5_000).chain([20_000, 1 << 20, u64::MAX]) {
            let descriptors = Descriptors(limit);
            for servers in [1, 2] {
                let most = descriptors.connections(servers, 2_000);
                let taken = servers * (u64::from(most) + u64::from(most.div_ceil(4)) + 1);
                let admin = 2 * descriptors.admin_connections() as u64;
                assert!(most == 0 || OWN + admin + taken <= limit, "{limit}, {servers}: {most}");
                if limit >= Descriptors::enough(servers, 2_000) {
                    assert_eq!(most, 2_000);
                }
            }
        }
        assert_eq!(Descriptors(64).connections(1, 2_000), 12);
        assert_eq!(Descriptors(64).connections(2, 2_000), 5);
        assert_eq!(Descriptors(40).connections(1, 2_000), 0);
    }
}
