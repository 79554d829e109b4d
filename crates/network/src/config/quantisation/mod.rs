//! `quantization_config`: in which format a checkpoint keeps which matrices, and its KV cache.
//!
//! A matrix is the weight of a `Linear`, or a stack of experts. Embeddings, norms, biases and routers never are quantised.

mod compressed;
mod method;
mod pattern;

use std::collections::HashMap;
use std::sync::Arc;

use types::DType;

use super::fields::{ConfigProblem, Fields};
use crate::{Blueprint, ParamEntry, Scale, Span, WeightFormat};
use pattern::Patterns;

/// How a checkpoint is quantised.
#[derive(Clone, Debug)]
pub struct Quantisation {
    /// `quant_method`, as the file says.
    pub method: String,
    /// Element type of the KV cache, where the file sets one.
    pub kv: Option<DType>,
    groups: Vec<Group>,
    skipped: Patterns,
    scope: Scope,
    listed: Option<Arc<Listed>>,
}

/// How each tensor is kept, by the path of the parameter, where a file says so for each.
#[derive(Debug)]
struct Listed {
    formats: HashMap<String, Arc<WeightFormat>>,
    summary: String,
}

/// Matrices that are kept alike.
#[derive(Clone, Debug)]
struct Group {
    /// Modules it takes; all of the scope where absent.
    targets: Option<Patterns>,
    format: Arc<WeightFormat>,
}

/// Which matrices a method takes at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Every linear layer and every expert.
    All,
    /// The same, without the head.
    AllButHead,
    /// Those of decoder layers, without what decides where tokens go.
    DecoderLayers {
        /// Whether the head is taken too.
        head: bool,
    },
    /// Stacks of experts.
    StackedExperts,
}

/// Fields that list what stays as it is; tools do not agree on one.
const SKIPPED: [&str; 4] = ["modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules"];

/// Modules of a layer that decide where tokens go.
const ROUTERS: [&str; 3] = ["gate", "router", "shared_expert_gate"];

impl PartialEq for Quantisation {
    fn eq(&self, other: &Self) -> bool {
        (&self.method, self.kv, self.description()) == (&other.method, other.kv, other.description())
    }
}

impl Quantisation {
    /// Reads `quantization_config` of a file whose other weights are in `dtype`.
    pub(super) fn read(fields: &Fields<'_>, dtype: DType) -> Result<Option<Self>, ConfigProblem> {
        // DeepSeek-V4 says beside it how experts are kept.
        let experts = fields.optional_text("expert_dtype")?;
        let mut places = vec![fields.clone()];
        places.extend(fields.optional_object("text_config")?);
        for place in places {
            for name in ["quantization_config", "compression_config"] {
                if let Some(stated) = place.optional_object(name)? {
                    return method::read(&stated, dtype, experts.as_deref()).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// A checkpoint that says for each tensor how it is kept; `summary` is what reports say of them.
    pub fn of_tensors(method: &str, summary: String, formats: HashMap<String, Arc<WeightFormat>>) -> Self {
        Self {
            method: method.to_owned(),
            kv: None,
            groups: Vec::new(),
            skipped: Patterns::default(),
            scope: Scope::All,
            listed: Some(Arc::new(Listed { formats, summary })),
        }
    }

    /// The format `param` is kept in; absent where it is in the model's own element type.
    pub(crate) fn format(&self, blueprint: &Blueprint, param: &ParamEntry) -> Option<Arc<WeightFormat>> {
        if let Some(listed) = &self.listed {
            return listed.formats.get(&param.path).map(Arc::clone);
        }
        if param.dtype.is_some() || param.buffer || param.shape.rank() < 2 {
            return None;
        }
        let module = blueprint.module(param.module);
        // The taps of a convolution are in three dimensions too, and no method takes them.
        let stacked = param.shape.rank() == 3
            && blueprint.decoder_layer(param.module).is_some()
            && !module.class.starts_with("Conv");
        let is_linear =
            matches!(module.class, "Linear" | "FalconLinear" | "Conv1D") || module.class.ends_with("GroupedLinear");
        let linear = is_linear && param.path.ends_with(".weight");
        let head = module.name == "lm_head";
        let taken = match self.scope {
            Scope::All => linear || stacked,
            Scope::AllButHead => (linear && !head) || stacked,
            Scope::DecoderLayers { head: with_head } => {
                let inside =
                    blueprint.decoder_layer(param.module).is_some() && !ROUTERS.contains(&module.name.as_str());
                (linear && inside) || stacked || (head && with_head)
            }
            Scope::StackedExperts => stacked,
        };
        if !taken || self.skipped.matches(&module.path, module.class) || self.skipped.matches(&param.path, "") {
            return None;
        }
        let suits = |group: &&Group| {
            let matches = |targets: &Patterns| {
                targets.matches(&module.path, if stacked { "Linear" } else { module.class })
                    || targets.matches(&param.path, "")
            };
            group.targets.as_ref().is_none_or(matches)
        };
        self.groups.iter().find(suits).map(|group| Arc::clone(&group.format))
    }

    /// What a report says of it.
    pub fn description(&self) -> String {
        if let Some(listed) = &self.listed {
            return format!("{}: {}", self.method, listed.summary);
        }
        let group = |group: &Group| {
            let WeightFormat { dtype, scales, activations } = group.format.as_ref();
            let scales = match scales.first().map(|scale| (scale.span, scale.bits)) {
                None => String::new(),
                Some((span, bits)) => format!(", a {bits}-bit scale for every {}", spanned(span)),
            };
            let gemms = activations.map(|dtype| format!(", GEMMs in {dtype}")).unwrap_or_default();
            format!("weights in {dtype}{scales}{gemms}")
        };
        let groups: Vec<_> = self.groups.iter().map(group).collect();
        format!("{}: {}", self.method, groups.join("; "))
    }
}

fn spanned(span: Span) -> String {
    match span {
        Span::Matrix => "matrix".to_owned(),
        Span::Block { outputs: Some(1), inputs: None } => "row".to_owned(),
        Span::Block { outputs: Some(1), inputs: Some(inputs) } => format!("{inputs} weights"),
        Span::Block { outputs, inputs } => {
            let side = |size: Option<u64>| size.map_or_else(|| "all".to_owned(), |size| size.to_string());
            format!("block of {} x {}", side(outputs), side(inputs))
        }
        Span::Run(length) => format!("{length} weights"),
    }
}

/// One format for everything a method takes.
fn uniform(method: &str, format: WeightFormat, skipped: Patterns, scope: Scope) -> Quantisation {
    let groups = vec![Group { targets: None, format: Arc::new(format) }];
    Quantisation { method: method.to_owned(), kv: None, groups, skipped, scope, listed: None }
}

/// Scales and zero points of integers in groups of inputs; `None` is one group for the whole row.
fn grouped(group: Option<u64>, bits: u64) -> Scale {
    Scale { span: Span::Block { outputs: Some(1), inputs: group }, bits }
}
