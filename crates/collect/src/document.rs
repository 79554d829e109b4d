//! Opening what a user or a run folder names, and reading it into memory up to a limit. What is named may be a device, a pipe or a link
//! to one: opening it may wait for ever, and reading it may never end.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use types::Bytes;

/// Most that a document may have. The largest of ours, the metrics of a run with millions of kernels, are a tenth of it.
pub const MOST: u64 = 1 << 30;

/// How long a pipe may be without a writer: a shell that starts both sides may start the reader first.
const WRITER_STARTS: Duration = Duration::from_secs(1);

/// Opens a file, or a pipe that something writes to. Everything else is refused before it is opened.
pub fn open(path: &Path) -> io::Result<File> {
    let kind = std::fs::metadata(path)?.file_type();
    let refused = |what: &str| Err(io::Error::new(ErrorKind::InvalidInput, what));
    if kind.is_dir() {
        return Err(io::Error::from(ErrorKind::IsADirectory));
    }
    if kind.is_char_device() || kind.is_block_device() {
        return refused("it is a device, not a file");
    }
    if kind.is_socket() {
        return refused("it is a socket, not a file");
    }
    // Of a file this changes nothing; a pipe without a writer would block here.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.file_type().is_fifo() {
        let asked = Instant::now();
        while !has_writer(&file)? {
            if asked.elapsed() > WRITER_STARTS {
                return refused("it is a pipe without a writer; start the writer first");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // SAFETY: the descriptor is open for as long as `file` lives; reads wait for the writer from now on.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(file)
}

/// Whether a pipe has a writer, or what one has left. Nothing is taken out of it.
fn has_writer(pipe: &File) -> io::Result<bool> {
    let (_reader, writer) = io::pipe()?;
    // SAFETY: both descriptors are open pipes for the time of the call.
    match unsafe { libc::tee(pipe.as_raw_fd(), writer.as_raw_fd(), 1, libc::SPLICE_F_NONBLOCK) } {
        0 => Ok(false),
        1.. => Ok(true),
        _ => match io::Error::last_os_error() {
            error if error.kind() == ErrorKind::WouldBlock => Ok(true),
            error => Err(error),
        },
    }
}

/// The bytes of a file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_from(open(path)?, MOST)
}

/// The text of a file.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

/// All that a reader yields, `most` bytes at most; more are an error.
pub fn read_from(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {}", Bytes::new(most))))
    } else {
        Ok(bytes)
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

    fn pipe(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    #[test]
    fn a_pipe_without_a_writer_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(&pipe(folder.path())).unwrap_err();
        assert!(error.to_string().contains("without a writer"), "{error}");
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_none_of_its_bytes_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = pipe(folder.path());
        let content: Vec<u8> = (0..300_000u32).map(|place| place as u8).collect();
        let (writer, written) = (path.clone(), content.clone());
        let writer = std::thread::spawn(move || std::fs::write(writer, written));
        assert_eq!(read(&path).unwrap(), content);
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn folders_devices_sockets_and_links_to_them_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero")).unwrap();
        for (name, reason) in [("", "directory"), ("zero", "device"), ("socket", "socket")] {
            let error = open(&folder.path().join(name)).unwrap_err();
            assert!(error.to_string().contains(reason), "{name}: {error}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error_and_not_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        assert_eq!(read_text(&file).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
