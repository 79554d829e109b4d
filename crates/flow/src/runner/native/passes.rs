//! The passes over all inputs: which are chosen, in which order they run, and when to stop.

use std::collections::{BTreeMap, BTreeSet};

use engine::nvtx;
use types::{Nanos, Sample, Stage};

use super::measure::{Answer, Inference, Order, Runner, Turn};
use crate::pipeline::progress::{Pass, Progress};
use crate::runner::error::ProfileError;
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
    /// Inputs where none was traced.
    pub(crate) untraced: Vec<PreparedInput>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) profiled: Vec<Sample>,
    /// Wall time of the measured inferences, warm-up left out, taken apart from their stages.
    pub(crate) wall: Nanos,
    /// Name and text of each input.
    pub(crate) texts: Vec<(String, String)>,
}

/// Every pass over every input; the last, which records operators, only when `traced`.
pub(crate) fn measure(
    runner: &Runner<'_>,
    request: &ProfileRequest,
    plan: InputPlan,
    traced: bool,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Measured, ProfileError> {
    let sampling = &request.dataset.sampling;
    let passes = request.infer.passes();
    let InputPlan { epochs, mut prepared } = plan;
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
    let mut step = |input: &PreparedInput, pass: Pass, turn: Turn| {
        if stop() {
            return Err(ProfileError::Stopped { done, total });
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
        let inference = runner.infer(input, order)?;
        done += 1;
        last = Some(inference.wall);
        Ok(inference)
    };
    for (epoch, chosen) in (0..).zip(&epochs) {
        for index in chosen {
            let input = &prepared[index];
            if warm.insert(*index) {
                for repeat in 0..sampling.warmup_rounds.saturating_mul(passes) {
                    // What runs inside is set aside by whoever records.
                    let _range = nvtx::Range::push("warmup");
                    samples.extend(step(input, Pass::WarmUp, Turn { epoch, repeat, warmup: true })?.samples);
                }
            }
            for repeat in 0..sampling.repeats.saturating_mul(passes) {
                let inference = step(input, Pass::Measuring, Turn { epoch, repeat, warmup: false })?;
                samples.extend(inference.samples);
                wall += inference.wall;
                generated.insert(*index, inference.tokens.len() as u64);
            }
        }
    }
    let mut measured =
        Measured { inputs: Vec::new(), untraced: Vec::new(), samples, wall, profiled: Vec::new(), texts: Vec::new() };
    if !traced {
        for (index, tokens) in generated {
            if let Some(mut input) = prepared.remove(&index) {
                input.facts.generated_tokens = tokens;
                measured.untraced.push(input);
            }
        }
        return Ok(measured);
    }
    for mut input in prepared.into_values() {
        let traced = step(&input, Pass::Tracing, Turn { epoch: 0, repeat: 0, warmup: false })?;
        input.facts.generated_tokens = traced.tokens.len() as u64;
        measured.profiled.extend(traced.samples.iter().cloned());
        measured.texts.push((input.facts.name.clone(), runner.text(&traced.tokens)?));
        measured.inputs.push(MeasuredInput { prepared: input, traced });
    }
    Ok(measured)
}
