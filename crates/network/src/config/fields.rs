//! Fields of a `config.json`, read with the field's whole path in every error.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Value};
use types::{DType, Exit, Failure};

use super::class_defaults::ClassDefaults;

/// Sizes past this are mistakes, and keep products of sizes inside 64 bits.
const LARGEST_SIZE: u64 = 1 << 32;

/// Most layers that are taken seriously: a network is built, metered and documented layer by layer, each of which takes 0.2 MB. The
/// deepest that was published has 1,000.
pub(crate) const MOST_LAYERS: u64 = 1_024;

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// Not JSON.
    #[error("not valid JSON: {message}")]
    Syntax {
        /// Line, from one.
        line: usize,
        /// Column, from one.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// Nothing.
    #[error("the file is empty")]
    Empty,
    /// JSON, but no object.
    #[error("expected a JSON object at the top level")]
    NotAnObject,
    /// A network that is not known here.
    #[error("architecture `{asked}` is not supported{}{}", like(*nearest), needs(missing))]
    UnknownArchitecture {
        /// What the file names.
        asked: String,
        /// A known one that it resembles.
        nearest: Option<&'static str>,
        /// What its fields say would have to be added for it.
        missing: Vec<String>,
    },
    /// A field that must be there.
    #[error("field `{field}` is missing; expected {expected}")]
    Missing {
        /// Its path.
        field: String,
        /// What should stand there.
        expected: &'static str,
    },
    /// A field of the wrong kind or out of range.
    #[error("field `{field}` is {found}; expected {expected}")]
    Invalid {
        /// Its path.
        field: String,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
}

fn like(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; the nearest is `{nearest}`")).unwrap_or_default()
}

fn needs(missing: &[String]) -> String {
    if missing.is_empty() { String::new() } else { format!("; it would need at least {}", missing.join(", ")) }
}

/// What is wrong with a configuration, and in which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// The problem.
    pub problem: ConfigProblem,
}

impl Failure for ConfigError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hint(&self) -> Option<String> {
        const FAMILIES: &str = "`llm-perf models` lists the supported families";
        match &self.problem {
            ConfigProblem::Empty => Some("copy it again".to_owned()),
            ConfigProblem::Syntax { message, .. } if message.starts_with("EOF") => {
                Some("the file may be truncated; copy it again".to_owned())
            }
            ConfigProblem::UnknownArchitecture { nearest: None, .. } => Some(FAMILIES.to_owned()),
            ConfigProblem::UnknownArchitecture { nearest: Some(nearest), .. } => Some(format!(
                "to model it as the nearest, set `architectures` to [\"{nearest}\"] in a copy of the file; {FAMILIES}"
            )),
            _ => None,
        }
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.problem {
            ConfigProblem::Syntax { line, column, .. } => write!(f, "{}:{line}:{column}: {}", self.file, self.problem),
            problem => write!(f, "{}: {problem}", self.file),
        }
    }
}

impl std::error::Error for ConfigError {}

/// An object of the file and the path to it.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: String,
    /// What the published class takes where the file does not say.
    class: Option<&'static ClassDefaults>,
    kind: Option<String>,
    /// What was left to a class, with its path.
    assumed: Rc<RefCell<BTreeMap<String, String>>>,
}

const TIED: &str = "tie_word_embeddings";

/// Fields that change no size and no count: nobody needs to be told of their defaults.
const NO_SIZES: &[&str] = &[
    "activation",
    "activation_function",
    "attn_temperature_tuning",
    "classifier_activation",
    "classifier_pooling",
    "decoder_start_token_id",
    "floor_scale",
    "hidden_act",
    "hidden_activation",
    "is_decoder",
    "n_group",
    "no_rope_layer_interval",
    "norm_topk_prob",
    "projector_hidden_act",
    "topk_group",
];

/// Where a value is from.
enum Found<'a> {
    /// The file, which may say that there is none.
    File(Option<&'a Value>),
    /// The class.
    Class(&'a Value),
    /// The class has such a field, and computes it or does without.
    Open,
    /// Nowhere.
    Absent,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(object: &'a Map<String, Value>) -> Self {
        let kind = object.get("model_type").and_then(Value::as_str).map(str::to_owned);
        let class = kind.as_deref().and_then(ClassDefaults::of);
        Self { object, path: String::new(), class, kind, assumed: Rc::default() }
    }

    /// The object under `name`.
    pub(crate) fn object(&self, name: &str) -> Result<Fields<'a>, ConfigProblem> {
        match self.get(name) {
            Some(Value::Object(object)) => {
                // Some files call a part by the name of the whole.
                let stated = object.get("model_type").and_then(Value::as_str).filter(|kind| self.kind() != Some(kind));
                let kind = stated.or_else(|| self.class?.part(name)).map(str::to_owned);
                let class = kind.as_deref().and_then(ClassDefaults::of);
                Ok(Fields { object, path: self.field(name), class, kind, assumed: Rc::clone(&self.assumed) })
            }
            Some(other) => Err(self.invalid(name, other, "an object")),
            None => Err(self.missing(name, "an object")),
        }
    }

    /// The same fields, with the defaults of a class behind them unless the file names a class that is known.
    pub(crate) fn of_class(self, kind: &str) -> Self {
        let class = self.class.or_else(|| ClassDefaults::of(kind));
        Self { class, ..self }
    }

    /// The same fields read as those of a part, which older files do not set apart.
    pub(crate) fn as_part(&self, name: &str) -> Self {
        let kind = self.class.and_then(|class| class.part(name));
        let class = kind.and_then(ClassDefaults::of).or(self.class);
        Self { class, ..self.clone() }
    }

    /// Sizes and switches that the file leaves to its class, so far.
    pub(crate) fn assumed(&self) -> BTreeMap<String, String> {
        self.assumed.borrow().clone()
    }

    /// The `model_type` of the file, or that of the part of the class around it.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// That the file states how wide a model is, itself or in a part: a class alone is no model.
    pub(crate) fn states_a_width(&self) -> Result<(), ConfigProblem> {
        const WIDTHS: &[&str] = &["hidden_size", "d_model", "n_embd", "channels"];
        let own = self.class.into_iter().flat_map(|class| class.names_of("hidden_size"));
        let is_part =
            |name: &str| name.ends_with("_config") && !matches!(name, "quantization_config" | "generation_config");
        let has_parts = || self.names().any(|name| is_part(name) && matches!(self.optional_object(name), Ok(Some(_))));
        if WIDTHS.iter().copied().chain(own).any(|name| self.states(name)) || has_parts() {
            return Ok(());
        }
        Err(self.missing("hidden_size", "a positive integer: the class alone is not a model"))
    }

    /// The object under `name`, where there is one.
    pub(crate) fn optional_object(&self, name: &str) -> Result<Option<Fields<'a>>, ConfigProblem> {
        self.get(name).map(|_| self.object(name)).transpose()
    }

    /// The objects in the list under `name`.
    pub(crate) fn objects(&self, name: &str) -> Result<Vec<Fields<'a>>, ConfigProblem> {
        let value = self.get(name).ok_or_else(|| self.missing(name, "a list of objects"))?;
        let list = value.as_array().ok_or_else(|| self.invalid(name, value, "a list of objects"))?;
        let each = |(at, entry): (usize, &'a Value)| {
            let object = entry.as_object().ok_or_else(|| self.invalid(name, entry, "an object"))?;
            let path = format!("{}[{at}]", self.field(name));
            Ok(Fields { object, path, class: None, kind: None, assumed: Rc::clone(&self.assumed) })
        };
        list.iter().enumerate().map(each).collect()
    }

    /// Names of all fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.object.keys().map(String::as_str)
    }

    /// Whether `name` is true, or text: tools write either for a choice that is made.
    pub(crate) fn says_yes(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Bool(true) | Value::String(_)))
    }

    /// Whether `name` is text.
    pub(crate) fn is_text(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::String(_)))
    }

    /// Names of all fields that say something other than no.
    pub(crate) fn stated(&self) -> impl Iterator<Item = &'a str> {
        let says = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
        self.object.iter().filter(move |(_, value)| says(value)).map(|(name, _)| name.as_str())
    }

    /// Whether the file says anything of `name`, be it `null`.
    pub(crate) fn states(&self, name: &str) -> bool {
        self.object.contains_key(name)
    }

    /// A size: a positive integer.
    pub(crate) fn size(&self, name: &str) -> Result<u64, ConfigProblem> {
        let value = self.get(name).ok_or_else(|| self.missing(name, "a positive integer"))?;
        self.as_size(name, value)
    }

    /// A size that may be absent.
    pub(crate) fn optional_size(&self, name: &str) -> Result<Option<u64>, ConfigProblem> {
        self.get(name).map(|value| self.as_size(name, value)).transpose()
    }

    /// A size that may be absent, which is said where the file does not say so.
    pub(crate) fn size_or_none(&self, name: &str) -> Result<Option<u64>, ConfigProblem> {
        let size = self.optional_size(name)?;
        if size.is_none() {
            self.left_open(name, "none");
        }
        Ok(size)
    }

    /// A size under the first of these names that file or class have: names of different sizes, of which one stands in.
    pub(crate) fn first_size_of(&self, names: &[&str]) -> Result<u64, ConfigProblem> {
        let known =
            names.iter().find(|name| !matches!(self.look(name), Found::Open | Found::Absent | Found::File(None)));
        let name = known.or(names.last()).copied().unwrap_or_default();
        self.uniform_size(name)?.ok_or_else(|| self.missing(name, "a positive integer"))
    }

    /// A size under the first of these spellings that the file states, or else that the class has.
    pub(crate) fn size_of(&self, names: &[&str]) -> Result<u64, ConfigProblem> {
        let missing = || self.missing(names.last().copied().unwrap_or_default(), "a positive integer");
        self.optional_size_of(names)?.ok_or_else(missing)
    }

    /// The same, where any is there.
    pub(crate) fn optional_size_of(&self, names: &[&str]) -> Result<Option<u64>, ConfigProblem> {
        self.spelling(names).map_or(Ok(None), |name| self.uniform_size(name))
    }

    /// A size, or a list of one for each layer that are all the same.
    pub(crate) fn uniform_size(&self, name: &str) -> Result<Option<u64>, ConfigProblem> {
        let Some(Value::Array(list)) = self.get(name) else { return self.optional_size(name) };
        match list.split_first() {
            Some((first, rest)) if rest.iter().all(|other| other == first) => self.as_size(name, first).map(Some),
            _ => Err(self.wrong(name, "a list of different sizes", "the same for every layer")),
        }
    }

    /// A size that has a published default.
    pub(crate) fn size_or(&self, name: &str, default: u64) -> Result<u64, ConfigProblem> {
        self.get(name).map_or_else(|| Ok(self.left_open(name, default)), |value| self.as_size(name, value))
    }

    /// That a size is one a network may have, so that products of sizes stay inside 64 bits.
    pub(crate) fn at_most(&self, name: &str, found: u64, most: u64) -> Result<u64, ConfigProblem> {
        if found <= most { Ok(found) } else { Err(self.wrong(name, found, format!("at most {most}"))) }
    }

    /// A number of layers.
    pub(crate) fn layers(&self, name: &str) -> Result<u64, ConfigProblem> {
        self.at_most(name, self.size(name)?, MOST_LAYERS)
    }

    /// A count that may be zero.
    pub(crate) fn count_or(&self, name: &str, default: u64) -> Result<u64, ConfigProblem> {
        let Some(value) = self.get(name) else { return Ok(self.left_open(name, default)) };
        let count = value.as_u64().filter(|count| *count <= LARGEST_SIZE);
        count.ok_or_else(|| self.invalid(name, value, "a non-negative integer"))
    }

    /// A positive number.
    pub(crate) fn number(&self, name: &str) -> Result<f64, ConfigProblem> {
        self.optional_number(name)?.ok_or_else(|| self.missing(name, "a positive number"))
    }

    /// A positive number that has a published default.
    pub(crate) fn number_or(&self, name: &str, default: f64) -> Result<f64, ConfigProblem> {
        Ok(self.optional_number(name)?.unwrap_or(default))
    }

    /// A positive number that may be absent.
    pub(crate) fn optional_number(&self, name: &str) -> Result<Option<f64>, ConfigProblem> {
        let positive = |value: &Value| value.as_f64().filter(|number| *number > 0.0 && number.is_finite());
        self.get(name)
            .map(|value| positive(value).ok_or_else(|| self.invalid(name, value, "a positive number")))
            .transpose()
    }

    /// An integer of either sign that has a published default.
    pub(crate) fn integer_or(&self, name: &str, default: i64) -> Result<i64, ConfigProblem> {
        self.get(name)
            .map_or(Ok(default), |value| value.as_i64().ok_or_else(|| self.invalid(name, value, "an integer")))
    }

    /// A truth value that has a published default.
    pub(crate) fn flag_or(&self, name: &str, default: bool) -> Result<bool, ConfigProblem> {
        self.get(name).map_or(Ok(default), |value| self.as_flag(name, value))
    }

    /// Whether the head shares the table of embeddings, with what the family does where neither file nor class says.
    pub(crate) fn ties(&self, default: bool) -> Result<bool, ConfigProblem> {
        let tied = self.flag_or(TIED, default)?;
        if matches!(self.look(TIED), Found::Open | Found::Absent) {
            self.assume(TIED, &tied);
        }
        Ok(tied)
    }

    /// Whether the head of this decoder, a part of what is `around`, shares the table of embeddings. Only what files state
    /// counts around it: the classes of wholes take it for true or false whatever their decoders are. In the classes of LLaVA a
    /// decoder that says so ties whatever is said around it.
    pub(crate) fn tied(&self, around: &[&Fields<'_>], own: bool) -> Result<bool, ConfigProblem> {
        const FOLLOW_TEXT: &[&str] =
            &["fast_vlm", "llava", "llava_next_video", "llava_onevision", "minimax_m3_vl", "video_llama_3"];
        let follows = around.iter().any(|around| around.kind().is_some_and(|kind| FOLLOW_TEXT.contains(&kind)));
        if follows && self.stated_flag(TIED)? == Some(true) {
            return Ok(true);
        }
        around.iter().try_fold(own, |tied, around| {
            let stated = around.stated_flag(TIED)?;
            if stated.is_some() {
                self.assumed.borrow_mut().remove(&self.field(TIED));
            }
            Ok(stated.unwrap_or(tied))
        })
    }

    fn as_flag(&self, name: &str, value: &Value) -> Result<bool, ConfigProblem> {
        value.as_bool().ok_or_else(|| self.invalid(name, value, "true or false"))
    }

    /// A list of sizes or indices.
    pub(crate) fn counts(&self, name: &str) -> Result<Vec<u64>, ConfigProblem> {
        let value = self.get(name).ok_or_else(|| self.missing(name, "a list of integers"))?;
        let list = value.as_array().ok_or_else(|| self.invalid(name, value, "a list of integers"))?;
        list.iter()
            .map(|entry| {
                entry
                    .as_u64()
                    .filter(|count| *count <= LARGEST_SIZE)
                    .ok_or_else(|| self.invalid(name, value, "a list of non-negative integers"))
            })
            .collect()
    }

    /// A list of sizes or indices, where there is one. That the class has its own is said where the file leaves it open.
    pub(crate) fn optional_counts(&self, name: &str) -> Result<Option<Vec<u64>>, ConfigProblem> {
        self.left_open(name, "as its class has them");
        self.get(name).map(|_| self.counts(name)).transpose()
    }

    /// Lists of strings, where there are any.
    pub(crate) fn optional_text_lists(&self, name: &str) -> Result<Option<Vec<Vec<String>>>, ConfigProblem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let list = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|entry| entry.as_str().map(str::to_owned)).collect()
        };
        let lists = value.as_array().and_then(|lists| lists.iter().map(list).collect::<Option<Vec<_>>>());
        lists.map(Some).ok_or_else(|| self.invalid(name, value, "a list of lists of strings"))
    }

    /// For each of so many layers whether it is of the second of two kinds, from lists of kinds and how often each is repeated,
    /// such as `[[["global", "local"], 12]]`. Where the file has none the two kinds alternate twelve times.
    pub(crate) fn repeated(&self, name: &str, kinds: [&str; 2], layers: usize) -> Result<Vec<bool>, ConfigProblem> {
        let expected = format!("lists of `{}` and `{}` with counts that make {layers} layers", kinds[0], kinds[1]);
        let alternating = serde_json::json!([[kinds, 12]]);
        let value = self.get(name).unwrap_or(&alternating);
        let part = |entry: &Value| -> Option<(Vec<bool>, usize)> {
            let (list, count) = (entry.get(0)?.as_array()?, usize::try_from(entry.get(1)?.as_u64()?).ok()?);
            let is_second =
                |kind: &Value| kinds.iter().position(|known| Some(*known) == kind.as_str()).map(|at| at == 1);
            Some((list.iter().map(is_second).collect::<Option<_>>()?, count))
        };
        let parts = value.as_array().and_then(|parts| parts.iter().map(part).collect::<Option<Vec<_>>>());
        let repeat = |(list, count): (Vec<bool>, usize)| {
            let entries = list.len().saturating_mul(count);
            list.into_iter().cycle().take(entries)
        };
        // One more than fits is enough to see that there are too many.
        let listed = parts.map(|parts| parts.into_iter().flat_map(repeat).take(layers + 1).collect::<Vec<_>>());
        listed.filter(|listed| listed.len() == layers).ok_or_else(|| self.invalid(name, value, &expected))
    }

    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<String>, ConfigProblem> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.invalid(name, other, "a string")),
        }
    }

    /// A list of strings; empty where the field is absent.
    pub(crate) fn text_list(&self, name: &str) -> Result<Vec<String>, ConfigProblem> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let texts = value
            .as_array()
            .and_then(|list| list.iter().map(|entry| entry.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>());
        texts.ok_or_else(|| self.invalid(name, value, "a list of strings"))
    }

    /// The element type under `dtype` or `torch_dtype`.
    pub(crate) fn dtype(&self) -> Result<Option<DType>, ConfigProblem> {
        for name in ["dtype", "torch_dtype"] {
            if let Some(text) = self.optional_text(name)?.filter(|text| text != "auto") {
                return text.parse().map(Some).map_err(|_| ConfigProblem::Invalid {
                    field: self.field(name),
                    found: format!("\"{text}\""),
                    expected: "an element type such as \"bfloat16\"".into(),
                });
            }
        }
        Ok(None)
    }

    /// The same, or what checkpoints of the family that do not say are published in.
    pub(crate) fn dtype_or(&self, published: DType) -> Result<DType, ConfigProblem> {
        Ok(self.dtype()?.unwrap_or(published))
    }

    /// That `whole` divides by `part`, both fields of this object.
    pub(crate) fn divides(&self, whole: (&str, u64), part: (&str, u64)) -> Result<(), ConfigProblem> {
        if whole.1.is_multiple_of(part.1) {
            return Ok(());
        }
        Err(self.wrong(whole.0, whole.1, format!("a multiple of `{}` ({})", self.field(part.0), part.1)))
    }

    /// A field whose value does not go with the others.
    pub(crate) fn wrong(&self, name: &str, found: impl ToString, expected: impl Into<String>) -> ConfigProblem {
        ConfigProblem::Invalid { field: self.field(name), found: found.to_string(), expected: expected.into() }
    }

    fn as_size(&self, name: &str, value: &Value) -> Result<u64, ConfigProblem> {
        // What is past 64 bits is read as a float.
        if value.as_f64().is_some_and(|size| size > LARGEST_SIZE as f64) {
            return Err(self.invalid(name, value, &format!("at most {LARGEST_SIZE}")));
        }
        value
            .as_u64()
            .filter(|size| (1..=LARGEST_SIZE).contains(size))
            .ok_or_else(|| self.invalid(name, value, "a positive integer"))
    }

    /// Where the value under `name` is. A published `null` is no value, and no default either.
    fn look(&self, name: &str) -> Found<'a> {
        let stated = |name: &str| self.object.get(name).map(|value| Some(value).filter(|value| !value.is_null()));
        let Some(class) = self.class else { return stated(name).map_or(Found::Absent, Found::File) };
        match class.names_of(name).find_map(stated) {
            Some(stated) => Found::File(stated),
            None => match class.value(name) {
                Some(Value::Null) => Found::Open,
                value => value.map_or(Found::Absent, Found::Class),
            },
        }
    }

    /// The value under `name`, or what the class takes.
    fn get(&self, name: &str) -> Option<&'a Value> {
        match self.look(name) {
            Found::File(stated) => stated,
            Found::Class(value) => {
                if !value.is_f64() {
                    self.assume(name, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
                }
                Some(value)
            }
            Found::Open | Found::Absent => None,
        }
    }

    /// What the file states under `name`, by whichever name.
    fn stated_value(&self, name: &str) -> Option<&'a Value> {
        match self.look(name) {
            Found::File(stated) => stated,
            _ => None,
        }
    }

    /// Says that a value is none of the file's, unless nothing depends on it. What is quantised and rotated is no class's.
    pub(crate) fn assume(&self, name: &str, value: &impl ToString) {
        let is_part = |part: &str| part != "quantization_config" && !part.starts_with("rope_");
        if self.path.split('.').all(is_part) && !NO_SIZES.contains(&name) {
            self.assumed.borrow_mut().insert(self.field(name), value.to_string());
        }
    }

    /// `default`, which is said where the file could have stated a value and does not.
    pub(crate) fn left_open<T: ToString>(&self, name: &str, default: T) -> T {
        let is_open = match self.look(name) {
            Found::Open => true,
            Found::Absent => self.class.is_none(),
            _ => false,
        };
        if is_open {
            self.assume(name, &default);
        }
        default
    }

    /// The first of these names that the file states, or else that the class has.
    pub(crate) fn spelling<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        let stated = names.iter().find(|name| self.stated_value(name).is_some());
        let known = || names.iter().find(|name| matches!(self.look(name), Found::Class(_)));
        stated.or_else(known).copied()
    }

    /// A truth value that the file states.
    pub(crate) fn stated_flag(&self, name: &str) -> Result<Option<bool>, ConfigProblem> {
        self.stated_value(name).map(|value| self.as_flag(name, value)).transpose()
    }

    /// The path of `name`, for errors.
    pub(crate) fn path_of(&self, name: &str) -> String {
        self.field(name)
    }

    fn field(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn missing(&self, name: &str, expected: &'static str) -> ConfigProblem {
        ConfigProblem::Missing { field: self.field(name), expected }
    }

    fn invalid(&self, name: &str, found: &Value, expected: &str) -> ConfigProblem {
        let mut text = found.to_string();
        if let Some((cut, _)) = text.char_indices().nth(60) {
            text.truncate(cut);
            text.push_str("...");
        }
        ConfigProblem::Invalid { field: self.field(name), found: text, expected: expected.to_owned() }
    }
}
