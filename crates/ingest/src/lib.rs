//! Files of other tools, read into records: one module per format.
//!
//! A reader takes text and gives back what the text says. It opens nothing, starts nothing and joins nothing; what the
//! records mean for a model or a run is decided elsewhere.

mod capture;
pub mod compressed;
mod csv;
mod cuda;
mod decimal;
mod demangle;
pub mod detect;
mod error;
pub mod gguf;
mod json;
pub mod ncu;
pub mod nsys;
pub mod torch;
pub mod torchinfo;
pub mod wire;

pub use error::IngestError;
