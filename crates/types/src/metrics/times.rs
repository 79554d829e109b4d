//! The times of a run: stages, totals, samples, and what follows from them alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Base, Facts, JsonSchema, Nanos, Origin, QualityCounter, RankArrivals, RankSkew, RankSummary, Severity, Stage,
    Statistics, Steps, Throughput, Variance,
};

/// Whole-run figures. What the source does not record is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Wall time of the measured part.
    pub wall_ns: Option<Nanos>,
    /// Time at least one kernel or copy was on the device.
    pub gpu_busy_ns: Option<Nanos>,
    /// Sum of kernel times.
    pub kernel_ns: Option<Nanos>,
    /// Kernels.
    pub kernel_count: Option<u64>,
    /// Launches per decode step; a CUDA graph is launched once.
    pub launches_per_token: Option<f64>,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageSummary {
    /// Which.
    pub name: Stage,
    /// The stage it is nested in; its time is part of that one's.
    pub parent: Option<Stage>,
    /// Measured instances.
    pub instances: u64,
    /// Wall time of all instances.
    pub wall_ns: Option<Nanos>,
    /// Time the device was busy with work launched here.
    pub gpu_busy_ns: Option<Nanos>,
    /// Sum of kernel times launched here.
    pub kernel_ns: Option<Nanos>,
    /// Kernels launched here.
    pub kernel_count: Option<u64>,
    /// Tokens processed: prompt tokens for prefill, generated tokens for decode.
    pub tokens: Option<u64>,
    /// Model FLOPs over time and dense peak.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mfu: Option<f64>,
    /// Bytes that must move over time and peak bandwidth.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mbu: Option<f64>,
    /// How the times were obtained.
    pub origin: Origin,
    /// Roofline time of its work on this device, all instances together; absent where the work or the device is not
    /// known, and for nested stages.
    pub speed_of_light_ns: Option<Nanos>,
    /// What it took beyond that, as far as causes are known: the sum of its rows in `lost_time`.
    pub lost_ns: Option<Nanos>,
}

/// One timed instance of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Stage.
    pub stage: Stage,
    /// Input it ran on; absent when there is only one.
    pub input: Option<String>,
    /// Pass over the inputs.
    pub epoch: u32,
    /// Repeat of one input within an epoch.
    pub repeat: u32,
    /// Rank in a distributed run.
    pub rank: Option<u32>,
    /// Whether it warmed up and is left out of the aggregates.
    pub warmup: bool,
    /// Its time.
    pub wall_ns: Nanos,
}

/// Statistics over samples, warm-up left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Aggregates {
    /// Milliseconds per stage instance.
    #[serde(default)]
    pub stage_ms: BTreeMap<Stage, Statistics>,
}

/// What measuring cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// Time without a profiler.
    pub baseline_ns: Option<Nanos>,
    /// Time with them.
    pub profiled_ns: Option<Nanos>,
    /// How much longer, as a share of the baseline; negative when noise made the profiled run faster.
    pub share: Option<f64>,
    /// How much longer the slower of two runs without a profiler took, as a share of the faster; absent with one.
    pub baseline_spread: Option<f64>,
}

/// Everything that was timed.
///
/// Holds: a device is busy for at most the wall time around it. What would break that is absent, with a counter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// Whole-run figures.
    pub totals: Totals,
    /// Stages, parents before children.
    pub stages: Vec<StageSummary>,
    /// Steps, whatever they do; absent where nothing marks any.
    pub steps: Option<Steps>,
    /// Raw samples.
    pub samples: Vec<Sample>,
    /// Statistics over them.
    pub aggregates: Aggregates,
    /// What profiling cost.
    pub overhead: Overhead,
    /// Rates a user of the model sees.
    #[serde(default)]
    pub throughput: Throughput,
    /// Run-to-run and input-to-input variation, apart.
    #[serde(default)]
    pub variance: Variance,
    /// Time loading the model took, before anything else here; absent when the source does not say.
    pub load_ns: Option<Nanos>,
    /// Ranks side by side; empty for a run of one.
    #[serde(default)]
    pub ranks: Vec<RankSummary>,
    /// How far ranks are apart, stage by stage; empty for a run of one.
    #[serde(default)]
    pub rank_skew: Vec<RankSkew>,
    /// Which rank reaches collectives last; absent where ranks were not recorded side by side, or cannot be compared.
    pub rank_arrivals: Option<RankArrivals>,
}

impl Times {
    /// The times with every figure left out that cannot be true on so many devices, and a counter for what was left out.
    pub fn checked(mut self, devices: u64) -> (Self, Option<QualityCounter>) {
        let most = |wall: Nanos| Nanos::new(wall.get().saturating_mul(devices.max(1).try_into().unwrap_or(i64::MAX)));
        let mut left_out = Vec::new();
        let mut check = |name: Base, wall: Option<Nanos>, busy: &mut Option<Nanos>| {
            if let Some((wall, found)) = wall.zip(*busy)
                && found > most(wall)
            {
                left_out.push(Facts::new().with("part", name).with("busy", found).with("wall", wall));
                *busy = None;
            }
        };
        for stage in &mut self.stages {
            check(Base::Stage(stage.name), stage.wall_ns, &mut stage.gpu_busy_ns);
        }
        check(Base::Run, self.totals.wall_ns, &mut self.totals.gpu_busy_ns);
        let counter = QualityCounter::some("busy_above_wall", Severity::Warning, left_out.len() as u64);
        let counter = counter.map(|counter| counter.facts(Facts::new().with("parts", left_out)));
        (self, counter)
    }
}
