//! Many ranks of one job, and many runs over time: what no single one shows.

use serde::{Deserialize, Serialize};

use crate::{Bytes, BytesPerSecond, Facts, JsonSchema, Nanos, QualityCounter, SchemaTag, Statistics};

/// Everything `fleet` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fleet {
    /// `llm-perf/fleet/1`.
    pub schema: SchemaTag<Self>,
    /// Jobs, each with its ranks, by name.
    pub jobs: Vec<FleetJob>,
    /// Quantities of runs over time; empty unless runs were asked for.
    #[serde(default)]
    pub trends: Vec<Trend>,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetJob {
    /// Its name.
    pub job: String,
    /// Ranks of the job, as the traces say; absent where none does.
    pub world_size: Option<u32>,
    /// Ranks whose tables are not here.
    pub missing_ranks: Vec<u32>,
    /// How clocks of the ranks were brought together.
    pub clock: FleetClock,
    /// The ranks that are here, in order.
    pub ranks: Vec<FleetRank>,
    /// Collectives that several ranks were seen in, longest first.
    pub collectives: Vec<FleetCollective>,
    /// Kernels that one rank runs slower than the others.
    pub slow_kernels: Vec<SlowKernel>,
    /// Which rank the others wait for, from the first work to the last: whose work lies between collectives of all ranks. Empty
    /// where ranks are missing or no collective of all ranks was matched.
    pub critical_path: Vec<FleetPathPart>,
    /// What stands out, what costs most first.
    pub findings: Vec<FleetFinding>,
    /// What is missing or uncertain.
    pub quality: Vec<QualityCounter>,
}

/// How clocks of ranks were brought together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetClock {
    /// By what.
    pub basis: ClockBasis,
    /// The rank whose clock all times are on.
    pub reference_rank: Option<u32>,
    /// The largest uncertainty of a rank; absent where it is not known.
    pub uncertainty_ns: Option<Nanos>,
}

/// What brings clocks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockBasis {
    /// Collectives that ranks share end at the same time.
    Collectives,
    /// The wall clocks of the hosts, as they are: how far they differ is not known.
    WallClock,
    /// Nothing: there is one rank only, or times of the traces are relative to nothing.
    None,
}

/// One rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetRank {
    /// The rank; absent where the trace does not say.
    pub rank: Option<u32>,
    /// Name of its device.
    pub device_name: Option<String>,
    /// What is added to its times; absent for the reference, and where its clock was not brought together.
    pub clock_offset_ns: Option<Nanos>,
    /// How far that may be off: 95% of the collectives end within this.
    pub clock_uncertainty_ns: Option<Nanos>,
    /// From its first device work to its last, all of its devices together, as the rest below.
    pub span_ns: Nanos,
    /// A device was busy.
    pub busy_ns: Nanos,
    /// A kernel ran that is not communication and does not wait for it.
    pub compute_ns: Nanos,
    /// Communication ran and no other kernel did, or only kernels that wait for it.
    pub communication_exposed_ns: Nanos,
    /// A copy or memset ran and no kernel did.
    pub copies_exposed_ns: Nanos,
    /// Nothing ran, by cause, longest first.
    pub idle: Vec<FleetIdle>,
    /// Milliseconds of its steps.
    pub step_ms: Option<Statistics>,
    /// Collectives it was the last to reach, of those whose ranks are all here; absent, as the two below, where it has none.
    pub arrived_last: Option<u64>,
    /// How long it waited in those for the last rank.
    pub waited_ns: Option<Nanos>,
    /// How long the others waited for it, on average over them.
    pub waited_for_ns: Option<Nanos>,
    /// Its messages in all-to-alls whose ranks are all here: what it hands in, or gets where that is more. Tokens for its experts,
    /// rows of its tables. Absent without such a call.
    pub exchanged_bytes: Option<Bytes>,
    /// Its kernels against the median of all ranks, 1.1 being a tenth slower; absent with fewer than three ranks.
    pub kernel_pace: Option<f64>,
}

/// Idle time of a rank by cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetIdle {
    /// The cause, as in `metrics.json`.
    pub cause: String,
    /// How long.
    pub ns: Nanos,
}

/// All calls of one collective with one message in one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetCollective {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: Option<String>,
    /// Bytes of one call.
    pub bytes: Option<Bytes>,
    /// What the program says the group is for.
    pub process_group: Option<String>,
    /// Ranks that take part.
    pub group_size: Option<u32>,
    /// Those that are here.
    pub ranks: Vec<u32>,
    /// Calls that were found on all of those.
    pub calls: u64,
    /// Median from the arrival of the last rank to the end; absent where ranks of the group are missing.
    pub transfer_ns: Option<Nanos>,
    /// Bus bandwidth in that time, as `nccl-tests` defines it.
    pub bus_bytes_per_second: Option<BytesPerSecond>,
    /// What all links of a device carry in one direction together, as the catalogue says; absent where it does not, and where the
    /// group may reach beyond one machine: ranks are taken to fill machines in order.
    pub link_bytes_per_second: Option<BytesPerSecond>,
    /// Bus bandwidth as a share of that.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub link_share: Option<f64>,
    /// How long ranks waited for the last, summed over calls, averaged over ranks; absent where ranks of the group are missing.
    pub waited_ns: Option<Nanos>,
    /// Time on the device, summed over calls, averaged over ranks.
    pub device_ns: Nanos,
}

/// A kernel that one rank runs slower than the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowKernel {
    /// The rank.
    pub rank: Option<u32>,
    /// Short name.
    pub name: String,
    /// Launches on that rank.
    pub calls: u64,
    /// Median time there.
    pub median_ns: Nanos,
    /// Median of the medians of all ranks.
    pub usual_ns: Nanos,
    /// Time above the usual, all launches together.
    pub extra_ns: Nanos,
}

/// A part of the time of the whole job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetPathPart {
    /// The rank whose work it is; absent for communication.
    pub rank: Option<u32>,
    /// How long.
    pub ns: Nanos,
    /// Of the whole.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}

/// Something that stands out among the ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetFinding {
    /// Stable rule id: `straggling-rank`, `slow-device`, `slow-group`, `uneven-exchange`, `uneven-compute`.
    pub rule: String,
    /// Ranks it concerns.
    pub ranks: Vec<u32>,
    /// The most that it costs the job; absent where the tables do not tell.
    pub costs_ns: Option<Nanos>,
    /// The numbers it rests on.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub quantities: Facts,
    /// The same in sentences; empty until `report::words` has said them.
    pub evidence: Vec<String>,
    /// What to try.
    pub advice: String,
}

/// One quantity of many runs over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trend {
    /// What the runs have in common: model, device and verb.
    pub subject: String,
    /// The quantity, such as `decode, ms`.
    pub quantity: String,
    /// Runs with it, oldest first.
    pub points: Vec<TrendPoint>,
    /// Where it changed, oldest first.
    pub changes: Vec<TrendChange>,
}

/// A quantity in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendPoint {
    /// The run.
    pub run: String,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// The value.
    pub value: f64,
}

/// A lasting change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrendChange {
    /// The first run with it.
    pub run: String,
    /// Median before, since the change before it.
    pub before: f64,
    /// Median from here on, to the next change.
    pub after: f64,
    /// As a share of the median before.
    pub change: f64,
    /// Chance of a split at least this far out where nothing changed, over all places it could be at.
    pub p_value: f64,
    /// What else differs between that run and the one before it.
    pub differences: Vec<String>,
}
