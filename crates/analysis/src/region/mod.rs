//! Hardware counters per NVTX region: from kernels and ranges that a profiler replayed to totals of regions.
//!
//! Which regions there are and what belongs to them is the business of `tree`, how values become one that of `rule`. Running the
//! profiler and reading its pages is left to others.

mod columns;
mod folder;
mod gather;
mod include;
mod instances;
mod kernels;
mod key;
mod roll;
mod roofline;
mod rule;
mod runs;
mod section;
mod survey;
mod totals;
mod tree;
mod value;

pub use columns::TIME;
pub use folder::folder_names;
pub use include::{Include, expression_of};
pub use kernels::{KernelSelection, SelectionError};
pub use key::RegionKey;
pub use roll::{
    Captured, Member, RegionInputs, RegionSettings, RolledRegion, RolledRegions, regions_of, roll_up, seen_kernels,
};
pub use roofline::is_counted;
pub use runs::runs_for_ranges;
pub use section::section_id;
