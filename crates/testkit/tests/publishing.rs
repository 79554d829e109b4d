//! The crates that others may use are ready to be published: described, licensed, whole, and with nothing private in them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const PUBLISHED: [&str; 6] =
    ["llm-perf-derive", "llm-perf-ingest", "llm-perf-meter", "llm-perf-network", "llm-perf-types", "llm-perf-wire"];

/// What registries allow: <https://doc.rust-lang.org/cargo/reference/manifest.html>.
const MOST_KEYWORDS: usize = 5;
const LONGEST_KEYWORD: usize = 20;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn cargo(arguments: &[&str]) -> String {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program).args(arguments).arg("--offline").current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn packages() -> Vec<Value> {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps"])).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn only_libraries_that_stand_on_their_own_may_be_published() {
    // An empty list of registries is `publish = false`.
    let public = packages().into_iter().filter(|package| package["publish"].is_null());
    let public: BTreeSet<String> = public.map(|package| package["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(public, PUBLISHED.map(str::to_owned).into());
}

#[test]
fn what_is_published_says_what_it_is_and_names_versions_of_what_it_uses() {
    for package in packages().iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().unwrap();
        let text = |field: &str| package[field].as_str().unwrap_or_else(|| panic!("{name} has no {field}"));
        assert!(text("description").len() > 30 && !text("description").ends_with('.'), "{name}");
        assert_eq!(text("license"), "MIT OR Apache-2.0", "{name}");
        assert!(!text("rust_version").is_empty(), "{name}");
        let keywords: Vec<&str> = package["keywords"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!((1..=MOST_KEYWORDS).contains(&keywords.len()), "{name}: {keywords:?}");
        assert!(keywords.iter().all(|keyword| keyword.len() <= LONGEST_KEYWORD), "{name}: {keywords:?}");
        assert!(!package["categories"].as_array().unwrap().is_empty(), "{name}");
        for used in package["dependencies"].as_array().unwrap().iter().filter(|used| used["kind"] != "dev") {
            assert_ne!(used["req"], "*", "{name} uses {} in any version", used["name"]);
            let is_ours = used["name"].as_str().unwrap().starts_with("llm-perf");
            assert!(!is_ours || PUBLISHED.contains(&used["name"].as_str().unwrap()), "{name} uses {}", used["name"]);
        }
    }
}

#[test]
fn packages_hold_what_they_are_built_from_and_nothing_of_anybodys_machine() {
    let checkout = root().display().to_string();
    for name in PUBLISHED {
        let folder = root().join("crates").join(name.trim_start_matches("llm-perf-"));
        let listed = cargo(&["package", "--list", "--allow-dirty", "-p", name]);
        let files: Vec<&str> = listed.lines().filter(|file| folder.join(file).is_file()).collect();
        assert!(files.contains(&"src/lib.rs") && files.contains(&"Cargo.toml"), "{name}: {files:?}");
        assert!(!files.iter().any(|file| file.starts_with("tests/")), "{name}: {files:?}");
        let mut bytes = 0;
        for file in files {
            let content = std::fs::read(folder.join(file)).unwrap();
            bytes += content.len();
            let content = String::from_utf8_lossy(&content);
            // Tests inside of a file are for whoever has the repository.
            let content = content.split("#[cfg(test)]").next().unwrap_or_default();
            assert!(!content.contains(&*checkout), "{name}: {file} names {checkout}");
            assert!(
                !content.contains("/home/") && !content.contains("/Users/"),
                "{name}: {file} names somebody's home"
            );
            // What is included from beyond the folder is not in the package; a file of tests alone is like tests inside of one.
            let is_code = !file.ends_with("/tests.rs");
            let beyond = is_code && content.lines().any(|line| line.contains("include") && line.contains("../../"));
            assert!(!beyond || !file.starts_with("src/"), "{name}: {file} includes a file from outside");
        }
        assert!(bytes < 8 << 20, "{name} has {bytes} bytes");
    }
}

#[test]
fn the_wheel_has_the_reader_its_types_and_the_program() {
    let text = std::fs::read_to_string(root().join("pyproject.toml")).unwrap();
    for line in [
        "bindings = \"bin\"",
        "python-source = \"python\"",
        "module-name = \"llm_perf\"",
        "manifest-path = \"crates/cli/Cargo.toml\"",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
    for file in
        ["python/llm_perf/__init__.py", "python/llm_perf/py.typed", "LICENSE-MIT", "LICENSE-APACHE", "README.md"]
    {
        assert!(root().join(file).is_file(), "{file}");
    }
}
