//! A server in miniature, with a scheduler like vLLM's: what it does is known, so that the join can be checked against it.

use types::{Nanos, Random, RequestClock, RequestLog, RequestRecord, RequestSource, RequestWork};

use super::server_steps::{Group, ServerStep, ServerSteps};
use crate::time::{Span, Spans};

/// What a request got in a step: the step's place, its tokens, and what they are where that is known.
pub(super) type TruePart = (usize, u64, Option<RequestWork>);

/// How the server and its client behave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    pub(super) requests: usize,
    /// Mean time between two requests.
    pub(super) interval_us: i64,
    /// Tokens that a step may process.
    pub(super) budget: u64,
    /// Sequences that a step may hold.
    pub(super) seats: usize,
    /// Tokens that the cache holds.
    pub(super) cache: u64,
    /// Percent of requests of whose prompt up to nine tenths are in the cache.
    pub(super) prefixes: u64,
    /// Minimum time that every output takes to arrive, and how much more it may take.
    pub(super) way_back_us: (i64, i64),
    /// Longest prompt and longest output.
    pub(super) longest: (u64, u64),
    pub(super) seed: u64,
    /// Whether nothing decodes while prompts are processed.
    pub(super) apart: bool,
    /// Whether short prompts overtake long ones.
    pub(super) shortest_first: bool,
    /// Whether a step is chosen while the one before it runs.
    pub(super) ahead: bool,
    /// Servers behind one address; the steps are those of the first.
    pub(super) replicas: usize,
    /// Tokens in a chunk of output, the first chunk apart.
    pub(super) interval: u64,
    /// Tokens drafted per sequence and step.
    pub(super) drafts: u64,
    /// Percent of requests that another client sends.
    pub(super) strangers: u64,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            requests: 120,
            interval_us: 25_000,
            budget: 2_048,
            seats: 256,
            cache: 1_000_000,
            prefixes: 0,
            way_back_us: (1_100, 900),
            longest: (900, 60),
            seed: 7,
            apart: false,
            shortest_first: false,
            ahead: false,
            replicas: 1,
            interval: 1,
            drafts: 0,
            strangers: 0,
        }
    }
}

/// What happened.
pub(super) struct Simulated {
    pub(super) steps: ServerSteps,
    pub(super) log: RequestLog,
    /// Of every request: place of the step, tokens, and what they are.
    pub(super) truth: Vec<Vec<TruePart>>,
    pub(super) preemptions: usize,
}

#[derive(Clone)]
struct Sequence {
    request: usize,
    arrives: i64,
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

    fn is_prompt(&self) -> bool {
        self.made == 0 || self.wanted() > 1
    }
}

impl Server {
    pub(super) fn run(&self) -> Simulated {
        let mut dice = Random::new(self.seed);
        let mut below = |end: u64| dice.below(end.max(1) as usize) as u64;
        let (mut due, mut records, mut servers) = (1_000_000, Vec::new(), vec![Vec::new(); self.replicas]);
        for request in 0..self.requests {
            due += below(2 * self.interval_us as u64 * 1_000) as i64;
            let (prompt, output) = (16 + below(self.longest.0), 2 + below(self.longest.1));
            let cached = if below(100) < self.prefixes { below(prompt * 9 / 10) / 16 * 16 } else { 0 };
            let sequence = Sequence { request, arrives: due + 2_000_000, cached, prompt, output, made: 0 };
            servers[below(self.replicas as u64) as usize].push(sequence);
            records.push(RequestRecord {
                due_ns: Some(Nanos::new(due)),
                input_tokens: Some(prompt),
                output_tokens: Some(output),
                ..RequestRecord::default()
            });
        }
        let mut truth = vec![Vec::new(); self.requests];
        let mut lists = Vec::new();
        let mut preemptions = 0;
        for waiting in servers {
            let mut run = Run { server: self, waiting, running: Vec::new(), list: Vec::new(), preemptions: 0 };
            let mut of_server = vec![Vec::new(); self.requests];
            run.work(&mut below, &mut records, &mut of_server);
            if lists.is_empty() {
                truth = of_server;
            }
            preemptions += run.preemptions;
            lists.push(run.list);
        }
        let list = lists.swap_remove(0);
        // Those of strangers are in the steps, and not in the log.
        let is_known: Vec<bool> = (0..self.requests).map(|_| below(100) >= self.strangers).collect();
        let mut known = is_known.iter();
        truth.retain(|_| *known.next().expect("one each"));
        let mut known = is_known.iter();
        records.retain(|_| *known.next().expect("one each"));
        let busy = Spans::union(list.iter().map(|step| step.device));
        let log = RequestLog {
            source: RequestSource::VllmBench,
            clock: RequestClock::Monotonic,
            requests: records,
            every_chunk: true,
            duration_ns: None,
        };
        Simulated { steps: ServerSteps { list, busy, ..ServerSteps::default() }, log, truth, preemptions }
    }
}

/// One server at work.
struct Run<'a> {
    server: &'a Server,
    waiting: Vec<Sequence>,
    running: Vec<Sequence>,
    list: Vec<ServerStep>,
    preemptions: usize,
}

impl Run<'_> {
    fn work(&mut self, below: &mut impl FnMut(u64) -> u64, records: &mut [RequestRecord], truth: &mut [Vec<TruePart>]) {
        let (mut now, mut free) = (0, 0);
        while !self.running.is_empty() || !self.waiting.is_empty() {
            if self.running.is_empty() {
                now = self.waiting.iter().map(|one| one.arrives).min().map_or(now, |first| first.max(now));
            }
            let tokens = self.chosen(now);
            let mut step = ServerStep {
                index: self.list.len() as u64,
                host: Span::new(Nanos::new(now), Nanos::new(now)),
                device: Span::new(Nanos::ZERO, Nanos::ZERO),
                context: Group::default(),
                generation: Group::default(),
            };
            let mut outputs = Vec::new();
            for (sequence, tokens) in self.running.iter_mut().zip(tokens).filter(|(_, tokens)| *tokens > 0) {
                let is_prompt = sequence.is_prompt();
                let drafts = if is_prompt { 0 } else { self.server.drafts };
                let group = if is_prompt { &mut step.context } else { &mut step.generation };
                group.sequences += 1;
                group.tokens += tokens + drafts;
                let work = match (is_prompt, sequence.made > 0) {
                    (false, _) => RequestWork::Decode,
                    (true, false) => RequestWork::Prefill,
                    (true, true) => RequestWork::Recompute,
                };
                truth[sequence.request].push((self.list.len(), tokens + drafts, Some(work)));
                sequence.cached += tokens;
                if sequence.wanted() == 0 {
                    let accepted = (1 + below(drafts + 1)).min(sequence.output - sequence.made);
                    sequence.made += accepted;
                    sequence.cached += accepted - 1;
                    let is_sent = sequence.made == accepted
                        || sequence.made == sequence.output
                        || (sequence.made - accepted - 1) / self.server.interval
                            != (sequence.made - 1) / self.server.interval;
                    if is_sent {
                        outputs.push(sequence.request);
                    }
                }
            }
            let takes = 3_000_000 + 20_000 * step.context.tokens as i64 + 10_000 * step.generation.sequences as i64;
            let start = (now + 300_000).max(free);
            free = start + takes;
            step.device = Span::new(Nanos::new(start), Nanos::new(free));
            for request in outputs {
                let way = self.server.way_back_us.0 + below(self.server.way_back_us.1 as u64 + 1) as i64;
                let record = &mut records[request];
                let arrives = Nanos::new(free + way * 1_000) - record.due_ns.expect("every request is due");
                record.chunks_ns.push(arrives.max(record.chunks_ns.last().copied().unwrap_or_default()));
            }
            self.running.retain(|sequence| sequence.made < sequence.output);
            self.list.push(step);
            now = if self.server.ahead { start } else { free };
        }
    }

    /// The tokens of every running sequence in the next step. Decoding sequences come first; without room in the cache the
    /// youngest has to go.
    fn chosen(&mut self, now: i64) -> Vec<u64> {
        let Server { budget, seats, cache, apart, shortest_first, .. } = *self.server;
        while self.running.iter().map(|one| one.cached + 1).sum::<u64>() > cache && self.running.len() > 1 {
            let dropped = self.running.pop().expect("more than one");
            self.preemptions += 1;
            self.waiting.insert(0, Sequence { cached: 0, arrives: now, ..dropped });
        }
        let arrives = self.waiting.iter().any(|one| one.arrives <= now) && self.running.len() < seats;
        let only_prompts = apart && (arrives || self.running.iter().any(Sequence::is_prompt));
        let (mut left, mut chosen) = (budget, Vec::new());
        for sequence in &self.running {
            let takes_part = !only_prompts || sequence.is_prompt();
            let tokens = if takes_part { sequence.wanted().min(left) } else { 0 };
            left -= tokens;
            chosen.push(tokens);
        }
        while left > 0 && self.running.len() < seats {
            let mut there = (0..self.waiting.len()).filter(|place| self.waiting[*place].arrives <= now);
            let next = match shortest_first {
                true => there.min_by_key(|place| self.waiting[*place].prompt),
                false => there.next(),
            };
            let Some(next) = next else { break };
            let held: u64 = self.running.iter().zip(&chosen).map(|(one, tokens)| one.cached + tokens + 2).sum();
            if held + self.waiting[next].wanted() + 2 > cache && !self.running.is_empty() {
                break;
            }
            let sequence = self.waiting.remove(next);
            let tokens = sequence.wanted().min(left);
            left -= tokens;
            chosen.push(tokens);
            self.running.push(sequence);
        }
        chosen
    }
}
