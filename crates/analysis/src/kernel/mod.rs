//! What the name of a kernel tells: which family of work it is, its element type and tile, and a name short enough to
//! print.
//!
//! Names are all a trace has; what they do not tell is absent, and a kernel no rule knows is [`Family::Other`].

mod family;
mod short_name;
mod traits;

pub use family::{Family, KernelKind, Tile, classify, family, family_of_work};
pub use short_name::{function_name, short_name};
