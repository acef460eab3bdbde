//! Input of commands: files, folders and stdin.

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use super::CommandError;

/// The name that means stdin.
const STDIN: &str = "-";

/// What a file is called in messages.
pub(super) fn name(path: &Path) -> String {
    if path == Path::new(STDIN) { "stdin".to_owned() } else { path.display().to_string() }
}

/// Reads a file to its end; `-` is stdin.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    let failed = |error| CommandError::failed(format!("cannot read {}", name(path)), error);
    if path == Path::new(STDIN) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
        return Ok(bytes);
    }
    fs::read(path).map_err(failed)
}

/// Reads a file of text.
pub(super) fn read_text(path: &Path) -> Result<String, CommandError> {
    String::from_utf8(read(path)?)
        .map_err(|error| CommandError::failed(format!("{} is not UTF-8", name(path)), error))
}

/// Opens a file for reading piece by piece; `-` is stdin.
pub(super) fn open(path: &Path) -> Result<Box<dyn io::BufRead>, CommandError> {
    if path == Path::new(STDIN) {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = fs::File::open(path)
        .map_err(|error| CommandError::failed(format!("cannot read {}", name(path)), error))?;
    Ok(Box::new(io::BufReader::with_capacity(64 << 10, file)))
}

/// The given paths, folders replaced by the YAML and JSON files in them, sorted; stdin if none.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    if paths.is_empty() {
        return Ok(vec![PathBuf::from(STDIN)]);
    }
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            add_folder(path, &mut files)?;
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn add_folder(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let failed = |error| CommandError::failed(format!("cannot read {}", folder.display()), error);
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    entries.sort();
    for entry in entries {
        let extension = entry.extension().and_then(|extension| extension.to_str());
        if entry.is_dir() {
            add_folder(&entry, files)?;
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            files.push(entry);
        }
    }
    Ok(())
}
