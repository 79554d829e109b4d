//! The numbers of a tensor, which its views share.

use std::sync::Arc;

use half::bf16;

/// Numbers of one type.
#[derive(Clone)]
pub(crate) enum Data {
    /// Activations, the KV cache, and weights in full.
    Single(Arc<Vec<f32>>),
    /// Weights in half the bytes.
    Brain(Arc<Vec<bf16>>),
    /// Token ids and chosen positions.
    Long(Arc<Vec<i64>>),
    /// Masks.
    Byte(Arc<Vec<u8>>),
}

impl Data {
    /// How many.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Single(values) => values.len(),
            Self::Brain(values) => values.len(),
            Self::Long(values) => values.len(),
            Self::Byte(values) => values.len(),
        }
    }

    /// Name of their type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Single(_) => "fp32",
            Self::Brain(_) => "bf16",
            Self::Long(_) => "int64",
            Self::Byte(_) => "uint8",
        }
    }
}

impl From<Vec<f32>> for Data {
    fn from(values: Vec<f32>) -> Self {
        Self::Single(Arc::new(values))
    }
}

impl From<Vec<bf16>> for Data {
    fn from(values: Vec<bf16>) -> Self {
        Self::Brain(Arc::new(values))
    }
}

impl From<Vec<i64>> for Data {
    fn from(values: Vec<i64>) -> Self {
        Self::Long(Arc::new(values))
    }
}

impl From<Vec<u8>> for Data {
    fn from(values: Vec<u8>) -> Self {
        Self::Byte(Arc::new(values))
    }
}
