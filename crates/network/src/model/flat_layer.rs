//! A layer of an encoder in flatter modules than BERT's: attention, a feed-forward, plain or gated, and a norm behind each sum.

use super::encoder_attention::attend;
use crate::config::encoder::{EncoderConfig, FlatLayerNames, InnerNames};
use crate::layer::{LayerNorm, Linear};
use crate::{Backend, Builder, Module, NetworkError, Ops};

#[derive(Debug)]
pub(super) struct FlatLayer {
    module: Module,
    attention: Module,
    inputs: Vec<Linear>,
    mixed: Linear,
    attention_norm: LayerNorm,
    feed_forward: (Module, Inner, Linear),
    norm: LayerNorm,
}

#[derive(Debug)]
enum Inner {
    Plain(Linear),
    Gated([Linear; 2]),
    Fused(Linear),
}

impl FlatLayer {
    pub(super) fn new(
        builder: &mut Builder,
        index: u64,
        config: &EncoderConfig,
        names: &'static FlatLayerNames,
    ) -> Self {
        let &EncoderConfig { family, width, inner, epsilon, .. } = config;
        let [attention_bias, inner_bias, down_bias] = names.biases;
        builder.module(index.to_string(), family.layer, |builder, module| {
            builder.setting("hidden_size", width);
            let (attention, inputs, mixed) = builder.module(names.attention, family.attention[0], |builder, module| {
                builder.setting("num_attention_heads", config.heads);
                let each = 3 / names.inputs.len() as u64;
                let mut linear = |name, outputs| Linear::new(builder, name, width, outputs, attention_bias);
                let inputs = names.inputs.iter().map(|name| linear(name, each * width)).collect();
                (module, inputs, linear(names.output, width))
            });
            let [behind_attention, behind] = names.norms;
            let attention_norm = LayerNorm::new(builder, behind_attention, width, epsilon);
            let feed_forward = builder.module(names.feed_forward, family.output, |builder, module| {
                let mut linear = |name, outputs| Linear::new(builder, name, width, outputs, inner_bias);
                let into = match &names.inner {
                    InnerNames::Plain(name) => Inner::Plain(linear(name, inner)),
                    InnerNames::Gated(both) => Inner::Gated(both.map(|name| linear(name, inner))),
                    InnerNames::Fused(name) => Inner::Fused(linear(name, 2 * inner)),
                };
                (module, into, Linear::new(builder, names.down, inner, width, down_bias))
            });
            let norm = LayerNorm::new(builder, behind, width, epsilon);
            Self { module, attention, inputs, mixed, attention_norm, feed_forward, norm }
        })
    }

    pub(super) fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        config: &EncoderConfig,
    ) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[x], |b| {
            let mixed = b.scope(self.attention, &[x], |b| {
                let mixed = attend(b, x, &self.inputs, config, None)?;
                self.mixed.forward(b, &mixed)
            })?;
            let x = b.add(&mixed, x)?;
            let x = self.attention_norm.forward(b, &x)?;
            let (module, inner, down) = &self.feed_forward;
            let given = b.scope(*module, &[&x], |b| {
                let inner = inner.forward(b, &x, config)?;
                down.forward(b, &inner)
            })?;
            let x = b.add(&given, &x)?;
            self.norm.forward(b, &x)
        })
    }
}

impl Inner {
    fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, config: &EncoderConfig) -> Result<B::Tensor, NetworkError> {
        let (gate, up) = match self {
            Self::Plain(first) => (first.forward(b, x)?, None),
            Self::Gated([gate, up]) => (gate.forward(b, x)?, Some(up.forward(b, x)?)),
            Self::Fused(both) => {
                let both = both.forward(b, x)?;
                let up = b.slice(&both, 2, 0, config.inner)?;
                (b.slice(&both, 2, config.inner, config.inner)?, Some(up))
            }
        };
        let gate = b.activation(config.activation, &gate)?;
        up.map_or_else(|| Ok(gate.clone()), |up| b.multiply(&gate, &up))
    }
}
