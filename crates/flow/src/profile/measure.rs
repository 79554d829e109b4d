//! The passes of a profile: uninstrumented runs for the times, one instrumented run for the operators.

use engine::image::{self, ImageSettings};
use engine::{Forward, PromptData, Sampler, SamplingSettings, Session, Tokenizer, Trace, nvtx, prompt};
use network::Model;
use types::{InputFacts, Nanos, Sample, Stage};

use super::inputs::Input;
use super::{InferSettings, ProfileError};

/// One input, prepared: everything before the first stage is done.
pub(super) struct Prepared {
    pub(super) facts: InputFacts,
    /// Sides of the global view and of a tile, as they were cut.
    pub(super) sides: [u64; 2],
    prompt: PromptData,
}

/// Which run of which input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) epoch: u32,
    pub(super) repeat: u32,
    pub(super) warmup: bool,
}

/// What one run gave.
pub(super) struct Inference {
    /// Times of its stages.
    pub(super) samples: Vec<Sample>,
    /// Time of the whole of it, taken apart from the stages.
    pub(super) wall: Nanos,
    /// What was generated.
    pub(super) tokens: Vec<i64>,
    /// Operations of prefill, when traced.
    pub(super) prefill: Trace,
    /// Operations of decode, when traced.
    pub(super) decode: Trace,
}

/// Runs inputs on one session.
pub(super) struct Runner<'a> {
    pub(super) session: &'a Session,
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) infer: &'a InferSettings,
    pub(super) last_logits_only: bool,
}

impl Runner<'_> {
    /// Decodes, cuts, normalises and tokenises one input.
    pub(super) fn prepare(&self, input: &Input) -> Result<Prepared, ProfileError> {
        let content = input.content.as_deref().unwrap_or_default();
        let picture = image::decode(&input.facts.name, content)?;
        let page = image::prepare(&picture, &self.infer.image());
        let crop_grid = page.crop_grid;
        let tile = page.tiles.as_ref().map_or(self.infer.image_size, |tiles| tiles.side as u64);
        let sides = [page.global.side as u64, tile];
        let prompt = prompt::build(self.tokenizer, &self.infer.prompt, Some(page))?;
        let facts = InputFacts {
            name: input.facts.name.clone(),
            width: input.facts.width,
            height: input.facts.height,
            crop_grid: Some(crop_grid),
            prompt_tokens: prompt.ids.len() as u64,
            image_tokens: prompt.image_mask.iter().filter(|masked| **masked).count() as u64,
            generated_tokens: 0,
        };
        Ok(Prepared { facts, sides, prompt })
    }

    /// One inference from a prepared prompt to the last token.
    pub(super) fn infer(&self, input: &Prepared, turn: Turn, traced: bool) -> Result<Inference, ProfileError> {
        let most = self.infer.max_new_tokens.max(1) as usize;
        let mut run = self.session.begin(input.prompt.ids.len() + most);
        run.set_tracing(traced);
        let mut sampler = Sampler::new(self.infer.sampling())?;
        let begin = self.session.now();
        let prefill = run.prefill(&input.prompt, self.last_logits_only)?;
        let mut history = input.prompt.ids.clone();
        let mut tokens = Vec::with_capacity(most);
        // The first token is chosen from what prefill gave; choosing it belongs to decode, which begins here.
        let range = nvtx::Range::push("decode_all");
        let start = self.session.now();
        let mut traces = Trace::default();
        let mut forward: Option<Forward> = None;
        loop {
            let logits = forward.as_ref().unwrap_or(&prefill).last_logits()?;
            let token = sampler.next(&logits, &history)?;
            tokens.push(token);
            history.push(token);
            if tokens.len() >= most || self.tokenizer.is_end(token) {
                break;
            }
            let mut step = run.step(token)?;
            let trace = std::mem::take(&mut step.trace);
            traces.ops.extend(trace.ops);
            traces.ranges.extend(trace.ranges);
            forward = Some(step);
        }
        let decode = self.session.now() - start;
        drop(range);
        let wall = self.session.now() - begin;
        let samples = samples(&input.facts.name, turn, &prefill, decode, self.session.model());
        Ok(Inference { samples, wall, tokens, prefill: prefill.trace, decode: traces })
    }

    /// Text of generated tokens.
    pub(super) fn text(&self, tokens: &[i64]) -> Result<String, ProfileError> {
        Ok(self.tokenizer.decode(tokens)?)
    }
}

fn samples(input: &str, turn: Turn, prefill: &Forward, decode: Nanos, model: &Model) -> Vec<Sample> {
    let sample = |stage: Stage, wall_ns: Nanos| Sample {
        stage,
        input: Some(input.to_owned()),
        epoch: turn.epoch,
        repeat: turn.repeat,
        rank: None,
        warmup: turn.warmup,
        wall_ns,
    };
    let part = |stage: Stage| -> Nanos {
        let ranges = prefill.trace.ranges.iter().filter(|range| range.name == stage.name());
        ranges.map(|range| range.duration).sum()
    };
    let mut samples = vec![sample(Stage::Prefill, prefill.duration)];
    if !model.vision_stages().is_empty() {
        let parts: Vec<_> = model.vision_stages().iter().map(|stage| (*stage, part(*stage))).collect();
        samples.push(sample(Stage::Vision, parts.iter().map(|(_, time)| *time).sum()));
        samples.extend(parts.into_iter().map(|(stage, time)| sample(stage, time)));
    }
    samples.push(sample(Stage::Decode, decode));
    samples
}

impl InferSettings {
    /// How pages are cut.
    pub(super) fn image(&self) -> ImageSettings {
        ImageSettings {
            base_size: self.base_size,
            image_size: self.image_size,
            crop_mode: self.crop_mode,
            min_tiles: self.min_tiles,
            max_tiles: self.max_tiles,
        }
    }

    /// How tokens are chosen.
    fn sampling(&self) -> SamplingSettings {
        SamplingSettings {
            temperature: self.temperature,
            top_p: self.top_p,
            no_repeat_ngram_size: usize::try_from(self.no_repeat_ngram_size).unwrap_or(usize::MAX),
            seed: 0,
        }
    }
}
