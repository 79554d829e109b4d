//! What kind of run a trace shows. Each kind needs something in the trace that only it has; nothing is guessed from speed
//! or shape.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use types::timeline::{OperatorKind, Timeline, WorkKind};
use types::{Facts, Remark, RunKind, RunKindName, Stage};

use crate::attribution::{Attribution, Inference, StageOrigin, training};
use crate::encoder::encoder;
use crate::evidence::PlacedTimeline;
use crate::kernel::short_name;
use crate::{key_value_cache, numbered};

/// Python modules and packages of diffusion pipelines.
const DIFFUSION: [&str; 4] = ["diffusers/", "xfuser/", "UNet2DConditionModel", "DiTTransformer"];

/// Words in names of kernels that only a backward pass launches.
const BACKWARD: [&str; 3] = ["backward", "_bwd", "wgrad"];

/// Why no stages follow from look-ups that show tokens being generated all the same.
const GENERATING: [&str; 3] = ["stages.several-models", "stages.recomputed", "stages.continued"];

/// Kinds of ranges named.
const NAMED: usize = 6;
/// Bytes of the longest name of a range that is told.
const LONGEST_NAME: usize = 80;

/// The kind of run of the first timeline; absent without one.
pub(crate) fn run_kind(timelines: &[PlacedTimeline<'_>]) -> Option<RunKind> {
    timelines.first().map(|placed| of_timeline(placed.timeline, placed.attribution))
}

fn of_timeline(timeline: &Timeline, attribution: &Attribution) -> RunKind {
    let kind = |kind, evidence: Remark| RunKind { kind, evidence };
    let operator = |name: &str| Remark::new("run-kind.operator", Facts::new().with("name", name));
    if let Some(name) = training(timeline) {
        return kind(RunKindName::Training, operator(name));
    }
    if let Some(name) = backward_kernel(timeline) {
        let facts = Facts::new().with("name", short_name(name));
        return kind(RunKindName::Training, Remark::new("run-kind.backward-kernel", facts));
    }
    let stages = &attribution.stages;
    let annotated = stages.iter().any(|stage| stage.origin == StageOrigin::Engine);
    if attribution.without_requests.is_some() && !annotated {
        return kind(RunKindName::Serving, Remark::new("run-kind.requests", Facts::new()));
    }
    match &attribution.inference {
        Inference::Done { evidence } if annotated || stages.is_empty() => {
            return kind(RunKindName::Serving, evidence.clone());
        }
        Inference::Done { evidence } => return kind(RunKindName::Generation, evidence.clone()),
        Inference::NotNeeded if stages.iter().any(|stage| stage.stage == Stage::Decode) => {
            return kind(RunKindName::Generation, Remark::new("run-kind.decode-marked", Facts::new()));
        }
        Inference::Refused { reason } if GENERATING.contains(&reason.id.as_str()) => {
            return kind(RunKindName::Generation, reason.clone());
        }
        _ => {}
    }
    let has_call = |part: &str| {
        let named: Vec<_> = timeline.names.iter().map(|(_, name)| name.contains(part)).collect();
        timeline.calls.iter().any(|call| named[call.name.index()])
    };
    if has_call("StreamEndCapture") && !has_call("GraphLaunch") {
        return kind(RunKindName::GraphCapture, Remark::new("run-kind.capture", Facts::new()));
    }
    let is_sign = |(_, name): (_, &str)| DIFFUSION.iter().any(|sign| name.contains(sign));
    let signs: Vec<bool> = timeline.names.iter().map(is_sign).collect();
    let python = timeline.operators.iter().filter(|operator| operator.kind == OperatorKind::Python);
    // The name that came first in the file: most rows have none of these, and millions of rows need not be sorted.
    if let Some(name) = python.map(|operator| operator.name).filter(|name| signs[name.index()]).min() {
        return kind(RunKindName::Diffusion, operator(timeline.name(name)));
    }
    if let Some(evidence) = encoder(timeline) {
        return kind(RunKindName::Encoder, evidence);
    }
    if let Some(found) = key_value_cache::run_kind(timeline) {
        return found;
    }
    let is_framework = timeline.operators.iter().any(|operator| operator.kind == OperatorKind::Framework);
    if is_framework {
        kind(RunKindName::Forward, Remark::new("run-kind.forward", ranges(timeline)))
    } else {
        kind(RunKindName::Program, Remark::new("run-kind.program", ranges(timeline)))
    }
}

/// How many ranges the program marks, and the kinds that are most frequent.
fn ranges(timeline: &Timeline) -> Facts {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for range in &timeline.ranges {
        *kinds.entry(numbered::kind(timeline.name(range.name))).or_default() += 1;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| Reverse(*count));
    if kinds.is_empty() {
        return Facts::new();
    }
    let row = |(name, count): &(String, u64)| Facts::new().with("name", name.as_str()).with("ranges", *count);
    // Some tools write whole records into the names of their ranges.
    let named: Vec<_> = kinds
        .iter()
        .filter(|(name, _)| name.len() <= LONGEST_NAME && !name.starts_with('{'))
        .take(NAMED)
        .map(row)
        .collect();
    let facts = Facts::new().with("ranges", timeline.ranges.len());
    let is_complete = named.len() == kinds.len();
    if named.is_empty() { facts } else { facts.with("kinds", named).with_if("complete", is_complete) }
}

/// A kernel of a backward pass, where no operator of the framework was recorded that would say so.
fn backward_kernel(timeline: &Timeline) -> Option<&str> {
    if timeline.operators.iter().any(|operator| operator.kind == OperatorKind::Framework) {
        return None;
    }
    let signs: Vec<_> =
        timeline.names.iter().map(|(_, name)| BACKWARD.iter().any(|sign| name.contains(sign))).collect();
    let mut kernels = timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel);
    kernels.find(|work| signs[work.name.index()]).map(|work| timeline.name(work.name))
}
