//! What a driver is asked: the inputs prepared here, so that every engine is fed the same.

use std::path::{Path, PathBuf};

use collect::tool::torch::{Decoding, DriverRequest, InputRequest, Page, Profiler, View};
use engine::{ImageBatch, PromptData, Tokenizer};
use types::UserError;

use super::model::{TorchModel, TorchSource};
use super::{ProfilerSettings, TorchRequest};
use crate::runner::error::wrong_feed;
use crate::runner::inputs::plan::plan;
use crate::runner::inputs::prepare::{self, ModelInput, PreparedInput};
use crate::runner::inputs::{self, Content, Inputs};
use crate::runner::settings::InferSettings;
use crate::runner::tries::TrySettings;

/// Tokens of a prompt for a factory that brings no inputs, unless told otherwise.
const RANDOM_TOKENS: u64 = 128;

/// Inputs, prepared and in the driver's words.
pub(crate) struct Question {
    pub(crate) request: DriverRequest,
    pub(crate) prepared: Vec<PreparedInput>,
    pub(crate) tokenizer: Option<Tokenizer>,
    /// Whether the tokenizer is the model's own.
    pub(crate) own_tokenizer: bool,
}

/// Prepares everything; files of pixels go to `scratch`.
pub(crate) fn ask(
    model: &TorchModel,
    request: &TorchRequest,
    inputs: &mut Inputs,
    scratch: &Path,
    trace: Option<PathBuf>,
) -> Result<Question, UserError> {
    let settings = &request.torch;
    let vocabulary = model.vocabulary.unwrap_or_default();
    let own = model.tokenizer_folder().map(Tokenizer::from_folder).transpose()?;
    let own_tokenizer = own.is_some();
    let tokenizer = match (own, model.vocabulary) {
        (Some(own), _) => Some(own),
        (None, Some(vocabulary)) => Some(Tokenizer::bytes(vocabulary)?),
        (None, None) => None,
    };
    let factory = matches!(model.source, TorchSource::Factory(_));
    let sampling = &request.profile.dataset.sampling;
    let infer = &request.profile.infer;
    let mut prepared = Vec::new();
    let (given, epochs) = if factory {
        let name = random_prompt(infer);
        inputs.all.truncate(0);
        inputs.all.push(inputs::Input::made(name.0.clone(), name.1));
        inputs.all[0].used = true;
        (
            vec![InputRequest::Made { name: name.0, batch: infer.batch(), tokens: name.1, seed: 0 }],
            vec![vec![0]; sampling.epochs as usize],
        )
    } else {
        let plan = plan(sampling, inputs, |input| prepare::prepare(input, infer, tokenizer.as_ref(), vocabulary))?;
        let (epochs, ready) = plan.numbered();
        let channels = picture_channels(model);
        let given = ready.iter().enumerate();
        let given = given.map(|(number, one)| given_input(one, number, scratch, infer, channels));
        let given = given.collect::<Result<Vec<_>, _>>()?;
        prepared = ready;
        (given, epochs)
    };
    let decoding = infer.decoding().map(|decoding| Decoding {
        max_new_tokens: decoding.max_new_tokens.max(1),
        end_tokens: ends(tokenizer.as_ref(), vocabulary),
    });
    let passes = infer.passes();
    let request = DriverRequest {
        protocol: collect::tool::torch::PROTOCOL,
        model: model.given(&request.profile.weights, settings, scratch)?,
        device: request.profile.device.clone(),
        // Ranges cost time; the profiled pass has its own.
        nvtx: false,
        module_ranges: settings.module_ranges,
        decoding,
        last_logits_only: request.profile.infer.last_logits_only(),
        check_flops: settings.check_flops,
        inputs: given,
        epochs,
        warmup_rounds: sampling.warmup_rounds.saturating_mul(passes),
        repeats: sampling.repeats.saturating_mul(passes),
        profiler: trace.map(|trace| Profiler {
            settings: ProfilerSettings {
                active_rounds: settings.profiler.active_rounds.max(1),
                ..settings.profiler.clone()
            },
            trace,
        }),
        tries: request.profile.tries.as_ref().map(TrySettings::for_driver),
    };
    Ok(Question { request, prepared, tokenizer, own_tokenizer })
}

fn random_prompt(infer: &InferSettings) -> (String, u64) {
    let tokens = match infer {
        InferSettings::Prompts(prompt, _) => prompt.seq_len.unwrap_or(RANDOM_TOKENS),
        _ => RANDOM_TOKENS,
    };
    ("inputs of the factory".to_owned(), tokens)
}

fn picture_channels(model: &TorchModel) -> u64 {
    match &model.source {
        TorchSource::Resnet(sizes) => sizes.in_channels,
        _ => 3,
    }
}

/// Tokens that end a text. A synthetic vocabulary has one too.
fn ends(tokenizer: Option<&Tokenizer>, vocabulary: u64) -> Vec<i64> {
    let Some(tokenizer) = tokenizer else { return Vec::new() };
    let all = 0..i64::try_from(vocabulary).unwrap_or(i64::MAX);
    all.filter(|token| tokenizer.is_end(*token)).collect()
}

fn given_input(
    input: &PreparedInput,
    number: usize,
    scratch: &Path,
    infer: &InferSettings,
    channels: u64,
) -> Result<InputRequest, UserError> {
    let name = input.facts.name.clone();
    match (&input.fed, infer) {
        (ModelInput::Prompt(PromptData { ids, image_mask, images, .. }), _) => {
            let view =
                |kind: &str, pictures: &ImageBatch| keep(&scratch.join(format!("{number}-{kind}.f32")), pictures);
            let page = match images {
                None => None,
                Some(page) => Some(Page {
                    width: input.facts.width.unwrap_or_default(),
                    height: input.facts.height.unwrap_or_default(),
                    crop_grid: page.crop_grid,
                    global: view("page", &page.global)?,
                    tiles: page.tiles.as_ref().map(|tiles| view("tiles", tiles)).transpose()?,
                }),
            };
            let batch = infer.batch();
            Ok(InputRequest::Tokens { name, ids: ids.clone(), batch, image_mask: image_mask.clone(), page })
        }
        (ModelInput::Pictures(pictures), InferSettings::Pictures(settings)) => Ok(InputRequest::Pictures {
            name,
            count: pictures.count as u64,
            channels,
            side: pictures.side as u64,
            seed: settings.seed,
        }),
        (ModelInput::Pictures(_), _) => Err(wrong_feed(&name)),
    }
}

/// Writes pixels down as the driver reads them.
fn keep(file: &Path, pictures: &ImageBatch) -> Result<View, UserError> {
    let bytes: Vec<u8> = pictures.pixels.iter().flat_map(|pixel| pixel.to_ne_bytes()).collect();
    std::fs::write(file, bytes).map_err(UserError::unreadable(file))?;
    Ok(View { file: file.to_owned(), count: pictures.count as u64, side: pictures.side as u64 })
}

impl inputs::Input {
    /// What a factory brings along.
    fn made(name: String, tokens: u64) -> Self {
        Self::new(name, "factory".to_owned(), Content::Tokens { count: tokens, seed: 0 })
    }
}
