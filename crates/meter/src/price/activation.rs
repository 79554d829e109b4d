//! Elementwise nonlinearities.
#![allow(non_snake_case, reason = "symbols are written as in the literature")]

use types::ActivationKind;

use super::{Call, Derivation, elements, streamed};
use crate::term::{Term, term};

pub(super) const DERIVATION: Derivation = Derivation {
    definition: "gelu: x / 2 * (1 + erf(x / sqrt(2))); gelu_tanh: x / 2 * (1 + tanh(c * (x + 0.044715 x^3))); quick_gelu: x / (1 + exp(-1.702 x)); silu: x / (1 + exp(-x)); \
                 sigmoid: 1 / (1 + exp(-x)); relu: max(x, 0); squared_relu: max(x, 0)^2; xielu: p x^2 + x / 2 where x > 0, else \
                 n (exp(x) - 1 - x) + x / 2",
    text: "Operations per element, a transcendental function as one. gelu: multiply, erf, add, two multiplies: 5. \
           gelu_tanh: three multiplies for the cube, add, multiply, tanh, add, two multiplies: 9. \
           quick_gelu: multiply, exp, add, divide: 4. silu: negation folded, exp, add, divide: 3. \
           sigmoid: exp, add, divide: 3. relu: 1. squared_relu: 2. xielu: comparison, exp, two subtractions, two multiplies, add: 7, the \
           longer of its two sides.",
    source: "counted from the definitions; Hendrycks and Gimpel 2016, Gaussian Error Linear Units",
};

pub(super) const CLAMPED_GATE: Derivation = Derivation {
    definition: "y = (up + 1) * gate / (1 + exp(-alpha * gate)), gate at most the limit, up within it on both sides",
    text: "Nine per output element: three comparisons; multiply, exp, add and divide for the gate; add \
           and multiply for up.",
    source: "counted from the definition; openai/gpt-oss, gpt_oss/torch/model.py, swiglu",
};

pub(super) fn clamped_gate(call: &Call<'_>) -> Vec<Term> {
    let N = elements(&call.output);
    streamed(call, [term!(FlopsVector, [N], 9 * N)])
}

pub(super) fn terms(call: &Call<'_>, kind: ActivationKind) -> Vec<Term> {
    let N = elements(&call.output);
    let flops = match kind {
        ActivationKind::Gelu => term!(FlopsVector, [N], 5 * N),
        ActivationKind::GeluTanh => term!(FlopsVector, [N], 9 * N),
        ActivationKind::QuickGelu => term!(FlopsVector, [N], 4 * N),
        ActivationKind::Silu | ActivationKind::Sigmoid => term!(FlopsVector, [N], 3 * N),
        ActivationKind::Relu => term!(FlopsVector, [N], N),
        ActivationKind::SquaredRelu => term!(FlopsVector, [N], 2 * N),
        ActivationKind::Xielu => term!(FlopsVector, [N], 7 * N),
    };
    streamed(call, [flops])
}

#[cfg(test)]
mod tests {
    use types::{ActivationKind, Bytes, Flops, Op};

    use crate::price::sample::{activation, cost, weight};

    #[test]
    fn every_kind_streams_its_input_once() {
        for (kind, each) in [
            (ActivationKind::Gelu, 5),
            (ActivationKind::GeluTanh, 9),
            (ActivationKind::Sigmoid, 3),
            (ActivationKind::QuickGelu, 4),
            (ActivationKind::Silu, 3),
            (ActivationKind::Relu, 1),
            (ActivationKind::SquaredRelu, 2),
        ] {
            let cost = cost(Op::Activation(kind), &[activation([10])]);
            assert_eq!(cost.flops_vector, Flops::new(10 * each));
            assert_eq!(cost.bytes.total(), Bytes::new(40));
        }
        let cost = cost(Op::Activation(ActivationKind::Xielu), &[activation([10]), weight([1]), weight([1])]);
        assert_eq!((cost.flops_vector, cost.bytes.total()), (Flops::new(70), Bytes::new(44)));
    }
}
