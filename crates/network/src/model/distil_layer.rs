//! A layer of DistilBERT: what a layer of BERT computes, in flatter modules.

use super::encoder_attention::attend;
use crate::config::encoder::EncoderConfig;
use crate::layer::{LayerNorm, Linear};
use crate::{Backend, Builder, Module, NetworkError, Ops};

#[derive(Debug)]
pub(super) struct DistilLayer {
    module: Module,
    attention: Module,
    inputs: [Linear; 3],
    mixed: Linear,
    attention_norm: LayerNorm,
    feed_forward: (Module, [Linear; 2]),
    norm: LayerNorm,
}

impl DistilLayer {
    pub(super) fn new(builder: &mut Builder, index: u64, config: &EncoderConfig) -> Self {
        let &EncoderConfig { family, width, inner, epsilon, .. } = config;
        builder.module(index.to_string(), family.layer, |builder, module| {
            builder.setting("hidden_size", width);
            let (attention, inputs, mixed) = builder.module("attention", family.attention[0], |builder, attention| {
                builder.setting("num_attention_heads", config.heads);
                let mut linear = |name| Linear::new(builder, name, width, width, true);
                (attention, [linear("q_lin"), linear("k_lin"), linear("v_lin")], linear("out_lin"))
            });
            let attention_norm = LayerNorm::new(builder, "sa_layer_norm", width, epsilon);
            let feed_forward = builder.module("ffn", family.output, |builder, module| {
                let first = Linear::new(builder, "lin1", width, inner, true);
                (module, [first, Linear::new(builder, "lin2", inner, width, true)])
            });
            let norm = LayerNorm::new(builder, "output_layer_norm", width, epsilon);
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
            let (module, [first, second]) = &self.feed_forward;
            let given = b.scope(*module, &[&x], |b| {
                let inner = first.forward(b, &x)?;
                let inner = b.activation(config.activation, &inner)?;
                second.forward(b, &inner)
            })?;
            let x = b.add(&given, &x)?;
            self.norm.forward(b, &x)
        })
    }
}
