//! What a run has so far, and the report made of it.

use std::collections::BTreeMap;

use analysis::LaunchCounters;
use analysis::sampled::{Choice, CountedLaunch, join, lay_beside};
use collect::run::RunFolder;
use collect::tool::InstalledTool;
use report::words::Spoken;
use types::{
    CounterFacts, KernelReport, Metrics, Origin, PassRecord, QualityCounter, RunHeader, SchemaTag, Stage, UserError,
};

use super::counters::RangePages;
use super::request::DeepRequest;
use super::tools::Tools;
use super::{Documents, artifacts, overhead, regions};
use crate::pipeline::subject::ResolvedSubject;
use crate::pipeline::target::TargetKind;
use crate::pipeline::trace::regions::RegionChoice;
use crate::pipeline::trace::{Placed, Traces};

/// What the passes so far have left.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) passes: Vec<PassRecord>,
    pub(super) launches: Vec<(Option<Stage>, Vec<CountedLaunch>)>,
    pub(super) counted: Vec<LaunchCounters>,
    pub(super) quality: Vec<QualityCounter>,
    /// Pages of replayed ranges.
    pub(super) ranges: Vec<RangePages>,
    pub(super) missing: Vec<String>,
    pub(super) lacking: Vec<String>,
    /// Which of their regions are asked for.
    pub(super) region_choice: Option<RegionChoice>,
}

impl Collected {
    /// Takes a pass in, with its overhead over the plain program.
    pub(super) fn add(&mut self, record: PassRecord, request: &DeepRequest) {
        self.passes.retain(|pass| pass.name != record.name);
        self.passes.push(record);
        // A workload of ours does as little as shows every kernel while counters are read.
        let less = |pass: &PassRecord| request.target.is_workload() && pass.name.starts_with("counters");
        overhead::settle(&mut self.passes, |pass| !less(pass));
    }

    /// Takes a pass in, writes down what there is, and ends the step of that name.
    pub(super) fn keep(
        &mut self,
        folder: &mut RunFolder,
        request: &DeepRequest,
        record: PassRecord,
        step: &str,
    ) -> Result<(), UserError> {
        self.add(record, request);
        self.write(folder, request)?;
        folder.end_step(step)
    }

    /// Writes down the passes so far, before kernels are known.
    pub(super) fn write(&self, folder: &mut RunFolder, request: &DeepRequest) -> Result<(), UserError> {
        let report = KernelReport {
            schema: SchemaTag::new(),
            run: header(folder, request),
            devices: Vec::new(),
            passes: self.passes.clone(),
            kernels: Vec::new(),
            counters: CounterFacts {
                missing: vec!["the run has not reached this step yet".to_owned()],
                ..uncounted(request)
            },
            sampled: Vec::new(),
            quality: Vec::new(),
        };
        folder.write_json("kernels.json", &report)
    }
}

/// What was run.
pub(super) fn header(folder: &RunFolder, request: &DeepRequest) -> RunHeader {
    let engine = match request.target.kind() {
        TargetKind::Workload(engine) => engine.name(),
        TargetKind::Command => "command",
    };
    RunHeader {
        id: folder.id().to_owned(),
        engine: engine.to_owned(),
        model: request.subject.model_id(),
        device: None,
        weights: request.weights.clone(),
    }
}

/// What was recorded, read.
pub(super) struct Recorded<'a> {
    /// The timeline.
    pub(super) traces: &'a Traces,
    /// The pass under torch.profiler.
    pub(super) operators: Option<&'a Traces>,
}

/// The metrics of what there is so far.
pub(super) fn metrics(resolved: &ResolvedSubject, recorded: &Recorded<'_>, all: &Collected) -> Metrics {
    let mut evidence = recorded.traces.evidence(&resolved.devices);
    if let Some(operators) = recorded.operators {
        let named = operators.evidence(&vec![BTreeMap::new(); operators.placed.len()]);
        evidence.operator_timelines = named.trace.map(|trace| trace.timelines).unwrap_or_default();
    }
    if let Some(trace) = &mut evidence.trace {
        trace.recorded_here = true;
        trace.counters.extend(all.counted.iter().cloned());
    }
    if !all.ranges.is_empty() {
        evidence.regions =
            all.region_choice.as_ref().map(|choice| choice.summaries(all.ranges.iter().map(|ranges| &ranges.table)));
    }
    evidence.missing.clone_from(&all.missing);
    evidence.overhead = overhead::of_timeline(&all.passes);
    evidence.quality.extend(all.quality.iter().chain(&resolved.quality).cloned());
    crate::pipeline::metrics::metrics(&resolved.subject, &evidence)
}

/// Joins what was counted to the timeline and the model, and writes everything down.
pub(super) fn report(
    folder: &mut RunFolder,
    request: &DeepRequest,
    tools: &Tools,
    resolved: &ResolvedSubject,
    recorded: &Recorded<'_>,
    choices: &[Choice],
    mut all: Collected,
) -> Result<(Documents, Vec<String>), UserError> {
    let hardware = resolved.hardware.as_ref();
    let mut sampled = Vec::new();
    let mut quality = Vec::new();
    for choice in choices {
        let of_stage = all.launches.iter().filter(|(stage, _)| *stage == choice.stage);
        let launches: Vec<CountedLaunch> = of_stage.flat_map(|(_, launches)| launches.iter().cloned()).collect();
        let joined = join(choice, &launches, hardware);
        sampled.extend(joined.kernels);
        quality.extend(joined.quality);
    }
    if let (Some(placed), Some(model)) = (busiest(&recorded.traces.placed), &resolved.subject.modelled) {
        let skipped = request.ncu.ncu_cli.launch_skip;
        lay_beside(&mut sampled, &placed.timeline, &placed.attribution, model, skipped);
    }
    all.quality.extend(quality.iter().cloned());
    let metrics = metrics(resolved, recorded, &all);
    let counters = facts(request, tools, &all);
    let kernels = KernelReport {
        schema: SchemaTag::new(),
        run: metrics.run.clone(),
        devices: metrics.devices.clone(),
        passes: std::mem::take(&mut all.passes),
        kernels: metrics.breakdown.kernels.clone(),
        counters,
        sampled,
        quality,
    }
    .spoken();
    let reasons = std::mem::take(&mut all.missing);
    folder.write_json("metrics.json", &metrics)?;
    folder.write_json("kernels.json", &kernels)?;
    if let Some(choice) = &all.region_choice {
        regions::write(folder, request, tools, hardware, choice, &all.ranges)?;
    }
    let about = artifacts::About { request, hardware, timelines: &recorded.traces.placed };
    artifacts::write(folder, &metrics, &kernels, &tools.environment, &about)?;
    folder.end_step("report")?;
    Ok(((metrics, kernels), reasons))
}

fn facts(request: &DeepRequest, tools: &Tools, all: &Collected) -> CounterFacts {
    let (missing, lacking) = (all.missing.clone(), all.lacking.clone());
    if all.launches.iter().all(|(_, launches)| launches.is_empty()) {
        return CounterFacts { missing, lacking, ..uncounted(request) };
    }
    let options = &request.ncu.ncu_cli;
    let word = |value: serde_json::Result<serde_json::Value>| value.ok()?.as_str().map(str::to_owned);
    let version = |tool: &InstalledTool| tool.version.clone().unwrap_or_else(|| "(unknown version)".to_owned());
    CounterFacts {
        origin: Origin::Counted,
        tool: tools.ncu.as_ref().ok().map(|tool| format!("ncu {}", version(tool))),
        clock_control: word(serde_json::to_value(options.clock_control)),
        cache_control: word(serde_json::to_value(options.cache_control)),
        launches_asked: options.launch_count,
        missing,
        lacking,
        ..uncounted(request)
    }
}

/// What is known where no counter was read.
fn uncounted(request: &DeepRequest) -> CounterFacts {
    CounterFacts {
        origin: Origin::Modelled,
        tool: None,
        clock_control: None,
        cache_control: None,
        launches_asked: None,
        lacking: Vec::new(),
        left_out: request.mode.left_out(),
        missing: Vec::new(),
    }
}

/// The process that used the device most; a launcher beside it has nothing to choose from.
fn busiest(placed: &[Placed]) -> Option<&Placed> {
    placed.iter().max_by_key(|placed| placed.timeline.work.len())
}
