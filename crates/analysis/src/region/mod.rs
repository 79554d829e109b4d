//! Hardware counters per NVTX region: from kernels and ranges that a profiler replayed to totals of regions.
//!
//! Before the profiler runs, `include` understands which regions are asked for and spells them for the profiler, and
//! `runs` says how many runs that takes. Afterwards [`RegionInputs`] (`capture`) and [`RegionSettings`] come in, and
//! [`RolledRegions`] go out. `roll` is the order of it: `tree` finds the regions (each a `key`) and which of them a kernel
//! belongs to; `region_rows` sorts the rows by region, with the kernels that count (`kernels`) and the number of entries
//! (`instances`); `totals` rolls up the metrics (`columns`) and the `section`s, each `value` by its `rule`; `exclusive`
//! takes nested ranges off; `survey` adds what lies outside; `roofline` and `folder` finish a region. Running the profiler
//! and reading its pages is left to others.

mod capture;
mod columns;
mod exclusive;
mod folder;
mod include;
mod instances;
mod kernels;
mod key;
mod region_rows;
mod roll;
mod rolled_region;
mod roofline;
mod rule;
mod runs;
mod section;
mod settings;
mod survey;
mod totals;
mod tree;
mod value;
mod wildcard;

pub use crate::counter::TIME;
pub use capture::{RegionCapture, RegionInputs};
pub use include::{Include, expression_of};
pub use kernels::{KernelSelection, SelectionError};
pub use key::RegionKey;
pub use roll::{regions_of, roll_up};
pub use rolled_region::{Member, RolledRegion, RolledRegions};
pub use roofline::is_counted;
pub use runs::runs_for_ranges;
pub use settings::RegionSettings;
