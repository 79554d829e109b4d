//! Writing a bundle.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use types::{BundleFile, BundleIndex, Bytes, UserError};

use crate::error::bundle_exists;

use super::super::content::{Hashing, TEMPORARY_SUFFIX, TemporaryFile, sync_folder};
use super::member::{BLOCK, header, padding};
use super::{INDEX, MOST_BYTES, MOST_FILES, MOST_INDEX_BYTES};

/// Writes a bundle of the files that `place` finds. It appears whole under its name, in place of nothing.
pub fn write_bundle(
    out: &Path,
    index: &BundleIndex,
    place: impl Fn(&BundleFile) -> PathBuf,
    doing: &mut dyn FnMut(&BundleFile),
) -> Result<(), UserError> {
    let failed = || UserError::io("write", out);
    let text = serde_json::to_vec_pretty(index).map_err(|error| failed()(error.into()))?;
    let is_too_large = |bytes: Bytes| bytes.get() > MOST_BYTES;
    if index.members().count() > MOST_FILES
        || index.total().is_none_or(is_too_large)
        || text.len() as u64 > MOST_INDEX_BYTES
    {
        let bytes = Bytes::new(MOST_BYTES);
        let message = format!("the run is too large to pack: a bundle holds at most {MOST_FILES} files and {bytes}");
        return Err(UserError::failed(message).hint("leave out the raw profiler files with `--redact`"));
    }
    if out.symlink_metadata().is_ok() {
        return Err(bundle_exists(out));
    }
    let name = format!(".{}{TEMPORARY_SUFFIX}", std::process::id());
    let (temporary, file) = TemporaryFile::create(out.with_file_name(name)).map_err(failed())?;
    // Neither a time nor a name: the same run gives the same bytes.
    let mut packed =
        GzBuilder::new().mtime(0).operating_system(255).write(BufWriter::new(file), Compression::default());
    let mut put = |bytes: &[u8]| packed.write_all(bytes).map_err(failed());
    put(&header(INDEX, text.len() as u64))?;
    put(&text)?;
    put(&vec![0; padding(text.len() as u64)])?;
    for member in index.members() {
        doing(member);
        put(&header(&member.path, member.bytes.get()))?;
        copy(&place(member), member, &mut put)?;
        put(&vec![0; padding(member.bytes.get())])?;
    }
    put(&[0; 2 * BLOCK])?;
    let file = packed.finish().and_then(|buffered| buffered.into_inner().map_err(io::IntoInnerError::into_error));
    file.and_then(|file| file.sync_all()).and_then(|()| temporary.rename(out)).map_err(failed())?;
    sync_folder(out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// Copies a file, which must be as the index has it: what is packed is what was checked.
fn copy(
    from: &Path,
    member: &BundleFile,
    put: &mut impl FnMut(&[u8]) -> Result<(), UserError>,
) -> Result<(), UserError> {
    let unreadable = || UserError::io("read", from);
    // One byte more than listed is enough to see that the file has grown.
    let most = member.bytes.get().saturating_add(1);
    let mut content = Hashing::new(File::open(from).map_err(unreadable())?.take(most));
    let mut piece = vec![0; 256 * 1024];
    loop {
        match content.read(&mut piece).map_err(unreadable())? {
            0 => break,
            count => put(&piece[..count])?,
        }
    }
    let digest = content.digest();
    if digest.bytes == member.bytes && digest.sha256 == member.sha256 {
        return Ok(());
    }
    Err(UserError::failed(format!("{} does not match the manifest of its run", from.display()))
        .hint("list the changed files with `llm-perf runs RUN --verify`"))
}
