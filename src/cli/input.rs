//! Input of commands: files, directories and stdin; and the files that the server reloads.

use std::{
    collections::HashSet,
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

use super::CommandError;

/// Largest file that the server reads. A `ConfigMap` or a `Secret` holds at most 1 MiB; a file that
/// replaces one by mistake must not fill the memory of the server.
const MAX_SERVED_FILE_BYTES: u64 = 10 << 20;

/// The path that means stdin.
const STDIN: &str = "-";

/// The name of a file in messages.
pub(super) fn name(path: &Path) -> String {
    if path == Path::new(STDIN) { "stdin".to_owned() } else { path.display().to_string() }
}

/// Reads a file to its end; `-` is stdin.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    read_bytes(path)
        .map_err(|error| CommandError::failed(format!("cannot read {}", name(path)), error))
}

/// Reads the file that a flag names.
pub(super) fn read_flag(flag: &str, path: &Path) -> Result<Vec<u8>, CommandError> {
    read_bytes(path)
        .map_err(|error| CommandError::failed(format!("cannot read {flag} {}", name(path)), error))
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new(STDIN) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    fs::read(path)
}

/// Reads a file of text.
pub(super) fn read_text(path: &Path) -> Result<String, CommandError> {
    utf8(&name(path), read(path)?)
}

/// Reads a file that the server reloads. Accepts regular files only: a pipe could block the reader,
/// and a device could fill the memory.
pub(super) fn read_served(flag: &str, path: &Path) -> Result<Vec<u8>, CommandError> {
    read_regular(path)
        .map_err(|error| CommandError::failed(format!("cannot read {flag} {}", name(path)), error))
}

fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    // Without NONBLOCK, opening a pipe waits until another process opens it for writing.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        let text = "not a regular file; use a regular file or a symbolic link to one";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(MAX_SERVED_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SERVED_FILE_BYTES {
        let text = format!("larger than the limit of {MAX_SERVED_FILE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Decodes the bytes of a file as UTF-8; errors have this name of the file.
pub(super) fn utf8(name: &str, bytes: Vec<u8>) -> Result<String, CommandError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CommandError::failed(name, format!("not UTF-8 at byte {at}; save it as UTF-8"))
    })
}

/// Opens a file as a stream; `-` is stdin.
pub(super) fn open(path: &Path) -> Result<Box<dyn io::Read>, CommandError> {
    if path == Path::new(STDIN) {
        return Ok(Box::new(io::stdin()));
    }
    let file = fs::File::open(path)
        .map_err(|error| CommandError::failed(format!("cannot read {}", name(path)), error))?;
    Ok(Box::new(file))
}

/// A file, or a path that cannot be read and why.
pub(super) type Found = Result<PathBuf, (PathBuf, CommandError)>;

/// The given paths, with each directory replaced by its YAML and JSON files and those of its
/// subdirectories, sorted; stdin if there are no paths.
///
/// As `kubectl -R -f`: in directories, links to directories are not followed. Other than kubectl,
/// hidden entries are skipped and a file is read once, also if links in the directory name it again:
/// a mounted `ConfigMap` has each file three times.
pub(super) fn files(paths: &[PathBuf]) -> Vec<Found> {
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
pub(super) fn all_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
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
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let extension = path.extension().and_then(|extension| extension.to_str());
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
        file.as_file().set_len(MAX_SERVED_FILE_BYTES).expect("must grow");
        let bytes = read_served("--values", file.path()).expect("must be read");
        assert_eq!(bytes.len() as u64, MAX_SERVED_FILE_BYTES);
        file.as_file().set_len(MAX_SERVED_FILE_BYTES + 1).expect("must grow");
        let error = read_served("--values", file.path()).expect_err("must be rejected");
        let text = crate::causes::with_causes(&error);
        assert!(text.contains("--values /") && text.contains("10485760 bytes"), "{text}");
    }
}
