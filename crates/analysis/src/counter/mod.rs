//! Kernels as counters and tables of other tools have them.
//!
//! In: rows of Nsight Compute pages ([`launches`]) and of `nsys stats` tables ([`listed`]). Out: summaries, and the kernels
//! of a run that has no timeline.

mod launches;
mod listed;
mod name;
mod pages;

pub use launches::{LaunchCounters, USED_COUNTERS};
pub(crate) use launches::{kernels, summaries};
pub use listed::ListedKernel;
pub(crate) use listed::{differing, kernels as listed_kernels};
pub use name::TIME;
pub(crate) use name::VECTOR;
pub use pages::PageOverlap;
