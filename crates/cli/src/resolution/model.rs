//! Which model is meant, and the settings that suit it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use config::{Config, OverrideSource, Overrides};
use flow::model::{self, ConfigSource, LoadedModel, ModelSettings};
use flow::profile::Feed;
use flow::target::Engine;
use flow::torch::{self, TorchModel, TorchName};
use types::UserError;

use crate::target::TargetArguments;

/// A model for one of the engines.
pub(crate) enum EngineModel {
    /// Ours.
    Native(Box<LoadedModel>),
    /// PyTorch.
    Torch(Box<TorchModel>),
}

impl EngineModel {
    /// What it is fed.
    pub(crate) fn feed(&self) -> Feed {
        match self {
            Self::Native(model) => Feed::of(model),
            Self::Torch(model) => model.feed,
        }
    }

    /// The model as far as its cost can be modelled.
    pub(crate) fn known(self) -> Option<LoadedModel> {
        match self {
            Self::Native(model) => Some(*model),
            Self::Torch(model) => model.known.ok(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Native(model) => &model.id,
            Self::Torch(model) => &model.id,
        }
    }

    fn workload(&self) -> &'static str {
        match self {
            Self::Native(model) => model.default_workload(),
            Self::Torch(model) => match (&model.known, model.feed) {
                (Ok(known), _) => known.default_workload(),
                (Err(_), Feed::Pages) => DEEPSEEK_OCR_WORKLOAD,
                (Err(_), Feed::Prompts) => "llm-standard-v1",
                (Err(_), Feed::Pictures) => "image-standard-v1",
            },
        }
    }

    /// Chooses the groups that suit the model.
    pub(super) fn suit(&self, overrides: &mut Overrides) {
        const VERB: OverrideSource = OverrideSource::Verb;
        match self.feed() {
            Feed::Pages if self.id() == "deepseek-ocr-tiny" => {
                overrides.mount("model/deepseek_ocr/infer", "infer", "deepseek_ocr.tiny", VERB);
            }
            Feed::Pages => {}
            Feed::Prompts => {
                overrides.mount("model/decoder/infer", "infer", "decoder.default", VERB);
                overrides.choose("dataset", "prompts", VERB);
            }
            Feed::Pictures => {
                overrides.mount("model/dummy_shallow_resnet/infer", "infer", "dummy_shallow_resnet.default", VERB);
            }
        }
        let workload = self.workload();
        overrides.choose("workload", workload, VERB);
        // Only DeepSeek-OCR is known to cut pages into tiles.
        if let Self::Torch(model) = self
            && model.feed == Feed::Pages
            && (model.known.is_err() || workload != DEEPSEEK_OCR_WORKLOAD)
        {
            overrides.set("infer.crop_mode", false, VERB);
        }
    }
}

const DEEPSEEK_OCR_WORKLOAD: &str = "dsocr-standard-v1";

/// The model a configuration names; `named` is what `--model` says.
pub(crate) fn load(config: &Config, named: Option<&OsStr>) -> Result<LoadedModel, UserError> {
    let mut settings: ModelSettings = config.get("model")?;
    // A path that is no text has only its likeness in the configuration.
    if let Some(path) = named.filter(|named| named.to_str().is_none()) {
        settings.config_path = Some(path.into());
    }
    model::load(&settings)
}

/// The same for an engine.
pub(crate) fn load_for_engine(
    engine: Engine,
    config: &Config,
    named: Option<&OsStr>,
) -> Result<EngineModel, UserError> {
    Ok(match engine {
        Engine::Native => EngineModel::Native(Box::new(load(config, named)?)),
        Engine::Torch => {
            let target = config.get::<Option<String>>("model.target")?;
            EngineModel::Torch(Box::new(TorchModel::find(&config.get("model")?, target.as_deref())?))
        }
    })
}

/// The model that a command runs, as a flag or overrides say; only what it is called, where it cannot be modelled.
pub(crate) fn of_command(
    config: &Config,
    named: Option<&OsStr>,
    typed: &Overrides,
) -> Result<(Option<String>, Option<LoadedModel>), UserError> {
    let is_named = typed.iter().any(|one| one.mounts_at("model")) || typed.touches("model.name");
    let has_file = typed.touches("model.config_path") && config.get::<Option<PathBuf>>("model.config_path")?.is_some();
    match config.get::<Option<String>>("model.target")?.filter(|_| named.is_none() && !has_file) {
        Some(_) if is_named => Ok((Some(config.get("model.name")?), None)),
        Some(target) if typed.touches("model.target") => Ok((Some(target), None)),
        _ if named.is_some() || is_named || has_file => Ok((None, Some(load(config, named)?))),
        _ => Ok((None, None)),
    }
}

/// Settings of the model of that name or path, by itself.
pub(crate) fn settings(name: &OsStr) -> ModelSettings {
    let file = is_path(name).then(|| PathBuf::from(name));
    ModelSettings {
        name: name.to_string_lossy().into_owned(),
        config: if file.is_some() { ConfigSource::File } else { ConfigSource::Builtin },
        config_path: file,
        dtype: None,
        revision: None,
        notes: None,
    }
}

/// Names the model: by a path where it looks like one or is one, else as a built-in one.
pub(super) fn name(overrides: &mut Overrides, model: &OsStr, source: OverrideSource) {
    let path = Some(Path::new(model)).filter(|_| is_path(model));
    overrides.set("model.name", path.map_or_else(|| model.to_string_lossy().into_owned(), name_of_file), source);
    overrides.set("model.config", if path.is_some() { "file" } else { "builtin" }, source);
    overrides.set("model.config_path", path.map(Path::to_string_lossy), source);
}

/// `--model` and `--weights` as overrides; a small model where the user names none.
pub(super) fn overrides(
    engine: Engine,
    arguments: &TargetArguments,
    given: &Overrides,
) -> Result<Overrides, UserError> {
    let mut overrides = Overrides::default();
    let is_mounted = given.iter().any(|one| one.mounts_at("model"));
    let mut beside = None;
    match (&arguments.model, engine) {
        (None, _) if is_mounted => {}
        (None, Engine::Native) => {
            overrides.mount("model/deepseek_ocr/arch", "model", "deepseek_ocr.tiny", OverrideSource::Verb);
        }
        (None, Engine::Torch) => name(&mut overrides, "decoder-tiny".as_ref(), OverrideSource::Verb),
        (Some(model), Engine::Native) => name(&mut overrides, model, MODEL),
        (Some(model), Engine::Torch) => beside = name_for_torch(&mut overrides, model)?,
    }
    if let Some(weights) = &arguments.weights {
        overrides.set("model.weights", weights.as_str(), OverrideSource::Flag("--weights"));
    } else if let Some(folder) = beside.filter(|folder| torch::has_weights(folder)) {
        overrides.set("model.weights", folder.display().to_string(), MODEL);
    }
    Ok(overrides)
}

const MODEL: OverrideSource = OverrideSource::Flag("--model");

/// Names the model as PyTorch takes it, and gives back its folder, where it has one.
fn name_for_torch(overrides: &mut Overrides, model: &OsStr) -> Result<Option<PathBuf>, UserError> {
    let Some(model) = model.to_str() else {
        return Err(UserError::usage(format!("--model {}: the path is not UTF-8", model.display()))
            .hint("rename the folder; the torch engine needs a path in UTF-8"));
    };
    match TorchName::of(model) {
        TorchName::Name => name(overrides, model.as_ref(), MODEL),
        TorchName::Factory(factory) => {
            overrides.set("model.name", model, MODEL);
            overrides.set("model.target", factory, MODEL);
        }
        TorchName::Path(path) => {
            name(overrides, path.as_os_str(), MODEL);
            let here = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            let own = here.file_name().filter(|_| path.is_dir()).map(|name| name.to_string_lossy().into_owned());
            let shown = if Path::new(model) == path { own } else { Some(model.to_owned()) };
            if let Some(shown) = shown {
                overrides.set("model.name", shown, MODEL);
            }
            return Ok(Some(path).filter(|path| path.is_dir()));
        }
        TorchName::NotOnDisk(cache) => {
            return Err(UserError::usage(format!("model `{model}` not found in {}", cache.display()))
                .hint(format!("llm-perf downloads nothing; run `hf download {model}` first")));
        }
    }
    Ok(None)
}

/// Whether a model is named by a file: the text looks like a path or is one.
fn is_path(model: &OsStr) -> bool {
    let looks_like_path = |model: &str| model.contains('/') || model.ends_with(".json") || model.ends_with(".gguf");
    model.to_str().is_none_or(looks_like_path) || Path::new(model).exists()
}

/// What a model without a name is called: its folder where the file has the usual name, else the file.
fn name_of_file(path: &Path) -> String {
    // Links stay as they are: in a cache of models they point to files that are named after their contents.
    let mut path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if path.file_name().is_none() {
        path = std::fs::canonicalize(&path).unwrap_or(path);
    }
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let own = name(&path);
    // What stands behind another dot belongs to the name, as in `zamba2-2.7b`.
    let file = own.strip_suffix(".json").or(own.strip_suffix(".gguf")).unwrap_or(&own);
    let folder = path.parent().filter(|_| own == "config.json").map(name).filter(|folder| !folder.is_empty());
    folder.unwrap_or_else(|| file.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_without_a_name_is_called_after_its_folder_or_its_file() {
        for (path, named) in [
            ("models/zamba2-2.7b", "zamba2-2.7b"),
            ("models/zamba2-2.7b/config.json", "zamba2-2.7b"),
            ("models/qwen.json", "qwen"),
            ("models/qwen2.5-0.5b-Q4_K_M.gguf", "qwen2.5-0.5b-Q4_K_M"),
        ] {
            assert_eq!(name_of_file(Path::new(path)), named, "{path}");
        }
        let here = std::env::current_dir().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        for path in [".", "./", "config.json"] {
            assert_eq!(name_of_file(Path::new(path)), here, "{path}");
        }
    }
}
