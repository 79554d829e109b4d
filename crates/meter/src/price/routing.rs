//! Sending tokens to experts and adding up what comes back.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, dim, elements, read, streamed};
use crate::term::{Term, term};

pub(super) const DISPATCH: Derivation = Derivation {
    definition: "each token's row is copied once for each of its k experts",
    text: "No FLOPs. T rows are read and T * k rows written, next to each other for each expert.",
    source: "Dai et al. 2024, DeepSeekMoE, section 3; counted from the definition",
};

pub(super) const COMBINE: Derivation = Derivation {
    definition: "y[t] = sum over the k experts of score * expert output",
    text: "Two per element of the expert outputs: a multiplication by the score and an addition.",
    source: "Dai et al. 2024, DeepSeekMoE, equation 9",
};

pub(super) fn dispatch(call: &Call<'_>, per_token: u64) -> Vec<Term> {
    let x = &call.inputs[0];
    let (T, O, k, b) = (dim(x, 0), dim(x, 1), u128::from(per_token), u128::from(x.dtype.bits()));
    vec![read(x), term!(ActivationsOut, [T, k, O, b], T * k * O * b / 8)]
}

pub(super) fn combine(call: &Call<'_>, per_token: u64) -> Vec<Term> {
    let outputs = &call.inputs[0];
    let (T, O, k) = (dim(&call.output, 0), dim(&call.output, 1), u128::from(per_token));
    debug_assert_eq!(T * k * O, elements(outputs));
    streamed(call, [term!(FlopsVector, [T, k, O], 2 * T * k * O)])
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Flops, Op};

    use crate::price::sample::{activation, cost};

    #[test]
    fn two_tokens_to_three_experts_each_worked_by_hand() {
        let out = cost(Op::Dispatch { per_token: 3 }, &[activation([2, 4])]);
        assert_eq!((out.bytes.activations_in, out.bytes.activations_out), (Bytes::new(16), Bytes::new(48)));
        let back = cost(Op::Combine { per_token: 3 }, &[activation([6, 4])]);
        assert_eq!(back.flops_vector, Flops::new(48));
        assert_eq!(back.bytes.activations_out, Bytes::new(16));
    }
}
