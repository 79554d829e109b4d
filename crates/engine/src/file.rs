//! Files of a model folder: opened only where they are files. Opening a pipe would wait for a writer, and a device may have no end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Opens a file, or says that it is none.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)? {
        found if found.is_dir() => Err(io::Error::from(ErrorKind::IsADirectory)),
        found if !found.is_file() => Err(io::Error::new(ErrorKind::InvalidInput, "it is a device or pipe, not a file")),
        _ => File::open(path),
    }
}

/// All of a file, `most` bytes at most; more are an error.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")))
    } else {
        Ok(bytes)
    }
}
