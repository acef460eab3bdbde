//! Instructions of a program, counted by callgrind. The counts do not depend on the load of the machine.
//!
//! The program runs itself under valgrind twice for each case, with few rounds and with many; the
//! difference is the cost of the rounds. Without valgrind it prints a message and exits.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::Path,
    process::{Command, ExitCode},
};

/// Allowed growth, in percent.
const MAX_GROWTH: u64 = 5;
/// Environment variables of the counted runs: the case, and the number of rounds.
const CASE: &str = "INSTRUCTIONS_CASE";
const ROUNDS: &str = "INSTRUCTIONS_ROUNDS";

/// The cases of a program whose counts are in a file.
#[derive(Debug)]
pub(crate) struct Counts<'c> {
    /// Their names.
    pub cases: &'c [&'c str],
    /// The file with the counts. `BLESS=1` writes it.
    pub file: &'c Path,
    /// Number of rounds in the two runs.
    pub rounds: [u64; 2],
}

impl Counts<'_> {
    /// Counts each case, or does the rounds of one. Fails if a case has grown by more than 5 %.
    ///
    /// # Panics
    /// When a run fails, or the file cannot be written.
    pub(crate) fn main(&self, run: impl Fn(&str, u64)) -> ExitCode {
        if let (Ok(case), Ok(rounds)) = (variable(CASE), variable(ROUNDS)) {
            run(&case, rounds.parse().expect("a number"));
            return ExitCode::SUCCESS;
        }
        if Command::new("valgrind").arg("--version").output().is_err() {
            print_line("instructions: skipped, valgrind is not installed");
            return ExitCode::SUCCESS;
        }
        let committed = fs::read_to_string(self.file).unwrap_or_default();
        let (mut table, mut is_grown) = (String::new(), false);
        for case in self.cases {
            let found = self.of_a_round(case);
            writeln!(table, "{case} {found}").expect("writing to a string must succeed");
            let line = committed.lines().find_map(|line| line.strip_prefix(case));
            let expected: u64 = line.and_then(|number| number.trim().parse().ok()).unwrap_or(0);
            print_line(&format!("{case}: {found} instructions, committed {expected}"));
            is_grown |= found > expected + expected * MAX_GROWTH / 100;
        }
        if variable("BLESS").is_ok() {
            fs::write(self.file, table).expect("the file of the counts must be writable");
        } else if is_grown {
            print_line("grown by more than 5 %: reduce it, or run with BLESS=1 and explain why");
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    }

    fn of_a_round(&self, case: &str) -> u64 {
        let [short, long] = self.rounds;
        (count(case, long) - count(case, short)) / (long - short)
    }
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

#[expect(clippy::disallowed_methods, reason = "how a benchmark calls itself")]
fn variable(name: &str) -> Result<String, env::VarError> {
    env::var(name)
}

fn print_line(line: &str) {
    writeln!(io::stdout(), "{line}").expect("stdout must be writable");
}
