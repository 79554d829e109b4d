//! From arguments and configuration to the plain settings that `flow` takes.
//!
//! The one place where models, workloads, inputs, devices and run folders are resolved: a verb asks for what it needs and
//! hands it on. What the flags say becomes overrides, so that `config.yaml` says what was done.

pub(crate) mod engine;
pub(crate) mod inputs;
pub(crate) mod model;
pub(crate) mod workload;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use config::{Composer, Config, OverrideSource, Overrides};
use flow::RunRequest;
use flow::model::LoadedModel;
use flow::profile::{ProfileRequest, WeightSettings};
use flow::target::Engine;
use flow::torch::{self, ProfilerSettings, TorchSettings};
use types::UserError;

use crate::context::Context;
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
    pub(crate) model: Option<&'a OsStr>,
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
pub(crate) fn composer(context: &Context) -> Result<Composer, UserError> {
    Ok(Composer::new(context.config_dir.as_deref())?)
}

/// Composes, and shows in detail what went into it.
pub(crate) fn compose(overrides: &Overrides, context: &Context) -> Result<Config, UserError> {
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
    engine: Engine,
    arguments: &TargetArguments,
    given: &Overrides,
    context: &Context,
) -> Result<Resolution, UserError> {
    if engine == Engine::Native && arguments.hardware.is_some() {
        return Err(UserError::usage("`--hardware` has no effect: the native engine runs on this machine's CPU")
            .hint("remove it, or run the model on a GPU with --engine torch"));
    }
    let mut overrides = model::overrides(engine, arguments, given)?;
    let mut of_model = overrides.clone();
    of_model.append(&given.only(&["model"]));
    let first = composer(context)?.compose(&of_model)?;
    let model = model::load_for_engine(engine, &first, arguments.model.as_deref())?;
    model.suit(&mut overrides);
    if let Some(inputs) = &arguments.inputs {
        inputs::name(&mut overrides, model.feed(), inputs);
    }
    if let Some(device) = &arguments.device {
        overrides.set("device", device.as_str(), OverrideSource::Flag("--device"));
    }
    arguments.set_hardware(&mut overrides);
    overrides.append(&given.without(&["engine"]));
    overrides.set("engine", engine.name(), OverrideSource::Verb);
    let config = compose(&overrides, context)?.read_as(&first);
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
) -> Result<(Config, LoadedModel), UserError> {
    let overrides = flags.overrides(given);
    let config = composer(context)?.compose(&overrides)?;
    let model = model::load(&config, flags.model)?;
    let mut all = Overrides::default();
    if config.chosen("workload").is_none() && config.mounted("workload") != Some(model.default_workload()) {
        all.choose("workload", model.default_workload(), OverrideSource::Verb);
    }
    all.append(&overrides);
    Ok((compose(&all, context)?.read_as(&config), model))
}

/// What a run on an engine is asked to do.
pub(crate) fn profile_request(
    arguments: &TargetArguments,
    config: &Config,
    model: &EngineModel,
    context: &Context,
) -> Result<ProfileRequest, UserError> {
    Ok(ProfileRequest {
        engine: config.get::<String>("engine")?,
        device: config.get::<String>("device")?,
        weights: config.get::<WeightSettings>("model")?,
        infer: inputs::infer(config, model.feed())?,
        dataset: inputs::dataset(arguments, config)?,
        tries: None,
        keep_predictions: false,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        config_dir: context.config_dir.clone(),
    })
}

/// Reads what a child of this program will read, so that what it would refuse is refused before anything starts.
pub(crate) fn check_run(
    arguments: &TargetArguments,
    config: &Config,
    model: &EngineModel,
    context: &Context,
) -> Result<(), UserError> {
    profile_request(arguments, config, model, context)?;
    torch_settings(arguments, config).map(drop)
}

/// What the torch engine also needs to know.
pub(crate) fn torch_settings(arguments: &TargetArguments, config: &Config) -> Result<TorchSettings, UserError> {
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
pub(crate) fn hardware(config: &Config) -> Result<Option<String>, UserError> {
    Ok(config.get("hardware")?)
}

/// Where a run goes: `--out`, else what the configuration says. The last thing a verb asks for: what the user has typed and
/// nobody has read by then is refused.
pub(crate) fn run_request(
    verb: &str,
    config: &Config,
    typed: &Overrides,
    out: Option<&Path>,
) -> Result<RunRequest, UserError> {
    if config.get::<bool>("hydra.job.chdir")? {
        return Err(UserError::usage("`hydra.job.chdir=true` is not supported")
            .hint("remove it; paths are relative to the folder in which llm-perf starts"));
    }
    let id = config.get::<String>("run.id")?;
    if id.is_empty() || id.starts_with('.') || id.contains(['/', '\0']) {
        return Err(UserError::usage(format!("run.id `{id}` is not a valid folder name"))
            .hint("set a path with run.output_root or --out"));
    }
    let folder_key = if matches!(verb, "deep" | "regions") { "artifacts.stage2_dir" } else { "artifacts.stage1_dir" };
    let named = match config.get::<Option<PathBuf>>("hydra.run.dir")? {
        None if config.is_set(folder_key) => config.get::<Option<PathBuf>>(folder_key)?,
        named => named,
    };
    let root = config.get::<PathBuf>("run.output_root")?;
    refuse_unread(verb, config, typed)?;
    let out = out.map(Path::to_owned).or(named);
    let index = flow::RunIndex::of_user();
    Ok(RunRequest { root, id: Some(id), out, index, ..RunRequest::new(verb, std::env::args_os().collect()) })
}

/// Refuses what the user typed and nobody reads, so that nobody believes it had an effect.
pub(crate) fn refuse_unread(verb: &str, config: &Config, typed: &Overrides) -> Result<(), UserError> {
    let Some(one) = config.unread(typed).into_iter().next() else { return Ok(()) };
    let error = UserError::usage(format!("`{one}` has no effect on `{verb}`"));
    Err(match one.key_below("workload").filter(|_| matches!(verb, "profile" | "workload")) {
        Some(_) => error.hint("set infer.batch, infer.seq_len, infer.max_new_tokens, infer.logits or --inputs instead; workload.* applies to `analyze` and to commands with --model"),
        None => error.hint("remove it; `llm-perf config` lists the keys"),
    })
}

#[cfg(test)]
mod tests {
    use flow::deep::{NcuPreset, NsysPreset};

    use super::*;
    use crate::message::{Colour, Messages, Verbosity};

    fn context() -> Context {
        Context { config_dir: None, messages: Messages::new(Verbosity::Quiet, Colour::Never) }
    }

    /// Everything that some verb reads of a configuration.
    fn read_by_all_verbs(config: &Config) {
        let context = context();
        let settings: flow::model::ModelSettings = config.get("model").unwrap();
        // A model of a file that nobody has here is read as far as its settings.
        let target = TargetArguments::default();
        if settings.config_path.is_some() || settings.config == flow::model::ConfigSource::Builtin {
            let model = EngineModel::Native(Box::new(model::load(config, None).unwrap()));
            profile_request(&target, config, &model, &context).unwrap();
        }
        config.get::<WeightSettings>("model").unwrap();
        config.get::<Option<String>>("model.target").unwrap();
        torch_settings(&target, config).unwrap();
        workload::settings(config).unwrap();
        config.get::<NsysPreset>("pipeline.nsys").unwrap();
        config.get::<NcuPreset>("pipeline.ncu").unwrap();
        for verb in ["profile", "deep"] {
            run_request(verb, config, &Overrides::default(), None).unwrap();
        }
        hardware(config).unwrap();
    }

    #[test]
    fn every_key_of_every_group_is_read_by_some_verb() {
        // Read where the engine is chosen and where a deep run is composed.
        let elsewhere = ["engine", "run.mode", "run.top_n_kernels", "artifacts.stage1_dir", "artifacts.stage2_dir"];
        let composer = composer(&context()).unwrap();
        let mounts = composer.compose(&Overrides::default()).unwrap().mounts().to_vec();
        let mut unread = std::collections::BTreeSet::new();
        for group in composer.groups() {
            let mounted = mounts.iter().find(|mount| mount.group == group.name);
            let package = match (mounted, group.name.rsplit('/').next()) {
                (Some(mount), _) => mount.place().to_owned(),
                (None, Some("infer")) => "infer".to_owned(),
                (None, _) => "model".to_owned(),
            };
            for (option, _) in &group.options {
                let chosen = format!("{}@{package}={option}", group.name);
                // What a model is fed belongs to it.
                let model = match (package.as_str(), group.name.split('/').nth(1)) {
                    ("infer", Some("decoder")) => {
                        vec!["model/decoder/arch@model=decoder.tiny".to_owned(), "dataset=prompts".to_owned()]
                    }
                    ("infer", Some(name)) => vec![format!("model/{name}/arch@model={name}.default")],
                    ("model", Some("decoder")) => {
                        vec!["model/decoder/infer@infer=decoder.default".to_owned(), "dataset=prompts".to_owned()]
                    }
                    ("model", Some("dummy_shallow_resnet")) => {
                        vec!["model/dummy_shallow_resnet/infer@infer=dummy_shallow_resnet.default".to_owned()]
                    }
                    _ => Vec::new(),
                };
                let typed: Vec<String> = model.into_iter().chain([chosen.clone()]).collect();
                let config = composer.compose(&Overrides::typed(&typed).unwrap()).unwrap();
                read_by_all_verbs(&config);
                let below = |key: &String| package == "_global_" || key.starts_with(&format!("{package}."));
                let left = config.keys().into_iter().filter(|key| below(key) && !config.was_read(key));
                unread.extend(
                    left.filter(|key| !elsewhere.contains(&key.as_str())).map(|key| format!("{chosen}: {key}")),
                );
            }
        }
        assert!(unread.is_empty(), "nothing reads {unread:#?}");
    }

    #[test]
    fn what_nobody_reads_is_refused_and_named() {
        let typed = Overrides::typed(&["workload.batch=4"]).unwrap();
        let config = composer(&context()).unwrap().compose(&typed).unwrap();
        let error = refuse_unread("profile", &config, &typed).unwrap_err();
        assert!(format!("{error:?}").contains("`workload.batch=4` has no effect on `profile`"), "{error:?}");
        workload::settings(&config).unwrap();
        assert!(refuse_unread("analyze", &config, &typed).is_ok());
    }
}
