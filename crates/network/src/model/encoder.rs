//! An encoder of text with the head it was published with: every position sees every other, and nothing is kept.

use super::Prompt;
use super::decoder::finish;
use super::encoder_attention::{Distances, attend};
use super::encoder_head::{Head, Pooler};
use super::flat_layer::FlatLayer;
use crate::config::encoder::{EncoderConfig, EncoderHead, EncoderVariant, Pooled};
use crate::layer::{Embedding, LayerNorm, Linear, Norm};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops, Repetition};

/// The network.
#[derive(Debug)]
pub struct Encoder {
    blueprint: Blueprint,
    /// The encoder itself; the root where nothing stands beside it.
    model: Module,
    embeddings: Embeddings,
    /// What is around the layers, where that is a module of its own.
    encoder: Option<Module>,
    distances: Option<Distances>,
    layers: Vec<Layer>,
    /// Behind all layers, in the module of the encoder or behind it.
    norm: Option<Norm>,
    /// A pooler beside a head that makes nothing of it.
    aside: Option<Pooler>,
    head: Head,
    config: EncoderConfig,
}

#[derive(Debug)]
struct Embeddings {
    /// Absent where the table of words is all there is.
    module: Option<Module>,
    words: Embedding,
    positions: Option<Embedding>,
    segments: Option<Embedding>,
    /// Further tables, and how often each is read.
    more: Vec<(Embedding, u64)>,
    norm: Option<LayerNorm>,
    /// To the width of the hidden states, and whether it stands behind the norm and the module.
    projection: Option<Linear>,
    projects_last: bool,
}

#[derive(Debug)]
enum Layer {
    Bert(Box<BertLayer>),
    Flat(Box<FlatLayer>),
}

#[derive(Debug)]
struct BertLayer {
    module: Module,
    attention: Module,
    core: Module,
    inputs: [Linear; 3],
    /// In front of attention and of the feed-forward, where no norms stand behind the sums.
    before: Option<[LayerNorm; 2]>,
    /// What projects distances, where queries and keys are not projected alike.
    distances: Option<[Option<Linear>; 2]>,
    mixed: Added,
    intermediate: (Module, Linear),
    output: Added,
}

/// A projection whose output is added to what came before, then normed.
#[derive(Debug)]
struct Added {
    module: Module,
    dense: Linear,
    norm: Option<LayerNorm>,
}

impl Encoder {
    /// The network of these sizes.
    pub fn new(config: &EncoderConfig) -> Self {
        let family = config.family;
        let mut builder = Builder::new(config.class());
        let pooled = match config.head {
            _ if family.pooled == Pooled::Always => true,
            EncoderHead::Pooled => family.variant != EncoderVariant::Distil && family.pooled == Pooled::Alone,
            EncoderHead::Classes(_) => family.variant == EncoderVariant::Bert,
            EncoderHead::TokenClasses(_) | EncoderHead::Tokens => false,
        };
        let last_norm = |builder: &mut Builder, name| {
            let (class, norm) = config.norm();
            Norm::new(builder, name, class, config.width, norm)
        };
        let parts = |builder: &mut Builder, module: Module| {
            builder.setting("vocab_size", config.vocabulary);
            builder.setting("hidden_size", config.width);
            builder.setting("num_hidden_layers", config.layers);
            builder.setting("num_attention_heads", config.heads);
            let embeddings = Embeddings::new(builder, config);
            let (name, list) = family.flat.map_or(("encoder", "layer"), |flat| (flat.around, flat.list));
            let last = family.norms_before.map(|[_, _, last]| last);
            let inner = |builder: &mut Builder| {
                let distances = config.distances.map(|distances| Distances::new(builder, config, distances));
                let (_, layers) = builder.list(list, Repetition::Sequential, config.sets, |builder, index| {
                    Layer::new(builder, index, config)
                });
                let inside = last.filter(|last| !last.starts_with('.'));
                let norm = inside.map(|name| last_norm(builder, name));
                (distances, layers, norm)
            };
            let (encoder, (distances, layers, norm)) = if name.is_empty() {
                (None, inner(builder))
            } else {
                builder.module(name, family.encoder, |builder, module| (Some(module), inner(builder)))
            };
            if family.module == "esm" {
                // For contacts between residues, which no head here asks for.
                builder.module("contact_head", "EsmContactPredictionHead", |builder, _| {
                    Linear::new(builder, "regression", config.layers * config.heads, 1, true)
                });
            }
            let outside = last.and_then(|last| last.strip_prefix('.'));
            let outside = outside.map(|name| last_norm(builder, name));
            let norm = norm.or(outside);
            let pooler = pooled.then(|| {
                let dense = |builder: &mut Builder, name| Linear::new(builder, name, config.width, config.width, true);
                if family.pooler == "Linear" {
                    return Pooler { module: None, dense: dense(builder, "pooler") };
                }
                builder.module("pooler", family.pooler, |builder, module| Pooler {
                    module: Some(module),
                    dense: dense(builder, "dense"),
                })
            });
            (module, embeddings, (encoder, distances, layers, norm), pooler)
        };
        let (model, embeddings, (encoder, distances, layers, norm), pooler) = match config.head {
            EncoderHead::Pooled => {
                let root = builder.current();
                parts(&mut builder, root)
            }
            _ => builder.module(family.module, family.classes[0], parts),
        };
        // BigBird's classifier takes the first position itself.
        let is_aside = match config.head {
            EncoderHead::Pooled => false,
            EncoderHead::Classes(_) => family.pooled == Pooled::Always && family.pooler == "Linear",
            EncoderHead::TokenClasses(_) | EncoderHead::Tokens => true,
        };
        let (pooler, aside) = if is_aside { (None, pooler) } else { (pooler, None) };
        let head = Head::new(&mut builder, config, pooler);
        let blueprint = finish(builder, config.quantisation.as_ref());
        Self { blueprint, model, embeddings, encoder, distances, layers, norm, aside, head, config: config.clone() }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// What the head makes of token ids `[B, S]`.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let length = b.shape(&prompt.input).dims()[1];
        if let Some(longest) = self.config.longest.filter(|longest| *longest < length) {
            let why = format!("{length} tokens; attention to blocks of more than {longest} is not modelled");
            return Err(NetworkError::Prompt(why));
        }
        let run = |b: &mut B| {
            let embedded = self.embeddings.forward(b, &prompt.input, self.config.family.first_position)?;
            let layers = |b: &mut B| {
                let mut x = embedded.clone();
                let distances = match &self.distances {
                    None => None,
                    Some(distances) => Some((distances, distances.table(b, length)?)),
                };
                for index in 0..self.config.layers {
                    // Layers that share weights do so in a row.
                    let layer = &self.layers[(index * self.config.sets / self.config.layers) as usize];
                    let made = layer.forward(b, &x, &self.config, distances.as_ref())?;
                    x = match &self.distances {
                        Some(distances) if index == 0 => distances.beside(b, &x, made)?,
                        _ => made,
                    };
                }
                self.norm.as_ref().map_or_else(|| Ok(x.clone()), |norm| norm.forward(b, &x))
            };
            match self.encoder {
                None => layers(b),
                Some(encoder) => b.scope(encoder, &[&embedded], layers),
            }
        };
        // The root is entered by whoever reads the network.
        let hidden =
            if self.model == self.blueprint.root() { run(b)? } else { b.scope(self.model, &[&prompt.input], run)? };
        if let Some(pooler) = &self.aside {
            pooler.forward(b, &hidden)?;
        }
        self.head.forward(b, &hidden, &self.config, &self.embeddings.words)
    }
}

impl Embeddings {
    fn new(builder: &mut Builder, config: &EncoderConfig) -> Self {
        let (family, width) = (config.family, config.embedding_width);
        let (name, bias) = family.projection;
        if family.embeddings.is_empty() {
            let words = Embedding::new(builder, "embed_tokens", config.vocabulary, width);
            let (positions, segments, norm, projection) = (None, None, None, None);
            return Self {
                module: None,
                words,
                positions,
                segments,
                more: Vec::new(),
                norm,
                projection,
                projects_last: bias,
            };
        }
        let mut made = builder.module("embeddings", family.embeddings, |builder, module| {
            let mut table = |name, rows: u64| Embedding::new(builder, name, rows, width);
            let words = table("word_embeddings", config.vocabulary);
            let positions = (config.positions > 0).then(|| table("position_embeddings", config.positions));
            let segments = (config.segments > 0).then(|| table("token_type_embeddings", config.segments));
            let more = config.tables.iter().map(|(name, rows, reads)| (table(name, *rows), *reads)).collect();
            // DeBERTa projects in front of the norm.
            let inside =
                (width != config.width && !bias).then(|| Linear::new(builder, name, width, config.width, bias));
            let normed = if inside.is_some() { config.width } else { width };
            let name = if family.module == "esm" { "layer_norm" } else { "LayerNorm" };
            let norm = config.embedding_norm.then(|| LayerNorm::new(builder, name, normed, config.epsilon));
            Self {
                module: Some(module),
                words,
                positions,
                segments,
                more,
                norm,
                projection: inside,
                projects_last: bias,
            }
        });
        if bias && width != config.width {
            made.projection = Some(Linear::new(builder, name, width, config.width, bias));
        }
        made
    }

    fn forward<B: Backend>(&self, b: &mut B, ids: &B::Tensor, first: u64) -> Result<B::Tensor, NetworkError> {
        let Some(module) = self.module else { return self.words.forward(b, ids) };
        let x = b.scope(module, &[ids], |b| {
            let mut x = self.words.forward(b, ids)?;
            let [length, width] = [b.shape(&x).dims()[1], b.shape(&x).last()];
            if let Some(segments) = &self.segments {
                let table = segments.table(b)?;
                let segment = b.slice(&table, 0, 0, 1)?;
                let segment = b.reshape(&segment, [1, 1, width])?;
                x = b.add(&x, &segment)?;
            }
            if let Some(positions) = &self.positions {
                let table = positions.table(b)?;
                let rows = b.shape(&table).dims()[0];
                if first + length > rows {
                    let most = rows.saturating_sub(first);
                    return Err(NetworkError::Prompt(format!("{length} tokens; this encoder has {most} positions")));
                }
                let places = b.slice(&table, 0, first, length)?;
                let places = b.reshape(&places, [1, length, width])?;
                x = b.add(&x, &places)?;
            }
            for (table, reads) in &self.more {
                for _ in 0..*reads {
                    let rows = table.forward(b, ids)?;
                    x = b.add(&x, &rows)?;
                }
            }
            let x = self
                .projection
                .as_ref()
                .filter(|_| !self.projects_last)
                .map_or_else(|| Ok(x.clone()), |last| last.forward(b, &x))?;
            self.norm.as_ref().map_or_else(|| Ok(x.clone()), |norm| norm.forward(b, &x))
        })?;
        self.projection
            .as_ref()
            .filter(|_| self.projects_last)
            .map_or_else(|| Ok(x.clone()), |last| last.forward(b, &x))
    }
}

impl Layer {
    fn new(builder: &mut Builder, index: u64, config: &EncoderConfig) -> Self {
        match &config.family.flat {
            Some(names) => Self::Flat(Box::new(FlatLayer::new(builder, index, config, names))),
            None => Self::Bert(Box::new(BertLayer::new(builder, index, config))),
        }
    }

    fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        config: &EncoderConfig,
        distances: Option<&(&Distances, B::Tensor)>,
    ) -> Result<B::Tensor, NetworkError> {
        match self {
            Self::Bert(layer) => layer.forward(b, x, config, distances),
            Self::Flat(layer) => layer.forward(b, x, config),
        }
    }
}

impl BertLayer {
    fn new(builder: &mut Builder, index: u64, config: &EncoderConfig) -> Self {
        let &EncoderConfig { family, width, inner, .. } = config;
        builder.module(index.to_string(), family.layer, |builder, module| {
            builder.setting("hidden_size", width);
            let norm = |builder: &mut Builder, name| LayerNorm::new(builder, name, width, config.epsilon);
            let normed = family.norms_before.is_none().then_some(config.epsilon);
            let (attention, first, (core, inputs, distances), mixed) =
                builder.module("attention", family.attention[0], |builder, attention| {
                    let first = family.norms_before.map(|[name, _, _]| norm(builder, name));
                    let core = builder.module("self", family.attention[1], |builder, core| {
                        builder.setting("num_attention_heads", config.heads);
                        let inputs = family.inputs.map(|name| Linear::new(builder, name, width, width, true));
                        (core, inputs, Distances::projections(builder, config))
                    });
                    let mixed = Added::new(builder, family.attention[2], [width, width], normed);
                    (attention, first, core, mixed)
                });
            let second = family.norms_before.map(|[_, name, _]| norm(builder, name));
            let intermediate = builder.module("intermediate", family.intermediate, |builder, module| {
                (module, Linear::new(builder, "dense", width, inner, true))
            });
            let output = Added::new(builder, family.output, [inner, width], normed);
            let before = first.zip(second).map(|(first, second)| [first, second]);
            Self { module, attention, core, inputs, before, distances, mixed, intermediate, output }
        })
    }

    fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        config: &EncoderConfig,
        distances: Option<&(&Distances, B::Tensor)>,
    ) -> Result<B::Tensor, NetworkError> {
        let normed = |b: &mut B, at: usize, x: &B::Tensor| {
            self.before.as_ref().map_or_else(|| Ok(x.clone()), |norms| norms[at].forward(b, x))
        };
        b.scope(self.module, &[x], |b| {
            let x = b.scope(self.attention, &[x], |b| {
                let given = normed(b, 0, x)?;
                let mixed = b.scope(self.core, &[&given], |b| {
                    let distances = distances.map(|(distances, table)| (*distances, table, self.distances.as_ref()));
                    attend(b, &given, &self.inputs, config, distances)
                })?;
                self.mixed.forward(b, &mixed, x)
            })?;
            let given = normed(b, 1, &x)?;
            let (module, dense) = &self.intermediate;
            let inner = b.scope(*module, &[&given], |b| {
                let inner = dense.forward(b, &given)?;
                b.activation(config.activation, &inner)
            })?;
            self.output.forward(b, &inner, &x)
        })
    }
}

impl Added {
    fn new(builder: &mut Builder, class: &'static str, [inputs, outputs]: [u64; 2], epsilon: Option<f64>) -> Self {
        builder.module("output", class, |builder, module| Self {
            module,
            dense: Linear::new(builder, "dense", inputs, outputs, true),
            norm: epsilon.map(|epsilon| LayerNorm::new(builder, "LayerNorm", outputs, epsilon)),
        })
    }

    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, before: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let x = self.dense.forward(b, x)?;
            let x = b.add(&x, before)?;
            self.norm.as_ref().map_or_else(|| Ok(x.clone()), |norm| norm.forward(b, &x))
        })
    }
}
