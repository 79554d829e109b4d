//! Attention of models with an encoder and a decoder: as many heads of keys and values as of queries, over everything, over
//! earlier positions, or over the source.

use types::{AttentionDetail, Op};

use super::Linear;
use crate::{Backend, Builder, Module, NetworkError, Ops};

#[derive(Clone, Debug)]
pub(crate) struct MultiHead {
    module: Module,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    config: MultiHeadConfig,
    layer: usize,
}

/// Sizes of attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MultiHeadConfig {
    /// Width of the hidden states.
    pub(crate) width: u64,
    pub(crate) heads: u64,
    pub(crate) head_width: u64,
    /// Factor on the scores.
    pub(crate) scale: f64,
    /// Names of the projections to queries, keys and values and from all heads, and which of them have a bias.
    pub(crate) projections: [(&'static str, bool); 4],
}

/// What queries see.
#[derive(Debug)]
pub(crate) enum Sees<'a, T> {
    /// Every position of the same sequence.
    Everything,
    /// Itself and earlier positions, which the cache holds.
    Earlier,
    /// The source: given at prefill, kept from then on.
    Source(Option<&'a T>),
}

impl<T> Clone for Sees<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Sees<'_, T> {}

impl<'a, T> Sees<'a, T> {
    /// The source, where it is given.
    pub(crate) fn given(self) -> Option<&'a T> {
        match self {
            Self::Everything | Self::Earlier => None,
            Self::Source(source) => source,
        }
    }
}

impl MultiHead {
    /// Attention `name` of layer `layer`, which names its part of the cache.
    pub(crate) fn new(
        builder: &mut Builder,
        (name, class): (&str, &'static str),
        config: MultiHeadConfig,
        layer: usize,
    ) -> Self {
        Self::with(builder, (name, class), config, layer, |_| ())
    }

    /// The same, with more parts in its module.
    pub(crate) fn with(
        builder: &mut Builder,
        (name, class): (&str, &'static str),
        config: MultiHeadConfig,
        layer: usize,
        more: impl FnOnce(&mut Builder),
    ) -> Self {
        let MultiHeadConfig { width, heads, head_width, projections: [query, key, value, output], .. } = config;
        builder.module(name, class, |builder, module| {
            builder.setting("hidden_size", width);
            builder.setting("num_heads", heads);
            builder.setting("head_dim", head_width);
            let all = heads * head_width;
            let mut linear =
                |(name, bias), [inputs, outputs]: [u64; 2]| Linear::new(builder, name, inputs, outputs, bias);
            let [query, key, value] = [query, key, value].map(|named| linear(named, [width, all]));
            let output = linear(output, [all, width]);
            more(builder);
            Self { module, query, key, value, output, config, layer }
        })
    }

    /// `x [B, S, O]` and scores of distances `[1, H, S, T]`, where there are any.
    pub(crate) fn forward<B: Backend>(
        &self,
        b: &mut B,
        x: &B::Tensor,
        sees: Sees<'_, B::Tensor>,
        distances: Option<&B::Tensor>,
    ) -> Result<B::Tensor, NetworkError> {
        let MultiHeadConfig { heads, head_width, scale, .. } = self.config;
        let mut inputs = vec![x];
        inputs.extend(distances);
        inputs.extend(sees.given());
        b.scope(self.module, &inputs, |b| {
            let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
            let query = self.split(b, &self.query, x)?;
            let own = |b: &mut B, x: &B::Tensor| -> Result<(B::Tensor, B::Tensor), NetworkError> {
                Ok((self.split(b, &self.key, x)?, self.split(b, &self.value, x)?))
            };
            let (keys, values) = match sees {
                Sees::Everything => own(b, x)?,
                Sees::Earlier => {
                    let (key, value) = own(b, x)?;
                    b.cache(self.layer, key, value, None)?
                }
                Sees::Source(Some(source)) => {
                    let (key, value) = own(b, source)?;
                    b.keep_source(self.layer, key, value)?
                }
                Sees::Source(None) => b
                    .source(self.layer, [batch, heads], [head_width; 2])?
                    .ok_or_else(|| NetworkError::Prompt("a decode step before the encoder has run".to_owned()))?,
            };
            let causal = matches!(sees, Sees::Earlier);
            let op = Op::Attention { causal, scale, fused: false, detail: AttentionDetail::default() };
            let mixed = match distances {
                None => b.apply(op, &[&query, &keys, &values])?,
                Some(distances) => {
                    let positions = b.shape(&keys).dims()[2];
                    let distances = b.expand(distances, [batch, heads, length, positions])?;
                    b.apply(op, &[&query, &keys, &values, &distances])?
                }
            };
            let mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
            let mixed = b.reshape(&mixed, [batch, length, heads * head_width])?;
            self.output.forward(b, &mixed)
        })
    }

    /// What a projection makes of `x [B, S, O]`, head by head: `[B, H, S, D]`.
    fn split<B: Backend>(&self, b: &mut B, projection: &Linear, x: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
        let projected = projection.forward(b, x)?;
        let split = b.reshape(&projected, [batch, length, self.config.heads, self.config.head_width])?;
        b.permute(&split, [0, 2, 1, 3])
    }
}
