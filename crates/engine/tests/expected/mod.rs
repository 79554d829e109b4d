//! Tensors of a safetensors file, which tests compare with or change.

use std::collections::BTreeMap;
use std::path::Path;

use llm_perf_engine::Tensor;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// One tensor as it is stored.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) dims: Vec<usize>,
    pub(crate) dtype: Dtype,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn load(path: &Path) -> BTreeMap<String, Stored> {
    let bytes = std::fs::read(path).unwrap();
    let stored = |view: &TensorView<'_>| Stored {
        dims: view.shape().to_vec(),
        dtype: view.dtype(),
        bytes: view.data().to_vec(),
    };
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    tensors.iter().map(|(name, view)| (name.to_owned(), stored(&view))).collect()
}

impl Stored {
    pub(crate) fn floats(&self) -> Vec<f32> {
        assert_eq!(self.dtype, Dtype::F32);
        self.bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    pub(crate) fn longs(&self) -> Vec<i64> {
        match self.dtype {
            Dtype::I64 => self.bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect(),
            Dtype::I32 => self.bytes.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes).into()).collect(),
            other => panic!("{other:?} is no type of ids"),
        }
    }

    /// Row `index` of the first dimension.
    pub(crate) fn row(&self, index: usize) -> Vec<f32> {
        let values = self.floats();
        let width = values.len() / self.dims[0];
        values[index * width..][..width].to_vec()
    }
}

/// The largest difference of numbers in the same order.
pub(crate) fn worst(found: &Tensor, wanted: &[f32]) -> f32 {
    let found = found.in_order().unwrap();
    assert_eq!(found.len(), wanted.len());
    found.iter().zip(wanted).map(|(found, wanted)| (found - wanted).abs()).fold(0f32, f32::max)
}
