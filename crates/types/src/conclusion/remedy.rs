//! Remedies: changes of how a model is run that a run can apply by itself and measure.
//!
//! One list for all engines. How a remedy is applied is left to whoever runs the model.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Most sequences of a batch that are tried.
const MOST_SEQUENCES: u32 = 32;

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Remedy {
    /// The logits of the last position only, at prefill.
    LastLogits,
    /// Attention by `scaled_dot_product_attention`.
    AttentionSdpa,
    /// Attention by the package `flash_attn`.
    AttentionFlash,
    /// The decode step as one CUDA graph, over a static cache.
    CudaGraph,
    /// Parameters and arithmetic in bf16.
    Bf16,
    /// Weights kept in bf16, arithmetic in single precision.
    Bf16Weights,
    /// Inputs in pinned host memory.
    PinnedInputs,
    /// More inferences before those that are measured.
    WarmUp,
    /// So many threads.
    Threads(u32),
    /// So many sequences at once.
    Batch(u32),
    /// `torch.compile` of the decode step.
    Compile,
    /// The same with CUDA graphs.
    CompileReduceOverhead,
    /// The same with kernels chosen by timing them.
    CompileMaxAutotune,
}

/// What a remedy changes. Of each kind one can be applied at a time; what is never combined has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RemedyKind {
    /// Which logits are computed.
    Logits,
    /// How attention is computed.
    Attention,
    /// How work is launched.
    Launch,
    /// Element types.
    Precision,
    /// Threads.
    Threads,
    /// Sequences at once.
    Batch,
}

/// Remedies applied together: one, or a combination. Written with `+` between their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Remedies(Vec<Remedy>);

/// Not the name of a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemedyError {
    /// Nobody knows it.
    #[error("unknown remedy `{name}`; expected one of {}", ALL.map(|one| one.name().replace('0', "N")).join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// A number that is out of range.
    #[error("`{name}`: a batch has 2 to {MOST_SEQUENCES} sequences, and threads are 1 or more")]
    Number {
        /// What was asked for.
        name: String,
    },
    /// Two that exclude each other.
    #[error("`{one}` and `{other}` exclude each other")]
    Exclusive {
        /// The first.
        one: Remedy,
        /// The second.
        other: Remedy,
    },
    /// One that is only tried alone.
    #[error("`{one}` is tried alone")]
    Alone {
        /// Which.
        one: Remedy,
    },
}

/// Every remedy, in the order in which they are listed; a zero stands for any number.
const ALL: [Remedy; 13] = [
    Remedy::LastLogits,
    Remedy::AttentionSdpa,
    Remedy::AttentionFlash,
    Remedy::CudaGraph,
    Remedy::Bf16,
    Remedy::Bf16Weights,
    Remedy::PinnedInputs,
    Remedy::WarmUp,
    Remedy::Threads(0),
    Remedy::Batch(0),
    Remedy::Compile,
    Remedy::CompileReduceOverhead,
    Remedy::CompileMaxAutotune,
];

impl Remedy {
    /// The name that one types.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::LastLogits => "last-logits",
            Self::AttentionSdpa => "attention-sdpa",
            Self::AttentionFlash => "attention-flash",
            Self::CudaGraph => "cuda-graph",
            Self::Bf16 => "bf16",
            Self::Bf16Weights => "bf16-weights",
            Self::PinnedInputs => "pinned-inputs",
            Self::WarmUp => "warm-up",
            Self::Compile => "compile",
            Self::CompileReduceOverhead => "compile-reduce-overhead",
            Self::CompileMaxAutotune => "compile-max-autotune",
            Self::Threads(count) => return Cow::Owned(format!("threads-{count}")),
            Self::Batch(count) => return Cow::Owned(format!("batch-{count}")),
        })
    }

    /// What it changes.
    pub const fn changes(self) -> &'static str {
        match self {
            Self::LastLogits => "prefill computes the logits of the last position only",
            Self::AttentionSdpa => "attention is torch's scaled_dot_product_attention",
            Self::AttentionFlash => "attention is FlashAttention-2 of the package flash_attn",
            Self::CudaGraph => "the decode step is one captured CUDA graph over a static cache",
            Self::Bf16 => "parameters and arithmetic are bf16",
            Self::Bf16Weights => "weights are kept in bf16; the arithmetic stays FP32",
            Self::PinnedInputs => "inputs are copied to the device from pinned host memory",
            Self::WarmUp => "more inferences run before those that are measured",
            Self::Threads(_) => "the engine computes with this many threads",
            Self::Batch(_) => "this many sequences run at once",
            Self::Compile => "torch.compile of the decode step over a static cache",
            Self::CompileReduceOverhead => "torch.compile of the decode step, with CUDA graphs",
            Self::CompileMaxAutotune => "torch.compile of the decode step, its kernels chosen by timing them",
        }
    }

    /// The setting or the line of code that adopts it.
    pub fn adopt(self) -> String {
        let compiled = |mode: &str| {
            format!(
                "model.generation_config.cache_implementation = \"static\"; model.forward = \
                 torch.compile(model.forward{mode})"
            )
        };
        match self {
            Self::LastLogits => "infer.logits=last; in code model(..., logits_to_keep=1)".to_owned(),
            Self::AttentionSdpa => "infer.attention=sdpa; in code attn_implementation=\"sdpa\"".to_owned(),
            Self::AttentionFlash => {
                "infer.attention=flash; in code attn_implementation=\"flash_attention_2\"".to_owned()
            }
            Self::CudaGraph => {
                "cache = StaticCache(config=model.config, max_cache_len=N); with torch.cuda.graph(graph): \
                                logits = model(input_ids=token, past_key_values=cache).logits; then graph.replay() for \
                                every token"
                    .to_owned()
            }
            Self::Bf16 => "model.dtype=bfloat16; in code dtype=torch.bfloat16".to_owned(),
            Self::Bf16Weights => "model.dtype=bfloat16".to_owned(),
            Self::PinnedInputs => "tensor.pin_memory().to(device, non_blocking=True)".to_owned(),
            Self::WarmUp => {
                "dataset.sampling.warmup_rounds; in code a few requests before the first that counts".to_owned()
            }
            Self::Threads(count) => format!("RAYON_NUM_THREADS={count}"),
            Self::Batch(count) => format!("infer.batch={count}; in code {count} sequences a forward pass"),
            Self::Compile => compiled(""),
            Self::CompileReduceOverhead => compiled(", mode=\"reduce-overhead\""),
            Self::CompileMaxAutotune => compiled(", mode=\"max-autotune\""),
        }
    }

    /// The engines that can apply it, by name.
    pub const fn engines(self) -> &'static [&'static str] {
        match self {
            Self::LastLogits | Self::Batch(_) => &["native", "torch"],
            Self::Threads(_) | Self::Bf16Weights => &["native"],
            _ => &["torch"],
        }
    }

    /// What it changes, where it can be combined with others.
    pub const fn kind(self) -> Option<RemedyKind> {
        match self {
            Self::LastLogits => Some(RemedyKind::Logits),
            Self::AttentionSdpa | Self::AttentionFlash => Some(RemedyKind::Attention),
            Self::CudaGraph | Self::Compile | Self::CompileReduceOverhead | Self::CompileMaxAutotune => {
                Some(RemedyKind::Launch)
            }
            Self::Bf16 | Self::Bf16Weights => Some(RemedyKind::Precision),
            Self::Threads(_) => Some(RemedyKind::Threads),
            Self::Batch(_) => Some(RemedyKind::Batch),
            Self::PinnedInputs | Self::WarmUp => None,
        }
    }

    /// The rule whose finding it answers, so that the saving of one predicts that of the other. Compiling alone still launches
    /// every kernel from the host, fewer of them, and how many is not known before.
    pub const fn rule(self) -> Option<&'static str> {
        match self {
            Self::LastLogits => Some("logits-of-all-positions"),
            Self::AttentionSdpa | Self::AttentionFlash => Some("attention-not-flash"),
            Self::CudaGraph | Self::CompileReduceOverhead | Self::CompileMaxAutotune => Some("launch-bound"),
            Self::Bf16 => Some("float32-gemms"),
            Self::PinnedInputs => Some("host-to-device-copies"),
            Self::WarmUp => Some("cold-first-iteration"),
            Self::Compile | Self::Bf16Weights | Self::Threads(_) | Self::Batch(_) => None,
        }
    }

    /// What the torch engine tries where nothing is named, those that tell most for their time first.
    pub fn for_torch() -> Vec<Self> {
        vec![
            Self::LastLogits,
            Self::CudaGraph,
            Self::Batch(8),
            Self::AttentionSdpa,
            Self::AttentionFlash,
            Self::Bf16,
            Self::CompileReduceOverhead,
            Self::WarmUp,
            Self::PinnedInputs,
            Self::Batch(32),
            Self::Compile,
            Self::CompileMaxAutotune,
        ]
    }

    /// What the native engine tries where nothing is named and it computes with so many threads.
    pub fn for_native(threads: u32) -> Vec<Self> {
        let fewer = (threads > 1).then_some(Self::Threads(threads / 2));
        [Self::LastLogits, Self::Bf16Weights].into_iter().chain(fewer).chain([Self::Batch(2), Self::Batch(8)]).collect()
    }
}

impl Remedies {
    /// Remedies together. At least one, and none that exclude each other.
    pub fn new(remedies: Vec<Remedy>) -> Result<Self, RemedyError> {
        if remedies.is_empty() {
            return Err(RemedyError::Unknown { name: String::new() });
        }
        for (place, one) in remedies.iter().enumerate().filter(|_| remedies.len() > 1) {
            let kind = one.kind().ok_or(RemedyError::Alone { one: *one })?;
            if let Some(other) = remedies[place + 1..].iter().find(|other| other.kind() == Some(kind)) {
                return Err(RemedyError::Exclusive { one: *one, other: *other });
            }
        }
        Ok(Self(remedies))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Remedy> + '_ {
        self.0.iter().copied()
    }

    /// The only one, where it is one.
    pub fn single(&self) -> Option<Remedy> {
        if let [one] = self.0.as_slice() { Some(*one) } else { None }
    }

    /// Sequences at once, where that is what changes.
    pub fn batch(&self) -> Option<u32> {
        self.iter().find_map(|one| if let Remedy::Batch(count) = one { Some(count) } else { None })
    }

    /// How all of them are adopted.
    pub fn adopt(&self) -> String {
        self.iter().map(Remedy::adopt).collect::<Vec<_>>().join("; ")
    }
}

impl From<Remedy> for Remedies {
    fn from(remedy: Remedy) -> Self {
        Self(vec![remedy])
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl fmt::Display for Remedies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.iter().map(Remedy::name).collect::<Vec<_>>().join("+"))
    }
}

impl FromStr for Remedy {
    type Err = RemedyError;

    fn from_str(name: &str) -> Result<Self, RemedyError> {
        let numbered = |prefix: &str| name.strip_prefix(prefix).map(str::parse::<u32>);
        match (numbered("threads-"), numbered("batch-")) {
            (Some(Ok(count @ 1..)), _) => Ok(Self::Threads(count)),
            (_, Some(Ok(count @ 2..=MOST_SEQUENCES))) => Ok(Self::Batch(count)),
            (Some(Ok(_)), _) | (_, Some(Ok(_))) => Err(RemedyError::Number { name: name.to_owned() }),
            _ => {
                let unknown = || RemedyError::Unknown { name: name.to_owned() };
                ALL.into_iter().find(|one| one.name() == name).ok_or_else(unknown)
            }
        }
    }
}

impl FromStr for Remedies {
    type Err = RemedyError;

    fn from_str(names: &str) -> Result<Self, RemedyError> {
        Self::new(names.split('+').map(|name| name.trim().parse()).collect::<Result<_, _>>()?)
    }
}

impl TryFrom<String> for Remedy {
    type Error = RemedyError;

    fn try_from(name: String) -> Result<Self, RemedyError> {
        name.parse()
    }
}

impl TryFrom<String> for Remedies {
    type Error = RemedyError;

    fn try_from(names: String) -> Result<Self, RemedyError> {
        names.parse()
    }
}

impl From<Remedy> for String {
    fn from(remedy: Remedy) -> Self {
        remedy.name().into_owned()
    }
}

impl From<Remedies> for String {
    fn from(remedies: Remedies) -> Self {
        remedies.to_string()
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Remedies {
    fn schema_name() -> Cow<'static, str> {
        "Remedies".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Remedies applied together, with `+` between their names.",
            "type": "string",
            "pattern": "^[a-z0-9-]+([+][a-z0-9-]+)*$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_is_in_the_list() {
        let listed = "x".parse::<Remedy>().unwrap_err().to_string();
        let with_number = |remedy| match remedy {
            Remedy::Threads(_) => Remedy::Threads(3),
            Remedy::Batch(_) => Remedy::Batch(32),
            other => other,
        };
        for remedy in ALL.map(with_number) {
            assert_eq!(remedy.name().parse::<Remedy>().unwrap(), remedy);
            let plain = remedy.name().replace("-32", "-N").replace("-3", "-N");
            assert!(listed.contains(&format!(" {plain}")), "{listed}: {remedy}");
            assert!(!remedy.adopt().is_empty() && !remedy.changes().is_empty() && !remedy.engines().is_empty());
        }
    }

    #[test]
    fn what_is_no_remedy_names_those_that_are() {
        let error = "cuda-graphs".parse::<Remedies>().unwrap_err().to_string();
        assert!(
            error.starts_with("unknown remedy `cuda-graphs`; expected one of last-logits,")
                && error.contains("cuda-graph,")
        );
        for (name, part) in
            [("batch-1", "2 to 32"), ("batch-33", "2 to 32"), ("threads-0", "1 or more"), ("", "unknown remedy")]
        {
            assert!(name.parse::<Remedies>().unwrap_err().to_string().contains(part), "{name}");
        }
    }

    #[test]
    fn a_combination_has_one_remedy_of_a_kind() {
        let both: Remedies = "cuda-graph+bf16+batch-8".parse().unwrap();
        assert_eq!(
            (both.to_string().as_str(), both.single(), both.batch()),
            ("cuda-graph+bf16+batch-8", None, Some(8))
        );
        let error = "cuda-graph+compile".parse::<Remedies>().unwrap_err();
        assert_eq!(error.to_string(), "`cuda-graph` and `compile` exclude each other");
        let error = "bf16+pinned-inputs".parse::<Remedies>().unwrap_err();
        assert_eq!(error.to_string(), "`pinned-inputs` is tried alone");
    }

    #[test]
    fn what_an_engine_tries_by_itself_it_can_apply() {
        assert!(Remedy::for_torch().iter().all(|one| one.engines().contains(&"torch")));
        for threads in [1, 2, 64] {
            assert!(Remedy::for_native(threads).iter().all(|one| one.engines().contains(&"native")), "{threads}");
        }
        assert!(!Remedy::for_native(1).iter().any(|one| matches!(one, Remedy::Threads(_))));
    }
}
