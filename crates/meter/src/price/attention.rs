//! Scaled dot-product attention, eager or flash.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use types::{AttentionDetail, AttentionKind, Chosen};

use super::{Call, Derivation, dim, read, write};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y = softmax(scale * q k^T + bias) v, for B batches of H heads, S queries, T keys of width D and values of width V",
    text: "Two matmuls over P query-key pairs per head: scores (D multiply-adds per pair) and weighted values (V). \
           Softmax and scale take six FLOPs per pair: scale, maximum, subtraction, exponential, sum, division; a bias takes one more. \
           Eager attention computes the full square, P = S * T, and its scores pass through memory four times: written, \
           read and written by softmax, read by the second matmul. Flash attention keeps scores on chip and, when \
           causal, skips pairs above the diagonal: P = S * (T - S) + S * (S + 1) / 2, and with a window of W keys those \
           before it: P less n * (n + 1) / 2 with n = T - W, or S * (T - W) less S * (S - 1) / 2 where every query has a \
           full window. Without causality a window is around each query: P = T * T less n * (n + 1) with n = T - 1 - W / 2. With chunks of W keys a query sees those of its own chunk: W * (W + 1) / 2 pairs for each whole one. A softcap takes three more per pair, a sink two per query. Grouped heads share keys and values, which \
           are read once.",
    source: "Vaswani et al. 2017, section 3.2.1; Dao et al. 2022, FlashAttention, theorem 2; torch.utils.flop_counter \
             sdpa counts the full square",
};

/// Query-key pairs a causal kernel computes for each head: what lies on or below the diagonal, and inside the window.
fn pairs(S: u128, T: u128, window: Option<u64>, chunked: bool) -> u128 {
    let causal = S * (T - S) + S * (S + 1) / 2;
    let Some(W) = window.map(u128::from).filter(|W| *W < T) else { return causal };
    if chunked {
        // Pairs of the first p positions: those of whole chunks, and of the one that is open.
        let upto = |p: u128| p / W * (W * (W + 1) / 2) + p % W * (p % W + 1) / 2;
        // A step at the end sees what the cache keeps of its chunk, which is no more than the chunk.
        return if S == 1 { W } else { upto(T) - upto(T - S) };
    }
    // The query at position p, from T - S to T - 1, sees p + 1 keys of which p + 1 - W are before its window.
    let hidden = |p: u128| (p + 1).saturating_sub(W);
    let (first, last) = (hidden(T - S), hidden(T - 1));
    let queries = if first > 0 { S } else { last };
    causal - queries * (first.max(1) + last) / 2
}

/// Pairs inside a window of W keys around each of T positions, which is every pair but those further away on either side.
fn pairs_around(T: u128, window: u64) -> u128 {
    let n = T.saturating_sub(1 + u128::from(window) / 2);
    T * T - n * (n + 1)
}

pub(super) fn terms(call: &Call<'_>, causal: bool, fused: bool, detail: AttentionDetail) -> Vec<Term> {
    let [q, k, v] = [&call.inputs[0], &call.inputs[1], &call.inputs[2]];
    let (B, H, S, D) = (dim(q, 0), dim(q, 1), dim(q, 2), dim(q, 3));
    let (T, V) = (dim(k, 2), dim(v, 3));
    let flash = fused || call.attention == AttentionKind::Flash;
    let mut terms = Vec::with_capacity(12);
    if flash && causal && detail.window.is_some_and(|window| u128::from(window) < T) {
        let P = pairs(S, T, detail.window, detail.chunked.is_some());
        terms.push(term!(FlopsMatrix, [B, H, P, D], 2 * B * H * P * D));
        terms.push(term!(FlopsMatrix, [B, H, P, V], 2 * B * H * P * V));
        terms.push(term!(FlopsVector, [B, H, P], 6 * B * H * P));
    } else if let Some(window) = detail.window.filter(|window| flash && !causal && S == T && u128::from(*window) < T) {
        let P = pairs_around(T, window);
        terms.push(term!(FlopsMatrix, [B, H, P, D], 2 * B * H * P * D));
        terms.push(term!(FlopsMatrix, [B, H, P, V], 2 * B * H * P * V));
        terms.push(term!(FlopsVector, [B, H, P], 6 * B * H * P));
    } else if flash && causal {
        terms.push(term!(FlopsMatrix, [B, H, S, T, D], 2 * B * H * (S * (T - S) + S * (S + 1) / 2) * D));
        terms.push(term!(FlopsMatrix, [B, H, S, T, V], 2 * B * H * (S * (T - S) + S * (S + 1) / 2) * V));
        terms.push(term!(FlopsVector, [B, H, S, T], 6 * B * H * (S * (T - S) + S * (S + 1) / 2)));
    } else {
        terms.push(term!(FlopsMatrix, [B, H, S, T, D], 2 * B * H * S * T * D));
        terms.push(term!(FlopsMatrix, [B, H, S, T, V], 2 * B * H * S * T * V));
        terms.push(term!(FlopsVector, [B, H, S, T], 6 * B * H * S * T));
    }
    if detail.softcap.is_some() {
        let P = if flash && causal { pairs(S, T, detail.window, detail.chunked.is_some()) } else { S * T };
        terms.push(term!(FlopsVector, [B, H, P], 3 * B * H * P));
    }
    if detail.sinks {
        terms.push(term!(FlopsVector, [B, H, S], 2 * B * H * S));
    } else if call.inputs.len() > 3 && detail.chosen != Chosen::Here {
        terms.push(term!(FlopsVector, [B, H, S, T], B * H * S * T));
    }
    terms.extend(call.inputs.iter().map(read));
    terms.push(write(&call.output));
    if !flash {
        let b = u128::from(q.dtype.bits());
        terms.push(term!(ActivationsOut, [B, H, S, T, b], 2 * B * H * S * T * b / 8));
        terms.push(term!(ActivationsIn, [B, H, S, T, b], 2 * B * H * S * T * b / 8));
        terms.push(term!(Scratch, [B, H, S, T, b], 2 * B * H * S * T * b / 8));
    }
    terms
}

#[cfg(test)]
mod tests {
    use types::{AttentionDetail, AttentionKind, Bytes, Chosen, Flops, Op};

    use crate::price::sample::{activation, cached, cost, cost_of_kind};

    const PLAIN: AttentionDetail =
        AttentionDetail { window: None, chunked: None, softcap: None, sinks: false, chosen: Chosen::Nobody };
    const CAUSAL: Op = Op::Attention { causal: true, scale: 1.0, fused: false, detail: PLAIN };

    #[test]
    fn a_window_skips_what_it_hides_and_counts_every_pair_once() {
        for (queries, keys, window) in [(7, 7, 3), (3, 10, 4), (1, 4, 4), (5, 9, 8), (6, 6, 6), (4, 6, 1), (2, 9, 20)] {
            let counted: u128 = (keys - queries..keys).map(|p: u128| (p + 1).min(window)).sum();
            assert_eq!(super::pairs(queries, keys, Some(window as u64), false), counted, "{queries} {keys} {window}");
        }
        let windowed = AttentionDetail { window: Some(3), ..PLAIN };
        let op = Op::Attention { causal: true, scale: 1.0, fused: false, detail: windowed };
        // Seven queries with a window of three: 1 + 2 + 5 * 3 = 18 pairs of width 4, two matmuls, two heads.
        let x = activation([1, 2, 7, 4]);
        let flash = cost_of_kind(op, &[x, x, x], AttentionKind::Flash);
        assert_eq!(flash.flops_matrix, Flops::new(2 * 2 * 2 * 18 * 4));
        assert_eq!(cost(op, &[x, x, x]), cost(CAUSAL, &[x, x, x]), "eager computes the whole square");
    }

    #[test]
    fn a_window_around_each_position_counts_every_pair_once() {
        for (positions, side) in [(7_u128, 2_u128), (10, 4), (5, 1), (9, 3), (4, 3), (6, 0)] {
            let sees = |p: u128| (p + side).min(positions - 1) - p.saturating_sub(side) + 1;
            let counted: u128 = (0..positions).map(sees).sum();
            let window = u64::try_from(2 * side + 1).unwrap();
            assert_eq!(super::pairs_around(positions, window), counted, "{positions} {side}");
        }
        let detail = AttentionDetail { window: Some(3), ..PLAIN };
        let op = Op::Attention { causal: false, scale: 1.0, fused: false, detail };
        // Seven positions that see one on each side: 5 * 3 + 2 * 2 = 19 pairs of width 4, two matmuls, two heads.
        let x = activation([1, 2, 7, 4]);
        assert_eq!(cost_of_kind(op, &[x, x, x], AttentionKind::Flash).flops_matrix, Flops::new(2 * 2 * 2 * 19 * 4));
        assert_eq!(
            cost(op, &[x, x, x]).flops_matrix,
            Flops::new(2 * 2 * 2 * 49 * 4),
            "eager computes the whole square"
        );
    }

    #[test]
    fn chunks_hide_everything_before_their_own() {
        for (queries, keys, chunk) in [(7, 7, 3), (5, 9, 4), (8, 8, 4), (3, 11, 4)] {
            let counted: u128 = (keys - queries..keys).map(|p: u128| p % chunk + 1).sum();
            assert_eq!(super::pairs(queries, keys, Some(chunk as u64), true), counted, "{queries} {keys} {chunk}");
        }
        // A chunk that holds everything hides nothing.
        assert_eq!(super::pairs(4, 6, Some(6), true), super::pairs(4, 6, None, false));
    }

    #[test]
    fn a_small_square_worked_by_hand() {
        // 1 batch, 2 heads, 3 queries and keys of width 4: 18 pairs, 4 multiply-adds each, two matmuls: 288 FLOPs.
        let x = activation([1, 2, 3, 4]);
        let eager = cost(CAUSAL, &[x, x, x]);
        assert_eq!(eager.flops_matrix, Flops::new(288));
        assert_eq!(eager.flops_vector, Flops::new(6 * 18));
        // q, k, v 48 B each; scores 36 B read twice and written twice; y 48 B.
        assert_eq!(eager.bytes.activations_in, Bytes::new(3 * 48 + 72));
        assert_eq!(eager.bytes.activations_out, Bytes::new(48 + 72));
        // Flash skips 3 of 9 pairs of each head and moves no scores.
        let flash = cost_of_kind(CAUSAL, &[x, x, x], AttentionKind::Flash);
        assert_eq!(flash.flops_matrix, Flops::new(192));
        assert_eq!(flash.bytes.activations_out, Bytes::new(48));
    }

    #[test]
    fn one_decode_step_reads_the_whole_cache_and_skips_nothing() {
        // DeepSeek-OCR at 287 keys: 4 * 287 * 1280 = 1,469,440 FLOPs a layer, as the flop counter counted.
        let (query, keys) = (activation([1, 10, 1, 128]), cached([1, 10, 287, 128]));
        let eager = cost(CAUSAL, &[query, keys, keys]);
        let flash = cost_of_kind(CAUSAL, &[query, keys, keys], AttentionKind::Flash);
        assert_eq!(eager.flops_matrix, Flops::new(1_469_440));
        assert_eq!(flash.flops_matrix, eager.flops_matrix);
        assert_eq!(eager.bytes.kv_read, Bytes::new(2 * 10 * 287 * 128 * 2));
    }

    #[test]
    fn grouped_heads_share_their_keys() {
        let (query, keys) = (activation([1, 8, 1, 16]), cached([1, 2, 100, 16]));
        let cost = cost(CAUSAL, &[query, keys, keys]);
        assert_eq!(cost.bytes.kv_read, Bytes::new(2 * 2 * 100 * 16 * 2));
        assert_eq!(cost.flops_matrix, Flops::new(4 * 8 * 100 * 16));
    }

    #[test]
    fn a_published_fused_kernel_stays_fused_under_eager() {
        let fused = Op::Attention { causal: false, scale: 1.0, fused: true, detail: PLAIN };
        let x = activation([1, 2, 3, 4]);
        assert_eq!(cost(fused, &[x, x, x]).bytes.activations_out, Bytes::new(48));
    }

    #[test]
    fn twice_the_batch_costs_twice_as_much() {
        let (one, two) = (activation([1, 2, 3, 4]), activation([2, 2, 3, 4]));
        for kind in [AttentionKind::Eager, AttentionKind::Flash] {
            let once = cost_of_kind(CAUSAL, &[one, one, one], kind);
            assert_eq!(cost_of_kind(CAUSAL, &[two, two, two], kind), once * 2);
        }
    }
}
