//! From a subject and its evidence to the metrics of a run: the only place that makes a [`Metrics`].
//!
//! Stages are timed alike, whoever timed them; what a device did comes from timelines, what operators took from our own
//! engine or from timelines. Each view is made whole here, and nobody changes it afterwards.

use std::borrow::Cow;
use std::collections::BTreeMap;

use types::{
    Aggregates, Breakdown, CollectiveSummary, CommandFacts, CommandRun, Conclusions, Conditions, Count, DeviceTime,
    KernelSummary, Metrics, ModuleSummary, Nanos, OperatorGroups, Overhead, QualityCounter, RankArrivals, RankSummary,
    RegionSummary, Sample, SchemaTag, Stage, StageSummary, StepBasis, Steps, Times, Totals, TraceFacts, TracedPass,
    Trials, Utilisation as UtilisationView,
};

use crate::arrivals::arrivals;
use crate::caveats;
use crate::counter;
use crate::device::{DeviceRecords, DeviceSums};
use crate::device_memory::device_memory;
use crate::device_time::device_times;
use crate::disturbed;
use crate::evidence::{CommandRuns, Evidence, PlacedTimeline, PricedOperator, RankRuns, Trace};
use crate::finding::{self, Run};
use crate::loss::{self, Ledger};
use crate::modules::{cost_centres, modules};
use crate::operators::{collectives, priced, shapes, traced};
use crate::overhead::overhead;
use crate::quality::{self, QualityInputs};
use crate::ranges;
use crate::ranks;
use crate::replay::{Basis, Replays};
use crate::run_kind::run_kind;
use crate::scope::Scope;
use crate::stages::{self, StageSources, throughput};
use crate::statistics::{describe, median, outliers, share};
use crate::steps;
use crate::subject::Subject;
use crate::timings::{Timings, rounded};
use crate::tries;
use crate::utilisation::{self, Utilisation};

/// Everything a run tells.
pub fn metrics(subject: &Subject, evidence: &Evidence<'_>) -> Metrics {
    let device = DeviceRecords::new(
        evidence.timelines(),
        subject.modelled.as_ref(),
        subject.peak.as_ref(),
        subject.multiprocessors,
    );
    with_device(subject, evidence, device.as_ref(), device_times(evidence.timelines()))
}

/// The same with the device's part already divided.
pub(crate) fn with_device(
    subject: &Subject,
    evidence: &Evidence<'_>,
    device: Option<&DeviceRecords>,
    device_time: Vec<DeviceTime>,
) -> Metrics {
    let samples = samples(evidence);
    let reading = Reading::new(subject, evidence, device, &samples);
    let (trials, lost, conclusions) = reading.conclusions(&device_time);
    // Launches of graphs are in the steps, and not in sums that would stand for all work.
    let sums = if evidence.has_graphs_only() { DeviceSums::default() } else { DeviceSums::of(reading.timelines) };
    let (stages, misfit) = reading.stages(&lost, &sums);
    let (times, busy_above_wall) = reading.times(stages, &sums).checked(subject.devices.len() as u64);
    let (modules, faster) = modules(reading.operators, &subject.classes, subject.peak.as_ref());
    let (regions, regions_left_out) = ranges::summaries(reading.timelines);
    let mut quality = quality::counters(&QualityInputs {
        subject,
        evidence,
        timings: &reading.timings,
        times: &times,
        sums: &sums,
        device,
        modules_below_roofline: (faster, modules.len() as u64),
    });
    let breakdown = reading.breakdown(device_time, modules, regions, &sums);
    let utilisation = reading.utilisation(&times, misfit.is_none(), &breakdown.operator_groups);
    quality.extend(regions_left_out.into_iter().chain(busy_above_wall).chain(misfit));
    let conditions = conditions(subject, evidence, &sums);
    Metrics {
        schema: SchemaTag::default(),
        run: subject.run.clone(),
        caveats: caveats::caveats(subject, evidence, &conditions, &quality, &breakdown.device_time),
        devices: subject.devices.clone(),
        clocks: evidence.clocks.clone(),
        conclusions: Conclusions { quality, ..conclusions },
        times,
        utilisation,
        breakdown,
        served: evidence.requests.as_ref().map(|requests| requests.served.clone()).unwrap_or_default(),
        trials,
        conditions,
    }
}

/// A subject and its evidence, read once for all views.
struct Reading<'a> {
    subject: &'a Subject,
    evidence: &'a Evidence<'a>,
    device: Option<&'a DeviceRecords>,
    timelines: &'a [PlacedTimeline<'a>],
    operators: &'a [PricedOperator],
    samples: &'a [Sample],
    timings: Timings<'a>,
    profiled: Timings<'a>,
    used: BTreeMap<Stage, Utilisation>,
    steps: Option<Steps>,
    collectives: Vec<CollectiveSummary>,
    arrivals: Option<RankArrivals>,
}

impl<'a> Reading<'a> {
    fn new(
        subject: &'a Subject,
        evidence: &'a Evidence<'a>,
        device: Option<&'a DeviceRecords>,
        samples: &'a [Sample],
    ) -> Self {
        let timelines = evidence.timelines();
        let timings = Timings::new(samples, &subject.inputs);
        let mut used = utilisation::per_stage(&timings, &subject.work, subject.peak.as_ref());
        let mut steps = steps::steps(timelines);
        if let Some(steps) = &mut steps {
            utilisation::of_steps(&mut steps.list, &subject.steps, subject.peak.as_ref());
            for stage in [Stage::Prefill, Stage::Decode] {
                let of_stage = || utilisation::of_stage_steps(&steps.list, stage, subject.peak.as_ref());
                if let Some(found) = Some(()).filter(|()| !used.contains_key(&stage)).and_then(|()| of_stage()) {
                    used.insert(stage, found);
                }
            }
        }
        Self {
            subject,
            evidence,
            device,
            timelines,
            operators: &evidence.operators.calls,
            samples,
            profiled: Timings::new(evidence.profiled(), &subject.inputs),
            used,
            timings,
            steps,
            collectives: collectives::summaries(timelines, subject.hardware.as_ref()),
            arrivals: arrivals(timelines),
        }
    }

    /// What was tried, where time was lost, and what follows; its quality is counted later.
    fn conclusions(&self, device_time: &[DeviceTime]) -> (Trials, Ledger, Conclusions) {
        let lost = match self.device {
            Some(device) => loss::device_books(device),
            None => loss::profile_books(self.operators, &self.timings, &self.profiled),
        };
        let marks = self.device.map(|device| device.special.marks.as_slice()).unwrap_or_default();
        // They hold more of each kernel than the timeline does, and nothing after this asks them.
        let mut replays = Replays::new(self.timelines, self.subject.hardware.as_ref(), marks);
        replays.set_plain(&plain_times(self.evidence, &self.timings));
        let kind = run_kind(self.timelines);
        let run = Run {
            subject: self.subject,
            kind: kind.as_ref(),
            operators: self.operators,
            device: self.device,
            device_time,
            steps: self.steps.as_ref(),
            collectives: &self.collectives,
            arrivals: self.arrivals.as_ref(),
            timings: &self.timings,
            profiled: &self.profiled,
            used: &self.used,
            lost: &lost,
            pressure: self.evidence.requests.as_ref().and_then(|requests| requests.pressure.as_ref()),
            cold: self.evidence.requests.as_ref().and_then(|requests| requests.cold),
            disturbed: disturbed::inferences(&self.evidence.disturbance),
            replays: &replays,
        };
        if self.evidence.has_graphs_only() {
            let replay = replays.summary(None);
            return (Trials::default(), lost, Conclusions { replay, ..Conclusions::default() });
        }
        let (mut findings, lost, changes) = finding::all(&run);
        let wall = run.wall();
        let trials = tries::trials(&self.evidence.tries, &tries::predictions(&findings));
        tries::tell(&mut findings, &trials, |stage| match stage {
            Some(stage) => self.timings.total(stage),
            None => wall,
        });
        let changes: Vec<_> = changes.iter().map(|(change, scope)| (change, *scope)).collect();
        let together = replays.together(&changes, None).filter(|_| !changes.is_empty());
        let together = together.map(|saves| Nanos::new((saves.low.get() + saves.high.get()) / 2));
        let conclusions = Conclusions {
            findings,
            lost_time: lost.rows(wall),
            critical_path: replays.critical_path(&[], Basis::Traced),
            replay: replays.summary(together),
            quality: Vec::new(),
        };
        (trials, lost, conclusions)
    }

    /// Stages without what contradicts their times, and what was left out of them for that.
    fn stages(&self, lost: &Ledger, sums: &DeviceSums) -> (Vec<StageSummary>, Option<QualityCounter>) {
        let without_plain = self.evidence.plain.is_none();
        let mut stages = stages::summaries(&StageSources {
            timings: &self.timings,
            subject: self.subject,
            used: &self.used,
            lost,
            sums,
            steps: self.steps.as_ref(),
            traced: without_plain.then_some(self.timelines),
        });
        let same_pass = without_plain && self.subject.devices.len() < 2;
        let misfit = stages::checked(&mut stages, self.device.map(|device| &device.misfits), same_pass);
        (stages, misfit)
    }

    fn times(&self, stages: Vec<StageSummary>, sums: &DeviceSums) -> Times {
        let Self { subject, evidence, timings, samples, .. } = self;
        let is_annotated = self.steps.as_ref().is_some_and(|steps| steps.basis == StepBasis::EngineAnnotations);
        let (ranks, rank_skew) = side_by_side(subject, evidence, samples);
        let in_milliseconds = |stage| Some((stage, timings.milliseconds(stage)?));
        Times {
            totals: totals(subject, evidence, timings, sums),
            throughput: if is_annotated && evidence.plain.is_none() {
                stages::engine_throughput(&stages)
            } else {
                throughput(timings, &subject.inputs)
            },
            stages,
            steps: self.steps.clone(),
            aggregates: Aggregates { stage_ms: timings.stages().filter_map(in_milliseconds).collect() },
            overhead: evidence.overhead.clone().unwrap_or_else(|| overhead(timings, &self.profiled)),
            variance: timings.variance(),
            load_ns: evidence.plain.as_ref().and_then(|plain| plain.load_ns),
            ranks,
            rank_skew,
            rank_arrivals: self.arrivals.clone(),
            samples: all_ranks(evidence.ranks.as_ref(), samples),
        }
    }

    /// Utilisation of the whole run only where the model `fits` it, and of the stages that it fits.
    fn utilisation(&self, times: &Times, fits: bool, groups: &OperatorGroups) -> UtilisationView {
        let whole = utilisation::whole(&self.timings, &self.subject.work, self.subject.peak.as_ref());
        let whole = whole.as_ref().filter(|_| fits);
        let stage_fits = |stage: Stage| fits || times.stages.iter().any(|one| one.name == stage && one.mfu.is_some());
        let mfu = |stage: Stage| self.used.get(&stage).and_then(Utilisation::mfu).filter(|_| stage_fits(stage));
        UtilisationView {
            mfu_model_level: whole.and_then(Utilisation::mfu),
            mfu_per_stage: self.timings.stages().map(|stage| (stage, mfu(stage))).collect(),
            mbu_model_level: whole.and_then(Utilisation::mbu),
            peak: self.subject.peak.clone(),
            peaks: utilisation::peaks(self.subject, &groups.by_shape),
            work_per_stage: utilisation::work_per_stage(&self.subject.work),
            flop_checks: self.evidence.flop_checks.clone(),
        }
    }

    fn breakdown(
        &self,
        device_time: Vec<DeviceTime>,
        modules: Vec<ModuleSummary>,
        regions: Vec<RegionSummary>,
        sums: &DeviceSums,
    ) -> Breakdown {
        let Self { evidence, device, timelines, operators, .. } = *self;
        let traced_operators = || {
            let own = traced::summaries(timelines);
            if own.is_empty() { traced::summaries(&evidence.operator_timelines) } else { own }
        };
        let by_shape = || shapes::groups(timelines, self.subject.hardware.as_ref());
        Breakdown {
            device_time,
            device_memory: device_memory(timelines),
            operators: evidence.trace.as_ref().map_or_else(|| priced::summaries(operators), |_| traced_operators()),
            kernels: evidence.trace.as_ref().map(|trace| kernels(trace, sums)).unwrap_or_default(),
            regions: evidence.regions.clone().unwrap_or(regions),
            modules: device.map_or(modules, |device| device.modules.clone()),
            module_kinds: device.map(|device| device.module_kinds.clone()).unwrap_or_default(),
            operator_groups: match operators {
                [] => OperatorGroups { by_shape: by_shape(), by_class: Vec::new() },
                _ => priced::groups(operators),
            },
            collectives: self.collectives.clone(),
            cost_centres: cost_centres(operators),
            routing: evidence.operators.routing.clone(),
        }
    }
}

fn conditions(subject: &Subject, evidence: &Evidence<'_>, sums: &DeviceSums) -> Conditions {
    Conditions {
        settings: subject.settings.clone(),
        inputs: subject.inputs.clone(),
        memory: evidence.memory,
        trace: evidence.trace.as_ref().map(|trace| trace_facts(subject, evidence, trace, sums)),
        command: evidence.command.as_ref().map(command_facts),
        commands_beside: evidence.commands_beside.iter().map(command_facts).collect(),
        disturbance: evidence.disturbance.clone(),
    }
}

/// Times of stages: those of plain runs, else those the timelines show.
fn samples<'a>(evidence: &'a Evidence<'_>) -> Cow<'a, [Sample]> {
    match &evidence.plain {
        Some(plain) => Cow::Borrowed(&plain.samples),
        None => Cow::Owned(stages::traced::samples(evidence.timelines())),
    }
}

/// What one instance of prefill and of decode takes without a profiler: on the input that was traced, or on all of them.
fn plain_times(evidence: &Evidence<'_>, timings: &Timings<'_>) -> BTreeMap<Scope, Nanos> {
    let (Some(_), Some(trace)) = (&evidence.plain, &evidence.trace) else { return BTreeMap::new() };
    let of_stage = |stage: Stage| {
        let medians = timings.medians(stage);
        let traced = trace.input.as_deref().and_then(|input| medians.get(input).copied());
        let mean = || share(medians.values().sum(), medians.len() as f64);
        Some((Scope::of(stage), rounded(traced.or_else(mean)?)))
    };
    timings.stages().filter(|stage| stage.parent().is_none()).filter_map(of_stage).collect()
}

/// Samples of every rank; figures are over those of this one.
fn all_ranks(ranks: Option<&RankRuns>, samples: &[Sample]) -> Vec<Sample> {
    let Some(ranks) = ranks else { return samples.to_vec() };
    let own = samples.iter().map(|sample| Sample { rank: Some(ranks.own), ..sample.clone() });
    own.chain(ranks.others.iter().flat_map(|(_, _, samples)| samples.iter().cloned())).collect()
}

/// Ranks side by side, where there is more than one: as they were gathered, else as the timelines show them.
fn side_by_side(
    subject: &Subject,
    evidence: &Evidence<'_>,
    samples: &[Sample],
) -> (Vec<RankSummary>, Vec<types::RankSkew>) {
    let ranks: Vec<RankSummary> = match &evidence.ranks {
        Some(RankRuns { own, others }) => {
            let own = ranks::summary(*own, subject.run.device.clone(), samples);
            let others = others.iter().map(|(rank, device, samples)| ranks::summary(*rank, device.clone(), samples));
            std::iter::once(own).chain(others).collect()
        }
        None if evidence.plain.is_none() => {
            let ranks = stages::traced::ranks(evidence.timelines());
            let of_rank = |(rank, device)| {
                let samples: Vec<Sample> = samples.iter().filter(|one| one.rank == Some(rank)).cloned().collect();
                ranks::summary(rank, device, &samples)
            };
            if ranks.len() < 2 { Vec::new() } else { ranks.into_iter().map(of_rank).collect() }
        }
        None => Vec::new(),
    };
    let skew = ranks::skew(&ranks);
    (ranks, skew)
}

fn totals(subject: &Subject, evidence: &Evidence<'_>, timings: &Timings<'_>, sums: &DeviceSums) -> Totals {
    let timelines = evidence.timelines();
    let wall_ns = match (&evidence.plain, &evidence.trace, &evidence.command) {
        (Some(_), _, _) => timings.wall(),
        (None, Some(_), _) => stages::traced::whole(timelines),
        (None, None, Some(command)) => {
            let wall: Nanos = command.runs.iter().filter(|run| !run.warmup).map(|run| run.wall_ns).sum();
            (wall > Nanos::ZERO).then_some(wall)
        }
        (None, None, None) => None,
    };
    if sums.whole.pieces == 0 {
        let kernels = evidence.trace.as_ref().map(|trace| kernels(trace, sums)).unwrap_or_default();
        let known = !kernels.is_empty();
        return Totals {
            wall_ns,
            kernel_ns: known.then(|| kernels.iter().map(|kernel| kernel.total_ns).sum()),
            kernel_count: known.then(|| kernels.iter().map(|kernel| kernel.calls).sum::<Count>().get()),
            ..Totals::default()
        };
    }
    let decode = sums.stages.get(&Stage::Decode).map(|decode| decode.launches as f64);
    let steps = stages::traced::steps(timelines).or_else(|| {
        // Decode steps of all instances, as the workload has them.
        let workload = subject.workload.as_ref()?.workload.as_ref()?;
        Some(timings.instances(Stage::Decode)).filter(|count| *count > 0)?.checked_mul(workload.decode_steps)
    });
    Totals {
        wall_ns,
        gpu_busy_ns: Some(sums.whole.busy),
        kernel_ns: Some(sums.whole.kernel_time),
        kernel_count: Some(sums.whole.kernels),
        launches_per_token: decode.zip(steps).and_then(|(all, steps)| share(all, steps as f64)),
    }
}

/// Kernels of the timelines; without one, from tables that others summed up, else from what was counted launch by launch.
fn kernels(trace: &Trace<'_>, sums: &DeviceSums) -> Vec<KernelSummary> {
    match (trace.timelines.as_slice(), trace.listed.as_slice()) {
        ([], []) => counter::kernels(&trace.counters),
        ([], listed) => counter::listed_kernels(listed),
        _ => sums.kernels.clone(),
    }
}

fn trace_facts(subject: &Subject, evidence: &Evidence<'_>, trace: &Trace<'_>, sums: &DeviceSums) -> TraceFacts {
    let timelines = trace.timelines.as_slice();
    let only = match timelines {
        [only] if !only.timeline.graphs_only => Some(only),
        _ => None,
    };
    TraceFacts {
        sources: trace.sources.clone(),
        workload: subject.workload.clone(),
        recorded_here: trace.recorded_here,
        kind: run_kind(timelines),
        stages: stages::traced::basis(timelines),
        coverage: (sums.whole.pieces > 0).then(|| stages::traced::coverage(timelines)),
        set_aside: stages::traced::set_aside(timelines),
        counters: counter::summaries(&trace.counters),
        step_ms: describe(&stages::traced::step_times(timelines)),
        steps: only.and_then(stages::traced::step_facts),
        queue_depth: only.and_then(stages::traced::queue_facts),
        copies: sums.copies.clone(),
        traced_pass: evidence.plain.as_ref().map(|_| traced_pass(trace)),
    }
}

/// The profiled pass by itself.
fn traced_pass(trace: &Trace<'_>) -> TracedPass {
    let timelines: &[PlacedTimeline<'_>] = &trace.timelines;
    let wall = |stage: Stage| Some((stage, stages::traced::wall(timelines, stage)?));
    TracedPass {
        input: trace.input.clone(),
        wall_ns: stages::traced::whole(timelines),
        stages: Stage::ALL.into_iter().filter_map(wall).collect(),
    }
}

fn command_facts(command: &CommandRuns) -> CommandFacts {
    let times = command.milliseconds();
    let mut apart = outliers(&times).into_iter();
    let starts: Vec<f64> = command.runs.iter().filter_map(|run| Some(run.start_ns?.get() as f64)).collect();
    let run = |run: &CommandRun| CommandRun { outlier: run.counts() && apart.next() == Some(true), ..run.clone() };
    CommandFacts {
        command: command.command.clone(),
        wall_ms: describe(&times),
        runs: command.runs.iter().map(run).collect(),
        start_cost_ns: median(&starts).map(|ns| Nanos::new(ns.round() as i64)),
    }
}

/// What one run under a profiler cost over the median of the plain runs of a command.
pub fn command_overhead(command: &CommandRuns, profiled: Nanos) -> Overhead {
    let baseline = describe(&command.milliseconds()).map(|times| Nanos::new((times.median * 1e6).round() as i64));
    let known = baseline.filter(|baseline| *baseline > Nanos::ZERO);
    Overhead {
        baseline_ns: baseline,
        profiled_ns: Some(profiled),
        share: known.map(|baseline| (profiled - baseline).get() as f64 / baseline.get() as f64),
        baseline_spread: None,
    }
}

#[cfg(test)]
mod trace_sample;
#[cfg(test)]
mod traced_tests;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use types::{Nanos, Sample};

    use super::*;
    use crate::sample::{Case, case, operator, page, peak, timed, work};

    #[test]
    fn an_empty_run_is_a_document_with_nothing_in_it() {
        let metrics = case().metrics();
        assert_eq!((metrics.times.totals.wall_ns, metrics.utilisation.mfu_model_level), (None, None));
        assert!(
            metrics.times.stages.is_empty()
                && metrics.conclusions.findings.is_empty()
                && metrics.conclusions.quality.is_empty()
        );
    }

    #[test]
    fn the_document_survives_json() {
        let samples = vec![timed(Stage::Prefill, "a", 0, 4_000), timed(Stage::Decode, "a", 0, 3_000)];
        let operators = vec![operator("linear", "lm_head", Stage::Prefill, 3_000)];
        let work = vec![work("a", Stage::Prefill, 4_000, 1_000)];
        let inputs = vec![page("a", 10, 4)];
        let peak = Some(peak(1e10, 1e10));
        let mut metrics = Case { samples, operators, work, inputs, peak, ..case() }.metrics();
        // `report::words` says causes before a document is written; their ids stand for that here.
        metrics.conclusions.lost_time.iter_mut().for_each(|lost| lost.cause = lost.cause.to_string().into());
        let text = serde_json::to_string(&metrics).unwrap();
        assert!(!text.contains("NaN"));
        assert_eq!(serde_json::from_str::<Metrics>(&text).unwrap(), metrics);
    }

    #[test]
    fn an_unknown_device_leaves_utilisation_open_and_says_so() {
        let samples = vec![timed(Stage::Prefill, "a", 0, 4_000)];
        let work = vec![work("a", Stage::Prefill, 4_000, 1_000)];
        let metrics = Case { samples, work, ..case() }.metrics();
        assert_eq!(
            (metrics.utilisation.mfu_model_level, metrics.utilisation.mfu_per_stage[&Stage::Prefill]),
            (None, None)
        );
        assert_eq!(metrics.conclusions.quality[0].counter, "stages_without_peak");
        assert_eq!(metrics.utilisation.work_per_stage[&Stage::Prefill].flops_matrix.get(), 4_000);
    }

    #[test]
    fn what_could_not_be_placed_is_counted() {
        let mut operators =
            vec![operator("linear", "lm_head", Stage::Prefill, 30), operator("copy", "x", Stage::Prefill, 10)];
        operators[1].record.stage = None;
        let samples = vec![timed(Stage::Prefill, "a", 0, 40)];
        let metrics = Case { samples, operators, peak: Some(peak(1.0, 1.0)), ..case() }.metrics();
        let counters: Vec<_> =
            metrics.conclusions.quality.iter().map(|one| (one.counter.as_str(), one.value, one.share)).collect();
        let expected =
            [("stage_inputs_without_modelled_work", 1, Some(1.0)), ("operators_unattributed", 1, Some(0.25))];
        assert_eq!(counters, expected);
        assert_eq!(metrics.breakdown.operators.len(), 2);
    }

    fn any_samples() -> impl Strategy<Value = Vec<Sample>> {
        let one = (0usize..6, 0usize..3, 0u32..3, 0i64..1_000_000_000, any::<bool>());
        proptest::collection::vec(one, 0..40).prop_map(|all| {
            let make = |(stage, input, repeat, time, warmup): (usize, usize, u32, i64, bool)| {
                let sample = timed(Stage::ALL[stage], ["a", "b", "c"][input], repeat, time);
                Sample { warmup, ..sample }
            };
            all.into_iter().map(make).collect()
        })
    }

    proptest! {
        #[test]
        fn the_top_stages_are_the_wall_whatever_is_nested(samples in any_samples()) {
            let inputs = vec![page("a", 10, 3), page("b", 20, 1)];
            let work = vec![work("a", Stage::Prefill, 1_000, 10), work("b", Stage::Decode, 5, 1_000)];
            let metrics = Case { samples: samples.clone(), inputs, work, peak: Some(peak(1e3, 1e3)), ..case() }.metrics();
            let top: Nanos = metrics.times.stages.iter().filter(|stage| stage.parent.is_none()).filter_map(|stage| stage.wall_ns).sum();
            prop_assert_eq!(metrics.times.totals.wall_ns.unwrap_or_default(), top);
            let measured = samples.iter().filter(|sample| !sample.warmup).count() as u64;
            prop_assert_eq!(metrics.times.stages.iter().map(|stage| stage.instances).sum::<u64>(), measured);
            prop_assert_eq!(metrics.times.samples.len(), samples.len());
            for share in metrics.times.stages.iter().flat_map(|stage| [stage.mfu, stage.mbu]).flatten() {
                prop_assert!((0.0..=1.0).contains(&share));
            }
            let json = serde_json::to_string(&metrics).unwrap();
            prop_assert!(serde_json::from_str::<Metrics>(&json).is_ok(), "{json}");
        }
    }
}
