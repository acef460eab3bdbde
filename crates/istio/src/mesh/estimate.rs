//! The memory that an evaluation takes, by estimate. The server takes it from a budget before the
//! evaluation begins.

use crate::object::Object;

/// Bytes of an evaluation of a small pod, at most 420 KB in measurements, with room for other templates.
const BASE: usize = 1 << 20;
/// Bytes for each byte of the object's annotations. The worst is `proxy.istio.io/config` with
/// `proxyMetadata` of short names, which the templates of Istio 1.30 write as variables: 230. With it, the
/// 256 KiB of annotations that Kubernetes allows fit into 64 MiB.
const ANNOTATION: usize = 240;
/// Bytes for each other byte of the object. The worst are lists of numbers of one digit: 86.
const OTHER: usize = 90;

/// Bytes in memory during the evaluation of an object, at most.
#[must_use]
pub fn memory_of_evaluation(object: &Object<'_>) -> usize {
    let annotations = object.annotation_bytes();
    let others = object.text_bytes() - annotations;
    BASE.saturating_add(annotations.saturating_mul(ANNOTATION))
        .saturating_add(others.saturating_mul(OTHER))
}
