//! An application that is collected, and what its file tells.

mod compile {
    include!("../../compile.rs");
}

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use wire::{Counter, Name, Piece, Record};

mod make {
    include!("../double/make.rs");
}

/// What the tests start, compiled once.
pub(super) struct Made {
    pub(super) library: PathBuf,
    doubles: make::Doubles,
}

impl std::ops::Deref for Made {
    type Target = make::Doubles;

    fn deref(&self) -> &make::Doubles {
        &self.doubles
    }
}

pub(super) fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("collector-{}", std::process::id()));
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let doubles = make::doubles(&here.join("tests/double"), &out);
        let compiler = PathBuf::from(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let library = compile::library(&compile::Compiler {
            program: &compiler,
            linker: None,
            target: None,
            crates: here.parent().unwrap(),
            out: &out,
            version: "0.1.0",
        })
        .unwrap();
        Made { library, doubles }
    })
}

/// An application that is collected into a folder of its own.
pub(super) struct Trial {
    pub(super) folder: tempfile::TempDir,
    pub(super) variables: Vec<(&'static str, String)>,
}

impl Trial {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    pub(super) fn with(variable: &'static str, value: &str) -> Self {
        let mut trial = Self::new();
        trial.variables.push((variable, value.to_owned()));
        trial
    }

    pub(super) fn command(&self, words: &str) -> Command {
        let made = made();
        let mut command = Command::new(&made.application);
        command.args(words.split_whitespace());
        command.env("CUDA_INJECTION64_PATH", &made.library).env("NVTX_INJECTION64_PATH", &made.library);
        command.env("LLM_PERF_INJECT_CUPTI", &made.cupti).env("LLM_PERF_INJECT_FOLDER", self.folder.path());
        command.env("DOUBLE_DRIVER", &made.driver).env("DOUBLE_ENGINES", &made.engines);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the application to its end.
    pub(super) fn run(words: &str) -> Self {
        Self::new().ran(words)
    }

    pub(super) fn ran(self, words: &str) -> Self {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        self
    }

    /// Runs the application up to its end by a signal.
    pub(super) fn run_to_signal(words: &str) -> Self {
        let trial = Self::new();
        let output = trial.command(words).output().unwrap();
        assert!(output.status.code().is_none(), "{output:?}");
        trial
    }

    pub(super) fn files(&self) -> Vec<Vec<u8>> {
        let mut paths: Vec<_> =
            std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
    }

    /// The one file there is.
    pub(super) fn file(&self) -> Told {
        let files = self.files();
        assert_eq!(files.len(), 1, "files");
        Told::of(&files[0])
    }
}

/// What a file tells, in a form to compare.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) process: u32,
    pub(super) kernels: BTreeMap<String, usize>,
    /// Per kernel: the ranges around its launch, outermost first.
    pub(super) under: BTreeMap<String, Vec<String>>,
    pub(super) calls: BTreeMap<String, usize>,
    pub(super) ranges: Vec<String>,
    pub(super) pops: u64,
    pub(super) problems: Vec<(u32, String)>,
    pub(super) counters: BTreeMap<Counter, u64>,
    pub(super) finished: bool,
    pub(super) torn: bool,
    pub(super) windows: Vec<bool>,
    /// Launches of whole graphs.
    pub(super) graphs: usize,
    /// Whether nothing but those is recorded; streams of those and when they ran.
    pub(super) graphs_only: bool,
    pub(super) spans: Vec<(u32, wire::Span)>,
}

pub(super) fn owned(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Told {
    pub(super) fn of(file: &[u8]) -> Self {
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
                Record::GraphsOnly => told.graphs_only = true,
                Record::Graph { place, .. } => {
                    told.graphs += 1;
                    told.spans.push((place.stream, place.span));
                }
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

pub(super) fn counts<const N: usize>(expected: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expected.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}
