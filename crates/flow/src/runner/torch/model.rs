//! Which model PyTorch is to run, and what is known of it here.

use std::path::{Path, PathBuf};

use collect::tool::torch::{ModelLocation, ModelRequest, ResnetSizes, TransformerModel, locate};
use network::Preset;
use network::config::{ModelConfig, without_infinities};
use types::UserError;

use super::TorchSettings;
use crate::pipeline::model::gguf;
use crate::pipeline::model::{self, ConfigSource, LoadedModel, ModelSettings};
use crate::runner::error::bad_config;
use crate::runner::request::WeightSettings;
use crate::runner::settings::Feed;

/// A model for PyTorch.
#[derive(Debug)]
pub struct TorchModel {
    /// Name in reports.
    pub id: String,
    /// Where it comes from.
    pub source: TorchSource,
    /// What it is fed.
    pub feed: Feed,
    /// Its tokens; absent where it takes none, or does not say.
    pub vocabulary: Option<u64>,
    /// The same model as the meter knows it, or why it does not.
    pub known: Result<LoadedModel, String>,
}

/// Where a model for PyTorch comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TorchSource {
    /// A config.json on disk, or a folder with one.
    Path(PathBuf),
    /// A config.json that ships with the program.
    Text(&'static str),
    /// The dummy ResNet.
    Resnet(ResnetSizes),
    /// `module:factory` of the user's.
    Factory(String),
}

/// What `--model` means to PyTorch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TorchName {
    /// `module:factory`.
    Factory(String),
    /// A file or folder; of a model in the hub's cache, its snapshot.
    Path(PathBuf),
    /// `owner/name` that is not on disk, and the cache that was searched.
    NotOnDisk(PathBuf),
    /// The name of a built-in model, or nothing known.
    Name,
}

impl TorchName {
    /// Tells what a name means.
    pub fn of(name: &str) -> Self {
        if is_factory(name) {
            return Self::Factory(name.to_owned());
        }
        match locate(name) {
            ModelLocation::Path(path) | ModelLocation::Cached(path) => Self::Path(path),
            ModelLocation::NotCached(cache) => Self::NotOnDisk(cache),
            ModelLocation::Other => Self::Name,
        }
    }
}

/// `package.module:attribute.of.it`
fn is_factory(text: &str) -> bool {
    let name = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    match text.split_once(':') {
        Some((module, attribute)) => module.split('.').chain(attribute.split('.')).all(name),
        None => false,
    }
}

/// Whether a folder holds weights.
pub fn has_weights(folder: &Path) -> bool {
    let weights =
        |name: &str| name.ends_with(".safetensors") || (name.ends_with(".bin") && name.starts_with("pytorch_model"));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| weights(&name))
}

impl TorchModel {
    /// The model these settings describe; `target` names a factory.
    pub fn find(settings: &ModelSettings, target: Option<&str>) -> Result<Self, UserError> {
        if let Some(factory) = target {
            // What a factory builds is no built-in model, whichever the configuration starts from.
            let is_built_in = settings.config == ConfigSource::Builtin && Preset::find(&settings.name).is_some();
            return Ok(Self {
                id: if is_built_in { factory.to_owned() } else { settings.name.clone() },
                source: TorchSource::Factory(factory.to_owned()),
                feed: Feed::Prompts,
                vocabulary: None,
                known: Err("the analytic model needs a config.json, and a factory has none".to_owned()),
            });
        }
        let known = model::load(settings);
        let source = match (&settings.config, &settings.config_path, &known) {
            (ConfigSource::Builtin, _, Ok(model)) => match &model.config {
                ModelConfig::ShallowResnet(sizes) => TorchSource::Resnet(ResnetSizes {
                    in_channels: sizes.in_channels,
                    channels: sizes.channels,
                    blocks: sizes.blocks,
                    classes: sizes.classes,
                }),
                _ => TorchSource::Text(Preset::find(&settings.name).map_or("", |preset| preset.config)),
            },
            (ConfigSource::File, Some(path), _) => {
                let file = if path.is_dir() { path.join("config.json") } else { path.clone() };
                if path.is_dir() && !file.is_file() {
                    return Err(UserError::usage(format!("{} has no config.json", path.display()))
                        .hint("pass the folder of a Hugging Face model, or a config.json"));
                }
                if gguf::is_file(&file) {
                    let reason =
                        "running on PyTorch needs a config.json; `analyze`, `models` and `import` accept GGUF files";
                    return Err(bad_config(&file, reason));
                }
                TorchSource::Path(path.clone())
            }
            _ => return Err(known.map_or_else(UserError::from, |_| UserError::usage("no model given"))),
        };
        let (feed, vocabulary) = match (&known, &source) {
            (Ok(model), _) => (Feed::of(model), model.config.vocabulary()),
            (Err(_), TorchSource::Path(path)) => look(path)?,
            (Err(_), _) => (Feed::Prompts, None),
        };
        let known = known.map_err(|error| error.to_string());
        Ok(Self { id: settings.name.clone(), source, feed, vocabulary, known })
    }

    /// Folder with a tokenizer of its own.
    pub(crate) fn tokenizer_folder(&self) -> Option<&Path> {
        let TorchSource::Path(path) = &self.source else { return None };
        let folder = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
        folder.filter(|folder| folder.join("tokenizer.json").is_file())
    }

    /// What the driver builds. A config that ships with the program is written to `scratch`.
    pub(crate) fn given(
        &self,
        weights: &WeightSettings,
        settings: &TorchSettings,
        scratch: &Path,
    ) -> Result<ModelRequest, UserError> {
        let dtype = settings.dtype.clone();
        let transformers = |path: PathBuf| {
            ModelRequest::Transformers(TransformerModel {
                path,
                weights: weights.weights.clone(),
                seed: weights.seed,
                dtype: dtype.clone(),
                trust_remote_code: settings.trust_remote_code,
                attention: settings.attention.clone(),
            })
        };
        Ok(match &self.source {
            TorchSource::Path(path) => transformers(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
            TorchSource::Text(text) => {
                let file = scratch.join("config.json");
                std::fs::write(&file, text).map_err(UserError::unreadable(&file))?;
                transformers(scratch.to_owned())
            }
            TorchSource::Resnet(sizes) => ModelRequest::Resnet { sizes: *sizes, seed: weights.seed, dtype },
            TorchSource::Factory(factory) => ModelRequest::Factory {
                factory: factory.clone(),
                search: std::env::current_dir().into_iter().collect(),
                dtype,
            },
        })
    }
}

/// What a config.json says of a model that the meter does not know.
fn look(path: &Path) -> Result<(Feed, Option<u64>), UserError> {
    let file = if path.is_dir() { path.join("config.json") } else { path.to_owned() };
    let text = collect::document::read_text(&file).map_err(UserError::unreadable(&file))?;
    let config: serde_json::Value = serde_json::from_slice(without_infinities(&text).as_bytes())
        .map_err(|reason| bad_config(&file, &reason.to_string()))?;
    let part = |name: &str| config.get(name).and_then(|part| part.get("vocab_size"));
    let vocabulary = config.get("vocab_size").or_else(|| part("text_config")).or_else(|| part("language_config"));
    let feed = if config.get("vision_config").is_some() { Feed::Pages } else { Feed::Prompts };
    Ok((feed, vocabulary.and_then(serde_json::Value::as_u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factory_is_told_from_a_path_and_a_name() {
        for yes in ["my_models:build", "pkg.models:Tiny.make", "_m:f"] {
            assert_eq!(TorchName::of(yes), TorchName::Factory(yes.to_owned()));
        }
        for no in ["llama-3-8b", "a:b:c", "1x:y", "C:\\models", "pkg.models:", ":f"] {
            assert_eq!(TorchName::of(no), TorchName::Name, "{no}");
        }
        assert!(matches!(TorchName::of("nobody-owns/this-name"), TorchName::NotOnDisk(_)));
    }

    #[test]
    fn a_folder_has_weights_when_a_weights_file_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), "{}").unwrap();
        assert!(!has_weights(folder.path()));
        std::fs::write(folder.path().join("model.safetensors"), "").unwrap();
        assert!(has_weights(folder.path()));
    }

    #[test]
    fn a_config_nobody_knows_still_says_what_the_model_is_fed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        std::fs::write(&file, r#"{"vision_config": {}, "text_config": {"vocab_size": 77}}"#).unwrap();
        assert_eq!(look(folder.path()).unwrap(), (Feed::Pages, Some(77)));
        std::fs::write(&file, r#"{"time_step_limit": [0.0, Infinity], "vocab_size": 78}"#).unwrap();
        assert_eq!(look(&file).unwrap(), (Feed::Prompts, Some(78)));
        std::fs::write(&file, "{").unwrap();
        assert!(look(&file).unwrap_err().to_string().contains("config.json"));
    }
}
