//! `llm-perf profile` as a user runs it: the whole bundle, repeats, and everything that can be wrong with the inputs.

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use scratch::{Output, Scratch};

/// Small enough that one inference takes milliseconds.
const QUICK: [&str; 5] = [
    "dataset/sampling@dataset.sampling=sampling.smoke",
    "infer.base_size=64",
    "infer.image_size=64",
    "infer.max_tiles=2",
    "infer.max_new_tokens=4",
];

/// A folder of images: a good page, and whatever `more` adds.
fn images(scratch: &Scratch, more: &[(&str, &[u8])]) -> PathBuf {
    let folder = scratch.path("images");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("good.png"), page("receipt.png")).unwrap();
    for (name, content) in more {
        std::fs::write(folder.join(name), content).unwrap();
    }
    folder
}

fn page(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/pages").join(name)).unwrap()
}

#[test]
fn the_default_leaves_the_whole_bundle_and_every_document_is_valid() {
    let scratch = Scratch::new();
    let output = scratch.profile(&QUICK, &["--out", "run", "--predictions"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("first token"), "{}", output.stdout);
    scratch.assert_whole_bundle("run");
    assert!(!scratch.text("run", "predictions.jsonl").is_empty());

    let metrics = scratch.json("run", "metrics.json");
    let stage = |name: &str| {
        let stages = metrics["stages"].as_array().unwrap();
        stages.iter().find(|stage| stage["name"] == name).unwrap()["wall_ns"].as_i64().unwrap()
    };
    let wall = metrics["totals"]["wall_ns"].as_i64().unwrap();
    assert_eq!(stage("prefill") + stage("decode"), wall);
    let quality = metrics["quality"].as_array().unwrap();
    let outside = quality.iter().find(|one| one["counter"] == "nanoseconds_outside_stages").unwrap();
    // A step between the stages would show here; a busy machine that stops the program between two of them does not.
    assert!(outside["share"].as_f64().unwrap() < 0.1, "{outside}");
    assert!(["info", "warning"].contains(&outside["severity"].as_str().unwrap()), "{outside}");
    assert_eq!(stage("sam") + stage("clip") + stage("projector"), stage("vision"));
    assert!(stage("vision") <= stage("prefill"));
    assert!(metrics["operators"].as_array().unwrap().len() > 10);
    assert!(metrics["overhead"]["share"].is_f64());
    assert_eq!(metrics["inputs"][0]["generated_tokens"], 4);
}

#[test]
fn a_native_run_is_exported_with_a_lane_for_each_way_to_look_at_it() {
    let scratch = Scratch::new();
    assert_eq!(scratch.profile(&QUICK, &["--out", "run"]).code, 0);
    let export =
        |format: &str| Output::of(scratch.command(&["export", "./run", "--format", format, "--out", "trace.json"]));
    let refused = export("collapsed");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("only `--format perfetto` exports"), "{}", refused.stderr);
    let written = export("perfetto");
    assert_eq!((written.code, written.stdout.as_str()), (0, "trace.json\n"), "{}", written.stderr);
    let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(scratch.path("trace.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    for (lane, name) in [(1, "stages"), (2, "modules"), (3, "operators"), (4, "lost time")] {
        assert!(events.iter().any(|one| one["tid"] == lane && one["args"]["name"] == name), "{name}");
        assert!(events.iter().any(|one| one["tid"] == lane && one["ph"] == "X"), "{name}");
    }
    let stages: Vec<_> = events.iter().filter(|one| one["tid"] == 1 && one["ph"] == "X").collect();
    for stage in ["prefill", "vision", "sam", "decode"] {
        assert!(stages.iter().any(|one| one["name"] == stage), "{stage}");
    }
    // Changed since, it is not what the run recorded.
    std::fs::write(scratch.path("run/trace/native.json.gz"), "else").unwrap();
    let changed = Output::of(scratch.command(&["export", "./run", "--format", "perfetto", "--out", "other.json"]));
    assert_eq!(changed.code, 1, "{}", changed.stderr);
    assert!(changed.stderr.contains("has changed since"), "{}", changed.stderr);
}

#[test]
fn a_run_repeats_from_its_folder_and_says_how_far_it_is_from_the_first() {
    let scratch = Scratch::new();
    assert_eq!(scratch.profile(&QUICK, &["--out", "first"]).code, 0);
    let output = scratch.command(&["profile", "--from", "./first", "--out", "second"]).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("prefill") && stdout.contains('%'), "{stdout}");
    let config = |run: &str| std::fs::read_to_string(scratch.path(run).join("config.yaml")).unwrap();
    assert_eq!(config("first"), config("second"));
}

#[test]
fn a_repeated_run_says_which_inputs_have_changed() {
    let scratch = Scratch::new();
    let folder = images(&scratch, &[("second.png", &page("slide.jpg"))]);
    let inputs = folder.to_str().unwrap();
    let all = [&QUICK[..], &["dataset.sampling.samples_per_epoch=null"]].concat();
    assert_eq!(scratch.profile(&all, &["--inputs", inputs, "--out", "first"]).code, 0);
    let again = |out: &str, more: &[&str]| {
        Output::of(scratch.command(&[&["profile", "--from", "./first", "--out", out], more].concat()))
    };
    let same = again("same", &[]);
    assert!(same.code == 0 && !same.stderr.contains("has changed"), "{}", same.stderr);
    std::fs::write(folder.join("good.png"), page("slide.jpg")).unwrap();
    std::fs::remove_file(folder.join("second.png")).unwrap();
    let changed = again("changed", &[]);
    assert_eq!(changed.code, 0, "{}", changed.stderr);
    assert!(changed.stderr.contains("warning: input good.png has changed since that run"), "{}", changed.stderr);
    assert!(changed.stderr.contains("warning: input second.png no longer exists"), "{}", changed.stderr);
    let chosen = again("chosen", &["dataset.include=[good.png]"]);
    assert!(chosen.code == 0 && !chosen.stderr.contains("has changed"), "asked for: {}", chosen.stderr);
}

#[test]
fn latest_is_the_newest_run_that_can_be_repeated_wherever_it_was_put() {
    let scratch = Scratch::new();
    let command = |arguments: &[&str]| {
        let mut command = scratch.command(arguments);
        command.env("LLM_PERF_DATA_DIR", scratch.path("data"));
        Output::of(command)
    };
    let none = command(&["profile", "--from", "latest", "--out", "none"]);
    assert!(none.code == 2 && !scratch.path("none").exists(), "{}", none.stderr);
    let first = command(&[&["profile", "--out", "elsewhere/first"], &QUICK[..]].concat());
    assert_eq!(first.code, 0, "{}", first.stderr);
    for other in
        [&["analyze", "--model", "decoder-tiny", "--out", "model"][..], &["profile", "--out", "command", "--", "true"]]
    {
        assert_eq!(command(other).code, 0, "{other:?}");
    }
    let listed = command(&["runs"]);
    assert!(["first", "model", "command"].iter().all(|name| listed.stdout.contains(name)), "{}", listed.stdout);
    let id = scratch.manifest("elsewhere/first")["run_id"].as_str().unwrap().to_owned();
    for (selector, out) in [("latest", "a"), ("first", "b"), ("elsewhere/first", "c"), (id.as_str(), "d")] {
        let again = command(&["profile", "--from", selector, "--out", out]);
        assert_eq!(again.code, 0, "{selector}: {}", again.stderr);
        assert!(!again.stderr.contains("warning"), "{selector}: {}", again.stderr);
        std::fs::remove_dir_all(scratch.path(out)).unwrap();
    }
    for (selector, words) in [("./model", "it was made by `analyze`"), ("command", "it ran a command, not a model")] {
        let refused = command(&["profile", "--from", selector, "--out", "refused"]);
        assert!(refused.code == 2 && refused.stderr.contains(words), "{selector}: {}", refused.stderr);
        assert!(!scratch.path("refused").exists());
    }
    std::fs::remove_dir_all(scratch.path("elsewhere")).unwrap();
    let gone = command(&["profile", "--from", "latest", "--out", "gone"]);
    assert!(gone.code == 2 && gone.stderr.contains("is a `profile` run of a model"), "{}", gone.stderr);
    assert!(!scratch.path("gone").exists());
}

#[test]
fn a_checkpoint_is_run_and_a_wrong_one_is_refused_by_tensor() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/golden/tiny-a");
    let scratch = Scratch::new();
    let config = golden.join("config.json");
    let weights = golden.join("model.safetensors");
    let (config, weights) = (config.to_str().unwrap(), weights.to_str().unwrap());
    let good = scratch.profile(&QUICK, &["--model", config, "--weights", weights, "--out", "good"]);
    assert_eq!(good.code, 0, "{}", good.stderr);
    let wrong = scratch.profile(&QUICK, &["--weights", weights, "--out", "wrong"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("tensor `") && wrong.stderr.contains("the network needs"), "{}", wrong.stderr);
    assert_eq!(scratch.manifest("wrong")["status"], "failed");
}

#[test]
fn images_that_cannot_be_read_make_the_run_partial_and_are_named() {
    let scratch = Scratch::new();
    let jpeg = page("slide.jpg");
    let folder = images(
        &scratch,
        &[("text.png", b"this is no picture"), ("cut.jpg", &jpeg[..jpeg.len() / 2]), ("empty.png", b"")],
    );
    let output = scratch.profile(&QUICK, &["--inputs", folder.to_str().unwrap(), "--out", "run"]);
    assert_eq!(output.code, 3, "{}", output.stderr);
    for name in ["text.png", "empty.png", "cut.jpg"] {
        assert!(output.stderr.contains(name), "{name}: {}", output.stderr);
    }
    let manifest = scratch.manifest("run");
    assert_eq!(manifest["status"], "partial");
    assert!(manifest["reasons"].as_array().unwrap().len() >= 3);
    let inputs = std::fs::read_to_string(scratch.path("run/inputs.yaml")).unwrap();
    assert!(inputs.contains("used: true") && inputs.contains("used: false"), "{inputs}");
}

#[test]
fn odd_sizes_run() {
    let scratch = Scratch::new();
    // One pixel, and a strip twenty thousand wide: minimal files, made by hand.
    let strip = scratch.path("images");
    std::fs::create_dir_all(&strip).unwrap();
    std::fs::write(strip.join("pixel.png"), png(1, 1)).unwrap();
    std::fs::write(strip.join("strip.png"), png(20_000, 3)).unwrap();
    let output =
        scratch.profile(&QUICK, &["--inputs", "images", "--out", "run", "dataset.sampling.samples_per_epoch=null"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
}

#[test]
fn nothing_to_run_on_is_wrong_usage_and_leaves_no_folder() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("empty")).unwrap();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--inputs", "empty"], 2, "no file under empty"),
        (&["--inputs", "no-such-folder"], 2, "no-such-folder"),
        (&["--inputs", "empty/*.png"], 2, "no file under empty"),
        (&["dataset.root=builtin:books"], 2, "builtin:pages"),
        (&["dataset.sampling.repeats=0"], 2, "at least 1"),
        (&["--model", "decoder-tiny", "--inputs", "empty", "infer.seq_len=8"], 2, "infer.seq_len selects random"),
        (&["--model", "decoder-tiny", "--inputs", "empty", "infer.prompt=Hi"], 2, "infer.prompt has no <text>"),
        (&["--model", "decoder-tiny", "infer.seq_len=0"], 2, "infer.seq_len is 0"),
        (&["--model", "decoder-tiny", "infer.base_size=64"], 2, "infer.base_size"),
        (&["--model", "dummy-shallow-resnet", "--inputs", "empty"], 2, "runs on random images"),
        (&["--model", "dummy-shallow-resnet", "infer.batch=0"], 2, "infer.batch is 0"),
        (&["--from", "nothing"], 2, "nothing"),
        (&["device=cuda:0"], 2, "device is `cuda:0`"),
        (&["infer.attention=flash"], 2, "infer.attention is `flash`"),
        (&["model.dtype=float16"], 2, "model.dtype is fp16"),
        (&["inputs.manifest=no-such-list"], 2, "no-such-list"),
    ];
    for (arguments, code, wanted) in cases {
        let mut all = vec!["profile"];
        all.extend_from_slice(arguments);
        all.extend_from_slice(&["--out", "run"]);
        let output = scratch.command(&all).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
        assert!(!scratch.path("run").exists(), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_run_with_a_folder_that_says_so() {
    let scratch = Scratch::new();
    let mut child = scratch
        .command(&["profile", "--out", "run", "dataset.sampling.repeats=10000"])
        .args(&QUICK[1..])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let prepared =
        || std::fs::read_to_string(scratch.path("run/manifest.json")).is_ok_and(|text| text.contains("prepare"));
    while !prepared() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the run did not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let manifest = scratch.manifest("run");
    assert_eq!(manifest["status"], "failed");
    assert!(manifest["reasons"][0].as_str().unwrap().contains("stopped by the user"), "{manifest}");
}

/// A grey PNG of that size, stored without compression.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut raw = Vec::new();
    for row in 0..height {
        raw.push(0);
        raw.extend((0..width).map(|column| ((row + column) % 251) as u8));
    }
    let mut deflated = vec![0x78, 0x01];
    let mut blocks = raw.chunks(65_535).peekable();
    while let Some(block) = blocks.next() {
        deflated.push(u8::from(blocks.peek().is_none()));
        deflated.extend((block.len() as u16).to_le_bytes());
        deflated.extend((!(block.len() as u16)).to_le_bytes());
        deflated.extend(block);
    }
    let (a, b) = raw.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    deflated.extend(((b << 16) | a).to_be_bytes());
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |kind: &[u8; 4], data: &[u8]| {
        file.extend((data.len() as u32).to_be_bytes());
        let mut body = kind.to_vec();
        body.extend(data);
        let crc = body.iter().fold(!0u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
        });
        file.extend(&body);
        file.extend((!crc).to_be_bytes());
    };
    let mut header = width.to_be_bytes().to_vec();
    header.extend(height.to_be_bytes());
    header.extend([8, 0, 0, 0, 0]);
    chunk(b"IHDR", &header);
    chunk(b"IDAT", &deflated);
    chunk(b"IEND", &[]);
    file
}
