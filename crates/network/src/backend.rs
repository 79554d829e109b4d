//! What a network needs of whoever reads it.

use types::{ActivationKind, AttentionKind, DType, InterpolationKind, Op, Shape, Spec};

use crate::{Module, NetworkError, Param};

/// How tokens are spread over experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    /// Experts to choose from.
    pub experts: u64,
    /// Experts each token goes to.
    pub per_token: u64,
    /// Whether the chosen scores are scaled to sum to one.
    pub normalise: bool,
    /// Factor on the combined output.
    pub scale: f64,
    /// Whether scores multiply what experts are given, instead of what they give.
    pub scores_inputs: bool,
}

/// Keys and values of a source, where there is one.
pub type KeptSource<T> = Option<(T, T)>;

/// One reading of a network: run it, meter it, or anything else that can be said operation by operation.
pub trait Backend: Sized {
    /// A value, or whatever stands for one. Cloning shares it.
    type Tensor: Clone;

    /// Its shape, element type and role.
    fn spec(&self, tensor: &Self::Tensor) -> Spec;

    /// A parameter.
    fn param(&mut self, param: Param) -> Result<Self::Tensor, NetworkError>;

    /// Does one operation. Recording, where a backend records, sits here and nowhere else.
    fn apply(&mut self, op: Op, inputs: &[&Self::Tensor]) -> Result<Self::Tensor, NetworkError>;

    /// What `module` makes of `inputs`, where the backend knows that without running it again: a meter does of the layers
    /// that are like one before. Nobody who computes does.
    fn known(&mut self, _module: Module, _inputs: &[&Self::Tensor]) -> Option<Self::Tensor> {
        None
    }

    /// Says that what follows belongs to `module`.
    fn enter(&mut self, module: Module, inputs: &[&Self::Tensor]);

    /// Says that `module` is done.
    fn leave(&mut self, module: Module, output: &Self::Tensor);

    /// Appends keys and values of the current positions to the cache of a decoder layer and gives back all of them, or
    /// with a `window` those that any of the current positions sees: [`seen`] of them.
    fn cache(
        &mut self,
        layer: usize,
        keys: Self::Tensor,
        values: Self::Tensor,
        window: Option<u64>,
    ) -> Result<(Self::Tensor, Self::Tensor), NetworkError>;

    /// Keys and values that an earlier `layer` has appended to its cache, without appending any: `[batch, heads, current
    /// positions]` of these widths, through a `window` as in [`Backend::cache`].
    fn cache_of(
        &mut self,
        layer: usize,
        each: [u64; 3],
        widths: [u64; 2],
        window: Option<u64>,
    ) -> Result<(Self::Tensor, Self::Tensor), NetworkError> {
        let _ = (each, widths, window);
        Err(NetworkError::Prompt(format!("the cache of layer {layer} cannot be shared here")))
    }

    /// Keeps keys and values of a source, which is what cross-attention of a decoder layer sees: an encoder's output, or a
    /// picture. They are made once, at prefill, and every later pass finds them with [`Backend::source`].
    fn keep_source(
        &mut self,
        layer: usize,
        keys: Self::Tensor,
        values: Self::Tensor,
    ) -> Result<(Self::Tensor, Self::Tensor), NetworkError>;

    /// Keys and values of the source that an earlier pass has kept for `layer`, `[batch, heads]` of these widths; absent
    /// where there was no source.
    fn source(
        &mut self,
        layer: usize,
        each: [u64; 2],
        widths: [u64; 2],
    ) -> Result<KeptSource<Self::Tensor>, NetworkError>;

    /// How attention is computed where the network leaves the choice.
    fn attention(&self) -> AttentionKind {
        AttentionKind::Eager
    }

    /// Sends each row of `x [T, O]` through the experts `indices [T, k]` names and adds up what comes back, weighted by
    /// `scores [T, E]`. `each` is one expert's forward pass; how often it is called is the backend's business.
    fn experts(
        &mut self,
        routing: Routing,
        x: &Self::Tensor,
        scores: &Self::Tensor,
        indices: &Self::Tensor,
        each: impl Fn(&mut Self, usize, Self::Tensor) -> Result<Self::Tensor, NetworkError>,
    ) -> Result<Self::Tensor, NetworkError>;
}

/// Keys that `new` queries at the end of `all` positions see between them through a window.
pub fn seen(all: u64, new: u64, window: Option<u64>) -> u64 {
    window.map_or(all, |window| all.min((window + new).saturating_sub(1)))
}

/// The operations as methods, so that forward code reads like forward code.
pub trait Ops: Backend {
    /// Runs `forward` as the body of `module`.
    fn scope(
        &mut self,
        module: Module,
        inputs: &[&Self::Tensor],
        forward: impl FnOnce(&mut Self) -> Result<Self::Tensor, NetworkError>,
    ) -> Result<Self::Tensor, NetworkError> {
        if let Some(output) = self.known(module, inputs) {
            return Ok(output);
        }
        self.enter(module, inputs);
        let output = forward(self)?;
        self.leave(module, &output);
        Ok(output)
    }

    /// Sizes of a tensor.
    fn shape(&self, tensor: &Self::Tensor) -> Shape {
        self.spec(tensor).shape
    }

    /// `a + b`.
    fn add(&mut self, a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor, NetworkError> {
        self.apply(Op::Add, &[a, b])
    }

    /// `a * b`.
    fn multiply(&mut self, a: &Self::Tensor, b: &Self::Tensor) -> Result<Self::Tensor, NetworkError> {
        self.apply(Op::Multiply, &[a, b])
    }

    /// A nonlinearity.
    fn activation(&mut self, kind: ActivationKind, x: &Self::Tensor) -> Result<Self::Tensor, NetworkError> {
        self.apply(Op::Activation(kind), &[x])
    }

    /// The same elements under another shape.
    fn reshape(&mut self, x: &Self::Tensor, shape: impl Into<Shape>) -> Result<Self::Tensor, NetworkError> {
        self.apply(Op::Reshape(shape.into()), &[x])
    }

    /// Dimensions in another order, without moving data.
    fn permute(&mut self, x: &Self::Tensor, order: impl Into<Shape>) -> Result<Self::Tensor, NetworkError> {
        self.apply(Op::Permute(order.into()), &[x])
    }

    /// Dimensions in another order, laid out anew.
    fn permute_copy(&mut self, x: &Self::Tensor, order: impl Into<Shape>) -> Result<Self::Tensor, NetworkError> {
        let view = self.permute(x, order)?;
        self.apply(Op::Copy, &[&view])
    }

    /// `length` entries of dimension `dim` from `start` on.
    fn slice(&mut self, x: &Self::Tensor, dim: u64, start: u64, length: u64) -> Result<Self::Tensor, NetworkError> {
        self.apply(Op::Slice { dim, start, length }, &[x])
    }

    /// Repeats dimensions of size one, without moving data.
    fn expand(&mut self, x: &Self::Tensor, shape: impl Into<Shape>) -> Result<Self::Tensor, NetworkError> {
        self.apply(Op::Expand(shape.into()), &[x])
    }

    /// Tensors joined along `dim`.
    fn concat(&mut self, dim: u64, parts: &[&Self::Tensor]) -> Result<Self::Tensor, NetworkError> {
        self.apply(Op::Concat { dim }, parts)
    }

    /// Zeros added behind `dim`; nothing where there are none to add.
    fn pad(&mut self, x: &Self::Tensor, dim: u64, after: u64) -> Result<Self::Tensor, NetworkError> {
        if after == 0 { Ok(x.clone()) } else { self.apply(Op::Pad { dim, after }, &[x]) }
    }

    /// Another element type; nothing where it is that already.
    fn cast(&mut self, x: &Self::Tensor, dtype: DType) -> Result<Self::Tensor, NetworkError> {
        if self.spec(x).dtype == dtype { Ok(x.clone()) } else { self.apply(Op::Cast(dtype), &[x]) }
    }

    /// Bicubic resampling of `[1, H, W, C]`; nothing where the size is right already.
    fn bicubic(&mut self, x: &Self::Tensor, size: [u64; 2]) -> Result<Self::Tensor, NetworkError> {
        if self.shape(x).dims()[1..3] == size {
            return Ok(x.clone());
        }
        self.apply(Op::Interpolate { kind: InterpolationKind::Bicubic, size }, &[x])
    }
}

impl<B: Backend> Ops for B {}

#[cfg(test)]
mod tests {
    use super::seen;

    #[test]
    fn a_window_bounds_what_later_positions_see_and_never_a_prefill() {
        assert_eq!(seen(100, 1, None), 100);
        assert_eq!(seen(100, 1, Some(8)), 8);
        assert_eq!(seen(5, 1, Some(8)), 5);
        assert_eq!(seen(100, 100, Some(8)), 100);
        assert_eq!(seen(100, 3, Some(8)), 10);
    }
}
