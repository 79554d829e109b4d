//! Why a load cannot be sent. What goes wrong with one request is data of its record, not an error.

use std::time::Duration;

use thiserror::Error;
use types::{Exit, Failure};

/// Why a load cannot be sent or a server cannot be reached.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// An address that is not one of a server.
    #[error("cannot use the server address `{url}`: {problem}")]
    Url {
        /// As given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },

    /// An encrypted connection.
    #[error("cannot connect to `{url}`: https is not supported")]
    Https {
        /// As given.
        url: String,
    },

    /// A setting outside its range.
    #[error("{name} must be {expected}, not {got}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its range.
        expected: &'static str,
        /// As given.
        got: String,
    },

    /// A line of a file of requests.
    #[error("line {line} of the {format}: {problem}")]
    Line {
        /// What the file was read as.
        format: &'static str,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
        /// What to change.
        fix: &'static str,
    },

    /// A file of requests without any.
    #[error("the {format} contains no requests")]
    Empty {
        /// What the file was read as.
        format: &'static str,
    },

    /// An image that servers do not read.
    #[error("the image is neither PNG, JPEG nor WebP; it starts with {start:02x?}")]
    Image {
        /// Its first bytes.
        start: Vec<u8>,
    },

    /// More connections than the process may open.
    #[error("{concurrency} concurrent requests exceed the limit of {limit} open files")]
    OpenFiles {
        /// How many requests run at once.
        concurrency: usize,
        /// The hard limit of the process.
        limit: u64,
    },

    /// A server that does not answer a single request.
    #[error("no answer from {server}{path}: {reason}")]
    NoAnswer {
        /// Its address.
        server: String,
        /// What was requested.
        path: String,
        /// What went wrong.
        reason: String,
    },

    /// A server that does not get ready.
    #[error("{server} was not ready within {} s: {last}", waited.as_secs_f64())]
    NotReady {
        /// Its address.
        server: String,
        /// How long it was given.
        waited: Duration,
        /// What the last attempt gave.
        last: String,
    },

    /// A server whose process ended before it was ready.
    #[error("the server process of {server} exited before it was ready: {last}")]
    Exited {
        /// Its address.
        server: String,
        /// What the last attempt gave.
        last: String,
    },

    /// Nobody waits for it any longer.
    #[error("stopped while {server} was not ready: {last}")]
    Stopped {
        /// Its address.
        server: String,
        /// What the last attempt gave.
        last: String,
    },

    /// The system refuses a thread or an event queue.
    #[error("cannot start the client: {0}")]
    Start(#[from] std::io::Error),
}

impl Failure for LoadError {
    fn exit(&self) -> Exit {
        match self {
            Self::Url { .. }
            | Self::Https { .. }
            | Self::Setting { .. }
            | Self::Line { .. }
            | Self::Empty { .. }
            | Self::Image { .. } => Exit::Usage,
            _ => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Url { .. } => Some("write it as `http://HOST:PORT`".to_owned()),
            Self::Https { .. } => {
                Some("use the server's plain `http://` port, or a local proxy that adds TLS".to_owned())
            }
            Self::Line { fix, .. } => Some((*fix).to_owned()),
            Self::Empty { .. } => Some("check that the right file was given".to_owned()),
            Self::OpenFiles { .. } => Some("raise the limit with `ulimit -n`, or lower the concurrency".to_owned()),
            Self::NotReady { .. } => {
                Some("check that it listens there, or give it longer with `--ready SECONDS`".to_owned())
            }
            _ => None,
        }
    }
}
