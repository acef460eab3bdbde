//! The load test. `loadtest/load.sh` builds injectd and its clients, and runs the parts one by one.
//!
//! A part prints its tables and budgets; with `--out` it also writes them, and raw data, into the folder
//! of the run. It fails if a request does not get the expected answer, and not if a budget is missed.

#![expect(clippy::disallowed_types, reason = "reviews are trees here")]

use std::{fs, path::PathBuf, process::ExitCode};

use clap::{Args, Parser};
use injectd_harness::expect::{Outcome, about, failed};
use tokio::signal::unix::{SignalKind, signal};

use report::{Report, say};

mod apiserver;
mod beside;
mod burst;
mod call;
mod client;
mod cold;
mod curve;
mod ghz;
mod h2load;
mod istio;
mod k6;
mod machine;
mod mixed;
mod paced;
mod parts;
mod report;
mod reviews;
mod rounds;
mod servers;
mod soak;
mod summary;
mod templates;
mod train;

/// Measure injectd under load
#[derive(Debug, Parser)]
enum Command {
    /// CPU per review and rate, beside the echo's
    Rounds {
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        options: rounds::Options,
    },
    /// Latency against rate, injectd and the echo in turn
    Curve(Run),
    /// A mix of reviews by k6, each answer checked
    Mixed(Run),
    /// New connections beside kept ones, and a thousand at once
    Burst(Run),
    /// The first review after a start, a reload and a new set of overrides; overrides as an attack
    Cold(Run),
    /// Istio's injector: beside the echo, from memory, long lists, nodes, overload
    Istio(Run),
    /// Sidecar templates beside the echo
    Templates(Run),
    /// CPU of a gRPC call beside a review of the same object (needs ghz in $GHZ, or Go to build it)
    Ghz {
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        options: ghz::Options,
    },
    /// Memory over a million reviews
    Soak(Run),
    /// CPU of a pod through an API server: with injectd, with a policy, with neither
    Apiserver {
        #[command(flatten)]
        run: Run,
        #[command(flatten)]
        options: apiserver::Options,
    },
    /// Write the setup or the results of a run
    Summary(summary::Options),
    /// Work of all kinds, for a profile of injectd
    Train,
    /// CPU of a request by part of the program, beside the echo's
    Parts {
        /// Length of a load
        #[arg(value_name = "SECONDS", default_value_t = 5)]
        seconds: u32,
    },
    /// Write the reviews of the mixes and what their answers must contain, for k6
    Reviews {
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        /// Those for Istio and for sidecar templates, too
        #[arg(long)]
        meshes: bool,
    },
    /// Print the object of a review as gRPC requests, for ghz
    Requests {
        /// File of the `AdmissionReview`
        #[arg(value_name = "REVIEW")]
        review: PathBuf,
        /// One request, or the requests of a stream
        #[arg(value_name = "N")]
        count: u32,
    },
}

/// The arguments of each part.
#[derive(Debug, Args)]
struct Run {
    /// Folder for the figures
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Take seconds, not minutes
    #[arg(long)]
    smoke: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Rounds { run, options } => {
            part("rounds", &run, async |run, report| rounds::run(&options, run, report).await).await
        }
        Command::Curve(run) => part("curve", &run, curve::run).await,
        Command::Mixed(run) => part("mixed", &run, mixed::run).await,
        Command::Burst(run) => part("burst", &run, burst::run).await,
        Command::Cold(run) => part("cold", &run, cold::run).await,
        Command::Istio(run) => part("istio", &run, istio::run).await,
        Command::Templates(run) => part("templates", &run, templates::run).await,
        Command::Ghz { run, options } => {
            part("ghz", &run, async |run, report| ghz::run(&options, run, report).await).await
        }
        Command::Soak(run) => part("soak", &run, soak::run).await,
        Command::Apiserver { run, options } => {
            let measure =
                async |run: &Run, report: &mut Report| apiserver::run(&options, run, report).await;
            part("apiserver", &run, measure).await
        }
        Command::Summary(options) => summary::write(&options),
        Command::Train => unless_stopped(train::train()).await,
        Command::Parts { seconds } => unless_stopped(parts::run(seconds)).await,
        Command::Reviews { folder, meshes } => reviews::write_mixes(&folder, meshes),
        Command::Requests { review, count } => {
            call::data(&review, count).map(|data| say(&data.to_string()))
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("FAILED {why}"));
            ExitCode::FAILURE
        }
    }
}

/// Measures, and writes the report of what was measured, also after a failure or a signal.
async fn part(
    name: &str,
    run: &Run,
    measure: impl AsyncFnOnce(&Run, &mut Report) -> Outcome,
) -> Outcome {
    if let Some(out) = &run.out {
        fs::create_dir_all(out)?;
    }
    let mut report = Report::new(name);
    let outcome = unless_stopped(measure(run, &mut report)).await;
    if let Some(out) = &run.out {
        report.write(out)?;
    }
    about(name, outcome)
}

/// A signal ends what was started, as a failure does.
async fn unless_stopped(work: impl Future<Output = Outcome>) -> Outcome {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        outcome = Box::pin(work) => outcome,
        _ = interrupt.recv() => Err(failed("interrupted")),
        _ = terminate.recv() => Err(failed("terminated")),
    }
}
