//! Recordings of processes that already run, with the library waiting in them: a request file in a folder of the process's own user,
//! and a signal. The other side is `inject/src/request.rs`.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use types::{Exit, Failure};

/// The signal the library listens to, where the application does not.
const SIGNAL: u32 = 47;
/// How long a process may take to begin.
const LONGEST_START: Duration = Duration::from_secs(5);
/// How long after its time a recording may take to end.
const LONGEST_END: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);
/// Tries of one thread before the next.
const PAUSES_A_THREAD: u32 = 3;

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachRequest {
    /// Number or name of a process.
    pub target: String,
    /// For how long.
    pub duration: Duration,
    /// Only launches of CUDA graphs are timed, without CUPTI.
    pub graphs_only: bool,
}

/// Why no process is recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// No process of that number or name.
    #[error("no running process of yours is `{0}`")]
    NoProcess(String),
    /// A process of another user.
    #[error("process {0} belongs to another user; only its own user can record it")]
    OtherUser(u32),
    /// None of the processes has the library.
    #[error("no process of `{0}` has loaded the collector")]
    NoLibrary(String),
    /// The library is there and does not wait.
    #[error(
        "the collector in process {0} does not wait for a request: it records into a folder, or the application ignores signal 47"
    )]
    NotWaiting(u32),
    /// Another recording is under way.
    #[error("process {0} is being recorded already")]
    Busy(u32),
    /// It did not begin.
    #[error("process {0} did not start to record within {limit} s", limit = LONGEST_START.as_secs())]
    NoAnswer(u32),
    /// A file could not be made or read.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
}

impl Failure for AttachError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoProcess(_) | Self::OtherUser(_) | Self::NoLibrary(_) | Self::NotWaiting(_) => Exit::Usage,
            _ => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoLibrary(_) => {
                "if it was started with `llm-perf run`, wait until it uses CUDA or NVTX; otherwise start it with `llm-perf run -- COMMAND`, or with the variables that `llm-perf run` prints, or under nsys; a \
                 server that runs already can be recorded through torch.profiler: `llm-perf serve --url URL` for vLLM and SGLang"
            }
            Self::Busy(_) => "wait until the other recording is over",
            Self::NoAnswer(_) => {
                "the application handles signal 47 itself, or none of its threads sleeps in a system call and it pushes no NVTX range: try again while it is busier or idle"
            }
            Self::OtherUser(_) => "run llm-perf as that user",
            Self::NotWaiting(_) => "unset LLM_PERF_INJECT_FOLDER for it, and start it again",
            Self::NoProcess(_) => "list your processes with `ps -u $USER`",
            Self::Io { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> AttachError {
    let path = path.to_owned();
    move |reason| AttachError::Io { action, path, reason }
}

/// What the system tells of a process.
#[derive(Clone, Debug)]
struct RunningProcess {
    id: u32,
    parent: u32,
    user: u32,
    /// Its number in its own namespace.
    inner: u32,
    names: Vec<String>,
    catches_signal: bool,
}

impl RunningProcess {
    fn read(id: u32) -> Option<Self> {
        let folder = PathBuf::from(format!("/proc/{id}"));
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        let command = fs::read(folder.join("cmdline")).unwrap_or_default();
        let words = command.split(|byte| *byte == 0).take(2).map(String::from_utf8_lossy);
        let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
        let mut names: Vec<_> = words.map(|word| base(&word)).collect();
        names.push(field("Name")?.to_owned());
        Some(Self {
            id,
            parent: field("PPid")?.parse().ok()?,
            user: field("Uid")?.split_whitespace().nth(1)?.parse().ok()?,
            inner: field("NSpid")
                .and_then(|ids| ids.split_whitespace().last())
                .map_or(Some(id), |id| id.parse().ok())?,
            names,
            catches_signal: has_signal(field("SigCgt")?),
        })
    }

    fn has_library(&self) -> bool {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.id)).unwrap_or_default();
        maps.lines().any(|line| line.contains("llm_perf_inject"))
    }

    /// Where requests for it lie, seen from here.
    fn folder(&self) -> PathBuf {
        let seen = PathBuf::from(format!("/proc/{}/root", self.id));
        seen.join(format!("tmp/llm-perf-attach-{}", self.inner))
    }

    fn is_running(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id)).unwrap_or_default();
        // The state follows the name, which may hold anything.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    /// Threads that do not block the signal.
    fn threads(&self) -> Vec<u32> {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.id)) else { return Vec::new() };
        let all = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
        let takes = |thread: &u32| {
            let status = fs::read_to_string(format!("/proc/{}/task/{thread}/status", self.id)).unwrap_or_default();
            let mask = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
            // After an `exec` nobody may catch it any more, and it would end the process.
            has_signal(mask("SigCgt:")) && !has_signal(mask("SigBlk:"))
        };
        all.filter(takes).collect()
    }

    fn signal(&self, thread: u32) {
        // SAFETY: numbers only. The process catches this signal, which was just read; a thread that is gone is no matter.
        unsafe { libc::syscall(libc::SYS_tgkill, self.id, thread, SIGNAL) };
    }
}

/// Whether a mask of signals in hexadecimal has ours.
fn has_signal(mask: &str) -> bool {
    u64::from_str_radix(mask, 16).is_ok_and(|mask| mask >> (SIGNAL - 1) & 1 == 1)
}

/// Processes that wait to be recorded: those of a number or name, and all below them.
#[derive(Debug)]
pub struct WaitingProcesses {
    waiting: Vec<RunningProcess>,
    /// Processes that have the library and do not wait.
    others: Vec<u32>,
}

impl WaitingProcesses {
    /// Finds them.
    pub fn find(target: &str) -> Result<Self, AttachError> {
        // SAFETY: has no conditions.
        let user = unsafe { libc::geteuid() };
        let ids = fs::read_dir("/proc").map_err(failed("list", Path::new("/proc")))?;
        let ids = ids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let all: Vec<_> = ids.filter(|id| *id != std::process::id()).filter_map(RunningProcess::read).collect();
        let number = target.parse::<u32>().ok();
        if let Some(other) = all.iter().find(|process| Some(process.id) == number && process.user != user) {
            return Err(AttachError::OtherUser(other.id));
        }
        let own: Vec<_> = all.into_iter().filter(|process| process.user == user).collect();
        let is_named = |process: &&RunningProcess| match number {
            Some(number) => process.id == number,
            None => process.names.iter().any(|name| name == target),
        };
        let mut chosen: Vec<_> = own.iter().filter(is_named).cloned().collect();
        if chosen.is_empty() {
            return Err(AttachError::NoProcess(target.to_owned()));
        }
        let mut at = 0;
        while let Some(parent) = chosen.get(at).map(|process| process.id) {
            let new = |process: &&RunningProcess| {
                process.parent == parent && chosen.iter().all(|known| known.id != process.id)
            };
            let children: Vec<_> = own.iter().filter(new).cloned().collect();
            chosen.extend(children);
            at += 1;
        }
        chosen.retain(RunningProcess::has_library);
        let first = chosen.first().map(|process| process.id);
        let Some(first) = first else { return Err(AttachError::NoLibrary(target.to_owned())) };
        let (waiting, others): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|process| process.catches_signal);
        let others = others.into_iter().map(|process| process.id).collect();
        if waiting.is_empty() { Err(AttachError::NotWaiting(first)) } else { Ok(Self { waiting, others }) }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.waiting.len()
    }

    /// Begins to record all of them together.
    pub fn begin(self, request: &AttachRequest) -> Result<Recording, AttachError> {
        let mut asked = Vec::new();
        let mut failed_first = None;
        let not_waiting = |id: &u32| AttachError::NotWaiting(*id).to_string();
        let mut missing: Vec<String> = self.others.iter().map(not_waiting).collect();
        for process in self.waiting {
            match ask(&process, request) {
                Ok(()) => asked.push(process),
                Err(error) => {
                    missing.push(error.to_string());
                    failed_first.get_or_insert(error);
                }
            }
        }
        if let Some(error) = failed_first.filter(|_| asked.is_empty()) {
            return Err(error);
        }
        Ok(Recording { asked, missing, until: Instant::now() + request.duration + LONGEST_END })
    }
}

/// Processes that are being recorded.
#[derive(Debug)]
pub struct Recording {
    asked: Vec<RunningProcess>,
    missing: Vec<String>,
    until: Instant,
}

impl Recording {
    /// Waits until it is over, or ends it when it is to `stop`; moves the files into `folder`, and tells which those are and what is
    /// missing.
    pub fn finish(mut self, folder: &Path, stop: &dyn Fn() -> bool) -> (Vec<PathBuf>, Vec<String>) {
        let mut is_stopped = false;
        let is_recording = |process: &RunningProcess| process.folder().join("request").exists() && process.is_running();
        while self.asked.iter().any(is_recording) && Instant::now() < self.until {
            if !is_stopped && stop() {
                is_stopped = true;
                self.until = Instant::now() + LONGEST_END;
                self.asked.iter().for_each(end_now);
            }
            std::thread::sleep(PAUSE);
        }
        let Self { asked, mut missing, .. } = self;
        let mut files = Vec::new();
        for process in &asked {
            if !process.is_running() {
                missing.push(format!("process {} ended while it was recorded", process.id));
            } else if process.folder().join("request").exists() {
                missing.push(format!("the recording of process {} was not over in time", process.id));
            }
            match gather(process, folder) {
                Ok(more) => files.extend(more),
                Err(error) => missing.push(error.to_string()),
            }
        }
        (files, missing)
    }
}

/// Takes a request back: the library ends a recording whose request is empty.
fn end_now(process: &RunningProcess) {
    // Where it is gone, the recording is over.
    let _ = fs::OpenOptions::new().write(true).truncate(true).open(process.folder().join("request"));
}

/// Leaves the request and sends the signal, thread by thread, until the process begins.
fn ask(process: &RunningProcess, request: &AttachRequest) -> Result<(), AttachError> {
    let folder = process.folder();
    if let Err(error) = fs::DirBuilder::new().mode(0o700).create(&folder)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(failed("create folder", &folder)(error));
    }
    let found = fs::symlink_metadata(&folder).map_err(failed("read", &folder))?;
    if !found.is_dir() || found.uid() != process.user {
        return Err(failed("use", &folder)(io::Error::other("it is not a folder of the process's user")));
    }
    let file = folder.join("request");
    if file.exists() {
        return Err(AttachError::Busy(process.id));
    }
    // Left over from a recording whose end nobody waited for.
    for old in wire_files(&folder) {
        let _ = fs::remove_file(old);
    }
    let what = if request.graphs_only { " graphs" } else { "" };
    fs::write(&file, format!("{}{what}", request.duration.as_millis())).map_err(failed("write", &file))?;
    let start = Instant::now();
    while start.elapsed() < LONGEST_START && process.is_running() {
        for thread in process.threads() {
            process.signal(thread);
            for _ in 0..PAUSES_A_THREAD {
                if !wire_files(&folder).is_empty() {
                    return Ok(());
                }
                std::thread::sleep(PAUSE);
            }
            if !file.exists() && wire_files(&folder).is_empty() {
                let reason = io::Error::other("the process could not create a file there");
                return Err(failed("record into", &folder)(reason));
            }
        }
    }
    let _ = (fs::remove_file(&file), fs::remove_dir(&folder));
    Err(AttachError::NoAnswer(process.id))
}

fn wire_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|kind| kind == "wire")).collect()
}

/// Moves what a process has written to a folder that may be on another file system.
fn gather(process: &RunningProcess, folder: &Path) -> Result<Vec<PathBuf>, AttachError> {
    let from = process.folder();
    // The way through a process that has ended is closed; a process of this namespace left its files here as well.
    let from = if from.exists() { from } else { Path::new("/").join(from.iter().skip(4).collect::<PathBuf>()) };
    let mut files = Vec::new();
    for (number, file) in wire_files(&from).into_iter().enumerate() {
        let again = if number > 0 { format!("-{number}") } else { String::new() };
        let place = folder.join(format!("process-{}{again}.wire", process.id));
        fs::copy(&file, &place).map_err(failed("copy", &file))?;
        let _ = fs::remove_file(&file);
        files.push(place);
    }
    if !process.is_running() {
        let _ = fs::remove_file(from.join("request"));
    }
    let _ = fs::remove_dir(&from);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_run_or_has_no_library_is_told_apart() {
        let none = WaitingProcesses::find("no-such-program-anywhere").unwrap_err();
        assert_eq!(
            (none.to_string(), none.exit()),
            ("no running process of yours is `no-such-program-anywhere`".into(), Exit::Usage)
        );
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let plain = WaitingProcesses::find(&child.id().to_string()).unwrap_err();
        let _ = (child.kill(), child.wait());
        assert!(matches!(&plain, AttachError::NoLibrary(_)), "{plain}");
        assert!(plain.hint().unwrap().contains("llm-perf run"));
    }

    #[test]
    fn a_signal_is_found_in_a_mask() {
        assert!(has_signal("0000400000000000") && has_signal("ffffffffffffffff"));
        assert!(!has_signal("0000000000000000") && !has_signal("0000200000000000") && !has_signal("x"));
    }
}
