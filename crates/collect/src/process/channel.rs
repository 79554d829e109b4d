//! How a child of ours talks back, whatever it prints: events as they come on a pipe, or one answer in a file, which also
//! reaches a child that a profiler starts.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use types::UserError;

use serde::Serialize;

/// Variable that tells a child the number of its pipe.
pub(super) const CHANNEL_VARIABLE: &str = "LLM_PERF_CHANNEL";

/// Variable that tells a child the file for its answer: a line of JSON.
pub const ANSWER_VARIABLE: &str = "LLM_PERF_ANSWER";

/// Lines a child writes to its pipe.
#[derive(Debug)]
pub struct Lines(BufReader<PipeReader>);

impl Lines {
    /// A pipe: its lines, and the end that the child gets.
    pub(super) fn open() -> std::io::Result<(Self, OwnedFd)> {
        let (reader, writer) = std::io::pipe()?;
        Ok((Self(BufReader::new(reader)), writer.into()))
    }
}

impl Iterator for Lines {
    type Item = String;

    /// The next line; `None` once every process that holds the pipe has let go of it.
    fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        match self.0.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
        }
    }
}

/// Answers the process that started this one, where it asked for an answer. Processes that share a file add to it.
pub fn send_answer(answer: &impl Serialize) -> Result<(), UserError> {
    let Some(path) = std::env::var_os(ANSWER_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return Ok(());
    };
    let write = || -> std::io::Result<()> {
        let mut line = serde_json::to_vec(answer)?;
        line.push(b'\n');
        OpenOptions::new().create(true).append(true).open(&path)?.write_all(&line)
    };
    write().map_err(UserError::io("write", &path))
}
