//! Normalisations.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, elements, streamed};
use crate::term::{Term, term};

pub(super) const LAYER_NORM: Derivation = Derivation {
    definition: "y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias",
    text: "Seven per element: an addition for the mean; a subtraction, a square and an addition for the variance; a \
           multiplication by the reciprocal root; a multiplication and an addition for weight and bias. The root itself, one per \
           row, is not counted. Without a weight it is five.",
    source: "Ba, Kiros and Hinton 2016, Layer Normalization, equation 3",
};

pub(super) const RMS_NORM: Derivation = Derivation {
    definition: "y = x / sqrt(mean(x^2) + eps) * weight",
    text: "Four per element: a square, an addition, and multiplications by the reciprocal root and by the weight. \
           The root itself, one per row, is not counted. Without a weight it is three.",
    source: "Zhang and Sennrich 2019, Root Mean Square Layer Normalization, equation 4",
};

pub(super) const BATCH_NORM: Derivation = Derivation {
    definition: "y = x * scale + shift, with scale and shift folded from fixed statistics",
    text: "Two per element: at inference the statistics are constants, so one multiplication and one addition remain.",
    source: "Ioffe and Szegedy 2015, Batch Normalization, algorithm 2",
};

pub(super) fn layer_norm(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.output);
    match call.inputs.len() {
        1 => streamed(call, [term!(FlopsVector, [N], 5 * N)]),
        _ => streamed(call, [term!(FlopsVector, [N], 7 * N)]),
    }
}

pub(super) fn rms_norm(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.output);
    match call.inputs.len() {
        1 => streamed(call, [term!(FlopsVector, [N], 3 * N)]),
        _ => streamed(call, [term!(FlopsVector, [N], 4 * N)]),
    }
}

pub(super) fn batch_norm(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.output);
    streamed(call, [term!(FlopsVector, [N], 2 * N)])
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Flops, Op};

    use crate::price::sample::{activation, cost, weight};

    #[test]
    fn norms_of_two_rows_of_four_worked_by_hand() {
        let x = activation([2, 4]);
        let layer = cost(Op::LayerNorm { epsilon: 1e-6 }, &[x, weight([4]), weight([4])]);
        // 8 elements, 7 each; read 16 B, weights 8 + 8 B, written 16 B.
        assert_eq!(layer.flops_vector, Flops::new(56));
        assert_eq!((layer.bytes.weights, layer.bytes.total()), (Bytes::new(16), Bytes::new(48)));
        let rms = cost(Op::RmsNorm { epsilon: 1e-6, unit_offset: false }, &[x, weight([4])]);
        assert_eq!(rms.flops_vector, Flops::new(32));
        assert_eq!(rms.flops_matrix, Flops::ZERO);
    }

    #[test]
    fn batch_norm_folds_its_statistics() {
        let channels = weight([4]);
        let inputs = [activation([1, 4, 2, 2]), channels, channels, channels, channels];
        assert_eq!(cost(Op::BatchNorm { epsilon: 1e-5 }, &inputs).flops_vector, Flops::new(32));
    }
}
