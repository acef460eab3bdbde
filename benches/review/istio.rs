//! Reviews by Istio's injector: warm, with the answer of an earlier pod, and cold, evaluated.

use std::{env, fs, hint::black_box, path::Path};

use futures_util::FutureExt as _;
use injectd::{
    injector, lookups::CallerFacts, mesh::Mesh, outcome::Verdict, patch::PatchBuffer, review,
    standalone::Standalone,
};
use injectd_istio::{envelope, mesh::Istio};
use injectd_testkit::istio;

use super::Bench;

/// A recorded configuration, below `$INJECTD_CORPUS`.
const RELEASE: &str = "1.30.3";
const FILES: [&str; 3] = ["config-default.yaml", "values-default.json", "mesh-default.yaml"];

type Injector = injector::Injector<Istio, Standalone>;
type Object<'a> = <Istio as Mesh>::Object<'a>;

impl Bench {
    /// With the templates of a real Istio, if `$INJECTD_CORPUS` has them.
    pub(super) fn istio(&mut self, reviews: &[(&str, Vec<u8>)]) {
        let (name, [config, values, mesh]) = configuration();
        let mesh = || istio::mesh_of(&config, &values, &mesh);
        let warm: Injector = istio::injector_with(mesh());
        let cold: Injector = istio::injector_with(mesh().without_memory());
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

/// A name, and the keys `config`, `values` and `mesh`.
fn configuration() -> (&'static str, [String; 3]) {
    let corpus = env::var_os("INJECTD_CORPUS");
    let recorded = corpus.and_then(|corpus| {
        let folder = Path::new(&corpus).join("istio").join(RELEASE);
        let [config, values, mesh] = FILES.map(|name| fs::read_to_string(folder.join(name)).ok());
        Some([config?, values?, mesh?])
    });
    let small = || ("small", [istio::CONFIG, istio::VALUES, istio::MESH].map(str::to_owned));
    recorded.map_or_else(small, |files| (RELEASE, files))
}

/// Length of an answer.
fn answered(injector: &Injector, review: &[u8]) -> usize {
    let answer = envelope::review(injector, CallerFacts::default(), black_box(review));
    let answer = answer.now_or_never().expect("must not wait").expect("a review");
    assert_eq!(answer.outcome.verdict, Verdict::Injected);
    black_box(answer.body).len()
}
