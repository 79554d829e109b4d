//! Which workload a trace is of: the one that was named, else the one its shapes show, never a default.

use analysis::{Fit, Observed};
use meter::{WorkloadError, WorkloadSettings};
use types::{AttentionKind, Facts, InputFacts, LogitsKind, PageKind, Remark, TracedWorkload, Workload};

use crate::pipeline::model::LoadedModel;

/// Name of the one prompt a trace is about, in `inputs[]`.
const PROMPT: &str = "trace";

/// What the user said of the workload.
#[derive(Clone, Debug)]
pub struct WorkloadRequest {
    /// The configuration's workload; its keys count only where the user set them.
    pub settings: WorkloadSettings,
    /// Name of the profile, where the user chose one; then all of its keys count.
    pub profile: Option<String>,
    /// Keys the user set, without the `workload.` before them.
    pub overridden: Vec<String>,
}

/// The workload utilisation counts with, and what it rests on.
pub(crate) fn choose(
    model: &LoadedModel,
    request: &WorkloadRequest,
    observed: &Observed,
) -> Result<TracedWorkload, WorkloadError> {
    let (settings, mut evidence, missing) = match &request.profile {
        Some(profile) => {
            let given = Remark::new("workload.profile", Facts::new().with("profile", profile));
            (request.settings.clone(), vec![given], Vec::new())
        }
        None => fill_in(model, request, observed),
    };
    if !missing.is_empty() {
        return Ok(TracedWorkload { workload: None, evidence, missing });
    }
    let mut workload = settings.resolve(&model.network, model.dtype)?;
    // Utilisation counts attention in full whichever kernel ran, so that it compares across runs.
    workload.attention = AttentionKind::Eager;
    evidence.push(Remark::new("workload.attention", Facts::new()));
    if !model.network.takes_tokens() {
        evidence.push(Remark::new("workload.no-tokens", Facts::new()));
    }
    Ok(TracedWorkload { workload: Some(workload), evidence, missing })
}

/// Cuts the workload over as many devices as share each matrix in the trace, unless the user says otherwise.
pub(crate) fn share_out(workload: &mut Workload, request: &WorkloadRequest, fit: &Fit, evidence: &mut Vec<Remark>) {
    let given = request.profile.is_some() || request.overridden.iter().any(|key| key.starts_with("parallel"));
    if let Some(tensor) = fit.tensor.filter(|tensor| *tensor > 1 && !given) {
        workload.parallel.tensor = tensor;
        evidence.push(Remark::new("workload.split", Facts::new().with("devices", tensor)));
    }
}

/// Settings from what the user set and, where nothing was set, from what shapes show.
fn fill_in(
    model: &LoadedModel,
    request: &WorkloadRequest,
    observed: &Observed,
) -> (WorkloadSettings, Vec<Remark>, Vec<Remark>) {
    let given = |key: &str| request.overridden.iter().any(|other| other == key);
    let mut evidence: Vec<_> = observed.evidence.clone();
    let as_given = |key: &String| Remark::new("workload.given", Facts::new().with("key", key));
    evidence.extend(request.overridden.iter().map(as_given));
    let mut missing = Vec::new();
    let from = &request.settings;
    let mut settings = WorkloadSettings {
        profile_id: "inferred".to_owned(),
        description: "inferred from the trace".to_owned(),
        doc_kind: PageKind::Unknown,
        num_pages: if given("num_pages") { from.num_pages } else { 1 },
        batch: from.batch,
        dtype: from.dtype.clone().filter(|_| given("dtype")).or(observed.dtype.map(|dtype| dtype.to_string())),
        crop_mode: None,
        text_tokens: from.text_tokens.filter(|_| given("text_tokens")),
        seq_len: from.seq_len.filter(|_| given("seq_len")),
        max_new_tokens: from.max_new_tokens.filter(|_| given("max_new_tokens")),
        decode_steps: from.decode_steps.filter(|_| given("decode_steps")),
        ..from.clone()
    };
    if !given("batch") {
        match observed.batch {
            Some(batch) => settings.batch = batch,
            None => {
                settings.batch = 1;
                evidence.push(Remark::new("workload.batch-assumed", Facts::new()));
            }
        }
    }
    if model.network.takes_tokens() {
        if settings.seq_len.is_none() && settings.text_tokens.is_none() {
            settings.seq_len = observed.prompt_tokens;
            if settings.seq_len.is_none() {
                let reasons = observed.missing.iter().map(|reason| Facts::new().with("reason", reason.clone()));
                let reasons: Vec<Facts> = reasons.collect();
                let facts = Facts::new().with_known("reasons", (!reasons.is_empty()).then_some(reasons));
                missing.push(Remark::new("workload.no-prompt-length", facts));
            }
        }
        if settings.decode_steps.is_none() && settings.max_new_tokens.is_none() {
            settings.decode_steps = observed.decode_steps;
            if settings.decode_steps.is_none() {
                missing.push(Remark::new("workload.no-decode-steps", Facts::new()));
            }
        }
        if !given("logits") {
            match observed.logits {
                Some(logits) => settings.logits = logits,
                None => {
                    settings.logits = LogitsKind::All;
                    evidence.push(Remark::new("workload.logits-assumed", Facts::new()));
                }
            }
        }
    }
    if model.network.takes_images() {
        missing.extend(pictures(&mut settings, request, observed));
    }
    (settings, evidence, missing)
}

/// Sizes of the views, or what is missing for them.
fn pictures(settings: &mut WorkloadSettings, request: &WorkloadRequest, observed: &Observed) -> Option<Remark> {
    let given = |key: &str| request.overridden.iter().any(|other| other == key);
    let from = &request.settings;
    let grid = from.crop_grid.filter(|_| given("crop_grid"));
    // The global view is one per page and the larger one; tiles are many, and looked at first.
    let global = observed.views.iter().map(|(_, side)| *side).max();
    let tiles = observed.views.iter().find(|(_, side)| Some(*side) != global);
    settings.base_size = from.base_size.filter(|_| given("base_size")).or(global);
    let tile = from.image_size.filter(|_| given("image_size")).or(tiles.map(|(_, side)| *side));
    settings.image_size = tile.or(settings.base_size);
    settings.crop_grid = grid.or(Some([1, 1]));
    match (settings.base_size, tiles, grid) {
        (None, ..) => Some(Remark::new("workload.no-image-size", Facts::new())),
        (_, Some((tiles, _)), None) => Some(Remark::new("workload.no-tile-grid", Facts::new().with("tiles", *tiles))),
        _ => None,
    }
}

/// What is known of the prompt; absent where that is not all of it.
pub(crate) fn input(workload: Option<&Workload>, observed: &Observed) -> Option<InputFacts> {
    if let Some(workload) = workload {
        let image_tokens = workload.image.map_or(0, |image| image.image_tokens * workload.num_pages);
        return Some(InputFacts {
            name: PROMPT.to_owned(),
            width: None,
            height: None,
            crop_grid: workload.image.map(|image| image.crop_grid),
            batch: workload.batch,
            prompt_tokens: workload.seq_len,
            image_tokens,
            generated_tokens: workload.decode_steps + 1,
        });
    }
    // How many tokens a picture takes only its model says.
    let (prompt, steps) = observed.prompt_tokens.zip(observed.decode_steps).filter(|_| observed.views.is_empty())?;
    Some(InputFacts {
        name: PROMPT.to_owned(),
        width: None,
        height: None,
        crop_grid: None,
        batch: observed.batch.unwrap_or(1),
        prompt_tokens: prompt,
        image_tokens: 0,
        generated_tokens: steps + 1,
    })
}
