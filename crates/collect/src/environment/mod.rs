//! `env.json`: the machine and the software of a run. One file per noun.
//!
//! Works with no GPU and no NVIDIA library, asks everything at the same time and waits for nothing that hangs. What
//! cannot be found out is absent, and where that matters a note says why. Nothing here judges what it finds.

mod container;
mod cpu;
mod driver;
mod energy;
mod file;
mod gpu;
mod memory;
mod operating_system;
mod sampler;
mod variables;
mod virtualisation;

pub use driver::{InstalledDriver, installed_driver};
pub use energy::EnergyMeter;
pub use gpu::GpuProblem;
pub use sampler::GpuSampler;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use types::{CpuInfo, Environment, FrameworkVersions, GitInfo, MemoryInfo, SchemaTag, ToolVersion, ToolVersions};

use crate::tool::{self, InstalledTool, Places, cupti::Cupti, python::Python};

/// How long the driver may take. With persistence mode off it starts the GPUs for the question, which takes seconds on
/// a machine with many; leaving them out of `env.json` for that would be worse than waiting.
const DRIVER_LIMIT: Duration = Duration::from_secs(15);

/// How long everything else may take together: a tool's own limit and what starting it costs.
const TOOLS_LIMIT: Duration = Duration::from_millis(1800);

/// What the document says about the tool itself, which only the caller knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentRequest {
    /// Version of llm-perf.
    pub tool_version: String,
    /// Features of this build.
    pub tool_features: Vec<String>,
    /// Folder the command was started in.
    pub folder: PathBuf,
}

/// The document, and what was learnt beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvironmentFacts {
    /// The document.
    pub environment: Environment,
    /// Why there is no GPU in it, when there is none.
    pub gpu_problem: Option<GpuProblem>,
    /// Version of the kernel's part of the driver, which a container shows even when it was given no GPU.
    pub kernel_driver: Option<String>,
    /// What `cuptiGetVersion` says, or why CUPTI does not load; absent when there is no CUPTI.
    pub cupti_interface: Option<Result<u32, String>>,
    /// CUDA release CUPTI belongs to.
    pub cupti_major: Option<u32>,
    /// Whether the nsys that was found is the copy inside Nsight Compute and lacks the library it makes reports with.
    pub nsys_lacks_importer: bool,
    /// The engines for SQL that the interpreter has, with their versions.
    pub query_engines: Vec<String>,
}

/// The processor, for callers that need nothing else.
pub fn processor() -> CpuInfo {
    cpu::capture()
}

/// Host memory, for callers that need nothing else.
pub fn memory() -> MemoryInfo {
    memory::capture()
}

/// Name of the first GPU, else why there is none, for callers that need nothing else.
pub fn first_gpu() -> Result<String, GpuProblem> {
    let libraries = Places::of_this_machine().libraries;
    let answer = ask(move || gpu::capture(&libraries));
    let capture = receive(&answer, Instant::now() + DRIVER_LIMIT);
    let capture = capture.unwrap_or_else(|| gpu::GpuCapture::silent(DRIVER_LIMIT));
    match capture.gpus.into_iter().next() {
        Some(gpu) => Ok(gpu.name.unwrap_or_else(|| "unnamed".to_owned())),
        None => Err(capture.problem.unwrap_or(GpuProblem::NoDevice)),
    }
}

/// Describes this machine.
pub fn capture(request: &EnvironmentRequest) -> EnvironmentFacts {
    let places = Places::of_this_machine();
    let libraries = places.libraries.clone();
    capture_in(request, &places, move || gpu::capture(&libraries))
}

/// Asks everything at once; `ask_driver` stands in for NVML in tests.
fn capture_in(
    request: &EnvironmentRequest,
    places: &Places,
    ask_driver: impl FnOnce() -> gpu::GpuCapture + Send + 'static,
) -> EnvironmentFacts {
    let started = Instant::now();
    let driver = ask(ask_driver);
    let with_places = |question: fn(&Places) -> Option<InstalledTool>| {
        let places = places.clone();
        ask(move || question(&places))
    };
    let toolkit = with_places(tool::toolkit::find);
    let nsys = with_places(tool::nsys::find);
    let ncu = with_places(tool::ncu::find);
    let python = {
        let places = places.clone();
        ask(move || {
            let python = tool::python::find(&places);
            let cupti = tool::cupti::find(&places, python.as_ref().and_then(|answer| answer.as_ref().ok()));
            (python, cupti)
        })
    };
    let git = {
        let (places, folder) = (places.clone(), request.folder.clone());
        ask(move || tool::git::find(&places, &folder))
    };

    let mut notes = Notes::default();
    let (operating_system, why_no_container) = operating_system::capture();
    notes.extend(why_no_container);
    let (variables, withheld) = variables::capture();
    notes.extend(withheld);

    let deadline = started + TOOLS_LIMIT;
    let toolkit = notes.tool("the CUDA toolkit", receive(&toolkit, deadline));
    let nsys = notes.tool("nsys", receive(&nsys, deadline));
    let ncu = notes.tool("ncu", receive(&ncu, deadline));
    let (python, cupti) = notes.in_time("python3", receive(&python, deadline)).unwrap_or_default();
    let python = notes.python(python);
    let git: Option<GitInfo> = notes.in_time("git", receive(&git, deadline)).flatten();
    let gpu = receive(&driver, started + DRIVER_LIMIT).unwrap_or_else(|| gpu::GpuCapture::silent(DRIVER_LIMIT));
    notes.extend(gpu.notes);
    notes.extend(gpu.problem.as_ref().map(ToString::to_string));
    if let Some(Cupti { interface: Err(reason), .. }) = &cupti {
        notes.push(format!("CUPTI was found but cannot be loaded: {reason}"));
    }

    let query_engines = python.as_ref().map(query_engines).unwrap_or_default();
    let nsys_lacks_importer = nsys.as_ref().is_some_and(|nsys| tool::nsys::lacks_importer(places, nsys));
    let kernel_driver = file::text("/proc/driver/nvidia/version").and_then(|text| gpu::read_kernel_driver(&text));
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let tilde = |path: &Path| file::under_home(path, home.as_deref());
    let tool = |found: Option<InstalledTool>| {
        found.map(|found| ToolVersion { version: found.version, path: Some(tilde(&found.path)) })
    };
    let environment = Environment {
        schema: SchemaTag::new(),
        captured_at: now(),
        tool_version: request.tool_version.clone(),
        tool_features: request.tool_features.clone(),
        named: types::NamedVersions::default(),
        gpus: gpu.gpus,
        tools: ToolVersions {
            driver: gpu.driver.or_else(|| kernel_driver.clone()),
            cuda_driver: gpu.cuda,
            nvml: gpu.nvml,
            cuda_toolkit: tool(toolkit),
            cupti: cupti
                .as_ref()
                .map(|cupti| ToolVersion { version: cupti.version.clone(), path: Some(tilde(&cupti.path)) }),
            nsys: tool(nsys),
            ncu: tool(ncu),
        },
        frameworks: python.map(|python| frameworks(python, tilde)).unwrap_or_default(),
        cpu: cpu::capture(),
        memory: memory::capture(),
        operating_system,
        git,
        variables,
        notes: notes.finish(home.as_deref()),
    };
    EnvironmentFacts {
        environment: environment.with_names(),
        gpu_problem: gpu.problem,
        kernel_driver,
        cupti_major: cupti.as_ref().and_then(|cupti| cupti.major),
        cupti_interface: cupti.map(|cupti| cupti.interface),
        nsys_lacks_importer,
        query_engines,
    }
}

/// The moment, with the offset of the local clock.
pub fn now() -> String {
    crate::moment::moment().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

fn frameworks(python: Python, tilde: impl Fn(&Path) -> String) -> FrameworkVersions {
    FrameworkVersions {
        torch_cuda: python.torch_folder.as_deref().and_then(tool::python::torch_cuda),
        python: Some(ToolVersion { version: Some(python.version), path: Some(tilde(&python.executable)) }),
        torch: python.torch,
        transformers: python.transformers,
    }
}

fn query_engines(python: &Python) -> Vec<String> {
    let named = [("duckdb", &python.duckdb), ("datafusion", &python.datafusion), ("ballista", &python.ballista)];
    named
        .into_iter()
        .filter_map(|(name, version)| version.as_ref().map(|version| format!("{name} {version}")))
        .collect()
}

/// Puts a question to a thread of its own.
fn ask<A: Send + 'static>(question: impl FnOnce() -> A + Send + 'static) -> Receiver<A> {
    let (answer, receiver) = channel();
    // A thread that comes too late finds nobody listening, which is as it should be.
    thread::spawn(move || answer.send(question()));
    receiver
}

/// The answer, if it comes in time.
fn receive<A>(answer: &Receiver<A>, deadline: Instant) -> Option<A> {
    answer.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
}

/// What could not be found out, in the order it was noticed.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    fn push(&mut self, note: String) {
        self.0.push(note);
    }

    fn extend(&mut self, notes: impl IntoIterator<Item = String>) {
        self.0.extend(notes);
    }

    /// The answer, with a note when none came.
    fn in_time<A>(&mut self, name: &str, answer: Option<A>) -> Option<A> {
        if answer.is_none() {
            self.push(format!("{name} did not answer within {} ms", TOOLS_LIMIT.as_millis()));
        }
        answer
    }

    fn tool(&mut self, name: &str, answer: Option<Option<InstalledTool>>) -> Option<InstalledTool> {
        let mut found = self.in_time(name, answer).flatten()?;
        self.extend(found.note.take());
        Some(found)
    }

    fn python(&mut self, answer: Option<Result<Python, String>>) -> Option<Python> {
        answer?.map_err(|reason| self.push(reason)).ok()
    }

    /// The notes, with the user's home folder shortened in them as everywhere else.
    fn finish(self, home: Option<&Path>) -> Vec<String> {
        let shorten = |note: String| match home.and_then(Path::to_str).filter(|home| home.len() > 1) {
            Some(home) => note.replace(&format!("{home}/"), "~/"),
            None => note,
        };
        self.0.into_iter().map(shorten).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::fake_program;

    fn request() -> EnvironmentRequest {
        EnvironmentRequest { tool_version: "0.0.0".into(), tool_features: vec!["cuda".into()], folder: "/".into() }
    }

    fn no_driver() -> gpu::GpuCapture {
        gpu::GpuCapture { problem: Some(GpuProblem::NoLibrary), ..gpu::GpuCapture::default() }
    }

    #[test]
    fn a_machine_with_nothing_but_a_processor_is_described() {
        let capture = capture_in(&request(), &Places::default(), no_driver);
        let environment = capture.environment;
        assert_eq!(environment.gpus, []);
        assert_eq!(environment.tools.nsys, None);
        assert_eq!(environment.frameworks, FrameworkVersions::default());
        assert_eq!(environment.git, None);
        assert_eq!(environment.tool_features, ["cuda"]);
        assert!(environment.cpu.threads_available.is_some_and(|threads| threads >= 1));
        assert!(environment.notes.iter().any(|note| note.contains("NVML")), "{:?}", environment.notes);
        assert!(environment.captured_at.parse::<jiff::Timestamp>().is_ok(), "{}", environment.captured_at);
    }

    #[test]
    fn tools_that_hang_are_left_out_with_a_note() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["nsys", "ncu", "python3", "nvcc"] {
            fake_program(folder.path(), name, "sleep 600");
        }
        let places = Places { path: vec![folder.path().to_owned()], ..Places::default() };
        let environment = capture_in(&request(), &places, no_driver).environment;
        assert_eq!(environment.frameworks.python, None);
        let nsys = environment.tools.nsys.expect("it was found, although it would not answer");
        assert_eq!((nsys.version, nsys.path), (None, Some(folder.path().join("nsys").display().to_string())));
        let about = |name: &str| environment.notes.iter().filter(|note| note.contains(name)).count();
        assert_eq!([about("nsys"), about("ncu"), about("python3"), about("nvcc")], [1, 1, 1, 1]);
    }

    #[test]
    fn a_note_does_not_name_the_users_home() {
        let notes = Notes(vec!["/home/someone/bin/nsys would not say".into(), "/home/someoneelse/nsys".into()]);
        let finished = notes.finish(Some(Path::new("/home/someone")));
        assert_eq!(finished, ["~/bin/nsys would not say", "/home/someoneelse/nsys"]);
    }
}
