//! Parity with the recorded answers of real injectors (`$INJECTD_CORPUS`): compares a subject's
//! answers with the recorded ones.
//!
//! `corpus` reads recordings, `subject` is the interface of subjects, `differences` has one
//! function for each row of `docs/differences.md`, `run` checks case by case, and `report` counts.
//! No rule depends on the id of a case.

#![expect(
    clippy::disallowed_types,
    reason = "the reference and the recordings are trees, slow and obvious"
)]

use std::io::Write as _;
use std::path::PathBuf;

mod compare;
mod core_subject;
mod corpus;
mod differences;
mod explained;
mod istio;
mod page;
mod reference_subject;
mod report;
mod run;
#[path = "../grpc/server.rs"]
mod server;
mod servers;
mod sidecars;
mod subject;

use core_subject::CoreSubject;
use corpus::Cases;
use reference_subject::ReferenceSubject;
use subject::Subject;

/// Prints a line to stdout. The test harness captures `println!`, but not this.
fn print_line(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout must be writable");
}

/// Runs all recorded cases on a subject, prints the counts, and fails if an answer differs without
/// an explanation. Skips the cases, with a message, if there is no corpus.
fn must_answer_as_recorded(name: &str, subject: &mut dyn Subject) {
    let Some(corpora) = std::env::var_os("INJECTD_CORPUS").filter(|path| !path.is_empty()) else {
        print_line(&format!("{name}: skipped, INJECTD_CORPUS is not set"));
        return;
    };
    let directory = PathBuf::from(corpora).join("linkerd");
    let releases = corpus::load_all(&directory, Cases::Quick).expect("the corpus must be readable");
    let counts: Vec<_> = releases.iter().map(|release| run::run(release, subject)).collect();
    let mut text = String::new();
    report::write(&mut text, &counts, 20).expect("writing to a string must succeed");
    print_line(&format!("{name}\n{text}"));
    assert_eq!(report::total(&counts).different, 0, "{name}: see the report above");
}

#[test]
fn core_answers_as_recorded() {
    must_answer_as_recorded("core", &mut CoreSubject::default());
}

/// Recordings of the project's own: of a release that the corpus does not have.
#[test]
fn core_answers_as_the_own_recordings_say() {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parity/recorded"));
    let releases =
        corpus::load_all(&directory, Cases::All).expect("the recordings must be readable");
    for release in &releases {
        let counts = run::run(release, &mut CoreSubject::default());
        assert!(counts.different.is_empty(), "{}: {:#?}", release.name, counts.different);
        assert!(counts.rows.contains_key("reverted-edge"), "{}: {:?}", release.name, counts.rows);
    }
    assert!(!releases.is_empty(), "{} is empty", directory.display());
}

#[test]
fn reference_answers_as_recorded() {
    must_answer_as_recorded("reference", &mut ReferenceSubject);
}

#[test]
fn istio_answers_as_recorded() {
    istio::must_answer_as_recorded();
}

#[test]
fn istio_memory_agrees_with_evaluation() {
    istio::must_remember_nothing_wrong();
}

#[test]
fn istio_configurations_start_as_recorded() {
    istio::must_start_as_recorded();
}

#[test]
fn sidecars_answer_as_recorded() {
    sidecars::must_answer_as_recorded();
}

#[test]
fn both_servers_give_the_same_patch() {
    let Some(corpora) = std::env::var_os("INJECTD_CORPUS").filter(|path| !path.is_empty()) else {
        return print_line("both servers: skipped, INJECTD_CORPUS is not set");
    };
    let directory = PathBuf::from(corpora).join("linkerd");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime must start");
    let mut asked = 0;
    for corpus in corpus::load_all(&directory, Cases::Quick).expect("the corpus must be readable") {
        for case in &corpus.cases {
            let config = &corpus.configs[&case.config];
            let Ok(injector) = core_subject::injector(corpus.release, config, case) else {
                continue;
            };
            asked += usize::from(runtime.block_on(servers::must_agree(injector.into(), case)));
        }
    }
    print_line(&format!("both servers: {asked} reviews, each the same patch"));
    assert!(asked > 0, "no review of the corpus has an object");
}

#[test]
fn every_difference_is_documented_and_every_row_has_a_function() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/differences.md");
    let text = std::fs::read_to_string(path).expect("docs/differences.md must be readable");
    let linkerd: Vec<_> = differences::ROWS.iter().map(|(name, _)| *name).collect();
    let istio: Vec<_> = istio::ROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(documented_rows(&text, "Linkerd"), linkerd);
    assert_eq!(documented_rows(&text, "Istio"), istio);
    let sidecars: Vec<_> = sidecars::ROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(documented_rows(&text, "Sidecars"), sidecars);
}

/// The names of the items that have a function, in the section of a mesh.
fn documented_rows<'t>(text: &'t str, mesh: &str) -> Vec<&'t str> {
    let mut sections = text.split("\n## ");
    let section = sections.find_map(|section| section.strip_prefix(mesh)?.strip_prefix('\n'));
    let items = section.unwrap_or_default().split("\n- ");
    let has_function = |item: &&str| item.contains("\n  - function: `");
    items.filter(has_function).filter_map(|item| item.lines().next()).collect()
}

#[test]
fn recorded_pods_of_linkerd_are_explained_as_before() {
    explained::recorded_pods_of_linkerd();
}

#[test]
fn recorded_pods_of_istio_are_explained_as_before() {
    explained::recorded_pods_of_istio();
}

#[test]
fn generated_pods_are_explained_as_before() {
    explained::generated_pods();
}
