//! Builds the collector that is loaded into CUDA processes, so that it is part of the program: after `cargo install` there is
//! one file, and nothing to look for.

mod compile {
    include!("../inject/compile.rs");
}

use std::path::{Path, PathBuf};

/// Set to build a program that cannot record CUDA processes.
const LEAVE_OUT: &str = "LLM_PERF_WITHOUT_COLLECTOR";

fn main() {
    for path in ["../inject/src", "../inject/compile.rs", "../wire/src"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let (out, target) = (variable("OUT_DIR"), std::env::var("TARGET").unwrap_or_default());
    let crates = variable("CARGO_MANIFEST_DIR").join("..");
    println!("cargo::rerun-if-env-changed={LEAVE_OUT}");
    let left_out = std::env::var_os(LEAVE_OUT).is_some_and(|value| !value.is_empty());
    let known = target.contains("linux-gnu") && (target.starts_with("x86_64") || target.starts_with("aarch64"));
    let library = if left_out {
        Err(format!("{LEAVE_OUT} is set"))
    } else if known {
        let linker = std::env::var_os("RUSTC_LINKER").map(PathBuf::from);
        compile::library(&compile::Compiler {
            program: &variable("RUSTC"),
            linker: linker.as_deref(),
            target: Some(&target),
            crates: &crates,
            out: &out,
            version: env!("CARGO_PKG_VERSION"),
        })
    } else {
        Err(format!("there is no collector for {target}"))
    };
    if let Err(reason) = library {
        // A program without it works but for recording, and says so. That is right where there is none for the machine, and wrong where
        // it only failed to compile: whoever installs the result would not read a warning.
        if known && !left_out {
            println!("cargo::error=the CUDA collector does not compile; {LEAVE_OUT}=1 builds without it");
            for line in reason.lines() {
                println!("cargo::error={line}");
            }
        } else {
            println!("cargo::warning=the CUDA collector is left out: {}", reason.lines().next().unwrap_or_default());
        }
        if let Err(error) = std::fs::write(out.join(Path::new(compile::LIBRARY)), "") {
            println!("cargo::error={}: {error}", out.display());
        }
    }
}
