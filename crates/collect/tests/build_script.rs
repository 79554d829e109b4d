//! The build script, compiled and run as cargo does it: what it says where the collector cannot be built.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn compiled(folder: &Path) -> PathBuf {
    let program = folder.join("build-script");
    let mut compiler = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compiler.args(["--edition", "2024", "build.rs", "-o"]).arg(&program).current_dir(ROOT);
    let output = compiler.env("CARGO_PKG_VERSION", "0.0.0").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// What the script prints for a machine with a compiler that always fails.
fn said(script: &Path, target: &str, variables: &[(&str, &str)]) -> (String, u64) {
    let out = TempDir::new().unwrap();
    let mut command = Command::new(script);
    command.env("OUT_DIR", out.path()).env("TARGET", target).env("RUSTC", "false").env("CARGO_MANIFEST_DIR", ROOT);
    command.env_remove("LLM_PERF_WITHOUT_COLLECTOR").envs(variables.iter().copied());
    let output = command.current_dir(ROOT).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let library = out.path().join("libllm_perf_inject.so").metadata().unwrap().len();
    (String::from_utf8(output.stdout).unwrap(), library)
}

#[test]
fn a_collector_that_does_not_compile_fails_the_build_unless_it_is_left_out_on_purpose() {
    let folder = TempDir::new().unwrap();
    let script = compiled(folder.path());
    let (broken, _) = said(&script, "x86_64-unknown-linux-gnu", &[]);
    assert!(broken.contains("cargo::error=the CUDA collector does not compile"), "{broken}");
    assert!(broken.contains("LLM_PERF_WITHOUT_COLLECTOR=1"), "{broken}");

    let (left_out, bytes) = said(&script, "x86_64-unknown-linux-gnu", &[("LLM_PERF_WITHOUT_COLLECTOR", "1")]);
    assert!(left_out.contains("cargo::warning=the CUDA collector is left out"), "{left_out}");
    assert!(!left_out.contains("cargo::error"), "{left_out}");
    assert_eq!(bytes, 0);

    // There is none for other machines, and everything else works there.
    let (elsewhere, bytes) = said(&script, "x86_64-unknown-linux-musl", &[]);
    assert!(elsewhere.contains("there is no collector for x86_64-unknown-linux-musl"), "{elsewhere}");
    assert!(!elsewhere.contains("cargo::error"), "{elsewhere}");
    assert_eq!(bytes, 0);
}
