//! Models: the built-in ones, any configuration file, and any GGUF file.

pub(crate) mod analytic;
pub(crate) mod gguf;
pub(crate) mod workload;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use collect::document;
pub use network::config::families;
use network::config::{ConfigFile, ModelConfig, without_infinities};
pub use network::{CacheLayout, PRESETS};
use network::{Model, Preset};
use serde::Deserialize;
use types::{Base, Caveat, CaveatKind, DType, Facts, UnknownDType, UserError};

/// The `model` part of a configuration, as far as building a network needs it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ModelSettings {
    /// Name in reports; names the built-in configuration when `config` is `builtin`.
    pub name: String,
    /// Where the sizes come from.
    pub config: ConfigSource,
    /// The file, when they come from one.
    pub config_path: Option<PathBuf>,
    /// Element type of weights and activations; as published when open.
    pub dtype: Option<String>,
    /// Revision of the published weights.
    pub revision: Option<String>,
    /// Free text for the reports.
    pub notes: Option<String>,
}

/// Where a model's sizes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigSource {
    /// A configuration carried in the program.
    Builtin,
    /// A `config.json` or a GGUF file.
    File,
}

/// A model that can be metered.
#[derive(Debug)]
pub struct LoadedModel {
    /// Name in reports.
    pub id: String,
    /// Where the configuration came from.
    pub config_path: String,
    /// Sizes.
    pub config: ModelConfig,
    /// The network.
    pub network: Model,
    /// Element type of weights and activations.
    pub dtype: DType,
    /// The element type that was asked for, where one was.
    pub wanted_dtype: Option<DType>,
    /// The element type that its file or the weights beside it are in, or that is assumed.
    pub published: DType,
    /// Whether nothing states the element type.
    pub dtype_is_assumed: bool,
    /// Sizes that the file leaves to the published class.
    pub assumed: BTreeMap<String, String>,
    /// Revision of the published weights, where known.
    pub revision: Option<String>,
    /// Free text for the reports.
    pub notes: String,
}

/// Loads the model these settings describe.
pub fn load(settings: &ModelSettings) -> Result<LoadedModel, UserError> {
    let (config_path, read) = match (settings.config, &settings.config_path) {
        (ConfigSource::Builtin, _) => {
            let preset = Preset::find(&settings.name).ok_or_else(|| {
                let meant = nearest_preset(&settings.name).map(|nearest| format!("did you mean `{nearest}`? "));
                UserError::usage(format!("unknown model `{}`", settings.name)).hint(format!(
                    "{}`llm-perf models` lists all; --model also takes a config.json, a folder or a GGUF file",
                    meant.unwrap_or_default()
                ))
            })?;
            (format!("builtin:{}", preset.name), ReadModel::of(preset.config()?))
        }
        (ConfigSource::File, None) => {
            return Err(UserError::usage("model.config is `file`, but model.config_path is not set")
                .hint("set it with model.config_path=FILE, or use --model FILE"));
        }
        (ConfigSource::File, Some(path)) => (path.display().to_string(), read(path)?),
    };
    let ReadModel { config, dtype: stated, assumed } = read;
    let wanted_dtype = settings.dtype.as_deref().map(element_type).transpose()?;
    let published = stated.unwrap_or_else(|| config.dtype());
    let network = Model::new(&config);
    Ok(LoadedModel {
        id: settings.name.clone(),
        config_path,
        config,
        network,
        dtype: wanted_dtype.unwrap_or(published),
        published,
        wanted_dtype,
        dtype_is_assumed: wanted_dtype.is_none() && stated.is_none(),
        assumed,
        revision: settings.revision.clone(),
        notes: settings.notes.clone().unwrap_or_default(),
    })
}

/// The element type that `model.dtype` names.
pub(crate) fn element_type(name: &str) -> Result<DType, UserError> {
    name.parse().map_err(|error: UnknownDType| UserError::usage(format!("model.dtype: {error}")))
}

fn nearest_preset(name: &str) -> Option<&'static str> {
    types::nearest(name, PRESETS.iter().map(|preset| preset.name))
}

/// What reports say of a model in addition to its network.
#[derive(Clone, Debug)]
pub(crate) struct AboutModel<'a> {
    pub(crate) id: &'a str,
    pub(crate) config_path: &'a str,
    pub(crate) config: &'a ModelConfig,
    /// Element type that its weights are published in.
    pub(crate) dtype: DType,
    pub(crate) revision: Option<&'a str>,
    pub(crate) notes: &'a str,
    /// What a reader must know first.
    pub(crate) caveats: Vec<Caveat>,
}

/// That only a part of a model is modelled.
pub(crate) fn partly_modelled(config: &ModelConfig) -> Option<Caveat> {
    let whole = config.decoder()?.part_of.as_deref()?;
    let left_out = &config.decoder()?.left_out;
    let decoder = Model::new(config).blueprint().parameters_under("");
    // Shares are known only where all parts are.
    let parameters = left_out.iter().map(|part| part.parameters).chain([Some(decoder)]);
    let whole_parameters = parameters.sum::<Option<u64>>().map(|sum| sum as f64);
    let parts = left_out.iter().map(|part| {
        let share = part.parameters.zip(whole_parameters).map(|(left, whole)| left as f64 / whole);
        let facts = Facts::new().with("part", &part.field).with_known("parameters", part.parameters);
        facts.with_share("share", share, Base::Itself)
    });
    let facts = Facts::new().with("whole", whole).with("parts", parts.collect::<Vec<_>>());
    Some(Caveat::new(CaveatKind::PartlyModelled, facts))
}

impl LoadedModel {
    /// What a reader must know of it: that its element type is assumed, unless a trace shows it, or that a part is left out.
    pub(crate) fn caveats(&self, shown: Option<DType>) -> Vec<Caveat> {
        let is_assumed = self.dtype_is_assumed && shown.is_none();
        let facts = || Facts::new().with("dtype", self.dtype.to_string());
        let assumed = is_assumed.then(|| Caveat::new(CaveatKind::AssumedDtype, facts()));
        let sizes = self.assumed.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>();
        let of_class = |sizes: String| Caveat::new(CaveatKind::ClassDefaults, Facts::new().with("sizes", sizes));
        let sizes = (!sizes.is_empty()).then(|| of_class(sizes.join(", ")));
        partly_modelled(&self.config).into_iter().chain(assumed).chain(sizes).collect()
    }

    /// What reports say of it.
    pub(crate) fn about(&self) -> AboutModel<'_> {
        AboutModel {
            id: &self.id,
            config_path: &self.config_path,
            config: &self.config,
            dtype: self.published,
            revision: self.revision.as_deref(),
            notes: &self.notes,
            caveats: self.caveats(None),
        }
    }

    /// The workload profile that suits it when nobody names one.
    pub fn default_workload(&self) -> &'static str {
        match &self.network {
            Model::DeepseekOcr(_) => "dsocr-standard-v1",
            Model::VisionLanguage(_) => "vlm-standard-v1",
            Model::Language(_) | Model::T5(_) => "llm-standard-v1",
            Model::EncoderDecoder(model) if model.hears() => "audio-standard-v1",
            Model::EncoderDecoder(_) => "llm-standard-v1",
            Model::Encoder(_) | Model::ModernEncoder(_) => "encoder-standard-v1",
            Model::ShallowResnet(_) => "image-standard-v1",
        }
    }
}

/// Longest configuration that is read; real ones are a few kilobytes.
const LARGEST_CONFIG: u64 = 16 << 20;

/// A name of the hub, where nothing is looked for.
fn not_here(name: &str) -> UserError {
    let error = UserError::usage(format!("model `{name}` not found on this machine"));
    let error = match nearest_preset(name.rsplit('/').next().unwrap_or_default()) {
        Some(nearest) => error.hint(format!("did you mean the built-in model `{nearest}`?")),
        None => error,
    };
    error
        .hint(
            "--model takes a built-in name, or a config.json, a folder or a GGUF file on this machine; nothing is \
             downloaded",
        )
        .hint(format!(
            "get the config with `hf download {name} config.json --local-dir DIR`, then use --model DIR/config.json"
        ))
}

/// A configuration as it was read.
#[derive(Debug)]
struct ReadModel {
    config: ModelConfig,
    /// The element type, where the file or the weights beside it state one.
    dtype: Option<DType>,
    /// Sizes that the file leaves to the published class.
    assumed: BTreeMap<String, String>,
}

impl ReadModel {
    /// One that says everything.
    fn of(config: ModelConfig) -> Self {
        Self { dtype: Some(config.dtype()), config, assumed: BTreeMap::new() }
    }
}

fn read(path: &Path) -> Result<ReadModel, UserError> {
    if let Some(name) = hub_id(path) {
        return Err(not_here(name));
    }
    let file = if path.is_dir() { path.join("config.json") } else { path.to_owned() };
    if path.is_dir() && !file.exists() {
        return Err(UserError::usage(format!("{} has no config.json", path.display())).hint(match gguf_inside(path) {
            Some(file) => format!("name the GGUF file: --model {}", file.display()),
            None => "name a config.json, the folder of a Hugging Face model, or a GGUF file".to_owned(),
        }));
    }
    if gguf::is_file(&file) {
        return Ok(ReadModel::of(gguf::read(&file)?));
    }
    let unreadable = UserError::unreadable(path);
    let bytes = document::open(&file).and_then(|opened| document::read_from(opened, LARGEST_CONFIG));
    let text =
        String::from_utf8(bytes.map_err(&unreadable)?).map_err(|error| unreadable(std::io::Error::other(error)))?;
    let text = with_quantisation(&file, &text).unwrap_or(text);
    let ConfigFile { config, assumed } = ConfigFile::from_json(&file.display().to_string(), &text)?;
    let states_dtype =
        serde_json::from_slice(without_infinities(&text).as_bytes()).is_ok_and(|config| states_dtype(&config));
    let dtype = if states_dtype { Some(config.dtype()) } else { weights_dtype(&file) };
    Ok(ReadModel { config, dtype, assumed })
}

/// Longest header of a safetensors file that is read; real ones are a few megabytes.
const LONGEST_HEADER: u64 = 64 << 20;

/// The floating-point type most elements of the weights beside a configuration are in, by the header of the first file.
/// Adapters are in a type of their own.
fn weights_dtype(config: &Path) -> Option<DType> {
    let folder = config.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let is_adapter = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("adapter_"));
    let is_weights = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "safetensors") && path.is_file();
    let mut file = document::open(&entries.filter(is_weights).filter(|path| !is_adapter(path)).min()?).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = Some(u64::from_le_bytes(length)).filter(|length| *length <= LONGEST_HEADER)?;
    let header: serde_json::Value =
        serde_json::from_slice(&document::read_from(file.take(length), length).ok()?).ok()?;
    let mut elements = BTreeMap::new();
    for tensor in header.as_object()?.values() {
        let dtype = match tensor.get("dtype").and_then(serde_json::Value::as_str) {
            Some("BF16") => DType::Bf16,
            Some("F16") => DType::Fp16,
            Some("F32") => DType::Fp32,
            _ => continue,
        };
        let dims = tensor.get("shape")?.as_array()?.iter().map(|dim| dim.as_u64());
        let count = dims.collect::<Option<Vec<_>>>()?.into_iter().fold(1, u64::saturating_mul);
        let sum: &mut u64 = elements.entry(dtype).or_default();
        *sum = sum.saturating_add(count);
    }
    elements.into_iter().max_by_key(|(_, count)| *count).map(|(dtype, _)| dtype)
}

/// The path as text where it is not there and reads as `owner/name`, which is how the hub names models.
fn hub_id(path: &Path) -> Option<&str> {
    let name = path.to_str().filter(|_| !path.exists())?;
    let is_part = |part: &str| !part.is_empty() && !part.starts_with(['.', '~']);
    let (owner, model) = name.split_once('/')?;
    let is_file = [".json", ".gguf"].iter().any(|ending| model.ends_with(ending));
    let is_folder = Path::new(owner).is_dir();
    (is_part(owner) && is_part(model) && !model.contains('/') && !is_file && !is_folder).then_some(name)
}

/// The first GGUF file of a folder, by name.
fn gguf_inside(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "gguf")).min()
}

/// Whether a configuration, or one of the parts it is made of, names an element type. What it is quantised to is another matter.
fn states_dtype(config: &serde_json::Value) -> bool {
    let Some(fields) = config.as_object() else { return false };
    fields.iter().any(|(name, value)| match name.as_str() {
        "dtype" | "torch_dtype" => value.is_string(),
        "quantization_config" => false,
        _ => states_dtype(value),
    })
}

/// The configuration with what `hf_quant_config.json` beside it says: ModelOpt writes that file instead of a
/// `quantization_config`. Absent where there is no such file, or nothing to add.
fn with_quantisation(file: &Path, text: &str) -> Option<String> {
    let beside = document::read_text(&file.with_file_name("hf_quant_config.json")).ok()?;
    let mut config: serde_json::Value = serde_json::from_slice(without_infinities(text).as_bytes()).ok()?;
    let mut stated: serde_json::Value = serde_json::from_slice(beside.as_bytes()).ok()?;
    stated.as_object_mut()?.insert("quant_method".to_owned(), "modelopt".into());
    let config_fields = config.as_object_mut()?;
    if config_fields.contains_key("quantization_config") {
        return None;
    }
    config_fields.insert("quantization_config".to_owned(), stated);
    Some(config.to_string())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_file_beside_the_configuration_says_how_the_checkpoint_is_quantised() {
        let folder = tempfile::tempdir().unwrap();
        let preset = Preset::find("llama-3-8b").unwrap();
        std::fs::write(folder.path().join("config.json"), preset.config).unwrap();
        assert!(read(folder.path()).unwrap().config.quantisation().is_none());
        let beside =
            r#"{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}"#;
        std::fs::write(folder.path().join("hf_quant_config.json"), beside).unwrap();
        let ReadModel { config: quantised, dtype, .. } = read(folder.path()).unwrap();
        assert_eq!(dtype, Some(DType::Bf16));
        let silent = r#"{"torch_dtype": null, "quantization_config": {"dtype": "int8"}, "text_config": {}}"#;
        assert!(!super::states_dtype(&serde_json::from_str(silent).unwrap()));
        let quantisation = quantised.quantisation().unwrap();
        assert_eq!((quantisation.method.as_str(), quantisation.kv), ("modelopt", Some(DType::Fp8)));
        let infinite = preset.config.replacen('{', r#"{"time_step_limit": [0.0, Infinity],"#, 1);
        std::fs::write(folder.path().join("config.json"), infinite).unwrap();
        assert_eq!(read(folder.path()).unwrap().config, quantised);
    }

    #[test]
    fn a_missing_element_type_is_that_of_the_weights_beside_the_file_or_assumed_and_said() {
        let folder = tempfile::tempdir().unwrap();
        let silent = r#"{"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": false}"#;
        std::fs::write(folder.path().join("config.json"), silent).unwrap();
        // Two elements in fp32, and sixteen in another type.
        let weights = |dtype: &str| {
            let header = format!(
                r#"{{"__metadata__": {{"format": "pt"}}, "a": {{"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}},
                    "b": {{"dtype": "{dtype}", "shape": [4, 4], "data_offsets": [8, 40]}}}}"#
            );
            [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat()
        };
        let load = || {
            let config_path = Some(folder.path().to_owned());
            let name = "silent".to_owned();
            let config = ConfigSource::File;
            load(&ModelSettings { name, config, config_path, dtype: None, revision: None, notes: None }).unwrap()
        };
        let assumed = load();
        assert_eq!((assumed.dtype, assumed.about().dtype), (DType::Bf16, DType::Bf16));
        // An adapter's type is its own, and a pipe is never waited for.
        std::fs::write(folder.path().join("adapter_model.safetensors"), weights("F32")).unwrap();
        assert!(Command::new("mkfifo").arg(folder.path().join("a.safetensors")).status().unwrap().success());
        assert!(load().dtype_is_assumed);
        let kinds: Vec<CaveatKind> = assumed.caveats(None).iter().map(|caveat| caveat.kind).collect();
        assert_eq!(kinds, [CaveatKind::AssumedDtype, CaveatKind::ClassDefaults]);
        // The vocabulary of Qwen2's class.
        assert_eq!(assumed.assumed.get("vocab_size").map(String::as_str), Some("151936"));
        std::fs::write(folder.path().join("model.safetensors"), weights("F16")).unwrap();
        let shown = load();
        assert_eq!((shown.dtype, shown.about().dtype, shown.dtype_is_assumed), (DType::Fp16, DType::Fp16, false));
        // What is no header says nothing.
        std::fs::write(folder.path().join("model.safetensors"), [255; 9]).unwrap();
        assert_eq!(load().dtype, DType::Bf16);
    }
}
