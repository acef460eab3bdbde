//! Kubernetes' strategic merge of Pods, as Istio's injector uses it.
//!
//! [`overlay`] merges a patch into a Pod, [`check`] reports values of the wrong type in a patch,
//! [`misfits`] reports their places, and [`normal`] is the form in which two Pods are compared. The rules are those of
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
//! The battery of tests knows these differences from Go:
//!
//! - Keys in another case, as above.
//! - Of several values of a wrong type, [`check`] may report another one, as the order of merged
//!   lists decides in Go. It also reports values that the merge drops or replaces: in an object with
//!   `$patch`, or in an element that a later one of the same key replaces.
//! - If finalizers of the Pod occur twice, their order may differ: Go removes duplicates in an array
//!   that it also reads the old order from, if the array has room.
//! - Go goes through an object in random order. If that decides a result, as with `finalizers` beside
//!   `$deleteFromPrimitiveList/finalizers`, here it is the order of the patch.
//! - What makes Go panic, such as an object as merge key, is an error.
//!
//! [`strategic_merge`] does not read the Pod that way; it is the library's function on any JSON.
//!
//! Not for other kinds of objects, and not for creating patches.

#![expect(clippy::disallowed_types, reason = "Pods and patches are trees")]

mod apply;
mod check;
mod error;
mod key;
mod normal;
mod prune;
pub mod schema;
mod show;
mod time;

pub use apply::{has_directives, overlay, repeats_list, strategic_merge};
pub use check::{Misfit, TypeError, check, check_pod, json_type, misfits};
pub use error::{MAX_DEPTH, MergeError};
pub use normal::normal;
pub use prune::prune;
