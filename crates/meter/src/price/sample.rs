//! Shorthand for the formulas' tests.

use types::{AttentionKind, Cost, DType, Op, Role, Shape, Spec};

pub(super) fn activation<const N: usize>(dims: [u64; N]) -> Spec {
    Spec { shape: Shape::from(dims), dtype: DType::Bf16, role: Role::Activation }
}

pub(super) fn weight<const N: usize>(dims: [u64; N]) -> Spec {
    Spec { role: Role::Weight, ..activation(dims) }
}

pub(super) fn cached<const N: usize>(dims: [u64; N]) -> Spec {
    Spec { role: Role::Cache, ..activation(dims) }
}

/// The cost of `op` with eager attention; the output shape is inferred.
pub(super) fn cost(op: Op, inputs: &[Spec]) -> Cost {
    cost_of_kind(op, inputs, AttentionKind::Eager)
}

pub(super) fn cost_of_kind(op: Op, inputs: &[Spec], attention: AttentionKind) -> Cost {
    let output = network::infer(op, inputs).expect("the test's shapes fit");
    super::price(op, inputs, output, attention).cost()
}
