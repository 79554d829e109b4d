//! Loads on the command line: what `serve` sends and `capacity` simulates.

use std::path::PathBuf;
use std::time::Duration;

use flow::serve::{Arrivals, Lengths};
use types::UserError;

/// When requests arrive and how long they are.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArguments {
    /// Requests per second, or a range such as 2..20 that the load climbs [default: 4, unless --concurrency or --replay is given]
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with_all = ["concurrency", "replay"])]
    rate: Option<Rate>,
    /// 1 for random arrivals (Poisson), less for bursts, more for even ones
    #[arg(long, value_name = "SHAPE", value_parser = positive, default_value_t = 1.0)]
    burstiness: f64,
    /// Requests arrive at equal intervals
    #[arg(long, conflicts_with = "burstiness")]
    constant: bool,
    /// Keep this many requests in flight instead of a rate
    #[arg(long, value_name = "N")]
    concurrency: Option<usize>,
    /// Tokens per prompt: a number, or a range such as 256..1024
    #[arg(long, value_name = "TOKENS", value_parser = lengths, default_value = "512")]
    pub(crate) input: Lengths,
    /// Tokens per output: a number, or a range such as 16..128
    #[arg(long, value_name = "TOKENS", value_parser = lengths, default_value = "128")]
    pub(crate) output: Lengths,
    /// Load to repeat: Mooncake JSONL, or CSV with time_s,input_tokens,output_tokens
    #[arg(long, alias = "load", value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Seed of everything random
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Without a rate.
const RATE: f64 = 4.0;
/// Without a number.
pub(crate) const REQUESTS: usize = 100;

impl LoadArguments {
    /// The rate that was named, where it does not climb.
    pub(crate) const fn rate(&self) -> Option<f64> {
        match self.rate {
            Some(Rate::Steady(rate)) => Some(rate),
            _ => None,
        }
    }

    /// At a steady rate.
    pub(crate) const fn at(&self, rate: f64) -> Arrivals {
        if self.constant { Arrivals::Constant { rate } } else { Arrivals::Gamma { rate, burstiness: self.burstiness } }
    }

    /// When so many requests arrive, where no file says.
    pub(crate) fn arrivals(&self, requests: usize) -> Result<Arrivals, UserError> {
        Ok(match (self.concurrency, self.rate.unwrap_or(Rate::Steady(RATE))) {
            (Some(concurrency), _) => Arrivals::Closed { concurrency },
            (None, Rate::Climbing { from, to }) => {
                let over = Duration::try_from_secs_f64(2.0 * requests as f64 / (from + to));
                Arrivals::Ramp { from, to, over: over.map_err(|_| UserError::usage("--rate is too low to ever end"))? }
            }
            (None, Rate::Steady(rate)) => self.at(rate),
        })
    }
}

/// Requests per second.
#[derive(Clone, Copy, Debug)]
enum Rate {
    Steady(f64),
    Climbing { from: f64, to: f64 },
}

fn rate(text: &str) -> Result<Rate, String> {
    match text.split_once("..") {
        Some((from, to)) => Ok(Rate::Climbing { from: positive(from)?, to: positive(to)? }),
        None => Ok(Rate::Steady(positive(text)?)),
    }
}

/// A number above zero.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number: &f64| *number > 0.0).ok_or_else(|| "expected a number above 0".to_owned())
}

fn lengths(text: &str) -> Result<Lengths, String> {
    let number =
        |text: &str| text.parse::<u32>().map_err(|_| "expected a number, or a range such as 256..1024".to_owned());
    match text.split_once("..") {
        Some((least, most)) => Ok(Lengths::Uniform(number(least)?, number(most.trim_start_matches('='))?)),
        None => Ok(Lengths::Fixed(number(text)?)),
    }
}
