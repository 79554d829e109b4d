//! The SAM ViT-B image encoder of DeepSeek-OCR: windowed and global attention with decomposed relative positions, a
//! neck and two downsampling convolutions.

use types::{ActivationKind, AttentionDetail, InterpolationKind, Op, Stage};

use crate::config::deepseek_ocr::SamConfig;
use crate::layer::{Conv2d, Conv2dSettings, LayerNorm, LayerNorm2d, Linear, PlainMlp, PlainMlpNames};
use crate::{Backend, Builder, Module, NetworkError, Ops, Param, Repetition};

/// `LayerNorm` of the published block, and of its neck.
const EPSILON: f64 = 1e-6;

#[derive(Debug)]
pub(crate) struct ImageEncoder {
    module: Module,
    patch_embed: Module,
    patch_proj: Conv2d,
    pos_embed: Param,
    blocks: Vec<Block>,
    neck: Module,
    neck_project: Conv2d,
    neck_norm: LayerNorm2d,
    neck_mix: Conv2d,
    neck_norm_mixed: LayerNorm2d,
    net_2: Conv2d,
    net_3: Conv2d,
}

#[derive(Debug)]
struct Block {
    module: Module,
    norm1: LayerNorm,
    attention: Attention,
    norm2: LayerNorm,
    mlp: PlainMlp,
    /// Side of a window; absent for global attention.
    window: Option<u64>,
}

#[derive(Debug)]
struct Attention {
    module: Module,
    qkv: Linear,
    projection: Linear,
    rel_pos_h: Param,
    rel_pos_w: Param,
    heads: u64,
}

impl ImageEncoder {
    pub(crate) fn new(builder: &mut Builder, config: &SamConfig) -> Self {
        let SamConfig { width, patch_size, out_channels, downsample_channels, .. } = *config;
        builder.module("sam_model", "ImageEncoderViT", |builder, module| {
            builder.stage(Stage::Sam);
            builder.setting("img_size", config.image_size);
            builder.setting("patch_size", patch_size);
            builder.setting("embed_dim", width);
            builder.setting("depth", config.layers);
            builder.setting("num_heads", config.heads);
            builder.setting("window_size", config.window_size);
            builder.setting("global_attn_indexes", format!("{:?}", config.global_attn_indexes));
            let grid = config.image_size / patch_size;
            let pos_embed = builder.param("pos_embed", [1, grid, grid, width]);
            let (patch_embed, patch_proj) = builder.module("patch_embed", "PatchEmbed", |builder, module| {
                builder.setting("kernel_size", patch_size);
                builder.setting("stride", patch_size);
                builder.setting("in_chans", 3);
                builder.setting("embed_dim", width);
                (module, Conv2d::new(builder, "proj", convolution(3, width, patch_size, patch_size, 0, true)))
            });
            let (_, blocks) = builder.list("blocks", Repetition::Sequential, config.layers, |builder, index| {
                let global = config.global_attn_indexes.contains(&index);
                Block::new(builder, index, config, (!global).then_some(config.window_size), grid)
            });
            let (neck, neck_project, neck_norm, neck_mix, neck_norm_mixed) =
                builder.module("neck", "Sequential", |builder, module| {
                    (
                        module,
                        Conv2d::new(builder, "0", convolution(width, out_channels, 1, 1, 0, false)),
                        LayerNorm2d::new(builder, "1", out_channels, EPSILON),
                        Conv2d::new(builder, "2", convolution(out_channels, out_channels, 3, 1, 1, false)),
                        LayerNorm2d::new(builder, "3", out_channels, EPSILON),
                    )
                });
            let [middle, last] = downsample_channels;
            Self {
                module,
                patch_embed,
                patch_proj,
                pos_embed,
                blocks,
                neck,
                neck_project,
                neck_norm,
                neck_mix,
                neck_norm_mixed,
                net_2: Conv2d::new(builder, "net_2", convolution(out_channels, middle, 3, 2, 1, false)),
                net_3: Conv2d::new(builder, "net_3", convolution(middle, last, 3, 2, 1, false)),
            }
        })
    }

    /// Images `[N, 3, Y, X]` to features `[N, C, Y / 64, X / 64]`.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, images: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[images], |b| {
            let mut x = b.scope(self.patch_embed, &[images], |b| {
                let patches = self.patch_proj.forward(b, images)?;
                b.permute(&patches, [0, 2, 3, 1])
            })?;
            let grid = [b.shape(&x).dims()[1], b.shape(&x).dims()[2]];
            let positions = b.param(self.pos_embed)?;
            let positions = b.bicubic(&positions, grid)?;
            x = b.add(&x, &positions)?;
            for block in &self.blocks {
                x = block.forward(b, &x)?;
            }
            let x = b.permute(&x, [0, 3, 1, 2])?;
            let x = b.scope(self.neck, &[&x], |b| {
                let x = self.neck_project.forward(b, &x)?;
                let x = self.neck_norm.forward(b, &x)?;
                let x = self.neck_mix.forward(b, &x)?;
                self.neck_norm_mixed.forward(b, &x)
            })?;
            let x = self.net_2.forward(b, &x)?;
            self.net_3.forward(b, &x)
        })
    }
}

impl Block {
    fn new(builder: &mut Builder, index: u64, config: &SamConfig, window: Option<u64>, grid: u64) -> Self {
        let width = config.width;
        builder.module(index.to_string(), "Block", |builder, module| {
            builder.setting("dim", width);
            builder.setting("num_heads", config.heads);
            builder.setting("window_size", window.unwrap_or(0));
            Self {
                module,
                norm1: LayerNorm::new(builder, "norm1", width, EPSILON),
                attention: Attention::new(builder, width, config.heads, window.unwrap_or(grid)),
                norm2: LayerNorm::new(builder, "norm2", width, EPSILON),
                mlp: PlainMlp::new(
                    builder,
                    PlainMlpNames { class: "MLPBlock", first: "lin1", second: "lin2", activation: Some("act") },
                    width,
                    width * config.mlp_ratio,
                    ActivationKind::Gelu,
                ),
                window,
            }
        })
    }

    /// `x [N, Y, X, C]`.
    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let normed = self.norm1.forward(b, x)?;
            let mixed = match self.window {
                None => self.attention.forward(b, &normed)?,
                Some(side) => {
                    let windows = partition(b, &normed, side)?;
                    drop(normed);
                    let mixed = self.attention.forward(b, &windows)?;
                    let dims = b.shape(x);
                    unpartition(b, &mixed, side, [dims.dims()[0], dims.dims()[1], dims.dims()[2]])?
                }
            };
            let x = b.add(x, &mixed)?;
            drop(mixed);
            let normed = self.norm2.forward(b, &x)?;
            let inner = self.mlp.forward(b, &normed)?;
            b.add(&x, &inner)
        })
    }
}

impl Attention {
    fn new(builder: &mut Builder, width: u64, heads: u64, side: u64) -> Self {
        builder.module("attn", "Attention", |builder, module| {
            builder.setting("dim", width);
            builder.setting("num_heads", heads);
            builder.setting("input_size", format!("({side}, {side})"));
            Self {
                module,
                rel_pos_h: builder.param("rel_pos_h", [2 * side - 1, width / heads]),
                rel_pos_w: builder.param("rel_pos_w", [2 * side - 1, width / heads]),
                qkv: Linear::new(builder, "qkv", width, 3 * width, true),
                projection: Linear::new(builder, "proj", width, width, true),
                heads,
            }
        })
    }

    /// `x [N, Y, X, C]`.
    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let shape = b.shape(x);
            let [n, rows, columns, width] = [shape.dims()[0], shape.dims()[1], shape.dims()[2], shape.dims()[3]];
            let (positions, head_width) = (rows * columns, width / self.heads);
            let qkv = self.qkv.forward(b, x)?;
            let qkv = b.reshape(&qkv, [n, positions, 3, self.heads, head_width])?;
            let qkv = b.permute_copy(&qkv, [2, 0, 3, 1, 4])?;
            let part = |b: &mut B, index: u64| {
                let part = b.slice(&qkv, 0, index, 1)?;
                b.reshape(&part, [n, self.heads, positions, head_width])
            };
            let (query, key, value) = (part(b, 0)?, part(b, 1)?, part(b, 2)?);
            let bias = self.relative_bias(b, &query, rows, columns)?;
            let scale = 1.0 / (head_width as f64).sqrt();
            let mixed = b.apply(
                Op::Attention { causal: false, scale, fused: true, detail: AttentionDetail::default() },
                &[&query, &key, &value, &bias],
            )?;
            drop((query, key, value, bias, qkv));
            let mixed = b.reshape(&mixed, [n, self.heads, rows, columns, head_width])?;
            let mixed = b.permute_copy(&mixed, [0, 2, 3, 1, 4])?;
            let mixed = b.reshape(&mixed, [n, rows, columns, width])?;
            self.projection.forward(b, &mixed)
        })
    }

    /// The bias each query adds to each key, from one table for the rows and one for the columns:
    /// `[N, H, Y * X, Y * X]`.
    fn relative_bias<B: Backend>(
        &self,
        b: &mut B,
        query: &B::Tensor,
        rows: u64,
        columns: u64,
    ) -> Result<B::Tensor, NetworkError> {
        let shape = b.shape(query);
        let (batch, head_width) = (shape.dims()[0] * shape.dims()[1], shape.last());
        let by_place = b.reshape(query, [batch, rows, columns, head_width])?;

        let table_h = relative_table(b, self.rel_pos_h, rows)?;
        let queries = b.permute_copy(&by_place, [1, 0, 2, 3])?;
        let queries = b.reshape(&queries, [rows, batch * columns, head_width])?;
        let over_rows = b.apply(Op::MatMulTransposed, &[&queries, &table_h])?;
        let over_rows = b.reshape(&over_rows, [rows, batch, columns, rows])?;
        let over_rows = b.permute_copy(&over_rows, [1, 0, 2, 3])?;
        let over_rows = b.reshape(&over_rows, [batch, rows * columns, rows, 1])?;

        let table_w = relative_table(b, self.rel_pos_w, columns)?;
        let queries = b.permute_copy(&by_place, [2, 0, 1, 3])?;
        let queries = b.reshape(&queries, [columns, batch * rows, head_width])?;
        let over_columns = b.apply(Op::MatMulTransposed, &[&queries, &table_w])?;
        let over_columns = b.reshape(&over_columns, [columns, batch, rows, columns])?;
        let over_columns = b.permute_copy(&over_columns, [1, 2, 0, 3])?;
        let over_columns = b.reshape(&over_columns, [batch, rows * columns, 1, columns])?;

        let bias = b.add(&over_rows, &over_columns)?;
        b.reshape(&bias, [shape.dims()[0], shape.dims()[1], rows * columns, rows * columns])
    }
}

/// Rows of a relative-position table for every pair of `side` positions, resampled where the table was made for another
/// side.
fn relative_table<B: Backend>(b: &mut B, table: Param, side: u64) -> Result<B::Tensor, NetworkError> {
    let table = b.param(table)?;
    let wanted = 2 * side - 1;
    let table = if b.shape(&table).dims()[0] == wanted {
        table
    } else {
        b.apply(Op::Interpolate { kind: InterpolationKind::Linear, size: [wanted, 0] }, &[&table])?
    };
    b.apply(Op::RelativePositions { queries: side, keys: side }, &[&table])
}

/// Windows `[N * windows, side, side, C]` of `x [N, Y, X, C]`, padded to whole windows.
fn partition<B: Backend>(b: &mut B, x: &B::Tensor, side: u64) -> Result<B::Tensor, NetworkError> {
    let shape = b.shape(x);
    let [n, rows, columns, width] = [shape.dims()[0], shape.dims()[1], shape.dims()[2], shape.dims()[3]];
    let [high, wide] = [rows.div_ceil(side), columns.div_ceil(side)];
    let x = b.pad(x, 1, high * side - rows)?;
    let x = b.pad(&x, 2, wide * side - columns)?;
    let x = b.reshape(&x, [n, high, side, wide, side, width])?;
    let x = b.permute_copy(&x, [0, 1, 3, 2, 4, 5])?;
    b.reshape(&x, [n * high * wide, side, side, width])
}

/// The inverse of [`partition`] for images of `[N, Y, X]`.
fn unpartition<B: Backend>(
    b: &mut B,
    windows: &B::Tensor,
    side: u64,
    [n, rows, columns]: [u64; 3],
) -> Result<B::Tensor, NetworkError> {
    let width = b.shape(windows).last();
    let [high, wide] = [rows.div_ceil(side), columns.div_ceil(side)];
    let x = b.reshape(windows, [n, high, wide, side, side, width])?;
    let x = b.permute_copy(&x, [0, 1, 3, 2, 4, 5])?;
    let x = b.reshape(&x, [n, high * side, wide * side, width])?;
    if [high * side, wide * side] == [rows, columns] {
        return Ok(x);
    }
    let x = b.slice(&x, 1, 0, rows)?;
    let x = b.slice(&x, 2, 0, columns)?;
    b.apply(Op::Copy, &[&x])
}

fn convolution(inputs: u64, outputs: u64, kernel: u64, stride: u64, padding: u64, bias: bool) -> Conv2dSettings {
    Conv2dSettings { inputs, outputs, kernel, stride, padding, bias }
}
