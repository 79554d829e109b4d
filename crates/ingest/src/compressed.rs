//! Compressed files, as a stream of what is in them.
//!
//! Zstandard is decoded by a decoder in Rust: it is slower than the one in C, and a trace of a stranger cannot reach
//! memory through it.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Gzip.
    Gzip,
    /// Zstandard.
    Zstandard,
}

impl Compression {
    /// The compression whose files start like this; `None` for a file that is not compressed, or in another way.
    pub fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // A frame, or a frame to be skipped, which may come first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstandard),
            _ => None,
        }
    }

    /// What a compressed file holds. A damaged or shortened one yields what can be decoded, then an error of kind
    /// `UnexpectedEof`, `InvalidInput` or `InvalidData`.
    pub fn decoder<'a>(self, file: impl Read + Send + 'a) -> Box<dyn Read + Send + 'a> {
        /// How much is asked of the file at a time.
        const BLOCK: usize = 1 << 17;
        let file = BufReader::with_capacity(BLOCK, file);
        match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(file)),
            Self::Zstandard => Box::new(Frames { file, decoder: FrameDecoder::new(), open: false }),
        }
    }
}

/// The frames of a Zstandard file, one after the other.
struct Frames<R> {
    file: R,
    decoder: FrameDecoder,
    open: bool,
}

impl<R: BufRead> Frames<R> {
    /// Goes to the next frame with contents; `false` at the end of the file.
    fn next(&mut self) -> io::Result<bool> {
        loop {
            if self.file.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.file) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let skipped = io::copy(&mut self.file.by_ref().take(length.into()), &mut io::sink())?;
                    if skipped < length.into() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(damaged(error)),
            }
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.open {
                if !self.next()? {
                    return Ok(0);
                }
                self.open = true;
            }
            if self.decoder.can_collect() > 0 || buffer.is_empty() {
                return self.decoder.read(buffer);
            }
            if self.decoder.is_finished() {
                self.open = false;
            } else {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.file, one).map_err(damaged)?;
            }
        }
    }
}

fn damaged(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstandard(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn decoded(file: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        Compression::of(file).unwrap().decoder(file).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn several_members_and_frames_are_one_stream() {
        let (first, second) = (b"first ".repeat(40_000), b"second".repeat(3));
        let whole = [first.as_slice(), &second].concat();
        assert_eq!(decoded(&[gzip(&first), gzip(&second)].concat()).unwrap(), whole);
        let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3].to_vec();
        assert_eq!(decoded(&[skipped, zstandard(&first), zstandard(&second)].concat()).unwrap(), whole);
    }

    #[test]
    fn a_shortened_file_yields_its_beginning_and_says_so() {
        let bytes: Vec<u8> =
            (0..400_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for file in [gzip(&bytes), zstandard(&bytes)] {
            let short = &file[..file.len() / 2];
            let mut decoder = Compression::of(short).unwrap().decoder(short);
            let mut read = Vec::new();
            let error = decoder.read_to_end(&mut read).unwrap_err();
            assert!(matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData), "{error:?}");
            assert!(!read.is_empty() && bytes.starts_with(&read), "{} bytes", read.len());
        }
    }

    #[test]
    fn plain_files_are_not_compressed() {
        for head in [&b"{"[..], b"SQLite format 3\0", b"", &[0x1f], &[0x28, 0xb5, 0x2f]] {
            assert_eq!(Compression::of(head), None);
        }
    }
}
