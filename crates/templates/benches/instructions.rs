//! Instructions of expressions for the typical pod of 12 KB, counted by callgrind. The counts do not
//! depend on the load of the machine. Fails if a case has grown by more than 5 % over
//! `instructions.txt`; `BLESS=1` rewrites that file.
//!
//! This program runs itself under valgrind twice for each case, with few rounds and with many; the
//! difference is the cost of the rounds. Without valgrind it prints a message and exits.

use std::{
    env,
    fmt::Write as _,
    fs,
    hint::black_box,
    io::{self, Write as _},
    path::Path,
    process::{Command, ExitCode},
};

use injectd_cel::{Datum, Environment, Program, Variables};
use injectd_core::json::{Node, Tape};
use injectd_templates::PodText;

const REVIEW: &str = include_str!("../../../loadtest/review-12k.json");
/// Number of rounds in the two runs.
const SHORT_RUN: u64 = 10;
const LONG_RUN: u64 = 210;
/// Allowed growth, in percent.
const MAX_GROWTH: u64 = 5;
/// Environment variables of the counted runs: the case, and the number of rounds.
const CASE: &str = "INSTRUCTIONS_CASE";
const ROUNDS: &str = "INSTRUCTIONS_ROUNDS";

/// The index of the pod, ten expressions for a pod that is indexed, and one of two reads.
const CASES: [&str; 3] = ["index-12k", "ten-expressions", "two-reads"];
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
    if let (Ok(case), Ok(rounds)) = (variable(CASE), variable(ROUNDS)) {
        run(&case, rounds.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        print_line("instructions: skipped, valgrind is not installed");
        return ExitCode::SUCCESS;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let (mut table, mut is_grown) = (String::new(), false);
    for case in CASES {
        let found = (count(case, LONG_RUN) - count(case, SHORT_RUN)) / (LONG_RUN - SHORT_RUN);
        writeln!(table, "{case} {found}").expect("writing to a string must succeed");
        let line = committed.lines().find_map(|line| line.strip_prefix(case));
        let expected: u64 = line.and_then(|number| number.trim().parse().ok()).unwrap_or(0);
        print_line(&format!("{case}: {found} instructions, committed {expected}"));
        is_grown |= found > expected + expected * MAX_GROWTH / 100;
    }
    if variable("BLESS").is_ok() {
        fs::write(&path, table).expect("benches/instructions.txt must be writable");
    } else if is_grown {
        print_line("grown by more than 5 %: reduce it, or run with BLESS=1 and explain why");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The instructions that callgrind counts in a run.
fn count(case: &str, rounds: u64) -> u64 {
    let this = env::current_exe().expect("the path of the binary must be known");
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        // The environment of the machine must not change the counts.
        .env_clear()
        .env(CASE, case)
        .env(ROUNDS, format!("{rounds:04}"))
        .output()
        .expect("valgrind must run");
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{stderr}");
    let collected = stderr.lines().find_map(|line| line.split("Collected : ").nth(1));
    collected.and_then(|count| count.trim().parse().ok()).expect("callgrind must print its count")
}

fn run(case: &str, rounds: u64) {
    let review = Tape::of(REVIEW).expect("the review must be JSON");
    let pod = review.root().get("request").and_then(|request| request.get("object"));
    let pod = pod.map(Node::raw).expect("the review must have a pod");
    let environment = Environment::templates();
    let compile = |text: &&str| Program::compile_in(&environment, text).expect("an expression");
    let programs: Vec<_> = match case {
        "index-12k" => Vec::new(),
        "ten-expressions" => TEN.iter().map(compile).collect(),
        "two-reads" => TEN[..1].iter().map(compile).collect(),
        _ => panic!("{CASE} must name a case"),
    };
    let text = PodText::of(pod).expect("a pod");
    for _ in 0..rounds {
        if programs.is_empty() {
            black_box(PodText::of(black_box(pod)));
        }
        let pod = Pod(text.value());
        for program in &programs {
            let found = black_box(program.value(&pod));
            assert!(found.value.is_ok(), "{found:?}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "how a benchmark calls itself")]
fn variable(name: &str) -> Result<String, env::VarError> {
    env::var(name)
}

fn print_line(line: &str) {
    writeln!(io::stdout(), "{line}").expect("stdout must be writable");
}
