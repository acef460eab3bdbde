//! Reviews by Istio's injector: warm, with the answer of an earlier pod, and cold, evaluated.

use std::hint::black_box;

use futures_util::FutureExt as _;
use injectd::{
    injector, lookups::CallerFacts, mesh::Mesh, outcome::Verdict, patch::PatchBuffer, review,
    standalone::Standalone,
};
use injectd_istio::{envelope, mesh::Istio};
use injectd_testkit::istio;

use super::Bench;

type Injector = injector::Injector<Istio, Standalone>;
type Object<'a> = <Istio as Mesh>::Object<'a>;

impl Bench {
    /// With the templates of a real Istio, if `$INJECTD_CORPUS` has them.
    pub(super) fn istio(&mut self, reviews: &[(&str, Vec<u8>)]) {
        let (name, mesh) = istio::found();
        let warm: Injector = istio::injector_with(mesh);
        let cold: Injector = istio::injector_with(istio::found().1.without_memory());
        for (size, review) in reviews {
            let skip = format!("baseline_{size}_skip");
            let tree = format!("baseline_{size}_value");
            // With the tape of the pod.
            self.run(&format!("istio_decode_{size}"), Some(&skip), || {
                let request = review::decode::<Object<'_>>(black_box(review));
                black_box(request.expect("a review")).uid.len()
            });
            // The key of the pod, and a copy of the patch.
            let request = review::decode::<Object<'_>>(review).expect("a review");
            self.run(&format!("istio_{name}_{size}_warm_decide_render"), Some(&skip), || {
                let mut patch = PatchBuffer::json();
                let answered = warm.answer(&request, CallerFacts::default(), &mut patch);
                let outcome = answered.now_or_never().expect("must not wait").expect("answered");
                assert_eq!(outcome.verdict, Verdict::Injected);
                patch.into_bytes()
            });
            for (how, injector) in [("warm", &warm), ("cold", &cold)] {
                self.run(&format!("istio_{name}_{size}_{how}"), Some(&tree), || {
                    answered(injector, review)
                });
            }
        }
    }
}

/// Length of an answer.
fn answered(injector: &Injector, review: &[u8]) -> usize {
    let answer = envelope::review(injector, CallerFacts::default(), black_box(review));
    let answer = answer.now_or_never().expect("must not wait").expect("a review");
    assert_eq!(answer.outcome.verdict, Verdict::Injected);
    black_box(answer.body).len()
}
