//! The memory of an evaluation is within its estimate, for every field that a caller can make large.
//! `benches/cost.rs` counts instructions.

use allocation_counter::measure;
use futures_util::FutureExt as _;

use injectd_core::{mesh::Mesh, request::Subject, review};
use injectd_istio::mesh::{Istio, memory_of_evaluation};
use injectd_testkit::cost::{Shape, istio::Configuration};

/// Large enough that the constant part does not hide growth.
const SIZES: [usize; 2] = [4 << 10, 64 << 10];

/// Bytes in use at most, and the estimate; `None` if the body is not a review of a pod.
fn peak_and_estimate(configuration: &Configuration, body: &[u8]) -> Option<(u64, u64)> {
    let estimate = {
        let request = review::decode::<<Istio as Mesh>::Object<'_>>(body).ok()?;
        let Subject::Object(object) = &request.subject else { return None };
        memory_of_evaluation(object)
    };
    // A new injector has no answer in memory.
    let injector = configuration.injector();
    let counted = measure(|| {
        let answer = injector.review(body).now_or_never().expect("must not wait");
        drop(answer);
    });
    Some((counted.bytes_max, u64::try_from(estimate).expect("a size")))
}

#[test]
fn the_memory_of_an_evaluation_is_within_its_estimate() {
    let configuration = Configuration::find();
    let mut problems = Vec::new();
    let mut check = |shape: &Shape| {
        for size in SIZES {
            let body = shape.grow(size).body;
            if let Some((peak, estimate)) = peak_and_estimate(&configuration, body.as_bytes())
                && peak > estimate
            {
                let bytes = body.len();
                problems.push(format!("{}: {peak} of {estimate} for {bytes}", shape.name));
            }
        }
    };
    configuration.shapes().iter().for_each(&mut check);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
