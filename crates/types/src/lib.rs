//! The nouns of llm-perf: units, records, documents.
//!
//! Every other crate agrees on these and on nothing else. There is no input or output here, no clock and no formula;
//! JSON Schemas come from these types, so a document that validates is a document these types can read.
//!
//! ```
//! use llm_perf_types::{Bytes, Nanos, documents};
//!
//! // Units are types: they print themselves, and do not add up to nonsense.
//! let step = Nanos::new(1_500_000) + Nanos::new(250_000);
//! assert_eq!(step.to_string(), "1.75 ms");
//! assert_eq!(Bytes::new(16_060_000_000).to_string(), "16.1 GB");
//!
//! // Every document has a name with a version, and a schema.
//! let metrics = documents::find("metrics").unwrap();
//! assert_eq!(metrics.name.to_string(), "llm-perf/metrics/1");
//! assert!(metrics.schema().get("properties").is_some());
//! ```

mod analytic;
mod clock;
mod compared;
mod conclusion;
pub mod counter;
mod deep;
pub mod documents;
mod failure;
mod internal_error;
mod likeness;
mod machine;
mod metrics;
mod model;
mod named;
mod random;
mod run;
mod schema;
mod serving;
mod stage;
mod statistics;
pub mod timeline;
mod unit;
pub mod view;

pub use analytic::forecast::{
    CalibratedGroup, Contribution, DeviceCalibration, ExecutionMode, FamilyForecast, Forecast, ForecastRange,
    ForecastTime, IntervalWidth, LaunchCost, LeftOut, ModeForecast,
};
pub use analytic::layer_page::{FormulaLine, LayerPage, LayerPart, LayerPass, OperationLines, PartCost};
pub use analytic::origin::Origin;
pub use analytic::report::{
    AnalyticReport, Assumption, Coverage, DevicePrediction, DeviceUsed, Exchange, MeasuredPart, MemoryNeed, ModelSpec,
    ModuleMetrics, ModuleNode, ModuleStage, OperatorCategory, OperatorShare, ParameterCounts, PartKind, RateUsed,
    RepetitionKind, StageCost, TargetOperator, TargetOperatorList, WorkloadProfile,
};
pub use analytic::sweep::{Sweep, SweepAxis, SweepDevice, SweepFigures, SweepForecast, SweepPoint};
pub use clock::{Clock, ClockId, ClockKind};
pub use compared::comparison::{
    Change, ChangeInterval, ChangeVerdict, ComparedRun, Comparison, Difference, ForecastChange, Gate, GateOutcome,
    Measured, Replication,
};
pub use compared::fleet::{
    ClockBasis, Fleet, FleetClock, FleetCollective, FleetFinding, FleetIdle, FleetJob, FleetPathPart, FleetRank,
    SlowKernel, Trend, TrendChange, TrendPoint,
};
pub use conclusion::caveat::{Caveat, CaveatKind};
pub use conclusion::facts::{Base, Fact, Facts, Share};
pub use conclusion::finding::{EstimatedSaving, Finding, TriedSaving};
pub use conclusion::loss::LostTime;
pub use conclusion::quality::{QualityCounter, Severity};
pub use conclusion::remark::Remark;
pub use conclusion::remedy::{Remedies, Remedy, RemedyError, RemedyKind};
pub use conclusion::trial::{OutputChange, RateChange, TimeChange, Trials, Try, TryStatus, TryTurn};
pub use deep::kernel_report::{
    CountedKernel, CounterFacts, KernelReport, ModelledKernel, PassRecord, SampledKernel, Spread,
};
pub use deep::region_report::{
    IncludeRecord, InstanceTimes, KernelPatterns, MetricRule, ModelledRegion, OutsideRegions, Region, RegionCapture,
    RegionKernel, RegionLaunch, RegionPart, RegionReport, RegionRoofline, RegionSection, RegionSelection, RegionTotals,
    RollUp, RolledValue, SectionValue,
};
pub use failure::{Exit, Failure, UserError};
pub use internal_error::{CaughtPanic, catching, guarded, report_panics};
pub use likeness::nearest;
pub use machine::device::{Device, DeviceId, Placement};
pub use machine::diagnosis::{Check, Diagnosis, Verdict};
pub use machine::environment::{
    CpuInfo, Environment, FrameworkVersions, GitInfo, GpuInfo, MemoryInfo, NamedVersions, OperatingSystem, ToolVersion,
    ToolVersions,
};
pub use machine::hardware::{
    CalibratedRate, Calibration, ComputeUnit, Hardware, HardwareListing, NumberSource, Peak, Source, Sourced,
};
pub use metrics::collective::CollectiveSummary;
pub use metrics::command::{CommandFacts, CommandRun, DeviceUse};
pub use metrics::device_memory::{DeviceMemory, MemoryPoint, StepMemory};
pub use metrics::device_time::{CopyTime, DeviceTime, IdleCause, IdlePlace, IdleTime};
pub use metrics::disturbance::{Disturbance, InferenceDisturbance};
pub use metrics::flop_check::FlopCheck;
pub use metrics::kernel::{KernelEstimate, KernelRecord, KernelSummary, LaunchShape};
pub use metrics::operator::{ClassGroup, OperatorGroups, OperatorPlace, OperatorRecord, OperatorSummary, ShapeGroup};
pub use metrics::peak_memory::PeakMemory;
pub use metrics::profile::{CostCentre, InputFacts, ProfileSettings, RoutingCounts, Throughput};
pub use metrics::rank::{RankArrival, RankArrivals, RankSkew, RankSummary};
pub use metrics::region::{RegionRecord, RegionSummary};
pub use metrics::replay::{CriticalPathPart, ReplayBasis, ReplaySummary, ReplayedChange, ReplayedTime, WhatIf};
pub use metrics::step::{
    RunKind, RunKindName, StepBasis, StepBatch, StepGroup, StepLabel, StepSummary, StepWork, Steps,
};
pub use metrics::trace::{
    CopySummary, CounterSummary, QueueFacts, SetAside, StageBasis, StepFacts, TraceFacts, TraceSource, TracedPass,
    TracedWorkload, WorkCoverage,
};
pub use metrics::{
    Aggregates, Breakdown, Conclusions, Conditions, Metrics, ModuleSummary, Overhead, PeakUsed, PlacedBy, RunHeader,
    Sample, StageSummary, Times, Totals, Utilisation, Work,
};
pub use model::cost::{Cost, Traffic};
pub use model::dtype::{DType, UnknownDType};
pub use model::op::{ActivationKind, AttentionDetail, Chosen, InterpolationKind, Op, Role, Shape, Spec};
pub use model::rotary::{RotaryForm, RotaryLayout, RotaryScaling};
pub use model::workload::{
    AttentionKind, ImageWorkload, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind, Workload,
};
pub use random::Random;
pub use run::bundle::{BundleFile, BundleIndex, LeftOutFile, Redaction};
pub use run::capture::{Collector, KernelNameBase, RegionStyle, ReplayMode, range_expression};
pub use run::deep_plan::{DeepPlan, PlannedPass};
pub use run::input_digest::InputDigest;
pub use run::inputs::{InputCommand, InputFile, InputImage, InputPrompt, InputRole, InputSet};
pub use run::manifest::{Artifact, ProcessIdentity, RunManifest, RunStatus, StepRecord};
pub use run::runs::{FileProblem, FileProblemKind, RunDetail, RunList, RunListing, RunState, Verification};
pub use run::validation::{FileValidation, SchemaList, SchemaListing, ValidationReport, ValidationVerdict, Violation};
pub use schema::{Document, SchemaName, SchemaNameError, SchemaTag};
pub use serving::capacity::{
    Capacity, CapacityAssumption, DecodingServers, EnergyForecast, HighestLoad, LatencyForecast, LimitedLatency,
    LoadArrivals, LoadFigures, LoadMoment, MeasuredFigure, MeasuredRequest, PriceForecast, RequestForecast,
    SimulatedLoad, SimulatedServer, StepKind, StepResidual,
};
pub use serving::capacity_sweep::{CapacitySweep, LayoutFigures, LayoutPoint};
pub use serving::json_lines::{REQUESTS_SCHEMA, RequestLogHeader};
pub use serving::latency::{Goodput, Latency, LoadEnergy, Objective, Quantile, ServedLoad};
pub use serving::request_log::{RequestClock, RequestLog, RequestRecord, RequestSource};
pub use serving::served::{
    OffsetBasis, RequestJoin, RequestParts, RequestStep, RequestWork, Served, ServedRequest, Serving,
};
pub use stage::Stage;
pub use statistics::{Statistics, Variance};
pub use unit::{Bytes, BytesPerSecond, Count, Flops, FlopsPerByte, FlopsPerSecond, Joules, Nanos, Seconds};
