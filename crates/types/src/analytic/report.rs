//! `report.json` of the analytic model: what a model costs on a workload, and its roofline time on a device.
//!
//! Everything here is modelled from a configuration; nothing is measured. The same inputs give the same bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    AttentionKind, Bytes, BytesPerSecond, Caveat, DType, Flops, FlopsPerSecond, Forecast, ForecastTime, JsonSchema,
    LogitsKind, Origin, PageKind, Parallel, Quantisation, RoutingKind, SchemaTag, Traffic,
};

/// The model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelSpec {
    /// Name on the command line, or the file the configuration came from.
    pub model_id: String,
    /// Class of the published model.
    pub model_variant: String,
    /// The published model this is the decoder of; absent for whole models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Revision of the published weights, where known.
    pub hf_revision: Option<String>,
    /// File the configuration came from; `builtin:NAME` for embedded ones.
    pub config_path: String,
    /// Width of the hidden states.
    pub hidden_size: u64,
    /// Inner width of a dense feed-forward; absent for models without one.
    pub intermediate_size: Option<u64>,
    /// Decoder layers, or blocks.
    pub num_layers: u64,
    /// Attention heads; absent for models without attention.
    pub num_attention_heads: Option<u64>,
    /// Vision encoder; absent for models without one.
    pub vision_backbone: Option<String>,
    /// Whether layers mix experts.
    pub uses_moe: bool,
    /// Element type of the published weights.
    pub dtype: DType,
    /// How the checkpoint is quantised, by its `quantization_config`; absent where it is not.
    pub quantisation: Option<String>,
    /// Parameter counts.
    pub parameters: ParameterCounts,
    /// What a reader should know.
    pub notes: String,
}

/// Numbers of parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterCounts {
    /// All of them, used or not.
    pub total: u64,
    /// All but the experts that a token does not go to. Tables of embeddings and towers for images are among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<u64>,
    /// Those of the tables of embeddings that tokens look rows up in, where they serve nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<u64>,
    /// By top-level part, named by module path.
    pub by_module: BTreeMap<String, u64>,
}

/// The workload, flat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadProfile {
    /// Name of the profile.
    pub profile_id: String,
    /// What it stands for.
    pub description: String,
    /// All prompt tokens.
    pub seq_len: u64,
    /// Those that are no image tokens.
    pub text_tokens: u64,
    /// Those that are; zero without pictures.
    pub image_tokens: u64,
    /// Side of the global view; absent without pictures.
    pub base_size: Option<u64>,
    /// Side of a tile; absent without pictures.
    pub image_size: Option<u64>,
    /// Whether pages are cut into tiles.
    pub crop_mode: bool,
    /// Tiles across and down; absent without pictures.
    pub crop_grid: Option<[u64; 2]>,
    /// Tokens generated.
    pub max_new_tokens: u64,
    /// Decode forward passes.
    pub decode_steps: u64,
    /// What the pages look like.
    pub doc_kind: PageKind,
    /// Pages of one request.
    pub num_pages: u64,
    /// Requests processed together.
    pub batch: u64,
    /// Element type of weights and activations.
    pub dtype: DType,
    /// How attention is computed.
    pub attention: AttentionKind,
    /// Positions whose logits prefill computes.
    pub logits: LogitsKind,
    /// How tokens spread over experts.
    pub routing: RoutingKind,
    /// How weights and the cache are stored.
    #[serde(default)]
    pub quantisation: Quantisation,
    /// Over how many devices it is spread.
    #[serde(default)]
    pub parallel: Parallel,
}

/// A rate the prediction is relative to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateUsed {
    /// Element type of the operands.
    pub dtype: DType,
    /// `matrix` or `vector`.
    pub unit: String,
    /// Dense rate.
    pub flops: FlopsPerSecond,
    /// Where it comes from.
    pub source: String,
}

/// The device of a prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUsed {
    /// Catalogue name.
    pub id: String,
    /// Name people use.
    pub name: String,
    /// Memory.
    pub memory_bytes: Bytes,
    /// Where that comes from.
    pub memory_source: Option<String>,
    /// Bandwidth.
    pub bytes_per_second: BytesPerSecond,
    /// Where that comes from.
    pub bandwidth_source: Option<String>,
    /// Bandwidth to other devices, both directions together; absent where the catalogue does not say.
    pub interconnect_bytes_per_second: Option<BytesPerSecond>,
    /// Where that comes from.
    pub interconnect_source: Option<String>,
    /// Rates.
    pub rates: Vec<RateUsed>,
    /// Cost of one launch; absent when not counted.
    pub launch_us: Option<f64>,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageCost {
    /// Matrix operations.
    pub flops_matrix: Flops,
    /// Other arithmetic.
    pub flops_vector: Flops,
    /// Traffic.
    pub bytes: Traffic,
    /// Operations executed.
    pub operations: u64,
    /// Roofline time: the sum over operations of the larger of arithmetic and traffic.
    pub time_ms: f64,
    /// Part of it in operations bound by arithmetic.
    pub compute_bound_ms: f64,
    /// Part of it in operations bound by traffic.
    pub memory_bound_ms: f64,
    /// Part of it in which devices wait for what others send.
    #[serde(default)]
    pub communication_ms: f64,
    /// Bytes each device sends to others.
    #[serde(default)]
    pub sent_bytes: Bytes,
    /// What most of the time is bound by.
    pub bound: String,
    /// Forward passes.
    pub passes: u64,
    /// The likely time in eager mode, beside the roofline.
    #[serde(flatten)]
    pub forecast: ForecastTime,
}

/// Exchanges of one kind between the devices that share a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exchange {
    /// `prefill` or `decode`.
    pub stage: String,
    /// `all-reduce`, `all-gather`, `all-to-all` or `point-to-point`.
    pub collective: String,
    /// Devices that take part.
    pub devices: u64,
    /// Times it is done in one pass.
    pub per_pass: u64,
    /// Size of the tensor.
    pub tensor_bytes: Bytes,
    /// Bytes each device sends in one pass.
    pub sent_bytes_per_pass: Bytes,
    /// Roofline time in one pass.
    pub time_per_pass_ms: f64,
}

/// Memory the workload needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryNeed {
    /// All parameters.
    pub weights_bytes: Bytes,
    /// Most activations live at once, as the forward code holds them.
    pub activations_peak_bytes: Bytes,
    /// Cache of one position of one sequence, as long as no window is full; absent for models without a cache.
    pub kv_bytes_per_token: Option<Bytes>,
    /// The same once every window is full.
    pub kv_bytes_per_token_later: Option<Bytes>,
    /// Cache at the end, all sequences together.
    pub kv_bytes: Bytes,
    /// All of the above.
    pub total_bytes: Bytes,
    /// Whether that fits the device.
    pub fits: bool,
    /// Sequences of this length whose cache fits beside weights and activations; absent without a cache.
    pub sequences_that_fit: Option<u64>,
}

/// How the children of a module run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepetitionKind {
    /// They are different modules.
    None,
    /// One after the other.
    For,
    /// Side by side on parts of the input.
    Parfor,
}

/// When a module runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModuleStage {
    /// While pictures are read.
    Vision,
    /// While picture features are projected.
    Projector,
    /// At prefill only, and not in the stages above.
    Prefill,
    /// At prefill and at every decode step.
    Decode,
    /// Never on this workload.
    Other,
}

/// One module. Experts, which are all alike, are one node whose name ends in `*`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleNode {
    /// Path, as in the checkpoint; `(root)` for the model itself.
    pub module_id: String,
    /// Last part of the path.
    pub name: String,
    /// Class, with the file the published model defines it in.
    pub qualified_class_name: String,
    /// When it runs.
    pub stage: ModuleStage,
    /// The module it is part of.
    pub parent_id: Option<String>,
    /// Its parts.
    pub children: Vec<String>,
    /// How they run.
    pub repetition: RepetitionKind,
    /// How many there are, where they repeat.
    pub repetition_count: Option<u64>,
    /// What the published class is constructed with.
    pub constructor_params: BTreeMap<String, String>,
}

/// A kind of operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorCategory {
    /// Stable name.
    pub category_id: String,
    /// Name for people.
    pub display_name: String,
    /// What belongs to it.
    pub description: String,
    /// Module classes whose own work is of this kind.
    pub match_classes: Vec<String>,
}

/// The operators of one kind inside a module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorShare {
    /// Which kind.
    pub category_id: String,
    /// Operations executed.
    pub calls: u64,
    /// Trillions of operations, matrix and vector together.
    pub flops_tflops: f64,
    /// Terabytes (1e12 bytes) moved.
    pub io_tb: f64,
    /// Roofline time.
    pub time_ms: f64,
    /// Share of the module's operations.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share_of_module_flops: f64,
}

/// What one module costs on the workload, its parts included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleMetrics {
    /// Which module.
    pub module_id: String,
    /// Which workload.
    pub profile_id: String,
    /// Times it is called. The root is the workload as a whole and counts once, a list of modules is never called itself, and
    /// experts count as often as they are expected to be used.
    pub calls: u64,
    /// Roofline time, milliseconds.
    pub total_time_ms: f64,
    /// Roofline time of its own operations, parts left out.
    pub self_time_ms: f64,
    /// Trillions of operations, matrix and vector together.
    pub total_flops_tflops: f64,
    /// Terabytes (1e12 bytes) moved.
    pub total_io_tb: f64,
    /// Matrix operations.
    pub flops_matrix: Flops,
    /// Other arithmetic.
    pub flops_vector: Flops,
    /// Traffic.
    pub bytes: Traffic,
    /// Gigabytes (1e9 bytes) of parameters.
    pub memory_weights_gb: f64,
    /// Gigabytes of activations live while it runs, at most.
    pub memory_activations_gb: f64,
    /// Gigabytes of cache it keeps at the end.
    pub memory_kvcache_gb: f64,
    /// Share of the model's roofline time.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share_of_model_time: f64,
    /// By kind of operator.
    pub operator_breakdown: Vec<OperatorShare>,
    /// The likely time in eager mode, its parts included.
    #[serde(flatten)]
    pub forecast: ForecastTime,
}

/// What of a workload is compared with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A stage: wall time without a profiler.
    Stage,
    /// A module, its parts included: time in the profiled pass, waits for launches included.
    Module,
    /// Kernels of a family in one stage: device time in the profiled pass.
    KernelFamily,
}

/// A part of the workload: what a run measured of it beside what was predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredPart {
    /// What it is.
    pub kind: PartKind,
    /// Its name: of the stage, the module or the family.
    pub name: String,
    /// Stage of a kernel family.
    pub stage: Option<String>,
    /// What the run measured.
    pub measured_ms: f64,
    /// Roofline time; absent for kernel families.
    pub roofline_ms: Option<f64>,
    /// The likely time in eager mode; absent where nothing was forecast.
    pub forecast_ms: Option<f64>,
    /// Roofline over measured; absent where it exceeds 1, because then what ran is not what is modelled.
    pub predicted_vs_measured_ratio: Option<f64>,
    /// Forecast over measured.
    pub forecast_vs_measured_ratio: Option<f64>,
}

/// Roofline times on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DevicePrediction {
    /// The device.
    pub device: DeviceUsed,
    /// Stages by name.
    pub stages: BTreeMap<String, StageCost>,
    /// Prefill and decode together.
    pub predicted_total_time_ms: f64,
    /// Time to the first token.
    pub ttft_ms: f64,
    /// Mean time of a decode step; absent without decode.
    pub time_per_output_token_ms: Option<f64>,
    /// Tokens per second of the whole batch while decoding; absent without decode.
    pub decode_tokens_per_second: Option<f64>,
    /// Whether everything fits its memory.
    pub fits: bool,
    /// Sequences of this length whose cache fits beside weights and activations; absent without a cache.
    pub sequences_that_fit: Option<u64>,
}

/// Something taken as given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Assumption {
    /// What.
    pub text: String,
    /// Always `assumed`.
    pub origin: Origin,
}

/// One class of a list of target operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetOperator {
    /// Class name.
    pub class_name: String,
    /// With its file.
    pub class_name_qualified: String,
    /// Whether PyTorch brings it.
    pub is_pytorch_builtin: bool,
    /// Whether the model brings it.
    pub is_custom: bool,
    /// Classes of its parts.
    pub children_classes: Vec<String>,
    /// Kind of operator its own work is; empty for containers.
    pub default_category_id: String,
}

/// Classes a model is made of, as TorchInfo lists them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetOperatorList {
    /// When the snapshot was made.
    pub snapshot_id: String,
    /// Folder of the snapshot, as given.
    pub source_artifact_dir: String,
    /// Its Markdown twin; absent when not there.
    pub layers_md_path: Option<String>,
    /// The file that was read.
    pub layers_json_path: String,
    /// Its stages; absent when not there.
    pub stages_json_path: Option<String>,
    /// The classes.
    pub operators: Vec<TargetOperator>,
}

/// How far the network covers a list of target operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// The list.
    pub target: TargetOperatorList,
    /// Classes that are modelled.
    pub covered: u64,
    /// Classes that are not.
    pub uncovered: Vec<String>,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnalyticReport {
    /// `llm-perf/analytic/1`.
    pub schema: SchemaTag<Self>,
    /// Model, workload and device.
    pub report_id: String,
    /// Version of llm-perf.
    pub tool_version: String,
    /// How all numbers here were obtained.
    pub origin: Origin,
    /// The model.
    pub model: ModelSpec,
    /// The workload.
    pub workload: WorkloadProfile,
    /// The device the times below are for: the first one asked for.
    pub device: DeviceUsed,
    /// `vision`, `prefill` (vision included), `prefill_text` (vision left out), `decode`, and the parts of vision.
    pub stages: BTreeMap<String, StageCost>,
    /// Memory.
    pub memory: MemoryNeed,
    /// Every module, parents before children.
    pub modules: Vec<ModuleNode>,
    /// Kinds of operators.
    pub operator_categories: Vec<OperatorCategory>,
    /// By module, in the same order.
    pub module_metrics: Vec<ModuleMetrics>,
    /// The whole model by kind of operator.
    pub categories: Vec<OperatorShare>,
    /// Share of operations in named kinds.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub flops_in_named_categories: f64,
    /// Share of the roofline time in named kinds.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub time_in_named_categories: f64,
    /// Every device asked for.
    pub devices: Vec<DevicePrediction>,
    /// What devices that share the model send to each other; empty on a single one.
    #[serde(default)]
    pub exchanges: Vec<Exchange>,
    /// Coverage of a target list; absent when none was given.
    pub coverage: Option<Coverage>,
    /// The measured run it was compared with.
    pub profile_run_id: Option<String>,
    /// Prefill and decode together.
    pub predicted_total_time_ms: f64,
    /// The likely time of both in eager mode.
    #[serde(flatten)]
    pub forecast_total: ForecastTime,
    /// What is likely in every mode; absent where nothing was forecast.
    pub forecast: Option<Forecast>,
    /// The same, measured.
    pub measured_total_time_ms: Option<f64>,
    /// Predicted over measured.
    pub predicted_vs_measured_ratio: Option<f64>,
    /// Forecast over measured.
    pub forecast_vs_measured_ratio: Option<f64>,
    /// The same of stages, modules and kernel families, as far as the run measured them.
    #[serde(default)]
    pub measured_parts: Vec<MeasuredPart>,
    /// What a reader must know first.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
    /// What is taken as given.
    pub assumptions: Vec<Assumption>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Folder of the layer pages, relative to this file.
    pub layer_docs_dir: String,
}
