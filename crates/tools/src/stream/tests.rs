use std::io::Write as _;

use super::*;

/// A reader that returns at most this many bytes at a time.
struct Slow(Vec<u8>, usize);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.1.min(self.0.len()).min(buffer.len());
        buffer[..length].copy_from_slice(&self.0[..length]);
        self.0.drain(..length);
        Ok(length)
    }
}

type Found = Vec<(usize, Result<String, TooLarge>)>;

fn cut(reader: impl Read + 'static) -> io::Result<Found> {
    let mut documents = Documents::new(reader)?;
    let mut found = Vec::new();
    loop {
        match documents.next()? {
            Step::Reads => {}
            Step::End => return Ok(found),
            Step::Document(Document { line, text }) => {
                let text = text.map(|text| String::from_utf8_lossy(text).trim().to_owned());
                found.push((line, text));
            }
        }
    }
}

fn expect(stream: &str, documents: &[(usize, &str)]) {
    let expected: Found =
        documents.iter().map(|&(line, text)| (line, Ok(text.to_owned()))).collect();
    for at_a_time in [1, 2, 3, 64, usize::MAX] {
        let found = cut(Slow(stream.as_bytes().to_vec(), at_a_time)).expect("must be read");
        assert_eq!(found, expected, "{stream:?}, {at_a_time} at a time");
    }
}

#[test]
fn documents_span_one_line_or_several() {
    expect("{\"a\":1}\n{\"b\":2}", &[(1, "{\"a\":1}"), (2, "{\"b\":2}")]);
    expect("\n{\n  \"a\": {\n  }\n}\n\n{}\r\n", &[(2, "{\n  \"a\": {\n  }\n}"), (7, "{}")]);
    expect("{\"a\":\"}{\\\"\"}\n", &[(1, "{\"a\":\"}{\\\"\"}")]);
    expect("{\"a\":\"\\\\\\\\\"}{}", &[(1, "{\"a\":\"\\\\\\\\\"}"), (1, "{}")]);
    expect("{} [1] {}", &[(1, "{}"), (1, "[1]"), (1, "{}")]);
    expect("", &[]);
    expect(" \n ", &[]);
}

#[test]
fn an_unfinished_document_does_not_swallow_the_next() {
    expect("{\"a\":\n{}\nwhat\n{}", &[(1, "{\"a\":"), (2, "{}"), (3, "what"), (4, "{}")]);
    expect("{\"a\": \"open\n{}", &[(1, "{\"a\": \"open"), (2, "{}")]);
    expect("{\"a\": \"open\\", &[(1, "{\"a\": \"open\\")]);
}

/// A pipe whose writer waits for an answer before it writes more.
struct Waiting;

impl Read for Waiting {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

#[test]
fn all_documents_in_memory_come_before_a_read_that_may_block() {
    let reader = b"{}{\"a\":1}{".chain(Waiting);
    let mut documents = Documents::new(reader).expect("must be read");
    let (mut found, mut may_wait) = (0, false);
    loop {
        match documents.next() {
            Ok(Step::Document(_)) => (found, may_wait) = (found + 1, false),
            Ok(Step::Reads) => may_wait = true,
            Ok(Step::End) => panic!("must wait"),
            Err(error) => break assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    assert_eq!((found, may_wait), (2, true));
}

#[test]
fn a_document_over_the_limit_is_skipped_and_not_kept() {
    let large = |length: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(length - 8));
    let (fits, over) = (large(MAX_BODY_BYTES), large(MAX_BODY_BYTES + 1));
    let stream = format!("{fits}\n{over}\n{{}}\n{}\n{{}}", "what".repeat(MAX_BODY_BYTES / 4 + 1));
    let found = cut(io::Cursor::new(stream)).expect("must be read");
    let lengths: Vec<_> =
        found.into_iter().map(|(line, text)| (line, text.map(|text| text.len()))).collect();
    let expected =
        [(1, Ok(MAX_BODY_BYTES)), (2, Err(TooLarge)), (3, Ok(2)), (4, Err(TooLarge)), (5, Ok(2))];
    assert_eq!(lengths, expected);
}

#[test]
fn memory_is_bounded_by_the_limit() {
    let begin = b"{\"a\":\"".as_slice();
    let endless = begin.chain(io::repeat(b'x').take(4 * MAX_BODY_BYTES as u64));
    let mut documents = Documents::new(endless).expect("must be read");
    while !matches!(documents.next().expect("must be read"), Step::Document(_)) {}
    // A growing vector doubles its capacity.
    assert!(documents.text.capacity() <= 2 * MAX_BODY_BYTES, "{}", documents.text.capacity());
}

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).expect("writing to memory must succeed");
    gzip.finish().expect("writing to memory must succeed")
}

fn zstd(text: &str) -> Vec<u8> {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
}

#[test]
fn compressed_streams_are_recognised_and_may_have_several_parts() {
    let expected = cut("{\"a\":1}\n{}".as_bytes()).expect("must be read");
    // A frame without data, as pzstd writes it.
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2].to_vec();
    for compressed in [
        gzip("{\"a\":1}\n{}"),
        [gzip("{\"a\""), gzip(":1}\n{}")].concat(),
        zstd("{\"a\":1}\n{}"),
        [zstd("{\"a\""), skipped, zstd(":1}\n{}")].concat(),
    ] {
        for at_a_time in [1, usize::MAX] {
            let found = cut(Slow(compressed.clone(), at_a_time)).expect("must be read");
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn binary_data_and_broken_compression_are_one_error() {
    for compressed in [gzip(&"{}\n".repeat(1000)), zstd(&"{}\n".repeat(1000))] {
        let half = compressed[..compressed.len() / 2].to_vec();
        assert!(cut(io::Cursor::new(half)).is_err());
    }
    let utf16: Vec<u8> = "{}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for binary in [&b"\x7fELF"[..], b"BZh9\0", b"\xfd7zXZ", b"{}\n\x00", &utf16] {
        let error = cut(io::Cursor::new(binary.to_vec())).expect_err("must be rejected");
        assert!(error.to_string().contains("gzip or zstd"), "{error}");
    }
}

#[test]
fn the_first_hundred_errors_are_printed() {
    let mut errors = Errors::default();
    assert_eq!((0..250).filter(|_| errors.add()).count(), 100);
    assert_eq!((errors.count, errors.hint()), (250, " (only the first 100 are listed)"));
}

#[test]
fn the_end_of_a_line_is_searched_only_once() {
    const LENGTH: usize = 1 << 18;
    for (line, documents) in [
        (" ".repeat(LENGTH), 0),
        ("{}".repeat(LENGTH / 2), LENGTH / 2),
        ("{} ".repeat(LENGTH / 3), LENGTH / 3),
        ("\n".repeat(LENGTH), 0),
        (format!("{}{}", "{}".repeat(1000), "\\".repeat(LENGTH)), 1001),
    ] {
        let reader = io::Cursor::new(line.clone().into_bytes());
        let mut stream = Documents::new(reader).expect("must be read");
        let mut found = 0;
        loop {
            match stream.next().expect("must be read") {
                Step::Document(_) => found += 1,
                Step::Reads => {}
                Step::End => break,
            }
        }
        assert_eq!(found, documents, "{}", &line[..9]);
        // A last backslash is searched again together with the next bytes.
        let reads = LENGTH.div_ceil(1 << 10);
        assert!(stream.searched <= line.len() + reads, "{} {}", stream.searched, &line[..9]);
    }
}

#[test]
fn a_backslash_between_documents_waits_for_its_line() {
    expect("{}\\\n{}\\", &[(1, "{}"), (1, "\\"), (2, "{}"), (2, "\\")]);
}
