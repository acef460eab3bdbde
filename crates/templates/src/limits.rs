//! The bounds of templates, each in one place. Those of the schema are in `crds/spec.yaml`.

/// Bytes of `spec` as JSON.
pub const MAX_BYTES_OF_SPEC: usize = 64 << 10;
/// Cost of one expression, in units of cel-go: what an API server allows for one condition.
pub const MAX_COST: u64 = 1_000_000;
/// Cost of one expression for a large pod above which there is a warning: a tenth, as pods differ.
pub const WARNED_COST: u64 = MAX_COST / 10;
/// Cost of all expressions of a template for one pod. It is ten times that of one expression, as the
/// policies of an API server have it.
pub const MAX_COST_OF_TEMPLATE: u64 = 10 * MAX_COST;
/// Cost of all expressions of a template for a large pod above which there is a warning.
pub const WARNED_COST_OF_TEMPLATE: u64 = MAX_COST_OF_TEMPLATE / 10;
/// Bytes that the structures of a template become for one pod. A pod has 1.5 MiB at most in etcd; a
/// variable that names another one twice would double it.
pub const MAX_BYTES_OF_TEMPLATE: usize = 2 << 20;
/// Items of a `forEach`: no node starts a pod with more containers. The reference names the number.
pub const MAX_ITEMS: usize = 256;
