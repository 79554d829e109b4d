//! Operations that apply a weight: the fixed points by which a recorded run and a model are laid over each other.

use types::Op;
use types::timeline::OperatorSignature;

/// What a weight is applied as, and its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Anchor {
    /// A GEMM with a weight of `[outputs, inputs]`.
    Linear([u64; 2]),
    /// A convolution with a weight of `[outputs, inputs, y, x]`.
    Convolution([u64; 4]),
    /// A norm over that many features.
    Norm(u64),
    /// A table of `[entries, features]`.
    Embedding([u64; 2]),
}

impl Anchor {
    /// Of a modelled operation whose weight has that shape.
    pub(crate) fn of_model(op: Op, weight: &[u64]) -> Option<Self> {
        match op {
            Op::Linear => Self::linear(weight),
            Op::Conv2d { .. } => Self::convolution(weight),
            Op::LayerNorm { .. } | Op::RmsNorm { .. } | Op::ChannelNorm { .. } => Self::norm(weight),
            Op::Embedding => weight.try_into().ok().map(Self::Embedding),
            _ => None,
        }
    }

    /// Of a recorded operator of PyTorch. Each name has its own place for the weight.
    pub(crate) fn of_record(name: &str, signature: &OperatorSignature) -> Option<Self> {
        let shape = |argument: usize| signature.shapes.get(argument).map(Vec::as_slice);
        match name {
            "aten::linear" => Self::linear(shape(1)?),
            "aten::addmm" => Self::transposed(shape(2)?),
            "aten::mm" => Self::transposed(shape(1)?),
            "aten::conv2d" | "aten::convolution" | "aten::_convolution" | "aten::cudnn_convolution" => {
                Self::convolution(shape(1)?)
            }
            "aten::layer_norm" | "aten::rms_norm" | "aten::_fused_rms_norm" => Self::norm(shape(2)?),
            "aten::native_layer_norm" => Self::norm(shape(2)?),
            // Norms written out end in a multiplication of the features by their weight, one number per feature.
            "aten::mul" => match (shape(0)?, shape(1)?) {
                ([features], [.., last]) | ([.., last], [features]) if features == last && *features > 1 => {
                    Some(Self::Norm(*features))
                }
                _ => None,
            },
            "aten::embedding" => shape(0)?.try_into().ok().map(Self::Embedding),
            _ => None,
        }
    }

    fn linear(weight: &[u64]) -> Option<Self> {
        weight.try_into().ok().map(Self::Linear)
    }

    fn transposed(weight: &[u64]) -> Option<Self> {
        let [inputs, outputs] = weight.try_into().ok()?;
        Some(Self::Linear([outputs, inputs]))
    }

    fn convolution(weight: &[u64]) -> Option<Self> {
        weight.try_into().ok().map(Self::Convolution)
    }

    fn norm(weight: &[u64]) -> Option<Self> {
        match weight {
            [features] => Some(Self::Norm(*features)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(name: &str, shapes: &[&[u64]]) -> Option<Anchor> {
        let shapes = shapes.iter().map(|shape| shape.to_vec()).collect();
        Anchor::of_record(name, &OperatorSignature { shapes, ..OperatorSignature::default() })
    }

    #[test]
    fn a_weight_is_the_same_however_the_gemm_is_spelt() {
        let weight = Some(Anchor::Linear([6848, 1280]));
        assert_eq!(Anchor::of_model(Op::Linear, &[6848, 1280]), weight);
        assert_eq!(recorded("aten::linear", &[&[1, 1, 1280], &[6848, 1280], &[]]), weight);
        assert_eq!(recorded("aten::addmm", &[&[6848], &[286, 1280], &[1280, 6848]]), weight);
        assert_eq!(recorded("aten::mm", &[&[286, 1280], &[1280, 6848]]), weight);
    }

    #[test]
    fn a_norm_written_out_is_known_by_its_weight() {
        let norm = Some(Anchor::Norm(1280));
        assert_eq!(recorded("aten::mul", &[&[1280], &[1, 286, 1280]]), norm);
        assert_eq!(recorded("aten::layer_norm", &[&[1, 257, 1280], &[], &[1280], &[1280], &[], &[]]), norm);
        assert_eq!(recorded("aten::mul", &[&[1, 286, 1280], &[1, 286, 1280]]), None);
        assert_eq!(recorded("aten::mul", &[&[1, 286, 1280], &[]]), None);
    }

    #[test]
    fn what_applies_no_weight_is_no_anchor() {
        assert_eq!(recorded("aten::linear", &[]), None);
        assert_eq!(recorded("aten::matmul", &[&[1, 10, 1, 128], &[1, 10, 128, 287]]), None);
        assert_eq!(Anchor::of_model(Op::Add, &[4]), None);
    }
}
