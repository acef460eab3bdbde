//! A scenario in namespaces of its own: it uses no port of this machine, and leaves no mount or process.
//!
//! The test starts its own binary again, which runs the same test alone inside them.

use std::{
    env,
    ffi::OsStr,
    process::{Command, Output, Stdio},
};

use tokio::task::spawn_blocking;

use crate::{
    expect::{Outcome, expect, expect_contains, skipped},
    lab,
    scenario::{alone, beside, note, passed_over, within_limit},
};

/// Set for the process inside.
const INSIDE: &str = "E2E_ISOLATED";
/// A user of a container must be able to read its mounts, whatever the umask was.
const ENTER: &str = r#"ip link set lo up; umask 022; exec "$@""#;

/// Runs the scenario of a test, whose path in its crate this is, in namespaces of its own.
///
/// # Errors
///
/// Those of the scenario, and a path that is not the test's.
pub async fn isolated(test: &str, scenario: impl AsyncFnOnce() -> Outcome) -> Outcome {
    if is_inside() {
        return inside(scenario).await;
    }
    beside(enter(test)).await
}

/// As [`isolated`], while no other scenario runs: for those that keep the machine busy.
///
/// # Errors
///
/// As [`isolated`].
pub async fn isolated_alone(test: &str, scenario: impl AsyncFnOnce() -> Outcome) -> Outcome {
    if is_inside() {
        return inside(scenario).await;
    }
    alone(enter(test)).await
}

fn is_inside() -> bool {
    lab::variable(INSIDE).is_some()
}

async fn inside(scenario: impl AsyncFnOnce() -> Outcome) -> Outcome {
    passed_over(within_limit(Box::pin(scenario())).await)
}

/// As [`isolated_alone`], for a scenario that starts a cluster inside.
///
/// # Errors
///
/// As [`isolated`]; skips where no cluster can be built.
pub async fn isolated_with_lab(test: &str, scenario: impl AsyncFnOnce() -> Outcome) -> Outcome {
    if is_inside() {
        return inside(scenario).await;
    }
    alone(async {
        // Inside there is no network.
        spawn_blocking(lab::build_cluster).await??;
        enter(test).await
    })
    .await
}

async fn enter(test: &str) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return Err(skipped("it needs root, for namespaces of its own"));
    }
    let (test, binary) = (test.to_owned(), lab::binary()?);
    let run = spawn_blocking(move || run(&test, binary.as_os_str())).await??;
    for line in String::from_utf8_lossy(&run.stdout).lines() {
        note(line);
    }
    expect("the exit code inside the namespaces", Some(0), run.status.code())?;
    expect_contains("what ran", "test result: ok. 1 passed", &String::from_utf8_lossy(&run.stdout))
}

/// All of it ends with this thread, which waits.
fn run(test: &str, binary: &OsStr) -> Outcome<Output> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]);
    command.args(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]);
    command.args(["--mount-proc", "sh", "-eu", "-c", ENTER, "sh"]).arg(env::current_exe()?);
    command.args([test, "--exact", "--nocapture"]);
    command.env(INSIDE, "1").env("INJECTD", binary);
    // A cluster out there cannot be reached.
    command.env_remove("KUBECONFIG").env_remove("E2E_AUDIT_LOG");
    Ok(command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?)
}
