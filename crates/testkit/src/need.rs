//! What a test needs beyond Rust and a C compiler, and whether this machine has it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Something that a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Chromium and its driver.
    Browser,
    /// Firefox and its driver.
    Firefox,
    /// axe-core, which looks at pages: `LLM_PERF_TEST_AXE` names `axe.min.js`.
    Axe,
    /// The program `git`.
    Git,
    /// `script` of util-linux, which makes a terminal.
    Script,
    /// The program `tar`.
    Tar,
    /// `unshare` of util-linux, and leave to make a container with it.
    Namespaces,
    /// `python3` of at least 3.9.
    Python,
    /// An interpreter with torch.
    Torch,
    /// An interpreter with torch and transformers.
    Transformers,
    /// An interpreter with duckdb or datafusion.
    QueryEngine,
    /// An interpreter with duckdb and datafusion.
    QueryEngines,
    /// A file or folder of the reference data, which lies beside the repository or where `LLM_PERF_REFERENCE` says.
    Reference(&'static str),
}

/// The names of all needs, in the order above.
pub(crate) const NAMES: [&str; 13] = [
    "browser",
    "firefox",
    "axe",
    "git",
    "script",
    "tar",
    "namespaces",
    "python",
    "torch",
    "transformers",
    "query-engine",
    "query-engines",
    "reference",
];

const BROWSER: [&[&str]; 2] = [&["chromedriver"], &["chromium", "google-chrome"]];
const FIREFOX: [&[&str]; 2] = [&["geckodriver"], &["firefox-esr", "firefox"]];
const AXE: &str = "LLM_PERF_TEST_AXE";

impl Need {
    /// The name that `LLM_PERF_TEST_REQUIRE` knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::Firefox => "firefox",
            Self::Axe => "axe",
            Self::Git => "git",
            Self::Script => "script",
            Self::Tar => "tar",
            Self::Namespaces => "namespaces",
            Self::Python => "python",
            Self::Torch => "torch",
            Self::Transformers => "transformers",
            Self::QueryEngine => "query-engine",
            Self::QueryEngines => "query-engines",
            Self::Reference(_) => "reference",
        }
    }

    /// Why it cannot be had here; `None` where it is there.
    pub fn missing(self) -> Option<String> {
        let absent = |there: bool, reason: &str| (!there).then(|| reason.to_owned());
        match self {
            Self::Browser => {
                absent(pair(BROWSER).is_some(), "chromedriver and chromium are not on PATH (Debian: chromium-driver)")
            }
            Self::Firefox => absent(
                pair(FIREFOX).is_some(),
                "geckodriver and firefox are not on PATH (Debian: firefox-esr; cargo install geckodriver)",
            ),
            Self::Axe => named(AXE, "axe.min.js of axe-core"),
            Self::Git | Self::Script | Self::Tar => not_on_path(self.name()),
            Self::Namespaces => absent(
                container().arg("true").output().is_ok_and(|output| output.status.success()),
                "unshare is not there, or may not make namespaces of users, processes and mounts",
            ),
            Self::Python => absent(
                runs(Path::new("python3"), "import sys; sys.exit(sys.version_info < (3, 9))"),
                "there is no python3 of at least 3.9 on PATH",
            ),
            Self::Torch => imports(&["torch"]),
            Self::Transformers => imports(&["torch and transformers"]),
            Self::QueryEngine => imports(&["duckdb", "datafusion"]),
            Self::QueryEngines => imports(&["duckdb and datafusion"]),
            Self::Reference(path) => {
                let path = reference(path);
                absent(path.exists(), &format!("{} is not there (LLM_PERF_REFERENCE)", path.display()))
            }
        }
    }
}

/// A command in a container: what follows runs as its root, with numbers of processes and mounts of its own.
pub fn container() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount", "--mount-proc"]);
    command
}

/// Driver and program of Chromium.
pub fn chromium() -> (PathBuf, PathBuf) {
    pair(BROWSER).expect("a test that opens Chromium needs it")
}

/// Driver and program of Firefox.
pub fn firefox() -> (PathBuf, PathBuf) {
    pair(FIREFOX).expect("a test that opens Firefox needs it")
}

/// `axe.min.js`.
pub fn axe() -> PathBuf {
    std::env::var_os(AXE).expect(AXE).into()
}

/// The interpreter that is asked for packages: `LLM_PERF_PYTHON`, or else `python3`.
pub fn interpreter() -> PathBuf {
    std::env::var_os("LLM_PERF_PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}

/// Whether the interpreter imports a package.
pub fn has_package(package: &str) -> bool {
    runs(&interpreter(), &format!("import {package}"))
}

/// A file or folder of the reference data.
pub fn reference(path: &str) -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
    std::env::var_os("LLM_PERF_REFERENCE").map_or_else(beside, PathBuf::from).join(path)
}

/// The first of these programs that is in a folder of `PATH`.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file())
}

fn pair(names: [&[&str]; 2]) -> Option<(PathBuf, PathBuf)> {
    program(names[0]).zip(program(names[1]))
}

fn not_on_path(name: &str) -> Option<String> {
    program(&[name]).is_none().then(|| format!("{name} is not on PATH"))
}

fn named(variable: &str, what: &str) -> Option<String> {
    match std::env::var_os(variable).map(PathBuf::from) {
        None => Some(format!("{variable} does not name {what}")),
        Some(path) if !path.exists() => Some(format!("{variable} names {}, which is not there", path.display())),
        Some(_) => None,
    }
}

/// A reason where the interpreter imports none of these, each a package or two of them.
fn imports(packages: &[&str]) -> Option<String> {
    let found = packages.iter().any(|package| has_package(&package.replace(" and ", ", ")));
    (!found).then(|| format!("{} does not import {}", interpreter().display(), packages.join(" or ")))
}

fn runs(python: &Path, script: &str) -> bool {
    Command::new(python).args(["-c", script]).output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_need_goes_by_one_of_the_names() {
        let needs = [
            Need::Browser,
            Need::Firefox,
            Need::Axe,
            Need::Git,
            Need::Script,
            Need::Tar,
            Need::Namespaces,
            Need::Python,
            Need::Torch,
            Need::Transformers,
            Need::QueryEngine,
            Need::QueryEngines,
            Need::Reference("x"),
        ];
        assert_eq!(needs.map(Need::name), NAMES);
    }

    #[test]
    fn a_program_is_there_or_said_not_to_be() {
        assert_eq!(not_on_path("sh"), None);
        assert_eq!(not_on_path("no-such-program").as_deref(), Some("no-such-program is not on PATH"));
        let missing = Need::Reference("no/such/file").missing().unwrap();
        assert!(missing.contains("no/such/file is not there"), "{missing}");
    }
}
