//! Our own engine, on the processor.
//!
//! Remedies are tried by [`tries`].
//!
//! A model is checked, its weights loaded ([`bench`]), every input run in warm-up and measured passes ([`passes`],
//! [`measure`]), and what was traced is priced ([`records`]).

pub(crate) mod bench;
pub(crate) mod measure;
pub(crate) mod passes;
pub(crate) mod records;
pub(crate) mod tries;

use types::{DType, Environment, UserError};

use super::bare::BareRun;
use super::error::wrong_setting;
use super::inputs;
use super::inputs::prepare::PreparedInput;
use super::request::ProfileRequest;
use crate::pipeline::model::LoadedModel;
use crate::pipeline::progress::Progress;
use bench::Bench;
use records::workload_of;

/// The element type that the engine computes in, and so of everything it is fed. Weights may be kept in another.
pub(crate) const COMPUTED: DType = DType::Fp32;

/// The element type weights are kept in: as asked for, else that of the arithmetic.
pub(crate) fn kept(model: &LoadedModel) -> DType {
    model.wanted_dtype.unwrap_or(COMPUTED)
}

/// Refuses what this engine cannot run.
pub(crate) fn check(model: &LoadedModel, request: &ProfileRequest) -> Result<(), UserError> {
    let one_of = |key: &'static str, expected: &'static str, found: &str, allowed: &[&str]| {
        if allowed.contains(&found) {
            return Ok(());
        }
        Err(wrong_setting(key, expected, &format!("`{found}`")))
    };
    one_of("engine", "`native`, the only engine here", &request.engine, &["native"])?;
    one_of("device", "`cpu` or `auto`: this engine runs on the CPU only", &request.device, &["cpu", "auto"])?;
    let dtype = kept(model);
    if !matches!(dtype, DType::Fp32 | DType::Bf16) {
        let expected = "float32, bfloat16 or null: the engine supports only these two";
        return Err(wrong_setting("model.dtype", expected, &dtype.to_string()));
    }
    request.check()?;
    request.infer.check_attention()
}

/// A model that does not fit would not fail: the system would end the program, or swap for hours.
pub(crate) fn check_memory(model: &LoadedModel, environment: &Environment) -> Result<(), UserError> {
    let memory = &environment.memory;
    let Some(available) = [memory.available_bytes, memory.limit_bytes].into_iter().flatten().min() else {
        return Ok(());
    };
    let elements =
        model.network.blueprint().params().map(|(_, entry)| entry.shape.elements()).sum::<types::Count>().get();
    let dtype = kept(model);
    let needed = dtype.bytes_for(elements);
    if needed > available {
        let halved = dtype == DType::Fp32 && DType::Bf16.bytes_for(elements) <= available;
        let message =
            format!("the weights of {} take {needed} in {dtype}, but only {available} of memory is free", model.id);
        return Err(UserError::failed(message).hint(if halved {
            "use model.dtype=bfloat16, which takes half the memory"
        } else {
            "model it without running it: `llm-perf analyze`; or choose a smaller one: `llm-perf models`"
        }));
    }
    Ok(())
}

/// Runs warm-up and repeats of every input, with the ranges of its stages and nothing recorded.
pub fn bare(
    mut model: LoadedModel,
    request: &ProfileRequest,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<BareRun, UserError> {
    check(&model, request)?;
    request.infer.fit(&mut model);
    let mut inputs = inputs::find(&request.dataset, &request.infer)?;
    inputs.usable()?;
    progress(Progress::Doing("loading weights"));
    let kept = kept(&model);
    let bench = Bench::load(model.network, model.config.vocabulary(), request, kept)?;
    let plan = bench.plan(request, &mut inputs)?;
    let measured = passes::measure(&bench.runner(request), request, plan, false, progress, stop)?;
    if let Some(stopped) = measured.stopped {
        return Err(stopped.into());
    }
    let workload = |input: &PreparedInput| workload_of(&input.facts, input, COMPUTED, request.infer.last_logits_only());
    let workloads = measured.untraced.iter().map(workload).collect();
    Ok(BareRun { samples: measured.samples, workloads, not_modelled: None })
}
