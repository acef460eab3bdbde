//! Reads files, pipes and answers whole, up to a limit: a device or a pipe may have no end, and must
//! not fill the memory.
//!
//! Not for streams of which a document at a time is in memory (`crates/tools/src/stream.rs`).

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use rustix::fs::{Mode, OFlags};

/// Largest file that a server reads, and the largest kubeconfig. A `ConfigMap` or a `Secret` holds at
/// most 1 MiB; a file that replaces one by mistake must not fill the memory of the server.
pub const MAX_SERVED_BYTES: usize = 10 << 20;

/// Reads to the end.
///
/// # Errors
/// When reading fails, or there is more than the limit, in whole MiB.
pub fn read_to_end(reader: impl Read, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed: else a file of just the limit looked like a longer one that was
    // cut.
    reader.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes { Err(too_large(max_bytes)) } else { Ok(bytes) }
}

/// Opens a regular file. A pipe could block the reader, and a device could have no end.
///
/// # Errors
/// When the file cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Without NONBLOCK, opening a pipe waits until another process opens it for writing.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    must_be_regular(&file.metadata()?)?;
    Ok(file)
}

/// Checks a file that a library reads whole; it may be missing.
///
/// # Errors
/// When it is not a regular file, or larger than the limit.
pub fn must_be_small(path: &Path, max_bytes: usize) -> io::Result<()> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    must_be_regular(&metadata)?;
    if metadata.len() > max_bytes as u64 { Err(too_large(max_bytes)) } else { Ok(()) }
}

fn must_be_regular(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let text = "not a regular file; use a regular file or a symbolic link to one";
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

fn too_large(max_bytes: usize) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {} MiB", max_bytes >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_has_at_most_the_limit() {
        let read = |bytes: u64| read_to_end(io::repeat(0).take(bytes), 1 << 20);
        assert_eq!(read(1 << 20).map(|bytes| bytes.len()).ok(), Some(1 << 20));
        let error = read((1 << 20) + 1).expect_err("must be rejected");
        assert_eq!(error.to_string(), "larger than 1 MiB");
        assert!(read_to_end(io::repeat(0), 1 << 20).is_err());
    }

    #[test]
    fn only_regular_files_are_small() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(1 << 20).expect("must grow");
        assert!(must_be_small(file.path(), 1 << 20).is_ok());
        assert!(must_be_small(file.path(), (1 << 20) - 1).is_err());
        assert!(must_be_small(Path::new("/dev/zero"), 1 << 20).is_err());
        assert!(must_be_small(Path::new("/nonexistent"), 1 << 20).is_ok());
        assert!(open_regular(Path::new("/dev/zero")).is_err());
    }
}
