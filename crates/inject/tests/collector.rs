//! The library itself, loaded into real processes by doubles of CUPTI and of an application: what reaches the file when
//! processes end well, are killed, crash, fork, or have more to say than there is room for.

mod compile {
    include!("../compile.rs");
}

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;

use wire::{Counter, Name, Piece, Record};

/// What the tests start, compiled once.
struct Made {
    library: PathBuf,
    cupti: PathBuf,
    driver: PathBuf,
    application: PathBuf,
}

fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("collector-{}", std::process::id()));
        std::fs::create_dir_all(&out).unwrap();
        let compiler = PathBuf::from(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let library = compile::library(&compile::Compiler {
            program: &compiler,
            linker: None,
            target: None,
            crates: here.parent().unwrap(),
            out: &out,
            version: "0.1.0",
        })
        .unwrap();
        let double = |name: &str, kind: &str, file: &str| {
            let source = here.join("tests/double").join(name);
            let mut command = Command::new(&compiler);
            command.arg(source).args(["--edition", "2024", "--crate-type", kind, "-o"]).arg(out.join(file));
            if kind == "cdylib" {
                // A library is known to the loader by this name.
                command.arg(format!("-Clink-arg=-Wl,-soname,{file}"));
            }
            let done = command.output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            out.join(file)
        };
        let cupti = double("cupti.rs", "cdylib", "libdouble_cupti.so");
        let driver = double("driver.rs", "cdylib", "libcuda.so.1");
        let application = double("application.rs", "bin", "application");
        Made { library, cupti, driver, application }
    })
}

/// An application that is collected into a folder of its own.
struct Trial {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Trial {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    fn with(variable: &'static str, value: &str) -> Self {
        let mut trial = Self::new();
        trial.variables.push((variable, value.to_owned()));
        trial
    }

    fn command(&self, words: &str) -> Command {
        let made = made();
        let mut command = Command::new(&made.application);
        command.args(words.split_whitespace());
        command.env("CUDA_INJECTION64_PATH", &made.library).env("NVTX_INJECTION64_PATH", &made.library);
        command.env("LLM_PERF_INJECT_CUPTI", &made.cupti).env("LLM_PERF_INJECT_FOLDER", self.folder.path());
        command.env("DOUBLE_DRIVER", &made.driver);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the application to its end.
    fn run(words: &str) -> Self {
        Self::new().ran(words)
    }

    fn ran(self, words: &str) -> Self {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        self
    }

    /// Runs the application up to its end by a signal.
    fn run_to_signal(words: &str) -> Self {
        let trial = Self::new();
        let output = trial.command(words).output().unwrap();
        assert!(output.status.code().is_none(), "{output:?}");
        trial
    }

    fn files(&self) -> Vec<Vec<u8>> {
        let mut paths: Vec<_> =
            std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
    }

    /// The one file there is.
    fn file(&self) -> Told {
        let files = self.files();
        assert_eq!(files.len(), 1, "files");
        Told::of(&files[0])
    }
}

/// What a file tells, in a form to compare.
#[derive(Debug, Default)]
struct Told {
    process: u32,
    kernels: BTreeMap<String, usize>,
    /// Per kernel: the ranges around its launch, outermost first.
    under: BTreeMap<String, Vec<String>>,
    calls: BTreeMap<String, usize>,
    ranges: Vec<String>,
    pops: u64,
    problems: Vec<(u32, String)>,
    counters: BTreeMap<Counter, u64>,
    finished: bool,
    torn: bool,
    windows: Vec<bool>,
    /// Launches of whole graphs.
    graphs: usize,
}

fn owned(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Told {
    fn of(file: &[u8]) -> Self {
        let mut told = Self::default();
        let (mut texts, mut registered, mut domains) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut records = Vec::new();
        for piece in wire::open(file).unwrap() {
            match piece {
                Piece::Block(block) => {
                    let mut thread = 0;
                    for record in block {
                        match record {
                            Record::Thread { thread: now } => thread = now,
                            Record::Text { number, text } => _ = texts.insert(number, owned(text)),
                            Record::Registered { number, text } => _ = registered.insert(number, owned(text)),
                            Record::Domain { number, text } => _ = domains.insert(number, owned(text)),
                            record => records.push((thread, record)),
                        }
                    }
                }
                Piece::Damaged(damage) => told.torn |= damage.torn,
            }
        }
        let name = |name: Name| match name {
            Name::Text(number) => texts[&number].clone(),
            Name::Registered(number) => registered[&number].clone(),
        };
        let mut open: BTreeMap<(u32, u32), Vec<String>> = BTreeMap::new();
        let mut launched: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (thread, record) in &records {
            match *record {
                Record::Process { process, .. } => told.process = process,
                Record::Push { domain, depth, name: called, .. } => {
                    let prefix = domains.get(&domain).map(|domain| format!("{domain}@")).unwrap_or_default();
                    let stack = open.entry((*thread, domain)).or_default();
                    stack.truncate(depth as usize);
                    stack.push(format!("{prefix}{}", name(called)));
                    told.ranges.push(stack.last().unwrap().clone());
                }
                Record::Pop { domain, depth, .. } => {
                    told.pops += 1;
                    open.entry((*thread, domain)).or_default().truncate(depth as usize);
                }
                Record::Start { name: called, .. } => told.ranges.push(name(called)),
                Record::Call { function, correlation, .. } => {
                    *told.calls.entry(texts[&function].clone()).or_default() += 1;
                    let around = open.iter().filter(|((of, _), _)| of == thread).flat_map(|(_, stack)| stack.clone());
                    launched.insert(correlation, around.collect());
                }
                Record::Problem { code, what } => told.problems.push((code, owned(what))),
                Record::Count { counter, value } => _ = told.counters.insert(counter, value),
                Record::Finish => told.finished = true,
                Record::Window { open, .. } => told.windows.push(open),
                Record::Graph { .. } => told.graphs += 1,
                _ => {}
            }
        }
        for (_, record) in &records {
            if let Record::Kernel { name, place, .. } = *record {
                *told.kernels.entry(texts[&name].clone()).or_default() += 1;
                if let Some(around) = launched.get(&place.correlation) {
                    told.under.insert(texts[&name].clone(), around.clone());
                }
            }
        }
        told
    }
}

fn counts<const N: usize>(expected: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expected.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

#[test]
fn kernels_calls_and_ranges_reach_the_file_and_belong_together() {
    let trial = Trial::run(
        "cuda push:prefill launch:gemm*3 push@LLM:layer launch:norm pop@LLM pop wait push:decode launch:copy pop \
         launch:after start:whole end",
    );
    let told = trial.file();
    assert_eq!(told.kernels, counts([("after", 1), ("copy", 1), ("gemm", 3), ("norm", 1)]));
    assert_eq!(told.calls, counts([("cudaLaunchKernel_v7000", 6), ("cudaStreamSynchronize_v3020", 1)]));
    assert_eq!(told.ranges, ["prefill", "LLM@layer", "decode", "whole"]);
    assert_eq!(told.under["gemm"], ["prefill"]);
    assert_eq!(told.under["norm"], ["prefill", "LLM@layer"]);
    assert_eq!(told.under["copy"], ["decode"]);
    assert_eq!(told.under["after"], [""; 0]);
    assert!(told.finished);
    assert_eq!(told.counters, BTreeMap::from([(Counter::Launches, 6)]));
    assert!(told.problems.is_empty() && !told.torn);
}

#[test]
fn a_process_that_uses_neither_cuda_nor_nvtx_leaves_nothing() {
    let trial = Trial::new();
    let status = trial.command("sleep:5").env_remove("NVTX_INJECTION64_PATH").status().unwrap();
    assert!(status.success());
    assert_eq!(trial.files().len(), 0);
}

#[test]
fn ranges_alone_make_a_file_without_cuda() {
    let told = Trial::run("push:load pop").file();
    assert_eq!(told.ranges, ["load"]);
    assert!(told.kernels.is_empty() && told.problems.is_empty());
    assert!(told.finished);
}

#[test]
fn a_killed_process_keeps_what_was_flushed() {
    for ending in ["kill", "crash"] {
        let words = format!("cuda push:step launch:early*50 sleep:700 launch:late*50 {ending}");
        let told = Trial::run_to_signal(&words).file();
        assert_eq!(told.kernels.get("early"), Some(&50), "{ending}");
        assert_eq!(told.under["early"], ["step"], "a range that is still open is known");
        assert!(!told.finished);
    }
}

#[test]
fn a_process_that_leaves_by_its_back_door_keeps_what_was_flushed() {
    let told = Trial::run("cuda launch:early*50 sleep:700 launch:late quit").file();
    assert_eq!(told.kernels.get("early"), Some(&50));
    assert!(!told.finished, "nothing says that the file is complete");
}

#[test]
fn a_child_of_a_fork_has_a_file_of_its_own_and_its_parents_ranges_stay_its_parents() {
    let trial = Trial::run("cuda push:parent launch:before fork( push:child sleep:30 pop ) launch:after pop");
    let mut told: Vec<_> = trial.files().iter().map(|file| Told::of(file)).collect();
    assert_eq!(told.len(), 2);
    told.sort_by_key(|told| told.kernels.len());
    assert_eq!(told[0].ranges, ["child"]);
    assert!(told[0].kernels.is_empty() && told[0].process != told[1].process);
    assert_eq!(told[1].ranges, ["parent"]);
    assert_eq!(told[1].kernels, counts([("after", 1), ("before", 1)]));
    assert_eq!(told[1].under["after"], ["parent"]);
    assert!(told.iter().all(|told| told.finished));
}

#[test]
fn a_child_that_says_nothing_leaves_no_file() {
    assert_eq!(Trial::run("push:parent fork( sleep:5 ) pop").files().len(), 1);
}

#[test]
fn a_child_initialises_cuda_for_itself() {
    let trial = Trial::run("fork( cuda push:child launch:gemm*5 pop ) fork( cuda launch:norm*2 )");
    let mut kernels: Vec<_> = trial.files().iter().map(|file| Told::of(file).kernels).collect();
    kernels.retain(|kernels| !kernels.is_empty());
    kernels.sort();
    assert_eq!(kernels, [counts([("gemm", 5)]), counts([("norm", 2)])]);
}

#[test]
fn threads_keep_their_ranges_apart() {
    let told = Trial::run("cuda push:main thread( push:worker launch:inner pop ) launch:outer pop").file();
    assert_eq!(told.under["inner"], ["worker"]);
    assert_eq!(told.under["outer"], ["main"]);
    assert_eq!(told.counters, BTreeMap::from([(Counter::Launches, 2)]), "an ended thread's log is read to its end");
}

#[test]
fn two_processes_write_two_files() {
    let trial = Trial::new();
    let start = |words: &str| trial.command(words).spawn().unwrap();
    let children: Vec<Child> = vec![start("cuda launch:one*3 sleep:50"), start("cuda launch:two*4 sleep:50")];
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let mut kernels: Vec<_> = trial.files().iter().map(|file| Told::of(file).kernels).collect();
    kernels.sort();
    assert_eq!(kernels, [counts([("one", 3)]), counts([("two", 4)])]);
}

#[test]
fn another_tool_that_was_here_first_is_left_alone_and_named() {
    let trial = Trial::with("DOUBLE_CUPTI_BUSY", "1").ran("cuda push:step launch:gemm pop");
    let told = trial.file();
    assert_eq!(told.problems, [(39, "cuptiSubscribe".to_owned())]);
    assert_eq!(told.ranges, ["step"]);
    assert!(told.kernels.is_empty());
}

#[test]
fn a_missing_or_too_old_cupti_is_named() {
    let trial = Trial::new();
    let status = trial.command("cuda push:a pop").env("LLM_PERF_INJECT_CUPTI", "/no/such/library.so").status().unwrap();
    assert!(status.success());
    assert_eq!(trial.file().problems, [(0, "CUPTI was not found".to_owned())]);
    let old = Trial::with("DOUBLE_CUPTI_VERSION", "16").ran("cuda launch:gemm");
    assert_eq!(old.file().problems, [(0, "CUPTI is older than CUDA 12.1".to_owned())]);
    let new = Trial::with("DOUBLE_CUPTI_VERSION", "140000").ran("cuda launch:gemm");
    let told = new.file();
    assert_eq!(told.kernels, counts([("gemm", 1)]));
    assert_eq!(told.problems.len(), 1, "{:?}", told.problems);
}

#[test]
fn a_window_limits_work_and_keeps_ranges() {
    let step = "push:decode_step launch:gemm*2 pop launch:between ";
    let words = format!("cuda push:prefill launch:conv pop {} sleep:200 launch:last", step.repeat(6));
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "decode_step:2..4").ran(&words);
    let told = trial.file();
    assert_eq!(told.ranges.len(), 7, "ranges are recorded throughout");
    assert_eq!(told.windows, [true, false]);
    // Two steps and what lies between them; after the window CUPTI lingers, but the calls are not recorded.
    assert_eq!(told.calls, counts([("cudaLaunchKernel_v7000", 5)]));
    assert_eq!(told.under["gemm"], ["decode_step"]);
    assert!(!told.kernels.contains_key("conv") && !told.kernels.contains_key("last"));
}

/// A window, time for CUPTI to be let go of, and another window.
const TWO_WINDOWS: &str = "cuda wanted push:prefill launch:a*3 wanted pop sleep:300 launch:x wait wanted push:prefill launch:a*2 pop sleep:300 launch:x*2 wait wanted";

/// What the application printed: numbers, one to a line.
fn printed(output: &std::process::Output) -> Vec<u32> {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn outside_of_windows_nothing_is_attached() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill");
    let wanted = printed(&trial.command(TWO_WINDOWS).output().unwrap());
    assert!(matches!(wanted[..], [0, (1..), 0, 0]), "{wanted:?}");
    let told = trial.file();
    assert_eq!((told.kernels, told.problems), (counts([("a", 5)]), Vec::new()));
    assert_eq!((told.windows, told.calls), (vec![true, false, true, false], counts([("cudaLaunchKernel_v7000", 5)])));
    assert!(told.finished);
}

#[test]
fn cupti_is_let_go_of_when_the_program_waits_and_never_from_one_with_graphs() {
    let wanted = |launch: &str| {
        let words = format!("cuda push:prefill {launch} pop sleep:300 wanted launch:x wanted wait wanted");
        printed(&Trial::with("LLM_PERF_INJECT_WINDOW", "prefill").command(&words).output().unwrap())
    };
    assert!(matches!(wanted("launch:a")[..], [(4..), (4..), 0]), "{:?}", wanted("launch:a"));
    // The subscription and nodes of graphs, nothing else.
    assert_eq!(wanted("graph:a*3"), [3, 3, 3]);
}

#[test]
fn a_graph_that_comes_before_cupti_is_let_go_of_keeps_it() {
    let words = "cuda push:prefill launch:a pop sleep:300 graph:g*2 wait wanted push:prefill graph:g*2 pop";
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill");
    assert_eq!(printed(&trial.command(words).output().unwrap()), [3]);
    assert_eq!(trial.file().kernels, counts([("a", 1), ("g", 2)]));
}

#[test]
fn a_cupti_that_cannot_be_let_go_of_stays_and_works() {
    let mut trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill");
    trial.variables.push(("DOUBLE_CUPTI_STAYS", "1".to_owned()));
    let wanted = printed(&trial.command(TWO_WINDOWS).output().unwrap());
    // It is still there, and wants nothing but nodes of graphs.
    assert!(matches!(wanted[..], [0, (1..), 3, 3]), "{wanted:?}");
    let told = trial.file();
    assert_eq!((told.kernels, told.problems), (counts([("a", 5)]), vec![(999, "cuptiFinalize".to_owned())]));
}

#[test]
fn a_window_that_opens_before_the_driver_starts_is_recorded_from_there() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill").ran("push:prefill cuda launch:a*2 pop launch:x");
    let told = trial.file();
    assert_eq!((told.windows, told.calls), (vec![true, false], counts([("cudaLaunchKernel_v7000", 2)])));
}

#[test]
fn a_window_needs_ranges_alone() {
    let mut trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill");
    trial.variables.push(("CUDA_INJECTION64_PATH", String::new()));
    let trial = trial.ran("driver launch:x push:prefill launch:a*2 pop launch:x");
    let told = trial.file();
    assert_eq!((told.windows, told.calls), (vec![true, false], counts([("cudaLaunchKernel_v7000", 2)])));
    assert_eq!(told.problems, Vec::new());
}

#[test]
fn a_process_without_a_driver_gets_none_by_a_window() {
    let mut trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill");
    trial.variables.push(("CUDA_INJECTION64_PATH", String::new()));
    let wanted = printed(&trial.command("push:prefill wanted pop").output().unwrap());
    assert_eq!(wanted, [0], "CUPTI is not attached");
    let told = trial.file();
    assert_eq!((told.windows, told.problems), (vec![true, false], Vec::new()));
}

#[test]
fn a_stage_as_window_opens_every_time() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill,step:0");
    let trial =
        trial.ran("cuda launch:x push:prefill launch:a pop push@LLM:step launch:b pop@LLM push:prefill launch:a pop");
    let told = trial.file();
    assert_eq!(told.windows, [true, false, true, false, true, false]);
    assert_eq!(told.calls, counts([("cudaLaunchKernel_v7000", 3)]));
}

#[test]
fn the_cuda_profiler_opens_and_closes_a_window_as_often_as_the_program_likes() {
    let round = "profiler:start launch:a*2 profiler:stop sleep:300 launch:x wait sleep:200 ";
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "cudaProfilerApi");
    let wanted = printed(
        &trial.command(&format!("cuda wanted push:run launch:x {} wanted pop", round.repeat(2))).output().unwrap(),
    );
    // The subscription, nodes of graphs, and the four functions of the profiler: no launch, no record.
    assert_eq!(wanted, [7, 7]);
    let told = trial.file();
    assert_eq!((told.kernels, told.problems), (counts([("a", 4)]), Vec::new()));
    assert_eq!((told.windows, told.calls), (vec![true, false, true, false], counts([("cudaLaunchKernel_v7000", 4)])));
    assert_eq!(told.under["a"], ["run"], "ranges are known from before the window");
    assert!(told.finished);
}

#[test]
fn windows_that_follow_closely_stay_apart() {
    let round = "profiler:start graph:a*10 wait profiler:stop graph:x*10 wait sleep:60 ";
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "cudaProfilerApi");
    let told = trial.ran(&format!("cuda {}", round.repeat(20))).file();
    assert_eq!(told.windows, [true, false].repeat(20));
    assert_eq!(
        (told.kernels["a"], told.calls["cudaGraphLaunch_v10000"]),
        (200, 20),
        "each launch of a window and none between"
    );
}

#[test]
fn windows_of_one_name_are_all_opened() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "step:1..2,step:3..5");
    let words: String = (0..6).map(|step| format!("push:step launch:of{step} pop ")).collect();
    let told = trial.ran(&format!("cuda {words}")).file();
    assert_eq!(told.windows, [true, false, true, false]);
    assert_eq!(told.calls, counts([("cudaLaunchKernel_v7000", 3)]));
}

#[test]
fn whole_graphs_are_recorded_from_the_start_or_not_at_all() {
    let mut trial = Trial::with("LLM_PERF_INJECT_WINDOW", "step");
    trial.variables.push(("LLM_PERF_INJECT_GRAPHS", "whole".to_owned()));
    let told = trial.ran("cuda push:step graph:a*10 pop").file();
    assert_eq!((told.graphs, told.kernels), (0, counts([("a", 10)])));
}

#[test]
fn a_profiler_that_is_started_twice_and_never_stopped_keeps_its_window_open() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "cudaProfilerApi");
    let told = trial.ran("cuda launch:x profiler:start launch:a profiler:start launch:a").file();
    assert_eq!((told.kernels, told.windows, told.finished), (counts([("a", 2)]), vec![true], true));
}

#[test]
fn time_opens_and_closes_a_window() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "1s..2s");
    let told = trial.ran("cuda launch:x sleep:1500 launch:a*3 sleep:1000 launch:x").file();
    assert_eq!((told.kernels, told.windows), (counts([("a", 3)]), vec![true, false]));
}

#[test]
fn a_window_of_steps_has_those_that_announce_such_a_size() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "decode bs>=32");
    let step =
        |requests: u32| format!("push:execute_context_0(0)_generation_{requests}({requests}) launch:of{requests} pop ");
    let words = format!("cuda {}{}{}sleep:300 launch:x", step(8), step(32), step(64));
    let told = trial.ran(&words).file();
    assert_eq!(told.kernels, counts([("of32", 1), ("of64", 1)]));
    assert_eq!(told.windows, [true, false, true, false]);
}

#[test]
fn times_that_cannot_be_are_counted_and_their_work_is_left_out() {
    let told = Trial::run("cuda launch:a*2 launch:backward*3 launch:unstarted*4 launch:ancient*5 launch:a").file();
    assert_eq!(told.kernels, counts([("a", 3)]));
    let expected = [(Counter::Launches, 15), (Counter::TimesInvalid, 7), (Counter::TimesOutside, 5)];
    assert_eq!(told.counters, BTreeMap::from(expected));
}

#[test]
fn one_launch_of_a_graph_in_so_many_has_its_nodes() {
    let words = format!("cuda launch:before {}launch:after", "graph:a*10 ".repeat(256));
    let told = Trial::with("LLM_PERF_INJECT_GRAPHS", "1/16").ran(&words).file();
    assert_eq!((told.kernels["a"], told.graphs), (160, 240));
    assert_eq!((told.kernels["before"], told.kernels["after"], told.calls["cudaGraphLaunch_v10000"]), (1, 1, 256));
    let whole = Trial::with("LLM_PERF_INJECT_GRAPHS", "whole").ran(&words).file();
    assert_eq!((whole.kernels.get("a"), whole.graphs), (None, 256));
}

/// An application that waits to be recorded: it was given the library and no folder.
struct Waiting {
    child: Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
    folder: PathBuf,
}

impl Waiting {
    /// Starts it and waits for its first line.
    fn start(words: &str) -> Self {
        let mut command = Trial::new().command(words);
        command.env_remove("LLM_PERF_INJECT_FOLDER").stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let user = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap());
        let folder = PathBuf::from(format!("/tmp/llm-perf-attach-{user}-{}", child.id()));
        Self { child, lines, folder }
    }

    fn signal(&self) {
        let sent = Command::new("kill").args(["-47", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Asks for a recording.
    fn ask(&self, request: &str) {
        std::fs::create_dir_all(&self.folder).unwrap();
        std::fs::write(self.folder.join("request"), request).unwrap();
        self.signal();
    }

    /// Waits until it is over.
    fn over(&self) {
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

    /// What its files tell, oldest first.
    fn told(&self) -> Vec<Told> {
        let mut paths: Vec<_> = std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|kind| kind == "wire"));
        paths.sort_by_key(|path| std::fs::metadata(path).unwrap().modified().unwrap());
        paths.iter().map(|path| Told::of(&std::fs::read(path).unwrap())).collect()
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
        "3",
        "CUPTI stays, and is asked for nothing but nodes of graphs"
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
        waiting.ask("60000");
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

#[test]
fn what_does_not_fit_is_dropped_and_counted() {
    const STORM: u64 = 20_000;
    let told = Trial::run(&format!("cuda storm:{STORM} launch:gemm*20000")).file();
    let dropped = told.counters[&Counter::HostRecordsDropped];
    assert!(dropped > 0 && told.finished);
    let ranges = told.ranges.len() as u64 + told.pops;
    assert_eq!(ranges + told.calls["cudaLaunchKernel_v7000"] as u64 + dropped, 2 * STORM + 20_000);
    let device = told.counters.get(&Counter::DeviceRecordsDropped).copied().unwrap_or(0);
    assert_eq!(told.kernels["gemm"] as u64 + device, 20_000);
}

#[test]
fn a_folder_that_is_not_there_does_not_disturb_the_application() {
    let trial = Trial::with("LLM_PERF_INJECT_FOLDER", "/no/such/folder").ran("cuda push:a launch:gemm pop");
    assert_eq!(trial.files().len(), 0);
}

#[test]
fn a_file_of_an_earlier_process_with_the_same_number_is_kept() {
    let trial = Trial::new();
    let before = trial.folder.path().join("earlier");
    std::fs::write(&before, "earlier").unwrap();
    // The shell becomes the application, so that its number is known before it starts.
    let mut command = Command::new("sh");
    let made = made();
    command.args([
        "-c",
        "cp \"$EARLIER\" \"$LLM_PERF_INJECT_FOLDER/process-$$.wire\" && exec \"$APPLICATION\" push:a pop",
    ]);
    command.env("EARLIER", &before).env("APPLICATION", &made.application);
    command.env("NVTX_INJECTION64_PATH", &made.library).env("LLM_PERF_INJECT_FOLDER", trial.folder.path());
    assert!(command.status().unwrap().success());
    std::fs::remove_file(&before).unwrap();
    let files = trial.files();
    assert_eq!(files.len(), 2);
    assert!(files.iter().any(|file| file == b"earlier"));
    assert!(files.iter().any(|file| wire::open(file).is_ok()));
}

#[test]
fn a_full_disk_does_not_disturb_the_application_and_keeps_what_there_was_room_for() {
    let trial = Trial::new();
    let made = made();
    let mut command = Command::new("sh");
    // Larger files cannot be written: the same refusal as that of a full disk, and a signal beside it.
    command.args(["-c", "ulimit -f 100 && exec \"$APPLICATION\" cuda push:early launch:a pop sleep:400 storm:3000 launch:b*5000 sleep:400 print:alive"]);
    command.env("APPLICATION", &made.application).env("LLM_PERF_INJECT_CUPTI", &made.cupti);
    command.env("CUDA_INJECTION64_PATH", &made.library).env("NVTX_INJECTION64_PATH", &made.library);
    command.env("LLM_PERF_INJECT_FOLDER", trial.folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stdout == b"alive\n", "{output:?}");
    let told = trial.file();
    assert_eq!((told.kernels["a"], told.under["a"].as_slice()), (1, &["early".to_owned()][..]));
    assert!(told.torn && !told.finished, "nothing says that the file is complete");
}

#[test]
fn no_code_path_of_the_library_panics() {
    let library = std::fs::read(&made().library).unwrap();
    let marker = b"llm-perf collector: unreachable panic";
    assert!(!library.windows(marker.len()).any(|window| window == marker), "the panic handler is still there");
}

#[test]
fn the_library_needs_libc_and_nothing_else() {
    let library = std::fs::read(&made().library).unwrap();
    let strings: Vec<_> = library
        .split(|byte| *byte == 0)
        .filter(|text| text.len() < 64 && text.windows(3).any(|part| part == b".so"))
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .filter(|text| text.starts_with("lib") && !text.contains("cupti") && !text.contains("libcuda"))
        .collect();
    // Its own name may stand there too, and before glibc 2.34 threads and the loader had libraries of their own.
    let allowed = ["libc.so.6", "libdl.so.2", "libpthread.so.0", "libllm_perf_inject.so"];
    assert!(strings.iter().all(|name| allowed.contains(&name.as_str())), "{strings:?}");
    assert!(strings.iter().any(|name| name == "libc.so.6"));
}
