//! Files made to do harm (`fixtures/hostile`): each ends as an answer or an error that names it, within memory that any machine has.

#![cfg(target_os = "linux")]

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "each test file takes what it needs")]
mod scratch;
mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use scratch::{Output, Scratch};

/// Address space in KiB that the program gets, threads and libraries included.
const MOST_KIB: u64 = 2_500_000;

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hostile").join(name).display().to_string()
}

/// The program under a limit of memory.
fn limited(scratch: &Scratch, arguments: &[&str]) -> Output {
    let program = scratch.command(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -v {MOST_KIB}; exec \"$0\" \"$@\"")]).arg(program.get_program());
    Output::of(scratch.at_home(shell_with(shell, &program)))
}

fn shell_with(mut shell: Command, program: &Command) -> Command {
    shell.args(program.get_args());
    shell
}

fn assert_no_panic(name: &str, output: &Output) {
    assert!([0, 1, 2, 3].contains(&output.code), "{name}: {} {}", output.code, output.stderr);
    assert!(
        !output.stderr.contains("panicked") && !output.stderr.contains("internal error"),
        "{name}: {}",
        output.stderr
    );
}

#[test]
fn traces_with_numbers_at_the_end_of_their_range_are_imported() {
    for name in [
        "device-ordinal.json",
        "device-ordinal.wire",
        "dims-product.json",
        "dims-sum.json.gz",
        "embedding-without-sides.json",
        "grid-product.json",
        "memory-overflow.json",
        "world-size.json",
    ] {
        let scratch = Scratch::new();
        let output = limited(&scratch, &["import", &fixture(name), "--out", "run"]);
        assert_no_panic(name, &output);
        assert!([0, 3].contains(&output.code), "{name}: {}", output.stderr);
        for verb in [&["show", "run"][..], &["report", "run", "--out", "page.html"], &["compare", "run", "run"]] {
            assert_no_panic(name, &limited(&scratch, verb));
        }
    }
}

#[test]
fn names_that_ask_for_more_than_their_length_are_left_as_they_are() {
    for name in ["mangled-name.json.gz", "template-name.json.gz"] {
        let scratch = Scratch::new();
        let output = limited(&scratch, &["import", &fixture(name), "--out", "run"]);
        assert_eq!(output.code, 0, "{name}: {}", output.stderr);
    }
}

#[test]
fn a_model_wider_than_any_memory_is_refused_before_it_is_built() {
    let scratch = Scratch::new();
    let model = fixture("hidden-size.json");
    let output = limited(&scratch, &["profile", "--engine", "native", "--model", &model, "--out", "run"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("of memory is free"), "{}", output.stderr);
}

#[test]
fn a_model_that_does_not_fit_into_the_address_space_is_refused_before_it_is_built() {
    let scratch = Scratch::new();
    // 3.8 GB of weights.
    let config = r#"{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 5504,
        "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 32000,
        "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
        "tie_word_embeddings": false, "torch_dtype": "float32"}"#;
    fs::write(scratch.path("large.json"), config).unwrap();
    let output = limited(&scratch, &["profile", "--engine", "native", "--model", "large.json", "--out", "run"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("but only 2.56 GB of memory is free"), "{}", output.stderr);
}

/// A part of a PNG file: its length, its kind, its content and a checksum.
fn chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut sum = flate2::Crc::new();
    sum.update(kind);
    sum.update(content);
    [&(content.len() as u32).to_be_bytes()[..], kind, content, &sum.sum().to_be_bytes()].concat()
}

#[test]
fn a_model_of_ten_thousand_layers_is_refused_by_its_configuration() {
    let scratch = Scratch::new();
    let output = limited(&scratch, &["analyze", "--model", &fixture("ten-thousand-layers.json"), "--hardware", "h200"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("num_hidden_layers"), "{}", output.stderr);
}

#[test]
fn a_picture_that_would_not_fit_into_memory_is_refused_by_its_header() {
    let scratch = Scratch::new();
    // Grey, which becomes four times as large: within the limit of decoded bytes, and beyond that of what is held.
    let (size, grey) = ([29_999_u32, 17_000].map(u32::to_be_bytes).concat(), [8, 0, 0, 0, 0]);
    let chunks = [chunk(b"IHDR", &[&size[..], &grey].concat()), chunk(b"IDAT", &[]), chunk(b"IEND", &[])];
    fs::write(scratch.path("x.png"), [b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat()].concat()).unwrap();
    let arguments = ["profile", "--engine", "native", "--inputs", "x.png", "--out", "run"];
    let output = limited(&scratch, &arguments);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("x.png has 29999 x 17000 pixels"), "{}", output.stderr);
}

#[test]
fn a_configuration_of_forty_thousand_keys_is_read_in_one_walk() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("conf/workload")).unwrap();
    let keys: String = (0..40_000).map(|key| format!("key{key}: 1\n")).collect();
    fs::write(scratch.path("conf/workload/mine.yaml"), keys + "key7: 2\n").unwrap();
    let output = limited(&scratch, &["config", "--config-dir", "conf", "workload=mine"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("mine.yaml:40001") && output.stderr.contains("key7"), "{}", output.stderr);
}

#[test]
fn a_file_whose_name_is_no_text_is_imported() {
    let scratch = Scratch::new();
    let name = PathBuf::from(OsStr::from_bytes(b"trace-\xe9.json"));
    fs::copy(fixture("world-size.json"), scratch.path("plain.json")).unwrap();
    fs::rename(scratch.path("plain.json"), scratch.path("").join(&name)).unwrap();
    let mut command = scratch.command(&["import", "--out", "run"]);
    command.arg(&name);
    let output = Output::of(command);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let sources = &scratch.json("run", "metrics.json")["trace"]["sources"];
    assert!(sources[0]["path"].as_str().unwrap().starts_with("trace-"), "{sources}");
}

#[test]
fn no_argument_is_in_a_run_that_is_to_have_none() {
    let scratch = Scratch::new();
    let words = ["--no-arguments", "profile", "--out", "run", "--", "sh", "-c", "sleep 0.01", "name", "a plain S3CRET"];
    let output = Output::of(scratch.command(&words));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let mut folders = vec![scratch.path("run")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let content = fs::read(&entry).unwrap();
                assert!(!content.windows(6).any(|window| window == b"S3CRET"), "{}", entry.display());
            }
        }
    }
    let both = Output::of(scratch.command(&["--no-arguments", "--keep-arguments", "runs"]));
    assert_eq!(both.code, 2);
}

#[test]
fn a_source_that_was_changed_after_unpacking_is_found_by_verifying() {
    let scratch = Scratch::new();
    fs::copy(fixture("world-size.json"), scratch.path("trace.json")).unwrap();
    for arguments in [
        &["import", "trace.json", "--out", "run"][..],
        &["pack", "./run", "--out", "run.llmperf"],
        &["unpack", "run.llmperf", "--out", "copy"],
        &["runs", "./copy", "--verify"],
    ] {
        let output = Output::of(scratch.command(arguments));
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
    }
    let sources = fs::read_dir(scratch.path("copy/sources")).unwrap().map(|entry| entry.unwrap().path());
    let source = sources.flat_map(|folder| fs::read_dir(folder).unwrap()).next().unwrap().unwrap().path();
    fs::write(&source, "{}").unwrap();
    let output = Output::of(scratch.command(&["runs", "./copy", "--verify"]));
    assert_eq!(output.code, 1, "{}", output.stdout);
    assert!(output.stdout.contains("sources/"), "{}", output.stdout);
}

#[test]
fn a_run_from_before_its_trace_had_a_blake3_is_checked_by_its_sha256() {
    let scratch = Scratch::new();
    fs::copy(fixture("world-size.json"), scratch.path("trace.json")).unwrap();
    let done = |arguments: &[&str]| {
        let output = Output::of(scratch.command(arguments));
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
    };
    done(&["import", "trace.json", "--out", "run"]);
    let sum = Output::of(scratch.at_home({
        let mut command = Command::new("sha256sum");
        command.arg("trace.json");
        command
    }));
    let blake3 = scratch.json("run", "metrics.json")["trace"]["sources"][0]["blake3"].as_str().unwrap().to_owned();
    for name in ["metrics.json", "inputs.yaml"] {
        let text = scratch.text("run", name).replace(&blake3, &sum.stdout[..64]).replace("blake3", "sha256");
        fs::write(scratch.path("run").join(name), text).unwrap();
        done(&["validate", &format!("run/{name}")]);
    }
    done(&["export", "./run", "--format", "perfetto", "--out", "back.json"]);
    fs::write(scratch.path("trace.json"), "{}").unwrap();
    let output = Output::of(scratch.command(&["export", "./run", "--format", "perfetto", "--out", "again.json"]));
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("has changed since"), "{}", output.stderr);
}

#[test]
fn a_page_that_does_not_fit_on_the_disk_leaves_the_old_one() {
    let scratch = Scratch::new();
    let output = Output::of(scratch.command(&["import", &fixture("world-size.json"), "--out", "run"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    fs::write(scratch.path("page.html"), "before").unwrap();
    let program = scratch.command(&["report", "run", "--out", "page.html"]);
    let mut shell = Command::new("sh");
    // A file may have 20 KiB, and the signal that says so is ignored.
    shell.args(["-c", "trap '' XFSZ; ulimit -f 40; exec \"$0\" \"$@\""]).arg(program.get_program());
    let output = Output::of(scratch.at_home(shell_with(shell, &program)));
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert_eq!(fs::read_to_string(scratch.path("page.html")).unwrap(), "before");
    assert_eq!(fs::read_dir(scratch.path("")).unwrap().count(), 2, "something half-written is left");
}

#[test]
fn tables_are_not_written_through_a_link_that_somebody_put_there() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("tables")).unwrap();
    fs::create_dir_all(scratch.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(scratch.path("elsewhere"), scratch.path("tables/job=j")).unwrap();
    let file = fixture("world-size.json");
    let output = Output::of(scratch.command(&["import", &file, "--tables", "tables", "--job", "j", "--out", "run"]));
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert_eq!(fs::read_dir(scratch.path("elsewhere")).unwrap().count(), 0);
}
