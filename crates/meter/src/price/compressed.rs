//! Compressed entries of a cache: one for every few positions, and attention over them.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use types::AttentionKind;

use super::{Call, Derivation, dim, read, streamed, write};
use crate::term::{Quantity, Symbols, Term, term};

pub(super) const COMPRESS: Derivation = Derivation {
    definition: "for every e positions one entry of width D: the sum of their values, weighted element by element by a \
                 softmax over gates plus biases; then normalised and rotated",
    text: "Values and gates are W wide. Adding the bias, the softmax and the weighted sum take eight for each of their \
           elements, the norm and the rotation of an entry seven for each of its elements, one entry in e positions. \
           Values and gates of an open group are kept for later.",
    source: "DeepSeek-AI 2026, DeepSeek-V4, section 2.3; transformers, DeepseekV4CSACompressor and DeepseekV4HCACompressor",
};

pub(super) const ATTEND: Derivation = Derivation {
    definition: "scores and values of S queries over one entry for every e of T positions, in one softmax with a \
                 window of positions",
    text: "As attention over query-entry pairs: D multiply-adds each for scores and for values, six FLOPs for the \
           softmax. P counts the positions of their entries, e to an entry, and d = D / e is the share of an entry for \
           one position. Eager attention computes every pair. Flash attention computes those a query sees: the entries \
           of groups that are closed at its position, and no more of them than are chosen. A single query sees T / e \
           entries on average.",
    source: "DeepSeek-AI 2026, DeepSeek-V4, section 2.3; transformers, DeepseekV4Attention",
};

pub(super) const INDEX: Derivation = Derivation {
    definition: "the entries with the largest sum over H heads of w[s, h] * relu(q[s, h] k[t] * scale), for each of S queries",
    text: "Every query is multiplied with every entry, D multiply-adds per pair and head; relu, scale, weight and sum \
           take four. P counts the positions of entries and d = D / e is the share of an entry for one position. A \
           single query is scored against T / e entries on average.",
    source: "DeepSeek-AI 2026, DeepSeek-V4, section 2.3.1; transformers, DeepseekV4IndexerScorer",
};

/// Query-entry pairs of S queries at the end of T positions, times the positions of an entry.
fn pairs(S: u128, T: u128, e: u128, keep: Option<u64>, flash: bool) -> u128 {
    let keep = keep.map_or(u128::MAX, u128::from);
    if S == 1 {
        // On average: a group closes in one step of e.
        return if flash { T.min(keep.saturating_mul(e)) } else { T };
    }
    if !flash {
        return S * (T / e) * e;
    }
    // Entries seen by the first n queries, the query at position p seeing (p + 1) / e of them, `keep` at most.
    let open = |n: u128| e * (n / e) * (n / e).saturating_sub(1) / 2 + (n / e) * (n % e + 1);
    let upto = |n: u128| match keep.checked_mul(e) {
        Some(full) if n >= full && full > 0 => open(full - 1) + keep * (n + 1 - full),
        _ => open(n),
    };
    (upto(T) - upto(T - S)) * e
}

pub(super) fn compress(call: &Call<'_>) -> Vec<Term> {
    let (x, output) = (&call.inputs[0], &call.output);
    let (B, S, W) = (dim(x, 0), dim(x, 1), dim(x, 2));
    // Of one position: the part of an entry that it is.
    let (D, b) = (dim(output, 3), u128::from(x.dtype.bits()));
    let kept = Term {
        quantity: Quantity::KvWrite,
        formula: "2 * B * S * W * b / 8",
        symbols: Symbols::new([("B", B), ("S", S), ("W", W), ("b", b)]),
        value: 2 * B * S * W * b / 8,
    };
    streamed(call, [term!(FlopsVector, [B, S, W, D], 8 * B * S * W + 7 * B * S * D), kept])
}

pub(super) fn attend(call: &Call<'_>, every: u64, keep: Option<u64>) -> Vec<Term> {
    let (q, entries) = (&call.inputs[0], &call.inputs[1]);
    let (B, H, S, T, d) = (dim(q, 0), dim(q, 1), dim(q, 2), dim(entries, 2), dim(entries, 3));
    let flash = call.attention == AttentionKind::Flash;
    let e = u128::from(every.max(1));
    let P = pairs(S, T, e, keep, flash);
    let mut terms = vec![
        term!(FlopsMatrix, [B, H, P, d], 4 * B * H * P * d),
        term!(FlopsVector, [B, H, P, e], P * (6 * B * H).div_ceil(e)),
        read(q),
        write(&call.output),
    ];
    // Entries that are not chosen are not read.
    let seen = keep.filter(|_| flash && S == 1).map_or(T, |keep| T.min(u128::from(keep).saturating_mul(e)));
    let b = u128::from(entries.dtype.bits());
    terms.push(term!(KvRead, [B, seen, d, b], B * seen * d * b / 8));
    terms
}

pub(super) fn index(call: &Call<'_>, every: u64) -> Vec<Term> {
    let (q, entries) = (&call.inputs[0], &call.inputs[1]);
    let (B, H, S, T, d) = (dim(q, 0), dim(q, 1), dim(q, 2), dim(entries, 2), dim(entries, 3));
    let e = u128::from(every.max(1));
    let P = pairs(S, T, e, None, false);
    streamed(
        call,
        [
            term!(FlopsMatrix, [B, H, P, d], 2 * B * H * P * d),
            term!(FlopsVector, [B, H, P, e], P * (4 * B * H).div_ceil(e)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use types::{AttentionKind, Bytes, Flops, Op};

    use crate::price::sample::{activation, cached, cost, cost_of_kind};

    const ALL: Op = Op::AttendEntries { every: 4, keep: None };

    #[test]
    fn queries_see_the_groups_that_are_closed_behind_them() {
        for (queries, positions, every, keep) in
            [(8, 8, 4, 9), (5, 13, 4, 9), (20, 20, 4, 3), (3, 30, 4, 2), (9, 9, 2, 1)]
        {
            let counted: u128 = (positions - queries + 1..=positions).map(|n: u128| (n / every).min(keep)).sum();
            let found = super::pairs(queries, positions, every, Some(keep as u64), true);
            assert_eq!(found, counted * every, "{queries} {positions} {every} {keep}");
        }
    }

    #[test]
    fn one_query_reads_a_quarter_of_an_entry_for_every_position() {
        // Two heads of 8 over 12 positions: three entries, 4 * 2 * 3 * 8 FLOPs; 12 rows of two elements.
        let (query, entries) = (activation([1, 2, 1, 8]), cached([1, 1, 12, 2]));
        let eager = cost(ALL, &[query, entries]);
        assert_eq!(eager.flops_matrix, Flops::new(4 * 2 * 3 * 8));
        assert_eq!(eager.bytes.kv_read, Bytes::new(12 * 2 * 2));
    }

    #[test]
    fn chosen_entries_bound_what_a_step_costs() {
        let op = Op::AttendEntries { every: 4, keep: Some(2) };
        let step = |positions| {
            let (query, entries) = (activation([1, 2, 1, 8]), cached([1, 1, positions, 2]));
            cost_of_kind(op, &[query, entries], AttentionKind::Flash)
        };
        assert_eq!(step(8), step(800));
        assert_eq!(step(8).flops_matrix, Flops::new(4 * 2 * 2 * 8));
    }

    #[test]
    fn an_indexer_scores_every_entry() {
        let (query, entries) = (activation([1, 4, 1, 8]), cached([1, 1, 40, 2]));
        let weights = activation([1, 1, 4]);
        let found = cost(Op::IndexEntries { every: 4 }, &[query, entries, weights]);
        assert_eq!(found.flops_matrix, Flops::new(2 * 4 * 10 * 8));
    }
}
