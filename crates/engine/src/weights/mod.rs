//! Parameters of a network: from a checkpoint, or random from a seed.

mod checkpoint;
mod synthetic;

use std::path::PathBuf;

use network::{Blueprint, Param};
use types::{Bytes, DType};

use crate::{EngineError, Tensor};

/// Where parameters come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// Random numbers that depend on the seed and the parameter's name alone.
    Synthetic {
        /// The seed.
        seed: u64,
    },
    /// A safetensors file, an index of several, or a folder with either.
    Safetensors(PathBuf),
}

/// All parameters, in memory.
#[derive(Debug)]
pub struct Weights {
    tensors: Vec<Tensor>,
    dtype: DType,
    bytes: Bytes,
    unused: Vec<String>,
}

/// Loads every parameter of `blueprint`, to be kept in `dtype`: single precision or bf16.
pub fn load_weights(blueprint: &Blueprint, from: &Checkpoint, dtype: DType) -> Result<Weights, EngineError> {
    if !matches!(dtype, DType::Fp32 | DType::Bf16) {
        return Err(EngineError::UnsupportedType { dtype });
    }
    let (tensors, unused) = match from {
        Checkpoint::Synthetic { seed } => (synthetic::tensors(blueprint, *seed, dtype)?, Vec::new()),
        Checkpoint::Safetensors(path) => checkpoint::tensors(blueprint, path, dtype)?,
    };
    let bytes = blueprint.params().map(|(_, entry)| dtype.bytes_for(entry.shape.elements())).sum();
    Ok(Weights { tensors, dtype, bytes, unused })
}

impl Weights {
    /// A parameter and its element type.
    pub fn get(&self, param: Param) -> (&Tensor, DType) {
        (&self.tensors[param.index()], self.dtype)
    }

    /// Element type they are kept in.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Memory of all of them.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Tensors of the checkpoint that the network has no use for.
    pub fn unused(&self) -> &[String] {
        &self.unused
    }
}
