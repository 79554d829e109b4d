//! Linear attention: a state of fixed size instead of cached keys and values, and the short convolution in front of it.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, dim, elements, streamed};
use crate::term::{Quantity, Symbols, Term, term};

pub(super) const GATED_DELTA: Derivation = Derivation {
    definition: "S = S * exp(g); S = S + k (beta * (v - S^T k))^T; y = S^T q, position by position, for B batches of H heads \
                 with keys of width K and values of width V; q and k scaled to length one",
    text: "Many positions are processed in chunks of C, n of them, the last one padded: keys with keys and queries \
           with keys take C^2 K multiply-adds each, queries' weights with values C^2 V, and reading the state twice \
           and writing it once C K V each. The triangular systems of a chunk take C^2 (K + V) FLOPs of vector work. \
           With a decay for each channel of a key, keys with keys and queries with keys are no longer GEMMs: six FLOPs of \
           vector work for each pair and channel, and C^3 for the triangular system, whose result is applied to keys and \
           values in C^2 (K + V). One position takes seven operations for each element of the state. The state is kept in single precision: \
           it is written once per pass, and read once by a single position.",
    source: "Yang, Kautz and Hatamizadeh 2024, Gated Delta Networks, sections 3.2 and 3.3; transformers, \
             torch_chunk_gated_delta_rule and torch_recurrent_gated_delta_rule; Kimi Team 2025, Kimi Linear, section 3, and \
             chunk_kimi_delta_attention",
};

pub(super) const CAUSAL_CONV: Derivation = Derivation {
    definition: "y[c, t] = sum over k taps of weight[c, k] * x[c, t - k], each channel separately",
    text: "Two FLOPs for each tap, channel and output. The published code pads both ends and drops everything past the \
           last position, so L = S + k - 1 outputs are computed for S positions, and two for a single one. The last k \
           inputs are kept for the next pass.",
    source: "transformers, causal_conv1d_fn and causal_conv1d_update; torch.utils.flop_counter conv_flop_count",
};

/// Bytes of an element of the state.
const SINGLE: u128 = 4;

pub(super) fn gated_delta(call: &Call<'_>, chunk: u64) -> Vec<Term> {
    let (q, v) = (&call.inputs[0], &call.inputs[2]);
    let (B, S, H, K, V) = (dim(v, 0), dim(v, 1), dim(v, 2), dim(q, 3), dim(v, 3));
    let state = |quantity: Quantity| Term {
        quantity,
        formula: "4 * B * H * K * V",
        symbols: Symbols::new([("B", B), ("H", H), ("K", K), ("V", V)]),
        value: SINGLE * B * H * K * V,
    };
    let mut terms = if S == 1 {
        vec![term!(FlopsVector, [B, H, K, V], 7 * B * H * K * V), state(Quantity::KvRead)]
    } else {
        let C = u128::from(chunk);
        let n = S.div_ceil(C);
        if call.inputs[4].shape.rank() == 4 {
            vec![
                term!(FlopsMatrix, [B, H, n, C, K, V], 2 * B * H * n * C * (C * (K + 2 * V) + 3 * K * V)),
                term!(FlopsVector, [B, H, n, C, K], B * H * n * C * C * (6 * K + C)),
            ]
        } else {
            vec![
                term!(FlopsMatrix, [B, H, n, C, K, V], 2 * B * H * n * C * (C * (2 * K + V) + 3 * K * V)),
                term!(FlopsVector, [B, H, n, C, K, V], B * H * n * C * C * (K + V)),
            ]
        }
    };
    terms.push(state(Quantity::KvWrite));
    streamed(call, terms)
}

pub(super) fn causal_conv(call: &Call<'_>) -> Vec<Term> {
    let (x, weight) = (&call.inputs[0], &call.inputs[1]);
    let (B, S, C, k) = (dim(x, 0), dim(x, 1), dim(x, 2), dim(weight, 2));
    let L = if S == 1 { 2 } else { S.max(k) + k - 1 };
    let kept = |quantity: Quantity| Term {
        quantity,
        formula: "B * C * k * b / 8",
        symbols: Symbols::new([("B", B), ("C", C), ("k", k), ("b", x.dtype.bits().into())]),
        value: B * C * k * u128::from(x.dtype.bits()) / 8,
    };
    let mut terms = vec![term!(FlopsMatrix, [B, C, k, L], 2 * B * C * k * L), kept(Quantity::KvWrite)];
    if S == 1 {
        terms.push(kept(Quantity::KvRead));
    }
    if call.inputs.len() > 2 {
        let N = elements(&call.output);
        terms.push(term!(FlopsVector, [N], N));
    }
    streamed(call, terms)
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Flops, Op};

    use crate::price::sample::{activation, cost, weight};

    fn delta(positions: u64) -> types::Cost {
        // Two key heads of 8, four value heads of 12.
        let keys = activation([1, positions, 2, 8]);
        let gates = activation([1, positions, 4]);
        let inputs = [keys, keys, activation([1, positions, 4, 12]), gates, gates, weight([4]), weight([4])];
        cost(Op::GatedDelta { chunk: 64 }, &inputs)
    }

    #[test]
    fn chunks_cost_what_the_flop_counter_counted() {
        assert_eq!(delta(24).flops_matrix, Flops::new(1_064_960));
        assert_eq!(delta(70).flops_matrix, Flops::new(2_129_920));
        assert_eq!(delta(24).bytes.kv_read, Bytes::ZERO);
    }

    #[test]
    fn one_position_reads_and_writes_the_state() {
        assert_eq!(delta(1).flops_matrix, Flops::ZERO);
        assert_eq!((delta(1).bytes.kv_read, delta(1).bytes.kv_write), (Bytes::new(4 * 4 * 8 * 12), Bytes::new(1536)));
    }

    #[test]
    fn a_convolution_costs_what_the_flop_counter_counted() {
        let conv = |positions| cost(Op::CausalConv, &[activation([1, positions, 80]), weight([80, 1, 4])]).flops_matrix;
        assert_eq!(conv(24), Flops::new(17_280));
        assert_eq!(conv(70), Flops::new(46_720));
        assert_eq!(conv(1), Flops::new(1_280));
    }
}
