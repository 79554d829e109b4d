//! A run of `serve` as what a forecast starts from: its requests, and the server that its command started.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use collect::run::StoredRun;
use forecast::serving::{Backend, Engine, MeasuredStep, Part};
use serde::Deserialize;
use serde_json::Value;
use types::{RequestStep, RequestWork, ServedRequest, StepSummary, UserError};

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
    /// What its command says of the server.
    pub server: ServerCommand,
    /// The steps that its trace recorded.
    pub steps: Vec<MeasuredStep>,
}

/// What the command of a server says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerCommand {
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
    /// Options that change how the server runs, and that the simulation does not know.
    pub ignored: Vec<String>,
}

/// Options that say where a server listens, what it is called and what it logs: nothing about how long its steps take.
const WITHOUT_EFFECT: &str = include_str!("without_effect.txt");

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
    let command: Vec<OsString> = words.collect();
    let server = ServerCommand::read(&command)
        .map_err(|error| UserError { message: format!("{}: {}", run.path().display(), error.message), ..error })?;
    let metrics = run.read("metrics.json").ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let metrics = metrics.unwrap_or_default();
    // The device of the trace, as the driver names it.
    let device = || metrics["devices"][0]["name"].as_str().map(str::to_owned);
    Ok(ServedRun {
        requests,
        model: value_of(&own, "--model").or_else(|| local_model(&command).map(PathBuf::into_os_string)),
        hardware: value_of(&own, "--hardware").and_then(|name| name.into_string().ok()).or_else(device),
        server,
        steps: steps(&metrics),
    })
}

/// Least share of a step's time on the device in which it works; with less it waits for the host, which a profiler slows.
const DEVICE_BOUND: f64 = 0.9;

/// The steps whose requests are all known, which add up to the tokens that the engine says, and in which the device did not wait.
fn steps(metrics: &Value) -> Vec<MeasuredStep> {
    let list = Vec::<StepSummary>::deserialize(&metrics["steps"]["list"]).unwrap_or_default();
    let requests = Vec::<ServedRequest>::deserialize(&metrics["requests"]).unwrap_or_default();
    let mut parts: Vec<Vec<Part>> = vec![Vec::new(); list.len()];
    for (place, request) in requests.iter().enumerate() {
        let Some(mut context) = cached(request) else { continue };
        for RequestStep { step, tokens, .. } in &request.steps {
            if let Some(parts) = parts.get_mut(*step as usize) {
                parts.push(Part { request: place, tokens: *tokens, context, emits: true });
            }
            context += tokens;
        }
    }
    let step = |(step, parts): (&StepSummary, Vec<Part>)| {
        let tokens: u64 = parts.iter().map(|part| part.tokens).sum();
        let is_whole = tokens > 0 && step.batch.as_ref()?.tokens? == tokens;
        // Pauses between kernels are part of what calibrated operations take.
        let span = (step.device_end_ns? - step.device_start_ns?).get() as f64;
        let is_busy = span > 0.0 && step.device_ns.get() as f64 >= DEVICE_BOUND * span;
        (is_whole && is_busy).then(|| MeasuredStep { parts, device: span / 1e3 })
    };
    list.iter().zip(parts).filter_map(step).collect()
}

/// Tokens of a request's prompt that no step processed, which came from the cache; absent where the trace does not say.
fn cached(request: &ServedRequest) -> Option<u64> {
    let steps = &request.steps;
    // Of a request that began before the trace, it is not known how far it was; of one that was preempted, how much was dropped.
    let is_whole =
        steps.first()?.work == RequestWork::Prefill && steps.iter().all(|step| step.work != RequestWork::Recompute);
    let sum = |is_counted: fn(&&RequestStep) -> bool| {
        steps.iter().filter(is_counted).fold(0, |sum: u64, step| sum.saturating_add(step.tokens))
    };
    let longest = u64::from(load::LONGEST);
    let input = request.input_tokens.filter(|input| is_whole && *input <= longest && sum(|_| true) <= longest)?;
    input.checked_sub(sum(|step| step.work == RequestWork::Prefill))
}

impl ServedRun {
    /// The model as `--model` takes it.
    pub fn model(&self) -> Option<&OsStr> {
        self.model.as_deref()
    }
}

impl ServerCommand {
    /// Reads the words that start a server.
    fn read(words: &[OsString]) -> Result<Self, UserError> {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let mut program = words.iter().take_while(|word| !word.starts_with("--")).enumerate();
        let started = program.find_map(|(place, word)| Some((place, engine(word)?)));
        let mut found = Self { engine: started.map(|(_, engine)| engine), ..Self::default() };
        // What comes before the engine is for the program that starts it: `python3 -m`.
        let before = started.map_or(0, |(place, _)| place);
        for (place, word) in words.iter().enumerate().skip(before).filter(|(_, word)| word.starts_with('-')) {
            let (flag, joined) = word.split_once('=').map_or((&**word, None), |(flag, value)| (flag, Some(value)));
            // vLLM takes either.
            let flag = flag.replace('_', "-");
            let value = joined.or_else(|| words.get(place + 1).map(|next| &**next)).unwrap_or_default();
            found.set(&flag, value)?;
        }
        Ok(found)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), UserError> {
        let number = || count(value).ok_or_else(|| unreadable(flag, value, "a number"));
        match flag {
            "--attention-backend" => match Backend::find(value) {
                Some(backend) => self.backend = Some(backend),
                None => self.ignored.push(format!("{flag} {value}")),
            },
            "--max-num-seqs" | "--max-running-requests" => self.max_num_seqs = Some(number()?),
            "--max-num-batched-tokens" | "--chunked-prefill-size" => self.max_num_batched_tokens = Some(number()?),
            "--num-gpu-blocks-override" => self.kv_blocks = Some(number()?),
            "--block-size" | "--page-size" => self.block_size = Some(number()?),
            "--tensor-parallel-size" | "-tp" | "--tp-size" | "--tp" => self.tensor_parallel = Some(number()?),
            // A word such as `-1` is the value of an option.
            flag if !WITHOUT_EFFECT.lines().any(|known| known == flag) && flag.parse::<f64>().is_err() => {
                self.ignored.push(flag.to_owned())
            }
            _ => {}
        }
        Ok(())
    }
}

/// The engine that a word of a command starts: a program, or a module of Python.
fn engine(word: &str) -> Option<Engine> {
    let program = Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or(word);
    let starts = |engine: &Engine| {
        program == engine.name || word.strip_prefix(engine.name).is_some_and(|rest| rest.starts_with('.'))
    };
    Engine::ALL.into_iter().find(starts)
}

/// A number above zero as vLLM reads it: `8192`, or `8k` for thousands and `8K` for 1,024.
fn count(text: &str) -> Option<u64> {
    const UNITS: [(char, u64); 4] = [('k', 1_000), ('K', 1 << 10), ('m', 1_000_000), ('M', 1 << 20)];
    let unit = UNITS.into_iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)));
    let (digits, size) = unit.unwrap_or((text, 1));
    digits.parse::<u64>().ok()?.checked_mul(size).filter(|number| *number > 0)
}

fn unreadable(flag: &str, value: &str, expected: &str) -> UserError {
    UserError::usage(format!("its server command has `{flag} {value}`, which is not {expected} that can be simulated"))
        .hint(
            "describe the server and its load with options instead: --model, --requests FILE and the engine's settings",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(command: &str) -> Result<ServerCommand, UserError> {
        ServerCommand::read(&command.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_step_is_what_its_requests_say_where_they_say_all_of_it() {
        let group = |sequences: u64| serde_json::json!({"sequences": sequences});
        let step = |tokens: u64, end: u64| {
            serde_json::json!({"name": "a", "label": "mixed", "host_ns": 0, "wall_ns": 0, "device_ns": 4_700_000, "kernels": 9,
                "device_start_ns": 1_000_000, "device_end_ns": end, "batch": {"tokens": tokens, "context": group(1), "generation": group(1)}})
        };
        let work =
            |step: u64, tokens: u64, work: &str| serde_json::json!({"step": step, "tokens": tokens, "work": work});
        // The first request has 16 of its 100 tokens from the cache; of the third step, a request is missing, and in the last the
        // device waits for half of the time.
        let metrics = serde_json::json!({
            "steps": {"list": [step(84, 6_000_000), step(51, 6_000_000), step(9, 6_000_000), step(1, 11_000_000)]},
            "requests": [
                {"input_tokens": 100, "steps": [work(0, 84, "prefill"), work(1, 1, "decode"), work(2, 1, "decode"), work(3, 1, "decode")]},
                {"input_tokens": 50, "steps": [work(1, 50, "prefill")]},
                {"input_tokens": 8, "steps": [work(2, 8, "recompute")]},
            ],
        });
        let found = steps(&metrics);
        let parts: Vec<Vec<[u64; 2]>> =
            found.iter().map(|step| step.parts.iter().map(|part| [part.tokens, part.context]).collect()).collect();
        assert_eq!(parts, [vec![[84, 16]], vec![[1, 100], [50, 0]]]);
        assert!(found.iter().all(|step| step.device == 5_000.0));
    }

    #[test]
    fn a_request_of_unknown_or_impossible_length_is_left_out() {
        let request = |input: u64, steps: &[(&str, u64)]| {
            let step = |(work, tokens): &(&str, u64)| serde_json::json!({"step": 0, "tokens": tokens, "work": work});
            let steps: Vec<Value> = steps.iter().map(step).collect();
            cached(&serde_json::from_value(serde_json::json!({"input_tokens": input, "steps": steps})).unwrap())
        };
        assert_eq!(request(64, &[("prefill", 48), ("decode", 1)]), Some(16));
        // Its first outputs came before the trace.
        assert_eq!(request(64, &[("decode", 1), ("decode", 1)]), None);
        assert_eq!(request(64, &[]), None);
        assert_eq!(request(64, &[("prefill", u64::MAX), ("prefill", 1)]), None);
        assert_eq!(request(64, &[("prefill", 64), ("decode", u64::MAX)]), None);
        assert_eq!(request(u64::MAX, &[("prefill", 64), ("decode", 1)]), None);
    }

    #[test]
    fn the_engine_is_the_program_and_not_a_part_of_a_name() {
        let engine = |command: &str| read(command).unwrap().engine.map(|engine| engine.name);
        assert_eq!(engine("/opt/venv/bin/vllm serve models/sglang --port 1"), Some("vllm"));
        assert_eq!(engine("python3 -m sglang.launch_server --model-path vllm"), Some("sglang"));
        assert_eq!(engine("python3 -m vllm.entrypoints.openai.api_server --model m"), Some("vllm"));
        assert_eq!(engine("./my-vllm-server --model vllm"), None);
        assert_eq!(engine("trtllm-serve /models/vllm-style"), None);
    }

    #[test]
    fn settings_are_read_and_what_is_not_simulated_is_told() {
        let found = read(
            "vllm serve m --max_num_seqs=64 --max-num-batched-tokens 8k --block-size 32 -tp 2 --enforce-eager --port 8123 \
             --attention-backend FLASHINFER --dtype half -pp 2 -dp 4 -q awq -O0 --seed -1",
        );
        let found = found.unwrap();
        assert_eq!((found.max_num_seqs, found.max_num_batched_tokens), (Some(64), Some(8_000)));
        assert_eq!((found.block_size, found.tensor_parallel, found.kv_blocks), (Some(32), Some(2), None));
        let ignored = ["--enforce-eager", "--attention-backend FLASHINFER", "--dtype", "-pp", "-dp", "-q", "-O0"];
        assert_eq!(found.ignored, ignored);
        let module = read("python3 -u -m sglang.launch_server --model-path m -tp 2").unwrap();
        assert_eq!((module.tensor_parallel, module.ignored), (Some(2), Vec::new()));
    }

    #[test]
    fn a_number_that_is_none_is_an_error_and_not_a_default() {
        for command in
            ["vllm serve m --max-num-seqs many", "vllm serve m --max-num-seqs", "vllm serve m --block-size=0"]
        {
            let error = read(command).unwrap_err();
            assert!(error.message.contains("its server command has `--"), "{}", error.message);
        }
    }
}
