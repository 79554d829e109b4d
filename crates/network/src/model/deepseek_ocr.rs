//! DeepSeek-OCR: SAM and CLIP read the page, a linear projector feeds a DeepSeek-V2 mixture-of-experts decoder.

use types::{ImageWorkload, Op, Stage};

use super::clip::VisionTransformer;
use super::decoder::{Decoder, Head, finish, sizes};
use super::sam::ImageEncoder;
use super::{CacheLayout, Images, Prompt};
use crate::config::deepseek_ocr::DeepseekOcrConfig;
use crate::layer::Linear;
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops, Param};

/// Pixels of one image token's side: patches of 16, then two halvings.
const PIXELS_PER_TOKEN: u64 = 16 * 4;

/// The network.
#[derive(Debug)]
pub struct DeepseekOcr {
    blueprint: Blueprint,
    model: Module,
    sam: ImageEncoder,
    clip: VisionTransformer,
    projector: Projector,
    image_newline: Param,
    view_separator: Param,
    decoder: Decoder,
    head: Head,
}

#[derive(Debug)]
struct Projector {
    module: Module,
    layers: Linear,
}

/// Tokens one page takes in the prompt: rows of the global view and of the tiles, a newline after each row, and a
/// separator.
pub fn image_tokens(base_size: u64, image_size: u64, [wide, high]: [u64; 2]) -> u64 {
    let (global, tile) = (base_size.div_ceil(PIXELS_PER_TOKEN), image_size.div_ceil(PIXELS_PER_TOKEN));
    let tiles = if [wide, high] == [1, 1] { 0 } else { (tile * wide + 1) * (tile * high) };
    (global + 1) * global + 1 + tiles
}

impl DeepseekOcr {
    /// The network of these sizes.
    pub fn new(config: &DeepseekOcrConfig) -> Self {
        let language = &config.language;
        let mut builder = Builder::new("DeepseekOCRForCausalLM");
        sizes(&mut builder, language);
        let (model, parts) = builder.module("model", "DeepseekOCRModel", |builder, module| {
            sizes(builder, language);
            let decoder = Decoder::new(builder, language);
            let sam = ImageEncoder::new(builder, &config.sam);
            let clip = VisionTransformer::new(builder, &config.clip);
            let projector = builder.module("projector", "MlpProjector", |builder, module| {
                builder.stage(Stage::Projector);
                builder.setting("projector_type", "linear");
                builder.setting("input_dim", config.projector_inputs);
                builder.setting("n_embed", language.width);
                Projector {
                    module,
                    layers: Linear::new(builder, "layers", config.projector_inputs, language.width, true),
                }
            });
            let image_newline = builder.param("image_newline", [language.width]);
            // Spelled so in the checkpoint.
            let view_separator = builder.param("view_seperator", [language.width]);
            (module, (decoder, sam, clip, projector, image_newline, view_separator))
        });
        let head = Head::new(&mut builder, language);
        let (decoder, sam, clip, projector, image_newline, view_separator) = parts;
        let blueprint = finish(builder, config.language.quantisation.as_ref());
        Self { blueprint, model, sam, clip, projector, image_newline, view_separator, decoder, head }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// What its cache keeps.
    pub fn cache(&self) -> &CacheLayout {
        self.decoder.cache()
    }

    /// Checks that every view divides into patches and that the grid is one the published preprocessing makes.
    pub fn check_image(&self, image: &ImageWorkload) -> Result<(), NetworkError> {
        let fail = |message: String| Err(NetworkError::Prompt(message));
        for (name, size) in [("base_size", image.base_size), ("image_size", image.image_size)] {
            if size == 0 || !size.is_multiple_of(16) {
                return fail(format!("{name} must be a positive multiple of the patch size 16, got {size}"));
            }
        }
        let [wide, high] = image.crop_grid;
        if wide == 0 || high == 0 {
            return fail(format!("crop_grid must be at least [1, 1], got [{wide}, {high}]"));
        }
        if wide.saturating_mul(high) > MOST_TILES {
            return fail(format!("crop_grid [{wide}, {high}] has more than {MOST_TILES} tiles"));
        }
        Ok(())
    }

    /// Logits `[B, S, V]`, or of the last position.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let hidden = b.scope(self.model, &[&prompt.input], |b| {
            let embedded = self.decoder.embed(b, &prompt.input, prompt.offset)?;
            let embedded = match &prompt.images {
                None => embedded,
                Some(images) => {
                    let rows = self.read(b, images)?;
                    b.apply(Op::ReplaceRows, &[&embedded, &rows, &images.mask])?
                }
            };
            self.decoder.forward(b, embedded, prompt.offset)
        })?;
        self.head.forward(b, &self.decoder, &hidden, prompt.last_logits_only)
    }

    /// Embeddings of all image tokens, page after page: rows of the tiles, rows of the global view, the separator.
    fn read<B: Backend>(&self, b: &mut B, images: &Images<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let pages = b.shape(&images.global).dims()[0];
        let newline = b.param(self.image_newline)?;
        let tiles = match &images.tiles {
            None => None,
            Some(tiles) => {
                let [wide, high] = images.crop_grid;
                let features = self.see(b, tiles)?;
                let [side, width] = square(b, &features);
                let features = b.reshape(&features, [pages, high, wide, side, side * width])?;
                let features = b.permute_copy(&features, [0, 1, 3, 2, 4])?;
                let features = b.reshape(&features, [pages, high * side, wide * side, width])?;
                Some(with_newlines(b, &features, &newline)?)
            }
        };
        let global = self.see(b, &images.global)?;
        let [side, width] = square(b, &global);
        let global = b.reshape(&global, [pages, side, side, width])?;
        let global = with_newlines(b, &global, &newline)?;
        let separator = b.param(self.view_separator)?;
        let separator = b.reshape(&separator, [1, 1, width])?;
        let separator = b.expand(&separator, [pages, 1, width])?;
        let all = match &tiles {
            None => b.concat(1, &[&global, &separator])?,
            Some(tiles) => b.concat(1, &[tiles, &global, &separator])?,
        };
        let tokens = b.shape(&all).dims()[1];
        b.reshape(&all, [pages * tokens, width])
    }

    /// Images `[N, 3, Y, X]` to projected features `[N, Y / 64 * X / 64, O]`.
    fn see<B: Backend>(&self, b: &mut B, images: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let low = self.sam.forward(b, images)?;
        let high = self.clip.forward(b, &low)?;
        let [n, tokens, width] = [b.shape(&high).dims()[0], b.shape(&high).dims()[1], b.shape(&high).dims()[2]];
        let high = b.slice(&high, 1, 1, tokens - 1)?;
        let low = b.reshape(&low, [n, width, tokens - 1])?;
        let low = b.permute(&low, [0, 2, 1])?;
        let both = b.concat(2, &[&high, &low])?;
        b.scope(self.projector.module, &[&both], |b| self.projector.layers.forward(b, &both))
    }
}

/// More tiles than the published preprocessing ever makes, but few enough to be meant.
const MOST_TILES: u64 = 64;

/// Side and width of square features `[N, side * side, width]`.
fn square<B: Backend>(b: &B, features: &B::Tensor) -> [u64; 2] {
    let shape = b.spec(features).shape;
    [shape.dims()[1].isqrt(), shape.last()]
}

/// `[P, Y, X, O]` with a newline behind each row, as `[P, Y * (X + 1), O]`.
fn with_newlines<B: Backend>(b: &mut B, features: &B::Tensor, newline: &B::Tensor) -> Result<B::Tensor, NetworkError> {
    let shape = b.shape(features);
    let [pages, rows, columns, width] = [shape.dims()[0], shape.dims()[1], shape.dims()[2], shape.dims()[3]];
    let newline = b.reshape(newline, [1, 1, 1, width])?;
    let newline = b.expand(&newline, [pages, rows, 1, width])?;
    let lines = b.concat(2, &[features, &newline])?;
    b.reshape(&lines, [pages, rows * (columns + 1), width])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_tokens_follow_the_published_layout() {
        // Global view of 1024: 16 rows of 16 and a newline, and the separator: 273.
        assert_eq!(image_tokens(1024, 640, [1, 1]), 273);
        // 1 wide, 2 high: 20 rows of 10 and a newline: 220 more.
        assert_eq!(image_tokens(1024, 640, [1, 2]), 493);
        // 2 wide, 3 high: 30 rows of 20 and a newline: 630 more.
        assert_eq!(image_tokens(1024, 640, [2, 3]), 903);
    }
}
