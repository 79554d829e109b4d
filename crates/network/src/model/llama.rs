//! Llama: a plain decoder with grouped key-value heads.

use super::decoder::{Decoder, DecoderClasses, DecoderSettings, logits};
use super::{CacheLayout, Prompt};
use crate::config::llama::LlamaConfig;
use crate::layer::{Embedding, Linear};
use crate::{Backend, Blueprint, Builder, Module, NetworkError, Ops};

/// The network.
#[derive(Debug)]
pub struct Llama {
    blueprint: Blueprint,
    model: Module,
    decoder: Decoder,
    head: Head,
}

#[derive(Debug)]
enum Head {
    Own(Linear),
    /// Tied to the token embedding: the same table, used as a matrix.
    Tied,
}

impl Llama {
    /// The network of these sizes.
    pub fn new(config: &LlamaConfig) -> Self {
        let mut builder = Builder::new("LlamaForCausalLM");
        let (model, decoder) = builder.module("model", "LlamaModel", |builder, module| {
            builder.setting("hidden_size", config.width);
            builder.setting("num_hidden_layers", config.layers);
            let decoder = Decoder::new(
                builder,
                &DecoderSettings {
                    classes: DecoderClasses {
                        layer: "LlamaDecoderLayer",
                        attention: "LlamaAttention",
                        rotary: None,
                        norm: "LlamaRMSNorm",
                        mlp: "LlamaMLP",
                    },
                    vocabulary: config.vocabulary,
                    width: config.width,
                    layers: config.layers,
                    heads: config.heads,
                    key_value_heads: config.key_value_heads,
                    head_width: config.head_width,
                    attention_bias: config.attention_bias,
                    dense_inner: config.intermediate,
                    mixture: None,
                    epsilon: config.epsilon,
                    theta: config.theta,
                },
            );
            (module, decoder)
        });
        let head = if config.tied_embeddings {
            Head::Tied
        } else {
            Head::Own(Linear::new(&mut builder, "lm_head", config.width, config.vocabulary, false))
        };
        Self { blueprint: builder.finish(), model, decoder, head }
    }

    /// Its modules and parameters.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// What its cache keeps.
    pub fn cache(&self) -> CacheLayout {
        self.decoder.cache()
    }

    /// Logits `[B, S, V]`, or of the last position.
    pub fn forward<B: Backend>(&self, b: &mut B, prompt: &Prompt<B::Tensor>) -> Result<B::Tensor, NetworkError> {
        let hidden = b.scope(self.model, &[&prompt.input], |b| {
            let embedded = self.decoder.embed(b, &prompt.input)?;
            self.decoder.forward(b, embedded, prompt.offset)
        })?;
        match &self.head {
            Head::Own(head) => logits(b, head, &hidden, prompt.last_logits_only),
            Head::Tied => tied_logits(b, self.decoder.embedding(), &hidden, prompt.last_logits_only),
        }
    }
}

fn tied_logits<B: Backend>(
    b: &mut B,
    embedding: &Embedding,
    hidden: &B::Tensor,
    last_only: bool,
) -> Result<B::Tensor, NetworkError> {
    let table = embedding.table(b)?;
    let length = b.shape(hidden).dims()[1];
    let hidden = if last_only { b.slice(hidden, 1, length - 1, 1)? } else { hidden.clone() };
    b.apply(types::Op::Linear, &[&hidden, &table])
}
