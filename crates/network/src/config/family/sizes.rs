//! Fields nearly every family has, under the names nearly every family gives them.

use types::{ActivationKind, AttentionDetail, DType, RotaryForm, RotaryLayout, RotaryScaling};

use super::Family;
use crate::config::ConfigProblem;
use crate::config::decoder::{
    AttentionConfig, DecoderConfig, DecoderHead, FeedForwardConfig, GatedConfig, GroupedConfig, LayerConfig,
    NormConfig, NormKind, NormPlacement, RotaryConfig, Values,
};
use crate::config::fields::{Fields, MOST_LAYERS};

/// Most heads, and widest head, that are taken seriously.
const MOST_HEADS: u64 = 1 << 20;
pub(in crate::config) const WIDEST_HEAD: u64 = 1 << 20;

/// The sizes.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    pub(super) vocabulary: u64,
    pub(super) width: u64,
    pub(super) layers: u64,
    pub(super) heads: u64,
    pub(super) key_value_heads: u64,
    pub(super) head_width: u64,
    pub(super) intermediate: u64,
    pub(super) activation: ActivationKind,
    pub(super) mlp_bias: bool,
    pub(super) epsilon: f64,
    pub(super) rotary: RotaryConfig,
    pub(super) tied_embeddings: bool,
    pub(super) dtype: DType,
}

impl Sizes {
    /// With the base of the angles that the family's class takes where the file states none, and the inner width of dense
    /// feed-forwards.
    pub(super) fn read_inner(fields: &Fields<'_>, theta: f64, intermediate: u64) -> Result<Self, ConfigProblem> {
        let heads = fields.at_most("num_attention_heads", fields.size("num_attention_heads")?, MOST_HEADS)?;
        let width = fields.size("hidden_size")?;
        let layers = fields.spelling(&["num_hidden_layers", "num_layers"]).unwrap_or("num_hidden_layers");
        let layers = fields.layers(layers)?;
        let key_value_heads = fields.size_or("num_key_value_heads", heads)?;
        fields.divides(("num_attention_heads", heads), ("num_key_value_heads", key_value_heads))?;
        let head_width = match fields.optional_size("head_dim")? {
            Some(head_width) => fields.at_most("head_dim", head_width, WIDEST_HEAD)?,
            // Latent attention has widths of its own.
            None if fields.optional_size("kv_lora_rank")?.is_some() => fields.size_or("qk_rope_head_dim", 64)?,
            None => {
                fields.divides(("hidden_size", width), ("num_attention_heads", heads))?;
                fields.left_open("head_dim", width / heads)
            }
        };
        Ok(Self {
            vocabulary: fields.size("vocab_size")?,
            width,
            layers,
            heads,
            key_value_heads,
            head_width,
            intermediate,
            activation: activation(fields)?,
            mlp_bias: fields.flag_or("mlp_bias", false)?,
            epsilon: epsilon(fields)?,
            rotary: rotary(fields, theta, head_width)?,
            tied_embeddings: fields.ties(false)?,
            dtype: fields.dtype_or(DType::Bf16)?,
        })
    }

    /// Width, heads, key-value heads, layers and inner width as read from fields of other names; rotary positions are
    /// those of the default.
    pub(super) fn stated(
        fields: &Fields<'_>,
        [width, heads, key_value_heads, layers, intermediate]: [u64; 5],
        epsilon: f64,
    ) -> Result<Self, ConfigProblem> {
        fields.at_most("num_attention_heads", heads, MOST_HEADS)?;
        fields.at_most("num_hidden_layers", layers, MOST_LAYERS)?;
        fields.divides(("hidden_size", width), ("num_attention_heads", heads))?;
        fields.divides(("num_attention_heads", heads), ("num_kv_heads", key_value_heads))?;
        let head_width = width / heads;
        let form = RotaryForm::default();
        Ok(Self {
            vocabulary: fields.size("vocab_size")?,
            width,
            layers,
            heads,
            key_value_heads,
            head_width,
            intermediate,
            activation: ActivationKind::Silu,
            mlp_bias: false,
            epsilon,
            rotary: RotaryConfig { theta: 10_000.0, width: head_width, form },
            tied_embeddings: fields.ties(false)?,
            dtype: fields.dtype_or(DType::Bf16)?,
        })
    }

    /// The same with a part of each head rotated where the file states no part of its own.
    pub(super) fn partial(mut self, fields: &Fields<'_>, default: f64) -> Result<Self, ConfigProblem> {
        let stated = match fields.optional_object("rope_parameters")? {
            Some(stated) => stated.states("partial_rotary_factor"),
            None => false,
        };
        if !stated && !fields.states("partial_rotary_factor") {
            let width = (self.head_width as f64 * default) as u64;
            if !width.is_multiple_of(2) || width == 0 {
                return Err(fields.wrong("head_dim", self.head_width, format!("a width for which {default} is even")));
            }
            self.rotary.width = width;
        }
        Ok(self)
    }

    /// The same with another width of a head.
    pub(super) fn head_width(mut self, head_width: u64) -> Self {
        self.rotary.width = self.rotary.width * head_width / self.head_width;
        self.head_width = head_width;
        self
    }

    /// Plain attention with grouped heads.
    pub(super) fn grouped(&self) -> GroupedConfig {
        GroupedConfig {
            heads: self.heads,
            key_value_heads: self.key_value_heads,
            head_width: self.head_width,
            input_bias: false,
            output_bias: false,
            fused: None,
            head_norms: None,
            rotary: Some(self.rotary),
            gate: None,
            blocks: None,
            value_width: self.head_width,
            values: Values::Own,
            value_norm: false,
            scale: 1.0 / (self.head_width as f64).sqrt(),
            detail: AttentionDetail::default(),
        }
    }

    /// A dense gated feed-forward.
    pub(super) fn gated(&self) -> FeedForwardConfig {
        FeedForwardConfig::Gated(self.gated_of(self.intermediate))
    }

    /// Gated feed-forward of an inner width.
    pub(super) fn gated_of(&self, inner: u64) -> GatedConfig {
        GatedConfig { inner, activation: self.activation, bias: self.mlp_bias, fused: false }
    }

    /// A decoder whose layers `layer` makes.
    pub(super) fn decoder(
        &self,
        family: &'static Family,
        layer: impl Fn(usize) -> (AttentionConfig, FeedForwardConfig),
    ) -> DecoderConfig {
        let layers = (0..self.layers as usize).map(layer);
        DecoderConfig {
            family,
            vocabulary: self.vocabulary,
            further_tokens: 0,
            exact_positions: None,
            width: self.width,
            heads: self.heads,
            intermediate: Some(self.intermediate),
            layers: layers.map(|(attention, feed_forward)| LayerConfig { attention, feed_forward }).collect(),
            norm: NormConfig { epsilon: self.epsilon, kind: NormKind::Rms, placement: NormPlacement::Before },
            embedding_scale: None,
            positions: None,
            residual_scale: None,
            logit_scale: None,
            head: DecoderHead::Tokens,
            head_bias: false,
            tied_embeddings: self.tied_embeddings,
            logit_softcap: None,
            layer_scalar: false,
            per_layer: None,
            shared: None,
            streams: None,
            hyper: None,
            dtype: self.dtype,
            quantisation: None,
            part_of: None,
            left_out: Vec::new(),
        }
    }

    /// Which layers a list of numbers, one for each, has something other than zero for; absent without a list.
    pub(super) fn flags(&self, fields: &Fields<'_>, name: &str) -> Result<Option<Vec<bool>>, ConfigProblem> {
        let Some(listed) = fields.optional_counts(name)?.filter(|listed| !listed.is_empty()) else { return Ok(None) };
        if listed.len() as u64 != self.layers {
            let expected = format!("{} entries, one for each layer", self.layers);
            return Err(fields.wrong(name, format!("a list of {}", listed.len()), expected));
        }
        Ok(Some(listed.iter().map(|flag| *flag != 0).collect()))
    }

    /// Which layers have rotary positions: `no_rope_layers` says 1 for those that do.
    pub(super) fn turned(&self, fields: &Fields<'_>) -> Result<Vec<bool>, ConfigProblem> {
        if let Some(listed) = self.flags(fields, "no_rope_layers")? {
            return Ok(listed);
        }
        let every = fields.size_or("no_rope_layer_interval", 4)?;
        Ok((0..self.layers).map(|index| !(index + 1).is_multiple_of(every)).collect())
    }

    /// Rotary positions of layers that see a window, as older files state them.
    pub(super) fn local(&self, fields: &Fields<'_>) -> Result<RotaryConfig, ConfigProblem> {
        rotary_of(fields, None, fields.number_or("rope_local_base_freq", 10_000.0)?, self.head_width)
    }

    /// Which layers attend through a window, where there are any.
    pub(super) fn sliding_through(
        &self,
        fields: &Fields<'_>,
        window: Option<u64>,
        rule: impl Fn(u64) -> bool,
    ) -> Result<Vec<bool>, ConfigProblem> {
        window.map_or_else(|| Ok(vec![false; self.layers as usize]), |_| self.sliding(fields, rule))
    }

    /// Which layers attend through a window: by `layer_types`, or by the family's rule where that is absent.
    pub(super) fn sliding(&self, fields: &Fields<'_>, rule: impl Fn(u64) -> bool) -> Result<Vec<bool>, ConfigProblem> {
        self.kinds(fields, ["full_attention", "sliding_attention"], rule)
    }

    /// Which layers are of the second of two kinds: by `layer_types`, or by the family's rule where that is absent.
    pub(super) fn kinds(
        &self,
        fields: &Fields<'_>,
        kinds: [&str; 2],
        rule: impl Fn(u64) -> bool,
    ) -> Result<Vec<bool>, ConfigProblem> {
        let listed = self.listed(fields, "layer_types", kinds, rule)?;
        let count = listed.iter().filter(|second| **second).count();
        fields.left_open("layer_types", format!("{count} of {} {}", self.layers, kinds[1]));
        Ok(listed)
    }

    /// The same of the list under `name`.
    pub(super) fn listed(
        &self,
        fields: &Fields<'_>,
        name: &str,
        kinds: [&str; 2],
        rule: impl Fn(u64) -> bool,
    ) -> Result<Vec<bool>, ConfigProblem> {
        let types = fields.text_list(name)?;
        if types.is_empty() {
            return Ok((0..self.layers).map(rule).collect());
        }
        if types.len() as u64 != self.layers {
            let expected = format!("{} entries, one for each layer", self.layers);
            return Err(fields.wrong(name, format!("a list of {}", types.len()), expected));
        }
        let [first, second] = kinds;
        let kind = |text: &String| match text.as_str() {
            text if text == second => Ok(true),
            text if text == first => Ok(false),
            _ => Err(fields.wrong(name, format!("\"{text}\""), format!("`{first}` or `{second}`"))),
        };
        types.iter().map(kind).collect()
    }
}

/// Rotary positions of layers that see everything, and of those that see a window, where the file states them apart.
pub(super) fn angles(
    fields: &Fields<'_>,
    sizes: &Sizes,
    thetas: [f64; 2],
) -> Result<Option<[RotaryConfig; 2]>, ConfigProblem> {
    let both = fields.optional_object("rope_parameters")?.filter(|both| both.states("full_attention"));
    let Some(both) = both else { return Ok(None) };
    let of = |kind: &str, theta| rotary_of(fields, both.optional_object(kind)?.as_ref(), theta, sizes.head_width);
    Ok(Some([of("full_attention", thetas[0])?, of("sliding_attention", thetas[1])?]))
}

impl GroupedConfig {
    pub(super) fn with_window(mut self, window: Option<u64>) -> Self {
        self.detail.window = window;
        self
    }
}

fn activation(fields: &Fields<'_>) -> Result<ActivationKind, ConfigProblem> {
    Ok(activation_of(fields)?.unwrap_or(ActivationKind::Silu))
}

/// The nonlinearity the file names, where it names one.
pub(super) fn activation_of(fields: &Fields<'_>) -> Result<Option<ActivationKind>, ConfigProblem> {
    let Some(name) = fields.spelling(&["hidden_activation", "hidden_act", "activation_function", "activation"]) else {
        return Ok(None);
    };
    let text = fields.optional_text(name)?.unwrap_or_default();
    let wrong = || fields.wrong(name, format!("\"{text}\""), "silu, gelu, gelu_pytorch_tanh, relu or relu2");
    activation_named(&text).map(Some).ok_or_else(wrong)
}

/// What is added in norms, under the names families give it.
fn epsilon(fields: &Fields<'_>) -> Result<f64, ConfigProblem> {
    const NAMES: &[&str] = &["rms_norm_eps", "layer_norm_eps", "norm_epsilon", "norm_eps", "layer_norm_epsilon"];
    fields.spelling(NAMES).map_or(Ok(1e-6), |name| fields.number(name))
}

/// A nonlinearity by the name transformers gives it.
pub(in crate::config) fn activation_named(text: &str) -> Option<ActivationKind> {
    Some(match text {
        "silu" | "swish" => ActivationKind::Silu,
        "gelu" => ActivationKind::Gelu,
        "gelu_pytorch_tanh" | "gelu_new" | "gelu_fast" => ActivationKind::GeluTanh,
        "quick_gelu" => ActivationKind::QuickGelu,
        "relu" => ActivationKind::Relu,
        "relu2" => ActivationKind::SquaredRelu,
        "xielu" => ActivationKind::Xielu,
        _ => return None,
    })
}

/// Rotary positions from `rope_parameters`, or from `rope_theta` and `rope_scaling` of older files.
pub(in crate::config) fn rotary(
    fields: &Fields<'_>,
    theta: f64,
    head_width: u64,
) -> Result<RotaryConfig, ConfigProblem> {
    let stated = match fields.optional_object("rope_parameters")? {
        None => fields.optional_object("rope_scaling")?,
        stated => stated,
    };
    rotary_of(fields, stated.as_ref(), fields.number_or("rope_theta", theta)?, head_width)
}

/// Rotary positions as `stated`, with the base `theta` where that has none.
pub(super) fn rotary_of(
    fields: &Fields<'_>,
    stated: Option<&Fields<'_>>,
    theta: f64,
    head_width: u64,
) -> Result<RotaryConfig, ConfigProblem> {
    let theta = stated.as_ref().map_or(Ok(theta), |stated| stated.number_or("rope_theta", theta))?;
    let partial = fields.number_or("partial_rotary_factor", 1.0)?;
    let partial = stated.as_ref().map_or(Ok(partial), |stated| stated.number_or("partial_rotary_factor", partial))?;
    let width = (head_width as f64 * partial) as u64;
    if width == 0 || width > head_width || !width.is_multiple_of(2) {
        let expected = format!("a fraction that makes an even number of the head width {head_width}");
        return Err(fields.wrong("partial_rotary_factor", partial, expected));
    }
    let form = match stated {
        None => RotaryForm::default(),
        Some(stated) => RotaryForm { layout: RotaryLayout::Halves, scaling: scaling(fields, stated)? },
    };
    Ok(RotaryConfig { theta, width, form })
}

fn scaling(fields: &Fields<'_>, stated: &Fields<'_>) -> Result<RotaryScaling, ConfigProblem> {
    let kind = match stated.optional_text("rope_type")? {
        None => stated.optional_text("type")?,
        kind => kind,
    };
    let longest = fields.number_or("max_position_embeddings", 2048.0)?;
    let original = stated.number_or("original_max_position_embeddings", longest)?;
    Ok(match kind.as_deref() {
        None | Some("default" | "mrope") => RotaryScaling::None,
        Some("linear") => RotaryScaling::Linear { factor: stated.number("factor")? },
        Some("llama3") => RotaryScaling::Llama3 {
            factor: stated.number("factor")?,
            low: stated.number("low_freq_factor")?,
            high: stated.number("high_freq_factor")?,
            original,
        },
        Some("yarn") => {
            let factor = stated.number("factor")?;
            let stretch = |scale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 };
            let [mscale, all] = [stated.number_or("mscale", 0.0)?, stated.number_or("mscale_all_dim", 0.0)?];
            let magnitude = if mscale > 0.0 && all > 0.0 { stretch(mscale) / stretch(all) } else { stretch(1.0) };
            RotaryScaling::Yarn {
                factor,
                fast: stated.number_or("beta_fast", 32.0)?,
                slow: stated.number_or("beta_slow", 1.0)?,
                original,
                magnitude: stated.number_or("attention_factor", magnitude)?,
                truncate: stated.flag_or("truncate", true)?,
            }
        }
        Some("dynamic") => RotaryScaling::Other("dynamic"),
        Some("longrope" | "su") => RotaryScaling::Other("longrope"),
        Some("proportional") => RotaryScaling::Other("proportional"),
        Some("ntk") => RotaryScaling::Other("ntk"),
        Some(other) => {
            let expected = "default, linear, llama3, yarn, dynamic, longrope, ntk, proportional or mrope";
            return Err(stated.wrong("rope_type", format!("\"{other}\""), expected));
        }
    })
}
