//! How many objects and reviews a scenario has.

/// The number of objects and reviews.
pub(super) struct Extent {
    pub(super) namespaces: [usize; 3],
    pub(super) pods: usize,
    pub(super) replica_sets: usize,
    /// Annotations of a namespace that injectd does not read.
    pub(super) annotations: usize,
    pub(super) injections: usize,
    pub(super) strangers: usize,
    pub(super) templates: usize,
    pub(super) reviews: usize,
}

impl Extent {
    /// Those of the budgets.
    pub(super) const LONG: Self = Self {
        namespaces: [10, 1_000, 10_000],
        pods: 20_000,
        replica_sets: 3_000,
        annotations: 1,
        injections: 5_000,
        strangers: 1_000,
        templates: 6_000,
        reviews: 4_000,
    };
    /// Enough to see that pods are not in memory, and each rule once.
    pub(super) const SHORT: Self = Self {
        namespaces: [10, 200, 1_000],
        pods: 500,
        replica_sets: 300,
        annotations: 1,
        injections: 500,
        strangers: 100,
        templates: 200,
        reviews: 500,
    };
}
