//! Reading a bundle: nothing in it is believed before it was compared with the index.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use types::{BundleFile, BundleIndex, Bytes, UserError};

use crate::error::bad_bundle;

use super::super::content::Hashing;
use super::super::{MANIFEST, RelativePath, SOURCES};
use super::member::{BLOCK, header, padding, stated_size};
use super::{INDEX, MOST_BYTES, MOST_FILES, MOST_INDEX_BYTES};

/// The gzip header that we write: no name, no time, no system.
const START: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// A bundle whose index was read. Its members come in the order of the index, each once.
pub struct Bundle<R: Read> {
    name: PathBuf,
    content: GzDecoder<BufReader<Chain<Cursor<[u8; 10]>, R>>>,
    index: BundleIndex,
    next: usize,
}

impl<R: Read> Bundle<R> {
    /// Reads the index of a bundle, which `name` names in errors.
    pub fn open(name: &Path, mut input: R) -> Result<Self, UserError> {
        let refused = |reason: String| refusal(name, INDEX, reason);
        let mut start = [0; START.len()];
        input.read_exact(&mut start).map_err(|error| broken(name, INDEX, error))?;
        if start != START {
            return Err(refusal(name, "start", "not a bundle written by `llm-perf pack`".to_owned()));
        }
        let input = BufReader::with_capacity(256 * 1024, Cursor::new(start).chain(input));
        let mut content = GzDecoder::new(input);
        let mut first = [0; BLOCK];
        content.read_exact(&mut first).map_err(|error| broken(name, INDEX, error))?;
        let bytes = stated_size(&first).filter(|bytes| header(INDEX, *bytes) == first);
        let bytes = bytes.ok_or_else(|| refused(format!("the archive does not start with {INDEX}")))?;
        if bytes > MOST_INDEX_BYTES {
            return Err(refused(format!(
                "its size is {}; at most {} is read",
                Bytes::new(bytes),
                Bytes::new(MOST_INDEX_BYTES)
            )));
        }
        let mut text = Vec::new();
        (&mut content).take(bytes).read_to_end(&mut text).map_err(|error| broken(name, INDEX, error))?;
        if (text.len() as u64) < bytes {
            return Err(broken(name, INDEX, ErrorKind::UnexpectedEof.into()));
        }
        let index: BundleIndex = serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))?;
        check(&index).map_err(|(place, reason)| refusal(name, &place, reason))?;
        let mut bundle = Self { name: name.to_owned(), content, index, next: 0 };
        bundle.expect(INDEX, &vec![0; padding(bytes)], "padding")?;
        Ok(bundle)
    }

    /// What the bundle has.
    pub fn index(&self) -> &BundleIndex {
        &self.index
    }

    /// The file it was read from.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// The file that comes next; none at the end.
    pub fn upcoming(&self) -> Option<&BundleFile> {
        self.index.member(self.next)
    }

    /// Hands over the next file in pieces; nothing is left when there is none. What was handed over may be used when this
    /// returns without an error, not before.
    pub fn next_file(
        &mut self,
        put: &mut dyn FnMut(&[u8]) -> Result<(), UserError>,
    ) -> Result<Option<BundleFile>, UserError> {
        let Some(file) = self.upcoming().cloned() else { return Ok(None) };
        self.next += 1;
        self.expect(&file.path, &header(&file.path, file.bytes.get()), "header")?;
        let mut content = Hashing::new((&mut self.content).take(file.bytes.get()));
        let mut piece = vec![0; 256 * 1024];
        loop {
            match content.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => put(&piece[..count])?,
                Err(error) => return Err(broken(&self.name, &file.path, error)),
            }
        }
        let digest = content.digest();
        if digest.bytes != file.bytes {
            return Err(broken(&self.name, &file.path, ErrorKind::UnexpectedEof.into()));
        }
        if digest.sha256 != file.sha256 {
            let reason = format!("expected sha256 {}, found {}", file.sha256, digest.sha256);
            return Err(refusal(&self.name, &file.path, reason));
        }
        self.expect(&file.path, &vec![0; padding(file.bytes.get())], "padding")?;
        Ok(Some(file))
    }

    /// Makes sure that nothing follows, and gives back the index.
    pub fn finish(mut self) -> Result<BundleIndex, UserError> {
        const END: &str = "end";
        self.expect(END, &[0; 2 * BLOCK], "end marker")?;
        // Reading to the end compares the checksum of the whole stream too.
        let more = self.content.read(&mut [0]).map_err(|error| broken(&self.name, END, error))?;
        let rest = self.content.get_mut().fill_buf().map_err(|error| broken(&self.name, END, error))?;
        if more > 0 || !rest.is_empty() {
            return Err(refusal(&self.name, END, "unexpected data after the last file".to_owned()));
        }
        Ok(self.index)
    }

    fn expect(&mut self, place: &str, expected: &[u8], what: &str) -> Result<(), UserError> {
        let mut found = vec![0; expected.len()];
        self.content.read_exact(&mut found).map_err(|error| broken(&self.name, place, error))?;
        if found == expected {
            Ok(())
        } else {
            Err(refusal(&self.name, place, format!("{what} does not match the index")))
        }
    }
}

/// What is wrong with an index, and where.
fn check(index: &BundleIndex) -> Result<(), (String, String)> {
    let in_index = |reason: String| (INDEX.to_owned(), reason);
    if index.files.first().is_none_or(|file| file.path != MANIFEST) {
        return Err(in_index(format!("{MANIFEST} is not the first file")));
    }
    if index.members().count() > MOST_FILES {
        return Err(in_index(format!("it lists more than {MOST_FILES} files")));
    }
    if index.total().is_none_or(|bytes| bytes.get() > MOST_BYTES) {
        return Err(in_index(format!("its files total more than {}", Bytes::new(MOST_BYTES))));
    }
    let mut seen = BTreeSet::new();
    let mut folders = BTreeSet::new();
    for (place, file) in index.members().enumerate() {
        let path = if file.path == MANIFEST && place == 0 {
            None
        } else {
            Some(RelativePath::new(&file.path).map_err(|error| (INDEX.to_owned(), error.to_string()))?)
        };
        if (place >= index.files.len()) != file.path.starts_with(&format!("{SOURCES}/")) {
            return Err((file.path.clone(), format!("only source files may be in {SOURCES}/")));
        }
        folders.extend(path.iter().flat_map(RelativePath::parents).map(str::to_owned));
        if !seen.insert(file.path.as_str()) {
            return Err((file.path.clone(), "it is listed twice".to_owned()));
        }
    }
    match seen.into_iter().find(|path| folders.contains(*path)) {
        Some(path) => Err((path.to_owned(), "it is listed as a file and as a folder".to_owned())),
        None => Ok(()),
    }
}

fn refusal(name: &Path, place: &str, reason: String) -> UserError {
    bad_bundle(name, place, &reason)
}

/// The stream itself: cut off, damaged, or not to be read.
fn broken(name: &Path, place: &str, error: io::Error) -> UserError {
    match error.kind() {
        ErrorKind::UnexpectedEof => refusal(name, place, "the bundle is truncated here".to_owned()),
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            refusal(name, place, format!("the compressed data is damaged ({error})"))
        }
        _ => UserError::io("read", name)(error),
    }
}
