//! A layer of an encoder in flatter modules than BERT's: attention, a feed-forward, plain or gated, and a norm in front of each or
//! behind each sum.

use super::encoder_attention::attend;
use crate::config::encoder::{EncoderConfig, FlatLayerNames, InnerNames};
use crate::layer::{Linear, Norm};
use crate::{Backend, Builder, Module, NetworkError, Ops};

#[derive(Debug)]
pub(super) struct FlatLayer {
    module: Module,
    attention: Module,
    inputs: Vec<Linear>,
    mixed: Linear,
    norms: [Norm; 2],
    norms_before: bool,
    feed_forward: (Module, Inner, Linear),
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
        let &EncoderConfig { family, width, inner, .. } = config;
        let [attention_bias, inner_bias, down_bias] = names.biases;
        builder.module(index.to_string(), family.layer, |builder, module| {
            builder.setting("hidden_size", width);
            let (attention, inputs, mixed) = builder.module(names.attention, family.attention[0], |builder, module| {
                builder.setting("num_attention_heads", config.heads);
                let shared = width / config.heads * config.key_value_heads;
                let outputs = if names.inputs.len() == 1 { [3 * width; 3] } else { [width, shared, shared] };
                let mut linear = |name, outputs| Linear::new(builder, name, width, outputs, attention_bias);
                let inputs = names.inputs.iter().zip(outputs).map(|(name, outputs)| linear(name, outputs)).collect();
                (module, inputs, linear(names.output, width))
            });
            let (class, norm) = config.norm();
            let norms = names.norms.map(|name| Norm::new(builder, name, class, width, norm));
            let feed_forward = builder.module(names.feed_forward, family.output, |builder, module| {
                let mut linear = |name, outputs| Linear::new(builder, name, width, outputs, inner_bias);
                let into = match &names.inner {
                    InnerNames::Plain(name) => Inner::Plain(linear(name, inner)),
                    InnerNames::Gated(both) => Inner::Gated(both.map(|name| linear(name, inner))),
                    InnerNames::Fused(name) => Inner::Fused(linear(name, 2 * inner)),
                };
                (module, into, Linear::new(builder, names.down, inner, width, down_bias))
            });
            Self { module, attention, inputs, mixed, norms, norms_before: names.norms_before, feed_forward }
        })
    }

    pub(super) fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        config: &EncoderConfig,
    ) -> Result<B::Tensor, NetworkError> {
        let [first, second] = &self.norms;
        let ahead = |b: &mut B, norm: &Norm, x: &B::Tensor| {
            if self.norms_before { norm.forward(b, x) } else { Ok(x.clone()) }
        };
        let behind = |b: &mut B, norm: &Norm, x: B::Tensor| if self.norms_before { Ok(x) } else { norm.forward(b, &x) };
        b.scope(self.module, &[x], |b| {
            let given = ahead(b, first, x)?;
            let mixed = b.scope(self.attention, &[&given], |b| {
                let mixed = attend(b, &given, &self.inputs, config, None)?;
                self.mixed.forward(b, &mixed)
            })?;
            let x = b.add(&mixed, x)?;
            let x = behind(b, first, x)?;
            let given = ahead(b, second, &x)?;
            let (module, inner, down) = &self.feed_forward;
            let made = b.scope(*module, &[&given], |b| {
                let inner = inner.forward(b, &given, config)?;
                down.forward(b, &inner)
            })?;
            let x = b.add(&made, &x)?;
            behind(b, second, x)
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
