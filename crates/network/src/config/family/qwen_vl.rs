//! Qwen2-VL, Qwen2.5-VL and Qwen3-VL: Qwen's decoders behind an encoder for images of any size.

use types::{ActivationKind, DType, RotaryLayout};

use super::sizes::activation_named;
use super::{Family, Names, names, qwen, qwen_moe, qwen_next};
use crate::config::ConfigProblem;
use crate::config::decoder::{AttentionConfig, DecoderConfig};
use crate::config::fields::Fields;
use crate::config::vision::{
    ModuleLayout, PatchTowerConfig, PatchTowerNames, VisionConfig, VisionLanguageConfig, VisionLanguageNames,
};

/// Fewest and most pixels an image is resized to, by the `preprocessor_config.json` published with Qwen2-VL and 2.5.
const PIXELS: [u64; 2] = [3136, 12_845_056];

/// The same for Qwen3-VL.
const PIXELS_3: [u64; 2] = [65_536, 16_777_216];

pub(crate) const TEXT_2: Family = Family {
    home: "transformers.models.qwen2_vl.modeling_qwen2_vl",
    names: Names { model: "Qwen2VLTextModel", norm: "Qwen2RMSNorm", mlp: "Qwen2MLP", ..names!("Qwen2VL") },
    definitions: qwen::QWEN2.definitions,
};

pub(crate) const TEXT_2_5: Family = Family {
    home: "transformers.models.qwen2_5_vl.modeling_qwen2_5_vl",
    names: Names { model: "Qwen2_5_VLTextModel", mlp: "Qwen2MLP", ..names!("Qwen2_5_VL") },
    definitions: qwen::QWEN2.definitions,
};

pub(crate) const TEXT_3: Family = Family {
    home: "transformers.models.qwen3_vl.modeling_qwen3_vl",
    names: Names {
        layer: "Qwen3VLTextDecoderLayer",
        attention: "Qwen3VLTextAttention",
        norm: "Qwen3VLTextRMSNorm",
        mlp: "Qwen3VLTextMLP",
        model: "Qwen3VLTextModel",
        ..names!("Qwen3VL")
    },
    definitions: qwen::QWEN3.definitions,
};

pub(crate) const TEXT_3_MOE: Family = Family {
    home: "transformers.models.qwen3_vl_moe.modeling_qwen3_vl_moe",
    names: Names {
        layer: "Qwen3VLMoeTextDecoderLayer",
        attention: "Qwen3VLMoeTextAttention",
        norm: "Qwen3VLMoeTextRMSNorm",
        mlp: "Qwen3VLMoeTextMLP",
        expert: "Qwen3VLMoeTextMLP",
        mixture: "Qwen3VLMoeTextSparseMoeBlock",
        gate: "Qwen3VLMoeTextTopKRouter",
        model: "Qwen3VLMoeTextModel",
        ..names!("Qwen3VLMoe")
    },
    definitions: qwen::QWEN3.definitions,
};

const WHOLE_2: VisionLanguageNames = VisionLanguageNames {
    causal: "Qwen2VLForConditionalGeneration",
    home: TEXT_2.home,
    tower: "Qwen2VisionTransformerPretrainedModel",
    model: "Qwen2VLModel",
    layout: ModuleLayout::SideBySide,
};

const WHOLE_2_5: VisionLanguageNames = VisionLanguageNames {
    causal: "Qwen2_5_VLForConditionalGeneration",
    home: TEXT_2_5.home,
    tower: "Qwen2_5_VisionTransformerPretrainedModel",
    model: "Qwen2_5_VLModel",
    layout: ModuleLayout::SideBySide,
};

const WHOLE_3: VisionLanguageNames = VisionLanguageNames {
    causal: "Qwen3VLForConditionalGeneration",
    home: TEXT_3.home,
    tower: "Qwen3VLVisionModel",
    model: "Qwen3VLModel",
    layout: ModuleLayout::InOneModel,
};

const WHOLE_3_MOE: VisionLanguageNames = VisionLanguageNames {
    causal: "Qwen3VLMoeForConditionalGeneration",
    home: TEXT_3_MOE.home,
    tower: "Qwen3VLMoeVisionModel",
    model: "Qwen3VLMoeModel",
    layout: ModuleLayout::InOneModel,
};

const WHOLE_3_5: VisionLanguageNames = VisionLanguageNames {
    causal: "Qwen3_5ForConditionalGeneration",
    home: qwen_next::DENSE.home,
    tower: "Qwen3_5VisionModel",
    model: "Qwen3_5Model",
    layout: ModuleLayout::InOneModel,
};

const WHOLE_3_5_MOE: VisionLanguageNames = VisionLanguageNames {
    causal: "Qwen3_5MoeForConditionalGeneration",
    home: qwen_next::SPARSE.home,
    tower: "Qwen3_5MoeVisionModel",
    model: "Qwen3_5MoeModel",
    layout: ModuleLayout::InOneModel,
};

/// Every one, for the descriptions of classes.
pub(crate) const WHOLE: [&VisionLanguageNames; 6] =
    [&WHOLE_2, &WHOLE_2_5, &WHOLE_3, &WHOLE_3_MOE, &WHOLE_3_5, &WHOLE_3_5_MOE];

/// The encoders of all, for the descriptions of classes.
pub(crate) const TOWERS: [&PatchTowerNames; 6] =
    [&TOWER_2, &TOWER_2_5, &TOWER_3, &TOWER_3_MOE, &TOWER_3_5, &TOWER_3_5_MOE];

const TOWER_2: PatchTowerNames = PatchTowerNames {
    tower: "Qwen2VisionTransformerPretrainedModel",
    patch: "PatchEmbed",
    block: "Qwen2VLVisionBlock",
    attention: "VisionAttention",
    norm: "LayerNorm",
    mlp: "VisionMlp",
    mlp_modules: ["fc1", "fc2"],
    merger: "PatchMerger",
    flat_merger: false,
};

const TOWER_2_5: PatchTowerNames = PatchTowerNames {
    tower: "Qwen2_5_VisionTransformerPretrainedModel",
    patch: "Qwen2_5_VisionPatchEmbed",
    block: "Qwen2_5_VLVisionBlock",
    attention: "Qwen2_5_VLVisionAttention",
    norm: "Qwen2_5_VLRMSNorm",
    mlp: "Qwen2_5_VLMLP",
    mlp_modules: ["fc1", "fc2"],
    merger: "Qwen2_5_VLPatchMerger",
    flat_merger: false,
};

const TOWER_3: PatchTowerNames = PatchTowerNames {
    tower: "Qwen3VLVisionModel",
    patch: "Qwen3VLVisionPatchEmbed",
    block: "Qwen3VLVisionBlock",
    attention: "Qwen3VLVisionAttention",
    norm: "LayerNorm",
    mlp: "Qwen3VLVisionMLP",
    mlp_modules: ["linear_fc1", "linear_fc2"],
    merger: "Qwen3VLVisionPatchMerger",
    flat_merger: true,
};

const TOWER_3_MOE: PatchTowerNames = PatchTowerNames {
    tower: "Qwen3VLMoeVisionModel",
    patch: "Qwen3VLMoeVisionPatchEmbed",
    block: "Qwen3VLMoeVisionBlock",
    attention: "Qwen3VLMoeVisionAttention",
    mlp: "Qwen3VLMoeVisionMLP",
    merger: "Qwen3VLMoeVisionPatchMerger",
    ..TOWER_3
};

const TOWER_3_5: PatchTowerNames = PatchTowerNames {
    tower: "Qwen3_5VisionModel",
    patch: "Qwen3_5VisionPatchEmbed",
    block: "Qwen3_5VisionBlock",
    attention: "Qwen3_5VisionAttention",
    mlp: "Qwen3_5VisionMLP",
    merger: "Qwen3_5VisionPatchMerger",
    ..TOWER_3
};

const TOWER_3_5_MOE: PatchTowerNames = PatchTowerNames {
    tower: "Qwen3_5MoeVisionModel",
    patch: "Qwen3_5MoeVisionPatchEmbed",
    block: "Qwen3_5MoeVisionBlock",
    attention: "Qwen3_5MoeVisionAttention",
    mlp: "Qwen3_5MoeVisionMLP",
    merger: "Qwen3_5MoeVisionPatchMerger",
    ..TOWER_3
};

pub(in crate::config) fn read_2(fields: &Fields<'_>) -> Result<VisionLanguageConfig, ConfigProblem> {
    let vision = fields.object("vision_config")?;
    let width = vision.size_or("embed_dim", 1280)?;
    let tower = PatchTowerConfig {
        inner: width * vision.at_most("mlp_ratio", vision.size_or("mlp_ratio", 4)?, 1 << 10)?,
        activation: activation(&vision, ActivationKind::QuickGelu)?,
        output: vision.size_or("hidden_size", 3584)?,
        ..tower(&vision, &TOWER_2, width, [32, 14])?
    };
    whole(fields, &WHOLE_2, tower, |text| qwen::qwen2(text, &TEXT_2))
}

pub(in crate::config) fn read_2_5(fields: &Fields<'_>) -> Result<VisionLanguageConfig, ConfigProblem> {
    let vision = fields.object("vision_config")?;
    let width = vision.size_or("hidden_size", 3584)?;
    let whole_blocks = if vision.states("fullatt_block_indexes") {
        vision.counts("fullatt_block_indexes")?
    } else {
        vec![7, 15, 23, 31]
    };
    let tower = PatchTowerConfig {
        inner: vision.size_or("intermediate_size", 3420)?,
        activation: activation(&vision, ActivationKind::Silu)?,
        gated: true,
        output: vision.size_or("out_hidden_size", 3584)?,
        window: Some((vision.size_or("window_size", 112)?, whole_blocks)),
        ..tower(&vision, &TOWER_2_5, width, [32, 14])?
    };
    whole(fields, &WHOLE_2_5, tower, |text| qwen::qwen2(text, &TEXT_2_5))
}

pub(in crate::config) fn read_3(fields: &Fields<'_>) -> Result<VisionLanguageConfig, ConfigProblem> {
    let tower = tower_3(fields, &TOWER_3, &[8, 16, 24])?;
    whole(fields, &WHOLE_3, tower, |text| qwen::qwen3(text, &TEXT_3))
}

pub(in crate::config) fn read_3_moe(fields: &Fields<'_>) -> Result<VisionLanguageConfig, ConfigProblem> {
    let tower = tower_3(fields, &TOWER_3_MOE, &[8, 16, 24])?;
    whole(fields, &WHOLE_3_MOE, tower, |text| qwen_moe::qwen3(text, &TEXT_3_MOE))
}

pub(in crate::config) fn read_3_5(fields: &Fields<'_>) -> Result<VisionLanguageConfig, ConfigProblem> {
    whole(fields, &WHOLE_3_5, tower_3(fields, &TOWER_3_5, &[])?, qwen_next::read_dense)
}

pub(in crate::config) fn read_3_5_moe(fields: &Fields<'_>) -> Result<VisionLanguageConfig, ConfigProblem> {
    whole(fields, &WHOLE_3_5_MOE, tower_3(fields, &TOWER_3_5_MOE, &[])?, qwen_next::read_sparse)
}

/// The encoder of Qwen3-VL and its successors. `deep`: blocks whose output goes to the first decoder layers too, where the
/// file does not say.
fn tower_3(
    fields: &Fields<'_>,
    names: &'static PatchTowerNames,
    deep: &[u64],
) -> Result<PatchTowerConfig, ConfigProblem> {
    let vision = fields.object("vision_config")?;
    let width = vision.size_or("hidden_size", 1152)?;
    let deepstack = vision.optional_counts("deepstack_visual_indexes")?.unwrap_or_else(|| deep.to_vec());
    Ok(PatchTowerConfig {
        inner: vision.size_or("intermediate_size", 4304)?,
        activation: activation(&vision, ActivationKind::GeluTanh)?,
        patch_bias: true,
        output: vision.size_or("out_hidden_size", 3584)?,
        positions: Some(vision.size_or("num_position_embeddings", 2304)?),
        deepstack,
        pixels: PIXELS_3,
        ..tower(&vision, names, width, [27, 16])?
    })
}

/// `defaults`: blocks, and side of a patch.
fn tower(
    vision: &Fields<'_>,
    names: &'static PatchTowerNames,
    width: u64,
    defaults: [u64; 2],
) -> Result<PatchTowerConfig, ConfigProblem> {
    let heads = vision.size_or("num_heads", 16)?;
    let bounded = |name: &str, default: u64, most: u64| vision.at_most(name, vision.size_or(name, default)?, most);
    vision.divides(("hidden_size", width), ("num_heads", heads))?;
    Ok(PatchTowerConfig {
        names,
        width,
        layers: bounded("depth", defaults[0], 10_000)?,
        heads,
        inner: width,
        activation: ActivationKind::Gelu,
        gated: false,
        patch: bounded("patch_size", defaults[1], 1 << 12)?,
        frames: bounded("temporal_patch_size", 2, 1 << 6)?,
        channels: bounded("in_channels", 3, 1 << 10)?,
        patch_bias: false,
        merge: bounded("spatial_merge_size", 2, 1 << 6)?,
        output: width,
        positions: None,
        window: None,
        deepstack: Vec::new(),
        pixels: PIXELS,
    })
}

fn activation(vision: &Fields<'_>, default: ActivationKind) -> Result<ActivationKind, ConfigProblem> {
    match vision.optional_text("hidden_act")? {
        None => Ok(default),
        Some(text) => activation_named(&text).ok_or_else(|| {
            vision.wrong("hidden_act", format!("\"{text}\""), "quick_gelu, gelu, gelu_pytorch_tanh or silu")
        }),
    }
}

/// The decoder's fields stand in `text_config`, or at the top of older files.
fn whole(
    fields: &Fields<'_>,
    names: &'static VisionLanguageNames,
    tower: PatchTowerConfig,
    read: impl Fn(&Fields<'_>) -> Result<DecoderConfig, ConfigProblem>,
) -> Result<VisionLanguageConfig, ConfigProblem> {
    let text = fields.optional_object("text_config")?.unwrap_or_else(|| fields.as_part("text_config"));
    let mut language = read(&text)?;
    language.tied_embeddings = text.tied(&[fields], language.tied_embeddings)?;
    for layer in &mut language.layers {
        if let AttentionConfig::Grouped(attention) = &mut layer.attention
            && let Some(rotary) = &mut attention.rotary
        {
            rotary.form.layout = RotaryLayout::Sections;
        }
    }
    if tower.output != language.width {
        let expected = format!("{}, the hidden size of the decoder", language.width);
        return Err(fields.object("vision_config")?.wrong("out_hidden_size", tower.output, expected));
    }
    let dtype = fields.dtype()?.or(text.dtype()?).unwrap_or(DType::Bf16);
    Ok(VisionLanguageConfig { names, vision: VisionConfig::Patches(tower), language, dtype })
}
