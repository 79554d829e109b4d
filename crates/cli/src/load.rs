//! Loads on the command line: what `serve` sends and `capacity` simulates.

use std::path::PathBuf;
use std::time::Duration;

use flow::serve::{Arrivals, Lengths};
use types::UserError;

/// When requests arrive and how long they are.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArguments {
    /// Requests per second, or a range such as 2..20 that the load climbs [default: 4, unless --concurrency or --replay is given]
    #[arg(long, value_name = "RATE", value_parser = rate, allow_negative_numbers = true, conflicts_with_all = ["concurrency", "replay"])]
    rate: Option<Rate>,
    /// 1 for random arrivals (Poisson), less for bursts, more for even ones [default: 1]
    #[arg(long, value_name = "SHAPE", value_parser = positive, allow_negative_numbers = true)]
    burstiness: Option<f64>,
    /// Requests arrive at equal intervals
    #[arg(long, conflicts_with = "burstiness")]
    constant: bool,
    /// Keep this many requests in flight instead of a rate
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    concurrency: Option<usize>,
    /// Tokens per prompt: a number, or a range such as 256..1024 [default: 512]
    #[arg(long, value_name = "TOKENS", value_parser = lengths, allow_negative_numbers = true)]
    input: Option<Lengths>,
    /// Tokens per output: a number, or a range such as 16..128 [default: 128]
    #[arg(long, value_name = "TOKENS", value_parser = lengths, allow_negative_numbers = true)]
    output: Option<Lengths>,
    /// Load to repeat: Mooncake JSONL, or CSV with time_s,input_tokens,output_tokens
    #[arg(long, alias = "load", value_name = "FILE", conflicts_with_all = ["input", "output", "burstiness", "constant"])]
    pub(crate) replay: Option<PathBuf>,
    /// Seed of everything random [default: 0]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

/// Without a rate.
const RATE: f64 = 4.0;
/// Without lengths.
const INPUT: Lengths = Lengths::Fixed(512);
const OUTPUT: Lengths = Lengths::Fixed(128);
/// Without a number.
pub(crate) const REQUESTS: usize = 100;

impl LoadArguments {
    /// Tokens of prompts.
    pub(crate) fn input(&self) -> Lengths {
        self.input.clone().unwrap_or(INPUT)
    }

    /// Tokens of outputs.
    pub(crate) fn output(&self) -> Lengths {
        self.output.clone().unwrap_or(OUTPUT)
    }

    /// Seed of everything random.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_default()
    }

    /// How the requests of a file are to arrive, where the options say; those that describe other requests are refused.
    pub(crate) fn of_file(&self, file: &str) -> Result<Option<FileArrivals>, UserError> {
        let given = [
            ("--input", self.input.is_some()),
            ("--output", self.output.is_some()),
            ("--burstiness", self.burstiness.is_some()),
            ("--constant", self.constant),
            ("--seed", self.seed.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            return Err(UserError::usage(format!("{option} has no effect on the requests of {file}"))
                .hint("--rate and --concurrency change when the requests of a file arrive"));
        }
        match (self.concurrency, self.rate) {
            (Some(concurrency), _) => Ok(Some(FileArrivals::Together(concurrency))),
            (None, Some(Rate::Steady(rate))) => Ok(Some(FileArrivals::At(rate))),
            (None, Some(Rate::Climbing { .. })) => {
                Err(UserError::usage(format!("the requests of {file} have one rate"))
                    .hint("give a single number, such as --rate 8"))
            }
            (None, None) => Ok(None),
        }
    }

    /// At a steady rate.
    pub(crate) fn at(&self, rate: f64) -> Arrivals {
        match self.constant {
            true => Arrivals::Constant { rate },
            false => Arrivals::Gamma { rate, burstiness: self.burstiness.unwrap_or(1.0) },
        }
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

/// Other arrivals for the requests of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileArrivals {
    /// So many a second.
    At(f64),
    /// So many at a time.
    Together(usize),
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

/// A whole number above zero.
pub(crate) fn whole(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "expected a whole number above 0".to_owned())
}

fn lengths(text: &str) -> Result<Lengths, String> {
    let number =
        |text: &str| text.parse::<u32>().map_err(|_| "expected a number, or a range such as 256..1024".to_owned());
    let lengths = match text.split_once("..") {
        Some((least, most)) => Lengths::Uniform(number(least)?, number(most.trim_start_matches('='))?),
        None => Lengths::Fixed(number(text)?),
    };
    // Before a server is started that takes minutes.
    lengths.check("the length").map_err(|error| error.to_string())?;
    Ok(lengths)
}
