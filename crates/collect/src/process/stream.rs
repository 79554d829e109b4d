//! One output stream of a process: where it goes, and what is kept of it in memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use types::UserError;

use crate::Output;

/// How long a stream may stay open after the process itself has ended, because something it started holds on to it.
pub(super) const GRACE: Duration = Duration::from_millis(100);

/// What is kept of the end of a file for messages.
const TAIL_BYTES: u64 = 64 * 1024;

/// A stream of a running process.
#[derive(Debug)]
pub(super) enum Stream {
    /// Not seen here.
    Inherited,
    /// In a file.
    File(PathBuf),
    /// Read by a thread of its own, so that the process never blocks on a full pipe.
    Kept { bytes: Arc<Mutex<Vec<u8>>>, ended: Receiver<()> },
}

/// What the process writes to.
pub(super) fn target(output: &Output) -> Result<Stdio, UserError> {
    Ok(match output {
        Output::Inherited => Stdio::inherit(),
        Output::File(path) => File::create(path).map_err(UserError::io("write", path))?.into(),
        Output::Kept(_) => Stdio::piped(),
    })
}

impl Stream {
    pub(super) fn of(output: &Output, pipe: Option<impl Read + Send + 'static>) -> Self {
        match (output, pipe) {
            (Output::Kept(most), Some(pipe)) => keep(pipe, *most),
            (Output::File(path), _) => Self::File(path.clone()),
            _ => Self::Inherited,
        }
    }

    /// What is kept: the end of a file, or what came through a pipe until its end or until `patience` is over.
    pub(super) fn text(self, patience: Instant) -> Result<String, UserError> {
        let bytes = match self {
            Self::Inherited => Vec::new(),
            Self::File(path) => tail(&path).map_err(UserError::io("read", &path))?,
            Self::Kept { bytes, ended } => {
                // The reader drops its end when the stream ends; nothing is ever sent.
                let _ = ended.recv_timeout(patience.saturating_duration_since(Instant::now()));
                std::mem::take(&mut *bytes.lock().unwrap_or_else(PoisonError::into_inner))
            }
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn keep(mut pipe: impl Read + Send + 'static, most: usize) -> Stream {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let (at_end, ended) = channel();
    let kept = Arc::clone(&bytes);
    std::thread::spawn(move || {
        let mut piece = [0; 8192];
        // Reading goes on past what is kept, because a process that is cut off would die of a closed pipe.
        while let Ok(count) = pipe.read(&mut piece) {
            if count == 0 {
                break;
            }
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let room = most.saturating_sub(kept.len());
            kept.extend_from_slice(&piece[..count.min(room)]);
        }
        drop(at_end);
    });
    Stream::Kept { bytes, ended }
}

fn tail(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
