//! Exports of a real capture, opened by the tools that they are for: speedscope in a browser, and the command line of the Firefox
//! profiler. CI fetches both from the npm registry.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::browser::{Browser, browser};
use crate::scratch::{Output, Scratch};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};
use testkit::need;

/// A run, and its export as a file.
fn exported(format: &str) -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures/torch/dsocr-h200.json.gz");
    let file = format!("export-{format}");
    let import = ["import", capture.to_str().unwrap(), "--out", "run"];
    let export = ["export", "./run", "--format", format, "--out", &file];
    for arguments in [&import[..], &export[..]] {
        let output = Output::of(scratch.command(arguments));
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
    }
    let file = scratch.path(&file);
    (scratch, file)
}

/// Opens a file as speedscope's own command does, and waits until it shows it.
fn speedscope(browser: &Browser, folder: &Path, scratch: &Scratch, file: &Path) {
    let content = BASE64_STANDARD.encode(std::fs::read(file).unwrap());
    let name = json!(file.file_name().unwrap().to_str().unwrap());
    let script = scratch.path("load.js");
    std::fs::write(&script, format!("speedscope.loadFileFromBase64({name}, {})", json!(content))).unwrap();
    browser.open(&folder.join(format!("index.html#localProfilePath={}", script.display())));
    // A file that it cannot read is an alert, which fails the next request.
    browser.wait("document.body.innerText.includes('Sandwich')");
}

pub(crate) fn speedscope_opens_its_format_and_sums_the_same_device_time() {
    let (folder, browser) = (need::speedscope(), browser());
    let (scratch, file) = exported("speedscope");
    speedscope(&browser, &folder, &scratch, &file);
    let busy = scratch.json("run", "metrics.json")["device_time"][0]["busy_ns"].as_f64().unwrap();
    let row = format!("device 0, stream 7{:.2}ms", busy / 1e6);
    let rows = browser.value("[...document.querySelectorAll('tr')].map((one) => one.textContent)");
    let found = rows.as_array().unwrap().iter().any(|one| one.as_str().unwrap().contains(&row));
    assert!(found, "{row} is not among {rows}");
}

pub(crate) fn speedscope_opens_collapsed_stacks() {
    let (folder, browser) = (need::speedscope(), browser());
    let (scratch, file) = exported("collapsed");
    speedscope(&browser, &folder, &scratch, &file);
    let said = browser.complaints().join("\n");
    assert!(said.contains("Importing as collapsed stack format"), "{said}");
}

/// A session of the Firefox profiler, which runs in the background until it is stopped.
struct Session {
    script: PathBuf,
    home: PathBuf,
}

impl Session {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("node");
        command.arg(&self.script).args(arguments).args(["--session", "test"]).env("HOME", &self.home);
        command
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let stop = Command::new("node").arg(&self.script).args(["stop", "test"]).env("HOME", &self.home).output();
        drop(stop);
    }
}

pub(crate) fn the_firefox_profiler_opens_its_format_and_sums_the_same_stages_and_kernels() {
    let (scratch, file) = exported("firefox");
    let session = Session { script: need::profiler_cli(), home: scratch.path("home") };
    std::fs::create_dir_all(&session.home).unwrap();
    let loaded = session.command(&["load", file.to_str().unwrap()]).output().unwrap();
    let functions = |thread: &str| -> Value {
        let started = Instant::now();
        loop {
            // Its background process says that it was slow after half a second, and starts nevertheless.
            let output = session
                .command(&["thread", "functions", "--thread", thread, "--limit", "0", "--json"])
                .output()
                .unwrap();
            if output.status.success() {
                return serde_json::from_slice(&output.stdout).unwrap();
            }
            assert!(started.elapsed() < Duration::from_secs(120), "{loaded:?} {output:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    let total = |thread: &Value, name: &str| {
        let rows = thread["functions"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}"))["totalSamples"]
            .as_f64()
            .unwrap()
    };
    let metrics = scratch.json("run", "metrics.json");
    let prefill = metrics["stages"].as_array().unwrap().iter().find(|stage| stage["name"] == "prefill").unwrap();
    let host = functions("t-1");
    let expected = prefill["wall_ns"].as_f64().unwrap() / 1e6;
    assert!((total(&host, "prefill") - expected).abs() < 0.01, "{} {expected}", total(&host, "prefill"));
    let device = functions("t-0");
    let name = "nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN";
    let kernels = metrics["kernels"].as_array().unwrap().iter().filter(|kernel| kernel["name"] == name);
    let expected = kernels.map(|kernel| kernel["total_ns"].as_f64().unwrap()).sum::<f64>() / 1e6;
    assert!((total(&device, name) - expected).abs() < 1e-3, "{} {expected}", total(&device, name));
}
