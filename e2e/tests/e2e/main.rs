//! End-to-end scenarios: injectd and a real Kubernetes API server. `run.sh` starts them.

#![expect(clippy::disallowed_types, reason = "Kubernetes objects of any kind are trees here")]

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::Parser;
use injectd_harness::{
    api::Api,
    expect::{NotPassed, Outcome, failed, skipped},
    lab::{Lab, Local},
    run::{Run, print},
};

mod deploy;

const SUITES: [&str; 1] = [deploy::NAME];

/// End-to-end scenarios of injectd.
#[derive(Parser)]
struct Arguments {
    /// SUITE, or SUITE/TEXT for the scenarios of a suite whose names contain a text; a scenario
    /// may need those before it [default: all]
    filters: Vec<String>,
    /// Cluster
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Binary under test
    #[arg(long, env = "INJECTD", value_name = "FILE")]
    injectd: Option<PathBuf>,
    /// Audit log of an API server on this machine; without, scenarios that need one are skipped
    #[arg(long, env = "E2E_AUDIT_LOG", value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// Folder with recordings and manifests of real injectors
    #[arg(long, env = "INJECTD_CORPUS", value_name = "FOLDER")]
    corpus: Option<OsString>,
    /// Run scenarios at full length; some minutes more
    #[arg(long)]
    long: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match start(arguments) {
        Ok(code) => code,
        Err(NotPassed::Skipped(reason)) => {
            print(&format!("skipped all: {reason}"));
            ExitCode::SUCCESS
        }
        Err(NotPassed::Failed(why)) => {
            print(&format!("FAILED: {why}"));
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: Arguments) -> Outcome<ExitCode> {
    tokio::runtime::Runtime::new()?.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> Outcome<ExitCode> {
    let Arguments { filters, kubeconfig, injectd, audit_log, corpus, long } = arguments;
    let hint = "e2e/run.sh starts a cluster and sets it";
    let kubeconfig = kubeconfig.ok_or_else(|| skipped(format!("no $KUBECONFIG: {hint}")))?;
    let binary = injectd.ok_or_else(|| skipped(format!("no $INJECTD: {hint}")))?;
    for filter in &filters {
        if !SUITES.iter().any(|suite| filter.split('/').next() == Some(suite)) {
            return Err(failed(format!("no suite {filter:?}; there are: {}", SUITES.join(", "))));
        }
    }
    let local = audit_log.map(|log| Local::beside(&kubeconfig, log)).transpose()?;
    let api = Api::from_file(&kubeconfig).await?;
    let corpus = corpus.filter(|it| !it.is_empty()).map(PathBuf::from);
    let lab = Lab { binary, api, kubeconfig, corpus, local, is_long: long };
    let mut run = Run::new(&filters)?;
    print(&format!("Kubernetes {} at {}", lab.api.version().await?, lab.api.server));
    let outcome = deploy::run(&mut run, &lab).await;
    run.record(deploy::NAME, outcome);
    Ok(run.end())
}
