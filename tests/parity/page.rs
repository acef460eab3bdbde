//! `docs/compatibility.md`: its releases are those of the code, its counts those of the recordings, and its
//! releases of Kubernetes those that the end-to-end tests run.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use injectd_core::linkerd::release::Release;
use injectd_istio::release::Release as IstioRelease;

use super::{corpus::read_lines, print_line};

const PAGE: &str = include_str!("../../docs/compatibility.md");
const README: &str = include_str!("../../README.md");
/// The folder with the recordings of Istio's main branch.
const MAIN_OF_ISTIO: &str = "master";

/// The section of the page with this heading.
fn section(heading: &str) -> &'static str {
    let sections = PAGE.split("\n## ").find_map(|section| section.strip_prefix(heading));
    sections.unwrap_or_else(|| panic!("no section {heading}"))
}

/// The cells of the rows of the first table in a section.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let lines = section(heading).lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// The number at the start of a cell; 0 if there is none.
fn count(cell: &str) -> usize {
    let cell = cell.trim_start_matches('*');
    let end = cell.find(|c: char| !c.is_ascii_digit()).unwrap_or(cell.len());
    cell[..end].parse().unwrap_or(0)
}

/// As the pages write a number.
fn with_commas(number: usize) -> String {
    if number < 1000 {
        number.to_string()
    } else {
        format!("{},{:03}", number / 1000, number % 1000)
    }
}

fn corpus() -> Option<PathBuf> {
    let corpus = env::var_os("INJECTD_CORPUS").filter(|path| !path.is_empty()).map(PathBuf::from);
    if corpus.is_none() {
        print_line("counts of the page: skipped, INJECTD_CORPUS is not set");
    }
    corpus
}

/// The recorded answers in a folder; 0 without it.
fn recorded(folder: &Path) -> usize {
    if folder.exists() {
        read_lines(folder).expect("the recordings must be readable").lines().count()
    } else {
        0
    }
}

#[test]
fn the_page_has_every_release_of_linkerd_with_its_edge() {
    let rows = rows("Linkerd");
    for row in &rows {
        let edge = row[1].split(',').next().unwrap_or_default();
        let expected = match row[0] {
            "edge" => Release::NEWEST,
            "2.14" => Release::stable_2_14(),
            _ => Release::parse(&format!("edge-{edge}")).expect("a release"),
        };
        let found =
            if row[0] == "edge" { format!("edge-{edge}") } else { format!("stable-{}", row[0]) };
        assert_eq!(Release::parse(&found), Some(expected), "{row:?}");
    }
    for minor in 0..100 {
        let is_known = Release::parse(&format!("stable-2.{minor}")).is_some();
        let is_listed = rows.iter().any(|row| row[0] == format!("2.{minor}"));
        assert_eq!(is_listed, is_known, "2.{minor}");
    }
    let range = format!("(`stable-2.14.*`, `edge-23.9.2`) to {}", Release::NEWEST);
    assert!(section("Linkerd").contains(&range), "{range}");
    assert!(README.contains(&Release::NEWEST.to_string()));
}

#[test]
fn the_page_counts_the_recordings_of_linkerd() {
    let Some(corpus) = corpus() else { return };
    let mut sum = 0;
    for row in rows("Linkerd") {
        let folder = match row[0] {
            "2.14" => "2.14.10",
            "edge" => "main",
            release => release,
        };
        assert_eq!(count(row[2]), recorded(&corpus.join("linkerd").join(folder)), "{row:?}");
        sum += count(row[2]);
        let manifests = corpus.join(format!("manifests/proxy-injector-{}.yaml", row[0]));
        assert_eq!(row[3] == "tested", manifests.exists(), "{row:?}");
    }
    assert!(README.contains(&format!("{} recorded answers", with_commas(sum))), "{sum}");
}

#[test]
fn the_page_has_the_releases_of_istio_and_counts_their_recordings() {
    let (oldest, newest) = (IstioRelease::OLDEST.minor(), IstioRelease::NEWEST.minor());
    let range = format!("from 1.{oldest} to 1.{newest}");
    assert!(section("Istio").contains(&range), "{range}");
    assert!(README.contains(&format!("1.{oldest} to 1.{newest}")), "{range}");
    let rows = rows("Istio");
    for row in &rows {
        let release = IstioRelease::parse(row[0].split([' ', '-']).next().unwrap_or_default());
        assert!(
            release.is_some_and(|it| it.minor() >= oldest && it.minor() <= newest + 1),
            "{row:?}"
        );
    }
    let Some(corpus) = corpus() else { return };
    let folder = |name: &str| corpus.join("istio").join(name);
    let folder_of =
        |row: &[&str]| if row[0].contains("-dev") { MAIN_OF_ISTIO } else { row[0] }.to_owned();
    for row in &rows {
        assert_eq!(count(row[1]), recorded(&folder(&folder_of(row))), "{row:?}");
    }
    let sum: usize = rows.iter().map(|row| count(row[1])).sum();
    assert!(section("Istio").contains(&format!("Of the {}", with_commas(sum))), "{sum}");
    for entry in fs::read_dir(folder("")).expect("the recordings") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let is_listed = rows.iter().any(|row| folder_of(row) == name);
        assert!(is_listed || !has_recordings(&folder(&name)), "{name} is not on the page");
    }
}

fn has_recordings(folder: &Path) -> bool {
    folder.join("cases.jsonl.gz").exists()
}

#[test]
fn the_page_has_the_releases_of_kubernetes_that_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/lab/releases");
    let names = fs::read_dir(folder).expect("the releases").filter_map(|entry| {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        name.strip_suffix(".mod")?.strip_prefix("1.")?.parse::<u16>().ok()
    });
    let mut minors: Vec<_> = names.collect();
    minors.sort_unstable();
    let [oldest, between @ .., newest] = &minors[..] else { panic!("{minors:?}") };
    let tested = format!(
        "the API server of Kubernetes 1.{newest} in all end-to-end tests, that of 1.{oldest} in some"
    );
    assert!(section("Kubernetes").contains(&tested), "{tested}");
    let between: Vec<_> = between.iter().map(|minor| format!("1.{minor}")).collect();
    let others = format!("\n- {}: ", between.join(", "));
    assert!(section("Kubernetes").contains(&others), "{others}");
    let readme = format!("Kubernetes 1.{newest}, some also against 1.{oldest}");
    assert!(README.contains(&readme), "{readme}");
}

#[test]
fn the_page_has_the_version_of_rust() {
    let version = format!("Rust {} ", env!("CARGO_PKG_RUST_VERSION"));
    assert!(section("Platforms").contains(&version), "{version}");
}
