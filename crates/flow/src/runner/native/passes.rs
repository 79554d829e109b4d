//! The passes over all inputs: which are chosen, in which order they run, and when to stop.

use std::collections::{BTreeMap, BTreeSet};

use collect::disturbance::OwnWatch;
use engine::nvtx;
use types::{InferenceDisturbance, Nanos, Sample, Stage, UserError};

use super::measure::{Answer, Inference, Order, Runner, Turn};
use crate::pipeline::progress::{Pass, Progress};
use crate::runner::error;
use crate::runner::inputs::plan::InputPlan;
use crate::runner::inputs::prepare::PreparedInput;
use crate::runner::request::ProfileRequest;

/// Inferences shorter than this tell of no stage: drawing a progress bar between two stages would take a share of them.
const TELLS_STAGES: Nanos = Nanos::new(1_000_000_000);

/// One measured input.
pub(crate) struct MeasuredInput {
    pub(crate) prepared: PreparedInput,
    pub(crate) traced: Inference,
}

/// Everything the passes gave.
pub(crate) struct Measured {
    pub(crate) inputs: Vec<MeasuredInput>,
    /// Inputs that were measured and not traced.
    pub(crate) untraced: Vec<PreparedInput>,
    /// How far it came where the user stopped it.
    pub(crate) stopped: Option<Stopped>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) profiled: Vec<Sample>,
    /// What each inference of the plain passes got of the machine.
    pub(crate) disturbance: Vec<InferenceDisturbance>,
    /// Wall time of the measured inferences, warm-up left out, taken apart from their stages.
    pub(crate) wall: Nanos,
    /// Name and text of each input.
    pub(crate) texts: Vec<(String, String)>,
}

/// The user stopped the passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub(crate) done: u64,
    pub(crate) total: u64,
}

impl From<Stopped> for UserError {
    fn from(stopped: Stopped) -> Self {
        error::stopped(stopped.done, stopped.total)
    }
}

impl Measured {
    /// Inputs that were measured.
    pub(crate) fn prepared(&self) -> impl Iterator<Item = &PreparedInput> {
        self.inputs.iter().map(|one| &one.prepared).chain(&self.untraced)
    }
}

/// Every pass over every input; the last, which records operators, only when `traced`. Where the user stops it after
/// something was measured, that is kept.
pub(crate) fn measure(
    runner: &Runner<'_>,
    request: &ProfileRequest,
    plan: InputPlan,
    traced: bool,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Measured, UserError> {
    let sampling = &request.dataset.sampling;
    let passes = request.infer.passes();
    let InputPlan { epochs, prepared } = plan;
    let planned: usize = epochs.iter().map(Vec::len).sum();
    let distinct = prepared.len() as u64;
    let rounds = u64::from(sampling.repeats) * planned as u64 + u64::from(sampling.warmup_rounds) * distinct;
    let total = rounds * u64::from(passes) + if traced { distinct } else { 0 };
    let mut done = 0;
    let mut last: Option<Nanos> = None;
    let mut samples = Vec::new();
    let mut wall = Nanos::ZERO;
    let mut warm = BTreeSet::new();
    let mut generated = BTreeMap::new();
    let mut stopped = None;
    let mut disturbance = Vec::new();
    let mut step = |input: &PreparedInput, pass: Pass, turn: Turn| -> Result<Option<Inference>, UserError> {
        if stop() {
            stopped = Some(Stopped { done, total });
            return Ok(None);
        }
        let name = input.facts.name.as_str();
        let mut tell = |stage: Option<Stage>| progress(Progress::Inference { done, total, pass, input: name, stage });
        tell(None);
        let tells_stages = last.is_none_or(|last| last > TELLS_STAGES);
        let mut begins = |stage: Stage| {
            if tells_stages {
                tell(Some(stage));
            }
        };
        let order = Order { turn, traced: pass == Pass::Tracing, answer: Answer::Text, begins: &mut begins };
        let watch = OwnWatch::start();
        let inference = runner.infer(input, order)?;
        if pass != Pass::Tracing {
            let (Turn { epoch, repeat, warmup }, input) = (turn, Some(name.to_owned()));
            disturbance.push(InferenceDisturbance { input, epoch, repeat, warmup, disturbance: watch.finish() });
        }
        done += 1;
        last = Some(inference.wall);
        Ok(Some(inference))
    };
    'passes: for (epoch, chosen) in (0..).zip(&epochs) {
        for index in chosen {
            let input = &prepared[index];
            if warm.insert(*index) {
                for repeat in 0..sampling.warmup_rounds.saturating_mul(passes) {
                    // What runs inside is set aside by whoever records.
                    let _range = nvtx::Range::push("warmup");
                    let turn = Turn { epoch, repeat, warmup: true };
                    let Some(inference) = step(input, Pass::WarmUp, turn)? else { break 'passes };
                    samples.extend(inference.samples);
                }
            }
            for repeat in 0..sampling.repeats.saturating_mul(passes) {
                let turn = Turn { epoch, repeat, warmup: false };
                let Some(inference) = step(input, Pass::Measuring, turn)? else { break 'passes };
                samples.extend(inference.samples);
                wall += inference.wall;
                generated.insert(*index, inference.tokens.len() as u64);
            }
        }
    }
    let (mut inputs, mut untraced) = (Vec::<MeasuredInput>::new(), Vec::<PreparedInput>::new());
    let (mut profiled, mut texts) = (Vec::new(), Vec::new());
    for (index, mut input) in prepared {
        // An input that the user did not wait for has no time, and no place in the run.
        let Some(tokens) = generated.get(&index) else { continue };
        let turn = Turn { epoch: 0, repeat: 0, warmup: false };
        let Some(trace) = traced.then(|| step(&input, Pass::Tracing, turn)).transpose()?.flatten() else {
            input.facts.generated_tokens = *tokens;
            untraced.push(input);
            continue;
        };
        input.facts.generated_tokens = trace.tokens.len() as u64;
        profiled.extend(trace.samples.iter().cloned());
        texts.push((input.facts.name.clone(), runner.text(&trace.tokens)?));
        inputs.push(MeasuredInput { prepared: input, traced: trace });
    }
    let measured: BTreeSet<&str> =
        inputs.iter().map(|one| &one.prepared).chain(&untraced).map(|input| input.facts.name.as_str()).collect();
    let is_kept = |input: &Option<String>| input.as_deref().is_none_or(|name| measured.contains(name));
    samples.retain(|sample: &Sample| is_kept(&sample.input));
    disturbance.retain(|one: &InferenceDisturbance| is_kept(&one.input));
    match stopped {
        Some(stopped) if generated.is_empty() => Err(stopped.into()),
        _ => Ok(Measured { inputs, untraced, stopped, samples, profiled, disturbance, wall, texts }),
    }
}
