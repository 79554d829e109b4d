//! A load on servers from the first request to the last answer.
//!
//! Requests go to a server as they are sent, and every server runs its own loop; whichever comes first in time is next.

use types::Random;

use super::clients::Clients;
use super::fleet::{Fleet, Pool};
use super::moments::Moments;
use super::price::StepPrices;
use super::replica::{HandedOver, Replica};
use super::scheduler::Asked;
use super::{Engine, Rules};
use crate::ForecastError;

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
pub(crate) struct Noise(Option<Random>);

impl Noise {
    /// A factor for a launch.
    pub(crate) fn launch(&mut self) -> f64 {
        self.0.as_mut().map_or(1.0 + LAUNCH_NOISE, |dice| 1.0 - LAUNCH_NOISE * (1.0 - dice.unit()).ln())
    }

    /// A factor for a request's way.
    pub(crate) fn way(&mut self) -> f64 {
        self.factor(WAY_NOISE)
    }

    /// A factor whose logarithm deviates by so much.
    pub(crate) fn factor(&mut self, deviation: f64) -> f64 {
        self.0.as_mut().filter(|_| deviation > 0.0).map_or(1.0, |dice| (deviation * dice.normal()).exp())
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
    /// Steps of all servers.
    pub steps: u64,
    /// Sum of the sequences of all steps.
    pub sequences: u64,
    /// Sum of the tokens that all steps processed.
    pub tokens: u64,
    /// Time of a device's work, microseconds: the mean of the servers.
    pub busy: f64,
    /// The part of it that steps take longer because of prompts.
    pub prompting: f64,
    /// Most of the KV blocks of a server that were in use at once, as a share.
    pub kv_peak: f64,
    /// Servers as their steps began, evenly thinned.
    pub moments: Moments,
}

/// Simulates `load` on the servers of `fleet`.
pub fn simulate(
    prices: &mut StepPrices<'_>,
    engine: &Engine,
    rules: Rules,
    fleet: &Fleet,
    load: &Load,
    draw: Draw,
) -> Result<Simulated, ForecastError> {
    // Servers that prefill make the first token alone.
    let prompt = |asked: &Asked| Asked { output: asked.output.min(1), ..asked.clone() };
    let prompts: Vec<Asked> = fleet.apart.iter().flat_map(|_| load.asked.iter().map(prompt)).collect();
    let first = if fleet.apart.is_some() { &prompts } else { &load.asked };
    let decoding = fleet.apart.map_or(0, |apart| apart.servers);
    let host = prices.host();
    let replica = |scheduled| Replica::new(&load.asked, scheduled, (engine, rules, host), draw, load.started);
    let mut servers: Vec<Replica<'_>> = (0..fleet.servers).map(|_| replica(first)).collect();
    servers.extend((0..decoding).map(|_| replica(&load.asked)));
    let mut pools = [Pool::new(fleet.router, 0, fleet.servers), Pool::new(fleet.router, fleet.servers, decoding)];
    let (mut clients, mut noise) = (Clients::new(load), Noise(draw.noise.map(Random::scattered)));
    let mut found = Simulated::default();
    loop {
        let ready = servers.iter().enumerate().filter_map(|(server, replica)| Some((replica.ready()?, server)));
        let ready = ready.min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, server)) = ready.filter(|(at, _)| clients.sent.next().is_none_or(|sent| *at < sent)) else {
            let Some((time, request)) = clients.sent.pop() else { break };
            if rules.could_hold(&load.asked[request]) {
                servers[pools[0].route()].send(request, time, &mut noise);
            } else {
                clients.refuse(request, time);
            }
            continue;
        };
        let turn = servers[server].turn(prices, &mut clients, &mut noise, &mut found)?;
        (0..turn.left).for_each(|_| pools.iter_mut().for_each(|pool| pool.leave(server)));
        for HandedOver { request, at } in turn.handed_over {
            pools[0].leave(server);
            let sent = fleet.apart.map_or(0.0, |apart| apart.token * load.asked[request].input as f64);
            servers[pools[1].route()].receive(request, at + sent);
        }
    }
    found.preemptions = servers.iter().map(Replica::preemptions).sum();
    found.busy /= servers.len().max(1) as f64;
    found.prompting /= servers.len().max(1) as f64;
    found.answers = clients.answers;
    found.gaps = clients.gaps;
    Ok(found)
}
