//! What each step of a server processes: the policies of vLLM V1 and of SGLang on requests as they arrive.
//!
//! Sources: `Scheduler.schedule` in `vllm/v1/core/sched/scheduler.py` and `KVCacheManager.allocate_slots` beside it;
//! `get_next_batch_to_run` in `python/sglang/srt/managers/scheduler.py`, `PrefillAdder` in `schedule_policy.py` and
//! `retract_decode` in `schedule_batch.py`. When a step runs and how long it takes is left to [`super::simulate`].

use std::collections::VecDeque;

use super::blocks::{Blocks, Held};
use super::engine::{Mixing, Rules};

/// What a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Tokens of its prompt.
    pub input: u64,
    /// Tokens of its output, at least one.
    pub output: u64,
    /// Names of the pieces of its prompt that others may share, from the first on.
    pub pieces: Vec<u64>,
}

impl Rules {
    /// Whether a request can ever run: servers refuse one whose tokens exceed their KV cache.
    pub(crate) fn could_hold(&self, asked: &Asked) -> bool {
        let blocks = (asked.input + asked.output).div_ceil(self.block_size.max(1));
        asked.output > 0 && asked.input > 0 && blocks <= self.kv_blocks
    }
}

/// What a step does for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its place in the load.
    pub request: usize,
    /// Tokens that are processed.
    pub tokens: u64,
    /// Tokens processed before.
    pub context: u64,
    /// Whether it gets a token of its output.
    pub emits: bool,
}

/// State of a request.
#[derive(Clone, Debug, Default)]
struct Sequence {
    /// Tokens processed, or in a step that is on its way.
    computed: u64,
    /// Tokens of output, those on their way included.
    made: u64,
    /// Tokens of output that arrived.
    arrived: u64,
    /// Tokens whose keys and values another server has computed, until it is admitted.
    received: u64,
    held: Held,
}

/// The scheduler of one server.
#[derive(Clone, Debug)]
pub struct Scheduler<'a> {
    rules: Rules,
    asked: &'a [Asked],
    sequences: Vec<Sequence>,
    waiting: VecDeque<usize>,
    running: Vec<usize>,
    blocks: Blocks,
    /// Share of the output still to come for which an admission leaves room.
    reserve: f64,
    preemptions: u64,
}

impl<'a> Scheduler<'a> {
    /// For the requests of a load, none of which has arrived.
    pub fn new(rules: Rules, asked: &'a [Asked]) -> Self {
        Self {
            asked,
            sequences: vec![Sequence::default(); asked.len()],
            waiting: VecDeque::new(),
            running: Vec::new(),
            blocks: Blocks::new(rules.kv_blocks, rules.block_size),
            reserve: rules.mixing.reserve()[0],
            preemptions: 0,
            rules,
        }
    }

    /// A request arrives. One that could never run is refused, as servers refuse it.
    pub fn arrive(&mut self, request: usize) -> bool {
        let fits = self.rules.could_hold(&self.asked[request]);
        if fits {
            self.waiting.push_back(request);
        }
        fits
    }

    /// A request arrives whose prompt another server has processed, which also made the first token of its output.
    pub fn receive(&mut self, request: usize) {
        let received = self.asked[request].input;
        self.sequences[request] = Sequence { made: 1, arrived: 1, received, ..Sequence::default() };
        self.waiting.push_back(request);
    }

    /// What a request asks of this server.
    pub(crate) fn asked(&self, request: usize) -> &Asked {
        &self.asked[request]
    }

    /// Requests that wait, and that run.
    pub fn queued(&self) -> [usize; 2] {
        [self.waiting.len(), self.running.len()]
    }

    /// Share of the KV blocks in use.
    pub fn usage(&self) -> f64 {
        self.blocks.usage()
    }

    /// Requests whose keys and values were dropped, so far.
    pub fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// The next step; nothing where no request can go on before the results of steps on their way.
    pub fn schedule(&mut self) -> Vec<Part> {
        match self.rules.mixing {
            Mixing::Together => self.together(),
            Mixing::PromptsFirst { .. } => {
                let prompts = self.prompts();
                if prompts.is_empty() { self.decodes() } else { prompts }
            }
        }
    }

    /// The results of a step arrive. Requests with all of their output leave.
    pub fn finish(&mut self, parts: &[Part]) {
        let mut left = false;
        for part in parts.iter().filter(|part| part.emits) {
            let sequence = &mut self.sequences[part.request];
            sequence.arrived += 1;
            if sequence.arrived == self.asked[part.request].output {
                self.blocks.release(&mut sequence.held);
                left = true;
            }
        }
        if left {
            let (asked, sequences) = (self.asked, &self.sequences);
            self.running.retain(|request| sequences[*request].arrived < asked[*request].output);
        }
    }

    /// vLLM: requests that run come first, each with the tokens it lacks; prompts get what is left of the budget.
    fn together(&mut self) -> Vec<Part> {
        let mut budget = self.rules.max_num_batched_tokens;
        let mut parts = Vec::with_capacity(self.running.len() + 1);
        let (mut at, before) = (0, self.preemptions);
        while at < self.running.len() && budget > 0 {
            let request = self.running[at];
            at += 1;
            let tokens = self.lacking(request).min(budget);
            if tokens == 0 {
                continue;
            }
            if !self.room(request, tokens) {
                break;
            }
            budget -= tokens;
            parts.push(self.advance(request, tokens));
        }
        if self.preemptions > before {
            return parts;
        }
        while budget > 0 && self.running.len() < self.rules.max_num_seqs as usize {
            let Some(&request) = self.waiting.front() else { break };
            // The whole prompt has to fit, though a step may process a part of it.
            if !self.admit(request, 0) {
                break;
            }
            let tokens = self.lacking(request).min(budget);
            self.give(request, tokens);
            budget -= tokens;
            parts.push(self.advance(request, tokens));
        }
        parts
    }

    /// SGLang: a step of prompts alone, in chunks, the one that was begun first.
    fn prompts(&mut self) -> Vec<Part> {
        let mut budget = self.rules.max_num_batched_tokens;
        let mut parts = Vec::new();
        let begun = self.running.iter().copied().find(|request| self.lacking(*request) > 1);
        if let Some(request) = begun {
            let tokens = self.lacking(request).min(budget);
            if self.give(request, tokens) {
                budget -= tokens;
                parts.push(self.advance(request, tokens));
            }
        }
        while budget > 0 && self.running.len() < self.rules.max_num_seqs as usize {
            let Some(&request) = self.waiting.front() else { break };
            let to_come = |request: &usize| self.asked[*request].output - self.sequences[*request].made;
            let decodes = self.sequences[request].received > 0;
            let reserved = self.running.iter().chain([&request]).map(to_come).sum::<u64>() as f64 * self.reserve;
            let alone = self.running.is_empty();
            if !self.admit(request, if alone { 0 } else { reserved as u64 }) {
                break;
            }
            let tokens = self.lacking(request).min(budget);
            self.give(request, tokens);
            // What another server has prefilled goes on with those that decode.
            if !decodes {
                budget -= tokens;
                parts.push(self.advance(request, tokens));
            }
        }
        parts
    }

    /// SGLang: one token for every request that runs.
    fn decodes(&mut self) -> Vec<Part> {
        let [most, least, steps] = self.rules.mixing.reserve();
        self.reserve = (self.reserve - (most - least) / steps).max(least);
        let mut parts = Vec::with_capacity(self.running.len());
        let mut at = 0;
        while let Some(&request) = self.running.get(at) {
            at += 1;
            if self.lacking(request) != 1 {
                continue;
            }
            if !self.blocks.fits(&self.sequences[request].held, self.sequences[request].computed + 1) {
                self.reserve = most;
            }
            if !self.room(request, 1) {
                break;
            }
            parts.push(self.advance(request, 1));
        }
        parts
    }

    /// Tokens that a request has not had processed.
    fn lacking(&self, request: usize) -> u64 {
        let (asked, sequence) = (&self.asked[request], &self.sequences[request]);
        if sequence.made == asked.output { 0 } else { asked.input + sequence.made - sequence.computed }
    }

    /// Blocks for so many more tokens, where there are enough.
    fn give(&mut self, request: usize, tokens: u64) -> bool {
        let sequence = &mut self.sequences[request];
        self.blocks.grow(&mut sequence.held, sequence.computed + tokens)
    }

    /// The same, taken from the request that came last where there are none; `false` where that is this one.
    fn room(&mut self, request: usize, tokens: u64) -> bool {
        loop {
            if self.give(request, tokens) {
                return true;
            }
            let goes_on = |at: &usize| self.sequences[self.running[*at]].made < self.asked[self.running[*at]].output;
            let Some(last) = (0..self.running.len()).rev().find(goes_on) else { return false };
            let victim = self.running.remove(last);
            let sequence = &mut self.sequences[victim];
            if self.rules.mixing == Mixing::Together {
                self.blocks.drop_sequence(victim, &mut sequence.held, sequence.computed);
            } else {
                self.blocks.release(&mut sequence.held);
            }
            sequence.computed = 0;
            self.preemptions += 1;
            self.waiting.push_front(victim);
            if victim == request {
                return false;
            }
        }
    }

    /// Lets the first of those that wait run where all it needs now fits beside `reserved` tokens.
    fn admit(&mut self, request: usize, reserved: u64) -> bool {
        let (asked, sequence) = (&self.asked[request], &mut self.sequences[request]);
        let piece = self.rules.piece;
        let needed = asked.input + sequence.made;
        // The last token of a prompt is always processed: its logits are the output's first token.
        let cached = match sequence.received {
            0 => self.blocks.cached(&asked.pieces, piece).min((needed - 1) / piece.max(1) * piece),
            _ => 0,
        };
        let mut held = Held::default();
        self.blocks.share(&mut held, &asked.pieces, piece, cached);
        if !self.blocks.fits(&held, needed + reserved) {
            self.blocks.release(&mut held);
            return false;
        }
        let found = self.blocks.take_back(request, &mut held, needed - 1);
        sequence.held = held;
        sequence.computed = found.max(std::mem::take(&mut sequence.received));
        self.waiting.pop_front();
        self.running.push(request);
        true
    }

    /// Processes tokens of a request that has the blocks for them.
    fn advance(&mut self, request: usize, tokens: u64) -> Part {
        let (asked, sequence) = (&self.asked[request], &mut self.sequences[request]);
        let context = sequence.computed;
        sequence.computed += tokens;
        let emits = sequence.computed == asked.input + sequence.made;
        sequence.made += u64::from(emits);
        if context < asked.input {
            self.blocks.keep(&mut sequence.held, &asked.pieces, self.rules.piece, sequence.computed.min(asked.input));
        }
        Part { request, tokens, context, emits }
    }
}
