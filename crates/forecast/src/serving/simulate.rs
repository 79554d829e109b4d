//! A load on servers from the first request to the last answer.
//!
//! Requests go to a server as they are sent, and every server runs its own loop; whichever comes first in time is next. A turn of a loop
//! says what happens at its end: routers learn of it once everything before that has happened.

use super::clients::{Clients, Queue};
use super::draw::{Draw, Noise};
use super::fleet::{Fleet, Pool};
use super::load::Load;
use super::price::StepPrices;
use super::replica::{HandedOver, Replica};
use super::scheduler::Asked;
use super::simulated::Simulated;
use super::{Engine, Rules};
use crate::ForecastError;

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
    let host = prices.host;
    let replica = |scheduled| Replica::new(&load.asked, scheduled, (engine, rules, host), draw, load.started);
    let mut servers: Vec<Replica<'_>> = (0..fleet.servers).map(|_| replica(first)).collect();
    servers.extend((0..decoding).map(|_| replica(&load.asked)));
    let mut pools = [Pool::new(fleet.router, 0, fleet.servers), Pool::new(fleet.router, fleet.servers, decoding)];
    let (mut clients, mut noise) = (Clients::new(load), Noise::new(draw));
    // Requests whose prompts are processed, and servers that a request leaves, by time.
    let (mut handed_over, mut left) = (Queue::default(), Queue::default());
    let mut found = Simulated::default();
    loop {
        let ready = servers.iter().enumerate().filter_map(|(server, replica)| Some((replica.ready()?, server)));
        let ready = ready.min_by(|a, b| a.0.total_cmp(&b.0));
        let next = [&clients.sent, &handed_over].into_iter().filter_map(Queue::next).reduce(f64::min);
        if let Some((_, server)) = ready.filter(|(at, _)| next.is_none_or(|next| *at < next)) {
            let turn = servers[server].turn(prices, &mut clients, &mut noise, &mut found)?;
            for at in turn.left {
                left.push(at, server);
            }
            for HandedOver { request, at } in turn.handed_over {
                left.push(at, server);
                handed_over.push(at, request);
            }
            continue;
        }
        let Some(now) = next else { break };
        while let Some((_, server)) = left.due(now) {
            pools.iter_mut().for_each(|pool| pool.leave(server));
        }
        if let Some((_, request)) = handed_over.due(now) {
            let sent = fleet.apart.map_or(0.0, |apart| apart.token * load.asked[request].input as f64);
            servers[pools[1].route()].receive(request, now + sent);
        } else if let Some((_, request)) = clients.sent.pop() {
            if rules.could_hold(&load.asked[request]) {
                servers[pools[0].route()].send(request, now, &mut noise);
            } else {
                clients.refuse(request, now);
            }
        }
    }
    found.preemptions = servers.iter().map(Replica::preemptions).sum();
    found.busy /= servers.len().max(1) as f64;
    found.prompting /= servers.len().max(1) as f64;
    found.answers = clients.answers;
    found.gaps = clients.gaps;
    Ok(found)
}
