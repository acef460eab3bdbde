//! The files of a case that say what is expected.

use std::{fs, io, path::Path};

use injectd_command::{CommandError, input};
use injectd_yaml::{Limits, Options};

use super::{
    case::{Found, Outcome},
    meaning,
};

const POD: &str = "expected.yaml";
const DENIED: &str = "denied.txt";
const SKIPPED: &str = "skipped.txt";
const WARNINGS: &str = "warnings.txt";
/// Exactly one of them is there.
const RESULTS: [&str; 3] = [POD, DENIED, SKIPPED];

impl Found {
    /// The file for it, and its text.
    fn file(&self) -> (&'static str, String) {
        match self {
            Self::Changed(pod) => (POD, injectd_yaml::write(&meaning::without_hashes(pod))),
            Self::Denied(text) => (DENIED, text.clone()),
            Self::Skipped(text) => (SKIPPED, text.clone()),
        }
    }
}

/// What is not as the files of the case say.
pub(super) fn differences(folder: &Path, outcome: &Outcome) -> Result<Vec<String>, CommandError> {
    let mut problems = of_result(folder, &outcome.result)?;
    let warnings = read(folder, WARNINGS)?.unwrap_or_default();
    problems.extend(of_text(WARNINGS, &warnings, &outcome.warnings));
    Ok(problems)
}

fn of_result(folder: &Path, found: &Found) -> Result<Vec<String>, CommandError> {
    let there: Vec<_> = RESULTS.into_iter().filter(|name| folder.join(name).exists()).collect();
    let (name, text) = found.file();
    let what = match found {
        Found::Changed(_) => "a changed pod".to_owned(),
        Found::Denied(text) => format!("denied: {}", text.trim_end()),
        Found::Skipped(text) => format!("not changed: {}", text.trim_end().replace('\n', ", ")),
    };
    let problem = match there[..] {
        [] => format!("found {what}; expected one of {}; --update writes it", RESULTS.join(", ")),
        [expected] if expected != name => format!("expected {expected}, found {what}"),
        [_] => {
            let expected = read(folder, name)?.unwrap_or_default();
            let Found::Changed(pod) = found else {
                return Ok(of_text(name, &expected, &text).into_iter().collect());
            };
            let options = Options { limits: Limits::FILES, ..Options::default() };
            let expected = injectd_yaml::parse(&expected, options).map_err(|error| {
                CommandError::failed(folder.join(name).display().to_string(), error)
            })?;
            return Ok(meaning::differences(&expected, pod));
        }
        _ => format!("expected one of {}, found several of them", RESULTS.join(", ")),
    };
    Ok(vec![problem])
}

/// Compares lines.
fn of_text(name: &str, expected: &str, found: &str) -> Option<String> {
    let lines =
        |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    let (expected, found) = (lines(expected.trim_end()), lines(found.trim_end()));
    let shown = |lines: &[String]| match lines {
        [] => "nothing".to_owned(),
        lines => format!("\"{}\"", lines.join(" / ")),
    };
    (expected != found)
        .then(|| format!("{name}: expected {}, found {}", shown(&expected), shown(&found)))
}

/// A file of the case, if it is there.
fn read(folder: &Path, name: &str) -> Result<Option<String>, CommandError> {
    let path = folder.join(name);
    if path.exists() { input::read_text(&path).map(Some) } else { Ok(None) }
}

/// Writes what was found as what is expected. A file that agrees stays as it is.
pub(super) fn write(folder: &Path, outcome: &Outcome) -> Result<(), CommandError> {
    if !of_result(folder, &outcome.result)?.is_empty() {
        let (name, text) = outcome.result.file();
        // A case has one result: the file of another one would make it fail from now on.
        for other in RESULTS.into_iter().filter(|other| *other != name) {
            replace(&folder.join(other), "")?;
        }
        replace(&folder.join(name), &text)?;
    }
    replace(&folder.join(WARNINGS), &outcome.warnings)
}

/// Writes a file; one without text is removed.
fn replace(path: &Path, text: &str) -> Result<(), CommandError> {
    let written = if text.is_empty() {
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    } else {
        fs::write(path, text)
    };
    written.map_err(|error| CommandError::failed(format!("cannot write {}", path.display()), error))
}
