//! Runs and ranks side by side.

pub(crate) mod comparison;
pub(crate) mod fleet;
