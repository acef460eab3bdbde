//! The memory that an evaluation takes, by estimate. The server takes it from a budget before the
//! evaluation begins.

use injectd_core::json::Tape;

use crate::object::Object;

/// Bytes of an evaluation of a small pod, at most 420 KB in measurements, with room for other templates.
const BASE: usize = 1 << 20;
/// Bytes for each byte of the object's annotations. The worst is `proxy.istio.io/config` with
/// `proxyMetadata` of short names, which the templates of Istio 1.30 write as variables: 230. With it, the
/// 256 KiB of annotations that Kubernetes allows fit into 64 MiB.
const ANNOTATION: usize = 240;
/// Bytes for each value and each key of the object. The worst are containers that Istio's template
/// `grpc-simple` has an entry for: 760. Empty ones take 550, others up to 310.
const VALUE: usize = 800;
/// Bytes for each other byte of the object. The worst is a long name, of which there are copies: 6.
const TEXT: usize = 8;
/// The least bytes that a value has in a list, with its comma: those of `{},`, without an index of the
/// values.
const VALUE_BYTES: usize = 3;

/// Bytes in memory during the evaluation of an object, at most.
#[must_use]
pub fn memory_of_evaluation(object: &Object<'_>) -> usize {
    let bytes = object.text_bytes();
    let values = object.tape().map_or(bytes / VALUE_BYTES, Tape::count);
    let annotations = object.annotation_bytes();
    let parts = [(annotations, ANNOTATION), (values, VALUE), (bytes - annotations, TEXT)];
    let parts = parts.into_iter().map(|(count, each)| count.saturating_mul(each));
    parts.fold(BASE, usize::saturating_add)
}
