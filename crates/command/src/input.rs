//! Input of commands: files, directories and stdin; and the files that the server reloads.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use injectd_cluster::files::{self, MAX_SERVED_BYTES};

use crate::CommandError;

/// Largest file, standard input or answer of a server that a command keeps in memory. Ten thousand
/// pods of 12 KB are half of it; more is a device, a pipe without end, or a mistake.
pub const MAX_FILE_BYTES: usize = 256 << 20;

/// The path that means stdin.
const STDIN: &str = "-";

/// The name of a file in messages.
#[must_use]
pub fn name(path: &Path) -> String {
    if path == Path::new(STDIN) { "stdin".to_owned() } else { path.display().to_string() }
}

/// Reads a file to its end, up to [`MAX_FILE_BYTES`]; `-` is stdin. A pipe is read like a file:
/// shells make one of `<(command)`.
///
/// # Errors
/// When it cannot be read, or is too large.
pub fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    read_bytes(path)
        .map_err(|error| CommandError::failed(format!("cannot read {}", name(path)), error))
}

/// The same for the file that a flag names.
///
/// # Errors
/// When it cannot be read, or is too large.
pub fn read_flag(flag: &str, path: &Path) -> Result<Vec<u8>, CommandError> {
    read_bytes(path)
        .map_err(|error| CommandError::failed(format!("cannot read {flag} {}", name(path)), error))
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new(STDIN) {
        return files::read_to_end(io::stdin().lock(), MAX_FILE_BYTES);
    }
    files::read_to_end(fs::File::open(path)?, MAX_FILE_BYTES)
}

/// Reads a file of text.
///
/// # Errors
/// When it cannot be read, or is too large.
pub fn read_text(path: &Path) -> Result<String, CommandError> {
    utf8(&name(path), read(path)?)
}

/// Reads a file that the server reloads. Accepts regular files only: a pipe could block the reader,
/// and a device could fill the memory.
///
/// # Errors
/// When it cannot be read, or is too large.
pub fn read_served(flag: &str, path: &Path) -> Result<Vec<u8>, CommandError> {
    files::open_regular(path)
        .and_then(|file| files::read_to_end(file, MAX_SERVED_BYTES))
        .map_err(|error| CommandError::failed(format!("cannot read {flag} {}", name(path)), error))
}

/// Decodes the bytes of a file as UTF-8; errors have this name of the file.
///
/// # Errors
/// When it is not UTF-8.
pub fn utf8(name: &str, bytes: Vec<u8>) -> Result<String, CommandError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CommandError::failed(name, format!("not UTF-8 at byte {at}; save it as UTF-8"))
    })
}

/// Opens a file as a stream of any length; `-` is stdin. The caller keeps a document at a time.
///
/// # Errors
/// When it cannot be opened.
pub fn open(path: &Path) -> Result<Box<dyn io::Read>, CommandError> {
    if path == Path::new(STDIN) {
        return Ok(Box::new(io::stdin()));
    }
    let file = fs::File::open(path)
        .map_err(|error| CommandError::failed(format!("cannot read {}", name(path)), error))?;
    Ok(Box::new(file))
}

/// A file, or a path that cannot be read and why.
pub type Found = Result<PathBuf, (PathBuf, CommandError)>;

/// The given paths, with each directory replaced by its YAML and JSON files and those of its
/// subdirectories, sorted; stdin if there are no paths.
///
/// As `kubectl -R -f`: in directories, links to directories are not followed. Other than kubectl,
/// hidden entries are skipped and a file is read once, also if links in the directory name it again:
/// a mounted `ConfigMap` has each file three times.
#[must_use]
pub fn files(paths: &[PathBuf]) -> Vec<Found> {
    if paths.is_empty() {
        return vec![Ok(PathBuf::from(STDIN))];
    }
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            add_directory(path, &mut HashSet::new(), &mut files);
        } else {
            files.push(Ok(path.clone()));
        }
    }
    files
}

/// The same, if all paths can be read.
///
/// # Errors
/// When it cannot be read, or is too large.
pub fn all_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    files(paths).into_iter().map(|path| path.map_err(|(_, error)| error)).collect()
}

fn add_directory(directory: &Path, known: &mut HashSet<PathBuf>, files: &mut Vec<Found>) {
    let failed = |path: PathBuf, error: io::Error| {
        let message = format!("cannot read {}", path.display());
        Err((path, CommandError::failed(message, error)))
    };
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return files.push(failed(directory.to_owned(), error)),
    };
    // A file system has its own order: without this the output would differ from machine to
    // machine.
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let extension = path.extension().and_then(|extension| extension.to_str());
        // A mounted `ConfigMap` has its files in `..data` as well, and editors keep copies in
        // hidden files.
        if is_hidden {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_directory(&path, known, files);
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            match fs::canonicalize(&path) {
                // Reading a pipe would wait for a writer.
                Ok(target) if target.is_file() && known.insert(target.clone()) => {
                    files.push(Ok(path));
                }
                Ok(_) => {}
                Err(error) => files.push(failed(path, error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_server_has_at_most_ten_mebibytes() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let length = MAX_SERVED_BYTES as u64;
        file.as_file().set_len(length).expect("must grow");
        let bytes = read_served("--values", file.path()).expect("must be read");
        assert_eq!(bytes.len(), MAX_SERVED_BYTES);
        file.as_file().set_len(length + 1).expect("must grow");
        let error = read_served("--values", file.path()).expect_err("must be rejected");
        let text = injectd_cluster::causes::with_causes(&error);
        assert!(text.contains("--values /") && text.ends_with("larger than 10 MiB"), "{text}");
    }
}
