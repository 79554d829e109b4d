//! A file that the user named, written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Puts the content into the file: beside its place first, and there when all of it is on the disk. A full disk leaves what was
/// there before. What is no plain file, such as a pipe, is written to as it is.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    // A link stays one, and what it points to is written.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(&target).ok();
    if before.as_ref().is_some_and(|found| !found.is_file()) {
        return OpenOptions::new().write(true).open(&target)?.write_all(content);
    }
    let Some(name) = target.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let draft = target.with_file_name(format!(".{}.{}.llm-perf-part", name.to_string_lossy(), std::process::id()));
    let written = File::create_new(&draft).and_then(|mut file| {
        file.write_all(content)?;
        before.map_or(Ok(()), |before| file.set_permissions(before.permissions()))?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&draft, &target));
    if moved.is_err() {
        // Why it failed matters more than whether what is half-written can be removed.
        let _ = fs::remove_file(&draft);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("page.html"), folder.path().join("link"));
        write_whole(&file, b"one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(folder.path().read_dir().unwrap().count(), 2);
    }

    #[test]
    fn what_cannot_be_written_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        // Longer than a name may be, with what is put in front of it.
        let file = folder.path().join("x".repeat(250));
        fs::write(&file, "before").unwrap();
        assert!(write_whole(&file, b"after").is_err());
        assert_eq!(fs::read(&file).unwrap(), b"before");
        assert!(write_whole(Path::new("/dev/full"), b"x").is_err());
        assert!(write_whole(Path::new("/dev/null"), b"x").is_ok());
    }
}
