//! What a model is fed: which files, and how they become prompts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use config::{Config, OverrideSource, Overrides};
use flow::profile::{DatasetSettings, FedInputs, Feed, InferSettings};
use types::UserError;

use super::Resolution;
use crate::target::TargetArguments;

const INPUTS: OverrideSource = OverrideSource::Flag("--inputs");

/// Names the inputs: a folder or file as it is, a pattern as the folder before its first wildcard and the rest.
pub(super) fn name(overrides: &mut Overrides, feed: Feed, inputs: &OsStr) {
    overrides.choose("dataset", if feed == Feed::Prompts { "prompts" } else { "folder" }, INPUTS);
    // What is no text has no place in a configuration; `dataset` puts the path itself there.
    let Some(inputs) = inputs.to_str() else {
        return overrides.set("dataset.root", inputs.to_string_lossy(), INPUTS);
    };
    let wildcard = inputs.find(['*', '?', '[', '{']).filter(|_| !Path::new(inputs).exists());
    let Some(first) = wildcard else { return overrides.set("dataset.root", inputs, INPUTS) };
    let (root, pattern) = match inputs[..first].rfind('/') {
        Some(slash) => (&inputs[..slash.max(1)], &inputs[slash + 1..]),
        None => (".", inputs),
    };
    overrides.set("dataset.root", root, INPUTS);
    overrides.set("dataset.include", vec![pattern], INPUTS);
}

/// `--inputs` beside settings under which no file is read would be ignored in silence.
pub(super) fn refuse_unread(feed: Feed, config: &Config) -> Result<(), UserError> {
    let reason = match feed {
        Feed::Pages => return Ok(()),
        Feed::Pictures => "this model runs on random images",
        Feed::Prompts if config.get::<Option<u64>>("infer.seq_len")?.is_some() => "infer.seq_len selects random tokens",
        Feed::Prompts if !config.get::<String>("infer.prompt")?.contains("<text>") => {
            "infer.prompt has no <text> to replace with the file"
        }
        Feed::Prompts => return Ok(()),
    };
    Err(UserError::usage(format!("--inputs has no effect: {reason}")).hint("remove one of the two"))
}

/// The `infer` part in the form that suits the model.
pub(crate) fn infer(config: &Config, feed: Feed) -> Result<InferSettings, UserError> {
    Ok(match feed {
        Feed::Pages => InferSettings::Pages(config.get("infer")?, config.get("infer")?),
        Feed::Prompts => InferSettings::Prompts(config.get("infer")?, config.get("infer")?),
        Feed::Pictures => InferSettings::Pictures(config.get("infer")?),
    })
}

/// What a run is fed, before anything runs.
pub(crate) fn expected(arguments: &TargetArguments, resolution: &Resolution) -> Result<FedInputs, UserError> {
    let Resolution { config, model } = resolution;
    flow::profile::expected_inputs(&dataset(arguments, config)?, &infer(config, model.feed())?)
}

/// The dataset, or the file list that `inputs.manifest` names in its place.
pub(super) fn dataset(arguments: &TargetArguments, config: &Config) -> Result<DatasetSettings, UserError> {
    let mut settings: DatasetSettings = config.get("dataset")?;
    if let Some(inputs) = arguments.inputs.as_ref().filter(|inputs| inputs.to_str().is_none()) {
        settings.root = inputs.into();
    }
    if let Some(manifest) = config.get::<Option<PathBuf>>("inputs.manifest")? {
        settings.root = ".".into();
        settings.file_list = Some(manifest);
    }
    Ok(settings)
}
