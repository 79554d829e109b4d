//! Processes of a run: what was typed and what came back is kept in `logs/` of its folder, whatever happens.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use types::{Bytes, UserError};

use super::channel::ANSWER_VARIABLE;
use super::{Interrupt, Limits, Process, ProcessOutcome};
use crate::run::RunFolder;
use crate::{Command, Output};

/// Runs `command` to its end. `logs/NAME.argv`, `logs/NAME.stdout` and `logs/NAME.stderr` keep what was typed and what came
/// back.
pub fn run(
    folder: &mut RunFolder,
    name: &str,
    command: Command,
    limits: &Limits,
    interrupt: Interrupt<'_>,
) -> Result<ProcessOutcome, UserError> {
    let command = folder.log_command(name, command)?;
    let finished = Process::start(&command).and_then(|process| process.wait(limits, interrupt));
    folder.adopt_logs(name, limits.log)?;
    finished
}

/// The same for a program that may answer; see [`answer`].
pub fn run_for_answer(
    folder: &mut RunFolder,
    name: &str,
    command: Command,
    limits: &Limits,
    interrupt: Interrupt<'_>,
) -> Result<ProcessOutcome, UserError> {
    let log = answer_log(name);
    let path = folder.prepare(&log)?;
    let path = std::path::absolute(&path).unwrap_or(path);
    let finished = run(folder, name, command.with_variable(ANSWER_VARIABLE, path.clone()), limits, interrupt);
    if path.is_file() {
        folder.adopt(&log)?;
    }
    finished
}

/// What a program of the run answered; `None` where it did not, or not with this.
pub fn answer<T: DeserializeOwned>(folder: &RunFolder, name: &str) -> Option<T> {
    let text = std::fs::read_to_string(folder.path().join(answer_log(name))).ok()?;
    serde_json::Deserializer::from_str(&text).into_iter().next()?.ok()
}

/// Where the standard output of a program is kept, relative to the run folder.
pub fn stdout_log(name: &str) -> String {
    format!("logs/{name}.stdout")
}

/// The same of its standard error.
pub fn stderr_log(name: &str) -> String {
    format!("logs/{name}.stderr")
}

fn answer_log(name: &str) -> String {
    format!("logs/{name}.answer.json")
}

impl RunFolder {
    /// The command with its output into the logs of that name, where it is also written down.
    pub fn log_command(&mut self, name: &str, command: Command) -> Result<Command, UserError> {
        self.write_file(&format!("logs/{name}.argv"), format!("{command}\n").as_bytes())?;
        let (stdout, stderr) = (self.prepare(&stdout_log(name))?, self.prepare(&stderr_log(name))?);
        Ok(command.with_output(Output::File(stdout), Output::File(stderr)))
    }

    /// Takes in what the program wrote, cut to its beginning and its end where one of the two has more than `most`.
    pub fn adopt_logs(&mut self, name: &str, most: Option<Bytes>) -> Result<(), UserError> {
        for log in [stdout_log(name), stderr_log(name)] {
            let path = self.path().join(&log);
            if let Some(most) = most {
                cut(&path, most.get()).map_err(UserError::io("cut", &path))?;
            }
            self.adopt(&log)?;
        }
        Ok(())
    }
}

/// Takes out the middle of a file that has more than `most` bytes, and says so there.
fn cut(path: &Path, most: u64) -> io::Result<()> {
    // A link is refused by whoever takes the file in.
    let length = std::fs::symlink_metadata(path).map_or(0, |found| if found.is_file() { found.len() } else { 0 });
    if length <= most {
        return Ok(());
    }
    let half = most / 2;
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    file.seek(SeekFrom::Start(length - half))?;
    let mut end = Vec::new();
    Read::by_ref(&mut file).take(half).read_to_end(&mut end)?;
    file.set_len(half)?;
    file.seek(SeekFrom::Start(half))?;
    write!(file, "\n[llm-perf omitted {} bytes here]\n", length - 2 * half)?;
    file.write_all(&end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Ending;
    use crate::run::RunRequest;

    fn shell(script: &str, limits: impl FnOnce(&Path) -> Limits) -> (ProcessOutcome, RunFolder, tempfile::TempDir) {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("run");
        let request = RunRequest { out: Some(out.clone()), ..RunRequest::new("deep", Vec::new()) };
        let mut folder = RunFolder::create(request).unwrap();
        let command = Command::new("/bin/sh", ["-c", script]).with_variable("TRACE", out.join("trace"));
        let finished = run_for_answer(&mut folder, "pass", command, &limits(&out), Interrupt::Forwarded).unwrap();
        folder.end_step("pass").unwrap();
        (finished, folder, root)
    }

    #[test]
    fn what_was_typed_and_what_came_back_is_kept() {
        let (finished, _folder, root) = shell("echo out; echo err >&2; exit 3", |_| Limits::default());
        assert_eq!((finished.ending, finished.succeeded()), (Ending::Code(3), false));
        assert_eq!(finished.last_lines(5), ["err"]);
        let read = |path: &str| std::fs::read_to_string(root.path().join("run").join(path)).unwrap();
        assert_eq!(read(&stdout_log("pass")), "out\n");
        assert_eq!(read("logs/pass.stderr"), "err\n");
        assert!(read("logs/pass.argv").contains("/bin/sh -c 'echo out; echo err >&2; exit 3'"));
        let manifest = read("manifest.json");
        assert!(manifest.contains("logs/pass.argv") && manifest.contains("logs/pass.stdout"), "{manifest}");
    }

    #[test]
    fn an_answer_comes_back_whatever_the_program_prints() {
        let script = r#"echo '{"noise": 1}'; echo '[1, 2]' >>"$LLM_PERF_ANSWER"; echo '[3]' >>"$LLM_PERF_ANSWER""#;
        let (finished, folder, _root) = shell(script, |_| Limits::default());
        assert!(finished.succeeded());
        assert_eq!(answer::<Vec<u32>>(&folder, "pass"), Some(vec![1, 2]), "the first process that answers");
        assert_eq!(answer::<String>(&folder, "pass"), None, "not what was asked for");
        let (_, silent, _root) = shell("echo '[1]'", |_| Limits::default());
        assert_eq!(answer::<Vec<u32>>(&silent, "pass"), None);
    }

    #[test]
    fn a_program_that_writes_too_much_is_asked_to_end_and_may_finish_its_file() {
        let script = "trap 'echo end >> $TRACE; exit 0' TERM; while :; do echo 0123456789abcdef >> $TRACE; done";
        let (finished, _folder, root) = shell(script, |out| Limits {
            size: Some(Bytes::new(4096)),
            watched: vec![out.join("trace")],
            ..Limits::default()
        });
        assert!(matches!(finished.ending, Ending::TooLarge(size) if size > Bytes::new(4096)), "{:?}", finished.ending);
        assert!(std::fs::read_to_string(root.path().join("run/trace")).unwrap().ends_with("end\n"));
    }

    #[test]
    fn of_output_without_end_the_beginning_and_the_end_are_kept() {
        let script = "printf begin; head -c 100000 /dev/zero; printf end; printf short >&2";
        let (_, folder, _root) = shell(script, |_| Limits { log: Some(Bytes::new(1000)), ..Limits::default() });
        let log = std::fs::read(folder.path().join(stdout_log("pass"))).unwrap();
        let text = String::from_utf8_lossy(&log);
        assert!(text.starts_with("begin") && text.ends_with("end") && log.len() < 1100, "{}", log.len());
        assert!(text.contains("\n[llm-perf omitted 99008 bytes here]\n"), "{text:?}");
        assert_eq!(std::fs::read(folder.path().join(stderr_log("pass"))).unwrap(), b"short");
        let (_, folder, _root) = shell(script, |_| Limits { log: None, ..Limits::default() });
        assert_eq!(folder.path().join(stdout_log("pass")).metadata().unwrap().len(), 100_008);
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_and_its_command_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let request = RunRequest { out: Some(root.path().join("run")), ..RunRequest::new("deep", Vec::new()) };
        let mut folder = RunFolder::create(request).unwrap();
        let command = Command::new("/nowhere/ncu", [""; 0]);
        let error = run(&mut folder, "pass", command, &Limits::default(), Interrupt::Forwarded).unwrap_err();
        assert_eq!(error.to_string(), "cannot start /nowhere/ncu: No such file or directory (os error 2)");
        assert!(root.path().join("run/logs/pass.argv").is_file());
    }
}
