//! Serving engines: how each is told to record a part of a load, and where it listens.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::pipeline::server_command::value_of;

/// Words of a command that may name its program: an interpreter and its options come before a module.
const PROGRAM_WORDS: usize = 4;

/// A serving engine whose own profiler can be opened and closed while it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServingEngine {
    /// `vllm serve`.
    Vllm,
    /// `python -m sglang.launch_server`.
    Sglang,
}

/// A command as it is started: its words, and variables to set.
pub(super) struct Prepared {
    pub(super) words: Vec<OsString>,
    pub(super) variables: Vec<(OsString, OsString)>,
    /// Where its traces go; absent where the engine is not known or the user has set a profiler of another kind.
    pub(super) traces: Option<PathBuf>,
}

impl ServingEngine {
    /// The engine that a command starts, by its words.
    pub(super) fn of(words: &[OsString]) -> Option<Self> {
        // A program or a Python module; a model or a folder may have the name in it.
        let is = |word: &OsString, name: &str| {
            let program = Path::new(word).file_name() == Some(OsStr::new(name));
            program || word.to_str().is_some_and(|word| word.starts_with(&format!("{name}.")))
        };
        let engines = [("vllm", Self::Vllm), ("sglang", Self::Sglang)];
        let started = words.iter().take(PROGRAM_WORDS);
        started.filter_map(|word| engines.iter().find(|(name, _)| is(word, name))).map(|(_, engine)| *engine).next()
    }

    /// The port it listens on unless told otherwise.
    const fn port(self) -> u16 {
        match self {
            Self::Vllm => 8000,
            Self::Sglang => 30_000,
        }
    }

    /// The command with what makes its profiler write into a folder when it is asked to.
    pub(super) fn prepared(self, words: &[OsString], folder: &Path) -> Prepared {
        let mut prepared = Prepared { words: words.to_vec(), variables: Vec::new(), traces: None };
        match self {
            Self::Vllm => match value_of(words, "--profiler-config") {
                Some(own) => prepared.traces = folder_of(&own),
                None => {
                    prepared.words.extend(["--profiler-config".into(), profiler_config(folder).into()]);
                    prepared.traces = Some(folder.to_owned());
                }
            },
            Self::Sglang => {
                prepared.variables.push(("SGLANG_TORCH_PROFILER_DIR".into(), folder.into()));
                prepared.traces = Some(folder.to_owned());
            }
        }
        prepared
    }

    /// What its `/start_profile` is sent.
    pub(super) fn start(self, folder: Option<&Path>) -> String {
        match (self, folder) {
            (Self::Sglang, Some(folder)) => {
                serde_json::json!({ "output_dir": folder.display().to_string(), "activities": ["CPU", "GPU"] })
                    .to_string()
            }
            _ => "{}".to_owned(),
        }
    }
}

/// vLLM's setting: kernels and its own annotations of steps, of the workers alone, without a table in the end.
fn profiler_config(folder: &Path) -> String {
    serde_json::json!({
        "profiler": "torch",
        "torch_profiler_dir": folder.display().to_string(),
        "torch_profiler_with_stack": false,
        "torch_profiler_record_shapes": false,
        "torch_profiler_with_memory": false,
        "torch_profiler_use_gzip": true,
        "torch_profiler_dump_cuda_time_total": false,
        "ignore_frontend": true,
    })
    .to_string()
}

/// The folder of a setting that the user gave.
fn folder_of(config: &OsStr) -> Option<PathBuf> {
    let config: serde_json::Value = serde_json::from_slice(config.to_str()?.as_bytes()).ok()?;
    let is_torch = config["profiler"].as_str().is_none_or(|profiler| profiler == "torch");
    config["torch_profiler_dir"].as_str().filter(|_| is_torch).map(PathBuf::from)
}

/// Where a server that a command starts can be reached.
pub(super) fn address(words: &[OsString]) -> String {
    let text = |flag: &str| value_of(words, flag).and_then(|value| value.into_string().ok());
    let host =
        text("--host").filter(|host| host != "0.0.0.0" && host != "::").unwrap_or_else(|| "127.0.0.1".to_owned());
    let port = text("--port").unwrap_or_else(|| ServingEngine::of(words).map_or(8000, ServingEngine::port).to_string());
    format!("http://{host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn engines_are_known_by_their_command() {
        assert_eq!(ServingEngine::of(&words("vllm serve m")), Some(ServingEngine::Vllm));
        assert_eq!(
            ServingEngine::of(&words("python3 -m vllm.entrypoints.cli.main serve m")),
            Some(ServingEngine::Vllm)
        );
        assert_eq!(ServingEngine::of(&words("python -m sglang.launch_server")), Some(ServingEngine::Sglang));
        assert_eq!(ServingEngine::of(&words("/opt/bin/vllm serve m")), Some(ServingEngine::Vllm));
        assert_eq!(ServingEngine::of(&words("./llama-server -m x.gguf")), None);
        assert_eq!(ServingEngine::of(&words("./llama-server -m /models/vllm-test/x.gguf")), None);
    }

    #[test]
    fn a_server_is_where_its_command_says() {
        assert_eq!(address(&words("vllm serve m --port 8123 --host 0.0.0.0")), "http://127.0.0.1:8123");
        assert_eq!(address(&words("vllm serve m --port=9000")), "http://127.0.0.1:9000");
        assert_eq!(address(&words("python -m sglang.launch_server --model-path m")), "http://127.0.0.1:30000");
        assert_eq!(address(&words("./llama-server --host 10.0.0.2")), "http://10.0.0.2:8000");
    }

    #[test]
    fn a_profiler_that_the_user_has_set_is_used() {
        let folder = Path::new("/run/traces");
        let own = ServingEngine::Vllm.prepared(&words("vllm serve m"), folder);
        assert_eq!((own.traces.as_deref(), own.words.len()), (Some(folder), 5));
        let theirs = words(r#"vllm serve m --profiler-config {"profiler":"torch","torch_profiler_dir":"/tmp/t"}"#);
        let theirs = ServingEngine::Vllm.prepared(&theirs, folder);
        assert_eq!((theirs.traces.as_deref(), theirs.words.len()), (Some(Path::new("/tmp/t")), 5));
        let cuda = words(r#"vllm serve m --profiler-config {"profiler":"cuda"}"#);
        assert_eq!(ServingEngine::Vllm.prepared(&cuda, folder).traces, None);
    }
}
