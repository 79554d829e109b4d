//! A vision encoder in front of a decoder: Qwen2-VL and its successors, LLaVA.

use types::{ImageWorkload, Op, Shape};

use super::decoder::{Additions, Decoder, Head, finish, sizes};
use super::patch_tower::{ImageFeatures, PatchTower};
use super::square_tower::{Projector, SquareTower};
use super::{CacheLayout, Images, Prompt};
use crate::config::vision::{ModuleLayout, VisionConfig, VisionLanguageConfig};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops};

/// The network.
#[derive(Debug)]
pub struct VisionLanguage {
    blueprint: Blueprint,
    config: VisionConfig,
    tower: Tower,
    model: Module,
    decoder: Decoder,
    head: Head,
}

#[derive(Debug)]
enum Tower {
    Patches(PatchTower),
    Square(SquareTower, Projector),
}

impl VisionLanguage {
    /// The network of these sizes.
    pub fn new(config: &VisionLanguageConfig) -> Self {
        let names = config.family;
        let language = &config.language;
        let mut builder = Builder::new(names.causal);
        sizes(&mut builder, language);
        let tower = |builder: &mut Builder| match &config.vision {
            VisionConfig::Patches(tower) => builder.module("visual", names.tower, |builder, module| {
                Tower::Patches(PatchTower::new(builder, module, tower))
            }),
            VisionConfig::Square(tower) => {
                let encoder = builder.module("vision_tower", names.tower, |builder, _| {
                    builder.setting("hidden_size", tower.width);
                    builder.setting("num_hidden_layers", tower.layers);
                    SquareTower::new(builder, tower)
                });
                Tower::Square(encoder, Projector::new(builder, tower, language.width))
            }
        };
        let decoder = |builder: &mut Builder, name: &str| {
            builder.module(name, language.family.names.model, |builder, module| {
                sizes(builder, language);
                (module, Decoder::new(builder, language))
            })
        };
        let (tower, (model, decoder), head) = match names.layout {
            ModuleLayout::SideBySide => {
                let tower = tower(&mut builder);
                let decoder = decoder(&mut builder, "model");
                (tower, decoder, Head::new(&mut builder, language))
            }
            ModuleLayout::InOneModel => {
                let (tower, decoder) = builder.module("model", names.model, |builder, _| {
                    sizes(builder, language);
                    (tower(builder), decoder(builder, "language_model"))
                });
                (tower, decoder, Head::new(&mut builder, language))
            }
            ModuleLayout::WholeDecoder => {
                let tower = tower(&mut builder);
                let (decoder, head) = builder.module("language_model", language.family.names.causal, |builder, _| {
                    sizes(builder, language);
                    (decoder(builder, "model"), Head::new(builder, language))
                });
                (tower, decoder, head)
            }
        };
        Self {
            blueprint: finish(builder, language.quantisation.as_ref()),
            config: config.vision.clone(),
            tower,
            model,
            decoder,
            head,
        }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// What its cache keeps.
    pub fn cache(&self) -> &CacheLayout {
        self.decoder.cache()
    }

    /// What an image of `[width, height]` becomes.
    pub fn resized(&self, pixels: [u64; 2]) -> ImageWorkload {
        let resized = self.config.resized(pixels);
        let longer = resized[0].max(resized[1]);
        ImageWorkload {
            base_size: longer,
            image_size: longer,
            crop_grid: [1, 1],
            image_tokens: self.config.tokens(resized),
            pixels: Some(resized),
        }
    }

    /// The shape in which `pages` such images are taken.
    pub fn image_shape(&self, image: &ImageWorkload, pages: u64) -> Shape {
        match &self.config {
            VisionConfig::Patches(tower) => {
                let [width, height] = image.pixels.unwrap_or([image.base_size; 2]);
                let features = tower.channels * tower.frames * tower.patch * tower.patch;
                [pages, (width / tower.patch) * (height / tower.patch), features].into()
            }
            VisionConfig::Square(tower) => [pages, 3, tower.image_size, tower.image_size].into(),
        }
    }

    /// Logits `[B, S, V]`, or of the last position.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let seen = prompt.images.as_ref().map(|images| self.read(b, images)).transpose()?;
        let hidden = b.scope(self.model, &[&prompt.input], |b| {
            let embedded = self.decoder.embed(b, &prompt.input, prompt.offset)?;
            match (&seen, &prompt.images) {
                (Some(seen), Some(images)) => {
                    let embedded = b.apply(Op::ReplaceRows, &[&embedded, &seen.tokens, &images.mask])?;
                    let deep = (!seen.deep.is_empty()).then_some((seen.deep.as_slice(), &images.mask));
                    self.decoder.forward_with(b, embedded, prompt.offset, Additions { deep, ..Additions::none() })
                }
                _ => self.decoder.forward(b, embedded, prompt.offset),
            }
        })?;
        self.head.forward(b, &self.decoder, &hidden, prompt.last_logits_only)
    }

    /// Image tokens of all images, one row each.
    fn read<B: Backend>(
        &self,
        b: &mut B,
        images: &Images<B::Tensor>,
    ) -> Result<ImageFeatures<B::Tensor>, NetworkError> {
        let seen = match &self.tower {
            Tower::Patches(tower) => {
                let [width, height] = images.pixels.ok_or_else(|| {
                    NetworkError::Prompt(
                        "this network takes image patches; the image width and height in pixels are missing".into(),
                    )
                })?;
                tower.forward(b, &images.global, [height, width])?
            }
            Tower::Square(tower, projector) => {
                let features = tower.forward(b, &images.global)?;
                ImageFeatures { tokens: projector.forward(b, &features)?, deep: Vec::new() }
            }
        };
        let mut rows = |x: &B::Tensor| {
            let shape = b.shape(x);
            b.reshape(x, [shape.dims()[0] * shape.dims()[1], shape.last()])
        };
        Ok(ImageFeatures { tokens: rows(&seen.tokens)?, deep: seen.deep.iter().map(rows).collect::<Result<_, _>>()? })
    }
}
