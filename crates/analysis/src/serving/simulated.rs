//! A server in miniature, with a scheduler like vLLM's: what it does is known, so that the join can be checked against it.

use std::collections::VecDeque;

use types::{Nanos, Random, RequestClock, RequestLog, RequestRecord, RequestSource, RequestWork};

use super::server_steps::{Group, ServerStep, ServerSteps};
use crate::time::{Span, Spans};

/// How the server and its client behave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    pub(super) requests: usize,
    /// Mean time between two requests.
    pub(super) interval_us: i64,
    /// Tokens a step may process.
    pub(super) budget: u64,
    /// Tokens the cache holds.
    pub(super) cache: u64,
    /// What every output takes to arrive at least, and how much more it may take.
    pub(super) way_back_us: (i64, i64),
    /// Longest prompt and longest output.
    pub(super) longest: (u64, u64),
    pub(super) seed: u64,
    /// Whether nothing decodes while prompts are processed.
    pub(super) apart: bool,
}

/// What happened.
pub(super) struct Simulated {
    pub(super) steps: ServerSteps,
    pub(super) log: RequestLog,
    /// Of every request: place of the step, tokens, and what they are.
    pub(super) truth: Vec<Vec<(usize, u64, RequestWork)>>,
    pub(super) preemptions: usize,
}

struct Sequence {
    request: usize,
    /// Tokens whose keys and values are in the cache.
    cached: u64,
    prompt: u64,
    output: u64,
    made: u64,
}

impl Sequence {
    fn wanted(&self) -> u64 {
        self.prompt + self.made - self.cached
    }
}

impl Server {
    pub(super) fn run(&self) -> Simulated {
        let mut dice = Random::new(self.seed);
        let mut below = |end: u64| dice.below(end.max(1) as usize) as u64;
        let mut due = 1_000_000;
        let mut waiting: VecDeque<(i64, Sequence)> = VecDeque::new();
        let mut records = Vec::new();
        for request in 0..self.requests {
            due += below(2 * self.interval_us as u64 * 1_000) as i64;
            let prompt = 16 + below(self.longest.0);
            let output = 2 + below(self.longest.1);
            waiting.push_back((due + 2_000_000, Sequence { request, cached: 0, prompt, output, made: 0 }));
            records.push(RequestRecord {
                due_ns: Some(Nanos::new(due)),
                input_tokens: Some(prompt),
                output_tokens: Some(output),
                ..RequestRecord::default()
            });
        }
        let (mut running, mut truth): (Vec<Sequence>, _) = (Vec::new(), vec![Vec::new(); self.requests]);
        let (mut list, mut now, mut preemptions) = (Vec::new(), 0_i64, 0);
        while !running.is_empty() || !waiting.is_empty() {
            if running.is_empty() {
                now = now.max(waiting.front().map_or(now, |(at, _)| *at));
            }
            // Decoding sequences first; without room in the cache the youngest has to go.
            while running.iter().map(|one| one.cached + 1).sum::<u64>() > self.cache && running.len() > 1 {
                let mut dropped = running.pop().expect("more than one");
                dropped.cached = 0;
                preemptions += 1;
                waiting.push_front((now, dropped));
            }
            let mut budget = self.budget;
            let mut chosen: Vec<u64> = Vec::new();
            let is_prompt = |sequence: &Sequence| sequence.wanted() > 1 || sequence.made == 0;
            let arrives = waiting.front().is_some_and(|(at, _)| *at <= now);
            let only_prompts = self.apart && (arrives || running.iter().any(is_prompt));
            for sequence in &running {
                let takes_part = !only_prompts || is_prompt(sequence);
                let tokens = if takes_part { sequence.wanted().min(budget) } else { 0 };
                budget -= tokens;
                chosen.push(tokens);
            }
            while budget > 0 && waiting.front().is_some_and(|(at, _)| *at <= now) {
                let held: u64 = running.iter().zip(&chosen).map(|(one, tokens)| one.cached + tokens + 2).sum();
                if held + waiting[0].1.wanted() + 2 > self.cache && !running.is_empty() {
                    break;
                }
                let (_, sequence) = waiting.pop_front().expect("one is there");
                let tokens = sequence.wanted().min(budget);
                budget -= tokens;
                chosen.push(tokens);
                running.push(sequence);
            }
            let mut step = ServerStep {
                index: list.len() as u64,
                host: Span::new(Nanos::new(now), Nanos::new(now)),
                device: Span::new(Nanos::ZERO, Nanos::ZERO),
                context: Group::default(),
                generation: Group::default(),
            };
            let mut outputs = Vec::new();
            for (sequence, tokens) in running.iter_mut().zip(&chosen).filter(|(_, tokens)| **tokens > 0) {
                let is_decode = sequence.wanted() == 1 && sequence.made > 0;
                let group = if is_decode { &mut step.generation } else { &mut step.context };
                group.sequences += 1;
                group.tokens += tokens;
                let work = match (is_decode, sequence.made > 0) {
                    (true, _) => RequestWork::Decode,
                    (false, false) => RequestWork::Prefill,
                    (false, true) => RequestWork::Recompute,
                };
                truth[sequence.request].push((list.len(), *tokens, work));
                sequence.cached += tokens;
                if sequence.wanted() == 0 {
                    sequence.made += 1;
                    outputs.push(sequence.request);
                }
            }
            let takes = 3_000_000 + 20_000 * step.context.tokens as i64 + 10_000 * step.generation.sequences as i64;
            let end = now + 300_000 + takes;
            step.device = Span::new(Nanos::new(now + 300_000), Nanos::new(end));
            for request in outputs {
                let way = self.way_back_us.0 + below(self.way_back_us.1 as u64 + 1) as i64;
                let record = &mut records[request];
                let arrives = Nanos::new(end + way * 1_000) - record.due_ns.expect("every request is due");
                record.chunks_ns.push(arrives.max(record.chunks_ns.last().copied().unwrap_or_default()));
            }
            running.retain(|sequence| sequence.made < sequence.output);
            list.push(step);
            now = end;
        }
        let busy = Spans::union(list.iter().map(|step| step.device));
        let log = RequestLog {
            source: RequestSource::VllmBench,
            clock: RequestClock::Monotonic,
            requests: records,
            every_chunk: true,
            duration_ns: None,
        };
        Simulated { steps: ServerSteps { list, busy, unannotated: false }, log, truth, preemptions }
    }
}
