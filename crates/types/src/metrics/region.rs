//! Regions: NVTX ranges and what ran inside them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{DeviceId, JsonSchema, Nanos};

/// All instances of one region in one process on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionSummary {
    /// `[domain@]A::A1`, for display only.
    pub path: String,
    /// NVTX domain; absent for the default domain.
    pub domain: Option<String>,
    /// Names from the outermost range to this one: the identity, with domain, process and device.
    pub segments: Vec<String>,
    /// Process it ran in.
    pub process: Option<u32>,
    /// Device its kernels ran on.
    pub device: Option<DeviceId>,
    /// Display path of the enclosing region.
    pub parent: Option<String>,
    /// Times it was entered; at least that often where `instances_exact` is false.
    pub instances: u64,
    /// Whether the source shows every entry. Kernels with their open ranges only show that there was one.
    #[serde(default = "exact")]
    pub instances_exact: bool,
    /// Kernels launched inside, nested regions included; absent where only whole ranges were measured.
    pub kernels_inclusive: Option<u64>,
    /// Kernels launched inside, nested regions left out.
    pub kernels_exclusive: Option<u64>,
    /// Of the inclusive ones, those that a CUDA graph launched and that belong here by the range around their capture, not by
    /// one around the launch.
    #[serde(default)]
    pub kernels_captured: u64,
    /// Kernel time, nested regions included.
    pub total_ns_inclusive: Option<Nanos>,
    /// Kernel time, nested regions left out; absent where the nested ones were not measured.
    pub total_ns_exclusive: Option<Nanos>,
    /// Metrics by name, in the unit their name says; a metric the device lacks is absent.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
}

const fn exact() -> bool {
    true
}
