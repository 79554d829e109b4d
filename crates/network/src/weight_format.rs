//! How a checkpoint keeps a matrix that is not in the model's own element type: packed elements, and scales beside them.

use types::{Bytes, DType, Shape};

/// How one matrix is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightFormat {
    /// Element type of the matrix.
    pub dtype: DType,
    /// Scales, zero points and whatever else is stored beside it.
    pub scales: Vec<Scale>,
    /// Element type activations are turned into for a GEMM with it; absent: the matrix is turned back instead.
    pub activations: Option<DType>,
}

/// Values stored beside a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scale {
    /// What shares one of them.
    pub span: Span,
    /// Bits of one.
    pub bits: u64,
}

/// Elements of a matrix that share a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// All of them.
    Matrix,
    /// A block of outputs and inputs; absent means all.
    Block {
        /// Outputs of a block.
        outputs: Option<u64>,
        /// Inputs of a block.
        inputs: Option<u64>,
    },
    /// Neighbours in memory, wherever rows end.
    Run(u64),
}

impl WeightFormat {
    /// Bytes of what is stored beside a matrix `[O, I]`, or beside stacked ones `[E, I, O]`.
    pub fn scale_bytes(&self, shape: Shape) -> Bytes {
        let (matrices, outputs, inputs) = match *shape.dims() {
            [matrices, inputs, outputs] => (matrices, outputs, inputs),
            _ => (1, shape.elements() / shape.last().max(1), shape.last()),
        };
        let blocks = |size: u64, part: Option<u64>| part.map_or(1, |part| size.div_ceil(part.max(1)));
        let bits = |scale: &Scale| {
            let values = match scale.span {
                Span::Matrix => 1,
                Span::Block { outputs: high, inputs: wide } => blocks(outputs, high) * blocks(inputs, wide),
                Span::Run(length) => outputs.saturating_mul(inputs).div_ceil(length.max(1)),
            };
            u128::from(values) * u128::from(scale.bits)
        };
        let bytes = self.scales.iter().map(bits).map(|bits| bits.div_ceil(8)).sum::<u128>() * u128::from(matrices);
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Scale {
    /// One value for a block of `outputs` and `inputs`.
    pub const fn block(outputs: u64, inputs: u64, bits: u64) -> Self {
        Self { span: Span::Block { outputs: Some(outputs), inputs: Some(inputs) }, bits }
    }

    /// One value for an output.
    pub const fn row(bits: u64) -> Self {
        Self { span: Span::Block { outputs: Some(1), inputs: None }, bits }
    }

    /// One value for a matrix.
    pub const fn matrix(bits: u64) -> Self {
        Self { span: Span::Matrix, bits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(scales: &[Scale], shape: impl Into<Shape>) -> u64 {
        WeightFormat { dtype: DType::Fp8, scales: scales.to_vec(), activations: None }.scale_bytes(shape.into()).get()
    }

    #[test]
    fn blocks_that_are_cut_at_an_edge_have_a_scale_too() {
        // 576 outputs in blocks of 128 are five, 7168 inputs 56: the `kv_a_proj_with_mqa` of DeepSeek-V3.
        assert_eq!(bytes(&[Scale::block(128, 128, 32)], [576, 7168]), 5 * 56 * 4);
    }

    #[test]
    fn a_stack_has_the_scales_of_each_of_its_matrices() {
        // gpt-oss: 32 experts, 2880 inputs, 5760 outputs, one byte for every 32 inputs.
        assert_eq!(bytes(&[Scale::block(1, 32, 8)], [32, 2880, 5760]), 32 * 5760 * 90);
    }

    #[test]
    fn rows_runs_and_whole_matrices_are_told_apart() {
        assert_eq!(bytes(&[Scale::row(16)], [6, 10]), 12);
        assert_eq!(bytes(&[Scale::matrix(32)], [6, 10]), 4);
        assert_eq!(bytes(&[Scale { span: Span::Run(64), bits: 32 }], [6, 12]), 2 * 4);
        let each_input = Span::Block { outputs: None, inputs: Some(1) };
        assert_eq!(bytes(&[Scale { span: each_input, bits: 32 }], [6, 10]), 40);
    }
}
