//! Elementwise nonlinearities.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use types::ActivationKind;

use super::{Call, Derivation, elements, stream};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "gelu: x / 2 * (1 + erf(x / sqrt(2))); quick_gelu: x / (1 + exp(-1.702 x)); silu: x / (1 + exp(-x)); relu: max(x, 0)",
    text: "Operations per element, transcendental functions as one. gelu: product, erf, addition, two products: 5. \
           quick_gelu: product, exp, addition, division: 4. silu: negation folded, exp, addition, division: 3. relu: 1.",
    source: "counted from the definitions; Hendrycks and Gimpel 2016, Gaussian Error Linear Units",
};

pub(super) fn terms(call: &Call<'_>, kind: ActivationKind) -> Vec<Term> {
    let N = elements(&call.output);
    let mut terms = vec![match kind {
        ActivationKind::Gelu => term!(FlopsVector, [N], 5 * N),
        ActivationKind::QuickGelu => term!(FlopsVector, [N], 4 * N),
        ActivationKind::Silu => term!(FlopsVector, [N], 3 * N),
        ActivationKind::Relu => term!(FlopsVector, [N], N),
    }];
    terms.extend(stream(call));
    terms
}

#[cfg(test)]
mod tests {
    use types::{ActivationKind, Bytes, Flops, Op};

    use crate::price::testing::{activation, cost};

    #[test]
    fn every_kind_streams_its_input_once() {
        for (kind, each) in [
            (ActivationKind::Gelu, 5),
            (ActivationKind::QuickGelu, 4),
            (ActivationKind::Silu, 3),
            (ActivationKind::Relu, 1),
        ] {
            let cost = cost(Op::Activation(kind), &[activation([10])]);
            assert_eq!(cost.flops_vector, Flops::new(10 * each));
            assert_eq!(cost.bytes.total(), Bytes::new(40));
        }
    }
}
