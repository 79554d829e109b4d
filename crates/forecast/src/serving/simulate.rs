//! A load on a server from the first request to the last answer.
//!
//! The engine's loop is vLLM's `step_with_batch_queue`: it launches a step while the one before runs, and then waits for the results
//! of that one. Requests reach the scheduler, and outputs their clients, through one process that serves HTTP.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};

use types::Random;

use super::engine::HostCosts;
use super::price::{StepPrices, StepTime};
use super::scheduler::{Asked, Part, Scheduler};
use super::{Engine, Rules};
use crate::ForecastError;
use crate::times::POWER_US;

/// Steps that may be on their way when the host waits for the results of one.
const AHEAD: usize = 2;

/// When requests are sent; microseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// At these times, in order.
    Due(Vec<f64>),
    /// As soon as one of so many is answered.
    Slots(usize),
}

/// A load.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// When its requests are sent.
    pub arrivals: Arrivals,
    /// What they ask for.
    pub asked: Vec<Asked>,
    /// Whether the server loads matrix kernels as they are first used.
    pub started: Started,
}

/// What a server did before a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Started {
    /// It ran long enough to have used every kernel.
    #[default]
    Long,
    /// It has just started.
    Just,
    /// Nobody knows: anything between the two, another in every simulation.
    Unknown,
}

/// By how much times differ from the likely ones: factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// Matrices and what is around them.
    pub dense: f64,
    /// Attention.
    pub attention: f64,
    /// The engine's host.
    pub host: f64,
    /// The way in and out.
    pub way: f64,
    /// Seed of what differs from step to step and from request to request; absent for times without any.
    pub noise: Option<u64>,
}

impl Default for Draw {
    fn default() -> Self {
        Self { dense: 1.0, attention: 1.0, host: 1.0, way: 1.0, noise: None }
    }
}

/// By how much a launch takes longer than the quickest, on average: threads of the engine's process take turns, and other processes
/// of the machine run too. From the median of 66 launches behind a step that decodes, at 8 requests a second (0.15, of an exponential
/// distribution); 38 others at 40 a second then have 0.17 at the median and 0.60 at the 90th percentile, where it says 0.15 and 0.48.
const LAUNCH_NOISE: f64 = 0.21;

/// Standard deviation, in logarithms, of a request's way to the scheduler.
const WAY_NOISE: f64 = 0.3;

/// What differs from step to step.
struct Noise(Option<Random>);

impl Noise {
    /// A factor for a launch.
    fn launch(&mut self) -> f64 {
        self.0.as_mut().map_or(1.0 + LAUNCH_NOISE, |dice| 1.0 - LAUNCH_NOISE * (1.0 - dice.unit()).ln())
    }

    /// A factor for a request's way.
    fn way(&mut self) -> f64 {
        self.0.as_mut().map_or(1.0, |dice| (WAY_NOISE * dice.normal()).exp())
    }
}

/// One request, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answer {
    /// When it was sent.
    pub sent: f64,
    /// From then to when it was first scheduled.
    pub scheduled: f64,
    /// To the first token of its output.
    pub first: f64,
    /// To the last.
    pub last: f64,
    /// Tokens of its output.
    pub tokens: u64,
}

/// What became of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simulated {
    /// Requests in their order; absent for those that were refused.
    pub answers: Vec<Option<Answer>>,
    /// Times between tokens of one request, microseconds.
    pub gaps: Vec<f32>,
    /// Requests whose keys and values were dropped.
    pub preemptions: u64,
    /// Steps.
    pub steps: u64,
    /// Sum of the sequences of all steps.
    pub sequences: u64,
    /// Time of the device's work, microseconds.
    pub busy: f64,
    /// The part of it that steps take longer because of prompts.
    pub prompting: f64,
    /// Most of the KV blocks that were in use at once, as a share.
    pub kv_peak: f64,
    /// The server as steps began, evenly thinned.
    pub moments: Moments,
}

/// The server as a step began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Since the first request, microseconds.
    pub at: f64,
    /// Sequences in the step.
    pub batch: usize,
    /// Requests that wait.
    pub waiting: usize,
    /// Share of the KV blocks in use.
    pub kv: f64,
}

/// Most moments that are kept.
const MOMENTS: usize = 512;

/// Every so many steps, a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    kept: Vec<Moment>,
    /// Steps from one to the next, as a power of two.
    apart: u32,
}

impl Moments {
    /// In order.
    pub fn kept(&self) -> &[Moment] {
        &self.kept
    }

    fn add(&mut self, step: u64, moment: Moment) {
        if !step.is_multiple_of(1 << self.apart) {
            return;
        }
        self.kept.push(moment);
        if self.kept.len() > MOMENTS {
            self.apart += 1;
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
    }
}

/// A step on its way.
struct InFlight {
    parts: Vec<Part>,
    end: f64,
    after: f64,
}

/// The process between clients and the engine.
struct Frontend {
    costs: HostCosts,
    slowness: f64,
    /// Until when it is busy with the last step.
    free: f64,
    /// Share of the last step in which it was busy with outputs.
    share: f64,
    before: f64,
}

/// Most of the process in front that outputs may take from requests on their way in.
const MOST_BUSY: f64 = 0.8;

/// How much of the last half second went to matrices.
#[derive(Default)]
struct Heat {
    share: f64,
    until: f64,
}

/// Matrix kernels that the server has used.
struct KernelsUsed {
    seed: u64,
    /// Share of the kernels that were used before the load.
    before: f64,
    used: HashSet<(u64, u64)>,
}

/// A time that can be ordered.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Time(f64);

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Requests by the time something happens to them.
type Queue = BinaryHeap<Reverse<(Time, usize)>>;

/// Requests on their way to the scheduler.
struct Inbox<'a> {
    asked: &'a [Asked],
    /// Sent to the process in front, and from there to the scheduler.
    sent: Queue,
    reached: Queue,
    /// Requests that wait for a slot.
    held: std::ops::Range<usize>,
    answers: Vec<Option<Answer>>,
}

/// Simulates `load` on one server.
pub fn simulate(
    prices: &mut StepPrices<'_>,
    engine: &Engine,
    rules: Rules,
    load: &Load,
    draw: Draw,
) -> Result<Simulated, ForecastError> {
    let mut scheduler = Scheduler::new(rules, &load.asked);
    let slowness = draw.way * prices.host();
    let mut noise = Noise(draw.noise.map(Random::scattered));
    let mut frontend = Frontend { costs: engine.host, slowness, free: 0.0, share: 0.0, before: 0.0 };
    let mut inbox = Inbox::new(load);
    let mut found = Simulated::default();
    let mut flight: VecDeque<InFlight> = VecDeque::new();
    let mut kernels = KernelsUsed::new(load.started, draw.noise);
    let (mut now, mut device, mut heat) = (0.0f64, 0.0f64, Heat::default());
    loop {
        inbox.poll(now, &frontend, &mut noise, &mut scheduler);
        let parts = scheduler.schedule();
        if !parts.is_empty() {
            let time = prices.time(&parts)?;
            let loads = kernels.first_uses(prices.tiles(&parts)) as f64;
            inbox.schedule(&parts, now);
            let begin = now + draw.host * time.before;
            now = begin + draw.host * (time.launch * noise.launch() + loads * engine.host.first_use * prices.host());
            let work = heat.slowed(&time, draw, prices);
            device = (device.max(begin) + work).max(now + draw.dense * time.tail);
            heat.pass(device, draw.dense * time.compute);
            let [waiting, _] = scheduler.queued();
            found.moments.add(found.steps, Moment { at: begin, batch: parts.len(), waiting, kv: scheduler.usage() });
            found.busy += work;
            found.prompting += work * prompt_share(prices, &parts, &time)?;
            found.steps += 1;
            found.sequences += parts.len() as u64;
            found.kv_peak = found.kv_peak.max(scheduler.usage());
            flight.push_back(InFlight { parts, end: device, after: draw.host * time.after });
            if flight.len() < AHEAD {
                continue;
            }
        }
        let Some(InFlight { parts, end, after }) = flight.pop_front() else {
            match inbox.next() {
                Some(next) => now = now.max(next),
                None => break,
            }
            continue;
        };
        now = now.max(end) + after;
        scheduler.finish(&parts);
        frontend.answer(&parts, now, &mut inbox, &mut found.gaps);
    }
    found.preemptions = scheduler.preemptions();
    found.answers = inbox.answers;
    Ok(found)
}

/// The share of a step's work that its prompts add to it.
fn prompt_share(prices: &mut StepPrices<'_>, parts: &[Part], time: &StepTime) -> Result<f64, ForecastError> {
    let decoding: Vec<Part> = parts.iter().filter(|part| part.tokens == 1).copied().collect();
    match decoding.len() {
        count if count == parts.len() => Ok(0.0),
        0 => Ok(1.0),
        _ => {
            let alone = prices.time(&decoding)?;
            Ok((1.0 - (alone.dense + alone.attention) / (time.dense + time.attention)).clamp(0.0, 1.0))
        }
    }
}

impl Heat {
    /// Time of a step's work on a device that is as warm as this.
    fn slowed(&self, time: &StepTime, draw: Draw, prices: &StepPrices<'_>) -> f64 {
        let slower = (prices.slowdown(self.share) - 1.0) * time.compute;
        draw.dense * (time.dense + slower) + draw.attention * time.attention
    }

    /// Matrices took so long up to a time.
    fn pass(&mut self, until: f64, matrices: f64) {
        let past = (-(until - self.until) / POWER_US).exp();
        let share = (matrices / (until - self.until).max(1.0)).min(1.0);
        self.share = self.share * past + share * (1.0 - past);
        self.until = until;
    }
}

impl KernelsUsed {
    fn new(started: Started, seed: Option<u64>) -> Self {
        let seed = seed.unwrap_or_default();
        let before = match started {
            Started::Long => 1.0,
            Started::Just => 0.0,
            Started::Unknown => (0.5 + 0.618_033_988_749_895 * seed as f64).fract(),
        };
        Self { seed, before, used: HashSet::new() }
    }

    /// How many of the kernels for these tiles are used for the first time.
    fn first_uses(&mut self, tiles: impl Iterator<Item = (u64, u64)>) -> usize {
        let is_loaded = |(matrix, tiles): (u64, u64)| {
            let name = self.seed.rotate_left(40) ^ matrix.rotate_left(20) ^ tiles;
            Random::scattered(name).unit() < self.before
        };
        if self.before >= 1.0 {
            return 0;
        }
        tiles.filter(|tile| self.used.insert(*tile) && !is_loaded(*tile)).count()
    }
}

impl Frontend {
    /// When a request sent at `time` reaches the scheduler: its handling shares the process with outputs.
    fn reach(&self, time: f64, tokens: u64, factor: f64) -> f64 {
        let work = factor * self.slowness * (self.costs.way_in + self.costs.way_in_token * tokens as f64);
        time + work / (1.0 - self.share.min(MOST_BUSY))
    }

    /// Hands the tokens of a step to their clients, one after the other.
    fn answer(&mut self, parts: &[Part], now: f64, inbox: &mut Inbox<'_>, gaps: &mut Vec<f32>) {
        let HostCosts { way_out, way_out_sequence, chunk, .. } = self.costs;
        let emitting = parts.iter().filter(|part| part.emits);
        let count = emitting.clone().count() as f64;
        let ready = now.max(self.free) + self.slowness * way_out_sequence * count;
        for (place, part) in emitting.enumerate() {
            let at = ready + self.slowness * (way_out + chunk * place as f64);
            inbox.answered(part.request, at, gaps);
        }
        self.free = ready + self.slowness * chunk * count;
        self.share = ((self.free - now) / (now - self.before).max(1.0)).min(1.0);
        self.before = now;
    }
}

impl<'a> Inbox<'a> {
    fn new(load: &'a Load) -> Self {
        let count = load.asked.len();
        let mut inbox = Self {
            asked: &load.asked,
            sent: Queue::new(),
            reached: Queue::new(),
            held: count..count,
            answers: vec![None; count],
        };
        match &load.arrivals {
            Arrivals::Due(times) => {
                times.iter().take(count).enumerate().for_each(|(request, time)| inbox.send(request, *time));
            }
            Arrivals::Slots(slots) => {
                inbox.held = (*slots).min(count)..count;
                (0..inbox.held.start).for_each(|request| inbox.send(request, 0.0));
            }
        }
        inbox
    }

    fn send(&mut self, request: usize, time: f64) {
        self.answers[request] = Some(Answer { sent: time, first: -1.0, scheduled: -1.0, ..Answer::default() });
        self.sent.push(Reverse((Time(time), request)));
    }

    /// Hands on what arrives by `now`.
    fn poll(&mut self, now: f64, frontend: &Frontend, noise: &mut Noise, scheduler: &mut Scheduler<'_>) {
        while let Some(Reverse((Time(time), request))) =
            self.sent.peek().copied().filter(|Reverse((at, _))| at.0 <= now)
        {
            self.sent.pop();
            let reaches = frontend.reach(time, self.asked[request].input, noise.way());
            self.reached.push(Reverse((Time(reaches), request)));
        }
        while let Some(Reverse((_, request))) = self.reached.peek().copied().filter(|Reverse((at, _))| at.0 <= now) {
            self.reached.pop();
            if !scheduler.arrive(request) {
                self.answers[request] = None;
                self.release(now);
            }
        }
    }

    /// When something may happen next.
    fn next(&self) -> Option<f64> {
        let first = |queue: &Queue| queue.peek().map(|Reverse((time, _))| time.0);
        first(&self.sent).into_iter().chain(first(&self.reached)).reduce(f64::min)
    }

    fn schedule(&mut self, parts: &[Part], now: f64) {
        for part in parts {
            if let Some(answer) = self.answers[part.request].as_mut().filter(|answer| answer.scheduled < 0.0) {
                answer.scheduled = now - answer.sent;
            }
        }
    }

    /// A token arrives at its client.
    fn answered(&mut self, request: usize, at: f64, gaps: &mut Vec<f32>) {
        let Some(answer) = &mut self.answers[request] else { return };
        let since = at - answer.sent;
        if answer.first < 0.0 {
            answer.first = since;
        } else {
            gaps.push((since - answer.last) as f32);
        }
        answer.last = since;
        let Asked { output, .. } = self.asked[request];
        answer.tokens += 1;
        if answer.tokens == output {
            self.release(at);
        }
    }

    /// A slot is free.
    fn release(&mut self, at: f64) {
        if let Some(request) = self.held.next() {
            self.send(request, at);
        }
    }
}
