//! A run of `serve` as what a forecast starts from: its requests, and the server that its command started.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use collect::run::StoredRun;
use forecast::serving::{Backend, Engine};
use serde_json::Value;
use types::UserError;

use crate::pipeline::server_command::{local_model, value_of};

/// The requests of a `serve` run.
const REQUESTS: &str = "requests.jsonl";

/// What a run says of its load and its server.
#[derive(Clone, Debug, Default)]
pub struct ServedRun {
    /// The file of its requests.
    pub requests: PathBuf,
    /// The model that was served, where it is on this machine or was named.
    pub model: Option<OsString>,
    /// The device, as the driver names it.
    pub hardware: Option<String>,
    /// The engine.
    pub engine: Option<Engine>,
    /// Its attention kernels.
    pub backend: Option<Backend>,
    /// Most requests that ran at once.
    pub max_num_seqs: Option<u64>,
    /// Most tokens of a step.
    pub max_num_batched_tokens: Option<u64>,
    /// Blocks of the KV cache.
    pub kv_blocks: Option<u64>,
    /// Tokens of a block.
    pub block_size: Option<u64>,
    /// Devices that shared every matrix.
    pub tensor_parallel: Option<u64>,
}

/// Reads what `run` says.
pub fn served(run: &StoredRun) -> Result<ServedRun, UserError> {
    let requests = run.path().join(REQUESTS);
    if !run.has_file(REQUESTS) {
        return Err(UserError::usage(format!(
            "{} is not a run of `serve`: it has no {REQUESTS}",
            run.path().display()
        ))
        .hint("name a run of `llm-perf serve`; `llm-perf runs` lists runs"));
    }
    let mut words = run.manifest().command.iter().map(OsString::from);
    let own: Vec<OsString> = words.by_ref().take_while(|word| word != "--").collect();
    let server: Vec<OsString> = words.collect();
    let text = |flags: &[&str]| flags.iter().find_map(|flag| value_of(&server, flag)?.into_string().ok());
    let number = |flags: &[&str]| text(flags)?.parse().ok();
    let named = |name: &str| server.iter().any(|word| word.to_string_lossy().contains(name));
    Ok(ServedRun {
        requests,
        model: value_of(&own, "--model").or_else(|| local_model(&server).map(PathBuf::into_os_string)),
        hardware: value_of(&own, "--hardware").and_then(|name| name.into_string().ok()).or_else(|| device(run)),
        engine: Engine::ALL.into_iter().find(|engine| named(engine.name)),
        backend: text(&["--attention-backend"]).as_deref().and_then(Backend::find),
        max_num_seqs: number(&["--max-num-seqs", "--max-running-requests"]),
        max_num_batched_tokens: number(&["--max-num-batched-tokens", "--chunked-prefill-size"]),
        kv_blocks: number(&["--num-gpu-blocks-override"]),
        block_size: number(&["--block-size", "--page-size"]),
        tensor_parallel: number(&["--tensor-parallel-size", "-tp", "--tp-size", "--tp"]),
    })
}

/// The device of the trace, as the driver names it.
fn device(run: &StoredRun) -> Option<String> {
    let metrics: Value = serde_json::from_slice(&run.read("metrics.json").ok()?).ok()?;
    metrics["devices"][0]["name"].as_str().map(str::to_owned)
}

impl ServedRun {
    /// The model as `--model` takes it.
    pub fn model(&self) -> Option<&OsStr> {
        self.model.as_deref()
    }
}
