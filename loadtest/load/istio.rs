//! Reviews by Istio's injector beside the echo.
//!
//! The echo sends as many bytes as injectd. Cold reviews are pods whose annotation has a value that no
//! other has, so that the templates are evaluated for each. `memory` measures the share that is answered
//! from memory; `limits` long lists and nodes; `overload` more reviews than a server can answer. With
//! `$INJECTD_CORPUS`, the configuration is that of a real Istio.

use std::fs;

use injectd_harness::{expect::Outcome, istio_files::RELEASE, lab::corpus};
use injectd_testkit::reviews::{of_many_containers, with_override};
use tempfile::TempDir;

use crate::{
    Run,
    beside::{self, Load, Reviews, Rounds, SERIAL, rounds},
    paced::Asked,
    report::{Budget, Report},
    servers::{NO_FLAGS, injectd_for_istio},
};

mod limits;
mod memory;
mod overload;

const CPU_BUDGET: f64 = 4.0;
const CPU_AIM: f64 = 2.5;
const COLD_BUDGET: f64 = 25.0;
const LARGE_BUDGET: f64 = 8.0;

/// What the servers are asked, in files.
struct Pods {
    /// One pod of 12 KB.
    warm: Asked,
    /// One pod of twenty containers.
    large: Asked,
    /// Pods of 12 KB of which no two are alike.
    cold: Asked,
    _folder: TempDir,
}

pub(crate) async fn run(run: &Run, report: &mut Report) -> Outcome {
    let pods = Pods::new()?;
    beside_the_echo(run, report, &pods).await?;
    memory::share(run, report).await?;
    limits::variables(run, report).await?;
    limits::nodes(run, report, &pods).await?;
    overload::run(run, report, &pods).await
}

impl Pods {
    fn new() -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let [large, cold] = ["large", "cold"].map(|name| folder.path().join(name));
        fs::write(&large, of_many_containers())?;
        fs::write(&cold, with_override("sidecar.istio.io/proxyCPU", &format!("{SERIAL}m")))?;
        Ok(Self {
            warm: Asked::typical(),
            large: Asked { review: large, serial: None },
            cold: Asked { review: cold, serial: Some(SERIAL) },
            _folder: folder,
        })
    }
}

async fn beside_the_echo(run: &Run, report: &mut Report, pods: &Pods) -> Outcome {
    let ours = injectd_for_istio(&NO_FLAGS).await?;
    let mut all = Vec::new();
    for (name, asked) in [("warm", &pods.warm), ("large", &pods.large), ("cold", &pods.cold)] {
        all.push(rounds(run, &ours, Reviews { name, asked, load: Load::Busy }).await?);
    }
    ours.stop().await?;
    let note = format!(
        "Configuration: {}. Medians of the rounds, each of the echo and of injectd. Warm: one pod of \
         12 KB. Large: one pod of twenty containers. Cold: pods of 12 KB of which no two have the same \
         annotation.",
        configuration()
    );
    let title = "Istio: CPU beside an echo that sends as many bytes";
    report.table(beside::table(title, &all)?.note(note));
    add_budgets(report, &all)?;
    let Some(out) = &run.out else { return Ok(()) };
    beside::write(&all, &out.join("istio.csv"))
}

fn add_budgets(report: &mut Report, all: &[Rounds]) -> Outcome {
    let of_echo = format!("echo = 1; {}", configuration());
    for (what, name, budget) in [
        ("Istio: CPU per injected 12 KB pod, memory warm ÷ echo", "warm", CPU_BUDGET),
        ("the same, aim", "warm", CPU_AIM),
        ("Istio: CPU per 12 KB pod of which no two are alike ÷ echo", "cold", COLD_BUDGET),
        ("Istio: CPU per pod of 68 KB and 20 containers ÷ echo", "large", LARGE_BUDGET),
    ] {
        if let Some(rounds) = all.iter().find(|rounds| rounds.name == name) {
            report.budget(Budget::most(what, rounds.ratio()?, budget).baseline(&of_echo));
        }
    }
    Ok(())
}

fn configuration() -> String {
    match corpus() {
        Ok(_) => format!("Istio {RELEASE}"),
        Err(_) => "small ($INJECTD_CORPUS is not set)".to_owned(),
    }
}
