//! From imported timelines to the metrics of a run.
//!
//! Timelines come with their attribution; here they are summed up by stage, operator and kernel, and laid beside modelled
//! work where a model, a workload and a device are known. Reading files is left to `ingest`, joining to
//! [`crate::attribution`], choosing the workload to `flow`.

mod counters;
mod device_work;
mod listed;
mod observed;
mod operators;
mod quality;
mod regions;
#[cfg(test)]
mod sample;
mod stages;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use types::timeline::Timeline;
use types::{
    Clock, Device, DeviceId, InputFacts, Metrics, Nanos, Origin, PeakUsed, ProfileSettings, QualityCounter, QueueFacts,
    RunHeader, Sample, Stage, StepFacts, TraceFacts, TracedPass, Work, WorkCoverage,
};

use crate::alignment::ModelledRun;
use crate::attribution::{Attribution, Coverage, StepSeries, step_series};
use crate::device::DeviceRecords;
use crate::profile::with_device;
use crate::ranks;
use crate::statistics::{describe, share};
use crate::time::{Span, devices, queue_depth};
use crate::{InputWork, ProfileRecords};

pub use counters::{Counted, USED_COUNTERS};
pub use listed::ListedKernel;
pub use observed::{Observed, observe};

/// A timeline, where its rows belong, and what its devices are called in the run.
#[derive(Debug)]
pub struct PlacedTimeline<'a> {
    /// The timeline.
    pub timeline: &'a Timeline,
    /// Where its rows belong.
    pub attribution: &'a Attribution,
    /// Rank in a distributed run.
    pub rank: Option<u32>,
    /// Names of its devices by the ordinals it uses; others keep their ordinal.
    pub devices: BTreeMap<u32, DeviceId>,
}

impl PlacedTimeline<'_> {
    fn device(&self, ordinal: u32) -> DeviceId {
        self.devices.get(&ordinal).cloned().unwrap_or_else(|| DeviceId::cuda(ordinal))
    }
}

/// What was timed without instruments beside the trace, on the same model.
#[derive(Clone, Debug, Default)]
pub struct PlainRuns {
    /// Stage times, warm-up flagged.
    pub samples: Vec<Sample>,
    /// Stage times of the traced pass, as the same clock saw them.
    pub profiled: Vec<Sample>,
    /// What the inputs were.
    pub inputs: Vec<InputFacts>,
    /// Modelled work, one entry per input and stage.
    pub work: Vec<InputWork>,
    /// Least time of prefill and decode, one entry per input; empty where the model or the device is not known.
    pub least: Vec<InputLeast>,
    /// Input of the traced pass.
    pub traced_input: Option<String>,
    /// Whether prefill computed the logits of all positions.
    pub logits_all_positions: bool,
    /// Time loading the model took.
    pub load_ns: Nanos,
    /// How the inputs were run.
    pub settings: ProfileSettings,
}

/// Least time one stage of one input needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputLeast {
    /// Input, as in [`InputFacts::name`].
    pub input: String,
    /// Prefill or decode.
    pub stage: Stage,
    /// Of one instance.
    pub least: Nanos,
}

/// Everything one imported run has.
#[derive(Debug)]
pub struct TraceRecords<'a> {
    /// What was run.
    pub run: RunHeader,
    /// Devices of the run.
    pub devices: Vec<Device>,
    /// Clocks of its timestamps.
    pub clocks: Vec<Clock>,
    /// Timelines, one per rank.
    pub timelines: Vec<PlacedTimeline<'a>>,
    /// What was counted, launch by launch; empty without a source that has counters.
    pub counted: Vec<Counted>,
    /// Kernels as another tool has summed them up; empty without such a table.
    pub listed: Vec<ListedKernel>,
    /// Sources and workload; the rest is filled in here.
    pub facts: TraceFacts,
    /// What the prompt was; absent where it is not known.
    pub input: Option<InputFacts>,
    /// Modelled work of one instance of each stage; empty where it is not known.
    pub work: BTreeMap<Stage, Work>,
    /// The model's forward passes, operation by operation; absent where the model or the workload is not known.
    pub modelled: Option<ModelledRun>,
    /// Multiprocessors of the device; absent where it is not known.
    pub multiprocessors: Option<u64>,
    /// Rates utilisation is held against; absent where the device's are not known.
    pub peak: Option<PeakUsed>,
    /// What was lost or is uncertain, as far as the reading side knows.
    pub quality: Vec<QualityCounter>,
    /// Passes without instruments; absent where there is nothing but the trace.
    pub plain: Option<PlainRuns>,
}

/// Everything an imported run tells.
pub fn trace(records: &TraceRecords<'_>) -> Metrics {
    let sums = device_work::sum(&records.timelines);
    let device = DeviceRecords::new(
        &records.timelines,
        records.modelled.as_ref(),
        records.peak.as_ref(),
        records.multiprocessors,
    );
    let mut metrics = with_device(&profile_records(records), device.as_ref());
    if records.plain.is_none() {
        // What a trace does not say: how the inputs were run, what loading took, what the instruments cost.
        (metrics.settings, metrics.load_ns) = (None, None);
    }
    let has_work = sums.whole.launches > 0;
    for stage in &mut metrics.stages {
        if records.plain.is_none() {
            stage.wall_ns = stages::wall(&records.timelines, stage.name);
            if stages::is_inferred(&records.timelines, stage.name) {
                stage.origin = Origin::Assumed;
            }
        }
        if has_work {
            let sum = sums.stages.get(&stage.name).copied().unwrap_or_default();
            stage.gpu_busy_ns = Some(sum.busy);
            stage.kernel_ns = Some(sum.kernel_time);
            stage.kernel_count = Some(sum.kernels);
        }
    }
    let steps = stages::steps(&records.timelines).or_else(|| given_steps(records, &metrics));
    let decode = sums.stages.get(&Stage::Decode).map(|decode| decode.launches as f64);
    if records.plain.is_none() {
        metrics.totals.wall_ns = stages::whole(&records.timelines);
    }
    if has_work {
        metrics.totals.gpu_busy_ns = Some(sums.whole.busy);
        metrics.totals.kernel_ns = Some(sums.whole.kernel_time);
        metrics.totals.kernel_count = Some(sums.whole.kernels);
        metrics.totals.launches_per_token = decode.zip(steps).and_then(|(all, steps)| share(all, steps as f64));
    }
    metrics.operators = operators::summaries(&records.timelines);
    let mut facts = records.facts.clone();
    facts.stages = stages::basis(&records.timelines);
    facts.coverage = has_work.then(|| coverage(&records.timelines));
    facts.set_aside = stages::set_aside(&records.timelines);
    facts.counters = counters::summaries(&records.counted);
    facts.step_ms = describe(&stages::step_times(&records.timelines));
    if let [only] = records.timelines.as_slice() {
        facts.steps = step_series(&only.attribution.steps).map(step_facts);
        facts.queue_depth = queue_facts(only);
    }
    metrics.quality = quality::counters(records, &metrics, &sums, &facts);
    if let Some(device) = &device {
        metrics.quality.extend(quality::concluded(device, &sums));
    }
    metrics.quality.extend(listed::differing(&records.listed, &sums.kernels));
    let (regions, left_out) = regions::summaries(&records.timelines);
    metrics.regions = regions;
    metrics.quality.extend(left_out);
    facts.copies = sums.copies;
    if let Some(plain) = &records.plain {
        facts.traced_pass = Some(traced_pass(records, plain));
        for stage in &mut metrics.stages {
            stage.speed_of_light_ns = least(plain, stage.name);
            let lost = stage.wall_ns.zip(stage.speed_of_light_ns).map(|(wall, least)| wall - least);
            stage.lost_ns = lost.filter(|lost| *lost >= Nanos::ZERO);
        }
    }
    if records.plain.is_none() {
        add_ranks(&mut metrics, &records.timelines);
    }
    metrics.kernels = sums.kernels;
    if records.timelines.is_empty() {
        without_timeline(&mut metrics, records);
    }
    metrics.trace = Some(facts);
    metrics
}

/// Ranks side by side, where there is more than one.
fn add_ranks(metrics: &mut Metrics, timelines: &[PlacedTimeline<'_>]) {
    let ranks = stages::ranks(timelines);
    if ranks.len() < 2 {
        return;
    }
    let of_rank = |(rank, device): (u32, Option<DeviceId>)| {
        let samples: Vec<Sample> = metrics.samples.iter().filter(|one| one.rank == Some(rank)).cloned().collect();
        ranks::summary(rank, device, &samples)
    };
    metrics.ranks = ranks.into_iter().map(of_rank).collect();
    metrics.rank_skew = ranks::skew(&metrics.ranks);
}

/// Least time of all measured instances of a stage; absent where one input's is not known.
fn least(plain: &PlainRuns, stage: Stage) -> Option<Nanos> {
    let measured = plain.samples.iter().filter(|sample| !sample.warmup && sample.stage == stage);
    let of_sample = |sample: &Sample| {
        let of_input = |least: &&InputLeast| least.stage == stage && Some(&least.input) == sample.input.as_ref();
        plain.least.iter().find(of_input).map(|found| found.least)
    };
    let least: Nanos = measured.map(of_sample).sum::<Option<Nanos>>()?;
    (least > Nanos::ZERO).then_some(least)
}

/// The recorded pass by itself.
fn traced_pass(records: &TraceRecords<'_>, plain: &PlainRuns) -> TracedPass {
    let wall = |stage: Stage| Some((stage, stages::wall(&records.timelines, stage)?));
    TracedPass {
        input: plain.traced_input.clone(),
        wall_ns: stages::whole(&records.timelines),
        stages: Stage::ALL.into_iter().filter_map(wall).collect(),
    }
}

/// Kernels from tables that others summed up, else from what was counted launch by launch.
fn without_timeline(metrics: &mut Metrics, records: &TraceRecords<'_>) {
    metrics.kernels = match records.listed.as_slice() {
        [] => counters::kernels(&records.counted),
        listed => listed::kernels(listed),
    };
    if !metrics.kernels.is_empty() {
        metrics.totals.kernel_ns = Some(metrics.kernels.iter().map(|kernel| kernel.total_ns).sum());
        metrics.totals.kernel_count = Some(metrics.kernels.iter().map(|kernel| kernel.calls).sum());
    }
}

/// The same run as the analysis of profiles wants it: stages are timed alike, whoever timed them.
fn profile_records(records: &TraceRecords<'_>) -> ProfileRecords {
    if let Some(plain) = &records.plain {
        return ProfileRecords {
            run: records.run.clone(),
            devices: records.devices.clone(),
            clocks: records.clocks.clone(),
            samples: plain.samples.clone(),
            inputs: plain.inputs.clone(),
            work: plain.work.clone(),
            operators: Vec::new(),
            classes: BTreeMap::new(),
            routing: Vec::new(),
            profiled: plain.profiled.clone(),
            peak: records.peak.clone(),
            logits_all_positions: plain.logits_all_positions,
            load_ns: plain.load_ns,
            settings: plain.settings.clone(),
            quality: Vec::new(),
        };
    }
    let name = records.input.as_ref().map_or("", |input| &input.name);
    let of_stage = |(stage, work): (&Stage, &Work)| InputWork { input: name.to_owned(), stage: *stage, work: *work };
    ProfileRecords {
        run: records.run.clone(),
        devices: records.devices.clone(),
        clocks: records.clocks.clone(),
        samples: stages::samples(&records.timelines),
        inputs: records.input.iter().cloned().collect(),
        work: records.work.iter().map(of_stage).collect(),
        operators: Vec::new(),
        classes: BTreeMap::new(),
        routing: Vec::new(),
        profiled: Vec::new(),
        peak: records.peak.clone(),
        logits_all_positions: false,
        load_ns: Nanos::ZERO,
        settings: ProfileSettings::default(),
        quality: Vec::new(),
    }
}

fn step_facts(series: StepSeries) -> StepFacts {
    StepFacts {
        p50_ns: series.p50,
        p95_ns: series.p95,
        p99_ns: series.p99,
        drift: series.drift,
        kernels_per_token: series.kernels_per_token,
        work_per_token_ns: series.work_per_token,
    }
}

/// Queue depth of the only device, while it had work.
fn queue_facts(placed: &PlacedTimeline<'_>) -> Option<QueueFacts> {
    let [device] = devices(placed.timeline)[..] else { return None };
    let meant = placed.timeline.work.iter().enumerate().filter(|(place, _)| !placed.attribution.is_aside(*place));
    let spans = meant.map(|(_, work)| Span::new(work.start, work.end()));
    let depth = queue_depth(placed.timeline, &placed.attribution.launch, device, spans.reduce(Span::hull)?)?;
    Some(QueueFacts { mean: depth.mean, max: depth.max, empty_share: depth.empty_share })
}

/// Decode steps of all instances, as the workload has them.
fn given_steps(records: &TraceRecords<'_>, metrics: &Metrics) -> Option<u64> {
    let decode = metrics.stages.iter().find(|stage| stage.name == Stage::Decode)?;
    let workload = records.facts.workload.as_ref()?.workload.as_ref()?;
    workload.decode_steps.checked_mul(decode.instances)
}

fn coverage(timelines: &[PlacedTimeline<'_>]) -> WorkCoverage {
    let sum = |time: fn(&Coverage) -> Nanos| -> Nanos {
        timelines.iter().map(|placed| time(&placed.attribution.coverage)).sum()
    };
    let all = sum(|coverage| coverage.all.time);
    let has_operators = timelines.iter().any(|placed| !placed.timeline.operators.is_empty());
    let of = |time: Nanos| share(time.get() as f64, all.get() as f64);
    let (marked, inferred) = (sum(|found| found.stage_from_ranges.time), sum(|found| found.stage_inferred.time));
    WorkCoverage {
        device_ns: all,
        stage_share: of(marked),
        inferred_share: of(inferred),
        unattributed_share: of(all - marked - inferred),
        operator_share: of(sum(|coverage| coverage.operator.time)).filter(|_| has_operators),
    }
}
