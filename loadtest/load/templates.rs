//! Reviews by sidecar templates beside the echo, which sends as many bytes as injectd.
//!
//! The template has ten expressions. Cold reviews are pods whose annotation has a value that no other has, so
//! that the template is evaluated for each.

use std::fs;

use injectd_harness::expect::Outcome;
use injectd_testkit::reviews::{of_many_containers, with_override};

use crate::{
    Run,
    beside::{self, SERIAL, rounds},
    paced::Asked,
    report::{Budget, Report},
    servers::injectd_for_templates,
};

const WARM_BUDGET: f64 = 2.0;
const COLD_BUDGET: f64 = 4.0;

pub(crate) async fn run(run: &Run, report: &mut Report) -> Outcome {
    let folder = tempfile::tempdir()?;
    let [large, cold] = ["large", "cold"].map(|name| folder.path().join(name));
    fs::write(&large, of_many_containers())?;
    fs::write(&cold, with_override("agent.example.com/cpu", &format!("0.1{SERIAL}")))?;
    let ours = injectd_for_templates().await?;
    let mut all = Vec::new();
    for (name, asked) in [
        ("warm", Asked::typical()),
        ("large", Asked { review: large, serial: None }),
        ("cold", Asked { review: cold, serial: Some(SERIAL) }),
    ] {
        all.push(rounds(run, &ours, name, &asked).await?);
    }
    ours.stop().await?;
    let title = "Sidecar templates: CPU beside an echo that sends as many bytes";
    let note = "One template with ten expressions. Medians of the rounds, each of the echo and of injectd. \
                Warm: one pod of 12 KB. Large: one pod of twenty containers. Cold: pods of 12 KB of which no two \
                have the same annotation.";
    report.table(beside::table(title, &all)?.note(note));
    for (what, name, budget) in [
        ("templates: CPU per injected 12 KB pod, memory warm ÷ echo", "warm", WARM_BUDGET),
        ("templates: CPU per 12 KB pod of which no two are alike ÷ echo", "cold", COLD_BUDGET),
    ] {
        if let Some(rounds) = all.iter().find(|rounds| rounds.name == name) {
            report.budget(Budget::most(what, rounds.ratio()?, budget).baseline("echo = 1"));
        }
    }
    match &run.out {
        Some(out) => beside::write(&all, &out.join("templates.csv")),
        None => Ok(()),
    }
}
