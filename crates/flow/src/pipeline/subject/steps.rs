//! Modelled work of the steps of a server, from the sequences that are known to be in each.

use analysis::{JoinedRequests, ModelledStep, SequencePart, compositions};
use meter::{MeterError, RaggedMeter, RaggedSequence, Roofline, WorkloadSettings, matrix_dtypes, predict};
use types::{AttentionKind, Hardware, LogitsKind, Nanos, PeakUsed, Seconds, UserError, Workload};

use super::work::work;
use crate::pipeline::model::LoadedModel;
use crate::pipeline::model::workload::WorkloadRequest;
use crate::pipeline::trace::Traces;

/// Work of every step, and the rates that it is relative to.
pub(crate) struct StepModel {
    pub(crate) steps: Vec<Option<ModelledStep>>,
    pub(crate) peak: Option<PeakUsed>,
}

/// Work of the steps of a trace; `None` where no step's sequences are all known, or the model has no cache.
pub(crate) fn modelled(
    model: &LoadedModel,
    request: &WorkloadRequest,
    joined: &JoinedRequests,
    traces: &Traces,
    hardware: Option<&Hardware>,
) -> Result<Option<StepModel>, UserError> {
    // How several ranks share the work is not known.
    if traces.placed.len() != 1 {
        return Ok(None);
    }
    let steps = compositions(joined, &traces.timelines(&[]));
    let contexts = steps.iter().flatten().flatten().map(|part| part.context);
    let Some(longest) = contexts.max() else { return Ok(None) };
    let is_given = |key: &str| request.overridden.iter().any(|other| other == key);
    let settings = WorkloadSettings {
        batch: 1,
        num_pages: 1,
        dtype: request.settings.dtype.clone().filter(|_| is_given("dtype")),
        text_tokens: Some(2),
        seq_len: None,
        max_new_tokens: Some(2),
        decode_steps: None,
        attention: AttentionKind::Flash,
        logits: LogitsKind::Last,
        ..request.settings.clone()
    };
    let workload = settings.resolve(&model.network, model.dtype)?;
    let workload = Workload { image: None, seq_len: 2, ..workload };
    let dtypes = matrix_dtypes(&predict(&model.network, &workload)?);
    let roofline = hardware.and_then(|hardware| Roofline::new(hardware, dtypes, None).ok());
    let Some(mut meter) = RaggedMeter::new(&model.network, &workload, longest + 1, roofline.as_ref())? else {
        return Ok(None);
    };
    let mut of_step = |parts: Option<Vec<SequencePart>>| {
        // How many images are among the prompts of a step, nothing says.
        let is_known =
            |parts: &Vec<SequencePart>| !model.network.takes_images() || parts.iter().all(|part| part.tokens == 1);
        let Some(parts) = parts.filter(is_known) else { return Ok(None) };
        let sequence = |part: &SequencePart| RaggedSequence { tokens: part.tokens, context: part.context };
        let cost = meter.step(&parts.iter().map(sequence).collect::<Vec<_>>())?;
        let roofline = cost.time.map(|time: Seconds| Nanos::new((time.get() * 1e9).round() as i64));
        Ok(Some(ModelledStep { work: work(&cost.cost), roofline }))
    };
    let steps = steps.into_iter().map(&mut of_step).collect::<Result<Vec<_>, MeterError>>()?;
    Ok(Some(StepModel { steps, peak: hardware.and_then(|hardware| PeakUsed::of(hardware, workload.dtype)) }))
}
