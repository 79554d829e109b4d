//! Where the tool keeps things of this user between runs.

use std::path::{Path, PathBuf};

/// Where the tool keeps things of this user between runs.
pub(crate) fn user_folder() -> Option<PathBuf> {
    data_folder(|name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

pub(crate) fn data_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    variable("LLM_PERF_DATA_DIR")
        // The standard says that a relative path is to be ignored.
        .or_else(|| variable("XDG_DATA_HOME").filter(|path| path.is_absolute()).map(|path| path.join("llm-perf")))
        .or_else(|| variable("HOME").map(|home| home.join(Path::new(".local/share/llm-perf"))))
}
