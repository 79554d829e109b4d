//! Resampling of position tables.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use types::InterpolationKind;

use super::{Call, Derivation, dim, elements, streamed};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "each output is a weighted sum of neighbours, one axis after the other",
    text: "A tap is a multiply-add. Bicubic: 4 taps per axis, more by the ratio of sizes when shrinking, because \
           antialiasing widens the kernel; two axes. Bilinear: 4 taps at once. Linear: 2 taps, one axis. The first \
           axis is also counted at the output size, which is an upper bound when shrinking.",
    source: "Keys 1981, Cubic Convolution Interpolation; antialiasing as torch.nn.functional.interpolate does it",
};

pub(super) fn terms(call: &Call<'_>, kind: InterpolationKind) -> Vec<Term> {
    let N = elements(&call.output);
    let flops = match kind {
        InterpolationKind::Bicubic => {
            let ratio = dim(&call.inputs[0], 1).div_ceil(dim(&call.output, 1).max(1));
            let K = 4 * ratio.max(1);
            term!(FlopsVector, [K, N], 2 * 2 * K * N)
        }
        InterpolationKind::Bilinear => term!(FlopsVector, [N], 2 * 4 * N),
        InterpolationKind::Linear => term!(FlopsVector, [N], 2 * 2 * N),
    };
    streamed(call, [flops])
}

#[cfg(test)]
mod tests {
    use types::{Flops, InterpolationKind, Op};

    use crate::price::sample::{cost, weight};

    #[test]
    fn shrinking_widens_the_cubic_kernel() {
        let table = weight([1, 64, 64, 8]);
        let up = cost(Op::Interpolate { kind: InterpolationKind::Bicubic, size: [80, 80] }, &[table]);
        assert_eq!(up.flops_vector, Flops::new(2 * 2 * 4 * 80 * 80 * 8));
        let down = cost(Op::Interpolate { kind: InterpolationKind::Bicubic, size: [40, 40] }, &[table]);
        assert_eq!(down.flops_vector, Flops::new(2 * 2 * 8 * 40 * 40 * 8));
    }
}
