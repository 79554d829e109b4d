//! The CLIP-L encoder of DeepSeek-OCR, which takes SAM's features in place of its own patches.

use types::{ActivationKind, AttentionDetail, Op, Stage};

use crate::config::deepseek_ocr::ClipConfig;
use crate::layer::{Conv2d, Conv2dSettings, Embedding, LayerNorm, Linear, PlainMlp, PlainMlpNames};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param, Repetition};

const EPSILON: f64 = 1e-5;

#[derive(Debug)]
pub(crate) struct VisionTransformer {
    module: Module,
    embeddings: Module,
    class_embedding: Param,
    position_embedding: Embedding,
    pre_norm: LayerNorm,
    transformer: Module,
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    module: Module,
    norm1: LayerNorm,
    attention: Attention,
    norm2: LayerNorm,
    mlp: PlainMlp,
}

#[derive(Debug)]
struct Attention {
    module: Module,
    qkv: Linear,
    output: Linear,
    heads: u64,
}

impl VisionTransformer {
    pub(crate) fn new(builder: &mut Builder, config: &ClipConfig) -> Self {
        let ClipConfig { width, layers, heads, image_size, patch_size, feed_forward } = *config;
        builder.module("vision_model", "VitModel", |builder, module| {
            builder.stage(Stage::Clip);
            builder.setting("hidden_size", width);
            builder.setting("num_layers", layers);
            builder.setting("num_attention_heads", heads);
            builder.setting("ffn_hidden_size", feed_forward);
            let positions = (image_size / patch_size).pow(2) + 1;
            let (embeddings, class_embedding, position_embedding) =
                builder.module("embeddings", "CLIPVisionEmbeddings", |builder, module| {
                    builder.setting("hidden_size", width);
                    builder.setting("image_size", image_size);
                    builder.setting("patch_size", patch_size);
                    let class_embedding = builder.param("class_embedding", [width]);
                    // In the checkpoint, but SAM's features stand in for its output: it is never applied.
                    Conv2d::new(
                        builder,
                        "patch_embedding",
                        Conv2dSettings {
                            inputs: 3,
                            outputs: width,
                            kernel: patch_size,
                            stride: patch_size,
                            padding: 0,
                            bias: false,
                        },
                    );
                    (module, class_embedding, Embedding::new(builder, "position_embedding", positions, width))
                });
            let (transformer, blocks) = builder.module("transformer", "NoTPTransformer", |builder, module| {
                builder.setting("num_layers", layers);
                let (_, blocks) = builder.list("layers", Repetition::Sequential, layers, |builder, index| {
                    Block::new(builder, index, config)
                });
                (module, blocks)
            });
            let pre_norm = LayerNorm::new(builder, "pre_layrnorm", width, EPSILON);
            Self { module, embeddings, class_embedding, position_embedding, pre_norm, transformer, blocks }
        })
    }

    /// SAM features `[N, C, Y, X]` to `[N, Y * X + 1, C]`; the first row is the class token.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, features: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[features], |b| {
            let x = b.scope(self.embeddings, &[features], |b| {
                let shape = b.shape(features);
                let [n, width, rows, columns] = [shape.dims()[0], shape.dims()[1], shape.dims()[2], shape.dims()[3]];
                let patches = b.reshape(features, [n, width, rows * columns])?;
                let patches = b.permute(&patches, [0, 2, 1])?;
                let class = b.param(self.class_embedding)?;
                let class = b.reshape(&class, [1, 1, width])?;
                let class = b.expand(&class, [n, 1, width])?;
                let x = b.concat(1, &[&class, &patches])?;
                let positions = self.positions(b, rows, columns)?;
                b.add(&x, &positions)
            })?;
            let x = self.pre_norm.forward(b, &x)?;
            b.scope(self.transformer, &[&x], |b| {
                let mut x = x.clone();
                for block in &self.blocks {
                    x = block.forward(b, &x)?;
                }
                Ok(x)
            })
        })
    }

    /// The position table `[1, Y * X + 1, C]`, resampled where it was made for another grid.
    fn positions<B: Backend>(&self, b: &mut B, rows: u64, columns: u64) -> Result<B::Tensor, NetworkError> {
        let table = self.position_embedding.table(b)?;
        let [count, width] = [b.shape(&table).dims()[0], b.shape(&table).dims()[1]];
        let side = (count - 1).isqrt();
        if [side, side] == [rows, columns] {
            return b.reshape(&table, [1, count, width]);
        }
        let class = b.slice(&table, 0, 0, 1)?;
        let patches = b.slice(&table, 0, 1, count - 1)?;
        let patches = b.reshape(&patches, [1, side, side, width])?;
        let patches = b.bicubic(&patches, [rows, columns])?;
        let patches = b.reshape(&patches, [rows * columns, width])?;
        let table = b.concat(0, &[&class, &patches])?;
        b.reshape(&table, [1, rows * columns + 1, width])
    }
}

impl Block {
    fn new(builder: &mut Builder, index: u64, config: &ClipConfig) -> Self {
        let width = config.width;
        builder.module(index.to_string(), "NoTPTransformerBlock", |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_attention_heads", config.heads);
            Self {
                module,
                attention: builder.module("self_attn", "NoTPAttention", |builder, module| {
                    builder.setting("hidden_size", width);
                    builder.setting("num_attention_heads", config.heads);
                    Attention {
                        module,
                        qkv: Linear::new(builder, "qkv_proj", width, 3 * width, true),
                        output: Linear::new(builder, "out_proj", width, width, true),
                        heads: config.heads,
                    }
                }),
                mlp: PlainMlp::new(
                    builder,
                    PlainMlpNames { class: "NoTPFeedForward", first: "fc1", second: "fc2", activation: None },
                    width,
                    config.feed_forward,
                    ActivationKind::QuickGelu,
                ),
                norm1: LayerNorm::new(builder, "layer_norm1", width, EPSILON),
                norm2: LayerNorm::new(builder, "layer_norm2", width, EPSILON),
            }
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let normed = self.norm1.forward(b, x)?;
            let mixed = self.attention.forward(b, &normed)?;
            let x = b.add(x, &mixed)?;
            let normed = self.norm2.forward(b, &x)?;
            let inner = self.mlp.forward(b, &normed)?;
            b.add(&x, &inner)
        })
    }
}

impl Attention {
    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let shape = b.shape(x);
            let [n, length, width] = [shape.dims()[0], shape.dims()[1], shape.dims()[2]];
            let head_width = width / self.heads;
            let qkv = self.qkv.forward(b, x)?;
            let qkv = b.reshape(&qkv, [n, length, 3, self.heads, head_width])?;
            let part = |b: &mut B, index: u64| {
                let part = b.slice(&qkv, 2, index, 1)?;
                let part = b.reshape(&part, [n, length, self.heads, head_width])?;
                b.permute(&part, [0, 2, 1, 3])
            };
            let (query, key, value) = (part(b, 0)?, part(b, 1)?, part(b, 2)?);
            let scale = 1.0 / (head_width as f64).sqrt();
            let mixed = b.apply(
                Op::Attention { causal: false, scale, fused: true, detail: AttentionDetail::default() },
                &[&query, &key, &value],
            )?;
            let mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
            let mixed = b.reshape(&mixed, [n, length, width])?;
            self.output.forward(b, &mixed)
        })
    }
}
