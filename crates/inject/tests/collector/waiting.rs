//! Processes that wait and are recorded on request.

use std::path::PathBuf;
use std::process::{Child, Command};

use super::trial::{Told, Trial};

/// An application that waits to be recorded: it was given the library and no folder.
pub(super) struct Waiting {
    pub(super) child: Child,
    pub(super) lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
    folder: PathBuf,
}

impl Waiting {
    /// Starts it and waits for its first line.
    pub(super) fn start(words: &str) -> Self {
        Self::start_by(Trial::new().command(words))
    }

    pub(super) fn start_by(mut command: Command) -> Self {
        command.env_remove("LLM_PERF_INJECT_FOLDER").stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let folder = PathBuf::from(format!("/tmp/llm-perf-attach-{}", child.id()));
        Self { child, lines, folder }
    }

    pub(super) fn signal(&self) {
        let sent = Command::new("kill").args(["-47", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Asks for a recording.
    pub(super) fn ask(&self, request: &str) {
        std::fs::create_dir_all(&self.folder).unwrap();
        std::fs::write(self.folder.join("request"), request).unwrap();
        self.signal();
    }

    /// Asks for a recording, until it begins: a signal may meet a thread that cannot start another.
    pub(super) fn begin(&self, request: &str) {
        self.ask(request);
        // What a file tells cannot be read yet: its beginning may be on its way.
        while self.files().is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(10));
            self.signal();
        }
    }

    /// Waits until it is over.
    pub(super) fn over(&self) {
        for _ in 0..500 {
            if !self.folder.join("request").exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            // The first may have met a thread that could not start another.
            self.signal();
        }
        panic!("the recording does not end");
    }

    fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().count()
    }

    /// Its files, oldest first.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|kind| kind == "wire"));
        paths.sort_by_key(|path| std::fs::metadata(path).unwrap().modified().unwrap());
        paths
    }

    /// What they tell.
    pub(super) fn told(&self) -> Vec<Told> {
        self.files().iter().map(|path| Told::of(&std::fs::read(path).unwrap())).collect()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_library_that_waits_has_no_thread_no_file_and_nothing_attached() {
    let mut waiting = Waiting::start("cuda push:a launch:x*100 graph:x*10 pop print:ready wanted sleep:2000");
    assert_eq!(waiting.lines.next().unwrap().unwrap(), "0");
    assert_eq!((waiting.threads(), waiting.folder.exists()), (1, false));
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", waiting.child.id())).unwrap();
    // Half a mebibyte is a log, more than one the writer.
    let anonymous = maps.lines().filter(|line| line.ends_with(" 0 ")).filter(|line| {
        let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        u64::from_str_radix(to, 16).unwrap() - u64::from_str_radix(from, 16).unwrap() >= 1 << 19
    });
    // One is the library's own, which nothing has touched.
    assert!(anonymous.count() <= 1, "{maps}");
}

#[test]
fn a_process_that_waits_is_recorded_as_often_as_it_is_asked() {
    let step = "push:step launch:a graph:g*2 wait sleep:5 pop ";
    let mut waiting =
        Waiting::start(&format!("cuda push:whole print:ready {}wanted print:end sleep:5000", step.repeat(400)));
    for request in ["300", "300", "200"] {
        waiting.ask(request);
        waiting.over();
    }
    let told = waiting.told();
    assert_eq!(told.len(), 3);
    for told in &told {
        assert!(told.kernels["a"] > 5 && told.finished && told.problems.is_empty(), "{told:?}");
        assert_eq!((&told.windows, &told.under["a"]), (&vec![true, false], &vec!["step".to_owned()]));
        assert!(told.kernels["a"] < 200, "it was over in time: {}", told.kernels["a"]);
    }
    let nodes: Vec<_> = told.iter().map(|told| told.kernels.get("g").copied().unwrap_or(0)).collect();
    assert!(nodes.iter().all(|nodes| *nodes > 10), "{nodes:?}");
    assert!(told.iter().all(|told| told.graphs == 0));
    assert_eq!(
        waiting.lines.next().unwrap().unwrap(),
        "10",
        "CUPTI stays, and is asked for nodes of graphs and the callbacks of calls, and for no record"
    );
    assert_eq!(waiting.lines.next().unwrap().unwrap(), "end");
    assert_eq!(waiting.threads(), 1);
}

#[test]
fn a_signal_without_a_request_does_nothing() {
    let waiting = Waiting::start(&format!("cuda print:ready {}", "launch:a sleep:5 ".repeat(200)));
    waiting.signal();
    for request in ["no request", "0", "500 whole"] {
        waiting.ask(request);
        waiting.over();
    }
    assert!(waiting.told().is_empty());
    waiting.ask("100");
    waiting.over();
    assert!(waiting.told()[0].kernels["a"] > 2);
}

#[test]
fn a_process_that_ends_while_it_is_recorded_on_request_keeps_what_it_did() {
    for (ending, finished) in [("", true), ("kill", false)] {
        let mut waiting =
            Waiting::start(&format!("cuda print:ready {}sleep:600 {ending}", "launch:a sleep:5 ".repeat(60)));
        waiting.begin("60000");
        waiting.child.wait().unwrap();
        let told = waiting.told();
        assert!(told[0].kernels["a"] > 20 && told[0].finished == finished, "{told:?}");
    }
}

#[test]
fn a_child_of_a_fork_waits_by_itself() {
    let words = format!("print:ready sleep:300 fork( cuda {}) sleep:100", "launch:child sleep:5 ".repeat(100));
    let waiting = Waiting::start(&words);
    waiting.ask("100");
    waiting.over();
    let told = waiting.told();
    assert!(told[0].kernels.is_empty() && told[0].finished, "the parent has no kernels");
}
