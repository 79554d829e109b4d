//! Pages: what is shown of each document, as blocks that are made once. `render` prints them.

pub mod analytic;
pub mod capacity;
pub mod compare;
pub mod deep;
pub mod fleet;
pub mod regions;
pub mod run;
pub mod sweep;
pub mod whatif;
