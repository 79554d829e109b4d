//! One server of a fleet: its engine's loop, the process in front of it, and its device.
//!
//! The loop is vLLM's `step_with_batch_queue`: it launches a step while the one before runs, and then waits for the results of that
//! one. Requests reach the scheduler, and outputs their clients, through one process that serves HTTP.

use std::collections::{HashSet, VecDeque};

use types::{LoadMoment, Random};

use super::clients::{Clients, Queue};
use super::draw::{Draw, Noise};
use super::engine::HostCosts;
use super::load::Started;
use super::price::{StepPrices, StepTime};
use super::scheduler::{Asked, Part, Scheduler};
use super::simulated::Simulated;
use super::{Engine, Rules};
use crate::ForecastError;
use crate::times::POWER_US;

/// Steps that may be on their way when the host waits for the results of one.
const AHEAD: usize = 2;

/// A step on its way.
struct InFlight {
    parts: Vec<Part>,
    end: f64,
    after: f64,
}

/// A request whose prompt is processed, and that goes on elsewhere.
pub(crate) struct HandedOver {
    pub(crate) request: usize,
    pub(crate) at: f64,
}

/// What a turn of a server's loop made of requests.
#[derive(Default)]
pub(crate) struct Turn {
    /// When requests are answered.
    pub(crate) left: Vec<f64>,
    /// Requests that go on elsewhere.
    pub(crate) handed_over: Vec<HandedOver>,
}

/// One server.
pub(crate) struct Replica<'a> {
    asked: &'a [Asked],
    scheduler: Scheduler<'a>,
    engine: Engine,
    draw: Draw,
    /// Slowness of the host.
    host: f64,
    frontend: Frontend,
    /// Requests on their way to the scheduler, and those that bring their keys and values.
    reached: Queue,
    received: Queue,
    flight: VecDeque<InFlight>,
    kernels: KernelsUsed,
    heat: Heat,
    /// The host's clock, and until when the device works.
    now: f64,
    device: f64,
    /// Whether nothing can happen before another request arrives.
    is_idle: bool,
}

impl<'a> Replica<'a> {
    /// `asked` is what clients ask for, `scheduled` what this server makes of it.
    pub(crate) fn new(
        asked: &'a [Asked],
        scheduled: &'a [Asked],
        server: (&Engine, Rules, f64),
        draw: Draw,
        started: Started,
    ) -> Self {
        let (engine, rules, host) = server;
        let slowness = draw.way * host;
        Self {
            asked,
            scheduler: Scheduler::new(rules, scheduled),
            engine: *engine,
            draw,
            host,
            frontend: Frontend { costs: engine.host, slowness, free: 0.0, share: 0.0, before: 0.0 },
            reached: Queue::default(),
            received: Queue::default(),
            flight: VecDeque::new(),
            kernels: KernelsUsed::new(started, draw.noise),
            heat: Heat::default(),
            now: 0.0,
            device: 0.0,
            is_idle: true,
        }
    }

    /// A client's request, sent at `time`.
    pub(crate) fn send(&mut self, request: usize, time: f64, noise: &mut Noise) {
        self.reached.push(self.frontend.reach(time, self.asked[request].input, noise.way()), request);
    }

    /// A request whose prompt another server has processed; its keys and values are here at `time`.
    pub(crate) fn receive(&mut self, request: usize, time: f64) {
        self.received.push(time, request);
    }

    /// When its loop can go on.
    pub(crate) fn ready(&self) -> Option<f64> {
        if !self.is_idle {
            return Some(self.now);
        }
        let arrival = self.reached.next().into_iter().chain(self.received.next()).reduce(f64::min);
        arrival.map(|arrival| arrival.max(self.now))
    }

    /// Requests whose keys and values were dropped.
    pub(crate) fn preemptions(&self) -> u64 {
        self.scheduler.preemptions()
    }

    /// One turn of the loop: what arrived is taken, a step is launched, and the results of the one before are waited for.
    pub(crate) fn turn(
        &mut self,
        prices: &mut StepPrices<'_>,
        clients: &mut Clients<'_>,
        noise: &mut Noise,
        found: &mut Simulated,
    ) -> Result<Turn, ForecastError> {
        self.now = self.ready().unwrap_or(self.now);
        self.poll(clients);
        let mut turn = Turn::default();
        let parts = self.scheduler.schedule();
        let is_empty = parts.is_empty();
        if !is_empty {
            self.launch(parts, prices, clients, noise, found)?;
            if self.flight.len() < AHEAD {
                self.is_idle = false;
                return Ok(turn);
            }
        }
        let Some(InFlight { parts, end, after }) = self.flight.pop_front() else {
            self.is_idle = true;
            return Ok(turn);
        };
        self.is_idle = false;
        self.now = self.now.max(end) + after;
        self.scheduler.finish(&parts);
        self.answer(&parts, clients, &mut turn);
        Ok(turn)
    }

    /// Takes what arrived; what can never run was refused before.
    fn poll(&mut self, clients: &mut Clients<'_>) {
        while let Some((_, request)) = self.reached.due(self.now) {
            self.scheduler.arrive(request);
        }
        while let Some((time, request)) = self.received.due(self.now) {
            self.scheduler.receive(request);
            // The client has its first token from the server that decodes.
            clients.answered(request, time + self.frontend.slowness * self.frontend.costs.way_out);
        }
    }

    /// Launches a step.
    fn launch(
        &mut self,
        parts: Vec<Part>,
        prices: &mut StepPrices<'_>,
        clients: &mut Clients<'_>,
        noise: &mut Noise,
        found: &mut Simulated,
    ) -> Result<(), ForecastError> {
        let (draw, first_use) = (self.draw, self.engine.host.first_use * self.host);
        let time = prices.time(&parts)?;
        let loads = self.kernels.first_uses(prices.tiles(&parts)) as f64;
        let chooses_anew = self.kernels.first_uses([prices.rows(&parts)].into_iter()) > 0;
        parts.iter().for_each(|part| clients.schedule(part.request, self.now));
        let begin = self.now + draw.host * time.before;
        self.now = begin + draw.host * (time.launch * noise.launch() + loads * first_use);
        let work = self.heat.slowed(&time, draw, prices) * noise.factor(time.deviation);
        let tail = draw.dense * time.tail;
        self.device = (self.device.max(begin) + work).max(self.now + tail);
        // A kernel is loaded once the device has done all that was launched before.
        if chooses_anew {
            self.now = self.now.max(self.device - tail);
            self.device = self.device.max(self.now + tail);
        }
        self.heat.pass(self.device, draw.dense * time.compute);
        let [waiting, _] = self.scheduler.queued();
        let kv = self.scheduler.usage();
        let moment = LoadMoment { at_ms: begin / 1e3, batch: parts.len() as u64, waiting: waiting as u64, kv };
        found.moments.add(found.steps, moment);
        found.busy += work;
        found.prompting += work * prompt_share(prices, &parts, &time)?;
        found.steps += 1;
        found.sequences += parts.len() as u64;
        found.tokens += parts.iter().map(|part| part.tokens).sum::<u64>();
        found.kv_peak = found.kv_peak.max(kv);
        self.flight.push_back(InFlight { parts, end: self.device, after: draw.host * time.after });
        Ok(())
    }

    /// Hands out the results of a step: tokens to clients, and requests whose output is made elsewhere to others.
    fn answer(&mut self, parts: &[Part], clients: &mut Clients<'_>, turn: &mut Turn) {
        let goes_on = |part: &&Part| self.scheduler.asked(part.request).output < self.asked[part.request].output;
        let emitting = || parts.iter().filter(|part| part.emits);
        let over = emitting().filter(goes_on).map(|part| HandedOver { request: part.request, at: self.now });
        turn.handed_over.extend(over);
        let own: Vec<usize> = emitting().filter(|part| !goes_on(part)).map(|part| part.request).collect();
        turn.left = self.frontend.answer(&own, self.now, clients);
    }
}

/// The share of a step's work that its prompts add to it.
fn prompt_share(prices: &mut StepPrices<'_>, parts: &[Part], time: &StepTime) -> Result<f64, ForecastError> {
    let decoding: Vec<Part> = parts.iter().filter(|part| part.tokens == 1).copied().collect();
    match decoding.len() {
        count if count == parts.len() => Ok(0.0),
        0 => Ok(1.0),
        _ => {
            let alone = prices.time(&decoding)?;
            Ok((1.0 - alone.device() / time.device()).clamp(0.0, 1.0))
        }
    }
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

impl Frontend {
    /// When a request sent at `time` reaches the scheduler: its handling shares the process with outputs.
    fn reach(&self, time: f64, tokens: u64, factor: f64) -> f64 {
        let work = factor * self.slowness * (self.costs.way_in + self.costs.way_in_token * tokens as f64);
        time + work / (1.0 - self.share.min(MOST_BUSY))
    }

    /// Hands the tokens of a step to their clients, one after the other; when requests end with them.
    fn answer(&mut self, requests: &[usize], now: f64, clients: &mut Clients<'_>) -> Vec<f64> {
        let HostCosts { way_out, way_out_sequence, chunk, .. } = self.costs;
        let count = requests.len() as f64;
        let ready = now.max(self.free) + self.slowness * way_out_sequence * count;
        let mut ended = Vec::new();
        for (place, request) in requests.iter().enumerate() {
            let at = ready + self.slowness * (way_out + chunk * place as f64);
            if clients.answered(*request, at) {
                ended.push(at);
            }
        }
        self.free = ready + self.slowness * chunk * count;
        self.share = ((self.free - now) / (now - self.before).max(1.0)).min(1.0);
        self.before = now;
        ended
    }
}

/// How much of the last half second went to matrices.
#[derive(Default)]
struct Heat {
    share: f64,
    until: f64,
}

impl Heat {
    /// Time of a step's work on a device that is as warm as this.
    fn slowed(&self, time: &StepTime, draw: Draw, prices: &StepPrices<'_>) -> f64 {
        let slower = (prices.slowdown(self.share) - 1.0) * time.compute;
        draw.dense * (time.dense + slower) + draw.attention * time.attention + draw.links * time.sent
    }

    /// Matrices took so long up to a time.
    fn pass(&mut self, until: f64, matrices: f64) {
        let past = (-(until - self.until) / POWER_US).exp();
        let share = (matrices / (until - self.until).max(1.0)).min(1.0);
        self.share = self.share * past + share * (1.0 - past);
        self.until = until;
    }
}

/// Matrix kernels that the server has used.
struct KernelsUsed {
    seed: u64,
    /// Share of the kernels that were used before the load.
    before: f64,
    used: HashSet<(u64, u64)>,
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
