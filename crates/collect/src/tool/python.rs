//! Python: which interpreter, and which versions of the packages that matter, without importing them (importing PyTorch
//! takes seconds).

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Places, ask, is_program};
use crate::Command;

/// An interpreter and what it could import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Python {
    /// Its version.
    pub(crate) version: String,
    /// The real program behind links and shims.
    pub(crate) executable: PathBuf,
    /// Version of PyTorch.
    pub(crate) torch: Option<String>,
    /// Folder of PyTorch.
    pub(crate) torch_folder: Option<PathBuf>,
    /// Version of transformers.
    pub(crate) transformers: Option<String>,
    /// Version of the package that holds CUPTI.
    pub(crate) cupti: Option<String>,
    /// Version of DuckDB.
    pub(crate) duckdb: Option<String>,
    /// Version of DataFusion.
    pub(crate) datafusion: Option<String>,
    /// Version of Ballista.
    pub(crate) ballista: Option<String>,
    /// Folders it imports from.
    pub(crate) folders: Vec<PathBuf>,
}

/// Why there is no interpreter to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoInterpreter {
    /// There is none, or not the one that was named.
    Absent(Option<String>),
    /// None of these has what is needed.
    Lacking(Vec<String>),
}

/// Asks for everything at once and prints it as JSON. The current folder is taken off the search path first, so that a
/// file of the user's called `json.py` is not run.
const SCRIPT: &str = r#"
import sys
sys.path = [p for p in sys.path if p]
import json, os
from importlib import metadata, util
def version(*names):
    for name in names:
        try:
            return metadata.version(name)
        except Exception:
            pass
try:
    torch = util.find_spec("torch").origin
except Exception:
    torch = None
print(json.dumps({
    "version": sys.version.split()[0],
    "executable": sys.executable or "python3",
    "torch": version("torch"),
    "torch_folder": torch and os.path.dirname(torch),
    "transformers": version("transformers"),
    "cupti": version("nvidia-cuda-cupti", "nvidia-cuda-cupti-cu13", "nvidia-cuda-cupti-cu12"),
    "duckdb": version("duckdb"),
    "datafusion": version("datafusion"),
    "ballista": version("ballista"),
    "folders": sys.path,
}))
"#;

/// Finds the interpreter and asks it. `None` when there is none; an error says why it would not answer.
pub(crate) fn find(places: &Places) -> Option<Result<Python, String>> {
    let program = places.python.clone().or_else(|| places.on_path("python3"))?;
    let read = ask(Command::new(&program, ["-c", SCRIPT]), places.limit).and_then(|text| read(&text));
    Some(read.map_err(|reason| format!("cannot list the packages of {}: {reason}", program.display())))
}

/// The interpreter that has what is needed: the one that is named, else `LLM_PERF_PYTHON`, else the first on `PATH`.
pub(crate) fn search(
    places: &Places,
    named: Option<&str>,
    has: impl Fn(&Python) -> bool,
) -> Result<(PathBuf, Python), NoInterpreter> {
    let having = |program: PathBuf| match find(&Places { python: Some(program.clone()), ..places.clone() }) {
        Some(Ok(python)) if has(&python) => Ok((program, python)),
        Some(Err(reason)) => Err(NoInterpreter::Lacking(vec![reason])),
        _ => Err(NoInterpreter::Lacking(vec![program.display().to_string()])),
    };
    if let Some(named) = named {
        let found = if named.contains('/') { Some(PathBuf::from(named)) } else { places.on_path(named) };
        let found = found.filter(|path| is_program(path));
        return having(found.ok_or_else(|| NoInterpreter::Absent(Some(named.to_owned())))?);
    }
    if let Some(program) = &places.python {
        return having(program.clone());
    }
    let mut asked = Vec::new();
    let names = places.path.iter().flat_map(|folder| ["python3", "python"].map(|name| folder.join(name)));
    for program in names.filter(|program| is_program(program)) {
        match having(program) {
            Err(NoInterpreter::Lacking(one)) => asked.extend(one),
            found => return found,
        }
    }
    Err(if asked.is_empty() { NoInterpreter::Absent(None) } else { NoInterpreter::Lacking(asked) })
}

/// The description, from the last line: whatever the user's start-up files print comes before it.
fn read(text: &str) -> Result<Python, String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).ok_or("it printed nothing")?;
    serde_json::from_str(line).map_err(|error| format!("its output could not be parsed: {error}"))
}

/// The CUDA version PyTorch was built for, from its own `version.py`; `None` for a build without CUDA.
pub(crate) fn torch_cuda(folder: &Path) -> Option<String> {
    read_torch_cuda(&std::fs::read_to_string(folder.join("version.py")).ok()?)
}

/// `cuda: Optional[str] = '13.0'`, or `cuda = '11.8'` in older builds.
fn read_torch_cuda(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.split(':').next()?.trim() == "cuda").then(|| value.trim())
    })?;
    let quoted = value.strip_prefix(['\'', '"'])?;
    quoted.split(['\'', '"']).next().filter(|version| !version.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::{fake_program, patient};

    #[test]
    fn the_cuda_version_of_torch_is_read_from_its_source() {
        let text = "from typing import Optional\n\n__all__ = ['cuda', 'hip']\n__version__ = '2.11.0+cu130'\n\
                    debug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n";
        assert_eq!(read_torch_cuda(text).as_deref(), Some("13.0"));
        assert_eq!(read_torch_cuda("cuda = '11.8'\n").as_deref(), Some("11.8"));
        assert_eq!(read_torch_cuda("cuda: Optional[str] = None\n"), None);
        assert_eq!(read_torch_cuda(""), None);
    }

    #[test]
    fn an_interpreter_that_fails_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let answer = |script: &str| {
            let program = fake_program(folder.path(), "python3", script);
            find(&Places { python: Some(program), ..patient() }).unwrap().unwrap_err()
        };
        assert!(answer("echo 'no version set' >&2; exit 127").ends_with("it exited with code 127: no version set"));
        assert!(answer("true").ends_with("it printed nothing"));
        assert!(answer("echo hello").contains("its output could not be parsed"));
        assert_eq!(find(&Places::default()), None);
    }

    #[test]
    fn what_start_up_files_print_is_skipped() {
        let line = r#"{"version": "3.12.3", "executable": "/opt/python3", "folders": []}"#;
        assert_eq!(read(&format!("welcome\n{line}\n")).unwrap().version, "3.12.3");
    }
}
