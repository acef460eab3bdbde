//! Instructions per byte of a request, counted by callgrind, for reviews that grow in one place
//! each (`crates/testkit/src/cost.rs`). Fails if a review costs more than its bytes allow.
//!
//! This program runs itself under valgrind once and answers every review at both sizes; only the
//! answers are counted, with one dump for each. Without valgrind it prints a message and exits.
//! `COST_ONLY=TEXT` runs only the shapes with TEXT in their names.

use std::{
    env, fs,
    io::{self, Write as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use futures_util::FutureExt as _;

use injectd_testkit::Injector;
use injectd_testkit::cost::{self as shapes, Grown, Injectors, Shape};

/// The largest request of an API server, and a size to compare with.
const SIZES: [usize; 2] = [256 << 10, 3 << 20];
/// Maximum instructions per byte of a request. The most expensive bytes are those of a namespace's
/// list of variables, which is read, merged, written and quoted: 160 (3 MiB take 80 ms). Most bytes
/// take less than 40.
const MAX_INSTRUCTIONS_PER_BYTE: u64 = 170;
/// The constant cost of a review, which compiles a template and reads lists of the maximum length
/// (10,000 items).
const FIXED_INSTRUCTIONS: u64 = 6_000_000;
/// Environment variable that is set in the counted run.
const COUNTED: &str = "COST_COUNTED";
/// Environment variable with a part of the names of the shapes to run.
const ONLY: &str = "COST_ONLY";

fn main() -> ExitCode {
    let only = variable(ONLY);
    let mut shapes = shapes::all();
    shapes.retain(|shape| shape.name.contains(&only));
    if !variable(COUNTED).is_empty() {
        run(&shapes);
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        print("cost: not run, there is no valgrind");
        return ExitCode::SUCCESS;
    }
    let totals = count(&only);
    assert_eq!(totals.len(), shapes.len() * SIZES.len(), "every review must be counted");
    let grown = shapes.iter().flat_map(|shape| SIZES.map(|size| (shape, size)));
    let mut is_over = false;
    print("instructions  per byte  bytes    what grows");
    for ((shape, size), total) in grown.zip(totals) {
        let bytes = shape.grow(size).bytes();
        let per_byte = total.saturating_sub(FIXED_INSTRUCTIONS).div_ceil(bytes as u64);
        let mark = if per_byte > MAX_INSTRUCTIONS_PER_BYTE { "  OVER" } else { "" };
        print(&format!("{total:12} {per_byte:8} {bytes:8}  {}{mark}", shape.name));
        is_over |= !mark.is_empty();
    }
    if is_over {
        print(&format!("more than {MAX_INSTRUCTIONS_PER_BYTE} instructions per byte"));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The instructions that callgrind counts for each review.
fn count(only: &str) -> Vec<u64> {
    let this = env::current_exe().expect("the path of the binary must be known");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cost");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder of build results must be writable");
    let run = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", folder.join("dump").display()))
        .args(["--toggle-collect=cost::answer_and_count", "--dump-after=cost::answer_and_count"])
        .arg(this)
        .env_clear()
        .env(COUNTED, "1")
        .env(ONLY, only)
        .stdout(Stdio::null())
        .output()
        .expect("valgrind must run");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    (1..).map_while(|index| total(&folder.join(format!("dump.{index}")))).collect()
}

/// The total of a dump; `None` if it does not exist or is the last one, of the whole program.
fn total(dump: &Path) -> Option<u64> {
    let dump = fs::read_to_string(dump).ok()?;
    let total = dump.lines().find_map(|line| line.strip_prefix("totals: "))?;
    total.trim().parse().ok()
}

fn run(shapes: &[Shape]) {
    let injectors = Injectors::default();
    for shape in shapes {
        for size in SIZES {
            let grown: Grown = shape.grow(size);
            grown.with(&injectors, answer_and_count);
        }
    }
}

#[inline(never)]
fn answer_and_count(injector: &Injector, body: &[u8]) {
    let answer = injector.review(body).now_or_never().expect("must not wait");
    std::hint::black_box(answer.map(|answer| answer.body.len()).is_ok());
}

#[expect(clippy::disallowed_methods, reason = "how a benchmark calls itself")]
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

fn print(line: &str) {
    writeln!(io::stdout(), "{line}").expect("stdout must be writable");
}
