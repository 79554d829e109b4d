//! Documents of counted kernels and regions.

mod kernel_report;
mod region_report;

pub use kernel_report::*;
pub use region_report::*;
