//! The region report: hardware counters rolled up per NVTX region.
//!
//! What was asked for, which captures answered it, and for every region its totals with the rule each number follows.
//! Values are in base units: bytes, nanoseconds, hertz, percent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counter::ProfiledWork;
use crate::{
    Bytes, BytesPerSecond, DeviceId, Flops, FlopsPerSecond, JsonSchema, Nanos, Origin, QualityCounter, RegionStyle,
    Remark, ReplayMode, SchemaTag,
};

/// How the values of several kernels, or of several instances of a range, become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RollUp {
    /// They add up.
    Sum,
    /// Their mean, each weighted by its time on the device.
    TimeWeightedMean,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl RollUp {
    /// The rule in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::TimeWeightedMean => "mean weighted by time",
            Self::Max => "largest",
            Self::Min => "smallest",
        }
    }
}

/// One metric of the report and the rule its values follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricRule {
    /// The counter's name.
    pub name: String,
    /// Its unit; absent where the device lacks the counter.
    pub unit: Option<String>,
    /// How its values become one.
    pub rule: RollUp,
}

/// A value of a region under its metric's rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolledValue {
    /// Nested regions included; absent where nothing was counted.
    pub inclusive: Option<f64>,
    /// Nested regions left out; absent where nothing was counted outside of them, or that cannot be told.
    pub exclusive: Option<f64>,
    /// Kernels or ranges of the region without this counter.
    #[serde(default)]
    pub missing: u64,
}

/// One number of a section, rolled up over the region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SectionValue {
    /// Its name in the profiler's words.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// How its values became one.
    pub rule: RollUp,
    /// Nested regions included; absent where nothing was counted.
    pub value: Option<f64>,
}

/// A section of the profiler, rolled up over the region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionSection {
    /// Identifier, as in the configuration; absent where only the title is known.
    pub id: Option<String>,
    /// Title.
    pub title: String,
    /// Its numbers, in the profiler's order.
    pub metrics: Vec<SectionValue>,
}

/// All launches of one kernel on one device inside a region, nested regions included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionKernel {
    /// Full demangled name.
    pub name: String,
    /// Name without namespaces, template arguments and parameters.
    pub short_name: String,
    /// Device; absent where the profiler does not say.
    pub device: Option<DeviceId>,
    /// Launches.
    pub calls: u64,
    /// Their time; absent where it was not measured.
    pub total_ns: Option<Nanos>,
    /// Mean time of one launch; absent where it was not measured.
    pub mean_ns: Option<Nanos>,
}

/// Times of the instances of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceTimes {
    /// Shortest.
    pub min_ns: Nanos,
    /// Mean.
    pub mean_ns: Nanos,
    /// Longest.
    pub max_ns: Nanos,
}

/// What was counted in a region.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionTotals {
    /// Times it was entered; at least that often where `instances_exact` is false.
    pub instances: u64,
    /// Whether every entry was seen. Kernels with their open ranges only show that there was one.
    pub instances_exact: bool,
    /// Times of the instances; absent where they cannot be told apart.
    pub instance_ns: Option<InstanceTimes>,
    /// Kernels inside, nested regions included; absent where only whole ranges were measured.
    pub kernels_inclusive: Option<u64>,
    /// Kernels inside, nested regions left out.
    pub kernels_exclusive: Option<u64>,
    /// Time on the device, nested regions included.
    pub total_ns_inclusive: Option<Nanos>,
    /// Time on the device, nested regions left out; absent where the nested ones were not measured.
    pub total_ns_exclusive: Option<Nanos>,
    /// The configured metrics.
    pub metrics: BTreeMap<String, RolledValue>,
    /// The configured sections.
    #[serde(default)]
    pub sections: Vec<RegionSection>,
    /// Kernels by time; empty where only whole ranges were measured.
    #[serde(default)]
    pub kernels: Vec<RegionKernel>,
}

/// A region in one process, on one device, from one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionPart {
    /// Process.
    pub process: Option<u32>,
    /// Device.
    pub device: Option<DeviceId>,
    /// Thread that opened the region; absent for start/end ranges, which belong to none.
    pub thread: Option<u64>,
    /// What was counted there.
    pub totals: RegionTotals,
}

/// Counted work of a region against the roofs of its device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionRoofline {
    /// Operations of the vector units, counted as executed: one fused multiply-add is two.
    pub flops_vector: Option<Flops>,
    /// Operations of the matrix units.
    pub flops_matrix: Option<Flops>,
    /// Bytes to and from device memory.
    pub dram_bytes: Bytes,
    /// Time on the device.
    pub time_ns: Nanos,
    /// Operations for each byte; absent where no operation was counted.
    pub flops_per_byte: Option<f64>,
    /// Operations in a second.
    pub flops_per_second: Option<FlopsPerSecond>,
    /// Bytes in a second.
    pub bytes_per_second: BytesPerSecond,
    /// Share of the device's memory bandwidth; absent where the device is not known.
    pub bandwidth_share: Option<f64>,
    /// Share of the device's arithmetic rate, vector and matrix work each against its own, as far as they were counted.
    pub compute_share: Option<f64>,
    /// The roof it is nearer to: `memory` or `compute`; absent where matrix work was not counted.
    pub bound: Option<String>,
    /// Roofline time of the counted work on this device; higher where work was not counted.
    pub least_ns: Option<Nanos>,
    /// How the numbers were obtained.
    pub origin: Origin,
}

/// What the analytic model says of the module a region is named after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelledRegion {
    /// Path of the module.
    pub module: String,
    /// Its class.
    pub class: String,
    /// Matrix operations of one pass.
    pub flops_matrix: Flops,
    /// Vector operations of one pass.
    pub flops_vector: Flops,
    /// Bytes one pass must move.
    pub bytes: Bytes,
    /// Roofline time of one pass on the device; absent where its rates are not known.
    pub least_ns: Option<Nanos>,
}

/// Which kernels of a region count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelPatterns {
    /// Kernels that count: exact, or `regex:PATTERN`; empty for all.
    pub include_patterns: Vec<String>,
    /// Kernels left out; wins over `include_patterns`.
    pub exclude_patterns: Vec<String>,
    /// Kernels of the region that the two left out, of those captured.
    pub kernels_left_out: u64,
}

/// One region, of all processes, devices and threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// `[domain@]A::A1`, for display only.
    pub path: String,
    /// NVTX domain; absent for the default domain.
    pub domain: Option<String>,
    /// Names from the outermost range to this one: the identity, with domain and style.
    pub segments: Vec<String>,
    /// What kind of range it is.
    pub style: RegionStyle,
    /// Display path of the enclosing region, whether or not that is in the report.
    pub parent: Option<String>,
    /// Its folder beside the report.
    pub folder: String,
    /// Which of its kernels count.
    #[serde(default)]
    pub selection: KernelPatterns,
    /// Everything together; absent where the configuration switches it off.
    pub aggregate: Option<RegionTotals>,
    /// By process, device and thread.
    pub parts: Vec<RegionPart>,
    /// Counted work against the roofs; absent where it was not counted.
    pub roofline: Option<RegionRoofline>,
    /// The analytic model's numbers; absent where the region is no module of a known network.
    pub modelled: Option<ModelledRegion>,
}

/// What one include expression became.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IncludeRecord {
    /// As it was given.
    pub expression: String,
    /// As the profiler was told; empty where it was told to profile all.
    pub profiler: Vec<String>,
    /// Display paths of the regions it matched.
    pub matched: Vec<String>,
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegionSelection {
    /// Regions; empty for all.
    pub include: Vec<IncludeRecord>,
    /// Kernels inside a region: exact, or `regex:PATTERN`; absent for all.
    pub kernel_name: Option<String>,
    /// Which form of a kernel's name that is compared with.
    pub kernel_name_base: String,
    /// Kernels left out; wins over `kernel_name`.
    pub kernel_exclude: Vec<String>,
    /// Kernels that the two left out, of those captured.
    pub kernels_left_out: u64,
    /// Set of sections; absent where sections are named.
    pub set: Option<String>,
    /// Sections.
    pub sections: Vec<String>,
    /// Metrics.
    pub metrics: Vec<String>,
    /// Whether regions have totals over all processes and devices.
    pub aggregate: bool,
}

/// One run of the profiler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegionCapture {
    /// `survey`, which finds regions, or `capture`.
    pub purpose: String,
    /// Include expressions it was given, as the profiler spells them.
    pub include: Vec<String>,
    /// Its arguments, or the file it was read from.
    pub command: Vec<String>,
    /// Results: kernels, or ranges.
    pub results: u64,
    /// What the profiler warned of, in its own words.
    pub messages: Vec<String>,
}

/// Kernels that belong to no region of the report.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutsideRegions {
    /// How many.
    pub kernels: u64,
    /// Share of all kernels that were seen.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub kernels_share: f64,
    /// Their time; absent where it was not measured.
    pub total_ns: Option<Nanos>,
    /// Share of the time of all kernels that were seen.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub time_share: Option<f64>,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionReport {
    /// `llm-perf/regions/1`.
    pub schema: SchemaTag<Self>,
    /// Name of the run.
    pub run: String,
    /// The profiler and its version, where known.
    pub tool: String,
    /// How counters were read.
    pub replay_mode: ReplayMode,
    /// What ran: the command, or the files that were read.
    pub target: String,
    /// The device as the profiler names it; absent where it does not.
    pub device: Option<String>,
    /// When it was made, RFC 3339; empty in reports of earlier versions.
    #[serde(default)]
    pub generated_at: String,
    /// SHA-256 of the resolved configuration, `config.yaml`.
    #[serde(alias = "config_sha256")]
    pub config_fingerprint: String,
    /// What totals are of: `aggregate` for all processes and devices together; otherwise the one `process:PID` or `device:ID` that
    /// was seen, or `parts` where there are several of both and each region has totals by part only.
    #[serde(default = "aggregate")]
    pub scope: String,
    /// What was asked for.
    pub selection: RegionSelection,
    /// Runs of the profiler, in order.
    pub captures: Vec<RegionCapture>,
    /// Metrics of the report and their rules.
    pub metrics: Vec<MetricRule>,
    /// Everything inside the regions, each kernel or range once; absent where ranges that may overlap cannot be added, and where
    /// there is no region.
    pub totals: Option<RegionTotals>,
    /// Regions, each before those nested in it.
    pub regions: Vec<Region>,
    /// Kernels of no region; absent where only regions were profiled.
    pub outside: Option<OutsideRegions>,
    /// What a reader should know, in plain words.
    pub notes: Vec<Remark>,
    /// What was lost or is uncertain.
    pub quality: Vec<QualityCounter>,
}

fn aggregate() -> String {
    RegionReport::AGGREGATE.to_owned()
}

impl RegionReport {
    /// The scope of totals over everything.
    pub const AGGREGATE: &str = "aggregate";

    /// What the totals of these regions are of.
    pub fn scope_of(regions: &[Region], is_aggregated: bool) -> String {
        if is_aggregated {
            return aggregate();
        }
        let parts: Vec<&RegionPart> = regions.iter().flat_map(|region| &region.parts).collect();
        let first = parts.first();
        let process =
            first.and_then(|first| first.process).filter(|one| parts.iter().all(|part| part.process == Some(*one)));
        let device = first
            .and_then(|first| first.device.as_ref())
            .filter(|one| parts.iter().all(|part| part.device.as_ref() == Some(*one)));
        match (process, device) {
            (Some(process), _) => format!("process:{process}"),
            (None, Some(device)) => format!("device:{device}"),
            (None, None) => "parts".to_owned(),
        }
    }
}

/// A launch in a region, or an instance of a range.
#[derive(Clone, Debug)]
pub struct RegionLaunch<'a> {
    /// Capture it was profiled in.
    pub capture: usize,
    /// Path of the innermost region it lies in.
    pub region: &'a str,
    /// What was profiled.
    pub work: &'a ProfiledWork,
    /// Its time.
    pub time_ns: Option<f64>,
    /// The configured metrics, in their order.
    pub metrics: Vec<Option<f64>>,
}
