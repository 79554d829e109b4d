//! What can go wrong while a network runs.

use std::path::PathBuf;

use network::NetworkError;
use types::{DType, Failure, Shape};

use crate::ComputeError;

/// An error of this crate, by cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// A file is no checkpoint.
    #[error("{} is not a safetensors checkpoint: {reason}", path.display())]
    NotACheckpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Files that an index names and that are not beside it.
    #[error("{} lists {of} files, of which {absent} are missing; the first is {}", path.display(), first.display())]
    MissingShards {
        /// The index.
        path: PathBuf,
        /// How many.
        absent: usize,
        /// Of how many.
        of: usize,
        /// The first of them.
        first: PathBuf,
    },
    /// A network of which some part can only be modelled.
    #[error(
        "the native engine does not support {class}: {why}; model it with `analyze`, or run it with --engine torch"
    )]
    NotComputed {
        /// Class of the network.
        class: &'static str,
        /// What is not computed.
        why: String,
    },
    /// A tensor the network needs is not in the checkpoint.
    #[error("{} has no tensor `{name}`; the network needs it with shape {shape}", path.display())]
    MissingTensor {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its shape.
        shape: Box<Shape>,
    },
    /// A tensor of another shape than the network needs.
    #[error("tensor `{name}` of {} has shape {found:?}; the network needs {wanted}", path.display())]
    WrongShape {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// What the checkpoint has.
        found: Vec<usize>,
        /// What the network needs.
        wanted: Box<Shape>,
    },
    /// A tensor of an element type that cannot be computed with.
    #[error("tensor `{name}` of {} is stored as {found}, which the native engine does not read", path.display())]
    WrongType {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// What the checkpoint has.
        found: String,
    },
    /// Weights cannot be kept in that type.
    #[error("the native engine keeps weights as fp32 or bf16, not {dtype}")]
    UnsupportedType {
        /// The type asked for.
        dtype: DType,
    },
    /// The prompt and what is to be generated do not fit the cache.
    #[error("{wanted} positions do not fit the KV cache of {capacity}")]
    CacheFull {
        /// Positions wanted.
        wanted: usize,
        /// Positions there are.
        capacity: usize,
    },
    /// An operation failed.
    #[error("{op}: {source}")]
    Compute {
        /// The operation.
        op: &'static str,
        /// What is wrong with its inputs.
        source: ComputeError,
    },
    /// The network refused.
    #[error(transparent)]
    Network(NetworkError),
}

impl Failure for EngineError {
    fn hint(&self) -> Option<String> {
        matches!(self, Self::MissingShards { .. }).then(|| {
            "the download is incomplete; download the rest, or pass another folder with --weights DIR".to_owned()
        })
    }
}

impl From<NetworkError> for EngineError {
    fn from(error: NetworkError) -> Self {
        match error {
            NetworkError::Backend(inner) => match inner.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Network(NetworkError::Backend(other)),
            },
            other => Self::Network(other),
        }
    }
}

impl From<EngineError> for NetworkError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Network(inner) => inner,
            other => Self::Backend(Box::new(other)),
        }
    }
}
