//! Runs and ranks side by side.

mod comparison;
mod fleet;

pub use comparison::*;
pub use fleet::*;
