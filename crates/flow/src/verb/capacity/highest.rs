//! The highest load that holds an objective, with what the calibration's errors make of it.

use forecast::serving::{Draw, Fleet, Load, Outcome, Server};
use types::{ForecastRange, HighestLoad, LimitedLatency, LoadArrivals, Nanos, Objective, UserError};

use super::fleet::most_requests;
use super::load::PlannedLoad;

/// Share of the requests that must meet the objective.
pub(super) const GOAL: f64 = 0.99;
/// Simulations with other times, each of which is searched for its own highest load.
pub(super) const OTHERS: u64 = 6;
/// Ratio of two loads that are not told apart.
const PRECISION: f64 = 1.03;
/// A server that takes longer than this share of a load's time for what is left at its end does not keep up.
const BACKLOG: f64 = 0.05;
/// Loads above this are not looked at, requests a second or at a time.
const MOST: f64 = 1e5;
/// Loads below this share of those in which requests follow each other are not looked at: hardly any of them meet.
const LEAST: f64 = 1e-4;
/// Most by which a load is changed at once while it is not known between which two the highest lies.
const STRIDE: f64 = 4.0;

const LATENCIES: [LimitedLatency; 4] =
    [LimitedLatency::Ttft, LimitedLatency::Tpot, LimitedLatency::Itl, LimitedLatency::E2el];

/// A search on one server.
struct Search<'a, 's> {
    server: &'a mut Server<'s>,
    load: &'a PlannedLoad,
    objective: &'a Objective,
    /// Time of the longest request alone, milliseconds.
    alone_ms: f64,
    /// The lowest and the highest load that is looked at.
    range: [f64; 2],
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
    let together = most_together(server.rules.max_num_seqs, &server.fleet);
    let most = if is_closed { together.min(MOST) } else { MOST };
    let start = if is_closed { 1.0 } else { 1e3 / alone.e2el.mean.max(1e-3) };
    let draws = server.draws(others)?;
    let least = if is_closed { 1.0 } else { LEAST * start };
    let mut search = Search { server, load, objective, alone_ms: alone.e2el.p99, range: [least, most] };
    let mut found: Vec<f64> = Vec::new();
    let mut limited_by = LimitedLatency::NotReached;
    for (index, draw) in (0..).zip(draws) {
        let from = found.first().map_or((start, 2.0), |likely| (*likely, 1.2));
        let (level, limit) = search.highest(draw, index, from)?;
        if index == 0 {
            limited_by = limit;
            if level.is_none() {
                return Err(missed_at(least, limit, is_closed));
            }
        }
        // Under these times, no load holds the objective.
        found.push(level.unwrap_or(0.0));
    }
    let (low, high) = found.iter().fold((f64::MAX, 0.0f64), |(low, high), level| (low.min(*level), high.max(*level)));
    let level = ForecastRange { value: found[0], low, high };
    let (requests_per_second, concurrency) = if is_closed { (None, Some(level)) } else { (Some(level), None) };
    Ok(HighestLoad { requests_per_second, concurrency, share: GOAL, limited_by })
}

/// Most requests at a time that fill the servers, and that can be simulated: they are shown by twice as many.
fn most_together(max_num_seqs: u64, fleet: &Fleet) -> f64 {
    (max_num_seqs as f64 * fleet.decoding() as f64).min((most_requests(fleet) / 2) as f64)
}

impl Search<'_, '_> {
    /// The highest load under one draw of times, where one holds the objective, and what limits it: from a first guess by steps of a
    /// growing factor, then by halves.
    fn highest(
        &mut self,
        draw: Draw,
        index: u64,
        guess: (f64, f64),
    ) -> Result<(Option<f64>, LimitedLatency), UserError> {
        let (start, mut step) = guess;
        let [least, most] = self.range;
        let is_closed = matches!(self.load.about, LoadArrivals::Concurrency { .. });
        let (mut low, mut high) = (None, None);
        let mut level = start.clamp(least, most);
        let mut limit = LimitedLatency::NotReached;
        loop {
            match self.missed(level, draw, index)? {
                None if level >= most => return Ok((Some(level), LimitedLatency::NotReached)),
                None => low = Some(level),
                Some(latency) => (high, limit) = (Some(level), latency),
            }
            let is_narrow = |low: f64, high: f64| high / low <= PRECISION || (is_closed && high - low <= 1.0);
            let whole = |next: f64, round: fn(f64) -> f64| if is_closed { round(next) } else { next };
            level = match (low, high) {
                (Some(low), Some(high)) if is_narrow(low, high) => return Ok((Some(low), limit)),
                (Some(low), Some(high)) => whole((low * high).sqrt(), f64::round),
                (None, Some(high)) if high <= least => return Ok((None, limit)),
                (None, Some(high)) => whole(high / step, f64::floor).max(least),
                (low, None) => whole(low.unwrap_or(level) * step, f64::ceil).min(most),
            };
            step = (step * step).min(STRIDE);
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

    fn falls_behind(&self, load: &Load, outcome: &Outcome) -> bool {
        let forecast::serving::Arrivals::Due(due) = &load.arrivals else { return false };
        let arriving = due.last().zip(due.first()).map_or(0.0, |(last, first)| (last - first) / 1e3);
        let whole = 1e3 * load.asked.len() as f64 / outcome.request_throughput.max(1e-9);
        whole - arriving > 2.0 * self.alone_ms + BACKLOG * arriving
    }
}

/// The latency that most requests miss.
fn most_missed(outcome: &Outcome) -> LimitedLatency {
    let missed = outcome.missed.iter().zip(LATENCIES).filter(|(share, _)| **share > 0.0);
    missed.max_by(|a, b| a.0.total_cmp(b.0)).map_or(LimitedLatency::Throughput, |(_, latency)| latency)
}

/// One request at a time meets the objective, but the lowest load that was looked at does not.
fn missed_at(least: f64, limit: LimitedLatency, is_closed: bool) -> UserError {
    let load =
        if is_closed { "with one request at a time".to_owned() } else { format!("at {least:.2e} requests a second") };
    let name = match limit {
        LimitedLatency::Ttft => "ttft",
        LimitedLatency::Tpot => "tpot",
        LimitedLatency::Itl => "itl",
        LimitedLatency::E2el => "e2el",
        LimitedLatency::Throughput | LimitedLatency::NotReached => "the server's throughput",
    };
    UserError::usage(format!("--slo cannot be met: {load}, more than 1% of the requests miss it, most of them {name}"))
        .hint("allow more time, or choose a faster device or more devices")
}

/// Not even one request at a time meets the objective: which limit it misses, and by how much.
fn cannot_be_met(alone: &Outcome, objective: &Objective) -> UserError {
    let latency = most_missed(alone);
    let (name, spread, limit) = match latency {
        LimitedLatency::Tpot => ("tpot", alone.tpot, objective.tpot_ns),
        LimitedLatency::Itl => ("itl", alone.tpot, objective.itl_ns),
        LimitedLatency::E2el => ("e2el", alone.e2el, objective.e2el_ns),
        _ => ("ttft", alone.ttft, objective.ttft_ns),
    };
    let p99 = Nanos::new((spread.p99 * 1e6).round() as i64);
    let above = limit.map(|limit| format!(", above {limit}")).unwrap_or_default();
    UserError::usage(format!("--slo cannot be met: with one request at a time, {name} is {p99} (p99){above}"))
        .hint("allow more time, shorten prompts or outputs, or choose a faster device or more devices")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_of_a_concurrency_stays_within_what_is_simulated() {
        let most = |sequences, servers| most_together(sequences, &Fleet { servers, ..Fleet::ONE });
        assert_eq!((most(64, 1), most(64, 2), most(1_024, 256)), (64.0, 128.0, 3_906.0));
        assert!(most(1 << 20, 1) > MOST);
    }
}
