//! What is decided about a workload, and why it waits.

use std::fmt;

use jiff::{Timestamp, Unit};

use super::namespace::RESTART_ANNOTATION;

/// What is decided about a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is restarted now.
    Restart,
    /// It is not restarted now.
    Wait(Wait),
}

/// Why a workload is not restarted now. `Display` is one line of plain English.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// `--restart=dry-run`: it would be restarted.
    DryRun,
    /// Its namespace opts out, or does not opt in.
    NotAsked(&'static str),
    /// An annotation of its namespace is not valid.
    InvalidAnnotation(String),
    /// Outside of the maintenance windows.
    Window {
        /// When the next window begins; `None` if none begins within a week.
        next: Option<Timestamp>,
    },
    /// Restarts stopped, because a rollout does not finish.
    Stuck {
        /// The workload whose rollout does not finish.
        workload: String,
    },
    /// Enough others are still rolling out.
    Others {
        /// How many.
        count: usize,
    },
    /// It does not exist any more.
    Gone,
    /// A restart would not replace its pods.
    NoRollout {
        /// What to do by hand.
        by_hand: &'static str,
    },
    /// Its rollouts are paused.
    Paused,
    /// It was restarted less than an hour ago.
    Recent {
        /// When.
        at: Timestamp,
    },
    /// A rollout of it is in progress already, begun by others.
    RollingOut,
    /// A `PodDisruptionBudget` allows no disruption.
    Budget {
        /// The name of the budget.
        budget: String,
    },
    /// Another workload of the same `PodDisruptionBudget` is rolling out.
    SharedBudget {
        /// The name of the budget.
        budget: String,
        /// The other workload.
        other: String,
    },
}

impl Wait {
    /// All values of the metric label `reason`.
    pub const LABELS: [&str; 13] = [
        "budget",
        "dry_run",
        "gone",
        "invalid_annotation",
        "no_rollout",
        "not_asked",
        "others",
        "paused",
        "recent",
        "rolling_out",
        "shared_budget",
        "stuck",
        "window",
    ];

    /// The value of the metric label `reason`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::DryRun => "dry_run",
            Self::NotAsked(_) => "not_asked",
            Self::InvalidAnnotation(_) => "invalid_annotation",
            Self::Window { .. } => "window",
            Self::Stuck { .. } => "stuck",
            Self::Others { .. } => "others",
            Self::Gone => "gone",
            Self::NoRollout { .. } => "no_rollout",
            Self::Paused => "paused",
            Self::Recent { .. } => "recent",
            Self::RollingOut => "rolling_out",
            Self::Budget { .. } => "budget",
            Self::SharedBudget { .. } => "shared_budget",
        }
    }

    /// Whether the reason is likely to end within minutes, without the help of a person.
    #[must_use]
    pub fn is_short(&self) -> bool {
        match self {
            Self::Others { .. }
            | Self::RollingOut
            | Self::Budget { .. }
            | Self::SharedBudget { .. } => true,
            Self::DryRun
            | Self::NotAsked(_)
            | Self::InvalidAnnotation(_)
            | Self::Window { .. }
            | Self::Stuck { .. }
            | Self::Gone
            | Self::NoRollout { .. }
            | Self::Paused
            | Self::Recent { .. } => false,
        }
    }

    /// Whether the owner of the workload can do something about it: it gets an event.
    #[must_use]
    pub fn concerns_owner(&self) -> bool {
        match self {
            Self::InvalidAnnotation(_)
            | Self::NoRollout { .. }
            | Self::Paused
            | Self::Budget { .. } => true,
            Self::DryRun
            | Self::NotAsked(_)
            | Self::Window { .. }
            | Self::Stuck { .. }
            | Self::Others { .. }
            | Self::Gone
            | Self::Recent { .. }
            | Self::RollingOut
            | Self::SharedBudget { .. } => false,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DryRun => f.write_str("dry run: it would be restarted now"),
            Self::NotAsked("") => {
                write!(
                    f,
                    "its namespace does not have the annotation {RESTART_ANNOTATION}: enabled"
                )
            }
            Self::NotAsked(value) => {
                write!(f, "its namespace has the annotation {RESTART_ANNOTATION}: {value}")
            }
            Self::InvalidAnnotation(problem) => write!(f, "its namespace has an {problem}"),
            Self::Window { next: Some(next) } => {
                write!(f, "outside of the maintenance window; the next begins at {}", time(*next))
            }
            Self::Window { next: None } => {
                f.write_str("outside of the maintenance window; none begins within a week")
            }
            Self::Stuck { workload } => {
                write!(f, "restarts stopped: the rollout of {workload} does not finish")
            }
            Self::Others { count: 1 } => f.write_str("another workload is still rolling out"),
            Self::Others { count } => write!(f, "another {count} workloads are still rolling out"),
            Self::Gone => f.write_str("it does not exist any more"),
            Self::NoRollout { by_hand } => {
                write!(f, "a restart does not replace its pods: {by_hand}")
            }
            Self::Paused => {
                f.write_str("its rollouts are paused; resume them with kubectl rollout resume")
            }
            Self::Recent { at } => {
                write!(f, "it was restarted less than an hour ago, at {}", time(*at))
            }
            Self::RollingOut => f.write_str("a rollout of it is in progress already"),
            Self::Budget { budget } => {
                write!(f, "the PodDisruptionBudget {budget} allows no disruption")
            }
            Self::SharedBudget { budget, other } => {
                write!(f, "{other}, of the same PodDisruptionBudget {budget}, is rolling out")
            }
        }
    }
}

/// A time in UTC and whole seconds, in RFC 3339.
pub(super) fn time(at: Timestamp) -> impl fmt::Display {
    at.round(Unit::Second).unwrap_or(at)
}
