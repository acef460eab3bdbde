//! The summary of a run: every budget with its figure, then the tables of the parts. And the setup,
//! which is written before anything is measured.

use std::{
    env,
    ffi::OsStr,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use injectd_harness::{expect::Outcome, lab::root};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::{k6::k6, machine, report::Report, servers::INJECTD};

/// The parts with a report, and their titles.
const PARTS: [(&str, &str); 10] = [
    ("rounds", "CPU and rate beside the echo"),
    ("curve", "Latency against rate"),
    ("mixed", "A mix of reviews (k6)"),
    ("burst", "Bursts of connections"),
    ("cold", "Cold paths"),
    ("soak", "A million reviews"),
    ("istio", "Istio"),
    ("templates", "Sidecar templates"),
    ("ghz", "gRPC (ghz)"),
    ("apiserver", "Through an API server"),
];
/// What a binary is made of, and what measures it.
const SOURCES: [&str; 5] = ["Cargo.lock", "crates", "deploy/pgo.sh", "loadtest", "src"];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Folder of the run
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Write setup.txt, before anything is measured
    #[arg(long)]
    setup: bool,
}

pub(crate) fn write(options: &Options) -> Outcome {
    let (name, text) = if options.setup {
        ("setup.txt", setup()?)
    } else {
        ("summary.md", summary(&options.out)?)
    };
    Ok(fs::write(options.out.join(name), text)?)
}

// --- the setup ---

fn setup() -> Outcome<String> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let injectd = INJECTD.path()?;
    let digest: [u8; 32] = Sha256::digest(fs::read(&injectd)?).into();
    let digest = digest.first_chunk().map_or(0, |begin| u64::from_be_bytes(*begin));
    let build = env::var_os("BUILD").unwrap_or_else(|| "unknown build".into());
    let version = first_line(&injectd, &["--version"]);
    let lines = [
        ("begun", Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string()),
        ("processor", machine::processor()?),
        ("memory", format!("{:.0} GiB", machine::memory_gib()?)),
        ("kernel", kernel.trim().to_owned()),
        ("load average before", machine::load_averages()?),
        ("commit", commit()),
        ("injectd", format!("{version}, sha256 {digest:016x}, {}", build.display())),
        ("h2load", first_line("h2load", &["--version"])),
        ("k6", first_line(k6(), &["version"])),
        ("rustc", first_line("rustc", &["--version"])),
        ("clients", "on the same cores as the servers; TLS 1.3 over the loopback".to_owned()),
    ];
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    let line = |(name, text): &(&str, String)| {
        let name = format!("{name}:");
        format!("{name:width$} {text}\n")
    };
    Ok(lines.iter().map(line).collect())
}

fn commit() -> String {
    let root = root().to_string_lossy();
    let git = |arguments: &[&str]| first_line("git", &[&["-C", &*root], arguments].concat());
    let changed = git(&[&["status", "--porcelain", "--"], &SOURCES[..]].concat());
    let head = git(&["rev-parse", "--short=12", "HEAD"]);
    head + if changed.is_empty() { "" } else { " and uncommitted changes" }
}

/// The first line that a command prints; `none` without the program.
fn first_line(program: impl AsRef<OsStr>, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text =
        output.map_or("none".into(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.lines().next().unwrap_or_default().to_owned()
}

// --- the results ---

fn summary(folder: &Path) -> Outcome<String> {
    let text_of = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let mut reports: Vec<(&str, Report)> = Vec::new();
    for (name, title) in PARTS {
        let text = text_of(&format!("{name}.json"));
        if !text.is_empty() {
            reports.push((title, serde_json::from_str(&text)?));
        }
    }
    let setup = text_of("setup.txt") + "\n" + &text_of("parts.txt");
    let mut text = format!(
        "# Load test\n\n```\n{}\n```\n\nTrust the ratios: times move with the machine, and clients run \
         on its cores.\n\n## Budgets\n\n| figure | result | baseline | budget | |\n|---|---|---|---|---|\n",
        setup.trim_end()
    );
    for budget in reports.iter().flat_map(|(_, report)| &report.budgets) {
        text += &budget.row();
    }
    text.push('\n');
    for (title, report) in &reports {
        // Writing to a String cannot fail.
        let _ = write!(text, "## {title}\n\n");
        text.extend(report.sections.iter().map(|table| table.markdown() + "\n"));
    }
    let is_measured = |title: &str| {
        reports.iter().any(|(it, report)| *it == title && !report.sections.is_empty())
    };
    let missing: Vec<_> =
        PARTS.iter().map(|&(_, title)| title).filter(|title| !is_measured(title)).collect();
    if !missing.is_empty() {
        let _ = writeln!(text, "Not measured: {}.", missing.join(", "));
    }
    Ok(text)
}
