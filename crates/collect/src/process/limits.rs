//! What a process may use, and whether it has used more.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use types::Bytes;

use super::{Ending, Interrupt};

/// How often sizes are looked at and the user's wish to stop is asked for.
const TICK: Duration = Duration::from_millis(20);

/// How often it is looked whether a signal was passed on, which the process may ignore.
const SELDOM: Duration = Duration::from_millis(250);

/// The end of a process is waited for, and nothing else is: this long at a time.
const LONG: Duration = Duration::from_secs(3600);

/// Most bytes of a log. Nobody reads more, and a program that prints without end would fill the disk.
pub const MOST_LOG: Bytes = Bytes::new(64 << 20);

/// What a process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest time; none where absent.
    pub time: Option<Duration>,
    /// Largest size of what `watched` and `watched_like` name, together; none where absent.
    pub size: Option<Bytes>,
    /// Files, and folders with everything in them, whose size is limited.
    pub watched: Vec<PathBuf>,
    /// Files of tools that name them themselves: everything beside this path whose name starts as this path's does, and
    /// that was not there before.
    pub watched_like: Option<PathBuf>,
    /// Most bytes that are kept of each of its logs: the beginning and the end. All, where absent, for a tool whose output is its result.
    pub log: Option<Bytes>,
    /// How long it may take to end after it was asked to, before it is killed; zero: it is not asked. A profiler needs the
    /// time to write down what it has.
    pub grace: Duration,
}

impl Default for Limits {
    /// None but for logs, and five seconds to end.
    fn default() -> Self {
        Self {
            time: None,
            size: None,
            watched: Vec::new(),
            watched_like: None,
            log: Some(MOST_LOG),
            grace: Duration::from_secs(5),
        }
    }
}

/// Limits of a process that runs.
pub(super) struct Watch<'a> {
    limits: &'a Limits,
    started: Instant,
    /// What was there before, and does not count.
    before: Vec<PathBuf>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(limits: &'a Limits, started: Instant) -> Self {
        let before = limits.watched_like.as_deref().map(named_like).unwrap_or_default();
        Self { limits, started, before }
    }

    /// Which limit is broken.
    pub(super) fn broken(&self) -> Option<Ending> {
        if self.limits.time.is_some_and(|most| self.started.elapsed() >= most) {
            return Some(Ending::OutOfTime);
        }
        let most = self.limits.size?;
        let new = self.limits.watched_like.as_deref().map(named_like).unwrap_or_default();
        let new = new.iter().filter(|path| !self.before.contains(path));
        let size = Bytes::new(self.limits.watched.iter().chain(new).map(|path| size_of(path)).sum());
        (size > most).then_some(Ending::TooLarge(size))
    }

    /// How long nothing can happen but its end: until the next look, the end of its time or of its grace.
    pub(super) fn pause(&self, interrupt: &Interrupt<'_>, grace_left: Option<Duration>) -> Duration {
        if let Some(left) = grace_left {
            return left.max(Duration::from_millis(1));
        }
        let is_looked_after = self.limits.size.is_some() || matches!(interrupt, Interrupt::Asked(_));
        let left = self.limits.time.map_or(LONG, |most| most.saturating_sub(self.started.elapsed()));
        match interrupt {
            _ if is_looked_after => left.min(TICK),
            Interrupt::Forwarded => left.min(SELDOM),
            _ => left,
        }
    }
}

/// What lies beside `path` and has a name that starts as its does.
fn named_like(path: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(prefix)) = (path.parent(), path.file_name().map(|name| name.as_encoded_bytes())) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let alike = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix));
    alike.map(|entry| entry.path()).collect()
}

/// Size of a file, or of everything in a folder. What is not there yet has none.
pub fn size_of(path: &Path) -> u64 {
    let Ok(found) = path.symlink_metadata() else { return 0 };
    if !found.is_dir() {
        return found.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size_of(&entry.path())).sum()
}
