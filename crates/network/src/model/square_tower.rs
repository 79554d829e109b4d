//! A CLIP or SigLIP encoder with a projector of two layers, as LLaVA has it.

use types::Stage;

use crate::config::vision::{SquareTowerConfig, SquareTowerKind};
use crate::layer::{
    ActivationLayer, Conv2d, Conv2dSettings, Embedding, LayerNorm, Linear, PlainMlp, PlainMlpNames, VisionAttention,
};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param, Repetition};

#[derive(Debug)]
pub(crate) struct SquareTower {
    module: Module,
    embeddings: Module,
    class_embedding: Option<Param>,
    patch: Conv2d,
    positions: Embedding,
    before: Option<LayerNorm>,
    encoder: Module,
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    module: Module,
    norm1: LayerNorm,
    attention: VisionAttention,
    norm2: LayerNorm,
    mlp: PlainMlp,
}

/// Features to the decoder's width.
#[derive(Debug)]
pub(crate) struct Projector {
    module: Module,
    first: Linear,
    activation: ActivationLayer,
    second: Linear,
    drop_class: bool,
}

impl SquareTower {
    /// Adds `vision_model` to the module under construction.
    pub(crate) fn new(builder: &mut Builder, config: &SquareTowerConfig) -> Self {
        let &SquareTowerConfig { kind, width, image_size, patch, epsilon, .. } = config;
        let clip = kind == SquareTowerKind::Clip;
        let [model, embeddings, encoder, layer] = match kind {
            SquareTowerKind::Clip => {
                ["CLIPVisionTransformer", "CLIPVisionEmbeddings", "CLIPEncoder", "CLIPEncoderLayer"]
            }
            SquareTowerKind::Siglip => {
                ["SiglipVisionTransformer", "SiglipVisionEmbeddings", "SiglipEncoder", "SiglipEncoderLayer"]
            }
        };
        builder.module("vision_model", model, |builder, module| {
            builder.stage(Stage::Vision);
            builder.setting("hidden_size", width);
            builder.setting("num_hidden_layers", config.layers);
            builder.setting("num_attention_heads", config.heads);
            builder.setting("image_size", image_size);
            builder.setting("patch_size", patch);
            let (embeddings, class_embedding, conv, positions) =
                builder.module("embeddings", embeddings, |builder, module| {
                    builder.setting("hidden_size", width);
                    builder.setting("image_size", image_size);
                    builder.setting("patch_size", patch);
                    let class_embedding = clip.then(|| builder.param("class_embedding", [width]));
                    let settings = Conv2dSettings {
                        inputs: 3,
                        outputs: width,
                        kernel: patch,
                        stride: patch,
                        padding: 0,
                        bias: !clip,
                    };
                    let conv = Conv2d::new(builder, "patch_embedding", settings);
                    let places = (image_size / patch).pow(2) + u64::from(clip);
                    (module, class_embedding, conv, Embedding::new(builder, "position_embedding", places, width))
                });
            // Spelled so in the checkpoint.
            let before = clip.then(|| LayerNorm::new(builder, "pre_layrnorm", width, epsilon));
            let (encoder, blocks) = builder.module("encoder", encoder, |builder, module| {
                builder.setting("num_hidden_layers", config.layers);
                let (_, blocks) = builder.list("layers", Repetition::Sequential, config.layers, |builder, index| {
                    Block::new(builder, index, layer, config)
                });
                (module, blocks)
            });
            // Norms the class token, or all; the decoder is given what comes before it.
            LayerNorm::new(builder, "post_layernorm", width, epsilon);
            Self { module, embeddings, class_embedding, patch: conv, positions, before, encoder, blocks }
        })
    }

    /// Images `[P, 3, side, side]` to `[P, N, O]`: what the last block but one gives, the class token first where there
    /// is one. Every block runs, as in the published code.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, images: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[images], |b| {
            let x = b.scope(self.embeddings, &[images], |b| {
                let patches = self.patch.forward(b, images)?;
                let shape = b.shape(&patches);
                let [count, width, places] = [shape.dims()[0], shape.dims()[1], shape.dims()[2] * shape.dims()[3]];
                let patches = b.reshape(&patches, [count, width, places])?;
                let mut x = b.permute(&patches, [0, 2, 1])?;
                if let Some(class) = self.class_embedding {
                    let class = b.param(class)?;
                    let class = b.reshape(&class, [1, 1, width])?;
                    let class = b.expand(&class, [count, 1, width])?;
                    x = b.concat(1, &[&class, &x])?;
                }
                let table = self.positions.table(b)?;
                let shape = b.shape(&table);
                let table = b.reshape(&table, [1, shape.dims()[0], width])?;
                b.add(&x, &table)
            })?;
            let x = match &self.before {
                None => x,
                Some(norm) => norm.forward(b, &x)?,
            };
            b.scope(self.encoder, &[&x], |b| {
                let spans = vec![[1, b.shape(&x).dims()[1]]];
                let mut x = x.clone();
                let mut features = x.clone();
                for block in &self.blocks {
                    features = x;
                    x = block.forward(b, &features, &spans)?;
                }
                Ok(features)
            })
        })
    }
}

impl Block {
    fn new(builder: &mut Builder, index: u64, class: &'static str, config: &SquareTowerConfig) -> Self {
        let &SquareTowerConfig { width, epsilon, .. } = config;
        let [attention, mlp] = match config.kind {
            SquareTowerKind::Clip => ["CLIPAttention", "CLIPMLP"],
            SquareTowerKind::Siglip => ["SiglipAttention", "SiglipMLP"],
        };
        builder.module(index.to_string(), class, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_attention_heads", config.heads);
            builder.setting("intermediate_size", config.inner);
            Self {
                module,
                attention: VisionAttention::apart(builder, attention, width, config.heads),
                norm1: LayerNorm::new(builder, "layer_norm1", width, epsilon),
                mlp: PlainMlp::new(
                    builder,
                    PlainMlpNames { class: mlp, first: "fc1", second: "fc2", activation: None },
                    width,
                    config.inner,
                    config.activation,
                ),
                norm2: LayerNorm::new(builder, "layer_norm2", width, epsilon),
            }
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, spans: &Vec<[u64; 2]>) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let normed = self.norm1.forward(b, x)?;
            let mixed = self.attention.forward(b, &normed, spans)?;
            let x = b.add(x, &mixed)?;
            let normed = self.norm2.forward(b, &x)?;
            let inner = self.mlp.forward(b, &normed)?;
            b.add(&x, &inner)
        })
    }
}

impl Projector {
    /// Adds `multi_modal_projector` to the module under construction.
    pub(crate) fn new(builder: &mut Builder, config: &SquareTowerConfig, output: u64) -> Self {
        builder.module("multi_modal_projector", "LlavaMultiModalProjector", |builder, module| {
            builder.stage(Stage::Projector);
            builder.setting("vision_hidden_size", config.width);
            builder.setting("hidden_size", output);
            builder.setting("bias", config.projector_bias);
            Self {
                module,
                first: Linear::new(builder, "linear_1", config.width, output, config.projector_bias),
                activation: ActivationLayer::new(builder, "act", config.projector_activation),
                second: Linear::new(builder, "linear_2", output, output, config.projector_bias),
                drop_class: config.drop_class,
            }
        })
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, features: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let length = b.shape(features).dims()[1];
        let features = if self.drop_class { b.slice(features, 1, 1, length - 1)? } else { features.clone() };
        b.scope(self.module, &[&features], |b| {
            let x = self.first.forward(b, &features)?;
            let x = self.activation.forward(b, &x)?;
            self.second.forward(b, &x)
        })
    }
}
