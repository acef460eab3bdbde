//! Instructions of expressions for the typical pod of 12 KB, counted by callgrind ([`Counts`]). Fails if a
//! case has grown by more than 5 % over `instructions.txt`; `BLESS=1` rewrites that file.

use std::{hint::black_box, path::Path, process::ExitCode};

use injectd_cel::{Datum, Environment, Program, Variables};
use injectd_core::json::{Node, Tape};
use injectd_templates::{PodText, wanted};

#[path = "../../../benches/instructions/counts.rs"]
mod counts;

use counts::Counts;

const REVIEW: &str = include_str!("../../../loadtest/review-12k.json");
/// Number of rounds in the two runs.
const ROUNDS: [u64; 2] = [10, 210];

/// The index of the pod, and that of what ten expressions read; ten expressions from the text of the pod, the
/// same for a pod that is indexed, and one of two reads.
const CASES: [&str; 5] =
    ["index-12k", "index-of-ten-12k", "ten-from-text", "ten-expressions", "two-reads"];
/// Expressions as sidecar templates have them. The first one has two reads.
const TEN: [&str; 10] = [
    "object.metadata.namespace == object.spec.serviceAccountName",
    "object.spec.containers[0].?securityContext.?runAsUser",
    "object.metadata.?labels[?'app.kubernetes.io/name'].orValue('')",
    "has(object.spec.hostNetwork) && object.spec.hostNetwork",
    "object.spec.containers.exists(c, c.name == 'x')",
    "size(object.spec.containers) > 1",
    "object.metadata.?annotations[?'a/b'].orValue('1').matches('^[0-9]+$')",
    "object.spec.containers[0].image.startsWith('registry')",
    "object.spec.?volumes.orValue([]).exists(v, v.name == 'data')",
    "object.spec.?serviceAccountName.orValue('default') + '-' + object.metadata.namespace",
];

/// The pod of an expression.
struct Pod<'d>(Datum<'d>);

impl Variables for Pod<'_> {
    fn get(&self, name: &str) -> Option<Datum<'_>> {
        (name == "object").then_some(self.0)
    }
}

fn main() -> ExitCode {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    Counts { cases: &CASES, file: &file, rounds: ROUNDS }.main(run)
}

fn run(case: &str, rounds: u64) {
    let review = Tape::of(REVIEW).expect("the review must be JSON");
    let pod = review.root().get("request").and_then(|request| request.get("object"));
    let pod = pod.map(Node::raw).expect("the review must have a pod");
    let environment = Environment::templates();
    let compile = |text: &&str| Program::compile_in(&environment, text).expect("an expression");
    let programs: Vec<_> = TEN.iter().map(compile).collect();
    let parts = wanted("object", &programs).parts();
    let index = || PodText::parts(black_box(pod), &parts).expect("a pod");
    let all = || PodText::of(black_box(pod)).expect("a pod");
    let text = index();
    match case {
        "index-12k" => (0..rounds).for_each(|_| drop(black_box(all()))),
        "index-of-ten-12k" => (0..rounds).for_each(|_| drop(black_box(index()))),
        "ten-from-text" => (0..rounds).for_each(|_| evaluate(&programs, &index())),
        "ten-expressions" => (0..rounds).for_each(|_| evaluate(&programs, &text)),
        "two-reads" => (0..rounds).for_each(|_| evaluate(&programs[..1], &text)),
        _ => panic!("not a case: {case}"),
    }
}

fn evaluate(programs: &[Program], text: &PodText<'_>) {
    let pod = Pod(text.value());
    for program in programs {
        let found = black_box(program.value(&pod));
        assert!(found.value.is_ok(), "{found:?}");
    }
}
