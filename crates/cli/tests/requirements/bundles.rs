//! Runs of the program that the checks look at, each made once: with the fake tools, on captures of real ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::scratch::{Output, Scratch};

/// Small enough that one inference takes milliseconds.
const QUICK: [&str; 6] = [
    "dataset/sampling=sampling.smoke",
    "dataset.sampling.samples_per_epoch=2",
    "infer.base_size=64",
    "infer.image_size=64",
    "infer.max_tiles=2",
    "infer.max_new_tokens=4",
];
/// One inference of a model that PyTorch runs.
const TORCH: [&str; 7] = ["--engine", "torch", "--model", "decoder-tiny", "--weights", "synthetic", "infer.seq_len=32"];
const RESNET: [&str; 2] = [
    "model/dummy_shallow_resnet/arch@model=dummy_shallow_resnet.default",
    "model/dummy_shallow_resnet/infer@infer=dummy_shallow_resnet.default",
];
const SESSION: [&str; 6] = ["--weights", "synthetic", "--device", "cuda:0", "--check-flops", "model.name=recorded"];

/// What the runs left, and what the program said.
pub(crate) struct Bundles {
    scratch: Scratch,
    outputs: Outputs,
    steps: Vec<Step>,
}

/// What the program said, by the name of the run.
type Outputs = BTreeMap<&'static str, Output>;

/// A step of the quickstart: the command, what it gave, and what to look for in that.
pub(crate) type Step = (String, Output, Vec<String>);

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// A capture that the readers are tested with.
pub(crate) fn capture(name: &str) -> String {
    tests().join("../../ingest/tests/fixtures").join(name).display().to_string()
}

/// Runs in a folder, one after the other.
struct Runs<'a> {
    scratch: &'a Scratch,
    outputs: Outputs,
    steps: Vec<Step>,
}

impl<'a> Runs<'a> {
    /// The runs that a function makes.
    fn made(scratch: &'a Scratch, make: impl FnOnce(&mut Self)) -> Self {
        let mut runs = Self { scratch, outputs: BTreeMap::new(), steps: Vec::new() };
        make(&mut runs);
        runs
    }

    fn install(&self) {
        for folder in ["lib", "tools", "tools-of-regions", "pages"] {
            std::fs::create_dir_all(self.scratch.path(folder)).unwrap();
        }
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([self.scratch.path("lib/libnvidia-ml.so.1"), tests().join("fake/nvml.c")])
            .status();
        assert!(compiled.expect("a C compiler").success());
        let compiled =
            Command::new("cc").arg("-o").args([self.scratch.path("lib/alone"), tests().join("fake/alone.c")]).status();
        assert!(compiled.expect("a C compiler").success());
        let files = [("nsys", "tools/nsys"), ("ncu", "tools/ncu"), ("ncu-regions.sh", "tools-of-regions/ncu")];
        for (from, to) in files {
            std::fs::copy(tests().join("fake").join(from), self.scratch.path(to)).unwrap();
        }
        for page in ["letter.png", "slide.jpg"] {
            std::fs::copy(tests().join("../../../assets/pages").join(page), self.scratch.path("pages").join(page))
                .unwrap();
        }
        // Names that a careless program would put into one folder, or outside of its own.
        let page = std::fs::read_to_string(capture("ncu/ncu-range-replay-raw.csv")).unwrap();
        let renamed = |name: &str| page.replace(":A:none", &format!(":{name}:none"));
        for (file, name) in [("one.csv", "../x"), ("two.csv", "A_A1"), ("three.csv", "A::A1")] {
            std::fs::write(self.scratch.path(file), renamed(name)).unwrap();
        }
    }

    /// Runs the program; the run folder, if there is one, has the same name.
    fn run(&mut self, name: &'static str, arguments: &[&str], variables: &[(&str, String)]) {
        let mut command = self.scratch.command(arguments);
        command
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .env("LLM_PERF_DATA_DIR", self.scratch.path("data"));
        self.outputs.insert(name, Output::of(command));
    }

    /// A package that says which CUDA it was built for, as PyTorch's does.
    fn torch_package(&self) -> String {
        let folder = self.scratch.path("torch-package");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("version.py"), "__version__ = '2.11.0'\ncuda: Optional[str] = '13.0'\n").unwrap();
        folder.display().to_string()
    }

    /// Runs the program where it may start no process, open no socket and use no more than a gigabyte.
    fn alone(&mut self, name: &'static str, arguments: &[&str]) {
        let mut command = Command::new(self.scratch.path("lib/alone"));
        command.arg(assert_cmd::cargo::cargo_bin!("llm-perf")).args(arguments);
        self.outputs.insert(name, Output::of(self.scratch.at_home(command)));
    }

    fn torch_variables(&self, session: &str) -> Vec<(&'static str, String)> {
        let file = |name: &str| tests().join("fixtures/torch").join(session).join(name).display().to_string();
        vec![
            ("LLM_PERF_PYTHON", tests().join("fake/python3").display().to_string()),
            ("FAKE_TORCH", "2.11.0".to_owned()),
            ("FAKE_TORCH_FOLDER", self.torch_package()),
            ("FAKE_SESSION", file("session.jsonl")),
            ("FAKE_TRACE", file("trace.json.gz")),
        ]
    }

    fn profiles(&mut self) {
        self.run("native", &[&["profile", "--out", "native", "--inputs", "pages"], &QUICK[..]].concat(), &[]);
        self.run("builtin", &[&["profile", "--out", "builtin"], &QUICK[..]].concat(), &[]);
        self.run(
            "pattern-of-files",
            &[&["profile", "--out", "pattern-of-files", "--inputs", "pages/*.jpg"], &QUICK[..]].concat(),
            &[],
        );
        std::fs::write(self.scratch.path("files"), "pages/letter.png\n").unwrap();
        self.run(
            "list-of-files",
            &[&["profile", "--out", "list-of-files", "inputs.manifest=files"], &QUICK[..]].concat(),
            &[],
        );
        self.run("again", &["profile", "--from", "./native", "--out", "again"], &[]);
        self.run("resnet", &[&["profile", "artifacts.stage1_dir=resnet"], &RESNET[..]].concat(), &[]);
        for (name, session, lengths) in [
            ("torch", "h200", ["infer.seq_len=512", "infer.max_new_tokens=16", "dataset.sampling.repeats=10"]),
            ("moe", "h200-moe", ["infer.seq_len=64", "infer.max_new_tokens=4", "dataset.sampling.repeats=5"]),
        ] {
            let config = tests().join("fixtures/torch").join(session).join("config.json").display().to_string();
            let arguments =
                [&["profile", "--engine", "torch", "--out", name, "--model", &config], &SESSION[..], &lengths].concat();
            self.run(name, &arguments, &self.torch_variables(session));
        }
        let trace = capture("torch/dsocr-h200.json.gz");
        self.run("import", &["import", &trace, "--model", "deepseek-ocr", "--out", "import"], &[]);
        let h200 = |name: &str| tests().join("fixtures/torch/h200").join(name).display().to_string();
        let (trace, config) = (h200("trace.json.gz"), h200("config.json"));
        // Work of an H200 in the rates of a far smaller device.
        let lengths = ["workload.seq_len=512", "workload.decode_steps=15"];
        let above = ["import", &trace, "--model", &config, "--hardware", "rtx-3090", "--out", "above"];
        self.run("above", &[&above[..], &lengths].concat(), &[]);
    }

    fn deep(&mut self) {
        let path = std::env::var("PATH").unwrap_or_default();
        let text = |path: PathBuf| path.display().to_string();
        let mut variables = self.torch_variables("");
        variables.extend([
            ("PATH", format!("{}:{path}", self.scratch.path("tools").display())),
            ("LD_LIBRARY_PATH", text(self.scratch.path("lib"))),
            ("FAKE_CAPTURES", text(tests().join("fixtures/deep"))),
            ("FAKE_METRICS", text(tests().join("fixtures/deep/metrics.txt.gz"))),
            ("FAKE_LOG", text(self.scratch.path("tools.log"))),
        ]);
        let nsys = ["deep", "--collector", "nsys"];
        let with = |more: (&'static str, &str)| [&variables[..], &[(more.0, more.1.to_owned())]].concat();
        self.run(
            "deep",
            &[&nsys[..], &["--out", "deep", "pipeline.torch_profiler.top_k=5"], &TORCH].concat(),
            &variables,
        );
        let command =
            |name: &'static str, more: &[&'static str]| [&nsys[..], &["--out", name], more, &["--", "true"]].concat();
        self.run("forbidden", &command("forbidden", &[]), &with(("FAKE_NCU", "forbidden")));
        self.run("no-gpu", &command("no-gpu", &[]), &with(("LD_LIBRARY_PATH", "")));
        self.run("old", &command("old", &[]), &with(("FAKE_NSYS_VERSION", "2023.4.4.54-234433681190v0")));
        self.run("endless", &command("endless", &["--largest-trace", "5"]), &with(("FAKE_NSYS", "endless")));
        self.run("slow", &command("slow", &["--pass-limit", "2"]), &with(("FAKE_NSYS", "slow")));
        let keys = ["run.mode=light", "run.top_n_kernels=1", "artifacts.stage2_dir=light"];
        self.run("light", &[&nsys[..], &keys, &["--", "true"]].concat(), &variables);
        let mode = "pipeline.ncu.ncu_cli.replay_mode=range";
        self.run("deep-range", &command("deep-range", &[mode]), &variables);
        std::fs::write(self.scratch.path("prompt.txt"), "Where does the time go?").unwrap();
        std::fs::write(self.scratch.path("list"), "prompt.txt\n").unwrap();
        let literal = [
            "hydra.run.dir=literal",
            "hydra.job.chdir=false",
            "+run.mode=light",
            "+inputs.manifest=list",
            "+model.target=tiny",
            "pipeline.ncu.ncu_cli.nvtx.include='decode*'",
        ];
        self.run("literal", &[&nsys[..], &TORCH[..TORCH.len() - 1], &literal].concat(), &variables);
        let options = [
            "profiling/ncu@pipeline.ncu=ncu.roofline",
            "pipeline.ncu.ncu_cli.metrics=[dram__bytes.sum]",
            "pipeline.ncu.ncu_cli.launch_skip=2",
            "pipeline.nsys.nsys_cli.capture_range=nvtx",
            "pipeline.nsys.nsys_cli.nvtx_capture=prefill@LLM",
        ];
        self.run("plan", &[&nsys[..], &["--dry-run"], &options, &["--", "true"]].concat(), &variables);
    }

    fn regions(&mut self) {
        let path = std::env::var("PATH").unwrap_or_default();
        let fixtures = tests().join("fixtures/regions");
        let variables = |captures: &Path| {
            [
                ("PATH", format!("{}:{path}", self.scratch.path("tools-of-regions").display())),
                ("FAKE_NCU", captures.display().to_string()),
            ]
        };
        let (live, resnet) = (variables(&fixtures), variables(&fixtures.join("resnet")));
        let none = ["pipeline.ncu.ncu_cli.sections=[]", "pipeline.ncu.ncu_cli.metrics=[dram__bytes.sum]"];
        for (name, mode) in
            [("kernel", "kernel"), ("range", "range"), ("app-range", "app-range"), ("application", "application")]
        {
            let first = ["regions", "--out", name, "--survey", "--replay-mode", mode];
            self.run(name, &[&first[..], &none, &["--", "true"]].concat(), &live);
        }
        let chosen = ["pipeline.ncu.ncu_cli.sections=[SpeedOfLight,Occupancy]", "pipeline.ncu.ncu_cli.metrics=[]"];
        let regions = ["regions", "--out", "sections", "--nvtx-include", "A::A1", "--nvtx-include", "B"];
        self.run("sections", &[&regions[..], &chosen, &["--", "true"]].concat(), &live);
        let unmatched = ["regions", "--out", "unmatched", "--nvtx-include", "decode*", "--", "true"];
        self.run("unmatched", &unmatched, &live);
        let module = [
            "regions",
            "--out",
            "regions-resnet",
            "--engine",
            "torch",
            "--device",
            "cuda:0",
            "--module-ranges",
            "depth=1",
        ];
        self.run("regions-resnet", &[&module[..], &RESNET, &none].concat(), &resnet);
        let page = capture("ncu/ncu-kernel-replay-raw.csv.gz");
        let from = |name: &'static str| ["regions", "--out", name, "--from", &page].map(str::to_owned);
        for (name, setting) in [
            ("exact", "pipeline.ncu.ncu_cli.kernel_exclude=[nchwToNhwcKernel]"),
            ("pattern", "pipeline.ncu.ncu_cli.kernel_exclude=['regex:^bn_']"),
            ("parts", "pipeline.ncu.regions.aggregate=false"),
            ("nothing", "pipeline.ncu.ncu_cli.kernel_name=nothing"),
        ] {
            let arguments = from(name);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let base = "pipeline.ncu.ncu_cli.kernel_name_base=function";
            self.run(name, &[&arguments[..], &[setting, base]].concat(), &[]);
        }
        let named = ["regions", "--out", "names", "--from", "one.csv", "--from", "two.csv", "--from", "three.csv"];
        self.run("names", &named, &[]);
    }

    fn models(&mut self) {
        let layers = capture("torchinfo-unique-layers.json");
        self.run("analyze", &["analyze", "--out", "analyze", "--torchinfo", &layers], &[]);
        self.run("twice", &["analyze", "--json"], &[]);
        self.run("once", &["analyze", "--json"], &[]);
        let sweep = ["--sweep", "workload.batch=1,2", "--sweep", "workload.attention=eager,flash"];
        let more = ["--sweep", "workload.seq_len=512,600", "--sweep", "workload.dtype=bf16,fp16"];
        let devices = ["--hardware", "h200,rtx-4090", "--out", "sweep"];
        self.alone("alone", &["analyze", "--out", "alone"]);
        self.alone("not-alone", &["doctor"]);
        self.run("sweep", &[&["analyze"], &sweep[..], &more, &devices].concat(), &[]);
        self.run("unknown", &["analyze", "--hardware", "abacus"], &[]);
        self.run("models", &["models", "--json"], &[]);
        self.run("groups", &["config", "--groups", "--json"], &[]);
        self.run("schemas", &["schema", "--json"], &[]);
        self.run("doctor", &["doctor", "--json"], &[]);
    }

    /// Runs every command of the quickstart in a folder like the repository's, with the fake tools.
    fn quickstart(&mut self) {
        for folder in ["crates", "tests"] {
            std::os::unix::fs::symlink(tests().join("../../..").join(folder), self.scratch.path(folder)).unwrap();
        }
        let page = std::fs::read_to_string(tests().join("../../../docs/quickstart.md")).unwrap_or_default();
        let path = std::env::var("PATH").unwrap_or_default();
        let program = Path::new(assert_cmd::cargo::cargo_bin!("llm-perf")).parent().unwrap().display().to_string();
        for step in page.split("```sh\n").skip(1) {
            let (commands, rest) = step.split_once("```").unwrap_or_default();
            let look = rest.lines().find_map(|line| line.strip_prefix("Look for: ")).unwrap_or_default();
            let look = look.split(". ").next().unwrap_or_default();
            let expected: Vec<String> = look.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            for line in commands.lines() {
                let regions = line.starts_with("llm-perf regions");
                let tools = self.scratch.path(if regions { "tools-of-regions" } else { "tools" });
                let captures = tests().join("fixtures").join(if regions { "regions" } else { "deep" });
                let mut command = Command::new("sh");
                command.args(["-c", line]).env("LD_LIBRARY_PATH", self.scratch.path("lib"));
                command.env("PATH", format!("{program}:{}:{path}", tools.display()));
                command.env("FAKE_NCU", if regions { captures.clone() } else { PathBuf::new() });
                command.env("FAKE_CAPTURES", &captures).env("FAKE_METRICS", captures.join("metrics.txt.gz"));
                command.envs(self.torch_variables("")).env("COLUMNS", "100");
                let mut command = self.scratch.at_home(command);
                command.env("LLM_PERF_DATA_DIR", self.scratch.path("data"));
                self.steps.push((line.to_owned(), Output::of(command), expected.clone()));
            }
        }
    }
}

impl Bundles {
    /// Runs of different verbs have nothing to do with each other, and are made at the same time.
    pub(crate) fn make() -> Self {
        let scratch = Scratch::new();
        Runs::made(&scratch, |runs| runs.install());
        let (folder, mut outputs, mut steps) = (&scratch, Outputs::new(), Vec::new());
        std::thread::scope(|scope| {
            let groups: [fn(&mut Runs<'_>); 4] = [
                |runs| runs.profiles(),
                |runs| runs.deep(),
                |runs| runs.quickstart(),
                |runs| {
                    runs.regions();
                    runs.models();
                },
            ];
            let groups = groups.map(|make| scope.spawn(move || Runs::made(folder, make)));
            for group in groups {
                let Runs { outputs: said, steps: done, .. } = group.join().unwrap();
                outputs.extend(said);
                steps.extend(done);
            }
        });
        Self { scratch, outputs, steps }
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What the program said in a run.
    pub(crate) fn said(&self, name: &str) -> &Output {
        &self.outputs[name]
    }

    /// An error where the run did not end with that code, with the end of what it said.
    pub(crate) fn ended(&self, name: &str, code: i32) -> Result<(), String> {
        let output = self.said(name);
        let lines: Vec<&str> = output.stderr.lines().rev().take(12).collect();
        let said: String = lines.iter().rev().flat_map(|line| ["\n    ", line]).collect();
        need(output.code == code, &format!("the run `{name}` ends with {} instead of {code}{said}", output.code))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path(name)
    }

    /// A document, by run and file; `Null` where it is not there, so that every key of it is missing too.
    pub(crate) fn json(&self, file: &str) -> Value {
        let bytes = std::fs::read(self.path(file)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        if file.ends_with("yaml") {
            serde_saphyr::from_str(&text).unwrap_or_default()
        } else {
            serde_json::from_slice(&bytes).unwrap_or_default()
        }
    }

    pub(crate) fn printed(&self, name: &str) -> Value {
        serde_json::from_str(&self.said(name).stdout).unwrap_or_default()
    }

    /// A text file, empty where it is not there.
    pub(crate) fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap_or_default()
    }

    /// An error that names the first file which is missing or empty.
    pub(crate) fn files(&self, run: &str, names: &[&str]) -> Result<(), String> {
        let empty = |name: &&&str| self.path(run).join(name).metadata().map_or(0, |file| file.len()) == 0;
        names.iter().find(empty).map_or(Ok(()), |name| Err(format!("`{name}` of `{run}`")))
    }

    /// An error where `validate` refuses one of the files.
    pub(crate) fn valid(&self, files: &[&str]) -> Result<(), String> {
        let output = Output::of(self.scratch.command(&[&["validate"], files].concat()));
        need(output.code == 0, &format!("`validate` refuses one of {}: {}", files.join(", "), output.stdout))
    }

    /// Exit code of `validate` on this text.
    pub(crate) fn validate(&self, document: &Value) -> i32 {
        std::fs::write(self.path("changed.json"), document.to_string()).unwrap();
        Output::of(self.scratch.command(&["validate", "changed.json"])).code
    }
}

/// An error that says what is missing.
pub(crate) fn need(holds: bool, missing: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(missing.to_owned()) }
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Whether a text has all of these.
pub(crate) fn has(text: &str, parts: &[&str]) -> bool {
    parts.iter().all(|part| text.contains(part))
}

/// An error where a number is not the one that others of the run make.
pub(crate) fn equal(found: &Value, made: f64, what: &str) -> Result<(), String> {
    let is = found.as_f64().is_some_and(|found| (found - made).abs() <= 1e-6 * made.abs().max(1e-9));
    need(is, &format!("{what}: {found} in the file, {made} by its other numbers"))
}

/// An error where a page shows another number than the file has: three digits, or a tenth of a percent.
pub(crate) fn shown(cell: &str, made: f64, what: &str) -> Result<(), String> {
    let number = |text: &str| text.replace(',', "").parse::<f64>().ok();
    let found = match cell.split_once(' ') {
        _ if cell.starts_with('<') => Some(made.min(0.0005)),
        None => cell.strip_suffix('%').map_or_else(|| number(cell), |share| Some(number(share)? / 100.0)),
        Some((digits, unit)) => {
            let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| scale);
            number(digits).zip(scale).map(|(number, scale)| number * scale)
        }
    };
    let is =
        found.is_some_and(|found| (found - made).abs() <= if cell.ends_with('%') { 5.1e-4 } else { 5.1e-3 * made });
    need(is, &format!("{what}: `{cell}` on the page, {made} in the file"))
}

/// In nanoseconds and bytes.
const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)];

/// The part of a page under a heading.
pub(crate) fn part<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page.find(&format!("\n## {heading}\n")).map_or("", |at| &page[at + heading.len() + 5..]);
    start.split("\n## ").next().unwrap_or_default()
}

/// The cells of the rows of a table, without its head.
pub(crate) fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines =
        text.lines().skip_while(|line| !line.starts_with("| -")).skip(1).take_while(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// The sum of a key over rows.
pub(crate) fn sum(rows: &[Value], key: &str) -> f64 {
    rows.iter().filter_map(|row| row[key].as_f64()).sum()
}

/// An error that names the first key which a value does not have.
pub(crate) fn keys(value: &Value, names: &[&str]) -> Result<(), String> {
    names.iter().find(|name| value.get(**name).is_none()).map_or(Ok(()), |name| Err(format!("the key `{name}`")))
}
