//! Averages over an image.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, elements, streamed};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y[n, c] = mean over v, u of x[n, c, v, u]",
    text: "One addition per input element; the division, one per channel, is not counted.",
    source: "counted from the definition",
};

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.inputs[0]);
    streamed(call, [term!(FlopsVector, [N], N)])
}

#[cfg(test)]
mod tests {
    use types::{Flops, Op};

    use crate::price::sample::{activation, cost};

    #[test]
    fn one_addition_per_pixel() {
        assert_eq!(cost(Op::GlobalAveragePool, &[activation([2, 3, 4, 4])]).flops_vector, Flops::new(96));
    }
}
