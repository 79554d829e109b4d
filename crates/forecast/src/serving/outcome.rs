//! What becomes of a load: its latencies and rates, with intervals from many simulations.

use types::{ForecastRange, Objective, Random};

use super::clients::Answer;
use super::draw::Draw;
use super::load::Load;
use super::price::StepPrices;
use super::simulate::simulate;
use super::simulated::Simulated;
use super::{Engine, Fleet, Rules};
use crate::ForecastError;

/// Simulations that an interval rests on.
pub const DRAWS: u64 = 24;

/// Standard deviations, in logarithms, of what no calibration says: attention of an engine, as a multiple of the library's; the
/// engine's host and the way to clients, where the speed of the host was measured and where it was not.
const ATTENTION: f64 = 0.10;
const HOST: [f64; 2] = [0.10, 0.35];
const WAY: [f64; 2] = [0.15, 0.35];

/// Standard deviations of a normal 90% interval.
const NORMAL: f64 = 1.645;

/// A latency of many requests, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread<T> {
    /// Arithmetic mean.
    pub mean: T,
    /// Median.
    pub p50: T,
    /// 99th percentile.
    pub p99: T,
}

/// What a load comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome<T> {
    /// Time to first token.
    pub ttft: Spread<T>,
    /// Time per output token after the first, of every request.
    pub tpot: Spread<T>,
    /// Time between tokens.
    pub itl: Spread<T>,
    /// End to end.
    pub e2el: Spread<T>,
    /// From when a request is sent to when it is first scheduled.
    pub queue: Spread<T>,
    /// Tokens of outputs a second.
    pub output_throughput: T,
    /// Tokens of prompts a second.
    pub input_throughput: T,
    /// Requests a second.
    pub request_throughput: T,
    /// Share of the answered requests that met the objective; 1 without one.
    pub good: T,
    /// Shares of them that missed its time to first token, per token, between tokens and end to end.
    pub missed: [T; 4],
    /// Most of the KV blocks in use at once, as a share.
    pub kv_peak: T,
    /// Requests whose keys and values were dropped.
    pub preemptions: T,
    /// Sequences of a step, on the average.
    pub batch: T,
    /// Share of the time that the device works.
    pub busy: T,
    /// Seconds of the server per million tokens of prompts and of outputs: all of its time, spread by the device time that each
    /// takes.
    pub seconds_per_million: [T; 2],
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
    /// What it comes to.
    pub outcome: Outcome<ForecastRange>,
    /// The simulation with the likely times.
    pub likely: Simulated,
    /// Simulations that the intervals rest on.
    pub simulations: u64,
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
}

impl Server<'_> {
    /// What one simulation comes to.
    pub fn simulate(&mut self, load: &Load, draw: Draw, objective: &Objective) -> Result<Outcome<f64>, ForecastError> {
        let simulated = simulate(&mut self.prices, &self.engine, self.rules, &self.fleet, load, draw)?;
        Ok(outcome(load, &simulated, objective))
    }

    /// The likely times, and so many others as uncertain as the calibration is.
    pub fn draws(&mut self, others: u64) -> Result<Vec<Draw>, ForecastError> {
        let [width, _] = self.prices.certainty()?;
        let measured = usize::from(!self.prices.host_is_measured());
        let mut dice = Random::scattered(0);
        let mut factor = |deviation: f64| (deviation * dice.normal()).exp();
        let other = |index: u64| Draw {
            dense: factor(width / NORMAL),
            attention: factor(ATTENTION),
            host: factor(HOST[measured]),
            way: factor(WAY[measured]),
            noise: Some(index),
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
        let (mut outcomes, mut requests) = (Vec::new(), Vec::new());
        let mut likely = None;
        for (index, times) in (0..).zip(self.draws(others)?) {
            let load = draw(index);
            let simulated = simulate(&mut self.prices, &self.engine, self.rules, &self.fleet, &load, times)?;
            outcomes.push(outcome(&load, &simulated, objective).numbers());
            requests.push(simulated.answers.clone());
            likely.get_or_insert(simulated);
        }
        let all = |at: usize| range(outcomes.iter().map(|numbers| numbers[at]).collect());
        let request = |at: usize| {
            let answers: Option<Vec<Answer>> = requests.iter().map(|answers| answers[at]).collect();
            let of = |part: fn(&RequestOutcome<f64>) -> f64| {
                let answers = answers.as_deref()?.iter();
                Some(range(answers.map(|answer| part(&RequestOutcome::of(answer))).collect()))
            };
            Some(RequestOutcome { ttft: of(|one| one.ttft)?, tpot: of(|one| one.tpot)?, e2el: of(|one| one.e2el)? })
        };
        let count = requests.iter().map(Vec::len).min().unwrap_or(0);
        Ok(LoadForecast {
            outcome: Outcome::of_numbers(all),
            likely: likely.unwrap_or_default(),
            simulations: outcomes.len() as u64,
            requests: (0..count).map(request).collect(),
        })
    }
}

/// The mean of what simulations say, with the interval that holds another one of their kind with a probability of 90%; with fewer than
/// 19 of them, all that they say.
pub fn range(mut values: Vec<f64>) -> ForecastRange {
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

impl RequestOutcome<f64> {
    fn of(answer: &Answer) -> Self {
        let gaps = answer.tokens.saturating_sub(1) as f64;
        let tpot = if gaps > 0.0 { (answer.last - answer.first) / gaps } else { 0.0 };
        Self { ttft: answer.first / 1e3, tpot: tpot / 1e3, e2el: answer.last / 1e3 }
    }

    /// Which limits it misses.
    fn misses(&self, objective: &Objective) -> [bool; 4] {
        let Objective { ttft_ns, tpot_ns, itl_ns, e2el_ns } = *objective;
        // The objective's time between tokens is the mean of a request, as clients report it.
        [(ttft_ns, self.ttft), (tpot_ns, self.tpot), (itl_ns, self.tpot), (e2el_ns, self.e2el)]
            .map(|(limit, found)| limit.is_some_and(|limit| found * 1e6 > limit.get() as f64))
    }
}

/// What a simulated load comes to.
pub(crate) fn outcome(load: &Load, simulated: &Simulated, objective: &Objective) -> Outcome<f64> {
    let answered = || simulated.answers.iter().zip(&load.asked).filter_map(|(answer, asked)| Some(((*answer)?, asked)));
    let requests: Vec<RequestOutcome<f64>> = answered().map(|(answer, _)| RequestOutcome::of(&answer)).collect();
    let spread = |values: Vec<f64>| Spread::of(values);
    let of = |part: fn(&RequestOutcome<f64>) -> f64| spread(requests.iter().map(part).collect());
    let several = answered().filter(|(answer, _)| answer.tokens > 1);
    let tpot = spread(several.map(|(answer, _)| RequestOutcome::of(&answer).tpot).collect());
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
        itl: spread(simulated.gaps.iter().map(|gap| f64::from(*gap) / 1e3).collect()),
        e2el: of(|one| one.e2el),
        queue: spread(answered().map(|(answer, _)| answer.scheduled / 1e3).collect()),
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

impl Spread<f64> {
    /// Of these values.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Self { mean, p50: quantile(&values, 0.5), p99: quantile(&values, 0.99) }
    }
}

/// Figures of an outcome.
const FIGURES: usize = 29;

impl Outcome<f64> {
    fn numbers(&self) -> [f64; FIGURES] {
        let [a, b, c, d, e] =
            [self.ttft, self.tpot, self.itl, self.e2el, self.queue].map(|one| [one.mean, one.p50, one.p99]);
        let rest = [
            self.output_throughput,
            self.input_throughput,
            self.request_throughput,
            self.good,
            self.kv_peak,
            self.preemptions,
            self.batch,
            self.busy,
            self.seconds_per_million[0],
            self.seconds_per_million[1],
            self.missed[0],
            self.missed[1],
            self.missed[2],
            self.missed[3],
        ];
        let mut numbers = [0.0; FIGURES];
        let all = [a, b, c, d, e].into_iter().flatten().chain(rest);
        numbers.iter_mut().zip(all).for_each(|(number, figure)| *number = figure);
        numbers
    }
}

impl<T> Outcome<T> {
    /// From its figures in the order of [`Outcome::numbers`].
    fn of_numbers(at: impl Fn(usize) -> T) -> Self {
        let spread = |from: usize| Spread { mean: at(from), p50: at(from + 1), p99: at(from + 2) };
        Self {
            ttft: spread(0),
            tpot: spread(3),
            itl: spread(6),
            e2el: spread(9),
            queue: spread(12),
            output_throughput: at(15),
            input_throughput: at(16),
            request_throughput: at(17),
            good: at(18),
            kv_peak: at(19),
            preemptions: at(20),
            batch: at(21),
            busy: at(22),
            seconds_per_million: [at(23), at(24)],
            missed: [at(25), at(26), at(27), at(28)],
        }
    }
}
