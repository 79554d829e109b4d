//! What attends in layers of encoders, whatever their modules are called.

use types::{AttentionDetail, Op};

use crate::config::encoder::EncoderConfig;
use crate::layer::Linear;
use crate::{Backend, NetworkError, Ops};

/// Attention of all positions to all, without the projection of what comes out.
pub(super) fn attend<B: Backend>(
    b: &mut B,
    x: &B::Tensor,
    inputs: &[Linear; 3],
    config: &EncoderConfig,
) -> Result<B::Tensor, NetworkError> {
    let EncoderConfig { width, heads, .. } = *config;
    let [batch, length] = [b.shape(x).dims()[0], b.shape(x).dims()[1]];
    let each = width / heads;
    let mut split = |linear: &Linear| {
        let projected = linear.forward(b, x)?;
        let projected = b.reshape(&projected, [batch, length, heads, each])?;
        b.permute(&projected, [0, 2, 1, 3])
    };
    let [query, key, value] = [split(&inputs[0])?, split(&inputs[1])?, split(&inputs[2])?];
    let scale = 1.0 / (each as f64).sqrt();
    let op = Op::Attention { causal: false, scale, fused: false, detail: AttentionDetail::default() };
    let mixed = b.apply(op, &[&query, &key, &value])?;
    let mixed = b.permute_copy(&mixed, [0, 2, 1, 3])?;
    b.reshape(&mixed, [batch, length, width])
}
