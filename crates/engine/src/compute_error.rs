//! Why an operation on tensors failed.

/// What is wrong with the inputs of an operation.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ComputeError(String);

/// What an operation on tensors gives back.
pub(crate) type Result<T> = std::result::Result<T, ComputeError>;

impl ComputeError {
    /// An error that gives this reason.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}
