//! A file on its way in: found, mapped, and known by its digest. What is in it is left to the readers.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use collect::run::blake3;
use ingest::detect::{Format, identify};
use memmap2::Mmap;
use types::{Bytes, UserError};

use super::report::Report;

/// Stands for standard input among the files.
pub const STANDARD_INPUT: &str = "-";

/// A file whose bytes are at hand.
pub(super) struct Source {
    /// As it was given.
    pub(super) name: String,
    /// The same to open it by, where the name is no text.
    path: PathBuf,
    /// The bytes; absent where there is none, because nothing cannot be mapped.
    map: Option<Mmap>,
    /// What its own tool made of it, for a report that only this tool reads.
    export: Option<Mmap>,
}

impl Source {
    /// Opens what was named: a file, or standard input.
    pub(super) fn open(path: &Path, progress: &mut dyn FnMut(&str)) -> Result<Self, UserError> {
        let unreadable = UserError::io("read", path);
        let name = path.display().to_string();
        let file = if name == STANDARD_INPUT {
            spooled(io::stdin().lock()).map_err(|error| error.about(path))?
        } else {
            let file = collect::document::open(path).map_err(&unreadable)?;
            // A pipe has no length and cannot be mapped.
            let is_file = file.metadata().map_err(&unreadable)?.is_file();
            if is_file { file } else { spooled(file).map_err(|error| error.about(path))? }
        };
        let map = mapped(&file).map_err(&unreadable)?;
        let stored = map.as_deref().unwrap_or_default();
        // The tool wants a path, which what came through a pipe does not have.
        let may_be_report = name != STANDARD_INPUT && identify(stored).format.is_none();
        let export = match Report::of(path, stored).filter(|_| may_be_report) {
            Some(report) => mapped(&report.exported(path, progress)?).map_err(unreadable)?,
            None => None,
        };
        Ok(Self { name, path: path.to_owned(), map, export })
    }

    /// The bytes to read: as stored, or as the file's own tool exports them.
    pub(super) fn bytes(&self) -> &[u8] {
        self.export.as_deref().unwrap_or_else(|| self.stored())
    }

    fn stored(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Size of the file.
    pub(super) fn size(&self) -> Bytes {
        Bytes::new(self.stored().len() as u64)
    }

    /// BLAKE3 of the file.
    pub(super) fn digest(&self) -> String {
        blake3(self.stored())
    }

    /// The file, for messages that want a path.
    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }
}

/// Whether a file is of a kind that can be imported, by its first bytes or as a report that its own tool reads.
fn is_importable(path: &Path) -> bool {
    let map = path.is_file().then(|| File::open(path).and_then(|file| mapped(&file)).ok().flatten()).flatten();
    map.is_some_and(|bytes| {
        let format = identify(&bytes).format.filter(|format| *format != Format::TorchInfo);
        format.is_some() || Report::of(path, &bytes).is_some()
    })
}

/// The files of a folder that can be imported, by name.
pub fn importable(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files.truncate(MOST_LOOKED_AT);
    files.retain(|path| is_importable(path));
    files
}

/// Most files of a folder whose kind is looked up for a hint.
const MOST_LOOKED_AT: usize = 256;

/// The journal that a killed export of a database leaves beside it: what is in it is not in the file.
pub(super) fn journal(source: &Source) -> Option<PathBuf> {
    let beside = |ending: &str| {
        let mut path = source.path.clone().into_os_string();
        path.push(ending);
        PathBuf::from(path)
    };
    let is_there = |path: &PathBuf| path.metadata().is_ok_and(|found| found.len() > 0);
    ["-journal", "-wal"].map(beside).into_iter().find(is_there)
}

/// What a reader yields, as bytes in a file without a name: readers that jump about need all of it, and memory need not
/// hold it.
pub(super) fn unpacked(reader: impl Read, path: &Path) -> Result<Unpacked, UserError> {
    let file = spooled(reader).map_err(|error| error.about(path))?;
    let map = mapped(&file).map_err(UserError::io("read", path))?;
    Ok(Unpacked { map })
}

/// Bytes that were unpacked.
pub(super) struct Unpacked {
    map: Option<Mmap>,
}

impl Unpacked {
    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

/// Most bytes that are put aside: a device has no end, and a few kilobytes unpack to gigabytes of nothing.
const MOST_SPOOLED: u64 = 64 << 30;

/// Which side of putting bytes aside failed.
enum SpoolError {
    Source(io::Error),
    TemporaryFolder(io::Error),
}

impl SpoolError {
    fn about(self, path: &Path) -> UserError {
        match self {
            Self::Source(reason) => UserError::io("read", path)(reason),
            Self::TemporaryFolder(reason) => {
                let (path, folder) = (path.display(), std::env::temp_dir());
                UserError::failed(format!("cannot unpack {path} into {}: {reason}", folder.display())).hint(
                    "set TMPDIR to a folder on a disk with more space, or decompress the file first and import the \
                     result",
                )
            }
        }
    }
}

fn spooled(mut reader: impl Read) -> Result<File, SpoolError> {
    let mut file = tempfile::tempfile().map_err(SpoolError::TemporaryFolder)?;
    let mut piece = vec![0; 1 << 20];
    let mut left = MOST_SPOOLED;
    loop {
        match reader.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => {
                left = left.checked_sub(count as u64).ok_or_else(|| {
                    let reason = format!("it is larger than {}", Bytes::new(MOST_SPOOLED));
                    SpoolError::Source(io::Error::new(io::ErrorKind::FileTooLarge, reason))
                })?;
                file.write_all(&piece[..count]).map_err(SpoolError::TemporaryFolder)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(SpoolError::Source(error)),
        }
    }
    file.rewind().map_err(SpoolError::TemporaryFolder)?;
    Ok(file)
}

fn mapped(file: &File) -> io::Result<Option<Mmap>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the map is only read, and lives no longer than this process. A file that another process cuts short
    // meanwhile ends this one with SIGBUS; one that is written to may read as a mixture of both contents. Either is a
    // trace that was still being written, which no reader could make sense of, and no memory but the map is touched.
    unsafe { Mmap::map(file) }.map(Some)
}
