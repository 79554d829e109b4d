//! Runs a long program to its end and keeps what it was given and what it said.
//!
//! For the model under test and the profilers around it: output goes to files of the run folder as it comes, a bound on
//! the files it writes and on its time is held, and an interrupt at the keyboard reaches it and everything it started.
//! Short questions to helper programs go through `crate::process`; what the output means is read elsewhere.

mod interrupt;

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use types::Bytes;

use crate::CollectError;
use crate::run::RunFolder;
use crate::tool::Command;

/// How often the bounds are looked at.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a program that was asked to end may take to do so before it is ended. A profiler needs it to write down
/// what it has.
const GRACE: Duration = Duration::from_secs(5);

/// What a program may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Longest time; none where absent.
    pub time: Option<Duration>,
    /// Largest size of what `grows` names, all together; none where absent.
    pub size: Option<Bytes>,
    /// Files, and folders with everything in them, whose size is held to `size`.
    pub grows: Vec<PathBuf>,
    /// Files of tools that name them themselves: everything beside this path whose name begins as this path's does, and
    /// that was not there before.
    pub grows_like: Option<PathBuf>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// By us, because its time was up.
    OutOfTime,
    /// By us, because it wrote more than it may: this much.
    TooLarge(Bytes),
    /// By the user at the keyboard.
    Interrupted,
}

/// A program that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The process that was started.
    pub process: u32,
    /// How.
    pub ending: Ending,
    /// How long it took.
    pub wall: Duration,
    /// What it wrote on standard output, relative to the run folder.
    pub stdout: String,
    /// What it wrote on standard error, relative to the run folder.
    pub stderr: String,
    /// End of standard output.
    pub stdout_tail: String,
    /// End of standard error.
    pub stderr_tail: String,
}

/// What is kept in memory of each stream for messages; all of it is in the files.
const TAIL: usize = 64 * 1024;

impl Finished {
    /// Whether it ended well.
    pub fn succeeded(&self) -> bool {
        self.ending == Ending::Code(0)
    }

    /// Everything it said last, both streams.
    pub fn said(&self) -> String {
        format!("{}\n{}", self.stderr_tail, self.stdout_tail)
    }

    /// The last lines of what it said, for a message: of standard error, else of standard output.
    pub fn last_lines(&self, most: usize) -> Vec<&str> {
        let blank = |text: &str| text.trim().is_empty();
        let text = if blank(&self.stderr_tail) { &self.stdout_tail } else { &self.stderr_tail };
        let all: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !blank(line)).collect();
        all[all.len().saturating_sub(most)..].to_vec()
    }
}

/// Runs `command` to its end. `logs/NAME.argv`, `logs/NAME.stdout` and `logs/NAME.stderr` of the run keep what was
/// typed and what came back, whatever happened.
pub fn run(folder: &mut RunFolder, name: &str, command: &Command, bounds: &Bounds) -> Result<Finished, CollectError> {
    let [argv, stdout, stderr] = ["argv", "stdout", "stderr"].map(|ending| format!("logs/{name}.{ending}"));
    folder.write_file(&argv, format!("{command}\n").as_bytes())?;
    let open = |path: PathBuf| File::create(&path).map_err(CollectError::io("write", path));
    let (out_path, err_path) = (folder.prepare(&stdout)?, folder.prepare(&stderr)?);
    let (out, err) = (open(out_path.clone())?, open(err_path.clone())?);
    let ended = start_and_wait(command, bounds, out, err);
    folder.adopt(&stdout)?;
    folder.adopt(&stderr)?;
    let (process, ending, wall) = ended?;
    Ok(Finished { process, ending, wall, stdout_tail: tail(&out_path)?, stderr_tail: tail(&err_path)?, stdout, stderr })
}

fn start_and_wait(
    command: &Command,
    bounds: &Bounds,
    out: File,
    err: File,
) -> Result<(u32, Ending, Duration), CollectError> {
    let failed = |reason| CollectError::Start { program: command.program.clone(), reason };
    let mut starting = std::process::Command::new(&command.program);
    starting.args(&command.arguments).envs(command.environment.iter().map(|(name, value)| (name, value)));
    starting.stdin(Stdio::null()).stdout(out).stderr(err);
    // A group of its own, so that ending it also ends what it started; interrupts are passed on to it.
    starting.process_group(0);
    if let Some(folder) = &command.folder {
        starting.current_dir(folder);
    }
    let started = Instant::now();
    let mut child = starting.spawn().map_err(failed)?;
    let group = interrupt::Group::watch(child.id());
    let before: Vec<PathBuf> = bounds.grows_like.as_deref().map(named_like).unwrap_or_default();
    let mut asked: Option<(Ending, Instant)> = None;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            let wall = started.elapsed();
            let own = match (status.code(), status.signal()) {
                (Some(code), _) => Ending::Code(code),
                (None, signal) => Ending::Signal(signal.unwrap_or_default()),
            };
            let ending = match asked {
                Some((why, _)) => why,
                None if group.interrupted() => Ending::Interrupted,
                None => own,
            };
            // What it left running would go on writing into files that are taken to be whole.
            if ending != Ending::Code(0) {
                group.end();
            }
            return Ok((child.id(), ending, wall));
        }
        match asked {
            None => {
                asked = broken(bounds, &before, started).map(|why| (why, Instant::now()));
                if asked.is_some() {
                    group.ask_to_end();
                }
            }
            Some((_, since)) if since.elapsed() > GRACE => group.end(),
            Some(_) => {}
        }
        thread::sleep(PAUSE);
    }
}

/// Which bound is broken.
fn broken(bounds: &Bounds, before: &[PathBuf], started: Instant) -> Option<Ending> {
    if bounds.time.is_some_and(|most| started.elapsed() > most) {
        return Some(Ending::OutOfTime);
    }
    let most = bounds.size?;
    let new = bounds.grows_like.as_deref().map(named_like).unwrap_or_default();
    let new = new.iter().filter(|path| !before.contains(path));
    let size = Bytes::new(bounds.grows.iter().chain(new).map(|path| size_of(path)).sum());
    (size > most).then_some(Ending::TooLarge(size))
}

/// What lies beside `path` and has a name that begins as its does.
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

fn tail(path: &Path) -> Result<String, CollectError> {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL as u64)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().map_err(CollectError::io("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunRequest;
    use std::ffi::OsString;

    fn shell(script: &str, bounds: impl FnOnce(&Path) -> Bounds) -> (Finished, tempfile::TempDir) {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("run");
        let request = RunRequest { out: Some(out.clone()), ..RunRequest::new("deep", Vec::new()) };
        let mut folder = RunFolder::create(request).unwrap();
        let command = Command::new("/bin/sh", ["-c", script].map(OsString::from).to_vec())
            .with_variable("TRACE", out.join("trace").into_os_string());
        let finished = run(&mut folder, "pass", &command, &bounds(&out)).unwrap();
        folder.end_step("pass").unwrap();
        (finished, root)
    }

    fn unbounded(_: &Path) -> Bounds {
        Bounds::default()
    }

    #[test]
    fn what_was_typed_and_what_came_back_is_kept() {
        let (finished, root) = shell("echo out; echo err >&2; exit 3", unbounded);
        assert_eq!((finished.ending, finished.succeeded()), (Ending::Code(3), false));
        assert_eq!(finished.last_lines(5), ["err"]);
        let read = |path: &str| std::fs::read_to_string(root.path().join("run").join(path)).unwrap();
        assert_eq!(read(&finished.stdout), "out\n");
        assert_eq!(read("logs/pass.stderr"), "err\n");
        assert!(read("logs/pass.argv").contains("/bin/sh -c 'echo out; echo err >&2; exit 3'"));
        let manifest = read("manifest.json");
        assert!(manifest.contains("logs/pass.argv") && manifest.contains("logs/pass.stdout"), "{manifest}");
    }

    #[test]
    fn a_program_that_writes_too_much_is_asked_to_end_and_may_finish_its_file() {
        let script = "trap 'echo end >> $TRACE; exit 0' TERM; while :; do echo 0123456789abcdef >> $TRACE; done";
        let (finished, root) = shell(script, |out| Bounds {
            size: Some(Bytes::new(4096)),
            grows: vec![out.join("trace")],
            ..Bounds::default()
        });
        assert!(matches!(finished.ending, Ending::TooLarge(size) if size > Bytes::new(4096)), "{:?}", finished.ending);
        assert!(std::fs::read_to_string(root.path().join("run/trace")).unwrap().ends_with("end\n"));
    }

    #[test]
    fn a_program_whose_time_is_up_is_ended() {
        let (finished, _root) =
            shell("sleep 600", |_| Bounds { time: Some(Duration::from_millis(50)), ..Bounds::default() });
        assert_eq!(finished.ending, Ending::OutOfTime);
    }

    #[test]
    fn a_signal_is_named_and_a_program_that_is_not_there_is_an_error() {
        assert_eq!(shell("kill -KILL $$", unbounded).0.ending, Ending::Signal(libc::SIGKILL));
        let root = tempfile::tempdir().unwrap();
        let request = RunRequest { out: Some(root.path().join("run")), ..RunRequest::new("deep", Vec::new()) };
        let mut folder = RunFolder::create(request).unwrap();
        let error = run(&mut folder, "pass", &Command::new("/nowhere/ncu", vec![]), &Bounds::default()).unwrap_err();
        assert_eq!(error.to_string(), "cannot start /nowhere/ncu: No such file or directory (os error 2)");
    }
}
