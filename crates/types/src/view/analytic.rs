//! The analytic model of a model on a device.

use crate::{AnalyticReport, Bytes, DevicePrediction, Flops, OperatorShare, StageCost};

/// The analytic model.
#[derive(Clone, Debug)]
pub struct AnalyticView<'a> {
    /// The document.
    pub report: &'a AnalyticReport,
    /// The prediction its own times belong to.
    pub prediction: Option<&'a DevicePrediction>,
    /// Stages that do something, parts behind the stage they are part of.
    pub stages: Vec<StageCostView<'a>>,
    /// Work of prefill and decode; absent without a prefill.
    pub work: Option<WorkShares>,
    /// Modules by time, the smaller ones in one line at the end. Together they are the whole model.
    pub modules: Vec<ModuleRole>,
    /// The same in fewer lines.
    pub modules_brief: Vec<ModuleRole>,
    /// Categories of operators that run, longest first.
    pub categories: Vec<CategoryView<'a>>,
    /// Tokens of a sequence at the end of the workload.
    pub sequence_tokens: u64,
    /// Every class, with the first module of it.
    pub classes: Vec<(&'a str, &'a str)>,
}

/// A stage and the stages around it.
#[derive(Clone, Debug)]
pub struct StageCostView<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is part of, outermost first.
    pub around: Vec<&'static str>,
    /// Its cost.
    pub cost: &'a StageCost,
    /// Its share of the time.
    pub time_share: Option<f64>,
}

/// Work of prefill and decode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkShares {
    /// Matrix and vector operations of both.
    pub flops: Flops,
    /// Bytes of both.
    pub bytes: Bytes,
    /// Prefill's shares of FLOPs and bytes; absent where nothing is decoded.
    pub prefill: Option<(Option<f64>, Option<f64>)>,
}

/// Modules of one role and class, their parts included.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleRole {
    /// Path, with `*` for modules that repeat; no two have the same.
    pub name: String,
    /// Class of the modules, that of its elements for a list; absent where different ones are gathered.
    pub class: Option<String>,
    /// Roofline time.
    pub time_ms: f64,
    /// Share of the model's time.
    pub time_share: Option<f64>,
    /// Matrix and vector operations.
    pub flops: Flops,
    /// Share of the model's FLOPs.
    pub flops_share: Option<f64>,
    /// Bytes moved.
    pub bytes: Bytes,
    /// Share of the model's bytes.
    pub bytes_share: Option<f64>,
}

/// A category of operators.
#[derive(Clone, Copy, Debug)]
pub struct CategoryView<'a> {
    /// What it is called.
    pub name: &'a str,
    /// The category.
    pub category: &'a OperatorShare,
    /// Its FLOPs.
    pub flops: Flops,
    /// Its bytes.
    pub bytes: Bytes,
    /// Its share of the time.
    pub time_share: Option<f64>,
}
