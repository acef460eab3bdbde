//! Pods of generated workloads, as controllers create them and an API server sends them.
//!
//! The pods of a workload differ in what a cluster makes anew for each: uids, the volume of the token and
//! its mounts, hashes of a rollout, ordinals, the node of a pod of a `DaemonSet`, the Job of a `CronJob`.
//! Not for the pods of the agreement suite, which are legal but odd: [`crate::generator`] has them.

use std::iter;

use crate::generator::random::Random;

mod parts;
mod workload;

use workload::Workload;

/// The kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of Kubernetes")]
pub enum Kind {
    Deployment,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
}

/// How many workloads there are of each kind.
pub const KINDS: [(Kind, usize); 5] = [
    (Kind::Deployment, 28),
    (Kind::StatefulSet, 8),
    (Kind::DaemonSet, 6),
    (Kind::Job, 4),
    (Kind::CronJob, 4),
];

/// Workloads, and reviews of their pods in random order; the same for the same seed.
pub struct Workloads {
    random: Random,
    workloads: Vec<Workload>,
}

impl Workloads {
    /// Workloads of all [`KINDS`].
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let kinds = KINDS.iter().flat_map(|&(kind, count)| iter::repeat_n(kind, count));
        let workloads = kinds
            .enumerate()
            .map(|(index, kind)| Workload::new(&mut random, kind, index))
            .collect();
        Self { random, workloads }
    }
}

/// The kind of a workload, and the review of a pod of it. There is always a next one.
impl Iterator for Workloads {
    type Item = (Kind, Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.random.below(self.workloads.len());
        let workload = &mut self.workloads[index];
        Some((workload.kind, workload.review(&mut self.random)))
    }
}
