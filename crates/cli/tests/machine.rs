//! `doctor`, `env` and `hardware` on the machine the tests run on, whatever it is.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;
use types::{ComputeUnit, DType, Diagnosis, Environment, HardwareListing, Verdict};

/// The program in an environment of its own: the caller's `PATH`, a home and a data folder nobody else uses.
fn llm_perf(home: &Path) -> Command {
    let mut command = Command::new(cargo_bin!("llm-perf"));
    command.env_clear().env("HOME", home).env("LLM_PERF_DATA_DIR", home.join("data")).env("COLUMNS", "100");
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("text")
}

/// Whether a document is valid by its own schema, as the program itself judges it.
fn assert_valid(document: &str, home: &Path) {
    let path = home.join("document.json");
    std::fs::write(&path, document).unwrap();
    let output = llm_perf(home).arg("validate").arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn doctor_says_that_the_default_command_can_run() {
    let home = home();
    let root = home.path().join("runs");
    let output = llm_perf(home.path()).args(["doctor", "--json", "--out-root"]).arg(&root).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let diagnosis: Diagnosis = serde_json::from_str(stdout(&output)).unwrap();
    assert!(diagnosis.ready);
    let ids: Vec<&str> = diagnosis.checks.iter().map(|check| check.id.as_str()).collect();
    let expected = ["driver", "gpu", "cupti", "nsys", "ncu", "counters", "python", "output", "governor"];
    assert!(expected.iter().all(|id| ids.contains(id)), "{ids:?}");
    assert!(!root.exists(), "looking makes nothing");
    assert_valid(stdout(&output), home.path());
}

#[test]
fn doctor_fails_where_no_run_can_be_written() {
    let home = home();
    let blocked = home.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    let output = llm_perf(home.path()).args(["doctor", "--out-root"]).arg(blocked.join("runs")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let shown = stdout(&output);
    assert!(shown.contains("✗ output folder"), "{shown}");
    assert!(shown.ends_with("The default command cannot run here: output folder.\n"), "{shown}");
}

#[test]
fn tools_on_path_are_found_and_judged() {
    let home = home();
    let tools = home.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    for (name, script) in [
        ("nsys", "echo 'NVIDIA Nsight Systems version 2022.4.2.1-df9881f'"),
        ("ncu", "sleep 600"),
        ("python3", "echo 'cannot start' >&2; exit 3"),
    ] {
        let path = tools.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", tools.display());
    let output = llm_perf(home.path()).env("PATH", path).args(["doctor", "--json"]).output().unwrap();
    let diagnosis: Diagnosis = serde_json::from_str(stdout(&output)).unwrap();
    let check = |id: &str| diagnosis.checks.iter().find(|check| check.id == id).unwrap();
    assert_eq!(check("nsys").verdict, Verdict::TooOld);
    assert!(check("nsys").found.contains("nsys 2022.4.2.1 at ~/tools/nsys"), "{}", check("nsys").found);
    assert_eq!(check("ncu").verdict, Verdict::Warning, "it hangs");
    assert_eq!(check("python").verdict, Verdict::Missing);
    assert!(check("python").found.ends_with("it exited with code 3: cannot start"), "{}", check("python").found);
}

#[test]
fn env_describes_the_machine_and_keeps_secrets_to_itself() {
    let home = home();
    let output = llm_perf(home.path())
        .arg("env")
        .env("OMP_NUM_THREADS", "3")
        .env("CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6")
        .env("NCCL_DEBUG", "hf_abcdefghijklmnop")
        .env("HF_TOKEN", "hf_qrstuvwxyz")
        .env("DATABASE_URL", "postgres://user:word@host/db")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for secret in ["hf_abcdefghijklmnop", "hf_qrstuvwxyz", "user:word", home.path().to_str().unwrap()] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    let environment: Environment = serde_json::from_str(text).unwrap();
    let expected = BTreeMap::from([
        ("CUDA_VISIBLE_DEVICES".to_owned(), "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6".to_owned()),
        ("NCCL_DEBUG".to_owned(), "(withheld: looks like a secret)".to_owned()),
        ("OMP_NUM_THREADS".to_owned(), "3".to_owned()),
    ]);
    assert_eq!(environment.variables, expected);
    assert!(environment.cpu.threads.is_some() && environment.memory.total_bytes.is_some());
    assert!(environment.operating_system.kernel.is_some());
    assert_valid(text, home.path());
}

/// Builds the stand-in for NVML into `folder`, for `LD_LIBRARY_PATH`.
fn build_fake_nvml(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/nvml.c");
    let library = folder.join("libnvidia-ml.so.1");
    let status = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    assert!(status.expect("a C compiler").success());
}

#[test]
fn a_gpu_is_described_field_by_field() {
    let home = home();
    build_fake_nvml(home.path());
    let output = llm_perf(home.path()).arg("env").env("LD_LIBRARY_PATH", home.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let environment: Environment = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(environment.tools.driver.as_deref(), Some("580.159.04"));
    assert_eq!(environment.tools.cuda_driver.as_deref(), Some("13.0"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&environment.gpus).unwrap());
    let notes: Vec<&String> = environment.notes.iter().filter(|note| note.starts_with("GPU 0")).collect();
    assert!(notes.len() == 1 && notes[0].contains("pcie_width unknown"), "{notes:?}");
    assert_valid(stdout(&output), home.path());
}

#[test]
fn a_gpu_is_known_to_the_catalogue_by_the_name_its_driver_reports() {
    let home = home();
    build_fake_nvml(home.path());
    let output = llm_perf(home.path()).args(["doctor", "--json"]).env("LD_LIBRARY_PATH", home.path()).output().unwrap();
    let diagnosis: Diagnosis = serde_json::from_str(stdout(&output)).unwrap();
    let check = |id: &str| diagnosis.checks.iter().find(|check| check.id == id).unwrap();
    assert_eq!((check("driver").verdict, check("gpu").verdict), (Verdict::Ok, Verdict::Ok));
    assert_eq!(check("catalogue").found, "known as h200");
}

#[test]
fn the_processor_is_listed_once_it_was_measured() {
    let home = home();
    let before = llm_perf(home.path()).args(["hardware", "cpu"]).output().unwrap();
    assert_eq!(before.status.code(), Some(1));
    assert!(stderr(&before).contains("hint: run `llm-perf doctor --calibrate`"), "{}", stderr(&before));

    let root = home.path().join("runs");
    let calibrated = llm_perf(home.path()).args(["doctor", "--calibrate", "--json", "--out-root"]).arg(&root).output();
    let calibrated = calibrated.unwrap();
    assert_eq!(calibrated.status.code(), Some(0), "{}{}", stdout(&calibrated), stderr(&calibrated));
    let diagnosis: Diagnosis = serde_json::from_str(stdout(&calibrated)).unwrap();
    let rates = diagnosis.checks.iter().find(|check| check.id == "calibration").unwrap();
    // A warning when the machine is busy, as one that runs tests often is.
    assert!(matches!(rates.verdict, Verdict::Ok | Verdict::Warning), "{}", rates.found);

    let after = llm_perf(home.path()).args(["hardware", "cpu", "--json"]).output().unwrap();
    assert_eq!(after.status.code(), Some(0), "{}", stderr(&after));
    let listing: HardwareListing = serde_json::from_str(stdout(&after)).unwrap();
    assert!(listing.devices[0].peak(DType::Fp32, ComputeUnit::Matrix).is_some());
    assert_valid(stdout(&after), home.path());
    let other_threads = llm_perf(home.path()).env("RAYON_NUM_THREADS", "7").args(["hardware", "cpu"]).output().unwrap();
    assert_eq!(other_threads.status.code(), Some(1), "rates hold for the threads they were measured with");
    let kept = std::fs::read_dir(home.path().join("data/calibration")).unwrap().next().unwrap().unwrap();
    assert_valid(&std::fs::read_to_string(kept.path()).unwrap(), home.path());
}

#[test]
fn the_catalogue_is_listed_and_valid() {
    let home = home();
    let output = llm_perf(home.path()).args(["hardware", "--json"]).output().unwrap();
    let listing: HardwareListing = serde_json::from_str(stdout(&output)).unwrap();
    assert!(listing.devices.iter().any(|device| device.id == "h200"));
    assert_valid(stdout(&output), home.path());
    assert!(stderr(&output).starts_with("`cpu` is not listed"), "{}", stderr(&output));
    let quiet = llm_perf(home.path()).args(["hardware", "-q"]).output().unwrap();
    assert_eq!(stderr(&quiet), "");
    assert_eq!(stdout(&quiet).lines().count(), listing.devices.len() + 1);
}

#[test]
fn an_unknown_device_is_wrong_usage_and_shows_how_to_add_it() {
    let home = home();
    let output = llm_perf(home.path()).args(["hardware", "NVIDIA Unheard Of"]).output().unwrap();
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    insta::assert_snapshot!(stderr(&output));
}

#[test]
fn a_users_own_device_is_read_from_the_configuration_folder() {
    let home = home();
    let output = llm_perf(home.path()).args(["hardware", "X1"]).output().unwrap();
    let file = stderr(&output).split_once("\n\n").unwrap().1.to_owned();
    let folder = home.path().join("conf");
    std::fs::create_dir_all(folder.join("hardware")).unwrap();
    std::fs::write(
        folder.join("hardware/x1.yaml"),
        file.replace("value: 0", "value: 8").replace("flops: 0", "flops: 1e12"),
    )
    .unwrap();
    let found = llm_perf(home.path()).args(["hardware", "x1", "--config-dir"]).arg(&folder).output().unwrap();
    assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
    std::fs::write(folder.join("hardware/x1.yaml"), "id: x1\n").unwrap();
    let broken = llm_perf(home.path()).args(["env", "--config-dir"]).arg(&folder).output().unwrap();
    assert_eq!(broken.status.code(), Some(2));
    assert!(stderr(&broken).contains("x1.yaml"), "{}", stderr(&broken));
}
