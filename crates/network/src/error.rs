//! What can go wrong while a network is built or run.

use types::{Op, Spec};

/// Inputs that an operation cannot take: always a mistake in a network or in the sizes it was built with.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{} cannot take inputs {}: {reason}", op.name(), shapes(inputs))]
pub struct ShapeError {
    /// The operation.
    pub op: Box<Op>,
    /// Its inputs.
    pub inputs: Vec<Spec>,
    /// What does not fit.
    pub reason: String,
}

/// An error of building or running a network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// Shapes that do not fit.
    #[error(transparent)]
    Shape(Box<ShapeError>),
    /// Sizes of a prompt that the network cannot take.
    #[error("{0}")]
    Prompt(String),
    /// What the backend says.
    #[error(transparent)]
    Backend(Box<dyn std::error::Error + Send + Sync>),
}

impl From<ShapeError> for NetworkError {
    fn from(error: ShapeError) -> Self {
        Self::Shape(Box::new(error))
    }
}

fn shapes(inputs: &[Spec]) -> String {
    inputs.iter().map(|spec| spec.shape.to_string()).collect::<Vec<_>>().join(", ")
}
