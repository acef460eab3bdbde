//! The flags that say when and how many workloads are restarted: of `restart` and of `serve --audit`.

use std::time::Duration;

use injectd_controllers::restart::{DEFAULT_MAX_RESTARTING, Mode, Policy, Window, Windows};

use crate::units::parse_duration;

/// When and how many workloads are restarted.
#[derive(Debug, Clone, clap::Args)]
pub struct PolicyArgs {
    /// Maximum number of workloads that roll out at the same time, one of each namespace
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_RESTARTING, value_parser = positive)]
    max_restarting: usize,
    /// Maintenance window, such as "Mon-Fri 22:00-04:00 Europe/Berlin"; may be repeated. The
    /// annotation injectd.dev/restart-window of a namespace replaces it [default: always]
    #[arg(long, value_name = "WINDOW")]
    window: Vec<Window>,
    /// Time after which a rollout that is not finished stops the restarts of its namespace
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    rollout_timeout: Duration,
}

impl PolicyArgs {
    /// The rules of restarts in this mode.
    #[must_use]
    pub fn policy(&self, mode: Mode) -> Policy {
        Policy {
            mode,
            windows: Windows::new(self.window.clone()),
            max_restarting: self.max_restarting,
            rollout_timeout: self.rollout_timeout,
        }
    }
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| "expected a number above zero".to_owned())
}
