//! What a review costs is a function of its bytes: memory and answers, for every field that a caller
//! may let grow. Instructions are counted by `benches/cost.rs`.

use allocation_counter::measure;
use futures_util::FutureExt as _;
use injectd::injector::Injector;

#[path = "cost/shapes.rs"]
mod shapes;

use shapes::{Grown, Injectors};

/// The small size; what does not depend on the size must not hide what does.
const SMALL: usize = 64 << 10;
/// How much larger the large size is.
const RATIO: usize = 4;
/// Growth of allocated bytes that is in proportion, for a size that is [`RATIO`] times as large:
/// buffers and tables double.
const MOST_GROWTH: u64 = 6;
/// Allocated bytes per byte of a request, beyond what every review takes: the densest list, of
/// `{}` for containers, is read into views of two hundred bytes each.
const MOST_ALLOCATED_PER_BYTE: u64 = 200;
/// Bytes held at a time, beyond the longest list: the densest are ports, of `{}`.
const MOST_HELD_PER_BYTE: u64 = 24;
const FIXED_HELD: u64 = 6 << 20;
/// Bytes of an answer per byte of a request: a version is written three times into the patch of a
/// namespace that sets it, and base64 adds a third.
const MOST_ANSWERED_PER_BYTE: usize = 6;
/// What the smallest review takes: a template is compiled, and its patch written.
const FIXED_ALLOCATED: u64 = 300 << 10;
const FIXED_ANSWER: usize = 24 << 10;

/// Allocated bytes of one review, in all and at a time, and the length of its answer.
struct Cost {
    allocated: u64,
    held: u64,
    answer: usize,
}

fn cost(grown: &Grown, injectors: &Injectors) -> Cost {
    grown.with(injectors, |injector, body| {
        let mut answer = 0;
        let counted = measure(|| answer = answered(injector, body));
        Cost { allocated: counted.bytes_total, held: counted.bytes_max, answer }
    })
}

/// Length of the answer; 0 for what is no review.
fn answered(injector: &Injector, body: &[u8]) -> usize {
    let answer = injector.review(body).now_or_never().expect("must not wait");
    answer.map_or(0, |answer| answer.body.len())
}

#[test]
fn memory_and_answers_are_in_proportion_to_the_request() {
    let injectors = Injectors::new();
    let mut problems = Vec::new();
    for shape in shapes::all() {
        let [small, large] = [SMALL, RATIO * SMALL].map(|bytes| shape.grow(bytes));
        let (bytes, before) = (large.bytes(), cost(&small, &injectors));
        let Cost { allocated, held, answer } = cost(&large, &injectors);
        let name = &shape.name;
        assert!(bytes > SMALL / 3, "{name}: {bytes} bytes are no growth");
        if allocated > FIXED_ALLOCATED + MOST_GROWTH * before.allocated {
            problems.push(format!("{name}: allocated {} and then {allocated}", before.allocated));
        }
        if allocated > FIXED_ALLOCATED + MOST_ALLOCATED_PER_BYTE * bytes as u64 {
            problems.push(format!("{name}: allocated {allocated} for {bytes} bytes"));
        }
        if held > FIXED_HELD + MOST_HELD_PER_BYTE * bytes as u64 {
            problems.push(format!("{name}: held {held} bytes for {bytes}"));
        }
        if answer > FIXED_ANSWER + MOST_ANSWERED_PER_BYTE * bytes {
            problems.push(format!("{name}: {answer} bytes of answer for {bytes}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
