//! Types of tensors in GGUF files: elements in blocks, and the bytes of a block.
//!
//! Sizes are those of `GGML_QUANT_SIZES` in the package `gguf`, which are the structures `block_*` of `ggml-common.h`.

use types::DType;

/// How the elements of a tensor are stored.
#[derive(Debug, PartialEq, Eq)]
pub struct TensorType {
    /// Its number in files.
    pub id: u32,
    /// What llama.cpp calls it.
    pub name: &'static str,
    /// Elements of a block, neighbours along the first dimension.
    pub block: u64,
    /// Bytes of a block.
    pub bytes: u64,
    /// Type of the elements, whose bits are a part of those bytes; the others are scales and higher bits beside them.
    pub element: DType,
}

const fn of(id: u32, name: &'static str, block: u64, bytes: u64, element: DType) -> TensorType {
    TensorType { id, name, block, bytes, element }
}

const TYPES: &[TensorType] = &[
    of(0, "F32", 1, 4, DType::Fp32),
    of(1, "F16", 1, 2, DType::Fp16),
    of(2, "Q4_0", 32, 18, DType::Int4),
    of(3, "Q4_1", 32, 20, DType::Int4),
    of(6, "Q5_0", 32, 22, DType::Int4),
    of(7, "Q5_1", 32, 24, DType::Int4),
    of(8, "Q8_0", 32, 34, DType::Int8),
    of(9, "Q8_1", 32, 40, DType::Int8),
    of(10, "Q2_K", 256, 84, DType::Int2),
    of(11, "Q3_K", 256, 110, DType::Int2),
    of(12, "Q4_K", 256, 144, DType::Int4),
    of(13, "Q5_K", 256, 176, DType::Int4),
    of(14, "Q6_K", 256, 210, DType::Int4),
    of(15, "Q8_K", 256, 292, DType::Int8),
    of(16, "IQ2_XXS", 256, 66, DType::Int2),
    of(17, "IQ2_XS", 256, 74, DType::Int2),
    of(18, "IQ3_XXS", 256, 98, DType::Int2),
    of(19, "IQ1_S", 256, 50, DType::Int1),
    of(20, "IQ4_NL", 32, 18, DType::Int4),
    of(21, "IQ3_S", 256, 110, DType::Int2),
    of(22, "IQ2_S", 256, 82, DType::Int2),
    of(23, "IQ4_XS", 256, 136, DType::Int4),
    of(24, "I8", 1, 1, DType::Int8),
    of(26, "I32", 1, 4, DType::Int32),
    of(27, "I64", 1, 8, DType::Int64),
    of(28, "F64", 1, 8, DType::Fp64),
    of(29, "IQ1_M", 256, 56, DType::Int1),
    of(30, "BF16", 1, 2, DType::Bf16),
    of(34, "TQ1_0", 256, 54, DType::Int1),
    of(35, "TQ2_0", 256, 66, DType::Int2),
    of(39, "MXFP4", 32, 17, DType::Fp4),
    of(40, "NVFP4", 64, 36, DType::Fp4),
    of(41, "Q1_0", 128, 18, DType::Int1),
];

impl TensorType {
    /// The type of that number, where it is known.
    pub fn of_id(id: u32) -> Option<&'static Self> {
        TYPES.iter().find(|known| known.id == id)
    }

    /// Names of all known ones.
    pub(super) fn names() -> String {
        TYPES.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
    }

    /// Bits of a block that are no elements: scales, minima, higher bits.
    pub fn beside_bits(&self) -> u64 {
        self.bytes * 8 - self.block * self.element.bits()
    }

    /// Bytes of so many elements, which are whole blocks.
    pub fn bytes_of(&self, elements: u64) -> Option<u64> {
        (elements / self.block).checked_mul(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_is_smaller_than_its_elements() {
        for kind in TYPES {
            assert!(kind.bytes * 8 >= kind.block * kind.element.bits(), "{}", kind.name);
        }
    }

    #[test]
    fn a_block_of_q4_k_and_of_q6_k_worked_by_hand() {
        // 256 nibbles, twelve bytes of packed scales and minima, two halves: 144 bytes, 4.5 bits a weight.
        let four = TensorType::of_id(12).unwrap();
        assert_eq!((four.bytes_of(512), four.beside_bits()), (Some(288), (12 + 4) * 8));
        // 256 nibbles, 256 pairs of higher bits, 16 scales of a byte, one half: 210 bytes.
        let six = TensorType::of_id(14).unwrap();
        assert_eq!((six.bytes_of(256), six.beside_bits()), (Some(128 + 64 + 16 + 2), (64 + 16 + 2) * 8));
    }
}
