//! The passes over all inputs: which are chosen, in which order they run, and when to stop.

use std::collections::{BTreeMap, BTreeSet};

use types::{Nanos, PageKind, Sample};

use super::inputs::{self, Input, SamplingSettings};
use super::measure::{Inference, Prepared, Runner, Turn};
use super::records;
use super::{ProfileError, ProfileRequest, Progress};

/// One measured input.
pub(super) struct MeasuredInput {
    pub(super) kind: PageKind,
    pub(super) prepared: Prepared,
    pub(super) traced: Inference,
}

/// Everything the passes gave.
pub(super) struct Measured {
    pub(super) inputs: Vec<MeasuredInput>,
    pub(super) samples: Vec<Sample>,
    pub(super) profiled: Vec<Sample>,
    /// Wall time of the measured inferences, warm-up left out, taken apart from their stages.
    pub(super) wall: Nanos,
    /// Name and text of each input.
    pub(super) texts: Vec<(String, String)>,
}

/// Every pass over every input.
pub(super) fn measure(
    runner: &Runner<'_>,
    request: &ProfileRequest,
    inputs: &mut [Input],
    usable: &[usize],
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Measured, ProfileError> {
    let sampling = &request.dataset.sampling;
    let Plan { epochs, prepared } = prepare_all(runner, sampling, inputs, usable, progress)?;
    let planned: usize = epochs.iter().map(Vec::len).sum();
    let distinct = prepared.len() as u64;
    let rounds = u64::from(sampling.repeats) * planned as u64 + u64::from(sampling.warmup_rounds) * distinct;
    let total = rounds + distinct;
    let mut done = 0;
    let mut samples = Vec::new();
    let mut wall = Nanos::ZERO;
    let mut warm = BTreeSet::new();
    let mut step = |input: &Prepared, turn: Turn, traced: bool, done: &mut u64| {
        if stop() {
            return Err(ProfileError::Stopped { done: *done, total });
        }
        let inference = runner.infer(input, turn, traced)?;
        *done += 1;
        progress(Progress::Inference { done: *done, total, input: &input.facts.name });
        Ok(inference)
    };
    for (epoch, chosen) in (0..).zip(&epochs) {
        for index in chosen {
            let input = &prepared[index];
            if warm.insert(*index) {
                for repeat in 0..sampling.warmup_rounds {
                    samples.extend(step(input, Turn { epoch, repeat, warmup: true }, false, &mut done)?.samples);
                }
            }
            for repeat in 0..sampling.repeats {
                let inference = step(input, Turn { epoch, repeat, warmup: false }, false, &mut done)?;
                samples.extend(inference.samples);
                wall += inference.wall;
            }
        }
    }
    let mut measured = Measured { inputs: Vec::new(), samples, wall, profiled: Vec::new(), texts: Vec::new() };
    for (index, mut input) in prepared {
        let kind = records::page_kind(inputs[index].facts.category.as_deref());
        let traced = step(&input, Turn { epoch: 0, repeat: 0, warmup: false }, true, &mut done)?;
        input.facts.generated_tokens = traced.tokens.len() as u64;
        measured.profiled.extend(traced.samples.iter().cloned());
        measured.texts.push((input.facts.name.clone(), runner.text(&traced.tokens)?));
        measured.inputs.push(MeasuredInput { kind, prepared: input, traced });
    }
    Ok(measured)
}

/// What is run: the inputs of every epoch, by index, and each of them prepared.
struct Plan {
    epochs: Vec<Vec<usize>>,
    prepared: BTreeMap<usize, Prepared>,
}

/// The inputs of every epoch, prepared. One that turns out to be broken is left out, and the choice made again.
fn prepare_all(
    runner: &Runner<'_>,
    sampling: &SamplingSettings,
    inputs: &mut [Input],
    usable: &[usize],
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Plan, ProfileError> {
    let mut usable = usable.to_vec();
    let mut prepared = BTreeMap::new();
    loop {
        let epochs: Vec<Vec<usize>> =
            (0..sampling.epochs).map(|epoch| inputs::choose(sampling, &usable, epoch)).collect();
        let chosen: BTreeSet<usize> = epochs.iter().flatten().copied().collect();
        let mut broken = BTreeSet::new();
        for index in chosen.iter().filter(|index| !prepared.contains_key(*index)).copied().collect::<Vec<_>>() {
            progress(Progress::Doing("preparing pages"));
            match runner.prepare(&inputs[index]) {
                Ok(one) => {
                    prepared.insert(index, one);
                }
                Err(ProfileError::Input(error)) => {
                    inputs[index].facts.problem = Some(error.to_string());
                    broken.insert(index);
                }
                Err(error) => return Err(error),
            }
        }
        usable.retain(|index| !broken.contains(index));
        if usable.is_empty() {
            let problem = inputs.iter().find_map(|input| input.facts.problem.clone()).unwrap_or_default();
            return Err(ProfileError::NoUsableImages { count: inputs.len(), problem });
        }
        if broken.is_empty() {
            prepared.retain(|index, _| chosen.contains(index));
            for index in prepared.keys() {
                inputs[*index].facts.used = true;
            }
            return Ok(Plan { epochs, prepared });
        }
    }
}
