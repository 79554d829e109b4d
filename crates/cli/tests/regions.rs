//! `llm-perf regions` as a user runs it: on pages that were captured, and through a stand-in for Nsight Compute that
//! answers with captures of a real one.

#![cfg(unix)]

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "regions need less of it than a profile")]
mod scratch;
mod support;

use std::path::{Path, PathBuf};

use scratch::{Output, Scratch};
use serde_json::Value;

/// Captures that the reader is tested with; their notes say where they come from.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures/ncu").join(name)
}

const KERNELS: &str = "ncu-kernel-replay-raw.csv.gz";
const RANGES: &str = "ncu-range-replay-raw.csv";
const NESTED: &str = "ncu-range-nested-raw.csv";

fn from(scratch: &Scratch, files: &[&str], arguments: &[&str]) -> Output {
    let files: Vec<String> = files.iter().map(|file| fixture(file).display().to_string()).collect();
    let mut all = vec!["regions", "--out", "run"];
    all.extend(files.iter().flat_map(|file| ["--from", file.as_str()]));
    all.extend(arguments);
    Output::of(scratch.command(&all))
}

/// A stand-in for the profiler, and the captures it answers with.
struct FakeNcu {
    scratch: Scratch,
}

impl FakeNcu {
    fn new() -> Self {
        let scratch = Scratch::new();
        let bin = scratch.path("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/ncu-regions.sh");
        std::os::unix::fs::symlink(script, bin.join("ncu")).unwrap();
        std::fs::create_dir_all(scratch.path("captures")).unwrap();
        Self { scratch }
    }

    /// A capture that answers with a page.
    fn with(self, name: &str, page: &str) -> Self {
        let folder = self.scratch.path("captures").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let ending = if page.ends_with(".gz") { "raw.csv.gz" } else { "raw.csv" };
        std::fs::copy(fixture(page), folder.join(ending)).unwrap();
        std::fs::write(folder.join("log.txt"), "==PROF== Connected to process 1\n").unwrap();
        self
    }

    /// A capture that only says something and ends with a code.
    fn saying(self, name: &str, text: &str, code: i32) -> Self {
        let folder = self.scratch.path("captures").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("log.txt"), text).unwrap();
        std::fs::write(folder.join("code"), code.to_string()).unwrap();
        self
    }

    /// Captures of a real run over `tests/live/regions_abc.py`; their notes say how they were made.
    fn live() -> Self {
        let fake = Self::new();
        let captures = fake.scratch.path("captures");
        std::fs::remove_dir(&captures).unwrap();
        let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/regions");
        std::os::unix::fs::symlink(made, captures).unwrap();
        fake
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = self.scratch.command(&[&["regions", "--out", "run"], arguments, &["--", "true"]].concat());
        command.env("PATH", format!("{}:{path}", self.scratch.path("bin").display()));
        command.env("FAKE_NCU", self.scratch.path("captures"));
        command.env("FAKE_NCU_CALLS", self.scratch.path("calls.txt"));
        Output::of(command)
    }

    /// What the profiler was told to include, run by run.
    fn told(&self) -> Vec<Vec<String>> {
        let calls = std::fs::read_to_string(self.scratch.path("calls.txt")).unwrap_or_default();
        let captures = calls.lines().filter(|line| line.contains("--export"));
        let includes = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            words.windows(2).filter(|pair| pair[0] == "--nvtx-include").map(|pair| pair[1].to_owned()).collect()
        };
        captures.map(includes).collect()
    }

    fn report(&self) -> Value {
        self.scratch.json("run", "ncu/regions/report.json")
    }
}

fn regions(report: &Value) -> Vec<(&str, &Value)> {
    let list = report["regions"].as_array().unwrap();
    list.iter().map(|region| (region["path"].as_str().unwrap(), &region["aggregate"])).collect()
}

fn paths(report: &Value) -> Vec<&str> {
    regions(report).into_iter().map(|(path, _)| path).collect()
}

fn texts(value: &Value) -> String {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Everything that a run of regions leaves is there, valid, and as the manifest says.
fn assert_whole(scratch: &Scratch, folders: &[&str]) {
    for name in ["ncu/regions/report.json", "metrics.json", "inputs.yaml", "manifest.json"] {
        let file = scratch.path("run").join(name);
        let checked = Output::of(scratch.command(&["validate", file.to_str().unwrap()]));
        assert_eq!(checked.code, 0, "{name}: {}{}", checked.stdout, checked.stderr);
    }
    for folder in folders {
        for name in ["report.md", "sections.txt", "kernels.csv"] {
            assert!(!scratch.text("run", &format!("ncu/regions/{folder}/{name}")).is_empty(), "{folder}/{name}");
        }
    }
    let verified = Output::of(scratch.command(&["runs", "./run", "--verify"]));
    assert_eq!(verified.code, 0, "{}", verified.stderr);
}

#[test]
fn pages_become_regions_with_the_kernels_that_nvtx_gave_them() {
    let scratch = Scratch::new();
    let output = from(&scratch, &[KERNELS], &["pipeline.ncu.ncu_cli.metrics=[gpu__time_duration.sum]"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert_whole(&scratch, &["A", "A+A1"]);
    let report = scratch.json("run", "ncu/regions/report.json");
    let counts: Vec<_> = regions(&report)
        .into_iter()
        .map(|(path, totals)| (path, totals["kernels_inclusive"].as_u64(), totals["kernels_exclusive"].as_u64()))
        .collect();
    assert_eq!(counts, [("A", Some(114), Some(74)), ("A::A1", Some(40), Some(40))]);
    assert_eq!(report["device"], "NVIDIA H200");
    assert_eq!(report["replay_mode"], "kernel");
    assert_eq!(report["scope"], "aggregate");
    // Kernels of A::A1 are kernels of A, and count once.
    assert_eq!(report["totals"]["kernels_inclusive"], 114);
    assert_eq!(report["totals"]["total_ns_inclusive"], report["regions"][0]["aggregate"]["total_ns_inclusive"]);
    assert!(report["generated_at"].as_str().unwrap().starts_with("20"), "{}", report["generated_at"]);
    let config = std::fs::read(scratch.path("run").join("config.yaml")).unwrap();
    let listed = scratch.manifest("run")["files"].as_array().unwrap().clone();
    let config = listed.iter().find(|file| file["path"] == "config.yaml").filter(|_| !config.is_empty()).unwrap();
    assert_eq!(report["config_fingerprint"], config["sha256"]);
    let kernel = &report["regions"][0]["aggregate"]["kernels"][0];
    assert_eq!(kernel["device"], "cuda:0");
    let [total, mean, calls] = ["total_ns", "mean_ns", "calls"].map(|key| kernel[key].as_i64().unwrap());
    assert_eq!(mean, total / calls);
    let inputs: Value = serde_saphyr::from_str(&scratch.text("run", "inputs.yaml")).unwrap();
    assert_eq!((&inputs["count"], &inputs["files"][0]["role"]), (&1.into(), &"trace".into()));
    let csv = scratch.text("run", "ncu/regions/A/kernels.csv");
    assert_eq!(csv.lines().count(), 1 + 114);
    assert_eq!(csv.lines().filter(|line| line.contains(",A::A1,")).count(), 40);
    let metrics = scratch.json("run", "metrics.json");
    let row = &metrics["regions"][1];
    assert_eq!((&row["path"], &row["process"], &row["device"]), (&"A::A1".into(), &467.into(), &"cuda:0".into()));
    assert_eq!(row["total_ns_inclusive"], 757_600);
    assert_eq!(row["metrics"]["gpu__time_duration.sum"], 757_600.0);
    // The page is of the regions, not of a timeline that nobody recorded, and is the same whenever it is made.
    let page = scratch.text("run", "report.html");
    assert!(page.contains("<strong>2 regions, 2.09 ms on the device.</strong>"), "{page}");
    assert!(page.contains("1.33 ms exclusive, 63.7%") && !page.contains("no device work"), "{page}");
    let again = Output::of(scratch.command(&["report", "./run", "--out", "again.html"]));
    assert_eq!(again.code, 0, "{}", again.stderr);
    let headline = |page: &str| page.split("This page has no timeline").next().unwrap().to_owned();
    assert_eq!(headline(&std::fs::read_to_string(scratch.path("again.html")).unwrap()), headline(&page));
    let shown = Output::of(scratch.command(&["runs", "./run"]));
    assert_eq!(shown.code, 0, "{}", shown.stderr);
}

#[test]
fn pages_of_ranges_show_their_instances() {
    let scratch = Scratch::new();
    let output = from(&scratch, &[RANGES, NESTED], &["pipeline.ncu.ncu_cli.metrics=[dram__bytes.sum]", "--json"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let metrics: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(metrics["schema"], "llm-perf/metrics/1");
    let report = scratch.json("run", "ncu/regions/report.json");
    assert_eq!((paths(&report), &report["replay_mode"]), (vec!["A", "A::A1", "B"], &"range".into()));
    let a = &report["regions"][0]["aggregate"];
    assert_eq!(
        (&a["instances"], &a["instances_exact"], &a["kernels_inclusive"]),
        (&2.into(), &true.into(), &Value::Null)
    );
    assert!(a["instance_ns"]["min_ns"].as_i64().unwrap() > 0);
    // Whether anything else is nested in A was not looked at.
    assert_eq!(a["total_ns_exclusive"], Value::Null);
    let roofline = &report["regions"][0]["roofline"];
    assert!(roofline["bandwidth_share"].as_f64().unwrap() < 1.0, "{roofline}");
}

#[test]
fn kernels_are_found_in_one_run_after_a_survey() {
    let fake = FakeNcu::new().with("survey", KERNELS).with("kernel/A%", KERNELS);
    let output = fake.run(&["pipeline.ncu.ncu_cli.sections=[]"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert_eq!(fake.told(), [vec![], vec!["A/".to_owned()]]);
    assert_whole(&fake.scratch, &["A", "A+A1"]);
    let report = fake.report();
    assert_eq!(paths(&report), ["A", "A::A1"]);
    assert_eq!(report["tool"], "Nsight Compute 2025.3.1.0");
    assert_eq!(report["outside"]["kernels"], 0);
    let purposes: Vec<_> = report["captures"].as_array().unwrap().iter().map(|one| one["purpose"].clone()).collect();
    assert_eq!(purposes, ["survey", "capture"]);
    assert_eq!(fake.scratch.json("run", "metrics.json")["run"]["engine"], "command");
}

#[test]
fn nested_ranges_are_measured_in_runs_of_their_own() {
    let fake = FakeNcu::new().with("survey", KERNELS).with("range/A%", RANGES).with("range/A%A1%", NESTED);
    let output = fake.run(&[
        "--replay-mode",
        "range",
        "pipeline.ncu.ncu_cli.metrics=[dram__bytes.sum]",
        "pipeline.ncu.ncu_cli.sections=[]",
    ]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert_eq!(fake.told(), [vec![], vec!["A/".to_owned()], vec!["A/A1/".to_owned()]]);
    let report = fake.report();
    let totals = |path: &str| regions(&report).into_iter().find(|(found, _)| *found == path).unwrap().1.clone();
    let (a, a1) = (totals("A"), totals("A::A1"));
    assert_eq!((&a["kernels_inclusive"], &a1["kernels_inclusive"]), (&114.into(), &40.into()));
    let whole = bytes(&a, "exclusive") + bytes(&a1, "inclusive");
    assert!(near(whole, bytes(&a, "inclusive"), 0.01), "{whole}");
}

const BYTES: &str = "dram__bytes.sum";

/// The regions of `tests/live/regions_abc.py`, entered twice: kernels inside, its own, and bytes of their tensors.
const LIVE: [(&str, u64, u64, f64); 3] = [
    ("A", 10, 6, 10.0 * 3.0 * 268_435_456.0),
    ("A::A1", 4, 4, 4.0 * 3.0 * 268_435_456.0),
    ("B", 8, 8, 8.0 * 3.0 * 268_435_456.0),
];

fn near(one: f64, two: f64, share: f64) -> bool {
    (one - two).abs() <= share * one.abs().max(two.abs())
}

fn bytes(totals: &Value, of: &str) -> f64 {
    totals["metrics"][BYTES][of].as_f64().unwrap()
}

#[test]
fn every_mode_finds_the_same_kernels_and_bytes_on_a_real_gpu() {
    let metrics = "pipeline.ncu.ncu_cli.metrics=[dram__bytes.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed]";
    let common = [metrics, "pipeline.ncu.ncu_cli.sections=[]", "pipeline.ncu.ncu_cli.cache_control=none", "--survey"];
    for (mode, runs) in [("kernel", 2), ("application", 2), ("range", 3), ("app-range", 3)] {
        let fake = FakeNcu::live();
        let output = fake.run(&[&["--replay-mode", mode], &common[..]].concat());
        assert_eq!(output.code, 0, "{mode}: {}{}", output.stdout, output.stderr);
        assert_eq!(fake.told().len(), runs, "{mode}");
        assert_whole(&fake.scratch, &["A", "A+A1", "B"]);
        let report = fake.report();
        for ((path, totals), (name, kernels, own, moved)) in regions(&report).into_iter().zip(LIVE) {
            assert_eq!(path, name);
            let counted = (totals["kernels_inclusive"].as_u64(), totals["kernels_exclusive"].as_u64());
            assert_eq!(counted, (Some(kernels), Some(own)), "{mode} {path}");
            let counted = bytes(totals, "inclusive");
            assert!(near(counted, moved, 0.10), "{mode} {path}: {counted} {moved}");
        }
        let [(_, a), (_, a1), _] = regions(&report)[..] else { panic!("three regions") };
        assert!(near(bytes(a, "exclusive") + bytes(a1, "inclusive"), bytes(a, "inclusive"), 0.01), "{mode}");
        assert_eq!((&a["instances"], &a["instances_exact"]), (&2.into(), &mode.ends_with("range").into()), "{mode}");
        assert_eq!(report["outside"]["kernels"], 8, "{mode}");
        assert_eq!(report["regions"][2]["roofline"]["bandwidth_share"].as_f64().map(|share| share > 0.4), Some(true));
    }
}

#[test]
fn two_choices_of_sections_and_metrics_give_exactly_those() {
    let cli = "pipeline.ncu.ncu_cli";
    let fake = FakeNcu::live();
    let chosen = [&*format!("{cli}.sections=[SpeedOfLight,Occupancy]"), &*format!("{cli}.metrics=[]")];
    let output = fake.run(&[&["--nvtx-include", "A::A1", "--nvtx-include", "B"], &chosen[..]].concat());
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let report = fake.report();
    assert_eq!((paths(&report), &report["metrics"]), (vec!["A::A1", "B"], &Value::from(Vec::<Value>::new())));
    let sections = |report: &Value| -> Vec<Vec<String>> {
        let ids = |totals: &Value| {
            let list = totals["sections"].as_array().unwrap();
            list.iter().map(|section| section["id"].as_str().unwrap().to_owned()).collect()
        };
        regions(report).into_iter().map(|(_, totals)| ids(totals)).collect()
    };
    assert_eq!(sections(&report), [["SpeedOfLight", "Occupancy"]; 2]);
    let text = fake.scratch.text("run", "ncu/regions/B/sections.txt");
    assert!(
        text.contains("GPU Speed Of Light Throughput [SpeedOfLight]") && text.contains("Achieved Occupancy"),
        "{text}"
    );

    let fake = FakeNcu::live();
    let output = fake.run(&[
        "--nvtx-include",
        "A",
        &format!("{cli}.sections=[LaunchStats]"),
        &format!("{cli}.metrics=[dram__bytes_read.sum,dram__bytes_write.sum]"),
        &format!("{cli}.kernel_name=regex:elementwise"),
        &format!("{cli}.kernel_exclude=[regex:Mul]"),
    ]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let report = fake.report();
    // A1 only multiplies, and nothing of it is left.
    assert_eq!(sections(&report), [vec!["LaunchStats"], vec![]]);
    let names: Vec<_> = report["metrics"].as_array().unwrap().iter().map(|metric| metric["name"].clone()).collect();
    assert_eq!(names, ["dram__bytes_read.sum", "dram__bytes_write.sum"]);
    assert_eq!(report["selection"]["kernels_left_out"], 4);
    let counts: Vec<_> = regions(&report).iter().map(|(_, totals)| totals["kernels_inclusive"].as_u64()).collect();
    assert_eq!(counts, [Some(6), Some(0)]);
}

#[test]
fn a_region_has_its_place_under_the_roofs_of_its_device() {
    let fake = FakeNcu::live();
    let cli = "pipeline.ncu.ncu_cli";
    let sections = format!("{cli}.sections=[SpeedOfLight_RooflineChart]");
    let output = fake.run(&["--nvtx-include", "B", &sections, &format!("{cli}.metrics=[{BYTES}]")]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let roofline = fake.report()["regions"][0]["roofline"].clone();
    // Eight subtractions of 67,108,864 numbers, each one fused multiply-add.
    let operations = roofline["flops_vector"].as_f64().unwrap();
    assert!(near(operations, 8.0 * 2.0 * 67_108_864.0, 0.001), "{operations}");
    // Matrix work is in another section, so that nothing is claimed about the nearer roof.
    assert_eq!((&roofline["flops_matrix"], &roofline["bound"]), (&Value::Null, &Value::Null));
    let (memory, compute) = (&roofline["bandwidth_share"], &roofline["compute_share"]);
    assert!(memory.as_f64().unwrap() > 0.8 && compute.as_f64().unwrap() < 0.02, "{roofline}");
    assert!(fake.scratch.text("run", "ncu/regions/report.md").contains("## Roofline"));
}

#[test]
fn an_expression_that_needs_no_survey_makes_none() {
    let fake = FakeNcu::new().with("kernel/A==A1%+A%A1%", KERNELS);
    let output = fake.run(&["--nvtx-include", "A::A1", "pipeline.ncu.ncu_cli.sections=[]"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert_eq!(fake.told(), [["A::A1/", "A/A1/"]]);
    let report = fake.report();
    assert_eq!(paths(&report), ["A::A1"], "A was not asked for");
    assert!(texts(&report["notes"]).contains("`--survey` counts it"), "{}", report["notes"]);
    assert_eq!(report["selection"]["include"][0]["matched"], Value::from(vec!["A::A1"]));
}

#[test]
fn kernels_are_chosen_and_left_out_and_the_choice_is_recorded() {
    let scratch = Scratch::new();
    let base = "pipeline.ncu.ncu_cli.kernel_name_base=function";
    let name = "pipeline.ncu.ncu_cli.kernel_name=regex:Kernel|kernel";
    let exclude = "pipeline.ncu.ncu_cli.kernel_exclude=[nchwToNhwcKernel, 'regex:^bn_']";
    let output = from(&scratch, &[KERNELS], &[base, name, exclude]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let report = scratch.json("run", "ncu/regions/report.json");
    let kernels: Vec<&str> = report["regions"][0]["aggregate"]["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kernel| kernel["name"].as_str().unwrap())
        .collect();
    assert!(!kernels.is_empty());
    assert!(kernels.iter().all(|name| !name.contains("nchwToNhwcKernel") && !name.contains("bn_fw")), "{kernels:?}");
    let selection = &report["selection"];
    assert_eq!(
        (&selection["kernel_name"], &selection["kernel_name_base"]),
        (&"regex:Kernel|kernel".into(), &"function".into())
    );
    // 32 changes of layout and 12 normalisations.
    assert_eq!(selection["kernels_left_out"], 44);
    let of_region = &report["regions"][0]["selection"];
    assert_eq!(of_region["include_patterns"], serde_json::json!(["regex:Kernel|kernel"]));
    assert_eq!(of_region["kernels_left_out"], 44);
    assert!(!of_region["exclude_patterns"].as_array().unwrap().is_empty());
    assert_eq!(report["regions"][0]["aggregate"]["kernels_inclusive"], 114 - 44);
}

#[test]
fn only_the_metrics_that_are_asked_for_are_reported() {
    for wanted in ["sm__throughput.avg.pct_of_peak_sustained_elapsed", "lts__cycles_elapsed.sum"] {
        let scratch = Scratch::new();
        let output = from(&scratch, &[KERNELS], &[&format!("pipeline.ncu.ncu_cli.metrics=[{wanted}]")]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let report = scratch.json("run", "ncu/regions/report.json");
        let named: Vec<_> = report["metrics"].as_array().unwrap().iter().map(|metric| metric["name"].clone()).collect();
        assert_eq!(named, [wanted]);
        for (path, totals) in regions(&report) {
            let keys: Vec<&String> = totals["metrics"].as_object().unwrap().keys().collect();
            assert_eq!(keys, [wanted], "{path}");
            assert!(totals["metrics"][wanted]["inclusive"].is_f64(), "{path}");
        }
        assert!(scratch.text("run", "ncu/regions/report.md").contains(wanted));
    }
}

#[test]
fn totals_over_devices_can_be_switched_off() {
    let scratch = Scratch::new();
    let output = from(&scratch, &[KERNELS], &["pipeline.ncu.regions.aggregate=false"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let report = scratch.json("run", "ncu/regions/report.json");
    assert_eq!(report["regions"][0]["aggregate"], Value::Null);
    assert_eq!(report["regions"][0]["parts"][0]["totals"]["kernels_inclusive"], 114);
    assert_whole(&scratch, &["A"]);
}

#[test]
fn nothing_to_report_is_said_plainly_and_is_no_failure() {
    let unmatched = FakeNcu::new().with("survey", KERNELS);
    let output = unmatched.run(&["--nvtx-include", "decode*"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let report = unmatched.report();
    assert_eq!(report["regions"], Value::from(Vec::<Value>::new()));
    assert!(texts(&report["notes"]).contains("no matching regions for `decode*`; regions with kernels: `A`, `A::A1`"));
    assert!(output.stderr.contains("no matching regions"), "{}", output.stderr);
    assert_eq!(report["outside"]["kernels"], 114);

    let nothing = FakeNcu::new();
    let output = nothing.run(&["--nvtx-include", "C"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let notes = texts(&nothing.report()["notes"]);
    assert!(notes.contains("no matching regions") && notes.contains("`C`"), "{notes}");

    let no_kernels = FakeNcu::new();
    let output = no_kernels.run(&[]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(texts(&no_kernels.report()["notes"]).contains("no kernels were seen"));

    let scratch = Scratch::new();
    let output = from(&scratch, &["ncu-dsocr-roofline-raw.csv.gz"], &[]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let notes = texts(&scratch.json("run", "ncu/regions/report.json")["notes"]);
    assert!(notes.contains("no region present: 8 kernels ran outside any NVTX range"), "{notes}");

    let scratch = Scratch::new();
    let output = from(&scratch, &["ncu-no-range.log"], &["--nvtx-include", "A"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);

    let scratch = Scratch::new();
    let output = from(&scratch, &[KERNELS], &["pipeline.ncu.ncu_cli.kernel_name=nothing"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let report = scratch.json("run", "ncu/regions/report.json");
    assert_eq!(report["regions"][0]["aggregate"]["kernels_inclusive"], 0);
    assert!(texts(&report["notes"]).contains("no kernel in `A` passes the kernel filter"));
}

#[test]
fn a_range_that_cannot_be_replayed_is_missing_and_the_mode_that_would_do_is_named() {
    let fake = FakeNcu::new().with("survey", KERNELS).with("range/A%", RANGES);
    let output = fake.run(&["--replay-mode", "range", "pipeline.ncu.ncu_cli.sections=[]"]);
    assert_eq!(output.code, 3, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("`A::A1` could not be measured as a whole range"), "{}", output.stderr);
    assert!(output.stderr.contains("try `--replay-mode app-range` or `--replay-mode kernel`"), "{}", output.stderr);
    assert_eq!(fake.scratch.manifest("run")["status"], "partial");
    assert_eq!(paths(&fake.report()), ["A", "B"], "no section is made up for what was not measured");
}

#[test]
fn a_call_that_range_replay_does_not_support_leaves_what_was_measured() {
    let fake = FakeNcu::live();
    let arguments =
        ["--replay-mode", "range", "--no-survey", "--nvtx-include", "A", "pipeline.ncu.ncu_cli.sections=[]"];
    let output = fake.run(&arguments);
    assert_eq!(output.code, 3, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("the range contains work that cannot be replayed"), "{}", output.stderr);
    assert!(output.stderr.contains("replay_mode=app-range, or replay_mode=kernel"), "{}", output.stderr);
    let report = fake.report();
    assert_eq!((paths(&report), &report["regions"][0]["aggregate"]["instances"]), (vec!["A"], &1.into()));
    assert!(texts(&report["captures"][0]["messages"]).contains("Failed to profile \"range\""));
}

#[test]
fn the_dummy_network_is_counted_module_by_module_beside_its_model() {
    let fake = FakeNcu::live();
    let captures = fake.scratch.path("resnet");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = fake.scratch.command(&[
        "regions",
        "--out",
        "run",
        "--engine",
        "torch",
        "--device",
        "cuda:0",
        "--module-ranges",
        "depth=1",
        "model/dummy_shallow_resnet/arch@model=dummy_shallow_resnet.default",
        "model/dummy_shallow_resnet/infer@infer=dummy_shallow_resnet.default",
        "pipeline.ncu.ncu_cli.sections=[]",
        "pipeline.ncu.ncu_cli.metrics=[dram__bytes.sum]",
    ]);
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/regions/resnet");
    std::os::unix::fs::symlink(made, &captures).unwrap();
    command.env("PATH", format!("{}:{path}", fake.scratch.path("bin").display())).env("FAKE_NCU", captures);
    let output = Output::of(command);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let report = fake.report();
    assert_eq!(paths(&report), ["prefill", "prefill::stem", "prefill::residual", "prefill::head"]);
    assert_eq!(report["regions"][0]["modelled"], Value::Null, "a stage is no module");
    let stem = &report["regions"][1]["modelled"];
    // A convolution of 3 by 3 from 3 to 32 channels over 8 images of 64 by 64.
    assert_eq!((&stem["module"], &stem["flops_matrix"]), (&"stem".into(), &(2 * 27 * 32 * 64 * 64 * 8).into()));
    assert!(fake.scratch.text("run", "ncu/regions/report.md").contains("## Modelled and counted"));
    let metrics = fake.scratch.json("run", "metrics.json");
    assert_eq!(
        (&metrics["run"]["engine"], &metrics["run"]["model"]),
        (&"torch".into(), &"dummy-shallow-resnet".into())
    );
}

#[test]
fn a_profiler_that_may_not_count_fails_with_the_next_step() {
    let said =
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n";
    let fake = FakeNcu::new().saying("survey", said, 1);
    let output = fake.run(&[]);
    assert_eq!(output.code, 1, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("NVreg_RestrictProfilingToAdminUsers=0"), "{}", output.stderr);
    assert!(output.stderr.contains("\n  | ==ERROR== ERR_NVGPUCTRPERM"), "{}", output.stderr);
    assert_eq!(fake.scratch.manifest("run")["status"], "failed");
}

#[test]
fn the_plan_shows_every_command_and_runs_none() {
    let fake = FakeNcu::new();
    let output = fake.run(&["--dry-run", "--nvtx-include", "A::A1", "--nvtx-include", "LLM@prefill"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(
        lines[1].contains("--nvtx-include A::A1/ --nvtx-include A/A1/ --nvtx-include LLM@prefill/"),
        "{}",
        output.stdout
    );
    assert!(fake.told().is_empty() && !fake.scratch.path("run").exists());
    let ranges = fake.run(&["--dry-run", "--replay-mode", "range"]);
    assert!(ranges.stdout.starts_with("# survey: finds the regions\n"), "{}", ranges.stdout);
    assert!(ranges.stdout.contains("--replay-mode range") && ranges.stdout.contains("--nvtx-include REGION/"));
}

#[test]
fn wrong_requests_are_refused_before_anything_runs() {
    let fake = FakeNcu::new();
    for (arguments, words) in [
        (vec!["--replay-mode", "range", "--no-survey"], "needs the ranges to replay"),
        (vec!["--replay-mode", "sideways"], "invalid value 'sideways'"),
        (vec!["pipeline.ncu.ncu_cli.kernel_name=regex:("], "is not a regular expression: unclosed group"),
        (
            vec!["pipeline.ncu.ncu_cli.kernel_exclude=['regex:(']"],
            "ncu_cli.kernel_exclude: `(` is not a regular expression",
        ),
        (vec!["pipeline.ncu.ncu_cli.replay=range"], "replay"),
        (vec!["pipeline.ncu.enabled=false"], "pipeline.ncu.enabled is false"),
    ] {
        let output = fake.run(&arguments);
        assert_eq!(output.code, 2, "{arguments:?}: {}{}", output.stdout, output.stderr);
        assert!(output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
    }
    assert!(fake.told().is_empty());
    let scratch = Scratch::new();
    let native = Output::of(scratch.command(&["regions", "--engine", "native"]));
    assert_eq!(native.code, 2, "{}", native.stderr);
    assert!(native.stderr.contains("use --engine torch to run the same models on a GPU"), "{}", native.stderr);
    let details = from(&scratch, &["ncu-dsocr-roofline-details.csv.gz"], &[]);
    assert_eq!(details.code, 2, "{}", details.stderr);
    let missing = from(&scratch, &["nowhere.csv"], &[]);
    assert_eq!(missing.code, 1, "{}", missing.stderr);
}
