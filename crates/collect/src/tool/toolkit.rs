//! The CUDA toolkit: where it is and which version.

use std::path::Path;

use serde_json::Value;

use super::places::is_program;
use super::{InstalledTool, Places, ask_version};

/// Arguments that make the compiler say its version.
pub(crate) const VERSION_ARGUMENTS: [&str; 1] = ["--version"];

/// The first toolkit that says its version in a file, or else the compiler on `PATH`.
pub(crate) fn find(places: &Places) -> Option<InstalledTool> {
    for toolkit in &places.toolkits {
        if let Some(version) = version_in_files(toolkit) {
            return Some(InstalledTool { path: toolkit.clone(), version: Some(version), note: None });
        }
        let compiler = toolkit.join("bin/nvcc");
        if is_program(&compiler) {
            return Some(ask_version(places, compiler, &VERSION_ARGUMENTS, read_compiler_version));
        }
    }
    Some(ask_version(places, places.on_path("nvcc")?, &VERSION_ARGUMENTS, read_compiler_version))
}

/// The version a toolkit folder states: `version.json` since 11.1, `version.txt` before.
fn version_in_files(toolkit: &Path) -> Option<String> {
    let read = |name: &str| std::fs::read_to_string(toolkit.join(name)).ok();
    read("version.json")
        .and_then(|text| component(&text, "cuda"))
        .or_else(|| read("version.txt").and_then(|text| read_version_text(&text)))
}

/// The version of one component in a toolkit's `version.json`.
pub(super) fn component(text: &str, name: &str) -> Option<String> {
    let document: Value = serde_json::from_str(text).ok()?;
    document.get(name)?.get("version")?.as_str().map(str::to_owned)
}

/// `CUDA Version 10.1.243`.
fn read_version_text(text: &str) -> Option<String> {
    text.trim().strip_prefix("CUDA Version ").map(|version| version.trim().to_owned())
}

/// `Cuda compilation tools, release 13.0, V13.0.88`.
fn read_compiler_version(text: &str) -> Option<String> {
    let (_, rest) = text.lines().find_map(|line| line.split_once(", release "))?;
    let exact = rest.split_once(", V").map(|(_, exact)| exact);
    exact.or(rest.split(',').next()).map(|version| version.trim().to_owned()).filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::{fake_program, patient};

    const COMPILER: &str = "nvcc: NVIDIA (R) Cuda compiler driver\n\
        Copyright (c) 2005-2025 NVIDIA Corporation\n\
        Built on Wed_Aug_20_01:58:59_PM_PDT_2025\n\
        Cuda compilation tools, release 13.0, V13.0.88\n\
        Build cuda_13.0.r13.0/compiler.36424714_0\n";

    #[test]
    fn the_compiler_says_its_exact_version() {
        assert_eq!(read_compiler_version(COMPILER).as_deref(), Some("13.0.88"));
        assert_eq!(read_compiler_version("Cuda compilation tools, release 13.0").as_deref(), Some("13.0"));
        assert_eq!(read_compiler_version("nvcc fatal"), None);
    }

    #[test]
    fn a_version_file_is_read_before_the_compiler_is_asked() {
        let root = tempfile::tempdir().unwrap();
        let places = Places { toolkits: vec![root.path().to_owned()], ..patient() };
        assert_eq!(find(&places), None);
        fake_program(&root.path().join("bin"), "nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.131'");
        assert_eq!(find(&places).unwrap().version.as_deref(), Some("12.4.131"));
        std::fs::write(root.path().join("version.txt"), "CUDA Version 10.1.243\n").unwrap();
        assert_eq!(find(&places).unwrap().version.as_deref(), Some("10.1.243"));
        let json = r#"{"cuda": {"name": "CUDA SDK", "version": "13.0.3"}, "cuda_cupti": {"version": "13.0.85"}}"#;
        std::fs::write(root.path().join("version.json"), json).unwrap();
        assert_eq!(find(&places).unwrap().version.as_deref(), Some("13.0.3"));
        assert_eq!(component(json, "cuda_cupti").as_deref(), Some("13.0.85"));
        std::fs::write(root.path().join("version.json"), "{").unwrap();
        assert_eq!(find(&places).unwrap().version.as_deref(), Some("10.1.243"), "a broken file says nothing");
    }
}
