//! The vision encoder of Qwen2-VL and its successors: patches of images of any size, four merged into one token.

use types::{ActivationKind, InterpolationKind, Op, Stage};

use crate::config::decoder::{GatedConfig, NormConfig, NormKind, NormPlacement};
use crate::config::vision::PatchTowerConfig;
use crate::layer::{
    ActivationLayer, Embedding, GatedMlp, GatedMlpNames, Linear, Norm, PlainMlp, PlainMlpNames, Spans, VisionAttention,
};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param, Repetition};

const EPSILON: f64 = 1e-6;

#[derive(Debug)]
pub(crate) struct PatchTower {
    module: Module,
    patch: PatchEmbed,
    positions: Option<Embedding>,
    blocks: Vec<Block>,
    merger: Merger,
    deep_mergers: Vec<Merger>,
    config: PatchTowerConfig,
}

#[derive(Debug)]
struct PatchEmbed {
    module: Module,
    projection: Module,
    weight: Param,
    bias: Option<Param>,
}

#[derive(Debug)]
struct Block {
    module: Module,
    norm1: Norm,
    attention: VisionAttention,
    norm2: Norm,
    mlp: Mlp,
}

#[derive(Debug)]
enum Mlp {
    Plain(PlainMlp),
    Gated(GatedMlp),
}

#[derive(Debug)]
struct Merger {
    module: Module,
    norm: Norm,
    /// Whether neighbours are put side by side before the norm, not behind it.
    norm_merged: bool,
    first: Linear,
    activation: ActivationLayer,
    second: Linear,
}

/// What an encoder gives: tokens for the prompt, and features for the first decoder layers.
pub(crate) struct ImageFeatures<T> {
    pub(crate) tokens: T,
    pub(crate) deep: Vec<T>,
}

impl PatchTower {
    /// Fills the module under construction.
    pub(crate) fn new(builder: &mut Builder, module: Module, config: &PatchTowerConfig) -> Self {
        builder.stage(Stage::Vision);
        builder.setting("hidden_size", config.width);
        builder.setting("depth", config.layers);
        builder.setting("num_heads", config.heads);
        builder.setting("patch_size", config.patch);
        builder.setting("spatial_merge_size", config.merge);
        let patch = builder.module("patch_embed", config.names.embedding, |builder, module| {
            let bias = config.patch_bias;
            let kernel = [config.frames, config.patch, config.patch];
            builder.setting("patch_size", config.patch);
            builder.setting("temporal_patch_size", config.frames);
            builder.setting("in_channels", config.channels);
            builder.setting("embed_dim", config.width);
            builder.module("proj", "Conv3d", |builder, projection| {
                builder.setting("in_channels", config.channels);
                builder.setting("out_channels", config.width);
                builder.setting("kernel_size", format!("{kernel:?}"));
                builder.setting("stride", format!("{kernel:?}"));
                builder.setting("bias", bias);
                let shape = [config.width, config.channels, config.frames, config.patch, config.patch];
                PatchEmbed {
                    module,
                    projection,
                    weight: builder.param("weight", shape),
                    bias: bias.then(|| builder.param("bias", [config.width])),
                }
            })
        });
        let positions = config.positions.map(|positions| Embedding::new(builder, "pos_embed", positions, config.width));
        let (_, blocks) = builder
            .list("blocks", Repetition::Sequential, config.layers, |builder, index| Block::new(builder, index, config));
        let merger = Merger::new(builder, "merger", config, false);
        let deep = config.deepstack.len() as u64;
        let deep_mergers = if deep == 0 {
            Vec::new()
        } else {
            let each = |builder: &mut Builder, index: u64| Merger::new(builder, &index.to_string(), config, true);
            builder.list("deepstack_merger_list", Repetition::Sequential, deep, each).1
        };
        Self { module, patch, positions, blocks, merger, deep_mergers, config: config.clone() }
    }

    /// Patches `[P, N, features]` of `P` images, each of `[height, width]` pixels.
    pub(crate) fn forward<B: Backend>(
        &self,
        b: &mut B,
        patches: &B::Tensor,
        pixels: [u64; 2],
    ) -> Result<ImageFeatures<B::Tensor>, NetworkError> {
        let grid = pixels.map(|side| side / self.config.patch);
        b.enter(self.module, &[patches]);
        let mut x = self.patch.forward(b, patches)?;
        if let Some(table) = &self.positions {
            let positions = self.positions(b, table, grid)?;
            x = b.add(&x, &positions)?;
        }
        let everything = vec![[1, grid[0] * grid[1]]];
        let windows = self.windows(grid);
        let mut deep = Vec::with_capacity(self.deep_mergers.len());
        for (index, block) in self.blocks.iter().enumerate() {
            let index = index as u64;
            let windowed = self.config.window.as_ref().is_some_and(|(_, whole)| !whole.contains(&index));
            x = block.forward(b, &x, if windowed { &windows } else { &everything })?;
            if let Some(place) = self.config.deepstack.iter().position(|at| *at == index) {
                deep.push(self.deep_mergers[place].forward(b, &x)?);
            }
        }
        let tokens = self.merger.forward(b, &x)?;
        b.leave(self.module, &tokens);
        Ok(ImageFeatures { tokens, deep })
    }

    /// The learned table, resampled to the grid: `[1, N, O]`.
    fn positions<B: Backend>(
        &self,
        b: &mut B,
        table: &Embedding,
        [rows, columns]: [u64; 2],
    ) -> Result<B::Tensor, NetworkError> {
        let table = table.table(b)?;
        let [count, width] = [b.shape(&table).dims()[0], b.shape(&table).dims()[1]];
        let side = count.isqrt();
        let table = b.reshape(&table, [1, side, side, width])?;
        let table = b.apply(Op::Interpolate { kind: InterpolationKind::Bilinear, size: [rows, columns] }, &[&table])?;
        b.reshape(&table, [1, rows * columns, width])
    }

    /// Windows of a grid, those of one size together: whole ones, those cut at the right, at the bottom, at both.
    fn windows(&self, grid: [u64; 2]) -> Spans {
        let Some((pixels, _)) = self.config.window else { return Vec::new() };
        // A window holds whole tokens.
        let side = (pixels / self.config.patch / self.config.merge * self.config.merge).max(1);
        let [down, across] = grid.map(|size| [[size / side, side], [u64::from(size % side > 0), size % side]]);
        let all = down.into_iter().flat_map(|[rows, height]| {
            across.into_iter().map(move |[columns, width]| [rows * columns, height * width])
        });
        all.filter(|[count, each]| count * each > 0).collect()
    }
}

impl PatchEmbed {
    /// A convolution whose kernel and stride are one patch is a GEMM over its pixels.
    fn forward<B: Backend>(&self, b: &mut B, patches: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[patches], |b| {
            b.scope(self.projection, &[patches], |b| {
                let weight = b.param(self.weight)?;
                let shape = b.shape(&weight);
                let weight = b.reshape(&weight, [shape.dims()[0], shape.elements() / shape.dims()[0].max(1)])?;
                match self.bias {
                    None => b.apply(Op::Linear, &[patches, &weight]),
                    Some(bias) => {
                        let bias = b.param(bias)?;
                        b.apply(Op::Linear, &[patches, &weight, &bias])
                    }
                }
            })
        })
    }
}

impl Block {
    fn new(builder: &mut Builder, index: u64, config: &PatchTowerConfig) -> Self {
        let (names, width) = (config.names, config.width);
        builder.module(index.to_string(), names.block, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_heads", config.heads);
            builder.setting("intermediate_size", config.inner);
            let norm1 = norm(builder, "norm1", config, width);
            let norm2 = norm(builder, "norm2", config, width);
            let attention = VisionAttention::fused(builder, names.attention, width, config.heads);
            let mlp = if config.gated {
                let projections = ["gate_proj", "up_proj", "down_proj"];
                let gated =
                    GatedConfig { inner: config.inner, activation: config.activation, bias: true, fused: false };
                let names = GatedMlpNames { module: "mlp", class: names.mlp, projections, fused: "", norm: None };
                Mlp::Gated(GatedMlp::new(builder, names, width, gated))
            } else {
                let [first, second] = names.mlp_modules;
                let names = PlainMlpNames { class: names.mlp, first, second, activation: None };
                Mlp::Plain(PlainMlp::new(builder, names, width, config.inner, config.activation))
            };
            Self { module, norm1, attention, norm2, mlp }
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, spans: &Spans) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let normed = self.norm1.forward(b, x)?;
            let mixed = self.attention.forward(b, &normed, spans)?;
            let x = b.add(x, &mixed)?;
            let normed = self.norm2.forward(b, &x)?;
            let inner = match &self.mlp {
                Mlp::Plain(mlp) => mlp.forward(b, &normed)?,
                Mlp::Gated(mlp) => mlp.forward(b, &normed)?,
            };
            b.add(&x, &inner)
        })
    }
}

/// A norm of the encoder's own kind.
fn norm(builder: &mut Builder, name: &str, config: &PatchTowerConfig, width: u64) -> Norm {
    let kind = if config.gated { NormKind::Rms } else { NormKind::Layer };
    let norm = NormConfig { epsilon: EPSILON, kind, placement: NormPlacement::Before };
    Norm::new(builder, name, config.names.norm, width, norm)
}

impl Merger {
    fn new(builder: &mut Builder, name: &str, config: &PatchTowerConfig, norm_merged: bool) -> Self {
        let names = config.names;
        let merged = config.width * config.merge * config.merge;
        builder.module(name, names.merger, |builder, module| {
            builder.stage(Stage::Projector);
            builder.setting("context_dim", config.width);
            builder.setting("dim", config.output);
            builder.setting("spatial_merge_size", config.merge);
            let width = if norm_merged { merged } else { config.width };
            let norm = norm(builder, if names.flat_merger { "norm" } else { "ln_q" }, config, width);
            let parts = |builder: &mut Builder, [first, between, second]: [&str; 3]| {
                (
                    Linear::new(builder, first, merged, merged, true),
                    ActivationLayer::new(builder, between, ActivationKind::Gelu),
                    Linear::new(builder, second, merged, config.output, true),
                )
            };
            let (first, activation, second) = if names.flat_merger {
                parts(builder, ["linear_fc1", "act_fn", "linear_fc2"])
            } else {
                builder.module("mlp", "Sequential", |builder, _| parts(builder, ["0", "1", "2"]))
            };
            Self { module, norm, norm_merged, first, activation, second }
        })
    }

    /// `[P, N, O]` to `[P, N / merge^2, output]`.
    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let mut x = x.clone();
            if !self.norm_merged {
                x = self.norm.forward(b, &x)?;
            }
            let shape = b.shape(&x);
            let merged = self.first.inputs();
            x = b.reshape(&x, [shape.dims()[0], shape.dims()[1] * shape.dims()[2] / merged, merged])?;
            if self.norm_merged {
                x = self.norm.forward(b, &x)?;
            }
            let x = self.first.forward(b, &x)?;
            let x = self.activation.forward(b, &x)?;
            self.second.forward(b, &x)
        })
    }
}
