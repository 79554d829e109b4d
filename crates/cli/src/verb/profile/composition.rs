//! From arguments to the configuration of a run: which groups suit a model, and what the flags put into it.

use std::path::{Path, PathBuf};

use flow::model::{self, LoadedModel, ModelSettings};
use flow::profile::{DatasetSettings, Feed, InferSettings};

use super::super::analyze::{model_error, model_overrides};
use crate::arguments::Context;
use crate::config::{Composer, Config};
use crate::error::CliError;
use crate::target::TargetArguments;

/// A configuration and the model it names.
pub(crate) struct Composition {
    pub(crate) config: Config,
    pub(crate) model: LoadedModel,
}

/// The configuration with the flags put in as overrides, so that `config.yaml` says what was done, and its model.
///
/// What a model is fed decides which settings apply to it, so the model is composed first, by itself.
pub(crate) fn compose(
    arguments: &TargetArguments,
    given: &[String],
    context: &Context,
) -> Result<Composition, CliError> {
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
    overrides.extend(suited_to(feed, &model));
    if let Some(inputs) = &arguments.inputs {
        overrides.extend(input_overrides(feed, inputs));
    }
    overrides.extend(arguments.engine.map(|_| format!("engine={}", arguments.engine().name())));
    overrides.extend(arguments.device.iter().map(|device| format!("device={}", quoted(device))));
    overrides.extend(given.iter().cloned());
    let config = composer.compose(&overrides)?;
    refuse_unread_inputs(arguments, feed, &config)?;
    Ok(Composition { config, model })
}

/// The groups that suit a model.
fn suited_to(feed: Feed, model: &LoadedModel) -> Vec<String> {
    let groups: &[&str] = match feed {
        Feed::Pages if model.id == "deepseek-ocr-tiny" => &["model/deepseek_ocr/infer@infer=deepseek_ocr.tiny"],
        Feed::Pages => &[],
        Feed::Prompts => &["model/decoder/infer@infer=decoder.default", "dataset=prompts"],
        Feed::Pictures => &["model/dummy_shallow_resnet/infer@infer=dummy_shallow_resnet.default"],
    };
    let workload = format!("workload={}", model.default_workload());
    groups.iter().map(|group| (*group).to_owned()).chain([workload]).collect()
}

/// The `infer` part in the form that suits the model.
pub(super) fn infer(config: &Config, model: &LoadedModel) -> Result<InferSettings, CliError> {
    Ok(match Feed::of(model) {
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
    model::load(&settings).map_err(|error| model_error(&error))
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
