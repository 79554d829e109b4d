//! Commands recorded by the collector, with doubles of CUPTI and of a CUDA application; and what comes out of a run again.

#[path = "support/doubles.rs"]
mod doubles;
#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "recording needs less of it than a profile")]
mod scratch;
mod support;

use std::path::Path;
use std::process::Command;

use doubles::{Doubles, doubles};
use scratch::{Output, Scratch};

fn profile(scratch: &Scratch, flags: &[&str], words: &str) -> Output {
    let Doubles { cupti, application, .. } = doubles();
    let cupti = cupti.display().to_string();
    let application = application.display().to_string();
    let mut all = vec!["profile", "--out", "run", "--collector", "inject", "--cupti", &cupti];
    all.extend(flags);
    all.extend(["--", &application]);
    all.extend(words.split_whitespace());
    Output::of(scratch.command(&all))
}

const WORDS: &str = "cuda push:prefill launch:_Z4convPf*30 pop push:decode push:decode_step launch:_Z4gemmPf*20 wait pop \
                     push:decode_step launch:_Z4gemmPf*20 wait pop pop";

#[test]
fn a_command_is_run_once_more_and_its_kernels_belong_to_their_stages() {
    let scratch = Scratch::new();
    let output = profile(&scratch, &[], WORDS);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let kernels: Vec<_> = metrics["kernels"].as_array().unwrap().iter().collect();
    let row = |name: &str| kernels.iter().find(|kernel| kernel["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!((&row("conv(float *)")["calls"], &row("conv(float *)")["stage"]), (&30.into(), &"prefill".into()));
    assert_eq!((&row("gemm(float *)")["calls"], &row("gemm(float *)")["stage"]), (&40.into(), &"decode".into()));
    assert_eq!(metrics["totals"]["kernel_count"], 70);
    assert_eq!(metrics["run"]["engine"], "command");
    assert_eq!(metrics["command"]["runs"].as_array().unwrap().len(), 1, "the recorded run is no measurement");
    assert!(metrics["overhead"]["baseline_ns"].is_i64() && metrics["overhead"]["profiled_ns"].is_i64());
    let sources = metrics["trace"]["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 1);
    assert!(sources[0]["path"].as_str().unwrap().starts_with("trace/process-"));
    let kept = std::fs::read_dir(scratch.path("run/trace")).unwrap().count();
    assert_eq!(kept, 1, "the library is gone again");
    let verified = Output::of(scratch.command(&["runs", "run", "--verify"]));
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let report = scratch.text("run", "report.md");
    for said in
        ["## Profiled run", "## Per-Stage Timings", "## Top Kernels", "`gemm`", "Stages are from ranges in the trace"]
    {
        assert!(report.contains(said), "no {said} in {report}");
    }
    assert!(output.stdout.contains("top kernels"), "{}", output.stdout);
    // Stages are parts of the run they were recorded in.
    let nanos = |value: &serde_json::Value| value.as_i64().unwrap();
    let staged: i64 = metrics["stages"].as_array().unwrap().iter().map(|stage| nanos(&stage["wall_ns"])).sum();
    assert!(staged <= nanos(&metrics["totals"]["wall_ns"]), "{staged} of {}", metrics["totals"]["wall_ns"]);
}

#[test]
fn ranks_of_a_command_are_told_apart_by_their_launchers_variables() {
    let scratch = Scratch::new();
    let Doubles { cupti, application, .. } = doubles();
    // As torchrun does: the same program several times, with the number of each in its environment.
    let steps = "cuda push:prefill launch:_Z4convPf sleep:$wait pop push:decode push:decode_step launch:_Z4gemmPf*4 wait pop pop";
    let launcher = format!(
        "for rank in 0 1; do wait=$((20 + 200 * rank)); RANK=$rank WORLD_SIZE=2 {} {steps} & done; wait",
        application.display()
    );
    let cupti = cupti.display().to_string();
    let flags = ["profile", "--out", "run", "--collector", "inject", "--cupti", &cupti, "--", "sh", "-c", &launcher];
    let output = Output::of(scratch.command(&flags));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let ranks: Vec<u64> =
        metrics["ranks"].as_array().unwrap().iter().map(|one| one["rank"].as_u64().unwrap()).collect();
    assert_eq!(ranks, [0, 1]);
    let skew = &metrics["rank_skew"][0];
    assert_eq!((skew["stage"].as_str(), skew["slowest"].as_u64()), (Some("prefill"), Some(1)), "{skew}");
    assert!(skew["share"].as_f64().unwrap() > 1.0, "{skew}");
    assert!(scratch.text("run", "report.md").contains("prefill: rank 1 is the slowest"));
    assert_eq!(metrics["totals"]["kernel_count"], 10);
}

#[test]
fn a_window_is_checked_before_the_command_runs() {
    let scratch = Scratch::new();
    let output = profile(&scratch, &["--window", "decode_step:4..2"], WORDS);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("is not a valid window: instances must be FROM..TO"), "{}", output.stderr);
    assert!(!scratch.path("run").exists());
}

#[test]
fn a_window_records_its_steps_alone() {
    let scratch = Scratch::new();
    let output = profile(&scratch, &["--window", "decode_step:1..2"], WORDS);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    assert_eq!(metrics["totals"]["kernel_count"], 20);
}

#[test]
fn a_command_without_cuda_is_measured_and_says_that_nothing_was_recorded() {
    let scratch = Scratch::new();
    let output = Output::of(scratch.command(&["profile", "--out", "run", "--collector", "inject", "--", "true"]));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let counters: Vec<_> =
        metrics["quality"].as_array().unwrap().iter().map(|row| row["counter"].as_str().unwrap()).collect();
    assert_eq!(counters, ["no_process_collected"]);
    assert!(output.stdout.contains("not recorded: No process of the command used CUDA"), "{}", output.stdout);
    let export = Output::of(scratch.command(&["export", "run", "--format", "perfetto"]));
    assert_eq!(export.code, 2);
    assert!(export.stderr.contains("has no timeline: nothing was recorded"), "{}", export.stderr);
}

#[test]
fn what_was_recorded_is_exported_and_can_be_imported_again() {
    let scratch = Scratch::new();
    let output = profile(&scratch, &[], WORDS);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let export = Output::of(scratch.command(&["export", "run", "--format", "perfetto", "--out", "out.json"]));
    assert_eq!((export.code, export.stdout.as_str()), (0, "out.json\n"), "{}", export.stderr);
    let again = Output::of(scratch.command(&["import", "out.json", "--out", "again"]));
    assert_eq!(again.code, 0, "{}{}", again.stdout, again.stderr);
    let totals = |run: &str| scratch.json(run, "metrics.json")["totals"].clone();
    assert_eq!(totals("again")["kernel_count"], 70);
    assert_eq!(totals("again")["kernel_ns"], totals("run")["kernel_ns"]);
    let twice = Output::of(scratch.command(&["export", "run", "--format", "perfetto", "--out", "out.json"]));
    assert_eq!(twice.code, 2);
    assert!(twice.stderr.contains("out.json already exists"), "{}", twice.stderr);
}

#[test]
fn a_source_that_has_changed_is_not_exported() {
    let scratch = Scratch::new();
    let wire = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/data/collector/cuda.wire");
    let copy = scratch.path("cuda.wire");
    std::fs::copy(wire, &copy).unwrap();
    let imported = Output::of(scratch.command(&["import", "cuda.wire", "--out", "run"]));
    assert_eq!(imported.code, 0, "{}{}", imported.stdout, imported.stderr);
    assert_eq!(scratch.json("run", "metrics.json")["totals"]["kernel_count"], 34);
    std::fs::write(&copy, "other").unwrap();
    let export = Output::of(scratch.command(&["export", "run", "--format", "perfetto"]));
    assert_eq!(export.code, 1);
    assert!(export.stderr.contains("has changed since"), "{}", export.stderr);
}

#[test]
fn launches_of_graphs_that_are_sampled_are_scaled_to_all_of_them() {
    let scratch = Scratch::new();
    let words = format!("cuda push:decode launch:_Z4normPf {}wait pop", "graph:_Z4gemmPf*10 ".repeat(256));
    let output = profile(&scratch, &["--graph-nodes", "1/4"], &words);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let kernels = metrics["kernels"].as_array().unwrap();
    let row = |name: &str| kernels.iter().find(|kernel| kernel["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let (gemm, norm) = (row("gemm(float *)"), row("norm(float *)"));
    assert_eq!((&gemm["calls"], &gemm["total_ns"]), (&640.into(), &960_000.into()), "a quarter was recorded");
    let all = serde_json::json!({"calls": 2560, "total_ns": 3_840_000, "low_ns": 3_840_000, "high_ns": 3_840_000});
    assert_eq!(gemm["estimate"], all, "launches that take equally long have an interval without width");
    assert!(norm.get("estimate").is_none(), "{norm}");
    let quality = metrics["quality"].as_array().unwrap();
    let sampled = quality.iter().find(|row| row["counter"] == "graph_launches_sampled").unwrap();
    assert_eq!((&sampled["value"], &sampled["share"]), (&64.into(), &0.25.into()));
    assert!(quality.iter().all(|row| row["counter"] != "graphs_recorded_whole"));
}

/// A program that waits to be recorded, started by `run`.
struct Waiting(std::process::Child);

impl Waiting {
    fn start(scratch: &Scratch, program: &Path, words: &str) -> Self {
        let mut all = vec!["run", "--", program.to_str().unwrap()];
        all.extend(words.split_whitespace());
        let mut command = scratch.command(&all);
        command.env("DOUBLE_DRIVER", &doubles().driver).env("DOUBLE_ENGINES", &doubles().engines);
        command.env("LLM_PERF_INJECT_CUPTI", &doubles().cupti).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// A server as an engine announces it, whose steps are graphs; prompts are in none.
fn graph_steps() -> String {
    let decode = "push:execute_context_0(0)_generation_8(8) replay:900@7 pop sleep:2 ";
    let prefill = "push:execute_context_1(64)_generation_0(0) sleep:2 pop ";
    let steps = format!("{}{prefill}", decode.repeat(9)).repeat(200);
    format!("cuda driver context:192 engine:lazy replay:10@7 print:ready {steps}")
}

#[test]
fn launches_of_graphs_are_recorded_without_cupti_and_nothing_is_called_idle() {
    let scratch = Scratch::new();
    let waiting = Waiting::start(&scratch, &doubles().application, &graph_steps());
    let id = waiting.0.id().to_string();
    let output = Output::of(scratch.command(&["attach", &id, "--for", "500ms", "--graphs-only", "--out", "run"]));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let caveats: Vec<_> = metrics["caveats"].as_array().unwrap().iter().map(|caveat| caveat["kind"].as_str()).collect();
    assert_eq!(caveats, [Some("graphs_only")], "{metrics}");
    let count = |name: &str| {
        let quality = metrics["quality"].as_array().unwrap().iter();
        quality.clone().find(|row| row["counter"] == name).and_then(|row| row["value"].as_u64()).unwrap_or(0)
    };
    assert!(count("steps_untimed") > 5, "prompts launch no graph: {}", metrics["quality"]);
    let steps = metrics["steps"]["list"].as_array().unwrap();
    assert!(steps.len() > 60 && steps.iter().all(|step| step["label"] == "decode"), "{steps:?}");
    let device = |step: &serde_json::Value| step["device_ns"].as_i64().unwrap();
    assert!(steps.iter().all(|step| device(step) >= 890_000 && step["wall_ns"].as_i64() >= Some(device(step))));
    // What else the device did is not known.
    for unknown in ["gpu_busy_ns", "kernel_ns", "kernel_count"] {
        assert!(metrics["totals"][unknown].is_null(), "{unknown}: {}", metrics["totals"]);
        assert!(metrics["stages"][0][unknown].is_null(), "{unknown}: {}", metrics["stages"]);
    }
    for none in ["kernels", "device_time", "lost_time", "findings", "critical_path"] {
        assert!(metrics[none].as_array().is_none_or(Vec::is_empty), "{none}: {}", metrics[none]);
    }
    for page in ["report.md", "stakeholder_summary.md"] {
        let page = scratch.text("run", page);
        assert!(page.contains("Only launches of CUDA graphs were timed"), "{page}");
        for word in ["idle time is", "was idle", "launch-bound", "of the device span", "% busy"] {
            assert!(!page.contains(word), "{word}: {page}");
        }
    }
    let whatif = Output::of(scratch.command(&["whatif", "run", "--cuda-graphs"]));
    assert!(whatif.stderr.contains("only launches of CUDA graphs were timed"), "{}{}", whatif.stdout, whatif.stderr);
}

fn steps() -> String {
    format!("cuda print:ready {}", "push:decode push:decode_step launch:_Z4gemmPf*3 sleep:5 pop pop ".repeat(1500))
}

#[test]
fn a_program_started_by_run_is_recorded_while_it_works() {
    let scratch = Scratch::new();
    let waiting = Waiting::start(&scratch, &doubles().application, &steps());
    for out in ["one", "two"] {
        let id = waiting.0.id().to_string();
        let output = Output::of(scratch.command(&["attach", &id, "--for", "300ms", "--out", out]));
        assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
        let metrics = scratch.json(out, "metrics.json");
        let count = metrics["totals"]["kernel_count"].as_u64().unwrap();
        assert!((15..400).contains(&count), "{count}");
        assert_eq!(metrics["kernels"][0]["name"], "gemm(float *)");
        assert_eq!(metrics["kernels"][0]["stage"], "decode");
        let verified = Output::of(scratch.command(&["runs", out, "--verify"]));
        assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    }
}

#[test]
fn all_processes_of_a_name_are_recorded_together() {
    let scratch = Scratch::new();
    let program = scratch.path("").join(format!("ranks-{}", std::process::id()));
    std::fs::copy(&doubles().application, &program).unwrap();
    let waiting = [Waiting::start(&scratch, &program, &steps()), Waiting::start(&scratch, &program, &steps())];
    let name = program.file_name().unwrap().to_str().unwrap();
    let output = Output::of(scratch.command(&["attach", name, "--for", "300ms", "--out", "run"]));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let mut files: Vec<_> =
        std::fs::read_dir(scratch.path("run/trace")).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    let mut expected: Vec<std::ffi::OsString> =
        waiting.iter().map(|one| format!("process-{}.wire", one.0.id()).into()).collect();
    expected.sort();
    assert_eq!(files, expected);
}

#[test]
fn what_cannot_be_recorded_is_refused_with_what_would_work() {
    let scratch = Scratch::new();
    let mut plain = Command::new("sleep").arg("30").spawn().unwrap();
    let output = Output::of(scratch.command(&["attach", &plain.id().to_string()]));
    let _ = (plain.kill(), plain.wait());
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("has loaded the collector"), "{}", output.stderr);
    assert!(
        output.stderr.contains("llm-perf run -- COMMAND") && output.stderr.contains("llm-perf serve"),
        "{}",
        output.stderr
    );
    let output = Output::of(scratch.command(&["attach", "no-such-program-here"]));
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("no running process of yours is `no-such-program-here`"), "{}", output.stderr);
    // As root a process of somebody else has to be made; otherwise the first one is root's.
    let mut other = Command::new("sleep");
    let other = std::os::unix::process::CommandExt::uid(other.arg("30"), 65534).spawn();
    let id = other.as_ref().map_or(1, std::process::Child::id);
    let output = Output::of(scratch.command(&["attach", &id.to_string()]));
    if let Ok(mut other) = other {
        let _ = (other.kill(), other.wait());
    }
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("belongs to another user"), "{}", output.stderr);
    assert!(!scratch.path("tmp").exists(), "no run folder is made");
}

#[test]
fn run_prints_what_to_set_and_keeps_the_exit_code() {
    let scratch = Scratch::new();
    let output = Output::of(scratch.command(&["run"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let names: Vec<_> = output.stdout.lines().filter_map(|line| line.split_once('=')).collect();
    assert_eq!((names[0].0, names[1].0), ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"));
    assert!(Path::new(names[0].1).is_file() && names[0].1 == names[1].1);
    assert_eq!(Output::of(scratch.command(&["run", "--", "sh", "-c", "exit 7"])).code, 7);
    let output = Output::of(scratch.command(&["run", "--", "/no/such/program"]));
    assert!(output.code == 1 && output.stderr.contains("cannot start /no/such/program"), "{}", output.stderr);
}
