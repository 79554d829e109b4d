//! `llm-perf import` as a user runs it, on captures of real tools and on everything that is none.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "an import needs less of it than a profile")]
mod scratch;
mod support;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use scratch::{Output, Scratch};
use serde_json::Value;

/// Captures that the readers are tested with; their notes say where they come from.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name)
}

const TORCH: &str = "torch/dsocr-h200.json.gz";
const NSYS: &str = "nsys/dsocr-h200.sqlite.gz";
const KERNEL_TABLE: &str = "nsys_stats/nsys-dsocr-cuda_gpu_kern_sum.csv";
const COUNTERS: &str = "ncu/ncu-kernel-replay-raw.csv.gz";

/// Imports fixtures into the folder `run`.
fn import(scratch: &Scratch, files: &[&str], arguments: &[&str]) -> Output {
    let files: Vec<_> = files.iter().map(|file| fixture(file).display().to_string()).collect();
    let mut all = vec!["import"];
    all.extend(files.iter().map(String::as_str));
    all.extend(["--out", "run"]);
    all.extend(arguments);
    Output::of(scratch.command(&all))
}

fn imported(scratch: &Scratch, files: &[&str], arguments: &[&str]) -> Value {
    let output = import(scratch, files, arguments);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    scratch.json("run", "metrics.json")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key}"))
}

fn stage<'a>(metrics: &'a Value, name: &str) -> &'a Value {
    list(metrics, "stages").iter().find(|stage| stage["name"] == name).unwrap_or_else(|| panic!("{name}"))
}

fn counter<'a>(metrics: &'a Value, name: &str) -> Option<&'a Value> {
    list(metrics, "quality").iter().find(|counter| counter["counter"] == name)
}

/// Every file of an imported run is there, valid and as the manifest says.
fn assert_whole(scratch: &Scratch) {
    for name in ["report.md", "kernels.md", "operators.md", "stakeholder_summary.md", "assumptions.md", "config.yaml"] {
        assert!(!scratch.text("run", name).is_empty(), "{name}");
    }
    for name in ["metrics.json", "env.json", "manifest.json"] {
        let file = scratch.path("run").join(name);
        let checked = Output::of(scratch.command(&["validate", file.to_str().unwrap()]));
        assert_eq!(checked.code, 0, "{name}: {}{}", checked.stdout, checked.stderr);
    }
    let verified = Output::of(scratch.command(&["runs", "./run", "--verify"]));
    assert_eq!(verified.code, 0, "{}", verified.stderr);
}

/// The whole folder as one text.
fn everything(scratch: &Scratch) -> String {
    let (mut folders, mut text) = (vec![scratch.path("run")], String::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { folders.push(path) } else { text += &std::fs::read_to_string(path).unwrap() }
        }
    }
    text
}

#[test]
fn a_torch_trace_gives_every_kernel_its_stage_and_adds_up_to_the_nanosecond() {
    let scratch = Scratch::new();
    let metrics = imported(&scratch, &[TORCH], &["--model", "deepseek-ocr"]);
    assert_whole(&scratch);
    let totals = &metrics["totals"];
    assert_eq!((&totals["kernel_count"], &totals["kernel_ns"]), (&8_144.into(), &30_273_935.into()));
    assert_eq!(totals["launches_per_token"], 1_280.0);
    let sum = |key: &str| list(&metrics, "kernels").iter().map(|kernel| kernel[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("calls"), sum("total_ns")), (8_144, 30_273_935));
    for (name, kernels) in [("prefill", 3_208), ("sam", 504), ("clip", 244), ("projector", 1), ("decode", 4_936)] {
        assert_eq!(stage(&metrics, name)["kernel_count"], kernels, "{name}");
    }
    let wall = |name: &str| stage(&metrics, name)["wall_ns"].as_f64().unwrap();
    let whole = totals["wall_ns"].as_f64().unwrap();
    assert!(((wall("prefill") + wall("decode")) / whole - 1.0).abs() < 0.01);
    assert_eq!(wall("sam") + wall("clip") + wall("projector"), wall("vision"));
    assert!(metrics["trace"]["coverage"]["stage_share"].as_f64().unwrap() >= 0.98);
    assert!(metrics["trace"]["coverage"]["operator_share"].as_f64().unwrap() >= 0.95);
}

#[test]
fn operators_are_those_an_independent_script_finds() {
    let scratch = Scratch::new();
    let metrics = imported(&scratch, &[TORCH], &[]);
    let table = std::fs::read_to_string(fixture("torch/dsocr-h200.operators.csv")).unwrap();
    let expected: BTreeMap<_, _> = table
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<_> = line.rsplitn(4, ',').collect();
            let number = |cell: &str| cell.parse::<i64>().unwrap();
            (cells[3].to_owned(), (number(cells[2]), number(cells[1]), number(cells[0])))
        })
        .collect();
    let number = |operator: &Value, key: &str| operator[key].as_i64().unwrap();
    let mut found: BTreeMap<String, (i64, i64, i64)> = BTreeMap::new();
    for one in list(&metrics, "operators") {
        let sum = found.entry(one["name"].as_str().unwrap().to_owned()).or_default();
        let (calls, total, own) = (number(one, "calls"), number(one, "total_ns"), number(one, "self_ns"));
        *sum = (sum.0 + calls, sum.1 + total, sum.2 + own);
        assert!(one["stage"].is_string(), "every operator of this trace runs in a stage: {one}");
    }
    assert_eq!(found, expected);
}

#[test]
fn the_workload_is_read_off_the_shapes_and_says_so() {
    let scratch = Scratch::new();
    let metrics = imported(&scratch, &[TORCH], &["--model", "deepseek-ocr"]);
    let traced = &metrics["trace"]["workload"];
    let workload = &traced["workload"];
    assert_eq!(
        (&workload["seq_len"], &workload["decode_steps"], &workload["batch"], &workload["dtype"], &workload["logits"]),
        (&286.into(), &4.into(), &1.into(), &"bf16".into(), &"all".into())
    );
    assert_eq!(workload["image"]["base_size"], 1_024);
    assert_eq!(workload["profile_id"], "inferred");
    assert!(list(traced, "evidence").iter().any(|line| line.as_str().unwrap().contains("[1, 286]")), "{traced}");
    // The device is named in the trace and known to the catalogue.
    assert_eq!((&metrics["devices"][0]["hardware"], &metrics["peak"]["dtype"]), (&"h200".into(), &"bf16".into()));
    // 1.473 TFLOP at prefill, and the decode steps at 287 to 290 keys.
    let work = |name: &str| metrics["work_per_stage"][name]["flops_matrix"].as_f64().unwrap();
    assert!((work("prefill") / 1.473e12 - 1.0).abs() < 1e-3, "{}", work("prefill"));
    assert!((work("decode") / 4.0 / 1.166e9 - 1.0).abs() < 1e-3, "{}", work("decode"));
    for name in ["prefill", "decode", "sam"] {
        let mfu = stage(&metrics, name)["mfu"].as_f64().unwrap();
        assert!(mfu > 0.0 && mfu < 0.1, "{name}: {mfu}");
    }
}

#[test]
fn without_a_model_there_is_no_utilisation_and_no_default_workload() {
    let scratch = Scratch::new();
    let metrics = imported(&scratch, &[TORCH], &[]);
    assert_eq!(metrics["mfu_model_level"], Value::Null);
    assert_eq!(metrics["trace"]["workload"]["workload"], Value::Null);
    let open = counter(&metrics, "stages_without_utilisation").unwrap();
    assert_eq!(open["remedy"], "No model is named: pass `--model`.");
    let config = scratch.text("run", "config.yaml");
    assert!(!config.contains("workload") && !config.contains("deepseek"), "{config}");
}

#[test]
fn without_shapes_the_prompt_must_be_told() {
    let scratch = Scratch::new();
    let metrics = imported(&scratch, &[NSYS], &["--model", "deepseek-ocr"]);
    assert_eq!(metrics["mfu_model_level"], Value::Null);
    let remedy = counter(&metrics, "stages_without_utilisation").unwrap()["remedy"].as_str().unwrap().to_owned();
    assert!(remedy.contains("workload.seq_len=N") && remedy.contains("workload.base_size=N"), "{remedy}");

    let told = Scratch::new();
    let told_metrics =
        imported(&told, &[NSYS], &["--model", "deepseek-ocr", "workload.seq_len=286", "workload.base_size=1024"]);
    assert!(told_metrics["mfu_model_level"].is_f64());
    assert!(told.text("run", "config.yaml").contains("seq_len: 286"));
}

#[test]
fn a_named_workload_that_the_trace_contradicts_is_doubted() {
    let scratch = Scratch::new();
    let metrics = imported(&scratch, &[TORCH], &["--model", "deepseek-ocr", "--workload", "dsocr-standard-v1"]);
    let found = counter(&metrics, "workload_differs_from_trace").unwrap();
    assert!(found["remedy"].as_str().unwrap().contains("286 in the trace"), "{found}");
}

#[test]
fn an_nsys_export_agrees_with_nvidias_own_table_and_keeps_its_secrets() {
    let scratch = Scratch::new();
    let metrics = imported(&scratch, &[NSYS, KERNEL_TABLE, COUNTERS], &[]);
    assert_whole(&scratch);
    assert_eq!(counter(&metrics, "kernels_differ_from_table"), None);
    assert_eq!(metrics["totals"]["kernel_count"], 8_154);
    assert_eq!(metrics["run"]["engine"], "nsys + nsys-stats + ncu");
    assert_eq!(list(&metrics["trace"], "sources").len(), 3);
    assert!(!list(&metrics["trace"], "counters").is_empty());
    let text = everything(&scratch);
    assert!(!text.contains("planted"), "what only the machine of the trace knows reached our files");
}

#[test]
fn a_table_of_another_run_is_found_out() {
    let scratch = Scratch::new();
    let table = std::fs::read_to_string(fixture(KERNEL_TABLE)).unwrap();
    std::fs::write(scratch.path("other.csv"), table.replacen("4000603,754", "4000604,754", 1)).unwrap();
    let nsys = fixture(NSYS).display().to_string();
    let output = Output::of(scratch.command(&["import", &nsys, "other.csv", "--out", "run"]));
    let metrics = scratch.json("run", "metrics.json");
    assert_eq!(counter(&metrics, "kernels_differ_from_table").unwrap()["value"], 1, "{}", output.stderr);
}

#[test]
fn paths_inside_a_torch_trace_stay_there() {
    let scratch = Scratch::new();
    let trace = r#"{"schemaVersion": 1, "traceName": "/home/someone/secret.json", "environment": {"TOKEN": "hush-hush"},
        "traceEvents": [
        {"ph": "X", "cat": "python_function", "name": "/home/someone/model.py(12): forward", "pid": 1, "tid": 1, "ts": 0, "dur": 90},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 20, "args": {"Call stack": "/home/someone/model.py"}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 12, "dur": 2, "args": {"correlation": 5}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 4, "args": {"device": 0, "stream": 7, "correlation": 5}}
    ]}"#;
    std::fs::write(scratch.path("trace.json"), trace).unwrap();
    let output = Output::of(scratch.command(&["import", "trace.json", "--out", "run"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let text = everything(&scratch) + &output.stdout;
    assert!(!text.contains("someone") && !text.contains("hush-hush"), "{text}");
    let metrics = scratch.json("run", "metrics.json");
    let operator = &list(&metrics, "operators")[0];
    assert_eq!((&operator["name"], &operator["device_ns"]), (&"aten::mm".into(), &4_000.into()));
}

#[test]
fn counters_alone_make_a_run() {
    let scratch = Scratch::new();
    let metrics = imported(&scratch, &[COUNTERS], &[]);
    assert_whole(&scratch);
    assert_eq!(metrics["totals"]["kernel_count"], 114);
    assert_eq!(metrics["totals"]["wall_ns"], Value::Null);
    let row = &list(&metrics["trace"], "counters")[0];
    assert!(row["occupancy"].as_f64().is_some_and(|share| share > 0.0 && share < 1.0), "{row}");
    // A counter the file lacks is unknown, not nothing.
    assert_eq!(row["dram_bytes"], Value::Null);
    assert!(scratch.text("run", "kernels.md").contains("## Hardware counters"));
}

#[test]
fn the_terminal_shows_totals_stages_and_kernels() {
    let scratch = Scratch::new();
    let output = import(&scratch, &[TORCH], &["--model", "deepseek-ocr"]);
    // What rules conclude is told in their own tests.
    let concluded = |line: &&str| line.contains("finding") || line.starts_with("estimated saving: ");
    let told: Vec<_> = output.stdout.lines().filter(|line| !concluded(line)).collect();
    insta::assert_snapshot!("import_torch", told.join("\n"));
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 112), "{}", output.stdout);
    let page = scratch.text("run", "kernels.md");
    insta::assert_snapshot!("import_kernels_head", page.lines().take(16).collect::<Vec<_>>().join("\n"));
}

#[test]
fn standard_input_is_a_file_too() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["import", "-", "--out", "run", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let trace = std::fs::read(fixture(TORCH)).unwrap();
    child.stdin.take().unwrap().write_all(&trace).unwrap();
    let output = child.wait_with_output().unwrap();
    let metrics: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(metrics["totals"]["kernel_ns"], 30_273_935);
    assert_eq!(metrics["trace"]["sources"][0]["path"], "-");
}

#[test]
fn ranks_of_one_job_are_one_run() {
    let scratch = Scratch::new();
    let rank = |rank: u32, time: u32| {
        format!(
            r#"{{"schemaVersion": 1, "distributedInfo": {{"rank": {rank}}}, "deviceProperties": [{{"id": 0, "name": "NVIDIA H200"}}],
            "traceEvents": [
            {{"ph": "X", "cat": "user_annotation", "name": "prefill", "pid": 1, "tid": 1, "ts": 0, "dur": {time}}},
            {{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 2, "dur": 2, "args": {{"correlation": 5}}}},
            {{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 5, "dur": 4, "args": {{"device": 0, "stream": 7, "correlation": 5}}}}
            ]}}"#
        )
    };
    std::fs::write(scratch.path("rank0.json"), rank(0, 50)).unwrap();
    std::fs::write(scratch.path("rank1.json"), rank(1, 80)).unwrap();
    let output = Output::of(scratch.command(&["import", "rank0.json", "rank1.json", "--out", "run"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    // Ranks run side by side: the slower one is the wall, and each has its own device.
    assert_eq!((&metrics["totals"]["wall_ns"], &metrics["totals"]["kernel_count"]), (&80_000.into(), &2.into()));
    assert_eq!(stage(&metrics, "prefill")["wall_ns"], 80_000);
    let devices: Vec<_> = list(&metrics, "kernels").iter().map(|kernel| kernel["device"].clone()).collect();
    assert_eq!(devices, ["cuda:0", "cuda:1"]);

    let again = Scratch::new();
    std::fs::write(again.path("a.json"), rank(0, 50)).unwrap();
    std::fs::write(again.path("b.json"), rank(0, 80)).unwrap();
    let output = Output::of(again.command(&["import", "a.json", "b.json", "--out", "run"]));
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("both are rank 0"), "{}", output.stderr);
}

#[test]
fn a_truncated_trace_is_partial_and_says_what_is_missing() {
    let scratch = Scratch::new();
    let whole = std::fs::read(fixture(TORCH)).unwrap();
    std::fs::write(scratch.path("cut.json.gz"), &whole[..whole.len() / 10 * 9]).unwrap();
    let output = Output::of(scratch.command(&["import", "cut.json.gz", "--out", "run"]));
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("events are missing"), "{}", output.stderr);
    let manifest = scratch.json("run", "manifest.json");
    assert_eq!(manifest["status"], "partial");
    let metrics = scratch.json("run", "metrics.json");
    let kernels = metrics["totals"]["kernel_count"].as_u64().unwrap();
    assert!(kernels > 0 && kernels < 8_144, "{kernels}");
    assert!(list(&metrics, "quality").iter().any(|counter| counter["severity"] == "error"));
}

#[test]
fn an_export_that_was_killed_is_partial() {
    let scratch = Scratch::new();
    std::fs::copy(fixture("nsys/small.sqlite"), scratch.path("small.sqlite")).unwrap();
    std::fs::write(scratch.path("small.sqlite-journal"), "rest").unwrap();
    let output = Output::of(scratch.command(&["import", "small.sqlite", "--out", "run"]));
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("the export is incomplete"), "{}", output.stderr);
}

#[test]
fn a_file_of_the_collector_that_was_cut_is_partial() {
    let scratch = Scratch::new();
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/data/collector/graph.wire");
    let whole = std::fs::read(whole).unwrap();
    std::fs::write(scratch.path("cut.wire"), &whole[..20_000]).unwrap();
    let output = Output::of(scratch.command(&["import", "cut.wire", "--out", "run"]));
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("ends in the middle of a block"), "{}", output.stderr);
    assert!(scratch.json("run", "metrics.json")["totals"]["kernel_count"].as_u64().unwrap() > 0);
}

#[test]
fn what_is_no_trace_is_refused_with_the_right_exit_code() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("empty.json"), "").unwrap();
    std::fs::write(scratch.path("garbage.bin"), [0, 159, 146, 150, 7]).unwrap();
    std::fs::write(scratch.path("other.json"), r#"{"layers": 3}"#).unwrap();
    std::fs::create_dir(scratch.path("folder")).unwrap();
    let torch = fixture(TORCH).display().to_string();
    let nsys = fixture(NSYS).display().to_string();
    let log = fixture("ncu/ncu-no-range.log").display().to_string();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["empty.json"], 2, "is empty"),
        (&["garbage.bin"], 2, "torch profiler trace"),
        (&["other.json"], 2, "not a supported trace"),
        (&["missing.json"], 1, "missing.json"),
        (&["folder"], 2, "folder is a folder; `import` takes files"),
        (&[&torch, &torch], 2, "same content"),
        (&[&torch, &nsys], 2, "not from one run"),
        (&[&log], 1, "nothing was profiled"),
        (&[&torch, "--model", "gpt-9"], 2, "gpt-9"),
        (&[&torch, "--hardware", "abacus"], 2, "abacus"),
        (&[&torch, "workload.seq_len=5"], 2, "--model"),
        (&[&torch, "workload.sq_len=5", "--model", "deepseek-ocr"], 2, "seq_len"),
        (&["-", "-"], 2, "only once"),
        (&["workload.seq_len=5"], 2, "no file to import"),
    ];
    for (arguments, code, wanted) in cases {
        let output = Output::of(scratch.command(&[&["import"], *arguments].concat()));
        assert_eq!(output.code, *code, "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(wanted), "{arguments:?}: {}", output.stderr);
        assert_eq!(output.stdout, "", "{arguments:?}");
    }
}

#[test]
fn an_imported_page_of_counters_shows_the_regions_that_the_region_report_shows() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/regions");
    for page in
        ["kernel/A==A1%+A%A1%+B%", "range/A%+B%", "app-range/A%A1%", "application/A%+B%", "resnet/kernel/prefill%"]
    {
        let scratch = Scratch::new();
        let file = fixtures.join(page).join("raw.csv.gz").display().to_string();
        for arguments in
            [["regions", "--from", &file, "--out", "regions"].as_slice(), &["import", &file, "--out", "run"]]
        {
            let output = Output::of(scratch.command(arguments));
            assert_eq!(output.code, 0, "{page}: {}", output.stderr);
        }
        let [reported, imported] = ["regions", "run"].map(|run| scratch.json(run, "metrics.json")["regions"].clone());
        assert_eq!(reported, imported, "{page}");
        assert!(!imported.as_array().unwrap().is_empty(), "{page}");
    }
}

#[test]
fn the_choice_of_regions_holds_for_imported_pages_and_a_wrong_pattern_writes_nothing() {
    let scratch = Scratch::new();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/regions/kernel/A==A1%+A%A1%+B%/raw.csv.gz");
    let page = page.display().to_string();
    let include = "pipeline.ncu.ncu_cli.nvtx.include=[A::A1]";
    let output = Output::of(scratch.command(&["import", &page, include, "--out", "run"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let paths: Vec<&Value> = list(&metrics, "regions").iter().map(|region| &region["path"]).collect();
    assert_eq!(paths, ["A::A1"]);
    assert_eq!(metrics["regions"][0]["parent"], "A");
    assert!(scratch.text("run", "config.yaml").contains("A::A1"));
    let wrong = "pipeline.ncu.ncu_cli.kernel_name=regex:gemm(";
    let output = Output::of(scratch.command(&["import", &page, wrong, "--out", "other"]));
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("pipeline.ncu.ncu_cli.kernel_name") && !scratch.path("other").exists());
}

#[test]
fn an_import_records_the_files_it_read() {
    let scratch = Scratch::new();
    imported(&scratch, &[NSYS, COUNTERS], &[]);
    let inputs: Value = serde_saphyr::from_str(&scratch.text("run", "inputs.yaml")).unwrap();
    let metrics = scratch.json("run", "metrics.json");
    assert_eq!(inputs["count"], 2);
    for (file, source) in list(&inputs, "files").iter().zip(metrics["trace"]["sources"].as_array().unwrap()) {
        assert_eq!((&file["role"], &file["name"]), (&Value::from("trace"), &source["path"]));
        assert_eq!((&file["bytes"], &file["blake3"]), (&source["bytes"], &source["blake3"]));
    }
}

#[test]
fn operators_that_pytorch_writes_as_ranges_have_shapes_and_rates() {
    let scratch = Scratch::new();
    let metrics = imported(&scratch, &["nsys/emitted.sqlite"], &[]);
    let names: Vec<_> = list(&metrics, "operators").iter().map(|row| (&row["name"], &row["calls"])).collect();
    let [mm, linear] = ["aten::mm", "aten::linear"].map(Value::from);
    assert!(names.contains(&(&mm, &2.into())) && names.contains(&(&linear, &1.into())), "{names:?}");
    let shapes = metrics["operator_groups"]["by_shape"].as_array().unwrap();
    let [row] = shapes.as_slice() else { panic!("{shapes:?}") };
    // 2 * 64 * 128 * 32 FLOPs in 4 us, twice; the element type is that of the kernel.
    assert_eq!((&row["name"], &row["calls"], &row["dtype"]), (&mm, &2.into(), &"bf16".into()));
    assert_eq!((&row["flops_matrix"], &row["device_ns"]), (&(2 * 2 * 64 * 128 * 32).into(), &8_000.into()));
    assert_eq!(list(&metrics, "regions").len(), 1);
}
