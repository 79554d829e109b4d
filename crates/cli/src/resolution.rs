//! From arguments and configuration to the plain settings that `flow` takes.
//!
//! The one place where models, workloads, inputs, devices and run folders are resolved: a verb asks for what it needs and
//! hands it on. What the flags say becomes overrides, so that `config.yaml` says what was done.

pub(crate) mod inputs;
pub(crate) mod model;
pub(crate) mod workload;

use std::path::{Path, PathBuf};

use config::{Composer, Config, OverrideSource, Overrides};
use flow::RunRequest;
use flow::model::LoadedModel;
use flow::profile::{ProfileRequest, WeightSettings};
use flow::torch::{self, ProfilerSettings, TorchSettings};

use crate::context::Context;
use crate::error::CliError;
use crate::target::TargetArguments;
pub(crate) use model::EngineModel;

/// A configuration and the model that it names, for a verb that runs it.
pub(crate) struct Resolution {
    pub(crate) config: Config,
    pub(crate) model: EngineModel,
}

/// What the flags say of a model that is not run here.
#[derive(Debug, Default)]
pub(crate) struct ModelFlags<'a> {
    /// `--model`.
    pub(crate) model: Option<&'a str>,
    /// `--workload`.
    pub(crate) workload: Option<&'a str>,
    /// `--hardware`.
    pub(crate) hardware: Option<&'a str>,
}

impl ModelFlags<'_> {
    /// The flags as overrides, then those of the user.
    pub(crate) fn overrides(&self, given: &Overrides) -> Overrides {
        let mut overrides = Overrides::default();
        if let Some(model) = self.model {
            model::name(&mut overrides, model, OverrideSource::Flag("--model"));
        }
        if let Some(workload) = self.workload {
            overrides.choose("workload", workload, OverrideSource::Flag("--workload"));
        }
        if let Some(hardware) = self.hardware {
            overrides.set("hardware", hardware, OverrideSource::Flag("--hardware"));
        }
        overrides.append(given);
        overrides
    }
}

/// A composer of the built-in groups and those of `--config-dir`.
pub(crate) fn composer(context: &Context) -> Result<Composer, CliError> {
    Ok(Composer::new(context.config_dir.as_deref())?)
}

/// Composes, and shows in detail what went into it.
pub(crate) fn compose(overrides: &Overrides, context: &Context) -> Result<Config, CliError> {
    let config = composer(context)?.compose(overrides)?;
    for one in overrides.iter() {
        match one.source() {
            OverrideSource::Typed => context.messages.detail(format_args!("override {one}")),
            OverrideSource::Flag(flag) => context.messages.detail(format_args!("override {one}, from {flag}")),
            OverrideSource::Verb => context.messages.detail(format_args!("override {one}, set by llm-perf")),
        }
    }
    for mount in config.mounts() {
        let option = mount.option.as_deref().unwrap_or("nothing");
        context.messages.debug(format_args!("{}: {option} of {}", mount.package, mount.group));
    }
    Ok(config)
}

/// A model that an engine runs, with the settings that suit it.
///
/// What a model is fed decides which settings suit it, so the model is composed first, by itself.
pub(crate) fn resolve_run(
    arguments: &TargetArguments,
    given: &Overrides,
    context: &Context,
) -> Result<Resolution, CliError> {
    let engine = arguments.engine(given);
    let mut overrides = model::overrides(engine, arguments, given)?;
    let mut of_model = overrides.clone();
    of_model.append(&given.only(&["model"]));
    let model = model::load_for_engine(engine, &composer(context)?.compose(&of_model)?)?;
    model.suit(&mut overrides);
    if let Some(inputs) = &arguments.inputs {
        inputs::name(&mut overrides, model.feed(), inputs);
    }
    if let Some(engine) = arguments.engine {
        overrides.set("engine", flow::target::Engine::from(engine).name(), OverrideSource::Flag("--engine"));
    }
    if let Some(device) = &arguments.device {
        overrides.set("device", device.as_str(), OverrideSource::Flag("--device"));
    }
    overrides.append(given);
    let config = compose(&overrides, context)?;
    if arguments.inputs.is_some() {
        inputs::refuse_unread(model.feed(), &config)?;
    }
    Ok(Resolution { config, model })
}

/// A model that is only modelled, on the workload that the user chose, else on the model's own standard one.
pub(crate) fn resolve_modelled(
    flags: &ModelFlags<'_>,
    given: &Overrides,
    context: &Context,
) -> Result<(Config, LoadedModel), CliError> {
    let overrides = flags.overrides(given);
    let config = composer(context)?.compose(&overrides)?;
    let model = model::load(&config)?;
    let mut all = Overrides::default();
    if config.chosen("workload").is_none() && config.mounted("workload") != Some(model.default_workload()) {
        all.choose("workload", model.default_workload(), OverrideSource::Verb);
    }
    all.append(&overrides);
    Ok((compose(&all, context)?, model))
}

/// What a run on an engine is asked to do.
pub(crate) fn profile_request(resolution: &Resolution, context: &Context) -> Result<ProfileRequest, CliError> {
    let config = &resolution.config;
    Ok(ProfileRequest {
        engine: config.get::<String>("engine")?,
        device: config.get::<String>("device")?,
        weights: config.get::<WeightSettings>("model")?,
        infer: inputs::infer(config, resolution.model.feed())?,
        dataset: inputs::dataset(config)?,
        last_logits_only: config.get::<String>("workload.logits")? == "last",
        keep_predictions: false,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        config_dir: context.config_dir.clone(),
    })
}

/// What the torch engine also needs to know.
pub(crate) fn torch_settings(arguments: &TargetArguments, config: &Config) -> Result<TorchSettings, CliError> {
    let dtype = match config.get::<Option<String>>("model.dtype")? {
        Some(name) => Some(torch::element_type(&name)?),
        None => None,
    };
    // What the group says by itself is the native engine's way; torch has its own unless the user says otherwise.
    let attention = config.is_set("infer.attention").then(|| config.get::<String>("infer.attention")).transpose()?;
    Ok(TorchSettings {
        python: arguments.python.clone(),
        trust_remote_code: arguments.trust_remote_code,
        module_ranges: arguments.module_ranges.unwrap_or(0),
        check_flops: false,
        attention: attention.map(|name| if name == "flash" { "flash_attention_2".to_owned() } else { name }),
        dtype,
        profiler: config.get::<ProfilerSettings>("pipeline.torch_profiler")?,
        hardware: hardware(config)?,
    })
}

/// The device of the catalogue that is named.
pub(crate) fn hardware(config: &Config) -> Result<Option<String>, CliError> {
    Ok(config.get("hardware")?)
}

/// Where a run goes.
pub(crate) fn run_request(verb: &str, config: &Config, out: Option<&Path>) -> Result<RunRequest, CliError> {
    Ok(RunRequest {
        root: config.get::<PathBuf>("run.output_root")?,
        out: out.map(Path::to_owned),
        ..RunRequest::new(verb, std::env::args().collect())
    })
}
