//! Reading a whole file into memory, up to a limit: what is named may be a device, a pipe or a link to one, and has no end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use types::Bytes;

/// Most that a document may have. The largest of ours, the metrics of a run with millions of kernels, are a tenth of it.
pub const MOST: u64 = 1 << 30;

/// The bytes of a file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_from(File::open(path)?, MOST)
}

/// The text of a file.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// All that a reader yields, `most` bytes at most; more are an error.
pub fn read_from(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {}", Bytes::new(most)))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_and_what_ends_is_read() {
        let endless = read_from(io::repeat(0), 1_000_000).unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_from(&b"abc"[..], 3).unwrap(), b"abc");
        assert!(read_from(&b"abcd"[..], 3).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error_and_not_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        assert_eq!(read_text(&file).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
