//! One inference: the stages timed, the operations recorded when asked.

use std::collections::BTreeMap;

use engine::{Forward, Generation, PromptData, Sampler, Session, Tokenizer, Trace, nvtx};
use network::{Model, Module};
use types::{Nanos, RoutingCounts, Sample, Stage, UserError};

use crate::runner::error::wrong_feed;
use crate::runner::inputs::prepare::{ModelInput, PreparedInput};
use crate::runner::settings::DecodingSettings;

/// Tokens of one answer whose logits are kept, at most.
const MOST_LOGITS: usize = 32;

/// Which run of which input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) epoch: u32,
    pub(crate) repeat: u32,
    pub(crate) warmup: bool,
}

/// What one run gave.
#[derive(Default)]
pub(crate) struct Inference {
    /// Times of its stages.
    pub(crate) samples: Vec<Sample>,
    /// Time of the whole of it, taken apart from the stages.
    pub(crate) wall: Nanos,
    /// What was generated.
    pub(crate) tokens: Vec<i64>,
    /// Logits of the last position that each token was chosen from, when kept.
    pub(crate) logits: Vec<Vec<f32>>,
    /// Operations of prefill, when traced.
    pub(crate) prefill: Trace,
    /// Operations of decode, when traced.
    pub(crate) decode: Trace,
    /// Where experts were used.
    pub(crate) routing: Vec<RoutingCounts>,
}

/// Runs inputs on one session.
pub(crate) struct Runner<'a> {
    pub(crate) session: &'a Session,
    /// For networks that generate.
    pub(crate) writer: Option<Writer<'a>>,
    pub(crate) last_logits_only: bool,
}

/// What turns logits into text.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) tokenizer: &'a Tokenizer,
    pub(crate) decoding: &'a DecodingSettings,
}

/// How far an inference generates, and what is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// To the end of the text; the tokens.
    Text,
    /// As many tokens as there may be, so that two runs do the same work.
    Whole,
    /// The same, with its logits.
    WholeWithLogits,
}

/// Settings of one inference.
pub(crate) struct Order<'a> {
    pub(crate) turn: Turn,
    pub(crate) traced: bool,
    /// How far it generates, and what is kept of it.
    pub(crate) answer: Answer,
    /// Told when a stage starts.
    pub(crate) begins: &'a mut dyn FnMut(Stage),
}

impl Runner<'_> {
    /// One inference from a prepared input to the last token.
    pub(crate) fn infer(&self, input: &PreparedInput, order: Order<'_>) -> Result<Inference, UserError> {
        match (&input.fed, self.writer) {
            (ModelInput::Prompt(prompt), Some(writer)) => self.generate(input, prompt, writer, order),
            (ModelInput::Pictures(pictures), _) => {
                let mut run = self.session.start(0);
                run.set_tracing(order.traced);
                (order.begins)(Stage::Prefill);
                let begin = self.session.now();
                let forward = run.classify(pictures)?;
                let wall = self.session.now() - begin;
                let samples = samples(&input.facts.name, order.turn, &forward, None, self.session.model());
                let logits = match order.answer {
                    Answer::WholeWithLogits => vec![forward.last_logits()?],
                    Answer::Text | Answer::Whole => Vec::new(),
                };
                Ok(Inference { samples, wall, logits, prefill: forward.trace, ..Inference::default() })
            }
            (ModelInput::Prompt(_), None) => Err(wrong_feed(&input.facts.name)),
        }
    }

    fn generate(
        &self,
        input: &PreparedInput,
        prompt: &PromptData,
        writer: Writer<'_>,
        order: Order<'_>,
    ) -> Result<Inference, UserError> {
        let most = writer.decoding.max_new_tokens.max(1) as usize;
        let mut run = self.session.start_batch(prompt.ids.len() + most, writer.decoding.batch as usize);
        run.set_tracing(order.traced);
        let mut sampler = Sampler::new(writer.decoding.sampling())?;
        (order.begins)(Stage::Prefill);
        let begin = self.session.now();
        let prefill = run.prefill(prompt, self.last_logits_only)?;
        let mut routing = self.routing(&mut run, Stage::Prefill);
        let mut history = prompt.ids.clone();
        let mut tokens = Vec::with_capacity(most);
        (order.begins)(Stage::Decode);
        // The first token is chosen from what prefill gave; choosing it belongs to decode, which starts here.
        let range = nvtx::Range::push("decode_all");
        let start = self.session.now();
        let mut traces = Trace::default();
        let mut forward: Option<Forward> = None;
        let mut kept = Vec::new();
        loop {
            let logits = forward.as_ref().unwrap_or(&prefill).last_logits()?;
            let token = sampler.next(&logits, &history)?;
            tokens.push(token);
            history.push(token);
            if order.answer == Answer::WholeWithLogits && kept.len() < MOST_LOGITS {
                kept.push(logits);
            }
            if tokens.len() >= most || order.answer == Answer::Text && writer.tokenizer.is_end(token) {
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
        routing.extend(self.routing(&mut run, Stage::Decode));
        let samples = samples(&input.facts.name, order.turn, &prefill, Some(decode), self.session.model());
        Ok(Inference { samples, wall, tokens, logits: kept, prefill: prefill.trace, decode: traces, routing })
    }

    /// Where tokens were sent since the last call.
    fn routing(&self, run: &mut Generation<'_>, stage: Stage) -> Vec<RoutingCounts> {
        let blueprint = self.session.model().blueprint();
        let counted: BTreeMap<Module, Vec<u64>> = run.take_routed();
        let counts = |(module, tokens_per_expert)| RoutingCounts {
            path: blueprint.module(module).path.clone(),
            stage,
            tokens_per_expert,
        };
        counted.into_iter().map(counts).collect()
    }

    /// Text of generated tokens; empty for networks that generate none.
    pub(crate) fn text(&self, tokens: &[i64]) -> Result<String, UserError> {
        self.writer.map_or(Ok(String::new()), |writer| writer.tokenizer.decode(tokens))
    }
}

fn samples(input: &str, turn: Turn, prefill: &Forward, decode: Option<Nanos>, model: &Model) -> Vec<Sample> {
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
    samples.extend(decode.map(|decode| sample(Stage::Decode, decode)));
    samples
}
