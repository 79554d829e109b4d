//! Builds the collector that is loaded into CUDA processes, so that it is part of the program: after `cargo install` there is
//! one file, and nothing to look for.

mod compile {
    include!("../inject/compile.rs");
}

use std::path::{Path, PathBuf};

fn main() {
    for path in ["../inject/src", "../inject/compile.rs", "../wire/src"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let (out, target) = (variable("OUT_DIR"), std::env::var("TARGET").unwrap_or_default());
    let crates = variable("CARGO_MANIFEST_DIR").join("..");
    let known = target.contains("linux-gnu") && (target.starts_with("x86_64") || target.starts_with("aarch64"));
    let library = if known {
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
        // Everything else works without it, and says that it is not there.
        println!("cargo::warning=the CUDA collector is left out: {}", reason.lines().next().unwrap_or_default());
        if let Err(error) = std::fs::write(out.join(Path::new(compile::LIBRARY)), "") {
            println!("cargo::error={}: {error}", out.display());
        }
    }
}
