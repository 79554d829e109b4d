//! What becomes of a load: its latencies and rates, with intervals from many simulations.

use types::{ForecastRange, LatencyForecast, Objective};

use super::clients::Answer;
use super::draw::{Draw, Noise};
use super::load::Load;
use super::price::StepPrices;
use super::simulate::simulate;
use super::simulated::Simulated;
use super::uncertainty::Uncertainty;
use super::{Engine, Fleet, Rules};
use crate::ForecastError;

/// Simulations that an interval rests on.
pub const DRAWS: u64 = 24;

/// Standard deviations of a normal 90% interval.
const NORMAL: f64 = 1.645;

/// A latency of many requests, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// What a load comes to in one simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Time to first token.
    pub ttft: Spread,
    /// Time per output token after the first, of every request.
    pub tpot: Spread,
    /// Time between tokens.
    pub itl: Spread,
    /// End to end.
    pub e2el: Spread,
    /// From when a request is sent to when it is first scheduled.
    pub queue: Spread,
    /// Tokens of outputs a second.
    pub output_throughput: f64,
    /// Tokens of prompts a second.
    pub input_throughput: f64,
    /// Requests a second.
    pub request_throughput: f64,
    /// Share of the answered requests that met the objective; 1 without one.
    pub good: f64,
    /// Shares of them that missed its time to first token, per token, between tokens and end to end.
    pub missed: [f64; 4],
    /// Most of the KV blocks in use at once, as a share.
    pub kv_peak: f64,
    /// Requests whose keys and values were dropped.
    pub preemptions: f64,
    /// Sequences of a step, on the average.
    pub batch: f64,
    /// Share of the time that the device works.
    pub busy: f64,
    /// Seconds of the server per million tokens of prompts and of outputs: all of its time, spread by the device time that each
    /// takes.
    pub seconds_per_million: [f64; 2],
}

/// Latencies of one request, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestOutcome<T> {
    /// Time to first token.
    pub ttft: T,
    /// Time per output token after the first; 0 for outputs of one token.
    pub tpot: T,
    /// End to end.
    pub e2el: T,
}

/// A forecast of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadForecast {
    /// What every simulation comes to.
    pub outcomes: Vec<Outcome>,
    /// The simulation with the likely times.
    pub likely: Simulated,
    /// Every request, in order; absent for those the server refuses.
    pub requests: Vec<Option<RequestOutcome<ForecastRange>>>,
}

/// Servers that are alike: what their steps take, how they are made, and how they share a load.
pub struct Server<'a> {
    /// Prices of its steps.
    pub prices: StepPrices<'a>,
    /// The engine.
    pub engine: Engine,
    /// How it schedules.
    pub rules: Rules,
    /// How many there are, and what each does.
    pub fleet: Fleet,
    /// How far its times may be from the likely ones.
    pub uncertainty: Uncertainty,
}

impl Server<'_> {
    /// What one simulation comes to.
    pub fn simulate(&mut self, load: &Load, draw: Draw, objective: &Objective) -> Result<Outcome, ForecastError> {
        let simulated = simulate(&mut self.prices, &self.engine, self.rules, &self.fleet, load, draw)?;
        let requests = requests(&simulated, self.uncertainty, draw);
        Ok(outcome(load, &simulated, &requests, objective))
    }

    /// The likely times, and so many others as uncertain as the calibration is.
    pub fn draws(&mut self, others: u64) -> Result<Vec<Draw>, ForecastError> {
        let [width, _] = self.prices.certainty()?;
        let Uncertainty { device, attention, links, host, way, .. } = self.uncertainty;
        let other = |index: u64| {
            let normals = even_normals(index);
            let factor = |place: usize, deviation: f64| (deviation * normals[place]).exp();
            Draw {
                dense: factor(0, device * width / NORMAL),
                attention: factor(1, attention),
                links: factor(2, links),
                host: factor(3, host),
                way: factor(4, way),
                noise: Some(index),
            }
        };
        Ok(std::iter::once(Draw::default()).chain((1..=others).map(other)).collect())
    }

    /// The forecast of a load that `draw` makes for every simulation: the same one, or another of its kind. The likely simulation is
    /// followed by `others`, which the intervals rest on.
    pub fn forecast(
        &mut self,
        objective: &Objective,
        others: u64,
        draw: impl Fn(u64) -> Load,
    ) -> Result<LoadForecast, ForecastError> {
        let (mut outcomes, mut all) = (Vec::new(), Vec::new());
        let mut likely = None;
        for (index, times) in (0..).zip(self.draws(others)?) {
            let load = draw(index);
            let simulated = simulate(&mut self.prices, &self.engine, self.rules, &self.fleet, &load, times)?;
            let requests = requests(&simulated, self.uncertainty, times);
            outcomes.push(outcome(&load, &simulated, &requests, objective));
            all.push(requests);
            likely.get_or_insert(simulated);
        }
        let request = |at: usize| {
            let one: Vec<RequestOutcome<f64>> = all.iter().map(|requests| requests[at]).collect::<Option<_>>()?;
            let of = |part: fn(&RequestOutcome<f64>) -> f64| range(one.iter().map(part).collect());
            Some(RequestOutcome { ttft: of(|one| one.ttft), tpot: of(|one| one.tpot), e2el: of(|one| one.e2el) })
        };
        let count = all.iter().map(Vec::len).min().unwrap_or(0);
        Ok(LoadForecast { outcomes, likely: likely.unwrap_or_default(), requests: (0..count).map(request).collect() })
    }
}

impl LoadForecast {
    /// A figure of all simulations.
    pub fn range(&self, of: impl Fn(&Outcome) -> f64) -> ForecastRange {
        range(self.outcomes.iter().map(of).collect())
    }

    /// A latency of all simulations.
    pub fn latency(&self, of: impl Fn(&Outcome) -> Spread) -> LatencyForecast {
        let range = |part: fn(Spread) -> f64| self.range(|outcome| part(of(outcome)));
        LatencyForecast { mean: range(|one| one.mean), p50: range(|one| one.p50), p99: range(|one| one.p99) }
    }
}

/// The root of x^7 = x + 1, whose powers fill a cube of six dimensions evenly (Roberts 2018, The unreasonable effectiveness of quasirandom
/// sequences), and a place in that sequence from which on 6, 18 and 24 points make normal numbers of about mean 0 and width 1.
const ROOT: f64 = 1.112_775_684_278_705_5;
const FIRST: u64 = 907;

/// Six standard normal numbers of which few draws already have about the mean and the width of many.
fn even_normals(index: u64) -> [f64; 6] {
    let even = |power: usize| (0.5 + (FIRST + index) as f64 * ROOT.powi(-(power as i32))).fract();
    std::array::from_fn(|place| {
        let pair = place / 2 * 2;
        let (radius, angle) = ((-2.0 * even(pair + 1).max(1e-9).ln()).sqrt(), std::f64::consts::TAU * even(pair + 2));
        radius * if place == pair { angle.cos() } else { angle.sin() }
    })
}

/// The mean of what simulations say, with the interval that holds another one of their kind with a probability of 90%; with fewer than
/// 19 of them, all that they say.
fn range(mut values: Vec<f64>) -> ForecastRange {
    let value = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.sort_by(f64::total_cmp);
    // Of n values, another one is below the k-th with a probability of k / (n + 1), whatever their distribution is.
    let count = values.len() as f64;
    let share = (0.05 * (count + 1.0) - 1.0).max(0.0) / (count - 1.0).max(1.0);
    ForecastRange { value, low: quantile(&values, share).min(value), high: quantile(&values, 1.0 - share).max(value) }
}

/// A quantile of sorted values, between neighbours where it falls between them, as numpy takes it.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// What becomes of every request, which differs from what a simulation says of it; absent for those that were refused.
fn requests(simulated: &Simulated, uncertainty: Uncertainty, draw: Draw) -> Vec<Option<RequestOutcome<f64>>> {
    // Not the numbers that the simulation drew.
    let mut noise = Noise::new(Draw { noise: draw.noise.map(|seed| !seed), ..draw });
    let mut one = |answer: &Answer| {
        let parts = [answer.first - answer.scheduled, answer.last - answer.first];
        let [first, rest] = std::array::from_fn(|at| parts[at] / 1e3 * noise.factor(uncertainty.requests[at]));
        let ttft = answer.scheduled / 1e3 + first;
        let gaps = answer.tokens.saturating_sub(1).max(1) as f64;
        RequestOutcome { ttft, tpot: rest / gaps, e2el: ttft + rest }
    };
    simulated.answers.iter().map(|answer| answer.as_ref().map(&mut one)).collect()
}

impl RequestOutcome<f64> {
    /// Which limits it misses.
    fn misses(&self, objective: &Objective) -> [bool; 4] {
        let Objective { ttft_ns, tpot_ns, itl_ns, e2el_ns } = *objective;
        // The objective's time between tokens is the mean of a request, as clients report it.
        [(ttft_ns, self.ttft), (tpot_ns, self.tpot), (itl_ns, self.tpot), (e2el_ns, self.e2el)]
            .map(|(limit, found)| limit.is_some_and(|limit| found * 1e6 > limit.get() as f64))
    }
}

/// What a simulated load comes to.
fn outcome(
    load: &Load,
    simulated: &Simulated,
    requests: &[Option<RequestOutcome<f64>>],
    objective: &Objective,
) -> Outcome {
    let answered = || simulated.answers.iter().zip(&load.asked).filter_map(|(answer, asked)| Some(((*answer)?, asked)));
    let requests: Vec<RequestOutcome<f64>> = requests.iter().flatten().copied().collect();
    let of = |part: fn(&RequestOutcome<f64>) -> f64| Spread::of(requests.iter().map(part).collect());
    let several = requests.iter().zip(answered()).filter(|(_, (answer, _))| answer.tokens > 1);
    let tpot = Spread::of(several.map(|(request, _)| request.tpot).collect());
    let begin = answered().map(|(answer, _)| answer.sent).fold(f64::INFINITY, f64::min);
    let end = answered().map(|(answer, _)| answer.sent + answer.last).fold(0.0, f64::max);
    let seconds = ((end - begin) / 1e6).max(1e-9);
    let tokens = |of: fn(&super::Asked) -> u64| answered().map(|(_, asked)| of(asked)).sum::<u64>() as f64 / seconds;
    let all = requests.len().max(1) as f64;
    let misses: Vec<[bool; 4]> = requests.iter().map(|one| one.misses(objective)).collect();
    let (input_throughput, output_throughput) = (tokens(|asked| asked.input), tokens(|asked| asked.output));
    let prompts = simulated.prompting / simulated.busy.max(1e-9);
    let per_million = |share: f64, throughput: f64| 1e6 * share / throughput.max(1e-9);
    Outcome {
        ttft: of(|one| one.ttft),
        tpot,
        itl: Spread::of(simulated.gaps.iter().map(|gap| f64::from(*gap) / 1e3).collect()),
        e2el: of(|one| one.e2el),
        queue: Spread::of(answered().map(|(answer, _)| answer.scheduled / 1e3).collect()),
        output_throughput,
        input_throughput,
        request_throughput: requests.len() as f64 / seconds,
        good: misses.iter().filter(|missed| !missed.contains(&true)).count() as f64 / all,
        missed: [0, 1, 2, 3].map(|at| misses.iter().filter(|missed| missed[at]).count() as f64 / all),
        kv_peak: simulated.kv_peak,
        preemptions: simulated.preemptions as f64,
        batch: simulated.sequences as f64 / simulated.steps.max(1) as f64,
        busy: (simulated.busy / 1e6 / seconds).min(1.0),
        seconds_per_million: [per_million(prompts, input_throughput), per_million(1.0 - prompts, output_throughput)],
    }
}

impl Spread {
    /// Of these values.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Self { mean, p50: quantile(&values, 0.5), p99: quantile(&values, 0.99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_draws_as_an_interval_rests_on_have_the_mean_and_the_width_of_normal_ones() {
        let draws: Vec<[f64; 6]> = (1..=DRAWS).map(even_normals).collect();
        for place in 0..6 {
            let mean = draws.iter().map(|normals| normals[place]).sum::<f64>() / DRAWS as f64;
            let square = draws.iter().map(|normals| normals[place] * normals[place]).sum::<f64>() / DRAWS as f64;
            assert!(mean.abs() < 0.15 && (0.75..1.25).contains(&square), "{place}: {mean} and {square}");
        }
    }
}
