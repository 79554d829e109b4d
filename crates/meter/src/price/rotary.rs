//! Rotary position embedding.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use super::{Call, Derivation, elements, streamed};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "y = x * cos(position * angle) + rotate_half(x) * sin(position * angle)",
    text: "Three per element: two multiplications and an addition. Sines and cosines depend on the position only and are \
           taken from a small table, which is not counted.",
    source: "Su et al. 2021, RoFormer, equation 34",
};

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.output);
    streamed(call, [term!(FlopsVector, [N], 3 * N)])
}

#[cfg(test)]
mod tests {
    use types::{Flops, Op};

    use crate::price::sample::{activation, cost};

    #[test]
    fn three_operations_per_element() {
        let op = Op::Rotary { theta: 10_000.0, offset: 5, form: types::RotaryForm::default() };
        assert_eq!(cost(op, &[activation([1, 2, 3, 4])]).flops_vector, Flops::new(72));
    }
}
