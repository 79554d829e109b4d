//! What the name of a kernel tells: which family of work it is, its element type and tile, and a name short enough to
//! print.
//!
//! In comes a name, out goes a `kind`: its `family` by the rules of `rules.txt`, its `element_type` and its `tile`.
//! `short_name` is for people, and for telling which function two tools mean. Names are all a trace has; what they do not
//! tell is absent, and a kernel no rule knows is [`Family::Other`].

mod element_type;
mod family;
mod kind;
mod rule;
mod short_name;
mod spelling;
mod tile;

pub use element_type::sums_up_products;
pub use family::Family;
pub use kind::{
    KernelKind, classify, family, family_of_work, is_migration, is_split_k, is_unfused_elementwise, reads_nothing,
};
pub use short_name::{function_name, short_name};
pub use tile::Tile;
