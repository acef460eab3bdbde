//! `injectd template test`: sidecar templates on pods, compared with what is expected.

use std::{
    fs, io,
    path::{Path, PathBuf},
    slice,
};

use injectd_command::{
    CommandError, counted,
    junit::{self, Failure},
    print::{Printer, print_line},
};
use injectd_templates::{Template, ceiling::Ceiling};

use injectd_command::templates::{self, Written};

use crate::sidecars::CeilingArgs;

mod case;
mod expected;
mod meaning;

use case::Case;

/// The file with the templates, and the folder with the cases.
const TEMPLATE: &str = "template.yaml";
const CASES: &str = "cases";

/// Test sidecar templates on pods
///
/// Each DIR has a file template.yaml and folders cases/NAME with pod.yaml and one of expected.yaml, denied.txt
/// and skipped.txt. Beside them may be objects.yaml with the Namespace, the ServiceAccount and the owners of the
/// pod, and warnings.txt. Each pod is injected, and the result once more, which must change nothing. It needs no
/// cluster.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folders with template.yaml and cases
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    ceiling: CeilingArgs,
    /// Write the expected files of the cases that differ from them or have none
    #[arg(long)]
    update: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A line for each case, and one for each difference
    Text,
    /// XML for CI systems
    Junit,
}

/// What was found in a case.
struct Tested {
    folder: PathBuf,
    path: PathBuf,
    is_updated: bool,
    problems: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let mut all = Vec::new();
    for folder in &args.folders {
        let templates = templates(folder, args.ceiling.level())?;
        for path in cases(folder)? {
            let tested = args.case(folder, path, &templates)?;
            if args.output == Format::Text {
                tested.print().map_err(CommandError::output)?;
            }
            all.push(tested);
        }
    }
    if all.is_empty() {
        let text = format!("no folder has cases: expected {CASES}/NAME/{}", case::POD);
        return Err(CommandError::Incomplete(text));
    }
    let failed = all.iter().filter(|tested| !tested.problems.is_empty()).count();
    let (cases, passed) = (counted(all.len(), "case"), all.len() - failed);
    let mut out = Printer::stdout();
    let printed = match args.output {
        Format::Text => out.line(&format!("{cases}, {passed} passed, {failed} failed")),
        Format::Junit => {
            let cases: Vec<_> = all.iter().map(Tested::case).collect();
            junit::write(&mut out, "injectd template test", &cases)
        }
    };
    printed.map_err(CommandError::output)?;
    if failed == 0 {
        return Ok(());
    }
    Err(CommandError::Findings(format!("{failed} of {cases} failed")))
}

impl Args {
    fn case(
        &self,
        folder: &Path,
        path: PathBuf,
        templates: &[Template],
    ) -> Result<Tested, CommandError> {
        let case = Case::read(&path, templates)?;
        let outcome = case.outcome(templates);
        let mut problems = expected::differences(&path, &outcome)?;
        let is_updated = self.update && !problems.is_empty();
        if is_updated {
            expected::write(&path, &outcome)?;
            problems.clear();
        }
        problems.extend(outcome.broken);
        Ok(Tested { folder: folder.to_owned(), path, is_updated, problems })
    }
}

impl Tested {
    fn print(&self) -> io::Result<()> {
        let result = match (self.problems.is_empty(), self.is_updated) {
            (true, false) => "passed",
            (true, true) => "updated",
            (false, _) => "failed",
        };
        let mut out = Printer::stdout();
        out.line(&format!("{}: {result}", self.path.display()))?;
        self.problems.iter().try_for_each(|problem| out.line(&format!("  {problem}")))
    }

    /// For CI systems.
    fn case(&self) -> junit::Case {
        let failure = self.problems.first().map(|first| {
            let (message, text) = (first.clone(), self.problems.join("; "));
            Failure { kind: "difference", message, text }
        });
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        junit::Case { class: self.folder.display().to_string(), name, failure }
    }
}

/// The templates of a folder.
fn templates(folder: &Path, ceiling: Ceiling) -> Result<Vec<Template>, CommandError> {
    let path = folder.join(TEMPLATE);
    let name = path.display();
    let written = templates::all(slice::from_ref(&path), ceiling)?;
    if written.is_empty() {
        let text = format!("{name} has no SidecarTemplate and no ClusterSidecarTemplate");
        return Err(CommandError::Incomplete(text));
    }
    let problems: Vec<_> = written.iter().flat_map(Written::problem_lines).collect();
    for problem in &problems {
        print_line(problem);
    }
    if !problems.is_empty() {
        let problems = counted(problems.len(), "problem");
        return Err(CommandError::Incomplete(format!("{name} has {problems}")));
    }
    Ok(written.into_iter().filter_map(|template| template.template).collect())
}

/// The folders of the cases, by name.
fn cases(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let cases = folder.join(CASES);
    let entries = match fs::read_dir(&cases) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.and_then(Iterator::collect::<io::Result<Vec<_>>>),
    };
    let entries = entries
        .map_err(|error| CommandError::failed(format!("cannot read {}", cases.display()), error))?;
    let is_hidden = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    let entries = entries.iter().filter(|entry| !is_hidden(entry));
    let mut paths: Vec<_> = entries.map(fs::DirEntry::path).filter(|path| path.is_dir()).collect();
    // File systems have no order, and the report of two runs must be the same.
    paths.sort();
    Ok(paths)
}
