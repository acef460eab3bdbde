//! What is decided about a workload, and why it waits.

use std::fmt;

use jiff::{Timestamp, Unit};

use super::annotations::RESTART_ANNOTATION;

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
    /// Restarts stopped, because those in several namespaces did not help.
    Stopped {
        /// The namespaces.
        namespaces: String,
    },
    /// Restarts of its namespace stopped, because some did not help.
    NamespaceStopped {
        /// How many.
        count: usize,
    },
    /// Whether the first restarts helped is not known before the next audit.
    Unverified {
        /// How many.
        count: usize,
    },
    /// Restarts of its namespace stopped, because a rollout does not finish.
    Stuck {
        /// The workload whose rollout does not finish.
        workload: String,
    },
    /// Another workload of its namespace is still rolling out.
    Namespace {
        /// The other workload.
        other: String,
    },
    /// Enough others are still rolling out.
    Others {
        /// How many.
        count: usize,
    },
    /// It does not exist, or not any more.
    Gone,
    /// The pods that were found name no `ReplicaSet` that is of it.
    NotOwner,
    /// A restart did not help, and nothing changed since.
    DidNotHelp {
        /// When it was restarted.
        at: Timestamp,
    },
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
    /// The API server refused to restart it less than an hour ago.
    Refused {
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
}

impl Wait {
    /// All values of the metric label `reason`.
    pub const LABELS: [&str; 19] = [
        "budget",
        "did_not_help",
        "dry_run",
        "gone",
        "invalid_annotation",
        "namespace",
        "namespace_stopped",
        "no_rollout",
        "not_asked",
        "not_owner",
        "others",
        "paused",
        "recent",
        "refused",
        "rolling_out",
        "stopped",
        "stuck",
        "unverified",
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
            Self::Stopped { .. } => "stopped",
            Self::NamespaceStopped { .. } => "namespace_stopped",
            Self::Unverified { .. } => "unverified",
            Self::Stuck { .. } => "stuck",
            Self::Namespace { .. } => "namespace",
            Self::Others { .. } => "others",
            Self::Gone => "gone",
            Self::NotOwner => "not_owner",
            Self::DidNotHelp { .. } => "did_not_help",
            Self::NoRollout { .. } => "no_rollout",
            Self::Paused => "paused",
            Self::Recent { .. } => "recent",
            Self::Refused { .. } => "refused",
            Self::RollingOut => "rolling_out",
            Self::Budget { .. } => "budget",
        }
    }

    /// Whether the reason is likely to end within minutes, without the help of a person.
    #[must_use]
    pub fn is_short(&self) -> bool {
        match self {
            Self::Unverified { .. }
            | Self::Namespace { .. }
            | Self::Others { .. }
            | Self::RollingOut
            | Self::Budget { .. } => true,
            Self::DryRun
            | Self::NotAsked(_)
            | Self::InvalidAnnotation(_)
            | Self::Window { .. }
            | Self::Stopped { .. }
            | Self::NamespaceStopped { .. }
            | Self::Stuck { .. }
            | Self::Gone
            | Self::NotOwner
            | Self::DidNotHelp { .. }
            | Self::NoRollout { .. }
            | Self::Paused
            | Self::Recent { .. }
            | Self::Refused { .. } => false,
        }
    }

    /// Whether the owner of the workload can do something about it: it gets an event.
    #[must_use]
    pub fn concerns_owner(&self) -> bool {
        match self {
            Self::InvalidAnnotation(_)
            | Self::DidNotHelp { .. }
            | Self::NoRollout { .. }
            | Self::Paused
            | Self::Refused { .. }
            | Self::Budget { .. } => true,
            Self::DryRun
            | Self::NotAsked(_)
            | Self::Window { .. }
            | Self::Stopped { .. }
            | Self::NamespaceStopped { .. }
            | Self::Unverified { .. }
            | Self::Stuck { .. }
            | Self::Namespace { .. }
            | Self::Others { .. }
            | Self::Gone
            | Self::NotOwner
            | Self::Recent { .. }
            | Self::RollingOut => false,
        }
    }
}

impl Wait {
    /// The reasons that other workloads give.
    fn fmt_of_others(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped { namespaces } => {
                write!(f, "all restarts stopped: those in {namespaces} did not help")
            }
            Self::NamespaceStopped { count } => {
                write!(f, "restarts of its namespace stopped: {count} of them did not help")
            }
            Self::Unverified { count: 1 } => {
                f.write_str("the next audit must show first whether a restart helped")
            }
            Self::Unverified { count } => {
                write!(f, "the next audit must show first whether {count} restarts helped")
            }
            Self::Stuck { workload } => {
                write!(
                    f,
                    "restarts of its namespace stopped: the rollout of {workload} does not finish"
                )
            }
            Self::Namespace { other } => {
                write!(f, "{other}, of the same namespace, is still rolling out")
            }
            Self::Others { count: 1 } => f.write_str("another workload is still rolling out"),
            Self::Others { count } => write!(f, "another {count} workloads are still rolling out"),
            _ => Ok(()),
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
            Self::Stopped { .. }
            | Self::NamespaceStopped { .. }
            | Self::Unverified { .. }
            | Self::Stuck { .. }
            | Self::Namespace { .. }
            | Self::Others { .. } => self.fmt_of_others(f),
            Self::Gone => f.write_str("it does not exist"),
            Self::NotOwner => {
                f.write_str("the pods that were found name no ReplicaSet that is of it")
            }
            Self::DidNotHelp { at } => write!(
                f,
                "its restart at {} did not help, and neither its pod template, its namespace, the \
                 webhooks nor the configuration of the mesh has changed since",
                time(*at)
            ),
            Self::NoRollout { by_hand } => {
                write!(f, "a restart does not replace its pods: {by_hand}")
            }
            Self::Paused => {
                f.write_str("its rollouts are paused; resume them with kubectl rollout resume")
            }
            Self::Recent { at } => {
                write!(f, "it was restarted less than an hour ago, at {}", time(*at))
            }
            Self::Refused { at } => write!(
                f,
                "the API server refused to restart it at {}; it is asked again an hour later",
                time(*at)
            ),
            Self::RollingOut => f.write_str("a rollout of it is in progress already"),
            Self::Budget { budget } => {
                write!(f, "the PodDisruptionBudget {budget} allows no disruption")
            }
        }
    }
}

/// A time in UTC and whole seconds, in RFC 3339.
pub(super) fn time(at: Timestamp) -> impl fmt::Display {
    at.round(Unit::Second).unwrap_or(at)
}
