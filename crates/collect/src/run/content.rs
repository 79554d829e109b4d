//! Bytes on their way to and from the disk: whole files, and the digest that tells one content from another.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use types::{Bytes, InputDigest, UserError};

/// Ending of a file that is still being written. Such a file is never listed.
pub(super) const TEMPORARY_SUFFIX: &str = ".llm-perf-part";

/// Mode of the files of a run, and of its folders: command lines, inputs and outputs of programs are nobody else's business.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;

/// Size and SHA-256 of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) bytes: Bytes,
    pub(super) sha256: String,
}

/// A file under a temporary name. Unless it gets its own name it is removed again.
pub(super) struct TemporaryFile {
    path: PathBuf,
    named: bool,
}

/// Counts and hashes what is read through it.
pub(super) struct Hashing<R> {
    inner: R,
    hasher: Sha256,
    bytes: u64,
}

/// Counts and hashes what passes through.
struct HashingWriter<W> {
    inner: W,
    hasher: Sha256,
    bytes: u64,
}

/// SHA-256 of content that is in memory already, in lowercase hexadecimal.
pub fn sha256(content: &[u8]) -> String {
    hexadecimal(&Sha256::digest(content))
}

/// BLAKE3 of content that is in memory already, in lowercase hexadecimal.
pub fn blake3(content: &[u8]) -> String {
    hexadecimal(blake3::hash(content).as_bytes())
}

/// BLAKE3 of a file.
pub fn blake3_of(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(crate::document::open(path)?)?;
    Ok(hexadecimal(hasher.finalize().as_bytes()))
}

/// The digest of a file by the algorithm of another.
pub fn digest_like(other: &InputDigest, path: &Path) -> io::Result<InputDigest> {
    Ok(match other {
        InputDigest::Blake3(_) => InputDigest::Blake3(blake3_of(path)?),
        InputDigest::Sha256(_) => InputDigest::Sha256(digest(path)?.1),
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Size and SHA-256 of a file.
pub fn digest(path: &Path) -> io::Result<(Bytes, String)> {
    let Digest { bytes, sha256 } = Digest::of(crate::document::open(path)?)?;
    Ok((bytes, sha256))
}

impl Digest {
    /// Reads to the end, in pieces, so that the size of the content does not matter.
    pub(super) fn of(content: impl Read) -> io::Result<Self> {
        let mut hashing = Hashing::new(content);
        // `io::copy` works in pieces of 8 KiB; hashing a trace of gigabytes wants fewer system calls than that.
        let mut piece = vec![0; 256 * 1024];
        while hashing.read(&mut piece)? > 0 {}
        Ok(hashing.digest())
    }
}

impl TemporaryFile {
    /// Creates a new, empty file; an existing one is never opened.
    pub(super) fn create(path: PathBuf) -> io::Result<(Self, File)> {
        let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(&path)?;
        Ok((Self { path, named: false }, file))
    }

    /// Leaves the file where it is.
    pub(super) fn keep(mut self) {
        self.named = true;
    }

    /// Gives the file its name, in place of whatever had it.
    pub(super) fn rename(mut self, target: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, target)?;
        self.named = true;
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.named {
            // Best effort: the file is not listed anywhere, and the failure that led here is already on its way up.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl<R: Read> Hashing<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, hasher: Sha256::new(), bytes: 0 }
    }

    pub(super) fn digest(self) -> Digest {
        Digest { bytes: Bytes::new(self.bytes), sha256: hexadecimal(&self.hasher.finalize()) }
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let count = loop {
            match self.inner.read(piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.hasher.update(&piece[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
}

impl<W: Write> HashingWriter<W> {
    fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), bytes: 0 }
    }

    fn digest(self) -> Digest {
        Digest { bytes: Bytes::new(self.bytes), sha256: hexadecimal(&self.hasher.finalize()) }
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(piece)?;
        self.hasher.update(&piece[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Fills a file and syncs it. A failure to sync is a failure to write: on network file systems a full disk shows there.
pub(super) fn fill(file: File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<Digest> {
    let mut out = BufWriter::with_capacity(64 * 1024, HashingWriter::new(file));
    write(&mut out)?;
    let hashing = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    hashing.inner.sync_all()?;
    Ok(hashing.digest())
}

/// Creates a folder that only its owner may look into.
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE_FOLDER).create(folder)
}

/// Takes a file that another program has written from everybody but its owner.
pub(super) fn make_private(file: &Path) -> io::Result<()> {
    std::fs::set_permissions(file, Permissions::from_mode(PRIVATE_FILE))
}

/// Makes the names in a folder last. Some file systems cannot; there is nothing better to do there than to go on.
pub(super) fn sync_folder(folder: &Path) -> Result<(), UserError> {
    match File::open(folder).and_then(|opened| opened.sync_all()) {
        Err(error) if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Err(UserError::io("sync folder", folder)(error))
        }
        _ => Ok(()),
    }
}

pub(super) fn kind_of(found: &std::fs::Metadata) -> &'static str {
    match found.file_type() {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_symlink() => "a link",
        kind if kind.is_file() => "a file",
        _ => "a device or pipe",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn the_digest_is_the_published_one() {
        // FIPS 180-4 example: SHA-256("abc").
        let expected = Digest { bytes: Bytes::new(3), sha256: ABC.to_owned() };
        assert_eq!(Digest::of(&b"abc"[..]).unwrap(), expected);
    }

    #[test]
    fn what_is_written_and_what_is_read_have_the_same_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let (temporary, file) = TemporaryFile::create(folder.path().join("t")).unwrap();
        let content: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
        let written = fill(file, |out| content.chunks(777).try_for_each(|piece| out.write_all(piece))).unwrap();
        temporary.rename(&path).unwrap();
        assert_eq!(Digest::of(File::open(&path).unwrap()).unwrap(), written);
        assert_eq!(written.bytes, Bytes::new(300_000));
    }

    #[test]
    fn a_file_that_never_got_its_name_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (temporary, file) = TemporaryFile::create(folder.path().join("t")).unwrap();
        fill(file, |out| out.write_all(b"half")).unwrap();
        drop(temporary);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_even_when_the_buffer_could_hold_the_content() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = fill(full, |out| out.write_all(b"abc")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }
}
