//! Module classes of the published models: what each computes, where it is defined, what else it is called.

use std::sync::LazyLock;

use crate::config::encoder::{self, EncoderFamily};
use crate::config::encoder_decoder::{self, EncoderDecoderFamily};
use crate::config::family::{Definitions, Family, families, llava, qwen_vl};
use crate::config::t5::{self, T5Family};
use crate::config::vision::{PatchTowerNames, VisionLanguageNames};

/// One class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: &'static str,
    /// File or package that defines it.
    pub home: &'static str,
    /// What it computes.
    pub definition: &'static str,
    /// Other classes that are the same module with another kernel.
    pub aliases: &'static [&'static str],
}

const fn class(name: &'static str, home: &'static str, definition: &'static str) -> Class {
    Class { name, home, definition, aliases: &[] }
}

const TORCH: &str = "torch.nn";
const ENCODER: &str = "deepencoder";
const OCR: &str = "modeling_deepseekocr";
const V2: &str = "modeling_deepseekv2";
const LLAMA: &str = "transformers.models.llama.modeling_llama";
const CLIP: &str = "transformers.models.clip.modeling_clip";
const SIGLIP: &str = "transformers.models.siglip.modeling_siglip";
const BERT: &str = "transformers.models.bert.modeling_bert";
const MODERN: &str = "transformers.models.modernbert.modeling_modernbert";
const LLAVA: &str = "transformers.models.llava.modeling_llava";
const TRANSFORMERS: &str = "transformers.activations";
const OURS: &str = "shallow_resnet";

/// Classes that belong to no family of decoders, or are described better on their own.
const CLASSES: &[Class] = &[
    class("DeepseekOCRForCausalLM", OCR, "logits = lm_head(model(tokens, images))"),
    class(
        "DeepseekOCRModel",
        OCR,
        "embed the tokens; at prefill, replace the image tokens with the projected features of the tiles and the \
         global view, a newline after each row and a separator after the page; then all decoder layers and the final \
         norm",
    ),
    class(
        "DeepseekV2DecoderLayer",
        V2,
        "h = x + self_attn(input_layernorm(x)); y = h + mlp(post_attention_layernorm(h))",
    ),
    class("DeepseekV2MLP", V2, "y = down_proj(silu(gate_proj(x)) * up_proj(x))"),
    class(
        "DeepseekV2MoE",
        V2,
        "y = sum over the chosen experts of score * expert(x), plus shared_experts(x), which every token passes through",
    ),
    class("MoEGate", V2, "scores = softmax(x W^T) in single precision; the k best experts of each token"),
    class("DeepseekV2RMSNorm", V2, "y = x / sqrt(mean(x^2) + eps) * weight"),
    class(
        "ImageEncoderViT",
        ENCODER,
        "patches plus positions, all blocks, the neck, then two convolutions of stride 2",
    ),
    class("PatchEmbed", ENCODER, "a convolution whose kernel and stride are one patch, channels last"),
    class(
        "Block",
        ENCODER,
        "h = x + attn(norm1(x)), in windows padded to whole ones unless the block is global; y = h + mlp(norm2(h))",
    ),
    class(
        "Attention",
        ENCODER,
        "softmax(q k^T / sqrt(d) + rows + columns) v, where rows and columns are q times relative-position tables",
    ),
    class("MLPBlock", ENCODER, "y = lin2(gelu(lin1(x)))"),
    class("LayerNorm2d", ENCODER, "y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, over channels"),
    class("VitModel", ENCODER, "transformer(pre_layrnorm(embeddings(features of SAM)))"),
    class(
        "CLIPVisionEmbeddings",
        ENCODER,
        "class token and SAM features as patches, plus positions resampled to their grid; its own patch convolution is not used",
    ),
    class("NoTPTransformer", ENCODER, "all blocks in sequence"),
    class("NoTPTransformerBlock", ENCODER, "h = x + self_attn(layer_norm1(x)); y = h + mlp(layer_norm2(h))"),
    class("NoTPAttention", ENCODER, "y = out_proj(softmax(q k^T / sqrt(d)) v) with q, k, v from qkv_proj(x)"),
    class("NoTPFeedForward", ENCODER, "y = fc2(quick_gelu(fc1(x)))"),
    class("MlpProjector", ENCODER, "y = x W^T + bias, from concatenated CLIP and SAM features to the decoder's width"),
    Class {
        name: "LlamaAttention",
        home: LLAMA,
        definition: Definitions::COMMON.attention,
        aliases: &["LlamaFlashAttention2", "LlamaSdpaAttention"],
    },
    class("LlamaRotaryEmbedding", LLAMA, "y = x * cos(position * angle) + rotate_half(x) * sin(position * angle)"),
    class("CLIPVisionTransformer", CLIP, "encoder(pre_layrnorm(embeddings(images)))"),
    class("CLIPEncoder", CLIP, "all blocks in sequence"),
    class("CLIPEncoderLayer", CLIP, "h = x + self_attn(layer_norm1(x)); y = h + mlp(layer_norm2(h))"),
    class("CLIPAttention", CLIP, "y = out_proj(softmax(q k^T / sqrt(d)) v)"),
    class("CLIPMLP", CLIP, "y = fc2(quick_gelu(fc1(x)))"),
    class("SiglipVisionTransformer", SIGLIP, "encoder(embeddings(images))"),
    class("SiglipVisionEmbeddings", SIGLIP, "patches plus positions"),
    class("SiglipEncoder", SIGLIP, "all blocks in sequence"),
    class("SiglipEncoderLayer", SIGLIP, "h = x + self_attn(layer_norm1(x)); y = h + mlp(layer_norm2(h))"),
    class("SiglipAttention", SIGLIP, "y = out_proj(softmax(q k^T / sqrt(d)) v)"),
    class("SiglipMLP", SIGLIP, "y = fc2(gelu(fc1(x)))"),
    class("LlavaMultiModalProjector", LLAVA, "y = linear_2(gelu(linear_1(x)))"),
    class("BertOnlyMLMHead", BERT, "predictions(x)"),
    class("BertLMPredictionHead", BERT, "y = transform(x) W^T + bias, where W is the token embedding table"),
    class("BertPredictionHeadTransform", BERT, "y = LayerNorm(gelu(dense(x)))"),
    class("ModernBertModel", MODERN, "final_norm(all layers(embeddings(tokens)))"),
    class("ModernBertForMaskedLM", MODERN, "scores of all tokens at each position"),
    class(
        "ModernBertForSequenceClassification",
        MODERN,
        "scores of the whole text, from its first position or the mean",
    ),
    class("ModernBertForTokenClassification", MODERN, "scores of each token"),
    class("ModernBertEmbeddings", MODERN, "y = norm(table[ids])"),
    class("ModernBertEncoderLayer", MODERN, "h = x + attn(attn_norm(x)); y = h + mlp(mlp_norm(h))"),
    class(
        "ModernBertAttention",
        MODERN,
        "y = Wo(softmax(q k^T / sqrt(d)) v) with rotated q and k from Wqkv(x), over all positions or a window around each",
    ),
    class("ModernBertMLP", MODERN, "input, gate = Wi(x); y = Wo(gelu(input) * gate)"),
    class("ModernBertPredictionHead", MODERN, "y = norm(gelu(dense(x)))"),
    class("FalconLinear", "transformers.models.falcon.modeling_falcon", "y = x W^T + bias"),
    class(
        "OPTLearnedPositionalEmbedding",
        "transformers.models.opt.modeling_opt",
        "y = table[positions], after two unused rows",
    ),
    class("Conv1d", TORCH, "each channel is the sum over taps of input times weight"),
    class("Conv3d", TORCH, "each output is the sum over channels and taps of input times weight, plus bias"),
    class("ShallowResNet", OURS, "head(residual(stem(x)))"),
    class("BasicBlock", OURS, "y = relu(x + bn2(conv2(relu(bn1(conv1(x))))))"),
    class("Linear", TORCH, "y = x W^T + bias"),
    class("Conv2d", TORCH, "each output is the sum over channels and taps of input times weight, plus bias"),
    class("Embedding", TORCH, "y = table[ids]"),
    class("LayerNorm", TORCH, "y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias"),
    class("BatchNorm2d", TORCH, "y = (x - running_mean) / sqrt(running_var + eps) * weight + bias"),
    class("GELU", TORCH, "y = x / 2 * (1 + erf(x / sqrt(2)))"),
    class("GELUTanh", TRANSFORMERS, "y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))"),
    class("QuickGELU", TRANSFORMERS, "y = x / (1 + exp(-1.702 x))"),
    class("SiLU", TORCH, "y = x / (1 + exp(-x))"),
    class("ReLU", TORCH, "y = max(x, 0)"),
    class("ReLUSquaredActivation", TRANSFORMERS, "y = max(x, 0)^2"),
    class("Conv1D", "transformers.pytorch_utils", "y = x W + bias"),
    class("ModuleList", TORCH, "a list of modules, applied by the module that contains it"),
    class("Sequential", TORCH, "its submodules in sequence"),
];

/// Every class a network here is made of, each once.
pub fn classes() -> &'static [Class] {
    static ALL: LazyLock<Vec<Class>> = LazyLock::new(|| {
        let mut all = CLASSES.to_vec();
        let seeing = qwen_vl::WHOLE.iter().chain(&llava::WHOLE).flat_map(|names| of_seeing(names));
        let towers = qwen_vl::TOWERS.iter().zip(&qwen_vl::WHOLE).flat_map(|(tower, whole)| of_tower(tower, whole.home));
        let encoders = encoder::FAMILIES.iter().flat_map(|(_, family)| of_encoder(family));
        let both = t5::FAMILIES.iter().flat_map(|family| of_t5(family));
        let both = both.chain(encoder_decoder::FAMILIES.iter().flat_map(of_both));
        let families = families().flat_map(of_family);
        for class in families.chain(seeing).chain(towers).chain(encoders).chain(both) {
            if all.iter().all(|known| known.name != class.name) {
                all.push(class);
            }
        }
        all
    });
    &ALL
}

/// The classes of a family of decoders.
fn of_family(family: &Family) -> Vec<Class> {
    let Family { home, names, definitions } = *family;
    let mut classes = vec![
        class(names.causal, home, "logits = lm_head(model(tokens))"),
        class(names.model, home, "embed the tokens, all decoder layers, the final norm"),
        class(names.layer, home, definitions.layer),
        class(names.attention, home, definitions.attention),
        class(names.norm, home, definitions.norm),
        class(names.bare_norm, home, "y = x / sqrt(mean(x^2) + eps)"),
        class(names.mlp, home, definitions.mlp),
        class(names.mixture, home, definitions.mixture),
        class(names.gate, home, definitions.gate),
        class(names.expert, home, definitions.mlp),
        class(names.experts, home, "the chosen experts of each token, all stored in one tensor"),
        class(names.embedding, home, definitions.embedding),
    ];
    classes.push(class(
        names.indexer,
        home,
        "the positions each query attends to: those with the best scores of its small queries and keys",
    ));
    let delta = "y = out_proj(gated_norm(gated delta rule over q, k, v of conv1d(projections of x)))";
    classes.push(class(names.delta, home, delta));
    classes.push(class(names.forget_gate, home, "decay = -exp(A_log) * softplus(f_b_proj(f_a_proj(x)) + dt_bias)"));
    classes.push(class(
        names.altup,
        home,
        "predicts all streams from each other, then corrects them with the computed one",
    ));
    classes.push(class(names.laurel, home, "y = x + post_laurel_norm(linear_right(linear_left(x)))"));
    let [connection, last] = names.hyper;
    let collapse = "x = sum over streams of weight * stream, weights = sigmoid(scale * fn(norm(streams)) + base)";
    classes.extend([connection, last].map(|name| class(name, home, collapse)));
    let compress = "one entry for every few positions: their values, weighted by a softmax over gates and biases, then \
                    normalised and rotated";
    classes.extend(names.compressors.map(|name| class(name, home, compress)));
    classes.push(class(names.scorer, home, "scores = sum over heads of weight * relu(q k)"));
    classes.push(class(names.grouped_linear, home, "y = x W^T, with a separate part of W for each group of heads"));
    let block = "y = feed_forward(norm(self_attn(norm(x, embeddings)))), its projections with adapters of the layer";
    classes.push(class(names.shared_block, home, block));
    let space = "y = out_proj(state-space scan over conv1d of parts of in_proj(x), times silu(gate)), with a norm in front of \
                 or behind the gate where there is one";
    classes.push(class(names.state_space, home, space));
    let [cross_layer, cross] = names.cross;
    classes.push(class(
        cross_layer,
        home,
        "h = x + tanh(gate) * cross_attn(input_layernorm(x)); y = h + tanh(gate) * mlp(norm(h))",
    ));
    classes.push(class(cross, home, "y = o_proj(softmax(q k^T / sqrt(d)) v), k and v from image features"));
    let short = "y = out_proj(c * conv(b * x)) with b, c, x from in_proj(x)";
    classes.push(class(names.short_conv, home, short));
    classes.extend(names.state_space_layer.map(|name| class(name, home, definitions.layer)));
    let gated = "y = x / sqrt(mean(x^2) + eps) * weight, with the activated gate multiplied in front or behind";
    classes.push(class(names.gated_norm, home, gated));
    classes.extend(names.rotary.map(|name| class(name, home, "rotates queries and keys by their position")));
    classes
}

/// The classes of a family of encoders.
fn of_encoder(family: &EncoderFamily) -> Vec<Class> {
    let [model, tokens, classes, token_classes] = family.classes;
    let [attention, core, mixed] = family.attention;
    let output = "y = LayerNorm(dense(x) + residual)";
    let heads = [
        (tokens, "scores of all tokens at each position"),
        (classes, "scores of the whole text, from its first position"),
        (token_classes, "scores of each token"),
    ];
    let flat = [
        (model, "all layers(embeddings(tokens)), then the pooler where there is one"),
        (family.embeddings, "y = LayerNorm(words[ids] + positions + segments), each where the family has it"),
        (family.encoder, "all layers in sequence"),
        (
            family.layer,
            if family.flat.is_some_and(|flat| flat.norms_before) {
                "h = x + attention(norm(x)); y = h + feed-forward(norm(h))"
            } else {
                "h = norm(x + attention(x)); y = norm(h + feed-forward(h))"
            },
        ),
        (
            attention,
            "y = output(softmax(q k^T / sqrt(d)) v), over all positions; q and k rotated where no table tells positions",
        ),
        (family.output, "y = down(activation(first(x))), or down(activation(gate(x)) * up(x))"),
        (family.pooler, "y = tanh(dense(x)) of the first position"),
        (family.heads[0], "y = out_proj(tanh(dense(x))) of the first position"),
        (family.heads[1], "y = layer_norm(gelu(dense(x))) W^T + bias, where W is the token embedding table"),
        ("EuroBertRMSNorm", "y = x / sqrt(mean(x^2) + eps) * weight"),
    ];
    let bert = [
        (model, "pooler(encoder(embeddings(tokens))), or the encoder's output if there is a head"),
        (family.embeddings, "y = LayerNorm(words[ids] + positions + segments)"),
        (family.encoder, "all layers in sequence"),
        (family.layer, "h = attention(x); y = output(intermediate(h), h)"),
        (attention, "y = output(self(x), x)"),
        (core, family.core()),
        (mixed, output),
        (family.intermediate, "y = gelu(dense(x))"),
        (family.output, output),
        (family.pooler, "y = tanh(dense(x)) of the first position"),
        (family.heads[0], "y = out_proj(tanh(dense(x))) of the first position"),
        (family.heads[1], "y = layer_norm(gelu(dense(x))) W^T + bias, where W is the token embedding table"),
        ("ConvLayer", "y = LayerNorm(layer(x) + tanh(conv(x)))"),
        ("EsmContactPredictionHead", "contacts between residues, which no pass here asks for"),
    ];
    let parts: &[_] = if family.flat.is_some() { &flat } else { &bert };
    heads.iter().chain(parts).map(|(name, definition)| class(name, family.home, definition)).collect()
}

/// The classes of a family with an encoder and a decoder of text.
fn of_t5(family: &T5Family) -> Vec<Class> {
    let [itself, source, feed_forward] = family.parts;
    let [plain, gated] = family.dense;
    [
        (family.conditional, "logits = lm_head(decoder(tokens, encoder(prompt))); the encoder runs once"),
        (family.stack, "final_layer_norm(all blocks(shared[ids]))"),
        (family.block, "self-attention, in a decoder also attention to the encoder's output, then the feed-forward"),
        (itself, "y = x + SelfAttention(layer_norm(x))"),
        (source, "y = x + EncDecAttention(layer_norm(x), encoder's output)"),
        (feed_forward, "y = x + DenseReluDense(layer_norm(x))"),
        (family.attention, "y = o(softmax(q k^T + relative-position bias) v)"),
        (plain, "y = wo(activation(wi(x)))"),
        (gated, "y = wo(activation(wi_0(x)) * wi_1(x))"),
        (family.norm, "y = x / sqrt(mean(x^2) + eps) * weight"),
    ]
    .map(|(name, definition)| class(name, family.home, definition))
    .to_vec()
}

/// The classes of a family with an encoder of text or sound and a decoder.
fn of_both(family: &EncoderDecoderFamily) -> Vec<Class> {
    let encoder = if family.of_sound {
        "all layers(gelu(conv2(gelu(conv1(frames)))) + positions), then layer_norm"
    } else {
        "all layers(table[ids] + positions); norms behind the sum and behind the layers where the family has them"
    };
    let [of_encoder, of_decoder] = if family.norm_before {
        [
            "h = x + self_attn(self_attn_layer_norm(x)); y = h + fc2(activation(fc1(final_layer_norm(h))))",
            "h = x + self_attn(self_attn_layer_norm(x)); h = h + encoder_attn(encoder_attn_layer_norm(h), encoder's \
             output); y = h + fc2(activation(fc1(final_layer_norm(h))))",
        ]
    } else {
        [
            "h = self_attn_layer_norm(x + self_attn(x)); y = final_layer_norm(h + fc2(activation(fc1(h))))",
            "h = self_attn_layer_norm(x + self_attn(x)); h = encoder_attn_layer_norm(h + encoder_attn(h, encoder's \
             output)); y = final_layer_norm(h + fc2(activation(fc1(h))))",
        ]
    };
    let source = if family.of_sound {
        "logits = proj_out(model(frames, tokens))"
    } else {
        "logits = head(model(prompt, tokens))"
    };
    [
        (family.conditional, source),
        (family.model, "decoder(tokens, encoder(prompt)); the encoder runs once"),
        (family.stacks[0], encoder),
        (family.stacks[1], "all layers(table[ids] + positions), with norms as in the encoder"),
        (family.positions_class, "y = table[positions]"),
        (family.layers[0], of_encoder),
        (family.layers[1], of_decoder),
        (
            family.attention,
            "y = out_proj(softmax(q k^T / sqrt(d)) v), k and v from x and earlier positions, or from the encoder's output",
        ),
    ]
    .map(|(name, definition)| class(name, family.home, definition))
    .to_vec()
}

/// The classes around a vision encoder and a decoder.
fn of_seeing(names: &VisionLanguageNames) -> Vec<Class> {
    vec![
        class(
            names.causal,
            names.home,
            "logits = lm_head(decoder(tokens, with the encoder's output at the image tokens))",
        ),
        class(names.tower, names.home, "images to features"),
        class(names.model, names.home, "encoder and decoder"),
    ]
}

/// The classes of an encoder of patches.
fn of_tower(names: &PatchTowerNames, home: &'static str) -> Vec<Class> {
    let mlp = "y = second(activation(first(x))), or down_proj(silu(gate_proj(x)) * up_proj(x))";
    vec![
        class(names.patch, home, "a convolution whose kernel and stride are one patch"),
        class(names.block, home, "h = x + attn(norm1(x)); y = h + mlp(norm2(h))"),
        class(
            names.attention,
            home,
            "y = proj(softmax(q k^T / sqrt(d)) v) with q, k, v from qkv(x), rotated by row and column",
        ),
        class(names.norm, home, "y = x / sqrt(mean(x^2) + eps) * weight"),
        class(names.mlp, home, mlp),
        class(names.merger, home, "concatenates neighbouring patches, then two linear layers to the decoder's width"),
    ]
}

impl Class {
    /// The class of that name, or the one it is an alias of.
    pub fn find(name: &str) -> Option<&'static Self> {
        classes().iter().find(|class| class.name == name || class.aliases.contains(&name))
    }

    /// Name with the file or package that defines it.
    pub fn qualified(&self) -> String {
        format!("{}.{}", self.home, self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Model, PRESETS};

    #[test]
    fn every_class_of_every_network_is_described_once() {
        for preset in PRESETS {
            let model = Model::new(&preset.config().unwrap());
            let names: BTreeSet<_> = model.blueprint().modules().map(|(_, entry)| entry.class).collect();
            for name in names {
                let found = classes().iter().filter(|class| class.name == name).count();
                assert_eq!(found, 1, "{name} of {}", preset.name);
            }
        }
    }

    #[test]
    fn attention_kernels_are_aliases_of_one_module() {
        assert_eq!(Class::find("LlamaFlashAttention2").unwrap().name, "LlamaAttention");
    }
}
