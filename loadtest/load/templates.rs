//! Reviews by sidecar templates beside the echo, which sends as many bytes as injectd.
//!
//! The template has ten expressions. Cold reviews are pods whose annotation has a value that no other has, so
//! that the template is evaluated for each.

use std::fs;

use injectd_harness::expect::Outcome;
use injectd_testkit::reviews::{of_many_containers, with_override};

use crate::{
    Run,
    beside::{self, Load, Reviews, SERIAL, rounds},
    paced::Asked,
    report::{Budget, Report},
    servers::injectd_for_templates,
};

const WARM_BUDGET: f64 = 2.0;
const COLD_BUDGET: f64 = 4.0;
/// Reviews per second of the comparison for which a template is evaluated: a third of what injectd evaluates on two
/// cores that it shares with the client, and more than an API server of that size creates pods.
// In a closed loop, the client is the bottleneck of the echo, which answers several requests for each wake-up; of
// injectd it is not, and each answer wakes the client. At one rate, both pay for that alike.
const STEADY: f64 = 3_000.0;

pub(crate) async fn run(run: &Run, report: &mut Report) -> Outcome {
    let folder = tempfile::tempdir()?;
    let [large, cold] = ["large", "cold"].map(|name| folder.path().join(name));
    fs::write(&large, of_many_containers())?;
    fs::write(&cold, with_override("agent.example.com/cpu", &format!("0.1{SERIAL}")))?;
    let ours = injectd_for_templates().await?;
    let mut all = Vec::new();
    let warm = Asked::typical();
    let large = Asked { review: large, serial: None };
    let cold = Asked { review: cold, serial: Some(SERIAL) };
    for (name, asked, load) in [
        ("warm", &warm, Load::Busy),
        ("large", &large, Load::Busy),
        ("cold", &cold, Load::Busy),
        ("cold, steady", &cold, Load::Steady(STEADY)),
    ] {
        all.push(rounds(run, &ours, Reviews { name, asked, load }).await?);
    }
    ours.stop().await?;
    let title = "Sidecar templates: CPU beside an echo that sends as many bytes";
    let note = format!(
        "One template with ten expressions. Medians of the rounds, each of the echo and of injectd. Warm: one pod \
         of 12 KB. Large: one pod of twenty containers. Cold: pods of 12 KB of which no two have the same \
         annotation. Steady: {STEADY} reviews per second for both; else connections that are always busy, where an \
         echo answers several requests for each wake-up."
    );
    report.table(beside::table(title, &all)?.note(note));
    for (what, name, budget) in [
        ("templates: CPU per injected 12 KB pod, memory warm ÷ echo", "warm", WARM_BUDGET),
        (
            "templates: CPU per 12 KB pod of which no two are alike ÷ echo, at one rate",
            "cold, steady",
            COLD_BUDGET,
        ),
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
