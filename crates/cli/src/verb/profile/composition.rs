//! From arguments to the configuration of a run: which groups suit a model, and what the flags put into it.

use std::path::{Path, PathBuf};

use flow::model::{self, LoadedModel, ModelSettings};
use flow::profile::{DatasetSettings, Feed, InferSettings};
use flow::target::Engine;
use flow::torch::{self, ProfilerSettings, TorchModel, TorchName, TorchSettings};

use super::super::analyze::model_overrides;
use crate::arguments::Context;
use crate::config::{Composer, Config};
use crate::error::CliError;
use crate::target::TargetArguments;

/// A configuration and the model it names.
pub(crate) struct Composition {
    pub(crate) config: Config,
    pub(crate) subject: Subject,
}

/// A model for one of the engines.
pub(crate) enum Subject {
    /// Ours.
    Native(Box<LoadedModel>),
    /// PyTorch.
    Torch(Box<TorchModel>),
}

impl Subject {
    /// What it is fed.
    pub(crate) fn feed(&self) -> Feed {
        match self {
            Self::Native(model) => Feed::of(model),
            Self::Torch(model) => model.feed,
        }
    }
}

/// The engine that the flag or an override asks for.
pub(crate) fn engine(arguments: &TargetArguments, given: &[String]) -> Engine {
    let named = given.iter().rev().find_map(|text| text.strip_prefix("engine=")).and_then(Engine::find);
    arguments.engine.map(Engine::from).or(named).unwrap_or(Engine::Native)
}

/// The configuration with the flags put in as overrides, so that `config.yaml` says what was done, and its model.
///
/// What a model is fed decides which settings apply to it, so the model is composed first, by itself.
pub(crate) fn compose(
    arguments: &TargetArguments,
    given: &[String],
    context: &Context,
) -> Result<Composition, CliError> {
    if engine(arguments, given) == Engine::Torch {
        return compose_torch(arguments, given, context);
    }
    let composer = Composer::new(context.config_dir.as_deref())?;
    let mut of_model = Vec::new();
    let chosen = given.iter().any(|text| text.contains("@model="));
    if arguments.model.is_none() && !chosen {
        of_model.push("model/deepseek_ocr/arch@model=deepseek_ocr.tiny".to_owned());
    }
    of_model.extend(arguments.model.iter().flat_map(|model| model_overrides(model)));
    if let Some(weights) = &arguments.weights {
        of_model.push(format!("model.weights={}", quoted(weights)));
    }
    let about_model = |text: &&String| text.trim_start_matches(['+', '~']).starts_with("model");
    let with_users = of_model.iter().chain(given.iter().filter(about_model)).cloned();
    let model = load(&composer.compose(&with_users.collect::<Vec<_>>())?)?;

    let feed = Feed::of(&model);
    let mut overrides = of_model;
    overrides.extend(suited_to(feed, &model.id, model.default_workload()));
    if let Some(inputs) = &arguments.inputs {
        overrides.extend(input_overrides(feed, inputs));
    }
    overrides.extend(place_overrides(arguments));
    overrides.extend(given.iter().cloned());
    let config = composer.compose(&overrides)?;
    refuse_unread_inputs(arguments, feed, &config)?;
    Ok(Composition { config, subject: Subject::Native(Box::new(model)) })
}

/// `--engine` and `--device` as overrides.
fn place_overrides(arguments: &TargetArguments) -> Vec<String> {
    let engine = arguments.engine.map(|_| format!("engine={}", arguments.engine().name()));
    let device = arguments.device.iter().map(|device| format!("device={}", quoted(device)));
    engine.into_iter().chain(device).collect()
}

/// The same for a model that PyTorch runs, which may be one that nothing here knows.
fn compose_torch(arguments: &TargetArguments, given: &[String], context: &Context) -> Result<Composition, CliError> {
    let composer = Composer::new(context.config_dir.as_deref())?;
    let mut overrides = torch_model(arguments, given)?;
    let about_model = |text: &&String| text.trim_start_matches(['+', '~']).starts_with("model");
    let of_model = overrides.iter().chain(given.iter().filter(about_model)).cloned();
    let model = load_torch(&composer.compose(&of_model.collect::<Vec<_>>())?)?;
    let workload = match (&model.known, model.feed) {
        (Ok(known), _) => known.default_workload(),
        (Err(_), Feed::Pages) => "dsocr-standard-v1",
        (Err(_), Feed::Prompts) => "llm-standard-v1",
        (Err(_), Feed::Pictures) => "image-standard-v1",
    };
    overrides.extend(suited_to(model.feed, &model.id, workload));
    let tiled = model.known.is_ok() && workload == "dsocr-standard-v1";
    if model.feed == Feed::Pages && !tiled {
        overrides.push("infer.crop_mode=false".to_owned());
    }
    if let Some(inputs) = &arguments.inputs {
        overrides.extend(input_overrides(model.feed, inputs));
    }
    overrides.extend(place_overrides(arguments));
    overrides.extend(given.iter().cloned());
    let config = composer.compose(&overrides)?;
    refuse_unread_inputs(arguments, model.feed, &config)?;
    Ok(Composition { config, subject: Subject::Torch(Box::new(model)) })
}

/// `--model` and `--weights` as overrides, as PyTorch takes them.
fn torch_model(arguments: &TargetArguments, given: &[String]) -> Result<Vec<String>, CliError> {
    let mut overrides = Vec::new();
    let mut folder = None;
    match arguments.model.as_deref().map(|name| (name, TorchName::of(name))) {
        None if given.iter().any(|text| text.contains("@model=")) => {}
        None => overrides.extend(model_overrides("decoder-tiny")),
        Some((name, TorchName::Factory(factory))) => {
            overrides.push(format!("model.name={}", quoted(name)));
            overrides.push(format!("model.target={}", quoted(&factory)));
        }
        Some((name, TorchName::Path(path))) => {
            overrides.extend(model_overrides(&path.display().to_string()));
            let here = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            let own = here.file_name().filter(|_| path.is_dir()).map(|name| name.to_string_lossy().into_owned());
            let shown = if Path::new(name) == path { own } else { Some(name.to_owned()) };
            overrides.extend(shown.map(|shown| format!("model.name={}", quoted(&shown))));
            folder = Some(path).filter(|path| path.is_dir());
        }
        Some((name, TorchName::NotOnDisk(cache))) => {
            return Err(CliError::usage(format!("{name} is not on disk: {} has no such model", cache.display()))
                .hint(format!("nothing is fetched here; `hf download {name}` puts it there")));
        }
        Some((name, TorchName::Name)) => overrides.extend(model_overrides(name)),
    }
    let weights = arguments.weights.clone();
    let beside = || folder.filter(|folder| torch::has_weights(folder)).map(|folder| folder.display().to_string());
    overrides.extend(weights.or_else(beside).map(|weights| format!("model.weights={}", quoted(&weights))));
    Ok(overrides)
}

/// The groups that suit a model.
fn suited_to(feed: Feed, model: &str, workload: &str) -> Vec<String> {
    let groups: &[&str] = match feed {
        Feed::Pages if model == "deepseek-ocr-tiny" => &["model/deepseek_ocr/infer@infer=deepseek_ocr.tiny"],
        Feed::Pages => &[],
        Feed::Prompts => &["model/decoder/infer@infer=decoder.default", "dataset=prompts"],
        Feed::Pictures => &["model/dummy_shallow_resnet/infer@infer=dummy_shallow_resnet.default"],
    };
    let workload = format!("workload={workload}");
    groups.iter().map(|group| (*group).to_owned()).chain([workload]).collect()
}

/// The `infer` part in the form that suits the model.
pub(crate) fn infer(config: &Config, feed: Feed) -> Result<InferSettings, CliError> {
    Ok(match feed {
        Feed::Pages => InferSettings::Pages(config.get("infer")?, config.get("infer")?),
        Feed::Prompts => InferSettings::Prompts(config.get("infer")?, config.get("infer")?),
        Feed::Pictures => InferSettings::Pictures(config.get("infer")?),
    })
}

/// `--inputs` beside settings under which no file is read would be ignored in silence.
fn refuse_unread_inputs(arguments: &TargetArguments, feed: Feed, config: &Config) -> Result<(), CliError> {
    let reason = match feed {
        _ if arguments.inputs.is_none() => return Ok(()),
        Feed::Pages => return Ok(()),
        Feed::Pictures => "this model is fed random pictures",
        Feed::Prompts if config.get::<Option<u64>>("infer.seq_len")?.is_some() => {
            "infer.seq_len asks for made-up tokens"
        }
        Feed::Prompts if !config.get::<String>("infer.prompt")?.contains("<text>") => {
            "infer.prompt has no <text>, so the files have no place in it"
        }
        Feed::Prompts => return Ok(()),
    };
    Err(CliError::usage(format!("--inputs has no effect: {reason}")).hint("leave one of the two out"))
}

/// `--inputs` as overrides: a folder or file as it is, a pattern as the folder before its first wildcard and the rest.
fn input_overrides(feed: Feed, inputs: &str) -> Vec<String> {
    let group = if feed == Feed::Prompts { "dataset=prompts" } else { "dataset=folder" };
    let mut overrides = vec![group.to_owned()];
    let wildcard = inputs.find(['*', '?', '[', '{']);
    match wildcard.filter(|_| !Path::new(inputs).exists()) {
        None => overrides.push(format!("dataset.root={}", quoted(inputs))),
        Some(first) => {
            let (root, pattern) = match inputs[..first].rfind('/') {
                Some(slash) => (&inputs[..slash.max(1)], &inputs[slash + 1..]),
                None => (".", inputs),
            };
            overrides.push(format!("dataset.root={}", quoted(root)));
            overrides.push(format!("dataset.include=[{}]", quoted(pattern)));
        }
    }
    overrides
}

pub(super) fn load(config: &Config) -> Result<LoadedModel, CliError> {
    let settings: ModelSettings = config.get("model")?;
    Ok(model::load(&settings)?)
}

/// The same for PyTorch.
pub(super) fn load_torch(config: &Config) -> Result<TorchModel, CliError> {
    let settings: ModelSettings = config.get("model")?;
    let target = config.get::<Option<String>>("model.target")?;
    Ok(TorchModel::find(&settings, target.as_deref())?)
}

/// What PyTorch is told besides.
pub(crate) fn torch_settings(
    arguments: &TargetArguments,
    config: &Config,
    given: &[String],
) -> Result<TorchSettings, CliError> {
    let dtype = config.get::<Option<String>>("model.dtype")?;
    let dtype = match dtype {
        Some(name) => Some(torch::element_type(&name)?),
        None => None,
    };
    // What the group says by itself is the native engine's way; torch has its own unless the user says otherwise.
    let asked = given.iter().any(|text| text.trim_start_matches('+').starts_with("infer.attention="));
    let attention = if asked { Some(config.get::<String>("infer.attention")?) } else { None };
    Ok(TorchSettings {
        python: arguments.python.clone(),
        trust_remote_code: arguments.trust_remote_code,
        module_ranges: arguments.module_ranges.unwrap_or(0),
        check_flops: false,
        attention: attention.map(|name| if name == "flash" { "flash_attention_2".to_owned() } else { name }),
        dtype,
        profiler: config.get::<ProfilerSettings>("pipeline.torch_profiler")?,
        hardware: config.get::<Option<String>>("hardware")?,
    })
}

/// The dataset, or the file list that `inputs.manifest` names in its place.
pub(super) fn dataset(config: &Config) -> Result<DatasetSettings, CliError> {
    let mut settings: DatasetSettings = config.get("dataset")?;
    if let Some(manifest) = config.get::<Option<PathBuf>>("inputs.manifest")? {
        settings.root = ".".to_owned();
        settings.file_list = Some(manifest);
    }
    Ok(settings)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
