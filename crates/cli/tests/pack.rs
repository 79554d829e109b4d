//! `pack` and `unpack`: the way there and back, what a redacted bundle holds, and bundles that were made to do harm.

#![cfg(unix)]

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "each test file takes what it needs")]
mod scratch;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use scratch::{Output, Scratch};
use serde_json::{Value, json};

/// Small enough that one inference takes milliseconds.
const QUICK: [&str; 5] = [
    "dataset/sampling@dataset.sampling=sampling.smoke",
    "infer.base_size=64",
    "infer.image_size=64",
    "infer.max_tiles=2",
    "infer.max_new_tokens=4",
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures").join(name)
}

/// Every file beneath a folder, by its path there.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn decompressed(bundle: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(fs::File::open(bundle).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Compressed as `pack` does it.
fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut packed =
        flate2::GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn call(scratch: &Scratch, arguments: &[&str]) -> Output {
    Output::of(scratch.command(arguments))
}

fn done(scratch: &Scratch, arguments: &[&str]) -> Output {
    let output = call(scratch, arguments);
    assert_eq!(output.code, 0, "{arguments:?}: {}{}", output.stdout, output.stderr);
    output
}

/// An imported trace, which lies outside of its run.
fn imported() -> Scratch {
    let scratch = Scratch::new();
    fs::copy(fixture("torch/small.json"), scratch.path("small.json")).unwrap();
    done(&scratch, &["import", "small.json", "--out", "run"]);
    scratch
}

#[test]
fn a_run_comes_back_byte_for_byte_and_is_read_as_before() {
    let scratch = Scratch::new();
    assert_eq!(scratch.profile(&QUICK, &["--out", "run", "--predictions"]).code, 0);
    let packed = done(&scratch, &["pack", "./run"]);
    assert_eq!(packed.stdout, "run.llmperf\n");
    assert_eq!(fs::metadata(scratch.path("run.llmperf")).unwrap().permissions().mode() & 0o077, 0);
    let unpacked = done(&scratch, &["unpack", "run.llmperf"]);
    assert_eq!(unpacked.stdout, "tmp/profile-output/run\n");
    assert!(files(&scratch.path("run")) == files(&scratch.path("tmp/profile-output/run")));
    let there = "./tmp/profile-output/run";
    done(&scratch, &["runs", there, "--verify"]);
    assert!(done(&scratch, &["show", there]).stdout.contains("prefill"));
    done(&scratch, &["export", there, "--format", "perfetto"]);

    // The same run gives the same bytes, from its copy too.
    done(&scratch, &["pack", there, "--out", "again.llmperf"]);
    assert!(fs::read(scratch.path("run.llmperf")).unwrap() == fs::read(scratch.path("again.llmperf")).unwrap());
}

#[test]
fn an_imported_trace_travels_with_its_run() {
    let scratch = imported();
    done(&scratch, &["pack", "./run"]);
    fs::remove_file(scratch.path("small.json")).unwrap();
    fs::remove_dir_all(scratch.path("run")).unwrap();
    let index: Value =
        serde_json::from_str(&done(&scratch, &["unpack", "run.llmperf", "--out", "there/run", "--json"]).stdout)
            .unwrap();
    assert_eq!(index["sources"].as_array().unwrap().len(), 1, "{index}");
    assert_eq!(index["left_out"], json!([]));
    done(&scratch, &["whatif", "./there/run", "--host", "2x"]);
    done(&scratch, &["export", "./there/run", "--format", "perfetto"]);
    done(&scratch, &["compare", "./there/run", "./there/run"]);
    done(&scratch, &["report", "./there/run", "--out", "page.html"]);
    let verified = done(&scratch, &["runs", "./there/run", "--verify"]);
    assert!(!verified.stdout.contains("unlisted"), "{}", verified.stdout);
    // Packed again, it still has its source; without it, the index says so.
    done(&scratch, &["pack", "./there/run", "--out", "again.llmperf"]);
    assert!(fs::read(scratch.path("run.llmperf")).unwrap() == fs::read(scratch.path("again.llmperf")).unwrap());
    fs::remove_dir_all(scratch.path("there/run/sources")).unwrap();
    let index: Value =
        serde_json::from_str(&done(&scratch, &["pack", "./there/run", "--out", "lost.llmperf", "--json"]).stdout)
            .unwrap();
    assert_eq!(index["left_out"][0]["path"], "small.json", "{index}");
}

/// Values that must be nowhere in a redacted bundle.
const SECRETS: [&str; 14] = [
    "tax return",
    "Read my",
    "aloud",
    "confidential",
    "bob",
    "acme-cluster",
    "S3CRET",
    "hf_abcdefghijklmnopqrst",
    "GPU-deadbeef",
    "launch-codes",
    "train_secret.py",
    "expandable_segments",
    "/usr/bin",
    "boot_id\": \"",
];

fn assert_redacted(scratch: &Scratch, bundle: &str) -> Value {
    let bytes = decompressed(&scratch.path(bundle));
    let here = scratch.path("").display().to_string();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = Some(host.trim()).filter(|host| host.len() > 5);
    for secret in SECRETS.into_iter().chain([here.trim_end_matches('/')]).chain(host) {
        let at = bytes.windows(secret.len()).position(|window| window == secret.as_bytes());
        let around = at
            .map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(300)..(at + 60).min(bytes.len())]).into_owned());
        assert_eq!(around, None, "{secret}");
    }
    let name = bundle.replace(".llmperf", "-back");
    let index: Value =
        serde_json::from_str(&done(scratch, &["unpack", bundle, "--out", &name, "--json"]).stdout).unwrap();
    for file in index["files"].as_array().unwrap() {
        let path = file["path"].as_str().unwrap();
        if path.ends_with(".json") || path == "inputs.yaml" {
            done(scratch, &["validate", scratch.path(&name).join(path).to_str().unwrap()]);
        }
    }
    let manifest = scratch.manifest(&name);
    assert!(manifest["redacted"]["hash"].as_str().unwrap().contains("salt"), "{manifest}");
    assert_eq!(manifest["redacted"], index["redacted"]);
    done(scratch, &["runs", &format!("./{name}"), "--verify"]);
    done(scratch, &["show", &format!("./{name}")]);
    done(scratch, &["report", &format!("./{name}"), "--out", &format!("{name}.html")]);
    index
}

/// The call as user bob makes it.
fn as_bob(scratch: &Scratch, arguments: &[&str]) -> Output {
    let mut command = scratch.command(arguments);
    command.env("USER", "bob").env("HOME", "/home/bob").env("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");
    Output::of(command)
}

#[test]
fn a_redacted_run_of_a_model_tells_nothing_of_its_pages_and_its_user() {
    let scratch = Scratch::new();
    let pages = scratch.path("confidential");
    fs::create_dir_all(&pages).unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/pages/receipt.png");
    fs::copy(page, pages.join("tax return.png")).unwrap();
    let settings = [&QUICK[..], &["infer.prompt=\"<image>\\nRead my tax return aloud.\""]].concat();
    let arguments = [&["profile", "--inputs", "confidential", "--out", "run", "--predictions"][..], &settings].concat();
    let output = as_bob(&scratch, &arguments);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(scratch.text("run", "inputs.yaml").contains("tax return.png"));
    assert!(scratch.text("run", "config.yaml").contains("aloud"));
    assert!(scratch.text("run", "env.json").contains("expandable_segments"));

    let packed = as_bob(&scratch, &["pack", "./run", "--redact", "--out", "shared.llmperf"]);
    assert_eq!(packed.code, 0, "{}", packed.stderr);
    let index = assert_redacted(&scratch, "shared.llmperf");
    let left_out: Vec<&str> =
        index["left_out"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    let (thumbnails, others): (Vec<&str>, Vec<&str>) =
        left_out.into_iter().partition(|path| path.starts_with("thumbnails/"));
    assert_eq!(others, ["assumptions.md", "predictions.jsonl", "report.html"]);
    assert_eq!(thumbnails.len(), 1, "the picture of the page: {thumbnails:?}");
    // What is left is still a run: figures, operators, the timeline, the digests of the inputs.
    let (before, after) = (scratch.json("run", "metrics.json"), scratch.json("shared-back", "metrics.json"));
    for key in ["stages", "operators", "totals", "modules", "aggregates", "peak"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    let name = after["inputs"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("redacted-input-"), "{name}");
    assert_eq!(after["samples"][0]["input"], name);
    let inputs = scratch.text("shared-back", "inputs.yaml");
    assert!(inputs.contains("sha256: ") && inputs.contains(name), "{inputs}");
    done(&scratch, &["export", "./shared-back", "--format", "perfetto", "--out", "trace.json"]);
    done(&scratch, &["compare", "./run", "./shared-back"]);
    // Another bundle of the same run has another salt.
    assert_eq!(as_bob(&scratch, &["pack", "./run", "--redact", "--out", "other.llmperf"]).code, 0);
    assert!(!decompressed(&scratch.path("other.llmperf")).windows(name.len()).any(|window| window == name.as_bytes()));
}

#[test]
fn a_redacted_run_of_a_command_keeps_no_word_of_it() {
    let scratch = Scratch::new();
    fs::write(scratch.path("train_secret.py"), "echo launch-codes at $0 by bob@acme-cluster\n").unwrap();
    let output = as_bob(
        &scratch,
        &[
            &[
                "--keep-arguments",
                "profile",
                "--out",
                "run",
                "dataset.sampling.repeats=1",
                "--",
                "sh",
                "train_secret.py",
            ][..],
            &[
                "--api-key",
                "S3CRET",
                "hf_abcdefghijklmnopqrst",
                "--host=acme-cluster",
                "/usr/bin/env",
                "GPU-deadbeef-1111-2222",
            ],
        ]
        .concat(),
    );
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(scratch.text("run", "report.md").contains("S3CRET"));
    let packed = as_bob(&scratch, &["pack", "./run", "--redact"]);
    assert_eq!(packed.code, 0, "{}", packed.stderr);
    let index = assert_redacted(&scratch, "run.llmperf");
    let reasons: Vec<String> = index["left_out"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert!(
        reasons.iter().any(|file| file.contains("logs/command-0.stdout") && file.contains("program output")),
        "{reasons:?}"
    );
    let manifest = scratch.manifest("run-back");
    let command: Vec<&str> =
        manifest["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert!(
        command.contains(&"--") && command.contains(&"--api-key") && command.contains(&"dataset.sampling.repeats=1"),
        "{command:?}"
    );
    assert!(scratch.text("run-back", "report.md").contains("Profile of a command"));
}

#[test]
fn a_redacted_import_leaves_its_trace_behind() {
    let scratch = imported();
    done(&scratch, &["pack", "./run", "--redact"]);
    let index = assert_redacted(&scratch, "run.llmperf");
    assert_eq!(index["sources"], json!([]));
    let names = index["left_out"].to_string();
    assert!(names.contains("raw profiler file"), "{names}");
    let refused = call(&scratch, &["whatif", "./run-back", "--host", "2x"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
}

#[test]
fn what_cannot_be_packed_is_refused_by_name() {
    let scratch = imported();
    fs::write(scratch.path("run.llmperf"), "mine").unwrap();
    let taken = call(&scratch, &["pack", "./run"]);
    assert!(taken.code == 2 && taken.stderr.contains("run.llmperf already exists"), "{}", taken.stderr);
    assert_eq!(fs::read(scratch.path("run.llmperf")).unwrap(), b"mine");
    fs::write(scratch.path("run/report.md"), "changed").unwrap();
    for redact in [&[][..], &["--redact"]] {
        let changed = call(&scratch, &[&["pack", "./run", "--out", "x.llmperf"], redact].concat());
        assert!(changed.code == 1 && changed.stderr.contains("run/report.md: expected"), "{}", changed.stderr);
    }
    assert!(!scratch.path("x.llmperf").exists());
    assert_eq!(call(&scratch, &["pack", "nothing"]).code, 2);
}

/// Unpacks bytes that must be refused, and that must leave nothing; what is said.
fn refused(scratch: &Scratch, bytes: &[u8]) -> String {
    fs::write(scratch.path("bad.llmperf"), bytes).unwrap();
    let output = call(scratch, &["unpack", "bad.llmperf", "--out", "bad"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("cannot unpack bad.llmperf: "), "{}", output.stderr);
    let left: Vec<String> = fs::read_dir(scratch.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!left.iter().any(|name| name == "bad" || name.ends_with("-part")), "{left:?}");
    output.stderr
}

#[test]
fn a_bundle_that_was_cut_off_or_altered_is_refused_wherever_that_is() {
    let scratch = imported();
    done(&scratch, &["pack", "./run"]);
    let whole = fs::read(scratch.path("run.llmperf")).unwrap();
    for part in 0..24 {
        let said = refused(&scratch, &whole[..whole.len() * part / 24]);
        assert!(said.contains("is truncated here") || said.contains("damaged"), "{said}");
    }
    refused(&scratch, &whole[..whole.len() - 1]);
    for part in 0..40 {
        let mut altered = whole.clone();
        let at = (altered.len() - 1) * part / 39;
        altered[at] ^= 0x10;
        refused(&scratch, &altered);
    }
    assert!(
        refused(&scratch, &[whole.clone(), b"more".to_vec()].concat()).contains("unexpected data after the last file")
    );
    assert!(refused(&scratch, &[whole.clone(), whole].concat()).contains("unexpected data after the last file"));
    assert!(refused(&scratch, b"PK\x03\x04 no bundle at all").contains("start: not a bundle"));
    // Content that was changed and compressed anew, so that only the digest tells.
    let mut bytes = decompressed(&scratch.path("run.llmperf"));
    let at = bytes.windows(9).position(|window| window == b"# Profile").unwrap();
    bytes[at] = b'+';
    let said = refused(&scratch, &compressed(&bytes));
    assert!(said.contains("report.md: expected sha256"), "{said}");
}

/// A bundle with another index; the headers and contents that follow stay.
fn with_index(bytes: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let size = usize::from_str_radix(std::str::from_utf8(&bytes[124..135]).unwrap(), 8).unwrap();
    let mut index: Value = serde_json::from_slice(&bytes[512..512 + size]).unwrap();
    change(&mut index);
    let text = serde_json::to_vec_pretty(&index).unwrap();
    let mut header = bytes[..512].to_vec();
    header[124..135].copy_from_slice(format!("{:011o}", text.len()).as_bytes());
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let padded = |length: usize| length.next_multiple_of(512);
    let mut made = [header, text.clone()].concat();
    made.resize(512 + padded(text.len()), 0);
    made.extend(&bytes[512 + padded(size)..]);
    compressed(&made)
}

#[test]
fn paths_sizes_and_versions_that_an_index_must_not_have_are_refused() {
    let scratch = imported();
    done(&scratch, &["pack", "./run"]);
    let bytes = decompressed(&scratch.path("run.llmperf"));
    let unchanged = with_index(&bytes, |_| {});
    fs::write(scratch.path("unchanged.llmperf"), unchanged).unwrap();
    done(&scratch, &["unpack", "unchanged.llmperf", "--out", "unchanged"]);
    let path = |path: &str| {
        let path = path.to_owned();
        move |index: &mut Value| index["files"][1]["path"] = json!(path)
    };
    for (bad, words) in [
        ("../outside", "contains `.` or `..`"),
        ("/etc/outside", "it is absolute"),
        ("a\\b", "backslash"),
        ("manifest.json", "that name is reserved for the manifest"),
        ("sources/x", "only source files may be in sources/"),
        ("report.md", "report.md: it is listed twice"),
        ("report.md/x", "report.md: it is listed as a file and as a folder"),
        ("other.md", "other.md: header does not match the index"),
    ] {
        let said = refused(&scratch, &with_index(&bytes, path(bad)));
        assert!(said.contains(words), "{bad}: {said}");
    }
    type Change = fn(&mut Value);
    let changes: [(Change, &str); 8] = [
        (|index| index["schema"] = json!("llm-perf/bundle/2"), "written by a newer llm-perf"),
        (|index| index["schema"] = json!("llm-perf/metrics/1"), "schema is llm-perf/metrics/1"),
        (|index| index["files"][1]["bytes"] = json!(1u64 << 40), "its files total more than 68.7 GB"),
        (|index| index["files"][1]["bytes"] = json!(7), "header does not match the index"),
        (|index| index["files"] = json!([]), "manifest.json is not the first file"),
        (|index| drop(index["files"].as_array_mut().unwrap().pop()), "does not match the index"),
        (|index| index["files"][1]["sha256"] = json!("0".repeat(64)), "expected sha256 0000"),
        (|index| index["run_id"] = json!(7), "invalid type"),
    ];
    for (change, words) in changes {
        let said = refused(&scratch, &with_index(&bytes, change));
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!scratch.path("outside").exists());
    // A link in place of a file: another type in the header of the second member.
    let mut linked = bytes.clone();
    let size = usize::from_str_radix(std::str::from_utf8(&bytes[124..135]).unwrap(), 8).unwrap();
    linked[512 + size.next_multiple_of(512) + 156] = b'2';
    assert!(refused(&scratch, &compressed(&linked)).contains("manifest.json: header does not"));
}

#[test]
fn a_bundle_whose_manifest_lists_other_files_is_refused() {
    let scratch = imported();
    let manifest = scratch.path("run/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    done(&scratch, &["pack", "./run"]);
    let bytes = decompressed(&scratch.path("run.llmperf"));
    // The same length, so that only the digest of the manifest has to follow.
    let other = text.replacen("kernels.md", "kernels.mx", 1);
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    let mut changed = bytes.clone();
    changed[at..at + other.len()].copy_from_slice(other.as_bytes());
    let file = scratch.path("other.json");
    fs::write(&file, &other).unwrap();
    let digest = std::process::Command::new("sha256sum").arg(&file).output().unwrap();
    let digest = String::from_utf8(digest.stdout).unwrap()[..64].to_owned();
    let said = refused(&scratch, &with_index(&changed, |index| index["files"][0]["sha256"] = json!(digest)));
    assert!(said.contains("manifest.json: its file list does not match the bundle"), "{said}");
}

#[test]
fn a_pipe_a_device_and_a_folder_in_use_are_refused() {
    let scratch = imported();
    done(&scratch, &["pack", "./run"]);
    let used = call(&scratch, &["unpack", "run.llmperf", "--out", "run"]);
    assert!(used.code == 2 && used.stderr.contains("run is not empty"), "{}", used.stderr);
    std::os::unix::fs::symlink("/dev/zero", scratch.path("zero")).unwrap();
    std::process::Command::new("mkfifo").arg(scratch.path("pipe")).status().unwrap();
    for name in ["zero", "pipe"] {
        let output = call(&scratch, &["unpack", name, "--out", "x"]);
        assert!(
            output.code == 1 && output.stderr.contains(&format!("{name} is a device or pipe")),
            "{}",
            output.stderr
        );
    }
    let output = call(&scratch, &["unpack", "gone.llmperf"]);
    assert!(output.code == 1 && output.stderr.contains("cannot read gone.llmperf"), "{}", output.stderr);
    fs::create_dir(scratch.path("empty")).unwrap();
    done(&scratch, &["unpack", "run.llmperf", "--out", "empty"]);
    let mode = |name: &str| fs::metadata(scratch.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("empty"), mode("empty/metrics.json")), (0o700, 0o600));
}

/// Packed by the version in its name; every later version has to read it.
#[test]
fn bundles_of_earlier_versions_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bundle");
    let bundles = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let bundles: Vec<PathBuf> =
        bundles.filter(|path| path.extension().is_some_and(|ending| ending == "llmperf")).collect();
    assert!(!bundles.is_empty());
    for bundle in bundles {
        let scratch = Scratch::new();
        done(&scratch, &["unpack", bundle.to_str().unwrap(), "--out", "run"]);
        done(&scratch, &["runs", "./run", "--verify"]);
        done(&scratch, &["validate", "run/manifest.json", "run/metrics.json", "run/env.json", "run/inputs.yaml"]);
        assert!(done(&scratch, &["show", "./run"]).stdout.contains("kernel"));
        done(&scratch, &["whatif", "./run", "--host", "2x"]);
    }
}
