//! LLaVA: CLIP or SigLIP, a projector of two layers, and any decoder family.

use types::{ActivationKind, DType};

use super::sizes::activation_named;
use crate::config::fields::Fields;
use crate::config::vision::{SeeingFamily, SquareTowerConfig, SquareTowerKind, VisionConfig, VisionLanguageConfig};
use crate::config::{ConfigProblem, ModelConfig};

pub(in crate::config) fn read(fields: &Fields<'_>) -> Result<VisionLanguageConfig, ConfigProblem> {
    let text = fields.object("text_config")?;
    let ModelConfig::Decoder(language) = crate::config::read_named(&text, "llama")? else {
        return Err(text.wrong("model_type", "no decoder", "a supported decoder family"));
    };
    let mut language = *language;
    language.tied_embeddings = text.tied(&[fields], language.tied_embeddings)?;
    let tower = tower(fields)?;
    let kind = if tower.kind == SquareTowerKind::Clip { "llava" } else { "llava-siglip" };
    let family = SeeingFamily::named(kind)?;
    let dtype = fields.dtype()?.or(text.dtype()?).unwrap_or(DType::Bf16);
    Ok(VisionLanguageConfig { family, vision: VisionConfig::Square(tower), language, dtype })
}

/// Whether the file is of this class, with a vision encoder that is not known here.
pub(in crate::config) fn has_unknown_tower(fields: &Fields<'_>) -> bool {
    let is_llava = fields.optional_text("model_type").ok().flatten().is_some_and(|kind| kind == "llava");
    let vision = fields.optional_object("vision_config").ok().flatten();
    let kind = vision.and_then(|vision| vision.optional_text("model_type").ok().flatten());
    is_llava && kind.is_some_and(|kind| !["clip_vision_model", "siglip_vision_model"].contains(&kind.as_str()))
}

fn tower(fields: &Fields<'_>) -> Result<SquareTowerConfig, ConfigProblem> {
    let vision = fields.object("vision_config")?;
    if !vision.states("model_type") {
        vision.assume("model_type", &"clip_vision_model");
    }
    let kind = match vision.optional_text("model_type")?.as_deref() {
        None | Some("clip_vision_model") => SquareTowerKind::Clip,
        Some("siglip_vision_model") => SquareTowerKind::Siglip,
        Some(other) => {
            let expected = "\"clip_vision_model\" or \"siglip_vision_model\"";
            return Err(vision.wrong("model_type", format!("\"{other}\""), expected));
        }
    };
    if kind == SquareTowerKind::Siglip && vision.flag_or("vision_use_head", true)? {
        return Err(vision.wrong("vision_use_head", true, "false: a pooling head is not modelled"));
    }
    let layer = fields.integer_or("vision_feature_layer", -2)?;
    if layer != -2 {
        return Err(fields.wrong("vision_feature_layer", layer, "-2, the output of the last block but one"));
    }
    let strategy = fields.optional_text("vision_feature_select_strategy")?.unwrap_or_else(|| "default".to_owned());
    let drop_class = match strategy.as_str() {
        "default" => true,
        "full" => false,
        other => {
            let expected = "\"default\" or \"full\"";
            return Err(fields.wrong("vision_feature_select_strategy", format!("\"{other}\""), expected));
        }
    };
    let [width, inner, layers, heads] =
        [("hidden_size", 768), ("intermediate_size", 3072), ("num_hidden_layers", 12), ("num_attention_heads", 12)]
            .map(|(name, default)| vision.size_or(name, default));
    let [width, inner, layers, heads] = [width?, inner?, layers?, heads?];
    vision.at_most("num_hidden_layers", layers, crate::config::fields::MOST_LAYERS)?;
    vision.divides(("hidden_size", width), ("num_attention_heads", heads))?;
    let (patch, activation, epsilon) = match kind {
        SquareTowerKind::Clip => (32, ActivationKind::QuickGelu, 1e-5),
        SquareTowerKind::Siglip => (16, ActivationKind::GeluTanh, 1e-6),
    };
    let [image_size, patch] = [vision.size_or("image_size", 224)?, vision.size_or("patch_size", patch)?];
    if patch > image_size {
        return Err(vision.wrong("patch_size", patch, format!("at most `image_size` ({image_size})")));
    }
    Ok(SquareTowerConfig {
        kind,
        width,
        layers,
        heads,
        inner,
        activation: named(&vision, "hidden_act", activation)?,
        image_size,
        patch,
        epsilon: vision.number_or("layer_norm_eps", epsilon)?,
        drop_class,
        projector_activation: named(fields, "projector_hidden_act", ActivationKind::Gelu)?,
        projector_bias: fields.flag_or("multimodal_projector_bias", true)?,
    })
}

fn named(fields: &Fields<'_>, name: &str, default: ActivationKind) -> Result<ActivationKind, ConfigProblem> {
    match fields.optional_text(name)? {
        None => Ok(default),
        Some(text) => activation_named(&text).ok_or_else(|| {
            fields.wrong(name, format!("\"{text}\""), "quick_gelu, gelu, gelu_pytorch_tanh, silu or relu")
        }),
    }
}
