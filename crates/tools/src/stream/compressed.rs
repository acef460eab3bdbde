//! Decompresses streams; the first bytes show the format.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Decompresses a stream of gzip or zstd; returns other streams as they are.
pub(super) fn plain(mut reader: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut begin = Vec::new();
    // Byte by byte: a user may be typing the stream on a terminal.
    while [GZIP, ZSTD].iter().any(|magic| magic.len() > begin.len() && magic.starts_with(&begin)) {
        if reader.by_ref().take(1).read_to_end(&mut begin)? == 0 {
            break;
        }
    }
    let magic = begin.clone();
    let whole = Cursor::new(begin).chain(reader);
    Ok(match &*magic {
        // Logs that were compressed one by one and put together are several members; a plain
        // decoder would end after the first one.
        GZIP => Box::new(MultiGzDecoder::new(whole)),
        ZSTD => Box::new(Zstd::new(whole)),
        _ => Box::new(whole),
    })
}

/// Decodes the frames of a zstd stream one after the other.
struct Zstd<R> {
    source: BufReader<R>,
    frame: FrameDecoder,
}

impl<R: Read> Zstd<R> {
    fn new(source: R) -> Self {
        Self { source: BufReader::new(source), frame: FrameDecoder::new() }
    }

    /// Begins the next frame; skips frames without data.
    fn begin_frame(&mut self) -> io::Result<()> {
        match self.frame.init(&mut self.source) {
            Ok(()) => Ok(()),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let mut skipped = self.source.by_ref().take(length.into());
                io::copy(&mut skipped, &mut io::sink()).map(drop)
            }
            Err(error) => Err(broken(error)),
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.frame.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            if !self.frame.is_finished() {
                // One block at a time, of at most 128 KiB: the whole frame may be the whole log.
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.frame.decode_blocks(&mut self.source, one).map_err(broken)?;
            } else if self.source.fill_buf()?.is_empty() {
                return Ok(0);
            } else {
                self.begin_frame()?;
            }
        }
    }
}

fn broken(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
