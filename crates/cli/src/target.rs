//! What is measured, as every verb that launches something takes it: a model on an engine, or a command after `--`.

use std::ffi::{OsStr, OsString};

use clap::ValueEnum;
use config::{OverrideSource, Overrides};
use flow::target::{Engine, Target};
use types::UserError;

use crate::context::Context;

/// Which model runs where, or which command.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Model or command")]
pub(crate) struct TargetArguments {
    /// Engine that runs the model: native (this program, on the CPU), torch (PyTorch in your Python), or auto: torch if
    /// a GPU and a Python with torch are found, else native [default: auto]
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<EngineName>,
    /// Built-in model, config.json, or folder with one [default: a small built-in model]
    #[arg(long, value_name = "NAME|PATH")]
    pub(crate) model: Option<OsString>,
    /// Safetensors checkpoint, its folder, or `synthetic` for random weights
    #[arg(long, value_name = "PATH")]
    pub(crate) weights: Option<String>,
    /// Page images, or text files for a language model: a folder, a file, or a pattern such as 'scans/*.png'
    #[arg(long, value_name = "PATH")]
    pub(crate) inputs: Option<OsString>,
    /// Device that runs the model: cpu or cuda:N
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Device in the hardware catalogue whose peak rates apply [default: the device that it runs on]
    #[arg(long, value_name = "NAME")]
    pub(crate) hardware: Option<String>,
    /// Python interpreter for the torch engine [default: $LLM_PERF_PYTHON, else the first python3 that has torch]
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) python: Option<String>,
    /// Allow the model's own Python code to run
    #[arg(long)]
    pub(crate) trust_remote_code: bool,
    /// Add an NVTX range around every module down to depth N (torch only)
    #[arg(long, value_name = "N", value_parser = depth)]
    pub(crate) module_ranges: Option<u32>,
    /// Command to profile instead of a model
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// The values of `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    Auto,
    Native,
    Torch,
}

impl TargetArguments {
    /// Whether a command is given.
    pub(crate) fn is_command(&self) -> bool {
        !self.command.is_empty()
    }

    /// The user's own command.
    pub(crate) fn command(&self) -> Result<Target, UserError> {
        Target::command(self.command.clone())
    }

    /// This program, running the model under these overrides and nothing else.
    pub(crate) fn workload(
        &self,
        engine: Engine,
        overrides: &Overrides,
        context: &Context,
    ) -> Result<Target, UserError> {
        let program = std::env::current_exe()
            .map_err(|error| UserError::failed("cannot find the llm-perf executable").because(error.to_string()))?;
        Ok(Target::workload(engine, &program, self.arguments(engine, overrides, context)))
    }

    /// Refuses flags and overrides that are about a model, where none is run: those that touch one of the keys.
    pub(crate) fn refuse_model(&self, overrides: &Overrides, keys: &[&str]) -> Result<(), UserError> {
        if self.model.is_some() {
            return Err(not_run("--model"));
        }
        self.refuse_run(overrides, keys)
    }

    /// The same, where a model may be named all the same: it says what a command runs.
    pub(crate) fn refuse_run(&self, overrides: &Overrides, keys: &[&str]) -> Result<(), UserError> {
        let named = [
            ("--engine", self.engine.is_some()),
            ("--weights", self.weights.is_some()),
            ("--inputs", self.inputs.is_some()),
            ("--device", self.device.is_some()),
            ("--python", self.python.is_some()),
            ("--trust-remote-code", self.trust_remote_code),
            ("--module-ranges", self.module_ranges.is_some()),
        ];
        let flag = named.into_iter().find_map(|(flag, given)| given.then(|| flag.to_owned()));
        match flag.or_else(|| overrides.only(keys).iter().next().map(ToString::to_string)) {
            Some(flag) => Err(not_run(&flag)),
            None => Ok(()),
        }
    }

    /// Names the device whose peak rates apply, where a flag does.
    pub(crate) fn set_hardware(&self, overrides: &mut Overrides) {
        if let Some(name) = &self.hardware {
            overrides.set("hardware", name.as_str(), OverrideSource::Flag("--hardware"));
        }
    }

    /// Arguments of `llm-perf workload` that run the same.
    fn arguments(&self, engine: Engine, overrides: &Overrides, context: &Context) -> Vec<OsString> {
        let mut arguments = Vec::new();
        if let Some(folder) = &context.config_dir {
            arguments.extend([OsString::from("--config-dir"), folder.into()]);
        }
        arguments.extend(["--engine", engine.name()].map(OsString::from));
        let values = [
            ("--model", self.model.as_deref()),
            ("--weights", self.weights.as_deref().map(OsStr::new)),
            ("--inputs", self.inputs.as_deref()),
            ("--device", self.device.as_deref().map(OsStr::new)),
            ("--python", self.python.as_deref().map(OsStr::new)),
        ];
        for (flag, value) in values {
            arguments.extend(value.into_iter().flat_map(|value| [OsString::from(flag), value.to_owned()]));
        }
        if self.trust_remote_code {
            arguments.push(OsString::from("--trust-remote-code"));
        }
        if let Some(depth) = self.module_ranges {
            arguments.extend([OsString::from("--module-ranges"), depth.to_string().into()]);
        }
        arguments.extend(overrides.without(&["engine"]).iter().map(|one| OsString::from(one.to_string())));
        arguments
    }
}

fn not_run(flag: &str) -> UserError {
    UserError::usage(format!("`{flag}` has no effect: llm-perf runs no model here"))
        .hint("remove it, or pass it to the command")
}

/// `3`, or `depth=3`.
fn depth(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("depth=").unwrap_or(text);
    match number.parse() {
        Ok(depth @ 1..=64) => Ok(depth),
        _ => Err("expected a depth from 1 to 64".to_owned()),
    }
}
