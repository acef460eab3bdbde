//! Kubernetes' strategic merge of Pods, as Istio's injector uses it.
//!
//! [`overlay`] merges a patch into a Pod, [`check`] reports values of the wrong type in a patch,
//! and [`normal`] is the form in which two Pods are compared. The rules are those of
//! `strategicpatch.StrategicMergePatch` (`k8s.io/apimachinery/pkg/util/strategicpatch`) with the
//! types of `k8s.io/api/core/v1`, release 1.36.
//!
//! The injector converts the user's Pod to Go's types before it merges, and the result again after
//! it. Here the user's part of the Pod stays as it is. [`overlay`] merges as if the Pod came from
//! Go, and cleans only values of the patch:
//!
//! - A `null`, `[]` or `{}` of the Pod that Go would not write counts as absent. A struct that Go
//!   always writes, such as `resources`, counts as `{}`, and an absent key of a list element that Go
//!   always writes, such as `name`, counts as `""` or `0`.
//! - Values of the patch lose their nulls and directives. A `null` element of a list or a map
//!   becomes the empty value. `80.0` becomes `80` in a field of integers.
//! - A key of the patch that equals a field but for its case counts as that field if the Pod and
//!   the patch have no such field. Go also combines the two in structs that it always writes
//!   (`Spec` and `spec`).
//! - Unknown fields of the Pod and of the patch stay. Go drops them.
//!
//! [`strategic_merge`] does none of that; it is the library's function on any JSON.
//!
//! Not for other kinds of objects, and not for creating patches.

mod apply;
mod check;
mod error;
mod key;
mod normal;
pub mod schema;
mod show;
mod time;

pub use apply::{MAX_DEPTH, overlay, strategic_merge};
pub use check::{TypeError, check};
pub use error::MergeError;
pub use normal::normal;
