//! When requests are due. Sending them then is left to `run`.

use std::time::Duration;

use types::{Nanos, Random};

use crate::LoadError;

/// When requests are due.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// So many requests run at a time; the next is due when one ends.
    Closed {
        /// How many.
        concurrency: usize,
    },
    /// Requests per second at equal intervals, the first at once; infinity sends all at once.
    Constant {
        /// Requests per second.
        rate: f64,
    },
    /// Intervals drawn from a gamma distribution, as `vllm bench serve` draws them: shape `burstiness`, scale
    /// `1 / (rate * burstiness)`, then rescaled so that the last request is due after `count / rate`
    /// (`get_request` in <https://github.com/vllm-project/vllm/blob/main/vllm/benchmarks/serve.py>).
    Gamma {
        /// Requests per second; infinity sends all at once.
        rate: f64,
        /// 1 is a Poisson process, less is burstier, more is steadier, infinity is constant.
        burstiness: f64,
    },
    /// A rate that changes linearly and then stays, without randomness.
    Ramp {
        /// Requests per second at the start.
        from: f64,
        /// Requests per second at the end.
        to: f64,
        /// How long the change takes.
        over: Duration,
    },
    /// At these times since the start, in order.
    At(Vec<Nanos>),
}

/// When every request of one load is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// As soon as one of so many slots is free.
    Slots(usize),
    /// At these times since the start, in order.
    Due(Vec<Nanos>),
}

impl Arrivals {
    /// The schedule of the first `count` requests; the same seed gives the same one.
    pub fn schedule(&self, count: usize, seed: u64) -> Result<Schedule, LoadError> {
        let due = match self {
            Self::Closed { concurrency } => return slots(*concurrency, count),
            Self::Constant { rate } => {
                let interval = 1.0 / positive("the request rate", *rate)?;
                (0..count).map(|index| nanos(interval * index as f64)).collect()
            }
            Self::Gamma { rate, burstiness } => gamma_times(*rate, *burstiness, count, seed)?,
            Self::Ramp { from, to, over } => ramp_times(*from, *to, *over, count)?,
            Self::At(times) => checked(times, count)?,
        };
        Ok(Schedule::Due(due))
    }
}

/// The schedule of a closed loop; more slots than requests would stay empty.
fn slots(concurrency: usize, count: usize) -> Result<Schedule, LoadError> {
    match concurrency {
        0 => Err(LoadError::Setting { name: "the concurrency", expected: "at least 1", got: "0".to_owned() }),
        _ => Ok(Schedule::Slots(concurrency.min(count))),
    }
}

/// A rate or a shape above zero; infinity is one.
fn positive(name: &'static str, value: f64) -> Result<f64, LoadError> {
    if value > 0.0 {
        return Ok(value);
    }
    Err(LoadError::Setting { name, expected: "above 0", got: value.to_string() })
}

/// A rate that a ramp can have.
fn finite(name: &'static str, value: f64) -> Result<f64, LoadError> {
    if value >= 0.0 && value.is_finite() {
        return Ok(value);
    }
    Err(LoadError::Setting { name, expected: "a finite number that is not negative", got: value.to_string() })
}

/// Seconds as whole nanoseconds; beyond 292 years they stay there.
fn nanos(seconds: f64) -> Nanos {
    Nanos::new((seconds * 1e9) as i64)
}

/// Times with gamma-distributed intervals.
fn gamma_times(rate: f64, burstiness: f64, count: usize, seed: u64) -> Result<Vec<Nanos>, LoadError> {
    let (rate, shape) = (positive("the request rate", rate)?, positive("the burstiness", burstiness)?);
    if rate.is_infinite() {
        return Ok(vec![Nanos::ZERO; count]);
    }
    let mut random = Random::scattered(seed);
    let intervals = (0..count).map(|_| if shape.is_infinite() { 1.0 } else { gamma(shape, &mut random) });
    let times: Vec<f64> = running_sum(intervals);
    let last = times.last().copied().filter(|last| *last > 0.0).unwrap_or(1.0);
    let scale = count as f64 / rate / last;
    Ok(times.into_iter().map(|time| nanos(time * scale)).collect())
}

/// The sum up to each interval.
fn running_sum(intervals: impl Iterator<Item = f64>) -> Vec<f64> {
    intervals
        .scan(0.0, |sum, interval| {
            *sum += interval;
            Some(*sum)
        })
        .collect()
}

/// A draw from the gamma distribution of this shape and scale 1 (Marsaglia and Tsang, "A simple method for generating gamma
/// variables", 2000; below shape 1 their section 6).
fn gamma(shape: f64, random: &mut Random) -> f64 {
    if shape < 1.0 {
        let boost = (1.0 - random.unit()).powf(1.0 / shape);
        return gamma(shape + 1.0, random) * boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = random.normal();
        let cube = (1.0 + c * normal).powi(3);
        let uniform = 1.0 - random.unit();
        if cube > 0.0 && uniform.ln() < 0.5 * normal * normal + d - d * cube + d * cube.ln() {
            return d * cube;
        }
    }
}

/// Times at which the number of requests of a ramp, the integral of its rate, reaches 0, 1, 2 and so on.
fn ramp_times(from: f64, to: f64, over: Duration, count: usize) -> Result<Vec<Nanos>, LoadError> {
    let (from, to) = (finite("the first rate of a ramp", from)?, finite("the last rate of a ramp", to)?);
    positive("the last rate of a ramp", to)?;
    let over = over.as_secs_f64();
    let during = (from + to) / 2.0 * over;
    let time = |index: usize| {
        let number = index as f64;
        if number >= during {
            return nanos(over + (number - during) / to);
        }
        // The root of from t + (to - from) t^2 / (2 over) = number, in the form that also holds where the rates are equal.
        let root = (from * from + 2.0 * (to - from) / over * number).max(0.0).sqrt();
        if index == 0 { Nanos::ZERO } else { nanos(2.0 * number / (from + root)) }
    };
    Ok((0..count).map(time).collect())
}

/// Times that were given: enough of them, none before the start, none before its predecessor.
fn checked(times: &[Nanos], count: usize) -> Result<Vec<Nanos>, LoadError> {
    let Some(times) = times.get(..count) else {
        let got = format!("{} for {count} requests", times.len());
        return Err(LoadError::Setting { name: "the number of arrival times", expected: "one per request", got });
    };
    let starts = std::iter::once(&Nanos::ZERO).chain(times);
    if let Some((before, time)) = starts.zip(times).find(|(before, time)| time < before) {
        let got = format!("{} ns after {} ns", time.get(), before.get());
        return Err(LoadError::Setting { name: "an arrival time", expected: "at or after the one before it", got });
    }
    Ok(times.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 100_000;

    fn seconds(arrivals: &Arrivals, count: usize) -> Vec<f64> {
        match arrivals.schedule(count, 7).unwrap() {
            Schedule::Due(due) => due.into_iter().map(|time| time.as_seconds().get()).collect(),
            Schedule::Slots(_) => panic!("no times"),
        }
    }

    /// Mean and squared coefficient of variation of the intervals.
    fn moments(times: &[f64]) -> (f64, f64) {
        let intervals: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = intervals.iter().sum::<f64>() / intervals.len() as f64;
        let square = intervals.iter().map(|interval| (interval - mean).powi(2)).sum::<f64>() / intervals.len() as f64;
        (mean, square / (mean * mean))
    }

    #[test]
    fn gamma_intervals_have_the_mean_of_the_rate_and_the_variation_of_the_burstiness() {
        for burstiness in [0.25, 0.5, 1.0, 2.0, 10.0] {
            let times = seconds(&Arrivals::Gamma { rate: 20.0, burstiness }, MANY);
            let (mean, variation) = moments(&times);
            assert!((mean * 20.0 - 1.0).abs() < 0.001, "mean {mean} at burstiness {burstiness}");
            // The squared coefficient of variation of a gamma distribution is 1 / shape.
            assert!((variation * burstiness - 1.0).abs() < 0.05, "variation {variation} at burstiness {burstiness}");
            assert!((times[MANY - 1] - MANY as f64 / 20.0).abs() < 1e-6);
        }
    }

    #[test]
    fn poisson_intervals_are_exponential() {
        let times = seconds(&Arrivals::Gamma { rate: 1.0, burstiness: 1.0 }, MANY);
        let longer =
            |limit: f64| times.windows(2).filter(|pair| pair[1] - pair[0] > limit).count() as f64 / MANY as f64;
        for limit in [0.1, 0.5, 1.0, 2.0, 4.0] {
            assert!((longer(limit) - (-limit).exp()).abs() < 0.005, "{} are longer than {limit}", longer(limit));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_times_and_another_gives_others() {
        let arrivals = Arrivals::Gamma { rate: 3.0, burstiness: 0.7 };
        assert_eq!(arrivals.schedule(50, 1).unwrap(), arrivals.schedule(50, 1).unwrap());
        assert_ne!(arrivals.schedule(50, 1).unwrap(), arrivals.schedule(50, 2).unwrap());
    }

    #[test]
    fn an_infinite_rate_sends_all_at_once_and_infinite_burstiness_is_constant() {
        assert_eq!(seconds(&Arrivals::Gamma { rate: f64::INFINITY, burstiness: 1.0 }, 3), [0.0; 3]);
        assert_eq!(seconds(&Arrivals::Constant { rate: f64::INFINITY }, 3), [0.0; 3]);
        assert_eq!(seconds(&Arrivals::Gamma { rate: 4.0, burstiness: f64::INFINITY }, 3), [0.25, 0.5, 0.75]);
        assert_eq!(seconds(&Arrivals::Constant { rate: 4.0 }, 3), [0.0, 0.25, 0.5]);
    }

    #[test]
    fn a_ramp_reaches_its_rates() {
        // From 0 to 10 per second in 10 s: 50 requests, the k-th at sqrt(2 k); 10 per second from then on.
        let times = seconds(&Arrivals::Ramp { from: 0.0, to: 10.0, over: Duration::from_secs(10) }, 71);
        for (number, at) in [(0, 0.0), (2, 2.0), (8, 4.0), (50, 10.0), (70, 12.0)] {
            assert!((times[number] - at).abs() < 1e-6, "{number} is due at {}", times[number]);
        }
        let falling = seconds(&Arrivals::Ramp { from: 10.0, to: 1.0, over: Duration::from_secs(2) }, 13);
        assert!(falling.is_sorted() && (falling[12] - 3.0).abs() < 1e-6, "{falling:?}");
        let level = seconds(&Arrivals::Ramp { from: 2.0, to: 2.0, over: Duration::ZERO }, 3);
        assert_eq!(level, [0.0, 0.5, 1.0]);
    }

    #[test]
    fn what_is_no_rate_is_answered_with_the_range() {
        let wrong = [
            Arrivals::Closed { concurrency: 0 },
            Arrivals::Constant { rate: -1.0 },
            Arrivals::Gamma { rate: f64::NAN, burstiness: 1.0 },
            Arrivals::Gamma { rate: 1.0, burstiness: 0.0 },
            Arrivals::Ramp { from: 1.0, to: 0.0, over: Duration::from_secs(1) },
            Arrivals::Ramp { from: f64::INFINITY, to: 1.0, over: Duration::from_secs(1) },
            Arrivals::At(vec![Nanos::ZERO]),
            Arrivals::At(vec![Nanos::new(-1), Nanos::ZERO]),
            Arrivals::At(vec![Nanos::new(2), Nanos::new(1)]),
        ];
        for arrivals in wrong {
            let error = arrivals.schedule(2, 0).unwrap_err();
            assert!(matches!(error, LoadError::Setting { .. }), "{arrivals:?}: {error}");
        }
    }
}
