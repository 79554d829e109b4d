//! `capacity.json`: what a server is likely to make of a load, simulated from the model and a calibration.

use serde::{Deserialize, Serialize};

use crate::{Bytes, ForecastRange, JsonSchema, ModelSpec, Objective, Origin, SchemaTag};

/// A latency of many requests, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyForecast {
    /// Arithmetic mean.
    pub mean: ForecastRange,
    /// Median.
    pub p50: ForecastRange,
    /// 99th percentile.
    pub p99: ForecastRange,
}

/// What a load comes to on a server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFigures {
    /// Time to first token.
    pub ttft_ms: LatencyForecast,
    /// Time per output token after the first; absent where every output is one token.
    pub tpot_ms: Option<LatencyForecast>,
    /// Time between tokens; absent where every output is one token.
    pub itl_ms: Option<LatencyForecast>,
    /// End to end.
    pub e2el_ms: LatencyForecast,
    /// From when a request is sent to when it is first scheduled.
    pub queue_ms: LatencyForecast,
    /// Tokens of outputs a second.
    pub output_throughput: ForecastRange,
    /// Tokens of prompts a second.
    pub input_throughput: ForecastRange,
    /// Requests a second.
    pub request_throughput: ForecastRange,
    /// Share of the requests that the server accepts which meet the objective; absent without one.
    pub goodput_share: Option<ForecastRange>,
    /// Most of the KV blocks in use at once, as a share.
    pub kv_peak: ForecastRange,
    /// Requests whose keys and values are dropped and computed again.
    pub preemptions: ForecastRange,
    /// Sequences of a step, on average.
    pub batch: ForecastRange,
    /// Share of the time in which the device works.
    pub busy: ForecastRange,
}

/// The server that is simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedServer {
    /// Catalogue name of the device.
    pub hardware: String,
    /// Devices of the whole layout.
    pub devices: u64,
    /// Devices that share every matrix.
    pub tensor_parallel: u64,
    /// Servers that share the load; those that prefill where others decode.
    #[serde(default = "one")]
    pub servers: u64,
    /// `round-robin` or `least-loaded`: the server that a request goes to; absent for a single one.
    pub router: Option<String>,
    /// Servers that decode what the others prefill; absent where each does both.
    pub decoding: Option<DecodingServers>,
    /// `vllm` or `sglang`.
    pub engine: String,
    /// Most requests that run at once.
    pub max_num_seqs: u64,
    /// Most tokens of a step.
    pub max_num_batched_tokens: u64,
    /// Blocks of the KV cache.
    pub kv_blocks: u64,
    /// Whether their number was given (`assumed`) or follows from the device's memory (`modelled`).
    pub kv_origin: Origin,
    /// Tokens of a block.
    pub block_size: u64,
    /// Weights on the device that holds most.
    pub weights_bytes: Bytes,
    /// KV cache on that device.
    pub kv_bytes: Bytes,
}

const fn one() -> u64 {
    1
}

/// Servers that decode, apart from those that prefill.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecodingServers {
    /// How many.
    pub servers: u64,
    /// Bandwidth of each device's link between the two, as given.
    pub link_bytes_per_second: f64,
    /// Bytes of keys and values that each device sends for a token of a prompt.
    pub bytes_per_token: Bytes,
}

/// Steps that take alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// They only decode.
    Decode,
    /// They process prompts, and may decode too.
    Prompts,
}

/// How much longer measured steps of a kind took on the device than forecast.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepResidual {
    /// What they do.
    pub kind: StepKind,
    /// How many were measured.
    pub steps: u64,
    /// Their median, as a factor; 1 where it is within its own uncertainty.
    pub factor: f64,
    /// Standard deviation from step to step, in logarithms.
    pub deviation: f64,
}

/// How the requests of a load arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LoadArrivals {
    /// At a rate.
    Rate {
        /// Requests a second; absent where all come at once.
        per_second: Option<f64>,
    },
    /// At a rate that climbs.
    Ramp {
        /// Requests a second at the start.
        from: f64,
        /// Requests a second at the end.
        to: f64,
    },
    /// So many at a time.
    Concurrency {
        /// How many.
        requests: u64,
    },
    /// At the times of a file.
    File {
        /// Requests a second, on average; absent where all come at once.
        per_second: Option<f64>,
    },
}

impl LoadArrivals {
    /// Requests a second; absent for a load of so many at a time, or all at once.
    pub const fn rate(&self) -> Option<f64> {
        match self {
            Self::Rate { per_second } | Self::File { per_second } => *per_second,
            Self::Ramp { from, to } => Some((*from + *to) / 2.0),
            Self::Concurrency { .. } => None,
        }
    }

    /// The most requests a second that a server must hold: where a rate climbs, its highest.
    pub const fn peak(&self) -> Option<f64> {
        match self {
            Self::Ramp { from, to } => Some(from.max(*to)),
            _ => self.rate(),
        }
    }
}

/// The load that is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedLoad {
    /// When requests arrive.
    pub arrivals: LoadArrivals,
    /// How many.
    pub requests: u64,
    /// Requests that the server refuses, because their tokens never fit its KV cache.
    pub refused: u64,
    /// Requests of a results file that failed, and are not part of the load.
    #[serde(default)]
    pub failed: u64,
    /// Tokens of all prompts.
    pub input_tokens: u64,
    /// Tokens of all outputs.
    pub output_tokens: u64,
    /// The latencies that are acceptable.
    pub objective: Option<Objective>,
}

/// What limits a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LimitedLatency {
    /// Time to first token.
    Ttft,
    /// Time per output token.
    Tpot,
    /// Mean time between tokens of a request.
    Itl,
    /// End to end.
    E2el,
    /// The server: requests pile up.
    Throughput,
    /// Nothing: the highest load that was simulated still holds the objective.
    #[serde(rename = "not_reached")]
    NotReached,
}

/// The highest load of this kind that holds the objective: the one under the likely times, with the lowest and highest
/// under other times. A low end of 0 says that under some of them no load holds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HighestLoad {
    /// Requests a second of all replicas; absent for a load of so many at a time.
    pub requests_per_second: Option<ForecastRange>,
    /// Requests at a time of all replicas; absent for a load at a rate.
    pub concurrency: Option<ForecastRange>,
    /// Share of the requests that meet the objective there, at least.
    pub share: f64,
    /// The latency that most requests miss above it, the server's throughput, or nothing that was reached.
    pub limited_by: LimitedLatency,
}

/// Energy of the devices, spread over tokens by the device time they take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyForecast {
    /// Power of one device, watts.
    pub watts: f64,
    /// `assumed`: the power that was given, or the device's limit, taken for the whole time.
    pub origin: Origin,
    /// Joules per million tokens of prompts.
    pub joules_per_million_input_tokens: ForecastRange,
    /// Joules per million tokens of outputs.
    pub joules_per_million_output_tokens: ForecastRange,
}

/// Price of the devices, spread over tokens by the device time they take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PriceForecast {
    /// Price of one device for an hour, as given.
    pub per_device_hour: f64,
    /// Per million tokens of prompts.
    pub per_million_input_tokens: ForecastRange,
    /// Per million tokens of outputs.
    pub per_million_output_tokens: ForecastRange,
}

/// One of the servers, as it begins a step of the likely simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadMoment {
    /// Since the first request.
    pub at_ms: f64,
    /// Sequences in the step that begins.
    pub batch: u64,
    /// Requests that wait on that server.
    pub waiting: u64,
    /// Share of its KV blocks in use.
    pub kv: f64,
}

/// Latencies of a request as a client measured them, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredRequest {
    /// Time to first token.
    pub ttft_ms: f64,
    /// Time per output token after the first; absent for outputs of one token.
    pub tpot_ms: Option<f64>,
    /// End to end.
    pub e2el_ms: f64,
}

/// A figure of a load as a client measured it, beside its forecast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredFigure {
    /// Its key: `ttft_ms.mean`, ..., `output_throughput`.
    pub figure: String,
    /// As measured.
    pub measured: f64,
    /// The forecast with its interval.
    pub forecast: ForecastRange,
    /// How much more the forecast is, as a share of what was measured.
    pub error: f64,
}

/// One request of a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestForecast {
    /// When it is sent in the likely simulation, since the first; absent where it is refused.
    pub sent_ms: Option<f64>,
    /// Tokens of its prompt.
    pub input_tokens: u64,
    /// Tokens of its output.
    pub output_tokens: u64,
    /// Time to first token; absent where it is refused, as those below.
    pub ttft_ms: Option<ForecastRange>,
    /// Time per output token after the first.
    pub tpot_ms: Option<ForecastRange>,
    /// End to end.
    pub e2el_ms: Option<ForecastRange>,
    /// As a client measured it; absent for a load that nobody sent.
    pub measured: Option<MeasuredRequest>,
}

/// Something that a forecast of a load takes as given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapacityAssumption {
    /// Device times rest on the prior, because the device is not calibrated.
    NotCalibrated,
    /// A part of the device times is not in the calibration.
    PartlyCalibrated,
    /// The host was not measured and is taken to be as fast as that of the engine's reference machine.
    Host,
    /// SGLang's host times are taken to be vLLM's.
    EngineHost,
    /// Attention is the calibrated library call times a constant of paged kernels.
    PagedAttention,
    /// Weights in fewer bits are read as they are stored, and unpacked by the kernel that multiplies.
    FusedDequantisation,
    /// What libraries and captured graphs take of the memory.
    Reserve,
    /// Links between devices.
    Links,
    /// The server ran before and has loaded every kernel.
    WarmServer,
    /// Nobody knows which kernels the server had loaded.
    UnknownStart,
    /// Outputs have the length that is asked for.
    Lengths,
    /// The power that was given, for the whole time.
    Power,
    /// The limit of the device's power, for the whole time.
    PowerLimit,
    /// Routers cost no time and know every answer.
    Router,
    /// Keys and values go from one server to another over the given link, without waiting for each other.
    KvTransfer,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capacity {
    /// `llm-perf/capacity/1`.
    pub schema: SchemaTag<Self>,
    /// Version of llm-perf.
    pub tool_version: String,
    /// `modelled` where most of the time comes from a calibration, else `assumed`.
    pub origin: Origin,
    /// What device times rest on.
    pub basis: String,
    /// Share of the device time of typical steps that calibrated operations make up.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub calibrated_share: f64,
    /// Simulations that intervals of 90% rest on.
    pub simulations: u64,
    /// The model.
    pub model: ModelSpec,
    /// The server.
    pub server: SimulatedServer,
    /// The load.
    pub load: SimulatedLoad,
    /// What it comes to.
    #[serde(flatten)]
    pub figures: LoadFigures,
    /// The highest load that holds the objective; absent without one.
    pub highest: Option<HighestLoad>,
    /// Energy; absent where no power is known.
    pub energy: Option<EnergyForecast>,
    /// Price; absent where none was given.
    pub price: Option<PriceForecast>,
    /// The same load as a client measured it; empty for a load that nobody sent.
    #[serde(default)]
    pub measured: Vec<MeasuredFigure>,
    /// Steps of all servers in the order in which they begin, evenly thinned.
    pub over_time: Vec<LoadMoment>,
    /// Every request, in the order of sending.
    pub requests: Vec<RequestForecast>,
    /// What is taken as given.
    pub assumptions: Vec<CapacityAssumption>,
    /// Options of the measured server's command that the simulation does not know.
    #[serde(default)]
    pub ignored_options: Vec<String>,
    /// Measured steps of the run that a forecast starts from, against their forecast; empty without one.
    #[serde(default)]
    pub step_residuals: Vec<StepResidual>,
    /// Whether device times are corrected by them: where the load or the server's limits were changed, and the device was not.
    #[serde(default)]
    pub is_corrected: bool,
}
