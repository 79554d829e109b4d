//! The highest load that holds an objective, with what the calibration's errors make of it.

use forecast::serving::{Draw, Load, Outcome, Server, range};
use types::{ForecastRange, HighestLoad, LimitedLatency, LoadArrivals, Nanos, Objective, UserError};

use super::load::PlannedLoad;

/// Share of the requests that must meet the objective.
pub(super) const GOAL: f64 = 0.99;
/// Simulations with other times, each of which is searched for its own highest load.
pub(super) const OTHERS: u64 = 6;
/// Ratio of two loads that are not told apart.
const PRECISION: f64 = 1.03;
/// A server that takes longer than this share of a load's time for what is left at its end does not keep up.
const BACKLOG: f64 = 0.05;
/// Loads above this are not looked at, requests a second.
const MOST: f64 = 1e5;

const LATENCIES: [LimitedLatency; 4] =
    [LimitedLatency::Ttft, LimitedLatency::Tpot, LimitedLatency::Itl, LimitedLatency::E2el];

/// A search on one server.
struct Search<'a, 's> {
    server: &'a mut Server<'s>,
    load: &'a PlannedLoad,
    objective: &'a Objective,
    /// Time of the longest request alone, milliseconds.
    alone_ms: f64,
    most: f64,
}

/// The highest load of the kind of `load` that `server` serves within `objective`.
pub(super) fn highest(
    server: &mut Server<'_>,
    load: &PlannedLoad,
    objective: &Objective,
    others: u64,
) -> Result<HighestLoad, UserError> {
    let alone = server.simulate(&load.alone(), Draw::default(), objective)?;
    if alone.good < GOAL {
        return Err(cannot_be_met(&alone, objective));
    }
    let is_closed = matches!(load.about, LoadArrivals::Concurrency { .. });
    let most = if is_closed { server.rules.max_num_seqs as f64 } else { MOST };
    let start = if is_closed { 1.0 } else { 1e3 / alone.e2el.mean.max(1e-3) };
    let draws = server.draws(others)?;
    let mut search = Search { server, load, objective, alone_ms: alone.e2el.p99, most };
    let mut found = Vec::new();
    let mut limited_by = LimitedLatency::Throughput;
    for (index, draw) in (0..).zip(draws) {
        let from = found.first().map_or((start, 2.0), |likely| (*likely, 1.2));
        let (level, limit) = search.highest(draw, index, from)?;
        if index == 0 {
            limited_by = limit;
        }
        found.push(level);
    }
    let likely = found[0];
    let ForecastRange { low, high, .. } = range(found);
    let level = ForecastRange { value: likely, low: low.min(likely), high: high.max(likely) };
    let (requests_per_second, concurrency) = if is_closed { (None, Some(level)) } else { (Some(level), None) };
    Ok(HighestLoad { requests_per_second, concurrency, share: GOAL, limited_by })
}

impl Search<'_, '_> {
    /// The highest load under one draw of times, and what limits it: from a first guess by steps of a factor, then by halves.
    fn highest(&mut self, draw: Draw, index: u64, guess: (f64, f64)) -> Result<(f64, LimitedLatency), UserError> {
        let (start, step) = guess;
        let (mut low, mut high) = (None, None);
        let mut level = start.min(self.most);
        let mut limit = LimitedLatency::Throughput;
        loop {
            match self.missed(level, draw, index)? {
                None if level >= self.most => return Ok((level, LimitedLatency::Throughput)),
                None => low = Some(level),
                Some(latency) => (high, limit) = (Some(level), latency),
            }
            level = match (low, high) {
                (Some(low), Some(high)) if high / low <= PRECISION => return Ok((low, limit)),
                (Some(low), Some(high)) => (low * high).sqrt(),
                (Some(low), None) => (low * step).min(self.most),
                // Alone a request meets the objective, so that some load does; one in many minutes is none.
                (None, Some(high)) if high < 1e-3 => return Ok((0.0, limit)),
                (None, high) => high.unwrap_or(level) / step,
            };
            if matches!(self.load.about, LoadArrivals::Concurrency { .. }) {
                level = level.round().max(1.0);
                if Some(level) == low || Some(level) == high {
                    return Ok((low.unwrap_or(0.0), limit));
                }
            }
        }
    }

    /// What a load misses; `None` where it holds the objective and the server keeps up.
    fn missed(&mut self, level: f64, draw: Draw, index: u64) -> Result<Option<LimitedLatency>, UserError> {
        let load = self.load.at(level, index);
        let outcome = self.server.simulate(&load, draw, self.objective)?;
        if outcome.good < GOAL {
            return Ok(Some(most_missed(&outcome)));
        }
        Ok(self.falls_behind(&load, &outcome).then_some(LimitedLatency::Throughput))
    }

    fn falls_behind(&self, load: &Load, outcome: &Outcome<f64>) -> bool {
        let forecast::serving::Arrivals::Due(due) = &load.arrivals else { return false };
        let arriving = due.last().zip(due.first()).map_or(0.0, |(last, first)| (last - first) / 1e3);
        let whole = 1e3 * load.asked.len() as f64 / outcome.request_throughput.max(1e-9);
        whole - arriving > 2.0 * self.alone_ms + BACKLOG * arriving
    }
}

fn most_missed(outcome: &Outcome<f64>) -> LimitedLatency {
    let missed = outcome.missed.iter().zip(LATENCIES);
    missed.max_by(|a, b| a.0.total_cmp(b.0)).map_or(LimitedLatency::Throughput, |(_, latency)| latency)
}

/// Not even one request at a time meets the objective: which limit it misses, and by how much.
fn cannot_be_met(alone: &Outcome<f64>, objective: &Objective) -> UserError {
    let latency = most_missed(alone);
    let (name, spread, limit) = match latency {
        LimitedLatency::Tpot => ("tpot", alone.tpot, objective.tpot_ns),
        LimitedLatency::Itl => ("itl", alone.tpot, objective.itl_ns),
        LimitedLatency::E2el => ("e2el", alone.e2el, objective.e2el_ns),
        LimitedLatency::Ttft | LimitedLatency::Throughput => ("ttft", alone.ttft, objective.ttft_ns),
    };
    let p99 = Nanos::new((spread.p99 * 1e6).round() as i64);
    let above = limit.map(|limit| format!(", above {limit}")).unwrap_or_default();
    UserError::usage(format!("--slo cannot be met: with one request at a time, {name} is {p99} (p99){above}"))
        .hint("allow more time, shorten prompts or outputs, or choose a faster device or more devices")
}
