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
mod bundle;
mod capture;
mod caveat;
mod clock;
mod collective;
mod command;
mod comparison;
mod cost;
pub mod counter;
mod deep_plan;
mod device;
mod device_memory;
mod device_time;
mod diagnosis;
mod disturbance;
mod dtype;
mod environment;
mod facts;
mod failure;
mod finding;
mod fleet;
mod flop_check;
mod forecast;
mod hardware;
mod inputs;
mod kernel;
mod kernel_report;
mod layer_page;
mod likeness;
mod loss;
mod manifest;
mod metrics;
mod op;
mod operator;
mod origin;
mod peak_memory;
mod profile;
mod quality;
mod random;
mod rank;
mod region;
mod region_report;
mod remark;
mod remedy;
mod replay;
mod rotary;
mod runs;
mod schema;
mod stage;
mod statistics;
mod step;
mod sweep;
pub mod timeline;
mod trace;
mod trial;
mod unit;
mod validation;
pub mod view;
mod workload;

pub use analytic::{
    AnalyticReport, Assumption, Coverage, DevicePrediction, DeviceUsed, Exchange, MeasuredPart, MemoryNeed, ModelSpec,
    ModuleMetrics, ModuleNode, ModuleStage, OperatorCategory, OperatorShare, ParameterCounts, PartKind, RateUsed,
    RepetitionKind, StageCost, TargetOperator, TargetOperatorList, WorkloadProfile,
};
pub use bundle::{BundleFile, BundleIndex, LeftOutFile, Redaction};
pub use capture::{Collector, KernelNameBase, RegionStyle, ReplayMode, range_expression};
pub use caveat::{Caveat, CaveatKind};
pub use clock::{Clock, ClockId, ClockKind};
pub use collective::CollectiveSummary;
pub use command::{CommandFacts, CommandRun, DeviceUse};
pub use comparison::{
    Change, ChangeInterval, ChangeVerdict, ComparedRun, Comparison, Difference, ForecastChange, Gate, GateOutcome,
    Measured, Replication,
};
pub use cost::{Cost, Traffic};
pub use deep_plan::{DeepPlan, PlannedPass};
pub use device::{Device, DeviceId, Placement};
pub use device_memory::{DeviceMemory, MemoryPoint, StepMemory};
pub use device_time::{CopyTime, DeviceTime, IdleCause, IdlePlace, IdleTime};
pub use diagnosis::{Check, Diagnosis, Verdict};
pub use disturbance::{Disturbance, InferenceDisturbance};
pub use dtype::{DType, UnknownDType};
pub use environment::{
    CpuInfo, Environment, FrameworkVersions, GitInfo, GpuInfo, MemoryInfo, NamedVersions, OperatingSystem, ToolVersion,
    ToolVersions,
};
pub use facts::{Base, Fact, Facts, Share};
pub use failure::{Exit, Failure};
pub use finding::{EstimatedSaving, Finding, TriedSaving};
pub use fleet::{
    ClockBasis, Fleet, FleetClock, FleetCollective, FleetFinding, FleetIdle, FleetJob, FleetPathPart, FleetRank,
    SlowKernel, Trend, TrendChange, TrendPoint,
};
pub use flop_check::FlopCheck;
pub use forecast::{
    CalibratedGroup, Contribution, DeviceCalibration, ExecutionMode, FamilyForecast, Forecast, ForecastRange,
    ForecastTime, IntervalWidth, LaunchCost, LeftOut, ModeForecast,
};
pub use hardware::{
    CalibratedRate, Calibration, ComputeUnit, Hardware, HardwareListing, NumberSource, Peak, Source, Sourced,
};
pub use inputs::{InputCommand, InputFile, InputImage, InputPrompt, InputRole, InputSet};
pub use kernel::{KernelRecord, KernelSummary, LaunchShape};
pub use kernel_report::{CountedKernel, CounterFacts, KernelReport, ModelledKernel, PassRecord, SampledKernel, Spread};
pub use layer_page::{FormulaLine, LayerPage, LayerPart, LayerPass, OperationLines, PartCost};
pub use likeness::nearest;
pub use loss::LostTime;
pub use manifest::{Artifact, ProcessIdentity, RunManifest, RunStatus, StepRecord};
pub use metrics::{
    Aggregates, Breakdown, Conclusions, Conditions, Metrics, ModuleSummary, Overhead, PeakUsed, PlacedBy, RunHeader,
    Sample, StageSummary, Times, Totals, Utilisation, Work,
};
pub use op::{ActivationKind, AttentionDetail, Chosen, InterpolationKind, Op, Role, Shape, Spec};
pub use operator::{ClassGroup, OperatorGroups, OperatorPlace, OperatorRecord, OperatorSummary, ShapeGroup};
pub use origin::Origin;
pub use peak_memory::PeakMemory;
pub use profile::{CostCentre, InputFacts, ProfileSettings, RoutingCounts, Throughput};
pub use quality::{QualityCounter, Severity};
pub use random::Random;
pub use rank::{RankArrival, RankArrivals, RankSkew, RankSummary};
pub use region::{RegionRecord, RegionSummary};
pub use region_report::{
    IncludeRecord, InstanceTimes, KernelPatterns, MetricRule, ModelledRegion, OutsideRegions, Region, RegionCapture,
    RegionKernel, RegionLaunch, RegionPart, RegionReport, RegionRoofline, RegionSection, RegionSelection, RegionTotals,
    RollUp, RolledValue, SectionValue,
};
pub use remark::Remark;
pub use remedy::{Remedies, Remedy, RemedyError, RemedyKind};
pub use replay::{CriticalPathPart, ReplayBasis, ReplaySummary, ReplayedChange, ReplayedTime, WhatIf};
pub use rotary::{RotaryForm, RotaryLayout, RotaryScaling};
pub use runs::{FileProblem, FileProblemKind, RunDetail, RunList, RunListing, RunState, Verification};
pub use schema::{Document, SchemaName, SchemaNameError, SchemaTag};
pub use stage::Stage;
pub use statistics::{Statistics, Variance};
pub use step::{RunKind, RunKindName, StepBasis, StepBatch, StepGroup, StepLabel, StepSummary, Steps};
pub use sweep::{Sweep, SweepAxis, SweepDevice, SweepFigures, SweepForecast, SweepPoint};
pub use trace::{
    CopySummary, CounterSummary, QueueFacts, SetAside, StageBasis, StepFacts, TraceFacts, TraceSource, TracedPass,
    TracedWorkload, WorkCoverage,
};
pub use trial::{OutputChange, RateChange, TimeChange, Trials, Try, TryStatus, TryTurn};
pub use unit::{Bytes, BytesPerSecond, Flops, FlopsPerByte, FlopsPerSecond, Nanos, Seconds};
pub use validation::{FileValidation, SchemaList, SchemaListing, ValidationReport, ValidationVerdict, Violation};
pub use workload::{AttentionKind, ImageWorkload, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind, Workload};

pub mod documents;
