//! Sets `INJECTD_COMMIT`, which `injectd version` prints, to the commit of this checkout.
//!
//! Cargo builds the package again when the commit changes, and for no other change of `.git`. The
//! variable stays unset without git and without a checkout, as in an unpacked archive or a package of a
//! registry. A variable of the environment wins.

use std::{
    env,
    io::{self, Write as _},
    path::Path,
    process::Command,
};

const VARIABLE: &str = "INJECTD_COMMIT";

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "cargo::rerun-if-changed=build.rs")?;
    writeln!(out, "cargo::rerun-if-env-changed={VARIABLE}")?;
    // The `.git` of a folder above may be that of another project.
    if env::var_os(VARIABLE).is_some() || !Path::new(".git").exists() {
        return Ok(());
    }
    let Some(commit) = git(&["rev-parse", "--short=7", "HEAD"]) else { return Ok(()) };
    for file in files_of_the_commit() {
        writeln!(out, "cargo::rerun-if-changed={file}")?;
    }
    writeln!(out, "cargo::rustc-env={VARIABLE}={commit}")
}

/// The files that change when the commit does. Cargo runs this again on every build for a file that
/// does not exist.
fn files_of_the_commit() -> Vec<String> {
    let existing = |name: &str| {
        let file = git(&["rev-parse", "--git-path", name])?;
        Path::new(&file).exists().then_some(file)
    };
    // It has a line for every commit that was checked out or made.
    if let Some(log) = existing("logs/HEAD") {
        return vec![log];
    }
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    let names = ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref());
    names.filter_map(existing).collect()
}

/// What git prints for the checkout in this folder.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(args)
        // A hook of git sets them, maybe for another folder.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
