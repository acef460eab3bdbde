//! The memory and answer size of a review are linear in its bytes, for every field that a caller
//! can make large. `benches/cost.rs` counts instructions.

use allocation_counter::measure;
use futures_util::FutureExt as _;

use injectd_testkit::Injector;
use injectd_testkit::cost::{self as shapes, Grown, Injectors};

/// The small size: large enough that constant costs do not hide growth.
const SMALL: usize = 64 << 10;
/// Ratio of the large size to the small size.
const RATIO: usize = 4;
/// Allowed growth of allocated bytes for a size that is [`RATIO`] times as large. More than the
/// ratio, because buffers and tables grow by doubling.
const MAX_GROWTH: u64 = 6;
/// Allocated bytes per byte of a request, without the constant part. The most expensive list has
/// `{}` for containers, each of which becomes a view of two hundred bytes.
const MAX_ALLOCATED_PER_BYTE: u64 = 200;
/// Maximum bytes in use, without the longest list. The most expensive list has `{}` for ports.
const MAX_HELD_PER_BYTE: u64 = 24;
const FIXED_HELD: u64 = 6 << 20;
/// Bytes of an answer per byte of a request. A version that a namespace sets is in its patch three
/// times, and base64 adds a third.
const MAX_ANSWER_PER_BYTE: usize = 6;
/// Constant part: the smallest review compiles a template and writes its patch.
const FIXED_ALLOCATED: u64 = 300 << 10;
const FIXED_ANSWER: usize = 24 << 10;

/// Allocated bytes of one review in total, maximum bytes in use, and the length of its answer.
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

/// Length of the answer; 0 if the body is not a review.
fn answered(injector: &Injector, body: &[u8]) -> usize {
    let answer = injector.review(body).now_or_never().expect("must not wait");
    answer.map_or(0, |answer| answer.body.len())
}

#[test]
fn memory_and_answers_are_in_proportion_to_the_request() {
    let injectors = Injectors::default();
    let mut problems = Vec::new();
    for shape in shapes::all() {
        let [small, large] = [SMALL, RATIO * SMALL].map(|bytes| shape.grow(bytes));
        let (bytes, before) = (large.bytes(), cost(&small, &injectors));
        let Cost { allocated, held, answer } = cost(&large, &injectors);
        let name = &shape.name;
        assert!(bytes > SMALL / 3, "{name}: {bytes} bytes are no growth");
        if allocated > FIXED_ALLOCATED + MAX_GROWTH * before.allocated {
            problems.push(format!("{name}: allocated {} and then {allocated}", before.allocated));
        }
        if allocated > FIXED_ALLOCATED + MAX_ALLOCATED_PER_BYTE * bytes as u64 {
            problems.push(format!("{name}: allocated {allocated} for {bytes} bytes"));
        }
        if held > FIXED_HELD + MAX_HELD_PER_BYTE * bytes as u64 {
            problems.push(format!("{name}: held {held} bytes for {bytes}"));
        }
        if answer > FIXED_ANSWER + MAX_ANSWER_PER_BYTE * bytes {
            problems.push(format!("{name}: {answer} bytes of answer for {bytes}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
