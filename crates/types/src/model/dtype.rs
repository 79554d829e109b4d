//! Element types of tensors and of hardware rates.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::JsonSchema;

crate::named! {
    /// How one element is stored, or in which format a unit of the device multiplies.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum DType {
        /// IEEE double.
        Fp64 = "fp64",
        /// IEEE single.
        Fp32 = "fp32",
        /// Single in memory, 10 mantissa bits in the matrix unit.
        Tf32 = "tf32",
        /// IEEE half.
        Fp16 = "fp16",
        /// Brain float.
        Bf16 = "bf16",
        /// Eight-bit float, E4M3 or E5M2.
        Fp8 = "fp8",
        /// Four-bit float, E2M1.
        Fp4 = "fp4",
        /// Signed 64-bit integer, as token ids are stored.
        Int64 = "int64",
        /// Signed 32-bit integer.
        Int32 = "int32",
        /// Signed byte.
        Int8 = "int8",
        /// Four-bit integer, two to a byte.
        Int4 = "int4",
        /// Two-bit integer, four to a byte, as low-bit GGUF files keep them.
        Int2 = "int2",
        /// One-bit integer, eight to a byte.
        Int1 = "int1",
        /// Unsigned byte.
        Uint8 = "uint8",
        /// Truth value, one byte each.
        Bool = "bool",
    }
}

/// A name that is no element type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown dtype `{0}`; known are {known}", known = DType::ALL.map(DType::name).join(", "))]
pub struct UnknownDType(pub String);

impl DType {
    /// Bits one element takes in memory.
    pub const fn bits(self) -> u64 {
        match self {
            Self::Fp64 | Self::Int64 => 64,
            Self::Fp32 | Self::Tf32 | Self::Int32 => 32,
            Self::Fp16 | Self::Bf16 => 16,
            Self::Fp8 | Self::Int8 | Self::Uint8 | Self::Bool => 8,
            Self::Fp4 | Self::Int4 => 4,
            Self::Int2 => 2,
            Self::Int1 => 1,
        }
    }

    /// Bytes that `elements` of this type take, rounded up to whole bytes; saturates like [`crate::Bytes`] do.
    pub fn bytes_for(self, elements: u64) -> crate::Bytes {
        let bytes = (u128::from(elements) * u128::from(self.bits())).div_ceil(8);
        crate::Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    /// Reads our own names and those of PyTorch, safetensors and Hugging Face configs.
    fn from_str(text: &str) -> Result<Self, UnknownDType> {
        let plain = text.trim().to_ascii_lowercase();
        let plain = plain.strip_prefix("torch.").unwrap_or(&plain);
        Ok(match plain {
            "fp64" | "f64" | "float64" | "double" => Self::Fp64,
            "fp32" | "f32" | "float32" | "float" => Self::Fp32,
            "tf32" => Self::Tf32,
            "fp16" | "f16" | "float16" | "half" => Self::Fp16,
            "bf16" | "bfloat16" => Self::Bf16,
            "fp8" | "f8_e4m3" | "f8_e5m2" | "float8_e4m3fn" | "float8_e5m2" => Self::Fp8,
            "fp4" | "float4_e2m1fn_x2" | "mxfp4" => Self::Fp4,
            "int64" | "i64" | "long" => Self::Int64,
            "int32" | "i32" | "int" => Self::Int32,
            "int8" | "i8" => Self::Int8,
            "int4" | "i4" => Self::Int4,
            "int2" => Self::Int2,
            "int1" => Self::Int1,
            "uint8" | "u8" => Self::Uint8,
            "bool" => Self::Bool,
            _ => return Err(UnknownDType(text.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_matches_its_json() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse::<DType>(), Ok(dtype));
            assert_eq!(serde_json::to_string(&dtype).unwrap(), format!("\"{}\"", dtype.name()));
        }
    }

    #[test]
    fn names_of_other_frameworks_are_understood() {
        assert_eq!("torch.bfloat16".parse(), Ok(DType::Bf16));
        assert_eq!("F32".parse(), Ok(DType::Fp32));
        assert_eq!("float8_e4m3fn".parse(), Ok(DType::Fp8));
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = "fp12".parse::<DType>().unwrap_err().to_string();
        assert!(error.contains("`fp12`") && error.contains("bf16"), "{error}");
    }

    #[test]
    fn half_bytes_round_up() {
        assert_eq!(DType::Int4.bytes_for(3), crate::Bytes::new(2));
        assert_eq!(DType::Bf16.bytes_for(3), crate::Bytes::new(6));
    }
}
