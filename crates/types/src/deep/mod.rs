//! Documents of counted kernels and regions.

pub(crate) mod kernel_report;
pub(crate) mod region_report;
