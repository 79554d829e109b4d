//! What was measured of single operations on a device, and what is forecast from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Bytes, DType, JsonSchema, Nanos, Origin, SchemaTag};

/// Times of single operations on one device with the curve fitted to them, kept so that forecasts need no device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCalibration {
    /// `llm-perf/device-calibration/1`.
    pub schema: SchemaTag<Self>,
    /// Catalogue name of the device.
    pub device: String,
    /// Name the driver gives it; absent for points from a file.
    pub device_name: Option<String>,
    /// Version of the driver it was measured under; absent for points from a file that does not say.
    pub driver: Option<String>,
    /// Clock of the multiprocessors before and after, megahertz; absent where nobody read it.
    pub clocks_mhz: Option<[f64; 2]>,
    /// Versions of the libraries whose kernels were timed.
    pub libraries: BTreeMap<String, String>,
    /// When it was measured, or read from files; RFC 3339.
    pub measured_at: String,
    /// Version of llm-perf that wrote it.
    pub tool_version: String,
    /// Files the points came from; empty for points measured here.
    pub files: Vec<String>,
    /// Runs whose operators are among the points.
    #[serde(default)]
    pub runs: Vec<String>,
    /// What starting a kernel costs; absent where it was not measured.
    pub launch: Option<LaunchCost>,
    /// How many times as long a large GEMM takes after a second of nothing else as in a burst, because the device reaches
    /// its power limit; absent where it was not measured.
    pub sustained: Option<f64>,
    /// One curve for each operation and element type.
    pub groups: Vec<CalibratedGroup>,
}

/// What starting a kernel costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchCost {
    /// Host time of one operator call in eager mode, microseconds.
    pub eager_us: f64,
    /// Device time from one kernel to the next inside a CUDA graph, microseconds.
    pub graph_us: f64,
    /// Host time from a finished kernel to the host knowing, microseconds.
    pub synchronise_us: f64,
    /// Host time to plan attention over a length that was not seen before, microseconds; absent where nothing is planned, or
    /// where that was not measured.
    pub plan_us: Option<f64>,
}

/// The curve of one operation in one element type: `floor + max(compute / e, memory / e)`, times a residual that is
/// interpolated between the points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibratedGroup {
    /// As the column `op` of points names it: `gemm`, `context_attention`, `elementwise`, ...
    pub op: String,
    /// Element type of the arithmetic.
    pub dtype: DType,
    /// Time of the smallest operation, microseconds.
    pub floor_us: f64,
    /// Share of the peak arithmetic rate.
    pub compute_efficiency: f64,
    /// Share of the memory bandwidth.
    pub memory_efficiency: f64,
    /// Distance over which the residual changes, for each feature of the shape, in octaves.
    pub scales: Vec<f64>,
    /// Standard deviation of the residual, in natural logarithms.
    pub spread: f64,
    /// Standard deviation of repeated measurements, in natural logarithms.
    pub noise: f64,
    /// Half-width of a 90% interval in standard deviations, for predictions up to each standard deviation.
    pub intervals: Vec<IntervalWidth>,
    /// How well points are predicted from the others.
    pub left_out: LeftOut,
    /// Names of the sizes of a point; `kv_dtype` is in bits.
    pub columns: Vec<String>,
    /// Sizes and microseconds of every point.
    pub points: Vec<Vec<f64>>,
    /// Places in `points` of those that a run recorded; the others were measured alone.
    #[serde(default)]
    pub run_points: Vec<u64>,
    /// Weight of every point in the residual of other shapes; empty where estimates use neighbouring points only.
    #[serde(default)]
    pub weights: Vec<f64>,
}

/// How wide a 90% interval is where the curve is as sure as this.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalWidth {
    /// Predictions up to this standard deviation.
    pub up_to: f64,
    /// Standard deviations on either side that held 90% of the points left out.
    pub factor: f64,
}

/// Errors on points that were left out in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Points left out.
    pub points: u64,
    /// Median of the relative error.
    pub median: f64,
    /// Its ninth decile.
    pub p90: f64,
}

/// A forecast with its 90% interval; absent where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForecastTime {
    /// The likely time.
    pub forecast_ns: Option<Nanos>,
    /// Lower end of the 90% interval.
    pub forecast_low_ns: Option<Nanos>,
    /// Upper end of the 90% interval.
    pub forecast_high_ns: Option<Nanos>,
}

/// How a framework runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionMode {
    /// One or more kernels for each operator, launched by the host.
    Eager,
    /// Neighbouring elementwise operators fused, launched by the host.
    Compiled,
    /// The kernels of eager mode, replayed from a CUDA graph.
    Graph,
}

/// One of the largest parts of a forecast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contribution {
    /// What: a kind of operation, or `launch gaps`.
    pub name: String,
    /// Its time.
    pub time_ns: Nanos,
    /// Its share of the stage.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}

/// Kernels of one family in one stage, as they are forecast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FamilyForecast {
    /// `prefill` or `decode`.
    pub stage: String,
    /// `gemm`, `attention`, `communication` or `other`.
    pub family: String,
    /// Time of the kernels, all passes of the stage together.
    pub device_ns: Nanos,
}

/// A forecast figure with its 90% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForecastRange {
    /// The likely value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The forecast of a workload in one mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModeForecast {
    /// How the model runs.
    pub mode: ExecutionMode,
    /// Prefill and decode together.
    #[serde(flatten)]
    pub total: ForecastTime,
    /// Time to the first token, milliseconds.
    pub ttft_ms: ForecastRange,
    /// Mean time of a decode step, milliseconds; absent without decode.
    pub time_per_output_token_ms: Option<ForecastRange>,
    /// Tokens per second of the whole batch while decoding; absent without decode.
    pub decode_tokens_per_second: Option<ForecastRange>,
    /// Time of the kernels of prefill, milliseconds.
    pub prefill_device_ms: ForecastRange,
    /// Mean time of the kernels of a decode step, milliseconds; absent without decode.
    pub decode_device_ms: Option<ForecastRange>,
    /// Time in which the device waits for launches.
    pub launch_gaps_ns: Nanos,
    /// Kernels of one prefill and of all decode steps.
    pub kernels: u64,
    /// The three largest parts of prefill.
    pub prefill_contributions: Vec<Contribution>,
    /// The three largest parts of decode.
    pub decode_contributions: Vec<Contribution>,
}

/// What is likely, beside the roofline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forecast {
    /// `modelled` where most of the time and the launches come from a calibration, else `assumed`.
    pub origin: Origin,
    /// What it rests on: the calibration, or the prior.
    pub basis: String,
    /// Share of the eager device time that calibrated operations make up.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub calibrated_share: f64,
    /// Mode of the forecasts beside stages and modules.
    pub mode: ExecutionMode,
    /// Memory the workload needs.
    pub memory_bytes: Bytes,
    /// Every mode.
    pub modes: Vec<ModeForecast>,
    /// Device time by family of kernels, in the mode above.
    #[serde(default)]
    pub kernel_families: Vec<FamilyForecast>,
    /// What a reader should know: shapes beyond the calibration, a calibration that does not apply.
    pub notes: Vec<String>,
}
